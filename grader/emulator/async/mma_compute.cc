// Chooses the variant, finds the operands, and lays rows of D into tensor memory. Tested by mma_compute_test.cc.
#include "grader/emulator/async/mma_compute.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "grader/emulator/async/mma_formats.h"
#include "grader/emulator/async/mma_kernels.h"

namespace handoff::async {
namespace {

constexpr uint32_t kMaxM = 128, kMaxN = 256, kMaxK = 64;
constexpr uint32_t kQuarter = 32;    // lanes that hold a copy of the scale factors
constexpr uint32_t kMaxFactors = 4;  // of a row
constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kColumnsOfA = 8;  // 32 bytes of K
constexpr uint32_t kCanonicalNan = 0x7fffffff;

bool base_only = false;

#if defined(__x86_64__)
/// CPUID leaf 1, ECX bit 29: __builtin_cpu_supports of clang 14 has no name for it.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

struct Kernels {
  void (*unpack)(const Unpack&);
  void (*multiply)(const Multiply&);
};
Kernels kernels() {
#if defined(__x86_64__)
  static const bool kAvx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && has_f16c();
  if (kAvx2 && !base_only) return {mma_avx2::unpack, mma_avx2::multiply};
#endif
  return {mma_base::unpack, mma_base::multiply};
}

std::vector<TensorMemoryBlock> blocks(uint32_t rows, TensorMemoryAddress address, uint32_t columns) {
  std::vector<TensorMemoryBlock> list;
  const uint32_t lanes = rows == 64 ? 16 : rows;
  for (uint32_t m = 0; m < rows; m += lanes) {
    list.push_back({static_cast<uint16_t>(address.lane + tensor_memory_lane(rows, m)), static_cast<uint16_t>(lanes),
                    address.column, static_cast<uint16_t>(columns)});
  }
  return list;
}

/// Blocks of columns of D that lie below each other: with `.ws` the lanes that M leaves free hold further columns.
uint32_t column_blocks(const InstructionDescriptor& instruction, bool weight_stationary) {
  return weight_stationary ? kTensorMemoryLanes / instruction.m : 1;
}

void check_address(const InstructionDescriptor& instruction, const char* name, TensorMemoryAddress address,
                   uint32_t columns, bool weight_stationary, std::vector<DescriptorProblem>& problems) {
  const auto add = [&](const char* field, uint32_t value, std::string rule) {
    DescriptorProblem p;
    p.field = field;
    p.value = value;
    p.text = fmt::format("tensor memory address of {}: {} = {}; {}", name, field, value, rule);
    p.rule = std::move(rule);
    problems.push_back(std::move(p));
  };
  const bool half_the_lanes = instruction.m == 64 && !weight_stationary;
  if (address.lane != 0 && !(half_the_lanes && address.lane == 16)) {
    add("lane", address.lane, fmt::format("M = {} takes lane {}", instruction.m, half_the_lanes ? "0 or 16" : "0"));
  }
  if (address.column + columns > kTensorMemoryColumns) {
    add("column", address.column,
        fmt::format("the {} columns from there on end beyond the {} of tensor memory", columns, kTensorMemoryColumns));
  }
}

void unpack_operand(const Kernels& use, MmaKind kind, bool in_tensor_memory, const Unpack& u) {
  if (kind == MmaKind::F16 || kind == MmaKind::Tf32) {
    use.unpack(u);
  } else {
    unpack_narrow(u, packing_of(kind, u.type, in_tensor_memory));
  }
}

Multiply::Result result_of(const InstructionDescriptor& instruction) {
  switch (instruction.d_type) {
    case MmaType::F16:
      return Multiply::Result::Half;
    case MmaType::S32:
      return instruction.saturate ? Multiply::Result::IntSaturated : Multiply::Result::Int;
    default:
      return Multiply::Result::Float;
  }
}

/// Scale factors of some rows of A or columns of B.
struct Scales {
  float factor[kMaxFactors][kMaxN];

  /// Reads those of rows [first, first + rows) from the copy in one quarter of the lanes. False: they are what they
  /// were.
  bool read(const MmaOperation& op, TensorMemoryAddress at, uint32_t id, uint32_t quarter, uint32_t first,
            uint32_t rows) {
    bool changed = !read_;
    read_ = true;
    for (uint32_t r = 0; r < rows; r++) {
      const uint32_t lane = quarter * kQuarter + (first + r) % kQuarter;
      const uint32_t cell = op.tensor_memory[size_t{lane} * kTensorMemoryColumns + at.column + (first + r) / kQuarter];
      changed = changed || cell != cells_[r];
      cells_[r] = cell;
    }
    if (!changed) return false;
    for (uint32_t r = 0; r < rows; r++) {
      for (uint32_t s = 0; s < op.scale_factors; s++)
        factor[s][r] = scale_value(op.instruction.scale_ue8m0, static_cast<uint8_t>(cells_[r] >> 8 * (id + s)));
    }
    return true;
  }

 private:
  bool read_ = false;
  uint32_t cells_[kMaxN] = {};  // as read last
};

/// Rows [first, first + rows) of `panel` ([k][stride]) times their factors, as [k][rows]. False: a product of finite
/// numbers is too large for binary32.
bool scale_panel(const float* panel, uint32_t stride, uint32_t first, uint32_t rows, uint32_t k, uint32_t block,
                 const Scales& scales, float* scaled) {
  uint32_t beyond = 0;
  for (uint32_t i = 0; i < k; i++) {
    const float* from = panel + size_t{i} * stride + first;
    const float* factor = scales.factor[i / block];
    float* to = scaled + size_t{i} * rows;
    for (uint32_t r = 0; r < rows; r++) {
      to[r] = from[r] * factor[r];
      beyond |= static_cast<uint32_t>(std::isinf(to[r])) & ~static_cast<uint32_t>(std::isinf(from[r]));
    }
  }
  return beyond == 0;
}

/// The chain of fma of `p` where scaled elements leave the range of binary32: its panels hold unscaled elements.
/// Elements, factors and products have few enough bits to be exact in double; see fma_of in mma_kernels.inc.
void multiply_wide(const Multiply& p, uint32_t a_stride, uint32_t block, const Scales& a_scales,
                   const Scales& b_scales) {
  for (uint32_t m = 0; m < p.m; m++) {
    if (p.rows[m] == nullptr) continue;
    for (uint32_t n = 0; n < p.n; n++) {
      float sum = 0;
      if (p.accumulate) std::memcpy(&sum, &p.rows[m][n], sizeof sum);
      for (uint32_t k = 0; k < p.k; k++) {
        const double a = static_cast<double>(p.a[size_t{k} * a_stride + m]) * a_scales.factor[k / block][m];
        const double b = static_cast<double>(p.b[size_t{k} * p.n + n]) * b_scales.factor[k / block][n];
        sum = static_cast<float>(a * b + static_cast<double>(sum));
      }
      std::memcpy(&p.rows[m][n], &sum, sizeof sum);
      if (std::isnan(sum)) p.rows[m][n] = kCanonicalNan;
    }
  }
}

/// The product of a block-scaled kind; `product` has the panels of unscaled elements. Row m of D is in lane
/// op.d.lane + m. One quarter of the lanes after the other, each with its own copy of the factors.
void multiply_scaled(const MmaOperation& op, const Kernels& use, const Multiply& product) {
  const InstructionDescriptor& instruction = op.instruction;
  const uint32_t block = product.k / op.scale_factors;
  alignas(64) float a_scaled[kMaxK * kQuarter];
  alignas(64) float b_scaled[kMaxK * kMaxN];
  Scales a, b;
  bool b_fits = false;
  for (uint32_t first = 0; first < product.m; first += kQuarter) {
    const uint32_t quarter = (op.d.lane + first) / kQuarter;
    a.read(op, op.scale_a, instruction.scale_a_id, quarter, first, kQuarter);
    if (b.read(op, op.scale_b, instruction.scale_b_id, quarter, op.scale_b_first, product.n)) {
      b_fits = scale_panel(product.b, product.n, 0, product.n, product.k, block, b, b_scaled);
    }
    Multiply part = product;
    part.m = kQuarter;
    part.rows = product.rows + first;
    if (scale_panel(product.a, product.m, first, kQuarter, product.k, block, a, a_scaled) && b_fits) {
      part.a = a_scaled;
      part.b = b_scaled;
      use.multiply(part);
    } else {
      part.a = product.a + first;
      multiply_wide(part, product.m, block, a, b);
    }
  }
}

/// The product of a `.ws` of M = 32 or 64: block after block of the columns of B, each to the next M lanes.
void multiply_blocks(const MmaOperation& op, const Kernels& use, const Multiply& product, uint32_t* const* rows) {
  const uint32_t count = column_blocks(op.instruction, true), columns = product.n / count;
  alignas(64) float b[kMaxK * kMaxN / 2];
  for (uint32_t block = 0; block < count; block++) {
    for (uint32_t k = 0; k < product.k; k++) {
      std::memcpy(b + size_t{k} * columns, product.b + size_t{k} * product.n + size_t{block} * columns,
                  columns * sizeof(float));
    }
    Multiply part = product;
    part.b = b;
    part.n = columns;
    part.rows = rows + size_t{block} * product.m;
    use.multiply(part);
  }
}

}  // namespace

void use_base_mma(bool base) { base_only = base; }

std::vector<TensorMemoryBlock> d_blocks(const InstructionDescriptor& instruction, TensorMemoryAddress d,
                                        bool weight_stationary) {
  if (weight_stationary) {
    return {{d.lane, kTensorMemoryLanes, d.column,
             static_cast<uint16_t>(instruction.n / column_blocks(instruction, true))}};
  }
  return blocks(instruction.m, d, instruction.n);
}

std::vector<TensorMemoryBlock> a_blocks(const InstructionDescriptor& instruction, TensorMemoryAddress a) {
  return blocks(instruction.m, a, kColumnsOfA);
}

TensorMemoryBlock scale_block(uint32_t rows, TensorMemoryAddress address) {
  return {0, kTensorMemoryLanes, address.column, static_cast<uint16_t>((rows + kQuarter - 1) / kQuarter)};
}

std::vector<DescriptorProblem> check_scale_factors(const InstructionDescriptor& instruction, TensorMemoryAddress a,
                                                   TensorMemoryAddress b) {
  std::vector<DescriptorProblem> problems;
  check_address(instruction, "the scale factors of A", a, scale_block(instruction.m, a).columns, false, problems);
  check_address(instruction, "the scale factors of B", b, scale_block(instruction.n, b).columns, false, problems);
  return problems;
}

std::vector<DescriptorProblem> check_tensor_memory(const InstructionDescriptor& instruction, TensorMemoryAddress d,
                                                   const TensorMemoryAddress* a, bool weight_stationary) {
  std::vector<DescriptorProblem> problems;
  check_address(instruction, "D", d, instruction.n / column_blocks(instruction, weight_stationary), weight_stationary,
                problems);
  if (a == nullptr) return problems;
  if (weight_stationary && instruction.m != kTensorMemoryLanes) {
    DescriptorProblem p;
    p.field = "lane";
    p.value = a->lane;
    p.rule = fmt::format("the ISA does not say where an A of M = {} is with .ws", instruction.m);
    p.text = fmt::format("tensor memory address of A: {}; here it must be in shared memory", p.rule);
    problems.push_back(std::move(p));
    return problems;
  }
  check_address(instruction, "A", *a, kColumnsOfA, weight_stationary, problems);
  if (problems.empty() && a->lane != d.lane) {
    DescriptorProblem p;
    p.field = "lane";
    p.value = a->lane;
    p.rule = fmt::format("D has lane {}, and both must have the same", d.lane);
    p.text = fmt::format("tensor memory address of A: lane = {}; {}", a->lane, p.rule);
    problems.push_back(std::move(p));
  }
  return problems;
}

void mma(const MmaOperation& op) {
  const InstructionDescriptor& instruction = op.instruction;
  const MmaForm form;
  const Kernels use = kernels();
  alignas(64) float a_panel[kMaxK * kMaxM];
  alignas(64) float b_panel[kMaxK * kMaxN];
  std::vector<uint32_t> units;

  const auto lane_of = [&op](uint32_t rows, uint32_t m) { return op.lanes_in_order ? m : tensor_memory_lane(rows, m); };
  const auto unpack_shared = [&](const std::byte* bytes, const SmemDescriptor& d, const MatrixOperand& operand,
                                 bool negate, float* panel) {
    operand_units(d, operand, units);
    for ([[maybe_unused]] const uint32_t unit : units) assert(uint64_t{unit} + kUnitBytes <= op.shared_bytes);
    unpack_operand(use, instruction.kind, false,
                   {bytes, units.data(), operand.mn_major, operand.type, negate, operand.rows, panel});
  };

  const MatrixOperand a = operand_a(instruction, form);
  if (op.a_in_tensor_memory) {
    // A row is 32 bytes of consecutive cells, which is a K-major row of two units.
    units.resize(size_t{a.rows} * 2);
    for (uint32_t m = 0; m < a.rows; m++) {
      const uint32_t lane = op.a_tensor.lane + lane_of(a.rows, m);
      units[2 * m] = (lane * kTensorMemoryColumns + op.a_tensor.column) * 4;
      units[2 * m + 1] = units[2 * m] + kUnitBytes;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(op.tensor_memory);
    unpack_operand(use, instruction.kind, true,
                   {bytes, units.data(), false, a.type, instruction.negate_a, a.rows, a_panel});
  } else {
    unpack_shared(op.shared, op.a, a, instruction.negate_a, a_panel);
  }
  unpack_shared(op.shared_b != nullptr ? op.shared_b : op.shared, op.b, operand_b(instruction, form),
                instruction.negate_b, b_panel);

  if (op.weight_stationary) {
    for (uint32_t n = 0; n < instruction.n; n++) {
      if ((op.zero_columns[n / 64] >> n % 64 & 1) == 0) continue;
      for (uint32_t k = 0; k < instruction.k(); k++) b_panel[size_t{k} * instruction.n + n] = 0;
    }
  }

  const uint32_t column_blocks_of_d = column_blocks(instruction, op.weight_stationary);
  uint32_t* rows[kMaxM];  // of `.ws`: those of one block of columns behind those of the other
  for (uint32_t m = 0; m < instruction.m * column_blocks_of_d; m++) {
    const uint32_t lane = op.d.lane + (op.weight_stationary ? m : lane_of(instruction.m, m));
    const bool disabled = (op.disable_output_lane[lane / 32] >> lane % 32 & 1u) != 0;
    rows[m] = disabled ? nullptr : op.tensor_memory + size_t{lane} * kTensorMemoryColumns + op.d.column;
  }
  Multiply product;
  product.a = a_panel;
  product.b = b_panel;
  product.m = instruction.m;
  product.n = instruction.n;
  product.k = instruction.k();
  product.rows = rows;
  product.result = result_of(instruction);
  product.accumulate = op.enable_input_d;
  product.scale = std::ldexp(1.0f, -op.scale_input_d);
  if (column_blocks_of_d > 1) {
    multiply_blocks(op, use, product, rows);
  } else if (op.scale_factors == 0) {
    use.multiply(product);
  } else {
    multiply_scaled(op, use, product);
  }
}

}  // namespace handoff::async
