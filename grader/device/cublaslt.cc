// Tested by cublaslt_test.cc.
//
// The library is declared here as cublasLt.h (CUDA 13.0) has it: names, types, values. All of it has kept its meaning
// since cuBLAS 11. cuBLASLt stores matrices by columns; a row-major matrix is its own transpose there. So
//     D = A · Bᵀ, row-major   is   Dᵀ = B · Aᵀ, by columns:
// its first operand is our B (K×N by columns, transposed by the library), its second our A (K×M, as it is), its result
// N×M. Memory and launches belong to the driver's primary context, which the library uses as current.
#include "grader/device/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>

#include "grader/device/cuda_driver.h"

namespace handoff::device {
namespace {

using driver::DevicePointer;

// cublasStatus_t, cublasComputeType_t, cudaDataType, cublasOperation_t and attributes, as in the headers.
constexpr int kStatusSuccess = 0;
constexpr int kCompute32F = 68;
constexpr int kReal32F = 0;
constexpr int kReal16F = 2;
constexpr int kReal16BF = 14;
constexpr int32_t kTransposed = 1;
constexpr int kDescTransA = 3;
constexpr int kPreferenceMaxWorkspace = 1;

constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;
constexpr int kAlgorithms = 8;
constexpr int kTrials = 3;

/// cublasLtMatmulHeuristicResult_t
struct Heuristic {
  uint64_t algorithm[8];  // cublasLtMatmulAlgo_t
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

/// The functions, their names without "cublasLt".
struct Library {
  void* handle = nullptr;
  std::string name;
  int (*Create)(void** handle) = nullptr;
  size_t (*GetVersion)() = nullptr;
  int (*MatmulDescCreate)(void** desc, int compute_type, int scale_type) = nullptr;
  int (*MatmulDescSetAttribute)(void* desc, int attribute, const void* value, size_t bytes) = nullptr;
  int (*MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) = nullptr;
  int (*MatmulPreferenceCreate)(void** preference) = nullptr;
  int (*MatmulPreferenceSetAttribute)(void* preference, int attribute, const void* value, size_t bytes) = nullptr;
  int (*MatmulAlgoGetHeuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference,
                                int wanted, Heuristic* results, int* found) = nullptr;
  int (*Matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                const void* algorithm, void* workspace, size_t workspace_bytes, void* stream) = nullptr;
};

// Binds one function; false where the library does not have it.
template <class F>
bool bind(void* handle, const char* symbol, F** function) {
  *function = reinterpret_cast<F*>(dlsym(handle, symbol));
  return *function != nullptr;
}

bool bind_all(Library* l) {
  return bind(l->handle, "cublasLtCreate", &l->Create) && bind(l->handle, "cublasLtGetVersion", &l->GetVersion) &&
         bind(l->handle, "cublasLtMatmulDescCreate", &l->MatmulDescCreate) &&
         bind(l->handle, "cublasLtMatmulDescSetAttribute", &l->MatmulDescSetAttribute) &&
         bind(l->handle, "cublasLtMatrixLayoutCreate", &l->MatrixLayoutCreate) &&
         bind(l->handle, "cublasLtMatmulPreferenceCreate", &l->MatmulPreferenceCreate) &&
         bind(l->handle, "cublasLtMatmulPreferenceSetAttribute", &l->MatmulPreferenceSetAttribute) &&
         bind(l->handle, "cublasLtMatmulAlgoGetHeuristic", &l->MatmulAlgoGetHeuristic) &&
         bind(l->handle, "cublasLtMatmul", &l->Matmul);
}

// Opens the first library that has everything. Empty, or why there is none.
std::string open_library(const std::vector<std::string>& candidates, Library* out) {
  std::string why;
  for (const std::string& name : candidates) {
    Library l;
    l.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (l.handle == nullptr) continue;
    if (bind_all(&l)) {
      l.name = name + " (version " + std::to_string(l.GetVersion()) + ")";
      *out = l;
      return "";
    }
    why = name + " lacks functions of cuBLASLt";
    dlclose(l.handle);
  }
  return why.empty() ? "no cuBLASLt: libcublasLt.so.13 or .12 was not found (the CUDA Toolkit has it)" : why;
}

/// One product on the GPU. Nothing is given back: the process ends behind it.
class Product {
 public:
  Product(const MatmulShape& shape, const Library& library) : shape_(shape), library_(library) {}

  // Each returns what is wrong, or an empty string.
  std::string open(int ordinal) {
    std::string why;
    // Kernels of the library are loaded one by one: all of them would take minutes.
    ::setenv("CUDA_MODULE_LOADING", "LAZY", 1);
    if (!driver::open("libcuda.so.1", &api_, &why)) return why;
    driver::DeviceHandle device = 0;
    driver::Context context = nullptr;
    if (std::string e = bad(api_.Init(0), "cuInit"); !e.empty()) return e;
    if (std::string e = bad(api_.DeviceGet(&device, ordinal), "cuDeviceGet"); !e.empty()) return e;
    if (std::string e = bad(api_.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain"); !e.empty())
      return e;
    return bad(api_.CtxSetCurrent(context), "cuCtxSetCurrent");
  }

  std::string place(std::span<const uint16_t> a, std::span<const uint16_t> b) {
    if (std::string e = copy_in(a, &a_); !e.empty()) return e;
    if (std::string e = copy_in(b, &b_); !e.empty()) return e;
    if (std::string e = bad(api_.MemAlloc(&d_, d_bytes()), "cuMemAlloc"); !e.empty()) return e;
    if (std::string e = bad(api_.MemAlloc(&workspace_, kWorkspaceBytes), "cuMemAlloc"); !e.empty()) return e;
    if (std::string e = bad(api_.EventCreate(&start_, 0), "cuEventCreate"); !e.empty()) return e;
    return bad(api_.EventCreate(&end_, 0), "cuEventCreate");
  }

  std::string describe() {
    const int type = shape_.type == MatmulShape::Type::Bf16 ? kReal16BF : kReal16F;
    const Library& l = library_;
    if (std::string e = refused(l.Create(&handle_), "Create"); !e.empty()) return e;
    if (std::string e = refused(l.MatmulDescCreate(&desc_, kCompute32F, kReal32F), "MatmulDescCreate"); !e.empty())
      return e;
    if (std::string e = refused(l.MatmulDescSetAttribute(desc_, kDescTransA, &kTransposed, sizeof kTransposed),
                                "MatmulDescSetAttribute");
        !e.empty())
      return e;
    if (std::string e = layout(type, shape_.k, shape_.n, &b_layout_); !e.empty()) return e;
    if (std::string e = layout(type, shape_.k, shape_.m, &a_layout_); !e.empty()) return e;
    if (std::string e = layout(kReal32F, shape_.n, shape_.m, &d_layout_); !e.empty()) return e;
    void* preference = nullptr;
    if (std::string e = refused(l.MatmulPreferenceCreate(&preference), "MatmulPreferenceCreate"); !e.empty()) return e;
    if (std::string e = refused(l.MatmulPreferenceSetAttribute(preference, kPreferenceMaxWorkspace, &kWorkspaceBytes,
                                                               sizeof kWorkspaceBytes),
                                "MatmulPreferenceSetAttribute");
        !e.empty())
      return e;
    int found = 0;
    const int status = l.MatmulAlgoGetHeuristic(handle_, desc_, b_layout_, a_layout_, d_layout_, d_layout_, preference,
                                                kAlgorithms, offers_.data(), &found);
    if (std::string e = refused(status, "MatmulAlgoGetHeuristic"); !e.empty()) return e;
    count_ = static_cast<size_t>(found);
    return found > 0 ? "" : "cuBLASLt offers no algorithm for this product";
  }

  // The fastest of the algorithms offered, by its best of a few launches; the first launch of each only warms up.
  std::string choose() {
    double best = 0;
    std::string why = "cuBLASLt offers no algorithm for this product";
    for (size_t i = 0; i < count_; ++i) {
      if (offers_[i].state != kStatusSuccess || offers_[i].workspace_bytes > kWorkspaceBytes) continue;
      double least = 0, seconds = 0;
      std::string problem;
      for (int trial = 0; trial <= kTrials && problem.empty(); ++trial) {
        problem = launch(offers_[i], &seconds);
        if (trial > 0) least = trial == 1 ? seconds : std::min(least, seconds);
      }
      if (!problem.empty()) {
        why = problem;
        continue;
      }
      if (chosen_ == nullptr || least < best) {
        chosen_ = &offers_[i];
        best = least;
      }
    }
    return chosen_ == nullptr ? why : "";
  }

  std::string run(int repeats, MatmulResult* result) {
    if (std::string e = bad(api_.MemsetD8(d_, 0xff, d_bytes()), "cuMemsetD8"); !e.empty()) return e;
    for (int i = 0; i < std::max(repeats, 1); ++i) {
      double seconds = 0;
      if (std::string e = launch(*chosen_, &seconds); !e.empty()) return e;
      result->seconds.push_back(seconds);
    }
    result->d.resize(size_t{shape_.m} * shape_.n);
    return bad(api_.MemcpyDtoH(result->d.data(), d_, d_bytes()), "cuMemcpyDtoH");
  }

 private:
  std::string bad(driver::Result result, const char* call) const {
    return result == driver::kSuccess ? "" : std::string(call) + " failed: " + api_.describe(result);
  }
  static std::string refused(int status, const char* call) {
    return status == kStatusSuccess ? ""
                                    : "cublasLt" + std::string(call) + " failed with status " + std::to_string(status);
  }
  size_t d_bytes() const { return size_t{shape_.m} * shape_.n * sizeof(float); }

  std::string copy_in(std::span<const uint16_t> from, DevicePointer* to) {
    if (std::string e = bad(api_.MemAlloc(to, from.size_bytes()), "cuMemAlloc"); !e.empty()) return e;
    return bad(api_.MemcpyHtoD(*to, from.data(), from.size_bytes()), "cuMemcpyHtoD");
  }

  // A matrix by columns without gaps between them.
  std::string layout(int type, uint64_t rows, uint64_t columns, void** out) {
    return refused(library_.MatrixLayoutCreate(out, type, rows, columns, static_cast<int64_t>(rows)),
                   "MatrixLayoutCreate");
  }

  std::string launch(const Heuristic& algorithm, double* seconds) {
    static constexpr float kOne = 1, kZero = 0;
    const auto pointer = [](DevicePointer p) { return reinterpret_cast<void*>(p); };
    if (std::string e = bad(api_.EventRecord(start_, nullptr), "cuEventRecord"); !e.empty()) return e;
    const int status = library_.Matmul(handle_, desc_, &kOne, pointer(b_), b_layout_, pointer(a_), a_layout_, &kZero,
                                       pointer(d_), d_layout_, pointer(d_), d_layout_, algorithm.algorithm,
                                       pointer(workspace_), kWorkspaceBytes, nullptr);
    if (std::string e = refused(status, "Matmul"); !e.empty()) return e;
    if (std::string e = bad(api_.EventRecord(end_, nullptr), "cuEventRecord"); !e.empty()) return e;
    if (std::string e = bad(api_.CtxSynchronize(), "cuCtxSynchronize"); !e.empty()) return e;
    float milliseconds = 0;
    if (std::string e = bad(api_.EventElapsedTime(&milliseconds, start_, end_), "cuEventElapsedTime"); !e.empty())
      return e;
    *seconds = milliseconds * 1e-3;
    return "";
  }

  MatmulShape shape_;
  const Library& library_;
  driver::Api api_;
  DevicePointer a_ = 0, b_ = 0, d_ = 0, workspace_ = 0;
  driver::Event start_ = nullptr, end_ = nullptr;
  void *handle_ = nullptr, *desc_ = nullptr, *a_layout_ = nullptr, *b_layout_ = nullptr, *d_layout_ = nullptr;
  std::array<Heuristic, kAlgorithms> offers_{};
  size_t count_ = 0;
  const Heuristic* chosen_ = nullptr;
};

}  // namespace

std::vector<std::string> cublaslt_candidates(const std::string& toolkit) {
  std::vector<std::string> candidates;
  for (const char* version : {"13", "12"}) {
    const std::string file = "libcublasLt.so." + std::string(version);
    candidates.push_back(file);
    if (!toolkit.empty()) {
      candidates.push_back(toolkit + "/lib64/" + file);
      candidates.push_back(toolkit + "/lib/" + file);
    }
  }
  return candidates;
}

std::string find_cublaslt(const std::vector<std::string>& libraries, std::string* why) {
  Library library;
  *why = open_library(libraries, &library);
  if (!why->empty()) return "";
  dlclose(library.handle);
  return library.name;
}

MatmulResult multiply_with_cublaslt(const MatmulShape& shape, std::span<const uint16_t> a, std::span<const uint16_t> b,
                                    int repeats, const std::vector<std::string>& libraries, int ordinal) {
  MatmulResult result;
  if (a.size() != size_t{shape.m} * shape.k || b.size() != size_t{shape.n} * shape.k || a.empty() || b.empty()) {
    result.problem = "the operands have another size than the product asks for";
    return result;
  }
  Library library;
  if (result.problem = open_library(libraries, &library); !result.problem.empty()) return result;
  result.library = library.name;
  Product product(shape, library);
  if (result.problem = product.open(ordinal); !result.problem.empty()) return result;
  if (result.problem = product.place(a, b); !result.problem.empty()) return result;
  if (result.problem = product.describe(); !result.problem.empty()) return result;
  if (result.problem = product.choose(); !result.problem.empty()) return result;
  result.problem = product.run(repeats, &result);
  return result;
}

}  // namespace handoff::device
