// Tested by tcgen05_test.cc and tcgen05_pair_test.cc.
//
// Tensor memory and the tensor core (PTX §9.7.16).
//
// alloc, dealloc and relinquish_alloc_permit are done by a whole warp. The CTAs that reside on one SM share its 512
// columns, so an alloc may have to wait for another CTA's dealloc. New columns hold poison.
//
// ld and st do their work where they are issued; until wait::ld or wait::st they only count as unfinished (the checker
// knows), and the wait takes the time that is left. mma is an operation of its own: it reads its operands and writes D
// when it is done, not when it is issued, so a schedule may let it see what came later, or show D too early. The tensor
// core takes one operation after the other in order of issue: MMAs of one accumulator and the commit behind them are
// ordered by the ISA (§9.7.16.6.2), and of others the checker says what is missing. A commit waits in the same queue
// behind its thread's last MMA; with nothing outstanding it arrives at once.
//
// D is poisoned at issue if the MMA does not read it and nothing else is in the queue.
//
// With .cta_group::2 two CTAs of a cluster work as one: ranks 2·k and 2·k + 1 are a pair (§9.7.16.5.1). Alloc is done
// by a warp of each: the first waits for the second, and both are given the same columns, since addresses of tensor
// memory hold for both. Dealloc may wait for the other warp (§9.7.16.7.1, Table 48): here it does on lazy and reverse
// schedules and sometimes on random ones. One thread of either CTA issues mma and cp for both; they read the same
// offsets of both CTAs' shared memory and write the same columns of both CTAs' tensor memory. All such operations of a
// pair pass one queue, that of the even CTA.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/async/mma_compute.h"
#include "grader/emulator/async/mma_descriptor.h"
#include "grader/emulator/async/mma_pair.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async {

using machine::AsyncOpInfo;
using machine::DecodeContext;
using machine::Domain;
using machine::for_lanes;
using machine::kNoOperand;
using machine::lanes;
using machine::make_fault;
using machine::MatrixRead;
using machine::Region;
using machine::TensorEvent;
using machine::TensorRegion;
using machine::WaitTarget;
using ptx::Type;

struct TensorCoreItem {
  enum class Kind : uint8_t { Mma, Copy, Commit };
  Kind kind = Kind::Mma;
  uint64_t time = 0;  ///< when it is done by the timing model
  const Inst* inst = nullptr;
  Warp* warp = nullptr;
  int lane = 0;
  uint64_t id = 0;  ///< of an MMA or copy; of a commit the last one that it tracks
  /// Of an MMA or copy, the CTAs whose memory it touches: one, or the pair, the even one first.
  ///@{
  Cta* first = nullptr;
  Cta* second = nullptr;
  ///@}
  MmaOperation mma;                                  ///< Mma
  std::array<uint32_t, 8> disable_output_lane = {};  ///< Mma: of the first CTA, then of the second
  /// Copy: what, from where and to where.
  ///@{
  TensorCopyForm copy;
  std::vector<uint32_t> units;
  TensorCell at;
  ///@}
  /// Commit: whose barriers, at one offset.
  ///@{
  std::vector<Cta*> barrier_owners;
  uint32_t barrier = 0;
  ///@}

  bool touches(const Cta& cta) const { return kind != Kind::Commit && (first == &cta || second == &cta); }
};

TensorCore::TensorCore() = default;
TensorCore::~TensorCore() = default;

namespace {

void notify(Cta& cta, const TensorEvent& event) {
  if (machine::Observer* o = machine::watcher(*cta.launch); o != nullptr) o->tensor(event);
}

std::string who(const Warp& w, LaneMask mask) { return machine::describe_lanes(w, mask); }

/// These instructions are a whole warp's: lanes that have left are missing, too (PTX: `.aligned`).
void whole_warp(const Warp& w, LaneMask mask, const char* what) {
  const uint64_t threads = w.cta->launch->config.block.volume() - w.first_thread();
  const LaneMask all = threads >= machine::kWarpSize ? machine::kFullMask : (LaneMask{1} << threads) - 1;
  if (mask == all) return;
  throw make_fault("diverged-collective",
                   fmt::format("{} executes {} without lanes {} of the warp, which have left", who(w, mask), what,
                               machine::lane_ranges(all & ~mask)),
                   "All lanes of the warp execute it together: no election, no branch around it.");
}

/// The value that all lanes pass, or a fault.
uint32_t uniform(Warp& w, uint32_t slot, LaneMask mask, const char* what) {
  const auto* v = lanes<uint32_t>(w.regs, slot);
  const uint32_t first = v[__builtin_ctz(mask)];
  for_lanes(mask, [&](int l) {
    if (v[l] == first) return;
    throw make_fault("diverged-collective", fmt::format("{}: the lanes pass different values of {}, {} and {}",
                                                        who(w, mask), what, first, v[l]));
  });
  return first;
}

std::string describe_allocations(const TensorMemory& m) {
  if (m.allocations.empty()) return "the block has no columns allocated";
  std::string s = "allocated are columns ";
  for (const TensorMemory::Allocation& a : m.allocations)
    s += fmt::format("{}{}-{}", &a == m.allocations.data() ? "" : ", ", a.column, a.column + a.columns - 1);
  return s;
}

// --- pairs -----------------------------------------------------------------------------------------------------------

/// Inst::sub of all that name .cta_group.
constexpr uint8_t kPair = 2;
bool of_pair(const Inst& i) { return (i.sub & kPair) != 0; }

/// The other CTA of the pair; nullptr where the cluster has none.
Cta* peer_of(const Cta& cta) {
  const auto& ctas = cta.domain->ctas;
  const uint32_t rank = cta.rank ^ 1;
  return rank < ctas.size() ? ctas[rank].get() : nullptr;
}
/// The one that keeps the pair's queue.
Cta& even_of(Cta& cta) { return (cta.rank & 1) == 0 ? cta : *peer_of(cta); }

/// What an instruction's .cta_group asks for: all of a kernel name the same one, and a pair has two CTAs. Gives the
/// other CTA; nullptr with .cta_group::1.
Cta* check_group(Warp& w, const Inst& i, LaneMask mask, const char* what) {
  TensorMemory& m = state(*w.cta).tensor.memory;
  const uint8_t group = of_pair(i) ? 2 : 1;
  if (m.cta_group == 0) {
    m.cta_group = group;
    m.group_inst = &i;
  }
  if (m.cta_group != group) {
    const SourcePlace before = w.cta->launch->program->place(*m.group_inst);
    throw make_fault("tmem-alloc-protocol",
                     fmt::format("{}: {} with .cta_group::{}, after .cta_group::{} at line {}", who(w, mask), what,
                                 group, m.cta_group, before.line),
                     "All tcgen05 instructions of a kernel name the same .cta_group.");
  }
  if (group == 1) return nullptr;
  Cta* peer = peer_of(*w.cta);
  if (peer == nullptr) {
    throw make_fault(
        "tmem-alloc-protocol",
        fmt::format("{}: {} with .cta_group::2 in the CTA of rank {} of a cluster of {}: there is no rank {}",
                    who(w, mask), what, w.cta->rank, w.cta->domain->ctas.size(), w.cta->rank ^ 1),
        "A pair are the CTAs of ranks 2·k and 2·k + 1 of a cluster: launch the kernel with clusters of an "
        "even number of CTAs.");
  }
  return peer;
}
/// The same for what one thread does for both CTAs: the other one must not have ended.
Cta* check_active_group(Warp& w, const Inst& i, LaneMask mask, const char* what) {
  Cta* peer = check_group(w, i, mask, what);
  if (peer != nullptr && peer->done) {
    throw make_fault("remote-cta-gone",
                     fmt::format("{}: {} with .cta_group::2, and the other CTA of the pair, rank {}, has ended",
                                 who(w, mask), what, peer->rank),
                     "Both CTAs stay until the last operation of the pair is done.");
  }
  return peer;
}

/// Columns used on the SM where `cta` resides.
ColumnSet used_on_sm(Cta& cta) {
  ColumnSet used;
  for (const auto& d : cta.launch->resident) {
    for (const auto& c : d->ctas) {
      if (c->sm == cta.sm && c->async != nullptr) used |= state(*c).tensor.memory.columns();
    }
  }
  return used;
}

/// Columns became free at `time`: whoever waits for some on this SM tries again.
void wake_allocators(Cta& cta, uint64_t time) {
  for (const auto& d : cta.launch->resident) {
    for (const auto& c : d->ctas) {
      if (c->sm != cta.sm) continue;
      for (uint32_t columns = 32; columns <= kTensorMemoryColumns; columns *= 2) {
        machine::wake(*d, WaitTarget::Kind::TensorMemory, c.get(), columns, std::max(d->now, time));
      }
    }
  }
  machine::touch_global(*cta.launch);  // a domain in which nothing could run may go on
}

/// The address in shared memory that alloc and commit take: a = base, width = its bytes, offset.
machine::MemoryOperand shared_operand_of(const Inst& i) { return {i.a, i.offset, ptx::Space::Shared, i.width == 8}; }

// --- alloc, dealloc, relinquish --------------------------------------------------------------------------------------

/// `columns` columns from `column` on are the CTA's now.
void hand_out(Cta& cta, const Inst& i, uint32_t column, uint32_t columns) {
  TensorMemory& m = state(cta).tensor.memory;
  if (m.cells.empty()) m.cells.assign(size_t{kTensorMemoryLanes} * kTensorMemoryColumns, 0);
  for (uint32_t l = 0; l < kTensorMemoryLanes; l++)
    std::memset(&m.cells[size_t{l} * kTensorMemoryColumns + column], machine::kPoison, size_t{columns} * 4);
  m.allocations.push_back({column, columns, &i});
  m.last_columns = columns;
}

/// The first of the columns for the warps of both CTAs, once both are here; −1: the warp waits. Sets `granted` where
/// this warp is the second and the columns have been handed out to both.
int allocate_for_pair(Warp& w, const Inst& i, LaneMask mask, uint32_t columns, Cta& peer, bool highest,
                      bool& handed_out) {
  TensorMemory::PairRequest& mine = state(*w.cta).tensor.memory.request;
  TensorMemory::PairRequest& theirs = state(peer).tensor.memory.request;
  if (mine.warp != nullptr && mine.warp != &w) {
    throw make_fault("tmem-alloc-protocol",
                     fmt::format("{} allocates for the pair while warp {} of its block still waits in another "
                                 "tcgen05.alloc for the other CTA",
                                 who(w, mask), mine.warp->index),
                     "One warp of each CTA of the pair allocates.");
  }
  if (mine.granted >= 0) {
    const int column = mine.granted;
    mine = {};
    return column;
  }
  mine.warp = &w;
  mine.inst = &i;
  mine.columns = columns;
  if (theirs.warp == nullptr || theirs.granted >= 0) {  // not here, or not yet through with the alloc before
    if (peer.done) {
      throw make_fault(
          "tmem-alloc-protocol",
          fmt::format("{} allocates {} columns for the pair, and the other CTA, rank {}, has ended without "
                      "doing so",
                      who(w, mask), columns, peer.rank),
          "A warp of each CTA of the pair executes tcgen05.alloc.cta_group::2.");
    }
    machine::block_and_retry(w, {{WaitTarget::Kind::TensorPair, w.cta, 0, 0, mask, false}});
    return -1;
  }
  if (theirs.columns != columns) {
    throw make_fault(
        "tmem-alloc-protocol",
        fmt::format("{} allocates {} columns for the pair, and the other CTA, rank {}, {} columns: they do "
                    "it together",
                    who(w, mask), columns, peer.rank, theirs.columns));
  }
  const int column = find_columns(used_on_sm(*w.cta) | used_on_sm(peer), columns, highest);
  if (column < 0) {
    machine::block_and_retry(w, {{WaitTarget::Kind::TensorMemory, w.cta, columns, 0, mask, false},
                                 {WaitTarget::Kind::TensorMemory, &peer, columns, 0, mask, false}});
    return -1;
  }
  mine = {};
  theirs.granted = column;
  hand_out(*w.cta, i, static_cast<uint32_t>(column), columns);
  hand_out(peer, *theirs.inst, static_cast<uint32_t>(column), columns);
  handed_out = true;
  machine::wake(*w.cta->domain, WaitTarget::Kind::TensorPair, &peer, 0, std::max(w.cta->domain->now, w.time));
  return column;
}

/// a = address, offset, imm: 1 where the address is generic; b = columns.
void alloc(Warp& w, const Inst& i, LaneMask mask) {
  whole_warp(w, mask, "tcgen05.alloc");
  Cta* peer = check_group(w, i, mask, "tcgen05.alloc");
  TensorMemory& m = state(*w.cta).tensor.memory;
  const uint32_t columns = uniform(w, i.b, mask, "nCols");
  const auto fault = [&](const std::string& text, const char* hint) {
    return make_fault("tmem-alloc-protocol", fmt::format("{} allocates {} columns: {}", who(w, mask), columns, text),
                      hint);
  };
  if (columns < 32 || columns > kTensorMemoryColumns || (columns & (columns - 1)) != 0)
    throw fault("nCols is a power of two from 32 to 512", "Round the number of columns up to the next power of two.");
  if (m.relinquished)
    throw fault("the block has given up its right to allocate",
                "tcgen05.relinquish_alloc_permit comes after the last tcgen05.alloc of the block.");
  if (m.last_columns != 0 && columns > m.last_columns)
    throw fault(fmt::format("its allocation before was of {}, and they must not grow", m.last_columns),
                "A block allocates its largest piece first.");
  const int lane = __builtin_ctz(mask);
  const machine::MemoryOperand operand = shared_operand_of(i);
  const uint64_t address = address_of(w, operand, lane);
  for_lanes(mask, [&](int l) {
    if (address_of(w, operand, l) != address)
      throw make_fault("diverged-collective",
                       fmt::format("{}: the lanes of tcgen05.alloc pass different addresses", who(w, mask)));
  });
  // The low 32 bits of a generic shared address are its shared address.
  const SharedPlace p = shared_place(w, lane, static_cast<uint32_t>(address), SharedWindow::Cta, 4, 4,
                                     "the destination of tcgen05.alloc");
  // From either end, so that nobody counts on an address; from anywhere between, pieces that fit would not.
  const bool random = w.cta->launch->config.schedule.kind == machine::Schedule::Kind::Random;
  const bool highest = random && w.cta->launch->random.below(2) == 0;
  bool handed_out = false;  // by this warp
  int column = -1;
  if (peer != nullptr) {
    column = allocate_for_pair(w, i, mask, columns, *peer, highest, handed_out);
    if (column < 0) return;
  } else {
    column = find_columns(used_on_sm(*w.cta), columns, highest);
    if (column < 0) {
      machine::block_and_retry(w, {{WaitTarget::Kind::TensorMemory, w.cta, columns, 0, mask, false}});
      return;
    }
    hand_out(*w.cta, i, static_cast<uint32_t>(column), columns);
    handed_out = true;
  }
  machine::note_effect(w);
  if (hooks().hits_barrier(*p.owner, p.offset, 4)) {
    w.cta->launch->report(i, "barrier-overwritten",
                          fmt::format("{} leaves the address of its columns in the live mbarrier `{}`", who(w, mask),
                                      barrier_name(*p.owner, p.offset & ~7u)));
  }
  const auto result = static_cast<uint32_t>(column);
  std::memcpy(p.owner->shared(p.offset), &result, 4);
  machine::touch_shared(*p.owner);
  if (machine::watches_accesses(*w.cta->launch)) {
    // The warp writes the address as one: the first lane for all of them, who come after it.
    uint64_t addresses[machine::kWarpSize];
    std::fill(std::begin(addresses), std::end(addresses), uint64_t{p.offset});
    machine::watcher(*w.cta->launch)
        ->access({&w, &i, LaneMask{1} << lane, machine::Access::Kind::Write, Region::Shared, machine::Sem::Weak,
                  machine::Scope::None, 4, addresses, p.owner});
  }
  const std::vector<TensorRegion> regions{{0xff, static_cast<uint16_t>(column), static_cast<uint16_t>(columns), true}};
  TensorEvent e{TensorEvent::Kind::Alloc, &w, &i, mask};
  e.regions = &regions;
  e.peer = handed_out ? peer : nullptr;
  notify(*w.cta, e);
}

/// a = address, b = columns.
void dealloc(Warp& w, const Inst& i, LaneMask mask) {
  whole_warp(w, mask, "tcgen05.dealloc");
  Cta* peer = check_group(w, i, mask, "tcgen05.dealloc");
  TensorMemory& m = state(*w.cta).tensor.memory;
  const uint32_t address = uniform(w, i.a, mask, "taddr"), columns = uniform(w, i.b, mask, "nCols");
  const auto found = std::find_if(m.allocations.begin(), m.allocations.end(), [&](const TensorMemory::Allocation& a) {
    return a.column == address && a.columns == columns;
  });
  if (found == m.allocations.end()) {
    throw make_fault("tmem-alloc-protocol",
                     fmt::format("{} frees {} columns at {:#x}, which is no allocation of this block; {}", who(w, mask),
                                 columns, address, describe_allocations(m)),
                     "dealloc takes the address that alloc gave and the same number of columns, once.");
  }
  machine::note_effect(w);
  const std::vector<TensorRegion> regions{{0xff, static_cast<uint16_t>(address), static_cast<uint16_t>(columns), true}};
  TensorEvent e{TensorEvent::Kind::Dealloc, &w, &i, mask};
  e.regions = &regions;
  const bool theirs = peer != nullptr && state(*peer).tensor.memory.allocates(address, columns);
  e.peer = theirs ? peer : nullptr;
  notify(*w.cta, e);
  m.allocations.erase(found);
  wake_allocators(*w.cta, w.time);
  if (peer == nullptr) return;
  machine::wake(*w.cta->domain, WaitTarget::Kind::TensorPair, peer, 1, std::max(w.cta->domain->now, w.time));
  using Order = machine::Schedule::Kind;
  const Order order = w.cta->launch->config.schedule.kind;
  const bool waits = order == Order::Lazy || order == Order::Reverse ||
                     (order == Order::Random && w.cta->launch->random.below(2) == 0);
  if (theirs && waits) machine::block_and_continue(w, {{WaitTarget::Kind::TensorPair, w.cta, 1, 0, mask, false}});
}

void relinquish(Warp& w, const Inst& i, LaneMask mask) {
  whole_warp(w, mask, "tcgen05.relinquish_alloc_permit");
  check_group(w, i, mask, "tcgen05.relinquish_alloc_permit");
  machine::note_effect(w);
  state(*w.cta).tensor.memory.relinquished = true;
  notify(*w.cta, {TensorEvent::Kind::Relinquish, &w, &i, mask});
}

// --- ld, st, wait, fence ---------------------------------------------------------------------------------------------

/// imm of ld and st: shape | packed << 8 | repeat << 16 | split << 32.
TensorAccessForm form_of(const Inst& i) {
  TensorAccessForm f;
  f.shape = static_cast<TensorAccessForm::Shape>(i.imm & 0xff);
  f.packed = (i.imm >> 8 & 1) != 0;
  f.repeat = static_cast<uint32_t>(i.imm >> 16 & 0xff);
  f.split = static_cast<uint32_t>(i.imm >> 32);
  return f;
}

/// The place of a ld or st, checked: the quarter of the warp, and columns that are allocated.
TensorCell place_of(Warp& w, const Inst& i, LaneMask mask, const TensorAccessForm& form,
                    std::vector<TensorRegion>& regions, bool write) {
  const char* what = write ? "tcgen05.st" : "tcgen05.ld";
  whole_warp(w, mask, what);
  const auto* v = lanes<uint32_t>(w.regs, i.a);
  const uint32_t address = v[__builtin_ctz(mask)] + static_cast<uint32_t>(i.offset);
  for_lanes(mask, [&](int l) {
    const uint32_t other = v[l] + static_cast<uint32_t>(i.offset);
    if (other == address) return;
    const bool by_lane = other >> 16 != address >> 16;
    throw make_fault(by_lane ? "tmem-wrong-quarter" : "diverged-collective",
                     fmt::format("{}: the lanes of {} pass different addresses, {:#x} and {:#x}", who(w, mask), what,
                                 address, other),
                     "All lanes of the warp pass one address, that of the first of its lanes and columns.");
  });
  TensorCell at = tensor_cell(address);
  if (at.lane >= kTensorMemoryLanes) {
    w.cta->launch->report(i, "advisory-tmem-lane",
                          fmt::format("{}: lane {} of the address is beyond the 128 of a block; lane {} is meant here",
                                      who(w, mask), at.lane, at.lane % kTensorMemoryLanes),
                          {}, Severity::Note);
    at.lane %= kTensorMemoryLanes;
  }
  const uint32_t quarter = w.index % 4;
  if (at.lane / 32 != quarter) {
    throw make_fault(
        "tmem-wrong-quarter",
        fmt::format("{}: {} at lane {}; warp {} of a block reaches lanes {}-{} only", who(w, mask), what, at.lane,
                    w.index, 32 * quarter, 32 * quarter + 31),
        "The lane, bits 31:16 of the address, is 32 * (warp % 4): base + (32 * (warp % 4) << 16) + column.");
  }
  if (at.lane % form.lanes() != 0) {
    throw make_fault("misaligned", fmt::format("{}: {} at lane {}; this shape starts at a multiple of {} lanes",
                                               who(w, mask), what, at.lane, form.lanes()));
  }
  const TensorMemory& m = state(*w.cta).tensor.memory;
  const auto halves = static_cast<uint8_t>((form.lanes() == 32 ? 3u : 1u) << at.lane / 16);
  for (const auto& [first, count] : form.columns()) {
    const uint32_t column = at.column + first;
    if (column + count > kTensorMemoryColumns || !m.holds(column, count)) {
      throw make_fault("tmem-not-allocated",
                       fmt::format("{}: {} touches columns {}-{}; {}", who(w, mask), what, column, column + count - 1,
                                   describe_allocations(m)),
                       "Columns count 32-bit cells of a lane, not bytes.");
    }
    regions.push_back({halves, static_cast<uint16_t>(column), static_cast<uint16_t>(count), write});
  }
  return at;
}

/// Both halves of an access that takes its time: it is done when the pipe of the warp is through with it.
void take_time(Warp& w, std::unordered_map<uint32_t, uint64_t>& done, const TensorAccessForm& form) {
  const machine::TimingModel& timing = timing_of(*w.cta->launch);
  uint64_t& t = done[w.index];
  t = std::max(t, w.time + timing.tmem_access) + form.registers() * 128 / timing.tmem_bytes_per_cycle;
}

/// ld, st: a = address, list = registers.
void load(Warp& w, const Inst& i, LaneMask mask) {
  const TensorAccessForm form = form_of(i);
  std::vector<TensorRegion> regions;
  const TensorCell at = place_of(w, i, mask, form, regions, false);
  uint32_t values[128][32];
  tensor_load(state(*w.cta).tensor.memory.cells.data(), form, at, values);
  const uint32_t* slots = &w.cta->launch->program->operand_pool[i.list];
  for (uint32_t r = 0; r < i.list_size; r++) {
    if (slots[r] == kNoOperand) continue;
    auto* d = lanes<uint32_t>(w.regs, slots[r]);
    for_lanes(mask, [&](int l) { d[l] = values[r][l]; });
  }
  take_time(w, state(*w.cta).tensor.loaded, form);
  TensorEvent e{TensorEvent::Kind::Load, &w, &i, mask};
  e.regions = &regions;
  e.amount = uint64_t{form.registers()} * 128;
  notify(*w.cta, e);
}

void store(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  const TensorAccessForm form = form_of(i);
  std::vector<TensorRegion> regions;
  const TensorCell at = place_of(w, i, mask, form, regions, true);
  uint32_t values[128][32];
  const uint32_t* slots = &w.cta->launch->program->operand_pool[i.list];
  for (uint32_t r = 0; r < i.list_size; r++)
    std::memcpy(values[r], lanes<uint32_t>(w.regs, slots[r]), sizeof values[r]);
  tensor_store(state(*w.cta).tensor.memory.cells.data(), form, at, values);
  take_time(w, state(*w.cta).tensor.stored, form);
  TensorEvent e{TensorEvent::Kind::Store, &w, &i, mask};
  e.regions = &regions;
  e.amount = uint64_t{form.registers()} * 128;
  notify(*w.cta, e);
}

/// sub: 1 for wait::st.
void wait(Warp& w, const Inst& i, LaneMask mask) {
  whole_warp(w, mask, i.sub != 0 ? "tcgen05.wait::st" : "tcgen05.wait::ld");
  TensorCore& t = state(*w.cta).tensor;
  const auto& done = i.sub != 0 ? t.stored : t.loaded;
  if (const auto found = done.find(w.index); found != done.end()) w.time = std::max(w.time, found->second);
  machine::note_effect(w);
  notify(*w.cta, {i.sub != 0 ? TensorEvent::Kind::WaitStore : TensorEvent::Kind::WaitLoad, &w, &i, mask});
}

/// sub: 1 for after_thread_sync.
void fence(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  notify(*w.cta, {i.sub != 0 ? TensorEvent::Kind::FenceAfter : TensorEvent::Kind::FenceBefore, &w, &i, mask});
}

// --- the queue of the tensor core ------------------------------------------------------------------------------------

void arrive_at(const TensorCoreItem& c, Cta& owner) {
  if (owner.done && &owner != c.warp->cta) {
    throw make_fault("remote-cta-gone",
                     fmt::format("the commit of {} arrives at `{}` of the CTA of rank {}, which has ended",
                                 who(*c.warp, LaneMask{1} << c.lane), barrier_name(owner, c.barrier), owner.rank),
                     "A CTA whose barrier a commit signals must not end before it has seen it complete.");
  }
  arrive_async(owner, c.barrier, c.inst, c.id, "tcgen05.commit");
}
/// A commit arrives at its barriers, at all of them at once. As the queue is in order, who has seen a commit knows that
/// those before it, by the same thread, have arrived at its block: published kernels end when they have seen the last.
void arrive(const TensorCoreItem& c) {
  try {
    for (Cta* owner : c.barrier_owners) arrive_at(c, *owner);
  } catch (machine::Fault& fault) {  // outside any instruction
    if (fault.diagnostic.place.line == 0) fault.diagnostic.place = c.warp->cta->launch->program->place(*c.inst);
    throw;
  }
}

/// A commit behind which nothing is outstanding.
struct EmptyCommitEvent : machine::Event {
  TensorCoreItem item;
  void fire(Domain&) override { arrive(item); }
};

/// What an MMA or a copy does to memory.
void compute(const TensorCoreItem& item) {
  const auto cells = [](Cta& cta) { return state(cta).tensor.memory.cells.data(); };
  if (item.kind == TensorCoreItem::Kind::Copy) {
    for (Cta* cta : {item.first, item.second}) {
      if (cta != nullptr) tensor_copy(item.copy, cta->smem.data(), item.units, cells(*cta), item.at);
    }
  } else if (item.second == nullptr) {
    mma(item.mma);
  } else {
    std::array<PairMember, 2> members;
    for (size_t k = 0; k < 2; k++) {
      Cta& cta = k == 0 ? *item.first : *item.second;
      members[k].shared = cta.smem.data();
      members[k].tensor_memory = cells(cta);
      std::copy_n(item.disable_output_lane.begin() + 4 * k, 4, members[k].disable_output_lane.begin());
    }
    mma_of_pair(item.mma, members);
  }
}

/// The head of the queue is done.
struct TensorCoreEvent : machine::Event {
  Cta* cta = nullptr;
  void fire(Domain& domain) override {
    TensorCore& t = state(*cta).tensor;
    const std::unique_ptr<TensorCoreItem> item = std::move(t.queue.front());
    t.queue.pop_front();
    if (item->kind == TensorCoreItem::Kind::Commit) {
      arrive(*item);
    } else {
      compute(*item);
      const bool copy = item->kind == TensorCoreItem::Kind::Copy;
      TensorEvent e{copy ? TensorEvent::Kind::CopyDone : TensorEvent::Kind::MmaDone, item->warp, item->inst,
                    LaneMask{1} << item->lane};
      e.op = item->id;
      notify(*cta, e);
    }
    if (!t.queue.empty()) next(domain, cta);
  }
  static void next(Domain& domain, Cta* cta) {
    auto event = std::make_unique<TensorCoreEvent>();
    event->cta = cta;
    domain.add_completion(std::move(event), std::max(domain.now, state(*cta).tensor.queue.front()->time));
  }
};

void enqueue(Cta& cta, std::unique_ptr<TensorCoreItem> item) {
  auto& queue = state(cta).tensor.queue;
  queue.push_back(std::move(item));
  if (queue.size() == 1) TensorCoreEvent::next(*cta.domain, &cta);
}

// --- mma -------------------------------------------------------------------------------------------------------------

/// Operands of mma in the operand pool.
enum MmaPool : uint32_t {
  kD,
  kDOffset,
  kA,
  kAOffset,
  kB,
  kInstruction,
  kEnable,
  kScaleA,
  kScaleAOffset,
  kScaleB,
  kScaleBOffset,
  kZeroColumns,
  kMask0,
  kMmaPoolSize = kMask0 + 8
};
// Inst::sub: A in tensor memory, `.ws`; imm: kind | scale-input-d << 8 | scale factors a row << 16.
constexpr uint8_t kTensorA = 1, kWeightStationary = 4;

/// What an operand's descriptor covers, kept since a loop uses the same few again and again.
struct Footprint {
  std::vector<machine::ByteRun> runs;
  std::vector<uint32_t> units;
  uint32_t end = 0;                         ///< behind the last byte
  std::vector<DescriptorProblem> problems;  ///< then the others may be empty
};

/// Footprints by descriptor and operand. References stay valid until the next trim().
class FootprintCache {
 public:
  const Footprint& of(const SmemDescriptor& d, const MatrixOperand& o) {
    const Key key{d.bits, uint64_t{o.rows} << 32 | uint64_t{o.k} << 16 | uint64_t{o.element_bits} << 8 |
                              static_cast<uint64_t>(o.kind) << 2 | uint64_t{o.name == 'A'} << 1 | uint64_t{o.mn_major} |
                              static_cast<uint64_t>(o.type) << 56};
    const auto [entry, is_new] = entries_.try_emplace(key);
    Footprint& f = entry->second;
    if (!is_new) return f;
    f.problems = check_smem_descriptor(d, o);
    if (std::any_of(f.problems.begin(), f.problems.end(), [](const auto& p) { return !p.advisory; })) return f;
    for (const ByteRun& r : footprint(d, o)) {
      f.runs.push_back({r.offset, r.bytes});
      f.end = r.offset + r.bytes;
    }
    operand_units(d, o, f.units);
    return f;
  }
  /// Keeps it small.
  void trim() {
    if (entries_.size() >= 1024) entries_.clear();
  }

 private:
  struct Key {
    uint64_t bits, operand;
    bool operator<(const Key& k) const { return bits != k.bits ? bits < k.bits : operand < k.operand; }
  };
  std::map<Key, Footprint> entries_;
};

/// Faults with the first rule that is broken, notes what the ISA leaves open.
void judge(Warp& w, const Inst& i, int lane, const std::vector<DescriptorProblem>& problems) {
  for (const DescriptorProblem& p : problems) {
    const std::string text = fmt::format("{}: {}", who(w, LaneMask{1} << lane), p.text);
    if (!p.advisory) throw make_fault("bad-descriptor", text);
    w.cta->launch->report(i, "advisory-descriptor", text, {}, Severity::Note);
  }
}

/// Cells as the observer wants them.
void add_regions(const std::vector<TensorMemoryBlock>& blocks, bool write, std::vector<TensorRegion>& regions) {
  uint8_t halves = 0;
  for (const TensorMemoryBlock& b : blocks) {
    for (uint32_t h = b.lane / 16u; h < (b.lane + b.lanes + 15u) / 16u; h++) halves |= static_cast<uint8_t>(1u << h);
  }
  regions.push_back({halves, blocks[0].column, blocks[0].columns, write});
}

/// The operand that `bits` describe lies within shared memory, and obeys the rules; `noun`: "the MMA". Every CTA of a
/// launch has as much of it.
const Footprint& check_operand(Warp& w, const Inst& i, int lane, const SmemDescriptor& descriptor,
                               const MatrixOperand& operand, const char* noun, std::vector<MatrixRead>& matrices) {
  static thread_local FootprintCache cache;
  if (matrices.empty()) cache.trim();
  const Cta& cta = *w.cta;
  const Footprint& f = cache.of(descriptor, operand);
  judge(w, i, lane, f.problems);
  if (f.end > cta.smem.size() || f.runs.front().address < machine::kSharedBase) {
    throw make_fault("bad-descriptor",
                     fmt::format("{}: matrix {} of {} covers bytes from {} to offset {:#x}, and the block has "
                                 "{} bytes of shared memory, up to offset {:#x}",
                                 who(w, LaneMask{1} << lane), operand.name, noun,
                                 cta.launch->program->describe_shared(static_cast<uint32_t>(f.runs.front().address)),
                                 f.end, cta.smem.size() - machine::kSharedBase, cta.smem.size()),
                     "Start address, LBO and SBO of the descriptor and M, N of the instruction decide which bytes.");
  }
  const uint32_t per_unit = 128 / operand.element_bits;
  matrices.push_back({operand.name, &f.runs, &f.units,
                      operand.mn_major ? operand.rows / per_unit : operand.k / per_unit, operand.mn_major});
  return f;
}

/// Cells that `what` of an operation touches are allocated, in both CTAs of a pair.
void check_allocated(Warp& w, LaneMask bit, const TensorCoreItem& item, const TensorRegion& region, const char* what) {
  for (Cta* cta : {item.first, item.second}) {
    if (cta == nullptr) continue;
    const TensorMemory& m = state(*cta).tensor.memory;
    if (m.holds(region.column, region.columns)) continue;
    throw make_fault("tmem-not-allocated",
                     fmt::format("{}: {} is in columns {}-{}; {}{}", who(w, bit), what, region.column,
                                 region.column + region.columns - 1,
                                 item.second == nullptr ? "" : fmt::format("of the CTA of rank {}: ", cta->rank),
                                 describe_allocations(m)));
  }
}

/// Books the tensor core for `interval` cycles and puts the item into its queue, to be done `latency` cycles after it
/// starts. Tells the observer: `info` and `e` as far as they are not alike for all.
void start(Warp& w, const Inst& i, int lane, Cta* peer, const std::vector<MatrixRead>& matrices, uint64_t interval,
           uint64_t latency, AsyncOpInfo::Kind kind, TensorEvent e, std::unique_ptr<TensorCoreItem> item) {
  Cta& queue_owner = peer == nullptr ? *w.cta : even_of(*w.cta);
  TensorCore& core = state(queue_owner).tensor;
  machine::Launch& launch = *w.cta->launch;
  AsyncOpInfo info{};
  info.kind = kind;
  info.id = launch.next_async_id++;
  info.warp = &w;
  info.inst = &i;
  info.lane = lane;
  info.source_region = info.destination_region = Region::Shared;
  info.source_owner = w.cta;
  info.peer = peer;
  info.matrices = &matrices;
  const uint64_t begin = std::max(w.time, core.free);
  core.free = begin + interval;
  info.busy_from = begin;
  info.busy_until = core.free;
  if (machine::Observer* o = machine::watcher(launch); o != nullptr) {
    o->async_op(info, AsyncOpInfo::Milestone::Issued);
    e.op = info.id;
    e.peer = peer;
    o->tensor(e);
  }
  item->time = begin + latency;
  item->inst = &i;
  item->warp = &w;
  item->lane = lane;
  item->id = info.id;
  state(*w.cta).tensor.last_mma[w.first_thread() + static_cast<uint32_t>(lane)] = info.id;
  enqueue(queue_owner, std::move(item));
}

/// The CTAs that an operation concerns: the issuer's, or the pair, the even one first.
void set_ctas(TensorCoreItem& item, Cta& cta, Cta* peer) {
  const bool odd = peer != nullptr && (cta.rank & 1) != 0;
  item.first = odd ? peer : &cta;
  item.second = odd ? &cta : peer;
}

void issue_mma(Warp& w, const Inst& i, int lane) {
  const machine::TimingModel& timing = timing_of(*w.cta->launch);
  Cta& cta = *w.cta;
  Cta* peer = check_active_group(w, i, LaneMask{1} << lane, "tcgen05.mma");
  machine::Launch& launch = *cta.launch;
  const uint32_t* pool = &launch.program->operand_pool[i.list];
  const auto word = [&](uint32_t slot) { return lanes<uint32_t>(w.regs, pool[slot])[lane]; };
  const LaneMask bit = LaneMask{1} << lane;
  const bool tensor_a = (i.sub & kTensorA) != 0;
  const auto kind = static_cast<MmaKind>(i.imm & 0xff);

  auto item = std::make_unique<TensorCoreItem>();
  MmaOperation& op = item->mma;
  op.instruction = decode_instruction_descriptor(kind, word(kInstruction));
  set_ctas(*item, cta, peer);
  MmaForm form;
  form.cta_group = peer != nullptr ? 2 : 1;
  form.a_in_tensor_memory = tensor_a;
  form.weight_stationary = op.weight_stationary = (i.sub & kWeightStationary) != 0;
  form.scale_factors = op.scale_factors = static_cast<uint8_t>(i.imm >> 16 & 0xff);
  judge(w, i, lane, check_instruction_descriptor(op.instruction, form));
  if (op.instruction.k96) {
    throw make_fault("bad-descriptor", fmt::format("{}: instruction descriptor: K = 96 (bit 31) needs sm_103a; here is "
                                                   "an sm_100a",
                                                   who(w, bit)));
  }
  const TensorCell d = tensor_cell(word(kD) + pool[kDOffset]);
  op.d = {static_cast<uint16_t>(d.lane), static_cast<uint16_t>(d.column)};
  op.a_in_tensor_memory = tensor_a;
  if (tensor_a) {
    const TensorCell a = tensor_cell(word(kA) + pool[kAOffset]);
    op.a_tensor = {static_cast<uint16_t>(a.lane), static_cast<uint16_t>(a.column)};
  }
  // What a CTA has of D, and of A in tensor memory.
  const InstructionDescriptor share = peer != nullptr ? share_of_pair(op.instruction) : op.instruction;
  judge(w, i, lane, check_tensor_memory(share, op.d, tensor_a ? &op.a_tensor : nullptr, op.weight_stationary));
  if (pool[kZeroColumns] != kNoOperand) {
    const ZeroColumnMask mask = decode_zero_column_mask(lanes<uint64_t>(w.regs, pool[kZeroColumns])[lane]);
    judge(w, i, lane, check_zero_column_mask(mask));
    op.zero_columns = mask.columns(op.instruction.m, op.instruction.n);
  }
  if (op.scale_factors != 0) {
    // Bits 31:30 are no part of the address here: CUTLASS keeps the byte in the word there, which the descriptor has.
    const auto scale_address = [&](uint32_t slot, uint32_t offset) {
      const TensorCell at = tensor_cell((word(slot) + pool[offset]) & 0x3fffffff);
      return TensorMemoryAddress{static_cast<uint16_t>(at.lane), static_cast<uint16_t>(at.column)};
    };
    op.scale_a = scale_address(kScaleA, kScaleAOffset);
    op.scale_b = scale_address(kScaleB, kScaleBOffset);
    judge(w, i, lane, check_scale_factors(share, op.scale_a, op.scale_b));
    if (peer != nullptr && op.instruction.m == 128) {
      launch.report(i, "advisory-descriptor",
                    fmt::format("{}: the ISA does not say where a pair with M = 128 has its scale factors; here each "
                                "half of the lanes has those of its own half of the columns",
                                who(w, bit)),
                    {}, Severity::Note);
    }
  }

  std::vector<TensorRegion> regions;
  add_regions(d_blocks(share, op.d, op.weight_stationary), true, regions);
  std::vector<const char*> names{"D of the MMA"};
  if (tensor_a) {
    add_regions(a_blocks(share, op.a_tensor), false, regions);
    names.push_back("A of the MMA");
  }
  if (op.scale_factors != 0) {
    add_regions({scale_block(share.m, op.scale_a)}, false, regions);
    add_regions({scale_block(share.n, op.scale_b)}, false, regions);
    names.insert(names.end(), {"scale_A of the MMA", "scale_B of the MMA"});
  }
  for (size_t r = 0; r < regions.size(); r++) check_allocated(w, bit, *item, regions[r], names[r]);

  std::vector<MatrixRead> matrices;
  const auto shared_operand = [&](SmemDescriptor& descriptor, uint64_t bits, const MatrixOperand& operand) {
    descriptor = decode_smem_descriptor(bits);
    check_operand(w, i, lane, descriptor, operand, "the MMA", matrices);
  };
  if (!tensor_a) shared_operand(op.a, lanes<uint64_t>(w.regs, pool[kA])[lane], operand_a(op.instruction, form));
  shared_operand(op.b, lanes<uint64_t>(w.regs, pool[kB])[lane], operand_b(op.instruction, form));

  op.shared = cta.smem.data();
  op.shared_bytes = static_cast<uint32_t>(cta.smem.size());
  op.tensor_memory = state(cta).tensor.memory.cells.data();
  op.enable_input_d = (*lanes<uint32_t>(w.regs, pool[kEnable]) >> lane & 1) != 0;
  op.scale_input_d = static_cast<uint8_t>(i.imm >> 8 & 0xff);
  if (pool[kMask0] != kNoOperand) {
    // The first four for the even CTA, as far as the ISA lets one tell.
    for (uint32_t k = 0; k < (peer != nullptr ? 8u : 4u); k++) item->disable_output_lane[k] = word(kMask0 + k);
    std::copy_n(item->disable_output_lane.begin(), 4, op.disable_output_lane.begin());
  }
  const bool masked = std::any_of(item->disable_output_lane.begin(), item->disable_output_lane.end(),
                                  [](uint32_t m) { return m != 0; });
  if (!op.enable_input_d && !masked && state(peer != nullptr ? even_of(cta) : cta).tensor.queue.empty()) {
    for (Cta* c : {item->first, item->second}) {
      if (c == nullptr) continue;
      for (const TensorMemoryBlock& b : d_blocks(share, op.d, op.weight_stationary)) {
        for (uint32_t l = b.lane; l < uint32_t{b.lane} + b.lanes; l++)
          std::memset(&state(*c).tensor.memory.cells[size_t{l} * kTensorMemoryColumns + b.column], machine::kPoison,
                      size_t{b.columns} * 4);
      }
    }
  }

  // The initiation interval is the larger of the arithmetic's and of the operands' way from shared memory; SEMA.
  const uint32_t m = op.instruction.m, n = op.instruction.n;
  const uint32_t rows = ((tensor_a ? 0u : m) + n) / form.cta_group;
  const uint64_t arithmetic = peer != nullptr && m == 128 ? n / 4 : n / 2;
  const uint64_t interval = std::max<uint64_t>(arithmetic, rows * 32 / timing.mma_shared_bytes_per_cycle);
  uint64_t fixed = tensor_a ? timing.mma_fixed_tensor_a : m < 128 ? timing.mma_fixed_64 : timing.mma_fixed_128;
  if (peer != nullptr && m == 128) fixed = tensor_a ? timing.mma_pair_128_tensor_a : timing.mma_pair_128;
  if (peer != nullptr && m == 256) fixed = tensor_a ? timing.mma_pair_256_tensor_a : timing.mma_pair_256;
  TensorEvent e{TensorEvent::Kind::Mma, &w, &i, bit};
  e.regions = &regions;
  e.reads_d = op.enable_input_d;
  e.amount = uint64_t{2} * m * n * op.instruction.k();
  e.shape = uint64_t{op.weight_stationary} << 63 | uint64_t{m} << 48 | uint64_t{n} << 32 | (i.imm & 0xff) << 56 |
            uint64_t{op.d.lane} << 16 | op.d.column;
  start(w, i, lane, peer, matrices, interval, fixed + arithmetic - timing.mbarrier_wakeup_async - timing.mbarrier_try,
        AsyncOpInfo::Kind::Mma, e, std::move(item));
}

/// Single-thread operations by several lanes are almost always a missing election.
void report_many(Warp& w, const Inst& i, LaneMask mask, const char* what) {
  if ((mask & (mask - 1)) == 0) return;
  w.cta->launch->report(i, "many-lanes-issue",
                        fmt::format("{} each execute {}; one thread issues it", who(w, mask), what),
                        "Elect one lane: elect.sync, or threadIdx.x == 0.");
}

void mma_instruction(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  report_many(w, i, mask, "tcgen05.mma");
  for_lanes(mask, [&](int l) { issue_mma(w, i, l); });
}

// --- cp --------------------------------------------------------------------------------------------------------------

const char* name_of(TensorCopyForm::Shape shape) {
  constexpr std::array<const char*, 6> kNames = {
      "128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"};
  return kNames[static_cast<size_t>(shape)];
}

/// a = tensor memory address, offset; b = descriptor; imm: TensorCopyForm::Shape | bits of an element << 8.
void issue_copy(Warp& w, const Inst& i, int lane) {
  const LaneMask bit = LaneMask{1} << lane;
  Cta* peer = check_active_group(w, i, bit, "tcgen05.cp");
  auto item = std::make_unique<TensorCoreItem>();
  item->kind = TensorCoreItem::Kind::Copy;
  set_ctas(*item, *w.cta, peer);
  item->copy.shape = static_cast<TensorCopyForm::Shape>(i.imm & 0xff);
  item->copy.element_bits = static_cast<uint8_t>(i.imm >> 8);
  const TensorCopyForm& form = item->copy;
  item->at = tensor_cell(lanes<uint32_t>(w.regs, i.a)[lane] + static_cast<uint32_t>(i.offset));
  if (item->at.lane + form.span() > kTensorMemoryLanes) {
    throw make_fault("misaligned", fmt::format("{}: tcgen05.cp.{} at lane {} ends beyond the {} lanes of tensor memory",
                                               who(w, bit), name_of(form.shape), item->at.lane, kTensorMemoryLanes));
  }
  std::vector<TensorRegion> regions{
      {0, static_cast<uint16_t>(item->at.column), static_cast<uint16_t>(form.columns()), true}};
  for (uint32_t row = 0; row < form.rows(); row++) {
    uint32_t count = 0;
    const std::array<uint32_t, 4> to = form.lanes(row, count);
    for (uint32_t k = 0; k < count; k++) regions[0].halves |= static_cast<uint8_t>(1u << (item->at.lane + to[k]) / 16);
  }
  check_allocated(w, bit, *item, regions[0], "the destination of tcgen05.cp");

  MatrixOperand source;
  source.name = 'S';
  source.element_bits = 8;
  source.rows = form.rows();
  source.k = form.columns() * 4;
  std::vector<MatrixRead> matrices;
  const SmemDescriptor descriptor = decode_smem_descriptor(lanes<uint64_t>(w.regs, i.b)[lane]);
  item->units = check_operand(w, i, lane, descriptor, source, "tcgen05.cp", matrices).units;

  if (form.element_bits == 4) {
    w.cta->launch->report(
        i, "advisory-descriptor",
        fmt::format("{}: where a 4-bit element stands in its byte of tensor memory is told by a figure "
                    "only (PTX Figure 195); here it is bits 5:2, as tcgen05.mma reads it",
                    who(w, bit)),
        {}, Severity::Note);
  }

  const machine::TimingModel& timing = timing_of(*w.cta->launch);
  TensorEvent e{TensorEvent::Kind::Copy, &w, &i, bit};
  e.regions = &regions;
  e.amount = uint64_t{form.rows()} * form.columns() * 4 * (peer != nullptr ? 2 : 1);
  // Nobody has published how long it takes: as long as the operands of an MMA take, and its latency.
  const uint64_t interval = std::max(1u, form.rows() * form.columns() * 4 / timing.mma_shared_bytes_per_cycle);
  start(w, i, lane, peer, matrices, interval,
        timing.mma_fixed_tensor_a + interval - timing.mbarrier_wakeup_async - timing.mbarrier_try,
        AsyncOpInfo::Kind::TensorMemoryCopy, e, std::move(item));
}

void copy_instruction(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  report_many(w, i, mask, "tcgen05.cp");
  for_lanes(mask, [&](int l) { issue_copy(w, i, l); });
}

// --- commit ----------------------------------------------------------------------------------------------------------

/// Whose barriers a commit signals: those of the CTAs whose bits are set, or the one that the address names.
std::vector<Cta*> signalled_ctas(Warp& w, const Inst& i, int lane, const SharedPlace& p) {
  std::vector<Cta*> owners;
  if (i.b == kNoOperand) {
    owners.push_back(p.owner);
  } else {
    const auto& ctas = w.cta->domain->ctas;
    const uint32_t all = lanes<uint32_t>(w.regs, i.b)[lane] & 0xffff;
    const auto fault = [&](const std::string& text) {
      return make_fault("bad-copy", fmt::format("{}: {}", who(w, LaneMask{1} << lane), text),
                        "Bit r of the mask names the CTA of rank r in the cluster.");
    };
    if (all == 0) throw fault("the mask of this commit is 0: it names no CTA");
    for (uint32_t mask = all; mask != 0; mask &= mask - 1) {
      const auto rank = static_cast<uint32_t>(__builtin_ctz(mask));
      if (rank >= ctas.size()) {
        throw fault(fmt::format("bit {} of the commit's mask {:#x} is set, but the cluster has {} CTA{}", rank, all,
                                ctas.size(), ctas.size() == 1 ? "" : "s"));
      }
      if (ctas[rank]->done) {
        throw make_fault("remote-cta-gone",
                         fmt::format("{}: the commit signals the CTA of rank {}, which has ended",
                                     who(w, LaneMask{1} << lane), rank),
                         "A CTA whose barrier a commit signals must not end before it has seen it complete.");
      }
      owners.push_back(ctas[rank].get());
    }
  }
  for (Cta* owner : owners) live_barrier(*owner, p.offset, "tcgen05.commit");
  return owners;
}

/// a = barrier address, offset, width = its bytes; b = the mask of a multicast.
void commit(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  report_many(w, i, mask, "tcgen05.commit");
  const bool pair = check_active_group(w, i, mask, "tcgen05.commit") != nullptr;
  Cta& queue_owner = pair ? even_of(*w.cta) : *w.cta;
  const TensorCore& core = state(queue_owner).tensor;
  const auto& last_mma = state(*w.cta).tensor.last_mma;
  for_lanes(mask, [&](int l) {
    // The low 32 bits of a generic shared address are its shared address.
    const auto address = static_cast<uint32_t>(address_of(w, shared_operand_of(i), l));
    const SharedPlace p = shared_place(w, l, address, SharedWindow::Cluster, 8, 8, "mbarrier");
    TensorCoreItem item;
    item.kind = TensorCoreItem::Kind::Commit;
    item.inst = &i;
    item.warp = &w;
    item.lane = l;
    item.barrier_owners = signalled_ctas(w, i, l, p);
    item.barrier = p.offset;
    const auto last = last_mma.find(w.first_thread() + static_cast<uint32_t>(l));
    item.id = last == last_mma.end() ? 0 : last->second;
    TensorEvent e{TensorEvent::Kind::Commit, &w, &i, LaneMask{1} << l};
    e.op = item.id;
    e.barrier = p.offset;
    for (Cta* owner : item.barrier_owners) {
      e.barrier_owner = owner;
      notify(*w.cta, e);
      e.further = true;
    }
    const auto behind = std::find_if(core.queue.begin(), core.queue.end(), [&](const auto& q) {
      return q->kind != TensorCoreItem::Kind::Commit && q->id == item.id;
    });
    if (behind == core.queue.end()) {
      auto event = std::make_unique<EmptyCommitEvent>();
      event->item = item;
      w.cta->domain->add_completion(std::move(event), w.time + timing_of(*w.cta->launch).mbarrier_op);
      return;
    }
    item.time = (*behind)->time;
    enqueue(queue_owner, std::make_unique<TensorCoreItem>(item));
  });
}

// --- decoders --------------------------------------------------------------------------------------------------------

void set_group(const ptx::Resolved& r, Inst* inst) {
  if (r.has("cta_group::2")) inst->sub |= kPair;
}

std::string decode_alloc(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const machine::MemoryOperand m = c.address(s.operands[0], ptx::Space::Shared);
  inst->fn = alloc;
  set_group(r, inst);
  inst->sync = machine::kSyncAligned;
  inst->ends_slice = 1;
  inst->a = m.slot;
  inst->width = m.wide ? 8 : 4;
  inst->offset = m.offset;
  inst->b = c.source(s.operands[1], Type::B32);
  inst->cost = c.timing().tmem_alloc;
  return {};
}
std::string decode_dealloc(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = dealloc;
  set_group(r, inst);
  inst->sync = machine::kSyncAligned;
  inst->ends_slice = 1;
  inst->a = c.source(s.operands[0], Type::B32);
  inst->b = c.source(s.operands[1], Type::B32);
  inst->cost = c.timing().tmem_alloc;
  return {};
}
std::string decode_relinquish(DecodeContext&, const ptx::Resolved& r, const ptx::Statement&, Inst* inst) {
  inst->fn = relinquish;
  set_group(r, inst);
  inst->sync = machine::kSyncAligned;
  inst->ends_slice = 1;
  return {};
}

std::string decode_access(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  using Shape = TensorAccessForm::Shape;
  const bool is_load = r.spec->op == ptx::Op::Tcgen05Ld;
  TensorAccessForm f;
  f.shape = r.has("32x32b")    ? Shape::L32x32b
            : r.has("16x64b")  ? Shape::L16x64b
            : r.has("16x128b") ? Shape::L16x128b
            : r.has("16x256b") ? Shape::L16x256b
                               : Shape::L16x32bx2;
  for (const auto& [name, n] : {std::pair{"x1", 1u},
                                {"x2", 2u},
                                {"x4", 4u},
                                {"x8", 8u},
                                {"x16", 16u},
                                {"x32", 32u},
                                {"x64", 64u},
                                {"x128", 128u}}) {
    if (r.has(name)) f.repeat = n;
  }
  f.packed = r.has("pack::16b") || r.has("unpack::16b");
  if (std::string problem = f.problem(); !problem.empty()) return problem;
  const ptx::Operand& address = s.operands[is_load ? 1 : 0];
  const ptx::Operand& values = is_load ? s.operands[0] : s.operands.back();
  if (f.shape == Shape::L16x32bx2) {
    const ptx::Operand& split = s.operands[is_load ? 2 : 1];
    if (split.kind != ptx::Operand::Kind::Integer) return "immHalfSplitoff must be a constant";
    if (split.bits >= kTensorMemoryColumns) return "immHalfSplitoff is a distance in columns, 0 to 511";
    f.split = static_cast<uint32_t>(split.bits);
  }
  std::vector<const ptx::Operand*> list;
  if (values.kind == ptx::Operand::Kind::Vector) {
    for (const ptx::Operand& o : values.elements) list.push_back(&o);
  } else {
    list.push_back(&values);
  }
  if (list.size() != f.registers())
    return fmt::format("this shape takes {} registers, got {}", f.registers(), list.size());
  std::vector<uint32_t> slots;
  for (const ptx::Operand* o : list) {
    if (is_load && o->kind == ptx::Operand::Kind::Sink) {
      slots.push_back(kNoOperand);
      continue;
    }
    if (c.width(*o, Type::B32) != 4) return "the registers are 32 bits wide";
    slots.push_back(is_load ? c.destination(*o, 4) : c.source(*o, Type::B32));
  }
  const machine::MemoryOperand m = c.address(address, ptx::Space::Generic);
  if (m.wide) return "a tensor memory address is 32 bits wide";
  inst->fn = is_load ? load : store;
  inst->sync = machine::kSyncAligned;
  inst->ends_slice = 1;
  inst->a = m.slot;
  inst->offset = m.offset;
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  inst->imm =
      static_cast<uint64_t>(f.shape) | uint64_t{f.packed} << 8 | uint64_t{f.repeat} << 16 | uint64_t{f.split} << 32;
  return {};
}

std::string decode_wait(DecodeContext&, const ptx::Resolved& r, const ptx::Statement&, Inst* inst) {
  inst->fn = wait;
  inst->sync = machine::kSyncAligned;
  inst->ends_slice = 1;
  inst->sub = r.spec->name == "tcgen05.wait::st" ? 1 : 0;
  return {};
}
std::string decode_fence(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement&, Inst* inst) {
  inst->fn = fence;
  inst->sub = r.spec->name == "tcgen05.fence::after_thread_sync" ? 1 : 0;
  inst->cost = c.timing().alu;
  return {};
}

std::string decode_commit(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (r.has("multicast::cluster") != (s.operands.size() > 1))
    return "a mask of CTAs goes with .multicast::cluster, and this with a mask";
  inst->b = s.operands.size() > 1 ? c.source(s.operands[1], Type::U16) : kNoOperand;
  set_group(r, inst);
  const machine::MemoryOperand m = c.address(s.operands[0], ptx::Space::Shared);
  inst->fn = commit;
  inst->ends_slice = 1;
  inst->a = m.slot;
  inst->width = m.wide ? 8 : 4;
  inst->offset = m.offset;
  inst->cost = c.timing().mbarrier_op;
  return {};
}

MmaKind kind_of(const ptx::Resolved& r) {
  for (const MmaKind kind :
       {MmaKind::Tf32, MmaKind::F8F6F4, MmaKind::I8, MmaKind::Mxf8f6f4, MmaKind::Mxf4, MmaKind::Mxf4nvf4}) {
    if (r.has(to_string(kind))) return kind;
  }
  return MmaKind::F16;
}
/// Factors of a row by PTX Tables 56 and 57; 0 without block scaling. The table of instructions knows which go with a
/// kind.
uint64_t scale_factors_of(const ptx::Resolved& r, MmaKind kind) {
  if (!is_block_scaled(kind)) return 0;
  if (kind == MmaKind::Mxf8f6f4) return 1;
  return r.has("scale_vec::4X") || r.has("block16") ? 4 : 2;
}

std::string decode_mma(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  using Kind = ptx::Operand::Kind;
  set_group(r, inst);
  if (r.has("ashift"))
    return "A shifted by a row is not emulated: the manual does not say whether a row gets the one before or behind it";
  const bool weight_stationary = r.spec->name == "tcgen05.mma.ws";
  if (weight_stationary) inst->sub |= kWeightStationary;
  std::vector<uint32_t> pool(kMmaPoolSize, kNoOperand);
  const auto tensor_address = [&](const ptx::Operand& o, uint32_t slot, uint32_t offset) {
    const machine::MemoryOperand m = c.address(o, ptx::Space::Generic);
    pool[slot] = m.slot;
    pool[offset] = static_cast<uint32_t>(m.offset);
    return !m.wide;
  };
  if (s.operands[0].kind != Kind::Address) return "D is an address in tensor memory";
  bool narrow = tensor_address(s.operands[0], kD, kDOffset);
  if (s.operands[1].kind == Kind::Address) {
    inst->sub |= kTensorA;
    narrow = narrow && tensor_address(s.operands[1], kA, kAOffset);
  } else {
    pool[kA] = c.source(s.operands[1], Type::B64);
    if (c.width(s.operands[1], Type::B64) != 8) return "a shared memory descriptor is 64 bits wide";
  }
  if (!narrow) return "a tensor memory address is 32 bits wide";
  pool[kB] = c.source(s.operands[2], Type::B64);
  if (c.width(s.operands[2], Type::B64) != 8) return "a shared memory descriptor is 64 bits wide";
  pool[kInstruction] = c.source(s.operands[3], Type::B32);
  const MmaKind kind = kind_of(r);
  size_t next = 4;
  if (is_block_scaled(kind)) {
    for (const auto& [slot, offset] : {std::pair{kScaleA, kScaleAOffset}, std::pair{kScaleB, kScaleBOffset}}) {
      if (s.operands[next].kind != Kind::Address) return "scale factors are at an address in tensor memory";
      if (!tensor_address(s.operands[next++], slot, offset)) return "a tensor memory address is 32 bits wide";
    }
  } else if (s.operands[next].kind == Kind::Vector && !weight_stationary) {
    const auto& mask = s.operands[next].elements;
    const size_t size = of_pair(*inst) ? 8 : 4;
    if (mask.size() != size) {
      return fmt::format("disable-output-lane has {} elements with cta_group::{}, got {}", size, size / 4, mask.size());
    }
    for (uint32_t k = 0; k < size; k++) pool[kMask0 + k] = c.source(mask[k], Type::B32);
    next++;
  }
  if (next >= s.operands.size()) return "enable-input-d is missing";
  if (c.width(s.operands[next], Type::Pred) != 0) return "enable-input-d is a predicate";
  pool[kEnable] = c.source(s.operands[next++], Type::Pred);
  uint64_t scale = 0;
  if (weight_stationary && next < s.operands.size()) {
    if (c.width(s.operands[next], Type::B64) != 8) return "zero-column-mask-desc is 64 bits wide";
    pool[kZeroColumns] = c.source(s.operands[next++], Type::B64);
  } else if (next < s.operands.size()) {
    if (s.operands[next].kind != Kind::Integer || s.operands[next].bits > 15)
      return "scale-input-d is a constant from 0 to 15";
    if (kind != MmaKind::F16 && kind != MmaKind::Tf32) return "scale-input-d goes with kind::f16 and kind::tf32 only";
    scale = s.operands[next++].bits;
  }
  if (next != s.operands.size()) return "has too many operands";
  inst->fn = mma_instruction;
  inst->ends_slice = 1;
  inst->imm = static_cast<uint64_t>(kind) | scale << 8 | scale_factors_of(r, kind) << 16;
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
  inst->cost = c.timing().mbarrier_op;
  return {};
}

std::string decode_copy(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  using Shape = TensorCopyForm::Shape;
  const bool pairs = r.has("warpx2::02_13") || r.has("warpx2::01_23"), four = r.has("warpx4");
  if (pairs != r.has("64x128b") || four != r.has("32x128b"))
    return ".64x128b goes with .warpx2::02_13 or .warpx2::01_23, .32x128b with .warpx4, and the others with none of "
           "them";
  const Shape shape = r.has("128x256b")        ? Shape::C128x256b
                      : r.has("4x256b")        ? Shape::C4x256b
                      : r.has("128x128b")      ? Shape::C128x128b
                      : r.has("warpx2::02_13") ? Shape::C64x128b02_13
                      : r.has("warpx2::01_23") ? Shape::C64x128b01_23
                                               : Shape::C32x128b;
  const machine::MemoryOperand m = c.address(s.operands[0], ptx::Space::Generic);
  if (m.wide) return "a tensor memory address is 32 bits wide";
  if (c.width(s.operands[1], Type::B64) != 8) return "a shared memory descriptor is 64 bits wide";
  inst->fn = copy_instruction;
  inst->ends_slice = 1;
  inst->a = m.slot;
  inst->offset = m.offset;
  inst->b = c.source(s.operands[1], Type::B64);
  inst->imm = static_cast<uint64_t>(shape) | (r.has("b4x16_p64") ? 4u : r.has("b6x16_p32") ? 6u : 8u) << 8;
  inst->cost = c.timing().mbarrier_op;
  set_group(r, inst);
  return {};
}

}  // namespace

void end_tensor_memory(Cta& cta) {
  TensorCore& t = state(cta).tensor;
  Cta* peer = peer_of(cta);
  for (Cta* queue_owner : {&cta, peer}) {
    if (queue_owner == nullptr) continue;
    for (const auto& item : state(*queue_owner).tensor.queue) {
      if (!item->touches(cta)) continue;
      cta.launch->report(
          *item->inst, "copy-in-flight-at-exit",
          fmt::format("the block ended while this {}{} still read its shared memory and wrote its tensor memory",
                      item->kind == TensorCoreItem::Kind::Copy ? "copy" : "MMA",
                      item->warp->cta == &cta ? "" : ", issued in the other CTA of its pair,"),
          item->second == nullptr ? "tcgen05.commit to an mbarrier, and a wait on it before the last thread leaves."
                                  : "tcgen05.commit with .multicast::cluster to an mbarrier of each CTA of the pair, "
                                    "and a wait on it before "
                                    "the last thread leaves.");
      break;
    }
  }
  for (const TensorMemory::Allocation& a : t.memory.allocations) {
    cta.launch->report(
        *a.inst, "tmem-leak",
        fmt::format("the block ended without freeing the {} columns of tensor memory that it allocated here",
                    a.columns),
        "tcgen05.dealloc of every allocation, by a whole warp, before the block ends.");
  }
  if (t.memory.allocations.empty()) return;
  t.memory.allocations.clear();
  if (peer != nullptr) machine::wake(*cta.domain, WaitTarget::Kind::TensorPair, peer, 1, cta.domain->now);
  wake_allocators(cta, cta.domain->now);
}

void register_tcgen05_decoders(machine::DecoderTable& table) {
  using ptx::Op;
  table[Op::Tcgen05Alloc] = decode_alloc;
  table[Op::Tcgen05Dealloc] = decode_dealloc;
  table[Op::Tcgen05Relinquish] = decode_relinquish;
  table[Op::Tcgen05Ld] = decode_access;
  table[Op::Tcgen05St] = decode_access;
  table[Op::Tcgen05Wait] = decode_wait;
  table[Op::Tcgen05Fence] = decode_fence;
  table[Op::Tcgen05Commit] = decode_commit;
  table[Op::Tcgen05Mma] = decode_mma;
  table[Op::Tcgen05Cp] = decode_copy;
}

}  // namespace handoff::async
