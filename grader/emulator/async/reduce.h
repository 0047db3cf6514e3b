// Element-wise reductions of bulk copies (PTX §9.7.9.25.4.2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "grader/emulator/ptx/instruction_table.h"

namespace handoff::async {

enum class ReduceOp : uint8_t { None, Add, Min, Max, Inc, Dec, And, Or, Xor };

/// The operation named in the opcode.
ReduceOp reduce_op_from(const ptx::Resolved& resolved);
/// destination[k] = destination[k] op source[k] for the elements of `type` in `bytes` bytes (a multiple of the element
/// size). `flush`, for F32: subnormal operands and results of an addition become zeros of their sign, as the type
/// FLOAT32_FTZ of a tensor map asks.
void reduce_bytes(ReduceOp op, ptx::Type type, std::byte* destination, const std::byte* source, uint32_t bytes,
                  bool flush = false);

}  // namespace handoff::async
