// Tested by fatbin_test.cc.
//
// NVIDIA does not document the form. What stands here was read off the output of nvcc 13.0: a header of 16 bytes (magic
// u32, version u16, header size u16, size of what follows u64), then entries, each with a header of its own:
//
//   offset  0  u16  kind: 1 PTX, 2 machine code         offset 24  u16  minor, u16 major version of the PTX ISA
//   offset  4  u32  size of the entry's header          offset 28  u32  architecture: 100
//   offset  8  u64  size of the payload, padded         offset 40  u64  flags
//   offset 16  u32  its size while compressed, or 0     offset 56  u64  its size after decompression, or 0
//
// PTX is text, padded with NULs; by default it is one zstd frame, which `nvcc --no-compress` prevents.
#include "grader/runtime/fatbin.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

namespace handoff::runtime {
namespace {

constexpr uint32_t kMagic = 0xba55ed50u;
constexpr size_t kHeader = 16, kMinEntryHeader = 64;
constexpr uint64_t kMaxText = uint64_t{1} << 30;  // bytes of one PTX text

template <class T>
T read_at(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::vector<FatbinEntry> read_fatbin(const void* image, std::string* error) {
  // The header first: it says how far one may read.
  const std::span<const std::byte> header(static_cast<const std::byte*>(image), kHeader);
  if (read_at<uint32_t>(header, 0) != kMagic) {
    *error = fmt::format("no fat binary: it begins with {:#x}", read_at<uint32_t>(header, 0));
    return {};
  }
  return read_fatbin(std::span(header.data(), read_at<uint16_t>(header, 6) + read_at<uint64_t>(header, 8)), error);
}

std::vector<FatbinEntry> read_fatbin(std::span<const std::byte> image, std::string* error) {
  const auto broken = [&](const std::string& why) {
    *error = "a fat binary that cannot be read: " + why;
    return std::vector<FatbinEntry>();
  };
  if (image.size() < kHeader || read_at<uint32_t>(image, 0) != kMagic) return broken("its header is missing");
  size_t at = read_at<uint16_t>(image, 6);
  const auto size = read_at<uint64_t>(image, 8);
  if (at < kHeader || at > image.size() || size > image.size() - at) return broken("it is cut short");
  const size_t end = at + size;
  std::vector<FatbinEntry> entries;
  while (at < end) {
    const std::span<const std::byte> rest = image.subspan(at, end - at);
    if (rest.size() < kMinEntryHeader) return broken("an entry is cut short");
    const auto header = read_at<uint32_t>(rest, 4);
    const auto padded = read_at<uint64_t>(rest, 8);
    if (header < kMinEntryHeader || header > rest.size() || padded > rest.size() - header) {
      return broken("an entry is longer than the whole");
    }
    FatbinEntry entry;
    entry.kind = static_cast<FatbinEntry::Kind>(read_at<uint16_t>(rest, 0));
    entry.arch = read_at<uint32_t>(rest, 28);
    entry.flags = read_at<uint64_t>(rest, 40);
    entry.uncompressed_bytes = read_at<uint64_t>(rest, 56);
    const auto compressed = read_at<uint32_t>(rest, 16);
    if (compressed > padded) return broken("an entry's compressed part is longer than the entry");
    entry.payload = rest.subspan(header, compressed != 0 ? compressed : padded);
    entries.push_back(entry);
    at += header + padded;
  }
  return entries;
}

std::string ptx_text(const FatbinEntry& entry, std::string* error) {
  std::string text;
  if ((entry.flags & kFatbinLz4) != 0) {
    *error = "its PTX is compressed as older toolkits do; build with nvcc of CUDA 13, or with --no-compress";
    return {};
  }
  if ((entry.flags & kFatbinZstd) != 0) {
    if (entry.uncompressed_bytes > kMaxText) {
      *error = fmt::format("its PTX claims to have {} bytes", entry.uncompressed_bytes);
      return {};
    }
    text.resize(entry.uncompressed_bytes);
    const size_t got = ZSTD_decompress(text.data(), text.size(), entry.payload.data(), entry.payload.size());
    if (ZSTD_isError(got) != 0) {
      *error = fmt::format("its PTX cannot be decompressed: {}", ZSTD_getErrorName(got));
      return {};
    }
    text.resize(got);
  } else {
    text.assign(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
  }
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.empty()) *error = "its PTX is empty";
  return text;
}

std::string ptx_target(const std::string& ptx) {
  constexpr std::string_view kDirective = ".target";
  for (size_t at = ptx.find(kDirective); at != std::string::npos; at = ptx.find(kDirective, at + 1)) {
    // Comments are taken out of embedded PTX, but a module that is loaded from a file may have some.
    const size_t line = ptx.rfind('\n', at) + 1;
    if (ptx.find_first_not_of(" \t", line) != at) continue;
    const size_t begin = ptx.find_first_not_of(" \t", at + kDirective.size());
    if (begin == std::string::npos) return {};
    size_t end = begin;
    while (end < ptx.size() && (std::isalnum(static_cast<unsigned char>(ptx[end])) != 0 || ptx[end] == '_')) ++end;
    return ptx.substr(begin, end - begin);
  }
  return {};
}

int suitability(const std::string& target, int cc) {
  constexpr std::string_view kPrefix = "sm_";
  if (target.rfind(kPrefix, 0) != 0) return 0;
  int arch = 0;
  const char* const last = target.data() + target.size();
  const auto [end, failed] = std::from_chars(target.data() + kPrefix.size(), last, arch);
  if (failed != std::errc()) return 0;
  const std::string suffix(end, last);
  if (suffix == "a") return arch == cc ? 3000 : 0;
  if (suffix == "f") return arch / 10 == cc / 10 && arch <= cc ? 2000 + arch : 0;
  return suffix.empty() && arch <= cc ? 1000 + arch : 0;
}

PtxChoice choose_ptx(const std::vector<FatbinEntry>& entries, int cc) {
  PtxChoice choice;
  std::string machine_code, others, unreadable;
  int best = 0;
  const auto add = [](std::string* list, const std::string& text) { *list += (list->empty() ? "" : ", ") + text; };
  for (const FatbinEntry& entry : entries) {
    const std::string arch = std::to_string(entry.arch) + ((entry.flags & kFatbinArchSpecific) != 0 ? "a" : "");
    if (entry.kind != FatbinEntry::Kind::Ptx) {
      add(&machine_code, "sm_" + arch);
      continue;
    }
    std::string error;
    std::string text = ptx_text(entry, &error);
    if (text.empty()) {
      unreadable = error;
      continue;
    }
    const std::string target = ptx_target(text);
    const int suits = suitability(target, cc);
    if (suits == 0) {
      add(&others, target.empty() ? "compute_" + arch : target);
    } else if (suits > best) {
      best = suits;
      choice.ptx = std::move(text);
      choice.target = target;
    }
  }
  if (best > 0) return choice;
  if (!unreadable.empty()) {
    choice.why = unreadable;
  } else if (!others.empty()) {
    choice.why = fmt::format("its PTX is for {}, which a device of sm_{} does not run", others, cc);
  } else {
    choice.why = machine_code.empty() ? "it has no device code" : "it has machine code only (" + machine_code + ")";
  }
  return choice;
}

}  // namespace handoff::runtime
