// Tensor maps in memory that kernels may write: who must acquire them, and who must release what it wrote.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/async/testing.h"
#include "grader/emulator/check/checker.h"

namespace handoff::check::testing {
namespace {

using async::testing::Kernel;
using async::testing::Outcome;

/// One warp; `in` begins with a map of the 64 words behind its first 128 bytes. `map` is the address of the map that
/// thread 0 then uses for a load of 32 words.
Outcome run_checked(const std::string& before, const std::string& map, const machine::Schedule& schedule) {
  Kernel k;
  k.shared = ".shared .align 128 .b8 tile[128];\n.shared .align 8 .b64 full;\n";
  k.block = {32, 1, 1};
  k.in.assign(96, 3);
  k.out.assign(96, 0);
  k.schedule = schedule;
  k.body = "st.global.u64 [%outp], %inp;\n";
  const Outcome addresses = async::testing::run(k);  // every run has the same
  async::TensorMapArgs args;
  std::memcpy(&args.global_address, addresses.out.data(), 8);
  args.global_address += 128;
  args.tensor_data_type = async::TensorDataType::Uint32;
  args.tensor_rank = 1;
  args.global_dim[0] = 64;
  args.box_dim[0] = 32;
  async::TensorMapImage image;
  EXPECT_EQ(async::encode_tiled(args, &image), "");
  std::memcpy(k.in.data(), image.data(), image.size());

  Checker checker;
  k.observer = &checker;
  k.body = R"(
    setp.eq.u32 %p0, %t, 0;
    setp.eq.u32 %p1, %t, 1;
    mov.u32 %r5, 1;
    mul.wide.u32 %rd1, %t, 4;
    add.u64 %rd2, %rd1, %inp;
    add.u64 %rd3, %rd1, %outp;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    )" + before +
           R"(
    bar.sync 0;
    @!%p0 bra END;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [)" +
           map + R"(, {0}], [full]; // here
  W:
    mbarrier.try_wait.parity.shared::cta.b64 %p8, [full], 0;
    @!%p8 bra W;
  END:
  )";
  return async::testing::run(k);
}

void expect(const std::string& id, const std::string& before, const std::string& map) {
  for (const machine::Schedule& schedule : async::testing::schedules(2)) {
    const Outcome o = run_checked(before, map, schedule);
    SCOPED_TRACE(to_string(schedule) + "\n" + async::testing::text_of(o) + o.body);
    if (id.empty()) {
      EXPECT_TRUE(o.ok());
      continue;
    }
    ASSERT_FALSE(o.diagnostics.empty());
    EXPECT_EQ(o.diagnostics[0].id, id);
    EXPECT_EQ(o.diagnostics[0].place.line, async::testing::line_of(o.body, "// here"));
  }
}

const std::string kAcquireIn = "fence.proxy.tensormap::generic.acquire.sys [%inp], 128;\n";
const std::string kAcquireOut = "fence.proxy.tensormap::generic.acquire.gpu [%outp], 128;\n";
const std::string kRelease = "fence.proxy.tensormap::generic.release.gpu;\n";
const std::string kCopy = "ld.global.u32 %r6, [%rd2];\nst.global.u32 [%rd3], %r6;\n";

TEST(TensorMapRules, AMapThatTheHostWroteIsAcquired) {
  expect("missing-proxy-fence", "", "%inp");
  expect("", "@%p0 " + kAcquireIn, "%inp");
  expect("", "@%p1 " + kAcquireIn, "%inp");  // any thread of the block, if the block's barrier comes between
  expect("missing-proxy-fence", "@%p0 " + kAcquireOut, "%inp");
}

TEST(TensorMapRules, AMapThatTheKernelWroteIsReleasedAndAcquired) {
  expect("", kCopy + kRelease + "bar.sync 0;\n@%p0 " + kAcquireOut, "%outp");
  expect("missing-proxy-fence", kCopy + kRelease, "%outp");
  expect("missing-proxy-fence", kCopy + "bar.sync 0;\n@%p0 " + kAcquireOut, "%outp");
  expect("missing-proxy-fence", kCopy + "bar.sync 0;\n@%p0 " + kRelease + "@%p0 " + kAcquireOut, "%outp");
  expect("missing-proxy-fence", kRelease + kCopy + "bar.sync 0;\n@%p0 " + kAcquireOut, "%outp");
  expect("missing-proxy-fence", "@%p0 " + kAcquireOut + kCopy + kRelease, "%outp");
  expect("missing-proxy-fence", kCopy + "fence.proxy.async.global;\nbar.sync 0;\n@%p0 " + kAcquireOut, "%outp");
}

}  // namespace
}  // namespace handoff::check::testing
