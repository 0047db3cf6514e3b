// cp.async of 4, 8 and 16 bytes, .ca and .cg, at several offsets: what is written and what beside it stays
// run: --out 640
// source: PTX §9.7.9.25.3.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[32 * 20];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 20; ++i) cells[20 * lane + i] = 0xa5a5a5a5;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + 20 * lane));
  const uint64_t from = __cvta_generic_to_global(in + 256 + 20 * lane);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at + 4), "l"(from) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at + 16), "l"(from + 8) : "memory");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at + 32), "l"(from + 16) : "memory");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 48), "l"(from + 32) : "memory");
  asm volatile("cp.async.ca.shared::cta.global.L2::128B [%0], [%1], 4;" ::"r"(at + 64 + 4 * (lane & 3)),
               "l"(from + 4 * (lane & 7))
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (uint32_t i = 0; i < 20; ++i) out[20 * lane + i] = cells[20 * lane + i];
}
