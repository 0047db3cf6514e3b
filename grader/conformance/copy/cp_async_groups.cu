// cp.async groups: wait_group 2, 1 and 0, an empty group among them; a group waited for is there
// run: --out 512
// source: PTX §9.7.9.25.3.2, §9.7.9.25.3.3
#include <cstdint>

extern "C" __global__ void conformance(const uint32_t* in, uint32_t* out) {
  __shared__ alignas(16) uint32_t cells[32 * 16];
  const uint32_t lane = threadIdx.x;
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(cells + 16 * lane));
  const uint64_t from = __cvta_generic_to_global(in + 256 + 16 * lane);
  uint32_t* to = out + 16 * lane;
#define COPY(k) \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + 16 * k), "l"(from + 16 * k) : "memory");
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory");
#define WAIT(n) asm volatile("cp.async.wait_group " n ";" ::: "memory");
  COPY(0)
  COMMIT
  COPY(1)
  COPY(2)
  COMMIT
  COMMIT
  COPY(3)
  COMMIT
  WAIT("3")
  for (uint32_t i = 0; i < 4; ++i) to[i] = cells[16 * lane + i];
  WAIT("2")
  for (uint32_t i = 4; i < 12; ++i) to[i] = cells[16 * lane + i];
  WAIT("1")
  WAIT("0")
  for (uint32_t i = 12; i < 16; ++i) to[i] = cells[16 * lane + i];
}
