#include "grader/cli/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;

class State : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-state-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_STATE_HOME");
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(State, KeepsScoresAndHintsOfEachExercise) {
  EXPECT_FALSE(load_progress("01a"));
  EXPECT_EQ(load_hints("01a"), 0);
  EXPECT_EQ(save_progress("01a", {3, 10}), "");
  EXPECT_EQ(save_progress("01b", {10, 10}), "");
  EXPECT_EQ(save_hints("01a", 2), "");
  ASSERT_TRUE(load_progress("01a"));
  EXPECT_EQ(load_progress("01a")->score, 3);
  EXPECT_EQ(load_progress("01b")->max_score, 10);
  EXPECT_EQ(load_hints("01a"), 2);
  EXPECT_EQ(load_hints("01b"), 0);
}

TEST_F(State, TreatsADamagedFileAsAbsent) {
  fs::create_directories(state_folder());
  std::ofstream(state_folder() / "01a.score") << "many of ten";
  std::ofstream(state_folder() / "01a.hints") << "-4";
  EXPECT_FALSE(load_progress("01a"));
  EXPECT_EQ(load_hints("01a"), 0);
}

TEST_F(State, SaysWhyItWasNotSaved) {
  std::ofstream(folder_ / "handoff") << "a file where the folder should be";
  EXPECT_THAT(save_progress("01a", {1, 2}), ::testing::HasSubstr("handoff"));
  EXPECT_FALSE(save_hints("01a", 1).empty());
}

TEST_F(State, FollowsHomeWhereXdgIsNotSet) {
  unsetenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(state_folder(), "/home/someone/.local/state/handoff");
  setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace handoff::cli
