// Tokens of PTX text (PTX §4): views into the text, nothing copied.
//
// Directive and opcode names contain dots and double colons (".shared::cta"), so whether a '.' starts a directive, an
// opcode modifier, or is part of a special register's name ("%tid.x") depends on where it stands. The lexer takes '.'
// followed by a word as one Directive token; the parser reads opcodes with opcode_part(), which also accepts words
// that start with a digit ("32x32b", "2d").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace handoff::ptx {

/// One token. `text` is its spelling, a view into the module's text.
struct Token {
  /// What it is.
  enum class Kind : uint8_t {
    End,          ///< of the text
    Identifier,   ///< with '%' and '$' names; `text` excludes a special register's ".x"
    Directive,    ///< '.' and a word, `text` without the dot
    Integer,      ///< `bits`, two's complement
    Float32,      ///< 0fXXXXXXXX
    Float64,      ///< 0dXXXXXXXXXXXXXXXX or decimal
    String,       ///< `text` without the quotes, escapes as written
    Punctuation,  ///< one character; `<<` and `>>` are two tokens
    Invalid,      ///< `Lexer::message` says why
  };
  Kind kind = Kind::End;        ///< as above
  std::string_view text;        ///< spelling; see the kinds for what it leaves out
  uint64_t bits = 0;            ///< value of an Integer, bit pattern of a float
  uint32_t line = 1;            ///< 1-based
  const char* begin = nullptr;  ///< where the token starts in the text

  /// Is it the punctuation character `c`?
  bool is(char c) const { return kind == Kind::Punctuation && text[0] == c; }
  /// Is it the directive `.name`?
  bool is_directive(std::string_view name) const { return kind == Kind::Directive && text == name; }
};

/// Reads tokens one after the other; one token of look-ahead (`current`).
class Lexer {
 public:
  /// Starts before the first token of `text`, which must outlive the lexer.
  explicit Lexer(std::string_view text);

  /// The token under the cursor.
  const Token& current() const { return current_; }
  /// Moves to the next token.
  void advance();
  /// The character right after the current token (0 at the end of the text).
  char following() const { return cursor_ < end_ ? *cursor_ : '\0'; }
  /// The text between the current token and the next one is white space or comments only and `c` follows it.
  bool next_is(char c);
  /// Reads ".word" right after the current token (white space may stand before the dot) and returns the word, which may
  /// start with a digit and contain "::"; empty if there is none. Does not move `current`.
  std::string_view opcode_part();
  /// Appends ".x" to the current identifier if it follows without white space (special registers).
  std::string_view with_component();
  /// Moves past the '}' that closes a '{' under the cursor, whatever stands between. False: the text ends first.
  bool skip_braces();
  /// Moves to the first token that starts on a later line than the current one.
  void skip_line();
  /// Position just after the current token.
  const char* position() const { return cursor_; }
  /// 1-based column of a place in the text.
  uint32_t column(const char* place) const;
  /// Why the current token is Invalid.
  const char* message() const { return message_; }

 private:
  void skip_space();
  void lex_number();
  void lex_bits(int digits, Token::Kind kind);

  const char* begin_;
  const char* end_;
  const char* cursor_;
  uint32_t line_ = 1;
  Token current_;
  const char* message_ = "";
};

/// True for the characters of a PTX identifier after its first (letters, digits, '_', '$'; also '%', which starts one).
bool is_word(char c);

}  // namespace handoff::ptx
