// red.global and red.shared of every 64-bit integer operation: the value left
// run: --out 2112
// source: PTX §9.7.13.7
#include <cstdint>

#define RED(op)                                                                 \
  cells[lane] = *cell = a;                                                      \
  asm volatile("red.shared." op " [%0], %1;" ::"r"(shared), "l"(b) : "memory"); \
  asm volatile("red.global." op " [%0], %1;" ::"l"(global), "l"(b) : "memory"); \
  *to++ = static_cast<uint32_t>(cells[lane]);                                   \
  *to++ = static_cast<uint32_t>(cells[lane] >> 32);                             \
  *to++ = static_cast<uint32_t>(*cell);                                         \
  *to++ = static_cast<uint32_t>(*cell >> 32);

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ uint64_t cells[32];
  const uint32_t lane = threadIdx.x;
  uint64_t* cell = reinterpret_cast<uint64_t*>(out + 2048) + lane;
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(cells + lane));
  const uint64_t global = __cvta_generic_to_global(cell);
  uint32_t* to = out + lane * 64;
  for (uint32_t round = 0; round < 2; ++round) {
    const uint64_t a = static_cast<uint64_t>(in[(lane * 5 + round) & 255]) << 32 | in[(lane * 3 + 100) & 255];
    const uint64_t b = (round == 0 ? a & 0xffffffff00000000 : static_cast<uint64_t>(in[(lane * 11 + 50) & 255]) << 32) |
                       in[256 + lane];
    RED("add.u64")
    RED("min.u64")
    RED("min.s64")
    RED("max.u64")
    RED("max.s64")
    RED("and.b64")
    RED("or.b64")
    RED("xor.b64")
  }
}
