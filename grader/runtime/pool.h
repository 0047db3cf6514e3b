// Memory pools, as far as the rest of the library needs them (api_pool.cc).
#pragma once

#include <cstdint>

namespace handoff::runtime {

/// An allocation ends; if it is of a pool, the pool counts it no longer.
void forget_pool_allocation(uint64_t base);
/// All pools but the default one end, and that is as at first (cudaDeviceReset).
void reset_pools();

}  // namespace handoff::runtime
