// Captures of streams: what is recorded, what joins a capture, what is forbidden while one lasts.
#include <vector>

#include "check.h"

__global__ void add(int* p, int value) { p[threadIdx.x] += value; }
void CUDART_CB count(void* data) { ++*static_cast<int*>(data); }

int main() {
  constexpr int kN = 64;
  int *p = nullptr, *q = nullptr, calls = 0;
  std::vector<int> got(kN, -1);
  CHECK(cudaMalloc(&p, kN * sizeof(int)));
  CHECK(cudaMalloc(&q, kN * sizeof(int)));
  CHECK(cudaMemset(q, 0, kN * sizeof(int)));
  cudaStream_t stream, other;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  cudaEvent_t fork, join;
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(p, 0, kN * sizeof(int), stream));
  for (int i = 1; i <= 3; ++i) add<<<1, kN, 0, stream>>>(p, i);
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  add<<<1, kN, 0, other>>>(q, 100);
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaMemcpyAsync(got.data(), p, kN * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  CHECK(cudaLaunchHostFunc(stream, count, &calls));
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(other, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t many = 0;
  CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &last, nullptr, &many));
  EXPECT(id != 0 && graph != nullptr && many == 1);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaStreamIsCapturing(other, &status));
  EXPECT(status == cudaStreamCaptureStatusNone && calls == 0 && got[0] == -1);
  CHECK(cudaGraphGetNodes(graph, nullptr, &many));
  EXPECT(many == 7);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int round = 1; round <= 3; ++round) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(got[kN - 1] == 6 && calls == round);
  }
  CHECK(cudaMemcpy(got.data(), q, kN * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(got[5] == 300);

  // A launch of a graph cannot be captured.
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT(cudaGraphLaunch(exec, stream) == cudaErrorStreamCaptureUnsupported);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr);
  EXPECT(calls == 3);
  CHECK(cudaGraphExecDestroy(exec));

  // Relaxed: what a capture forbids otherwise is allowed.
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  int* more = nullptr;
  CHECK(cudaMalloc(&more, 64));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphDestroy(graph));

  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT(cudaMalloc(&more, 64) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusInvalidated);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && graph == nullptr);
  // A fork that does not come back.
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  add<<<1, kN, 0, other>>>(q, 1);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
  // The legacy stream would wait for what is only recorded.
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  cudaGetLastError();
  add<<<1, kN>>>(q, 1);
  EXPECT(cudaGetLastError() == cudaErrorStreamCaptureImplicit);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  EXPECT(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  add<<<1, kN>>>(q, 1);
  CHECK(cudaDeviceSynchronize());
}
