// Right: cuda::barrier, which is an mbarrier underneath; its arrive gives a token, and its wait takes it.
// The loop around try_wait is inside wait().
#include <cuda/barrier>
#include <cuda/std/utility>

#include "course.cuh"

constexpr int kMaxBlock = 256;

extern "C" __global__ void phase_by_phase(const float* in, float* out, int n, int rounds) {
  __shared__ float cell[2][kMaxBlock];
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(Barrier) unsigned char storage[sizeof(Barrier)];
  Barrier& ready = *reinterpret_cast<Barrier*>(storage);

  const int base = blockIdx.x * blockDim.x;
  const int i = threadIdx.x;
  const int cells = min(static_cast<int>(blockDim.x), n - base);
  const bool owner = i < cells;
  const int left = max(i - 1, 0);
  const int right = min(i + 1, cells - 1);

  if (i == 0) init(&ready, blockDim.x);
  __syncthreads();

  float value = owner ? in[base + i] : 0.0f;
  for (int r = 0; r < rounds; r++) {
    float* now = cell[r % 2];
    if (owner) now[i] = value;
    Barrier::arrival_token token = ready.arrive();
    const float added = in[(base + i + r) % n];
    ready.wait(cuda::std::move(token));
    if (owner) value = 0.5f * value + 0.25f * (now[left] + now[right]) + added;
  }
  if (owner) out[base + i] = value;
}
