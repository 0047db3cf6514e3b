// Formats the argument buffer of the device's vprintf (CUDA C++ Programming Guide, "Formatted output").
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace handoff::machine {

/// Reads `bytes` of the argument buffer at `offset`; false if they are not there.
using ArgumentReader = std::function<bool(uint64_t offset, void* out, uint32_t bytes)>;
/// Reads a zero-terminated string at a generic address.
using StringReader = std::function<std::string(uint64_t address)>;

/// Arguments are packed at their natural alignment: 4 bytes for int, 8 for long, double and pointers.
/// *count receives the number of arguments consumed, as printf on the device returns it.
std::string format_printf(const std::string& format, const ArgumentReader& read, const StringReader& string_at,
                          int* count);

}  // namespace handoff::machine
