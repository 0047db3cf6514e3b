// Tested by grader/emulator/emulator_test.cc and grader/emulator/check/cluster_rules_test.cc.
#include "grader/emulator/machine/reachability.h"

#include <algorithm>
#include <string_view>

#include "grader/emulator/machine/control_ops.h"
#include "grader/emulator/machine/program.h"

namespace handoff::machine {

bool waits_for_mbarrier(const Fragment& f) {
  return f.waiting() && std::any_of(f.targets().begin(), f.targets().end(),
                                    [](const WaitTarget& t) { return t.kind == WaitTarget::Kind::Mbarrier; });
}

bool Reachability::is(const Inst& inst, Goal goal, uint32_t id) const {
  // The end of a body has the statement before it.
  if (inst.fn == return_from_function) return false;
  const ptx::Statement& s = launch_.program->statement(inst);
  if (s.opcode.empty()) return false;
  const auto has = [&s](std::string_view part) {
    return std::any_of(s.opcode.begin(), s.opcode.end(), [&](const std::string& p) { return p == part; });
  };
  const std::string& op = s.opcode.front();
  const bool barrier = (op == "bar" || op == "barrier") && !has("warp");
  switch (goal) {
    case Goal::Signal:
      // PTX §9.7.13.15.13-14, §9.7.13.15.15 (cp.async), §9.7.16.12.1; complete_tx of any copy.
      return (op == "mbarrier" && (has("arrive") || has("arrive_drop") || has("complete_tx"))) ||
             (op == "cp" && has("mbarrier") && has("arrive")) || (op == "tcgen05" && has("commit")) ||
             has("mbarrier::complete_tx::bytes");
    case Goal::NamedBarrier: {
      if (!barrier || has("cluster")) return false;
      // The operands of .red begin with a destination; an id in a register may be any.
      const bool plain = !has("red") && !s.operands.empty();
      return !plain || s.operands[0].kind != ptx::Operand::Kind::Integer || s.operands[0].bits == id;
    }
    case Goal::ClusterBarrier:
      return barrier && has("cluster") && has("arrive");
  }
  return false;
}

bool Reachability::reaches(const Fragment& f, Goal goal, uint32_t id, bool forward) {
  const auto [answer, fresh] = known_.try_emplace({f.pc, f.stack, goal, id, forward}, false);
  if (!fresh) return answer->second;
  const Program& p = *launch_.program;
  std::vector<bool> seen(p.code.size(), false);
  std::vector<uint32_t> work{f.pc};
  // Which call a ret ends is not followed: callers of the fragment are places where it may come to at any time.
  for (uint32_t s = f.stack; s != 0; s = launch_.stacks[s].parent) work.push_back(launch_.stacks[s].return_pc);
  while (!work.empty()) {
    const uint32_t pc = work.back();
    work.pop_back();
    if (pc >= p.code.size() || seen[pc]) continue;
    seen[pc] = true;
    const Inst& i = p.code[pc];
    if (is(i, goal, id)) return answer->second = true;
    const auto jump = [&](uint32_t target) {
      if (!forward || target > pc) work.push_back(target);
    };
    bool goes_on = true;
    if (i.fn == branch) {
      jump(i.target);
      goes_on = i.guard != kNoOperand;
    } else if (i.fn == branch_indexed) {
      for (uint32_t t = 0; t < i.list_size; t++) jump(p.operand_pool[i.list + t]);
      goes_on = i.guard != kNoOperand;
    } else if (i.fn == call_function) {
      work.push_back(i.target);
    } else if (i.fn == return_from_function || p.statement(i).opcode.front() == "exit") {
      goes_on = i.guard != kNoOperand;
    }
    if (goes_on) work.push_back(pc + 1);
  }
  return false;
}

bool Reachability::waits_for(const Warp& w, const Fragment& f, const Warp& x, const Fragment& o) {
  if (&f == &o) return false;
  if (f.state == Fragment::State::Parked)
    return &w == &x && launch_.program->code[f.pc].sync == kSyncAligned;  // for all lanes of its warp
  if (f.state != Fragment::State::Blocked || f.waits.empty()) return false;
  const WaitTarget& t = f.waits[0];
  if (t.kind == WaitTarget::Kind::WarpSync) return &w == &x && (o.mask & t.offset) != 0;
  if (t.kind == WaitTarget::Kind::ClusterBarrier)
    return x.cta->domain == w.cta->domain && (o.mask & x.live & ~x.cluster_arrived) != 0;
  if (t.kind != WaitTarget::Kind::NamedBarrier || x.cta != w.cta) return false;
  const NamedBarrier& b = w.cta->barriers[t.offset];
  if ((o.mask & x.live & ~b.arrived_lanes[x.index]) == 0) return false;
  return b.expected == 0 || reaches(o, Goal::NamedBarrier, t.offset);
}

bool Reachability::misplaced_barrier(const Warp& w, const Fragment& f) {
  if (f.state != Fragment::State::Blocked || f.waits.empty()) return false;
  const WaitTarget& t = f.waits[0];
  const bool cluster = t.kind == WaitTarget::Kind::ClusterBarrier;
  if (!cluster && t.kind != WaitTarget::Kind::NamedBarrier) return false;
  if (!reaches(f, Goal::Signal, 0, true)) return false;
  for (const auto& cta : w.cta->domain->ctas) {
    for (const Warp& x : cta->warps) {
      for (const Fragment& o : x.fragments) {
        if (waits_for_mbarrier(o) && waits_for(w, f, x, o) &&
            !reaches(o, cluster ? Goal::ClusterBarrier : Goal::NamedBarrier, t.offset))
          return true;
      }
    }
  }
  return false;
}

}  // namespace handoff::machine
