// stores of different widths over each other by one thread, read back in other widths: program order holds byte by byte
// run: --out 256
// source: PTX §8.3, §9.7.9.11
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint8_t cells[32 * 16];
  const uint32_t lane = threadIdx.x;
  uint8_t* c = cells + 16 * lane;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(c));
  uint64_t* whole = reinterpret_cast<uint64_t*>(c);
  whole[0] = static_cast<uint64_t>(in[256 + lane]) << 32 | in[300 + lane];
  whole[1] = static_cast<uint64_t>(in[400 + lane]) << 32 | in[500 + lane];
  uint32_t a, b;
  asm volatile("st.shared.u8 [%0+3], %1;" ::"r"(at), "r"(in[600 + lane]) : "memory");
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at) : "memory");
  out[lane * 8] = a;
  asm volatile("st.shared.u16 [%0+6], %1;" ::"r"(at), "r"(in[601 + lane]) : "memory");
  asm volatile("st.shared.u8 [%0+7], %1;" ::"r"(at), "r"(in[602 + lane]) : "memory");
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
  out[lane * 8 + 1] = a;
  out[lane * 8 + 2] = b;
  asm volatile("st.shared.v4.u8 [%0+8], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(a >> 8), "r"(b >> 8)
               : "memory");
  asm volatile("ld.shared.s16 %0, [%1+10];" : "=r"(a) : "r"(at) : "memory");
  asm volatile("ld.shared.s8 %0, [%1+9];" : "=r"(b) : "r"(at) : "memory");
  out[lane * 8 + 3] = a;
  out[lane * 8 + 4] = b;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2+8];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
  out[lane * 8 + 5] = a;
  out[lane * 8 + 6] = b;
  out[lane * 8 + 7] = c[11];
}
