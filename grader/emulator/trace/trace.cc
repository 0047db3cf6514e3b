#include "grader/emulator/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::trace {

using machine::AsyncOpInfo;
using machine::MbarrierEvent;

void Recorder::launch_begin(machine::Launch& launch) {
  launch_ = &launch;
  if (with_accesses_) by_instruction_.resize(launch.program->code.size());
}

void Recorder::launch_end(machine::Launch& launch) {
  sum_up_lines();
  trace_.totals.warp_instructions = launch.warp_instructions;
  trace_.totals.lane_instructions = launch.lane_instructions;
  launch_ = nullptr;
}

namespace {

/// Spans kept of one unit of the first CTA; what comes later is not shown.
constexpr size_t kMaxSpans = 20'000;

void add_span(std::vector<Span>& spans, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  if (!spans.empty() && begin <= spans.back().end)
    spans.back().end = std::max(spans.back().end, end);
  else if (spans.size() < kMaxSpans)
    spans.push_back({begin, end});
}

}  // namespace

void Recorder::cta_begin(machine::Cta& cta) {
  if (cta.linear != 0) return;
  trace_.first_cta.begin = cta.domain->started;
  trace_.first_cta.warps.resize(cta.warps.size());
}

void Recorder::cta_end(machine::Cta& cta) {
  uint64_t end = cta.domain->started;
  for (const machine::Warp& w : cta.warps) end = std::max(end, w.time);
  trace_.totals.cta_cycles += end - cta.domain->started;
  if (cta.linear == 0) trace_.first_cta.end = end;
}

void Recorder::slice(machine::Warp& warp, uint64_t begin, uint64_t end) {
  if (warp.cta->linear == 0) add_span(trace_.first_cta.warps[warp.index], begin, end);
}

void Recorder::count_work(const AsyncOpInfo& o) {
  const uint64_t cycles = o.busy_until - o.busy_from;
  if (cycles == 0) return;
  const bool mma = o.kind == AsyncOpInfo::Kind::Mma || o.kind == AsyncOpInfo::Kind::TensorMemoryCopy;
  const bool load = o.source_region == machine::Region::Global;
  Totals& t = trace_.totals;
  t.port_busy += o.port_cycles;
  (mma ? t.mma_busy : load ? t.load_busy : t.store_busy) += cycles;
  if (o.warp->cta->linear != 0) return;
  Activity& a = trace_.first_cta;
  a.operations++;
  add_span(mma ? a.mmas : load ? a.loads : a.stores, o.busy_from, o.busy_until);
}

uint64_t Recorder::hardware_time(const machine::Cta& cta) const {
  // What an instruction causes at once, a phase's completion by its last arrive, has that warp's time, which may be
  // ahead of the domain's.
  const uint64_t now = cta.domain->now;
  return launch_->running != nullptr ? std::max(now, launch_->running->time) : now;
}

Event& Recorder::add(Event::Kind kind, const machine::Inst* inst, machine::Warp* warp, machine::Cta* cta,
                     uint64_t cycle) {
  if (trace_.events.size() >= kMaxEvents) {
    trace_.truncated = true;
    return overflow_ = Event{};
  }
  Event& e = trace_.events.emplace_back();
  e.kind = kind;
  e.cycle = cycle;
  if (cta != nullptr) e.cta = cta->linear;
  if (warp != nullptr) {
    e.warp = static_cast<int32_t>(warp->index);
    e.cta = warp->cta->linear;
  }
  if (inst != nullptr) e.line = launch_->program->place(*inst).line;
  return e;
}

void Recorder::access(const machine::Access& a) {
  using Kind = machine::Access::Kind;
  const auto threads = static_cast<uint64_t>(__builtin_popcount(a.mask));
  const uint64_t bytes = a.bytes * threads;
  const bool atomic = a.kind == Kind::Atomic || a.kind == Kind::Reduction;
  Totals& t = trace_.totals;
  if (a.region == machine::Region::Global) {
    if (atomic)
      t.global_atomics += threads;
    else if (a.kind == Kind::Read)
      t.global_load_bytes += bytes;
    else
      t.global_store_bytes += bytes;
  } else if (a.region == machine::Region::Shared) {
    if (atomic)
      t.shared_atomics += threads;
    else if (a.kind == Kind::Read)
      t.shared_load_bytes += bytes;
    else
      t.shared_store_bytes += bytes;
    if (a.owner == a.warp->cta)
      count_shared(a);
    else
      t.distributed_accesses++;
  }
}

// Kept by instruction: the line of one takes longer to find than its wavefronts to count.
void Recorder::count_shared(const machine::Access& a) {
  Counted& c = by_instruction_[static_cast<size_t>(a.inst - launch_->program->code.data())];
  if (c.accesses++ == 0) c.op = shared_op(a.kind, launch_->program->statement(*a.inst));
  const Wavefronts w = count_wavefronts(c.op, a.bytes, a.mask, a.address);
  c.wavefronts += w.taken;
  c.minimum += w.minimum;
  c.ways = std::max(c.ways, w.ways);
}

namespace {

/// st.bulk is told as many accesses of 8 bytes, but its lanes do not meet in the banks as those of a store do.
bool is_bulk_store(const ptx::Statement& s) {
  return s.opcode.size() > 1 && s.opcode[0] == "st" && s.opcode[1] == "bulk";
}

}  // namespace

void Recorder::sum_up_lines() {
  std::map<std::pair<std::string, uint32_t>, SharedLine> lines;
  for (size_t k = 0; k < by_instruction_.size(); k++) {
    const Counted& c = by_instruction_[k];
    const machine::Inst& inst = launch_->program->code[k];
    if (c.accesses == 0 || is_bulk_store(launch_->program->statement(inst))) continue;
    SourcePlace place = launch_->program->place(inst);
    SharedLine& line = lines[{place.file, place.line}];
    line.place = std::move(place);
    line.accesses += c.accesses;
    line.wavefronts += c.wavefronts;
    line.minimum += c.minimum;
    line.ways = std::max(line.ways, c.ways);
    trace_.totals.shared_accesses += c.accesses;
    trace_.totals.shared_wavefronts += c.wavefronts;
    trace_.totals.shared_minimum += c.minimum;
  }
  for (auto& [key, line] : lines) trace_.shared_lines.push_back(std::move(line));
  std::stable_sort(trace_.shared_lines.begin(), trace_.shared_lines.end(),
                   [](const SharedLine& a, const SharedLine& b) { return a.above() > b.above(); });
}

void Recorder::barrier(const machine::BarrierEvent& b) {
  if (b.kind != machine::BarrierEvent::Kind::Complete) return;
  trace_.totals.block_barriers++;
  Event& e = add(Event::Kind::BlockBarrier, nullptr, nullptr, b.warp->cta, b.warp->cta->domain->now);
  e.object = std::to_string(b.id);
  e.phase = b.generation;
}

void Recorder::mbarrier(const MbarrierEvent& m) {
  using Kind = MbarrierEvent::Kind;
  const auto threads = static_cast<uint64_t>(__builtin_popcount(m.mask));
  Totals& t = trace_.totals;
  Event::Kind kind = Event::Kind::Arrive;
  switch (m.kind) {
    case Kind::Init:
      kind = Event::Kind::Init;
      break;
    case Kind::Inval:
      kind = Event::Kind::Inval;
      break;
    case Kind::ExpectTx:
      kind = Event::Kind::Expect;
      t.expected_bytes += static_cast<uint64_t>(m.bytes);
      break;
    case Kind::CompleteTx:
      kind = Event::Kind::Complete;
      t.completed_bytes += static_cast<uint64_t>(m.bytes);
      break;
    case Kind::ArriveExpectTx:
      t.expected_bytes += static_cast<uint64_t>(m.bytes);
      [[fallthrough]];
    case Kind::Arrive:
    case Kind::ArriveDrop:
      t.arrivals += threads;
      break;
    case Kind::CopyArrive:
      break;
    case Kind::PhaseComplete:
      kind = Event::Kind::PhaseComplete;
      t.phases++;
      break;
    case Kind::TestTrue:
      kind = Event::Kind::WaitTrue;
      t.waits_true += threads;
      break;
    case Kind::TestFalse:
      kind = Event::Kind::WaitFalse;
      t.waits_false += threads;
      break;
  }
  Event& e = add(kind, m.inst, m.warp, m.owner, m.warp != nullptr ? m.warp->time : hardware_time(*m.owner));
  e.mask = m.mask;
  e.object = async::barrier_name(*m.owner, m.offset);
  e.phase = m.phase;
  e.bytes = m.bytes;
  e.pending = m.pending;
  e.tx = m.tx;
  e.op = m.op;
}

void Recorder::async_op(const AsyncOpInfo& o, AsyncOpInfo::Milestone milestone) {
  using Milestone = AsyncOpInfo::Milestone;
  if (milestone == Milestone::Issued) count_work(o);
  if (o.kind == AsyncOpInfo::Kind::Mma || o.kind == AsyncOpInfo::Kind::TensorMemoryCopy) {  // tensor() tells more
    mma_ = {o.busy_from, o.busy_until};
    return;
  }
  Totals& t = trace_.totals;
  const bool cp_async = o.kind == AsyncOpInfo::Kind::CpAsync;
  const bool copies = o.kind != AsyncOpInfo::Kind::LaunchCancel;  // the others move data
  if (milestone == Milestone::Issued && !cp_async && copies) t.bulk_copies++;
  if (milestone == Milestone::Written && copies) {
    if (cp_async) {
      t.cp_async_bytes += o.bytes;
    } else if (o.destination_owner != nullptr) {
      t.bulk_bytes_to_shared += o.bytes;
    } else if (o.global_runs == nullptr) {
      t.bulk_bytes_to_global += o.bytes;
    } else {
      for (const machine::ByteRun& r : *o.global_runs) t.bulk_bytes_to_global += r.bytes;
    }
  }
  static constexpr Event::Kind kKinds[] = {Event::Kind::CopyIssued, Event::Kind::CopyRead, Event::Kind::CopyWritten,
                                           Event::Kind::CopySignalled};
  Event& e = add(kKinds[static_cast<size_t>(milestone)], o.inst, milestone == Milestone::Issued ? o.warp : nullptr,
                 o.warp->cta, milestone == Milestone::Issued ? o.warp->time : hardware_time(*o.warp->cta));
  e.mask = 1u << o.lane;
  e.bytes = o.bytes;
  e.op = o.id;
  if (milestone == Milestone::Issued) {
    e.busy_from = o.busy_from;
    e.busy_until = o.busy_until;
  }
  if (o.destination_owner != nullptr)
    e.object = launch_->program->describe_shared(static_cast<uint32_t>(o.destination));
}

void Recorder::tensor(const machine::TensorEvent& m) {
  using Kind = machine::TensorEvent::Kind;
  Totals& t = trace_.totals;
  Event::Kind kind = Event::Kind::MmaDone;
  switch (m.kind) {
    case Kind::Alloc:
      kind = Event::Kind::TmemAlloc;
      t.tmem_allocations++;
      t.tmem_columns += m.regions->front().columns;
      break;
    case Kind::Dealloc:
      kind = Event::Kind::TmemDealloc;
      break;
    case Kind::Load:
      kind = Event::Kind::TmemLoad;
      t.tmem_load_bytes += m.amount;
      break;
    case Kind::Store:
      kind = Event::Kind::TmemStore;
      t.tmem_store_bytes += m.amount;
      break;
    case Kind::Mma:
      kind = Event::Kind::MmaIssued;
      t.mma_instructions++;
      t.mma_flops += m.amount;
      break;
    case Kind::MmaDone:
      break;
    case Kind::Copy:
      kind = Event::Kind::CopyIssued;
      break;
    case Kind::CopyDone:
      kind = Event::Kind::CopyWritten;
      break;
    case Kind::Commit:
      kind = Event::Kind::TcgenCommit;
      if (!m.further) t.tcgen_commits++;
      break;
    case Kind::Relinquish:
    case Kind::WaitLoad:
    case Kind::WaitStore:
    case Kind::FenceBefore:
    case Kind::FenceAfter:
      return;
  }
  const bool done = m.kind == Kind::MmaDone || m.kind == Kind::CopyDone;
  Event& e = add(kind, m.inst, done ? nullptr : m.warp, m.warp->cta, done ? hardware_time(*m.warp->cta) : m.warp->time);
  e.mask = m.mask;
  e.op = m.op;
  if (m.kind == Kind::Mma || m.kind == Kind::Copy) {
    e.busy_from = mma_.begin;
    e.busy_until = mma_.end;
  }
  if (m.kind == Kind::Load || m.kind == Kind::Store || m.kind == Kind::Copy) e.bytes = static_cast<int64_t>(m.amount);
  if (m.kind == Kind::Commit) {
    e.object = async::barrier_name(*m.barrier_owner, m.barrier);
  } else if (m.regions != nullptr) {
    const machine::TensorRegion& r = m.regions->front();
    e.object = fmt::format("columns {}-{}", r.column, r.column + r.columns - 1);
  }
}

void Recorder::group(const machine::GroupEvent& g) {
  const bool commit =
      g.kind == machine::GroupEvent::Kind::BulkCommit || g.kind == machine::GroupEvent::Kind::CpAsyncCommit;
  Event& e = add(commit ? Event::Kind::Commit : Event::Kind::GroupWait, g.inst, g.warp, g.warp->cta, g.warp->time);
  e.mask = g.mask;
}

const char* name_of(Event::Kind kind) {
  using Kind = Event::Kind;
  switch (kind) {
    case Kind::CopyIssued:
      return "copy issued";
    case Kind::CopyRead:
      return "copy has read";
    case Kind::CopyWritten:
      return "copy has written";
    case Kind::CopySignalled:
      return "copy has signalled";
    case Kind::Init:
      return "init";
    case Kind::Inval:
      return "inval";
    case Kind::Expect:
      return "expect_tx";
    case Kind::Complete:
      return "complete_tx";
    case Kind::Arrive:
      return "arrive";
    case Kind::PhaseComplete:
      return "phase complete";
    case Kind::WaitTrue:
      return "wait: true";
    case Kind::WaitFalse:
      return "wait: false";
    case Kind::BlockBarrier:
      return "block barrier";
    case Kind::Commit:
      return "commit group";
    case Kind::GroupWait:
      return "wait group";
    case Kind::TmemAlloc:
      return "tmem alloc";
    case Kind::TmemDealloc:
      return "tmem dealloc";
    case Kind::TmemLoad:
      return "tmem load";
    case Kind::TmemStore:
      return "tmem store";
    case Kind::MmaIssued:
      return "mma issued";
    case Kind::MmaDone:
      return "mma done";
    case Kind::TcgenCommit:
      return "tcgen05 commit";
  }
  return "";
}

}  // namespace handoff::trace
