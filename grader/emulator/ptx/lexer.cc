#include "grader/emulator/ptx/lexer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

namespace handoff::ptx {
namespace {

// kGap: what may stand between tokens begins with it, white space or a comment.
enum Class : uint8_t { kSpace = 1, kWord = 2, kDigit = 4, kHex = 8, kGap = 16, kName = 32 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  for (char c : {' ', '\t', '\r', '\f', '\v', '\0'}) classes[static_cast<uint8_t>(c)] = kSpace | kGap;
  classes['\n'] = classes['/'] = kGap;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kWord | kName | kDigit | kHex;
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kWord | kName | (c <= 'f' ? kHex : 0);
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kWord | kName | (c <= 'F' ? kHex : 0);
  classes['_'] = classes['$'] = kWord | kName;
  // '%' starts a name; inside one it would be the modulo sign of an expression.
  classes['%'] = kWord;
  return classes;
}
// NUL counts as white space: PTX embedded in a fat binary is padded with it.
constexpr std::array<uint8_t, 256> kClass = make_classes();

bool has(char c, uint8_t mask) { return (kClass[static_cast<uint8_t>(c)] & mask) != 0; }

uint64_t hex_value(char c) {
  if (c <= '9') return static_cast<uint64_t>(c - '0');
  const int lower = c | 0x20;
  return static_cast<uint64_t>(lower - 'a') + 10;
}

}  // namespace

bool is_word(char c) { return has(c, kWord); }

Lexer::Lexer(std::string_view text) : begin_(text.data()), end_(text.data() + text.size()), cursor_(begin_) {
  current_.begin = begin_;
  advance();
}

void Lexer::skip_space() {
  while (cursor_ < end_ && has(*cursor_, kGap)) {
    const char c = *cursor_;
    if (c == '\n') {
      ++line_;
      ++cursor_;
    } else if (has(c, kSpace)) {
      ++cursor_;
    } else if (c == '/' && cursor_ + 1 < end_ && cursor_[1] == '/') {
      const void* newline = std::memchr(cursor_, '\n', static_cast<size_t>(end_ - cursor_));
      cursor_ = newline ? static_cast<const char*>(newline) : end_;
    } else if (c == '/' && cursor_ + 1 < end_ && cursor_[1] == '*') {
      cursor_ += 2;
      while (cursor_ < end_ && !(*cursor_ == '*' && cursor_ + 1 < end_ && cursor_[1] == '/')) {
        if (*cursor_ == '\n') ++line_;
        ++cursor_;
      }
      cursor_ = end_ - cursor_ >= 2 ? cursor_ + 2 : end_;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_space();
  current_.line = line_;
  current_.begin = cursor_;
  if (cursor_ >= end_) {
    current_.kind = Token::Kind::End;
    current_.text = {};
    return;
  }
  const char* start = cursor_;
  const char c = *cursor_;
  if (has(c, kDigit)) return lex_number();
  if (has(c, kWord)) {
    const char* p = start + 1;
    while (p < end_ && has(*p, kName)) ++p;
    cursor_ = p;
    current_.kind = Token::Kind::Identifier;
    current_.text = {start, static_cast<size_t>(cursor_ - start)};
    return;
  }
  if (c == '.' && cursor_ + 1 < end_ && has(cursor_[1], kDigit)) return lex_number();
  if (c == '.' && cursor_ + 1 < end_ && has(cursor_[1], kWord)) {
    ++cursor_;
    while (cursor_ < end_) {
      if (has(*cursor_, kWord)) {
        ++cursor_;
      } else if (*cursor_ == ':' && end_ - cursor_ > 2 && cursor_[1] == ':' && has(cursor_[2], kWord)) {
        cursor_ += 2;
      } else {
        break;
      }
    }
    current_.kind = Token::Kind::Directive;
    current_.text = {start + 1, static_cast<size_t>(cursor_ - start - 1)};
    return;
  }
  if (c == '"') {
    ++cursor_;
    while (cursor_ < end_ && *cursor_ != '"' && *cursor_ != '\n') {
      if (*cursor_ == '\\' && cursor_ + 1 < end_ && cursor_[1] != '\n') ++cursor_;
      ++cursor_;
    }
    if (cursor_ >= end_ || *cursor_ != '"') {
      current_.kind = Token::Kind::Invalid;
      message_ = "string without its closing quote";
      return;
    }
    current_.kind = Token::Kind::String;
    current_.text = {start + 1, static_cast<size_t>(cursor_ - start - 1)};
    ++cursor_;
    return;
  }
  current_.kind = Token::Kind::Punctuation;
  current_.text = {start, 1};
  ++cursor_;
}

void Lexer::lex_bits(int digits, Token::Kind kind) {
  // PTX §4.5.2: 0f takes exactly 8 hexadecimal digits, 0d exactly 16.
  cursor_ += 2;
  uint64_t bits = 0;
  int count = 0;
  while (cursor_ < end_ && has(*cursor_, kHex)) {
    bits = bits << 4 | hex_value(*cursor_++);
    ++count;
  }
  current_.kind = kind;
  current_.bits = bits;
  if (count != digits) {
    current_.kind = Token::Kind::Invalid;
    message_ = digits == 8 ? "0f needs 8 hexadecimal digits" : "0d needs 16 hexadecimal digits";
  }
}

void Lexer::lex_number() {
  const char* start = cursor_;
  const auto invalid = [this](const char* message) {
    current_.kind = Token::Kind::Invalid;
    message_ = message;
  };
  const char second = cursor_ + 1 < end_ ? static_cast<char>(cursor_[1] | 0x20) : '\0';
  if (*cursor_ == '0' && second == 'f') {
    lex_bits(8, Token::Kind::Float32);
  } else if (*cursor_ == '0' && second == 'd') {
    lex_bits(16, Token::Kind::Float64);
  } else {
    int base = 10;
    const char* digits = cursor_;
    if (*cursor_ == '0' && second == 'x') {
      base = 16;
      digits += 2;
    } else if (*cursor_ == '0' && second == 'b') {
      base = 2;
      digits += 2;
    } else if (*cursor_ == '0') {
      base = 8;
    }
    const char* p = digits;
    const uint8_t mask = base == 16 ? kHex : kDigit;
    while (p < end_ && has(*p, mask)) ++p;
    // PTX §4.5.2: a decimal point or an exponent makes a double-precision constant.
    const bool fraction = (base == 10 || base == 8) && p < end_ &&
                          (*p == '.' || (static_cast<char>(*p | 0x20) == 'e' && p + 1 < end_ &&
                                         (has(p[1], kDigit) || p[1] == '-' || p[1] == '+')));
    if (fraction) {
      double value = 0;
      const auto result = std::from_chars(start, end_, value);
      if (result.ec != std::errc()) {
        // Out of range, `ptr` is behind the constant; malformed, it is at its start. Every token moves forward, or
        // those who skip to a ';' would never end.
        cursor_ = std::max(result.ptr, start + 1);
        return invalid("malformed or out-of-range floating-point constant");
      }
      cursor_ = result.ptr;
      current_.kind = Token::Kind::Float64;
      current_.bits = std::bit_cast<uint64_t>(value);
    } else {
      uint64_t value = 0;
      const auto result = std::from_chars(digits, p, value, base);
      cursor_ = p;
      if (result.ec != std::errc() || result.ptr != p) return invalid("malformed integer constant, or above 64 bits");
      if (cursor_ < end_ && *cursor_ == 'U') ++cursor_;
      current_.kind = Token::Kind::Integer;
      current_.bits = value;
    }
  }
  if (current_.kind != Token::Kind::Invalid && cursor_ < end_ && has(*cursor_, kName)) {
    return invalid("malformed number");
  }
  current_.text = {start, static_cast<size_t>(cursor_ - start)};
}

bool Lexer::next_is(char c) {
  // Skipping white space early is harmless: the next advance() starts there.
  skip_space();
  return cursor_ < end_ && *cursor_ == c;
}

std::string_view Lexer::opcode_part() {
  if (!next_is('.')) return {};
  const char* start = cursor_ + 1;
  const char* p = start;
  while (p < end_) {
    if (has(*p, kName)) {
      ++p;
    } else if (*p == ':' && end_ - p > 2 && p[1] == ':' && has(p[2], kName)) {
      p += 2;
    } else {
      break;
    }
  }
  if (p == start) return {};
  cursor_ = p;
  return {start, static_cast<size_t>(p - start)};
}

std::string_view Lexer::with_component() {
  if (end_ - cursor_ >= 2 && cursor_[0] == '.' && has(cursor_[1], kWord)) {
    ++cursor_;
    while (cursor_ < end_ && has(*cursor_, kWord)) ++cursor_;
    current_.text = {current_.begin, static_cast<size_t>(cursor_ - current_.begin)};
  }
  return current_.text;
}

bool Lexer::skip_braces() {
  uint32_t depth = 1;
  while (cursor_ < end_) {
    const char c = *cursor_++;
    if (c == '\n') {
      ++line_;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      advance();
      return true;
    }
  }
  advance();
  return false;
}

void Lexer::skip_line() {
  const void* newline = std::memchr(cursor_, '\n', static_cast<size_t>(end_ - cursor_));
  cursor_ = newline ? static_cast<const char*>(newline) : end_;
  advance();
}

uint32_t Lexer::column(const char* place) const {
  const char* line = place;
  while (line > begin_ && line[-1] != '\n') --line;
  return static_cast<uint32_t>(place - line) + 1;
}

}  // namespace handoff::ptx
