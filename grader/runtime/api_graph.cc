// Captures and graphs (CUDA runtime API, "Graph Management", "Stream Management"; the driver API's calls of the same
// kind beside them). A graph is done node by node, each behind those that it depends on.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "grader/runtime/capture.h"
#include "grader/runtime/driver.h"
#include "grader/runtime/rows.h"

namespace handoff::runtime {
namespace {

/// One node of a graph that can be launched.
struct GraphStep {
  const GraphNode* node = nullptr;  // that it was made from, which may be gone: only compared
  NodeType type = NodeType::Empty;
  Work work;
  std::function<void()> host;
  bool enabled = true;
};

}  // namespace

/// cudaGraphExec_t.
struct GraphExec {
  std::shared_ptr<std::vector<GraphStep>> steps;  ///< in the order in which they are done
  unsigned long long flags = 0;                   ///< as instantiated
};

namespace {

std::set<GraphExec*>& execs() {
  static auto* const kExecs = new std::set<GraphExec*>;
  return *kExecs;
}

Outcome check_graph(const Graph* graph) {
  return graphs().count(const_cast<Graph*>(graph)) != 0 ? Outcome{} : Outcome{kInvalidValue, "it is not a graph"};
}
Outcome check_exec(GraphExec* exec) {
  return execs().count(exec) != 0 ? Outcome{} : Outcome{kInvalidValue, "it is not a graph that was instantiated"};
}
Outcome check_node(const GraphNode* node, NodeType type) {
  if (!GraphNode::is_alive(node)) return {kInvalidValue, "it is not a node"};
  return node->type == type ? Outcome{} : Outcome{kInvalidValue, "the node is of another type"};
}

/// Adds a node; nullptr and an outcome that says why where it cannot be.
GraphNode* add_node(Graph* graph, GraphNode* const* dependencies, size_t count, NodeType type, Outcome* outcome) {
  *outcome = check_graph(graph);
  if (outcome->code != kSuccess) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (dependencies == nullptr || !GraphNode::is_alive(dependencies[i]) || dependencies[i]->graph != graph) {
      *outcome = {kInvalidValue, fmt::format("dependency {} is not a node of this graph", i)};
      return nullptr;
    }
  }
  auto node = std::make_unique<GraphNode>();
  node->type = type;
  node->graph = graph;
  node->after.assign(dependencies, dependencies + count);
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

/// The same as a call: `fill` makes the node what it is.
template <class Fill>
Error add_call(const char* name, GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
               NodeType type, const Fill& fill) {
  return call(name, [&](Runtime& r) -> Outcome {
    if (out == nullptr) return {kInvalidValue, "the node's address is null"};
    Outcome outcome;
    GraphNode* const node = add_node(graph, dependencies, count, type, &outcome);
    if (node == nullptr) return outcome;
    outcome = fill(r, node);
    if (outcome.code == kSuccess) {
      *out = node;
    } else {
      graph->nodes.pop_back();
    }
    return outcome;
  });
}

LaunchShape shape_of(const KernelNodeParameters& p) {
  return {{p.grid.x, p.grid.y, p.grid.z}, {p.block.x, p.block.y, p.block.z}, {}, p.dynamic_smem_bytes, false};
}

Outcome fill_kernel(Runtime& r, GraphNode* node, const KernelNodeParameters* p) {
  if (p == nullptr) return {kInvalidValue, "no parameters"};
  Kernel* const kernel = r.find_kernel(p->function);
  if (kernel == nullptr) return {kInvalidDeviceFunction, "it is not a kernel of this program"};
  Outcome decoded = r.decode(*kernel);
  if (decoded.code != kSuccess) return decoded;
  if (p->extra != nullptr) return {kNotSupported, "kernel parameters as one block (extra)"};
  if (p->arguments == nullptr && !kernel->program->parameters.empty()) return {kInvalidValue, "no arguments"};
  Outcome checked = r.check_shape(*kernel, shape_of(*p));
  if (checked.code == kSuccess) set_kernel(node, *kernel, shape_of(*p), p->arguments, nullptr);
  return checked;
}

Outcome fill_memset(GraphNode* node, const MemsetNodeParameters* p) {
  if (p == nullptr) return {kInvalidValue, "no parameters"};
  if (p->element_bytes != 1 && p->element_bytes != 2 && p->element_bytes != 4) {
    return {kInvalidValue, fmt::format("elements of {} bytes", p->element_bytes)};
  }
  node->work = [p = *p](Runtime& r) {
    const size_t pitch = p.height == 1 ? p.width * p.element_bytes : p.pitch;
    return fill_rows(r, p.destination, pitch, p.value, p.element_bytes, p.width, p.height);
  };
  return {};
}

Outcome fill_host(GraphNode* node, const HostNodeParameters* p) {
  if (p == nullptr || p->function == nullptr) return {kInvalidValue, "no function"};
  node->host = [p = *p] { p.function(p.data); };
  return {};
}

Outcome fill_box(GraphNode* node, const RuntimeCopy3D* box) {
  if (box == nullptr) return {kInvalidValue, "no parameters"};
  node->work = [box = *box](Runtime& r) { return copy_box(r, box); };
  return {};
}

Outcome fill_copy(GraphNode* node, void* to, const void* from, size_t bytes, MemcpyKind kind) {
  if (bytes != 0 && (to == nullptr || from == nullptr)) return {kInvalidValue, "the source or the destination is null"};
  node->work = [=](Runtime& r) { return copy(r, to, from, bytes, kind); };
  return {};
}

Outcome fill_symbol_copy(GraphNode* node, const void* symbol, void* other, size_t bytes, size_t offset, MemcpyKind kind,
                         bool to_symbol) {
  node->work = [=](Runtime& r) { return copy_symbol(r, symbol, other, bytes, offset, kind, to_symbol); };
  return {};
}

/// A copy of the graph, each node with its original.
std::unique_ptr<Graph> clone(const Graph& graph) {
  auto copied = std::make_unique<Graph>();
  std::map<const GraphNode*, GraphNode*> of;
  for (const auto& node : graph.nodes) {
    auto twin = std::make_unique<GraphNode>();
    twin->type = node->type;
    twin->work = node->work;
    twin->host = node->host;
    twin->child = node->child;
    twin->launch = node->launch;
    twin->graph = copied.get();
    twin->original = node.get();
    of[node.get()] = twin.get();
    copied->nodes.push_back(std::move(twin));
  }
  for (const auto& node : graph.nodes) {
    for (const GraphNode* before : node->after) of[node.get()]->after.push_back(of[before]);
  }
  return copied;
}

/// The nodes of the graph, and in place of one that stands for a graph that one's.
Outcome flatten(const Graph& graph, std::vector<GraphStep>* steps) {
  std::vector<const GraphNode*> order;
  if (!in_order(graph, &order)) return {kInvalidValue, "its nodes depend on each other in a circle"};
  for (const GraphNode* node : order) {
    if (node->child == nullptr) {
      steps->push_back({node, node->type, node->work, node->host, true});
      continue;
    }
    Outcome outcome = flatten(*node->child, steps);
    if (outcome.code != kSuccess) return outcome;
  }
  return {};
}

/// A copy of up to *count handles; *count becomes how many there are (no array: only that).
Outcome list(const std::vector<GraphNode*>& all, GraphNode** out, size_t* count) {
  if (count == nullptr) return {kInvalidValue, "no place for the number"};
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < all.size() ? all[i] : nullptr;
    *count = std::min(*count, all.size());
  } else {
    *count = all.size();
  }
  return {};
}

std::vector<GraphNode*> nodes_of(const Graph& graph, bool roots_only) {
  std::vector<GraphNode*> all;
  for (const auto& node : graph.nodes) {
    if (!roots_only || node->after.empty()) all.push_back(node.get());
  }
  return all;
}

Outcome instantiate(GraphExec** out, Graph* graph, unsigned long long flags) {
  if (out == nullptr) return {kInvalidValue, "the address is null"};
  Outcome outcome = check_graph(graph);
  if (outcome.code != kSuccess) return outcome;
  constexpr unsigned long long kKnown = 15, kDeviceLaunch = 4;  // cudaGraphInstantiateFlag…
  if ((flags & ~kKnown) != 0) return {kInvalidValue, fmt::format("flags {:#x}", flags)};
  if ((flags & kDeviceLaunch) != 0) return {kNotSupported, "a graph that kernels launch"};
  auto exec = std::make_unique<GraphExec>();
  exec->steps = std::make_shared<std::vector<GraphStep>>();
  exec->flags = flags;
  outcome = flatten(*graph, exec->steps.get());
  if (outcome.code != kSuccess) return outcome;
  *out = exec.release();
  execs().insert(*out);
  return {};
}

/// Gives the step that was made from `node` what `fill` puts into a node.
template <class Fill>
Error set_in_exec(const char* name, GraphExec* exec, GraphNode* node, NodeType type, const Fill& fill) {
  return call(name, [&](Runtime& r) -> Outcome {
    Outcome outcome = check_exec(exec);
    if (outcome.code == kSuccess) outcome = check_node(node, type);
    if (outcome.code != kSuccess) return outcome;
    const auto step = std::find_if(exec->steps->begin(), exec->steps->end(),
                                   [&](const GraphStep& s) { return s.node == node || s.node == node->original; });
    if (step == exec->steps->end()) return {kInvalidValue, "the graph was not instantiated with this node"};
    GraphNode other;
    outcome = fill(r, &other);
    if (outcome.code != kSuccess) return outcome;
    step->work = other.work;
    step->host = other.host;
    return outcome;
  });
}

template <class Fill>
Error set_in_node(const char* name, GraphNode* node, NodeType type, const Fill& fill) {
  return call(name, [&](Runtime& r) {
    Outcome outcome = check_node(node, type);
    return outcome.code == kSuccess ? fill(r, node) : outcome;
  });
}

CaptureStatus status_of(const Capture* capture) {
  if (capture == nullptr) return CaptureStatus::None;
  return capture->invalid ? CaptureStatus::Invalidated : CaptureStatus::Active;
}

Outcome edge_of(Graph* graph, GraphNode* from, GraphNode* to) {
  if (!GraphNode::is_alive(from) || !GraphNode::is_alive(to) || from->graph != graph || to->graph != graph ||
      from == to)
    return {kInvalidValue, "it is not a pair of nodes of this graph"};
  return {};
}

}  // namespace
}  // namespace handoff::runtime

using namespace handoff::runtime;  // NOLINT: what follows is the C interface over it

// --- captures ---

HANDOFF_API Error cudaStreamBeginCapture(Stream* stream, CaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Runtime& r) { return begin_capture(r, stream, mode); });
}
HANDOFF_API Error cudaStreamEndCapture(Stream* stream, Graph** out) {
  return call("cudaStreamEndCapture", [&](Runtime& r) -> Outcome {
    return out == nullptr ? Outcome{kInvalidValue, "the graph's address is null"} : end_capture(r, stream, out);
  });
}
HANDOFF_API Error cudaStreamIsCapturing(Stream* stream, CaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](Runtime& r) -> Outcome {
    Outcome outcome = check_stream(r, stream);
    if (outcome.code != kSuccess) return outcome;
    const Capture* const capture = captures().of(stream);
    *status = status_of(capture);
    return {};
  });
}
HANDOFF_API Error cudaStreamGetCaptureInfo(Stream* stream, CaptureStatus* status, unsigned long long* id, Graph** graph,
                                           GraphNode* const** dependencies, const void** edge_data, size_t* count) {
  return call("cudaStreamGetCaptureInfo", [&](Runtime& r) -> Outcome {
    Outcome outcome = check_stream(r, stream);
    if (outcome.code != kSuccess) return outcome;
    if (status == nullptr) return {kInvalidValue, "no place for the status"};
    Capture* const capture = captures().of(stream);
    *status = status_of(capture);
    if (*status != CaptureStatus::Active) return {};
    const std::vector<GraphNode*>& last = capture->last[stream];
    if (id != nullptr) *id = capture->id;
    if (graph != nullptr) *graph = capture->graph;
    if (dependencies != nullptr) *dependencies = last.data();
    if (edge_data != nullptr) *edge_data = nullptr;
    if (count != nullptr) *count = last.size();
    return {};
  });
}
HANDOFF_API Error cudaThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&](Runtime&) -> Outcome {
    if (mode == nullptr || *mode < CaptureMode::Global || *mode > CaptureMode::Relaxed) {
      return {kInvalidValue, "no such mode"};
    }
    std::swap(*mode, Captures::thread_mode());
    return {};
  });
}

// --- graphs and their nodes ---

HANDOFF_API Error cudaGraphCreate(Graph** out, unsigned flags) {
  return call("cudaGraphCreate", [&](Runtime&) -> Outcome {
    if (out == nullptr || flags != 0) return {kInvalidValue, "flags, or no place for the graph"};
    *out = new Graph;
    graphs().insert(*out);
    return {};
  });
}
HANDOFF_API Error cudaGraphDestroy(Graph* graph) {
  return call("cudaGraphDestroy", [&](Runtime&) {
    Outcome outcome = check_graph(graph);
    if (outcome.code == kSuccess) {
      graphs().erase(graph);
      delete graph;
    }
    return outcome;
  });
}
HANDOFF_API Error cudaGraphClone(Graph** out, Graph* graph) {
  return call("cudaGraphClone", [&](Runtime&) -> Outcome {
    Outcome outcome = check_graph(graph);
    if (outcome.code != kSuccess) return outcome;
    *out = clone(*graph).release();
    graphs().insert(*out);
    return {};
  });
}
HANDOFF_API Error cudaGraphNodeFindInClone(GraphNode** out, GraphNode* original, Graph* graph) {
  return call("cudaGraphNodeFindInClone", [&](Runtime&) -> Outcome {
    Outcome outcome = check_graph(graph);
    if (outcome.code != kSuccess) return outcome;
    for (const auto& node : graph->nodes) {
      if (node->original != original) continue;
      *out = node.get();
      return {};
    }
    return {kInvalidValue, "the graph has no copy of this node"};
  });
}
HANDOFF_API Error cudaGraphAddKernelNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                         const KernelNodeParameters* p) {
  return add_call("cudaGraphAddKernelNode", out, graph, dependencies, count, NodeType::Kernel,
                  [&](Runtime& r, GraphNode* node) { return fill_kernel(r, node, p); });
}
HANDOFF_API Error cudaGraphKernelNodeSetParams(GraphNode* node, const KernelNodeParameters* p) {
  return set_in_node("cudaGraphKernelNodeSetParams", node, NodeType::Kernel,
                     [&](Runtime& r, GraphNode* n) { return fill_kernel(r, n, p); });
}
HANDOFF_API Error cudaGraphKernelNodeGetParams(GraphNode* node, KernelNodeParameters* out) {
  return set_in_node("cudaGraphKernelNodeGetParams", node, NodeType::Kernel, [&](Runtime&, GraphNode* n) -> Outcome {
    const LaunchShape& s = n->launch->shape;
    n->arguments.clear();
    for (const auto& p : n->launch->kernel->program->parameters) {
      n->arguments.push_back(n->launch->block.data() + p.offset);
    }
    *out = {n->launch->kernel,
            {s.grid.x, s.grid.y, s.grid.z},
            {s.block.x, s.block.y, s.block.z},
            static_cast<unsigned>(s.dynamic_smem),
            n->arguments.data(),
            nullptr};
    return {};
  });
}
HANDOFF_API Error cudaGraphAddMemcpyNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                         const RuntimeCopy3D* box) {
  return add_call("cudaGraphAddMemcpyNode", out, graph, dependencies, count, NodeType::Memcpy,
                  [&](Runtime&, GraphNode* node) { return fill_box(node, box); });
}
HANDOFF_API Error cudaGraphMemcpyNodeSetParams(GraphNode* node, const RuntimeCopy3D* box) {
  return set_in_node("cudaGraphMemcpyNodeSetParams", node, NodeType::Memcpy,
                     [&](Runtime&, GraphNode* n) { return fill_box(n, box); });
}
HANDOFF_API Error cudaGraphAddMemcpyNode1D(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                           void* to, const void* from, size_t bytes, MemcpyKind kind) {
  return add_call("cudaGraphAddMemcpyNode1D", out, graph, dependencies, count, NodeType::Memcpy,
                  [&](Runtime&, GraphNode* node) { return fill_copy(node, to, from, bytes, kind); });
}
HANDOFF_API Error cudaGraphMemcpyNodeSetParams1D(GraphNode* node, void* to, const void* from, size_t bytes,
                                                 MemcpyKind kind) {
  return set_in_node("cudaGraphMemcpyNodeSetParams1D", node, NodeType::Memcpy,
                     [&](Runtime&, GraphNode* n) { return fill_copy(n, to, from, bytes, kind); });
}
HANDOFF_API Error cudaGraphAddMemcpyNodeToSymbol(GraphNode** out, Graph* graph, GraphNode* const* dependencies,
                                                 size_t count, const void* symbol, const void* from, size_t bytes,
                                                 size_t offset, MemcpyKind kind) {
  return add_call("cudaGraphAddMemcpyNodeToSymbol", out, graph, dependencies, count, NodeType::Memcpy,
                  [&](Runtime&, GraphNode* node) {
                    return fill_symbol_copy(node, symbol, const_cast<void*>(from), bytes, offset, kind, true);
                  });
}
HANDOFF_API Error cudaGraphAddMemcpyNodeFromSymbol(GraphNode** out, Graph* graph, GraphNode* const* dependencies,
                                                   size_t count, void* to, const void* symbol, size_t bytes,
                                                   size_t offset, MemcpyKind kind) {
  return add_call(
      "cudaGraphAddMemcpyNodeFromSymbol", out, graph, dependencies, count, NodeType::Memcpy,
      [&](Runtime&, GraphNode* node) { return fill_symbol_copy(node, symbol, to, bytes, offset, kind, false); });
}
HANDOFF_API Error cudaGraphAddMemsetNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                         const MemsetNodeParameters* p) {
  return add_call("cudaGraphAddMemsetNode", out, graph, dependencies, count, NodeType::Memset,
                  [&](Runtime&, GraphNode* node) { return fill_memset(node, p); });
}
HANDOFF_API Error cudaGraphMemsetNodeSetParams(GraphNode* node, const MemsetNodeParameters* p) {
  return set_in_node("cudaGraphMemsetNodeSetParams", node, NodeType::Memset,
                     [&](Runtime&, GraphNode* n) { return fill_memset(n, p); });
}
HANDOFF_API Error cudaGraphAddHostNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                       const HostNodeParameters* p) {
  return add_call("cudaGraphAddHostNode", out, graph, dependencies, count, NodeType::Host,
                  [&](Runtime&, GraphNode* node) { return fill_host(node, p); });
}
HANDOFF_API Error cudaGraphHostNodeSetParams(GraphNode* node, const HostNodeParameters* p) {
  return set_in_node("cudaGraphHostNodeSetParams", node, NodeType::Host,
                     [&](Runtime&, GraphNode* n) { return fill_host(n, p); });
}
HANDOFF_API Error cudaGraphAddEmptyNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count) {
  return add_call("cudaGraphAddEmptyNode", out, graph, dependencies, count, NodeType::Empty,
                  [](Runtime&, GraphNode*) { return Outcome{}; });
}
HANDOFF_API Error cudaGraphAddChildGraphNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies,
                                             size_t count, Graph* child) {
  return add_call("cudaGraphAddChildGraphNode", out, graph, dependencies, count, NodeType::Graph,
                  [&](Runtime&, GraphNode* node) {
                    Outcome outcome = check_graph(child);
                    if (outcome.code == kSuccess) node->child = clone(*child);
                    return outcome;
                  });
}
HANDOFF_API Error cudaGraphAddEventRecordNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies,
                                              size_t count, Event* event) {
  return add_call("cudaGraphAddEventRecordNode", out, graph, dependencies, count, NodeType::EventRecord,
                  [&](Runtime& r, GraphNode* node) -> Outcome {
                    if (r.events.count(event) == 0) return {kInvalidResourceHandle, "it is not an event"};
                    node->work = [event](Runtime& runtime) { return record_event(runtime, event, nullptr, true); };
                    return {};
                  });
}
HANDOFF_API Error cudaGraphAddEventWaitNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                            Event* event) {
  return add_call(
      "cudaGraphAddEventWaitNode", out, graph, dependencies, count, NodeType::WaitEvent,
      [&](Runtime& r, GraphNode*) -> Outcome {
        return r.events.count(event) != 0 ? Outcome{} : Outcome{kInvalidResourceHandle, "it is not an event"};
      });
}
HANDOFF_API Error cudaGraphDestroyNode(GraphNode* node) {
  return call("cudaGraphDestroyNode", [&](Runtime&) -> Outcome {
    if (!GraphNode::is_alive(node)) return {kInvalidValue, "it is not a node"};
    Graph& graph = *node->graph;
    for (const auto& other : graph.nodes) std::erase(other->after, node);
    std::erase_if(graph.nodes, [&](const auto& other) { return other.get() == node; });
    return {};
  });
}
HANDOFF_API Error cudaGraphAddDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                           size_t count) {
  return call("cudaGraphAddDependencies", [&](Runtime&) {
    Outcome outcome = check_graph(graph);
    for (size_t i = 0; i < count && outcome.code == kSuccess; ++i) {
      outcome = edge_of(graph, from[i], to[i]);
      if (outcome.code != kSuccess) break;
      std::vector<GraphNode*>& after = to[i]->after;
      if (std::find(after.begin(), after.end(), from[i]) != after.end())
        return Outcome{kInvalidValue, "it depends on it already"};
      after.push_back(from[i]);
    }
    return outcome;
  });
}
HANDOFF_API Error cudaGraphRemoveDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to, const void*,
                                              size_t count) {
  return call("cudaGraphRemoveDependencies", [&](Runtime&) {
    Outcome outcome = check_graph(graph);
    for (size_t i = 0; i < count && outcome.code == kSuccess; ++i) {
      outcome = edge_of(graph, from[i], to[i]);
      if (outcome.code == kSuccess && std::erase(to[i]->after, from[i]) == 0)
        outcome = {kInvalidValue, "no such dependency"};
    }
    return outcome;
  });
}
HANDOFF_API Error cudaGraphGetNodes(Graph* graph, GraphNode** out, size_t* count) {
  return call("cudaGraphGetNodes", [&](Runtime&) {
    Outcome outcome = check_graph(graph);
    return outcome.code == kSuccess ? list(nodes_of(*graph, false), out, count) : outcome;
  });
}
HANDOFF_API Error cudaGraphGetRootNodes(Graph* graph, GraphNode** out, size_t* count) {
  return call("cudaGraphGetRootNodes", [&](Runtime&) {
    Outcome outcome = check_graph(graph);
    return outcome.code == kSuccess ? list(nodes_of(*graph, true), out, count) : outcome;
  });
}
HANDOFF_API Error cudaGraphGetEdges(Graph* graph, GraphNode** from, GraphNode** to, void* edge_data, size_t* count) {
  return call("cudaGraphGetEdges", [&](Runtime&) {
    Outcome outcome = check_graph(graph);
    if (outcome.code != kSuccess) return outcome;
    std::vector<GraphNode*> tails, heads;
    for (const auto& node : graph->nodes) {
      for (GraphNode* before : node->after) {
        tails.push_back(before);
        heads.push_back(node.get());
      }
    }
    size_t twice = *count;
    constexpr size_t kEdgeBytes = 8;  // cudaGraphEdgeData: all zeros for a dependency on the whole of a node
    outcome = list(tails, from, count);
    if (edge_data != nullptr) std::memset(edge_data, 0, *count * kEdgeBytes);
    return outcome.code == kSuccess ? list(heads, to, &twice) : outcome;
  });
}
HANDOFF_API Error cudaGraphNodeGetDependencies(GraphNode* node, GraphNode** out, void*, size_t* count) {
  return call("cudaGraphNodeGetDependencies", [&](Runtime&) -> Outcome {
    if (!GraphNode::is_alive(node)) return {kInvalidValue, "it is not a node"};
    return list(node->after, out, count);
  });
}
HANDOFF_API Error cudaGraphNodeGetDependentNodes(GraphNode* node, GraphNode** out, void*, size_t* count) {
  return call("cudaGraphNodeGetDependentNodes", [&](Runtime&) -> Outcome {
    if (!GraphNode::is_alive(node)) return {kInvalidValue, "it is not a node"};
    std::vector<GraphNode*> dependent;
    for (const auto& other : node->graph->nodes) {
      if (std::find(other->after.begin(), other->after.end(), node) != other->after.end())
        dependent.push_back(other.get());
    }
    return list(dependent, out, count);
  });
}
HANDOFF_API Error cudaGraphNodeGetType(GraphNode* node, NodeType* type) {
  return call("cudaGraphNodeGetType", [&](Runtime&) -> Outcome {
    if (!GraphNode::is_alive(node)) return {kInvalidValue, "it is not a node"};
    *type = node->type;
    return {};
  });
}

// --- graphs that can be launched ---

HANDOFF_API Error cudaGraphInstantiateWithFlags(GraphExec** out, Graph* graph, unsigned long long flags) {
  return call("cudaGraphInstantiate", [&](Runtime&) { return instantiate(out, graph, flags); });
}
HANDOFF_API Error cudaGraphInstantiate(GraphExec** out, Graph* graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(out, graph, flags);
}
HANDOFF_API Error cudaGraphInstantiateWithParams(GraphExec** out, Graph* graph, InstantiateParameters* p) {
  return call("cudaGraphInstantiateWithParams", [&](Runtime&) -> Outcome {
    if (p == nullptr) return {kInvalidValue, "no parameters"};
    Outcome outcome = instantiate(out, graph, p->flags);
    constexpr int kDone = 0, kFailed = 1;
    p->error_node = nullptr;
    p->result = outcome.code == kSuccess ? kDone : kFailed;
    return outcome;
  });
}
HANDOFF_API Error cudaGraphExecGetFlags(GraphExec* exec, unsigned long long* flags) {
  return call("cudaGraphExecGetFlags", [&](Runtime&) {
    Outcome outcome = check_exec(exec);
    if (outcome.code == kSuccess) *flags = exec->flags;
    return outcome;
  });
}
HANDOFF_API Error cudaGraphExecKernelNodeSetParams(GraphExec* exec, GraphNode* node, const KernelNodeParameters* p) {
  return set_in_exec("cudaGraphExecKernelNodeSetParams", exec, node, NodeType::Kernel,
                     [&](Runtime& r, GraphNode* n) { return fill_kernel(r, n, p); });
}
HANDOFF_API Error cudaGraphExecMemcpyNodeSetParams(GraphExec* exec, GraphNode* node, const RuntimeCopy3D* box) {
  return set_in_exec("cudaGraphExecMemcpyNodeSetParams", exec, node, NodeType::Memcpy,
                     [&](Runtime&, GraphNode* n) { return fill_box(n, box); });
}
HANDOFF_API Error cudaGraphExecMemcpyNodeSetParams1D(GraphExec* exec, GraphNode* node, void* to, const void* from,
                                                     size_t bytes, MemcpyKind kind) {
  return set_in_exec("cudaGraphExecMemcpyNodeSetParams1D", exec, node, NodeType::Memcpy,
                     [&](Runtime&, GraphNode* n) { return fill_copy(n, to, from, bytes, kind); });
}
HANDOFF_API Error cudaGraphExecMemsetNodeSetParams(GraphExec* exec, GraphNode* node, const MemsetNodeParameters* p) {
  return set_in_exec("cudaGraphExecMemsetNodeSetParams", exec, node, NodeType::Memset,
                     [&](Runtime&, GraphNode* n) { return fill_memset(n, p); });
}
HANDOFF_API Error cudaGraphExecHostNodeSetParams(GraphExec* exec, GraphNode* node, const HostNodeParameters* p) {
  return set_in_exec("cudaGraphExecHostNodeSetParams", exec, node, NodeType::Host,
                     [&](Runtime&, GraphNode* n) { return fill_host(n, p); });
}
HANDOFF_API Error cudaGraphNodeSetEnabled(GraphExec* exec, GraphNode* node, unsigned enabled) {
  return call("cudaGraphNodeSetEnabled", [&](Runtime&) {
    Outcome outcome = check_exec(exec);
    if (outcome.code != kSuccess) return outcome;
    for (GraphStep& step : *exec->steps) {
      if (step.node != node) continue;
      if (step.type > NodeType::Memset) break;  // kernels, copies and fills only
      step.enabled = enabled != 0;
      return outcome;
    }
    return Outcome{kInvalidValue, "not a kernel, copy or fill of this graph"};
  });
}
HANDOFF_API Error cudaGraphNodeGetEnabled(GraphExec* exec, GraphNode* node, unsigned* enabled) {
  return call("cudaGraphNodeGetEnabled", [&](Runtime&) {
    Outcome outcome = check_exec(exec);
    if (outcome.code != kSuccess) return outcome;
    for (const GraphStep& step : *exec->steps) {
      if (step.node != node) continue;
      *enabled = step.enabled ? 1 : 0;
      return outcome;
    }
    return Outcome{kInvalidValue, "no node of this graph"};
  });
}
HANDOFF_API Error cudaGraphExecUpdate(GraphExec* exec, Graph* graph, GraphUpdateResult* result) {
  return call("cudaGraphExecUpdate", [&](Runtime&) -> Outcome {
    constexpr int kDone = 0, kTopologyChanged = 2, kTypeChanged = 3;
    Outcome outcome = check_exec(exec);
    if (outcome.code == kSuccess) outcome = check_graph(graph);
    if (outcome.code != kSuccess) return outcome;
    std::vector<GraphStep> steps;
    outcome = flatten(*graph, &steps);
    int what = outcome.code != kSuccess || steps.size() != exec->steps->size() ? kTopologyChanged : kDone;
    const GraphNode* where = nullptr;
    for (size_t i = 0; what == kDone && i < steps.size(); ++i) {
      if (steps[i].type == (*exec->steps)[i].type) continue;
      what = kTypeChanged;
      where = steps[i].node;
    }
    if (result != nullptr) *result = {what, const_cast<GraphNode*>(where), nullptr};
    if (what != kDone) return {kGraphExecUpdateFailure, "the graph has other nodes than the one it is to replace"};
    // The nodes of the first graph are what later calls name.
    for (size_t i = 0; i < steps.size(); ++i) {
      (*exec->steps)[i].work = steps[i].work;
      (*exec->steps)[i].host = steps[i].host;
    }
    return {};
  });
}
HANDOFF_API Error cudaGraphUpload(GraphExec* exec, Stream* stream) {
  return call("cudaGraphUpload", [&](Runtime& r) {
    Outcome outcome = check_exec(exec);
    return outcome.code == kSuccess ? check_stream(r, stream) : outcome;
  });
}
HANDOFF_API Error cudaGraphLaunch(GraphExec* exec, Stream* stream) {
  std::shared_ptr<const std::vector<GraphStep>> steps;
  const Error error = call("cudaGraphLaunch", [&](Runtime& r) {
    Outcome outcome = check_exec(exec);
    if (outcome.code != kSuccess) return outcome;
    outcome = check_not_captured(r, stream);  // a launch of a graph cannot be captured
    if (outcome.code != kSuccess) return outcome;
    steps = exec->steps;
    return enqueue(r, stream, NodeType::Graph, [](Runtime&) { return Outcome{}; });
  });
  if (error != kSuccess || steps == nullptr) return error;
  for (const GraphStep& step : *steps) {
    if (!step.enabled) continue;
    if (step.host) step.host();
    const Error failed = step.work ? call("cudaGraphLaunch", step.work) : kSuccess;
    if (failed != kSuccess) return failed;
  }
  return kSuccess;
}
HANDOFF_API Error cudaGraphExecDestroy(GraphExec* exec) {
  return call("cudaGraphExecDestroy", [&](Runtime&) {
    Outcome outcome = check_exec(exec);
    if (outcome.code == kSuccess) {
      execs().erase(exec);
      delete exec;
    }
    return outcome;
  });
}

// --- the driver's: mostly the same ---

namespace {

KernelNodeParameters parameters_of(const DriverKernelNodeParameters& p) {
  return {p.function != nullptr ? p.function : p.kernel, p.grid, p.block, p.dynamic_smem_bytes, p.arguments, p.extra};
}

}  // namespace

HANDOFF_API Result cuGraphCreate(Graph** out, unsigned flags) {
  return without_last_error([&] { return cudaGraphCreate(out, flags); });
}
HANDOFF_API Result cuGraphDestroy(Graph* graph) {
  return without_last_error([&] { return cudaGraphDestroy(graph); });
}
HANDOFF_API Result cuGraphClone(Graph** out, Graph* graph) {
  return without_last_error([&] { return cudaGraphClone(out, graph); });
}
HANDOFF_API Result cuGraphAddKernelNode_v2(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                           const DriverKernelNodeParameters* p) {
  return without_last_error([&]() -> Error {
    if (p == nullptr) return kInvalidValue;
    const KernelNodeParameters same = parameters_of(*p);
    return cudaGraphAddKernelNode(out, graph, dependencies, count, &same);
  });
}
HANDOFF_API Result cuGraphExecKernelNodeSetParams_v2(GraphExec* exec, GraphNode* node,
                                                     const DriverKernelNodeParameters* p) {
  return without_last_error([&]() -> Error {
    if (p == nullptr) return kInvalidValue;
    const KernelNodeParameters same = parameters_of(*p);
    return cudaGraphExecKernelNodeSetParams(exec, node, &same);
  });
}
HANDOFF_API Result cuGraphAddMemcpyNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                        const DriverCopy3D* copy, void*) {
  return without_last_error([&] {
    return add_call("cuGraphAddMemcpyNode", out, graph, dependencies, count, NodeType::Memcpy,
                    [&](Runtime&, GraphNode* node) -> Outcome {
                      RuntimeCopy3D box;
                      Outcome outcome = box_of(*copy, &box);
                      return outcome.code == kSuccess ? fill_box(node, &box) : outcome;
                    });
  });
}
HANDOFF_API Result cuGraphAddMemsetNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                        const MemsetNodeParameters* p, void*) {
  return without_last_error([&] { return cudaGraphAddMemsetNode(out, graph, dependencies, count, p); });
}
HANDOFF_API Result cuGraphAddHostNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                      const HostNodeParameters* p) {
  return without_last_error([&] { return cudaGraphAddHostNode(out, graph, dependencies, count, p); });
}
HANDOFF_API Result cuGraphAddEmptyNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count) {
  return without_last_error([&] { return cudaGraphAddEmptyNode(out, graph, dependencies, count); });
}
HANDOFF_API Result cuGraphAddChildGraphNode(GraphNode** out, Graph* graph, GraphNode* const* dependencies, size_t count,
                                            Graph* child) {
  return without_last_error([&] { return cudaGraphAddChildGraphNode(out, graph, dependencies, count, child); });
}
HANDOFF_API Result cuGraphGetNodes(Graph* graph, GraphNode** out, size_t* count) {
  return without_last_error([&] { return cudaGraphGetNodes(graph, out, count); });
}
HANDOFF_API Result cuGraphGetRootNodes(Graph* graph, GraphNode** out, size_t* count) {
  return without_last_error([&] { return cudaGraphGetRootNodes(graph, out, count); });
}
HANDOFF_API Result cuGraphNodeGetType(GraphNode* node, NodeType* type) {
  return without_last_error([&] { return cudaGraphNodeGetType(node, type); });
}
HANDOFF_API Result cuGraphAddDependencies_v2(Graph* graph, GraphNode* const* from, GraphNode* const* to,
                                             const void* edge_data, size_t count) {
  return without_last_error([&] { return cudaGraphAddDependencies(graph, from, to, edge_data, count); });
}
HANDOFF_API Result cuGraphAddDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
HANDOFF_API Result cuGraphDestroyNode(GraphNode* node) {
  return without_last_error([&] { return cudaGraphDestroyNode(node); });
}
HANDOFF_API Result cuGraphInstantiateWithFlags(GraphExec** out, Graph* graph, unsigned long long flags) {
  return without_last_error([&] { return cudaGraphInstantiateWithFlags(out, graph, flags); });
}
HANDOFF_API Result cuGraphInstantiate(GraphExec** out, Graph* graph, GraphNode** error_node, char* log, size_t bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && bytes > 0) *log = '\0';
  return cuGraphInstantiateWithFlags(out, graph, 0);
}
HANDOFF_API Result cuGraphInstantiate_v2(GraphExec** out, Graph* graph, GraphNode** error_node, char* log,
                                         size_t bytes) {
  return cuGraphInstantiate(out, graph, error_node, log, bytes);
}
HANDOFF_API Result cuGraphInstantiateWithParams(GraphExec** out, Graph* graph, InstantiateParameters* p) {
  return without_last_error([&] { return cudaGraphInstantiateWithParams(out, graph, p); });
}
HANDOFF_API Result cuGraphExecUpdate_v2(GraphExec* exec, Graph* graph, GraphUpdateResult* result) {
  return without_last_error([&] { return cudaGraphExecUpdate(exec, graph, result); });
}
HANDOFF_API Result cuGraphUpload(GraphExec* exec, Stream* stream) {
  return without_last_error([&] { return cudaGraphUpload(exec, stream); });
}
HANDOFF_API Result cuGraphLaunch(GraphExec* exec, Stream* stream) {
  return without_last_error([&] { return cudaGraphLaunch(exec, stream); });
}
HANDOFF_API Result cuGraphExecDestroy(GraphExec* exec) {
  return without_last_error([&] { return cudaGraphExecDestroy(exec); });
}
HANDOFF_API Result cuStreamBeginCapture_v2(Stream* stream, CaptureMode mode) {
  return without_last_error([&] { return cudaStreamBeginCapture(stream, mode); });
}
HANDOFF_API Result cuStreamEndCapture(Stream* stream, Graph** out) {
  return without_last_error([&] { return cudaStreamEndCapture(stream, out); });
}
HANDOFF_API Result cuStreamIsCapturing(Stream* stream, CaptureStatus* status) {
  return without_last_error([&] { return cudaStreamIsCapturing(stream, status); });
}
HANDOFF_API Result cuStreamGetCaptureInfo_v3(Stream* stream, CaptureStatus* status, unsigned long long* id,
                                             Graph** graph, GraphNode* const** dependencies, const void** edge_data,
                                             size_t* count) {
  return without_last_error(
      [&] { return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edge_data, count); });
}
HANDOFF_API Result cuStreamGetCaptureInfo_v2(Stream* stream, CaptureStatus* status, unsigned long long* id,
                                             Graph** graph, GraphNode* const** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}
HANDOFF_API Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return without_last_error([&] { return cudaThreadExchangeStreamCaptureMode(mode); });
}

// --- programs built with --default-stream per-thread ---

HANDOFF_API decltype(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz
    __attribute__((alias("cudaStreamBeginCapture")));
HANDOFF_API decltype(cudaStreamEndCapture) cudaStreamEndCapture_ptsz __attribute__((alias("cudaStreamEndCapture")));
HANDOFF_API decltype(cudaStreamIsCapturing) cudaStreamIsCapturing_ptsz __attribute__((alias("cudaStreamIsCapturing")));
HANDOFF_API decltype(cudaStreamGetCaptureInfo) cudaStreamGetCaptureInfo_ptsz
    __attribute__((alias("cudaStreamGetCaptureInfo")));
HANDOFF_API decltype(cudaGraphInstantiateWithParams) cudaGraphInstantiateWithParams_ptsz
    __attribute__((alias("cudaGraphInstantiateWithParams")));
HANDOFF_API decltype(cudaGraphUpload) cudaGraphUpload_ptsz __attribute__((alias("cudaGraphUpload")));
HANDOFF_API decltype(cudaGraphLaunch) cudaGraphLaunch_ptsz __attribute__((alias("cudaGraphLaunch")));
HANDOFF_API decltype(cuGraphLaunch) cuGraphLaunch_ptsz __attribute__((alias("cuGraphLaunch")));
HANDOFF_API decltype(cuStreamBeginCapture_v2) cuStreamBeginCapture_v2_ptsz
    __attribute__((alias("cuStreamBeginCapture_v2")));
HANDOFF_API decltype(cuStreamEndCapture) cuStreamEndCapture_ptsz __attribute__((alias("cuStreamEndCapture")));
HANDOFF_API decltype(cuStreamIsCapturing) cuStreamIsCapturing_ptsz __attribute__((alias("cuStreamIsCapturing")));
