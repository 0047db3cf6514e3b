// Tested by vprintf_test.cc.
#include "grader/emulator/machine/vprintf.h"

#include <cstdio>
#include <cstring>

namespace handoff::machine {
namespace {

template <class T>
std::string print(const std::string& spec, T value) {
  char buffer[512];
  const int n = std::snprintf(buffer, sizeof buffer, spec.c_str(), value);
  if (n < 0) return {};
  if (static_cast<size_t>(n) < sizeof buffer) return {buffer, static_cast<size_t>(n)};
  std::string big(static_cast<size_t>(n) + 1, '\0');
  std::snprintf(big.data(), big.size(), spec.c_str(), value);
  big.pop_back();
  return big;
}

}  // namespace

std::string format_printf(const std::string& format, const ArgumentReader& read, const StringReader& string_at,
                          int* count) {
  std::string out;
  uint64_t at = 0;
  *count = 0;
  const auto take = [&](uint32_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    uint64_t v = 0;
    read(at, &v, bytes);
    at += bytes;
    (*count)++;
    return v;
  };
  for (size_t i = 0; i < format.size(); i++) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    std::string flags = "%";
    size_t k = i + 1;
    while (k < format.size() && std::strchr("-+ #0123456789.*", format[k]) != nullptr) {
      if (format[k] == '*') {
        const auto value = static_cast<int32_t>(take(4));
        // A negative precision counts as none (C17 §7.21.6.1).
        if (flags.back() != '.') {
          flags += std::to_string(value);
        } else if (value >= 0) {
          flags += std::to_string(value);
        } else {
          flags.pop_back();
        }
      } else if (flags.size() < 32) {
        flags += format[k];
      }
      k++;
    }
    bool wide = false;
    for (; k < format.size() && std::strchr("hlLqjzt", format[k]) != nullptr; k++) wide = wide || format[k] != 'h';
    if (k >= format.size()) break;
    switch (format[k]) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i':
        out += wide ? print(flags + "lld", static_cast<long long>(take(8)))
                    : print(flags + "d", static_cast<int32_t>(take(4)));
        break;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        out += wide ? print(flags + "ll" + format[k], static_cast<unsigned long long>(take(8)))
                    : print(flags + format[k], static_cast<uint32_t>(take(4)));
        break;
      case 'c':
        out += print(flags + "c", static_cast<int>(take(4)));
        break;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A': {
        const uint64_t bits = take(8);
        double d;
        std::memcpy(&d, &bits, sizeof d);
        out += print(flags + format[k], d);
        break;
      }
      case 'p':
        out += print(flags + "s", (print("0x%llx", static_cast<unsigned long long>(take(8)))).c_str());
        break;
      case 's':
        out += print(flags + "s", string_at(take(8)).c_str());
        break;
      default:
        out += format.substr(i, k - i + 1);
        break;  // as the device does: unknown conversions are printed
    }
    i = k;
  }
  return out;
}

}  // namespace handoff::machine
