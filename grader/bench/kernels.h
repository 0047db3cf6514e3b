// The PTX that the benchmarks run. Loop bodies have the mix of instructions that nvcc makes of ordinary kernels.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace handoff::bench {

/// Bytes that `copy` moves in one iteration.
inline constexpr int kCopyBytes = 16384;
/// Elements of a row, and rows, of the tile that `tensor_copy` loads in one iteration.
inline constexpr int kTileEdge = 64;

/// A module with the entries
///   `noop`()                              exits
///   `arithmetic`(u64 out, u32 iterations) f32 and integer arithmetic in registers
///   `shared`(u64 out, u32 iterations)     four 4-byte loads and one store of shared memory, addresses and fma;
///                                         blocks of at most 256 threads
///   `divergent`(u64 out, u32 iterations)  odd and even lanes take different sides of a branch and meet behind it
///   `copy`(u64 in, u32 iterations)        thread 0 waits for one bulk copy of kCopyBytes after another
///   `tensor_copy`(map, u32 iterations)    thread 0 waits for one tile of kTileEdge × kTileEdge bf16 after another,
///   from
///                                         two that lie below each other in the tensor of `map`
///   `mma`(u64 in, u32 iterations)         one warp; thread 0 issues four tcgen05.mma of 128×256×16 bf16, commits,
///   waits
/// A thread executes 16 instructions in an iteration of the first three loops. `out` holds 4 bytes for each thread,
/// `in` kCopyBytes.
std::string_view kernels();

/// A module of at least `bytes` of text: the loops above as often as it takes, each copy under its own name, with the
/// `.loc` directives and the registers of code that nvcc writes.
std::string large_module(size_t bytes);

}  // namespace handoff::bench
