#include "grader/cli/suppressions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace handoff::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::vector<std::string> kIds = {"data-race", "missing-tcgen05-fence", "missing-tcgen05-wait", "out-of-bounds"};

Diagnostic found(const std::string& id, const std::string& file, uint32_t line) {
  Diagnostic d;
  d.id = id;
  d.place = {file, line};
  return d;
}

/// What is wrong with `text`, as a file.
std::string problem(const std::string& text) { return Suppressions().read(text, "known.txt", kIds); }

/// Does the one line cover it?
bool covers(const std::string& line, const Diagnostic& d, const std::string& kernel = "reverse(int*)") {
  Suppressions s;
  EXPECT_EQ(s.read(line, "known.txt", kIds), "");
  EXPECT_EQ(s.lines().size(), 1u) << line;
  return s.covers(d, kernel);
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("", ""));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("a*c", "abcbc"));
  EXPECT_TRUE(matches_glob("*gemm*<?>*", "void gemm_v3<4>(float*)"));
  EXPECT_TRUE(matches_glob("f(int*)", "f(int*)"));
  EXPECT_FALSE(matches_glob("a*c", "abcb"));
  EXPECT_FALSE(matches_glob("a", "aa"));
  EXPECT_FALSE(matches_glob("a?", "a"));
  EXPECT_FALSE(matches_glob("?", ""));
  EXPECT_TRUE(matches_glob("{lambda(int)#1}", "{lambda(int)#1}"));
}

TEST(Suppressions, AnIdAloneIsMeantEverywhere) {
  EXPECT_TRUE(covers("data-race", found("data-race", "/a/race.cu", 5)));
  EXPECT_FALSE(covers("data-race", found("out-of-bounds", "/a/race.cu", 5)));
  EXPECT_TRUE(covers("missing-*", found("missing-tcgen05-wait", "", 0)));
  EXPECT_FALSE(covers("missing-*", found("data-race", "", 0)));
}

TEST(Suppressions, APlaceIsAFileByItsLastPartsAndALine) {
  const Diagnostic d = found("data-race", "/home/me/src/race.cu", 5);
  for (const char* place : {"race.cu:5", "src/race.cu:5", "/home/me/src/race.cu:5", "race.cu"}) {
    EXPECT_TRUE(covers(std::string("data-race @ ") + place, d)) << place;
  }
  for (const char* place : {"race.cu:6", "ace.cu:5", "other/race.cu:5", "race.c", "x/home/me/src/race.cu:5"}) {
    EXPECT_FALSE(covers(std::string("data-race @ ") + place, d)) << place;
  }
  EXPECT_TRUE(covers("data-race @ my files/in it.cu:5 in *", found("data-race", "/my files/in it.cu", 5)));
}

TEST(Suppressions, AKernelIsMatchedWhole) {
  const Diagnostic d = found("data-race", "race.cu", 5);
  EXPECT_TRUE(covers("data-race in reverse(int*)", d));
  EXPECT_TRUE(covers("data-race in rev*", d));
  EXPECT_TRUE(covers("data-race @ race.cu:5 in *", d));
  EXPECT_FALSE(covers("data-race in reverse", d));
  EXPECT_FALSE(covers("data-race @ race.cu:6 in *", d));
  EXPECT_TRUE(covers("data-race in void f<4, (bool)1>(main::{lambda(int)#1})  # known", d,
                     "void f<4, (bool)1>(main::{lambda(int)#1})"));
}

TEST(Suppressions, TheFirstLineThatFitsIsCounted) {
  Suppressions s;
  ASSERT_EQ(s.read("# known\n\n  data-race @ a.cu:1\t# why\r\ndata-race\nout-of-bounds", "known.txt", kIds), "");
  ASSERT_EQ(s.lines().size(), 3u);
  EXPECT_EQ(s.lines()[0].line, 3u);
  EXPECT_EQ(s.lines()[0].text, "data-race @ a.cu:1");
  EXPECT_TRUE(s.covers(found("data-race", "a.cu", 1), "k"));
  EXPECT_TRUE(s.covers(found("data-race", "a.cu", 2), "k"));
  EXPECT_TRUE(s.covers(found("data-race", "a.cu", 3), "k"));
  EXPECT_FALSE(s.covers(found("deadlock", "a.cu", 3), "k"));
  EXPECT_EQ(s.lines()[0].matched, 1u);
  EXPECT_EQ(s.lines()[1].matched, 2u);
  EXPECT_EQ(s.lines()[2].matched, 0u);
}

TEST(Suppressions, AWrongLineIsNamed) {
  EXPECT_THAT(problem("# one\ndata-rase\n"),
              HasSubstr("known.txt:2: no diagnostic 'data-rase'; did you mean data-race?"));
  EXPECT_THAT(problem("data-race @"), HasSubstr("known.txt:1: expected FILE:LINE after '@', got ''"));
  EXPECT_THAT(problem("data-race @ :5"), HasSubstr("expected FILE:LINE after '@', got ':5'"));
  EXPECT_THAT(problem("data-race @ a.cu:5x"), HasSubstr("expected the number of a line after 'a.cu:', got '5x'"));
  EXPECT_THAT(problem("data-race @ a.cu:0"), HasSubstr("got '0'"));
  EXPECT_THAT(problem("data-race a.cu:5"),
              HasSubstr("expected '@ FILE:LINE' or 'in KERNEL' after 'data-race', got 'a.cu:5'"));
  EXPECT_THAT(problem("data-race in"), HasSubstr("expected the name of a kernel after 'in'"));
  EXPECT_THAT(problem("data-race in  # nothing"), HasSubstr("expected the name of a kernel after 'in'"));
  EXPECT_THAT(problem("data-race inside"), HasSubstr("got 'inside'"));
  EXPECT_THAT(problem("nothing-*"), HasSubstr("no diagnostic 'nothing-*'"));
  EXPECT_EQ(problem(""), "");
  EXPECT_EQ(problem("# only this"), "");
}

TEST(Suppressions, TheCatalogueHasIds) {
  EXPECT_THAT(catalogue_ids(), Contains("data-race"));
  EXPECT_THAT(catalogue_ids(), ::testing::Not(Contains("README")));
}

}  // namespace
}  // namespace handoff::cli
