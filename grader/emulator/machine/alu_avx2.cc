// The lane loops for x86-64 hosts with AVX2, FMA, F16C and BMI2; CMake compiles this file with -mavx2 -mfma -mf16c
// -mbmi2. Everything in it has internal linkage, so that no function compiled this way can be linked into code for
// older hosts.
#if defined(__x86_64__)
#define HANDOFF_ALU_VARIANT alu_avx2
#include "grader/emulator/machine/alu_handlers.inc"
#endif
