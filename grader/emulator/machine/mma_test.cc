// mma.sync: layouts against a product of small integers, arithmetic against the same scheme in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/testing.h"

namespace handoff::machine {
namespace {

using machine::testing::expect_ok;
using machine::testing::Options;
using machine::testing::Outcome;
using machine::testing::run_body;
using ::testing::StartsWith;

/// A: 16 × k, B: k × 8, C: 16 × 8; A and B as bits of 16-bit floats.
struct Problem {
  uint32_t k;
  bool bf16;
  std::vector<uint16_t> a, b;
  std::vector<float> c;

  Problem(uint32_t depth, bool bfloat) : k(depth), bf16(bfloat), a(16 * depth), b(depth * 8), c(128) {}
  float widen(uint16_t bits) const { return bf16 ? bf16_to_float(bits) : half_to_float(bits); }
  uint16_t narrow(float value) const { return bf16 ? float_to_bf16(value) : float_to_half(value); }
};

/// Runs the instruction; D by row.
std::vector<uint32_t> run(const Problem& p) {
  // Words of `in`: for each lane the registers of a, b and c in turn.
  const uint32_t na = p.k / 4, nb = p.k / 8;
  Options options;
  for (uint32_t t = 0; t < 32; t++) {
    const uint32_t g = t / 4, q = t % 4;
    for (uint32_t r = 0; r < na; r++) {  // a0: upper left, a1: lower left, a2: upper right, a3: lower right
      const uint32_t row = r == 1 || r == 3 ? g + 8 : g, column = (r >= 2 ? 8 : 0) + 2 * q;
      options.in.push_back(p.a[row * p.k + column] | uint32_t{p.a[row * p.k + column + 1]} << 16);
    }
    for (uint32_t r = 0; r < nb; r++) {
      const uint32_t row = (r == 1 ? 8 : 0) + 2 * q;
      options.in.push_back(p.b[row * 8 + g] | uint32_t{p.b[(row + 1) * 8 + g]} << 16);
    }
    for (const uint32_t row : {g, g + 8}) {
      options.in.push_back(std::bit_cast<uint32_t>(p.c[row * 8 + 2 * q]));
      options.in.push_back(std::bit_cast<uint32_t>(p.c[row * 8 + 2 * q + 1]));
    }
  }
  const uint32_t words = na + nb + 4;
  std::string body = "mul.wide.u32 %rd0, %lane, " + std::to_string(4 * words) + ";\nadd.u64 %rd0, %in, %rd0;\n";
  for (uint32_t i = 0; i < words; i++)
    body += "ld.global.u32 %r" + std::to_string(i) + ", [%rd0+" + std::to_string(4 * i) + "];\n";
  const auto list = [](uint32_t first, uint32_t count) {
    std::string s;
    for (uint32_t i = 0; i < count; i++) s += (i > 0 ? ", %r" : "{%r") + std::to_string(first + i);
    return s + "}";
  };
  const std::string type = p.bf16 ? "bf16" : "f16";
  // D overwrites C.
  body += "mma.sync.aligned.m16n8k" + std::to_string(p.k) + ".row.col.f32." + type + "." + type + ".f32 " +
          list(na + nb, 4) + ", " + list(0, na) + ", " + list(na, nb) + ", " + list(na + nb, 4) + ";\n";
  for (uint32_t r = 0; r < 4; r++)
    body += "st.global.u32 [%mine+" + std::to_string(128 * r) + "], %r" + std::to_string(na + nb + r) + ";\n";
  const Outcome outcome = run_body(body, options);
  expect_ok(outcome);
  std::vector<uint32_t> d(128);
  for (uint32_t t = 0; t < 32; t++) {
    const uint32_t g = t / 4, q = t % 4;
    d[g * 8 + 2 * q] = outcome.out[t];
    d[g * 8 + 2 * q + 1] = outcome.out[32 + t];
    d[(g + 8) * 8 + 2 * q] = outcome.out[64 + t];
    d[(g + 8) * 8 + 2 * q + 1] = outcome.out[96 + t];
  }
  return d;
}

TEST(Mma, MultipliesSmallIntegersExactly) {
  for (const uint32_t k : {8, 16}) {
    for (const bool bf16 : {false, true}) {
      Problem p(k, bf16);
      std::mt19937 random(k + bf16);
      const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
      for (uint16_t& v : p.a) v = p.narrow(small());
      for (uint16_t& v : p.b) v = p.narrow(small());
      for (float& v : p.c) v = 100 * small();
      const std::vector<uint32_t> d = run(p);
      for (uint32_t row = 0; row < 16; row++) {
        for (uint32_t column = 0; column < 8; column++) {
          float want = p.c[row * 8 + column];
          for (uint32_t i = 0; i < k; i++) want += p.widen(p.a[row * k + i]) * p.widen(p.b[i * 8 + column]);
          ASSERT_EQ(std::bit_cast<float>(d[row * 8 + column]), want) << row << ' ' << column << " k " << k;
        }
      }
    }
  }
}

/// The scheme in double: every term a multiple of `unit` after std::trunc, so that their sum is exact.
uint32_t reference(const Problem& p, uint32_t row, uint32_t column) {
  const int least = p.bf16 ? -126 : -14;  // exponent of subnormal factors
  const auto exponent = [](double v, int smallest) { return std::max(std::ilogb(v), smallest); };
  std::vector<double> terms;
  int largest = -1000;
  const double c = p.c[row * 8 + column];
  if (c != 0) largest = exponent(c, -126);
  terms.push_back(c);
  for (uint32_t i = 0; i < p.k; i++) {
    const double a = p.widen(p.a[row * p.k + i]), b = p.widen(p.b[i * 8 + column]);
    terms.push_back(a * b);
    if (a * b != 0) largest = std::max(largest, exponent(a, least) + exponent(b, least));
  }
  const double unit = std::ldexp(1.0, largest - 25);
  double sum = 0;
  for (const double t : terms) sum += std::trunc(t / unit) * unit;
  std::fesetround(FE_TOWARDZERO);
  volatile float result = static_cast<float>(sum);
  std::fesetround(FE_TONEAREST);
  return std::bit_cast<uint32_t>(static_cast<float>(result)) & (sum == 0 ? 0u : ~0u);
}

TEST(Mma, AlignsCutsOffAndAdds) {
  for (const bool bf16 : {false, true}) {
    std::mt19937 random(bf16);
    for (int round = 0; round < 40; round++) {
      Problem p(round % 2 ? 16 : 8, bf16);
      // Finite values, exponents within a range that leaves nothing to overflow; every fourth round near zero.
      const auto factor = [&]() -> uint16_t {
        if (random() % 8 == 0) return random() % 2 << 15;
        const uint32_t sign = random() % 2 << 15;
        if (!bf16) {
          return static_cast<uint16_t>(sign | (round % 4 == 0 ? random() % 0x800 : 0x2000 + random() % 0x3000));
        }
        return static_cast<uint16_t>(sign | (round % 4 == 0 ? 0x1d00 + random() % 0x800 : 0x3c00 + random() % 0x600));
      };
      for (uint16_t& v : p.a) v = factor();
      for (uint16_t& v : p.b) v = factor();
      for (float& v : p.c) {
        const int scale = round % 4 == 0 ? (bf16 ? -120 : -30) : static_cast<int>(random() % 20) - 10;
        v = random() % 6 == 0 ? 0.0f : std::ldexp(static_cast<float>(static_cast<int32_t>(random())), scale - 31);
      }
      const std::vector<uint32_t> d = run(p);
      for (uint32_t i = 0; i < 128; i++)
        ASSERT_EQ(d[i], reference(p, i / 8, i % 8)) << "element " << i << " of round " << round << " bf16 " << bf16;
    }
  }
}

TEST(Mma, CutsTowardsZeroBelowTwoExtraBits) {
  Problem p(16, true);
  for (float& v : p.c) v = 1.0f;
  // Column n of B selects what row m of A adds: products of 2^-25 are kept, of 2^-26 are cut off.
  const auto set_row = [&](uint32_t row, uint32_t count, float value) {
    for (uint32_t i = 0; i < count; i++) p.a[row * 16 + i] = p.narrow(value);
  };
  for (uint32_t i = 0; i < 128; i++) p.b[i] = p.narrow(1.0f);
  set_row(0, 4, 0x1p-25f);
  set_row(1, 16, 0x1p-26f);
  set_row(2, 1, -0x1p-25f);
  set_row(3, 16, -0x1p-26f);
  set_row(4, 3, 0x1p-25f);
  const std::vector<uint32_t> d = run(p);
  EXPECT_EQ(d[0], 0x3f800001u);   // 1 + 4·2^-25
  EXPECT_EQ(d[8], 0x3f800000u);   // nothing
  EXPECT_EQ(d[16], 0x3f7fffffu);  // 1 − 2^-25, cut off
  EXPECT_EQ(d[24], 0x3f800000u);  // nothing
  EXPECT_EQ(d[32], 0x3f800000u);  // 1 + 3·2^-25, cut off
}

TEST(Mma, SpecialValues) {
  Problem p(8, false);
  constexpr uint16_t kOne = 0x3c00, kInf = 0x7c00, kNan = 0x7e01, kLargest = 0x7bff;
  for (uint32_t i = 0; i < 64; i++) p.b[i] = kOne;
  p.a[0 * 8] = kNan;
  p.a[1 * 8] = kInf;
  p.a[2 * 8] = kInf | 0x8000;
  p.a[3 * 8] = kInf;
  p.a[3 * 8 + 1] = kInf | 0x8000;
  for (uint32_t i = 0; i < 8; i++) p.a[4 * 8 + i] = kLargest;
  for (uint32_t n = 0; n < 8; n++) p.c[4 * 8 + n] = 0x1.fffffep127f;
  p.c[5 * 8] = -std::numeric_limits<float>::infinity();
  p.c[5 * 8 + 1] = std::numeric_limits<float>::quiet_NaN();
  p.c[6 * 8] = -0.0f;
  p.b[7] = 0;  // column 7: an infinity times zero
  const std::vector<uint32_t> d = run(p);
  EXPECT_EQ(d[0], 0x7fffffffu);
  EXPECT_EQ(d[8], 0x7f800000u);
  EXPECT_EQ(d[8 + 7], 0x7fffffffu);
  EXPECT_EQ(d[16], 0xff800000u);
  EXPECT_EQ(d[24], 0x7fffffffu);
  EXPECT_EQ(d[32], 0x7f7fffffu);  // what the products add lies below the last bit
  EXPECT_EQ(d[40], 0xff800000u);
  EXPECT_EQ(d[41], 0x7fffffffu);
  EXPECT_EQ(d[48], 0u);
  Problem q(8, true);
  for (uint16_t& v : q.a) v = 0x7f00;  // 2^127
  for (uint16_t& v : q.b) v = 0x3f80;
  EXPECT_EQ(run(q)[0], 0x7f800000u);  // 2^130
}

/// One of the other forms. Elements are bits.
struct Form {
  const char* opcode;  ///< behind "mma.sync.aligned."
  uint32_t rows, depth, bits;
  const char* result = "f32";

  bool half() const { return std::string(result) == "f16"; }
  uint32_t parts() const { return bits == 64 ? 1 : 32 / bits; }
  uint32_t words() const { return bits == 64 ? 2 : 1; }  ///< of a register
  uint32_t a_registers() const { return rows * depth / 32 / parts(); }
  uint32_t b_registers() const { return depth * 8 / 32 / parts(); }
  uint32_t sums() const { return rows / (half() ? 8 : 4); }
};
/// Row and k of element i of lane t of A, as the manual has them for each type.
std::pair<uint32_t, uint32_t> place_of_a(const Form& f, uint32_t t, uint32_t i) {
  const uint32_t g = t / 4, q = t % 4;
  const auto lower = [&](bool second) { return f.rows == 16 && second ? g + 8 : g; };
  switch (f.bits) {
    case 8:  // §9.7.14.5.10
      return {lower(!(i < 4 || (i >= 8 && i < 12))), q * 4 + (i & 3) + (i < 8 ? 0 : 16)};
    case 16:  // §9.7.14.5.8
      return {lower(!(i < 2 || (i >= 4 && i < 6))), q * 2 + (i & 1) + (i < 4 ? 0 : 8)};
    default:  // tf32: a0, a2 above, a1, a3 below; f64 likewise
      return {lower(i % 2 != 0), f.rows == 8 ? q : i / 2 * 4 + q};
  }
}
std::pair<uint32_t, uint32_t> place_of_b(const Form& f, uint32_t t, uint32_t i) {  // k, column
  const uint32_t g = t / 4, q = t % 4;
  if (f.bits == 8) return {q * 4 + (i & 3) + (i < 4 ? 0 : 16), g};
  if (f.bits == 16) return {q * 2 + (i & 1) + (i < 2 ? 0 : 8), g};
  return {q + 4 * i, g};
}

/// Matrices by row, an element in the low bits of each entry.
struct Matrices {
  std::vector<uint64_t> a, b, c;
};
template <class MakeFactor, class MakeSum>
Matrices fill(const Form& f, MakeFactor factor, MakeSum sum) {
  Matrices m;
  for (uint32_t i = 0; i < f.rows * f.depth; i++) m.a.push_back(factor());
  for (uint32_t i = 0; i < f.depth * 8; i++) m.b.push_back(factor());
  for (uint32_t i = 0; i < f.rows * 8; i++) m.c.push_back(sum());
  return m;
}

std::vector<uint64_t> run(const Form& f, const Matrices& m) {
  Options options;
  const uint32_t na = f.a_registers(), nb = f.b_registers(), nc = f.sums(), all = na + nb + nc;
  const auto put = [&](uint64_t bits) {
    for (uint32_t w = 0; w < f.words(); w++) options.in.push_back(static_cast<uint32_t>(bits >> 32 * w));
  };
  const auto at_sum = [&](uint32_t t, uint32_t i) { return (t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2; };
  for (uint32_t t = 0; t < 32; t++) {
    for (uint32_t r = 0; r < na + nb; r++) {
      uint64_t bits = 0;
      for (uint32_t h = 0; h < f.parts(); h++) {
        const auto [row, k] = place_of_a(f, t, r * f.parts() + h);
        const auto [kb, column] = place_of_b(f, t, (r - na) * f.parts() + h);
        bits |= (r < na ? m.a[row * f.depth + k] : m.b[kb * 8 + column]) << f.bits * h % 64;
      }
      put(bits);
    }
    for (uint32_t r = 0; r < nc; r++) {
      put(f.half() ? m.c[at_sum(t, 2 * r)] | m.c[at_sum(t, 2 * r + 1)] << 16 : m.c[at_sum(t, r)]);
    }
  }
  const std::string type = f.bits == 64 ? "u64 %rd" : "u32 %r", size = std::to_string(4 * f.words());
  std::string body = "mul.wide.u32 %rd31, %lane, " + std::to_string(4 * f.words() * all) +
                     ";\nadd.u64 %rd31, %in, %rd31;\nmul.wide.u32 %rd30, %lane, " + std::to_string(4 * f.words() * nc) +
                     ";\nadd.u64 %rd30, %out, %rd30;\n";
  for (uint32_t i = 0; i < all; i++)
    body += "ld.global." + type + std::to_string(i) + ", [%rd31+" + std::to_string(4 * f.words() * i) + "];\n";
  const auto list = [&](uint32_t first, uint32_t count) {
    std::string s;
    for (uint32_t i = 0; i < count; i++) s += (i > 0 ? ", " : "{") + type.substr(4) + std::to_string(first + i);
    return s + "}";
  };
  body += std::string("mma.sync.aligned.") + f.opcode + " " + list(na + nb, nc) + ", " + list(0, na) + ", " +
          list(na, nb) + ", " + list(na + nb, nc) + ";\n";
  for (uint32_t r = 0; r < nc; r++)
    body += "st.global." + type.substr(0, 3) + " [%rd30+" + std::to_string(4 * f.words() * r) + "], " + type.substr(4) +
            std::to_string(na + nb + r) + ";\n";
  const Outcome outcome = run_body(body, options);
  expect_ok(outcome);
  std::vector<uint64_t> d(size_t{f.rows} * 8);
  for (uint32_t t = 0; t < 32; t++) {
    for (uint32_t r = 0; r < nc; r++) {
      const uint32_t* words = &outcome.out[(t * nc + r) * f.words()];
      if (f.half()) {
        d[at_sum(t, 2 * r)] = words[0] & 0xffff;
        d[at_sum(t, 2 * r + 1)] = words[0] >> 16;
      } else {
        d[at_sum(t, r)] = f.bits == 64 ? words[0] | uint64_t{words[1]} << 32 : words[0];
      }
    }
  }
  return d;
}

TEST(Mma, IntegersAreExactAndWrapOrSaturate) {
  std::mt19937 random(3);
  for (const char* shape : {"m8n8k16", "m16n8k16", "m16n8k32"}) {
    for (const char* types : {"s8.s8", "s8.u8", "u8.s8", "u8.u8"}) {
      for (const bool saturate : {false, true}) {
        const std::string opcode =
            std::string(shape) + ".row.col" + (saturate ? ".satfinite" : "") + ".s32." + types + ".s32";
        SCOPED_TRACE(opcode);
        const Form f{opcode.c_str(), shape[1] == '8' ? 8u : 16u, std::string(shape) == "m16n8k32" ? 32u : 16u, 8};
        const Matrices m = fill(
            f, [&] { return random() & 0xff; },
            [&] { return random() % 3 == 0 ? 0x7fffff00 + random() % 256 : uint64_t{random()}; });
        const std::vector<uint64_t> d = run(f, m);
        const auto value = [](uint64_t bits, char sign) {
          return sign == 's' ? int64_t{static_cast<int8_t>(bits)} : static_cast<int64_t>(bits);
        };
        for (uint32_t i = 0; i < f.rows * 8; i++) {
          int64_t sum = static_cast<int32_t>(m.c[i]);
          for (uint32_t k = 0; k < f.depth; k++)
            sum += value(m.a[i / 8 * f.depth + k], types[0]) * value(m.b[k * 8 + i % 8], types[3]);
          if (saturate) sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
          ASSERT_EQ(d[i], static_cast<uint32_t>(sum)) << i;
        }
      }
    }
  }
}

TEST(Mma, DoublesAreChainsOfFma) {
  std::mt19937_64 random(4);
  for (const auto& [opcode, rows, depth] :
       {std::tuple{"m8n8k4.row.col.f64.f64.f64.f64", 8u, 4u}, std::tuple{"m16n8k4.row.col.f64.f64.f64.f64", 16u, 4u},
        std::tuple{"m16n8k8.row.col.rn.f64.f64.f64.f64", 16u, 8u},
        std::tuple{"m16n8k16.row.col.f64.f64.f64.f64", 16u, 16u}}) {
    SCOPED_TRACE(opcode);
    const Form f{opcode, rows, depth, 64};
    const auto value = [&] { return (random() & 0x800fffffffffffff) | (1018 + random() % 10) << 52; };
    const Matrices m = fill(f, value, value);
    const std::vector<uint64_t> d = run(f, m);
    for (uint32_t i = 0; i < f.rows * 8; i++) {
      double sum = std::bit_cast<double>(m.c[i]);
      for (uint32_t k = 0; k < depth; k++)
        sum = std::fma(std::bit_cast<double>(m.a[i / 8 * depth + k]), std::bit_cast<double>(m.b[k * 8 + i % 8]), sum);
      ASSERT_EQ(d[i], std::bit_cast<uint64_t>(sum)) << i;
    }
  }
}

/// The scheme of `reference` for tf32 factors and for f16 sums.
TEST(Mma, Tf32AndHalfSumsCutOffAlike) {
  std::mt19937 random(5);
  for (const Form& f :
       {Form{"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, 32}, Form{"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 32},
        Form{"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 16, "f16"},
        Form{"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 16, "f16"}}) {
    SCOPED_TRACE(f.opcode);
    for (int round = 0; round < 20; round++) {
      const uint32_t spread = 1 + static_cast<uint32_t>(round) % 12;
      // The low 13 bits of tf32 are no part of the number.
      const auto single = [&]() -> uint64_t {
        return random() % 8 == 0 ? 0 : (random() & 0x807fffff) | (120 + random() % spread) << 23;
      };
      const auto half = [&]() -> uint64_t {
        return random() % 8 == 0 ? 0 : (random() & 0x83ff) | (random() % spread + (round % 3 == 0 ? 0 : 9)) << 10;
      };
      const auto any = [&] { return f.half() ? half() : single(); };
      const Matrices m = fill(f, any, any);
      const std::vector<uint64_t> d = run(f, m);
      const auto value = [&](uint64_t bits) -> double {
        if (f.half()) return half_to_float(static_cast<uint16_t>(bits));
        return std::bit_cast<float>(static_cast<uint32_t>(bits) & 0xffffe000u);
      };
      const int least = f.half() ? -14 : -126;
      const auto exponent = [](double v, int smallest) { return std::max(std::ilogb(v), smallest); };
      for (uint32_t i = 0; i < f.rows * 8; i++) {
        const double c = f.half() ? value(m.c[i]) : std::bit_cast<float>(static_cast<uint32_t>(m.c[i]));
        std::vector<double> terms{c};
        int largest = c != 0 ? exponent(c, least) : -1000;
        for (uint32_t k = 0; k < f.depth; k++) {
          const double a = value(m.a[i / 8 * f.depth + k]), b = value(m.b[k * 8 + i % 8]);
          terms.push_back(a * b);
          if (a * b != 0) largest = std::max(largest, exponent(a, least) + exponent(b, least));
        }
        const double unit = std::ldexp(1.0, largest - 25);
        double sum = 0;
        for (const double t : terms) sum += std::trunc(t / unit) * unit;
        uint64_t want = 0;
        if (f.half()) {
          // To nearest even in double, which is exact for a multiple of f16's last bit.
          const double last = std::ldexp(1.0, (sum == 0 ? 0 : std::max(std::ilogb(sum), -14)) - 10);
          const double rounded = std::nearbyint(sum / last) * last;
          want = sum == 0                      ? 0
                 : std::fabs(rounded) >= 65536 ? 0x7c00u | (sum < 0 ? 0x8000u : 0)
                                               : float_to_half(static_cast<float>(rounded));
        } else {
          std::fesetround(FE_TOWARDZERO);
          volatile float cut = static_cast<float>(sum);
          std::fesetround(FE_TONEAREST);
          want = sum == 0 ? 0 : std::bit_cast<uint32_t>(static_cast<float>(cut));
        }
        ASSERT_EQ(d[i], want) << i << " round " << round;
      }
    }
  }
}

TEST(Mma, HalfSumsOverflowAndKeepSpecialValues) {
  const Form f{"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 16, "f16"};
  Matrices m = fill(
      f, [] { return uint64_t{0}; }, [] { return uint64_t{0}; });
  for (uint32_t i = 0; i < 64; i++) m.b[i] = 0x7800;  // 2^15
  m.a[0] = 0x7800;                                    // 2^30
  m.a[8] = 0xf800;
  m.a[16] = 0x7e00;                    // NaN
  m.a[24] = 0x0400, m.c[24] = 0x7bff;  // 2 + 65504 rounds down
  m.a[32] = 0x4c00, m.c[32] = 0xfc00;  // 2^19 − infinity
  m.c[40] = 0x8000;                    // an exact zero is +0
  m.a[48] = 0x0001;                    // 2^-24 · 2^15
  const std::vector<uint64_t> d = run(f, m);
  EXPECT_EQ(d[0], 0x7c00u);
  EXPECT_EQ(d[8], 0xfc00u);
  EXPECT_EQ(d[16], 0x7fffu);
  EXPECT_EQ(d[24], 0x7bffu);
  EXPECT_EQ(d[32], 0xfc00u);
  EXPECT_EQ(d[40], 0u);
  EXPECT_EQ(d[48], 0x1800u);
}

TEST(Mma, IsTheWholeWarps) {
  const Outcome outcome = run_body(
      "mov.u32 %r0, 0;\nsetp.lt.u32 %p0, %lane, 3;\n@%p0 ret;\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r0, %r0}, {%r0}, {%r0, %r0, %r0, "
      "%r0};");
  EXPECT_THAT(outcome.problem(), StartsWith("diverged-collective: warp 0 lanes 3-31 executes mma without lanes 0-2"));
}

}  // namespace
}  // namespace handoff::machine
