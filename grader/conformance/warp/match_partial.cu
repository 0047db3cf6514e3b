// match.any and match.all by the even and by the odd lanes: only members match
// run: --out 160
// source: PTX §9.7.13.10
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint32_t x = in[256 + (in[300 + lane] & 3)];
  uint32_t any, all, same;
  int p, q;
  if (lane & 1) {
    any = __match_any_sync(0xaaaaaaaa, x);
    all = __match_all_sync(0xaaaaaaaa, in[256], &p);
    same = __match_all_sync(0xaaaaaaaa, x, &q);
  } else {
    all = __match_all_sync(0x55555555, in[256], &p);
    same = __match_all_sync(0x55555555, x, &q);
    any = __match_any_sync(0x55555555, x);
  }
  out[lane] = any;
  out[32 + lane] = all;
  out[64 + lane] = static_cast<uint32_t>(p);
  out[96 + lane] = same;
  out[128 + lane] = static_cast<uint32_t>(q);
}
