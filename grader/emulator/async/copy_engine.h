// What bulk copies and tensor copies have in common: an operation on its way through the copy engine of an SM.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "grader/emulator/async/async_state.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::async {

/// An operation of the copy engine. Who issues one fills `info` (all but `id`) and the fields below, then calls
/// start().
struct Copy {
  machine::AsyncOpInfo info{};  ///< what observers are told
  bool reduces = false;         ///< the destination keeps its contents until it is combined with
  const char* noun = "";        ///< for messages: "a bulk copy"
  // Set by start():
  machine::Domain* domain = nullptr;  ///< whose events complete it
  std::shared_ptr<Group> group;       ///< of operations that signal no mbarrier
  machine::AlignedBytes staging;      ///< info.bytes bytes between source read and destination written; else anything
  uint32_t pieces_left = 1;           ///< pieces of `staging` that are not written yet

  virtual ~Copy() = default;
  /// Fills the destination in shared memory with poison, as far as the copy will write it.
  virtual void poison() {
    std::memset(info.destination_owner->shared(static_cast<uint32_t>(info.destination)), machine::kPoison,
                info.shared_bytes);
  }
  /// Fills `staging` from the source.
  virtual void read() = 0;
  /// Writes bytes [from, from + bytes) of `staging` to where they belong; both are multiples of 16.
  virtual void write(uint32_t from, uint32_t bytes) = 0;
};

/// Issues `copies` for a lane of `w`: tells the observer, poisons destinations in shared memory, books the copy engine
/// and queues the milestones. Several copies are what one instruction delivers to several CTAs (.multicast::cluster):
/// each is an operation of its own for observers, with its own id, destination and mbarrier, and lands when it will;
/// the copy engine reads their bytes once. Reports `barrier-overwritten`. The operands must have been checked.
void start(Warp& w, const Inst& inst, int lane, const std::vector<std::shared_ptr<Copy>>& copies);
/// The same for one operation that does not pass the copy engine: its source is read at time `read_at`, its destination
/// written at `written_at`.
void start_at(Warp& w, const Inst& inst, int lane, std::shared_ptr<Copy> copy, uint64_t read_at, uint64_t written_at);
/// Makes the lanes of one instruction issue one behind the other: to be called behind start() for each lane of `mask`.
inline void space_out(Warp& w, const Inst& inst, int lane, LaneMask mask) {
  w.time += lane == 31 - __builtin_clz(mask) ? 0 : inst.cost;
}

/// What the modifiers of a load say of its destinations.
struct LoadForm {
  bool multicast = false;  ///< .multicast::cluster: `mask` names the CTAs
  uint32_t mask = 0;       ///< bit r: the CTA of rank r
  /// Which CTA's mbarrier may be told. Own: the destination's. Pair: either CTA of the destination's pair
  /// (.cta_group::2; the ranks 2·k and 2·k + 1 are a pair). Any: the ISA does not restrict it.
  enum class Signals : uint8_t { Own, Pair, Any };
  Signals signals = Signals::Own;  ///< as above
};
/// Where a load delivers: whose shared memory is written, whose mbarrier is told.
struct Delivery {
  Cta* destination;  ///< at the offset of the destination operand
  Cta* barrier;      ///< at the offset of the mbarrier operand
};
/// Where a load with these two operands delivers, by rank (PTX §9.7.9.25.4.1, §9.7.9.27.1.2). Faults `bad-copy` where
/// the mask or the place of the mbarrier breaks a rule, `remote-cta-gone`, `barrier-not-initialized`. `noun`: "a tensor
/// copy".
std::vector<Delivery> deliveries(Warp& w, int lane, const LoadForm& form, const SharedPlace& destination,
                                 const SharedPlace& barrier, const char* noun);
/// A copy for each delivery, the first of them `first`: with the owners set, then completed by `settle(copy)`.
template <class C, class F>
std::vector<std::shared_ptr<Copy>> one_for_each(const std::shared_ptr<C>& first, const std::vector<Delivery>& to,
                                                const F& settle) {
  std::vector<std::shared_ptr<Copy>> copies;
  for (const Delivery& d : to) {
    const std::shared_ptr<C> each = copies.empty() ? first : std::make_shared<C>(*first);
    each->info.destination_owner = d.destination;
    each->info.mbarrier_owner = d.barrier;
    settle(*each);
    copies.push_back(each);
  }
  return copies;
}

/// Operands of copies do not fit into Inst: they lie in the operand pool, an address in three entries.
inline constexpr uint32_t kPooledAddress = 3;
/// Writes the entries [at, at + kPooledAddress). False: the offset does not fit.
bool pool_address(const machine::MemoryOperand& operand, std::vector<uint32_t>& pool, uint32_t at);
/// The address of a lane; `entries` are the three.
uint64_t pooled_address(const Warp& w, const uint32_t* entries, int lane);

}  // namespace handoff::async
