// Tensor copies in two dimensions, tile mode (PTX §9.7.9.27): latency by the size of the box. One thread. The map's box
// has n bytes; the host chooses it.
#include "probe.cuh"

struct alignas(64) TensorMap {
  unsigned char opaque[128];
};

extern __shared__ __align__(1024) unsigned char shared_box[];  // the box; an mbarrier behind it

/// A load of the box at (0, 0): arrive.expect_tx, the copy, and the wait for it.
extern "C" __global__ void load(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero,
                                const __grid_constant__ TensorMap map) {
  const uint32_t box = shared_address(shared_box), barrier = box + n;
  mbarrier_init(barrier, 1);
  fence_proxy_async();
  uint32_t parity = 0;
  measure(
      samples, zero, 0, [] {},
      [&](uint32_t& v) {
        mbarrier_arrive_expect_tx(barrier, n);
        asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], "
            "[%3];" ::"r"(box),
            "l"(&map), "r"(0), "r"(barrier)
            : "memory");
        mbarrier_wait(barrier, parity, v);
        parity ^= 1;
      });
}

/// A store of the box, until its source may be written again (wait_group.read).
extern "C" __global__ void store_read(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero,
                                      const __grid_constant__ TensorMap map) {
  const uint32_t box = shared_address(shared_box);
  measure(
      samples, zero, 0, [] { bulk_wait(); },
      [&](uint32_t&) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];" ::"l"(&map),
                     "r"(0), "r"(box)
                     : "memory");
        bulk_commit();
        bulk_wait_read();
      });
  bulk_wait();
}

/// A store of the box, until it has been written (wait_group).
extern "C" __global__ void store_written(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero,
                                         const __grid_constant__ TensorMap map) {
  const uint32_t box = shared_address(shared_box);
  measure(
      samples, zero, 0, [] {},
      [&](uint32_t&) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];" ::"l"(&map),
                     "r"(0), "r"(box)
                     : "memory");
        bulk_commit();
        bulk_wait();
      });
}
