// libFuzzer target: whatever the bytes, parsing and resolving must neither crash nor hang, and a refusal must name its
// place. Seeds: corpus/. Run: parser_fuzz -max_len=4096 corpus
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "grader/emulator/ptx/instruction_table.h"
#include "grader/emulator/ptx/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace handoff::ptx;
  Module module;
  ParseError error;
  if (!parse({reinterpret_cast<const char*>(data), size}, &module, &error)) {
    if (error.line == 0 || error.column == 0 || error.message.empty()) std::abort();
    return 0;
  }
  for (const Function& function : module.functions) {
    for (const Statement& statement : function.statements) {
      const Resolved resolved = resolve(statement);
      if ((resolved.spec == nullptr) == resolved.problem.empty()) std::abort();
      // What readers rely on: indices stay within their tables.
      if (statement.location >= static_cast<int32_t>(module.locations.size())) std::abort();
      if (statement.guard >= static_cast<int32_t>(function.registers.size())) std::abort();
      for (const Operand& operand : statement.operands) {
        if (operand.kind == Operand::Kind::Label && operand.target >= function.statements.size()) std::abort();
        if (operand.kind == Operand::Kind::Register && operand.reg >= function.registers.size()) std::abort();
      }
    }
  }
  for (size_t i = 0; i < module.locations.size(); ++i) {
    // A chain leads to earlier entries only, or it might never end.
    if (module.locations[i].inlined_at >= static_cast<int32_t>(i)) std::abort();
  }
  return 0;
}
