// Chooses the variant, finds the operands, and lays rows of D into tensor memory. Tested by mma_compute_test.cc.
#include "grader/emulator/async/mma_compute.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cassert>
#include <cmath>
#include <utility>

#include "grader/emulator/async/mma_kernels.h"

namespace handoff::async {
namespace {

constexpr uint32_t kMaxM = 128, kMaxN = 256, kMaxK = 16;
constexpr uint32_t kUnitBytes = 16;
constexpr uint32_t kColumnsOfA = 8;  // 32 bytes of K

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

void check_address(const InstructionDescriptor& instruction, const char* name, TensorMemoryAddress address,
                   uint32_t columns, std::vector<DescriptorProblem>& problems) {
  const auto add = [&](const char* field, uint32_t value, std::string rule) {
    DescriptorProblem p;
    p.field = field;
    p.value = value;
    p.text = fmt::format("tensor memory address of {}: {} = {}; {}", name, field, value, rule);
    p.rule = std::move(rule);
    problems.push_back(std::move(p));
  };
  const bool half_the_lanes = instruction.m == 64;
  if (address.lane != 0 && !(half_the_lanes && address.lane == 16)) {
    add("lane", address.lane, fmt::format("M = {} takes lane {}", instruction.m, half_the_lanes ? "0 or 16" : "0"));
  }
  if (address.column + columns > kTensorMemoryColumns) {
    add("column", address.column,
        fmt::format("the {} columns from there on end beyond the {} of tensor memory", columns, kTensorMemoryColumns));
  }
}

}  // namespace

void use_base_mma(bool base) { base_only = base; }

std::vector<TensorMemoryBlock> d_blocks(const InstructionDescriptor& instruction, TensorMemoryAddress d) {
  return blocks(instruction.m, d, instruction.n);
}

std::vector<TensorMemoryBlock> a_blocks(const InstructionDescriptor& instruction, TensorMemoryAddress a) {
  return blocks(instruction.m, a, kColumnsOfA);
}

std::vector<DescriptorProblem> check_tensor_memory(const InstructionDescriptor& instruction, TensorMemoryAddress d,
                                                   const TensorMemoryAddress* a) {
  std::vector<DescriptorProblem> problems;
  check_address(instruction, "D", d, instruction.n, problems);
  if (a == nullptr) return problems;
  check_address(instruction, "A", *a, kColumnsOfA, problems);
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

  const auto unpack_shared = [&](const SmemDescriptor& d, const MatrixOperand& operand, bool negate, float* panel) {
    operand_units(d, operand, units);
    for ([[maybe_unused]] const uint32_t unit : units) assert(uint64_t{unit} + kUnitBytes <= op.shared_bytes);
    use.unpack({op.shared, units.data(), operand.mn_major, operand.type, negate, operand.rows, panel});
  };

  const MatrixOperand a = operand_a(instruction, form);
  if (op.a_in_tensor_memory) {
    // A row is 32 bytes of consecutive cells, which is a K-major row of two units.
    units.resize(size_t{a.rows} * 2);
    for (uint32_t m = 0; m < a.rows; m++) {
      const uint32_t lane = op.a_tensor.lane + tensor_memory_lane(a.rows, m);
      units[2 * m] = (lane * kTensorMemoryColumns + op.a_tensor.column) * 4;
      units[2 * m + 1] = units[2 * m] + kUnitBytes;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(op.tensor_memory);
    use.unpack({bytes, units.data(), false, a.type, instruction.negate_a, a.rows, a_panel});
  } else {
    unpack_shared(op.a, a, instruction.negate_a, a_panel);
  }
  unpack_shared(op.b, operand_b(instruction, form), instruction.negate_b, b_panel);

  uint32_t* rows[kMaxM];
  for (uint32_t m = 0; m < instruction.m; m++) {
    const uint32_t lane = op.d.lane + tensor_memory_lane(instruction.m, m);
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
  product.half = instruction.d_type == MmaType::F16;
  product.accumulate = op.enable_input_d;
  product.scale = std::ldexp(1.0f, -op.scale_input_d);
  use.multiply(product);
}

}  // namespace handoff::async
