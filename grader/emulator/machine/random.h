// A seedable generator whose sequence is the same on every machine and library, unlike <random>'s distributions.
#pragma once

#include <cstdint>

namespace handoff::machine {

/// splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
struct Random {
  uint64_t state = 0;  ///< the seed
  /// 64 random bits.
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// A number in [0, n); 0 for n = 0.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
};

}  // namespace handoff::machine
