// isspacep of every space for pointers to global, static shared, dynamic shared and local memory
// run: --out 192 --smem 128
// source: PTX §9.7.9.20
#include <cstdint>

// Bit i: the address is in space i of the list.
__device__ uint32_t spaces_of(const void* p) {
  uint32_t bits = 0, one;
#define ASK(space, bit)                                                                                             \
  asm volatile("{\n\t.reg .pred in_space;\n\tisspacep." space " in_space, %1;\n\tselp.u32 %0, 1, 0, in_space;\n\t}" \
               : "=r"(one)                                                                                          \
               : "l"(p));                                                                                           \
  bits |= one << bit;
  ASK("global", 0)
  ASK("shared", 1)
  ASK("shared::cta", 2)
  ASK("shared::cluster", 3)
  ASK("local", 4)
  ASK("const", 5)
  return bits;
}

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  extern __shared__ uint32_t dynamic_cells[];
  __shared__ uint32_t shared_cells[32];
  uint32_t local_cells[4];
  const uint32_t lane = threadIdx.x;
  shared_cells[lane] = in[lane];
  dynamic_cells[lane] = in[lane];
  for (uint32_t i = 0; i < 4; ++i) local_cells[i] = in[lane + i];
  out[lane * 6] = spaces_of(in + lane);
  out[lane * 6 + 1] = spaces_of(out + lane);
  out[lane * 6 + 2] = spaces_of(shared_cells + lane);
  out[lane * 6 + 3] = spaces_of(dynamic_cells + lane);
  out[lane * 6 + 4] = spaces_of(local_cells + (in[lane] & 3));
  out[lane * 6 + 5] = shared_cells[lane] ^ dynamic_cells[lane] ^ local_cells[in[lane] & 3];
}
