// A call that the emulator does not have fails, and its name is told once.
// stderr: cudaGraphCreate failed: cudaErrorNotSupported (operation not supported)
#include "check.h"

int main() {
  cudaGraph_t graph;
  EXPECT(cudaGraphCreate(&graph, 0) == cudaErrorNotSupported);
  EXPECT(cudaGraphCreate(&graph, 0) == cudaErrorNotSupported);
  EXPECT(cudaGetLastError() == cudaErrorNotSupported);
}
