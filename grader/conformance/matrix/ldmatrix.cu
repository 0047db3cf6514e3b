// ldmatrix of 8x8 matrices: one, two and four of them, as they are and transposed, rows in no order
// run: --out 448
// source: PTX §9.7.14.5.15
#include <cstdint>

// Row r of the matrices lies at unit (5 r + 3) mod 32 of the tile.
__device__ uint32_t unit_of(uint32_t row) { return (5 * row + 3) % 32; }

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t tile[128];
  const uint32_t lane = threadIdx.x;
  for (uint32_t i = 0; i < 4; ++i) tile[4 * unit_of(lane) + i] = in[256 + 4 * lane + i];
  __syncwarp();
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(tile + 4 * unit_of(lane)));
  uint32_t r[4];
  uint32_t* to = out + lane;
#define LOAD_1(form)                                                                            \
  asm volatile("ldmatrix.sync.aligned." form " {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory"); \
  *to = r[0];                                                                                   \
  to += 32;
#define LOAD_2(form)                                                                                            \
  asm volatile("ldmatrix.sync.aligned." form " {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory"); \
  for (uint32_t i = 0; i < 2; ++i) to[32 * i] = r[i];                                                           \
  to += 64;
#define LOAD_4(form)                                                    \
  asm volatile("ldmatrix.sync.aligned." form " {%0, %1, %2, %3}, [%4];" \
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])         \
               : "r"(at)                                                \
               : "memory");                                             \
  for (uint32_t i = 0; i < 4; ++i) to[32 * i] = r[i];                   \
  to += 128;
  LOAD_1("m8n8.x1.shared.b16")
  LOAD_1("m8n8.x1.trans.shared.b16")
  LOAD_2("m8n8.x2.shared::cta.b16")
  LOAD_2("m8n8.x2.trans.shared.b16")
  LOAD_4("m8n8.x4.shared.b16")
  LOAD_4("x4.m8n8.shared.b16.trans")
}
