// A decoded instruction and how handlers reach registers.
//
// The register file of a warp is one block of bytes. A 32-bit (or narrower) register is `uint32_t[32]`, one element a
// lane; a 64-bit one `uint64_t[32]`; a 128-bit one `unsigned __int128[32]`; a predicate one `uint32_t`, bit l for lane
// l. Operands are byte offsets into that block. Immediates, parameters' addresses and special registers that do not
// change are slots of the same block, filled before the warp starts: a handler never asks what kind of operand it has.
// Registers of 8 and 16 bits live in 32-bit slots whose upper bits are zero: writers of such registers must keep them
// so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grader/emulator/machine/timing.h"
#include "grader/emulator/ptx/instruction_table.h"

namespace handoff::machine {

inline constexpr int kWarpSize = 32;  ///< threads a warp

/// Bit l: lane l takes part.
using LaneMask = uint32_t;
inline constexpr LaneMask kFullMask = 0xffffffffu;

struct Warp;
struct Inst;

/// Executes one instruction for the lanes of `mask` (never empty). May throw Fault (machine/fault.h).
using Handler = void (*)(Warp& warp, const Inst& inst, LaneMask mask);

inline constexpr uint32_t kNoOperand = 0xffffffffu;

/// Convergence that an instruction asks for before it executes.
inline constexpr uint8_t kSyncNone = 0, kSyncAligned = 1, kSyncMask = 2;

/// One decoded instruction. Field use is the handler's business; these are the conventions:
/// d destination, e second destination (or a fifth source), a b c x sources, in the order of the PTX operands.
struct Inst {
  Handler fn = nullptr;          ///< executes it
  Handler watched_fn = nullptr;  ///< the same for a launch whose accesses are observed; `fn` where that is one for both
  uint32_t guard = kNoOperand;   ///< predicate slot
  /// Destinations: slots.
  ///@{
  uint32_t d = kNoOperand, e = kNoOperand;
  ///@}
  /// Sources: slots, in the order of the PTX operands.
  ///@{
  uint32_t a = kNoOperand, b = kNoOperand, c = kNoOperand, x = kNoOperand;
  ///@}
  uint32_t list = 0;          ///< index of the first entry in Program::operand_pool
  uint16_t list_size = 0;     ///< entries
  uint16_t cost = 1;          ///< issue cycles of the timing model
  uint8_t guard_negated = 0;  ///< 1: `@!p`
  /// May change fragments, block or jump: runs with Fragment::pc up to date, unguarded lanes split off.
  uint8_t ends_slice = 0;
  uint8_t sync = 0;        ///< kSyncNone, kSyncAligned (all live lanes), kSyncMask (lanes of slot x)
  uint8_t sub = 0;         ///< handler-specific selector
  uint8_t width = 0;       ///< handler-specific: access bytes, vector length…
  uint64_t imm = 0;        ///< handler-specific constant
  int64_t offset = 0;      ///< bytes added to an address
  uint32_t target = 0;     ///< branch target (code index)
  uint32_t statement = 0;  ///< index into the function's statements
  uint32_t function = 0;   ///< index into Program::functions
};

/// Registers as arrays over lanes. `regs` is the warp's register file.
template <class T>
inline T* lanes(std::byte* regs, uint32_t offset) {
  return reinterpret_cast<T*>(regs + offset);
}
template <class T>
inline const T* lanes(const std::byte* regs, uint32_t offset) {
  return reinterpret_cast<const T*>(regs + offset);
}

/// Storage class of an operand in bytes a lane: 4, 8 or 16; 0 for a predicate.
using SlotWidth = uint8_t;

/// A decoded memory operand: value of `slot` (32 or 64 bits a lane) + offset, in `space`. Const and the entry's param
/// space have become Global, params of functions Local; Generic is decided lane by lane when it runs.
struct MemoryOperand {
  uint32_t slot = kNoOperand;              ///< holds the base
  int64_t offset = 0;                      ///< bytes added to it
  ptx::Space space = ptx::Space::Generic;  ///< after the folding above
  bool wide = true;                        ///< 64-bit slot
};

/// What a decoder sees: turns operands into slots. Implemented by machine/decode.cc.
class DecodeContext {
 public:
  /// Instructions get the costs of `timing`, which must outlive the context.
  explicit DecodeContext(const TimingModel& timing = kBlackwell) : timing_(timing) {}
  virtual ~DecodeContext() = default;
  /// What instructions cost.
  const TimingModel& timing() const { return timing_; }
  /// Slot of a destination register. A sink `_` gives a scratch slot of `width`.
  virtual uint32_t destination(const ptx::Operand& operand, SlotWidth width) = 0;
  /// Slot of a source: register (its own width), immediate (made a constant of type `type`: floats converted between
  /// f32 and f64 forms as PTX §4.5 says, integers truncated), symbol (its address), special register. `!p` gives the
  /// negation.
  virtual uint32_t source(const ptx::Operand& operand, ptx::Type type) = 0;
  /// Width of the slot that source()/destination() gives for this operand (immediates: of `type`).
  virtual SlotWidth width(const ptx::Operand& operand, ptx::Type type) = 0;
  /// Is the operand an 8- or 16-bit register, whose slot must keep its upper bits zero?
  virtual bool narrow(const ptx::Operand& operand) = 0;
  /// A slot whose every lane holds `value` (width 4 or 8).
  virtual uint32_t constant(uint64_t value, SlotWidth width) = 0;
  /// Puts offsets into the operand pool and returns the index of the first.
  virtual uint32_t pool(const std::vector<uint32_t>& offsets) = 0;
  /// The memory operand `[base+offset]` of an instruction that names `space` (Generic where it names none).
  virtual MemoryOperand address(const ptx::Operand& operand, ptx::Space space) = 0;
  /// The predicate slot of the condition code register CC.CF (addc, subc, madc).
  virtual uint32_t carry() = 0;

 private:
  const TimingModel& timing_;
};

/// Turns a resolved statement into `inst` (fn and operands; guard, target, cost defaults are set by the caller).
/// Returns an empty string, or why this form is not supported.
using Decoder = std::string (*)(DecodeContext& context, const ptx::Resolved& resolved, const ptx::Statement& statement,
                                Inst* inst);

/// Decoder attached to each Op; nullptr where none. Filled by register_*_decoders functions of machine/ and async/.
struct DecoderTable {
  /// Indexed by Op; use operator[].
  Decoder decoders[static_cast<size_t>(ptx::Op::Count)] = {};
  /// Decoder of `op`, to be set.
  Decoder& operator[](ptx::Op op) { return decoders[static_cast<size_t>(op)]; }
  /// Decoder of `op`, nullptr where none is registered.
  Decoder operator[](ptx::Op op) const { return decoders[static_cast<size_t>(op)]; }
};

/// Arithmetic, conversion, bit, predicate and select instructions (machine/alu*.cc): everything that reads and writes
/// registers of its own lane only.
void register_alu_decoders(DecoderTable& table);

}  // namespace handoff::machine
