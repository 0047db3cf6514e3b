#include "grader/runtime/launch_report.h"

#include <gtest/gtest.h>

namespace handoff::runtime {
namespace {

TEST(LaunchReport, ALaunchComesBackAsItWas) {
  RunRecord r;
  r.kind = RunRecord::Kind::Launch;
  r.number = 7;
  r.kernel = "add(float*)";
  r.shape = "grid 1×1×1, block 32×1×1";
  r.status = "fault";
  r.failure = "line one\nline two";
  r.schedule = "random (seed 3)";
  r.modeled_cycles = 123;
  r.state = {"full: phase 0"};
  ReportedDiagnostic d;
  d.diagnostic.id = "out-of-bounds";
  d.diagnostic.severity = Severity::Warning;
  d.diagnostic.message = "message";
  d.diagnostic.hint = "hint";
  d.diagnostic.place = {"/a/b.cu", 12};
  d.diagnostic.related.push_back({{"/a/b.cu", 9}, "init here"});
  d.places.push_back({{"/a/b+0x10", "/a/b+0x20"}, "allocated here"});
  r.diagnostics.push_back(d);
  const std::string line = to_line(r);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  RunRecord back;
  ASSERT_TRUE(from_line(line, &back));
  EXPECT_EQ(to_line(back), line);
  ASSERT_EQ(back.diagnostics.size(), 1u);
  EXPECT_EQ(back.diagnostics[0].diagnostic.severity, Severity::Warning);
  EXPECT_EQ(back.diagnostics[0].places[0].frames[1], "/a/b+0x20");
  EXPECT_EQ(back.failure, r.failure);
}

TEST(LaunchReport, AMessageComesBackAsItWas) {
  RunRecord r;
  r.text = "no PTX";
  r.fatal = true;
  RunRecord back;
  ASSERT_TRUE(from_line(to_line(r), &back));
  EXPECT_EQ(back.text, "no PTX");
  EXPECT_TRUE(back.fatal);
}

TEST(LaunchReport, OtherTextIsNoRecord) {
  RunRecord back;
  for (const char* line : {"", "{", "{}", "[1]", R"({"kind": 1})", R"({"kind": "x", "text": "", "fatal": false})"}) {
    EXPECT_FALSE(from_line(line, &back)) << line;
  }
}

}  // namespace
}  // namespace handoff::runtime
