#include "grader/harness/compile_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;

class CompileCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-cache-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    setenv("HANDOFF_CACHE", (folder_ / "cache").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HANDOFF_CACHE");
    fs::remove_all(folder_);
  }
  fs::path entry() const { return folder_ / "cache" / "key.entry"; }
  fs::path folder_;
};

TEST_F(CompileCache, KeepsAnEntry) {
  store_cached("key", {"ptx text", "log\n", std::string("\0\x7f\n", 3)});
  const auto kept = load_cached("key");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->ptx, "ptx text");
  EXPECT_EQ(kept->log, "log\n");
  EXPECT_EQ(kept->cubin, std::string("\0\x7f\n", 3));
  EXPECT_FALSE(load_cached("another key"));
}

TEST_F(CompileCache, LeavesNoUnfinishedFile) {
  store_cached("key", {"ptx", "log", ""});
  int files = 0;
  for (const auto& e : fs::directory_iterator(folder_ / "cache")) files += e.path().filename() == "key.entry" ? 1 : 100;
  EXPECT_EQ(files, 1);
}

TEST_F(CompileCache, IgnoresAChangedByte) {
  store_cached("key", {"ptx text", "log", "cubin"});
  std::fstream file(entry(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-3, std::ios::end);
  file.put('X');
  file.close();
  EXPECT_FALSE(load_cached("key"));
}

TEST_F(CompileCache, IgnoresEveryTruncation) {
  store_cached("key", {"ptx text", "log", "cubin"});
  for (uintmax_t size = fs::file_size(entry()); size-- > 0;) {
    fs::resize_file(entry(), size);
    EXPECT_FALSE(load_cached("key")) << "cut to " << size << " bytes";
  }
}

TEST_F(CompileCache, SkipsAFolderThatCannotBeMade) {
  std::ofstream(folder_ / "file") << "not a folder";
  setenv("HANDOFF_CACHE", (folder_ / "file" / "below").c_str(), 1);
  store_cached("key", {"ptx", "", ""});
  EXPECT_FALSE(load_cached("key"));
}

TEST_F(CompileCache, RemovesTheOlderHalfPastItsLimit) {
  fs::create_directories(folder_ / "cache");
  for (int i = 0; i < 2048; ++i) std::ofstream(folder_ / "cache" / ("old" + std::to_string(i) + ".entry")) << "x";
  store_cached("key", {"ptx", "", ""});
  int files = 0;
  for (const auto& e : fs::directory_iterator(folder_ / "cache")) files += e.path().extension() == ".entry" ? 1 : 0;
  EXPECT_EQ(files, 2049 - 1024);
  EXPECT_TRUE(load_cached("key"));
}

TEST(Fingerprint, MatchesThePublishedVectorOfFnv1a128) {
  // An empty list is the offset basis (draft-eastlake-fnv, section 6).
  EXPECT_EQ(Fingerprint().hex(), "6c62272e07bb014262b821756295c58d");
}

TEST(Fingerprint, TellsHowThePartsAreDivided) {
  Fingerprint a, b;
  a.add("ab");
  a.add("c");
  b.add("a");
  b.add("bc");
  EXPECT_NE(a.hex(), b.hex());
}

}  // namespace
}  // namespace handoff::harness
