// stmatrix of 8x8 matrices: one, two and four of them, as they are and transposed; what is not stored stays
// run: --out 768
// source: PTX §9.7.14.5.16
#include <cstdint>

// Row r of the matrices lies at unit (5 r + 3) mod 32 of the tile.
__device__ uint32_t unit_of(uint32_t row) { return (5 * row + 3) % 32; }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t tile[128];
  const uint32_t lane = threadIdx.x;
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(tile + 4 * unit_of(lane)));
  uint32_t r[4];
  for (uint32_t i = 0; i < 4; ++i) r[i] = in[256 + 32 * i + lane];
  uint32_t* to = out;
#define STORE(form, registers, ...)                                                                      \
  for (uint32_t i = 0; i < 4; ++i) tile[32 * i + lane] = 0xdddddddd;                                     \
  __syncwarp();                                                                                          \
  asm volatile("stmatrix.sync.aligned." form " [%0], " registers ";" ::"r"(at), __VA_ARGS__ : "memory"); \
  __syncwarp();                                                                                          \
  for (uint32_t i = 0; i < 4; ++i) to[32 * i + lane] = tile[32 * i + lane];                              \
  __syncwarp();                                                                                          \
  to += 128;
  STORE("m8n8.x1.shared.b16", "{%1}", "r"(r[0]))
  STORE("m8n8.x1.trans.shared.b16", "{%1}", "r"(r[0]))
  STORE("m8n8.x2.shared::cta.b16", "{%1, %2}", "r"(r[0]), "r"(r[1]))
  STORE("m8n8.x2.trans.shared.b16", "{%1, %2}", "r"(r[0]), "r"(r[1]))
  STORE("m8n8.x4.shared.b16", "{%1, %2, %3, %4}", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))
  STORE("x4.m8n8.shared.b16.trans", "{%1, %2, %3, %4}", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))
}
