// Tested by tcgen05_pair_test.cc and, with scale factors, mma_narrow_test.cc.
#include "grader/emulator/async/mma_pair.h"

namespace handoff::async {

InstructionDescriptor share_of_pair(const InstructionDescriptor& instruction) {
  InstructionDescriptor share = instruction;
  share.m = 128;
  if (instruction.m == 128) share.n = instruction.n / 2;
  return share;
}

void mma_of_pair(const MmaOperation& operation, const std::array<PairMember, 2>& members) {
  const bool by_lanes = operation.instruction.m == 128;  // layout B
  for (const PairMember& member : members) {
    for (uint16_t half = 0; half < 2; half++) {
      MmaOperation part = operation;
      part.instruction.m = operation.instruction.m / 2;
      part.instruction.n = operation.instruction.n / 2;
      part.shared = member.shared;
      part.shared_b = members[half].shared;
      part.tensor_memory = member.tensor_memory;
      part.disable_output_lane = member.disable_output_lane;
      part.lanes_in_order = true;
      if (by_lanes) {
        part.d.lane = part.a_tensor.lane = static_cast<uint16_t>(64 * half);
      } else {
        part.d.column = static_cast<uint16_t>(operation.d.column + half * part.instruction.n);
        part.scale_b_first = static_cast<uint16_t>(half * part.instruction.n);
      }
      mma(part);
    }
  }
}

}  // namespace handoff::async
