// Whole screens, as a learner sees them. A changed screen changes these texts: look at both.
#include "grader/report/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

namespace handoff::report {
namespace {

using harness::FoundDiagnostic;
using harness::TestOutcome;
using harness::Verdict;
using State = TestOutcome::State;
using ::testing::HasSubstr;
using ::testing::Not;

const std::map<size_t, std::string> kSource = {
    {26, "    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, 4096);"},
    {28, "    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, src, 2048, &full);"},
    {31, "  out[i] = tile[i];"},
    {36, "  staging[i] = 2.0f * x;"},
    {41, "  ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, dst, staging, 4096);"},
};

RenderOptions options() {
  RenderOptions o;
  o.source_line = [](const std::string& file, size_t line) -> std::optional<std::string> {
    const auto found = kSource.find(line);
    if (file != "kernel.cu" || found == kSource.end()) return std::nullopt;
    return found->second;
  };
  return o;
}

Verdict blank(const std::string& id, const std::string& title, int score, int max_score) {
  Verdict v;
  v.exercise = id;
  v.title = title;
  v.score = score;
  v.max_score = max_score;
  v.devices = "emulator";
  v.seconds = 1.9;
  v.nvcc_seconds = 1.5;
  return v;
}

FoundDiagnostic found(Diagnostic d) {
  FoundDiagnostic f;
  f.diagnostic = std::move(d);
  f.device = "emulator";
  f.schedule = "nominal";
  return f;
}

Verdict missing_wait() {
  Verdict v = blank("04a", "two-copies-one-barrier", 4, 10);
  v.tests = {{"result", "emulator", State::Failed, 0, 1,
              "nominal: 1024 of 1024 elements wrong, first at [0]: got poison, expected 7.25"},
             {"every-schedule", "emulator", State::NotRun, 0, 1, "nominal failed"},
             {"no-hazards", "emulator", State::Failed, 0, 4, ""},
             {"bytes-add-up", "emulator", State::Passed, 2, 2, ""},
             {"uses-bulk-copies", "emulator", State::Passed, 2, 2, ""}};
  v.diagnostics = {found({"async-read-before-complete",
                          Severity::Error,
                          "warp 0 lanes 0-31 read bytes 0-127 of tile at kernel.cu:31",
                          "A wait on `full` for phase 0 before line 31 would order them.",
                          {"kernel.cu", 31},
                          {{{"kernel.cu", 28}, "this copy may still be writing those bytes"},
                           {{"kernel.cu", 31}, "nothing orders this read after it"}}})};
  v.reproduce = "--schedule nominal";
  return v;
}

TEST(Screen, MissingWait) {
  EXPECT_EQ(render(missing_wait(), options()),
            R"(04a two-copies-one-barrier · emulator · 4 of 10 points                              1.9 s (nvcc 1.5)

  ✗ result    nominal: 1024 of 1024 elements wrong, first at [0]: got poison, expected 7.25
  ✗ no-hazards   ✓ bytes-add-up   ✓ uses-bulk-copies   – every-schedule (not run: nominal failed)

  error[async-read-before-complete]  warp 0 lanes 0-31 read bytes 0-127 of tile at kernel.cu:31
   28 |   ptx::cp_async_bulk(ptx::space_cluster, ptx…   ← this copy may still be writing those bytes
   31 | out[i] = tile[i];                               ← nothing orders this read after it
     A wait on `full` for phase 0 before line 31 would order them.
     ./handoff explain async-read-before-complete
  reproduce: ./handoff check 04a --schedule nominal        next: ./handoff hint 04a
)");
}

TEST(Screen, Deadlock) {
  Verdict v = blank("04a", "two-copies-one-barrier", 0, 10);
  v.tests = {{"result", "emulator", State::Failed, 0, 6, "nominal: deadlock after 1,214 modeled cycles"},
             {"no-hazards", "emulator", State::Failed, 0, 4, ""}};
  v.state = {
      "full    phase 0   pending arrivals 0   tx-count 2048     2048 of 4096 expected bytes arrived (copy at "
      "kernel.cu:28)",
      "waiting: 128 threads at kernel.cu:30 for full, parity 0"};
  v.deadlock_schedule = "nominal";
  v.diagnostics = {
      found({"tx-bytes-mismatch",
             Severity::Error,
             "expect_tx at kernel.cu:26 announces 4096 bytes, but one copy of 2048 bytes was issued against `full`",
             "",
             {"kernel.cu", 26},
             {{{"kernel.cu", 28}, "2048 bytes"}}}),
      found({"deadlock", Severity::Error, "128 threads wait and nothing is in flight", "", {"kernel.cu", 30}, {}}),
      found({"copy-in-flight-at-exit", Severity::Error, "not shown", "", {"kernel.cu", 28}, {}})};
  v.reproduce = "--schedule nominal";
  EXPECT_EQ(render(v, options()),
            R"(04a two-copies-one-barrier · emulator · 0 of 10 points                              1.9 s (nvcc 1.5)

  ✗ result    nominal: deadlock after 1,214 modeled cycles
  ✗ no-hazards

  ✗ deadlock · schedule nominal
     full    phase 0   pending arrivals 0   tx-count 2048     2048 of 4096 expected bytes arrived
             (copy at kernel.cu:28)
     waiting: 128 threads at kernel.cu:30 for full, parity 0
  error[tx-bytes-mismatch]  expect_tx at kernel.cu:26 announces 4096 bytes, but one copy of 2048
      bytes was issued against `full`
   26 | ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, …   ← here
   28 | ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, s…   ← 2048 bytes
     ./handoff explain tx-bytes-mismatch
  error[deadlock]  128 threads wait and nothing is in flight, at kernel.cu:30
  … 1 more diagnostic (--verbose shows all)
  reproduce: ./handoff check 04a --schedule nominal        next: ./handoff hint 04a
)");
}

TEST(Screen, RightOnTheChipWrongAllTheSame) {
  Verdict v = blank("06c", "it-worked-on-my-gpu", 4, 10);
  v.devices = "emulator + NVIDIA H200";
  v.tests = {{"result", "emulator", State::Passed, 4, 4, ""},
             {"no-hazards", "emulator", State::Failed, 0, 6, ""},
             {"result", "cuda", State::Passed, 4, 4, ""}};
  v.diagnostics = {found(
      {"missing-proxy-fence",
       Severity::Error,
       "the bulk store at kernel.cu:41 reads staging[0..4095], written at kernel.cu:36 through the generic proxy; no "
       "fence.proxy.async of the writers comes between",
       "",
       {"kernel.cu", 41},
       {{{"kernel.cu", 36}, "written here"}}})};
  EXPECT_EQ(render(v, options()),
            R"(06c it-worked-on-my-gpu · emulator + NVIDIA H200 · 4 of 10 points                   1.9 s (nvcc 1.5)

  emulator  ✗ no-hazards   ✓ result
  GPU       ✓ result

  error[missing-proxy-fence]  the bulk store at kernel.cu:41 reads staging[0..4095], written at
      kernel.cu:36 through the generic proxy; no fence.proxy.async of the writers comes between
   36 | staging[i] = 2.0f * x;                                               ← written here
   41 | ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, dst, sta…   ← here
     ./handoff explain missing-proxy-fence
  The GPU got away with it this time. Full marks need both.
  next: ./handoff hint 06c
)");
}

TEST(Screen, Done) {
  Verdict v = blank("13a", "gemm-full-empty", 20, 20);
  v.tests = {{"result", "emulator", State::Passed, 20, 20, ""}};
  v.runs = 8;
  v.cases = 9;
  v.modeled_cycles = 1234567;
  v.resources.registers = 96;
  v.resources.static_smem = 1032;
  v.resources.dynamic_smem = 132 * 1024;
  v.nvcc_seconds = 0;
  RenderOptions o = options();
  o.next = "13b gemm-persistent";
  EXPECT_EQ(render(v, o),
            R"(✓ 13a gemm-full-empty · emulator · 20 of 20 points · 8 runs of 9 cases, no hazards             1.9 s
  1,234,567 modeled cycles · registers 96 · shared memory 1,032 bytes + 132 KiB dynamic
  next: 13b gemm-persistent   ./handoff check 13b
)");
}

Verdict pipelined() {
  Verdict v = blank("13a", "gemm-full-empty", 20, 20);
  v.tests = {{"result", "emulator", State::Passed, 20, 20, ""}, {"overlap", "emulator", State::Passed, 0, 0, ""}};
  v.modeled_cycles = 33000;
  v.units = {31000, 29140, 0, 16430, 20000};
  v.timeline = {2000, 33000, std::vector<uint8_t>(32, 100), {}, {}, {}, 129};
  v.timeline.mmas = {0, 1, 12, 13, 25, 26, 38, 50, 51, 62, 63, 75, 76, 87, 88, 100,
                     0, 0, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0};
  v.timeline.stores.assign(32, 0);
  v.timeline.threads.assign(32, 12);
  return v;
}

TEST(Screen, OneScheduleDoesNotLeadOn) {
  const Verdict v = blank("13a", "gemm-full-empty", 20, 20);
  RenderOptions o = options();
  o.next = "13b gemm-persistent";
  o.one_schedule = true;
  EXPECT_THAT(render(v, o), HasSubstr("\n  next: ./handoff check 13a   runs all schedules\n"));
  EXPECT_THAT(render(v, o), Not(HasSubstr("13b")));
  o.one_schedule = false;
  EXPECT_THAT(render(v, o), HasSubstr("\n  next: 13b gemm-persistent   ./handoff check 13b\n"));
}

TEST(Screen, APipelineIsDrawn) {
  EXPECT_THAT(render(pipelined(), options()), HasSubstr(R"(
  33,000 modeled cycles
  modeled: 94 % of the bound, which is the loads (busy: loads 94 %, tensor core 53 %)
    block 0      0 ──────────────── 31,000 cycles
    loads        ████████████████████████████████
    tensor core   ▁▁▂▂▃▄▄▅▅▆▆▇▇██
    threads      ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
)"));
}

TEST(Screen, LoadsAndStoresTogetherCanBeTheBound) {
  Verdict v = pipelined();
  v.units = {1000, 300, 650, 0, 900};
  EXPECT_THAT(render(v, options()), HasSubstr("\n  modeled: 90 % of the bound, which is the loads and stores together "
                                              "(busy: loads 30 %, stores 65 %)\n"));
}

TEST(Screen, FarFromTheBoundOnlyTheUnitsAreTold) {
  Verdict v = pipelined();
  v.units.cta_cycles = 310000;
  EXPECT_THAT(render(v, options()), HasSubstr("\n  modeled: busy: loads 9 %, tensor core 5 %\n    block 0 "));
}

// A few copies are no pipeline; a wrong kernel's overlap is of no use, one that is right but serial is to be seen.
TEST(Screen, WhatIsNoPipelineIsNotDrawn) {
  Verdict v = pipelined();
  v.timeline.operations = 3;
  EXPECT_THAT(render(v, options()), Not(HasSubstr("of the bound")));
  for (const char* test : {"result", "overlap"}) {
    v = pipelined();
    v.score = 10;
    for (TestOutcome& t : v.tests) {
      if (t.name == test) t.state = State::Failed;
    }
    if (test == std::string("result"))
      EXPECT_THAT(render(v, options()), Not(HasSubstr("of the bound")));
    else
      EXPECT_THAT(render(v, options()), HasSubstr("94 % of the bound"));
  }
}

TEST(Screen, TellsSpillsAndTheStack) {
  Verdict v = blank("13a", "gemm-full-empty", 20, 20);
  v.modeled_cycles = 1234567;
  v.resources.registers = 255;
  v.resources.dynamic_smem = 65536;
  v.resources.spill_stores = 1400;
  v.resources.spill_loads = 1868;
  v.resources.stack = 1008;
  EXPECT_THAT(render(v, options()), HasSubstr(R"(
  1,234,567 modeled cycles · registers 255 · shared memory 64 KiB dynamic · spills 1,400 bytes
    stored, 1,868 loaded · stack 1,008 bytes
)"));
}

TEST(Screen, TellsBankConflictsInALine) {
  Verdict v = blank("13a", "gemm-full-empty", 20, 20);
  v.modeled_cycles = 1234567;
  v.resources.registers = 96;
  v.shared_memory = {
      2048, 4096, 1024, 0, {{{"kernel.cu", 31}, 256, 2944, 256, 32}, {{"kernel.cu", 40}, 64, 448, 64, 8}}};
  EXPECT_THAT(render(v, options()), HasSubstr(R"(
  1,234,567 modeled cycles · registers 96
  shared memory: 4,096 wavefronts, 3,072 above the minimum: kernel.cu:31 (32-way),
    kernel.cu:40 (8-way)
)"));
  for (uint32_t line : {50, 60}) v.shared_memory.conflicts.push_back({{"kernel.cu", line}, 1, 3, 1, 3});
  EXPECT_THAT(render(v, options()), HasSubstr(R"(
  shared memory: 4,096 wavefronts, 3,072 above the minimum: kernel.cu:31 (32-way),
    kernel.cu:40 (8-way), kernel.cu:50 (3-way), … 1 more line (--verbose shows all)
)"));
  RenderOptions all = options();
  all.verbose = true;
  EXPECT_THAT(render(v, all), HasSubstr("kernel.cu:60 (3-way)"));
  v.shared_memory.wavefronts = v.shared_memory.minimum;
  EXPECT_THAT(render(v, options()), Not(HasSubstr("wavefronts")));
}

// As with cycles: what a wrong kernel does to the banks is of no use.
TEST(Screen, AWrongKernelsBankConflictsAreNotTold) {
  Verdict v = missing_wait();
  v.shared_memory = {32, 1024, 32, 0, {{{"kernel.cu", 31}, 32, 1024, 32, 32}}};
  EXPECT_THAT(render(v, options()), Not(HasSubstr("wavefronts")));
}

TEST(Screen, AWrongKernelsResourcesComeLast) {
  Verdict v = missing_wait();
  v.modeled_cycles = 1214;
  v.resources.registers = 32;
  v.resources.static_smem = 4104;
  EXPECT_THAT(render(v, options()), HasSubstr(R"(
     ./handoff explain async-read-before-complete
  registers 32 · shared memory 4,104 bytes
  reproduce: ./handoff check 04a --schedule nominal        next: ./handoff hint 04a
)"));
  v.problem = "grading ran out of memory and was stopped";
  EXPECT_THAT(render(v, options()), Not(HasSubstr("registers")));
}

TEST(Screen, SaysNothingOfUnknownResources) {
  Verdict v = blank("03b", "ring", 12, 12);
  v.resources.dynamic_smem = 4096;  // known from the launches where the kept PTX was graded; the static part is not
  EXPECT_THAT(render(v, options()), Not(HasSubstr("shared memory")));
}

TEST(Screen, DoesNotCompile) {
  Verdict v = blank("01a", "first-handoff", 0, 10);
  v.devices.clear();
  v.problem = "does not compile: 1 error";
  v.problem_detail =
      "kernel.cu:10: error: namespace \"ptx\" has no member \"mbarrier_arive\"\n      ptx::mbarrier_arive(&bar);\n     "
      "      ^";
  EXPECT_EQ(render(v, options()),
            R"(01a first-handoff · 0 of 10 points                                                  1.9 s (nvcc 1.5)

  ✗ does not compile: 1 error
     kernel.cu:10: error: namespace "ptx" has no member "mbarrier_arive"
           ptx::mbarrier_arive(&bar);
                ^
  next: ./handoff hint 01a
)");
}

TEST(Screen, FitsItsWidthAndHeight) {
  Verdict v = missing_wait();
  for (int i = 0; i < 30; ++i) {
    v.state.push_back("waiting: 128 threads at kernel.cu:30 for full, parity 0, and more of it " +
                      std::string(40, 'x'));
    v.output += "printed " + std::string(200, 'y') + "\n";
    v.notes.push_back("note " + std::to_string(i));
    v.diagnostics.push_back(v.diagnostics.front());
    v.diagnostics.front().diagnostic.related.push_back({{"kernel.cu", 26}, "role " + std::to_string(i)});
  }
  for (size_t width : {60U, 80U, 100U, 120U}) {
    RenderOptions o = options();
    o.width = width;
    const std::string screen = render(v, o);
    std::istringstream lines(screen);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(display_width(line), width) << line;
    if (width >= 100) {
      EXPECT_LE(count, 45U) << screen;
    }
  }
}

TEST(Screen, TheSubmissionCannotDrawOnIt) {
  Verdict v = missing_wait();
  v.output =
      "\x1b[2J\x1b[H04a · 10 of 10 points\r\n\xc2\x9b"
      "31mred\x7f";
  v.diagnostics.front().diagnostic.message = "named \x1b]0;title\x07 by the learner";
  const std::string screen = render(v, options());
  EXPECT_EQ(screen.find('\x1b'), std::string::npos);
  EXPECT_EQ(screen.find('\r'), std::string::npos);
  EXPECT_EQ(screen.find("\xc2\x9b"), std::string::npos);
  EXPECT_THAT(screen, HasSubstr("     │ [2J[H04a · 10 of 10 points\n"));
}

TEST(Screen, ColourChangesNoText) {
  RenderOptions colored = options();
  colored.color = true;
  std::string screen = render(missing_wait(), colored);
  EXPECT_THAT(screen, HasSubstr("\x1b[31m"));
  for (size_t at = screen.find('\x1b'); at != std::string::npos; at = screen.find('\x1b')) {
    screen.erase(at, screen.find('m', at) - at + 1);
  }
  EXPECT_EQ(screen, render(missing_wait(), options()));
}

TEST(Screen, VerboseShowsEverything) {
  Verdict v = missing_wait();
  for (int i = 0; i < 9; ++i)
    v.diagnostics.push_back(found({"data-race", Severity::Error, "race " + std::to_string(i), "", {}, {}}));
  RenderOptions o = options();
  EXPECT_THAT(render(v, o), Not(HasSubstr("race 8")));
  o.verbose = true;
  EXPECT_THAT(render(v, o), HasSubstr("race 8"));
}

TEST(Line, NamesTheCause) {
  EXPECT_EQ(render_line(missing_wait(), options()),
            "✗ 04a two-copies-one-barrier       4/10    1.9 s  async-read-before-complete  kernel.cu:31");
  Verdict v = blank("01a", "first-handoff", 10, 10);
  EXPECT_EQ(render_line(v, options()), "✓ 01a first-handoff               10/10    1.9 s");
}

TEST(SharedNotes, StandOnceWithTheirExercises) {
  Verdict silent = blank("01a", "first-handoff", 10, 10), a = blank("09a", "tensor-memory", 10, 10),
          b = blank("10a", "descriptors", 10, 10);
  a.notes = {"cuda: skipped: needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA H200 (sm_90)"};
  b.notes = {a.notes[0], "another"};
  EXPECT_THAT(shared_notes({silent, a, b}),
              ::testing::ElementsAre("09a, 10a: cuda: skipped: needs tcgen05 (sm_100, sm_103); this GPU is NVIDIA H200 "
                                     "(sm_90)",
                                     "10a: another"));
  EXPECT_THAT(shared_notes({silent}), ::testing::IsEmpty());
}

TEST(Color, OnlyOnATerminalAndNotWhereRefused) {
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_color(1));
  unsetenv("NO_COLOR");
  EXPECT_FALSE(wants_color(-1));
}

TEST(Wrap, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrap("one two three", 8, 2, 0), "one two\n  three");
  EXPECT_EQ(wrap("one two three", 8, 2, 4), "one\n  two\n  three");
  EXPECT_EQ(wrap("a  b", 80, 2, 0), "a  b");
  EXPECT_EQ(wrap("averylongword x", 5, 0, 0), "averylongword\nx");
  EXPECT_EQ(wrap("", 5, 0, 0), "");
}

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width("✓ – ←"), 5U);
  EXPECT_EQ(display_width(""), 0U);
}

}  // namespace
}  // namespace handoff::report
