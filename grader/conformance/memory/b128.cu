// ld.b128 and st.b128, and mov.b128 from and to two 64-bit registers: which half is which
// run: --out 384
// source: PTX §9.7.9.8, §9.7.9.11, §9.7.9.2
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[128];
  const uint32_t lane = threadIdx.x;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + 4 * lane));
  uint64_t low, high;
  asm volatile(
      "{\n\t"
      ".reg .b128 value;\n\t"
      "ld.global.b128 value, [%2];\n\t"
      "mov.b128 {%0, %1}, value;\n\t"
      "st.shared.b128 [%3], value;\n\t"
      "mov.b128 value, {%1, %0};\n\t"
      "st.global.b128 [%4], value;\n\t"
      "}"
      : "=&l"(low), "=&l"(high)
      : "l"(__cvta_generic_to_global(in + 256 + 4 * lane)), "r"(at), "l"(__cvta_generic_to_global(out + 12 * lane))
      : "memory");
  out[12 * lane + 4] = static_cast<uint32_t>(low);
  out[12 * lane + 5] = static_cast<uint32_t>(low >> 32);
  out[12 * lane + 6] = static_cast<uint32_t>(high);
  out[12 * lane + 7] = static_cast<uint32_t>(high >> 32);
  for (uint32_t i = 0; i < 4; ++i) out[12 * lane + 8 + i] = cells[4 * lane + i];
}
