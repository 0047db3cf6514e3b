#include "grader/emulator/ptx/lexer.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace handoff::ptx {
namespace {

/// The tokens of `text` up to its end, each of which must start behind the one before; 0 and a failure if one does not.
size_t count_tokens(std::string_view text) {
  Lexer lexer(text);
  size_t count = 0;
  while (lexer.current().kind != Token::Kind::End) {
    const char* before = lexer.current().begin;
    ++count;
    lexer.advance();
    if (lexer.current().begin <= before) {
      ADD_FAILURE() << "no progress at offset " << before - text.data() << " of \"" << text << "\"";
      return 0;
    }
  }
  return count;
}

// Whoever skips to a ';' relies on it, Invalid tokens included.
TEST(Lexer, EveryTokenMovesForward) {
  constexpr std::string_view kAlphabet = ".09e+xfdU_%\"/*:;\n\\";
  // Every string of up to four characters; longer ones repeat its shapes.
  for (size_t length = 1; length <= 4; ++length) {
    std::string text(length, kAlphabet[0]);
    std::vector<size_t> digit(length, 0);
    bool more = true;
    while (more) {
      for (size_t i = 0; i < length; ++i) text[i] = kAlphabet[digit[i]];
      count_tokens(text);
      if (HasFailure()) return;
      more = false;
      for (size_t i = 0; i < length && !more; ++i) {
        more = ++digit[i] < kAlphabet.size();
        if (!more) digit[i] = 0;
      }
    }
  }
}

TEST(Lexer, AFloatingPointConstantThatNoDoubleHoldsIsInvalidAndEnds) {
  for (const std::string text : {".1e999 ;", "1.5e999 ;", ".0001e-999 ;", "1e99999999999999999999 ;", ".1e+400 ;"}) {
    EXPECT_EQ(Lexer(text).current().kind, Token::Kind::Invalid) << text;
    EXPECT_GE(count_tokens(text), 2u) << text;
  }
  const std::string digits = "." + std::string(1000, '9') + "e999;";
  EXPECT_EQ(Lexer(digits).current().kind, Token::Kind::Invalid);
  EXPECT_EQ(count_tokens(digits), 2u);
}

TEST(Lexer, ADecimalPointMayComeFirst) {
  Lexer lexer(".5;");
  EXPECT_EQ(lexer.current().kind, Token::Kind::Float64);
  EXPECT_EQ(lexer.current().bits, 0x3fe0000000000000u);
  lexer.advance();
  EXPECT_TRUE(lexer.current().is(';'));
}

}  // namespace
}  // namespace handoff::ptx
