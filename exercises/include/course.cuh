// The instructions of this course. `ptx::` is the toolkit's own cuda::ptx (<cuda/ptx>), whose names map one to one to
// PTX instructions, plus what it lacks: elect.sync, and the tcgen05 instructions for every GPU that has them (the
// toolkit of CUDA 13.0 offers those for sm_100a, the course needs them on sm_103a too).
//
// Where to look a name up: ptx::mbarrier_try_wait_parity is the PTX instruction mbarrier.try_wait.parity, and so on.
// Section numbers in the comments are those of the PTX ISA 9.x.
//
// The tcgen05 functions below have the names and parameters of the toolkit's, so kernels written for either compile
// with either; being declared in `ptx` itself they are the ones a call of `ptx::tcgen05_…` finds. They cover what the
// course uses: one CTA at a time (cta_group::1), 16-bit and tf32 products.
#pragma once

#include <cstdint>
#include <cuda/ptx>

// tcgen05 belongs to the architecture-specific targets sm_100a, sm_103a and sm_110a and to their families (PTX ISA
// §9.7.16, target notes). Anywhere else a call compiles to a call of a function that does not exist: the linker then
// names the reason, and a kernel that never makes the call is not affected.
#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000 && \
    __CUDA_ARCH_FAMILY_SPECIFIC__ < 1200
#define COURSE_TCGEN05_ASM(...) asm volatile(__VA_ARGS__)
#else
extern "C" __device__ void tcgen05_is_not_supported_before_sm_100a();
#define COURSE_TCGEN05_ASM(...) tcgen05_is_not_supported_before_sm_100a()
#endif

namespace ptx {

using namespace cuda::ptx;

/// True in exactly one lane of the warp, false in the others (PTX elect.sync). For work that one thread of a warp must
/// do, such as issuing a copy. All 32 lanes must call it together; which lane is elected is up to the hardware.
/// Needs sm_90.
__device__ inline bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred is_elected;\n\t"
      "elect.sync _|is_elected, 0xffffffff;\n\t"
      "selp.b32 %0, 1, 0, is_elected;\n\t"
      "}"
      : "=r"(elected)
      :
      : "memory");
  return elected != 0;
}

// --- Tensor memory: allocation (§9.7.16.7) ---------------------------------------------------------------------------

/// tcgen05.alloc. Allocates `columns` columns of tensor memory (all 128 lanes of each) for the CTA and writes the
/// address of the first to `*address_slot`, which lies in shared memory. One whole warp calls it, all lanes with the
/// same arguments. `columns` is 32, 64, 128, 256 or 512, and no larger than in any earlier call of the same CTA. Waits
/// until that many columns are free. What the columns hold afterwards is undefined; other warps may read the slot only
/// after a barrier.
__device__ inline void tcgen05_alloc(cta_group_1_t, uint32_t* address_slot, const uint32_t& columns) {
  COURSE_TCGEN05_ASM("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
                     :
                     : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(address_slot))), "r"(columns)
                     : "memory");
}

/// tcgen05.dealloc. Gives back the `columns` columns that tcgen05_alloc returned at `address`. One whole warp calls it,
/// when nobody uses them any more; everything allocated must be given back before the kernel ends.
__device__ inline void tcgen05_dealloc(cta_group_1_t, uint32_t address, const uint32_t& columns) {
  COURSE_TCGEN05_ASM("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" : : "r"(address), "r"(columns) : "memory");
}

/// tcgen05.relinquish_alloc_permit. The CTA's promise to allocate no more, which lets another CTA of the same SM
/// allocate. One whole warp calls it.
__device__ inline void tcgen05_relinquish_alloc_permit(cta_group_1_t) {
  COURSE_TCGEN05_ASM("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" : : : "memory");
}

// --- Ordering (§9.7.16.6) --------------------------------------------------------------------------------------------

/// tcgen05.wait::ld. The calling threads' earlier tcgen05_ld are complete: their registers may be used, and the columns
/// they read may change. Whole warp.
__device__ inline void tcgen05_wait_ld() { COURSE_TCGEN05_ASM("tcgen05.wait::ld.sync.aligned;" : : : "memory"); }

/// tcgen05.wait::st. The calling threads' earlier tcgen05_st are complete. Whole warp.
__device__ inline void tcgen05_wait_st() { COURSE_TCGEN05_ASM("tcgen05.wait::st.sync.aligned;" : : : "memory"); }

/// tcgen05.fence::before_thread_sync. Orders the calling thread's earlier asynchronous tcgen05 operations before its
/// later ones and before what it executes to synchronise with other threads (an arrive, a barrier).
__device__ inline void tcgen05_fence_before_thread_sync() {
  COURSE_TCGEN05_ASM("tcgen05.fence::before_thread_sync;" : : : "memory");
}

/// tcgen05.fence::after_thread_sync. Orders the calling thread's later asynchronous tcgen05 operations after its
/// earlier synchronisation (a wait, a barrier).
__device__ inline void tcgen05_fence_after_thread_sync() {
  COURSE_TCGEN05_ASM("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// --- Commit (§9.7.16.12) ---------------------------------------------------------------------------------------------

/// tcgen05.commit. When every tcgen05_mma that the calling thread has issued is complete, the hardware arrives once on
/// `barrier`. One thread, and the one that issued the MMAs: what others issued is not tracked.
__device__ inline void tcgen05_commit(cta_group_1_t, uint64_t* barrier) {
  COURSE_TCGEN05_ASM("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                     :
                     : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier)))
                     : "memory");
}

/// tcgen05.commit with .multicast::cluster: as tcgen05_commit, and the arrival happens at the same shared-memory offset
/// in each CTA of the cluster whose rank has its bit set in `cta_mask`.
__device__ inline void tcgen05_commit_multicast(cta_group_1_t, uint64_t* barrier, uint16_t cta_mask) {
  COURSE_TCGEN05_ASM(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;"
      :
      : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(barrier))), "h"(cta_mask)
      : "memory");
}

// --- Matrix multiply-accumulate (§9.7.16.10) -------------------------------------------------------------------------
//
// One thread issues. D (in tensor memory, fp32 or fp16 as the instruction descriptor says) becomes A · B, plus D if
// `enable_input_d`, or plus D · 2^-scale_input_d in the forms with that argument (which sm_110a lacks). The instruction
// is asynchronous: D may be read, and the operands changed, when a commit has reported it complete. The descriptors are
// those of §9.7.16.4.

/// tcgen05.mma, A and B in shared memory.
template <dot_kind Kind>
__device__ inline void tcgen05_mma(kind_t<Kind>, cta_group_1_t, uint32_t d_tmem, uint64_t a_desc, uint64_t b_desc,
                                   uint32_t idesc, bool enable_input_d) {
  static_assert(Kind == dot_kind::f16 || Kind == dot_kind::tf32, "the kinds of this course");
  if constexpr (Kind == dot_kind::f16) {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, accumulate;\n\t"
        "}"
        :
        : "r"(d_tmem), "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d))
        : "memory");
  } else {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, accumulate;\n\t"
        "}"
        :
        : "r"(d_tmem), "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d))
        : "memory");
  }
}

/// tcgen05.mma with scale-input-d (an immediate, 0 … 15), A and B in shared memory.
template <int N32, dot_kind Kind>
__device__ inline void tcgen05_mma(kind_t<Kind>, cta_group_1_t, uint32_t d_tmem, uint64_t a_desc, uint64_t b_desc,
                                   uint32_t idesc, bool enable_input_d, n32_t<N32>) {
  static_assert(Kind == dot_kind::f16 || Kind == dot_kind::tf32, "the kinds of this course");
  if constexpr (Kind == dot_kind::f16) {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, accumulate, %5;\n\t"
        "}"
        :
        : "r"(d_tmem), "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d)), "n"(N32)
        : "memory");
  } else {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, accumulate, %5;\n\t"
        "}"
        :
        : "r"(d_tmem), "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d)), "n"(N32)
        : "memory");
  }
}

/// tcgen05.mma, A in tensor memory (lane = row, K along the columns), B in shared memory.
template <dot_kind Kind>
__device__ inline void tcgen05_mma_tmem_a(kind_t<Kind>, cta_group_1_t, uint32_t d_tmem, uint32_t a_tmem,
                                          uint64_t b_desc, uint32_t idesc, bool enable_input_d) {
  static_assert(Kind == dot_kind::f16 || Kind == dot_kind::tf32, "the kinds of this course");
  if constexpr (Kind == dot_kind::f16) {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, accumulate;\n\t"
        "}"
        :
        : "r"(d_tmem), "r"(a_tmem), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d))
        : "memory");
  } else {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::tf32 [%0], [%1], %2, %3, accumulate;\n\t"
        "}"
        :
        : "r"(d_tmem), "r"(a_tmem), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d))
        : "memory");
  }
}

/// tcgen05.mma with scale-input-d (an immediate, 0 … 15), A in tensor memory, B in shared memory.
template <int N32, dot_kind Kind>
__device__ inline void tcgen05_mma_tmem_a(kind_t<Kind>, cta_group_1_t, uint32_t d_tmem, uint32_t a_tmem,
                                          uint64_t b_desc, uint32_t idesc, bool enable_input_d, n32_t<N32>) {
  static_assert(Kind == dot_kind::f16 || Kind == dot_kind::tf32, "the kinds of this course");
  if constexpr (Kind == dot_kind::f16) {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, accumulate, %5;\n\t"
        "}"
        :
        : "r"(d_tmem), "r"(a_tmem), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d)), "n"(N32)
        : "memory");
  } else {
    COURSE_TCGEN05_ASM(
        "{\n\t"
        ".reg .pred accumulate;\n\t"
        "setp.ne.b32 accumulate, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::tf32 [%0], [%1], %2, %3, accumulate, %5;\n\t"
        "}"
        :
        : "r"(d_tmem), "r"(a_tmem), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(enable_input_d)), "n"(N32)
        : "memory");
  }
}

// --- Registers and tensor memory (§9.7.16.8) -------------------------------------------------------------------------
//
// Whole warp, the same address in all lanes; warp w reaches only lanes 32·(w mod 4) … +31 of tensor memory, so the
// address carries that lane in its upper half. Asynchronous: see tcgen05_wait_ld and tcgen05_wait_st. The size of the
// array is the .x number times the registers of the shape. In the tables, t is the lane of the warp, i the register,
// and L, C the lane and column of the address:
//
//   32x32b    register i is lane L + t, column C + i
//   16x64b    register i is lane L + t/4 + 8·(t mod 2), column C + (t/2 mod 2) + 2·i
//   16x256b   register i is lane L + t/4 + 8·(i/2 mod 2), column C + 2·(t mod 4) + (i mod 2) + 8·(i/4)
//
// The lists below spell what inline PTX cannot count: the registers %0 … %n and the array elements they stand for.

// clang-format off
#define COURSE_NAMES_1 "%0"
#define COURSE_NAMES_2 COURSE_NAMES_1 ", %1"
#define COURSE_NAMES_4 COURSE_NAMES_2 ", %2, %3"
#define COURSE_NAMES_8 COURSE_NAMES_4 ", %4, %5, %6, %7"
#define COURSE_NAMES_16 COURSE_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define COURSE_NAMES_32 COURSE_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define COURSE_NAMES_64 COURSE_NAMES_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define COURSE_NAMES_128 COURSE_NAMES_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95" \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
// clang-format on
#define COURSE_LIST_1(c, a, i) c((a)[i])
#define COURSE_LIST_2(c, a, i) COURSE_LIST_1(c, a, i), COURSE_LIST_1(c, a, (i) + 1)
#define COURSE_LIST_4(c, a, i) COURSE_LIST_2(c, a, i), COURSE_LIST_2(c, a, (i) + 2)
#define COURSE_LIST_8(c, a, i) COURSE_LIST_4(c, a, i), COURSE_LIST_4(c, a, (i) + 4)
#define COURSE_LIST_16(c, a, i) COURSE_LIST_8(c, a, i), COURSE_LIST_8(c, a, (i) + 8)
#define COURSE_LIST_32(c, a, i) COURSE_LIST_16(c, a, i), COURSE_LIST_16(c, a, (i) + 16)
#define COURSE_LIST_64(c, a, i) COURSE_LIST_32(c, a, i), COURSE_LIST_32(c, a, (i) + 32)
#define COURSE_LIST_128(c, a, i) COURSE_LIST_64(c, a, i), COURSE_LIST_64(c, a, (i) + 64)

#define COURSE_OUT(x) "=r"(x)
#define COURSE_IN(x) "r"(x)
#define COURSE_LD(shape, n)                                                                     \
  COURSE_TCGEN05_ASM("tcgen05.ld.sync.aligned." shape ".b32 {" COURSE_NAMES_##n "}, [%" #n "];" \
                     : COURSE_LIST_##n(COURSE_OUT, out, 0)                                      \
                     : "r"(address)                                                             \
                     : "memory")
#define COURSE_ST(shape, n)                                                                     \
  COURSE_TCGEN05_ASM("tcgen05.st.sync.aligned." shape ".b32 [%" #n "], {" COURSE_NAMES_##n "};" \
                     :                                                                          \
                     : COURSE_LIST_##n(COURSE_IN, values, 0), "r"(address)                      \
                     : "memory")

/// tcgen05.ld .32x32b: one lane of tensor memory to each thread, `N` columns, from `address` into the 32-bit integers
/// `out`. N is 1, 2, 4 … 128. `out` may be used after tcgen05_wait_ld.
template <typename B32, int N>
__device__ inline void tcgen05_ld_32x32b(B32 (&out)[N], uint32_t address) {
  static_assert(sizeof(B32) == 4 && N >= 1 && N <= 128 && (N & (N - 1)) == 0, "not a number of registers of 32x32b");
  if constexpr (N == 1) {
    COURSE_LD("32x32b.x1", 1);
  } else if constexpr (N == 2) {
    COURSE_LD("32x32b.x2", 2);
  } else if constexpr (N == 4) {
    COURSE_LD("32x32b.x4", 4);
  } else if constexpr (N == 8) {
    COURSE_LD("32x32b.x8", 8);
  } else if constexpr (N == 16) {
    COURSE_LD("32x32b.x16", 16);
  } else if constexpr (N == 32) {
    COURSE_LD("32x32b.x32", 32);
  } else if constexpr (N == 64) {
    COURSE_LD("32x32b.x64", 64);
  } else if constexpr (N == 128) {
    COURSE_LD("32x32b.x128", 128);
  }
}

/// tcgen05.ld .16x64b: 16 lanes of tensor memory, 2·`N` columns, from `address` into the 32-bit integers `out`. N is 1,
/// 2, 4 … 128. `out` may be used after tcgen05_wait_ld.
template <typename B32, int N>
__device__ inline void tcgen05_ld_16x64b(B32 (&out)[N], uint32_t address) {
  static_assert(sizeof(B32) == 4 && N >= 1 && N <= 128 && (N & (N - 1)) == 0, "not a number of registers of 16x64b");
  if constexpr (N == 1) {
    COURSE_LD("16x64b.x1", 1);
  } else if constexpr (N == 2) {
    COURSE_LD("16x64b.x2", 2);
  } else if constexpr (N == 4) {
    COURSE_LD("16x64b.x4", 4);
  } else if constexpr (N == 8) {
    COURSE_LD("16x64b.x8", 8);
  } else if constexpr (N == 16) {
    COURSE_LD("16x64b.x16", 16);
  } else if constexpr (N == 32) {
    COURSE_LD("16x64b.x32", 32);
  } else if constexpr (N == 64) {
    COURSE_LD("16x64b.x64", 64);
  } else if constexpr (N == 128) {
    COURSE_LD("16x64b.x128", 128);
  }
}

/// tcgen05.ld .16x256b: 16 lanes of tensor memory, 2·`N` columns, from `address` into the 32-bit integers `out`. N is
/// 4, 8, 16 … 128. `out` may be used after tcgen05_wait_ld.
template <typename B32, int N>
__device__ inline void tcgen05_ld_16x256b(B32 (&out)[N], uint32_t address) {
  static_assert(sizeof(B32) == 4 && N >= 4 && N <= 128 && (N & (N - 1)) == 0, "not a number of registers of 16x256b");
  if constexpr (N == 4) {
    COURSE_LD("16x256b.x1", 4);
  } else if constexpr (N == 8) {
    COURSE_LD("16x256b.x2", 8);
  } else if constexpr (N == 16) {
    COURSE_LD("16x256b.x4", 16);
  } else if constexpr (N == 32) {
    COURSE_LD("16x256b.x8", 32);
  } else if constexpr (N == 64) {
    COURSE_LD("16x256b.x16", 64);
  } else if constexpr (N == 128) {
    COURSE_LD("16x256b.x32", 128);
  }
}

/// tcgen05.st .32x32b: one lane of tensor memory from each thread, `N` columns, to `address` from the 32-bit integers
/// `values`. N is 1, 2, 4 … 128. The columns may be read after tcgen05_wait_st.
template <typename B32, int N>
__device__ inline void tcgen05_st_32x32b(uint32_t address, const B32 (&values)[N]) {
  static_assert(sizeof(B32) == 4 && N >= 1 && N <= 128 && (N & (N - 1)) == 0, "not a number of registers of 32x32b");
  if constexpr (N == 1) {
    COURSE_ST("32x32b.x1", 1);
  } else if constexpr (N == 2) {
    COURSE_ST("32x32b.x2", 2);
  } else if constexpr (N == 4) {
    COURSE_ST("32x32b.x4", 4);
  } else if constexpr (N == 8) {
    COURSE_ST("32x32b.x8", 8);
  } else if constexpr (N == 16) {
    COURSE_ST("32x32b.x16", 16);
  } else if constexpr (N == 32) {
    COURSE_ST("32x32b.x32", 32);
  } else if constexpr (N == 64) {
    COURSE_ST("32x32b.x64", 64);
  } else if constexpr (N == 128) {
    COURSE_ST("32x32b.x128", 128);
  }
}

/// tcgen05.st .16x64b: 16 lanes of tensor memory, 2·`N` columns, to `address` from the 32-bit integers `values`. N is
/// 1, 2, 4 … 128. The columns may be read after tcgen05_wait_st.
template <typename B32, int N>
__device__ inline void tcgen05_st_16x64b(uint32_t address, const B32 (&values)[N]) {
  static_assert(sizeof(B32) == 4 && N >= 1 && N <= 128 && (N & (N - 1)) == 0, "not a number of registers of 16x64b");
  if constexpr (N == 1) {
    COURSE_ST("16x64b.x1", 1);
  } else if constexpr (N == 2) {
    COURSE_ST("16x64b.x2", 2);
  } else if constexpr (N == 4) {
    COURSE_ST("16x64b.x4", 4);
  } else if constexpr (N == 8) {
    COURSE_ST("16x64b.x8", 8);
  } else if constexpr (N == 16) {
    COURSE_ST("16x64b.x16", 16);
  } else if constexpr (N == 32) {
    COURSE_ST("16x64b.x32", 32);
  } else if constexpr (N == 64) {
    COURSE_ST("16x64b.x64", 64);
  } else if constexpr (N == 128) {
    COURSE_ST("16x64b.x128", 128);
  }
}

/// tcgen05.st .16x256b: 16 lanes of tensor memory, 2·`N` columns, to `address` from the 32-bit integers `values`. N is
/// 4, 8, 16 … 128. The columns may be read after tcgen05_wait_st.
template <typename B32, int N>
__device__ inline void tcgen05_st_16x256b(uint32_t address, const B32 (&values)[N]) {
  static_assert(sizeof(B32) == 4 && N >= 4 && N <= 128 && (N & (N - 1)) == 0, "not a number of registers of 16x256b");
  if constexpr (N == 4) {
    COURSE_ST("16x256b.x1", 4);
  } else if constexpr (N == 8) {
    COURSE_ST("16x256b.x2", 8);
  } else if constexpr (N == 16) {
    COURSE_ST("16x256b.x4", 16);
  } else if constexpr (N == 32) {
    COURSE_ST("16x256b.x8", 32);
  } else if constexpr (N == 64) {
    COURSE_ST("16x256b.x16", 64);
  } else if constexpr (N == 128) {
    COURSE_ST("16x256b.x32", 128);
  }
}

#undef COURSE_ST
#undef COURSE_LD
#undef COURSE_IN
#undef COURSE_OUT
#undef COURSE_LIST_128
#undef COURSE_LIST_64
#undef COURSE_LIST_32
#undef COURSE_LIST_16
#undef COURSE_LIST_8
#undef COURSE_LIST_4
#undef COURSE_LIST_2
#undef COURSE_LIST_1
#undef COURSE_NAMES_128
#undef COURSE_NAMES_64
#undef COURSE_NAMES_32
#undef COURSE_NAMES_16
#undef COURSE_NAMES_8
#undef COURSE_NAMES_4
#undef COURSE_NAMES_2
#undef COURSE_NAMES_1
#undef COURSE_TCGEN05_ASM

}  // namespace ptx
