// bar.red.popc, .and and .or by a CTA of 96 threads, predicate and negated predicate
// run: --block 96 --out 3072
// source: PTX §9.7.13.1
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t thread = threadIdx.x;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t mine = i == 0   ? 0
                          : i == 1 ? 1
                          : i == 2 ? thread == 95
                          : i == 3 ? thread != 40
                                   : in[256 + 96 * i + thread] & 1;
    uint32_t count, all, any, negated;
    asm volatile(
        "{\n\t"
        ".reg .pred mine, p;\n\t"
        "setp.ne.u32 mine, %4, 0;\n\t"
        "bar.red.popc.u32 %0, 0, mine;\n\t"
        "bar.red.and.pred p, 0, mine;\n\t"
        "selp.u32 %1, 1, 0, p;\n\t"
        "bar.red.or.pred p, 1, mine;\n\t"
        "selp.u32 %2, 1, 0, p;\n\t"
        "bar.red.popc.u32 %3, 15, 96, !mine;\n\t"
        "}"
        : "=r"(count), "=r"(all), "=r"(any), "=r"(negated)
        : "r"(mine)
        : "memory");
    uint32_t* to = out + i * 384 + thread;
    to[0] = count;
    to[96] = all;
    to[192] = any;
    to[288] = negated;
  }
}
