// The table of probes, what becomes of their samples, records; one probe of each kernel file on the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "grader/emulator/machine/device_model.h"
#include "grader/timing/measure.h"
#include "grader/timing/probe.h"
#include "grader/timing/record.h"

namespace handoff::timing {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

const Probe& probe(const std::string& name) {
  const std::vector<Probe>& all = all_probes();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Probe& p) { return p.name == name; });
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(Probes, TheClockComesFirst) { EXPECT_EQ(all_probes().front().name, "clock"); }

TEST(Probes, NameTheClockThatTheyAreRead) {
  EXPECT_STREQ(clock_probe(probe("alu.fma")), "clock");
  const std::string quick = clock_probe(probe("bulk.store_read/128"));
  EXPECT_NE(quick, "clock");
  // Whoever measures on a chip needs that probe first.
  for (const Probe& p : all_probes()) {
    if (p.name == quick) break;
    EXPECT_STREQ(clock_probe(p), "clock") << p.name;
  }
  EXPECT_EQ(clock_probe(probe(quick)), quick);
}

TEST(Probes, HaveNamesOfTheirOwnAndKernelsThatExist) {
  std::set<std::string> names;
  for (const Probe& p : all_probes()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_GE(p.operations, 1) << p.name;
    const std::regex entry("extern \"C\" __global__ void " + p.kernel + "\\(");
    EXPECT_TRUE(std::regex_search(text_of(kernel_folder() / (p.file + ".cu")), entry)) << p.name;
  }
}

TEST(Probes, EveryKernelIsUsed) {
  for (const auto& file : std::filesystem::directory_iterator(kernel_folder())) {
    if (file.path().extension() != ".cu") continue;
    const std::string text = text_of(file.path());
    const std::regex entry("extern \"C\" __global__ void (\\w+)\\(");
    for (std::sregex_iterator k(text.begin(), text.end(), entry), end; k != end; ++k) {
      EXPECT_TRUE(std::any_of(all_probes().begin(), all_probes().end(),
                              [&](const Probe& p) { return p.file == file.path().stem() && p.kernel == (*k)[1]; }))
          << file.path().filename() << ": " << (*k)[1];
    }
  }
}

TEST(Probes, TheHostCountsRoundsAsTheKernelsDo) {
  EXPECT_THAT(text_of(kernel_folder() / "probe.cuh"), HasSubstr("kRounds = " + std::to_string(kRounds) + ";"));
}

TEST(Probes, AFingerprintIsOfTheKernelAndOfItsLaunch) {
  const Probe& p = probe("bulk.load/4096");
  EXPECT_EQ(fingerprint(p), fingerprint(p));
  Probe other = p;
  other.n = 8192;
  EXPECT_NE(fingerprint(other), fingerprint(p));
  other = p;
  other.file = "memory";
  EXPECT_NE(fingerprint(other), fingerprint(p));
  other.file = "no-such-file";
  EXPECT_EQ(fingerprint(other), "");
}

TEST(Samples, TheMedianIsOfTheRoundsBehindTheWarmUp) {
  std::vector<uint32_t> samples(kRounds, 100);
  std::fill_n(samples.begin(), kWarmUp, 5000);
  samples.back() = 900;
  samples[kWarmUp] = 90;
  const Cycles cycles = summarize(samples);
  EXPECT_EQ(cycles.median, 100);
  EXPECT_EQ(cycles.least, 90);
  EXPECT_EQ(cycles.most, 900);
}

TEST(Samples, AnEvenNumberHasTheMeanOfTheMiddleTwo) {
  std::vector<uint32_t> samples(kRounds, 10);
  static_assert((kRounds - kWarmUp) % 2 == 0);
  std::fill_n(samples.end() - (kRounds - kWarmUp) / 2, (kRounds - kWarmUp) / 2, 13);
  EXPECT_EQ(summarize(samples).median, 11.5);
}

TEST(Samples, AnOperationIsItsShareOfARoundLessTheClock) {
  Probe p;
  p.name = "x";
  p.operations = 4;
  EXPECT_EQ(cycles_of(p, {100, 0, 0}, 20), 20);
  p.name = "clock";
  EXPECT_EQ(cycles_of(p, {100, 0, 0}, 20), 100);
}

TEST(Records, AreReadAsTheyWereWritten) {
  Record record{"NVIDIA H200", "580.1", "2026-11-30", "13.0", {}};
  record.probes["bulk.load/4096"] = {{812.5, 800, 1200}, "0123456789abcdef"};
  record.probes["clock"] = {{14, 13, 15}, "fedcba9876543210"};
  Record read;
  EXPECT_THAT(from_json(to_json(record), &read), IsEmpty());
  EXPECT_EQ(read.gpu, record.gpu);
  EXPECT_EQ(read.driver, record.driver);
  EXPECT_EQ(read.date, record.date);
  EXPECT_EQ(read.toolkit, record.toolkit);
  ASSERT_EQ(read.probes.size(), 2U);
  const Recorded& load = read.probes.at("bulk.load/4096");
  EXPECT_EQ(load.round.median, 812.5);
  EXPECT_EQ(load.round.least, 800);
  EXPECT_EQ(load.round.most, 1200);
  EXPECT_EQ(load.fingerprint, "0123456789abcdef");
}

TEST(Records, SayWhatIsWrongWithThem) {
  Record read;
  EXPECT_THAT(from_json("{", &read), HasSubstr("is no record of measurements"));
  EXPECT_THAT(from_json(R"({"about": {"gpu": "x"}})", &read), HasSubstr("driver"));
  EXPECT_THAT(
      from_json(R"({"about": {"gpu": "", "driver": "", "date": "", "toolkit": ""}, "probes": {"a": {}}})", &read),
      HasSubstr("median"));
}

TEST(Emulator, AnswersAProbeOfEachKernelFile) {
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) GTEST_SKIP() << harness::missing_toolchain_message(toolchain);
  const std::unique_ptr<device::Device> device = device::make_emulated_device();
  Bench bench(*device, toolchain, "90a");
  const Outcome clock = bench.run(probe("clock"));
  ASSERT_THAT(clock.problem, IsEmpty()) << clock.detail;
  std::map<std::string, double> cycles;
  for (const char* name :
       {"alu.fma", "shared.load/1", "global.load_l2", "barrier.syncthreads/32", "mbarrier.arrive_wait_other",
        "fence.cta", "fence.gpu", "bulk.load/1024", "bulk.load/65536", "tensor.load/1024", "cluster.sync/2",
        "cluster.load", "cluster.atomic", "shared.atomic", "cluster.arrive"}) {
    const Outcome outcome = bench.run(probe(name));
    ASSERT_THAT(outcome.problem, IsEmpty()) << name << "\n" << outcome.detail;
    // The emulator has no noise: a round takes what the one before took, but for where in its loop a waiting warp
    // stands when the other one begins.
    EXPECT_NEAR(outcome.round.least, outcome.round.most, 4) << name;
    cycles[name] = cycles_of(probe(name), outcome.round, clock.round.median);
  }
  EXPECT_LT(cycles["alu.fma"], cycles["shared.load/1"]);
  EXPECT_LT(cycles["shared.load/1"], cycles["global.load_l2"]);
  EXPECT_LT(cycles["global.load_l2"], cycles["bulk.load/1024"]);
  EXPECT_LT(cycles["bulk.load/1024"], cycles["bulk.load/65536"]);
  EXPECT_LT(cycles["barrier.syncthreads/32"], cycles["cluster.sync/2"]);
  EXPECT_LT(cycles["mbarrier.arrive_wait_other"], cycles["cluster.arrive"]);
  EXPECT_LT(cycles["fence.cta"], cycles["fence.gpu"]);
  EXPECT_EQ(cycles["cluster.load"] - cycles["shared.load/1"], machine::kBlackwell.remote_access);
  EXPECT_NEAR(cycles["cluster.atomic"] - cycles["shared.atomic"], machine::kBlackwell.remote_access, 4);
}

TEST(Emulator, TellsWhyThereIsNoFigure) {
  const harness::Toolchain toolchain = harness::find_toolchain();
  if (!toolchain.found()) GTEST_SKIP() << harness::missing_toolchain_message(toolchain);
  const std::unique_ptr<device::Device> device = device::make_emulated_device();
  Bench bench(*device, toolchain, "90a");
  Probe p = probe("clock");
  p.kernel = "no_such_kernel";
  EXPECT_THAT(bench.run(p).problem, HasSubstr("no_such_kernel"));
  p = probe("clock");
  p.file = "no-such-file";
  EXPECT_THAT(bench.run(p).problem, Not(IsEmpty()));
  EXPECT_THAT(bench.run(probe("clock")).problem, IsEmpty());
}

}  // namespace
}  // namespace handoff::timing
