// The kernels of mma for x86-64 hosts with AVX2, FMA and F16C; CMake compiles this file with -mavx2 -mfma -mf16c
// -mbmi2. Everything in it has internal linkage, so that no function compiled this way can be linked into code for
// older hosts.
#if defined(__x86_64__)
#define HANDOFF_MMA_VARIANT mma_avx2
#include "grader/emulator/async/mma_kernels.inc"
#endif
