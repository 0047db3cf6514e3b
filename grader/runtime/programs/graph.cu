// Graphs built node by node: order, parameters, clones, children, updates.
#include <vector>

#include "check.h"

constexpr int kN = 256;
__device__ int symbol = 0;

__global__ void add(int* p, int value) { p[threadIdx.x] += value; }
__global__ void scale(int* p, int factor) { p[threadIdx.x] *= factor; }

struct Sum {
  const int* values;
  long long total = 0;
  int calls = 0;
};
void CUDART_CB sum(void* data) {
  auto* const s = static_cast<Sum*>(data);
  ++s->calls;
  s->total = 0;
  for (int i = 0; i < kN; ++i) s->total += s->values[i];
}

cudaKernelNodeParams kernel(void* function, void** arguments) {
  cudaKernelNodeParams p{};
  p.func = function;
  p.gridDim = dim3(1);
  p.blockDim = dim3(kN);
  p.kernelParams = arguments;
  return p;
}

int main() {
  int* p = nullptr;
  std::vector<int> from(kN, 2), to(kN, -1);
  CHECK(cudaMalloc(&p, kN * sizeof(int)));
  cudaGraph_t graph;
  cudaGraphNode_t copy_in, clear, first, second, out, host;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams zero{};
  zero.dst = p;
  zero.elementSize = 4;
  zero.width = kN;
  zero.height = 1;
  CHECK(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &zero));
  int value = 3, factor = 10;
  void* add_arguments[] = {&p, &value};
  void* scale_arguments[] = {&p, &factor};
  // The second kernel's node is added before that on which it depends.
  const cudaKernelNodeParams scale_node = kernel(reinterpret_cast<void*>(scale), scale_arguments);
  const cudaKernelNodeParams add_node = kernel(reinterpret_cast<void*>(add), add_arguments);
  CHECK(cudaGraphAddKernelNode(&second, graph, nullptr, 0, &scale_node));
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &add_node));
  CHECK(cudaGraphAddMemcpyNode1D(&copy_in, graph, &clear, 1, p, from.data(), kN * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddDependencies(graph, &copy_in, &first, nullptr, 1));
  CHECK(cudaGraphAddDependencies(graph, &first, &second, nullptr, 1));
  CHECK(cudaGraphAddMemcpyNode1D(&out, graph, &second, 1, to.data(), p, kN * sizeof(int), cudaMemcpyDeviceToHost));
  Sum s{to.data()};
  cudaHostNodeParams function{sum, &s};
  CHECK(cudaGraphAddHostNode(&host, graph, &out, 1, &function));
  value = factor = 1000;  // the nodes have what these were
  size_t count = 0, roots = 0, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(count == 6 && roots == 1 && edges == 5);
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(clear, &type));
  EXPECT(type == cudaGraphNodeTypeMemset);

  cudaGraphExec_t exec;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT(to[0] == -1);
  for (int round = 1; round <= 2; ++round) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT(to[kN - 1] == 50 && s.total == 50 * kN && s.calls == round);
  }
  // Other arguments for one node, in what was instantiated only.
  int less = 1;
  void* other_arguments[] = {&p, &less};
  const cudaKernelNodeParams other_node = kernel(reinterpret_cast<void*>(add), other_arguments);
  CHECK(cudaGraphExecKernelNodeSetParams(exec, first, &other_node));
  CHECK(cudaGraphLaunch(exec, stream));
  EXPECT(to[0] == 30);
  CHECK(cudaGraphNodeSetEnabled(exec, second, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  EXPECT(to[0] == 3);
  cudaKernelNodeParams got{};
  CHECK(cudaGraphKernelNodeGetParams(first, &got));
  EXPECT(got.blockDim.x == kN && *static_cast<int*>(got.kernelParams[1]) == 3);

  // A clone is a graph of its own; the first graph can be instantiated again, or end.
  cudaGraph_t clone;
  cudaGraphNode_t twin;
  CHECK(cudaGraphClone(&clone, graph));
  CHECK(cudaGraphNodeFindInClone(&twin, second, clone));
  CHECK(cudaGraphDestroyNode(twin));
  cudaGraphExec_t of_clone;
  CHECK(cudaGraphNodeFindInClone(&twin, out, clone));
  cudaGraphNode_t before;
  CHECK(cudaGraphNodeFindInClone(&before, first, clone));
  CHECK(cudaGraphAddDependencies(clone, &before, &twin, nullptr, 1));
  CHECK(cudaGraphInstantiate(&of_clone, clone, 0));
  CHECK(cudaGraphLaunch(of_clone, stream));
  EXPECT(to[0] == 5);
  cudaGraphExecUpdateResultInfo result{};
  EXPECT(cudaGraphExecUpdate(exec, clone, &result) == cudaErrorGraphExecUpdateFailure);
  EXPECT(result.result == cudaGraphExecUpdateErrorTopologyChanged);
  CHECK(cudaGraphExecUpdate(exec, graph, &result));

  // A graph in a graph.
  cudaGraph_t parent;
  cudaGraphNode_t child, again;
  CHECK(cudaGraphCreate(&parent, 0));
  CHECK(cudaGraphAddChildGraphNode(&child, parent, nullptr, 0, clone));
  CHECK(cudaGraphAddKernelNode(&again, parent, &child, 1, &add_node));  // value is 1000 now
  cudaGraphNode_t to_symbol, from_symbol;
  int set = 77, read = 0;
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&to_symbol, parent, nullptr, 0, symbol, &set, sizeof set, 0,
                                       cudaMemcpyHostToDevice));
  CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from_symbol, parent, &to_symbol, 1, &read, symbol, sizeof read, 0,
                                         cudaMemcpyDeviceToHost));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphInstantiate(&exec, parent, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  EXPECT(read == 77);
  CHECK(cudaMemcpy(to.data(), p, kN * sizeof(int), cudaMemcpyDefault));
  EXPECT(to[7] == 1005);

  // What cannot be.
  CHECK(cudaGraphAddDependencies(graph, &second, &clear, nullptr, 1));  // a circle
  cudaGraphExec_t none;
  EXPECT(cudaGraphInstantiate(&none, graph, 0) == cudaErrorInvalidValue);
  EXPECT(cudaGraphAddEmptyNode(&again, graph, &child, 1) == cudaErrorInvalidValue);  // of another graph
  CHECK(cudaGraphDestroy(graph));
  EXPECT(cudaGraphDestroy(graph) == cudaErrorInvalidValue);
  CHECK(cudaGraphExecDestroy(of_clone));
  EXPECT(cudaGraphLaunch(of_clone, stream) == cudaErrorInvalidValue);
}
