// cache operators, eviction priorities, prefetch sizes and cache policies do not change what is loaded and stored
// run: --out 896
// source: PTX §9.7.9.1, §9.7.9.2, §9.7.9.19
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint64_t from = __cvta_generic_to_global(in + 256 + lane);
  uint32_t* to = out + lane * 28;
  uint64_t policy;
  uint32_t value;
#define LOAD(hint)                                                                       \
  asm volatile("ld.global." hint ".u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory"); \
  *to++ = value;                                                                         \
  from += 128;
  LOAD("ca")
  LOAD("cg")
  LOAD("cs")
  LOAD("lu")
  LOAD("cv")
  LOAD("nc")
  LOAD("L1::evict_normal")
  LOAD("L1::evict_unchanged")
  LOAD("L1::evict_first")
  LOAD("L1::evict_last")
  LOAD("L1::no_allocate")
  LOAD("nc.L1::no_allocate")
  LOAD("L2::64B")
  LOAD("L2::128B")
  LOAD("L2::256B")
#define STORE(hint) \
  asm volatile("st.global." hint ".u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to++)), "r"(value++) : "memory");
  STORE("wb")
  STORE("cg")
  STORE("cs")
  STORE("wt")
  STORE("L1::evict_normal")
  STORE("L1::evict_unchanged")
  STORE("L1::evict_first")
  STORE("L1::evict_last")
  STORE("L1::no_allocate")
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(value) : "l"(from), "l"(policy) : "memory");
  *to++ = value;
  asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
  asm volatile("st.global.L2::cache_hint.u32 [%0], %1, %2;" ::"l"(__cvta_generic_to_global(to++)), "r"(~value),
               "l"(policy)
               : "memory");
  asm volatile("createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %0, [%1], 4096, 8192;"
               : "=l"(policy)
               : "l"(__cvta_generic_to_global(in)));
  asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(value) : "l"(from + 128), "l"(policy) : "memory");
  *to++ = value;
}
