// Captures of streams, and the graphs that are alive: what graph.cc and api_graph.cc share. All under the runtime's
// lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "grader/runtime/graph.h"

namespace handoff::runtime {

/// A capture that has begun.
struct Capture {
  Stream* origin = nullptr;                         ///< in which it began, and has to end
  CaptureMode mode = CaptureMode::Global;           ///< what it forbids to whom
  std::thread::id thread;                           ///< that began it
  uint64_t id = 0;                                  ///< from 1
  std::unique_ptr<Graph> owned;                     ///< becomes the caller's at the end
  Graph* graph = nullptr;                           ///< the same, while it grows
  bool invalid = false;                             ///< it can only be ended
  std::map<Stream*, std::vector<GraphNode*>> last;  ///< the nodes on which the next one of a stream depends
};

/// What an event stands for that was recorded in a captured stream.
struct CapturedEvent {
  std::weak_ptr<Capture> capture;  ///< null: it has ended
  std::vector<GraphNode*> last;    ///< the stream's last nodes then
};

/// All of them.
struct Captures {
  std::map<Stream*, std::shared_ptr<Capture>> streams;  ///< those that are being captured
  std::map<Event*, CapturedEvent> events;               ///< those recorded last in such a stream
  uint64_t count = 0;                                   ///< begun so far

  /// The capture of which the stream is a part; nullptr: none.
  Capture* of(Stream* stream) const;
  /// cudaThreadExchangeStreamCaptureMode's value for this thread.
  static CaptureMode& thread_mode();
};
/// The one object.
Captures& captures();

/// cudaStreamBeginCapture and cudaStreamEndCapture.
///@{
Outcome begin_capture(Runtime& r, Stream* stream, CaptureMode mode);
Outcome end_capture(Runtime& r, Stream* stream, Graph** out);
///@}

/// The graphs that are alive.
std::set<Graph*>& graphs();
/// The nodes, each behind those that it depends on, otherwise as they were added; false: some depend on each other.
bool in_order(const Graph& graph, std::vector<const GraphNode*>* out);
/// Makes the node one that launches a kernel, which has been decoded, with the arguments as they are now.
void set_kernel(GraphNode* node, Kernel& kernel, const LaunchShape& shape, void** args,
                const std::vector<std::byte>* packed);
/// The work of a launch.
Work launch_work(std::shared_ptr<const KernelLaunch> launch);

}  // namespace handoff::runtime
