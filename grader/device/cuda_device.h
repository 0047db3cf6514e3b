// What a program needs of CudaDevice besides make_cuda_device (device.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grader/device/device.h"

namespace handoff::device {

/// The driver as its worker tells: "CUDA 13.0 (driver 580.65.06)"; empty where there is no GPU.
std::string cuda_driver_version();

/// make_cuda_device with the worker started by other arguments of this same program: for tests of what a worker may do
/// wrong.
std::unique_ptr<Device> make_cuda_device_with_worker(const std::vector<std::string>& worker_arguments, int ordinal,
                                                     std::string* why);

}  // namespace handoff::device
