// Tested by grader/emulator/emulator_test.cc.
//
// Runs a grid. Clusters (of one CTA where the launch names none) become resident domains as the device model has room
// for all CTAs of one, on different SMs where it can; each has its own clock and event queue. The domain that is
// furthest behind in virtual time runs next, for a window; so a CTA that spins on a flag yields to the one that sets
// it, and a grid that needs more resident CTAs than the chip holds is found out.
//
// Inside a domain the warp that is ready earliest runs a slice, and events (completions of asynchronous operations)
// fire when their time comes. The schedules differ only in when completions may happen and which warp goes first:
//   nominal   completion at its modelled time, earliest warp first
//   lazy      completions are held until no fragment can run, or one polls and counts, which looks like work; then
//             they are released one at a time in order of issue
//   eager     completion at issue
//   reverse   held like lazy, released in the opposite order
//   random    delays, slices and the choice among ready warps drawn from the seed
//
// When no warp can run and nothing is in flight the domain is stuck until global memory changes. When all resident
// domains are stuck and no other can start, the launch is deadlocked. Instructions without any progress beyond a budget
// are a stall.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/interpreter.h"
#include "grader/emulator/machine/reachability.h"
#include "grader/emulator/machine/timing.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::machine {
namespace {

constexpr uint64_t kWindow = 1 << 20;      // cycles a domain may run ahead before another gets its turn
constexpr uint64_t kSkew = 64;             // cycles a warp may run ahead of the next one of its domain
constexpr uint32_t kSliceLimit = 1 << 14;  // instructions of one slice
constexpr uint32_t kPatience = 256;        // false answers of mbarriers until a held completion is released

bool later(const std::unique_ptr<Event>& a, const std::unique_ptr<Event>& b) {
  return a->time != b->time ? a->time > b->time : a->sequence > b->sequence;
}

struct Slot {
  uint64_t free_at;
  uint32_t sm;
};

class Runner : public LaunchQueue {
 public:
  explicit Runner(Launch& launch)
      : l_(launch), cluster_size_(launch.config.cluster.volume()), total_(launch.config.grid.volume() / cluster_size_) {
    l_.queue = this;
  }
  ~Runner() override { l_.queue = nullptr; }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Clusters for which there is room at `now` start on their own before any is cancelled; on random schedules the
  /// request may come first, as it may on a device.
  std::optional<std::array<uint32_t, 3>> cancel(uint64_t now) override {
    const bool random = l_.config.schedule.kind == Schedule::Kind::Random;
    if (!random || l_.random.below(4) != 0) {
      while (can_start() && start_time() <= now) start();
    }
    if (next_ >= total_) return std::nullopt;
    const std::array<uint32_t, 3> first = ctaid(next_++, 0);
    l_.progress_mark = l_.warp_instructions;
    return first;
  }

  void run() {
    make_slots();
    while (true) {
      Domain* d = choose();
      if (d == nullptr) {
        if (l_.resident.empty() && next_ >= total_) return;
        report_deadlock();
      }
      run_domain(*d);
      if (all_done(*d) && d->events.empty() && d->held.empty()) finish(*d);
    }
  }

 private:
  void make_slots() {
    const uint64_t threads = l_.config.block.volume();
    const uint64_t smem = uint64_t{l_.program->dynamic_smem_offset} + l_.config.dynamic_smem;
    uint64_t per_sm =
        std::min<uint64_t>(l_.model.max_ctas_per_sm, l_.model.max_threads_per_sm / ((threads + 31) / 32 * 32));
    per_sm = std::max<uint64_t>(1, std::min(per_sm, l_.model.smem_per_sm / std::max<uint64_t>(smem, 1)));
    capacity_ = per_sm * l_.model.sms;
    for (uint64_t k = 0; k < std::min(capacity_, total_ * cluster_size_); k++)
      slots_.push_back({0, static_cast<uint32_t>(k % l_.model.sms)});
    std::reverse(slots_.begin(), slots_.end());  // taken from the back: lowest SM first
  }

  bool can_start() const { return next_ < total_ && slots_.size() >= cluster_size_; }
  /// When the slots that the next cluster needs are free.
  uint64_t start_time() const { return slots_[slots_.size() - cluster_size_].free_at; }

  bool runnable(Domain& d) const {
    if (d.stuck && d.stuck_epoch != l_.global_epoch) d.stuck = false;
    return !d.stuck;
  }

  Domain* choose() {
    const bool random = l_.config.schedule.kind == Schedule::Kind::Random;
    std::vector<Domain*> ready;
    for (auto& d : l_.resident) {
      if (runnable(*d)) ready.push_back(d.get());
    }
    if (random) {
      const uint64_t n = ready.size() + (can_start() && (ready.size() < 8 || l_.random.below(8) == 0) ? 1 : 0);
      if (n == 0) return nullptr;
      const uint64_t k = l_.random.below(n);
      return k < ready.size() ? ready[k] : start();
    }
    Domain* best = nullptr;
    for (Domain* d : ready) {
      if (best == nullptr || d->now < best->now) best = d;
    }
    if (can_start() && (best == nullptr || start_time() < best->now)) return start();
    return best;
  }

  Domain* start() {
    auto domain = std::make_unique<Domain>();
    domain->launch = &l_;
    const uint64_t index = next_++;
    // A CTA's SM is chosen in view of those before it, and all start when the last slot is free.
    std::vector<uint32_t> sms;
    for (uint32_t rank = 0; rank < cluster_size_; rank++) {
      const Slot slot = take_slot(sms);
      domain->now = std::max(domain->now, slot.free_at);
      sms.push_back(slot.sm);
    }
    domain->started = domain->now;
    for (uint32_t rank = 0; rank < cluster_size_; rank++)
      domain->ctas.push_back(make_cta(*domain, index, rank, sms[rank]));
    if (Observer* o = watcher(l_); o != nullptr) {
      for (const auto& cta : domain->ctas) o->cta_begin(*cta);
    }
    l_.resident.push_back(std::move(domain));
    return l_.resident.back().get();
  }

  /// Takes the earliest free slot on an SM where no other CTA of the cluster resides, if there is one among the next
  /// few.
  Slot take_slot(const std::vector<uint32_t>& taken) {
    auto chosen = slots_.end() - 1;
    const size_t looked_at = std::min<size_t>(slots_.size(), 2 * cluster_size_);
    for (auto s = slots_.end(); s != slots_.end() - static_cast<ptrdiff_t>(looked_at);) {
      --s;
      if (std::find(taken.begin(), taken.end(), s->sm) == taken.end()) {
        chosen = s;
        break;
      }
    }
    const Slot slot = *chosen;
    slots_.erase(chosen);
    return slot;
  }

  /// %ctaid of the CTA of rank `rank` of the `index`-th cluster.
  std::array<uint32_t, 3> ctaid(uint64_t index, uint32_t rank) const {
    const Dim &grid = l_.config.grid, &cluster = l_.config.cluster;
    const uint32_t across = grid.x / cluster.x, down = grid.y / cluster.y;
    return {static_cast<uint32_t>(index % across) * cluster.x + rank % cluster.x,
            static_cast<uint32_t>(index / across % down) * cluster.y + rank / cluster.x % cluster.y,
            static_cast<uint32_t>(index / (uint64_t{across} * down)) * cluster.z + rank / (cluster.x * cluster.y)};
  }

  /// The CTA of rank `rank` of the `index`-th cluster.
  std::unique_ptr<Cta> make_cta(Domain& domain, uint64_t index, uint32_t rank, uint32_t sm) {
    auto cta = std::make_unique<Cta>();
    const Program& p = *l_.program;
    const Dim& grid = l_.config.grid;
    cta->domain = &domain;
    cta->launch = &l_;
    cta->rank = rank;
    cta->window = rank << kRankShift;
    cta->sm = sm;
    const std::array<uint32_t, 3> id = ctaid(index, rank);
    std::copy(id.begin(), id.end(), cta->id);
    cta->linear = static_cast<uint32_t>((uint64_t{cta->id[2]} * grid.y + cta->id[1]) * grid.x + cta->id[0]);
    cta->smem.assign(size_t{p.dynamic_smem_offset} + l_.config.dynamic_smem, static_cast<std::byte>(kPoison));
    const uint64_t threads = l_.config.block.volume();
    cta->live_threads = static_cast<uint32_t>(threads);
    const auto warps = static_cast<uint32_t>((threads + kWarpSize - 1) / kWarpSize);
    const size_t stride = (p.register_template.size() + 63) / 64 * 64;
    cta->register_block.resize(stride * warps + 64);
    auto base = reinterpret_cast<uintptr_t>(cta->register_block.data());
    base = (base + 63) / 64 * 64;
    cta->warps.resize(warps);
    for (uint32_t i = 0; i < warps; i++) {
      Warp& w = cta->warps[i];
      w.cta = cta.get();
      w.index = i;
      w.regs = reinterpret_cast<std::byte*>(base + i * stride);
      std::copy(p.register_template.begin(), p.register_template.end(), w.regs);
      const uint64_t here = std::min<uint64_t>(kWarpSize, threads - uint64_t{i} * kWarpSize);
      w.live = here == kWarpSize ? kFullMask : (LaneMask{1} << here) - 1;
      Fragment f;
      f.mask = w.live;
      w.fragments.push_back(std::move(f));
      w.time = domain.now;
      w.ready_time = domain.now;
      fill_specials(*cta, w);
      if (cta->window != 0) move_shared_constants(*cta, w);
    }
    if (l_.async != nullptr && l_.async->make_state != nullptr) cta->async = l_.async->make_state(*cta);
    return cta;
  }

  /// Addresses of shared variables, which the template holds for rank 0.
  void move_shared_constants(const Cta& cta, Warp& w) const {
    for (const Program::SharedConstant& c : l_.program->shared_constants) {
      for (int lane = 0; lane < kWarpSize; lane++) {
        if (c.width == 4) {
          lanes<uint32_t>(w.regs, c.offset)[lane] += cta.window;
        } else {
          lanes<uint64_t>(w.regs, c.offset)[lane] += cta.window;
        }
      }
    }
  }

  void fill_specials(const Cta& cta, Warp& w) const {
    const LaunchConfig& c = l_.config;
    const ptx::Function& entry = *l_.program->functions[0];
    for (const Program::Special& s : l_.program->specials) {
      const auto each = [&](auto f) {
        for (int lane = 0; lane < kWarpSize; lane++)
          lanes<uint32_t>(w.regs, s.offset)[lane] = f(static_cast<uint32_t>(lane));
      };
      const auto all = [&](uint64_t v) { each([v](uint32_t) { return static_cast<uint32_t>(v); }); };
      const uint32_t first = w.first_thread();
      switch (s.which) {
        case SpecialRegister::TidX:
          each([&](uint32_t l) { return (first + l) % c.block.x; });
          break;
        case SpecialRegister::TidY:
          each([&](uint32_t l) { return (first + l) / c.block.x % c.block.y; });
          break;
        case SpecialRegister::TidZ:
          each([&](uint32_t l) { return (first + l) / (c.block.x * c.block.y); });
          break;
        case SpecialRegister::NtidX:
          all(c.block.x);
          break;
        case SpecialRegister::NtidY:
          all(c.block.y);
          break;
        case SpecialRegister::NtidZ:
          all(c.block.z);
          break;
        case SpecialRegister::CtaidX:
          all(cta.id[0]);
          break;
        case SpecialRegister::CtaidY:
          all(cta.id[1]);
          break;
        case SpecialRegister::CtaidZ:
          all(cta.id[2]);
          break;
        case SpecialRegister::NctaidX:
          all(c.grid.x);
          break;
        case SpecialRegister::NctaidY:
          all(c.grid.y);
          break;
        case SpecialRegister::NctaidZ:
          all(c.grid.z);
          break;
        case SpecialRegister::LaneId:
          each([](uint32_t l) { return l; });
          break;
        case SpecialRegister::WarpId:
          all(w.index);
          break;
        case SpecialRegister::NwarpId:
          all(cta.warps.size());
          break;
        case SpecialRegister::SmId:
          all(cta.sm);
          break;
        case SpecialRegister::NsmId:
          all(l_.model.sms);
          break;
        case SpecialRegister::GridId:
          std::fill_n(lanes<uint64_t>(w.regs, s.offset), kWarpSize, 1);
          break;
        case SpecialRegister::LanemaskEq:
          each([](uint32_t l) { return 1u << l; });
          break;
        case SpecialRegister::LanemaskLe:
          each([](uint32_t l) { return (2u << l) - 1; });
          break;
        case SpecialRegister::LanemaskLt:
          each([](uint32_t l) { return (1u << l) - 1; });
          break;
        case SpecialRegister::LanemaskGe:
          each([](uint32_t l) { return ~((1u << l) - 1); });
          break;
        case SpecialRegister::LanemaskGt:
          each([](uint32_t l) { return ~((2u << l) - 1); });
          break;
        case SpecialRegister::ClusteridX:
          all(cta.id[0] / c.cluster.x);
          break;
        case SpecialRegister::ClusteridY:
          all(cta.id[1] / c.cluster.y);
          break;
        case SpecialRegister::ClusteridZ:
          all(cta.id[2] / c.cluster.z);
          break;
        case SpecialRegister::NclusteridX:
          all(c.grid.x / c.cluster.x);
          break;
        case SpecialRegister::NclusteridY:
          all(c.grid.y / c.cluster.y);
          break;
        case SpecialRegister::NclusteridZ:
          all(c.grid.z / c.cluster.z);
          break;
        case SpecialRegister::ClusterCtaidX:
          all(cta.id[0] % c.cluster.x);
          break;
        case SpecialRegister::ClusterCtaidY:
          all(cta.id[1] % c.cluster.y);
          break;
        case SpecialRegister::ClusterCtaidZ:
          all(cta.id[2] % c.cluster.z);
          break;
        case SpecialRegister::ClusterCtarank:
          all(cta.rank);
          break;
        case SpecialRegister::ClusterNctaidX:
          all(c.cluster.x);
          break;
        case SpecialRegister::ClusterNctaidY:
          all(c.cluster.y);
          break;
        case SpecialRegister::ClusterNctaidZ:
          all(c.cluster.z);
          break;
        case SpecialRegister::ClusterNctarank:
          all(c.cluster.volume());
          break;
        case SpecialRegister::IsExplicitCluster:
          *lanes<uint32_t>(w.regs, s.offset) =
              c.cluster.volume() > 1 || entry.reqnctapercluster[0] != 0 ? kFullMask : 0;
          break;
        case SpecialRegister::TotalSmemSize:
          all(cta.smem.size());
          break;
        case SpecialRegister::AggrSmemSize:
          all(cta.smem.size());
          break;
        case SpecialRegister::DynamicSmemSize:
          all(c.dynamic_smem);
          break;
        case SpecialRegister::Envreg0:
          all(0);
          break;
        case SpecialRegister::Envreg1:
          all(c.grid_workspace >> 32);
          break;
        case SpecialRegister::Envreg2:
          all(c.grid_workspace & 0xffffffff);
          break;
        case SpecialRegister::ReservedSmemBegin:
          all(0);
          break;
      }
    }
  }

  /// Spinning fragments of `w` run again when memory that they may watch has changed.
  void wake_spinners(Domain& d, Warp& w) const {
    bool any = false;
    for (Fragment& f : w.fragments) {
      if (f.state != Fragment::State::Spinning) continue;
      if (f.seen_shared_epoch == shared_epoch(d) && f.seen_global_epoch == l_.global_epoch) continue;
      f.state = Fragment::State::Ready;
      f.wake_time = std::max(d.now, w.time);
      any = true;
    }
    if (any) refresh(w);
  }

  /// Is there a warp that can run without merely polling a clock?
  static bool only_polls(const Warp& w) {
    return std::all_of(w.fragments.begin(), w.fragments.end(),
                       [](const Fragment& f) { return f.state != Fragment::State::Ready; });
  }

  void fire_next(Domain& d) {
    std::pop_heap(d.events.begin(), d.events.end(), later);
    std::unique_ptr<Event> e = std::move(d.events.back());
    d.events.pop_back();
    d.now = std::max(d.now, e->time);
    e->fire(d);
    l_.progress_mark = l_.warp_instructions;
  }
  void release_held(Domain& d) {
    const bool last_first = l_.config.schedule.kind == Schedule::Kind::Reverse;
    std::unique_ptr<Event> e = std::move(last_first ? d.held.back() : d.held.front());
    d.held.erase(last_first ? d.held.end() - 1 : d.held.begin());
    d.unanswered = 0;
    e->fire(d);
    l_.progress_mark = l_.warp_instructions;
  }

  void run_domain(Domain& d) {
    const bool random = l_.config.schedule.kind == Schedule::Kind::Random;
    const uint64_t until = d.now + (random ? 200 + l_.random.below(5000) : kWindow);
    while (d.now < until) {
      Warp* w = nullptr;
      uint64_t second = kNever;
      uint32_t ready = 0;
      bool works = false;
      for (auto& cta : d.ctas) {
        for (Warp& x : cta->warps) {
          if (x.fragments.empty()) continue;
          wake_spinners(d, x);
          if (x.ready_time == kNever) continue;
          works = works || !only_polls(x);
          ready++;
          if (random) {
            if (l_.random.below(ready) == 0) w = &x;
          } else if (w == nullptr || x.ready_time < w->ready_time) {
            second = w == nullptr ? kNever : w->ready_time;
            w = &x;
          } else {
            second = std::min(second, x.ready_time);
          }
        }
      }
      const uint64_t event_time = d.events.empty() ? kNever : d.events.front()->time;
      if (event_time == kNever && !d.held.empty() && (!works || d.unanswered >= kPatience)) {
        release_held(d);
        continue;
      }
      if (w == nullptr && event_time == kNever) {
        d.stuck = !all_done(d);
        d.stuck_epoch = l_.global_epoch;
        return;
      }
      if (w == nullptr || event_time <= std::max(w->ready_time, random ? d.now : 0)) {
        fire_next(d);
        continue;
      }
      w->time = std::max(w->time, w->ready_time);
      if (random) w->time = std::max(w->time, d.now);
      d.now = std::max(d.now, w->ready_time);
      uint64_t slice_end = std::min(event_time, second == kNever ? kNever : second + kSkew);
      slice_end = std::max(std::min(slice_end, until + 1), w->time + 1);
      l_.running = w;
      const uint32_t limit = random ? 1 + static_cast<uint32_t>(l_.random.below(96)) : kSliceLimit;
      const uint64_t begin = w->time;
      run_slice(*w, slice_end, limit);
      l_.running = nullptr;
      if (Observer* o = watcher(l_); o != nullptr) o->slice(*w, begin, w->time);
      if (w->fragments.empty()) {
        l_.progress_mark = l_.warp_instructions;
        if (w->cta->live_threads == 0) end_cta(*w->cta);
      }
      check_budget(*w);
    }
  }

  void check_budget(Warp& w) {
    const bool total = l_.warp_instructions > l_.config.instruction_budget;
    if (!total && l_.warp_instructions - l_.progress_mark <= l_.config.progress_budget) return;
    if (!total && !w.cta->domain->held.empty()) {  // what it waits for may be among the completions that are held
      while (!w.cta->domain->held.empty()) release_held(*w.cta->domain);
      return;
    }
    const Fragment f =
        w.fragments.empty() ? Fragment{} : w.fragments[std::min<size_t>(w.current, w.fragments.size() - 1)];
    Fault fault =
        make_fault("stalled", fmt::format("{} is still running after {} warp-instructions{}: an endless loop?",
                                          describe_lanes(w, f.mask == 0 ? kFullMask : f.mask), l_.warp_instructions,
                                          total ? "" : " without any progress"));
    fault.diagnostic.place = l_.program->place(l_.program->code[f.pc]);
    fault.hang = true;
    throw fault;
  }

  static bool all_done(const Domain& d) {
    return std::all_of(d.ctas.begin(), d.ctas.end(), [](const auto& c) { return c->done; });
  }

  /// The last thread has left: what is still in flight into or out of the CTA's shared memory is a fault.
  void end_cta(Cta& cta) {
    cta.done = true;
    if (l_.async != nullptr && l_.async->cta_end != nullptr) l_.async->cta_end(cta);
    if (Observer* o = watcher(l_); o != nullptr) o->cta_end(cta);
  }

  void finish(Domain& d) {
    // The clock stands at the last event or slice that began; the last slices end later.
    uint64_t end = d.now;
    for (const auto& cta : d.ctas) {
      for (const Warp& w : cta->warps) end = std::max(end, w.time);
    }
    l_.modeled_cycles = std::max(l_.modeled_cycles, end);
    for (const auto& cta : d.ctas) {
      slots_.insert(
          std::upper_bound(slots_.begin(), slots_.end(), end, [](uint64_t t, const Slot& s) { return t >= s.free_at; }),
          {end, cta->sm});
    }
    std::erase_if(l_.resident, [&](const auto& p) { return p.get() == &d; });
    l_.progress_mark = l_.warp_instructions;
  }

  /// In a deadlock, how near to the cause a wait is; the nearest comes first. Who waits for other threads mostly waits
  /// for somebody who waits for something else.
  enum class Rank : uint8_t {
    MisplacedBarrier,  ///< see Reachability
    Something,         ///< an mbarrier, memory, asynchronous work
    Threads,           ///< of the block, the cluster or the pair
    Lanes,             ///< of the same warp
  };
  static Rank rank_of(const Warp& w, const Fragment& f, Reachability& reach) {
    if (f.state == Fragment::State::Parked || waits_for_warp_sync(f)) return Rank::Lanes;
    if (f.state != Fragment::State::Blocked || f.waits.empty()) return Rank::Something;
    const WaitTarget::Kind kind = f.waits[0].kind;
    if (kind == WaitTarget::Kind::TensorPair) return Rank::Threads;
    if (kind != WaitTarget::Kind::NamedBarrier && kind != WaitTarget::Kind::ClusterBarrier) return Rank::Something;
    return reach.misplaced_barrier(w, f) ? Rank::MisplacedBarrier : Rank::Threads;
  }

  /// " of CTAs 0-3, 6"; nothing where the launch has one CTA only. Sorts them.
  std::string of_ctas(std::vector<uint32_t>& ctas) const {
    if (l_.config.grid.volume() == 1) return {};
    std::sort(ctas.begin(), ctas.end());
    ctas.erase(std::unique(ctas.begin(), ctas.end()), ctas.end());
    std::string s;
    uint32_t ranges = 0;
    for (size_t k = 0; k < ctas.size(); ranges++) {
      if (ranges == 4) return fmt::format("{} and more, {} CTAs in all", s, ctas.size());
      size_t e = k;
      while (e + 1 < ctas.size() && ctas[e + 1] == ctas[e] + 1) e++;
      s += k == 0 ? (ctas.size() == 1 ? " of CTA " : " of CTAs ") : ", ";
      s += e == k ? fmt::format("{}", ctas[k]) : fmt::format("{}-{}", ctas[k], ctas[e]);
      k = e + 1;
    }
    return s;
  }

  [[noreturn]] void report_deadlock() {
    struct Group {
      SourcePlace place;
      std::string what;
      Rank rank;
      uint32_t threads = 0;
      std::vector<uint32_t> ctas = {};  ///< linear
    };
    std::vector<Group> groups;
    Reachability reach(l_);
    for (auto& d : l_.resident) {
      for (auto& cta : d->ctas) {
        for (Warp& w : cta->warps) {
          const bool others_blocked = std::any_of(w.fragments.begin(), w.fragments.end(),
                                                  [](const Fragment& f) { return f.state != Fragment::State::Parked; });
          if (!w.fragments.empty() && !others_blocked) report_stuck_collective(w);
          report_passed_collective(w);
        }
      }
    }
    for (auto& d : l_.resident) {
      for (auto& cta : d->ctas) {
        const size_t before = l_.state.size();
        if (l_.async != nullptr && l_.async->describe_barriers != nullptr && l_.state.size() < 16)
          l_.async->describe_barriers(*cta, l_.state);
        if (l_.config.grid.volume() > 1) {
          for (size_t k = before; k < l_.state.size(); k++)
            l_.state[k] = fmt::format("CTA {}: {}", cta->linear, l_.state[k]);
        }
        for (const Warp& w : cta->warps) {
          for (const Fragment& f : w.fragments) {
            const Waiter waiter = waiter_of(w, f);
            auto same = std::find_if(groups.begin(), groups.end(),
                                     [&](const Group& g) { return g.place == waiter.place && g.what == waiter.what; });
            const Rank rank = rank_of(w, f, reach);
            if (same == groups.end()) same = groups.insert(groups.end(), {waiter.place, waiter.what, rank});
            same->rank = std::min(same->rank, rank);
            same->ctas.push_back(cta->linear);
            same->threads += static_cast<uint32_t>(__builtin_popcount(f.mask));
          }
        }
      }
    }
    std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.rank < b.rank; });
    std::string first;
    for (Group& g : groups) {
      const std::string line = fmt::format("{} thread{}{} at {}:{} for {}", g.threads, g.threads == 1 ? "" : "s",
                                           of_ctas(g.ctas), g.place.file, g.place.line, g.what);
      if (first.empty()) first = line;
      l_.state.push_back("waiting: " + line);
    }
    Fault fault = make_fault("deadlock", fmt::format("nothing can run any more; waiting: {}", first));
    if (next_ < total_) {
      fault.diagnostic.message += fmt::format("; {} of {} CTAs have not started because the resident ones do not end",
                                              (total_ - next_) * cluster_size_, total_ * cluster_size_);
    }
    if (!groups.empty()) fault.diagnostic.place = groups[0].place;
    for (size_t k = 1; k < groups.size(); k++) {
      Group& g = groups[k];
      fault.diagnostic.related.push_back(
          {g.place, fmt::format("{} thread{}{} wait{} here for {}", g.threads, g.threads == 1 ? "" : "s",
                                of_ctas(g.ctas), g.threads == 1 ? "s" : "", g.what)});
    }
    fault.hang = true;
    throw fault;
  }

  Launch& l_;
  uint64_t cluster_size_;      // in CTAs
  uint64_t total_, next_ = 0;  // clusters, and how many have started or were cancelled
  uint64_t capacity_ = 0;      // CTAs that can be resident
  std::vector<Slot> slots_;    // sorted, earliest free at the back
};

}  // namespace

void Domain::add_event(std::unique_ptr<Event> event, uint64_t time) {
  event->time = time;
  event->sequence = launch->next_sequence++;
  events.push_back(std::move(event));
  std::push_heap(events.begin(), events.end(), later);
  if (launch->running != nullptr) launch->running->end_slice = true;
}

void Domain::add_completion(std::unique_ptr<Event> event, uint64_t nominal_time) {
  event->sequence = launch->next_sequence++;
  switch (launch->config.schedule.kind) {
    case Schedule::Kind::Nominal:
      add_event(std::move(event), nominal_time);
      break;
    case Schedule::Kind::Eager:
      event->fire(*this);
      break;
    case Schedule::Kind::Lazy:
    case Schedule::Kind::Reverse:
      held.push_back(std::move(event));
      break;
    case Schedule::Kind::Random: {
      // From at once to several times the nominal delay, short ones as likely as long ones.
      const uint64_t nominal = nominal_time > now ? nominal_time - now : 1;
      const uint64_t delay =
          launch->random.below(4) == 0 ? launch->random.below(32) : launch->random.below(4 * nominal);
      add_event(std::move(event), now + delay);
      break;
    }
  }
}

void Launch::report(Diagnostic diagnostic) {
  for (const Diagnostic& d : diagnostics) {
    if (d.id == diagnostic.id && d.place == diagnostic.place) return;
  }
  diagnostics.push_back(std::move(diagnostic));
}

void Launch::report(const Inst& inst, std::string id, std::string message, std::string hint, Severity severity) {
  Diagnostic d;
  d.id = std::move(id);
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.severity = severity;
  d.place = program->place(inst);
  report(std::move(d));
}

uint32_t Launch::push_stack(uint32_t parent, uint32_t return_pc) {
  for (uint32_t k = 1; k < stacks.size(); k++) {
    if (stacks[k].parent == parent && stacks[k].return_pc == return_pc) return k;
  }
  stacks.push_back({parent, return_pc});
  return static_cast<uint32_t>(stacks.size() - 1);
}

namespace {

constexpr uint64_t kMaxClusterSize = 16;  // CTAs; the driver wants an attribute of the kernel for more than 8

Dim declared_cluster(const ptx::Function& f) {
  return {std::max(1u, f.reqnctapercluster[0]), std::max(1u, f.reqnctapercluster[1]),
          std::max(1u, f.reqnctapercluster[2])};
}

}  // namespace

Dim effective_cluster(const Program& program, const LaunchConfig& config) {
  return config.cluster.volume() > 1 ? config.cluster : declared_cluster(*program.functions[0]);
}

std::string check_config(const Program& program, const LaunchConfig& config, const DeviceModel& model) {
  const auto positive = [](const Dim& d) { return d.x > 0 && d.y > 0 && d.z > 0; };
  if (!positive(config.grid) || !positive(config.block) || !positive(config.cluster))
    return "grid, block and cluster sizes must be positive";
  if (config.block.volume() > 1024)
    return fmt::format("a block of {} threads; the limit is 1024", config.block.volume());
  if (config.block.x > 1024 || config.block.y > 1024 || config.block.z > 64)
    return fmt::format("block size {}×{}×{}; the limits are 1024×1024×64", config.block.x, config.block.y,
                       config.block.z);
  if (config.grid.y > 65535 || config.grid.z > 65535 || config.grid.x > 0x7fffffffu)
    return "the grid is too large: x ≤ 2³¹−1, y and z ≤ 65535";
  const uint64_t smem = uint64_t{program.dynamic_smem_offset} - kSharedBase + config.dynamic_smem;
  if (smem > model.smem_per_cta) {
    return fmt::format("{} needs {} bytes of shared memory ({} static, {} dynamic); a block can have {}", program.name,
                       smem, program.static_smem, config.dynamic_smem, model.smem_per_cta);
  }
  if (program.static_smem > 48 * 1024)
    return fmt::format("{} has {} bytes of static shared memory; the limit is 49152, more must be dynamic",
                       program.name, program.static_smem);
  const ptx::Function& f = *program.functions[0];
  const Dim cluster = effective_cluster(program, config);
  const auto extents = [](const Dim& d) { return fmt::format("{}×{}×{}", d.x, d.y, d.z); };
  if (cluster.volume() > kMaxClusterSize)
    return fmt::format("a cluster of {} blocks; the limit is {} (8 where the launch must be portable)",
                       cluster.volume(), kMaxClusterSize);
  if (config.grid.x % cluster.x != 0 || config.grid.y % cluster.y != 0 || config.grid.z % cluster.z != 0) {
    return fmt::format("a grid of {} blocks is not a multiple of the cluster, {}", extents(config.grid),
                       extents(cluster));
  }
  const Dim declared = declared_cluster(f);
  if (declared.volume() > 1 && (cluster.x != declared.x || cluster.y != declared.y || cluster.z != declared.z)) {
    return fmt::format("a cluster of {} blocks, but {} declares {}", extents(cluster), program.name, extents(declared));
  }
  const uint64_t max_threads =
      uint64_t{std::max(1u, f.maxntid[0])} * std::max(1u, f.maxntid[1]) * std::max(1u, f.maxntid[2]);
  const Dim required{f.reqntid[0], std::max(1u, f.reqntid[1]), std::max(1u, f.reqntid[2])};
  if (required.x != 0 &&
      (config.block.x != required.x || config.block.y != required.y || config.block.z != required.z)) {
    return fmt::format("a block of {}×{}×{} threads, but {} requires {}×{}×{}", config.block.x, config.block.y,
                       config.block.z, program.name, required.x, required.y, required.z);
  }
  if (f.maxntid[0] != 0 && config.block.volume() > max_threads)
    return fmt::format("a block of {} threads, but {} declares at most {}", config.block.volume(), program.name,
                       max_threads);
  return {};
}

LaunchStatus run(Launch& launch) {
  launch.config.cluster = effective_cluster(*launch.program, launch.config);
  launch.random.state = launch.config.schedule.seed * 0x2545f4914f6cdd1dull + 1;
  Observer* const observer = watcher(launch);
  launch.observe_accesses = observer != nullptr && observer->wants_accesses();
  if (observer != nullptr) observer->launch_begin(launch);
  LaunchStatus status = LaunchStatus::Ok;
  Runner runner(launch);
  try {
    runner.run();
  } catch (Fault& fault) {
    status = fault.hang ? LaunchStatus::Hang : LaunchStatus::Fault;
    if (fault.diagnostic.place.line == 0 && launch.running != nullptr && !launch.running->fragments.empty()) {
      const Warp& w = *launch.running;
      const uint32_t pc = w.fragments[std::min<size_t>(w.current, w.fragments.size() - 1)].pc;
      fault.diagnostic.place = launch.program->place(launch.program->code[pc]);
    }
    launch.failure = fault.diagnostic.message;
    launch.report(std::move(fault.diagnostic));
    for (const auto& d : launch.resident) launch.modeled_cycles = std::max(launch.modeled_cycles, d->now);
  }
  if (observer != nullptr) observer->launch_end(launch);
  launch.resident.clear();
  return status;
}

}  // namespace handoff::machine
