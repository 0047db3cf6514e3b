// PTX text that programs load at run time: number(out) writes `base`, a variable, + the thread's number.
#pragma once

#include <string>

inline std::string number_ptx(const std::string& target) {
  return ".version 8.7\n.target " + target + R"(
.address_size 64
.visible .global .align 4 .u32 base = 1000;
.visible .entry number(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  ld.global.u32 %r2, [base];
  add.u32 %r3, %r1, %r2;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";
}
