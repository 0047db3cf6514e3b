// cvta and cvta.to of shared, local and const, 64-bit and there and back: distances between addresses survive
// run: --out 384
// source: PTX §9.7.9.21
#include <cstdint>

__constant__ uint32_t kCells[4] = {0x11111111, 0x82222222, 0x33333333, 0xc4444444};

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t shared_cells[64];
  uint32_t local_cells[4];
  const uint32_t lane = threadIdx.x;
  shared_cells[lane] = in[lane];
  shared_cells[32 + lane] = in[256 + lane];
  for (uint32_t i = 0; i < 4; ++i) local_cells[i] = in[300 + 4 * lane + i];
  uint32_t* to = out + lane * 12;
#define THERE_AND_BACK(space, first, second, load)                         \
  {                                                                        \
    uint64_t a, b, generic;                                                \
    uint32_t value;                                                        \
    asm volatile("cvta.to." space ".u64 %0, %1;" : "=l"(a) : "l"(first));  \
    asm volatile("cvta.to." space ".u64 %0, %1;" : "=l"(b) : "l"(second)); \
    asm volatile("cvta." space ".u64 %0, %1;" : "=l"(generic) : "l"(b));   \
    asm volatile(load " %0, [%1];" : "=r"(value) : "l"(b) : "memory");     \
    *to++ = static_cast<uint32_t>(b - a);                                  \
    *to++ = generic == reinterpret_cast<uint64_t>(second);                 \
    *to++ = value;                                                         \
  }
  THERE_AND_BACK("shared", shared_cells, shared_cells + 32 + lane, "ld.shared.u32")
  THERE_AND_BACK("local", local_cells, local_cells + (lane & 3), "ld.local.u32")
  THERE_AND_BACK("const", kCells, kCells + ((lane + in[lane]) & 3), "ld.const.u32")
  THERE_AND_BACK("global", in, in + 400 + lane, "ld.global.u32")
}
