// SPDX-License-Identifier: Apache-2.0
//
// Small PTX texts for sm_90a: sound, broken, and such that the assembler has
// something to report.
#pragma once

#include <string>

namespace spargejit::unit {

/// add_one(int32 *data, uint32 count): data[i] += 1. 16 bytes of shared memory.
inline constexpr const char *kAddOnePtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry add_one(.param .u64 data, .param .u32 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %d<3>;
  .shared .align 4 .b32 note[4];
  ld.param.u64 %d1, [data];
  ld.param.u32 %r4, [count];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  setp.ge.u32 %p, %r1, %r4;
  @%p ret;
  cvta.to.global.u64 %d1, %d1;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r5, [%d1];
  add.u32 %r5, %r5, 1;
  st.volatile.shared.u32 [note], %r5;
  st.global.u32 [%d1], %r5;
  ret;
}
)";

/// Line 7 has an undeclared register, line 8 no instruction.
inline constexpr const char *kBrokenPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry broken(.param .u64 data)
{
  .reg .b32 %r<3>;
  add.u32 %r1, %r2, %undeclared;
  frobnicate.u32 %r1;
  ret;
}
)";

/// setmaxnreg without a number of threads: the assembler cannot honour it.
inline constexpr const char *kIgnoredRegistersPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry ignored(.param .u64 data)
{
  .reg .b64 %d<2>;
  .reg .b32 %r<2>;
  setmaxnreg.dec.sync.aligned.u32 24;
  ld.param.u64 %d1, [data];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  st.global.u32 [%d1], %r1;
  ret;
}
)";

/// `values` numbers that live at once in `registers` registers; entry "spills".
inline std::string spillingPtx(int values, int registers) {
  auto each = [&](auto line) {
    std::string text;
    for (int i = 0; i < values; ++i)
      text += line(i);
    return text;
  };
  auto value = [](int i) { return "%f" + std::to_string(i); };
  auto place = [](int i) { return "[%d1+" + std::to_string(4 * i) + "]"; };
  return ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".visible .entry spills(.param .u64 data)\n"
         ".maxntid 128, 1, 1\n.maxnreg " +
         std::to_string(registers) +
         "\n{\n  .reg .b64 %d<2>;\n  .reg .f32 %f<" + std::to_string(values) +
         ">;\n  ld.param.u64 %d1, [data];\n  cvta.to.global.u64 %d1, %d1;\n" +
         each([&](int i) {
           return "  ld.volatile.global.f32 " + value(i) + ", " + place(i) +
                  ";\n";
         }) +
         "  bar.sync 0;\n" + each([&](int i) {
           return "  mul.f32 " + value(i) + ", " + value(i) + ", " +
                  value((7 * i + 3) % values) + ";\n";
         }) +
         each([&](int i) {
           return "  st.volatile.global.f32 " + place(i) + ", " + value(i) +
                  ";\n";
         }) +
         "  ret;\n}\n";
}

} // namespace spargejit::unit
