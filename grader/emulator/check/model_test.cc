// Compares the checker with reference_checker.h on small random protocols.
//
// A program has one or two CTAs of two or three warps of one to three threads. Each warp runs its own lines: weak
// accesses of all sizes, strong ones, atomics, thread and proxy fences, bulk copies and cp.async with groups, and,
// planned across the warps of a CTA so that most runs end, barriers of the block, of pairs of warps and of lanes, and
// handoffs through mbarriers whose arrivals add up. Two CTAs may be a cluster: then there are barriers of the cluster,
// accesses and flags in the other CTA's shared memory, and barriers that the other CTA arrives on or st.async,
// red.async and bulk copies signal. One instruction a line, so a line names what ran. A program runs once, on a
// schedule that its seed picks, and both checkers watch that same run.
//
// What is compared. The checker keeps of each byte the last write and, of each thread, the last read of each strength
// since then. So
// 1. it must find exactly the pairs (id, line) that the reference finds among those nearest accesses. This is exact
// because "nearest" is
//    defined on the order in which the run made the accesses, which both see, and not on what anybody knows of their
//    order;
// 2. each of those must be among what the reference finds in the full history;
// 3. forgetting must not hide a byte's first mistake. Let e be the first access that the full history convicts, against
// an earlier access a,
//    and let w be the write that made the checker forget a. No mistake came before e, so a is ordered before w. Were w
//    ordered before e, then a would be covered and e no mistake; hence w and e are not ordered, and the nearest
//    accesses convict e as well. The argument needs that only order excuses a pair. Strong accesses and reductions are
//    also excused without order: bytes with such a pair are counted, not compared.
// Lanes of one weak instruction that write the same byte have no order in which to be the last write, so a program with
// such an instruction is compared on 2 only. Explanations (stale-parity, missing-retry-loop, tx-bytes-mismatch, …) and
// what the machine itself reports are left out.
//
// ctest runs 2,000 programs. All 10,000 and more:  HANDOFF_MODEL_PROGRAMS=10000 check_test --gtest_filter='ModelTest.*'
// HANDOFF_MODEL_FIRST_SEED starts elsewhere. A disagreement is printed as the smallest program that still disagrees.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "grader/emulator/async/testing.h"
#include "grader/emulator/check/checker.h"
#include "grader/emulator/check/reference_checker.h"

namespace handoff::check::testing {
namespace {

using async::testing::Kernel;
using async::testing::Outcome;

const std::set<std::string> kCompared = {"data-race",
                                         "scope-too-narrow",
                                         "async-read-before-complete",
                                         "source-overwritten",
                                         "refill-before-release",
                                         "missing-proxy-fence",
                                         "proxy-fence-misplaced",
                                         "many-lanes-issue",
                                         "barrier-not-initialized",
                                         "barrier-init-not-visible",
                                         "phase-overrun",
                                         "remote-cta-gone",
                                         "group-not-awaited"};

/// Both checkers watch one run.
class Both : public machine::Observer {
 public:
  void launch_begin(machine::Launch& l) override {
    each([&](auto& o) { o.launch_begin(l); });
  }
  void launch_end(machine::Launch& l) override {
    verdict = reference_.verdict();
    checker_.launch_end(l);
  }
  void cta_begin(machine::Cta& c) override {
    each([&](auto& o) { o.cta_begin(c); });
  }
  void cta_end(machine::Cta& c) override {
    each([&](auto& o) { o.cta_end(c); });
  }
  void access(const machine::Access& a) override {
    each([&](auto& o) { o.access(a); });
  }
  void fence(machine::Warp& w, const machine::Inst& i, machine::LaneMask m, const machine::FenceInfo& f) override {
    each([&](auto& o) { o.fence(w, i, m, f); });
  }
  void barrier(const machine::BarrierEvent& e) override {
    each([&](auto& o) { o.barrier(e); });
  }
  void mbarrier(const machine::MbarrierEvent& e) override {
    each([&](auto& o) { o.mbarrier(e); });
  }
  void async_op(const machine::AsyncOpInfo& i, machine::AsyncOpInfo::Milestone m) override {
    each([&](auto& o) { o.async_op(i, m); });
  }
  void group(const machine::GroupEvent& e) override {
    each([&](auto& o) { o.group(e); });
  }

  ReferenceChecker::Verdict verdict;

 private:
  template <class F>
  void each(F&& f) {
    f(reference_);
    f(checker_);
  }
  ReferenceChecker reference_;
  Checker checker_;
};

// --- the generator
// ----------------------------------------------------------------------------------------------------

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Kernel make() {
    Kernel k;
    ctas_ = chance(55) ? 2 : 1;
    clustered_ = ctas_ == 2 && chance(60);
    warps_ = 2 + below(2);
    lanes_ = 1 + below(3);
    noise_ = below(4);
    k.grid = {ctas_, 1, 1};
    if (clustered_) k.cluster = k.grid;
    k.block = {32 * warps_, 1, 1};
    k.shared =
        ".shared .align 128 .b8 data[128];\n.shared .align 8 .b64 bar0;\n.shared .align 8 .b64 bar1;\n.shared .align 4 "
        ".b8 flag[8];\n";
    k.in.assign(64, 7);
    k.progress_budget = 20'000;
    sections_.assign(ctas_ * warps_, {});
    if (clustered_) {
      plan_cluster();
    } else {
      for (uint32_t c = 0; c < ctas_; c++) plan(c);
    }
    std::string s = "\n";
    const auto line = [&s](const std::string& text) { s += text + "\n"; };
    line("and.b32 %r10, %t, 31;");
    line("setp.ge.u32 %p10, %r10, " + std::to_string(lanes_) + ";");
    line("@%p10 exit;");
    line("setp.eq.u32 %p0, %r10, 0;");
    line("setp.eq.u32 %p1, %r10, 1;");
    line("setp.eq.u32 %p2, %r10, 2;");
    line("mov.u32 %r11, data;");
    line("mad.lo.u32 %r11, %r10, 4, %r11;");
    line("mad.wide.u32 %rd11, %r10, 4, %outp;");
    line("mov.u32 %r5, 1;");
    if (clustered_) {  // the same places in the other CTA
      line("xor.b32 %r19, %c, 1;");
      line("mapa.shared::cluster.u32 %r20, data, %r19;");
      line("mapa.shared::cluster.u32 %r21, bar0, %r19;");
      line("mapa.shared::cluster.u32 %r22, bar1, %r19;");
      line("mapa.shared::cluster.u32 %r23, flag, %r19;");
      line("mad.lo.u32 %r24, %r10, 4, %r20;");
    }
    for (uint32_t w = 1; w < sections_.size(); w++) {
      line("setp.eq.u32 %p11, %w, " + std::to_string(w % warps_) + ";");
      line("setp.eq.and.u32 %p11, %c, " + std::to_string(w / warps_) + ", %p11;");
      line("@%p11 bra SECTION" + std::to_string(w) + ";");
    }
    for (uint32_t w = 0; w < sections_.size(); w++) {
      line("SECTION" + std::to_string(w) + ":");
      for (const std::string& text : sections_[w]) line(text);
      line("exit;");
    }
    k.body = s;
    return k;
  }

 private:
  struct Handoff {
    uint32_t count = 1;
    uint64_t phase = 0;          ///< the next one to complete
    std::vector<uint64_t> seen;  ///< by warp: phases that it has waited for
    bool met = true;             ///< the CTAs have met since the last phase was awaited
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(static_cast<uint32_t>(list.size()))];
  }
  std::vector<std::string>& section(uint32_t warp) { return sections_[cta_ * warps_ + warp]; }
  void put(uint32_t warp, std::string text) { section(warp).push_back(std::move(text)); }
  std::string lane_guard(uint32_t lane) { return "@%p" + std::to_string(lane) + " "; }
  /// A lane's, or nobody's in particular.
  std::string some_guard() { return chance(70) ? lane_guard(below(lanes_)) : std::string(); }
  std::string word(uint32_t words, uint32_t align = 1) { return std::to_string(4 * align * below(words / align)); }
  std::string label() { return "L" + std::to_string(next_label_++); }

  void plan(uint32_t cta) {
    cta_ = cta;
    Handoff bars[2];
    begin(bars);
    if (chance(92)) block_barrier();
    const uint32_t rounds = 1 + below(4);
    for (uint32_t r = 0; r < rounds; r++) round(bars);
    end();
  }

  void plan_cluster() {
    Handoff bars[2][2];
    for (cta_ = 0; cta_ < 2; cta_++) begin(bars[cta_]);
    if (chance(90)) {
      cluster_barrier(75);
    } else {
      for (cta_ = 0; cta_ < 2; cta_++) block_barrier();
    }
    const uint32_t rounds = 2 + below(4);
    for (uint32_t r = 0; r < rounds; r++) {
      cta_ = below(2);
      switch (below(6)) {
        case 0:
          cluster_barrier(30);
          for (Handoff(&of_cta)[2] : bars) {
            for (Handoff& h : of_cta) h.met = true;
          }
          break;
        case 1:
          round(bars[cta_]);
          break;
        case 2:
          flag_handoff();
          break;
        case 3:
          for (uint32_t n = below(3); n > 0; n--) access(below(warps_));
          break;
        default:
          remote_handoff(below(2), bars);
          break;
      }
    }
    for (cta_ = 0; cta_ < 2; cta_++) end();
    if (chance(80)) cluster_barrier(50);
  }

  /// Thread 0 initialises the barriers, and publishes that mostly.
  void begin(Handoff* bars) {
    for (uint32_t b = 0; b < 2; b++) {
      bars[b].count = 1 + below(3);
      bars[b].seen.assign(warps_, 0);
      put(0,
          "@%p0 mbarrier.init.shared::cta.b64 [bar" + std::to_string(b) + "], " + std::to_string(bars[b].count) + ";");
    }
    if (chance(clustered_ ? 90 : 70))
      put(0, "@%p0 " + (clustered_ && chance(75)
                            ? "fence.mbarrier_init.release.cluster;"
                            : one_of<std::string>({"fence.mbarrier_init.release.cluster;", "fence.proxy.async;",
                                                   "fence.proxy.async.shared::cta;", "fence.proxy.async.global;"})));
  }
  void round(Handoff* bars) {
    for (uint32_t w = 0; w < warps_; w++) {
      for (uint32_t n = below(noise_ + 1); n > 0; n--) access(w);
    }
    switch (below(10)) {
      case 0:
        break;
      case 1:
        block_barrier();
        break;
      case 2:
        pair_barrier();
        break;
      case 3:
        put(below(warps_), "bar.warp.sync " + std::to_string((1u << lanes_) - 1) + ";");
        break;
      case 4:
      case 5:
        flag_handoff();
        break;
      default:
        handoff(below(2), bars);
        break;
    }
  }
  void end() {
    for (uint32_t w = 0; w < warps_; w++) {
      if (chance(20 * noise_)) access(w);
      if (chance(80)) put(w, "cp.async.wait_all;");
      if (chance(80)) put(w, chance(50) ? "cp.async.bulk.wait_group 0;" : "cp.async.bulk.wait_group.read 0;");
      if (chance(50)) access(w);
    }
  }

  /// All threads of both CTAs; each warp's arrival is relaxed with this chance.
  void cluster_barrier(uint32_t relaxed) {
    const uint32_t cta = cta_;
    for (cta_ = 0; cta_ < 2; cta_++) {
      for (uint32_t w = 0; w < warps_; w++) {
        const bool is_relaxed = chance(relaxed);
        if (is_relaxed && chance(40)) thread_fence(w);
        put(w, std::string("barrier.cluster.arrive") + (is_relaxed ? ".relaxed;" : ";"));
        if (chance(10)) access(w);
        put(w, "barrier.cluster.wait;");
      }
    }
    cta_ = cta;
  }

  /// One phase of a barrier of cta_: arrivals from either CTA and operations of the other one, then waits by its own
  /// warps.
  void remote_handoff(uint32_t bar, Handoff (*bars)[2]) {
    const uint32_t owner = cta_;
    Handoff& h = bars[owner][bar];
    if (!h.met) {  // the other CTA must not arrive in a phase that it cannot know of
      const uint32_t w = below(warps_);
      if (h.seen[w] < h.phase) wait(w, bar, h.phase - 1);
      h.seen[w] = h.phase;
      cluster_barrier(40);
      for (uint32_t c = 0; c < 2; c++) {
        for (uint32_t b = 0; b < 2; b++) bars[c][b].met = bars[c][b].met || (c == owner && b == bar);
      }
    }
    const std::string name = "[bar" + std::to_string(bar) + "]", there = "[%r2" + std::to_string(1 + bar) + "]";
    for (uint32_t n = 0; n < h.count; n++) {
      cta_ = chance(75) ? 1 - owner : owner;
      const bool remote = cta_ != owner;
      const uint32_t w = below(warps_);
      const std::string g = lane_guard(below(lanes_)), space = remote ? ".shared::cluster" : ".shared::cta",
                        to = remote ? there : name;
      const std::string at =
          remote && chance(80) ? one_of<std::string>({".cluster", ".cluster", ".cta"}) : std::string();
      if (remote && chance(50)) remote_access(w);
      switch (below(5)) {
        case 0:
          if (chance(60)) thread_fence(w);
          put(w, g + "mbarrier.arrive.relaxed" + (at.empty() ? ".cluster" : at) + space + ".b64 _, " + to + ";");
          break;
        case 1: {
          if (!remote) {
            put(w, g + "mbarrier.arrive.shared::cta.b64 _, " + to + ";");
            break;
          }
          // Bytes that are announced by who sends them.
          const uint32_t kind = below(3);
          const std::string bytes = kind == 2 ? "16" : "4";
          put(w, g + "mbarrier.arrive.expect_tx" + (at.empty() ? "" : ".release" + at) + space + ".b64 _, " + to +
                     ", " + bytes + ";");
          if (kind == 0)
            put(w, g + "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r20+" + word(8) + "], %r5, " + to +
                       ";");
          if (kind == 1)
            put(w, g + "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r20+" +
                       word(8) + "], %r5, " + to + ";");
          if (kind == 2)
            put(w, g + "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r20+" + word(8, 4) +
                       "], [data+" + word(8, 4) + "], 16, " + to + ";");
          break;
        }
        default:
          put(w, g + "mbarrier.arrive" + (at.empty() ? "" : ".release" + at) + space + ".b64 _, " + to + ";");
          break;
      }
    }
    cta_ = owner;
    for (uint32_t w = 0; w < warps_; w++) {
      if (!chance(70)) continue;
      wait(w, bar, h.phase);
      h.seen[w] = h.phase + 1;
      if (chance(80)) access(w);
    }
    h.phase++;
    h.met = false;
  }
  /// A weak access of the other CTA's shared memory.
  void remote_access(uint32_t w) {
    const std::string place = (chance(60) ? "[%r20+" : "[%r24+") + word(8) + "]";
    put(w, lane_guard(below(lanes_)) + (chance(50) ? "ld.shared::cluster.u32 %r6, " + place + ";"
                                                   : "st.shared::cluster.u32 " + place + ", %r5;"));
  }

  void block_barrier() {
    for (uint32_t w = 0; w < warps_; w++) put(w, "bar.sync 0;");
  }
  void pair_barrier() {
    const uint32_t a = below(warps_), b = (a + 1 + below(warps_ - 1)) % warps_;
    const std::string id = std::to_string(1 + below(3));
    put(a, (chance(60) ? "bar.arrive " : "bar.sync ") + id + ", 64;");
    put(b, "bar.sync " + id + ", 64;");
  }
  /// Data behind a flag: a store and a strong write by one warp, a strong read in a loop and a use of the data by
  /// another, of the other CTA perhaps.
  void flag_handoff() {
    const bool global = chance(60);
    const uint32_t writer = below(warps_), lane = below(lanes_), cta = cta_;
    const std::string offset = word(8), flag_offset = std::to_string((global ? 128 : 0) + 4 * below(2));
    // In shared memory both lie in the writer's CTA.
    const bool across = (global ? ctas_ == 2 : clustered_) && chance(70);
    std::string space = global ? ".global" : ".shared", data = (global ? "[%outp+" : "[data+") + offset + "]",
                f = (global ? "[%outp+" : "[flag+") + flag_offset + "]";
    if (chance(85))
      put(writer, lane_guard(chance(80) ? lane : below(lanes_)) + "st" + space + ".u32 " + data + ", %r5;");
    strong_write(writer, space, f, lane_guard(lane));
    if (chance(15)) strong_write(writer, space, f, lane_guard(lane));
    if (across) {
      cta_ = 1 - cta_;
      if (!global) {
        space = ".shared::cluster";
        data = "[%r20+" + offset + "]";
        f = "[%r23+" + flag_offset + "]";
      }
    }
    const uint32_t reader = below(warps_), reading = below(lanes_);
    const std::string again = label(), out = label();
    put(reader, "@!%p" + std::to_string(reading) + " bra " + out + ";");
    put(reader, again + ":");
    strong_read(reader, space, f, "");
    put(reader, "setp.eq.u32 %p12, %r6, 0;");
    if (chance(85)) put(reader, "@%p12 bra " + again + ";");
    if (chance(40)) thread_fence(reader);
    put(reader, out + ":");
    if (chance(40)) {
      access(reader);
    } else {
      put(reader,
          lane_guard(chance(80) ? reading : below(lanes_)) +
              (chance(50) ? "ld" + space + ".u32 %r6, " + data + ";" : "st" + space + ".u32 " + data + ", %r5;"));
    }
    cta_ = cta;
  }
  std::string flag(const std::string& space) {
    const bool global = space == ".global";
    return (global               ? "[%outp+"
            : space == ".shared" ? "[flag+"
                                 : "[%r23+") +
           std::to_string((global ? 128 : 0) + 4 * below(2)) + "]";
  }
  std::string scope() {
    if (clustered_ && chance(50)) return ".cluster";
    return chance(50) ? ".cta" : ".gpu";
  }
  void thread_fence(uint32_t w) { put(w, (chance(70) ? "fence.acq_rel" : "fence.sc") + scope() + ";"); }
  void strong_write(uint32_t w, const std::string& space, const std::string& place, const std::string& guard) {
    if (chance(30)) thread_fence(w);
    switch (below(6)) {
      case 0:
        put(w, guard + "st.relaxed" + scope() + space + ".u32 " + place + ", %r5;");
        break;
      case 1:
        put(w, guard + "st.volatile" + space + ".u32 " + place + ", %r5;");
        break;
      case 2:
        put(w, guard + "red" + one_of<std::string>({".relaxed", ".release"}) + scope() + space + ".add.u32 " + place +
                   ", %r5;");
        break;
      case 3:
        put(w, guard + "atom" + one_of<std::string>({".relaxed", ".release", ".acquire", ".acq_rel"}) + scope() +
                   space + ".add.u32 %r6, " + place + ", %r5;");
        break;
      default:
        put(w, guard + "st.release" + scope() + space + ".u32 " + place + ", %r5;");
        break;
    }
  }
  void strong_read(uint32_t w, const std::string& space, const std::string& place, const std::string& guard) {
    switch (below(6)) {
      case 0:
        put(w, guard + "ld.relaxed" + scope() + space + ".u32 %r6, " + place + ";");
        break;
      case 1:
        put(w, guard + "ld.volatile" + space + ".u32 %r6, " + place + ";");
        break;
      case 2:
        put(w, guard + "atom" + one_of<std::string>({".relaxed", ".release", ".acquire", ".acq_rel"}) + scope() +
                   space + ".add.u32 %r6, " + place + ", %r5;");
        break;
      default:
        put(w, guard + "ld.acquire" + scope() + space + ".u32 %r6, " + place + ";");
        break;
    }
  }

  void access(uint32_t w) {
    const bool global = chance(35);
    const bool remote = !global && clustered_ && chance(30);
    const std::string space = global   ? ".global"
                              : remote ? ".shared::cluster"
                                       : ".shared",
                      base = global   ? "[%outp+"
                             : remote ? "[%r20+"
                                      : "[data+",
                      by_lane = global   ? "[%rd11+"
                                : remote ? "[%r24+"
                                         : "[%r11+";
    const uint32_t lane = below(lanes_);
    const std::string g = lane_guard(lane);
    switch (below(20)) {
      case 0:
      case 1:
        put(w, some_guard() + "ld" + space + ".u32 %r6, " + (chance(60) ? base : by_lane) + word(8) + "];");
        break;
      case 2:
      case 3:
      case 4:
        put(w,
            (chance(85) ? g + "st" + space + ".u32 " + base : "st" + space + ".u32 " + (chance(80) ? by_lane : base)) +
                word(8) + "], " + (chance(85) ? "%r5;" : "%r10;"));  // of all lanes the same, or each its own
        break;
      case 5:
        put(w, g + (chance(50) ? "ld" + space + ".u8 %r6, " + base + std::to_string(below(32)) + "];"
                               : "st" + space + ".u8 " + base + std::to_string(below(32)) + "], %r5;"));
        break;
      case 6:
        put(w, g + (chance(50) ? "ld" + space + ".u16 %h1, " + base + std::to_string(2 * below(16)) + "];"
                               : "st" + space + ".u16 " + base + std::to_string(2 * below(16)) + "], %h1;"));
        break;
      case 7:
        put(w, g + (chance(50) ? "ld" + space + ".v2.u32 {%r6, %r7}, " + base + word(8, 2) + "];"
                               : "st" + space + ".v2.u32 " + base + word(8, 2) + "], {%r5, %r5};"));
        break;
      case 8:
        put(w, g + (chance(50) ? "ld" + space + ".v4.u32 {%r6, %r7, %r8, %r9}, " + base + word(8, 4) + "];"
                               : "st" + space + ".v4.u32 " + base + word(8, 4) + "], {%r5, %r5, %r5, %r5};"));
        break;
      case 9:
        strong_write(w, space, chance(70) ? flag(space) : base + word(4) + "]", some_guard());
        break;
      case 10:
        strong_read(w, space, chance(70) ? flag(space) : base + word(4) + "]", some_guard());
        break;
      case 11:
        put(w, some_guard() + "ld" + space + ".u32 %r6, " + flag(space) + ";");
        break;
      case 12:
        thread_fence(w);
        break;
      case 13:
      case 14:
        put(w, some_guard() + "fence.proxy.async" + one_of<std::string>({"", "", ".global", ".shared::cta"}) + ";");
        break;
      case 15:
      case 16: {
        // A store (or a reduction) by bulk copy.
        const std::string guard = chance(93) ? g : std::string(), size = std::to_string(16 * (1 + below(2)));
        const bool reduces = chance(25), masked = !reduces && chance(35);
        if (masked) put(w, "mov.u16 %h2, " + std::to_string(below(0x10000)) + ";");
        put(w, guard +
                   (reduces ? "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
                            : "cp.async.bulk.global.shared::cta.bulk_group") +
                   (masked ? ".cp_mask" : "") + " [%outp+" + word(8, 4) + "], [data+" + word(8, 4) + "], " + size +
                   (masked ? ", %h2;" : ";"));
        if (chance(80)) put(w, guard + "cp.async.bulk.commit_group;");
        if (chance(50))
          put(w, guard + (chance(50) ? "cp.async.bulk.wait_group" : "cp.async.bulk.wait_group.read") +
                     (chance(75) ? " 0;" : " 1;"));
        break;
      }
      case 17: {
        const uint32_t bytes = 4u << below(3);
        put(w, g + "cp.async." + (bytes == 16 ? "cg" : "ca") + ".shared.global [data+" + word(8, bytes / 4) + "], [" +
                   (chance(50) ? "%inp" : "%outp") + "+" + word(8, bytes / 4) + "], " + std::to_string(bytes) + ";");
        if (chance(80)) put(w, g + "cp.async.commit_group;");
        if (chance(50))
          put(w, g + (chance(75) ? "cp.async.wait_group " + std::to_string(below(2)) + ";"
                                 : std::string("cp.async.wait_all;")));
        break;
      }
      case 18:
        put(w, some_guard() +
                   (chance(50) ? "mbarrier.test_wait.parity.shared::cta.b64 %p12, [bar"
                               : "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p12, [bar") +
                   std::to_string(below(2)) + "], " + std::to_string(below(2)) + ";");
        break;
      default:
        put(w, "bar.warp.sync " + std::to_string((1u << lanes_) - 1) + ";");
        break;
    }
  }

  /// A wait in a loop, by all lanes of a warp or by one.
  void wait(uint32_t w, uint32_t bar, uint64_t phase) {
    const bool relaxed = chance(25);
    const std::string again = label(), out = label();
    if (chance(25)) put(w, "@!%p" + std::to_string(below(lanes_)) + " bra " + out + ";");
    put(w, again + ":");
    const std::string reach = clustered_ && chance(60) ? ".cluster" : ".cta";
    put(w, std::string("mbarrier.") + (chance(70) ? "try_wait" : "test_wait") + ".parity" +
               (relaxed           ? ".relaxed" + reach
                : reach == ".cta" ? ""
                                  : ".acquire" + reach) +
               ".shared::cta.b64 %p12, [bar" + std::to_string(bar) + "], " + std::to_string(phase & 1) + ";");
    put(w, "@!%p12 bra " + again + ";");
    put(w, out + ":");
    if (relaxed && chance(50)) thread_fence(w);
  }

  /// One phase of a barrier: arrivals that add up to its count, then waits.
  void handoff(uint32_t bar, Handoff* bars) {
    Handoff& h = bars[bar];
    const std::string name = "[bar" + std::to_string(bar) + "]";
    for (uint32_t n = 0; n < h.count; n++) {
      const uint32_t w = below(warps_);
      const std::string g = lane_guard(below(lanes_));
      if (h.seen[w] < h.phase && chance(85)) {
        wait(w, bar, h.phase - 1);
        h.seen[w] = h.phase;
      }
      switch (below(6)) {
        case 0: {
          if (chance(60)) thread_fence(w);
          put(w, g + "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, " + name + ";");
          break;
        }
        case 1:
        case 2: {
          const std::string bytes = std::to_string(16 * (1 + below(2)));
          const std::string copy = g + "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data+" +
                                   word(8, 4) + "], [" + (chance(50) ? "%inp" : "%outp") + "+" + word(8, 4) + "], " +
                                   bytes + ", " + name + ";";
          const bool first = chance(30);
          if (first) put(w, copy);
          put(w, g + "mbarrier.arrive.expect_tx.shared::cta.b64 _, " + name + ", " + bytes + ";");
          if (!first) put(w, copy);
          break;
        }
        case 3:
          put(w, g + "cp.async.ca.shared.global [data+" + word(8) + "], [%inp+" + word(8) + "], 4;");
          put(w, g + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 " + name + ";");
          break;
        default:
          put(w, g + "mbarrier.arrive.shared::cta.b64 _, " + name + ";");
          break;
      }
    }
    for (uint32_t w = 0; w < warps_; w++) {
      if (!chance(60)) continue;
      wait(w, bar, h.phase);
      h.seen[w] = h.phase + 1;
      if (chance(70)) access(w);
    }
    h.phase++;
  }

  std::mt19937_64 random_;
  bool clustered_ = false;
  uint32_t ctas_ = 1, warps_ = 2, lanes_ = 1, noise_ = 0, cta_ = 0, next_label_ = 0;
  std::vector<std::vector<std::string>> sections_;
};

// --- the comparison
// ---------------------------------------------------------------------------------------------------

struct Compared {
  Found checker;
  ReferenceChecker::Verdict reference;
  machine::LaunchStatus status{};
  std::string disagreement;  ///< empty: none
};

/// Ids that one checker may give where the other gives `id`. group-not-awaited is what the checker calls an unfinished
/// copy when somebody waited for groups since: a better name for the same finding.
std::vector<std::string> alternatives(const std::string& id) {
  const std::string same = ReferenceChecker::kSameInstruction, overwritten = ReferenceChecker::kOverwritten,
                    unread = "source-overwritten", unwritten = "async-read-before-complete",
                    refill = "refill-before-release", group = "group-not-awaited";
  if (id == same) return {"data-race", "many-lanes-issue", group};
  if (id == overwritten) return {"data-race", group};
  if (id == "data-race") return {id, same, overwritten};
  if (id == "many-lanes-issue") return {id, same};
  if (id == unread || id == unwritten || id == refill) return {id, group};
  if (id == group) return {unread, unwritten, refill, same, overwritten};
  return {id};
}

/// What is in `f` and not in `without`.
std::string show(const Found& f, const Found& without) {
  std::string s;
  for (const auto& [id, line] : f) {
    const std::vector<std::string> names = alternatives(id);
    if (std::none_of(names.begin(), names.end(), [&, at = line](const std::string& name) {
          return without.count({name, at}) != 0;
        }))
      s += "  " + id + " @ " + std::to_string(line);
  }
  return s;
}

Compared compare(Kernel k) {
  Both both;
  k.observer = &both;
  const Outcome o = async::testing::run(k);
  Compared c;
  c.status = o.status;
  c.reference = both.verdict;
  Found unsaid;
  bool error = false;  // then an overrun of a barrier that nobody waits for may go unsaid
  // A deadlock is explained, perhaps by a wait that was overtaken; the reference explains nothing.
  const bool hangs =
      std::any_of(o.diagnostics.begin(), o.diagnostics.end(), [](const Diagnostic& d) { return d.id == "deadlock"; });
  for (const Diagnostic& d : o.diagnostics) {
    if (hangs && d.id == "phase-overrun" && c.reference.all.count({d.id, d.place.line}) == 0) continue;
    error = error || (d.severity == Severity::Error && d.id != "phase-overrun" && kCompared.count(d.id) != 0);
    // The machine itself reports an operation on a barrier that is not there yet or no more, and stops; what the
    // checker finds at that line is the same and goes unsaid.
    const bool stopped = (d.id == "barrier-not-initialized" && d.related.empty()) ||
                         (d.id == "remote-cta-gone" && d.message.find("which has ended") != std::string::npos);
    if (kCompared.count(d.id) != 0) (stopped ? unsaid : c.checker).emplace(d.id, d.place.line);
  }
  if (const std::string extra = show(c.checker, c.reference.all); !extra.empty())
    c.disagreement += "only the checker finds" + extra + "\n";
  if (!c.reference.lanes_collide && c.disagreement.empty()) {
    if (const std::string extra = show(c.checker, c.reference.nearest); !extra.empty())
      c.disagreement += "only the checker finds, among the nearest," + extra + "\n";
    Found required = c.reference.nearest;
    for (const auto& found : unsaid) required.erase(found);
    // Of one record the checker reports one word: a missing fence is worse than a misplaced one, no order is worse than
    // one of a scope that is too narrow.
    const auto worse = [&c](const char* id, uint32_t line) { return c.checker.count({id, line}) != 0; };
    std::erase_if(required, [&](const auto& found) {
      const auto& [id, line] = found;
      return (id == "proxy-fence-misplaced" && worse("missing-proxy-fence", line)) ||
             (id == "scope-too-narrow" && (worse("data-race", line) || worse("refill-before-release", line)));
    });
    if (error) std::erase_if(required, [](const auto& found) { return found.first == "phase-overrun"; });
    if (const std::string missed = show(required, c.checker); !missed.empty())
      c.disagreement += "only the reference finds" + missed + "\n";
  }
  if (c.reference.hidden != c.reference.exempted) c.disagreement += "forgetting hides the first mistake of a byte\n";
  return c;
}

/// The program with every line left out that is not needed to disagree.
Kernel shrink(Kernel k) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    std::vector<std::string> lines;
    std::istringstream text(k.body);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    for (size_t n = 0; n < lines.size(); n++) {
      const std::string line = lines[n];
      const auto has = [&line](const char* part) { return line.find(part) != std::string::npos; };
      if (line.empty() || line.back() == ':' || has("bra ") || has("exit") || has("setp") || has("init") ||
          has("%r11,") || has("%rd11,") || has("mapa") || has("%r19,") || has("%r24,"))
        continue;
      lines[n].clear();
      Kernel less = k;
      less.body.clear();
      for (const std::string& l : lines) less.body += l + "\n";
      if (compare(less).disagreement.empty()) {
        lines[n] = line;
      } else {
        k = less;
        smaller = true;
      }
    }
  }
  return k;
}

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(ModelTest, AgreesWithTheReferenceOnRandomProtocols) {
  const uint64_t programs = setting("HANDOFF_MODEL_PROGRAMS", 2000), first = setting("HANDOFF_MODEL_FIRST_SEED", 1);
  const std::vector<machine::Schedule> schedules = async::testing::schedules(4);
  size_t ended = 0, silent = 0, exempted = 0, collide = 0, findings = 0, disagreements = 0, nodes = 0;
  std::map<std::string, size_t> ids;
  for (uint64_t seed = first; seed < first + programs; seed++) {
    Kernel k = Generator(seed).make();
    k.schedule = schedules[seed % schedules.size()];
    if (k.schedule.kind == machine::Schedule::Kind::Random) k.schedule.seed = seed;
    const Compared c = compare(k);
    ended += c.status == machine::LaunchStatus::Ok ? 1 : 0;
    silent += c.checker.empty() ? 1 : 0;
    exempted += c.reference.exempted;
    collide += c.reference.lanes_collide ? 1 : 0;
    findings += c.checker.size();
    nodes = std::max(nodes, c.reference.nodes);
    for (const auto& [id, line] : c.checker) ids[id]++;
    if (c.disagreement.empty()) continue;
    k = shrink(k);
    std::string text;
    uint32_t n = 0;
    std::istringstream lines(k.body);
    for (std::string line; std::getline(lines, line); n++) {
      if (!line.empty()) text += std::to_string(n) + "\t" + line + "\n";
    }
    ADD_FAILURE() << "seed " << seed << ", " << to_string(k.schedule) << ", " << k.grid.x
                  << (k.cluster.x == 2 ? " CTAs, a cluster, of " : " CTAs of ") << k.block.x / 32 << " warps\n"
                  << compare(k).disagreement << text;
    if (++disagreements == setting("HANDOFF_MODEL_STOP_AFTER", 5)) break;
  }
  std::printf(
      "%zu of %llu programs ended, %zu silent, %zu with colliding lanes, %zu findings, %zu bytes exempted, largest "
      "graph %zu nodes\n",
      ended, static_cast<unsigned long long>(programs), silent, collide, findings, exempted, nodes);
  for (const auto& [id, count] : ids) std::printf("  %-28s %zu\n", id.c_str(), count);
  // The generator must not drift into programs that say nothing.
  if (programs >= 1000 && disagreements == 0) {
    EXPECT_GT(ended * 10, programs * 7);
    EXPECT_GT(silent * 50, programs);
    for (const std::string& id : kCompared) EXPECT_GT(ids[id], 0u) << id;
  }
}

/// Two full warps on two rows of shared memory: lanes in order, which the checker takes a row at a time, and reversed,
/// shifted, half and single lanes, which it takes word by word.
Kernel rows(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Kernel k;
  k.block = {64, 1, 1};
  k.shared = ".shared .align 128 .b8 data[256];\n";
  k.in.assign(64, 7);
  k.out.assign(64, 0);
  k.body = R"(
    and.b32 %r1, %t, 31;
    mov.u32 %r2, data;
    mad.lo.u32 %r10, %r1, 4, %r2;
    xor.b32 %r3, %r1, 31;
    mad.lo.u32 %r11, %r3, 4, %r2;
    add.u32 %r4, %r1, 1;
    and.b32 %r4, %r4, 31;
    mad.lo.u32 %r12, %r4, 4, %r2;
    setp.eq.u32 %p0, %w, 0;
    setp.ne.u32 %p1, %w, 0;
    setp.lt.and.u32 %p2, %r1, 16, %p0;
    setp.lt.and.u32 %p3, %r1, 16, %p1;
    setp.eq.and.u32 %p4, %r1, 5, %p0;
    setp.eq.and.u32 %p5, %r1, 5, %p1;
)";
  const uint32_t lines = 3 + below(8);
  for (uint32_t n = 0; n < lines; n++) {
    const uint32_t warp = below(2);
    if (below(100) < 25) {
      k.body += "bar.sync 0;\n";
    } else if (below(100) < 10) {
      const std::string g = "@%p" + std::to_string(4 + warp) + " ";
      k.body += g + "cp.async.bulk.global.shared::cta.bulk_group [%outp], [data], 128;\n";
      k.body += g + "cp.async.bulk.commit_group;\n" + g + "cp.async.bulk.wait_group.read 0;\n";
    } else {
      const uint32_t who = below(100) < 60 ? warp : below(100) < 50 ? 2 + warp : 4 + warp;
      const uint32_t base = below(100) < 60 ? 10 : 11 + below(2);
      const std::string place = "[%r" + std::to_string(base) + (below(4) == 0 ? "+128]" : "]");
      k.body += "@%p" + std::to_string(who) +
                (below(2) == 0 ? " ld.shared.u32 %r20, " + place : " st.shared.u32 " + place + ", %t") + ";\n";
    }
  }
  return k;
}

TEST(ModelTest, AgreesWithTheReferenceOnWholeRows) {
  const uint64_t programs = setting("HANDOFF_MODEL_PROGRAMS", 2000) / 10;
  size_t silent = 0, races = 0;
  for (uint64_t seed = 1; seed <= programs; seed++) {
    Kernel k = rows(seed);
    k.schedule.kind = machine::Schedule::Kind::Random;
    k.schedule.seed = seed;
    const Compared c = compare(k);
    ASSERT_EQ(c.disagreement, "") << "seed " << seed << k.body;
    (c.checker.empty() ? silent : races)++;
  }
  EXPECT_GT(silent * 20, programs);
  EXPECT_GT(races * 20, programs);
}

}  // namespace
}  // namespace handoff::check::testing
