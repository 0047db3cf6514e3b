// Wrong: bit 16 says that b is transposed, because the product is a times b transposed.
// The bit means MN-major. A legal MMA reads b's own bytes in another order, and the result is wrong.
// expect: advisory-descriptor @ 165
// needs: checker
// blind: unrun
#include <cuda_bf16.h>

#include "course.cuh"

constexpr int kM = 128;                  // rows of a and d
constexpr int kK = 64;                   // columns of a and b
constexpr int kSlice = 16;               // of them, in one MMA: 32 bytes of each row
constexpr int kRowBytes = kK * 2;        // 128
constexpr int kChunks = kRowBytes / 16;  // a row has 8 units of 16 bytes, with 8 elements each

// Shared-memory descriptor (PTX ISA 9.1, §9.7.16.4.1). Addresses and distances are in bytes, below 2^18, multiples of
// 16; the descriptor holds each of them divided by 16, in 14 bits.
//
//   bits   0-13  start address
//   bits  16-29  leading-dimension byte offset
//   bits  32-45  stride-dimension byte offset
//   bits  46-48  always 0b001
//   bits  49-51  base offset: 0 where the swizzle's pattern starts at a multiple of 1024 bytes, as it does here
//   bit      52  mode of the leading-dimension offset: 0, relative
//   bits  61-63  swizzle: 0 none, 2 128-byte
//   the rest     0

// A slice of `rows` rows and 16 columns of a tile without swizzle. The tile lies in columns that are 16 bytes wide: for
// each, all rows one after the other, 16 bytes apart; then the next column. The slice is two of them, from `start`.
//
//   byte (row r, element i of the slice) at   start + (i / 8) * 16 * rows + r * 16 + (i % 8) * 2
//
// The hardware takes rows by eights, and a slice's two columns of 16 bytes as the leading dimension.
__device__ uint64_t plain_descriptor(uint32_t start, uint32_t rows) {
  uint64_t descriptor = 0;
  const uint64_t leading = 16 * rows;  // all rows of one column lie between an element and that 8 elements further on
  const uint64_t stride = 8 * 16;      // eight rows of 16 bytes, with nothing between them
  descriptor = (start & 0x3FFFF) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | uint64_t{1} << 46;
  return descriptor;
}

// A slice of 16 columns of a tile with the 128-byte swizzle. The tile lies in rows of 128 bytes. Within each row the
// eight units of 16 bytes are permuted: unit u of row r is where unit u ^ (r % 8) would be without swizzle. The
// hardware does the same to the addresses that follow from the descriptor, which therefore says where things would be
// without.
//
//   byte (row r, element i of the slice) at   start + r * 128 + (i / 8) * 16 + (i % 8) * 2,   then permuted
//
// The leading-dimension offset plays no part: the 16-byte units of a row are neighbours. Leave it 0.
__device__ uint64_t swizzled_descriptor(uint32_t start) {
  uint64_t descriptor = 0;
  const uint64_t stride = 8 * 128;  // eight rows of 128 bytes: one whole pattern of the swizzle
  descriptor = (start & 0x3FFFF) >> 4 | stride >> 4 << 32 | uint64_t{1} << 46 | uint64_t{2} << 61;
  return descriptor;
}

// Instruction descriptor of kind::f16 (PTX ISA 9.1, §9.7.16.4.2) for d (128 x n, f32) = a (128 x 16, bf16) times
// b (n x 16, bf16) transposed.
//
//   bits    0-1  sparsity selector, bit 2 sparsity: 0 for dense matrices; bit 3 saturate: 0
//   bits    4-5  type of d: 0 f16, 1 f32
//   bits    7-9  type of a: 0 f16, 1 bf16
//   bits  10-12  type of b: the same codes
//   bits  13-14  negate a, negate b
//   bits  15-16  transpose a, transpose b: 0 K-major, 1 MN-major
//   bits  17-22  N / 8
//   bits  24-28  M / 16
//   the rest     0
__device__ uint32_t instruction_descriptor(uint32_t n) {
  uint32_t descriptor = 0;
  descriptor = 1 << 4 | 1 << 7 | 1 << 10 | 1 << 16 | n / 8 << 17 | kM / 16 << 24;
  return descriptor;
}

// Brings `rows` rows to shared memory, 16 bytes at a time, in the layout that `swizzle` asks for.
__device__ void stage(uint8_t* tile, const __nv_bfloat16* from, int rows, int swizzle) {
  for (int i = threadIdx.x; i < rows * kChunks; i += blockDim.x) {
    const int row = i / kChunks, unit = i % kChunks;
    const int to = swizzle ? row * kRowBytes + (unit ^ row % 8) * 16 : (unit * rows + row) * 16;
    *reinterpret_cast<uint4*>(tile + to) = *reinterpret_cast<const uint4*>(from + row * kK + unit * 8);
  }
}

// Takes a descriptor of a slice that starts at `start` apart: seven words.
__device__ void take_apart(uint32_t* fields, uint64_t descriptor, uint32_t start, int swizzle) {
  const auto bits = [=](int first, int count) {
    return static_cast<uint32_t>(descriptor >> first & ((uint64_t{1} << count) - 1));
  };
  fields[0] = bits(0, 14) - (start >> 4);               // how far the start address is off, in units of 16 bytes
  fields[1] = swizzle ? 0 : bits(16, 14);               // the leading-dimension offset, unless it plays no part
  fields[2] = bits(32, 14);                             // the stride-dimension offset
  fields[3] = bits(46, 3);                              // the constant
  fields[4] = bits(49, 3);                              // base offset
  fields[5] = bits(61, 3);                              // swizzle
  fields[6] = bits(14, 2) | bits(30, 2) | bits(52, 9);  // the rest
}

// Takes an instruction descriptor apart: seven words.
__device__ void take_apart(uint32_t* fields, uint32_t descriptor) {
  const auto bits = [=](int first, int count) { return descriptor >> first & ((1u << count) - 1); };
  fields[0] = bits(4, 2);                                           // type of d
  fields[1] = bits(7, 3);                                           // type of a
  fields[2] = bits(10, 3);                                          // type of b
  fields[3] = bits(13, 4);                                          // negate and transpose
  fields[4] = bits(17, 6);                                          // N / 8
  fields[5] = bits(24, 5);                                          // M / 16
  fields[6] = bits(0, 4) | bits(6, 1) | bits(23, 1) | bits(29, 3);  // the rest
}

extern "C" __global__ void descriptors(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d, uint32_t* fields,
                                       int n, int swizzle) {
  extern __shared__ __align__(1024) uint8_t tiles[];  // a, then b; both start at a multiple of 1024 bytes
  __shared__ uint32_t tmem_slot;                      // where the allocation leaves the address of its first column
  __shared__ uint64_t done;                           // one phase: the MMAs are complete

  uint8_t* const a_tile = tiles;
  uint8_t* const b_tile = tiles + kM * kRowBytes;
  // The descriptors' addresses are those of the shared window, not generic pointers.
  const uint32_t a_start = static_cast<uint32_t>(__cvta_generic_to_shared(a_tile));
  const uint32_t b_start = static_cast<uint32_t>(__cvta_generic_to_shared(b_tile));
  // From one slice of 16 columns to the next: two columns of 16 bytes, or 32 bytes within a row of 128.
  const uint32_t a_step = swizzle ? 32 : 2 * 16 * kM;
  const uint32_t b_step = swizzle ? 32 : 2 * 16 * n;
  const auto describe = [=](uint32_t start, uint32_t rows) {
    return swizzle ? swizzled_descriptor(start) : plain_descriptor(start, rows);
  };

  if (fields != nullptr) {
    if (threadIdx.x == 0) {
      take_apart(fields, describe(a_start, kM), a_start, swizzle);
      take_apart(fields + 7, describe(b_start, n), b_start, swizzle);
      take_apart(fields + 14, instruction_descriptor(n));
    }
    return;
  }

  const int warp = threadIdx.x / 32;
  const uint32_t columns = 256;  // of tensor memory: one for each column of d, and a power of two
  if (warp == 0) {
    ptx::tcgen05_alloc(ptx::cta_group_1, &tmem_slot, columns);
    ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);  // this block allocates no more
  }
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&done, 1);  // one arrival: the commit's
    // Makes the init visible to the async proxy, by way of which the commit arrives.
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  stage(a_tile, a, kM, swizzle);
  stage(b_tile, b, n, swizzle);
  // Orders this thread's stores to the tiles before accesses of the async proxy, by which the tensor core reads them.
  ptx::fence_proxy_async(ptx::space_shared);
  // Block barrier. Producers: every thread, which wrote a part of the tiles; warp 0, which allocated; thread 0, which
  // made `done`. Consumers: thread 0 on the tensor core's behalf, which takes the tiles; every thread, which takes the
  // address in `tmem_slot` and the barrier.
  __syncthreads();
  const uint32_t accumulator = tmem_slot;

  if (threadIdx.x == 0) {
    const uint32_t instruction = instruction_descriptor(n);
    for (int slice = 0; slice < kK / kSlice; slice++) {
      const uint64_t a_descriptor = describe(a_start + slice * a_step, kM);
      const uint64_t b_descriptor = describe(b_start + slice * b_step, n);
      // The first MMA starts a new sum in the accumulator; the others add to it.
      const bool add = slice > 0;
      ptx::tcgen05_mma(ptx::kind_f16, ptx::cta_group_1, accumulator, a_descriptor, b_descriptor, instruction, add);
    }
    // Arrive. Producer: the tensor core, when all four MMAs are complete. Consumer: every thread that waits on `done`.
    // Changes hands: the accumulator, full.
    ptx::tcgen05_commit(ptx::cta_group_1, &done);
  }

  // Wait. Producer: the tensor core, by way of the commit. Consumer: every thread. Changes hands: the accumulator.
  while (!ptx::mbarrier_try_wait_parity(&done, 0)) {
  }
  // Orders the tcgen05.ld below after the wait above, and so after the MMAs.
  ptx::tcgen05_fence_after_thread_sync();

  // Row r of d is lane r of tensor memory, column c is column c. Each warp reads its own quarter of the lanes.
  const uint32_t lanes = accumulator + (static_cast<uint32_t>(warp * 32) << 16);
  float* const row = d + static_cast<size_t>(threadIdx.x) * n;
  for (int column = 0; column < n; column += 16) {
    uint32_t v[16];  // the bits of 16 floats
    ptx::tcgen05_ld_32x32b(v, lanes + column);
    // Wait. Producer: tensor memory. Consumer: this warp. Changes hands: the registers in `v`.
    ptx::tcgen05_wait_ld();
    for (int i = 0; i < 16; i += 4) {
      *reinterpret_cast<uint4*>(row + column + i) = make_uint4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
  }

  // Orders this thread's tcgen05.ld before the barrier.
  ptx::tcgen05_fence_before_thread_sync();
  // Block barrier. Producer: every warp, which has read its quarter. Consumer: warp 0. Changes hands: the accumulator,
  // free.
  __syncthreads();
  if (warp == 0) {
    // Orders the dealloc after the barrier, and so after every warp's tcgen05.ld.
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_dealloc(ptx::cta_group_1, accumulator, columns);
  }
}
