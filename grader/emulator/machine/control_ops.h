// Handlers that the decoder itself places in the code: control flow, calls, clock reads, unsupported instructions.
#pragma once

#include <string_view>

#include "grader/emulator/machine/instruction.h"

namespace handoff::machine {

/// bra: `target` is the code index. The interpreter executes it in its own loop; the handler is called when lanes
/// diverge.
void branch(Warp& w, const Inst& i, LaneMask mask);
/// brx.idx: a = index slot, list = targets.
void branch_indexed(Warp& w, const Inst& i, LaneMask mask);
/// call of a .func with a body: target = code index of its first instruction.
void call_function(Warp& w, const Inst& i, LaneMask mask);
/// ret: from a function to its caller, from the kernel ends the lanes.
void return_from_function(Warp& w, const Inst& i, LaneMask mask);
/// Copies imm bytes of local memory from offset a to offset d.
void copy_local(Warp& w, const Inst& i, LaneMask mask);
/// Faults with the reason Program::unsupported[imm].
void unsupported_instruction(Warp& w, const Inst& i, LaneMask mask);
/// d = !a for predicates.
void negate_predicate(Warp& w, const Inst& i, LaneMask mask);
/// %clock, %clock64, %globaltimer: sub bit 0 = globaltimer, bit 1 = upper half.
void read_clock(Warp& w, const Inst& i, LaneMask mask);
/// Handler of a function without a body that the device runtime provides (vprintf, __assertfail), or nullptr.
/// list: local offsets of the arguments, then of the return value.
Handler builtin_function(std::string_view name);

}  // namespace handoff::machine
