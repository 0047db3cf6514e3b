// Tested by conformance_test.cc.
//
// A case that needs one pattern finds it at a fixed place; a case that sweeps takes all 128 floats. Every recorded
// answer depends on these lists: to change a word is to record the suite anew.
#include "grader/conformance/inputs.h"

#include <array>

#include "grader/conformance/record.h"

namespace handoff::conformance {
namespace {

// Magnitudes of binary32; each goes in as +x and as −x.
constexpr auto kFloats = std::to_array<uint32_t>({
    0x00000000,  // 0
    0x00000001,  // the smallest subnormal
    0x007fffff,  // the largest subnormal
    0x00800000,  // the smallest normal, 2^-126
    0x3f800000,  // 1
    0x3f800001,  // 1 + ulp
    0x7f7fffff,  // the largest finite
    0x7f800000,  // infinity
    0x7fc00000,  // a quiet NaN without a payload
    0x7fffffff,  // the quiet NaN that arithmetic gives
    0x7fc12345,  // a quiet NaN with a payload
    0x7f800001,  // signalling NaNs
    0x7fbfffff,
    0x4effffff,  // around 2^31
    0x4f000000, 0x4f000001,
    0x4f7fffff,  // around 2^32
    0x4f800000, 0x4f800001,
    0x5effffff,  // around 2^63
    0x5f000000, 0x5f000001,
    0x5f7fffff,  // around 2^64
    0x5f800000,
    0x3effffff,  // around 0.5
    0x3f000000, 0x3f000001,
    0x3fbfffff,  // around 1.5
    0x3fc00000, 0x3fc00001,
    0x40200000,  // 2.5
    0x40600000,  // 3.5
    0x4affffff,  // 2^23 - 0.5
    0x4b000000,  // 2^23
    0x4b7fffff,  // 2^24 - 1
    0x4b800000,  // 2^24
    0x00000002,  // more subnormals
    0x00000003, 0x00400000, 0x00555555,
    0x00800001,  // near the smallest normal
    0x01000000,
    0x1f800000,  // 2^-64, whose square is subnormal
    0x20000000,  // 2^-63, whose square is the smallest normal
    0x3f7fffff,  // 1 - ulp
    0x40000000,  // 2
    0x40400000,  // 3
    0x40490fdb,  // pi
    0x3eaaaaab,  // 1/3
    0x3dcccccd,  // 0.1
    0x3f801000,  // halfway between neighbours in binary16: 1 + 2^-11, even below
    0x3f803000,  // the same, odd below
    0x3f801001,  // just above halfway
    0x3f808000,  // halfway between neighbours in bfloat16: 1 + 2^-8, even below
    0x3f818000,  // the same, odd below
    0x3f808001,  // just above halfway
    0x33000000,  // 2^-25: half of the smallest subnormal of binary16
    0x33800000,  // 2^-24: the smallest subnormal of binary16
    0x38800000,  // 2^-14: the smallest normal of binary16
    0x477fe000,  // 65504, the largest binary16
    0x477fefff,  // below halfway to what overflows binary16
    0x477ff000,  // 65520, halfway
    0x7f7f8000,  // halfway between the largest bfloat16 and overflow
    0x437f8000,  // 255.5
});

constexpr auto kIntegers = std::to_array<uint32_t>(
    {// Zero, one, minus one, the ends of the signed range and their neighbours.
     0x00000000, 0x00000001, 0xffffffff, 0x80000000, 0x7fffffff, 0x00000002, 0xfffffffe, 0x80000001, 0x7ffffffe,
     // A byte's edges.
     0x00000080, 0x000000ff, 0x0000007f, 0x00000081, 0x00000100, 0x0000007e, 0x000000fe, 0xffffff80, 0xffffff7f,
     // A halfword's edges.
     0x00008000, 0x0000ffff, 0x00007fff, 0x00008001, 0x00010000, 0x00007ffe, 0x0000fffe, 0xffff8000, 0xffff7fff,
     // Counts of shifts and bit fields.
     0x00000003, 0x00000004, 0x00000008, 0x0000000f, 0x00000010, 0x00000018, 0x0000001f, 0x00000020, 0x00000021,
     0x0000003f, 0x00000040,
     // Patterns.
     0x55555555, 0xaaaaaaaa, 0x33333333, 0xcccccccc, 0x0f0f0f0f, 0xf0f0f0f0, 0x00ff00ff, 0xff00ff00, 0x01020304,
     0x80818283, 0x7f80ff00, 0x12345678, 0xdeadbeef, 0x0000aaaa, 0xffff0000, 0x00ffffff, 0xff000000, 0x00fff000,
     // Small, middling and large numbers.
     0x00000007, 0x0000000a, 0xfffffff9, 0x000003e8, 0x3b9aca00, 0xc4653600, 0x0000b505, 0x00010001});

// The lower half stands in bits 0–15.
constexpr auto kHalves = std::to_array<uint32_t>({
    0x80000000,  // +0, -0
    0x80010001,  // the smallest subnormals
    0x83ff03ff,  // the largest subnormals
    0x84000400,  // the smallest normals
    0xbc003c00,  // 1, -1
    0xbc013c01,  // 1 + ulp
    0xfbff7bff,  // the largest finite
    0xfc007c00,  // infinities
    0xfe007e00,  // quiet NaNs
    0xffff7fff,  // the quiet NaN that arithmetic gives
    0xfd557e55,  // a quiet NaN with a payload, a signalling one
    0x7c01fc01,  // signalling NaNs
    0x3c007e00,  // a NaN beside 1
    0x7c000000,  // 0 beside infinity
    0x00008000,  // -0 beside 0
    0x38003800,  // 0.5
    0x37ff3801,  // its neighbours
    0x3e004100,  // 2.5, 1.5
    0x42003555,  // 1/3, 3
    0x64006800,  // 2048, 1024: where integers end
    0x67ff6801,  // 2050, 2047
    0x7bff3c00,  // 1 beside the largest finite
    0x78007800,  // 32768: twice this overflows
    0x04010401,  // near the smallest normal
    0x0c000c00,  // 2^-12: whose square is the smallest subnormal
    0x0bff0c01,  // its neighbours
    0x4248c248,  // pi
    0x2e66ae66,  // 0.1
    0x5bf85c00,  // 256, 255
    0xdc005800,  // 128, -256
    0x1400b400,  // -0.25, 2^-10
    0x3c01bbff,  // neighbours of 1
});

constexpr auto kBfloats = std::to_array<uint32_t>({
    0x80000000,  // +0, -0
    0x80010001,  // the smallest subnormals
    0x807f007f,  // the largest subnormals
    0x80800080,  // the smallest normals
    0xbf803f80,  // 1, -1
    0xbf813f81,  // 1 + ulp
    0xff7f7f7f,  // the largest finite
    0xff807f80,  // infinities
    0xffc07fc0,  // quiet NaNs
    0xffff7fff,  // the quiet NaN that arithmetic gives
    0xff957fd5,  // a quiet NaN with a payload, a signalling one
    0x7f81ff81,  // signalling NaNs
    0x3f807fc0,  // a NaN beside 1
    0x7f800000,  // 0 beside infinity
    0x00008000,  // -0 beside 0
    0x3f003f00,  // 0.5
    0x3eff3f01,  // its neighbours
    0x3fc04020,  // 2.5, 1.5
    0x40403eab,  // 1/3, 3
    0x43004380,  // 256, 128: where integers end
    0x437f4381,  // 258, 255
    0x7f7f3f80,  // 1 beside the largest finite
    0x7f007f00,  // 2^127: twice this overflows
    0x00810081,  // near the smallest normal
    0x1f801f80,  // 2^-64: whose square is subnormal
    0x1f7f1f81,  // its neighbours
    0x4049c049,  // pi
    0x3dcdbdcd,  // 0.1
    0x477f4780,  // 65536, 65280
    0xc3804f00,  // 2^31, -256
    0x3a80be80,  // -0.25, 2^-10
    0x3f81bf7f,  // neighbours of 1
});

// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, with Vigna's constants.
uint64_t splitmix64(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<uint32_t> input_words() {
  static_assert(2 * kFloats.size() == kIntegerWords - kFloatWords && kIntegers.size() == kHalfWords - kIntegerWords &&
                kHalves.size() == kBfloatWords - kHalfWords && kBfloats.size() == kRandomWords - kBfloatWords);
  constexpr uint32_t kSign = 0x80000000;
  std::vector<uint32_t> words;
  words.reserve(kInputWords);
  for (uint32_t f : kFloats) words.insert(words.end(), {f, f | kSign});
  words.insert(words.end(), kIntegers.begin(), kIntegers.end());
  words.insert(words.end(), kHalves.begin(), kHalves.end());
  words.insert(words.end(), kBfloats.begin(), kBfloats.end());
  for (uint64_t state = 1; words.size() < kInputWords;) words.push_back(static_cast<uint32_t>(splitmix64(&state)));
  return words;
}

std::string inputs_fingerprint() { return hash_words(input_words()); }

}  // namespace handoff::conformance
