// A call that the emulator does not have fails, and its name is told once.
// stderr: cudaIpcGetMemHandle failed: cudaErrorNotSupported (operation not supported)
#include "check.h"

int main() {
  cudaIpcMemHandle_t handle;
  EXPECT(cudaIpcGetMemHandle(&handle, nullptr) == cudaErrorNotSupported);
  EXPECT(cudaIpcGetMemHandle(&handle, nullptr) == cudaErrorNotSupported);
  EXPECT(cudaGetLastError() == cudaErrorNotSupported);
}
