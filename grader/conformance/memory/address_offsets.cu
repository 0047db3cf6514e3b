// [register + immediate] with positive and negative offsets, 64-bit and 32-bit addresses
// run: --out 256
// source: PTX §6.4.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[64];
  const uint32_t lane = threadIdx.x;
  cells[lane] = in[256 + lane];
  cells[32 + lane] = in[288 + lane];
  __syncwarp();
  const uint64_t global = __cvta_generic_to_global(in + 1024 + lane);
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(cells + 16 + lane));
  uint32_t* to = out + lane * 8;
  uint32_t v;
#define LOAD(space, reg, at, offset)                                                   \
  asm volatile("ld." space ".u32 %0, [%1" offset "];" : "=r"(v) : reg(at) : "memory"); \
  *to++ = v;
  LOAD("global", "l", global, "+0")
  LOAD("global", "l", global, "+4")
  LOAD("global", "l", global, "+8188")
  LOAD("global", "l", global, "+-4")
  LOAD("global", "l", global, "+-4096")
  LOAD("shared", "r", shared, "+64")
  LOAD("shared", "r", shared, "+-64")
  LOAD("shared", "r", shared, "+-4")
}
