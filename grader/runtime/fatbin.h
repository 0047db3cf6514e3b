// Fat binaries: the images that nvcc puts into a program, and the choice of one to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace handoff::runtime {

/// One image of a fat binary.
struct FatbinEntry {
  /// As in the file; other kinds exist and are of no use here.
  enum class Kind : uint16_t { Ptx = 1, Elf = 2 };
  Kind kind = Kind::Ptx;               ///< PTX text or machine code
  uint32_t arch = 0;                   ///< compute capability times ten: 100
  uint64_t flags = 0;                  ///< kFatbin…
  std::span<const std::byte> payload;  ///< as stored, without padding where that can be told
  uint64_t uncompressed_bytes = 0;     ///< 0: stored as it is
};

/// FatbinEntry::flags: the payload is a zstd frame, is in the older LZ4 form, or is for one architecture alone (100a).
///@{
inline constexpr uint64_t kFatbinZstd = 0x8000, kFatbinLz4 = 0x2000, kFatbinArchSpecific = 0x100000;
///@}

/// The images of a fat binary that begins at `image` (magic 0xba55ed50), in its order. The header tells its length, and
/// nothing behind that is read. On failure the list is empty and `error` is one line.
std::vector<FatbinEntry> read_fatbin(const void* image, std::string* error);
/// The same for bytes from a file, none behind which are read.
std::vector<FatbinEntry> read_fatbin(std::span<const std::byte> image, std::string* error);

/// The PTX text of an entry, decompressed; empty, and `error` is one line, where it cannot be had.
std::string ptx_text(const FatbinEntry& entry, std::string* error);

/// The target that PTX text names: "sm_100a"; empty where there is none.
std::string ptx_target(const std::string& ptx);

/// How well PTX for `target` suits a device of compute capability `cc` (times ten), the greater the better; 0: it does
/// not run there. The driver's rule (CUDA Programming Guide, "Compute Capabilities"): code for sm_NNa runs on NN alone,
/// for sm_NNf on its family, other code on NN and everything later.
int suitability(const std::string& target, int cc);

/// The PTX of `entries` that suits a device best.
struct PtxChoice {
  std::string ptx;     ///< empty: none
  std::string target;  ///< of it
  std::string why;     ///< where there is none: one line that says what there is instead
};
PtxChoice choose_ptx(const std::vector<FatbinEntry>& entries, int cc);

}  // namespace handoff::runtime
