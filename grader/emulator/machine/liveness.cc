// Tested by liveness_test.cc.
//
// Liveness is per thread, as PTX is: what lanes of a warp do side by side cannot disturb each other, since every lane
// owns its own element of a slot. A guarded write does not end a live range (the old value may survive).
#include "grader/emulator/machine/liveness.h"

#include <algorithm>
#include <array>

namespace handoff::machine {
namespace {

class BitSet {
 public:
  explicit BitSet(size_t bits) : words_((bits + 63) / 64) {}
  void set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  bool test(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  /// this |= (other & ~mask); true if anything changed.
  bool merge_without(const BitSet& other, const BitSet& mask) {
    uint64_t changed = 0;
    for (size_t i = 0; i < words_.size(); i++) {
      const uint64_t v = words_[i] | (other.words_[i] & ~mask.words_[i]);
      changed |= v ^ words_[i];
      words_[i] = v;
    }
    return changed != 0;
  }
  bool merge(const BitSet& other) {
    uint64_t changed = 0;
    for (size_t i = 0; i < words_.size(); i++) {
      const uint64_t v = words_[i] | other.words_[i];
      changed |= v ^ words_[i];
      words_[i] = v;
    }
    return changed != 0;
  }
  template <class F>
  void each(F&& f) const {
    for (size_t w = 0; w < words_.size(); w++) {
      for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1)
        f(w * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
    }
  }

 private:
  std::vector<uint64_t> words_;
};

struct Block {
  uint32_t first, last;  // statements [first, last]
  std::vector<uint32_t> successors;
  BitSet gen, kill, in, out;
};

struct Interval {
  uint32_t reg, begin, end;
};

}  // namespace

SlotWidth slot_width(ptx::Type type) {
  if (type == ptx::Type::Pred) return 0;
  const size_t bytes = ptx::size_of(type);
  return bytes <= 4 ? 4 : bytes <= 8 ? 8 : 16;
}

Colouring colour(const ptx::Function& function, const std::vector<Flow>& flow) {
  const size_t registers = function.registers.size();
  const auto statements = static_cast<uint32_t>(flow.size());
  Colouring result;
  result.slot.assign(registers, kNoOperand);
  if (statements == 0) return result;

  std::vector<bool> leader(statements, false);
  leader[0] = true;
  for (uint32_t s = 0; s < statements; s++) {
    for (uint32_t t : flow[s].targets) {
      if (t < statements) leader[t] = true;
    }
    if ((!flow[s].targets.empty() || !flow[s].falls_through) && s + 1 < statements) leader[s + 1] = true;
  }
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of(statements);
  for (uint32_t s = 0; s < statements; s++) {
    if (leader[s])
      blocks.push_back({s, s, {}, BitSet(registers), BitSet(registers), BitSet(registers), BitSet(registers)});
    blocks.back().last = s;
    block_of[s] = static_cast<uint32_t>(blocks.size() - 1);
  }
  for (Block& b : blocks) {
    for (uint32_t s = b.first; s <= b.last; s++) {
      const bool guarded = function.statements[s].guard >= 0;
      for (uint32_t r : flow[s].uses) {
        if (!b.kill.test(r)) b.gen.set(r);
      }
      for (uint32_t r : flow[s].defs) {
        if (guarded) {
          if (!b.kill.test(r)) b.gen.set(r);
        } else {
          b.kill.set(r);
        }
      }
    }
    for (uint32_t t : flow[b.last].targets) {
      if (t < statements) b.successors.push_back(block_of[t]);
    }
    if (flow[b.last].falls_through && b.last + 1 < statements) b.successors.push_back(block_of[b.last + 1]);
    b.in.merge(b.gen);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
      bool grew = false;
      for (uint32_t s : b->successors) grew |= b->out.merge(blocks[s].in);
      if (grew && b->in.merge_without(b->out, b->kill)) changed = true;
    }
  }

  std::vector<Interval> intervals;
  std::vector<uint32_t> begin(registers, ~0u), end(registers, 0);
  const auto extend = [&](size_t r, uint32_t at) {
    begin[r] = std::min(begin[r], at);
    end[r] = std::max(end[r], at);
  };
  for (const Block& b : blocks) {
    b.in.each([&](size_t r) { extend(r, b.first); });
    b.out.each([&](size_t r) { extend(r, b.last); });
    for (uint32_t s = b.first; s <= b.last; s++) {
      for (uint32_t r : flow[s].uses) extend(r, s);
      for (uint32_t r : flow[s].defs) extend(r, s);
    }
  }
  for (uint32_t r = 0; r < registers; r++) {
    if (begin[r] != ~0u) intervals.push_back({r, begin[r], end[r]});
  }
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.reg < b.reg;
  });

  // One linear scan a width class; slots of a class are contiguous. Intervals that only touch at one statement overlap:
  // a handler may write its destination before it has read all its sources.
  constexpr std::array<SlotWidth, 4> kClasses = {16, 8, 4, 0};
  uint32_t base = 0;
  for (SlotWidth width : kClasses) {
    const uint32_t bytes = width == 0 ? 4 : width * kWarpSize;
    std::vector<uint32_t> free_slots;
    std::vector<std::pair<uint32_t, uint32_t>> active;  // heap: (end, slot), smallest end first
    uint32_t count = 0;
    for (const Interval& i : intervals) {
      if (slot_width(function.registers[i.reg].type) != width) continue;
      while (!active.empty() && active.front().first < i.begin) {
        free_slots.push_back(active.front().second);
        std::pop_heap(active.begin(), active.end(), std::greater<>());
        active.pop_back();
      }
      uint32_t slot;
      if (free_slots.empty()) {
        slot = count++;
      } else {
        slot = free_slots.back();
        free_slots.pop_back();
      }
      active.emplace_back(i.end, slot);
      std::push_heap(active.begin(), active.end(), std::greater<>());
      result.slot[i.reg] = base + slot * bytes;
    }
    base += (count * bytes + 63) / 64 * 64;
  }
  result.bytes = base;

  for (uint32_t s = 0; s < statements; s++) {
    for (uint32_t t : flow[s].targets) {
      if (t > s || t >= statements) continue;
      Colouring::Loop loop{s, {}};
      BitSet written(registers);
      for (uint32_t k = t; k <= s; k++) {
        for (uint32_t r : flow[k].defs) written.set(r);
      }
      const Block& head = blocks[block_of[t]];
      written.each([&](size_t r) {
        if (head.in.test(r)) loop.carried.push_back(static_cast<uint32_t>(r));
      });
      result.loops.push_back(std::move(loop));
    }
  }
  return result;
}

}  // namespace handoff::machine
