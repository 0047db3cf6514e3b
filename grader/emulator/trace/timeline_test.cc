#include "grader/emulator/trace/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace handoff::trace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Activity hundred_cycles() {
  Activity a;
  a.begin = 1000;
  a.end = 1100;
  return a;
}

TEST(TimelineTest, SpansFallIntoTheirColumns) {
  Activity a = hundred_cycles();
  a.loads = {{1000, 1025}, {1050, 1100}};
  a.mmas = {{1020, 1030}};
  const Timeline t = timeline_of(a, 4);
  EXPECT_THAT(t.loads, ElementsAre(100, 0, 100, 100));
  EXPECT_THAT(t.mmas, ElementsAre(20, 20, 0, 0));
  EXPECT_THAT(t.stores, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(t.begin, 1000);
  EXPECT_EQ(t.end, 1100);
}

TEST(TimelineTest, WarpsShareARow) {
  Activity a = hundred_cycles();
  a.warps = {{{1000, 1100}}, {{1000, 1050}}, {}, {{1040, 1060}}};
  EXPECT_THAT(timeline_of(a, 2).threads, ElementsAre(55, 30));
}

TEST(TimelineTest, SpansThatReachBeyondTheCtaAreCut) {
  Activity a = hundred_cycles();
  a.stores = {{990, 1010}, {1090, 5000}};
  a.loads = {{100, 200}, {2000, 3000}};
  const Timeline t = timeline_of(a, 10);
  EXPECT_THAT(t.stores, ElementsAre(100, 0, 0, 0, 0, 0, 0, 0, 0, 100));
  EXPECT_THAT(t.loads, Each(0));
}

TEST(TimelineTest, MoreColumnsThanCycles) {
  Activity a = hundred_cycles();
  a.loads = {{1010, 1011}};
  const Timeline t = timeline_of(a, 400);
  ASSERT_THAT(t.loads, SizeIs(400));
  for (size_t k = 0; k < 400; k++) EXPECT_EQ(t.loads[k], k >= 40 && k < 44 ? 100 : 0) << k;
}

TEST(TimelineTest, ACtaThatTookNoTimeHasNoColumns) { EXPECT_THAT(timeline_of({}, 60).loads, IsEmpty()); }

}  // namespace
}  // namespace handoff::trace
