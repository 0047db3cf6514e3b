// Shadow memory: who last wrote and who has read each byte, with the synchronisation step at which they did.
//
// Warps access memory in rows, so the shadow is kept in rows of 32 words (128 bytes), one record for all the words that
// a warp's instruction or a copy touched in a row. A record names for each word the lane (or the lanes, for reads) that
// touched it, so nothing is lost by keeping them together. Until somebody touches part of a word, a row has one plane
// of records; then it is split in two, one for each half of its words, or in four, one for each byte, if less than a
// half is touched. When its planes say the same again, as after a copy over the whole row, they become one. What is
// ordered before a new access of the same words is dropped, so rows stay small.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grader/emulator/machine/instruction.h"
#include "grader/emulator/machine/observer.h"

namespace handoff::check {

/// Who made an access.
enum class Party : uint8_t { None, Thread, Async };

/// How the lanes of a warp lay where each touched one word, in the order of the lanes: the usual case, of which nothing
/// more need be kept. 0 to 31: lane l touched word (order + l) mod 32; 32 to 63: word (order - l) mod 32, downwards;
/// kMixed: it was otherwise.
using LaneOrder = uint8_t;
inline constexpr LaneOrder kDownwards = 32;
inline constexpr LaneOrder kMixed = 0xff;

/// A mask of lanes for each word of a row, or nothing. On the heap, since it is rare; copies share nothing.
class LaneMasks {
 public:
  using Each = std::array<uint32_t, 32>;  ///< by word

  LaneMasks() = default;
  /// A copy of `each`.
  explicit LaneMasks(const Each& each) : each_(make(each)) {}
  /// Copies share nothing.
  ///@{
  LaneMasks(const LaneMasks& other) : each_(other.each_ ? make(*other.each_) : nullptr) {}
  LaneMasks(LaneMasks&&) noexcept = default;
  LaneMasks& operator=(const LaneMasks& other) {
    if (this != &other) *this = LaneMasks(other);
    return *this;
  }
  LaneMasks& operator=(LaneMasks&&) noexcept = default;
  ///@}
  ~LaneMasks() = default;

  /// Is there something?
  explicit operator bool() const { return each_ != nullptr; }
  /// REQUIRES: there is.
  ///@{
  Each& operator*() { return *each_; }
  const Each& operator*() const { return *each_; }
  ///@}
  /// Do both say the same, or nothing?
  bool operator==(const LaneMasks& other) const {
    return (each_ != nullptr) == (other.each_ != nullptr) && (each_ == nullptr || *each_ == *other.each_);
  }
  /// Bytes of host memory behind all those of this thread, modulo 2^64: what one call changes of them is a difference.
  static size_t host_bytes() { return held_; }

 private:
  struct Counted {
    void operator()(Each* each) const {
      held_ -= sizeof(Each);
      delete each;
    }
  };
  using Pointer = std::unique_ptr<Each, Counted>;
  static Pointer make(const Each& each) {
    held_ += sizeof(Each);
    return Pointer(new Each(each));
  }
  static inline thread_local size_t held_ = 0;
  Pointer each_;
};

/// Words of a row whose last write is this one.
struct WriteRecord {
  const machine::Inst* inst = nullptr;           ///< the instruction
  uint32_t key = 0;                              ///< its warp
  uint32_t n = 0;                                ///< step of that warp, or index of an asynchronous operation
  uint32_t words = 0;                            ///< bit w: word w of the row
  Party party = Party::None;                     ///< thread or operation
  machine::Scope strong = machine::Scope::None;  ///< scope of a strong access; None: weak
  std::array<uint8_t, 32> lane = {};             ///< that wrote word w
  LaneOrder order = kMixed;                      ///< of the lanes that wrote `words`
  LaneMasks several;  ///< where lanes stored one value to one word together: those that wrote word w

  /// The lanes that wrote a word, of a thread's write.
  uint32_t writers(uint32_t word) const { return several ? (*several)[word] : 1u << lane[word]; }
  /// Does it say the same? Of an asynchronous write `lane` says nothing.
  bool same(const WriteRecord& w) const {
    return inst == w.inst && key == w.key && n == w.n && words == w.words && party == w.party && strong == w.strong &&
           order == w.order && (party == Party::Async || (lane == w.lane && several == w.several));
  }
};

/// Which lanes of a warp touched each word of a row. Mostly that is an order: records stay small, and a row's memory
/// with them.
class WordLanes {
 public:
  using Each = LaneMasks::Each;  ///< a mask of lanes for each word

  WordLanes() = default;
  /// What `lanes` says; nullptr: an order.
  explicit WordLanes(const Each* lanes, LaneOrder order = kMixed)
      : each_(lanes != nullptr ? LaneMasks(*lanes) : LaneMasks()), order_(order) {}

  /// The lanes that touched a word.
  uint32_t operator[](uint32_t word) const { return each_ ? (*each_)[word] : lane_at(word, order_); }
  /// kMixed where it is none.
  LaneOrder order() const { return order_; }
  /// Does it say of every word what `lanes` says? nullptr: the order.
  bool same(const Each* lanes, LaneOrder order) const {
    return order_ == order && (order != kMixed || (each_ && lanes != nullptr && *each_ == *lanes));
  }
  /// The lane that touches a word, as a mask.
  static uint32_t lane_at(uint32_t word, LaneOrder order) {
    return 1u << (order < kDownwards ? word - order : order - word) % 32;
  }
  /// Sets the lanes of a word.
  void set(uint32_t word, uint32_t lanes) {
    if (!each_) {
      Each each;
      for (uint32_t w = 0; w < 32; w++) each[w] = lane_at(w, order_);
      each_ = LaneMasks(each);
      order_ = kMixed;
    }
    (*each_)[word] = lanes;
  }

 private:
  LaneMasks each_;       // empty for an order
  LaneOrder order_ = 0;  // kMixed where each_ is set
};

/// Words of a row that were read since their last write.
struct ReadRecord {
  const machine::Inst* inst = nullptr;           ///< the instruction
  uint32_t key = 0;                              ///< its warp
  uint32_t n = 0;                                ///< step of that warp, or index of an asynchronous operation
  uint32_t words = 0;                            ///< bit w: word w of the row
  Party party = Party::None;                     ///< thread or operation
  machine::Scope strong = machine::Scope::None;  ///< scope of a strong access; None: weak
  WordLanes lanes;                               ///< that read word w; of an asynchronous read it says nothing
};

/// Records in a row of memory. The first needs no heap: most planes have one.
template <class R>
class Records {
 public:
  Records() = default;
  /// Copies share nothing.
  ///@{
  Records(const Records& other)
      : one_(other.one_), size_(other.size_), many_(other.many_ ? std::make_unique<Many>(*other.many_) : nullptr) {}
  Records(Records&&) noexcept = default;
  Records& operator=(const Records& other) {
    if (this != &other) *this = Records(other);
    return *this;
  }
  Records& operator=(Records&&) noexcept = default;
  ///@}
  ~Records() = default;

  /// As those of a std::vector.
  ///@{
  R* begin() { return many_ ? many_->data() : &one_; }
  R* end() { return begin() + size(); }
  const R* begin() const { return many_ ? many_->data() : &one_; }
  const R* end() const { return begin() + size(); }
  size_t size() const { return many_ ? many_->size() : size_; }
  bool empty() const { return size() == 0; }
  R& operator[](size_t i) { return begin()[i]; }
  const R& operator[](size_t i) const { return begin()[i]; }
  ///@}
  /// Adds one and returns it.
  R& push_back(R record) {
    if (!many_ && size_ == 0) {
      size_ = 1;
      return one_ = std::move(record);
    }
    if (!many_) {
      many_ = std::make_unique<Many>();
      many_->reserve(2);
      many_->push_back(std::move(one_));
    }
    return many_->emplace_back(std::move(record));
  }
  /// Removes those of which unwanted(record) is true.
  template <class F>
  void erase_if(F&& unwanted) {
    if (many_) {
      std::erase_if(*many_, unwanted);
    } else if (size_ == 1 && unwanted(std::as_const(one_))) {
      one_ = R();
      size_ = 0;
    }
  }
  /// Bytes of host memory behind it, without what the records hold.
  size_t host_bytes() const { return many_ ? sizeof(Many) + many_->capacity() * sizeof(R) : 0; }

 private:
  using Many = std::vector<R>;
  R one_;                       // where there is one and `many_` is null
  size_t size_ = 0;             // 0 or 1; what `many_` says where it exists
  std::unique_ptr<Many> many_;  // stays once it was needed
};

/// Records of one byte or one half of each word of a row, or of whole words.
struct Plane {
  Records<WriteRecord> writes;  ///< disjoint words
  Records<ReadRecord> reads;    ///< may overlap

  /// Bytes of host memory behind it, without the lanes of words.
  size_t host_bytes() const { return writes.host_bytes() + reads.host_bytes(); }
};

/// Host memory of several shadows together.
struct ShadowBytes {
  size_t now = 0;   ///< in use
  size_t most = 0;  ///< the largest so far
};

/// The words of one row that an access touches.
struct RowPiece {
  uint64_t row = 0;                        ///< address of the row's first byte
  uint32_t words = 0;                      ///< bit w: word w
  uint8_t bytes = 0xf;                     ///< bit b: byte b of each of these words
  const WordLanes::Each* lanes = nullptr;  ///< of a warp's access, that touch each word; nullptr: an order
  LaneOrder order = 0;                     ///< of a warp's lanes; kMixed: see `lanes`
  /// The lanes that touch a word.
  uint32_t lanes_of(uint32_t word) const { return lanes != nullptr ? (*lanes)[word] : WordLanes::lane_at(word, order); }
};

/// See the top of the file.
class Shadow {
 public:
  static constexpr uint64_t kRowBytes = 128;  ///< 32 words

  /// `total`, if any, counts this shadow too; it must outlive the shadow.
  explicit Shadow(ShadowBytes* total = nullptr) : total_(total) {}
  ~Shadow() { clear(); }
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Calls f(plane, first_byte) for each plane that the piece concerns.
  template <class F>
  void visit(const RowPiece& piece, F&& f) {
    Row& row = row_of(piece.row);
    // Planes grow and shrink only in f.
    const auto counted = [&](Plane& plane, uint32_t byte) {
      const size_t before = plane.host_bytes() + LaneMasks::host_bytes();
      f(plane, byte);
      if (const size_t after = plane.host_bytes() + LaneMasks::host_bytes(); after != before) count(after - before);
    };
    if (!row.rest && piece.bytes == 0xf) {
      counted(row.first, 0u);
      return;
    }
    const bool halves = piece.bytes == 0x3 || piece.bytes == 0xc || piece.bytes == 0xf;
    if (!row.rest || (row.rest->planes == 2 && !halves)) split(row, halves ? 2 : 4);
    const uint32_t planes = row.rest->planes, width = 4 / planes;  // bytes of a word
    for (uint32_t i = 0; i < planes; i++) {
      if ((piece.bytes >> i * width & 1) != 0) counted(row.plane(i), i * width);
    }
    if (piece.bytes == 0xf) unite(row);
  }
  /// Calls f(piece) for each row of the contiguous range [address, address + bytes), without lanes.
  template <class F>
  static void pieces(uint64_t address, uint64_t bytes, F&& f) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      RowPiece p;
      p.row = at & ~(kRowBytes - 1);
      const uint64_t stop = std::min(end, p.row + kRowBytes);
      if (at % 4 == 0 && stop % 4 == 0) {
        const auto first = static_cast<uint32_t>((at - p.row) / 4), count = static_cast<uint32_t>((stop - at) / 4);
        p.words = (count == 32 ? ~0u : (1u << count) - 1) << first;
        at = stop;
      } else {  // part of a word, or up to the next word boundary
        const uint64_t word_end = std::min(stop, (at & ~uint64_t{3}) + 4);
        p.words = 1u << ((at - p.row) / 4);
        p.bytes = static_cast<uint8_t>(((1u << (word_end - at)) - 1) << (at & 3));
        at = word_end;
      }
      f(p);
    }
  }
  /// The records of a row of which only whole words were touched; nullptr where it is split. Who uses them must not
  /// make them grow.
  Plane* whole(uint64_t row) {
    Row& r = row_of(row);
    return r.rest ? nullptr : &r.first;
  }
  /// Forgets everything and gives the memory back.
  void clear();
  /// Bytes of host memory in use, without what the heap and the table of pages add.
  size_t host_bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kPageRows = 32;
  struct Rest {
    uint32_t planes = 2;  // of the row: halves of words, or 4: bytes
    std::array<Plane, 3> plane;
  };
  struct Row {
    Plane first;  // whole words, or their first part once `rest` exists
    std::unique_ptr<Rest> rest;
    Plane& plane(uint32_t i) { return i == 0 ? first : rest->plane[i - 1]; }
  };
  using Page = std::array<Row, kPageRows>;
  Row& row_of(uint64_t address) {
    const uint64_t page = address / (kPageRows * kRowBytes);
    Recent& recent = recent_[page % recent_.size()];
    if (page != recent.page || recent.rows == nullptr) {
      std::unique_ptr<Page>& p = pages_[page];
      if (!p) {
        p = std::make_unique<Page>();
        count(sizeof(Page));
      }
      recent = {page, p.get()};
    }
    return (*recent.rows)[address / kRowBytes % kPageRows];
  }
  /// Into more planes: 2 or 4.
  void split(Row& row, uint32_t planes);
  /// Back into one plane, if all planes say the same.
  void unite(Row& row);
  /// `change` modulo 2^64: less memory is a large number.
  void count(size_t change) {
    bytes_ += change;
    if (total_ == nullptr) return;
    total_->now += change;
    total_->most = std::max(total_->most, total_->now);
  }
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  size_t bytes_ = 0;
  ShadowBytes* total_;
  /// The pages used last, each at its number modulo the size: a warp's lanes often walk several pages side by side.
  struct Recent {
    uint64_t page = 0;
    Page* rows = nullptr;
  };
  std::array<Recent, 64> recent_;
};

}  // namespace handoff::check
