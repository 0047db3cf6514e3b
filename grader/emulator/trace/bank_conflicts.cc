// Tested by bank_conflicts_test.cc, which also compares it with the counters of a GPU.
//
// Shared memory has 32 banks of 4 bytes; word w lies in bank w mod 32, and a bank delivers one word a cycle (CUDA C++
// Programming Guide, "Shared Memory" of compute capability 5.x and later). A wavefront is what the banks do in one
// cycle (Nsight Compute, "Wavefront"). From these the count:
//
//  * The lanes of an access of 8 bytes take turns by half-warps, those of 16 bytes by quarter-warps: a turn moves 128
//    bytes at most. A turn without an active lane costs nothing.
//  * In a turn a word is moved once, however many lanes read it, or bytes of it; of lanes that write one word one
//    wins. The turn takes as many wavefronts as the busiest bank has different words.
//  * Two turns of a load become one where every two active lanes l and l ^ 1, or every two active lanes l and l ^ 2,
//    read the same address: half as many registers are filled. (NVIDIA's forum says so of Volta and Turing, topic
//    77228.) Neither ldmatrix nor stores do that.
//  * Atomics do not share a word: a bank is busy once for each lane.
//
// The minimum is one wavefront a turn. On a GPU l1tex__data_pipe_lsu_wavefronts_mem_shared counts what is taken here
// and l1tex__data_bank_conflicts_pipe_lsu_mem_shared that less the minimum; docs/bank-conflicts.md says how an H200 was
// asked, and what is not modeled.
#include "grader/emulator/trace/bank_conflicts.h"

#include <algorithm>

namespace handoff::trace {
namespace {

using machine::Access;
using machine::kFullMask;
using machine::kWarpSize;
using machine::LaneMask;

constexpr uint32_t kBanks = 32;
constexpr uint32_t kBankBytes = 4;

/// What a turn wants of the banks. Addresses are multiples of the access's width, so that the banks fall into columns
/// of that width and a lane wants all banks of one column.
class Turn {
 public:
  /// A lane wants element `index` of its width, which lies in `column`; lanes that `share` an element are served
  /// together.
  void add(uint32_t column, uint32_t index, bool share) {
    uint32_t* wanted = wanted_[column];
    uint32_t& count = count_[column];
    if (share && std::find(wanted, wanted + count, index) != wanted + count) return;
    wanted[count++] = index;
    ways_ = std::max(ways_, count);
  }
  /// Of the busiest banks.
  uint32_t ways() const { return ways_; }

 private:
  uint32_t ways_ = 0;
  uint32_t count_[kBanks] = {};
  uint32_t wanted_[kBanks][kWarpSize];  // the first count_ are set
};

/// Do all lanes l and l ^ `bit` that are both active have one address?
bool pairs_agree(LaneMask mask, uint32_t bit, const uint64_t* address) {
  for (uint32_t l = 0; l < kWarpSize; l++) {
    const uint32_t other = l ^ bit;
    if (other > l && (mask >> l & 1) != 0 && (mask >> other & 1) != 0 && address[l] != address[other]) return false;
  }
  return true;
}

/// Are the 32 addresses `step` apart, in the order of the lanes?
bool has_step(uint64_t step, const uint64_t* address) {
  uint64_t differs = 0, expected = address[0];
  for (int l = 0; l < kWarpSize; l++, expected += step) differs |= address[l] ^ expected;
  return differs == 0;
}

}  // namespace

SharedOp shared_op(Access::Kind kind, const ptx::Statement& statement) {
  switch (kind) {
    case Access::Kind::Read:
      return statement.opcode.front() == "ldmatrix" ? SharedOp::LoadMatrix : SharedOp::Load;
    case Access::Kind::Write:
      return SharedOp::Store;
    case Access::Kind::Atomic:
    case Access::Kind::Reduction:
      break;
  }
  return SharedOp::Atomic;
}

Wavefronts count_wavefronts(SharedOp op, uint32_t bytes, LaneMask mask, const uint64_t* address) {
  const uint32_t turns = std::max(bytes / kBankBytes, 1u);
  const bool share = op != SharedOp::Atomic;
  // By far the most accesses are of neighbours or of one element.
  if (mask == kFullMask) {
    const uint64_t step = address[1] - address[0];
    if (step == bytes && has_step(step, address)) return {turns, turns, 1};
    if (step == 0 && share && has_step(step, address)) {
      const uint32_t merged = op == SharedOp::Load ? (turns + 1) / 2 : turns;
      return {merged, merged, 1};
    }
  }
  const int shift = __builtin_ctz(turns * kBankBytes);
  const uint32_t column = kBanks / turns - 1;  // mask of an element's index
  const uint32_t lanes_a_turn = kWarpSize / turns;
  const LaneMask lanes = turns == 1 ? kFullMask : (LaneMask{1} << lanes_a_turn) - 1;
  Wavefronts sum;
  for (uint32_t t = 0; t < turns; t++) {
    LaneMask active = lanes << (t * lanes_a_turn) & mask;
    if (op == SharedOp::Load && t % 2 == 0 && t + 1 < turns) {
      const LaneMask both = active | (lanes << ((t + 1) * lanes_a_turn) & mask);
      if (pairs_agree(both, 1, address) || pairs_agree(both, 2, address)) {
        active = both;
        t++;
      }
    }
    if (active == 0) continue;
    Turn turn;
    for (LaneMask left = active; left != 0; left &= left - 1) {
      const auto index = static_cast<uint32_t>(address[__builtin_ctz(left)] >> shift);
      turn.add(index & column, index, share);
    }
    sum.taken += turn.ways();
    sum.minimum++;
    sum.ways = std::max(sum.ways, turn.ways());
  }
  return sum;
}

}  // namespace handoff::trace
