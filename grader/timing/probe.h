// The probes: which small kernel measures which of the timing model's quantities, and how it is launched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace handoff::timing {

/// A tensor map for the kernel's last parameter. None: it has no such parameter.
enum class ProbeMap : uint8_t {
  None,
  Swizzled,  ///< rows of 128 bytes in swizzle 128B, n / 128 of them
  Plain,     ///< rows of 1024 bytes, n / 1024 of them
};

/// One line of the comparison of model and chip. The kernel is
/// `(uint32_t* samples, unsigned char* global, uint32_t n, uint32_t zero)`, with a tensor map behind these where `map`
/// says so; grader/timing/kernels/probe.cuh tells what it does.
struct Probe {
  std::string name;    ///< "bulk.load/4096": what is measured, and for which n
  std::string file;    ///< in grader/timing/kernels, without ".cu"
  std::string kernel;  ///< its entry
  uint32_t n = 0;      ///< the kernel's parameter: bytes, mostly
  /// One dimension each: blocks, threads, blocks.
  ///@{
  uint32_t grid = 1, block = 32, cluster = 1;
  ///@}
  double operations = 1;          ///< what a round's cycles are divided by
  uint32_t dynamic_smem = 0;      ///< bytes
  size_t global_bytes = 1 << 20;  ///< of device memory for the kernel
  ProbeMap map = ProbeMap::None;  ///< of the last parameter
  std::string not_modelled;       ///< why the model gives no such figure; empty: it must agree
  std::string not_measured;       ///< why a chip gives no such figure: what ptxas made of the kernel; empty: it does
  bool quick_clock = false;       ///< ptxas reads the kernel's first clock by CS2R: clock_probe()
};

/// All probes, those of one file behind each other; the first is "clock", which the others' cycles are less.
const std::vector<Probe>& all_probes();

/// The name of the probe whose round is what reading the clock costs `probe` on a chip. ptxas reads the first clock
/// into a uniform register (S2UR), as in "clock", or into one of each lane (CS2R), which takes a third of the time. Of
/// the latter kind is "mufu.rcp": ptxas removes its reciprocals of reciprocals, so nothing but the clock is left of it.
/// The emulator knows one way.
const char* clock_probe(const Probe& probe);

/// grader/timing/kernels.
std::filesystem::path kernel_folder();

/// What a record is valid for: changes when the code of the probe's kernel file or of probe.cuh changes, comments and
/// white space apart, or how the probe is launched. Empty if a file cannot be read.
std::string fingerprint(const Probe& probe);

}  // namespace handoff::timing
