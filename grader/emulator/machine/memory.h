// The address spaces of the emulated device.
//
// Generic addresses are 64 bits wide. Global memory (allocations, module variables, constant banks and the kernel's
// parameter block alike) lies in one arena, so a global address is its own generic address and param and const
// addresses are readable through generic pointers. Shared and local memory are windows: base + 32-bit offset. The
// shared window is 4 GiB aligned, so the low 32 bits of a generic shared address are its shared::cluster address:
// bits 24..31 are the rank of the CTA in its cluster, as on the chip, the bits below its offset in that CTA's shared
// memory. The shared::cta window of a CTA is the part of that window that bears its rank (PTX §5.1.7), so a variable of
// the CTA of rank 2 has an address such as 0x02000400, and public kernels rely on the place of these bits: clearing bit
// 24 leads to the even CTA of a pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace handoff::machine {

inline constexpr uint64_t kGlobalBase = 0x0000'7f00'0000'0000ull;  ///< first address of the arena
inline constexpr uint64_t kSharedWindow = 0x0000'7100'0000'0000ull;
inline constexpr uint64_t kLocalWindow = 0x0000'7200'0000'0000ull;
inline constexpr uint64_t kWindowSize = 0x1'0000'0000ull;
/// A shared::cluster address: rank << kRankShift | offset.
inline constexpr uint32_t kRankShift = 24;
inline constexpr uint32_t kSharedOffsetMask = (1u << kRankShift) - 1;  ///< the offset's bits
/// Shared memory below this offset belongs to the system, as on the chip: offset 0 is never a variable.
inline constexpr uint32_t kSharedBase = 1024;
/// Bytes of shared memory that a CTA may use (B200: 227 KiB).
inline constexpr uint32_t kSharedMax = 227 * 1024;
/// Memory that nobody wrote reads as this byte: NaN in every floating point type, −1 in every signed integer type.
inline constexpr uint8_t kPoison = 0xff;

/// Is the generic address `a` one of shared memory?
inline bool in_shared_window(uint64_t a) { return a - kSharedWindow < kWindowSize; }
/// Is the generic address `a` one of local memory?
inline bool in_local_window(uint64_t a) { return a - kLocalWindow < kWindowSize; }

/// One live piece of global memory.
struct Allocation {
  uint64_t base = 0;          ///< device address
  uint64_t size = 0;          ///< bytes
  std::byte* host = nullptr;  ///< its bytes in this process
  std::string name;           ///< for messages: "in", "module variable kConfig"; may be empty
  bool writable = true;       ///< false: a store by the kernel is a fault (constants)
  bool adopted = false;       ///< memory of the host, not of the arena
};

/// The arena. Not thread-safe.
class GlobalMemory {
 public:
  GlobalMemory();
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// `size` bytes (0 is made 1), 512-byte aligned, poisoned, with unmapped guard space behind. Returns nullptr if the
  /// arena is full.
  const Allocation* allocate(uint64_t size, std::string name, bool writable = true);
  /// Makes `size` bytes of this process, which begin at `host`, an allocation at the same address, until it is freed.
  /// nullptr: some of them are one, or lie where kernels see shared or local memory.
  const Allocation* adopt(std::byte* host, uint64_t size, std::string name, bool writable = true);
  /// Frees the allocation that starts at `base`; false if there is none.
  bool free(uint64_t base);
  /// Frees every allocation.
  void free_all();
  /// From now on the addresses of what is freed rest before they are used again, so that an access through an old
  /// pointer finds nothing there. So rest the last `blocks` allocations, as many as fit into `bytes` (with their
  /// guards); one larger than half of that does not, and a full arena takes all back. Both 0, as at first: none rests.
  void set_quarantine(uint64_t bytes, size_t blocks);
  /// Gives the allocation that starts at `base` another name; none there: nothing happens.
  void rename(uint64_t base, std::string name);

  /// The allocation that holds all of [address, address + bytes), or nullptr.
  const Allocation* find(uint64_t address, uint64_t bytes) const {
    const Allocation* a = last_;
    if (a != nullptr && address - a->base < a->size && bytes <= a->size - (address - a->base)) return a;
    return find_slow(address, bytes);
  }
  /// "global address 0x7f0000001000 is 4 bytes past the end of `in` (1024 bytes)" for messages about a bad address.
  std::string describe(uint64_t address) const;
  /// Sum of the sizes of all allocations.
  uint64_t bytes_in_use() const { return in_use_; }

 private:
  struct Range {
    uint64_t size, base;  // padded size
  };
  void end_rest(uint64_t bytes, size_t blocks);
  void merge_holes();
  /// An adopted allocation of which something lies in [base, base + size).
  const Allocation* adopted_in(uint64_t base, uint64_t size) const;
  const Allocation* find_slow(uint64_t address, uint64_t bytes) const;
  std::map<uint64_t, Allocation> allocations_;  // by base
  std::multimap<uint64_t, uint64_t> holes_;     // padded size → base, for reuse
  std::deque<Range> resting_;                   // freed, oldest first
  uint64_t resting_bytes_ = 0, quarantine_bytes_ = 0;
  size_t quarantine_blocks_ = 0;
  mutable const Allocation* last_ = nullptr;
  std::byte* arena_ = nullptr;
  uint64_t arena_size_ = 0, next_ = 0, in_use_ = 0;
  size_t adopted_ = 0;  // how many of the allocations are
};

}  // namespace handoff::machine
