// vote.sync in both branches of an if, each with its own membermask: lanes outside count neither way
// run: --out 768
// source: PTX §9.7.13.9
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint32_t mask = in[256] | 0x10001;
  const uint32_t members = (mask >> lane & 1) ? mask : ~mask;
  for (uint32_t i = 0; i < 8; ++i) {
    const bool mine = i == 0 || (i != 1 && (in[300 + i] >> lane & 1));
    uint32_t all, any, ballot;
    if (mask >> lane & 1) {
      all = __all_sync(members, mine);
      any = __any_sync(members, mine);
      ballot = __ballot_sync(members, mine);
    } else {
      ballot = __ballot_sync(members, !mine);
      any = __any_sync(members, !mine);
      all = __all_sync(members, !mine);
    }
    out[i * 96 + lane] = all;
    out[i * 96 + 32 + lane] = any;
    out[i * 96 + 64 + lane] = ballot;
    __syncwarp();
  }
}
