// match.any and match.all of b32 and b64: masks and predicate; equal, two groups, all different
// a difference in the high half
// run: --out 1536
// source: PTX §9.7.13.10
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t x = i == 0   ? in[256]
                       : i == 1 ? in[256 + (lane & 1)]
                       : i == 2 ? in[256 + lane]
                                : in[256 + (in[300 + 32 * i + lane] & (i == 3 ? 3 : 7))];
    const uint64_t w = static_cast<uint64_t>(i == 4 ? lane & 3 : 7) << 62 | static_cast<uint64_t>(x)
                                                                                << (i & 1 ? 30 : 0);
    uint32_t any32, any64, all32, all64, p32, p64;
    asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(any32) : "r"(x));
    asm volatile("match.any.sync.b64 %0, %1, 0xffffffff;" : "=r"(any64) : "l"(w));
    asm volatile("{\n\t.reg .pred p;\n\tmatch.all.sync.b32 %0|p, %2, 0xffffffff;\n\tselp.u32 %1, 1, 0, p;\n\t}"
                 : "=r"(all32), "=r"(p32)
                 : "r"(x));
    asm volatile("{\n\t.reg .pred p;\n\tmatch.all.sync.b64 %0|p, %2, 0xffffffff;\n\tselp.u32 %1, 1, 0, p;\n\t}"
                 : "=r"(all64), "=r"(p64)
                 : "l"(w));
    uint32_t* to = out + i * 192 + lane;
    to[0] = any32;
    to[32] = any64;
    to[64] = all32;
    to[96] = p32;
    to[128] = all64;
    to[160] = p64;
  }
}
