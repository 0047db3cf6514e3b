// Tested by instruction_table_test.cc.
//
// The rows are text in the manual's own syntax; this file compiles each once, on first use, and matches opcodes against
// them. A match is by sets: every part of the opcode after the row's name is a modifier of one of the row's groups, or
// the next type in order. Rows with the longest name are tried first; if none of them fits, those with a shorter one.
// The explanation given on failure comes from the row that got furthest.
#include "grader/emulator/ptx/instruction_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace handoff::ptx {
namespace {

constexpr InstructionSpec kTable[] = {
// In the order of the manual, which the page of instructions keeps.
// clang-format off
#include "grader/emulator/ptx/table_scalar.inc"
#include "grader/emulator/ptx/table_memory.inc"
#include "grader/emulator/ptx/table_async.inc"
#include "grader/emulator/ptx/table_tensor.inc"
#include "grader/emulator/ptx/table_tcgen05.inc"
#include "grader/emulator/ptx/table_matrix.inc"
    // clang-format on
};

constexpr size_t kMaxNameParts = 5;
constexpr size_t kAnyOperands = static_cast<size_t>(-1);

struct Group {
  std::vector<std::string_view> choices;  // without dots
  bool optional = false;
};

struct TypePosition {
  uint64_t allowed = 0;  // bit t: Type t
  bool optional = false;
};
static_assert(static_cast<size_t>(Type::S16x2) < 64);

struct Row {
  const InstructionSpec* spec = nullptr;
  std::vector<Group> groups;
  std::vector<TypePosition> types;
  size_t min_operands = 0, max_operands = 0;
};

/// Calls `use` with each piece of `text` between separators, blanks around it removed.
template <class Use>
void split(std::string_view text, char separator, Use use) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    std::string_view piece = text.substr(0, end);
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
    if (!piece.empty()) use(piece);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

Row compile(const InstructionSpec& spec) {
  Row row;
  row.spec = &spec;
  split(spec.modifiers, ' ', [&row](std::string_view text) {
    Group group;
    if (text.front() == '{') {
      group.optional = true;
      text = text.substr(1, text.size() - 2);
    }
    split(text, '|', [&group](std::string_view choice) { group.choices.push_back(choice.substr(1)); });
    row.groups.push_back(std::move(group));
  });
  split(spec.types, '/', [&row](std::string_view text) {
    TypePosition position;
    if (text.front() == '?') {
      position.optional = true;
      text.remove_prefix(1);
    }
    split(text, ' ', [&position](std::string_view type) {
      position.allowed |= 1ull << static_cast<unsigned>(type_from_string(type));
    });
    row.types.push_back(position);
  });
  if (spec.operands == "*") {
    row.max_operands = kAnyOperands;
  } else {
    split(spec.operands, ',', [&row](std::string_view operand) {
      ++row.max_operands;
      if (operand.back() != '?') ++row.min_operands;
    });
  }
  return row;
}

/// Rows by name, in table order.
using Index = std::unordered_map<std::string_view, std::vector<Row>>;

const Index& index() {
  static const Index kIndex = [] {
    Index rows;
    for (const InstructionSpec& spec : kTable) rows[spec.name].push_back(compile(spec));
    return rows;
  }();
  return kIndex;
}

std::string listed(const std::vector<std::string_view>& choices) {
  std::string out;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) out += i + 1 == choices.size() ? " or " : ", ";
    out += '.';
    out += choices[i];
  }
  return out;
}

std::string counted(size_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

/// Matches the parts of `statement.opcode` from `first` on. On failure, if `explain`, fills `problem` and says how far
/// it got. The words cost far more than the match, and most rows of a name with many are tried in vain.
bool match(const Row& row, const Statement& statement, size_t first, bool explain, Resolved* out, size_t* progress) {
  const std::string name(explain ? row.spec->name : std::string_view());
  // Bit g: group g has been used. No row has more than 64 groups.
  uint64_t used = 0;
  size_t next_type = 0;
  out->types.clear();
  out->modifiers.clear();
  *progress = 0;
  for (size_t i = first; i < statement.opcode.size(); ++i, ++*progress) {
    const std::string_view part = statement.opcode[i];
    int taken_group = -1;
    int clash = -1;
    for (size_t g = 0; g < row.groups.size() && taken_group < 0; ++g) {
      const auto& choices = row.groups[g].choices;
      if (std::find(choices.begin(), choices.end(), part) == choices.end()) continue;
      if (used >> g & 1) {
        clash = static_cast<int>(g);
      } else {
        taken_group = static_cast<int>(g);
      }
    }
    if (taken_group >= 0) {
      used |= 1ull << taken_group;
      out->modifiers.push_back(part);
      continue;
    }
    if (clash >= 0) {
      if (!explain) return false;
      out->problem = name + " takes only one of " + listed(row.groups[static_cast<size_t>(clash)].choices);
      return false;
    }
    const Type type = type_from_string(part);
    if (type == Type::None) {
      if (!explain) return false;
      out->problem = name + " does not take modifier '." + std::string(part) + "'";
      return false;
    }
    while (next_type < row.types.size() && (row.types[next_type].allowed >> static_cast<unsigned>(type) & 1) == 0 &&
           row.types[next_type].optional) {
      ++next_type;
    }
    if (next_type == row.types.size() || (row.types[next_type].allowed >> static_cast<unsigned>(type) & 1) == 0) {
      if (!explain) return false;
      out->problem = name + " does not take type '." + std::string(part) + "'" +
                     (out->types.empty() ? "" : " as type " + std::to_string(out->types.size() + 1));
      return false;
    }
    ++next_type;
    out->types.push_back(type);
  }
  for (size_t g = 0; g < row.groups.size(); ++g) {
    if (row.groups[g].optional || used >> g & 1) continue;
    if (!explain) return false;
    const auto& choices = row.groups[g].choices;
    out->problem = name + (choices.size() == 1 ? " needs " : " needs one of ") + listed(choices);
    return false;
  }
  for (; next_type < row.types.size(); ++next_type) {
    if (row.types[next_type].optional) continue;
    if (!explain) return false;
    out->problem = name + (out->types.empty() ? " needs a type" : " needs another type");
    return false;
  }
  ++*progress;
  const size_t operands = statement.operands.size();
  if (operands < row.min_operands || operands > row.max_operands) {
    if (!explain) return false;
    const bool few = operands < row.min_operands;
    out->problem = name + " takes " +
                   (row.min_operands == row.max_operands ? ""
                    : few                                ? "at least "
                                                         : "at most ") +
                   counted(few ? row.min_operands : row.max_operands, "operand") + ", got " + std::to_string(operands);
    return false;
  }
  out->spec = row.spec;
  return true;
}

}  // namespace

std::string_view to_string(Op op) {
  static constexpr std::string_view kNames[] = {
      "Unsupported",
#define HANDOFF_OP(name) #name,
#include "grader/emulator/ptx/ops.inc"
#undef HANDOFF_OP
  };
  static_assert(std::size(kNames) == static_cast<size_t>(Op::Count));
  return op < Op::Count ? kNames[static_cast<size_t>(op)] : "Unsupported";
}

std::span<const InstructionSpec> instruction_table() { return kTable; }

bool Resolved::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

Space Resolved::space(size_t i) const {
  for (std::string_view modifier : modifiers) {
    Space space = Space::None;
    if (modifier == "global") space = Space::Global;
    if (modifier == "const") space = Space::Const;
    if (modifier == "param" || modifier == "param::entry" || modifier == "param::func") space = Space::Param;
    if (modifier == "local") space = Space::Local;
    if (modifier == "shared") space = Space::Shared;
    if (modifier == "shared::cta") space = Space::SharedCta;
    if (modifier == "shared::cluster") space = Space::SharedCluster;
    if (space == Space::None) continue;
    if (i == 0) return space;
    --i;
  }
  return Space::Generic;
}

Resolved resolve(const Statement& statement) {
  // The opcode's first parts joined, and where each prefix of them ends.
  std::string joined;
  std::array<size_t, kMaxNameParts> ends;
  size_t parts = 0;
  for (const std::string& part : statement.opcode) {
    if (parts == kMaxNameParts) break;
    if (parts > 0) joined += '.';
    joined += part;
    ends[parts++] = joined.size();
  }
  Resolved best;
  size_t progress = 0;
  for (size_t length = parts; length > 0; --length) {
    const auto found = index().find(std::string_view(joined).substr(0, ends[length - 1]));
    if (found == index().end()) continue;
    for (const Row& row : found->second) {
      if (match(row, statement, length, false, &best, &progress)) return best;
    }
  }
  size_t furthest = 0;
  for (size_t length = parts; length > 0; --length) {
    const auto found = index().find(std::string_view(joined).substr(0, ends[length - 1]));
    if (found == index().end()) continue;
    for (const Row& row : found->second) {
      Resolved candidate;
      match(row, statement, length, true, &candidate, &progress);
      // Counted in parts of the opcode; a row whose every part fits but for something missing beats one that rejects a
      // part.
      progress += length;
      if (best.problem.empty() || progress > furthest) {
        furthest = progress;
        best.problem = std::move(candidate.problem);
      }
    }
  }
  best.types.clear();
  best.modifiers.clear();
  if (best.problem.empty()) {
    // Of a family (mbarrier, fence …) the first word alone would mislead: it is the second that is unknown.
    const std::string first = parts > 0 ? statement.opcode[0] : std::string();
    const bool family = std::any_of(std::begin(kTable), std::end(kTable), [&first](const InstructionSpec& spec) {
      return spec.name.size() > first.size() && spec.name.substr(0, first.size()) == first &&
             spec.name[first.size()] == '.';
    });
    best.problem = "unknown opcode '" + (family && parts > 1 ? first + "." + statement.opcode[1] : first) + "'";
  }
  return best;
}

bool is_destination(const InstructionSpec& spec, size_t operand_index) {
  bool destination = false;
  size_t i = 0;
  split(spec.operands, ',', [&](std::string_view operand) {
    if (i++ != operand_index) return;
    destination = operand.front() == 'd' || (operand.size() > 1 && operand.front() == '{' && operand[1] == 'd');
  });
  return destination;
}

}  // namespace handoff::ptx
