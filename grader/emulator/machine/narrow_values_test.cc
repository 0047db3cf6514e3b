// 4-bit pairs in registers of 8 bits, as compilers convert them: halves of a 16-bit register (PTX §9.7.9.21).
#include <gtest/gtest.h>

#include "grader/emulator/machine/testing.h"

namespace handoff::machine::testing {
namespace {

std::string entry(const std::string& body) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
         ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .b16 %h<4>; .reg .b8 %b<4>; .reg .f32 %f<4>; .reg .b32 %id;\n"
         "ld.param.u64 %rd0, [out];\nmov.u32 %id, %tid.x;\nmul.wide.u32 %rd1, %id, 4;\nadd.u64 %rd1, %rd0, %rd1;\n" +
         body + "ret;\n}\n";
}

// Each lane has two pairs: its own number and 255 minus it.
TEST(NarrowValues, PairsOfE2m1InHalvesOfARegister) {
  const Outcome o = run_module(entry(R"(
    shl.b32 %r1, %id, 3;
    sub.u32 %r2, 255, %r1;
    shl.b32 %r2, %r2, 8;
    or.b32 %r1, %r1, %r2;
    cvt.u16.u32 %h0, %r1;
    mov.b16 {%b0, %b1}, %h0;
    cvt.rn.f16x2.e2m1x2 %r3, %b0;
    cvt.rn.f16x2.e2m1x2 %r4, %b1;
    st.global.u32 [%rd1], %r3;
    st.global.u32 [%rd1+128], %r4;
    cvt.rn.satfinite.e2m1x2.f16x2 %b2, %r4;
    mov.b16 %h1, {%b2, %b0};
    cvt.u32.u16 %r5, %h1;
    st.global.u32 [%rd1+256], %r5;
    mov.b32 %f0, 0f40A00000; // 5: a tie between 4 and 6, of which 4 is even
    mov.b32 %f1, 0fC3000000; // -128: beyond the largest
    cvt.rn.satfinite.e2m1x2.f32 %b3, %f0, %f1;
    cvt.u32.u8 %r6, %b3;
    st.global.u32 [%rd1+384], %r6;
  )"));
  ASSERT_EQ(o.problem(), "");
  const uint16_t halves[8] = {0, 0x3800, 0x3c00, 0x3e00, 0x4000, 0x4200, 0x4400, 0x4600};  // 0, .5, 1, 1.5, 2, 3, 4, 6
  const auto half = [&](uint32_t code) { return halves[code & 7] | (code & 8) << 12; };
  for (uint32_t lane = 0; lane < 32; lane++) {
    const uint32_t low = 8 * lane, high = 255 - 8 * lane;
    EXPECT_EQ(o.out[lane], half(low >> 4) << 16 | half(low)) << lane;
    EXPECT_EQ(o.out[32 + lane], half(high >> 4) << 16 | half(high)) << lane;
    EXPECT_EQ(o.out[64 + lane], high | low << 8) << lane;
    EXPECT_EQ(o.out[96 + lane], 0x6fu) << lane;
  }
}

TEST(NarrowValues, Eight32BitRegistersAtOnce) {
  const Outcome o = run_module(entry(R"(
    mul.wide.u32 %rd1, %id, 32;
    add.u64 %rd1, %rd0, %rd1;
    add.u32 %r1, %id, 10;
    st.global.v8.b32 [%rd1], {%id, %r1, 2, 3, 4, 5, 6, %id};
    ld.global.L1::no_allocate.v8.b32 {%r0, %r1, _, _, %r4, _, _, %r7}, [%rd1];
    st.relaxed.cta.global.L1::no_allocate.v8.b32 [%rd1+1024], {%r7, %r4, %r1, %r0, 0, 0, 0, 1};
    ld.global.v4.b64 {%rd0, %rd2, _, %rd3}, [%rd1+1024];
    st.global.v4.b64 [%rd1+2048], {%rd3, %rd2, %rd0, %rd0};
  )"));
  ASSERT_EQ(o.problem(), "");
  for (uint32_t lane = 0; lane < 32; lane++) {
    const std::vector<uint32_t> row(o.out.begin() + 512 + 8 * lane, o.out.begin() + 520 + 8 * lane);
    EXPECT_EQ(row, (std::vector<uint32_t>{0, 1, lane + 10, lane, lane, 4, lane, 4})) << lane;
  }
  // All 32 bytes are aligned as one.
  EXPECT_EQ(run_module(entry("add.u64 %rd1, %rd0, 16;\nld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, "
                             "[%rd1];\n"))
                .problem()
                .substr(0, 11),
            "misaligned:");
}

}  // namespace
}  // namespace handoff::machine::testing
