// Shadow memory: who last wrote and who has read each byte, with the synchronisation step at which they did.
//
// A cell stands for four bytes until somebody touches a part of them; then the word is split into four cells, one a byte. A cell keeps the
// last write and the reads since. What is ordered before a new write is dropped, so cells stay small.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/machine/observer.h"

namespace handoff::check {

/// Who made an access.
enum class Party : uint8_t { None, Thread, Async };

/// The last write of a cell. For an asynchronous operation `n` is its index in the checker's list.
struct WriteRecord {
  const machine::Inst* inst = nullptr;
  uint32_t key = 0;   ///< warp
  uint32_t n = 0;     ///< step of that warp, or operation
  uint8_t lane = 0;
  Party party = Party::None;
  machine::Scope strong = machine::Scope::None;  ///< scope of a strong access; None: weak
};

/// Reads of a cell by lanes of one warp at one step, or by an asynchronous operation.
struct ReadRecord {
  const machine::Inst* inst = nullptr;
  uint32_t key = 0;
  uint32_t n = 0;
  uint32_t mask = 0;
  Party party = Party::None;
  machine::Scope strong = machine::Scope::None;
};

/// See the top of the file.
struct Cell {
  WriteRecord write;
  std::vector<ReadRecord> reads;
};

/// Cells of a contiguous range of bytes, made as they are touched.
class Shadow {
 public:
  /// Calls f(cell, address) for each cell of [address, address + bytes).
  template <class F>
  void visit(uint64_t address, uint32_t bytes, F&& f) {
    const uint64_t end = address + bytes;
    for (uint64_t word = address & ~uint64_t{3}; word < end; word += 4) {
      const uint64_t from = word < address ? address : word, to = word + 4 < end ? word + 4 : end;
      Cell& cell = cell_of(word);
      auto split = splits_.empty() ? splits_.end() : splits_.find(word);
      if (split == splits_.end() && to - from == 4) {
        f(cell, word);
        continue;
      }
      if (split == splits_.end()) split = splits_.emplace(word, std::make_unique<std::array<Cell, 4>>(std::array<Cell, 4>{cell, cell, cell, cell})).first;
      for (uint64_t b = from; b < to; b++) f((*split->second)[b & 3], b);
    }
  }
  /// Bytes of host memory in use.
  size_t host_bytes() const { return pages_.size() * sizeof(Page) + splits_.size() * sizeof(std::array<Cell, 4>); }

 private:
  static constexpr uint64_t kPageBytes = 4096;
  using Page = std::array<Cell, kPageBytes / 4>;
  Cell& cell_of(uint64_t word) {
    const uint64_t page = word / kPageBytes;
    if (page != last_page_ || last_ == nullptr) {
      std::unique_ptr<Page>& p = pages_[page];
      if (!p) p = std::make_unique<Page>();
      last_page_ = page;
      last_ = p.get();
    }
    return (*last_)[word % kPageBytes / 4];
  }
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<uint64_t, std::unique_ptr<std::array<Cell, 4>>> splits_;
  uint64_t last_page_ = 0;
  Page* last_ = nullptr;
};

}  // namespace handoff::check
