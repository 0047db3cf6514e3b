// generic ld and st through pointers to global, shared, local and constant memory
// run: --out 256
// source: PTX §6.4.1.1, §9.7.9.8
#include <cstdint>

__constant__ uint32_t kCells[4] = {0x11111111, 0x82222222, 0x33333333, 0xc4444444};

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t shared_cells[32];
  uint32_t local_cells[4];
  const uint32_t lane = threadIdx.x;
  shared_cells[lane] = in[256 + lane];
  for (uint32_t i = 0; i < 4; ++i) local_cells[i] = in[300 + 4 * lane + i];
  // Which memory lane reads differs from lane to lane, so one instruction meets all four.
  const uint32_t* from[4] = {in + 500 + lane, shared_cells + lane, local_cells + (lane & 3), kCells + (lane & 3)};
  for (uint32_t round = 0; round < 4; ++round) {
    uint32_t value;
    asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(from[(lane + round) & 3]) : "memory");
    out[lane * 8 + round] = value;
  }
  uint32_t* to[3] = {out + lane * 8 + 4, shared_cells + lane, local_cells + 2};
  for (uint32_t round = 0; round < 3; ++round) {
    asm volatile("st.u16 [%0], %1;" ::"l"(to[(lane + round) % 3]), "r"(in[600 + 3 * lane + round]) : "memory");
  }
  out[lane * 8 + 5] = shared_cells[lane];
  out[lane * 8 + 6] = local_cells[2];
  out[lane * 8 + 7] = local_cells[3];
}
