// volatile, weak, relaxed, acquire and release loads and stores of every scope, global and shared, by one thread each
// run: --out 672
// source: PTX §9.7.9.8, §9.7.9.11
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint64_t global = __cvta_generic_to_global(out + 640 + lane);
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  uint32_t* to = out + lane * 20;
  uint32_t from = 256 + lane, value;
#define AGAIN(store, load)                                                                       \
  asm volatile("st." store "global.u32 [%0], %1;" ::"l"(global), "r"(in[from]) : "memory");      \
  asm volatile("ld." load "global.u32 %0, [%1];" : "=r"(value) : "l"(global) : "memory");        \
  *to++ = value;                                                                                 \
  asm volatile("st." store "shared.u32 [%0], %1;" ::"r"(shared), "r"(in[from + 32]) : "memory"); \
  asm volatile("ld." load "shared.u32 %0, [%1];" : "=r"(value) : "r"(shared) : "memory");        \
  *to++ = value;                                                                                 \
  from += 64;
  AGAIN("weak.", "weak.")
  AGAIN("volatile.", "volatile.")
  AGAIN("relaxed.cta.", "relaxed.cta.")
  AGAIN("relaxed.cluster.", "relaxed.cluster.")
  AGAIN("relaxed.gpu.", "relaxed.gpu.")
  AGAIN("relaxed.sys.", "relaxed.sys.")
  AGAIN("release.cta.", "acquire.cta.")
  AGAIN("release.cluster.", "acquire.cluster.")
  AGAIN("release.gpu.", "acquire.gpu.")
  AGAIN("release.sys.", "acquire.sys.")
}
