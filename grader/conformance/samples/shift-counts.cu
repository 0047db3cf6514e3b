// shl and shr clamp their count: 32 and more give 0, or the sign for shr.s32
// run: --grid 1 --block 64 --out 192
// source: PTX §9.7.8.8 (shl), §9.7.8.9 (shr): "Shift amounts greater than the register width N are clamped to N."
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t value = in[256 + threadIdx.x];
  const uint32_t count = in[128 + threadIdx.x];  // 0, 1, 0xffffffff, 31, 32, 33, 63, 64 and others
  uint32_t left, right, arithmetic;
  asm volatile("shl.b32 %0, %1, %2;" : "=r"(left) : "r"(value), "r"(count));
  asm volatile("shr.u32 %0, %1, %2;" : "=r"(right) : "r"(value), "r"(count));
  asm volatile("shr.s32 %0, %1, %2;" : "=r"(arithmetic) : "r"(value), "r"(count));
  out[threadIdx.x] = left;
  out[64 + threadIdx.x] = right;
  out[128 + threadIdx.x] = arithmetic;
}
