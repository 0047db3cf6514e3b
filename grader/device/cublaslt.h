// The reference for a matrix product on a GPU: cuBLASLt, opened at run time, so that the grader builds where there is
// no toolkit and runs where there is no such library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace handoff::device {

/// D = A · Bᵀ: A is M×K, B is N×K, both row-major (K-major) and of 16-bit elements; D is M×N, row-major, binary32.
struct MatmulShape {
  /// Element type of A and B.
  enum class Type : uint8_t { Bf16, F16 };
  /// Extents in elements, at least 1; K a multiple of 8, N a multiple of 4 (cuBLASLt's alignments of 16 bytes).
  ///@{
  uint32_t m = 0, n = 0, k = 0;
  ///@}
  Type type = Type::Bf16;  ///< of both operands
  /// 2 * M * N * K.
  double operations() const { return 2.0 * m * n * k; }
};

/// What cuBLASLt made of a product.
struct MatmulResult {
  std::string problem;          ///< one line: why there is no result; empty: there is
  std::string library;          ///< "libcublasLt.so.13 (version 130001)"; set once it is open
  std::vector<float> d;         ///< M×N
  std::vector<double> seconds;  ///< of the timed launches of the fastest algorithm offered, in order, by events
};

/// Where the library may be: the loader's own places first, then the toolkit's folder (that of bin/nvcc; empty: none).
/// Versions 13 and 12.
std::vector<std::string> cublaslt_candidates(const std::string& toolkit);

/// Opens the first of `libraries` that can be opened and has what is needed, and closes it again. Its file and version
/// as MatmulResult::library has them; empty, with one line in `why`, where none can.
std::string find_cublaslt(const std::vector<std::string>& libraries, std::string* why);

/// Multiplies on GPU `ordinal`: up to 8 algorithms that the library's heuristic offers are tried, and the fastest is
/// launched `repeats` times (at least 1), each launch timed alone, D poisoned before. Compute type: 32F.
///
/// Opens the driver in this process and may wait for ever on a GPU that hangs: call it in a child process with a time
/// limit (harness::run_function), never in the grader itself (cuda_worker.h says why).
MatmulResult multiply_with_cublaslt(const MatmulShape& shape, std::span<const uint16_t> a, std::span<const uint16_t> b,
                                    int repeats, const std::vector<std::string>& libraries, int ordinal = 0);

}  // namespace handoff::device
