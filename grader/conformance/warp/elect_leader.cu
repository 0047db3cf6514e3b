// which lane elect.sync elects, for several membermasks
// run: --out 512
// source: PTX §9.7.13.14
// undefined: which member is elected
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 8; ++i) {
    const uint32_t mask = i == 0 ? 0xffffffff : i == 1 ? 0x80000000 : i == 2 ? 0xffff0000 : in[256 + i] | 2;
    if (mask >> lane & 1) {
      uint32_t leader, mine;
      asm volatile("{\n\t.reg .pred p;\n\telect.sync %0|p, %2;\n\tselp.u32 %1, 1, 0, p;\n\t}"
                   : "=r"(leader), "=r"(mine)
                   : "r"(mask));
      out[i * 64 + lane] = leader;
      out[i * 64 + 32 + lane] = mine;
    }
    __syncwarp();
  }
}
