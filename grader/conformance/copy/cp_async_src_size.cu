// cp.async with a source size from 0 to the copy size: the bytes behind it are zero
// run: --out 384
// source: PTX §9.7.9.25.3.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[32 * 12];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 12; ++i) cells[12 * lane + i] = 0xa5a5a5a5;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + 12 * lane));
  const uint64_t from = __cvta_generic_to_global(in + 256 + 12 * lane);
  // Lane l: l mod 5 of 4 bytes, l mod 9 of 8, l mod 17 of 16.
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(lane % 5) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(at + 8), "l"(from + 8), "r"(lane % 9) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(at + 16), "l"(from + 16), "r"(lane % 17)
               : "memory");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at + 32), "l"(from + 32), "r"((lane + 5) % 17)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (uint32_t i = 0; i < 12; ++i) out[12 * lane + i] = cells[12 * lane + i];
}
