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

/// Thread 0 arms `full`, or another barrier, and loads 32 words to `to` through the map at `map`.
std::string load(const std::string& map, const std::string& full = "full", const std::string& to = "tile") {
  return "mbarrier.arrive.expect_tx.shared::cta.b64 _, [" + full +
         "], 128;\n"
         "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [" +
         to + "], [" + map + ", {0}], [" + full + "]; // load\n";
}
/// A wait for phase 0 by the threads that come there.
std::string wait(const std::string& full = "full") {
  static int number = 0;
  const std::string label = "W" + std::to_string(number++);
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p8, [" + full + "], 0;\n@!%p8 bra " + label + ";\n";
}

/// A warp in each of `blocks` blocks of one cluster; `in` begins with a map of the 64 words behind its first 128 bytes.
Outcome run_body(const std::string& body, const machine::Schedule& schedule, uint32_t blocks = 1) {
  Kernel k;
  k.shared =
      ".shared .align 128 .b8 tile[128];\n.shared .align 128 .b8 image[128];\n.shared .align 8 .b64 full;\n"
      ".shared .align 8 .b64 other;\n";
  k.block = {32, 1, 1};
  k.grid = k.cluster = {blocks, 1, 1};
  k.in.assign(96, 3);
  k.out.assign(96, 0);
  k.schedule = schedule;
  k.body = "st.global.u64 [%outp], %inp;\n";
  if (blocks > 1) k.body = "setp.eq.u32 %p0, %c, 0;\n@%p0 " + k.body;
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
    mov.u32 %r7, image;
    shl.b32 %r8, %t, 2;
    add.u32 %r8, %r8, %r7;
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    @%p0 mbarrier.init.shared::cta.b64 [other], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    )" + body;
  return async::testing::run(k);
}

/// `map` is the address of the map that thread 0 then uses for a load of 32 words.
Outcome run_checked(const std::string& before, const std::string& map, const machine::Schedule& schedule) {
  std::string copy = load(map);
  copy.replace(copy.find("// load"), 7, "// here");
  return run_body(before + "\nbar.sync 0;\n@!%p0 bra END;\n" + copy + wait() + "END:\n", schedule);
}

/// As below, with the whole body.
void expect_body(const std::string& id, const std::string& body, const std::string& message = "", uint32_t blocks = 1) {
  for (const machine::Schedule& schedule : async::testing::schedules(2)) {
    const Outcome o = run_body(body, schedule, blocks);
    SCOPED_TRACE(to_string(schedule) + "\n" + async::testing::text_of(o) + o.body);
    if (id.empty()) {
      EXPECT_TRUE(o.ok());
      continue;
    }
    ASSERT_EQ(o.diagnostics.size(), 1u);
    EXPECT_EQ(o.diagnostics[0].id, id);
    EXPECT_EQ(o.diagnostics[0].place.line, async::testing::line_of(o.body, "// here"));
    EXPECT_NE(o.diagnostics[0].message.find(message), std::string::npos) << o.diagnostics[0].message;
  }
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

// A release counts for what was written before it, and an acquire for what came before it, however many follow.
TEST(TensorMapRules, OlderReleasesAndAcquiresCount) {
  const std::string second = "st.global.u32 [%rd3+128], %r6;\n";
  const std::string acquire_second =
      "bar.sync 0;\n@%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd4], 128;\nbar.sync 0;\n";
  const std::string address = "add.u64 %rd4, %outp, 128;\n";
  const std::string first = kCopy + kRelease + "bar.sync 0;\n@%p0 " + kAcquireOut;
  expect("", address + first + second + kRelease + acquire_second, "%outp");
  expect("", address + first + second + kRelease + acquire_second, "%rd4");
  expect("missing-proxy-fence",
         address + kCopy + "bar.sync 0;\n@%p0 " + kAcquireOut + second + kRelease + acquire_second, "%outp");
  expect("missing-proxy-fence", address + first + second + acquire_second, "%rd4");
  // An acquire that came too early does no harm.
  const std::string early = kCopy + "bar.sync 0;\n@%p1 " + kAcquireOut + kRelease + "bar.sync 0;\n";
  expect("", early + "@%p0 " + kAcquireOut, "%outp");
  expect("missing-proxy-fence", early, "%outp");
}

// A copy that nothing orders behind a thread's newest acquire goes by the one before it.
TEST(TensorMapRules, AnAcquireThatTheIssuerKnows) {
  const std::string again = "@%p1 " + kAcquireIn + "@%p1 fence.acq_rel.cta;\n";
  const std::string copy = "@!%p0 bra END;\n" + load("%inp") + wait() + "END:\n";
  std::string twelve, wrong = load("%inp");
  for (int k = 0; k < 12; k++) twelve += again;
  expect_body("", "@%p1 " + kAcquireIn + "bar.sync 0;\n" + again + copy);
  expect_body("", "@%p1 " + kAcquireIn + "bar.sync 0;\n" + twelve + copy);
  wrong.replace(wrong.find("// load"), 7, "// here");
  expect_body("missing-proxy-fence", "bar.sync 0;\n" + again + "@!%p0 bra END;\n" + wrong + wait() + "END:\n");
}

// More releases than are told apart: old maps stay known as released.
TEST(TensorMapRules, ManyReleases) {
  const std::string many = "mov.u32 %r9, 0;\nR:\n" + kRelease +
                           "bar.warp.sync -1;\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, 600;\n@%p3 bra R;\n";
  expect("", kCopy + kRelease + "bar.sync 0;\n@%p0 " + kAcquireOut + many, "%outp");
  expect("", kCopy + many + "bar.sync 0;\n@%p0 " + kAcquireOut, "%outp");
  expect("missing-proxy-fence", many + kCopy + "bar.sync 0;\n@%p0 " + kAcquireOut, "%outp");
}

// To modify the map before the copy that uses it is over is undefined (PTX §9.7.9.25.1).
TEST(TensorMapRules, AMapIsNotChangedWhileALoadUsesIt) {
  const std::string ready = kCopy + kRelease + "bar.sync 0;\n@!%p0 bra END;\n" + kAcquireOut;
  const std::string id = "source-overwritten", map = "may still be reading the tensor map there";
  for (const std::string change : {"st.global.u32 [%outp+4], %r6; // here\n",
                                   "tensormap.replace.tile.global_address.global.b1024.b64 [%outp], %rd2; // here\n"}) {
    expect_body(id, ready + load("%outp") + change + wait() + "END:\n", map);
    expect_body("", ready + load("%outp") + wait() + change + "END:\n");
    // The last load stands for those before it.
    const std::string both = ready + load("%outp", "other", "image") + load("%outp");
    expect_body(id, both + wait("other") + change + wait() + "END:\n", map);
    expect_body("", both + wait() + change + wait("other") + "END:\n");
    expect_body("", both + wait("other") + wait() + change + "END:\n");
  }
  // Any thread may change it that knows.
  const std::string issue = ready + load("%outp") + "END:\nbar.sync 0;\n",
                    change = "@%p1 st.global.u32 [%outp], %r6; // here\n";
  expect_body(id, issue + change + wait(), map);
  expect_body("", issue + wait() + change);
  expect_body("", issue + "@!%p0 bra NEXT;\n" + wait() + "NEXT:\nbar.sync 0;\n" + change);
  // A prefetch tells nobody when it is over.
  expect_body("", ready +
                      "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%outp, {0}];\nst.global.u32 [%outp], %r6;\n"
                      "END:\n");
}

TEST(TensorMapRules, AMapIsNotChangedWhileAStoreUsesIt) {
  const std::string ready = kCopy + kRelease + "bar.sync 0;\n@!%p0 bra END;\n" + kAcquireOut;
  const std::string store =
      "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%outp, {0}], [tile];\ncp.async.bulk.commit_group;\n";
  const std::string second =
      "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%outp, {32}], "
      "[tile];\ncp.async.bulk.commit_group;\n";
  const std::string change = "st.global.u32 [%outp], %r6; // here\n", end = "cp.async.bulk.wait_group 0;\nEND:\n";
  expect_body("source-overwritten", ready + store + change + end, "may still be reading the tensor map there");
  expect_body("group-not-awaited", ready + store + "cp.async.bulk.wait_group.read 1;\n" + change + end);
  expect_body("", ready + store + "cp.async.bulk.wait_group.read 0;\n" + change + end);  // §9.7.9.27.2.2
  expect_body("", ready + store + "cp.async.bulk.wait_group 0;\n" + change + end);
  expect_body("", ready + store + second + "cp.async.bulk.wait_group.read 0;\n" + change + end);
}

// tensormap.cp_fenceproxy writes when the warp is there: what one lane has waited for counts.
TEST(TensorMapRules, AWarpReplacesAMap) {
  const std::string image = "ld.global.u32 %r6, [%rd2];\nst.shared.u32 [%r8], %r6;\nbar.warp.sync -1;\n";
  const std::string replace =
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%outp], [image], 128;";
  const std::string issue = "@!%p1 bra NEXT;\n" + kAcquireOut +
                            "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%outp, {0}], [tile];\n"
                            "cp.async.bulk.commit_group;\n";
  const std::string read = "cp.async.bulk.wait_group.read 0;\n", end = "@%p1 cp.async.bulk.wait_group 0;\n";
  expect_body("", image + replace + "\n" + issue + read + "NEXT:\n" + replace + "\n" + end);
  expect_body("source-overwritten", image + replace + "\n" + issue + "NEXT:\n" + replace + " // here\n" + end);
}

// A multicast reads its map once: the delivery to the block that waits is over, so is that.
TEST(TensorMapRules, AMulticastReadsItsMapOnce) {
  const std::string copy = R"(
    setp.eq.and.u32 %p2, %c, 0, %p0;
    @%p2 )" + kAcquireIn + R"(
    @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u16 %h1, 3;
    @%p2 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%inp, {0}], [full], %h1;
  )";
  const std::string change = "@%p2 st.global.u32 [%inp], %r5; // here\n";
  const std::string end = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  expect_body("", copy + wait() + change + end, "", 2);
  expect_body("source-overwritten", copy + change + wait() + end, "may still be reading the tensor map there", 2);
}

// A map that a copy wrote: the copy is awaited, then the map acquired.
TEST(TensorMapRules, AMapThatACopyWrote) {
  // Over one that was there before, so that the emulator finds one on any schedule.
  const std::string image = kCopy +
                            "st.shared.u32 [%r8], %r6;\nfence.proxy.async;\nbar.sync 0;\n@!%p0 bra END;\n"
                            "cp.async.bulk.global.shared::cta.bulk_group [%outp], [image], 128;\n"
                            "cp.async.bulk.commit_group;\n";
  const std::string all = "cp.async.bulk.wait_group 0;\n", read = "cp.async.bulk.wait_group.read 0;\n";
  std::string use = load("%outp");
  use.replace(use.find("// load"), 7, "// here");
  const std::string writing = "may still be writing it";
  expect_body("", image + all + kRelease + kAcquireOut + use + wait() + "END:\n");
  expect_body("async-read-before-complete", image + kRelease + kAcquireOut + use + wait() + all + "END:\n", writing);
  expect_body("group-not-awaited", image + read + kRelease + kAcquireOut + use + wait() + all + "END:\n", writing);
  expect_body("missing-proxy-fence", image + kRelease + kAcquireOut + all + use + wait() + "END:\n",
              "acquired it since");
}

}  // namespace
}  // namespace handoff::check::testing
