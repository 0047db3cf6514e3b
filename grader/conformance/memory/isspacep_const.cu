// isspacep for a pointer to constant memory: is it in .const, and is it in .global too
// run: --out 32
// source: PTX §9.7.9.20
#include <cstdint>

__constant__ uint32_t kCells[4] = {1, 2, 3, 4};

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
  const uint32_t lane = threadIdx.x;
  out[lane] = spaces_of(kCells + (in[lane] & 3));
}
