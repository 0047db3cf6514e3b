// Work in streams, and graphs of it.
//
// A stream's work is done when it is asked for (runtime.cc), so that most streams have nothing in them. While a stream
// is captured, its work is kept instead, as nodes of a graph; a launch of the graph does the work of its nodes one
// after the other, each behind those that it depends on.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "grader/runtime/runtime.h"

namespace handoff::runtime {

/// cudaGraphNodeType: those that the library has.
enum class NodeType : int { Kernel, Memcpy, Memset, Host, Graph, Empty, WaitEvent, EventRecord };

/// What a node does.
using Work = std::function<Outcome(Runtime&)>;

struct Graph;

/// A launch with its arguments, to be done later, or again.
struct KernelLaunch {
  Kernel* kernel = nullptr;      ///< decoded
  LaunchShape shape;             ///< as asked for
  std::vector<std::byte> block;  ///< the parameters, as they were then
};

/// cudaGraphNode_t. A node does `work`, calls `host`, or stands for the nodes of `child`.
struct GraphNode {
  GraphNode();
  ~GraphNode();
  GraphNode(const GraphNode&) = delete;
  GraphNode& operator=(const GraphNode&) = delete;
  /// Is there such a node?
  static bool is_alive(const GraphNode* node);

  NodeType type = NodeType::Empty;       ///< what kind of work
  Work work;                             ///< empty: none
  std::function<void()> host;            ///< a function of the program, called without the lock
  std::shared_ptr<const Graph> child;    ///< a graph inside this one
  std::shared_ptr<KernelLaunch> launch;  ///< of a kernel node: what `work` launches
  std::vector<void*> arguments;          ///< of a kernel node: where cudaGraphKernelNodeGetParams says that they are
  std::vector<GraphNode*> after;         ///< the nodes that it depends on
  Graph* graph = nullptr;                ///< in which it is
  const GraphNode* original = nullptr;   ///< in a clone: that which it is a copy of
};

/// cudaGraph_t.
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  ///< in the order in which they were added
};

/// May work be put into this stream? 0, 1 and 2 are the default streams.
Outcome check_stream(Runtime& r, Stream* stream);
/// May this thread do now what would disturb a capture: allocate, free, wait for the device, use an implicit stream?
Outcome check_no_capture(Runtime& r);
/// Is the stream being captured?
bool is_captured(Stream* stream);
/// May the stream be waited for, or asked? Not while it is captured; the capture is then invalid.
Outcome check_not_captured(Runtime& r, Stream* stream);
/// The same for an event, whose last record may be a part of a capture.
Outcome check_not_captured(Runtime& r, Event* event);
/// Records an event in a stream, or notes in a captured stream up to where.
Outcome record_event(Runtime& r, Event* event, Stream* stream, bool external);
/// Makes a stream wait for an event; one of a captured stream draws `stream` into the capture.
Outcome wait_event(Runtime& r, Stream* stream, Event* event, bool external);
/// Forgets what the capture knows of an event that ends.
void forget_event(Event* event);
/// May the stream end? A captured one invalidates its capture.
void forget_stream(Stream* stream);

/// Does the work now, or keeps it where the stream is captured.
Outcome enqueue(Runtime& r, Stream* stream, NodeType type, const Work& work);
/// The same as a call of the API.
inline Error call_in(const char* name, Stream* stream, NodeType type, const Work& work) {
  return call(name, [&](Runtime& r) { return enqueue(r, stream, type, work); });
}
/// A launch, now or later. `packed` as for Runtime::launch.
Outcome enqueue_launch(Runtime& r, Stream* stream, Kernel& kernel, const LaunchShape& shape, void** args,
                       const std::vector<std::byte>* packed = nullptr);
/// A function of the program, called now or later, without the lock.
Error enqueue_host(const char* name, Stream* stream, std::function<void()> function);

}  // namespace handoff::runtime
