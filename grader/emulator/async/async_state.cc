#include "grader/emulator/async/async_state.h"

#include <fmt/format.h>

#include "grader/emulator/machine/fault.h"

namespace handoff::async {

using machine::make_fault;

Mbarrier* State::find(uint32_t offset) {
  for (Mbarrier& b : barriers) {
    if (b.offset == offset) return &b;
  }
  return nullptr;
}

std::string barrier_name(const Cta& owner, uint32_t offset) { return barrier_name(*owner.launch->program, offset); }

std::string barrier_name(const machine::Program& p, uint32_t offset) {
  const machine::SharedSymbol* s = p.find_shared(offset);
  if (s == nullptr) return fmt::format("the barrier at shared offset {:#x}", offset);
  // An array of so many bytes is one of barriers; what is larger is a structure that holds some. PTX does not tell.
  constexpr uint64_t kMostBarriers = 32;
  if (s->dynamic || s->size > 8 * kMostBarriers) return p.describe_shared(offset);
  if (s->size == 8) return s->name;
  return fmt::format("{}[{}]", s->name, (offset - s->offset) / 8);
}

SharedPlace shared_place(Warp& w, int lane, uint64_t address, SharedWindow window, uint32_t bytes, uint32_t alignment,
                         const char* what) {
  const auto who = [&] { return machine::describe_lanes(w, LaneMask{1} << lane); };  // for messages
  if (window == SharedWindow::Generic && !machine::in_shared_window(address)) {
    throw make_fault("out-of-bounds", fmt::format("{}: {} {:#x} is not in shared memory", who(), what, address));
  }
  const uint32_t offset = static_cast<uint32_t>(address) & machine::kSharedOffsetMask;
  Cta* owner = machine::shared_owner(w, static_cast<uint32_t>(address), window == SharedWindow::Cta,
                                     [&] { return fmt::format("{}: {}", who(), what); });
  if (offset % alignment != 0) {
    throw make_fault("misaligned", fmt::format("{}: {} {} is not a multiple of {} bytes", who(), what,
                                               w.cta->launch->program->describe_shared(offset), alignment));
  }
  if (offset < machine::kSharedBase || uint64_t{offset} + bytes > owner->smem.size()) {
    throw make_fault(
        "out-of-bounds",
        fmt::format("{}: {} {} with {} bytes runs past the CTA's {} bytes of shared memory", who(), what,
                    w.cta->launch->program->describe_shared(offset), bytes, owner->smem.size() - machine::kSharedBase));
  }
  return {owner, offset};
}

namespace {

std::unique_ptr<machine::AsyncCtaState> make_state(Cta&) { return std::make_unique<State>(); }

void cta_end(Cta& cta) {
  for (const InFlight& f : state(cta).in_flight) {
    if (f.bytes == 0) continue;  // a copy of nothing endangers nothing
    cta.launch->report(
        *f.inst, "copy-in-flight-at-exit",
        f.writes_shared
            ? fmt::format("the block ended while this copy of {} bytes into its shared memory was unfinished", f.bytes)
            : fmt::format("the block ended while this copy still read {} bytes of its shared memory", f.bytes),
        f.writes_shared ? "Wait for it (its mbarrier, or its group for cp.async) before the last thread leaves."
                        : "cp.async.bulk.wait_group.read 0 before the last thread leaves would do.");
  }
  end_tensor_memory(cta);
}

void describe_barriers(Cta& cta, std::vector<std::string>& out) {
  for (const Mbarrier& b : state(cta).barriers) {
    std::string line = fmt::format("{:<7} phase {}   pending arrivals {} of {}   tx-count {}",
                                   barrier_name(cta, b.offset), b.phase, b.pending, b.expected, b.tx);
    if (b.announced != 0 || b.arrived != 0)
      line += fmt::format("   {} of {} expected bytes arrived", b.arrived, b.announced);
    out.push_back(std::move(line));
  }
}

bool hits_barrier(Cta& cta, uint32_t offset, uint32_t bytes) {
  for (const Mbarrier& b : state(cta).barriers) {
    if (offset < b.offset + 8 && offset + bytes > b.offset) return true;
  }
  return false;
}

std::string describe_wait(const machine::WaitTarget& t) {
  const std::string name = barrier_name(*t.owner, t.offset);
  return t.by_parity ? fmt::format("{}, parity {}", name, t.phase & 1) : fmt::format("{}, phase {}", name, t.phase);
}

}  // namespace

const machine::AsyncHooks& hooks() {
  static const machine::AsyncHooks kHooks{make_state, cta_end, describe_barriers, hits_barrier, describe_wait};
  return kHooks;
}

void register_async_decoders(machine::DecoderTable& table) {
  register_mbarrier_decoders(table);
  register_bulk_copy_decoders(table);
  register_remote_store_decoders(table);
  register_tensor_copy_decoders(table);
  register_tensor_map_decoders(table);
  register_cp_async_decoders(table);
  register_launch_control_decoders(table);
  register_tcgen05_decoders(table);
}

}  // namespace handoff::async
