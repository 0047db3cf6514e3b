// cp.async with ignore-src: true writes zeros, false copies
// run: --out 384
// source: PTX §9.7.9.25.3.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[32 * 12];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 12; ++i) cells[12 * lane + i] = 0xa5a5a5a5;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + 12 * lane));
  const uint64_t from = __cvta_generic_to_global(in + 256 + 12 * lane);
#define COPY(form, size, to, behind, ignore)                                             \
  asm volatile("{\n\t.reg .pred ignore;\n\tsetp.ne.u32 ignore, %2, 0;\n\tcp.async." form \
               ".shared.global [%0], [%1], " size ", ignore;\n\t}" ::"r"(at + to),       \
               "l"(from + behind), "r"(ignore)                                           \
               : "memory");
  COPY("ca", "4", 0, 0, lane & 1)
  COPY("ca", "8", 8, 8, lane & 2)
  COPY("ca", "16", 16, 16, lane & 4)
  COPY("cg", "16", 32, 32, lane & 8)
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (uint32_t i = 0; i < 12; ++i) out[12 * lane + i] = cells[12 * lane + i];
}
