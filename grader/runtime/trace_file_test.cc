#include "grader/runtime/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

namespace handoff::runtime {
namespace {

using Json = nlohmann::json;
using Kind = trace::Event::Kind;
using ::testing::HasSubstr;

class TraceFileTest : public ::testing::Test {
 protected:
  TraceFileTest() { close(mkstemp(path_)); }
  ~TraceFileTest() override { unlink(path_); }
  /// What is in the file, with brackets around it.
  Json events() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return Json::parse("[" + text.str() + "null]");
  }
  char path_[32] = "/tmp/trace_file_test-XXXXXX";
};

RunRecord launch(uint64_t number, uint64_t cycles) {
  RunRecord r;
  r.kind = RunRecord::Kind::Launch;
  r.number = number;
  r.kernel = "k(int*)";
  r.status = "ok";
  r.schedule = "nominal";
  r.modeled_cycles = cycles;
  return r;
}

trace::Event event(Kind kind, uint64_t cycle, int32_t warp, uint64_t op = 0, uint32_t cta = 0) {
  trace::Event e{};
  e.kind = kind;
  e.cycle = cycle;
  e.warp = warp;
  e.op = op;
  e.cta = cta;
  return e;
}

TEST_F(TraceFileTest, LaunchesFollowEachOther) {
  TraceFile file(path_);
  EXPECT_EQ(file.add(launch(1, 2000), {}, 0), "");
  EXPECT_EQ(file.add(launch(2, 500), {}, 2000), "");
  std::vector<std::pair<double, double>> spans;
  for (const Json& e : events()) {
    if (e.is_null() || e.at("ph") != "X") continue;
    spans.emplace_back(e.at("ts"), e.at("dur"));
    EXPECT_EQ(e.at("name"), "k(int*)");
    EXPECT_EQ(e.at("args").at("launch"), spans.size());
  }
  EXPECT_EQ(spans, (std::vector<std::pair<double, double>>{{0, 2}, {2, 0.5}}));
}

TEST_F(TraceFileTest, RowsAreNamedOnceAndEventsLieOnThem) {
  trace::Trace t;
  t.first_cta.warps = {{{10, 20}, {30, 40}}};
  t.first_cta.loads = {{12, 18}};
  t.events = {event(Kind::CopyIssued, 12, 0, 7), event(Kind::CopyWritten, 60, -1, 7), event(Kind::Arrive, 15, 3, 0, 2),
              event(Kind::MmaDone, 70, -1, 8),       // its issue was left out
              event(Kind::Arrive, 15, 0, 0, 5000)};  // a block without rows
  TraceFile file(path_);
  file.add(launch(1, 100), t, 1000);
  file.add(launch(2, 100), t, 1100);
  std::map<std::pair<uint64_t, uint64_t>, std::string> rows;
  std::map<uint64_t, std::string> groups;
  size_t operations = 0, moments = 0;
  for (const Json& e : events()) {
    if (e.is_null()) continue;
    const uint64_t group = e.at("pid"), row = e.at("tid");
    if (e.at("ph") == "M") {
      const std::string what = e.at("name"), name = e.at("args").value("name", "");
      EXPECT_TRUE(what != "thread_name" || rows.emplace(std::pair(group, row), name).second);
      EXPECT_TRUE(what != "process_name" || groups.emplace(group, name).second);
      continue;
    }
    const std::string name = rows.at({group, row});
    moments += e.at("ph") == "i" ? 1 : 0;
    EXPECT_TRUE(e.at("name") != "runs" || name == "warp 0") << name;
    EXPECT_TRUE(e.at("name") != "loads" || name == "copy engine, loads") << name;
    if (e.at("name") == "arrive") {
      EXPECT_EQ(name, "warp 3");
      EXPECT_EQ(groups.at(group), "block 2");
    }
    if (e.at("ph") == "b") {
      ++operations;
      EXPECT_EQ(e.at("name"), "copy");
      EXPECT_EQ(e.at("id"), operations == 1 ? "1.7" : "2.7");
      EXPECT_EQ(e.at("ts"), operations == 1 ? 1.012 : 1.112);
    }
    if (e.at("ph") == "e") {
      EXPECT_EQ(e.at("ts"), operations == 1 ? 1.06 : 1.16);
    }
  }
  EXPECT_EQ(operations, 2u);
  EXPECT_EQ(moments, 8u);
  EXPECT_EQ(groups.size(), 3u);
}

TEST_F(TraceFileTest, ItIsCutAtItsLimitAndSaysSo) {
  trace::Trace t;
  for (uint64_t i = 0; i < 100; ++i) t.events.push_back(event(Kind::Arrive, i, 0));
  constexpr uint64_t kLimit = 4000;
  TraceFile file(path_, kLimit);
  EXPECT_TRUE(file.wants_more());
  EXPECT_THAT(file.add(launch(3, 100), t, 0), HasSubstr("the trace ends in launch 3"));
  EXPECT_FALSE(file.wants_more());
  EXPECT_GT(events().size(), 10u);
  EXPECT_LE(static_cast<uint64_t>(std::ifstream(path_, std::ios::ate).tellg()), kLimit);
}

TEST_F(TraceFileTest, EventsThatTheRecorderLeftOutAreToldOnce) {
  trace::Trace t;
  t.events.push_back(event(Kind::Arrive, 1, 0));
  t.truncated = true;
  TraceFile file(path_);
  EXPECT_EQ(file.add(launch(1, 10), t, 0), "the trace has the first 1 events of a launch; launch 1 has more");
  EXPECT_EQ(file.add(launch(2, 10), t, 10), "");
  EXPECT_TRUE(file.wants_more());
}

TEST(TraceFile, AFileThatCannotBeWrittenIsTold) {
  TraceFile file("/nowhere/trace.json");
  EXPECT_THAT(file.add(launch(1, 10), {}, 0), HasSubstr("cannot write the trace /nowhere/trace.json: No such file"));
  EXPECT_FALSE(file.wants_more());
  EXPECT_FALSE(TraceFile("").wants_more());
}

}  // namespace
}  // namespace handoff::runtime
