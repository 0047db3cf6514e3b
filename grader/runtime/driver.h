// What the functions of the driver API share.
#pragma once

#include "grader/runtime/runtime.h"

namespace handoff::runtime {

using Result = int;        ///< CUresult
using Address = uint64_t;  ///< CUdeviceptr

/// CUresult of a runtime error: most have the same number; those of the runtime alone are bad arguments.
inline Result result_of(Error error) {
  switch (error) {
    case kInvalidConfiguration:
    case kInvalidPitchValue:
    case kInvalidMemcpyDirection:
      return kInvalidValue;
    case kInvalidSymbol:
    case kInvalidDeviceFunction:
      return kSymbolNotFound;
    default:
      return error;
  }
}

/// Runs `body`, which returns an error of the runtime, and leaves cudaGetLastError as it was: it knows nothing of the
/// driver API's errors.
template <class Body>
Result without_last_error(const Body& body) {
  Error& last = Runtime::last_error();
  const Error before = last;
  const Error error = body();
  last = before;
  return result_of(error);
}

/// As call(), for a function of the driver API.
template <class Body>
Result driver_call(const char* name, const Body& body) {
  return without_last_error([&] { return call(name, body); });
}

/// CUcontext: there is one (api_context.cc).
void* the_context();

/// A device address as a pointer.
inline void* pointer(Address a) { return reinterpret_cast<void*>(a); }

}  // namespace handoff::runtime
