// Device memory as the CUDA API deals it out: the emulator's arena, with what is known of each allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "grader/emulator/machine/memory.h"
#include "grader/runtime/cuda_abi.h"
#include "grader/runtime/launch_report.h"

namespace handoff::runtime {

/// Return addresses of the host program, innermost first; 0 ends the list.
using CallStack = std::array<uintptr_t, 8>;
/// The calls that led here, without those of this library. At most as many as fit.
CallStack host_stack();
/// Each frame as "/path/program+0x1234", where the file is that which the code was loaded from.
HostFrames describe_stack(const CallStack& stack);

/// Where memory that the device reaches comes from.
enum class Origin : uint8_t {
  Call,        ///< allocated by a call
  Variable,    ///< a `__managed__` variable
  Registered,  ///< the host's own, page-locked by cudaHostRegister
};

/// One allocation, alive or freed.
struct AllocationRecord {
  uint64_t base = 0;                     ///< device address
  uint64_t bytes = 0;                    ///< as asked for
  MemoryType type = MemoryType::Device;  ///< Managed and Host: the host uses the same address
  std::string name;                      ///< "cudaMalloc #3": as messages call it
  /// By which calls.
  ///@{
  CallStack allocated{}, freed{};
  ///@}
  Origin origin = Origin::Call;  ///< what may end it
  unsigned flags = 0;            ///< of page-locked memory, as asked for
};

/// Device addresses, kept free in this process: nothing else gets to lie there, so that a host that follows a device
/// pointer faults, and memory of both sides can be mapped at its device address.
class ReservedAddresses {
 public:
  /// Reserves what is free of the arena's range, in pieces.
  ReservedAddresses();
  ~ReservedAddresses();
  ReservedAddresses(const ReservedAddresses&) = delete;
  ReservedAddresses& operator=(const ReservedAddresses&) = delete;
  /// Is all of [address, address + bytes) reserved?
  bool holds(uint64_t address, uint64_t bytes) const;

 private:
  std::vector<bool> pieces_;  // by number
};

/// The arena, and the allocations in it that the program made. Not thread-safe.
class DeviceMemory {
 public:
  DeviceMemory();
  /// The emulator's memory, for modules and launches.
  machine::GlobalMemory& global() { return global_; }
  /// `bytes` of memory, poisoned; `call` names it in messages. nullptr: it is not to be had. Managed and host memory is
  /// also mapped at its device address in this process.
  const AllocationRecord* allocate(uint64_t bytes, MemoryType type, const char* call);
  /// Lets kernels reach memory of the host, at the host's address (cudaHostRegister); nullptr: they do already, or
  /// cannot.
  const AllocationRecord* adopt(void* host, uint64_t bytes, unsigned flags, const char* call);
  /// Lets the host reach a module's variable at its device address; false: the host has something there.
  bool share_variable(uint64_t address, const std::string& name);
  /// The flags of page-locked memory, for cudaHostGetFlags; no such allocation: nothing happens.
  void set_flags(uint64_t base, unsigned flags);
  /// Ends the allocation that starts at `base`; false if there is none.
  bool free(uint64_t base);
  /// Ends all that calls began: allocations, and the registration of memory of the host.
  void free_all();
  /// The allocation that holds `address`; nullptr if none does.
  const AllocationRecord* find(uint64_t address) const;
  /// The allocation that held `address` and was freed last; nullptr if none did, or long ago.
  const AllocationRecord* find_freed(uint64_t address) const;
  /// Host address of device bytes: of an allocation or of a module's variable. nullptr: not wholly inside one.
  std::byte* host(uint64_t address, uint64_t bytes) const;
  /// Is it an address of live device memory?
  bool is_device(uint64_t address) const { return global_.find(address, 1) != nullptr; }
  /// Why `address` is not what it should be: "byte 12 of `cudaMalloc #1` (16 bytes)", "it was freed before".
  std::string describe(uint64_t address) const;
  /// Adds to a diagnostic what is known of the memory that it speaks of.
  ReportedDiagnostic explain(const Diagnostic& diagnostic) const;

 private:
  bool map_for_host(const machine::Allocation& allocation);
  void unmap_for_host(const AllocationRecord& record);
  ReservedAddresses reserved_;  // before the arena, which could otherwise be mapped there
  machine::GlobalMemory global_;
  std::map<uint64_t, AllocationRecord> live_;    // by base
  std::deque<AllocationRecord> freed_;           // the last ones, newest first
  std::map<uint64_t, std::byte*> shared_pages_;  // of host and managed allocations: base → first page in the arena
  uint64_t count_ = 0;
};

}  // namespace handoff::runtime
