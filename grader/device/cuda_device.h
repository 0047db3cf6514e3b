// What a program needs of CudaDevice besides make_cuda_device (device.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grader/device/device.h"

namespace handoff::device {

/// The driver as its worker tells: "CUDA 13.0 (driver 580.65.06)"; empty where there is no GPU.
std::string cuda_driver_version();

/// A GPU, and what benchmarks ask of one besides what Device has.
class GpuDevice : public Device {
 public:
  /// How many blocks of a kernel a GPU holds at a time.
  struct Occupancy {
    uint32_t multiprocessors = 0;  ///< of the GPU
    uint32_t blocks = 0;           ///< resident on each
  };
  /// Of the loaded module's `kernel` with blocks of `threads` threads and `dynamic_smem` bytes.
  virtual Error occupancy(std::string_view kernel, uint32_t threads, uint32_t dynamic_smem, Occupancy* out) = 0;
  /// Copies `bytes` from `src` to `dst`, both on this device, by cuMemcpyDtoDAsync, and waits; `seconds` is the event
  /// time. Error: one of them not wholly inside one allocation.
  virtual Error copy(DevicePtr dst, DevicePtr src, size_t bytes, double* seconds) = 0;
};

/// make_cuda_device for a program that wants all that the GPU has.
std::unique_ptr<GpuDevice> make_gpu_device(int ordinal, std::string* why);

/// The same with the worker started by other arguments of this same program: for tests of what a worker may do wrong.
std::unique_ptr<GpuDevice> make_cuda_device_with_worker(const std::vector<std::string>& worker_arguments, int ordinal,
                                                        std::string* why);

}  // namespace handoff::device
