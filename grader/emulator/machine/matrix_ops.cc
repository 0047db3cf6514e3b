// Tested by matrix_ops_test.cc.
//
// ldmatrix, stmatrix and movmatrix (PTX §9.7.14.5.15-17): matrices between shared memory and the registers of a warp,
// in the layout that mma takes.
//
// A matrix lies in shared memory as rows of 16 bytes, each wherever the lane that supplies its address says: lane 8·j +
// r the row r of the 8-row matrix j, lane 16·j + r of a 16-row one. In registers it is spread over the warp: four lanes
// in turn hold a row between them. With lane t = 4·g + q (g = 0 … 7, q = 0 … 3) and rows as they lie in memory:
//
//   .m8n8.b16           register j: elements 2q, 2q + 1 of row g
//   .m8n8.trans.b16     register j: element g of rows 2q, 2q + 1
//   .m8n16 (narrow)     register j: bytes 4q … 4q + 3 of row g, after they have been widened
//   .m16n16.trans.b8    register 2j: byte g of rows 4q … 4q + 3; register 2j + 1: byte g + 8 of the same rows
//   .m16n8.trans.b8     stmatrix, register j: byte g of rows 2q, 2q + 1, then byte g + 8 of these rows
//
// The manual gives the layouts as figures; for the 8-bit ones they agree with the thread-value layouts of CuTe's copy
// atoms for sm_100 (copy_traits_sm100.hpp in CUTLASS). The narrow source formats hold 16 elements of 4 or 6 bits,
// packed from bit 0 of the row, and padding behind; each is widened to a byte whose upper bits are zero.
//
// All lanes of the warp take part, those whose address is not used too.
#include "grader/emulator/machine/matrix_ops.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::machine {
namespace {

using ptx::Operand;
using ptx::Type;

enum class Layout : uint8_t { Rows16, Columns16, Rows8, Columns8 };  ///< bits of an element; how registers hold it

/// Inst::imm of ldmatrix and stmatrix.
struct MatrixForm {
  Layout layout;
  uint8_t lanes;        ///< that supply addresses, from lane 0
  uint8_t source_bits;  ///< of an element in memory: 4 or 6 for the narrow formats, else 0
};

uint64_t pack(const MatrixForm& form) {
  return static_cast<uint64_t>(form.layout) | uint64_t{form.lanes} << 8 | uint64_t{form.source_bits} << 16;
}
MatrixForm unpack(uint64_t imm) {
  return {static_cast<Layout>(imm & 0xff), static_cast<uint8_t>(imm >> 8), static_cast<uint8_t>(imm >> 16)};
}

LaneMask first_lanes(uint32_t count) { return count >= kWarpSize ? kFullMask : (LaneMask{1} << count) - 1; }

/// 16 elements of `bits` bits, packed from bit 0, become 16 bytes.
void widen(std::array<std::byte, kMatrixRowBytes>* row, uint32_t bits) {
  const std::array<std::byte, kMatrixRowBytes> packed = *row;
  for (uint32_t k = 0; k < kMatrixRowBytes; k++) {
    uint32_t element = 0;
    for (uint32_t b = 0; b < bits; b++) {
      const uint32_t at = k * bits + b;
      element |= (static_cast<uint32_t>(packed[at / 8]) >> (at % 8) & 1u) << b;
    }
    (*row)[k] = static_cast<std::byte>(element);
  }
}

uint32_t at(const MatrixRows& rows, uint32_t lane, uint32_t byte) { return static_cast<uint32_t>(rows[lane][byte]); }

void load_matrix(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const MatrixForm form = unpack(i.imm);
  MatrixRows rows;
  transfer_matrix_rows(w, i, first_lanes(form.lanes), Access::Kind::Read, &rows);
  if (form.source_bits != 0) {
    for (uint32_t l = 0; l < form.lanes; l++) widen(&rows[l], form.source_bits);
  }
  const uint32_t* registers = &w.cta->launch->program->operand_pool[i.list];
  for (uint32_t j = 0; j < i.list_size; j++) {
    if (registers[j] == kNoOperand) continue;
    auto* d = lanes<uint32_t>(w.regs, registers[j]);
    for (uint32_t t = 0; t < kWarpSize; t++) {
      const uint32_t g = t / 4, q = t % 4;
      uint32_t value = 0;
      for (uint32_t b = 0; b < 4; b++) {
        uint32_t lane = 0, byte = 0;
        switch (form.layout) {
          case Layout::Rows16:
          case Layout::Rows8:
            lane = 8 * j + g;
            byte = 4 * q + b;
            break;
          case Layout::Columns16:
            lane = 8 * j + 2 * q + b / 2;
            byte = 2 * g + b % 2;
            break;
          case Layout::Columns8:
            lane = j / 2 * 16 + 4 * q + b;
            byte = g + j % 2 * 8;
            break;
        }
        value |= at(rows, lane, byte) << (8 * b);
      }
      d[t] = value;
    }
  }
}

void store_matrix(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const MatrixForm form = unpack(i.imm);
  MatrixRows rows;
  const uint32_t* registers = &w.cta->launch->program->operand_pool[i.list];
  for (uint32_t j = 0; j < i.list_size; j++) {
    const auto* a = lanes<uint32_t>(w.regs, registers[j]);
    for (uint32_t t = 0; t < kWarpSize; t++) {
      const uint32_t g = t / 4, q = t % 4;
      for (uint32_t b = 0; b < 4; b++) {
        uint32_t row = 0, byte = 0;
        switch (form.layout) {
          case Layout::Columns16:
            row = 2 * q + b / 2;
            byte = 2 * g + b % 2;
            break;
          case Layout::Columns8:
            row = 2 * q + b % 2;
            byte = g + b / 2 * 8;
            break;
          default:
            row = g;
            byte = 4 * q + b;
            break;
        }
        rows[8 * j + row][byte] = static_cast<std::byte>(a[t] >> (8 * b));
      }
    }
  }
  transfer_matrix_rows(w, i, first_lanes(form.lanes), Access::Kind::Write, &rows);
}

/// movmatrix.m8n8.trans.b16: lane 4g + q holds elements 2q, 2q + 1 of row g, before and after.
void move_matrix(Warp& w, const Inst& i, LaneMask mask) {
  require_whole_warp(w, i, mask);
  const auto* a = lanes<uint32_t>(w.regs, i.a);
  uint32_t out[kWarpSize];
  const auto element = [a](uint32_t row, uint32_t column) {
    return a[4 * row + column / 2] >> (16 * (column % 2)) & 0xffffu;
  };
  for (uint32_t t = 0; t < kWarpSize; t++) {
    const uint32_t g = t / 4, q = t % 4;
    out[t] = element(2 * q, g) | element(2 * q + 1, g) << 16;
  }
  std::memcpy(lanes<uint32_t>(w.regs, i.d), out, sizeof out);
}

// --- decoders --------------------------------------------------------------------------------------------------------

std::string decode_transfer(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst, bool load) {
  const Operand& vector = s.operands[load ? 0 : 1];
  const size_t count = vector.kind == Operand::Kind::Vector ? vector.elements.size() : 1;
  const Operand* const elements = vector.kind == Operand::Kind::Vector ? vector.elements.data() : &vector;
  const uint32_t matrices = r.has("x4") ? 4 : r.has("x2") ? 2 : 1;
  const bool square = r.has("m16n16");
  const uint32_t registers = square ? 2 * matrices : matrices;
  if (count != registers) return fmt::format("expects {} registers, got {}", registers, count);
  std::vector<uint32_t> slots;
  for (const Operand* at = elements; at != elements + count; ++at) {
    const Operand& o = *at;
    if (load && o.kind == Operand::Kind::Sink) {
      slots.push_back(kNoOperand);
      continue;
    }
    if (c.width(o, Type::B32) != 4) return "its registers have 32 bits";
    slots.push_back(load ? c.destination(o, 4) : c.source(o, Type::B32));
  }
  MatrixForm form{};
  form.lanes = static_cast<uint8_t>(matrices * (square ? 16 : 8));
  form.source_bits = r.has("b4x16_p64") ? 4 : r.has("b6x16_p32") ? 6 : 0;
  form.layout = r.has("m8n8") ? (r.has("trans") ? Layout::Columns16 : Layout::Rows16)
                              : (r.has("trans") ? Layout::Columns8 : Layout::Rows8);
  inst->imm = pack(form);
  set_matrix_address(inst, c.address(s.operands[load ? 1 : 0], r.space(0)));
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  inst->fn = load ? load_matrix : store_matrix;
  inst->sync = kSyncAligned;
  inst->ends_slice = 1;
  inst->cost = static_cast<uint16_t>(load ? c.timing().shared_load : c.timing().shared_store);
  return {};
}
std::string decode_load(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  return decode_transfer(c, r, s, inst, true);
}
std::string decode_store(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  return decode_transfer(c, r, s, inst, false);
}

std::string decode_move(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = move_matrix;
  inst->d = c.destination(s.operands[0], 4);
  inst->a = c.source(s.operands[1], Type::B32);
  inst->sync = kSyncAligned;
  inst->ends_slice = 1;
  inst->cost = c.timing().shuffle;
  return {};
}

}  // namespace

void require_whole_warp(const Warp& w, const Inst& i, LaneMask mask) {
  if (mask == kFullMask) return;
  throw make_fault(
      "diverged-collective",
      fmt::format("{} executes {} without lanes {} of the warp", describe_lanes(w, mask),
                  w.cta->launch->program->statement(i).opcode.front(), lane_ranges(~mask)),
      "All 32 lanes of the warp execute it together: no election, no branch around it, no lane that has returned.");
}

void register_matrix_decoders(DecoderTable& table) {
  using ptx::Op;
  table[Op::Ldmatrix] = decode_load;
  table[Op::Stmatrix] = decode_store;
  table[Op::Movmatrix] = decode_move;
  register_mma_decoder(table);
}

}  // namespace handoff::machine
