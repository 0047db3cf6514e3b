// Tested by compile_cache_test.cc.
#include "grader/harness/compile_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace handoff::harness {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntries = 2048;
constexpr std::string_view kMagic = "handoff-cache-1";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path place_of(const std::string& key) {
  const fs::path folder = cache_folder();
  return folder.empty() ? fs::path() : folder / (key + ".entry");
}

std::string fingerprint_of(const std::string& body) {
  Fingerprint fingerprint;
  fingerprint.add(body);
  return fingerprint.hex();
}

void prune(const fs::path& folder) {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> entries;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, ignored)) {
    if (e.path().extension() == ".entry") entries.emplace_back(e.last_write_time(ignored), e.path());
  }
  if (entries.size() <= kMaxEntries) return;
  std::sort(entries.begin(), entries.end());
  for (size_t i = 0; i < entries.size() / 2; ++i) fs::remove(entries[i].second, ignored);
}

}  // namespace

void Fingerprint::add(std::string_view part) {
  mix(std::to_string(part.size()) + ":");
  mix(part);
}

std::string Fingerprint::hex() const {
  std::string text;
  for (int shift = 124; shift >= 0; shift -= 4) text += "0123456789abcdef"[static_cast<unsigned>(hash_ >> shift) & 15U];
  return text;
}

void Fingerprint::mix(std::string_view bytes) {
  constexpr Hash kPrime = (Hash{1} << 88) + 0x13b;
  for (unsigned char c : bytes) hash_ = (hash_ ^ c) * kPrime;
}

std::filesystem::path cache_folder() {
  if (const std::string own = environment("HANDOFF_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty()) return fs::path(xdg) / "handoff";
  if (const std::string home = environment("HOME"); !home.empty()) return fs::path(home) / ".cache" / "handoff";
  return {};
}

// A file is: one line of magic, fingerprint of the rest and three sizes; then the three parts.
std::optional<CacheEntry> load_cached(const std::string& key) {
  std::ifstream file(place_of(key), std::ios::binary);
  std::string head;
  if (!std::getline(file, head)) return std::nullopt;
  std::istringstream fields(head);
  std::string magic, fingerprint;
  size_t ptx = 0, log = 0, cubin = 0;
  if (!(fields >> magic >> fingerprint >> ptx >> log >> cubin) || magic != kMagic) return std::nullopt;
  std::ostringstream rest;
  rest << file.rdbuf();
  const std::string body = rest.str();
  if (ptx > body.size() || log > body.size() - ptx || cubin != body.size() - ptx - log) return std::nullopt;
  if (fingerprint_of(body) != fingerprint) return std::nullopt;
  return CacheEntry{body.substr(0, ptx), body.substr(ptx, log), body.substr(ptx + log)};
}

void store_cached(const std::string& key, const CacheEntry& entry) {
  const fs::path place = place_of(key);
  if (place.empty()) return;
  std::error_code failed;
  fs::create_directories(place.parent_path(), failed);
  const std::string body = entry.ptx + entry.log + entry.cubin;
  const fs::path unfinished = place.string() + "." + std::to_string(getpid());
  std::ofstream out(unfinished, std::ios::binary);
  out << kMagic << ' ' << fingerprint_of(body) << ' ' << entry.ptx.size() << ' ' << entry.log.size() << ' '
      << entry.cubin.size() << '\n'
      << body;
  out.close();
  if (!out.fail()) {
    fs::rename(unfinished, place, failed);
    if (!failed) return prune(place.parent_path());
  }
  fs::remove(unfinished, failed);
}

}  // namespace handoff::harness
