// Code that a program loads itself, by the runtime's names (CUDA runtime API, "Library Management"): the driver's calls
// with other names, and errors that cudaGetLastError knows.
#include "grader/runtime/driver.h"

using namespace handoff::runtime;  // NOLINT: what follows is a C interface over it

HANDOFF_API Result cuLibraryLoadData(Code** out, const void* image, int* options, void** values, unsigned count,
                                     int* library_options, void** library_values, unsigned library_count);
HANDOFF_API Result cuLibraryLoadFromFile(Code** out, const char* path, int* options, void** values, unsigned count,
                                         int* library_options, void** library_values, unsigned library_count);
HANDOFF_API Result cuLibraryUnload(Code* code);
HANDOFF_API Result cuLibraryGetKernel(Kernel** out, Code* code, const char* name);
HANDOFF_API Result cuLibraryGetKernelCount(unsigned* count, Code* code);
HANDOFF_API Result cuLibraryEnumerateKernels(Kernel** out, unsigned count, Code* code);
HANDOFF_API Result cuLibraryGetGlobal(Address* address, size_t* bytes, Code* code, const char* name);
HANDOFF_API Result cuKernelSetAttribute(int attribute, int value, Kernel* kernel, int device);

namespace {

Error kept(Result result) {
  if (result != kSuccess) Runtime::last_error() = result;
  return result;
}

}  // namespace

HANDOFF_API Error cudaLibraryLoadData(Code** out, const void* image, int* options, void** values, unsigned count,
                                      int* library_options, void** library_values, unsigned library_count) {
  return kept(cuLibraryLoadData(out, image, options, values, count, library_options, library_values, library_count));
}
HANDOFF_API Error cudaLibraryLoadFromFile(Code** out, const char* path, int* options, void** values, unsigned count,
                                          int* library_options, void** library_values, unsigned library_count) {
  return kept(cuLibraryLoadFromFile(out, path, options, values, count, library_options, library_values, library_count));
}
HANDOFF_API Error cudaLibraryUnload(Code* code) { return kept(cuLibraryUnload(code)); }
HANDOFF_API Error cudaLibraryGetKernel(Kernel** out, Code* code, const char* name) {
  return kept(cuLibraryGetKernel(out, code, name));
}
HANDOFF_API Error cudaLibraryGetKernelCount(unsigned* count, Code* code) {
  return kept(cuLibraryGetKernelCount(count, code));
}
HANDOFF_API Error cudaLibraryEnumerateKernels(Kernel** out, unsigned count, Code* code) {
  return kept(cuLibraryEnumerateKernels(out, count, code));
}
HANDOFF_API Error cudaLibraryGetGlobal(void** address, size_t* bytes, Code* code, const char* name) {
  return kept(cuLibraryGetGlobal(reinterpret_cast<Address*>(address), bytes, code, name));
}
HANDOFF_API Error cudaKernelSetAttributeForDevice(Kernel* kernel, int attribute, int value, int device) {
  return kept(cuKernelSetAttribute(attribute, value, kernel, device));
}
