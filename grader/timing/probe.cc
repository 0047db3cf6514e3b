// Tested by timing_test.cc.
#include "grader/timing/probe.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "grader/harness/catalog.h"

namespace handoff::timing {
namespace {

// Repetitions of one round, as the kernels have them.
constexpr double kChain = 32;
constexpr double kLoads = 16;     // memory.cu
constexpr double kBarriers = 16;  // barrier.cu
constexpr double kTimes = 16;     // cluster.cu
constexpr double kIssued = 8;     // copy.cu

constexpr uint32_t kSharedData = 128;       // copy.cu, cluster.cu: where the data begins
constexpr uint32_t kStages = 4;             // copy.cu
constexpr uint32_t kPieces = 32;            // copy.cu
constexpr uint32_t kAllSms = 132;           // of an H200
constexpr size_t kFlushed = 160 << 20;      // 128 MiB to empty L2 with, and what is measured
constexpr uint32_t kDramStep = 8192 + 128;  // far enough that no prefetch helps, near enough for the TLB
constexpr uint32_t kL2Step = 4096 + 128;    // through many slices of L2

constexpr const char* kMerged = "ptxas keeps one of the 32: nothing depends on the others";
constexpr const char* kRemoved = "ptxas removes it: it undoes the one before";
constexpr const char* kNoCaches = "the model has no caches: every load hits L2";

std::vector<Probe> make_probes() {
  std::vector<Probe> probes;
  const auto add = [&](std::string name, const char* file, const char* kernel, uint32_t n,
                       double operations) -> Probe& {
    Probe p;
    p.name = std::move(name);
    p.file = file;
    p.kernel = kernel;
    p.n = n;
    p.operations = operations;
    probes.push_back(std::move(p));
    return probes.back();
  };
  const auto sized = [](const char* name, uint32_t n) { return fmt::format("{}/{}", name, n); };

  add("clock", "arithmetic", "clock_alone", 0, 1);
  add("alu.add_xor", "arithmetic", "add_xor", 3, 2 * kChain);
  add("alu.mad", "arithmetic", "mad_u32", 3, kChain);
  add("alu.fma", "arithmetic", "fma_f32", 3, kChain);
  add("alu.fma_independent", "arithmetic", "fma_f32_independent", 3, 4 * kChain).not_modelled =
      "a warp of the model waits for each instruction";
  add("alu.setp_selp", "arithmetic", "setp_selp", 3, 2 * kChain);
  add("alu.convert", "arithmetic", "convert", 0, 2 * kChain).not_measured = kRemoved;
  Probe& rcp = add("mufu.rcp", "arithmetic", "rcp_f32", 0, kChain);
  rcp.not_measured = kRemoved;
  rcp.quick_clock = true;
  add("mufu.ex2", "arithmetic", "ex2_f32", 0, kChain).quick_clock = true;
  add("f64.fma", "arithmetic", "fma_f64", 3, kChain);
  add("loop", "arithmetic", "loop", 3, kChain);
  add("shuffle", "arithmetic", "shuffle", 0, kChain);
  add("vote", "arithmetic", "vote", 0, kChain);

  for (uint32_t ways : {1, 2, 8, 32}) {
    Probe& p = add(sized("shared.load", ways), "memory", "load_shared", ways, kChain);
    if (ways > 1) p.not_modelled = "bank conflicts cost the model nothing";
  }
  add("shared.load_v4", "memory", "load_shared_v4", 0, kChain);
  add("shared.store", "memory", "store_shared", 0, kChain).not_measured = kMerged;
  add("shared.store_load", "memory", "store_load_shared", 0, kChain).not_measured =
      "ptxas forwards the value and keeps one store";
  add("shared.atomic", "memory", "atomic_shared", 0, kChain).block = 1;
  add("shared.reduce", "memory", "reduce_shared", 0, kChain).block = 1;
  add("global.load_l1", "memory", "load_l1", 128, kLoads).not_modelled = kNoCaches;
  add("global.load_l2", "memory", "load_l2", kL2Step, kLoads);
  Probe& dram = add("global.load_dram", "memory", "load_dram", kDramStep, kLoads);
  dram.block = 1024;
  dram.global_bytes = kFlushed;
  dram.not_modelled = kNoCaches;
  add("global.store", "memory", "store_global", 0, kChain).not_measured = kMerged;
  add("global.atomic", "memory", "atomic_global", 0, kLoads).block = 1;
  add("cp_async.group", "memory", "cp_async", 0, 1);
  add("cp_async.mbarrier", "memory", "cp_async_mbarrier", 0, 1);

  for (uint32_t warps : {1, 2, 4, 8, 16, 32})
    add(sized("barrier.syncthreads", warps), "barrier", "sync_threads", 0, kBarriers).block = 32 * warps;
  for (uint32_t warps : {2, 4, 8})
    add(sized("barrier.named", warps), "barrier", "sync_named", 32 * warps, kBarriers).block = 32 * warps;
  add("barrier.arrive_sync", "barrier", "arrive_named", 0, 2 * kBarriers).block = 64;
  add("barrier.warp", "barrier", "sync_warp", 0, kChain);
  add("mbarrier.init", "barrier", "init", 0, kBarriers).block = 1;
  add("mbarrier.arrive", "barrier", "arrive", 0, kChain).block = 1;
  add("mbarrier.arrive_state", "barrier", "arrive_state", 0, kChain).block = 1;
  add("mbarrier.arrive_expect_tx", "barrier", "arrive_expect_tx", 0, kChain).block = 1;
  Probe& expect = add("mbarrier.expect_tx", "barrier", "expect_tx", 0, kChain);
  expect.block = 1;
  expect.not_measured = "ptxas makes one of the 32, with their sum";
  add("mbarrier.wait_ready", "barrier", "wait_ready", 0, kChain).block = 1;
  add("mbarrier.test_pending", "barrier", "test_pending", 0, kChain).block = 1;
  add("mbarrier.arrive_wait_same", "barrier", "arrive_wait_same", 0, kBarriers).block = 1;
  add("mbarrier.arrive_wait_other", "barrier", "arrive_wait_other", 0, 2 * kBarriers).block = 64;
  add("fence.proxy_async", "barrier", "fence_async", 0, kChain);
  add("fence.store_proxy_async", "barrier", "store_fence_async", 0, kChain);
  add("fence.cta", "barrier", "fence_cta", 0, kChain);
  add("fence.gpu", "barrier", "fence_gpu", 0, kChain);
  add("fence.mbarrier_init", "barrier", "fence_mbarrier_init", 0, kChain);

  const auto copy = [&](const char* name, const char* kernel, uint32_t n, double operations,
                        uint32_t buffers) -> Probe& {
    Probe& p = add(sized(name, n), "copy", kernel, n, operations);
    p.block = 1;
    p.dynamic_smem = kSharedData + buffers * n;
    return p;
  };
  for (uint32_t n : {16, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) copy("bulk.load", "load", n, 1, 1);
  for (uint32_t n : {1024, 16384}) {
    Probe& cold = copy("bulk.load_dram", "load_dram", n, 1, 1);
    cold.block = 1024;
    cold.global_bytes = kFlushed;
    cold.not_modelled = kNoCaches;
  }
  for (uint32_t n : {128, 4096}) copy("bulk.issue", "issue", n, kIssued, kIssued);
  for (uint32_t n : {1024, 4096, 16384})
    copy("bulk.stream_loads", "stream_loads", n, kPieces, kStages).quick_clock = true;
  Probe& all = copy("bulk.stream_loads_all_sms", "stream_loads", 16384, kPieces, kStages);
  all.grid = kAllSms;
  all.global_bytes = size_t{33} * kPieces * all.n;  // so many streams differ
  all.quick_clock = true;
  all.not_modelled = "the SMs of the model do not share the bandwidth of L2";
  for (const char* kernel : {"store_read", "store_written"}) {
    for (uint32_t n : {128, 1024, 4096, 16384, 65536})
      copy(kernel == std::string("store_read") ? "bulk.store_read" : "bulk.store_written", kernel, n, 1, 1)
          .quick_clock = true;
  }
  for (uint32_t n : {128, 4096}) copy("bulk.reduce_written", "reduce_written", n, 1, 1).quick_clock = true;
  for (uint32_t n : {1024, 4096, 16384}) copy("bulk.stream_stores", "stream_stores", n, kPieces, kStages);
  // Smaller pieces would measure the thread that issues, not the copy engine.
  copy("bulk.stream_in_and_out", "stream_in_and_out", 16384, kPieces, 2 * kStages).quick_clock = true;
  copy("bulk.stream_in_and_quarter", "stream_in_and_quarter", 16384, kPieces, 2 * kStages).quick_clock = true;

  const auto tensor = [&](const char* name, const char* kernel, uint32_t n, ProbeMap map) {
    Probe& p = add(sized(name, n), "tensor", kernel, n, 1);
    p.block = 1;
    p.dynamic_smem = n + 16;  // and an mbarrier
    p.map = map;
    p.quick_clock = true;
  };
  for (uint32_t n : {128, 1024, 4096, 16384, 32768}) tensor("tensor.load", "load", n, ProbeMap::Swizzled);
  for (uint32_t n : {4096, 65536}) tensor("tensor.load_plain", "load", n, ProbeMap::Plain);
  for (uint32_t n : {1024, 16384}) tensor("tensor.store_read", "store_read", n, ProbeMap::Swizzled);
  for (uint32_t n : {1024, 16384}) tensor("tensor.store_written", "store_written", n, ProbeMap::Swizzled);

  const auto cluster = [&](std::string name, const char* kernel, uint32_t ctas, uint32_t block, uint32_t n,
                           double operations) -> Probe& {
    Probe& p = add(std::move(name), "cluster", kernel, n, operations);
    p.grid = p.cluster = ctas;
    p.block = block;
    p.dynamic_smem = kSharedData + std::max(16u, 2 * n);
    return p;
  };
  for (uint32_t ctas : {2, 4, 8}) cluster(sized("cluster.sync", ctas), "sync_cluster", ctas, 128, 0, kTimes);
  cluster("cluster.load", "load_remote", 2, 32, 0, kTimes);
  cluster("cluster.store", "store_remote", 2, 32, 0, kChain).not_measured = kMerged;
  cluster("cluster.atomic", "atomic_remote", 2, 1, 0, kTimes);
  cluster("cluster.arrive", "arrive_remote", 2, 1, 0, 2 * kTimes).quick_clock = true;
  cluster("cluster.st_async", "st_async", 2, 1, 0, 2 * kTimes).quick_clock = true;
  for (uint32_t n : {128, 1024, 16384})
    cluster(sized("cluster.copy", n), "copy_remote", 2, 1, n, 2 * kTimes).quick_clock = true;
  for (uint32_t ctas : {2, 4})
    cluster(fmt::format("cluster.multicast_{}/4096", ctas), "multicast", ctas, 1, 4096, 1).quick_clock = true;
  return probes;
}

bool read_file(const std::filesystem::path& path, std::string* text) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  *text = all.str();
  return static_cast<bool>(in);
}

/// FNV-1a of the code without `//` comments and white space.
uint64_t hash_code(const std::string& text, uint64_t hash) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size() - 1);
    if (std::string_view(" \t\r\n").find(text[i]) != std::string_view::npos) continue;
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

const std::vector<Probe>& all_probes() {
  static const std::vector<Probe> probes = make_probes();
  return probes;
}

const char* clock_probe(const Probe& probe) { return probe.quick_clock ? "mufu.rcp" : "clock"; }

std::filesystem::path kernel_folder() { return harness::project_root() / "grader" / "timing" / "kernels"; }

std::string fingerprint(const Probe& p) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& file : {std::string("probe.cuh"), p.file + ".cu"}) {
    std::string text;
    if (!read_file(kernel_folder() / file, &text)) return "";
    hash = hash_code(text, hash);
  }
  const std::string launch = fmt::format("{} {} {} {} {} {} {} {} {}", p.kernel, p.n, p.grid, p.block, p.cluster,
                                         p.operations, p.dynamic_smem, p.global_bytes, static_cast<int>(p.map));
  return fmt::format("{:016x}", hash_code(launch, hash));
}

}  // namespace handoff::timing
