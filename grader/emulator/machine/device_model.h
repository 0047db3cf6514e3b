// What is emulated: a chip's limits, and what things cost on it.
#pragma once

#include <cstdint>

#include "grader/emulator/machine/memory.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::machine {

/// Limits and sizes of the device model, and its costs.
struct DeviceModel {
  const char* name = "B200";                ///< as reports call it
  int compute_capability = 100;             ///< times ten
  uint32_t sms = 148;                       ///< of the chip
  uint32_t smem_per_sm = 228 * 1024;        ///< bytes
  uint32_t smem_per_cta = kSharedMax;       ///< bytes, without the system's 1 KiB
  uint32_t max_threads_per_sm = 2048;       ///< resident at a time
  uint32_t max_ctas_per_sm = 32;            ///< resident at a time
  const TimingModel* timing = &kBlackwell;  ///< never nullptr
};

/// What exercises are graded on.
inline constexpr DeviceModel kB200{};
/// To be compared with the chip: the same limits but for the number of SMs (CUDA C++ Programming Guide, technical
/// specifications of compute capability 9.0), and its own costs.
inline constexpr DeviceModel kH200{"H200", 90, 132, 228 * 1024, kSharedMax, 2048, 32, &kHopper};

}  // namespace handoff::machine
