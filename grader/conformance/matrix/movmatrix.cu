// movmatrix: the transpose of an 8x8 matrix in registers
// run: --out 32
// source: PTX §9.7.14.5.17
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  uint32_t r;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(in[256 + threadIdx.x]));
  out[threadIdx.x] = r;
}
