// Runs one compiled kernel of an exercise on the GPU, over cases of that exercise's harness, and checks its results.
//
//   runner EXERCISE CUBIN          EXERCISE is the folder's name or its first three characters: 03b-ring, 03b
//
// Used by compare.py under compute-sanitizer. The harness of the product is not used, because it runs each
// launch in a child process with a watchdog of its own; here the tool must see one plain process, and the one who
// started it decides how long it may take.
//
// The last line printed is the outcome:
//   RESULT right                   every case gave exactly the reference's output
//   RESULT wrong: CASE …           a case ended, and its output differs
//   RESULT cuda error: CASE: …     a launch failed
// Exit status: 0 right, 1 wrong, 3 a launch failed, 2 nothing was run (bad usage, no GPU, no kernel in the file).
//
// Inputs are random multiples of 1/64, with which every reference below is exact in float: no tolerance. The output
// starts as NaN patterns, so an element that nobody wrote is wrong. Buffers have exactly the bytes that the case needs,
// so that memcheck sees an access past them.
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "../../exercises/include/tensor_map.cuh"

namespace {

constexpr int kPoison = 0xff;  // a float of these bytes is a NaN

// One launch: f(in, out, scalars…) with `grid` blocks of `block` threads. With a map symbol the first argument is no
// pointer but a tensor map over `in`, by value, of the arguments that the submission has in its constant of that name.
struct Case {
  std::string name;
  unsigned grid, block, dynamic_smem;
  std::vector<int> scalars;
  std::vector<float> in, out;  // `out` is the reference; elements that must stay untouched hold the poison
  const char* map_symbol = nullptr;
  unsigned grid_y = 1;
};

float poison() {
  float x;
  std::memset(&x, kPoison, sizeof x);
  return x;
}

std::vector<float> random_floats(size_t count) {
  static std::mt19937 random(20261129);
  std::vector<float> v(count);
  for (float& x : v) {
    const int k = static_cast<int>(random() % 1024) - 512;
    x = static_cast<float>(k == 0 ? 1 : k) / 64.0f;
  }
  return v;
}

template <typename... Numbers>
std::string text(const char* format, Numbers... numbers) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, format, numbers...);
  return buffer;
}

// out[base + j] = 3 * in[base + 255 - j] + 1, `in` counts as 0 beyond n.
Case first_handoff(unsigned n, unsigned block) {
  constexpr unsigned kTile = 256;
  Case c{text("n = %u, %u threads", n, block), (n + kTile - 1) / kTile, block, 0, {int(n)}, random_floats(n), {}};
  for (unsigned i = 0; i < n; i++) {
    const unsigned from = i / kTile * kTile + (kTile - 1 - i % kTile);
    c.out.push_back(std::fma(3.0f, from < n ? c.in[from] : 0.0f, 1.0f));
  }
  return c;
}

// Rounds of a three-point stencil in tiles of `block` cells.
Case phase_by_phase(unsigned n, unsigned block, unsigned rounds) {
  Case c{text("n = %u, %u threads, %u rounds", n, block, rounds),
         (n + block - 1) / block,
         block,
         0,
         {int(n), int(rounds)},
         random_floats(n),
         {}};
  c.out = c.in;
  for (unsigned base = 0; base < n; base += block) {
    const unsigned cells = std::min(block, n - base);
    for (unsigned r = 0; r < rounds; r++) {
      const std::vector<float> old(c.out.begin() + base, c.out.begin() + base + cells);
      for (unsigned i = 0; i < cells; i++) {
        const float neighbours = old[i == 0 ? 0 : i - 1] + old[std::min(i + 1, cells - 1)];
        c.out[base + i] = 0.5f * old[i] + 0.25f * neighbours + c.in[(base + i + r) % n];
      }
    }
  }
  return c;
}

// out[i] = slot[i] - slot[255 - i] in chunks of 256, slot = 2 * in, 0 beyond n.
Case ring(unsigned n, unsigned stages, unsigned block) {
  constexpr unsigned kChunk = 256, kBytesAStage = kChunk * 4 + 2 * 8;
  Case c{text("n = %u, %u stages, %u threads", n, stages, block),
         1,
         block,
         stages * kBytesAStage,
         {int(n), int(stages)},
         random_floats(n),
         {}};
  for (unsigned i = 0; i < n; i++) {
    const unsigned opposite = i / kChunk * kChunk + (kChunk - 1 - i % kChunk);
    c.out.push_back(2.0f * c.in[i] - (opposite < n ? 2.0f * c.in[opposite] : 0.0f));
  }
  return c;
}

// out[i] = 2 * tile[i] + tile[1023 - i] in tiles of 1024.
Case two_copies(unsigned tiles, unsigned block) {
  constexpr unsigned kTile = 1024;
  const unsigned n = tiles * kTile;
  Case c{text("%u tiles, %u threads", tiles, block), tiles, block, 0, {int(n)}, random_floats(n), {}};
  for (unsigned i = 0; i < n; i++) c.out.push_back(2.0f * c.in[i] + c.in[i / kTile * kTile + (kTile - 1 - i % kTile)]);
  return c;
}

// out[i] = 2 * in[255 - i] + 1 in tiles of 256. Without a tile there is one tile of memory, which must stay as it was.
Case reuse_after_store(unsigned tiles, unsigned blocks, unsigned threads) {
  constexpr unsigned kTile = 256;
  Case c{text("%u tiles, %u blocks of %u threads", tiles, blocks, threads),
         blocks,
         threads,
         0,
         {int(tiles)},
         random_floats(std::max(tiles, 1u) * kTile),
         {}};
  for (unsigned i = 0; i < tiles * kTile; i++)
    c.out.push_back(2.0f * c.in[i / kTile * kTile + (kTile - 1 - i % kTile)] + 1.0f);
  if (tiles == 0) c.out.assign(kTile, poison());
  return c;
}

// Tiles of 32 x 16 of an image of 72 x 460 with a pitch of 76; what lies between the rows is NaN, what lies outside of
// the image is loaded as 0.
Case tensor_map(int x0, int y0, unsigned across, unsigned down, unsigned block) {
  constexpr int kColumns = 72, kRows = 460, kPitch = 76, kTileColumns = 32, kTileRows = 16;
  Case c{text("%u tiles from (%d, %d), %u threads", across * down, x0, y0, block),
         across,
         block,
         0,
         {x0, y0},
         random_floats(static_cast<size_t>(kRows) * kPitch),
         {},
         "image_map",
         down};
  for (size_t k = 0; k < c.in.size(); k++) {
    if (k % kPitch >= kColumns) c.in[k] = poison();
  }
  for (unsigned b = 0; b < across * down; b++) {
    for (int i = 0; i < kTileColumns * kTileRows; i++) {
      const int column = x0 + kTileColumns * int(b % across) + i % kTileColumns;
      const int row = y0 + kTileRows * int(b / across) + i / kTileColumns;
      const bool inside = column >= 0 && column < kColumns && row >= 0 && row < kRows;
      c.out.push_back(inside ? c.in[static_cast<size_t>(row * kPitch + column)] : 0.0f);
    }
  }
  return c;
}

// `steps` times x = 1 - 0.875 x, in tiles of 1024. Without a tile there is one of memory, which must stay as it was.
Case two_stage(unsigned tiles, unsigned blocks, unsigned threads, unsigned steps) {
  constexpr unsigned kTile = 1024;
  Case c{text("%u tiles, %u blocks of %u threads, %u steps", tiles, blocks, threads, steps),
         blocks,
         threads,
         0,
         {int(tiles), int(steps)},
         random_floats(std::max(tiles, 1u) * kTile),
         {}};
  c.out = c.in;
  for (float& x : c.out) {
    for (unsigned k = 0; k < steps; k++) x = std::fma(-0.875f, x, 1.0f);
  }
  if (tiles == 0) c.out.assign(kTile, poison());
  return c;
}

// out = 1 - 0.875 in, in tiles of 4096 through a ring of stages. Without a tile there is one of memory, as above.
Case specialised(unsigned tiles, unsigned stages, unsigned blocks) {
  constexpr unsigned kTile = 4096, kThreads = 288, kBytesAStage = kTile * 4 + 2 * 8;
  Case c{text("%u tiles, %u stages, %u blocks", tiles, stages, blocks),
         blocks,
         kThreads,
         stages * kBytesAStage,
         {int(tiles), int(stages)},
         random_floats(std::max(tiles, 1u) * kTile),
         {}};
  for (const float x : c.in) c.out.push_back(1.0f - 0.875f * x);
  if (tiles == 0) c.out.assign(kTile, poison());
  return c;
}

struct Exercise {
  const char *id, *kernel;
  std::vector<Case> cases;  // the harness's own shapes: several trips, ragged ends, the empty ones that launch a block
};

std::vector<Exercise> exercises() {
  return {
      {"01a",
       "first_handoff",
       {first_handoff(200, 128), first_handoff(257, 128), first_handoff(1000, 64), first_handoff(2560, 256)}},
      {"02a",
       "phase_by_phase",
       {phase_by_phase(200, 96, 3), phase_by_phase(257, 256, 5), phase_by_phase(97, 96, 7),
        phase_by_phase(700, 256, 8)}},
      {"03b", "ring", {ring(3 * 256, 1, 256), ring(6 * 256 - 37, 2, 64), ring(9 * 256 - 100, 3, 256), ring(0, 1, 64)}},
      {"04a", "two_copies", {two_copies(1, 32), two_copies(3, 256), two_copies(7, 128)}},
      {"06b",
       "reuse_after_store",
       {reuse_after_store(0, 1, 128), reuse_after_store(9, 1, 128), reuse_after_store(25, 4, 128),
        reuse_after_store(11, 3, 256), reuse_after_store(2, 4, 64)}},
      {"05a",
       "copy_tiles",
       {tensor_map(32, 160, 1, 1, 128), tensor_map(64, 35, 1, 1, 64), tensor_map(-12, 445, 4, 2, 256)}},
      {"07a",
       "two_stage",
       {two_stage(0, 1, 128, 1), two_stage(1, 1, 64, 1), two_stage(7, 1, 128, 5), two_stage(5, 1, 128, 128),
        two_stage(11, 3, 256, 7)}},
      {"07b",
       "specialised",
       {specialised(0, 1, 1), specialised(1, 1, 1), specialised(5, 1, 1), specialised(7, 2, 1), specialised(11, 2, 4),
        specialised(17, 4, 3)}},
  };
}

[[noreturn]] void stop(int status, const std::string& message) {
  std::printf("%s\n", message.c_str());
  std::fflush(stdout);
  std::_Exit(status);  // no destructors: after a failed launch the context is of no use
}

// For what fails before a kernel was launched: the machine's or the caller's fault, never the kernel's.
void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) stop(2, std::string("runner: ") + what + ": " + cudaGetErrorString(status));
}

// The map over `in` that the submission's constant describes. What the driver refuses is the kernel's mistake.
CUtensorMap encode_map(cudaLibrary_t library, const Case& c, void* in) {
  void *constant = nullptr, *function = nullptr;
  size_t bytes = 0;
  cudaDriverEntryPointQueryResult found;
  TensorMapArguments a;
  if (cudaLibraryGetGlobal(&constant, &bytes, library, c.map_symbol) != cudaSuccess || bytes != sizeof a)
    stop(3, "RESULT cuda error: " + c.name + ": no constant " + c.map_symbol);
  require(cudaMemcpy(&a, constant, sizeof a, cudaMemcpyDeviceToHost), "the map's arguments could not be read");
  require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
          "cuTensorMapEncodeTiled");
  if (function == nullptr) stop(2, "runner: this driver has no cuTensorMapEncodeTiled");
  alignas(64) CUtensorMap map;
  const CUresult status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, a.tensorDataType, a.tensorRank, in, a.globalDim, a.globalStrides, a.boxDim, a.elementStrides, a.interleave,
      a.swizzle, a.l2Promotion, a.oobFill);
  if (status != CUDA_SUCCESS) stop(3, "RESULT cuda error: " + c.name + ": the driver refuses the tensor map");
  return map;
}

// Runs a case. Empty if the output is right; else what is wrong with it.
std::string run(cudaLibrary_t library, cudaKernel_t kernel, Case& c) {
  void *in = nullptr, *out = nullptr;
  const size_t in_bytes = c.in.size() * sizeof(float), out_bytes = c.out.size() * sizeof(float);
  constexpr size_t kLeast = 16;  // bytes of a buffer without elements: an allocation of none has no address
  require(cudaMalloc(&in, std::max(in_bytes, kLeast)), "no device memory for the input");
  require(cudaMalloc(&out, std::max(out_bytes, kLeast)), "no device memory for the output");
  require(cudaMemcpy(in, c.in.data(), in_bytes, cudaMemcpyHostToDevice), "the input could not be copied");
  require(cudaMemset(out, kPoison, out_bytes), "the output could not be poisoned");
  require(cudaDeviceSynchronize(), "the preparation of a case failed");

  std::vector<void*> arguments{&in, &out};
  alignas(64) CUtensorMap map;
  if (c.map_symbol != nullptr) {
    map = encode_map(library, c, in);
    arguments[0] = &map;
  }
  for (int& scalar : c.scalars) arguments.push_back(&scalar);
  cudaError_t status = cudaSuccess;
  if (c.dynamic_smem > 0) {
    status =
        cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(c.dynamic_smem), 0);
  }
  if (status == cudaSuccess) {
    status = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(c.grid, c.grid_y), dim3(c.block),
                              arguments.data(), c.dynamic_smem, nullptr);
  }
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (status != cudaSuccess) stop(3, "RESULT cuda error: " + c.name + ": " + cudaGetErrorString(status));

  std::vector<float> got(c.out.size());
  require(cudaMemcpy(got.data(), out, out_bytes, cudaMemcpyDeviceToHost), "the output could not be copied");
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.size(); i++) {
    if (std::memcmp(&got[i], &c.out[i], sizeof(float)) != 0 && got[i] != c.out[i] && wrong++ == 0) first = i;
  }
  require(cudaFree(in), "the input could not be freed");
  require(cudaFree(out), "the output could not be freed");
  if (wrong == 0) return "";
  return c.name + text(": %zu of %zu elements, first at [%zu]: got %g, expected %g", wrong, got.size(), first,
                       got[first], c.out[first]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) stop(2, "usage: runner EXERCISE CUBIN, for example: runner 03b kernel.cubin");
  const std::string id = std::string(argv[1]).substr(0, 3);
  int devices = 0;
  require(cudaGetDeviceCount(&devices), "no GPU");
  if (devices == 0) stop(2, "runner: no GPU");
  for (Exercise& exercise : exercises()) {
    if (id != exercise.id) continue;
    cudaLibrary_t library;
    cudaKernel_t kernel;
    require(cudaLibraryLoadFromFile(&library, argv[2], nullptr, nullptr, 0, nullptr, nullptr, 0), argv[2]);
    require(cudaLibraryGetKernel(&kernel, library, exercise.kernel), exercise.kernel);
    std::string wrong;  // the first one; the other cases run all the same, since a tool may find more in them
    for (Case& c : exercise.cases) {
      const std::string found = run(library, kernel, c);
      if (wrong.empty()) wrong = found;
    }
    if (!wrong.empty()) stop(1, "RESULT wrong: " + wrong);
    stop(0, "RESULT right");
  }
  stop(2, "runner: no cases for exercise \"" + id + "\"");
}
