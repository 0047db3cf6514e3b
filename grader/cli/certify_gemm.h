// Certify's large matrix products: the GEMM solutions of Part III on the GPU, verified, timed, and compared with
// cuBLASLt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "grader/cli/certify_report.h"
#include "grader/device/cublaslt.h"
#include "grader/device/device.h"
#include "grader/harness/catalog.h"
#include "grader/harness/toolchain.h"

namespace handoff::cli {

/// How one of the solutions is launched. All of them compute tiles of 128×128 and have the parameters (map of A, map of
/// B, float* d, int n, int K tiles of 64, element type), and where `passes_stages` is set, int stages behind these.
struct GemmKernel {
  const char* exercise;        ///< "13a"
  uint32_t threads;            ///< a block
  uint32_t stages;             ///< each takes 32 KiB of dynamic shared memory
  bool passes_stages = false;  ///< the number of stages is the last parameter
};

/// The GEMMs that are measured.
std::vector<GemmKernel> gemm_kernels();

/// Operands whose products and sums are exact in binary32 in any order, as bits of `type`: multiples of 1/8 below 4 in
/// magnitude, for K up to 16384.
std::vector<uint16_t> gemm_operand(size_t count, device::MatmulShape::Type type, uint64_t seed);

/// Whether `d` is A · Bᵀ, by d · x = A · (Bᵀ · x) for two random vectors x of small whole numbers: exact, and a wrong
/// element is missed with a chance of less than 1 in 1000. Empty, or the first row that differs.
std::string verify_product(const device::MatmulShape& shape, std::span<const uint16_t> a, std::span<const uint16_t> b,
                           std::span<const float> d, uint64_t seed);

/// Runs cuBLASLt in a child process and verifies its result: what it is worth as a reference on this GPU. `repeats` of
/// its launches are timed.
CertifyResult certify_cublaslt(const harness::Toolchain& toolchain, const device::MatmulShape& shape, int repeats);

/// Launches a GEMM solution `repeats` times on `gpu`, verifies the result of the last launch, and compares result and
/// time with cuBLASLt's; where there is no cuBLASLt the message says that it was not compared.
CertifyResult certify_gemm(device::Device& gpu, const harness::Toolchain& toolchain,
                           const harness::ExerciseInfo& exercise, const GemmKernel& kernel,
                           const device::MatmulShape& shape, int repeats);

}  // namespace handoff::cli
