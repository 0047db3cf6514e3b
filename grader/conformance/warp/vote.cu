// vote.sync.all, .any, .uni and .ballot by a full warp, and of a negated predicate
// run: --out 5120
// source: PTX §9.7.13.9
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 32; ++i) {
    // From none to all lanes, then single lanes, then any.
    const uint32_t mask = i == 0   ? 0
                          : i == 1 ? 0xffffffff
                          : i == 2 ? 1
                          : i == 3 ? 0x80000000
                          : i == 4 ? 0x7fffffff
                                   : in[256 + i];
    uint32_t all, any, uni, not_all, ballot;
    asm volatile(
        "{\n\t"
        ".reg .pred mine, p;\n\t"
        "setp.ne.u32 mine, %5, 0;\n\t"
        "vote.sync.all.pred p, mine, %6;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "vote.sync.any.pred p, mine, %6;\n\t"
        "selp.u32 %1, 1, 0, p;\n\t"
        "vote.sync.uni.pred p, mine, %6;\n\t"
        "selp.u32 %2, 1, 0, p;\n\t"
        "vote.sync.all.pred p, !mine, %6;\n\t"
        "selp.u32 %3, 1, 0, p;\n\t"
        "vote.sync.ballot.b32 %4, mine, %6;\n\t"
        "}"
        : "=r"(all), "=r"(any), "=r"(uni), "=r"(not_all), "=r"(ballot)
        : "r"(mask >> lane & 1), "r"(0xffffffff));
    uint32_t* to = out + i * 160 + lane;
    to[0] = all;
    to[32] = any;
    to[64] = uni;
    to[96] = not_all;
    to[128] = ballot;
  }
}
