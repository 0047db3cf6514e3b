// Clocks against plain maps from (warp, lane) and from component to number.
#include "grader/emulator/check/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace handoff::check {
namespace {

constexpr uint32_t kAll = 0xffffffffu;

struct Model {
  std::map<std::pair<uint32_t, int>, uint32_t> warps;
  std::map<uint64_t, uint64_t> others;

  void learn(uint32_t key, uint32_t mask, uint32_t n) {
    for (int l = 0; l < 32; l++) {
      if ((mask >> l & 1) != 0) warps[{key, l}] = std::max(warps[{key, l}], n);
    }
  }
  void learn(uint64_t key, uint64_t value) { others[key] = std::max(others[key], value); }
  void learn(const Model& m) {
    for (const auto& [lane, n] : m.warps) warps[lane] = std::max(warps[lane], n);
    for (const auto& [key, value] : m.others) learn(key, value);
  }
};

void expect_same(const ClockPtr& c, Model m, uint32_t keys) {
  for (uint32_t key = 0; key < keys; key++) {
    for (int l = 0; l < 32; l++)
      ASSERT_EQ((c ? c->warp(key, l) : 0), (m.warps[{key, l}])) << "warp " << key << " lane " << l;
    ASSERT_EQ((c ? c->other(key) : 0), m.others[key]) << "component " << key;
  }
}

TEST(ClockTest, KnowsNothingAtFirst) {
  EXPECT_EQ(Clock::join(nullptr, nullptr), nullptr);
  const ClockPtr c = Clock::with_warp(nullptr, 3, kAll, 5);
  EXPECT_EQ(c->warp(3, 31), 5u);
  EXPECT_EQ(c->warp(2, 31), 0u);
  EXPECT_EQ(c->other(3), 0u);
}

TEST(ClockTest, LanesShareANumberUntilTheyDiffer) {
  ClockPtr c = Clock::with_warp(nullptr, 1, 0x0000ffffu, 4);
  EXPECT_EQ(c->warp(1, 15), 4u);
  EXPECT_EQ(c->warp(1, 16), 0u);
  EXPECT_FALSE(c->all_lanes(1, 4));
  c = Clock::with_warp(c, 1, 0xffff0000u, 4);
  EXPECT_TRUE(c->all_lanes(1, 4));
  EXPECT_FALSE(c->all_lanes(1, 5));
  EXPECT_FALSE(c->all_lanes(2, 1));
  c = Clock::with_warp(c, 1, 1u << 7, 9);
  EXPECT_EQ(c->warp(1, 7), 9u);
  EXPECT_EQ(c->warp(1, 8), 4u);
  EXPECT_TRUE(c->all_lanes(1, 4));
}

TEST(ClockTest, NothingIsForgotten) {
  ClockPtr c = Clock::with_warp(nullptr, 1, kAll, 7);
  EXPECT_EQ(Clock::with_warp(c, 1, kAll, 3)->warp(1, 0), 7u);
  c = Clock::with(c, 5, 2);
  EXPECT_EQ(Clock::with(c, 5, 1)->other(5), 2u);
}

TEST(ClockTest, WhatChangesNothingIsTheSameObject) {
  const ClockPtr a = Clock::with(Clock::with_warp(nullptr, 1, kAll, 7), 5, 2);
  const ClockPtr less = Clock::with_warp(nullptr, 1, 0xffu, 6);
  EXPECT_EQ(Clock::join(a, less), a);
  EXPECT_EQ(Clock::join(less, a), a);
  EXPECT_EQ(Clock::join(a, nullptr), a);
  EXPECT_EQ(Clock::join(nullptr, a), a);
  EXPECT_EQ(Clock::with_warp(a, 1, 0xffu, 6), a);
  EXPECT_EQ(Clock::with(a, 5, 2), a);
}

TEST(ClockTest, IsImmutable) {
  const ClockPtr a = Clock::with_warp(nullptr, 1, kAll, 7);
  const ClockPtr b = Clock::with(Clock::with_warp(a, 1, 1, 8), 5, 2);
  EXPECT_EQ(a->warp(1, 0), 7u);
  EXPECT_EQ(a->other(5), 0u);
  EXPECT_EQ(b->warp(1, 0), 8u);
}

TEST(ClockTest, OnlyWhatNobodyElseHoldsIsChangedInPlace) {
  ClockPtr a = Clock::with_warp(nullptr, 1, 1, 7);
  const Clock* const object = a.get();
  a = Clock::with_warp(std::move(a), 1, 2, 9);
  EXPECT_EQ(a.get(), object);
  EXPECT_EQ(a->warp(1, 0), 7u);
  EXPECT_EQ(a->warp(1, 1), 9u);
  const ClockPtr held = a;
  a = Clock::with_warp(std::move(a), 1, 4, 5);
  EXPECT_NE(a, held);
  EXPECT_EQ(a->warp(1, 2), 5u);
  EXPECT_EQ(held->warp(1, 2), 0u);
  // Two clocks may share the numbers of a warp's lanes.
  ClockPtr other = Clock::with(held, 5, 2);
  other = Clock::with_warp(std::move(other), 1, 8, 6);
  EXPECT_EQ(other->warp(1, 3), 6u);
  EXPECT_EQ(held->warp(1, 3), 0u);
}

TEST(ClockTest, AgreesWithMaps) {
  constexpr uint32_t kKeys = 6;
  std::mt19937 random(1);
  for (int round = 0; round < 200; round++) {
    std::vector<std::pair<ClockPtr, Model>> clocks(4);
    for (int step = 0; step < 40; step++) {
      auto& [clock, model] = clocks[random() % clocks.size()];
      const uint32_t key = random() % kKeys, n = random() % 5;
      switch (random() % 4) {
        case 0: {
          const uint32_t mask = random() % 3 == 0   ? kAll
                                : random() % 2 == 0 ? 1u << random() % 32
                                                    : static_cast<uint32_t>(random());
          clock = random() % 2 == 0 ? Clock::with_warp(clock, key, mask, n)
                                    : Clock::with_warp(std::move(clock), key, mask, n);
          model.learn(key, mask, n);
          break;
        }
        case 1:
          clock = Clock::with(clock, key, n);
          model.learn(uint64_t{key}, n);
          break;
        default: {
          const auto other = clocks[random() % clocks.size()];
          clock = Clock::join(clock, other.first);
          model.learn(other.second);
        }
      }
      expect_same(clock, model, kKeys);
      for (uint32_t k = 0; k < kKeys && clock && n > 0; k++) {  // steps count from 1
        bool all = true;
        for (int l = 0; l < 32; l++) all = all && model.warps[{k, l}] >= n;
        ASSERT_EQ(clock->all_lanes(k, n), all);
      }
    }
  }
}

TEST(ClockTest, WithOthersLeavesWarpsOut) {
  const ClockPtr warps = Clock::with_warp(Clock::with(nullptr, 7, 3), 1, 0xffffffff, 9);
  const ClockPtr base = Clock::with(nullptr, 8, 1);
  const ClockPtr c = Clock::with_others(base, warps);
  EXPECT_EQ(c->other(7), 3u);
  EXPECT_EQ(c->other(8), 1u);
  EXPECT_EQ(c->warp(1, 0), 0u);
  EXPECT_EQ(Clock::with_others(c, warps), c);
  EXPECT_EQ(Clock::with_others(base, nullptr), base);
}

TEST(KnowledgeTest, JoinsEachShadeByItself) {
  const ClockPtr one = Clock::with(nullptr, 1, 1), two = Clock::with(nullptr, 2, 1);
  Knowledge k{one, one, nullptr, one, nullptr, two, nullptr, nullptr, nullptr};
  k.join({two, nullptr, two, one, nullptr, nullptr, two, nullptr, one});
  EXPECT_EQ(k.order->other(1) + k.order->other(2), 2u);
  EXPECT_EQ(k.any, one);
  EXPECT_EQ(k.fenced_shared, two);
  EXPECT_EQ(k.fenced_global, one);
  EXPECT_EQ(k.path_shared, nullptr);
  EXPECT_EQ(k.path_global, two);
  EXPECT_EQ(k.fenced_tensor, two);
  EXPECT_EQ(k.in_time, one);
}

TEST(KnowledgeTest, SameClocksStayTheSameObjects) {
  const ClockPtr one = Clock::with(nullptr, 1, 1), two = Clock::with(nullptr, 2, 1);
  Knowledge k{one, one, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  k.join({two, two, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
  EXPECT_EQ(k.order, k.any);
}

TEST(KnowledgeTest, WhatNeedsNoOrderIsThreeShades) {
  const ClockPtr one = Clock::with(nullptr, 1, 1);
  Knowledge k;
  k.join_any({one, one, one, one, one, one, one, one, one});
  EXPECT_EQ(k, (Knowledge{nullptr, one, nullptr, nullptr, nullptr, nullptr, one, nullptr, one}));
}

}  // namespace
}  // namespace handoff::check
