#include "grader/emulator/ptx/module.h"

#include <algorithm>
#include <array>

namespace handoff::ptx {
namespace {

struct TypeInfo {
  std::string_view name;
  uint8_t size;
};

/// In the order of the enum.
constexpr std::array<TypeInfo, 38> kTypes = {{
    {"none", 0},    {"pred", 0},   {"b8", 1},     {"b16", 2},    {"b32", 4},    {"b64", 8},    {"b128", 16},
    {"u8", 1},      {"u16", 2},    {"u32", 4},    {"u64", 8},    {"s8", 1},     {"s16", 2},    {"s32", 4},
    {"s64", 8},     {"f16", 2},    {"f16x2", 4},  {"bf16", 2},   {"bf16x2", 4}, {"tf32", 4},   {"f32", 4},
    {"f32x2", 8},   {"f64", 8},    {"e4m3x2", 2}, {"e5m2x2", 2}, {"e2m1x2", 1}, {"e2m3x2", 2}, {"e3m2x2", 2},
    {"ue8m0x2", 2}, {"e4m3x4", 4}, {"e5m2x4", 4}, {"e2m1x4", 2}, {"e2m3x4", 4}, {"e3m2x4", 4}, {"e4m3", 1},
    {"e5m2", 1},    {"u16x2", 4},  {"s16x2", 4},
}};
static_assert(static_cast<size_t>(Type::S16x2) == 37);

}  // namespace

void Opcode::push_back(std::string part) {
  Parts parts = parts_ ? *parts_ : Parts();
  parts.push_back(std::move(part));
  parts_ = std::make_shared<const Parts>(std::move(parts));
}

Operands::Operands(std::vector<Operand> operands) : size_(static_cast<uint32_t>(operands.size())), owned_(true) {
  data_ = new Operand[size_];
  std::move(operands.begin(), operands.end(), data_);
}

Operands::Operands(const Operands& other) : size_(other.size_), owned_(other.size_ > 0) {
  if (!owned_) return;
  data_ = new Operand[size_];
  std::copy(other.begin(), other.end(), data_);
}

void Operands::free_own() { delete[] data_; }

size_t size_of(Type t) { return kTypes[static_cast<size_t>(t)].size; }

std::string_view to_string(Type t) { return kTypes[static_cast<size_t>(t)].name; }

Type type_from_string(std::string_view text) {
  // "none" is no spelling of a type.
  for (size_t i = 1; i <= static_cast<size_t>(Type::S16x2); ++i) {
    if (kTypes[i].name == text) return static_cast<Type>(i);
  }
  return Type::None;
}

std::string_view to_string(Space s) {
  switch (s) {
    case Space::None:
      return "none";
    case Space::Generic:
      return "generic";
    case Space::Reg:
      return "reg";
    case Space::Global:
      return "global";
    case Space::Const:
      return "const";
    case Space::Param:
      return "param";
    case Space::Local:
      return "local";
    case Space::Shared:
      return "shared";
    case Space::SharedCta:
      return "shared::cta";
    case Space::SharedCluster:
      return "shared::cluster";
  }
  return "none";
}

const Function* Module::find_function(std::string_view name) const {
  if (const auto alias = aliases.find(std::string(name)); alias != aliases.end()) name = alias->second;
  const Function* declaration = nullptr;
  for (const Function& function : functions) {
    if (function.name != name) continue;
    if (function.has_body) return &function;
    if (!declaration) declaration = &function;
  }
  return declaration;
}

const Variable* Module::find_variable(std::string_view name) const {
  // A definition is preferred to an earlier `.extern` declaration of the same name.
  const Variable* declaration = nullptr;
  for (const Variable& variable : variables) {
    if (variable.name != name) continue;
    if (!variable.external) return &variable;
    if (!declaration) declaration = &variable;
  }
  return declaration;
}

}  // namespace handoff::ptx
