#include "grader/cli/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace handoff::cli {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/handoff-files-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  fs::path folder_;
};

TEST_F(Files, RecordsOfOneKindByName) {
  const fs::path newer = write("timing-h200-2026-11-30.json", "{}"), older = write("timing-h200-2026-11-29.json", "{}");
  write("timing.md", "");
  write("timing-h200-2026-12-01.txt", "");
  write("conformance-h200-2026-12-01.json", "{}");
  std::vector<fs::path> records = {"given.json"};
  EXPECT_EQ(records_in(folder_, "timing", &records), "");
  EXPECT_THAT(records, ::testing::ElementsAre(fs::path("given.json"), older, newer));
}

TEST_F(Files, AFolderThatIsNotThereIsSaid) {
  std::vector<fs::path> records;
  EXPECT_EQ(records_in(folder_ / "none", "timing", &records),
            (folder_ / "none").string() + ": No such file or directory");
  EXPECT_TRUE(records.empty());
}

TEST_F(Files, ReadsEveryByte) {
  const std::string text("a\0\r\nb", 5);
  EXPECT_EQ(read_file(write("bytes", text)), text);
  EXPECT_EQ(read_file(folder_ / "none"), "");
}

}  // namespace
}  // namespace handoff::cli
