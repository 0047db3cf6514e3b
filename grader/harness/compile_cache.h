// Compiled submissions kept between runs, by content.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace handoff::harness {

/// FNV-1a with 128 bits over a list of parts; each part goes in with its length, so that no two lists spell the same
/// stream. Good enough to name a cache entry; no defence against someone who wants a collision in their own cache.
class Fingerprint {
 public:
  /// Appends one part.
  void add(std::string_view part);
  /// 32 hexadecimal digits.
  std::string hex() const;

 private:
  __extension__ using Hash = unsigned __int128;
  void mix(std::string_view bytes);
  Hash hash_ = (Hash{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
};

/// What is kept of a successful compilation.
struct CacheEntry {
  std::string ptx;    ///< normalised
  std::string log;    ///< what ptxas -v said
  std::string cubin;  ///< may be empty
};

/// $HANDOFF_CACHE, $XDG_CACHE_HOME/handoff or ~/.cache/handoff; empty where none of the variables is set.
std::filesystem::path cache_folder();

/// The entry under `key`. A file that is damaged or cut short counts as absent.
std::optional<CacheEntry> load_cached(const std::string& key);

/// Keeps an entry; a folder that cannot be written is skipped silently. Other processes see the whole entry or none.
/// Past 2048 entries the older half is removed.
void store_cached(const std::string& key, const CacheEntry& entry);

}  // namespace handoff::harness
