// The lane loops for any host.
#define HANDOFF_ALU_VARIANT alu_base
#include "grader/emulator/machine/alu_handlers.inc"
