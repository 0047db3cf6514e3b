#include "grader/emulator/check/clock.h"

#include <algorithm>

namespace handoff::check {

uint32_t Clock::warp(uint32_t key, int lane) const {
  const WarpEntry* e = find(key);
  return e == nullptr ? 0 : e->at(lane);
}

bool Clock::all_lanes(uint32_t key, uint32_t n) const {
  const WarpEntry* e = find(key);
  if (e == nullptr) return false;
  return e->lanes ? std::all_of(e->lanes->begin(), e->lanes->end(), [n](uint32_t v) { return v >= n; }) : e->all >= n;
}

uint64_t Clock::other(uint64_t key) const {
  auto it =
      std::lower_bound(others_.begin(), others_.end(), key, [](const auto& e, uint64_t k) { return e.first < k; });
  return it == others_.end() || it->first != key ? 0 : it->second;
}

bool Clock::covers(const WarpEntry& a, const WarpEntry& b) {
  if (!a.lanes && !b.lanes) return a.all >= b.all;
  if (a.lanes == b.lanes) return true;
  for (int l = 0; l < 32; l++) {
    if (a.at(l) < b.at(l)) return false;
  }
  return true;
}

Clock::WarpEntry Clock::join(const WarpEntry& a, const WarpEntry& b) {
  if (covers(a, b)) return a;
  if (covers(b, a)) return b;
  auto lanes = std::make_shared<Lanes>();
  for (int l = 0; l < 32; l++) (*lanes)[static_cast<size_t>(l)] = std::max(a.at(l), b.at(l));
  const uint32_t first = (*lanes)[0];
  if (std::all_of(lanes->begin(), lanes->end(), [first](uint32_t v) { return v == first; }))
    return {a.key, first, nullptr};
  return {a.key, 0, std::move(lanes)};
}

bool Clock::covers(const Clock& b) const {
  auto i = warps_.begin();
  for (const WarpEntry& e : b.warps_) {
    while (i != warps_.end() && i->key < e.key) ++i;
    if (i == warps_.end() || i->key != e.key || !covers(*i, e)) return false;
  }
  auto o = others_.begin();
  for (const auto& [key, value] : b.others_) {
    while (o != others_.end() && o->first < key) ++o;
    if (o == others_.end() || o->first != key || o->second < value) return false;
  }
  return true;
}

ClockPtr Clock::join(const ClockPtr& a, const ClockPtr& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (a->covers(*b)) return a;
  if (b->covers(*a)) return b;
  auto c = std::make_shared<Clock>();
  c->warps_.reserve(std::max(a->warps_.size(), b->warps_.size()));
  auto i = a->warps_.begin(), j = b->warps_.begin();
  while (i != a->warps_.end() || j != b->warps_.end()) {
    if (j == b->warps_.end() || (i != a->warps_.end() && i->key < j->key)) {
      c->warps_.push_back(*i++);
    } else if (i == a->warps_.end() || j->key < i->key) {
      c->warps_.push_back(*j++);
    } else {
      c->warps_.push_back(join(*i++, *j++));
    }
  }
  auto k = a->others_.begin(), l = b->others_.begin();
  while (k != a->others_.end() || l != b->others_.end()) {
    if (l == b->others_.end() || (k != a->others_.end() && k->first < l->first)) {
      c->others_.push_back(*k++);
    } else if (k == a->others_.end() || l->first < k->first) {
      c->others_.push_back(*l++);
    } else {
      c->others_.emplace_back(k->first, std::max(k->second, l->second));
      ++k, ++l;
    }
  }
  return c;
}

ClockPtr Clock::with_warp(ClockPtr a, uint32_t key, uint32_t mask, uint32_t n) {
  const auto find = [key](auto& warps) {
    return std::lower_bound(warps.begin(), warps.end(), key, [](const WarpEntry& x, uint32_t k) { return x.key < k; });
  };
  if (a) {
    const auto old = find(a->warps_);
    bool known = old != a->warps_.end() && old->key == key;
    for (uint32_t rest = mask; known && rest != 0; rest &= rest - 1) known = old->at(__builtin_ctz(rest)) >= n;
    if (known) return a;
  }
  // Nobody else sees a clock that is only here. All clocks are made as objects that may change.
  auto c = a.use_count() == 1 ? std::const_pointer_cast<Clock>(std::move(a))
           : a                ? std::make_shared<Clock>(*a)
                              : std::make_shared<Clock>();
  auto e = find(c->warps_);
  if (e == c->warps_.end() || e->key != key) e = c->warps_.insert(e, WarpEntry{key, 0, nullptr});
  if (mask == 0xffffffffu && !e->lanes) {
    e->all = n;
    return c;
  }
  if (!e->lanes) {
    e->lanes = std::make_shared<Lanes>();
    e->lanes->fill(e->all);
  } else if (e->lanes.use_count() != 1) {
    e->lanes = std::make_shared<Lanes>(*e->lanes);
  }
  Lanes& lanes = *e->lanes;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    uint32_t& lane = lanes[static_cast<size_t>(__builtin_ctz(rest))];
    lane = std::max(lane, n);
  }
  if (std::all_of(lanes.begin(), lanes.end(), [&lanes](uint32_t v) { return v == lanes[0]; })) {
    e->all = lanes[0];
    e->lanes = nullptr;
  }
  return c;
}

ClockPtr Clock::with(const ClockPtr& a, uint64_t key, uint64_t value) {
  if (a && a->other(key) >= value) return a;
  auto c = a ? std::make_shared<Clock>(*a) : std::make_shared<Clock>();
  auto it = std::lower_bound(c->others_.begin(), c->others_.end(), key,
                             [](const auto& x, uint64_t k) { return x.first < k; });
  if (it == c->others_.end() || it->first != key) {
    c->others_.insert(it, {key, value});
  } else {
    it->second = value;
  }
  return c;
}

ClockPtr Clock::with_others(const ClockPtr& a, const ClockPtr& b) {
  if (a == b || !b) return a;
  Clock others;
  others.others_ = b->others_;
  if (a && a->covers(others)) return a;
  return join(a, std::make_shared<Clock>(std::move(others)));
}

void Knowledge::join(const Knowledge& k) {
  if (*this == k) return;
  // The shades are usually the same objects: each distinct pair is joined once.
  struct Done {
    ClockPtr mine;  // kept alive: its address must not be used again
    const ClockPtr *theirs, *joined;
  };
  std::array<Done, 9> done;
  size_t count = 0;
  const auto join_one = [&](ClockPtr& mine, const ClockPtr& theirs) {
    if (!theirs || mine == theirs) return;
    for (size_t d = 0; d < count; d++) {
      if (done[d].mine == mine && *done[d].theirs == theirs) {
        mine = *done[d].joined;
        return;
      }
    }
    ClockPtr joined = Clock::join(mine, theirs);
    done[count++] = {std::exchange(mine, std::move(joined)), &theirs, &mine};
  };
  join_one(order, k.order);
  join_one(any, k.any);
  join_one(in_time, k.in_time);
  join_one(wide, k.wide);
  join_one(fenced_shared, k.fenced_shared);
  join_one(fenced_global, k.fenced_global);
  join_one(path_shared, k.path_shared);
  join_one(path_global, k.path_global);
  join_one(fenced_tensor, k.fenced_tensor);
}

}  // namespace handoff::check
