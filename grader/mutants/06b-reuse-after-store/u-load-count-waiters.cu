// Wrong: the barrier of the input counts the threads that wait for it, not those that arrive.
// Of blockDim.x arrivals only that of thread 0 comes, and the first phase never completes.
// expect: arrival-count-mismatch @ 38
// needs: checker
// blind: unrun
#include "course.cuh"

constexpr int kTile = 256;  // floats
constexpr int kStages = 3;  // staging buffers

extern "C" __global__ void reuse_after_store(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float staging[kStages][kTile];
  __shared__ alignas(16) float input[kTile];  // the tile as it came, by bulk load
  __shared__ uint64_t full;                   // `input` is full

  const uint32_t tile_bytes = kTile * sizeof(float);

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();

  int round = 0;  // counts this block's tiles
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    float* stage = staging[round % kStages];
    const int base = tile * kTile;

    if (threadIdx.x == 0) {
      // Everybody has read `input`: the barrier before the last store came after that.
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, tile_bytes);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, input, &in[base], tile_bytes, &full);
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<kStages - 1>());
    }
    __syncthreads();

    const uint32_t parity = round & 1;
    while (!ptx::mbarrier_test_wait_parity(&full, parity)) {
    }
    for (int i = threadIdx.x; i < kTile; i += blockDim.x) {
      stage[kTile - 1 - i] = 2.0f * input[i] + 1.0f;
    }

    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();

    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, &out[base], stage, tile_bytes);
      ptx::cp_async_bulk_commit_group();
    }
    round++;
  }

  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
