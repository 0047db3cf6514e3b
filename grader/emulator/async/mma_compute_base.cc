// The kernels of mma for any host.
#define HANDOFF_MMA_VARIANT mma_base
#include "grader/emulator/async/mma_kernels.inc"
