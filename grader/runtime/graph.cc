// Tested by programs/graph.cu and programs/capture.cu.
//
// A capture begins in one stream, its origin. An event that is recorded in a captured stream stands for the nodes that
// were the stream's last ones; a stream that waits for the event joins the capture, and its next node depends on these.
// At its end everything must have come back to the origin in the same way (CUDA Programming Guide, "Creating a Graph
// Using Stream Capture"). What a real stream would do in the background, or what would wait for it, is forbidden in the
// meantime, and a call that tries leaves a capture that can only be ended, with an error.
#include "grader/runtime/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <unordered_set>
#include <utility>

#include "grader/runtime/capture.h"

namespace handoff::runtime {
namespace {

constexpr unsigned kNonBlockingStream = 1;

Outcome invalidated(Capture& capture, Error code, std::string why) {
  capture.invalid = true;
  return {code, std::move(why)};
}

Outcome already_invalid() { return {kStreamCaptureInvalidated, "an earlier call made the capture invalid"}; }

/// Does the legacy stream wait for this one, and this one for it?
bool is_blocking(Runtime& r, Stream* stream) {
  return r.streams.count(stream) == 0 || (stream->flags & kNonBlockingStream) == 0;
}

/// Work in the legacy stream would depend on work that is only recorded.
Outcome check_implicit(Runtime& r) {
  for (const auto& [stream, capture] : captures().streams) {
    if (is_blocking(r, stream)) {
      return invalidated(*capture, kStreamCaptureImplicit, "a stream that waits for the legacy one is captured");
    }
  }
  return {};
}

bool is_legacy(Stream* stream) { return reinterpret_cast<uintptr_t>(stream) <= 1; }

/// A node for what the stream does next, behind what it did last.
GraphNode* add_captured(Capture& capture, Stream* stream, NodeType type) {
  auto node = std::make_unique<GraphNode>();
  node->type = type;
  node->graph = capture.graph;
  node->after = capture.last[stream];
  GraphNode* const raw = node.get();
  capture.graph->nodes.push_back(std::move(node));
  capture.last[stream] = {raw};
  return raw;
}

/// The whole parameter block of a launch.
std::vector<std::byte> pack(const Kernel& kernel, void** args) {
  std::vector<std::byte> block(kernel.program->param_bytes);
  for (size_t i = 0; i < kernel.program->parameters.size(); ++i) {
    const machine::Parameter& p = kernel.program->parameters[i];
    if (p.size != 0) std::copy_n(static_cast<const std::byte*>(args[i]), p.size, block.begin() + p.offset);
  }
  return block;
}

std::unordered_set<const GraphNode*>& nodes() {
  static auto* const kNodes = new std::unordered_set<const GraphNode*>;
  return *kNodes;
}

}  // namespace

GraphNode::GraphNode() { nodes().insert(this); }
GraphNode::~GraphNode() { nodes().erase(this); }
bool GraphNode::is_alive(const GraphNode* node) { return nodes().count(node) != 0; }

Captures& captures() {
  static auto* const kCaptures = new Captures;  // programs call the API from destructors of their own
  return *kCaptures;
}

Capture* Captures::of(Stream* stream) const {
  const auto found = streams.find(stream);
  return found == streams.end() ? nullptr : found->second.get();
}

CaptureMode& Captures::thread_mode() {
  thread_local CaptureMode mode = CaptureMode::Global;
  return mode;
}

Outcome check_stream(Runtime& r, Stream* stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2 || r.streams.count(stream) != 0
             ? Outcome{}
             : Outcome{kInvalidResourceHandle, "it is not a stream"};
}

bool is_captured(Stream* stream) { return captures().of(stream) != nullptr; }

Outcome check_no_capture(Runtime&) {
  if (Captures::thread_mode() == CaptureMode::Relaxed) return {};
  for (const auto& [stream, capture] : captures().streams) {
    const bool ours = capture->thread == std::this_thread::get_id();
    const bool forbids = capture->mode == CaptureMode::Global ? ours || Captures::thread_mode() == CaptureMode::Global
                                                              : capture->mode == CaptureMode::ThreadLocal && ours;
    if (forbids) return invalidated(*capture, kStreamCaptureUnsupported, "a stream is being captured");
  }
  return {};
}

Outcome check_not_captured(Runtime& r, Stream* stream) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  if (Capture* const capture = captures().of(stream)) {
    return invalidated(*capture, kStreamCaptureUnsupported, "the stream is being captured");
  }
  return is_legacy(stream) ? check_implicit(r) : Outcome{};
}

Outcome check_not_captured(Runtime& r, Event* event) {
  if (r.events.count(event) == 0) return {kInvalidResourceHandle, "it is not an event"};
  const auto found = captures().events.find(event);
  if (found == captures().events.end()) return {};
  const std::shared_ptr<Capture> capture = found->second.capture.lock();
  const char* const kWhy = "the event was recorded last in a stream that was captured";
  return capture == nullptr ? Outcome{kCapturedEvent, kWhy} : invalidated(*capture, kCapturedEvent, kWhy);
}

Outcome record_event(Runtime& r, Event* event, Stream* stream, bool external) {
  if (r.events.count(event) == 0) return {kInvalidResourceHandle, "it is not an event"};
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  const auto record = [event](Runtime& runtime) -> Outcome {
    if (runtime.events.count(event) == 0) return {kInvalidResourceHandle, "the event was destroyed"};
    event->recorded = true;
    event->ms = runtime.modeled_ms();
    return {};
  };
  Capture* const capture = captures().of(stream);
  if (capture == nullptr || external) {
    captures().events.erase(event);
    return enqueue(r, stream, NodeType::EventRecord, record);
  }
  captures().events[event] = {captures().streams[stream], capture->last[stream]};
  return {};
}

Outcome wait_event(Runtime& r, Stream* stream, Event* event, bool external) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  if (r.events.count(event) == 0) return {kInvalidResourceHandle, "it is not an event"};
  Capture* const own = captures().of(stream);
  if (external && own != nullptr) return enqueue(r, stream, NodeType::WaitEvent, [](Runtime&) { return Outcome{}; });
  const auto known = captures().events.find(event);
  const std::shared_ptr<Capture> theirs = known == captures().events.end() ? nullptr : known->second.capture.lock();
  if (theirs == nullptr) {
    if (own == nullptr || !event->recorded) return {};
    return invalidated(*own, kStreamCaptureIsolation, "the event was recorded outside the capture");
  }
  if (own != nullptr && own != theirs.get()) {
    theirs->invalid = true;
    return invalidated(*own, kStreamCaptureMerge, "the event was recorded in another capture");
  }
  if (is_legacy(stream)) return invalidated(*theirs, kStreamCaptureImplicit, "the legacy stream cannot be captured");
  captures().streams[stream] = theirs;
  std::vector<GraphNode*>& last = theirs->last[stream];
  for (GraphNode* node : known->second.last) {
    if (std::find(last.begin(), last.end(), node) == last.end()) last.push_back(node);
  }
  return {};
}

void forget_event(Event* event) { captures().events.erase(event); }

void forget_stream(Stream* stream) {
  if (Capture* const capture = captures().of(stream)) {
    capture->invalid = true;
    captures().streams.erase(stream);
  }
}

Outcome enqueue(Runtime& r, Stream* stream, NodeType type, const Work& work) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  Capture* const capture = captures().of(stream);
  if (capture == nullptr) {
    if (is_legacy(stream)) outcome = check_implicit(r);
    return outcome.code == kSuccess ? work(r) : outcome;
  }
  if (capture->invalid) return already_invalid();
  add_captured(*capture, stream, type)->work = work;
  return {};
}

Outcome enqueue_launch(Runtime& r, Stream* stream, Kernel& kernel, const LaunchShape& shape, void** args,
                       const std::vector<std::byte>* packed) {
  Capture* const capture = captures().of(stream);
  if (capture == nullptr) {
    return enqueue(r, stream, NodeType::Kernel,
                   [&](Runtime& runtime) { return runtime.launch(kernel, shape, args, packed); });
  }
  if (capture->invalid) return already_invalid();
  Outcome decoded = r.decode(kernel);
  if (decoded.code != kSuccess) return decoded;
  Outcome checked = r.check_shape(kernel, shape);
  if (checked.code != kSuccess) return invalidated(*capture, checked.code, checked.why);
  set_kernel(add_captured(*capture, stream, NodeType::Kernel), kernel, shape, args, packed);
  return {};
}

Work launch_work(std::shared_ptr<const KernelLaunch> launch) {
  return [launch = std::move(launch)](Runtime& r) {
    return r.launch(*launch->kernel, launch->shape, nullptr, &launch->block);
  };
}

void set_kernel(GraphNode* node, Kernel& kernel, const LaunchShape& shape, void** args,
                const std::vector<std::byte>* packed) {
  node->launch = std::make_shared<KernelLaunch>();
  *node->launch = {&kernel, shape, packed != nullptr ? *packed : pack(kernel, args)};
  node->work = launch_work(node->launch);
}

Error enqueue_host(const char* name, Stream* stream, std::function<void()> function) {
  bool now = false;
  const Error error = call(name, [&](Runtime& r) -> Outcome {
    Outcome outcome = check_stream(r, stream);
    Capture* const capture = captures().of(stream);
    now = capture == nullptr;
    if (outcome.code != kSuccess) return outcome;
    if (capture == nullptr) return is_legacy(stream) ? check_implicit(r) : Outcome{};
    if (capture->invalid) return already_invalid();
    add_captured(*capture, stream, NodeType::Host)->host = function;
    return {};
  });
  // Everything before it in the stream is done. The lock is not held: the function may be of any kind.
  if (error == kSuccess && now) function();
  return error;
}

Outcome begin_capture(Runtime& r, Stream* stream, CaptureMode mode) {
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  if (mode < CaptureMode::Global || mode > CaptureMode::Relaxed) return {kInvalidValue, "no such mode"};
  if (is_legacy(stream)) return {kStreamCaptureUnsupported, "the legacy stream cannot be captured"};
  if (is_captured(stream)) return {kIllegalState, "the stream is being captured"};
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->id = ++captures().count;
  capture->owned = std::make_unique<Graph>();
  capture->graph = capture->owned.get();
  capture->last[stream] = {};
  captures().streams[stream] = std::move(capture);
  return {};
}

Outcome end_capture(Runtime& r, Stream* stream, Graph** out) {
  *out = nullptr;
  Outcome outcome = check_stream(r, stream);
  if (outcome.code != kSuccess) return outcome;
  const auto found = captures().streams.find(stream);
  if (found == captures().streams.end()) return {kIllegalState, "the stream is not being captured"};
  const std::shared_ptr<Capture> capture = found->second;
  if (capture->mode != CaptureMode::Relaxed && capture->thread != std::this_thread::get_id()) {
    return {kStreamCaptureWrongThread, "another thread began the capture"};
  }
  if (capture->origin != stream) return invalidated(*capture, kStreamCaptureUnmatched, "it began in another stream");
  std::erase_if(captures().streams, [&](const auto& s) { return s.second == capture; });
  if (capture->invalid) return already_invalid();
  // Everything must lie before the last nodes of the origin.
  std::set<const GraphNode*> joined;
  std::vector<const GraphNode*> pending(capture->last[stream].begin(), capture->last[stream].end());
  while (!pending.empty()) {
    const GraphNode* const node = pending.back();
    pending.pop_back();
    if (joined.insert(node).second) pending.insert(pending.end(), node->after.begin(), node->after.end());
  }
  if (joined.size() != capture->graph->nodes.size()) {
    return {kStreamCaptureUnjoined,
            fmt::format("{} of {} operations were not joined to the stream in which it began",
                        capture->graph->nodes.size() - joined.size(), capture->graph->nodes.size())};
  }
  *out = capture->owned.release();
  graphs().insert(*out);
  return {};
}

std::set<Graph*>& graphs() {
  static auto* const kGraphs = new std::set<Graph*>;
  return *kGraphs;
}

bool in_order(const Graph& graph, std::vector<const GraphNode*>* out) {
  out->clear();
  std::set<const GraphNode*> done;
  for (bool progress = true; progress && done.size() < graph.nodes.size();) {
    progress = false;
    for (const auto& node : graph.nodes) {
      const auto is_done = [&](const GraphNode* n) { return done.count(n) != 0; };
      if (is_done(node.get()) || !std::all_of(node->after.begin(), node->after.end(), is_done)) continue;
      done.insert(node.get());
      out->push_back(node.get());
      progress = true;
    }
  }
  return done.size() == graph.nodes.size();
}

}  // namespace handoff::runtime
