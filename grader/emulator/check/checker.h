// The happens-before checker: an observer that names the rule which a run broke, even where the data came out right.
// The rules and what they rest on: checker.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "grader/emulator/check/clock.h"
#include "grader/emulator/check/shadow.h"
#include "grader/emulator/machine/observer.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::check {

/// One checker watches one launch. Diagnostics go to Launch::diagnostics at its end, causes first.
class Checker : public machine::Observer {
 public:
  Checker();
  ~Checker() override;
  void launch_begin(machine::Launch& launch) override;
  void launch_end(machine::Launch& launch) override;
  void cta_begin(machine::Cta& cta) override;
  void cta_end(machine::Cta& cta) override;
  void access(const machine::Access& access) override;
  void fence(machine::Warp& warp, const machine::Inst& inst, machine::LaneMask mask,
             const machine::FenceInfo& info) override;
  void barrier(const machine::BarrierEvent& event) override;
  void mbarrier(const machine::MbarrierEvent& event) override;
  void async_op(const machine::AsyncOpInfo& info, machine::AsyncOpInfo::Milestone milestone) override;
  void tensor(const machine::TensorEvent& event) override;
  void group(const machine::GroupEvent& event) override;

  /// Host bytes of shadow memory at its largest during the last launch, for global memory and all CTAs
  /// that lived at that moment.
  size_t shadow_bytes() const { return shadow_bytes_; }

 private:
  struct State;
  std::unique_ptr<State> s_;
  size_t shadow_bytes_ = 0;
};

}  // namespace handoff::check
