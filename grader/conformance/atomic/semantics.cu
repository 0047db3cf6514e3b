// atom with every semantics and scope, generic, global and shared addresses: the same result
// run: --out 1216
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t cells[32];
  const uint32_t lane = threadIdx.x;
  const uint64_t global = __cvta_generic_to_global(out + 1184 + lane);
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  uint32_t* to = out + lane * 37;
  cells[lane] = in[256 + lane];
  out[1184 + lane] = in[288 + lane];
  uint32_t old, add = in[320 + lane];
  uint32_t* generic = (lane & 1) ? cells + lane : out + 1184 + lane;
#define ATOM(how)                                                                                                \
  asm volatile("atom." how ".global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(global), "r"(add) : "memory");      \
  *to++ = old;                                                                                                   \
  asm volatile("atom." how ".shared::cta.xor.b32 %0, [%1], %2;" : "=r"(old) : "r"(shared), "r"(add) : "memory"); \
  *to++ = old;                                                                                                   \
  asm volatile("atom." how ".exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(generic), "r"(~old) : "memory");          \
  *to++ = old;
  ATOM("relaxed.cta")
  ATOM("relaxed.cluster")
  ATOM("relaxed.gpu")
  ATOM("relaxed.sys")
  ATOM("acquire.cta")
  ATOM("acquire.gpu")
  ATOM("release.cluster")
  ATOM("release.gpu")
  ATOM("acq_rel.cta")
  ATOM("acq_rel.cluster")
  ATOM("acq_rel.gpu")
  ATOM("acq_rel.sys")
  *to = cells[lane];
}
