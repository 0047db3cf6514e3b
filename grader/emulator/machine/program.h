// A kernel made ready to run: decoded code of the entry and of every function it can reach, register file layout,
// shared and local memory layout.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grader/emulator/machine/diagnostic.h"
#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/machine/memory.h"
#include "grader/emulator/machine/timing.h"
#include "grader/emulator/ptx/module.h"

namespace handoff::machine {

/// Special registers that keep their value during a launch; each used one has a slot filled at warp start.
enum class SpecialRegister : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  TotalSmemSize,
  DynamicSmemSize,
  AggrSmemSize,
  ReservedSmemBegin,
  Envreg0,
  Envreg1,
  Envreg2,
};

/// A named piece of shared memory.
struct SharedSymbol {
  std::string name;      ///< as the learner wrote it ("full"), demangled
  std::string ptx_name;  ///< as in the PTX, mangled
  uint32_t offset = 0;   ///< shared::cta offset, bytes
  uint64_t size = 0;     ///< 0: dynamic, up to the end
  bool dynamic = false;  ///< extern: its size comes with the launch
};

/// A kernel parameter.
struct Parameter {
  std::string name;  ///< as in the PTX
  /// Bytes, within the parameter block.
  ///@{
  uint32_t offset = 0, size = 0;
  ///@}
};

/// A register slot that a loop carries: live at the loop's head and written in its body.
struct CarriedSlot {
  uint32_t offset;  ///< in the register file, bytes
  SlotWidth width;  ///< bytes a lane, 0 for a predicate
};

/// What the spin detector needs to know of a backward branch.
struct LoopInfo {
  std::vector<CarriedSlot> carried;  ///< a loop in which none of these changes repeats itself
};

/// The decoded kernel. Immutable once decoded; outlived by the module it came from.
struct Program {
  const ptx::Module* module = nullptr;          ///< where it came from
  std::string name;                             ///< of the entry, as in the PTX
  std::vector<const ptx::Function*> functions;  ///< [0] is the entry
  std::vector<Inst> code;                       ///< of all functions, one after the other
  std::vector<uint32_t> operand_pool;           ///< slots of operands in lists (Inst::list)
  std::vector<std::byte> register_template;     ///< initial register file of a warp; its size is a warp's
  /// A special register's slot.
  struct Special {
    SpecialRegister which;  ///< the register
    uint32_t offset;        ///< in the register file, bytes
  };
  std::vector<Special> specials;  ///< those that the code reads
  /// A constant that holds the address of a shared variable: each CTA of a cluster has its own window.
  struct SharedConstant {
    uint32_t offset;  ///< in the register file, bytes
    SlotWidth width;  ///< bytes a lane
  };
  std::vector<SharedConstant> shared_constants;  ///< as written for the CTA of rank 0
  std::unordered_map<uint32_t, LoopInfo> loops;  ///< by code index of the backward branch
  std::vector<std::string> unsupported;          ///< reasons, indexed by Inst::imm of an unsupported instruction
  uint32_t local_bytes = 0;                      ///< of each thread
  uint32_t static_smem = 0;                      ///< bytes above kSharedBase
  uint32_t dynamic_smem_offset = 0;              ///< where extern shared arrays start
  std::vector<SharedSymbol> shared_symbols;      ///< sorted by offset
  std::vector<Parameter> parameters;             ///< in order
  uint32_t param_bytes = 0;                      ///< size of the parameter block
  uint64_t param_address = 0;                    ///< device address of the parameter block
  std::string main_file;                         ///< the learner's file, as named in the PTX

  /// The PTX statement that an instruction was decoded from.
  const ptx::Statement& statement(const Inst& inst) const {
    return functions[inst.function]->statements[inst.statement];
  }
  /// The learner's own line for an instruction: the innermost place of the inlining chain that lies in the main file.
  SourcePlace place(const Inst& inst) const;
  /// "full", "tile[12]" (byte offsets are "tile+48"), or "shared offset 0x480".
  std::string describe_shared(uint32_t offset) const;
  /// The symbol whose bytes include a shared::cta offset; nullptr if none.
  const SharedSymbol* find_shared(uint32_t offset) const;
};

/// A module placed in memory: globals and constants allocated and initialised.
class LoadedModule {
 public:
  /// Parses `ptx` and places its variables; kernels are decoded with the costs of `timing`, which must outlive the
  /// module. On failure returns nullptr and `error` holds one line.
  static std::unique_ptr<LoadedModule> load(const std::string& ptx, GlobalMemory& memory, const DecoderTable& decoders,
                                            std::string* error, const TimingModel& timing = kBlackwell);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  /// The parsed text.
  const ptx::Module& module() const { return module_; }
  /// Names of the entries.
  std::vector<std::string> entries() const;
  /// Decodes (once) the entry `name`; nullptr if there is none.
  const Program* kernel(std::string_view name);
  /// Device address and size of a module variable.
  struct Symbol {
    /// Device address; bytes.
    ///@{
    uint64_t address = 0, size = 0;
    ///@}
  };
  /// The module variable with this PTX name; nullopt if there is none.
  std::optional<Symbol> symbol(std::string_view name) const;

 private:
  LoadedModule(GlobalMemory& memory, const DecoderTable& decoders, const TimingModel& timing)
      : memory_(memory), decoders_(decoders), timing_(timing) {}
  GlobalMemory& memory_;
  const DecoderTable& decoders_;
  const TimingModel& timing_;
  ptx::Module module_;
  std::unordered_map<std::string, Symbol> symbols_;
  std::unordered_map<std::string, std::unique_ptr<Program>> kernels_;
};

/// Decodes one kernel. `symbols` gives addresses of module variables, `timing` the costs that instructions carry.
std::unique_ptr<Program> decode_kernel(const ptx::Module& module, const ptx::Function& entry,
                                       const std::unordered_map<std::string, LoadedModule::Symbol>& symbols,
                                       const DecoderTable& decoders, GlobalMemory& memory,
                                       const TimingModel& timing = kBlackwell);

/// All decoders of the machine layer: ALU, memory, control.
void register_machine_decoders(DecoderTable& table);
/// Loads, stores, atomics, address conversion (memory_ops.cc).
void register_memory_decoders(DecoderTable& table);
/// Branches, calls, barriers, votes, shuffles, fences (control_ops.cc).
void register_control_decoders(DecoderTable& table);

}  // namespace handoff::machine
