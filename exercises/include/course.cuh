// The instructions of this course. `ptx::` is the toolkit's own cuda::ptx (<cuda/ptx>), whose names map one to one to
// PTX instructions, plus the few instructions that it lacks.
//
// Where to look a name up: ptx::mbarrier_try_wait_parity is the PTX instruction mbarrier.try_wait.parity, and so on.
#pragma once

#include <cstdint>
#include <cuda/ptx>

namespace ptx {

using namespace cuda::ptx;

/// True in exactly one lane of the warp, false in the others (PTX elect.sync). For work that one thread of a warp must
/// do, such as issuing a copy. All 32 lanes must call it together; which lane is elected is up to the hardware.
/// Needs sm_90.
__device__ inline bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred is_elected;\n\t"
      "elect.sync _|is_elected, 0xffffffff;\n\t"
      "selp.b32 %0, 1, 0, is_elected;\n\t"
      "}"
      : "=r"(elected)
      :
      : "memory");
  return elected != 0;
}

}  // namespace ptx
