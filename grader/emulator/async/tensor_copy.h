// Tensor copies: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor (PTX §9.7.9.27).
#pragma once

#include "grader/emulator/machine/instruction.h"

namespace handoff::async {

/// Tensor copies in tile mode, within the executing CTA.
void register_tensor_copy_decoders(machine::DecoderTable& table);

}  // namespace handoff::async
