#include "grader/cli/run_output.h"

#include <gtest/gtest.h>

namespace handoff::cli {
namespace {

std::string difference(const std::string& was, const std::string& is, size_t keep = 1000) {
  Output a(keep), b(keep);
  a.add(was);
  for (const char c : is) b.add({&c, 1});  // however it comes
  return a.difference(b);
}

TEST(Output, TheSameIsNoDifference) {
  EXPECT_EQ(difference("", ""), "");
  EXPECT_EQ(difference("a\nb\n", "a\nb\n"), "");
  EXPECT_EQ(difference("a longer one\n", "a longer one\n", 3), "");
}

TEST(Output, TheFirstLineThatIsAnotherIsShown) {
  EXPECT_EQ(difference("a\nsum 7\nx\n", "a\nsum 8\ny\n"), "line 2 of the output is 'sum 8', was 'sum 7'");
  EXPECT_EQ(difference("a\n", "b\n"), "line 1 of the output is 'b', was 'a'");
  EXPECT_EQ(difference("a\nb\n", "a\n"), "line 2 of the output is missing, was 'b'");
  EXPECT_EQ(difference("", "a\n"), "line 1 of the output is 'a', was missing");
  EXPECT_EQ(difference("a\n", "a"), "line 1 of the output is 'a' without an end, was 'a'");
  EXPECT_EQ(difference("a\n\n", "a\nb\n"), "line 2 of the output is 'b', was ''");
}

TEST(Output, LongLinesAreShownAroundTheDifference) {
  const std::string same(100, 's'), more(100, 'm');
  EXPECT_EQ(difference(same + "1" + more, same + "2" + more),
            "line 1 of the output is …'" + std::string(30, 's') + "2" + std::string(29, 'm') + "'…, was …'" +
                std::string(30, 's') + "1" + std::string(29, 'm') + "'…");
}

TEST(Output, ControlCharactersAreNotPassedOn) {
  EXPECT_EQ(difference("\033[31m1\n", "\t2\n"), "line 1 of the output is '?2', was '?[31m1'");
}

TEST(Output, WhatIsNotKeptIsComparedToo) {
  EXPECT_EQ(difference("abcd", "abce", 3), "the output is another after its first 3 bytes");
  EXPECT_EQ(difference("abcd", "abc", 3), "the output is another after its first 3 bytes");
  EXPECT_EQ(difference("abcd", "abx", 3), "line 1 of the output is 'abx', was 'abc'");
}

}  // namespace
}  // namespace handoff::cli
