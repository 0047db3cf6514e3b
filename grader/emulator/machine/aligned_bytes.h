// Bytes at a fixed place in a cache line.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace handoff::machine {

/// Allocates at multiples of kCacheLine: what it costs to copy bytes depends on where in a cache line they begin.
template <class T>
struct CacheLineAllocator {
  using value_type = T;                              ///< as std::allocator's
  static constexpr std::align_val_t kCacheLine{64};  ///< bytes

  /// As std::allocator's.
  ///@{
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT(google-explicit-constructor): containers convert them
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kCacheLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kCacheLine); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
  ///@}
};

/// Bytes that begin at the start of a cache line.
using AlignedBytes = std::vector<std::byte, CacheLineAllocator<std::byte>>;

}  // namespace handoff::machine
