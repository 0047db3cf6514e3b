// shfl.sync.down: value and predicate for 12 operands b by 12 clamps and segment masks c
// run: --out 9216
// source: PTX §9.7.9.6
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  const uint32_t x = in[256 + lane];
  // Lane distances or indices (only five bits count) by clamps and segment masks.
  const uint32_t bs[12] = {0, 1, 2, 3, 5, 8, 15, 16, 31, 32, 33, 0xffffffff};
  const uint32_t cs[12] = {0x1f, 0, 0x0f, 0x17, 0x1c1f, 0x181f, 0x101f, 0x1e1f, 0x1f1f, 0x1c1c, 0x1800, 0xffffffff};
  for (uint32_t i = 0; i < 144; ++i) {
    const uint32_t b = bs[(i % 12 + in[0]) % 12], c = cs[i / 12];
    uint32_t value, valid;
    asm volatile(
        "{\n\t.reg .pred valid;\n\tshfl.sync.down.b32 %0|valid, %2, %3, %4, 0xffffffff;\n\tselp.u32 %1, 1, 0, "
        "valid;\n\t}"
        : "=r"(value), "=r"(valid)
        : "r"(x), "r"(b), "r"(c));
    out[i * 64 + lane] = value;
    out[i * 64 + 32 + lane] = valid;
  }
}
