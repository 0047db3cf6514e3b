// atom.global of every 64-bit integer operation: the value returned and the value left, one cell per lane
// run: --out 3520
// source: PTX §9.7.13.5
#include <cstdint>

// The cell holds a; what the atomic returns, and what it leaves.
#define ATOM(op)                                                                               \
  {                                                                                            \
    *cell = a;                                                                                 \
    uint64_t old;                                                                              \
    asm volatile("atom.global." op " %0, [%1], %2;" : "=l"(old) : "l"(at), "l"(b) : "memory"); \
    *to++ = static_cast<uint32_t>(old);                                                        \
    *to++ = static_cast<uint32_t>(old >> 32);                                                  \
    *to++ = static_cast<uint32_t>(*cell);                                                      \
    *to++ = static_cast<uint32_t>(*cell >> 32);                                                \
  }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  const uint32_t lane = threadIdx.x;
  uint64_t* cell = reinterpret_cast<uint64_t*>(out + 3456) + lane;
  const uint64_t at = __cvta_generic_to_global(cell);
  uint32_t* to = out + lane * 108;
  for (uint32_t round = 0; round < 3; ++round) {
    // Equal high words in one round, so that the low ones decide; unequal in the others.
    const uint64_t a = static_cast<uint64_t>(in[(lane * 5 + round) & 255]) << 32 | in[(lane * 3 + 100) & 255];
    const uint64_t b =
        (round == 0 ? a & 0xffffffff00000000 : static_cast<uint64_t>(in[(lane * 11 + round * 50) & 255]) << 32) |
        in[256 + lane * 3 + round];
    ATOM("add.u64")
    ATOM("min.u64")
    ATOM("min.s64")
    ATOM("max.u64")
    ATOM("max.s64")
    ATOM("and.b64")
    ATOM("or.b64")
    ATOM("xor.b64")
    ATOM("exch.b64")
  }
}
