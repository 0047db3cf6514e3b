#include "grader/cli/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

class SubmissionFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-submission-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  fs::path folder_;
};

TEST_F(SubmissionFile, MustBeReadableText) {
  EXPECT_EQ(why_not_a_submission(write("good.cu", "__global__ void f() {}\n")), "");
  EXPECT_THAT(why_not_a_submission(folder_ / "absent.cu"), EndsWith("absent.cu: no such file"));
  EXPECT_THAT(why_not_a_submission(folder_), EndsWith(": a folder, not a CUDA source file"));
  EXPECT_THAT(why_not_a_submission(write("empty.cu", "")), EndsWith(": the file is empty"));
  EXPECT_THAT(why_not_a_submission(write("blank.cu", " \n\t\n")), EndsWith(": the file is empty"));
  EXPECT_THAT(why_not_a_submission(write("binary.cu", std::string("ab\0cd", 5))),
              EndsWith(": a binary file, not a CUDA source file"));
  std::string late(10001, 'x');
  late.back() = '\0';
  EXPECT_THAT(why_not_a_submission(write("late.cu", late)), EndsWith(": a binary file, not a CUDA source file"));
  EXPECT_THAT(why_not_a_submission(write("large.cu", std::string(5 << 20, 'x'))),
              EndsWith(": larger than 4 MiB, not a CUDA source file"));
  EXPECT_THAT(why_not_a_submission("/dev/null"), EndsWith(": not a regular file"));
}

TEST_F(SubmissionFile, LinesAreFoundAsDiagnosticsNameThem) {
  const fs::path file = write("mine.cu", "first\nsecond\n");
  write("own.h", "of the header\n");
  EXPECT_EQ(source_line(file, "mine.cu", 2), "second");
  EXPECT_EQ(source_line(file, "own.h", 1), "of the header");
  EXPECT_FALSE(source_line(file, "mine.cu", 0));
  EXPECT_FALSE(source_line(file, "mine.cu", 3));
  EXPECT_FALSE(source_line(file, "/etc/hostname", 1));
  EXPECT_FALSE(source_line(file, "absent.h", 1));
}

constexpr const char* kPtx =
    "// .entry in_a_comment(\n"
    ".visible .entry first(\n\t.param .u64 first_param_0\n)\n{\n}\n"
    ".entry _Z6secondPf (\n)\n";

TEST(EntryNames, ReadsPtx) {
  EXPECT_THAT(entry_names(kPtx), ElementsAre("first", "_Z6secondPf"));
  EXPECT_THAT(entry_names(""), IsEmpty());
}

TEST(WhyNoKernel, NamesWhatWasFound) {
  EXPECT_EQ(why_no_kernel(kPtx, "first", "k.cu"), "");
  EXPECT_EQ(why_no_kernel(kPtx, "", "k.cu"), "");
  EXPECT_EQ(why_no_kernel(kPtx, "third", "k.cu"), "no kernel named third in k.cu; found: first, _Z6secondPf");
  EXPECT_EQ(why_no_kernel(kPtx, "second", "k.cu"),
            "no kernel named second in k.cu; it was found without extern \"C\", which the grader needs");
  EXPECT_EQ(why_no_kernel("", "first", "k.cu"), "no kernel named first in k.cu; it has no __global__ function");
}

TEST_F(SubmissionFile, NothingIsGradedWithoutAToolchain) {
  SubmissionJob job;
  job.file = write("kernel.cu", "__global__ void f() {}\n");
  job.exercise.points = {{"result", 10}};
  const harness::Verdict verdict = grade_submission(harness::Toolchain(), job);
  EXPECT_FALSE(verdict.could_grade);
  EXPECT_THAT(verdict.problem, ::testing::StartsWith("nvcc was not found"));
  EXPECT_EQ(verdict.max_score, 10);
}

}  // namespace
}  // namespace handoff::cli
