#include "grader/harness/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kGood = R"(title = "a first handoff"
kernel = "first_handoff"
kind = "write"
chapter = "01-one-handoff"
needs = "mbarrier"
hints = ["one", "two", "three"]
[points]
result = 3
no-hazards = 4
every-schedule = 3
)";

class Catalog : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-catalog-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  void exercise(const std::string& folder, const std::string& toml) {
    fs::create_directories(root_ / "exercises" / folder);
    std::ofstream(root_ / "exercises" / folder / "exercise.toml") << toml;
    std::ofstream(root_ / "exercises" / folder / "kernel.cu") << "// starter\n";
  }
  // kGood with one line replaced.
  static std::string with(const std::string& line, const std::string& replacement) {
    std::string text = kGood;
    const size_t at = text.find(line);
    EXPECT_NE(at, std::string::npos) << line;
    return text.replace(at, line.size(), replacement);
  }
  std::vector<std::string> errors_of(const std::string& toml) {
    exercise("01a-first-handoff", toml);
    std::vector<std::string> errors;
    load_catalog(root_, &errors);
    return errors;
  }
  fs::path root_;
};

constexpr const char* kPlace = "exercises/01a-first-handoff/exercise.toml:";

TEST_F(Catalog, ReadsAnExercise) {
  exercise("01a-first-handoff", kGood);
  std::vector<std::string> errors;
  const std::vector<ExerciseInfo> catalog = load_catalog(root_, &errors);
  EXPECT_THAT(errors, IsEmpty());
  ASSERT_EQ(catalog.size(), 1U);
  EXPECT_EQ(catalog[0].id, "01a");
  EXPECT_EQ(catalog[0].name, "first-handoff");
  EXPECT_EQ(catalog[0].kernel, "first_handoff");
  EXPECT_THAT(catalog[0].hints, ElementsAre("one", "two", "three"));
  EXPECT_THAT(catalog[0].points, ElementsAre(Pair("result", 3), Pair("no-hazards", 4), Pair("every-schedule", 3)));
  EXPECT_EQ(catalog[0].max_score(), 10);
  EXPECT_EQ(catalog[0].solution, root_ / "solutions" / "01a-first-handoff" / "kernel.cu");
}

TEST_F(Catalog, SortsByIdAndSkipsOtherFolders) {
  exercise("04a-second", kGood);
  exercise("01a-first", kGood);
  fs::create_directories(root_ / "exercises" / "include");
  std::vector<std::string> errors;
  const std::vector<ExerciseInfo> catalog = load_catalog(root_, &errors);
  EXPECT_THAT(errors, IsEmpty());
  ASSERT_EQ(catalog.size(), 2U);
  EXPECT_EQ(catalog[0].id, "01a");
  EXPECT_EQ(catalog[1].id, "04a");
}

TEST_F(Catalog, KeepsTheGoodOnesBesideABrokenOne) {
  exercise("01a-broken", "title = ");
  exercise("02a-good", kGood);
  std::vector<std::string> errors;
  EXPECT_EQ(load_catalog(root_, &errors).size(), 1U);
  EXPECT_EQ(errors.size(), 1U);
}

TEST_F(Catalog, NamesTheLineOfEachError) {
  const std::string place = kPlace;
  EXPECT_THAT(errors_of(with("result = 3", "result = 0")), ElementsAre(place + "8: points must be 1–100, got 0"));
  EXPECT_THAT(errors_of(with("result = 3", "result = \"3\"")),
              ElementsAre(place + "8: points of result must be a whole number"));
  EXPECT_THAT(errors_of(with("kind = \"write\"", "kind = \"wrote\"")),
              ElementsAre(place + "3: kind must be write, fix, predict or tune, got \"wrote\""));
  EXPECT_THAT(errors_of(with("\"mbarrier\"", "\"sm_90\"")),
              ElementsAre(place + "5: needs must be mbarrier, tma or tcgen05, got \"sm_90\""));
  EXPECT_THAT(errors_of(with(", \"three\"", "")), ElementsAre(place + "6: at least 3 hints are needed, got 2"));
  EXPECT_THAT(errors_of(with("kernel = ", "kernal = ")),
              ElementsAre(place + "1: kernel is missing", place + "2: unknown key kernal"));
  EXPECT_THAT(errors_of(with("no-hazards = 4", "no-hazards = 3")),
              ElementsAre(place + "7: no-hazards must carry at least 40 % of the points, got 3 of 9"));
  EXPECT_THAT(errors_of(with("title = \"a first handoff\"", "title = 7")),
              ElementsAre(place + "1: title must be one line of text"));
}

TEST_F(Catalog, NamesTheLineOfASyntaxError) {
  const std::vector<std::string> errors = errors_of(with("chapter = \"01-one-handoff\"", "chapter = \"01-one-handoff"));
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].rfind(std::string(kPlace) + "4: ", 0), 0U) << errors[0];
}

TEST_F(Catalog, APredictionNeedsNoKernelAndNoHazards) {
  std::string toml = with("kind = \"write\"", "kind = \"predict\"");
  toml.replace(toml.find("no-hazards"), std::string("no-hazards").size(), "table");
  toml.replace(toml.find("kernel = \"first_handoff\"\n"), std::string("kernel = \"first_handoff\"\n").size(), "");
  EXPECT_THAT(errors_of(toml), IsEmpty());
}

TEST_F(Catalog, ReportsMissingFilesAndDoubledIds) {
  exercise("01a-first", kGood);
  exercise("01a-second", kGood);
  fs::remove(root_ / "exercises" / "01a-first" / "exercise.toml");
  std::vector<std::string> errors;
  load_catalog(root_, &errors);
  EXPECT_THAT(errors, ElementsAre("exercises/01a-first/exercise.toml: missing",
                                  "exercises/01a-second: a second exercise with the id 01a"));
}

TEST(ProjectRoot, FollowsTheEnvironment) {
  setenv("HANDOFF_ROOT", "/somewhere", 1);
  EXPECT_EQ(project_root(), "/somewhere");
  unsetenv("HANDOFF_ROOT");
  EXPECT_TRUE(fs::exists(project_root() / "grader" / "harness" / "catalog.h"));
}

}  // namespace
}  // namespace handoff::harness
