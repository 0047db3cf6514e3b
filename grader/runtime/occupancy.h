// Occupancy, for the runtime's calls and the driver's (api_launch.cc). Threads, blocks and shared memory limit it;
// registers are not known. The kernel has been decoded.
#pragma once

#include "grader/runtime/runtime.h"

namespace handoff::runtime {

/// Blocks of so many threads that an SM holds: none where they ask for more shared memory than the kernel may have.
int active_blocks(Runtime& r, const Kernel& kernel, int block_size, size_t dynamic_smem);
/// Blocks of the largest cluster that a launch may have; 0: not even one block fits.
Outcome largest_cluster(Runtime& r, const Kernel& kernel, const LaunchShape& shape, int* size);
/// Clusters of this shape that are resident together.
Outcome resident_clusters(Runtime& r, const Kernel& kernel, const LaunchShape& shape, int* clusters);
/// Bytes of dynamic shared memory that each of `blocks` blocks on an SM can have.
Outcome available_smem(Runtime& r, const Kernel& kernel, int blocks, int block_size, size_t* bytes);

}  // namespace handoff::runtime
