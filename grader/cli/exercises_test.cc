#include "grader/cli/exercises.h"

#include <gtest/gtest.h>

namespace handoff::cli {
namespace {

const std::vector<std::string> kIds = {"01a", "01b", "02a", "02b", "02c", "03a", "10a", "11a", "first-handoff", "ring"};

TEST(Nearest, FindsTheExerciseMeant) {
  EXPECT_EQ(nearest("1a", kIds), "01a");
  EXPECT_EQ(nearest("01A", kIds), "01a");
  EXPECT_EQ(nearest("3a", kIds), "03a");
  EXPECT_EQ(nearest("10", kIds), "10a");
  EXPECT_EQ(nearest("02cc", kIds), "02c");
  EXPECT_EQ(nearest("first-handof", kIds), "first-handoff");
  EXPECT_EQ(nearest("rign", kIds), "ring");
}

TEST(Nearest, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(nearest("zzz", kIds), "");
  EXPECT_EQ(nearest("completely different", kIds), "");
  EXPECT_EQ(nearest("", kIds), "");
  EXPECT_EQ(nearest("1a", {}), "");
}

harness::ExerciseInfo exercise(const std::string& id, const std::string& name) {
  harness::ExerciseInfo info;
  info.id = id;
  info.name = name;
  return info;
}

TEST(ExerciseSuggestion, KnowsPathsChaptersAndSlips) {
  const std::vector<harness::ExerciseInfo> catalog = {exercise("01a", "first-handoff"), exercise("03b", "ring"),
                                                      exercise("10a", "descriptors"), exercise("10b", "one-mma")};
  EXPECT_EQ(exercise_suggestion("exercises/03b-ring/kernel.cu", catalog), "; did you mean 03b?");
  EXPECT_EQ(exercise_suggestion("./exercises/03b-ring/", catalog), "; did you mean 03b?");
  EXPECT_EQ(exercise_suggestion("03a", catalog), "; chapter 3 has 03b");
  EXPECT_EQ(exercise_suggestion("10c", catalog), "; chapter 10 has 10a, 10b");
  EXPECT_EQ(exercise_suggestion("1a", catalog), "; did you mean 01a?");
  EXPECT_EQ(exercise_suggestion("rign", catalog), "; did you mean ring?");
  EXPECT_EQ(exercise_suggestion("exercises/zzzzzzzzzzzz/kernel.cu", catalog), "; ./handoff list shows them");
  EXPECT_EQ(exercise_suggestion("", catalog), "; ./handoff list shows them");
}

TEST(Suggestion, IsAQuestionOrTheWayOut) {
  EXPECT_EQ(suggestion("lasy", {"all", "lazy"}, "; there are all, lazy"), "; did you mean lazy?");
  EXPECT_EQ(suggestion("xxxxxx", {"all", "lazy"}, "; there are all, lazy"), "; there are all, lazy");
}

}  // namespace
}  // namespace handoff::cli
