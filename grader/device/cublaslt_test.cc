// Tests of the cuBLASLt binding, as far as that goes without a GPU. With one, `handoff certify --only ^cublaslt/` runs
// products on it and verifies them.
#include "grader/device/cublaslt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace handoff::device {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CublasLt, IsLookedForWhereTheLoaderLooksAndInTheToolkit) {
  EXPECT_THAT(cublaslt_candidates(""), ElementsAre("libcublasLt.so.13", "libcublasLt.so.12"));
  EXPECT_THAT(cublaslt_candidates("/opt/cuda"),
              ElementsAre("libcublasLt.so.13", "/opt/cuda/lib64/libcublasLt.so.13", "/opt/cuda/lib/libcublasLt.so.13",
                          "libcublasLt.so.12", "/opt/cuda/lib64/libcublasLt.so.12", "/opt/cuda/lib/libcublasLt.so.12"));
}

TEST(CublasLt, AnAbsentLibraryIsAReason) {
  std::string why;
  EXPECT_EQ(find_cublaslt({"/nonexistent/libcublasLt.so.13"}, &why), "");
  EXPECT_THAT(why, HasSubstr("libcublasLt.so.13 or .12 was not found"));
  EXPECT_EQ(std::count(why.begin(), why.end(), '\n'), 0);
}

TEST(CublasLt, AnotherLibraryIsNotTaken) {
  std::string why;
  EXPECT_EQ(find_cublaslt({"libm.so.6"}, &why), "");
  EXPECT_EQ(why, "libm.so.6 lacks functions of cuBLASLt");
}

TEST(CublasLt, TheToolkitsLibraryHasWhatIsNeeded) {
  std::string why;
  const std::string found = find_cublaslt(cublaslt_candidates("/usr/local/cuda"), &why);
  if (found.empty()) GTEST_SKIP() << why;
  EXPECT_THAT(found, testing::MatchesRegex("(.*/)?libcublasLt\\.so\\.1[23] \\(version 1[23][0-9]+\\)"));
}

TEST(CublasLt, OperandsOfAnotherSizeAreRefused) {
  const std::vector<uint16_t> a(64 * 32), b(64 * 16);
  const MatmulResult result = multiply_with_cublaslt({64, 64, 32}, a, b, 3, {"/nonexistent"});
  EXPECT_EQ(result.problem, "the operands have another size than the product asks for");
}

TEST(CublasLt, WithoutTheLibraryThereIsNoResult) {
  const std::vector<uint16_t> a(64 * 32), b(64 * 32);
  const MatmulResult result = multiply_with_cublaslt({64, 64, 32}, a, b, 3, {"/nonexistent"});
  EXPECT_THAT(result.problem, HasSubstr("was not found"));
  EXPECT_EQ(result.library, "");
  EXPECT_TRUE(result.d.empty() && result.seconds.empty());
}

}  // namespace
}  // namespace handoff::device
