// Tested by trace_file_test.cc.
//
// The Trace Event format ("Trace Event Format", the Chromium project): an array of objects, in which "ph" is the kind
// of event (X: a span, i: a moment, b and e: the ends of a span that may overlap others of its row, M: a name), "ts"
// and "dur" are microseconds, and "pid" and "tid" say to which group of rows and to which row the event belongs. The
// program is a group with one row, its launches; each block is a group whose rows are its warps and its units. A viewer
// takes 32 bits for a group, of which the process's number is a part, so that processes of one program keep apart.
#include "grader/runtime/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

namespace handoff::runtime {
namespace {

using Json = nlohmann::ordered_json;
using Kind = trace::Event::Kind;

constexpr uint64_t kGroups = 1000;    // of one process: the program, and its first blocks
constexpr size_t kPiece = 1 << 20;    // bytes that are written at a time
constexpr uint64_t kFirstWarp = 100;  // rows of a block: its units, then its warps
enum Row : uint64_t { kLaunches = 0, kLoads, kStores, kTensorCore, kHardware };

std::string row_name(uint64_t row) {
  switch (row) {
    case kLaunches:
      return "launches";
    case kLoads:
      return "copy engine, loads";
    case kStores:
      return "copy engine, stores";
    case kTensorCore:
      return "tensor core";
    case kHardware:
      return "asynchronous";
    default:
      return fmt::format("warp {}", row - kFirstWarp);
  }
}

Json arguments_of(const trace::Event& e) {
  Json args = {{"cycle", e.cycle}};
  if (e.line != 0) args["line"] = e.line;
  if (!e.object.empty()) args["object"] = e.object;
  if (e.mask != 0) args["lanes"] = fmt::format("{:#010x}", e.mask);
  switch (e.kind) {
    case Kind::Init:
    case Kind::Inval:
    case Kind::Expect:
    case Kind::Complete:
    case Kind::Arrive:
    case Kind::PhaseComplete:
    case Kind::WaitTrue:
    case Kind::WaitFalse:
      args.update({{"phase", e.phase}, {"pending", e.pending}, {"tx-count", e.tx}});
      break;
    default:
      break;
  }
  if (e.bytes != 0) args["bytes"] = e.bytes;
  return args;
}

}  // namespace

/// One launch on its way into the file.
class TraceFile::Writer {
 public:
  Writer(TraceFile& file, uint64_t launch, uint64_t begin) : file_(file), launch_(launch), begin_(begin) {
    fd_ = open(file.path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd_ < 0) failed_ = errno;
  }
  ~Writer() {
    if (fd_ >= 0) close(fd_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void span(uint64_t group, uint64_t row, uint64_t begin, uint64_t end, const std::string& name, Json args = {}) {
    Json e = event("X", group, row, begin, name, std::move(args));
    e["dur"] = microseconds(std::max<uint64_t>(end - begin, 1));
    put(e);
  }
  void spans(uint64_t group, uint64_t row, const std::vector<trace::Span>& all, const std::string& name) {
    for (const trace::Span& s : all) {
      if (file_.full_) return;
      span(group, row, s.begin, s.end, name);
    }
  }
  void moment(const trace::Event& e) {
    const uint64_t row = e.warp >= 0 ? kFirstWarp + static_cast<uint64_t>(e.warp) : uint64_t{kHardware};
    const std::string name = std::string(trace::name_of(e.kind)) + (e.object.empty() ? "" : " " + e.object);
    Json json = event("i", uint64_t{e.cta} + 1, row, e.cycle, name, arguments_of(e));
    json["s"] = "t";
    put(json);
  }
  /// An asynchronous operation: from its issue to the last that was heard of it.
  void operation(const trace::Event& issued, uint64_t end) {
    const bool mma = issued.kind == Kind::MmaIssued;
    for (const bool first : {true, false}) {
      Json e = event(first ? "b" : "e", uint64_t{issued.cta} + 1, kHardware, first ? issued.cycle : end,
                     mma ? "mma" : "copy", first ? arguments_of(issued) : Json());
      e["cat"] = mma ? "mma" : "copy";
      e["id"] = fmt::format("{}.{}", launch_, issued.op);
      put(e);
    }
  }
  /// Writes what is left; 0, or what failed.
  int finish() {
    write_out();
    return failed_;
  }

 private:
  // The viewer's times are floating point; below 2^53 they hold a thousandth of their unit well enough.
  static double microseconds(uint64_t cycles) { return static_cast<double>(cycles) / 1000; }

  Json event(const char* phase, uint64_t group, uint64_t row, uint64_t cycle, const std::string& name, Json args) {
    if (file_.named_.insert({id(group), row}).second) name_row(group, row);
    Json e = {{"ph", phase}, {"pid", id(group)}, {"tid", row}, {"ts", microseconds(begin_ + cycle)}, {"name", name}};
    if (!args.is_null()) e["args"] = std::move(args);
    return e;
  }
  void name_row(uint64_t group, uint64_t row) {
    const auto metadata = [&](const char* what, const Json& args) {
      put({{"ph", "M"}, {"pid", id(group)}, {"tid", row}, {"name", what}, {"args", args}});
    };
    if (file_.named_.insert({id(group), UINT64_MAX}).second) {
      metadata("process_name", {{"name", group == 0 ? std::string(program_invocation_short_name)
                                                    : fmt::format("block {}", group - 1)}});
      metadata("process_sort_index", {{"sort_index", id(group)}});
    }
    metadata("thread_name", {{"name", row_name(row)}});
    metadata("thread_sort_index", {{"sort_index", row}});
  }
  static uint64_t id(uint64_t group) { return static_cast<uint64_t>(getpid()) * kGroups + group; }

  void put(const Json& e) {
    if (file_.full_) return;
    const std::string line = e.dump(-1, ' ', false, Json::error_handler_t::replace) + ",\n";
    if (file_.written_ + line.size() > file_.limit_) {
      file_.full_ = true;
      return;
    }
    file_.written_ += line.size();
    text_ += line;
    if (text_.size() >= kPiece) write_out();
  }
  void write_out() {
    if (failed_ == 0 && !text_.empty()) {
      // One write, so that lines of several processes do not mix.
      const ssize_t done = write(fd_, text_.data(), text_.size());
      if (done != static_cast<ssize_t>(text_.size())) failed_ = done < 0 ? errno : ENOSPC;
    }
    text_.clear();
  }

  TraceFile& file_;
  uint64_t launch_, begin_;
  int fd_ = -1, failed_ = 0;
  std::string text_;
};

std::string TraceFile::add(const RunRecord& launch, const trace::Trace& trace, uint64_t begin) {
  Writer out(*this, launch.number, begin);
  Json args = {{"launch", launch.number},         {"shape", launch.shape},
               {"status", launch.status},         {"schedule", launch.schedule},
               {"cycles", launch.modeled_cycles}, {"warp-instructions", trace.totals.warp_instructions}};
  if (trace.truncated) args["events"] = fmt::format("the first {} only", trace.events.size());
  out.span(0, kLaunches, 0, launch.modeled_cycles, launch.kernel, std::move(args));
  const trace::Activity& first = trace.first_cta;
  out.spans(1, kLoads, first.loads, "loads");
  out.spans(1, kStores, first.stores, "stores");
  out.spans(1, kTensorCore, first.mmas, "multiplies");
  for (size_t w = 0; w < first.warps.size(); ++w) out.spans(1, kFirstWarp + w, first.warps[w], "runs");
  struct Operation {
    const trace::Event* issued = nullptr;
    uint64_t end = 0;
  };
  std::map<uint64_t, Operation> operations;  // by id
  for (const trace::Event& e : trace.events) {
    if (full_) break;
    if (e.cta + 1 >= kGroups) continue;
    out.moment(e);
    if (e.kind == Kind::CopyIssued || e.kind == Kind::MmaIssued) {
      operations[e.op].issued = &e;
    } else if (e.kind == Kind::CopyRead || e.kind == Kind::CopyWritten || e.kind == Kind::CopySignalled ||
               e.kind == Kind::MmaDone) {
      operations[e.op].end = e.cycle;
    }
  }
  for (const auto& [id, operation] : operations) {
    if (operation.issued != nullptr && operation.end >= operation.issued->cycle) {
      out.operation(*operation.issued, operation.end);
    }
  }
  if (const int failed = out.finish(); failed != 0) {
    full_ = true;
    return fmt::format("cannot write the trace {}: {}", path_, std::strerror(failed));
  }
  if (full_) return fmt::format("the trace ends in launch {}: it has {} MiB", launch.number, limit_ >> 20);
  if (trace.truncated && !told_truncated_) {
    told_truncated_ = true;
    return fmt::format("the trace has the first {} events of a launch; launch {} has more", trace.events.size(),
                       launch.number);
  }
  return {};
}

}  // namespace handoff::runtime
