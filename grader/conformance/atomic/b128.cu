// atom.exch.b128 and atom.cas.b128, global and shared: which half is which; a difference in any word counts
// run: --out 1152
// source: PTX §9.7.13.5
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[128];
  const uint32_t lane = threadIdx.x;
  uint32_t* const places[2] = {cells + 4 * lane, out + 32 * 32 + 4 * lane};
  uint32_t* to = out + lane * 32;
  uint64_t a[2], b[2], old[2];
  for (uint32_t i = 0; i < 2; ++i) {
    a[i] = static_cast<uint64_t>(in[256 + lane + 64 * i]) << 32 | in[288 + lane + 64 * i];
    b[i] = static_cast<uint64_t>(in[512 + lane + 64 * i]) << 32 | in[544 + lane + 64 * i];
  }
#define ATOM(space, op, reg, at)                                            \
  asm volatile(                                                             \
      "{\n\t"                                                               \
      ".reg .b128 old, comparand, value;\n\t"                               \
      "mov.b128 comparand, {%3, %4};\n\t"                                   \
      "mov.b128 value, {%5, %6};\n\t"                                       \
      "atom." space op                                                      \
      "\n\t"                                                                \
      "mov.b128 {%0, %1}, old;\n\t"                                         \
      "}"                                                                   \
      : "=l"(old[0]), "=l"(old[1])                                          \
      : reg(at), "l"(comparand[0]), "l"(comparand[1]), "l"(b[0]), "l"(b[1]) \
      : "memory");                                                          \
  for (uint32_t k = 0; k < 2; ++k) {                                        \
    *to++ = static_cast<uint32_t>(old[k]);                                  \
    *to++ = static_cast<uint32_t>(old[k] >> 32);                            \
  }                                                                         \
  for (uint32_t k = 0; k < 4; ++k) *to++ = cell[k];
  for (uint32_t place = 0; place < 2; ++place) {
    uint32_t* cell = places[place];
    for (uint32_t i = 0; i < 2; ++i) {
      cell[2 * i] = static_cast<uint32_t>(a[i]);
      cell[2 * i + 1] = static_cast<uint32_t>(a[i] >> 32);
    }
    uint64_t comparand[2] = {b[0], b[1]};
    ATOM("", "exch.b128 old, [%2], value;", "l", cell)
    for (uint32_t i = 0; i < 2; ++i) {
      cell[2 * i] = static_cast<uint32_t>(a[i]);
      cell[2 * i + 1] = static_cast<uint32_t>(a[i] >> 32);
      comparand[i] = a[i];
    }
    const uint32_t wrong = lane & 7;  // 0 to 3: this word differs; 4 to 7: none
    if (wrong < 4) comparand[wrong >> 1] ^= 1ull << ((wrong & 1) * 32 + (lane >> 1));
    ATOM("", "cas.b128 old, [%2], comparand, value;", "l", cell)
  }
}
