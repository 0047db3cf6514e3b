// Tensor copies through PTX, against a model that goes through the box element by element (PTX §5.5, §9.7.9.27).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/async/testing.h"
#include "grader/emulator/machine/random.h"

namespace handoff::async::testing {
namespace {

using machine::LaunchStatus;
using Kind = machine::MbarrierEvent::Kind;
using Milestone = machine::AsyncOpInfo::Milestone;
using OpKind = machine::AsyncOpInfo::Kind;
using ScheduleKind = machine::Schedule::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const machine::DecoderTable& tensor_decoders() {
  static const machine::DecoderTable kTable = [] {
    machine::DecoderTable t = decoders();
    register_tensor_copy_decoders(t);
    register_tensor_map_decoders(t);
    return t;
  }();
  return kTable;
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

/// Maps of a run: over `in` (address in %rd30) and over `out` (in %rd31). Their global addresses are relative to those
/// buffers. An image is passed as it is.
struct Maps {
  TensorMapArgs in, out;
  std::optional<TensorMapImage> in_image;
  std::string constant{};  ///< a module variable that also holds the map over `in`
};

TensorMapArgs line_of_words(uint64_t words, uint32_t box) {
  TensorMapArgs a;
  a.tensor_data_type = TensorDataType::Uint32;
  a.tensor_rank = 1;
  a.global_dim = {words};
  a.box_dim = {box};
  return a;
}

/// As run(), with the two maps as kernel parameters, in clusters of `cluster` CTAs.
Outcome run_tensor(const Kernel& s, Maps maps, machine::Dim cluster = {}) {
  Outcome o;
  o.body = s.body;
  std::string text = kernel_text(s.shared, s.body);
  text = replaced(text, ".param .u64 in)",
                  ".param .u64 in, .param .align 128 .b8 imap[128], .param .align 128 .b8 omap[128])");
  text = replaced(text, "ld.param.u64 %outp,",
                  "mov.b64 %rd30, imap; cvta.param.u64 %rd30, %rd30; mov.b64 %rd31, omap; cvta.param.u64 %rd31, %rd31; "
                  "ld.param.u64 %outp,");
  machine::GlobalMemory memory;
  std::string error;
  const auto module = machine::LoadedModule::load(text, memory, tensor_decoders(), &error);
  if (module == nullptr) {
    ADD_FAILURE() << error << "\n" << text;
    return o;
  }
  machine::Launch launch;
  launch.program = module->kernel("k");
  launch.config.grid = s.grid;
  launch.config.block = s.block;
  launch.config.cluster = cluster;
  launch.config.dynamic_smem = s.dynamic_smem;
  launch.config.schedule = s.schedule;
  launch.config.progress_budget = s.progress_budget;
  launch.memory = &memory;
  launch.async = &hooks();
  launch.observer = s.observer;
  const machine::Allocation* out = memory.allocate(s.out.size() * 4, "out");
  const machine::Allocation* in = memory.allocate(s.in.size() * 4, "in");
  std::memcpy(out->host, s.out.data(), s.out.size() * 4);
  std::memcpy(in->host, s.in.data(), s.in.size() * 4);
  struct {
    uint64_t out, in;
    alignas(128) TensorMapImage imap, omap;
  } parameters;
  parameters.out = out->base;
  parameters.in = in->base;
  maps.in.global_address += in->base;
  maps.out.global_address += out->base;
  EXPECT_EQ(encode_tiled(maps.in, &parameters.imap), "");
  EXPECT_EQ(encode_tiled(maps.out, &parameters.omap), "");
  if (maps.in_image) parameters.imap = *maps.in_image;
  if (!maps.constant.empty()) {
    const auto symbol = module->symbol(maps.constant);
    EXPECT_TRUE(symbol.has_value());
    if (symbol) std::memcpy(memory.find(symbol->address, 128)->host, parameters.imap.data(), 128);
  }
  EXPECT_EQ(launch.program->param_bytes, sizeof parameters);
  std::memcpy(memory.find(launch.program->param_address, 1)->host, &parameters, sizeof parameters);
  o.status = machine::run(launch);
  o.diagnostics = std::move(launch.diagnostics);
  o.state = std::move(launch.state);
  o.cycles = launch.modeled_cycles;
  o.out.resize(s.out.size());
  std::memcpy(o.out.data(), out->host, s.out.size() * 4);
  return o;
}

// --- the model -------------------------------------------------------------------------------------------------------

/// One element of a box: where it lies in shared memory and, if it is inside the tensor, in global memory.
struct Element {
  uint32_t shared;                 ///< shared::cta address
  std::optional<uint64_t> global;  ///< from the map's global address, bytes
};

/// The tables of §5.5.7: chunk x of 128-byte line y of the whole shared memory lies at chunk x' of the same line.
uint32_t model_swizzle(TensorSwizzle mode, uint32_t address) {
  const uint32_t line = address / 128, in_line = address % 128;
  uint32_t chunk16 = in_line / 16, in_chunk = in_line % 16;
  switch (mode) {
    case TensorSwizzle::None:
      break;
    case TensorSwizzle::B32:  // pairs of chunks change places on every other line
      if (line % 2 == 1) chunk16 += chunk16 % 2 == 0 ? 1 : -1;
      break;
    case TensorSwizzle::B64:
      chunk16 = chunk16 / 4 * 4 + (chunk16 % 4 ^ line % 4);
      break;
    case TensorSwizzle::B128:
      chunk16 ^= line % 8;
      break;
    case TensorSwizzle::B128Atom32B:
      chunk16 = (chunk16 / 2 ^ line % 4) * 2 + chunk16 % 2;
      break;
    case TensorSwizzle::B128Atom32BFlip8B:
      chunk16 = (chunk16 / 2 ^ line % 4) * 2 + chunk16 % 2;
      if (line % 2 == 1) in_chunk = (in_chunk + 8) % 16;
      break;
    case TensorSwizzle::B128Atom64B:  // the halves of every other line change places
      if (line % 2 == 1) chunk16 = (chunk16 + 4) % 8;
      break;
  }
  return line * 128 + chunk16 * 16 + in_chunk;
}

uint32_t steps(const TensorMapArgs& m, uint32_t dimension) {
  if (dimension == 0) return m.box_dim[0];
  uint32_t n = 0;
  for (uint32_t k = 0; k < m.box_dim[dimension]; k += m.element_strides[dimension]) n++;
  return n;
}

/// The box at `at`, loaded to or stored from `shared`, in packed order.
std::vector<Element> model_box(const TensorMapArgs& m, const std::vector<int32_t>& at, uint32_t shared) {
  std::vector<Element> elements;
  const uint32_t size = element_bytes(m.tensor_data_type);
  uint32_t pitch = m.box_dim[0] * size;
  if (pitch < swizzle_span(m.swizzle)) pitch = swizzle_span(m.swizzle);
  std::vector<uint32_t> n(5, 1), j(5, 0);
  for (uint32_t i = 0; i < m.tensor_rank; i++) n[i] = steps(m, i);
  uint32_t row = 0;
  for (j[4] = 0; j[4] < n[4]; j[4]++) {
    for (j[3] = 0; j[3] < n[3]; j[3]++) {
      for (j[2] = 0; j[2] < n[2]; j[2]++) {
        for (j[1] = 0; j[1] < n[1]; j[1]++, row++) {
          for (j[0] = 0; j[0] < n[0]; j[0]++) {
            Element e;
            e.shared = model_swizzle(m.swizzle, shared + row * pitch + j[0] * size);
            bool in = true;
            uint64_t global = 0;
            for (uint32_t i = 0; i < m.tensor_rank; i++) {
              const int64_t g = at[i] + int64_t{j[i]} * (i == 0 ? 1 : m.element_strides[i]);
              if (g < 0 || g >= static_cast<int64_t>(m.global_dim[i])) in = false;
              if (in) global += static_cast<uint64_t>(g) * (i == 0 ? size : m.global_strides[i - 1]);
            }
            if (in) e.global = global;
            elements.push_back(e);
          }
        }
      }
    }
  }
  return elements;
}

uint32_t box_bytes(const TensorMapArgs& m) {
  uint32_t bytes = element_bytes(m.tensor_data_type);
  for (uint32_t i = 0; i < m.tensor_rank; i++) bytes *= steps(m, i);
  return bytes;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

constexpr uint32_t kTileBytes = 16384;
constexpr uint32_t kThreads = 64;
constexpr uint32_t kUntouched = 0x5a5a5a5a;
const char* const kShared = ".shared .align 1024 .b8 tile[16384];\n.shared .align 8 .b64 full;\n";
/// shared::cta address of `tile`, the first variable and as aligned as it asks to be.
constexpr uint32_t kTile = machine::kSharedBase;

std::vector<uint32_t> random_words(size_t count, uint64_t seed) {
  machine::Random random{seed};
  std::vector<uint32_t> v(count);
  // No infinities, NaNs or subnormal numbers in any of the types: 0x3xxx3xxx.
  for (uint32_t& w : v) w = (static_cast<uint32_t>(random.below(1ull << 32)) & 0x0fff0fffu) | 0x30003000u;
  return v;
}

/// "{3, -1}".
std::string listed(const std::vector<int32_t>& at) {
  std::string s = "{";
  for (size_t k = 0; k < at.size(); k++) s += (k == 0 ? "" : ", ") + std::to_string(at[k]);
  return s + "}";
}

// Every thread runs a loop over words t, t + 64, … of tile; %r1 is the index and %r2 the shared address of the word,
// %rd3 the address of the same word of `out`.
std::string each_word(const std::string& label, const std::string& what) {
  return "mov.u32 %r1, %t;\n" + label +
         ":\nshl.b32 %r3, %r1, 2;\nmov.u32 %r2, tile;\nadd.u32 %r2, %r2, %r3;\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 "
         "%rd3, %rd3, %outp;\n" +
         what + "add.u32 %r1, %r1, 64;\nsetp.lt.u32 %p1, %r1, " + std::to_string(kTileBytes / 4) + ";\n@%p1 bra " +
         label + ";\n";
}

/// Thread 0 fills tile with kUntouched, loads the box at `at` to tile + offset, expecting its bytes, and everybody
/// copies tile to out.
Kernel load_kernel(const TensorMapArgs& m, const std::vector<int32_t>& at, uint32_t offset,
                   const std::string& space = "shared::cluster") {
  Kernel s;
  s.shared = kShared;
  s.block = {kThreads, 1, 1};
  s.out.assign(kTileBytes / 4, 0);
  s.body = "\n" + each_word("FILL", "mov.u32 %r4, " + std::to_string(kUntouched) + ";\nst.shared.u32 [%r2], %r4;\n") +
           "bar.sync 0;\nsetp.ne.u32 %p2, %t, 0;\n@%p2 bra READY;\nmbarrier.init.shared::cta.b64 [full], 1;\n" +
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], " + std::to_string(box_bytes(m)) + ";\n" +
           fmt::format(
               "cp.async.bulk.tensor.{}d.{}.global.tile.mbarrier::complete_tx::bytes [tile+{}], [%rd30, {}], "
               "[full];\n",
               m.tensor_rank, space, offset, listed(at)) +
           "READY:\nbar.sync 0;\nL:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n@!%p3 bra L;\n" +
           each_word("DUMP", "ld.shared.u32 %r4, [%r2];\nst.global.u32 [%rd3], %r4;\n");
  return s;
}

std::byte* bytes_of(std::vector<uint32_t>& v) { return reinterpret_cast<std::byte*>(v.data()); }
const std::byte* bytes_of(const std::vector<uint32_t>& v) { return reinterpret_cast<const std::byte*>(v.data()); }

/// To the nearest number with 10 bits of mantissa, ties to even, as a load of type TFLOAT32 rounds.
uint32_t rounded_to_tf32(uint32_t bits) {
  const float x = std::bit_cast<float>(bits);
  if (std::isnan(x)) return 0x7fffe000u;
  if (std::isinf(x) || x == 0) return bits;
  const int unit = std::max(std::ilogb(x), -126) - 10;
  return std::bit_cast<uint32_t>(static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(double{x}, -unit)), unit)));
}

/// The tensor as copies to global memory see it: its rows end at a multiple of 16 bytes.
TensorMapArgs as_written(TensorMapArgs m) {
  const uint32_t step = 16 / element_bytes(m.tensor_data_type);
  m.global_dim[0] = (m.global_dim[0] + step - 1) / step * step;
  return m;
}

/// What load_kernel must leave in `out`.
std::vector<uint32_t> model_load(const TensorMapArgs& m, const std::vector<int32_t>& at, uint32_t offset,
                                 const std::vector<uint32_t>& in) {
  std::vector<uint32_t> out(kTileBytes / 4, kUntouched);
  const uint32_t size = element_bytes(m.tensor_data_type);
  for (const Element& e : model_box(m, at, kTile + offset)) {
    std::byte* to = bytes_of(out) + (e.shared - kTile);
    if (e.global) {
      std::memcpy(to, bytes_of(in) + m.global_address + *e.global, size);
      if (m.tensor_data_type == TensorDataType::Tfloat32) {
        uint32_t word = 0;
        std::memcpy(&word, to, 4);
        word = rounded_to_tf32(word);
        std::memcpy(to, &word, 4);
      }
    } else if (m.oob_fill == TensorOobFill::None) {
      std::memset(to, 0, size);
    } else {
      for (uint32_t k = 0; k < size; k++) to[k] = std::byte{static_cast<uint8_t>(k % 2 == 0 ? 0xf7 : 0x7f)};
    }
  }
  return out;
}

// --- loads -----------------------------------------------------------------------------------------------------------

TensorMapArgs matrix(TensorDataType type, uint64_t columns, uint64_t rows, uint64_t pitch, uint32_t box_columns,
                     uint32_t box_rows, TensorSwizzle swizzle = TensorSwizzle::None) {
  TensorMapArgs m;
  m.tensor_data_type = type;
  m.tensor_rank = 2;
  m.global_dim = {columns, rows};
  m.global_strides = {pitch};
  m.box_dim = {box_columns, box_rows};
  m.swizzle = swizzle;
  return m;
}

TEST(TensorCopyTest, LoadsATileOnEverySchedule) {
  const TensorMapArgs m = matrix(TensorDataType::Float32, 40, 24, 160, 16, 8);
  for (const char* space : {"shared::cta", "shared::cluster"}) {
    for (const auto& schedule : schedules(4)) {
      Kernel s = load_kernel(m, {8, 4}, 256, space);
      s.in = random_words(40 * 24, 1);
      s.schedule = schedule;
      const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}});
      ASSERT_TRUE(clean(o)) << space;
      EXPECT_EQ(o.out, model_load(m, {8, 4}, 256, s.in)) << machine::to_string(schedule);
      // And by hand: element (column 8 + c, row 4 + r).
      for (uint32_t r = 0; r < 8; r++) {
        for (uint32_t c = 0; c < 16; c++) EXPECT_EQ(o.out[64 + 16 * r + c], s.in[(4 + r) * 40 + 8 + c]);
      }
    }
  }
}

// --- random boxes ----------------------------------------------------------------------------------------------------

/// The nearest coordinate below whose byte offset is a multiple of 16, as the innermost one must have it.
int32_t aligned_start(int32_t at, uint32_t size) {
  const auto step = static_cast<int32_t>(16 / size);
  return at - (at % step + step) % step;
}

/// A random map over a buffer of `*bytes` bytes, and a place to start: often partly, sometimes wholly, outside.
struct RandomBox {
  TensorMapArgs map;
  std::vector<int32_t> at;
  uint32_t offset = 0;  ///< in tile
  uint64_t bytes = 0;   ///< of the buffer
};
RandomBox random_box(uint64_t seed, bool store) {
  machine::Random random{seed};
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random.below(n)); };
  static constexpr TensorDataType kTypes[] = {
      TensorDataType::Uint8,   TensorDataType::Uint16,   TensorDataType::Uint32,   TensorDataType::Int32,
      TensorDataType::Uint64,  TensorDataType::Int64,    TensorDataType::Float16,  TensorDataType::Float32,
      TensorDataType::Float64, TensorDataType::Bfloat16, TensorDataType::Tfloat32, TensorDataType::Float32Ftz};
  RandomBox b;
  TensorMapArgs& m = b.map;
  m.tensor_data_type = kTypes[below(std::size(kTypes))];
  const uint32_t size = element_bytes(m.tensor_data_type);
  m.tensor_rank = 1 + below(5);
  m.swizzle = static_cast<TensorSwizzle>(below(7));
  const uint32_t span = swizzle_span(m.swizzle);
  // A quarter of the swizzled boxes has rows shorter than the span.
  uint32_t inner = span == 0 ? 16 * (1 + below(std::min(12u, 16 * size))) : span;
  if (span != 0 && below(4) == 0) inner = 16 * (1 + below(span / 16));
  m.box_dim[0] = inner / size;
  uint32_t room = (kTileBytes - 4096) / std::max(inner, span);
  const bool floats = static_cast<uint32_t>(m.tensor_data_type) >= 6;
  if (floats && below(2) == 0) m.oob_fill = TensorOobFill::NanRequestZeroFma;
  m.global_dim[0] = 1 + below(2 * m.box_dim[0]);
  uint64_t stride = m.global_dim[0] * size;
  for (uint32_t i = 1; i < m.tensor_rank; i++) {
    m.element_strides[i] = below(3) == 0 ? 1 + below(8) : 1;
    const uint32_t n = 1 + below(std::min(room, 6u));
    room /= n;
    m.box_dim[i] = (n - 1) * m.element_strides[i] + 1 + below(m.element_strides[i]);
    m.global_dim[i] = 1 + below(9);
    stride = (stride + 15) / 16 * 16 + 16 * below(3);
    m.global_strides[i - 1] = stride;
    stride *= m.global_dim[i];
  }
  m.global_address = 16 * below(4);
  b.bytes = (m.global_address + stride + 15) / 16 * 16;
  for (uint32_t i = 0; i < m.tensor_rank; i++) {
    const auto extent = static_cast<uint32_t>(m.global_dim[i]) + (store ? 0 : m.box_dim[i]);
    b.at.push_back(static_cast<int32_t>(below(extent + 1)) - (store ? 0 : static_cast<int32_t>(m.box_dim[i])));
    if (i == 0) b.at[0] = aligned_start(b.at[0], size);
  }
  b.offset = 128 * below(32);
  return b;
}
std::string describe(const RandomBox& b) {
  const TensorMapArgs& m = b.map;
  std::string s = to_string(m.tensor_data_type) + " " + to_string(m.swizzle);
  for (uint32_t i = 0; i < m.tensor_rank; i++) {
    s += fmt::format(" [dim {} box {} step {} at {}{}]", m.global_dim[i], m.box_dim[i], m.element_strides[i], b.at[i],
                     i == 0 ? "" : fmt::format(" stride {}", m.global_strides[i - 1]));
  }
  return s + fmt::format(" tile+{}", b.offset);
}

/// Bytes of the buffer that a box touches.
std::set<uint64_t> model_touched(const RandomBox& b) {
  std::set<uint64_t> touched;
  for (const Element& e : model_box(b.map, b.at, kTile + b.offset)) {
    for (uint32_t k = 0; e.global && k < element_bytes(b.map.tensor_data_type); k++)
      touched.insert(b.map.global_address + *e.global + k);
  }
  return touched;
}

/// Keeps what is said of the copy's global side.
struct RunRecorder : Recorder {
  std::vector<machine::ByteRun> runs;
  machine::AsyncOpInfo issued{};
  void async_op(const machine::AsyncOpInfo& i, machine::AsyncOpInfo::Milestone m) override {
    Recorder::async_op(i, m);
    if (m != machine::AsyncOpInfo::Milestone::Issued) return;
    issued = i;
    ASSERT_NE(i.global_runs, nullptr);
    runs = *i.global_runs;
  }
  std::set<uint64_t> touched(uint64_t base) const {
    std::set<uint64_t> bytes;
    for (const machine::ByteRun& r : runs) {
      for (uint32_t k = 0; k < r.bytes; k++) bytes.insert(r.address + k - base);
    }
    return bytes;
  }
};

TEST(TensorCopyTest, RandomBoxesAreLoadedAsTheModelSays) {
  size_t outside = 0, partly = 0;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    const RandomBox b = random_box(seed, false);
    RunRecorder seen;
    Kernel s = load_kernel(b.map, b.at, b.offset);
    s.in = random_words(b.bytes / 4, seed);
    const auto all = schedules(3);
    s.schedule = all[seed % all.size()];
    s.observer = &seen;
    const Outcome o = run_tensor(s, {b.map, line_of_words(64, 4), {}});
    ASSERT_TRUE(clean(o)) << describe(b);
    ASSERT_EQ(o.out, model_load(b.map, b.at, b.offset, s.in)) << "seed " << seed << ": " << describe(b);
    // The barrier was told the whole box, in pieces of whole chunks; the observer the bytes inside.
    int64_t signalled = 0;
    for (const auto& e : seen.barriers) signalled += e.kind == Kind::CompleteTx ? e.bytes : 0;
    EXPECT_EQ(signalled, box_bytes(b.map));
    EXPECT_EQ(seen.issued.kind, OpKind::TensorLoad);
    EXPECT_EQ(seen.issued.bytes, box_bytes(b.map));
    EXPECT_EQ(seen.issued.destination, kTile + b.offset);
    const uint32_t row = b.map.box_dim[0] * element_bytes(b.map.tensor_data_type);
    EXPECT_EQ(seen.issued.shared_bytes, box_bytes(b.map) / row * std::max(row, swizzle_span(b.map.swizzle)));
    const std::set<uint64_t> touched = model_touched(b);
    ASSERT_EQ(seen.runs.empty(), touched.empty()) << describe(b);
    if (!touched.empty()) {
      // Where `in` lies follows from the first element inside, with which the first run begins.
      const std::vector<Element> box = model_box(b.map, b.at, 0);
      const auto first = std::find_if(box.begin(), box.end(), [](const Element& e) { return e.global.has_value(); });
      const uint64_t base = seen.runs.front().address - b.map.global_address - *first->global;
      EXPECT_EQ(seen.touched(base), touched) << describe(b);
    }
    for (size_t k = 1; k < seen.runs.size(); k++)
      EXPECT_NE(seen.runs[k - 1].address + seen.runs[k - 1].bytes, seen.runs[k].address) << "not merged";
    outside += touched.empty() ? 1 : 0;
    partly += !touched.empty() && touched.size() < box_bytes(b.map) ? 1 : 0;
  }
  // The generator makes what the test is about.
  EXPECT_GT(outside, 10u);
  EXPECT_GT(partly, 150u);
}

/// Words 0, 1, … of tile are `in`'s first 4096 words; thread 0 then runs `issue`.
Kernel store_kernel(const std::string& issue) {
  Kernel s;
  s.shared = kShared;
  s.block = {kThreads, 1, 1};
  s.body = "\n" +
           each_word("FILL",
                     "mul.wide.u32 %rd4, %r1, 4;\nadd.u64 %rd4, %rd4, %inp;\nld.global.u32 %r4, [%rd4];\n"
                     "st.shared.u32 [%r2], %r4;\n") +
           "fence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.ne.u32 %p2, %t, 0;\n@%p2 bra END;\n" + issue +
           "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n";
  s.in = random_words(kTileBytes / 4, 99);
  return s;
}

TEST(TensorCopyTest, RandomBoxesAreStoredAndClipped) {
  size_t clipped = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    const RandomBox b = random_box(1000 + seed, true);
    RunRecorder seen;
    Kernel s =
        store_kernel(fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group [%rd31, {}], [tile+{}];\n",
                                 b.map.tensor_rank, listed(b.at), b.offset));
    const auto all = schedules(3);
    s.schedule = all[seed % all.size()];
    s.observer = &seen;
    s.out = random_words(b.bytes / 4, seed);
    std::vector<uint32_t> expected = s.out;
    for (const Element& e : model_box(as_written(b.map), b.at, kTile + b.offset)) {
      if (!e.global) continue;
      std::memcpy(bytes_of(expected) + b.map.global_address + *e.global, bytes_of(s.in) + (e.shared - kTile),
                  element_bytes(b.map.tensor_data_type));
    }
    const Outcome o = run_tensor(s, {line_of_words(64, 4), b.map, {}});
    ASSERT_TRUE(clean(o)) << describe(b);
    ASSERT_EQ(o.out, expected) << "seed " << seed << ": " << describe(b);
    EXPECT_EQ(seen.issued.kind, OpKind::TensorStore);
    uint64_t written = 0;
    for (const machine::ByteRun& r : seen.runs) written += r.bytes;
    RandomBox all_written = b;
    all_written.map = as_written(b.map);
    EXPECT_EQ(written, model_touched(all_written).size());
    clipped += written < box_bytes(b.map) ? 1 : 0;
  }
  EXPECT_GT(clipped, 100u);
}

// Load a box, store it through another map of the same shape: what lies inside the tensor comes back, swizzled or not.
TEST(TensorCopyTest, LoadThenStoreIsTheIdentity) {
  for (uint64_t seed = 1; seed <= 100; seed++) {
    const RandomBox b = random_box(5000 + seed, true);
    if (b.map.tensor_data_type == TensorDataType::Tfloat32) continue;
    Kernel s;
    s.shared = kShared;
    s.block = {1, 1, 1};
    const auto all = schedules(3);
    s.schedule = all[seed % all.size()];
    s.body = fmt::format(R"(
      mbarrier.init.shared::cta.b64 [full], 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {2};
      cp.async.bulk.tensor.{0}d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [tile+{3}], [%rd30, {1}], [full], %rd1;
    L:
      mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
      @!%p3 bra L;
      cp.async.bulk.tensor.{0}d.global.shared::cta.tile.bulk_group.L2::cache_hint [%rd31, {1}], [tile+{3}], %rd1;
      cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0;
    )",
                         b.map.tensor_rank, listed(b.at), box_bytes(b.map), b.offset);
    s.in = random_words(b.bytes / 4, seed);
    s.out.assign(b.bytes / 4, 7);
    std::vector<uint32_t> expected = s.out;
    // What is written beyond the tensor's columns is what the load filled there.
    RandomBox all_written = b;
    all_written.map = as_written(b.map);
    for (const uint64_t k : model_touched(all_written)) {
      bytes_of(expected)[k] = b.map.oob_fill == TensorOobFill::None
                                  ? std::byte{0}
                                  : std::byte{static_cast<uint8_t>(k % 2 == 0 ? 0xf7 : 0x7f)};
    }
    for (const uint64_t k : model_touched(b)) bytes_of(expected)[k] = bytes_of(s.in)[k];
    const Outcome o = run_tensor(s, {b.map, b.map, {}});
    ASSERT_TRUE(clean(o)) << describe(b);
    ASSERT_EQ(o.out, expected) << "seed " << seed << ": " << describe(b);
  }
}

// --- rows by index ---------------------------------------------------------------------------------------------------

/// A matrix with boxes of one row, a column to start at and four rows: some twice, some outside.
struct RandomRows {
  TensorMapArgs map;
  std::vector<int32_t> at;  ///< column, rows
  uint32_t offset = 0;      ///< in tile
};
RandomRows random_rows(uint64_t seed, bool store) {
  machine::Random random{seed};
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random.below(n)); };
  static constexpr TensorDataType kTypes[] = {TensorDataType::Uint8, TensorDataType::Bfloat16, TensorDataType::Float32,
                                              TensorDataType::Int64};
  RandomRows b;
  const TensorDataType type = kTypes[below(std::size(kTypes))];
  const uint32_t size = element_bytes(type);
  const auto swizzle = static_cast<TensorSwizzle>(below(7));
  const uint32_t span = swizzle_span(swizzle);
  const uint32_t inner = 16 * (1 + below(span == 0 ? 16 : span / 16));
  const uint32_t columns = 1 + below(2 * inner / size), rows = 1 + below(20);
  b.map = matrix(type, columns, rows, (columns * size + 15) / 16 * 16 + 16 * below(3), inner / size, 1, swizzle);
  b.map.element_strides[1] = 1 + below(8);  // means nothing: there is one row in a box
  if (type == TensorDataType::Bfloat16 && below(2) == 0) b.map.oob_fill = TensorOobFill::NanRequestZeroFma;
  b.at.push_back(aligned_start(
      static_cast<int32_t>(below(columns)) - (store ? 0 : static_cast<int32_t>(below(inner / size))), size));
  for (int k = 0; k < 4; k++) b.at.push_back(static_cast<int32_t>(below(rows + 4)) - 2);
  if (store) {  // the order of two writes to one row is not defined
    for (int k = 2; k < 5; k++) {
      while (std::find(b.at.begin() + 1, b.at.begin() + k, b.at[k]) != b.at.begin() + k) b.at[k]++;
    }
  }
  b.offset = 128 * below(32);
  return b;
}

/// Row k of shared memory is the box of one row at (column, rows[k]).
std::vector<Element> model_rows(const RandomRows& b, uint32_t shared) {
  const uint32_t inner = b.map.box_dim[0] * element_bytes(b.map.tensor_data_type);
  const uint32_t pitch = std::max(inner, swizzle_span(b.map.swizzle));
  std::vector<Element> all;
  for (uint32_t k = 0; k < 4; k++) {
    const std::vector<Element> row = model_box(b.map, {b.at[0], b.at[1 + k]}, shared + k * pitch);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

TEST(TensorCopyTest, Gather4LoadsFourRowsByIndex) {
  size_t rows_outside = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const RandomRows b = random_rows(seed, false);
    const uint32_t size = element_bytes(b.map.tensor_data_type), inner = b.map.box_dim[0] * size;
    RunRecorder seen;
    Kernel s = load_kernel(b.map, {0, 0}, b.offset);
    s.body = replaced(s.body, fmt::format("[full], {};", inner), fmt::format("[full], {};", 4 * inner));
    s.body = replaced(s.body, ".global.tile.", ".global.tile::gather4.");
    s.body = replaced(s.body, "[%rd30, {0, 0}]", fmt::format("[%rd30, {}]", listed(b.at)));
    s.in = random_words(b.map.global_strides[0] * b.map.global_dim[1] / 4, seed);
    const auto all = schedules(3);
    s.schedule = all[seed % all.size()];
    s.observer = &seen;
    const Outcome o = run_tensor(s, {b.map, line_of_words(64, 4), {}});
    ASSERT_TRUE(clean(o)) << seed;
    std::vector<uint32_t> expected(kTileBytes / 4, kUntouched);
    std::set<uint64_t> touched;
    for (const Element& e : model_rows(b, kTile + b.offset)) {
      std::byte* to = bytes_of(expected) + (e.shared - kTile);
      if (e.global) {
        std::memcpy(to, bytes_of(s.in) + *e.global, size);
        touched.insert(*e.global);
      } else {
        std::memset(to, 0, size);
        for (uint32_t k = 0; b.map.oob_fill != TensorOobFill::None && k < size; k++)
          to[k] = std::byte{static_cast<uint8_t>(k % 2 == 0 ? 0xf7 : 0x7f)};
      }
    }
    ASSERT_EQ(o.out, expected) << "seed " << seed << " " << listed(b.at);
    EXPECT_EQ(seen.issued.bytes, 4 * inner);
    uint64_t read = 0;
    for (const machine::ByteRun& r : seen.runs) read += r.bytes;
    EXPECT_GE(read, touched.size() * size);  // a row that is named twice is read twice
    for (int k = 1; k < 5; k++)
      rows_outside += b.at[k] < 0 || b.at[k] >= static_cast<int64_t>(b.map.global_dim[1]) ? 1 : 0;
  }
  EXPECT_GT(rows_outside, 100u);
}

TEST(TensorCopyTest, Scatter4StoresFourRowsByIndex) {
  for (uint64_t seed = 1; seed <= 150; seed++) {
    const RandomRows b = random_rows(3000 + seed, true);
    Kernel s = store_kernel(
        fmt::format("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd31, {}], [tile+{}];\n",
                    listed(b.at), b.offset));
    const auto all = schedules(3);
    s.schedule = all[seed % all.size()];
    s.out = random_words(b.map.global_strides[0] * b.map.global_dim[1] / 4, seed);
    std::vector<uint32_t> expected = s.out;
    RandomRows all_written = b;
    all_written.map = as_written(b.map);
    for (const Element& e : model_rows(all_written, kTile + b.offset)) {
      if (!e.global) continue;
      std::memcpy(bytes_of(expected) + *e.global, bytes_of(s.in) + (e.shared - kTile),
                  element_bytes(b.map.tensor_data_type));
    }
    const Outcome o = run_tensor(s, {line_of_words(64, 4), b.map, {}});
    ASSERT_TRUE(clean(o)) << seed << " " << listed(b.at);
    ASSERT_EQ(o.out, expected) << "seed " << seed << " " << listed(b.at);
  }
}

// --- details ---------------------------------------------------------------------------------------------------------

// The box of 4 rows with step 2 is 2 rows, and so many bytes.
TEST(TensorCopyTest, ElementStridesSkipRows) {
  TensorMapArgs m = matrix(TensorDataType::Uint32, 8, 8, 32, 8, 4);
  m.element_strides = {1, 2};
  Kernel s = load_kernel(m, {0, 1}, 0);
  s.in.resize(64);
  std::iota(s.in.begin(), s.in.end(), 0);
  EXPECT_THAT(s.body, HasSubstr("[full], 64;"));
  const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}});
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out[0], 8u);
  EXPECT_EQ(o.out[7], 15u);
  EXPECT_EQ(o.out[8], 24u);
  EXPECT_EQ(o.out[15], 31u);
  EXPECT_EQ(o.out[16], kUntouched);
}

TEST(TensorCopyTest, OutsideIsFilledWithZerosOrNaN) {
  for (const auto& [type, fill, word] : {std::tuple{TensorDataType::Float32, TensorOobFill::None, 0u},
                                         {TensorDataType::Float32, TensorOobFill::NanRequestZeroFma, 0x7ff77ff7u},
                                         {TensorDataType::Bfloat16, TensorOobFill::NanRequestZeroFma, 0x7ff77ff7u},
                                         {TensorDataType::Float16, TensorOobFill::NanRequestZeroFma, 0x7ff77ff7u}}) {
    TensorMapArgs m = matrix(type, 16, 4, 64, 16, 4);
    m.oob_fill = fill;
    // One row above the tensor; far outside on every side.
    for (const std::vector<int32_t>& at :
         {std::vector<int32_t>{0, -1}, {-1000, 0}, {0, 2147483647}, {-2147483648, 0}}) {
      Kernel s = load_kernel(m, at, 0);
      s.in = random_words(64, 3);
      const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}});
      ASSERT_TRUE(clean(o));
      EXPECT_EQ(o.out[0], word) << listed(at);
      if (at == std::vector<int32_t>{0, -1}) {
        EXPECT_EQ(o.out[type == TensorDataType::Float32 ? 16 : 8], s.in[0]);
      }
    }
  }
}

// As recorded on an H200: tensor/type_f32_ftz, type_tf32, type_tf32_ftz.
TEST(TensorCopyTest, TypesChangeWhatIsLoaded) {
  const std::vector<uint32_t> in{0x00000001, 0x807fffff, 0x00400000, 0x3f801000,
                                 0x3f803000, 0x3f800fff, 0xffc12345, 0x7f7fffff};
  using Words = std::vector<uint32_t>;
  for (const auto& [type, out] : {std::pair{TensorDataType::Float32Ftz, in},
                                  {TensorDataType::Tfloat32, Words{0, 0x80800000, 0x00400000, 0x3f800000, 0x3f804000,
                                                                   0x3f800000, 0x7fffe000, 0x7f800000}},
                                  {TensorDataType::Tfloat32Ftz, Words{0, 0x80800000, 0x00400000, 0x3f800000, 0x3f804000,
                                                                      0x3f800000, 0x7fffe000, 0x7f800000}}}) {
    const TensorMapArgs m = matrix(type, 8, 1, 32, 8, 1);
    Kernel s = load_kernel(m, {0, 0}, 0);
    s.in = in;
    const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}});
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(Words(o.out.begin(), o.out.begin() + 8), out) << to_string(type);
  }
}

// The worked example of the 128-byte mode: the chunk that a row's chunk 0 lands in is the row's number.
TEST(TensorCopyTest, SwizzleActsOnAddressesNotOnOffsets) {
  const TensorMapArgs m = matrix(TensorDataType::Bfloat16, 64, 16, 128, 64, 16, TensorSwizzle::B128);
  for (const uint32_t offset : {0u, 128u, 384u, 1024u}) {
    Kernel s = load_kernel(m, {0, 0}, offset);
    s.in.resize(512);
    std::iota(s.in.begin(), s.in.end(), 0);
    const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}});
    ASSERT_TRUE(clean(o));
    for (uint32_t row = 0; row < 16; row++) {
      const uint32_t line = offset / 128 + row;
      for (uint32_t chunk = 0; chunk < 8; chunk++)
        EXPECT_EQ(o.out[line * 32 + (chunk ^ line % 8) * 4], row * 32 + chunk * 4) << offset;
    }
  }
}

TEST(TensorCopyTest, LoadsComeInPiecesOnRandomSchedules) {
  const TensorMapArgs m = matrix(TensorDataType::Bfloat16, 64, 64, 128, 64, 32, TensorSwizzle::B128);
  std::set<size_t> pieces;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    Recorder seen;
    Kernel s = load_kernel(m, {0, 8}, 0);
    s.in = random_words(2048, 1);
    s.schedule = random_schedule(seed);
    s.observer = &seen;
    const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}});
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out, model_load(m, {0, 8}, 0, s.in));
    EXPECT_EQ(seen.count(Kind::PhaseComplete), 1u);
    EXPECT_EQ(seen.order(Milestone::Signalled).size(), 1u);
    pieces.insert(seen.count(Kind::CompleteTx));
  }
  EXPECT_THAT(pieces, ElementsAre(1, 2, 3, 4));
}

TEST(TensorCopyTest, AnUnfinishedLoadReadsAsPoison) {
  const TensorMapArgs m = line_of_words(64, 32);
  for (const auto& schedule : schedules(0)) {
    Kernel s = load_kernel(m, {16}, 0);
    s.body = replaced(s.body, "READY:", "ld.shared.u32 %r9, [tile+124];\nout 4096 %r9\nREADY:");
    s.out.resize(kTileBytes / 4 + 1);
    s.in = random_words(64, 5);
    s.schedule = schedule;
    const Outcome o = run_tensor(s, {m, m, {}});
    ASSERT_TRUE(clean(o));
    EXPECT_EQ(o.out[4096], schedule.kind == ScheduleKind::Eager ? s.in[47] : 0xffffffffu);
    EXPECT_EQ(o.out[31], s.in[47]);
  }
}

// A store's bulk group frees the source with .read and tells of the destination without.
TEST(TensorCopyTest, StoresBelongToBulkGroups) {
  for (const auto& schedule : schedules(0)) {
    for (const bool read_only : {true, false}) {
      Kernel s =
          store_kernel(std::string("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd31, {0}], [tile];\n"
                                   "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group") +
                       (read_only ? ".read" : "") + " 0;\nmov.u32 %r8, 77;\nst.shared.u32 [tile], %r8;\n" +
                       "ld.global.u32 %r9, [%outp];\nout 63 %r9\n");
      s.out.assign(64, 5);
      s.schedule = schedule;
      const Outcome o = run_tensor(s, {line_of_words(64, 4), line_of_words(64, 16), {}});
      ASSERT_TRUE(clean(o));
      EXPECT_EQ(o.out[0], s.in[0]) << "the source was read before it was overwritten";
      EXPECT_EQ(o.out[63], read_only && schedule.kind != ScheduleKind::Eager ? 5u : s.in[0]);
    }
  }
}

TEST(TensorCopyTest, ReductionsTakeTheirTypeFromTheMap) {
  struct Case {
    const char* op;
    TensorDataType type;
    uint32_t source, destination, result;
  };
  using T = TensorDataType;
  for (const Case& c :
       {Case{"add", T::Uint32, 7, 0xfffffffe, 5}, Case{"add", T::Int32, 0xffffffff, 3, 2},
        Case{"add", T::Uint64, 0xffffffff, 1, 0}, Case{"min", T::Int32, 0xffffffff, 3, 0xffffffff},
        Case{"min", T::Uint32, 0xffffffff, 3, 3}, Case{"max", T::Int64, 0xffffffff, 3, 3},
        Case{"inc", T::Uint32, 9, 9, 0}, Case{"dec", T::Uint32, 9, 0, 9}, Case{"and", T::Int32, 0xff00, 0xff0, 0xf00},
        Case{"or", T::Uint64, 0xff00, 0xff0, 0xfff0}, Case{"xor", T::Uint64, 0xff00, 0xff0, 0xf0f0},
        Case{"add", T::Float32, 0x3f800000, 0x40000000, 0x40400000},
        Case{"add", T::Float16, 0x3c003c00, 0x40003c00, 0x42004000},
        Case{"max", T::Bfloat16, 0x3f80bf80, 0x40003f80, 0x40003f80}}) {
    for (const auto& schedule : schedules(1)) {
      // Rows 6 and 7 of 8, the last one past the end: 4 words of 8 are combined.
      TensorMapArgs m = matrix(c.type, 16 / element_bytes(c.type), 7, 16, 16 / element_bytes(c.type), 2);
      Kernel s = store_kernel(fmt::format(
          "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%rd31, {{0, 6}}], [tile];\n", c.op));
      s.in.assign(kTileBytes / 4, c.source);
      s.out.assign(32, c.destination);
      s.schedule = schedule;
      const Outcome o = run_tensor(s, {line_of_words(64, 4), m, {}});
      ASSERT_TRUE(clean(o)) << c.op;
      for (size_t k = 0; k < 32; k++) {
        // Sums of 64 bits carry into the upper word.
        const bool upper = k % 2 == 1 && c.type == T::Uint64 && std::string(c.op) == "add";
        EXPECT_EQ(o.out[k], k < 24 || k >= 28 ? c.destination : upper ? 1u : c.result) << c.op << " " << k;
      }
    }
  }
}

/// What a reduction must leave, element by element, computed in wider types; nullopt: not defined (PTX §9.7.9.27.1.3).
template <class T>
std::optional<uint64_t> model_integer(const std::string& op, uint64_t source, uint64_t old) {
  const auto a = static_cast<T>(old), b = static_cast<T>(source);
  const bool s64 = std::is_same_v<T, int64_t>, u32 = std::is_same_v<T, uint32_t>;
  if (op == "add") return s64 ? std::nullopt : std::optional<uint64_t>(old + source);
  if (op == "min") return static_cast<uint64_t>(b < a ? b : a);
  if (op == "max") return static_cast<uint64_t>(b > a ? b : a);
  if (s64) return std::nullopt;
  if (op == "and") return old & source;
  if (op == "or") return old | source;
  if (op == "xor") return (old | source) & ~(old & source);
  if (!u32) return std::nullopt;
  if (op == "inc") return old >= source ? 0 : old + 1;
  return old == 0 || old > source ? source : old - 1;
}

// Every operation with every type of a map, against sums made in double precision and decoded by hand.
TEST(TensorCopyTest, EveryReductionOfEveryType) {
  using T = TensorDataType;
  const auto decode = [](T type, uint64_t bits) -> double {  // no NaN, no infinity
    const bool half = type == T::Float16, wide = type == T::Float32 || type == T::Float32Ftz;
    const int mantissa = wide ? 23 : half ? 10 : 7, exponent = half ? 5 : 8;
    const auto e = static_cast<int>(bits >> mantissa & ((1u << exponent) - 1));
    const double m = std::ldexp(static_cast<double>(bits & ((1ull << mantissa) - 1)), -mantissa);
    const int bias = (1 << (exponent - 1)) - 1;
    const double v = e == 0 ? std::ldexp(m, 1 - bias) : std::ldexp(1 + m, e - bias);
    return (bits >> (mantissa + exponent) & 1) != 0 ? -v : v;
  };
  size_t defined = 0, refused = 0;
  for (const char* op : {"add", "min", "max", "inc", "dec", "and", "or", "xor"}) {
    for (uint32_t type_code = 0; type_code <= 12; type_code++) {
      const auto type = static_cast<T>(type_code);
      const uint32_t size = element_bytes(type);
      TensorMapArgs m = matrix(type, 64 / size, 4, 64, 64 / size, 4);
      Kernel s = store_kernel(fmt::format(
          "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group [%rd31, {{0, 0}}], [tile];\n", op));
      s.out = random_words(64, 77 + type_code);
      for (size_t k = 0; k < 64; k++) {  // both signs, equal elements and the ends of the ranges
        if (k % 3 == 1) s.in[k] ^= 0x80008000u;
        if (k % 5 == 2) s.out[k] ^= 0x80008000u;
        if (k % 8 == 5) s.out[k] = s.in[k];
        if (type_code < 6 && k == 40) s.out[k] = s.out[k + 1] = 0;
        if (type_code < 6 && k == 44) s.out[k] = s.out[k + 1] = 0xffffffffu;
      }
      std::vector<uint32_t> expected = s.out;
      bool known = true;
      const std::string name = op;
      for (size_t at = 0; at < 256; at += size) {
        uint64_t source = 0, old = 0;
        std::memcpy(&source, bytes_of(s.in) + at, size);
        std::memcpy(&old, bytes_of(s.out) + at, size);
        std::optional<uint64_t> result;
        if (type == T::Uint32) result = model_integer<uint32_t>(name, source, old);
        if (type == T::Int32) result = model_integer<int32_t>(name, source, old);
        if (type == T::Uint64) result = model_integer<uint64_t>(name, source, old);
        if (type == T::Int64) result = model_integer<int64_t>(name, source, old);
        const bool half = type == T::Float16 || type == T::Bfloat16, wide = type == T::Float32 || type == T::Float32Ftz;
        if ((half || wide) && name == "add") {
          const double sum = decode(type, source) + decode(type, old);
          // The nearest value of the type, ties to even: step through the candidates around it.
          uint64_t best = 0;
          double distance = INFINITY;
          const uint64_t sign = std::signbit(sum) ? 1ull << (8 * size - 1) : 0;
          uint64_t low = 0, high = (type == T::Float16 ? 0x7bffull : type == T::Bfloat16 ? 0x7f7full : 0x7f7fffffull);
          while (low < high) {  // the largest one not above |sum|
            const uint64_t middle = (low + high + 1) / 2;
            if (decode(type, middle) <= std::abs(sum)) {
              low = middle;
            } else {
              high = middle - 1;
            }
          }
          for (const uint64_t candidate : {low, low + 1}) {
            const double d = std::abs(decode(type, candidate) - std::abs(sum));
            if (d < distance || (d == distance && candidate % 2 == 0)) best = candidate, distance = d;
          }
          result = best | (best == 0 ? 0 : sign);  // x + −x is +0
        } else if (half && (name == "min" || name == "max")) {
          const bool take =
              name == "min" ? decode(type, source) < decode(type, old) : decode(type, source) > decode(type, old);
          result = take ? source : old;
        }
        if (!result) known = false;
        if (result) std::memcpy(bytes_of(expected) + at, &*result, size);
      }
      const Outcome o = run_tensor(s, {line_of_words(64, 4), m, {}});
      if (known) {
        ASSERT_TRUE(clean(o)) << op << " " << to_string(type);
        EXPECT_EQ(o.out, expected) << op << " " << to_string(type);
        defined++;
      } else {
        EXPECT_TRUE(reports(o, "bad-tensor-map", "cp.reduce", "for which this reduction is not defined"))
            << op << " " << to_string(type);
        refused++;
      }
    }
  }
  EXPECT_EQ(defined, 30u);
  EXPECT_EQ(defined + refused, 8u * 13u);
}

TEST(TensorCopyTest, PrefetchDoesNothing) {
  Recorder seen;
  Kernel s = store_kernel(
      "cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd31, {-4}];\n"
      "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd30, {0, 5, -1, 900, 5}];\n"
      "cp.async.bulk.prefetch.tensor.1d.L2.global.L2::cache_hint [%rd31, {%r1}], %rd1;\n");
  s.out.assign(64, 5);
  s.observer = &seen;
  const Outcome o = run_tensor(s, {matrix(TensorDataType::Uint32, 64, 64, 256, 16, 1), line_of_words(64, 16), {}});
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(o.out, std::vector<uint32_t>(64, 5));
  EXPECT_TRUE(seen.copies.empty());
}

TEST(TensorCopyTest, EachLaneIssuesItsOwnCopy) {
  Recorder seen;
  Kernel s;
  s.shared = kShared;
  s.observer = &seen;
  s.in = random_words(1024, 3);
  s.out.assign(32, 0);
  s.body = R"(
    setp.eq.u32 %p1, %t, 0;
    @%p1 mbarrier.init.shared::cta.b64 [full], 32;
    bar.sync 0;
    mov.u32 %r2, tile;
    shl.b32 %r1, %t, 7;
    add.u32 %r2, %r2, %r1;
    shl.b32 %r4, %t, 5;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1 [%r2], [%rd30, {%r4}], [full];
  L:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra L;
    ld.shared.u32 %r3, [%r2+60];
    mul.wide.u32 %rd3, %t, 4;
    add.u64 %rd3, %rd3, %outp;
    st.global.u32 [%rd3], %r3;
  )";
  const Outcome o = run_tensor(s, {line_of_words(1024, 32), line_of_words(32, 4), {}});
  ASSERT_TRUE(clean(o));
  for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(o.out[l], s.in[32 * l + 15]);
  EXPECT_EQ(seen.order(Milestone::Issued).size(), 32u);
}

// A map in global memory works as well as one in the parameters.
TEST(TensorCopyTest, TheMapMayLieInGlobalMemory) {
  const TensorMapArgs m = line_of_words(32, 16);
  Kernel s = load_kernel(m, {8}, 0);
  // The kernel copies the 128 bytes of the parameter to the end of `out`, which is 64-byte aligned, and uses that.
  std::string copy = "add.u64 %rd5, %outp, 16384;\n";
  for (int k = 0; k < 128; k += 8)
    copy += fmt::format("ld.u64 %rd6, [%rd30+{0}];\nst.global.u64 [%rd5+{0}], %rd6;\n", k);
  s.body = replaced(replaced(s.body, "[%rd30, {8}]", "[%rd5, {8}]"), "mbarrier.init", copy + "mbarrier.init");
  s.out.resize(kTileBytes / 4 + 32);
  s.in = random_words(32, 5);
  const Outcome o = run_tensor(s, {m, m, {}});
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 16),
            std::vector<uint32_t>(s.in.begin() + 8, s.in.begin() + 24));
}

// A __constant__ map, filled by the host before the launch as cudaMemcpyToSymbol does.
TEST(TensorCopyTest, TheMapMayLieInConstantMemory) {
  const TensorMapArgs m = line_of_words(64, 32);
  Kernel s = load_kernel(m, {16}, 0);
  s.body = replaced(s.body, "[%rd30, {16}]", "[%rd5, {16}]");
  s.body = replaced(s.body, "mbarrier.init", "mov.u64 %rd5, cmap;\ncvta.const.u64 %rd5, %rd5;\nmbarrier.init");
  s.shared += ".const .align 128 .b8 cmap[128];\n";
  s.in = random_words(64, 5);
  Maps maps{m, m, {}};
  maps.constant = "cmap";
  const Outcome o = run_tensor(s, maps);
  ASSERT_TRUE(clean(o));
  EXPECT_EQ(std::vector<uint32_t>(o.out.begin(), o.out.begin() + 32),
            std::vector<uint32_t>(s.in.begin() + 16, s.in.begin() + 48));
}

// --- maps that kernels edit ------------------------------------------------------------------------------------------

/// Accesses of one instruction, and fences of the tensormap proxy.
struct EditRecorder : RunRecorder {
  std::vector<machine::Access> accesses;
  std::vector<uint64_t> addresses;  ///< of the one lane of each
  struct Fence {
    LaneMask mask;
    machine::FenceInfo info;
  };
  std::vector<Fence> fences;
  bool wants_accesses() const override { return true; }
  void access(const machine::Access& a) override {
    if (a.bytes != 64) return;
    accesses.push_back(a);
    addresses.push_back(a.address[__builtin_ctz(a.mask)]);
  }
  void fence(machine::Warp&, const machine::Inst&, LaneMask mask, const machine::FenceInfo& info) override {
    if (info.kind == machine::FenceInfo::Kind::ProxyTensormapRelease ||
        info.kind == machine::FenceInfo::Kind::ProxyTensormapAcquire)
      fences.push_back({mask, info});
  }
};

/// Where a kernel edits its map.
struct Edited {
  const char* space;    ///< as tensormap.replace names it
  const char* address;  ///< of the map
};

/// The kernel of load_kernel() for `m` at `at`, with a map behind the dump in `out` that lane 0 of warp 0 made of the
/// parameter (a line of words over `in`) by `edits`, lines of field, [address] left out, and operands.
Kernel edit_kernel(const TensorMapArgs& m, const std::vector<int32_t>& at, const Edited& where,
                   const std::vector<std::pair<std::string, std::string>>& edits) {
  Kernel s = load_kernel(m, at, 0);
  s.shared += ".shared .align 128 .b8 smap[128];\n";
  const bool shared = std::string(where.address) == "smap" || std::string(where.address) == "%rd8";
  std::string edit =
      "add.u64 %rd5, %outp, 16384;\nsetp.gt.u32 %p6, %t, 31;\n@%p6 bra EDITED;\nmov.u32 %r7, smap;\n"
      "cvt.u64.u32 %rd8, %r7;\ncvta.shared.u64 %rd8, %rd8;\nshl.b32 %r6, %t, 2;\ncvt.u64.u32 %rd7, %r6;\n"
      "add.u64 %rd6, %rd7, %rd30;\nld.u32 %r9, [%rd6];\n";
  edit += shared ? "add.u32 %r7, %r7, %r6;\nst.shared.u32 [%r7], %r9;\n"
                 : "add.u64 %rd6, %rd7, %rd5;\nst.global.u32 [%rd6], %r9;\n";
  edit += "bar.warp.sync 0xffffffff;\nsetp.ne.u32 %p7, %t, 0;\n@%p7 bra ONE;\n";
  for (const auto& [field, operands] : edits) {
    const char* type = field == "global_address" || field == "global_stride" ? "b64" : "b32";
    edit += fmt::format("tensormap.replace.tile.{}{}.b1024.{} [{}], {};\n", field, where.space, type, where.address,
                        operands);
  }
  edit += "ONE:\nbar.warp.sync 0xffffffff;\n";
  edit +=
      shared ? "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd5], [smap], "
               "128;\n"
             : "fence.proxy.tensormap::generic.release.gpu;\n";
  edit += "fence.proxy.tensormap::generic.acquire.gpu [%rd5], 128;\nEDITED:\n";
  s.body = replaced(s.body, "bar.sync 0;", edit + "bar.sync 0;");
  s.body = replaced(s.body, "[%rd30, ", "[%rd5, ");
  s.out.resize(kTileBytes / 4 + 32);
  s.in = random_words(1024, 21);
  return s;
}
constexpr Edited kInShared{".shared::cta", "smap"}, kInSharedGeneric{"", "%rd8"}, kInGlobal{".global", "%rd5"},
    kInGlobalGeneric{"", "%rd5"};

// A line of words becomes a padded, swizzled matrix of bf16, field by field, in shared and in global memory.
TEST(TensorCopyTest, KernelsEditTheirMaps) {
  TensorMapArgs m = matrix(TensorDataType::Bfloat16, 40, 12, 96, 64, 9, TensorSwizzle::B128Atom32B);
  m.global_address = 64;
  m.element_strides = {1, 2};
  m.oob_fill = TensorOobFill::NanRequestZeroFma;
  for (const Edited& where : {kInShared, kInSharedGeneric, kInGlobal, kInGlobalGeneric}) {
    for (const auto& schedule : schedules(1)) {
      Kernel s = edit_kernel(m, {8, -3}, where,
                             {{"global_address", "%rd9"},
                              {"rank", "1"},
                              {"elemtype", "10"},
                              {"global_dim", "0, 40"},
                              {"global_dim", "1, %r20"},
                              {"global_stride", "0, 96"},
                              {"box_dim", "0, 64"},
                              {"box_dim", "1, 9"},
                              {"element_stride", "1, 2"},
                              {"swizzle_mode", "3"},
                              {"swizzle_atomicity", "1"},
                              {"interleave_layout", "0"},
                              {"fill_mode", "1"}});
      s.body = "\nadd.u64 %rd9, %inp, 64;\nmov.u32 %r20, 12;" + s.body;
      s.schedule = schedule;
      const Outcome o = run_tensor(s, {line_of_words(64, 4), line_of_words(64, 4), {}});
      ASSERT_TRUE(clean(o)) << where.space << where.address;
      const std::vector<uint32_t> dump(o.out.begin(), o.out.begin() + kTileBytes / 4);
      ASSERT_EQ(dump, model_load(m, {8, -3}, 0, s.in)) << where.space << where.address;
    }
  }
}

TEST(TensorCopyTest, EditsAndMapsAreToldToObservers) {
  const TensorMapArgs m = line_of_words(64, 8);
  EditRecorder seen;
  Kernel s = edit_kernel(m, {4}, kInShared, {{"box_dim", "0, 8"}});
  s.observer = &seen;
  const Outcome o = run_tensor(s, {line_of_words(64, 4), line_of_words(64, 4), {}});
  ASSERT_TRUE(clean(o));
  // The edit is a weak write of the whole map by one lane; the copy a read and a write, and the release half of a
  // fence.
  using A = machine::Access::Kind;
  ASSERT_EQ(seen.accesses.size(), 6u);
  const A kinds[] = {A::Write, A::Write, A::Read, A::Read, A::Write, A::Write};
  for (size_t k = 0; k < 6; k++) {
    EXPECT_EQ(seen.accesses[k].kind, kinds[k]) << k;
    EXPECT_EQ(seen.accesses[k].region, k < 4 ? machine::Region::Shared : machine::Region::Global);
    EXPECT_EQ(seen.accesses[k].sem, machine::Sem::Weak);
    EXPECT_EQ(seen.accesses[k].mask, 1u);
    EXPECT_EQ(seen.addresses[k], seen.addresses[k & ~size_t{1}] + (k % 2 == 1 ? 64 : 0));
  }
  ASSERT_EQ(seen.fences.size(), 2u);
  EXPECT_EQ(seen.fences[0].mask, machine::kFullMask);
  EXPECT_EQ(seen.fences[0].info.kind, machine::FenceInfo::Kind::ProxyTensormapRelease);
  EXPECT_EQ(seen.fences[0].info.scope, machine::Scope::Gpu);
  EXPECT_EQ(seen.fences[0].info.address, seen.addresses[4]);
  EXPECT_EQ(seen.fences[1].info.kind, machine::FenceInfo::Kind::ProxyTensormapAcquire);
  EXPECT_EQ(seen.fences[1].info.address, seen.addresses[4]);
  EXPECT_EQ(seen.issued.tensor_map, seen.addresses[4]);
}

TEST(TensorCopyTest, AMapThatWasEditedBadlyIsExplainedWhereItIsUsed) {
  const TensorMapArgs m = line_of_words(64, 8);
  Kernel s = edit_kernel(m, {0}, kInShared, {{"global_dim", "0, 0"}});
  EXPECT_TRUE(reports(run_tensor(s, {m, m, {}}), "bad-tensor-map", "cp.async.bulk.tensor", "globalDim[0] is 0"));
}

struct BadEdit {
  const char* before;
  const char* line;
  const char* id;
  const char* says;
};
void PrintTo(const BadEdit& b, std::ostream* out) { *out << b.line; }
class TensorMapEditTest : public ::testing::TestWithParam<BadEdit> {};
TEST_P(TensorMapEditTest, StopsAtTheLine) {
  const BadEdit& b = GetParam();
  Kernel s;
  s.shared = ".shared .align 128 .b8 smap[256];\n.shared .align 8 .b64 full;\n";
  s.body = std::string("\n") + b.before + "\n" + b.line + "\n";
  const Outcome o = run_tensor(s, {line_of_words(64, 4), line_of_words(64, 4), {}});
  EXPECT_TRUE(reports(o, b.id, b.line, b.says));
  EXPECT_EQ(o.status, LaunchStatus::Fault);
}
INSTANTIATE_TEST_SUITE_P(
    All, TensorMapEditTest,
    ::testing::Values(
        BadEdit{"", "tensormap.replace.tile.rank.shared::cta.b1024.b32 [smap], 2;", "bad-tensor-map",
                "cannot be edited: these 128 bytes are no tensor map"},
        BadEdit{"", "tensormap.replace.tile.rank.shared::cta.b1024.b32 [smap+32], 2;", "misaligned",
                "the tensor map that is edited smap+32 is not a multiple of 64 bytes"},
        BadEdit{"", "tensormap.replace.tile.box_dim.global.b1024.b32 [%outp+32], 1, 2;", "misaligned",
                "is not a multiple of 64 bytes"},
        BadEdit{"", "tensormap.replace.tile.box_dim.b1024.b32 [%outp+256], 1, 2;", "out-of-bounds",
                "the tensor map that is edited at"},
        BadEdit{"",
                "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%outp+192], "
                "[smap], 128;",
                "out-of-bounds", "the place that a tensor map is copied to"},
        BadEdit{
            "mul.wide.u32 %rd3, %t, 64;\nadd.u64 %rd3, %rd3, %outp;",
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.sys.sync.aligned [%rd3], [smap], "
            "128;",
            "diverged-collective", "the lanes pass different addresses"}));

// --- clusters --------------------------------------------------------------------------------------------------------

/// Per CTA of a cluster: tile is filled with kUntouched, `full` initialised by thread 0 for one arrival, the cluster
/// synchronised. Then thread 0 of every CTA runs `arm`, all meet again, thread 0 runs `issue`; thread 0 of the CTAs
/// whose bit of `waiters` is set waits for phase 0. After a last cluster barrier thread t stores word t of tile to word
/// 64·(CTA) + t of out. Registers: %r10 is the rank, %r11 `full`, %r12 `tile`.
Kernel cluster_kernel(const std::string& arm, const std::string& issue, uint32_t waiters, uint32_t ctas) {
  Kernel s;
  s.shared = kShared;
  s.block = {kThreads, 1, 1};
  s.grid = {ctas, 1, 1};
  s.out.assign(size_t{64} * ctas, 0);
  s.in = random_words(1024, 11);
  const std::string meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  s.body =
      "\nmov.u32 %r10, %cluster_ctarank;\nmov.u32 %r11, full;\nmov.u32 %r12, tile;\nsetp.ne.u32 %p2, %t, 0;\n" +
      each_word("FILL", "mov.u32 %r4, " + std::to_string(kUntouched) + ";\nst.shared.u32 [%r2], %r4;\n") +
      "@%p2 bra READY;\nmbarrier.init.shared::cta.b64 [full], 1;\nfence.mbarrier_init.release.cluster;\nREADY:\n" +
      meet + "@%p2 bra ARMED;\n" + arm + "ARMED:\n" + meet + "@%p2 bra DONE;\n" + issue +
      fmt::format("shr.u32 %r5, {}, %r10;\nand.b32 %r5, %r5, 1;\nsetp.eq.u32 %p4, %r5, 0;\n@%p4 bra DONE;\n", waiters) +
      "L:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;\n@!%p3 bra L;\nDONE:\n" + meet +
      "shl.b32 %r5, %t, 2;\nadd.u32 %r5, %r5, %r12;\nld.shared.u32 %r4, [%r5];\nmad.lo.u32 %r6, %c, 64, %t;\n"
      "mul.wide.u32 %rd3, %r6, 4;\nadd.u64 %rd3, %rd3, %outp;\nst.global.u32 [%rd3], %r4;\n";
  return s;
}
std::string only_rank(uint32_t rank, const std::string& what) {
  return fmt::format("setp.ne.u32 %p5, %r10, {};\n@%p5 bra OTHER;\n{}OTHER:\n", rank, what);
}
/// `bytes` are expected by the CTAs of the mask.
std::string arm_ranks(uint32_t mask, uint32_t bytes) {
  return fmt::format(
      "shr.u32 %r5, {}, %r10;\nand.b32 %r5, %r5, 1;\nsetp.eq.u32 %p4, %r5, 0;\n@%p4 bra ARMED;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {};\n",
      mask, bytes);
}
uint32_t word_of(const Outcome& o, uint32_t cta, uint32_t word) { return o.out[size_t{64} * cta + word]; }

constexpr machine::Dim kFour{4, 1, 1};

// One load by rank 2 for ranks 0, 1 and 3: same offset in each, each one's barrier is told the bytes of its own copy.
// With a cluster of 2 × 2 CTAs a bit of the mask is still a rank.
TEST(TensorCopyTest, MulticastDeliversToEveryCtaOfTheMask) {
  const std::string tensor =
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r12+128], "
      "[%rd30, {48}], [%r11], %h1;\n";
  const std::string bulk =
      "add.u64 %rd4, %inp, 192;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster."
      "L2::cache_hint [%r12+128], [%rd4], 64, [%r11], %h1, %rd4;\n";
  for (const std::string& load : {tensor, bulk}) {
    for (const machine::Dim cluster : {machine::Dim{4, 1, 1}, machine::Dim{2, 2, 1}}) {
      for (const auto& schedule : schedules(3)) {
        Recorder seen;
        Kernel s = cluster_kernel(arm_ranks(0b1011, 64), only_rank(2, "mov.u16 %h1, 11;\n" + load), 0b1011, 4);
        s.grid = cluster;
        s.schedule = schedule;
        s.observer = &seen;
        s.body = replaced(s.body, "mad.lo.u32 %r6, %c, 64, %t;", "mad.lo.u32 %r6, %r10, 64, %t;");
        const Outcome o = run_tensor(s, {line_of_words(1024, 16), line_of_words(64, 4), {}}, cluster);
        ASSERT_TRUE(clean(o)) << load << machine::to_string(schedule);
        for (uint32_t rank = 0; rank < 4; rank++) {
          for (uint32_t k = 0; k < 64; k++) {
            const bool copied = rank != 2 && k >= 32 && k < 48;
            EXPECT_EQ(word_of(o, rank, k), copied ? s.in[48 + k - 32] : kUntouched) << rank << " " << k;
          }
        }
        // Each delivery is an operation of its own.
        ASSERT_EQ(seen.order(Milestone::Issued).size(), 3u);
        ASSERT_EQ(seen.order(Milestone::Signalled).size(), 3u);
        std::set<uint32_t> ranks;
        std::set<uint64_t> ids;
        for (const auto& c : seen.copies) {
          EXPECT_EQ(c.info.bytes, 64u);
          EXPECT_EQ(c.info.mbarrier_owner, c.info.destination_owner);
          ids.insert(c.info.id);
        }
        EXPECT_EQ(ids.size(), 3u);
        std::map<uint32_t, int64_t> told;
        for (const auto& e : seen.barriers) {
          if (e.kind == Kind::CompleteTx) told[e.op] += e.bytes;
        }
        for (const auto& [op, bytes] : told) EXPECT_EQ(bytes, 64) << op;
        EXPECT_EQ(told.size(), 3u);
      }
    }
  }
}

TEST(TensorCopyTest, MulticastOfGatheredRows) {
  const TensorMapArgs m = matrix(TensorDataType::Uint32, 16, 64, 64, 8, 1);
  Kernel s = cluster_kernel(
      arm_ranks(0b1111, 128),
      only_rank(0,
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes."
                "multicast::cluster [%r12], [%rd30, {4, 63, 0, 64, 7}], [%r11], 15;\n"),
      0b1111, 4);
  const Outcome o = run_tensor(s, {m, line_of_words(64, 4), {}}, kFour);
  ASSERT_TRUE(clean(o));
  for (uint32_t rank = 0; rank < 4; rank++) {
    for (uint32_t k = 0; k < 8; k++) {
      EXPECT_EQ(word_of(o, rank, k), s.in[63 * 16 + 4 + k]);
      EXPECT_EQ(word_of(o, rank, 8 + k), s.in[4 + k]);
      EXPECT_EQ(word_of(o, rank, 16 + k), 0u);
      EXPECT_EQ(word_of(o, rank, 24 + k), s.in[7 * 16 + 4 + k]);
    }
    EXPECT_EQ(word_of(o, rank, 32), kUntouched);
  }
}

// As libraries do: every CTA of a pair loads its half and signals the even CTA, whose address is its own without
// bit 24.
TEST(TensorCopyTest, APairSignalsItsEvenCta) {
  for (const auto& schedule : schedules(2)) {
    Kernel s = cluster_kernel(
        arm_ranks(0b0101, 128),
        "and.b32 %r13, %r11, 0xfeffffff;\nshl.b32 %r14, %r10, 4;\n"
        "cp.async.bulk.tensor.1d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd30, "
        "{%r14}], [%r13];\n",
        0b0101, 4);
    s.schedule = schedule;
    const Outcome o = run_tensor(s, {line_of_words(1024, 16), line_of_words(64, 4), {}}, kFour);
    ASSERT_TRUE(clean(o));
    for (uint32_t rank = 0; rank < 4; rank++) {
      for (uint32_t k = 0; k < 16; k++) EXPECT_EQ(word_of(o, rank, k), s.in[16 * rank + k]);
      EXPECT_EQ(word_of(o, rank, 16), kUntouched);
    }
  }
}

// With multicast each destination's signal goes to the member of its own pair that the operand stands for.
TEST(TensorCopyTest, MulticastToPairsSignalsOneCtaOfEach) {
  for (const uint32_t parity : {0u, 1u}) {
    for (const auto& schedule : schedules(2)) {
      Recorder seen;
      Kernel s = cluster_kernel(
          arm_ranks(0b0101 << parity, 128),
          only_rank(1, fmt::format("{}cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes."
                                   "multicast::cluster.cta_group::2 [%r12], [%rd30, {{32}}], [%r11], 15;\n",
                                   parity == 0 ? "and.b32 %r11, %r11, 0xfeffffff;\n" : "")),
          0b0101 << parity, 4);
      s.schedule = schedule;
      s.observer = &seen;
      const Outcome o = run_tensor(s, {line_of_words(1024, 16), line_of_words(64, 4), {}}, kFour);
      ASSERT_TRUE(clean(o)) << parity;
      for (uint32_t rank = 0; rank < 4; rank++) {
        for (uint32_t k = 0; k < 16; k++) EXPECT_EQ(word_of(o, rank, k), s.in[32 + k]);
      }
      EXPECT_EQ(seen.count(Kind::PhaseComplete), 2u);
    }
  }
}

// A load into another CTA, whose own barrier is told.
TEST(TensorCopyTest, ALoadMayFillAnotherCta) {
  Kernel s = cluster_kernel(
      arm_ranks(0b1000, 64),
      only_rank(1,
                "mapa.shared::cluster.u32 %r11, %r11, 3;\nmapa.shared::cluster.u32 %r12, %r12, 3;\n"
                "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd30, {32}], "
                "[%r11];\n"
                "mov.u32 %r12, tile;\n"),
      0b1000, 4);
  const Outcome o = run_tensor(s, {line_of_words(1024, 16), line_of_words(64, 4), {}}, kFour);
  ASSERT_TRUE(clean(o));
  for (uint32_t rank = 0; rank < 4; rank++) EXPECT_EQ(word_of(o, rank, 5), rank == 3 ? s.in[37] : kUntouched);
}

struct Broken {
  const char* before;
  const char* line;
  const char* id;
  const char* says;
};
void PrintTo(const Broken& b, std::ostream* out) { *out << b.line; }
class ClusterFaultTest : public ::testing::TestWithParam<Broken> {};
TEST_P(ClusterFaultTest, StopsAtTheLine) {
  const Broken& b = GetParam();
  for (const auto& schedule : schedules(1)) {
    Kernel s = cluster_kernel(arm_ranks(0b1111, 64), only_rank(1, std::string(b.before) + "\n" + b.line + "\n"), 0, 4);
    s.schedule = schedule;
    const Outcome o = run_tensor(s, {line_of_words(1024, 16), line_of_words(64, 4), {}}, kFour);
    EXPECT_TRUE(reports(o, b.id, b.line, b.says));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
  }
}
#define REMOTE "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
INSTANTIATE_TEST_SUITE_P(
    All, ClusterFaultTest,
    ::testing::Values(
        Broken{"", REMOTE ".multicast::cluster [%r12], [%rd30, {0}], [%r11], 19;", "bad-copy",
               "bit 4 of the multicast mask 0x13 is set, but the cluster has 4 CTAs"},
        Broken{"",
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r12], [%inp], "
               "64, [%r11], 32768;",
               "bad-copy", "bit 15 of the multicast mask 0x8000 is set, but the cluster has 4 CTAs"},
        Broken{"mapa.shared::cluster.u32 %r11, %r11, 0;", REMOTE " [%r12], [%rd30, {0}], [%r11];", "bad-copy",
               "into the CTA of rank 1 names an mbarrier of the CTA of rank 0: without .cta_group::2"},
        Broken{"mapa.shared::cluster.u32 %r11, %r11, 2;", REMOTE ".cta_group::2 [%r12], [%rd30, {0}], [%r11];",
               "bad-copy", "with .cta_group::2 it lies in the destination's CTA or in that of rank 0"},
        Broken{"mapa.shared::cluster.u32 %r12, %r12, 0;",
               "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r12], [%rd30, {0}], [%r11];",
               "out-of-bounds", "reaches only the executing CTA's shared memory"},
        Broken{"mapa.shared::cluster.u32 %r12, %r12, 0;",
               "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd30, {0}], [%r12];", "out-of-bounds",
               "reaches only the executing CTA's shared memory"},
        Broken{"mbarrier.inval.shared::cta.b64 [full];", REMOTE ".multicast::cluster [%r12], [%rd30, {0}], [%r11], 3;",
               "barrier-not-initialized", "a tensor copy that signals"}));

// Spellings that compilers and libraries use: the order of modifiers differs. Each is decoded, supported or not.
TEST(TensorCopyTest, SpellingsOfTheField) {
  struct Form {
    const char* line;
    const char* refused;  ///< nullptr: supported
  };
  for (
      const Form& f : {
          Form{
              "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
              "[%r1], [%rd30, {%r2, %r3}], [%r4], %rd1;",
              nullptr},
          {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster."
           "L2::cache_hint [%r1], [%rd30, {%r2, %r3}], [%r4], %h1, %rd1;",
           nullptr},
          {"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes.multicast::"
           "cluster."
           "cta_group::2.L2::cache_hint [%r1], [%rd30, {%r2, %r3, 1, 2, %r5}], [%r4], 3, %rd1;",
           nullptr},
          {"cp.async.bulk.tensor.2d.tile::scatter4.global.shared::cta.bulk_group.L2::cache_hint [%rd30, {%r2, %r3, 1, "
           "2, "
           "%r5}], [%r4], %rd1;",
           nullptr},
          {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], [%rd30, "
           "{%r2, %r3}], [%r4], %rd1;",
           nullptr},
          {"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::1 [%r1], [%rd30, "
           "{%r2, %r3, 0}], [%r4];",
           nullptr},
          {"cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd30, {%r2, %r3, "
           "0, 1, -2}], [%r4];",
           nullptr},
          {"cp.async.bulk.tensor.4d.tile.shared::cta.global.mbarrier::complete_tx::bytes [%rd2], [imap, {%r2, %r3, 0, "
           "1}], [%rd3+8];",
           nullptr},
          {"cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group.L2::cache_hint [%rd30, {%r1, %r2, %r3, %r4, "
           "%r5}], [%r6], %rd1;",
           nullptr},
          {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd30, {%r1, %r2}], [%r6];", nullptr},
          {"cp.reduce.async.bulk.tensor.3d.global.shared::cta.min.im2col_no_offs.bulk_group [%rd30, {%r1, %r2, %r3}], "
           "[%r6];",
           "mode .im2col_no_offs"},
          {"cp.async.bulk.prefetch.tensor.3d.L2.global.tile.L2::cache_hint [%rd30, {%r1, %r2, %r3}], %rd1;", nullptr},
          {"cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%rd30, {%r1, %r2, %r3, %r4}], {%h1, %h2};",
           "mode .im2col"},
      }) {
    std::string text = replaced(kernel_text("", "@%p1 " + std::string(f.line)), ".param .u64 in)",
                                ".param .u64 in, .param .b8 imap[128])");
    text = replaced(text, "ld.param.u64 %outp,", "mov.b64 %rd30, imap; ld.param.u64 %outp,");
    machine::GlobalMemory memory;
    std::string error;
    const auto module = machine::LoadedModule::load(text, memory, tensor_decoders(), &error);
    ASSERT_NE(module, nullptr) << error;
    const machine::Program* program = module->kernel("k");
    ASSERT_NE(program, nullptr);
    if (f.refused == nullptr) {
      EXPECT_THAT(program->unsupported, ::testing::IsEmpty()) << f.line;
    } else {
      EXPECT_THAT(program->unsupported, ElementsAre(HasSubstr(f.refused))) << f.line;
    }
  }
}

// --- rules broken ----------------------------------------------------------------------------------------------------

class TensorCopyFaultTest : public ::testing::TestWithParam<Broken> {};
TEST_P(TensorCopyFaultTest, StopsAtTheLine) {
  const Broken& b = GetParam();
  for (const auto& schedule : schedules(1)) {
    Kernel s;
    s.shared = ".shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b64 full;\n.local .align 64 .b8 mine[128];\n";
    s.block = {1, 1, 1};
    s.schedule = schedule;
    s.in = random_words(64, 1);
    s.body = std::string("\nmov.u32 %r1, tile;\nmbarrier.init.shared::cta.b64 [full], 1;\n") + b.before + "\n" +
             b.line + "\n";
    // The map over `in` describes twice the memory that there is.
    const Outcome o = run_tensor(s, {line_of_words(128, 32), matrix(TensorDataType::Float64, 4, 4, 32, 4, 4), {}});
    EXPECT_TRUE(reports(o, b.id, b.line, b.says));
    EXPECT_EQ(o.status, LaunchStatus::Fault);
  }
}
#define LOAD "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes "
#define STORE "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "
INSTANTIATE_TEST_SUITE_P(
    All, TensorCopyFaultTest,
    ::testing::Values(
        Broken{"", LOAD "[tile+64], [%rd30, {0}], [full];", "misaligned", "is not a multiple of 128 bytes"},
        Broken{"", STORE "[%rd31, {0, 0}], [tile+16];", "misaligned", "the source of a tensor copy tile+16"},
        Broken{"", LOAD "[tile], [%rd30, {0}], [full+4];", "misaligned", "mbarrier full+4"},
        Broken{"", LOAD "[tile], [%rd30, {0}], [tile+64];", "barrier-not-initialized", "tile"},
        Broken{"", LOAD "[tile+8192], [%rd30, {0}], [full];", "out-of-bounds", "runs past the CTA's"},
        Broken{"", LOAD "[tile], [%rd30, {48}], [full];", "out-of-bounds", "past the end of `in` (256 bytes)"},
        Broken{"", LOAD "[tile], [%rd31, {0}], [full];", "bad-tensor-map",
               "tensorRank of the map is 2, but this is a copy of 1 dimension"},
        Broken{"add.u64 %rd1, %rd30, 32;", LOAD "[tile], [%rd1, {0}], [full];", "misaligned",
               "the tensor map is not a multiple of 64 bytes"},
        Broken{"", LOAD "[tile], [%inp, {0}], [full];", "bad-tensor-map", "these 128 bytes are no tensor map"},
        Broken{"add.u64 %rd1, %rd30, 64;", LOAD "[tile], [%rd1, {0}], [full];", "bad-tensor-map",
               "these 128 bytes are no tensor map"},
        Broken{"mov.u64 %rd1, 4096;", LOAD "[tile], [%rd1, {0}], [full];", "out-of-bounds", "no tensor map at 0x1000"},
        Broken{"cvt.u64.u32 %rd1, %r1;\ncvta.shared.u64 %rd1, %rd1;", LOAD "[tile], [%rd1, {0}], [full];",
               "bad-tensor-map", "lies in shared memory"},
        Broken{"", "cp.async.bulk.prefetch.tensor.1d.L2.global [%inp, {0}];", "bad-tensor-map", "no tensor map"},
        Broken{"", "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd31, {0, 0}], [tile];",
               "bad-tensor-map", "CU_TENSOR_MAP_DATA_TYPE_FLOAT64, for which this reduction is not defined"},
        Broken{"", LOAD "[tile], [%rd30, {0, 0}], [full];", "unsupported-instruction", "has 2 coordinates"},
        Broken{"mov.u16 %h1, 3;",
               "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], "
               "[%rd30, {0}], [full], %h1;",
               "bad-copy", "bit 1 of the multicast mask 0x3 is set, but the cluster has 1 CTA"},
        Broken{"mov.u16 %h1, 0;",
               "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], "
               "[%rd30, {0}], [full], %h1;",
               "bad-copy", "the mask of this multicast is 0"},
        Broken{"",
               "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [tile], [%rd31, "
               "{0, 0, 1, 2, 3}], [full];",
               "bad-tensor-map", "boxDim[1] of the map is 4"},
        Broken{"",
               "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%rd31, {0, 0, 1, 2, 3}], [tile];",
               "bad-tensor-map", "boxDim[1] of the map is 4"},
        Broken{"", "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%rd31, {0, 0, 1, 2, 3}];",
               "bad-tensor-map", "boxDim[1] of the map is 4"},
        Broken{"",
               "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [tile], [%rd30, "
               "{0, 0, 1, 2, 3}], [full];",
               "bad-tensor-map", "tensorRank of the map is 1, but this is a copy of 2 dimensions"},
        Broken{"",
               "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [tile], [%rd31, "
               "{0, 0}], [full];",
               "unsupported-instruction", "has 2 coordinates, not a column and four rows"},
        Broken{"mov.u16 %h1, 0;",
               "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [tile], [%rd31, {0, 0, "
               "0}], [full], {%h1};",
               "unsupported-instruction", "mode .im2col is not supported"},
        Broken{"", "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%rd31, {0, 0, 0}], [tile];",
               "unsupported-instruction", "mode .im2col_no_offs is not supported"},
        Broken{"or.b32 %r2, %r1, 0x1000000;",
               "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd30, {0}], "
               "[full];",
               "out-of-bounds", "of the CTA of rank 1, in a cluster of 1"}));

// A kernel without __grid_constant__ copies its parameter to local memory and takes the address of the copy.
TEST(TensorCopyTest, AMapInLocalMemoryIsExplained) {
  const TensorMapArgs m = line_of_words(64, 32);
  Kernel s;
  s.shared = kShared;
  s.block = {1, 1, 1};
  s.in = random_words(64, 1);
  s.body = R"(
    .local .align 64 .b8 mine[128];
    mbarrier.init.shared::cta.b64 [full], 1;
    mov.u64 %rd1, mine;
    cvta.local.u64 %rd1, %rd1;
    cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1, {0}], [full];
  )";
  const Outcome o = run_tensor(s, {m, m, {}});
  EXPECT_TRUE(reports(o, "bad-tensor-map", "cp.async.bulk.tensor", "lies in local memory"));
  ASSERT_EQ(o.diagnostics.size(), 1u);
  EXPECT_THAT(o.diagnostics[0].hint, HasSubstr("const __grid_constant__ CUtensorMap"));
}

TEST(TensorCopyTest, AChangedMapIsNoMap) {
  const TensorMapArgs m = line_of_words(64, 32);
  Kernel s = load_kernel(m, {0}, 0);
  s.in = random_words(64, 1);
  Maps maps{m, m, TensorMapImage{}};
  EXPECT_EQ(encode_tiled(m, &*maps.in_image), "");
  (*maps.in_image)[60] = std::byte{1};
  EXPECT_TRUE(reports(run_tensor(s, maps), "bad-tensor-map", "cp.async.bulk.tensor", "changed after it was encoded"));
}

TEST(TensorCopyTest, ABoxLargerThanSharedMemory) {
  TensorMapArgs m = matrix(TensorDataType::Uint32, 256, 228, 1024, 256, 228);
  Kernel s = load_kernel(m, {0, 0}, 0);
  s.in = random_words(1, 1);
  EXPECT_TRUE(reports(run_tensor(s, {m, line_of_words(64, 4), {}}), "out-of-bounds", "cp.async.bulk.tensor",
                      "takes 233472 bytes of shared memory, a CTA has at most"));
}

TEST(TensorCopyTest, AStoreMayNotStartBeforeTheTensor) {
  const TensorMapArgs m = matrix(TensorDataType::Uint32, 8, 8, 32, 8, 2);
  Kernel s = store_kernel("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd31, {0, -1}], [tile];\n");
  s.out.assign(64, 5);
  const Outcome o = run_tensor(s, {line_of_words(64, 4), m, {}});
  EXPECT_TRUE(reports(o, "bad-copy", "cp.async.bulk.tensor", "coordinate 1 of a tensor copy to global memory is -1"));
}

TEST(TensorCopyTest, ALoadOverALiveBarrierIsReported) {
  const TensorMapArgs m = line_of_words(64, 64);
  Kernel s;
  s.shared = ".shared .align 1024 .b8 tile[128];\n.shared .align 8 .b64 full;\n.shared .align 128 .b8 rest[256];\n";
  s.block = {1, 1, 1};
  s.in = random_words(64, 1);
  s.body = R"(
    mbarrier.init.shared::cta.b64 [full], 1;
    mov.u32 %r1, rest;
    cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd30, {0}], [full];
  )";
  const Outcome o = run_tensor(s, {m, m, {}});
  ASSERT_FALSE(o.diagnostics.empty());
  EXPECT_EQ(o.diagnostics[0].id, "barrier-overwritten");
  EXPECT_THAT(o.diagnostics[0].message, HasSubstr("a tensor copy of 256 bytes to `tile` runs over a live mbarrier"));
}

TEST(TensorCopyTest, CopiesInFlightAtExitAreReported) {
  const TensorMapArgs m = line_of_words(64, 32);
  Kernel s;
  s.shared = kShared;
  s.block = {1, 1, 1};
  s.in = random_words(64, 1);
  s.body = R"(
    cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd31, {0}], [tile];
    cp.async.bulk.commit_group;
  )";
  EXPECT_TRUE(reports(run_tensor(s, {m, m, {}}), "copy-in-flight-at-exit", "cp.async.bulk.tensor",
                      "still read 128 bytes of its shared memory"));
}

}  // namespace
}  // namespace handoff::async::testing
