// Tested by tensor_copy_test.cc.
//
// A tensor copy moves a box between a tensor in global memory and shared memory (PTX §5.5, §9.7.9.27). Its map says
// where the tensor lies and how large the box is, its coordinates say where the box starts. What is done here is the
// address arithmetic; how the operation lives is copy_engine.cc.
//
// Two orders of bytes. The staging buffer holds the box packed, innermost dimension first: the order in which bytes are
// counted and signalled. In global memory the rows of the box (runs along dimension 0) lie at strides; parts of a row
// outside the tensor are filled on a load and left out by a store. In shared memory the rows follow each other, and the
// swizzle permutes 16-byte chunks (8-byte ones in one mode) by bits of the shared address.
//
// The mbarrier is told the bytes of the whole box, also of what lies outside the tensor: an H200 completes a phase that
// expects the full box and hangs on one that expects the bytes inside only.
//
// gather4 and scatter4 (PTX §5.5.3.4) name four rows of a matrix by their indices instead of a box of neighbours: the
// map has two dimensions and a box of one row, and shared memory holds the four rows like a box of four.
//
// Not here: im2col, interleaved layouts, 4- and 6-bit types.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "grader/emulator/async/copy_engine.h"
#include "grader/emulator/async/reduce.h"
#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/machine/fault.h"

namespace handoff::async {
namespace {

using machine::AsyncOpInfo;
using machine::ByteRun;
using machine::DecodeContext;
using machine::for_lanes;
using machine::kNoOperand;
using machine::lanes;
using machine::make_fault;
using machine::MemoryOperand;
using machine::Region;
using ptx::Space;
using ptx::Type;

/// Operands in the pool, in this order.
enum PoolIndex : uint32_t {
  kMap,
  kShared = kMap + kPooledAddress,
  kBarrier = kShared + kPooledAddress,
  kCtaMask = kBarrier + kPooledAddress,
  kCoordinates,
  kPoolSize = kCoordinates + 5
};

// Inst::sub: direction and flags. Inst::imm is the number of dimensions in the opcode, Inst::width the ReduceOp.
constexpr uint8_t kLoad = 0, kStore = 1, kReduce = 2, kDirection = 3;
constexpr uint8_t kRows = 4;   // .tile::gather4, .tile::scatter4
constexpr uint8_t kOwn = 8;    // the destination's space is .shared::cta
constexpr uint8_t kPair = 16;  // .cta_group::2

constexpr uint32_t kGatheredRows = 4;

/// The part of a row of the box that lies inside the tensor.
struct Row {
  uint32_t packed;  ///< where it begins in the packed box, bytes
  uint32_t bytes;   ///< how long it is
  std::byte* host;  ///< its bytes of global memory
};

/// Element type of a reduction; None: the operation is not defined for this type (PTX §9.7.9.27.1.3).
Type reduced_type(ReduceOp op, TensorDataType t) {
  const bool add = op == ReduceOp::Add, order = op == ReduceOp::Min || op == ReduceOp::Max;
  const bool wrap = op == ReduceOp::Inc || op == ReduceOp::Dec;
  switch (t) {
    case TensorDataType::Uint32:
      return Type::U32;
    case TensorDataType::Int32:
      return wrap ? Type::None : Type::S32;
    case TensorDataType::Uint64:
      return wrap ? Type::None : Type::U64;
    case TensorDataType::Int64:
      return order ? Type::S64 : Type::None;  // and, or, xor stop an H200: tensor/reduce_s64_*
    case TensorDataType::Float16:
      return add || order ? Type::F16 : Type::None;
    case TensorDataType::Bfloat16:
      return add || order ? Type::BF16 : Type::None;
    case TensorDataType::Float32:
    case TensorDataType::Float32Ftz:
      return add ? Type::F32 : Type::None;
    default:
      return Type::None;
  }
}

/// Fills `bytes` with the NaN that stands for "outside", 0x7ff7 in each 16 bits of any type, as recorded on an H200
/// (tensor/fill_nan_*); the manual calls it "a special NaN" and does not give its bits (§9.7.4.4).
void fill_nan(machine::AlignedBytes& bytes) {
  for (size_t k = 0; k < bytes.size(); k++) bytes[k] = std::byte{static_cast<uint8_t>(k % 2 == 0 ? 0xf7 : 0x7f)};
}

/// A load of type TFLOAT32 or TFLOAT32_FTZ rounds to nearest even to 10 bits of mantissa, a NaN to 0x7fffe000; neither
/// flushes subnormal numbers, and FLOAT32_FTZ changes nothing in a load. (Recorded on an H200: tensor/type_tf32,
/// type_tf32_ftz, type_f32_ftz.)
void round_to_tf32(std::byte* bytes, uint32_t count) {
  for (uint32_t k = 0; k < count; k += 4) {
    uint32_t v;
    std::memcpy(&v, bytes + k, 4);
    const bool nan = (v & 0x7fffffffu) > 0x7f800000u;
    v = nan ? 0x7fffe000u : (v + 0xfffu + (v >> 13 & 1u)) & ~0x1fffu;
    std::memcpy(bytes + k, &v, 4);
  }
}

struct TensorCopy : Copy {
  TensorMapArgs map;
  std::array<int32_t, 5> start_at{};  ///< coordinates of the box; of rows by index: the column, then the rows
  bool by_rows = false;               ///< gather4, scatter4
  uint32_t inner = 0;                 ///< bytes of a row of the packed box
  uint32_t pitch = 0;                 ///< bytes from row to row in shared memory
  uint32_t rows = 0;                  ///< of the box
  uint32_t offset = 0;                ///< of the box in shared memory
  std::byte* shared = nullptr;        ///< offset 0 of that memory
  std::vector<Row> inside;            ///< in the order of the box
  std::vector<ByteRun> runs;          ///< the same bytes, adjacent ones merged
  ReduceOp reduce_op = ReduceOp::None;
  Type reduce_type = Type::None;

  bool loads() const { return info.kind == AsyncOpInfo::Kind::TensorLoad; }

  void read() override {
    staging.assign(info.bytes, std::byte{0});
    if (!loads()) {
      each_chunk(0, info.bytes, [&](uint32_t packed, std::byte* in_shared, uint32_t n) {
        std::memcpy(&staging[packed], in_shared, n);
      });
      return;
    }
    if (map.oob_fill == TensorOobFill::NanRequestZeroFma) fill_nan(staging);
    const bool tf32 =
        map.tensor_data_type == TensorDataType::Tfloat32 || map.tensor_data_type == TensorDataType::Tfloat32Ftz;
    for (const Row& r : inside) {
      std::memcpy(&staging[r.packed], r.host, r.bytes);
      if (tf32) round_to_tf32(&staging[r.packed], r.bytes);
    }
  }

  /// Between rows that are shorter than the swizzle span an H200 leaves the bytes alone.
  void poison() override {
    each_chunk(0, info.bytes,
               [](uint32_t, std::byte* in_shared, uint32_t n) { std::memset(in_shared, machine::kPoison, n); });
  }

  void write(uint32_t from, uint32_t bytes) override {
    if (loads()) {
      each_chunk(from, bytes, [&](uint32_t packed, std::byte* in_shared, uint32_t n) {
        std::memcpy(in_shared, &staging[packed], n);
      });
      return;
    }
    // Only copies that signal an mbarrier come in pieces: this is the whole box.
    for (const Row& r : inside) {
      if (reduce_op == ReduceOp::None) {
        std::memcpy(r.host, &staging[r.packed], r.bytes);
      } else {
        reduce_bytes(reduce_op, reduce_type, r.host, &staging[r.packed], r.bytes,
                     map.tensor_data_type == TensorDataType::Float32Ftz);
      }
    }
  }

  /// Calls f(offset in the packed box, place in shared memory, bytes) for the chunks of [from, from + bytes).
  template <class F>
  void each_chunk(uint32_t from, uint32_t bytes, F&& f) {
    if (map.swizzle == TensorSwizzle::None) {
      f(from, shared + offset + from, bytes);
      return;
    }
    // Rows are multiples of 16 bytes long, so a chunk never crosses into the next.
    const uint32_t chunk = map.swizzle == TensorSwizzle::B128Atom32BFlip8B ? 8 : 16;
    for (uint32_t packed = from; packed < from + bytes; packed += chunk) {
      const uint32_t linear = offset + packed / inner * pitch + packed % inner;
      f(packed, shared + swizzled(map.swizzle, linear), chunk);
    }
  }
};

std::string who(const Warp& w, int lane) { return machine::describe_lanes(w, LaneMask{1} << lane); }

/// Reads the map that a copy of `rank` dimensions names; `by_rows`: for gather4 or scatter4.
TensorMapArgs read_map(Warp& w, int lane, uint64_t address, uint64_t rank, bool by_rows) {
  if (machine::in_shared_window(address) || machine::in_local_window(address)) {
    throw make_fault("bad-tensor-map",
                     fmt::format("{}: the tensor map at generic address {:#x} lies in {} memory; the copy engine reads "
                                 "maps from param, const or global memory",
                                 who(w, lane), address, machine::in_shared_window(address) ? "shared" : "local"),
                     "Pass it as `const __grid_constant__ CUtensorMap`: without __grid_constant__ the kernel takes the "
                     "address of a copy of its own.");
  }
  if (address % kTensorMapAlignment != 0) {
    throw make_fault("misaligned", fmt::format("{}: the address {:#x} of the tensor map is not a multiple of {} bytes",
                                               who(w, lane), address, kTensorMapAlignment));
  }
  TensorMapImage image;
  if (!machine::read_generic(w, lane, address, image.data(), image.size())) {
    throw make_fault("out-of-bounds", fmt::format("{}: no tensor map at {:#x}: {}", who(w, lane), address,
                                                  w.cta->launch->memory->describe(address)));
  }
  TensorMapArgs map;
  if (const std::string problem = decode_tiled(image, &map); !problem.empty()) {
    throw make_fault("bad-tensor-map",
                     fmt::format("{}: the tensor map at {:#x} is not usable: {}", who(w, lane), address, problem),
                     "The first operand is the address of the 128 bytes that cuTensorMapEncodeTiled wrote.");
  }
  if (map.tensor_rank != rank) {
    throw make_fault("bad-tensor-map",
                     fmt::format("{}: tensorRank of the map is {}, but this is a copy of {} dimension{}", who(w, lane),
                                 map.tensor_rank, rank, rank == 1 ? "" : "s"));
  }
  if (by_rows && map.box_dim[1] != 1) {
    throw make_fault(
        "bad-tensor-map",
        fmt::format("{}: boxDim[1] of the map is {}: a copy of four rows by their indices needs boxes of one "
                    "row",
                    who(w, lane), map.box_dim[1]),
        "Encode the map with boxDim = {columns, 1}; the instruction moves four such boxes.");
  }
  return map;
}

/// An H200 stops with an illegal instruction where the first byte of the box's rows is not 16-byte aligned, wherever
/// the box lies. (The base and the strides of a map are aligned, so this is a matter of the first coordinate.)
void check_start(Warp& w, int lane, const TensorCopy& c) {
  const int64_t at = int64_t{c.start_at[0]} * element_bytes(c.map.tensor_data_type);
  if (at % 16 == 0) return;
  throw make_fault(
      "bad-copy",
      fmt::format(
          "{}: the first coordinate of the tensor copy is {}, so its rows start {} bytes from the tensor's, which is "
          "not a multiple of 16",
          who(w, lane), c.start_at[0], at),
      "The innermost coordinate times the element's size is a multiple of 16 bytes; the GPU stops with an illegal "
      "instruction otherwise.");
}

/// Size of the box, in the packed order and in shared memory.
void measure(Warp& w, int lane, TensorCopy& c) {
  uint64_t rows = 1;
  for (uint32_t i = 1; i < c.map.tensor_rank; i++)
    rows *= (c.map.box_dim[i] + c.map.element_strides[i] - 1) / c.map.element_strides[i];
  if (c.by_rows) rows = kGatheredRows;
  c.inner = c.map.box_dim[0] * element_bytes(c.map.tensor_data_type);
  // A row shorter than the span still takes the whole span (CUDA C++ Programming Guide, "Using TMA": shared memory must
  // have room for the full swizzle width; recorded on an H200: tensor/inner_*).
  c.pitch = std::max(c.inner, swizzle_span(c.map.swizzle));
  const uint64_t extent = rows * c.pitch;
  if (extent > machine::kSharedMax) {
    throw make_fault("out-of-bounds",
                     fmt::format("{}: the box of this tensor map takes {} bytes of shared memory, a CTA has at most {}",
                                 who(w, lane), extent, machine::kSharedMax));
  }
  c.rows = static_cast<uint32_t>(rows);
  c.info.bytes = c.rows * c.inner;
  c.info.shared_bytes = static_cast<uint32_t>(extent);
}

void add_row(Warp& w, int lane, TensorCopy& c, uint32_t packed, uint64_t address, uint32_t bytes) {
  const machine::GlobalMemory& memory = *w.cta->launch->memory;
  const machine::Allocation* a = memory.find(address, bytes);
  if (a == nullptr || (!c.loads() && !a->writable)) {
    const bool starts_inside = a == nullptr && memory.find(address, 1) != nullptr;
    throw make_fault("out-of-bounds",
                     fmt::format("{}: a tensor copy {} {} bytes at global address {:#x}, {}", who(w, lane),
                                 c.loads() ? "reads" : "writes", bytes, address,
                                 memory.describe(starts_inside ? address + bytes - 1 : address)),
                     "globalAddress, globalDim and globalStrides of the map describe memory that is not there.");
  }
  c.inside.push_back({packed, bytes, a->host + (address - a->base)});
  if (!c.runs.empty() && c.runs.back().address + c.runs.back().bytes == address) {
    c.runs.back().bytes += bytes;
  } else {
    c.runs.push_back({address, bytes});
  }
}

/// Finds the rows of the box that lie inside the tensor.
void place(Warp& w, int lane, TensorCopy& c) {
  const TensorMapArgs& map = c.map;
  const uint32_t element = element_bytes(map.tensor_data_type);
  const auto first = std::max<int64_t>(0, -int64_t{c.start_at[0]});
  // What is written ends at a multiple of 16 bytes: a row of the tensor that does not is followed by what the box holds
  // for the rest of its last 16 bytes, as recorded on an H200 (tensor/store_clip_*, reduce_clip).
  const uint64_t unit = c.loads() ? 1 : 16 / element;
  const auto columns = static_cast<int64_t>((map.global_dim[0] + unit - 1) / unit * unit);
  const auto end = std::min<int64_t>(map.box_dim[0], columns - c.start_at[0]);
  if (first >= end) return;
  std::array<uint32_t, 5> index{};  // of the row in the box; [0] is not used
  for (uint32_t row = 0; row < c.rows; row++) {
    bool in = true;
    uint64_t address = map.global_address + static_cast<uint64_t>(c.start_at[0] + first) * element;
    for (uint32_t i = 1; i < map.tensor_rank; i++) {
      const int64_t g = c.by_rows ? c.start_at[1 + row] : c.start_at[i] + int64_t{index[i]} * map.element_strides[i];
      in = in && g >= 0 && static_cast<uint64_t>(g) < map.global_dim[i];
      address += static_cast<uint64_t>(g) * map.global_strides[i - 1];
    }
    if (in) {
      add_row(w, lane, c, row * c.inner + static_cast<uint32_t>(first) * element, address,
              static_cast<uint32_t>(end - first) * element);
    }
    for (uint32_t i = 1; i < map.tensor_rank; i++) {
      if (++index[i] * map.element_strides[i] < map.box_dim[i]) break;
      index[i] = 0;
    }
  }
}

void set_reduction(Warp& w, int lane, TensorCopy& c, ReduceOp op) {
  c.reduce_op = op;
  c.reduce_type = reduced_type(op, c.map.tensor_data_type);
  c.reduces = true;
  if (c.reduce_type != Type::None) return;
  throw make_fault("bad-tensor-map",
                   fmt::format("{}: tensorDataType of the map is {}, for which this reduction is not defined",
                               who(w, lane), to_string(c.map.tensor_data_type)),
                   "add: UINT32, INT32, UINT64, FLOAT16, BFLOAT16, FLOAT32; min, max: UINT32, INT32, UINT64, INT64, "
                   "FLOAT16, BFLOAT16; inc, dec: UINT32; and, or, xor: UINT32, INT32, UINT64.");
}

/// How many coordinates the instruction has: gather4 and scatter4 name a column and four rows.
uint32_t coordinates(const Inst& i) { return (i.sub & kRows) != 0 ? 1 + kGatheredRows : static_cast<uint32_t>(i.imm); }

void issue(Warp& w, const Inst& i, LaneMask mask) {
  machine::note_effect(w);
  const uint8_t direction = i.sub & kDirection;
  const bool load = direction == kLoad;
  machine::Launch& launch = *w.cta->launch;
  const uint32_t* pool = &launch.program->operand_pool[i.list];
  for_lanes(mask, [&](int l) {
    auto copy = std::make_shared<TensorCopy>();
    TensorCopy& c = *copy;
    AsyncOpInfo& info = c.info;
    info.kind = load                  ? AsyncOpInfo::Kind::TensorLoad
                : direction == kStore ? AsyncOpInfo::Kind::TensorStore
                                      : AsyncOpInfo::Kind::TensorReduce;
    c.noun = "a tensor copy";
    c.by_rows = (i.sub & kRows) != 0;
    info.tensor_map = pooled_address(w, pool + kMap, l);
    c.map = read_map(w, l, info.tensor_map, i.imm, c.by_rows);
    for (uint32_t k = 0; k < coordinates(i); k++) c.start_at[k] = lanes<int32_t>(w.regs, pool[kCoordinates + k])[l];
    check_start(w, l, c);
    measure(w, l, c);
    if (direction == kReduce) set_reduction(w, l, c, static_cast<ReduceOp>(i.width));

    // Shared memory of every tensor copy is 128-byte aligned (CUDA C++ Programming Guide, "Using TMA").
    const SharedPlace p =
        shared_place(w, l, pooled_address(w, pool + kShared, l),
                     load && (i.sub & kOwn) == 0 ? SharedWindow::Cluster : SharedWindow::Cta, info.shared_bytes, 128,
                     load ? "the destination of a tensor copy" : "the source of a tensor copy");
    c.offset = p.offset;
    c.shared = p.owner->shared(0);
    place(w, l, c);
    info.global_runs = &c.runs;
    const uint64_t global = c.runs.empty() ? c.map.global_address : c.runs.front().address;
    std::vector<std::shared_ptr<Copy>> copies{copy};
    if (load) {
      info.source_region = Region::Global;
      info.source = global;
      info.destination_region = Region::Shared;
      info.destination = p.offset;
      const SharedPlace b =
          shared_place(w, l, pooled_address(w, pool + kBarrier, l), SharedWindow::Cluster, 8, 8, "mbarrier");
      info.mbarrier = b.offset;
      LoadForm form;
      form.signals = (i.sub & kPair) != 0 ? LoadForm::Signals::Pair : LoadForm::Signals::Own;
      form.multicast = pool[kCtaMask] != kNoOperand;
      if (form.multicast) form.mask = lanes<uint32_t>(w.regs, pool[kCtaMask])[l] & 0xffff;
      copies = one_for_each(copy, deliveries(w, l, form, p, b, c.noun), [](TensorCopy& each) {
        each.info.global_runs = &each.runs;
        each.shared = each.info.destination_owner->shared(0);
      });
    } else {
      info.source_region = Region::Shared;
      info.source = p.offset;
      info.source_owner = p.owner;
      info.destination_region = Region::Global;
      info.destination = global;
      // Rows by index are looked up one by one: a negative index is a row outside the tensor.
      for (uint32_t k = 0; k < (c.by_rows ? 1 : i.imm); k++) {
        if (c.start_at[k] >= 0) continue;
        // A box may reach over the tensor's upper ends only (CUDA C++ Programming Guide, "Using TMA").
        throw make_fault("bad-copy",
                         fmt::format("{}: coordinate {} of a tensor copy to global memory is {}: a box that is written "
                                     "may not start before the tensor",
                                     who(w, l), k, c.start_at[k]),
                         "An H200 stops with an illegal instruction there.");
      }
    }
    start(w, i, l, copies);
    space_out(w, i, l, mask);
  });
}

/// A hint: only the map and the start are looked at.
void prefetch(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  for_lanes(mask, [&](int l) {
    TensorCopy c;
    c.map = read_map(w, l, pooled_address(w, pool + kMap, l), i.imm, (i.sub & kRows) != 0);
    c.start_at[0] = lanes<int32_t>(w.regs, pool[kCoordinates])[l];
    check_start(w, l, c);
  });
}

// --- decoders --------------------------------------------------------------------------------------------------------

std::string decode(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  for (const char* mode : {"im2col", "im2col::w", "im2col::w::128", "im2col_no_offs"}) {
    if (r.has(mode)) {
      return fmt::format(
          "mode .{} is not supported, only .tile, .tile::gather4 and .tile::scatter4 are; run it on a GPU", mode);
    }
  }
  const bool prefetches = r.spec->op == ptx::Op::CpAsyncBulkPrefetchTensor;
  const bool load = r.has("mbarrier::complete_tx::bytes");
  const ptx::Operand& tensor = s.operands[load ? 1 : 0];
  if (tensor.elements.size() != 2) return "the tensor map has no coordinates";
  const ptx::Operands& indices = tensor.elements[1].elements;
  for (const std::string_view m : r.modifiers) {
    if (m.size() == 2 && m[1] == 'd') inst->imm = static_cast<uint64_t>(m[0] - '0');
  }
  inst->sub = load ? kLoad : kStore;
  if (r.has("tile::gather4") || r.has("tile::scatter4")) {
    inst->sub |= kRows;
    if (inst->imm != 2) return "rows by index are of a tensor of 2 dimensions";
  }
  if (indices.size() != coordinates(*inst)) {
    return (inst->sub & kRows) != 0
               ? fmt::format("a copy of four rows has {} coordinates, not a column and four rows", indices.size())
               : fmt::format("a copy of {} dimensions has {} coordinates", inst->imm, indices.size());
  }

  std::vector<uint32_t> pool(kPoolSize, kNoOperand);
  const MemoryOperand map = c.address(tensor, Space::Generic);
  if (map.space != Space::Generic && map.space != Space::Global)
    return "the tensor map must lie in param, const or global memory";
  bool fits = pool_address(map, pool, kMap);
  for (size_t k = 0; k < indices.size(); k++) {
    if (c.width(indices[k], Type::S32) != 4) return "coordinates must be 32-bit operands";
    pool[kCoordinates + k] = c.source(indices[k], Type::S32);
  }
  if (!prefetches) fits = pool_address(c.address(s.operands[load ? 0 : 1], Space::SharedCta), pool, kShared) && fits;
  if (load) {
    fits = pool_address(c.address(s.operands[2], Space::Shared), pool, kBarrier) && fits;
    if (r.has("shared::cta")) inst->sub |= kOwn;
    if (r.has("cta_group::2")) inst->sub |= kPair;
    if (r.has("multicast::cluster")) {
      if (s.operands.size() < 4) return "a multicast has no mask of CTAs";
      pool[kCtaMask] = c.source(s.operands[3], Type::U16);
    }
  }
  if (!fits) return "an address offset is out of range";
  if (r.spec->op == ptx::Op::CpReduceAsyncBulkTensor) {
    inst->sub = kReduce;
    inst->width = static_cast<uint8_t>(reduce_op_from(r));
  }
  inst->fn = prefetches ? prefetch : issue;
  inst->ends_slice = 1;
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
  inst->cost = load || prefetches ? c.timing().tma_issue : c.timing().tensor_store_issue;
  return {};
}

}  // namespace

void register_tensor_copy_decoders(machine::DecoderTable& table) {
  using ptx::Op;
  table[Op::CpAsyncBulkTensor] = decode;
  table[Op::CpReduceAsyncBulkTensor] = decode;
  table[Op::CpAsyncBulkPrefetchTensor] = decode;
}

}  // namespace handoff::async
