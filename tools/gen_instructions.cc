// Writes docs/instructions.md from the table of instructions and the decoders attached to it.
//
//   gen_instructions FILE           compares FILE with what it would write; status 1 and one line where they differ
//   gen_instructions --write FILE   writes FILE
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "grader/emulator/emulator.h"
#include "grader/emulator/ptx/instruction_table.h"

namespace handoff {
namespace {

/// A heading of the page and the sections of the PTX manual that it covers.
struct Family {
  std::string_view section;  // and all below it that no longer one covers
  std::string_view title;
};

// Asynchronous copies and mbarrier stand in the manual below data movement and synchronization; here they are families
// of their own.
constexpr Family kFamilies[] = {
    {"9.7.1", "Integer arithmetic"},
    {"9.7.2", "Extended-precision integer arithmetic"},
    {"9.7.3", "Floating point"},
    {"9.7.4", "Half precision floating point"},
    {"9.7.5", "Mixed precision floating point"},
    {"9.7.6", "Comparison and selection"},
    {"9.7.7", "Half precision comparison"},
    {"9.7.8", "Logic and shift"},
    {"9.7.9", "Data movement and conversion"},
    {"9.7.9.25", "Asynchronous copies"},
    {"9.7.9.27", "Tensor copies"},
    {"9.7.12", "Control flow"},
    {"9.7.13", "Synchronization and communication"},
    {"9.7.13.15", "mbarrier"},
    {"9.7.14", "Matrices of a warp"},
    {"9.7.16", "Tensor memory and tcgen05"},
    {"9.7.18", "Stack"},
    {"9.7.19", "Miscellaneous"},
};

bool covers(std::string_view section, std::string_view part) {
  return part.substr(0, section.size()) == section && (part.size() == section.size() || part[section.size()] == '.');
}

/// The family of a row: the one with the longest section; nullptr if none covers it.
const Family* family_of(const ptx::InstructionSpec& spec) {
  const Family* best = nullptr;
  for (const Family& f : kFamilies) {
    if (covers(f.section, spec.section) && (best == nullptr || f.section.size() > best->section.size())) best = &f;
  }
  return best;
}

/// The pieces of `text` between separators, blanks around them removed.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    std::string_view piece = text.substr(0, end);
    while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
    while (!piece.empty() && piece.back() == ' ') piece.remove_suffix(1);
    if (!piece.empty()) pieces.emplace_back(piece);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return pieces;
}

std::string code(std::string_view text) { return std::string("`").append(text).append("`"); }

/// "`{.rn .rz}` `.approx`": a group a code span. A '|' would end a table's cell.
std::string modifiers(const ptx::InstructionSpec& spec) {
  std::string out;
  for (std::string group : split(spec.modifiers, ' ')) {
    for (char& c : group) c = c == '|' ? ' ' : c;
    out += ' ';
    out += code(group);
  }
  return out;
}

/// "`f32 f64` then `s32 u32`", "or none" behind a position that may be missing.
std::string types(const ptx::InstructionSpec& spec) {
  std::string out;
  for (const std::string& position : split(spec.types, '/')) {
    const bool optional = position.front() == '?';
    if (!out.empty()) out += " then ";
    out += code(std::string_view(position).substr(optional ? 1 : 0));
    if (optional) out += " or none";
  }
  return out.empty() ? "–" : out;
}

std::string operands(const ptx::InstructionSpec& spec) {
  if (spec.operands.empty()) return "–";
  if (spec.operands == "*") return "any";
  std::string out;
  for (const std::string& operand : split(spec.operands, ',')) {
    if (!out.empty()) out += ", ";
    std::string alternatives;
    for (const std::string& part : split(operand, '|'))
      alternatives += (alternatives.empty() ? "" : "\\|") + code(part);
    out += alternatives;
  }
  return out;
}

constexpr std::string_view kPreamble = R"(# Supported instructions

Written by `gen_instructions` from the emulator's table of instructions. Sections are those of the PTX ISA manual 9.1.

* **instruction**: the name, then the modifiers it takes, in any order. Of the alternatives in one box exactly one is written, `{in braces}` at
  most one.
* **types**: the types at each position, in order.
* **operands**: by role. `d` is written, all others are read; `[a]` is an address, `d`\|`p` a pair of destinations, and what ends in `?` may be left out.
* **executed**: *yes*: the emulator executes it. *no*: it is parsed, and a kernel that reaches it stops with a message that names it.

A form of an executed instruction that the emulator does not take (a scope, a size, an operand) is refused by name in the same way. Instructions
that are not listed are parsed too, and never executed.
)";

/// The page; a line for standard error and an empty page where a row belongs to no family.
std::string page() {
  const machine::DecoderTable& decoders = all_decoders();
  size_t rows = 0, executed = 0;
  std::string tables;
  for (const Family& family : kFamilies) {
    std::string lines;
    for (const ptx::InstructionSpec& spec : ptx::instruction_table()) {
      const Family* owner = family_of(spec);
      if (owner == nullptr) {
        std::fprintf(stderr, "gen_instructions: no family covers §%s of %s; add one to kFamilies\n",
                     std::string(spec.section).c_str(), std::string(spec.name).c_str());
        return {};
      }
      if (owner != &family) continue;
      // call has no decoder of its own: what it needs from the functions around it, machine/program.cc does.
      const bool has_decoder = decoders[spec.op] != nullptr || spec.op == ptx::Op::Call;
      rows++;
      if (has_decoder) executed++;
      for (const std::string& cell : {code(spec.name) + modifiers(spec), types(spec), operands(spec),
                                      std::string("§").append(spec.section), std::string(has_decoder ? "yes" : "no")}) {
        lines += "| ";
        lines += cell;
        lines += ' ';
      }
      lines += "|\n";
    }
    if (lines.empty()) continue;
    tables += "\n## ";
    tables += family.title;
    tables += "\n\n| instruction | types | operands | PTX section | executed |\n|---|---|---|---|---|\n";
    tables += lines;
  }
  return std::string(kPreamble) + "\n" + std::to_string(rows) + " rows; " + std::to_string(executed) +
         " of them are executed.\n" + tables;
}

int usage() {
  std::fputs("usage: gen_instructions [--write] FILE\n", stderr);
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  const bool write = !arguments.empty() && arguments.front() == "--write";
  if (arguments.size() != (write ? 2u : 1u)) return usage();
  const std::string& path = arguments.back();
  const std::string wanted = page();
  if (wanted.empty()) return 2;
  if (write) {
    std::ofstream out(path, std::ios::binary);
    out << wanted;
    if (out.flush()) return 0;
    std::fprintf(stderr, "gen_instructions: cannot write %s\n", path.c_str());
    return 2;
  }
  std::ifstream in(path, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(in), {}};
  if (found == wanted) return 0;
  std::fprintf(stderr, "%s is out of date: run gen_instructions --write %s in the build folder\n", path.c_str(),
               path.c_str());
  return 1;
}

}  // namespace
}  // namespace handoff

int main(int argc, char** argv) { return handoff::run({argv + 1, argv + argc}); }
