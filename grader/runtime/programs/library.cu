// Code that a program loads by the runtime's calls: from memory and from a file, its kernels and variables.
#include <fstream>
#include <string>

#include "check.h"
#include "number_ptx.h"

const std::string kPtx = number_ptx("sm_90");

int main(int, char** argv) {
  cudaLibrary_t library;
  cudaKernel_t kernel, listed;
  CHECK(cudaLibraryLoadData(&library, kPtx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  CHECK(cudaLibraryGetKernelCount(&count, library));
  EXPECT(count == 1);
  CHECK(cudaLibraryEnumerateKernels(&listed, 1, library));
  CHECK(cudaLibraryGetKernel(&kernel, library, "number"));
  EXPECT(listed == kernel);
  EXPECT(cudaLibraryGetKernel(&kernel, library, "nothing") != cudaSuccess && cudaGetLastError() != cudaSuccess);
  void* base = nullptr;
  size_t bytes = 0;
  CHECK(cudaLibraryGetGlobal(&base, &bytes, library, "base"));
  EXPECT(bytes == 4);
  const unsigned value = 5;
  CHECK(cudaMemcpy(base, &value, sizeof value, cudaMemcpyHostToDevice));
  unsigned *out = nullptr, got[32];
  CHECK(cudaMalloc(&out, sizeof got));
  void* arguments[] = {&out};
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(listed), dim3(1), dim3(32), arguments, 0, nullptr));
  CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got[31] == 36);
  CHECK(cudaLibraryUnload(library));
  // Code is loaded when it is needed: only then it turns out to be wrong.
  CHECK(cudaLibraryLoadData(&library, ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry {", nullptr,
                            nullptr, 0, nullptr, nullptr, 0));
  EXPECT(cudaLibraryGetKernel(&kernel, library, "number") == cudaErrorInvalidPtx);
  CHECK(cudaLibraryUnload(library));
  EXPECT(cudaLibraryLoadFromFile(&library, "/no/such/file.ptx", nullptr, nullptr, 0, nullptr, nullptr, 0) ==
         cudaErrorFileNotFound);
  cudaGetLastError();
  const std::string path = std::string(argv[0]) + ".number.ptx";
  std::ofstream(path) << kPtx;
  CHECK(cudaLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cudaLibraryGetKernel(&kernel, library, "number"));
  CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0, nullptr));
  CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got[1] == 1001);
}
