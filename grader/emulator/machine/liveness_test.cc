// Colouring against a slow, obvious liveness: one bit a register and a statement, iterated to the fixed point.
#include "grader/emulator/machine/liveness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "grader/emulator/machine/random.h"

namespace handoff::machine {
namespace {

using ptx::Type;

struct Graph {
  ptx::Function function;
  std::vector<Flow> flow;

  void add_register(Type type) {
    function.registers.push_back({"%v" + std::to_string(function.registers.size()), type});
  }
  /// Appends a statement; `guard` is a register index or -1 and counts as a use.
  void add(std::vector<uint32_t> defs, std::vector<uint32_t> uses, std::vector<uint32_t> targets = {},
           bool falls_through = true, int32_t guard = -1) {
    ptx::Statement s;
    s.guard = guard;
    function.statements.push_back(s);
    if (guard >= 0) uses.push_back(static_cast<uint32_t>(guard));
    flow.push_back({std::move(uses), std::move(defs), std::move(targets), falls_through});
  }
  std::vector<uint32_t> successors(uint32_t s) const {
    std::vector<uint32_t> list = flow[s].targets;
    if (flow[s].falls_through && s + 1 < flow.size()) list.push_back(s + 1);
    return list;
  }
};

struct Naive {
  std::vector<std::set<uint32_t>> in, out;  // by statement
};

Naive naive_liveness(const Graph& g) {
  const size_t n = g.flow.size();
  Naive live{std::vector<std::set<uint32_t>>(n), std::vector<std::set<uint32_t>>(n)};
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t s = 0; s < n; s++) {
      std::set<uint32_t> out;
      for (uint32_t t : g.successors(s)) out.insert(live.in[t].begin(), live.in[t].end());
      std::set<uint32_t> in = out;
      if (g.function.statements[s].guard < 0) {
        for (uint32_t d : g.flow[s].defs) in.erase(d);
      } else {
        // The old value may survive, so it must be there.
        in.insert(g.flow[s].defs.begin(), g.flow[s].defs.end());
      }
      in.insert(g.flow[s].uses.begin(), g.flow[s].uses.end());
      changed = changed || in != live.in[s] || out != live.out[s];
      live.in[s] = std::move(in);
      live.out[s] = std::move(out);
    }
  }
  return live;
}

uint32_t slot_bytes(Type type) {
  const SlotWidth width = slot_width(type);
  return width == 0 ? 4 : width * uint32_t{kWarpSize};
}

/// Every pair of registers that are in use at one statement must have disjoint bytes.
void expect_no_conflict(const Graph& g, const Colouring& c) {
  const Naive live = naive_liveness(g);
  for (uint32_t s = 0; s < g.flow.size(); s++) {
    std::set<uint32_t> at = live.in[s];
    at.insert(live.out[s].begin(), live.out[s].end());
    at.insert(g.flow[s].defs.begin(), g.flow[s].defs.end());
    for (uint32_t a : at) {
      ASSERT_NE(c.slot[a], kNoOperand) << "register " << a << " at statement " << s;
      const uint32_t a_bytes = slot_bytes(g.function.registers[a].type);
      EXPECT_LE(c.slot[a] + a_bytes, c.bytes);
      if (slot_width(g.function.registers[a].type) != 0) {
        EXPECT_EQ(c.slot[a] % 64, 0u);
      }
      for (uint32_t b : at) {
        if (a >= b) continue;
        const bool disjoint =
            c.slot[a] + a_bytes <= c.slot[b] || c.slot[b] + slot_bytes(g.function.registers[b].type) <= c.slot[a];
        ASSERT_TRUE(disjoint) << "registers " << a << " and " << b << " share bytes at statement " << s;
      }
    }
  }
}

constexpr Type kTypes[] = {Type::Pred, Type::B16, Type::B32, Type::F32, Type::U64, Type::F64, Type::B128};

Graph random_graph(Random& random) {
  Graph g;
  const auto registers = static_cast<uint32_t>(1 + random.below(24));
  const auto statements = static_cast<uint32_t>(1 + random.below(40));
  for (uint32_t r = 0; r < registers; r++) g.add_register(kTypes[random.below(std::size(kTypes))]);
  const auto some = [&](uint64_t most) {
    std::vector<uint32_t> list;
    for (uint64_t k = random.below(most + 1); k > 0; k--)
      list.push_back(static_cast<uint32_t>(random.below(registers)));
    return list;
  };
  for (uint32_t s = 0; s < statements; s++) {
    std::vector<uint32_t> targets;
    bool falls_through = true;
    if (random.below(4) == 0) {
      for (uint64_t k = 1 + random.below(3); k > 0; k--)
        targets.push_back(static_cast<uint32_t>(random.below(statements)));
      falls_through = random.below(2) == 0;
    } else if (random.below(16) == 0) {
      falls_through = false;  // exit
    }
    const int32_t guard = random.below(4) == 0 ? static_cast<int32_t>(random.below(registers)) : -1;
    g.add(some(2), some(3), std::move(targets), falls_through, guard);
  }
  return g;
}

TEST(Liveness, SlotWidthsFollowTheTypes) {
  EXPECT_EQ(slot_width(Type::Pred), 0);
  EXPECT_EQ(slot_width(Type::B8), 4);
  EXPECT_EQ(slot_width(Type::F16), 4);
  EXPECT_EQ(slot_width(Type::BF16x2), 4);
  EXPECT_EQ(slot_width(Type::F64), 8);
  EXPECT_EQ(slot_width(Type::F32x2), 8);
  EXPECT_EQ(slot_width(Type::B128), 16);
}

TEST(Liveness, NothingLiveAtOnceSharesASlot) {
  Random random{1};
  for (int round = 0; round < 1000; round++) {
    const Graph g = random_graph(random);
    expect_no_conflict(g, colour(g.function, g.flow));
    if (HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(Liveness, DifferentWidthsNeverOverlap) {
  Random random{2};
  for (int round = 0; round < 500; round++) {
    const Graph g = random_graph(random);
    const Colouring c = colour(g.function, g.flow);
    for (uint32_t a = 0; a < c.slot.size(); a++) {
      for (uint32_t b = 0; b < a; b++) {
        const Type ta = g.function.registers[a].type, tb = g.function.registers[b].type;
        if (c.slot[a] == kNoOperand || c.slot[b] == kNoOperand || slot_width(ta) == slot_width(tb)) continue;
        EXPECT_TRUE(c.slot[a] + slot_bytes(ta) <= c.slot[b] || c.slot[b] + slot_bytes(tb) <= c.slot[a]);
      }
    }
  }
}

TEST(Liveness, ValuesThatFollowEachOtherShareOneSlot) {
  Graph g;
  for (int r = 0; r < 8; r++) g.add_register(Type::B32);
  // v0 = …; v1 = …; use v1; v2 = …; and so on: none outlives the next definition but one.
  for (uint32_t r = 0; r < 8; r++) {
    g.add({r}, {});
    g.add({}, {r});
  }
  const Colouring c = colour(g.function, g.flow);
  for (uint32_t r = 1; r < 8; r++) EXPECT_EQ(c.slot[r], c.slot[0]);
  EXPECT_EQ(c.bytes, 128u);
}

TEST(Liveness, DestinationNeverSharesWithItsSource) {
  // A handler may write lane 0's result before it reads lane 1's source.
  Graph g;
  g.add_register(Type::B32);
  g.add_register(Type::B32);
  g.add({0}, {});
  g.add({1}, {0});
  g.add({}, {1});
  const Colouring c = colour(g.function, g.flow);
  EXPECT_NE(c.slot[0], c.slot[1]);
}

TEST(Liveness, GuardedWriteKeepsTheOldValueAlive) {
  Graph g;
  for (Type t : {Type::B32, Type::B32, Type::Pred}) g.add_register(t);
  g.add({2}, {});
  g.add({0}, {});  // v0 = …
  g.add({1}, {});  // v1 = …, between v0's definition and its guarded one
  g.add({}, {1});
  g.add({0}, {}, {}, true, 2);  // @p v0 = …
  g.add({}, {0});
  const Colouring c = colour(g.function, g.flow);
  EXPECT_NE(c.slot[0], c.slot[1]);
}

TEST(Liveness, UnusedRegistersHaveNoSlot) {
  Graph g;
  g.add_register(Type::B32);
  g.add_register(Type::B64);
  g.add({0}, {});
  const Colouring c = colour(g.function, g.flow);
  EXPECT_EQ(c.slot[1], kNoOperand);
  EXPECT_EQ(c.bytes, 128u);
}

TEST(Liveness, LoopCarriesWhatItsBodyWritesAndItsHeadReads) {
  Graph g;
  for (Type t : {Type::B32, Type::B32, Type::B32, Type::Pred}) g.add_register(t);
  g.add({0}, {});                // 0: i = 0
  g.add({1}, {});                // 1: n = …
  g.add({2}, {0});               // 2: head: t = i          (t is the body's own)
  g.add({0}, {0, 2});            // 3: i = i + t
  g.add({3}, {0, 1});            // 4: p = i < n            (n is not written)
  g.add({}, {3}, {2}, true, 3);  // 5: @p bra head
  g.add({}, {0});
  const Colouring c = colour(g.function, g.flow);
  ASSERT_EQ(c.loops.size(), 1u);
  EXPECT_EQ(c.loops[0].branch, 5u);
  EXPECT_EQ(c.loops[0].carried, (std::vector<uint32_t>{0}));
}

TEST(Liveness, SpinLoopCarriesNothing) {
  Graph g;
  for (Type t : {Type::B64, Type::B32, Type::Pred}) g.add_register(t);
  g.add({0}, {});
  g.add({1}, {0});              // 1: head: v = [a]
  g.add({2}, {1});              // 2: p = v == 0
  g.add({}, {}, {1}, true, 2);  // 3: @p bra head
  g.add({}, {}, {}, false);
  const Colouring c = colour(g.function, g.flow);
  ASSERT_EQ(c.loops.size(), 1u);
  EXPECT_TRUE(c.loops[0].carried.empty());
}

TEST(Liveness, CarriedSetsOfRandomLoops) {
  Random random{3};
  for (int round = 0; round < 1000; round++) {
    const Graph g = random_graph(random);
    const Naive live = naive_liveness(g);
    for (const Colouring::Loop& loop : colour(g.function, g.flow).loops) {
      // A branch with several backward targets has one entry for each: this one must fit one of them.
      bool fits = false;
      for (uint32_t t : g.flow[loop.branch].targets) {
        if (t > loop.branch) continue;
        std::set<uint32_t> expected;
        for (uint32_t s = t; s <= loop.branch; s++) {
          for (uint32_t d : g.flow[s].defs) {
            if (live.in[t].contains(d)) expected.insert(d);
          }
        }
        fits = fits || std::vector<uint32_t>(expected.begin(), expected.end()) == loop.carried;
      }
      EXPECT_TRUE(fits) << "round " << round << ", branch at " << loop.branch;
    }
  }
}

TEST(Liveness, NoStatements) {
  Graph g;
  g.add_register(Type::B32);
  const Colouring c = colour(g.function, g.flow);
  EXPECT_EQ(c.bytes, 0u);
  EXPECT_EQ(c.slot[0], kNoOperand);
}

}  // namespace
}  // namespace handoff::machine
