// Launches one kernel for each of many ways to access shared memory and writes what it launched, a line a launch:
//
//   ld64 ffffffff 0 8 16 …        operation, active lanes, byte offset of each lane
//
// Each kernel is one warp that does the same access kAccesses times. bank_conflicts_record.py runs this under Nsight
// Compute and adds what the GPU's counters say.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

constexpr int kAccesses = 1024;
constexpr uint32_t kBytes = 16384;

enum Op {
  Ld8,
  Ld16,
  Ld32,
  Ld64,
  Ld128,
  St8,
  St32,
  St64,
  St128,
  Atom32,
  Red32,
  Exch64,
  Ldmatrix1,
  Ldmatrix2,
  Ldmatrix4,
  Stmatrix4,
  kOps
};
struct Form {
  const char* name;
  uint32_t bytes;  // a lane
  uint32_t lanes;  // that the instruction uses at most
};
constexpr Form kForms[kOps] = {
    {"ld8", 1, ~0u},         {"ld16", 2, ~0u},          {"ld32", 4, ~0u},       {"ld64", 8, ~0u},
    {"ld128", 16, ~0u},      {"st8", 1, ~0u},           {"st32", 4, ~0u},       {"st64", 8, ~0u},
    {"st128", 16, ~0u},      {"atom32", 4, ~0u},        {"red32", 4, ~0u},      {"exch64", 8, ~0u},
    {"ldmatrix1", 16, 0xff}, {"ldmatrix2", 16, 0xffff}, {"ldmatrix4", 16, ~0u}, {"stmatrix4", 16, ~0u}};

template <Op OP>
__global__ void access(const uint32_t* offset, uint32_t mask, uint32_t zero, uint32_t* out) {
  __shared__ __align__(1024) unsigned char memory[kBytes];
  uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + offset[threadIdx.x];
  uint32_t r = threadIdx.x, s = 1, t = 2, u = 3, sum = 0;
  uint64_t d = threadIdx.x;
  if ((mask >> threadIdx.x & 1) == 0) return;
#pragma unroll 16
  for (int i = 0; i < kAccesses; i++) {
    if constexpr (OP == Ld8) asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(r) : "r"(at));
    if constexpr (OP == Ld16) asm volatile("ld.volatile.shared.u16 %0, [%1];" : "=r"(r) : "r"(at));
    if constexpr (OP == Ld32) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(r) : "r"(at));
    if constexpr (OP == Ld64) asm volatile("ld.volatile.shared.u64 %0, [%1];" : "=l"(d) : "r"(at));
    if constexpr (OP == Ld128)
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(r), "=r"(s), "=r"(t), "=r"(u) : "r"(at));
    if constexpr (OP == St8) asm volatile("st.volatile.shared.u8 [%0], %1;" ::"r"(at), "r"(r));
    if constexpr (OP == St32) asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(r));
    if constexpr (OP == St64) asm volatile("st.volatile.shared.u64 [%0], %1;" ::"r"(at), "l"(d));
    if constexpr (OP == St128)
      asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r), "r"(s), "r"(t), "r"(u));
    if constexpr (OP == Atom32) asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(s) : "r"(at), "r"(r));
    if constexpr (OP == Red32) asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(r));
    if constexpr (OP == Exch64) asm volatile("atom.shared.exch.b64 %0, [%1], %0;" : "+l"(d) : "r"(at));
    if constexpr (OP == Ldmatrix1)
      asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r) : "r"(at) : "memory");
    if constexpr (OP == Ldmatrix2)
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r), "=r"(s) : "r"(at) : "memory");
    if constexpr (OP == Ldmatrix4)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r), "=r"(s), "=r"(t), "=r"(u)
                   : "r"(at)
                   : "memory");
    if constexpr (OP == Stmatrix4)
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r), "r"(s), "r"(t),
                   "r"(u));
    at += r & zero;  // or ptxas would do the same ldmatrix once for all
    sum ^= r ^ s ^ t ^ u ^ static_cast<uint32_t>(d) ^ static_cast<uint32_t>(d >> 32);
  }
  *out = sum;
}

using Kernel = void (*)(const uint32_t*, uint32_t, uint32_t, uint32_t*);
constexpr Kernel kKernels[kOps] = {access<Ld8>,       access<Ld16>,      access<Ld32>,      access<Ld64>,
                                   access<Ld128>,     access<St8>,       access<St32>,      access<St64>,
                                   access<St128>,     access<Atom32>,    access<Red32>,     access<Exch64>,
                                   access<Ldmatrix1>, access<Ldmatrix2>, access<Ldmatrix4>, access<Stmatrix4>};

uint64_t g_random = 88172645463325252ull;  // xorshift
uint32_t below(uint32_t n) {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return static_cast<uint32_t>(g_random >> 20) % n;
}

FILE* g_list;
uint32_t *g_offset, *g_out;

/// Launches `op` with lane l at element element[l].
void launch(int op, const uint32_t* element, uint32_t mask = ~0u) {
  const Form& form = kForms[op];
  const bool matrix = op >= Ldmatrix1;  // these are for whole warps
  uint32_t offset[32];
  for (int l = 0; l < 32; l++) offset[l] = element[l] * form.bytes % kBytes;
  cudaMemcpy(g_offset, offset, sizeof offset, cudaMemcpyHostToDevice);
  kKernels[op]<<<1, 32>>>(g_offset, matrix ? ~0u : mask, 0, g_out);
  fprintf(g_list, "%s %08x", form.name, matrix ? form.lanes : mask);
  for (uint32_t o : offset) fprintf(g_list, " %u", o);
  fprintf(g_list, "\n");
}

int main(int, char** argv) {
  g_list = fopen(argv[1], "w");
  cudaMalloc(&g_offset, 128);
  cudaMalloc(&g_out, 4);
  for (int op = 0; op < kOps; op++) {
    const uint32_t elements = kBytes / kForms[op].bytes;
    uint32_t e[32], half[32];
    for (uint32_t stride : {0, 1, 2, 3, 4, 8, 32, 33}) {
      for (uint32_t l = 0; l < 32; l++) e[l] = l * stride;
      launch(op, e);
    }
    for (uint32_t lanes : {2, 8}) {
      for (uint32_t l = 0; l < 32; l++) e[l] = l / lanes;
      launch(op, e);
    }
    for (uint32_t bit : {0, 1, 2, 4, 8, 16}) {  // lanes that differ in one bit have one address
      for (uint32_t& x : e) x = below(elements);
      for (uint32_t l = 0; l < 32; l++) half[l] = e[l & ~bit];
      launch(op, half);
    }
    for (uint32_t& x : e) x = below(4) * 128 / kForms[op].bytes;  // four words of one bank
    launch(op, e);
    for (uint32_t l = 0; l < 32; l++) e[l] = l;
    for (uint32_t mask : {0x0000ffffu, 0x55555555u, 0x33333333u, 0x000000ffu, 0x00010001u, 0x00000010u})
      launch(op, e, mask);
    for (uint32_t& x : e) x = below(elements);
    for (uint32_t mask : {0x0f0f0f0fu, 0xffff0000u, below(1u << 16) << 16 | below(1u << 16)}) launch(op, e, mask);
  }
  fclose(g_list);
  const cudaError_t e = cudaDeviceSynchronize();
  if (e != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorString(e));
  return e != cudaSuccess;
}
