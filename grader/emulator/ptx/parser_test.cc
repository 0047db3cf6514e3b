#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "grader/emulator/ptx/module.h"

namespace handoff::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Operand::Kind;

constexpr char kHeader[] = ".version 9.0\n.target sm_100a\n.address_size 64\n";

Module parsed(const std::string& text) {
  Module module;
  ParseError error;
  EXPECT_TRUE(parse(text, &module, &error)) << error.line << ":" << error.column << ": " << error.message << "\n"
                                            << text;
  return module;
}

/// A kernel `k` with one 64-bit parameter `p`.
Module kernel(const std::string& body) {
  return parsed(kHeader + (".visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n"));
}

ParseError refused(const std::string& text) {
  Module module;
  ParseError error;
  EXPECT_FALSE(parse(text, &module, &error)) << text;
  return error;
}

ParseError refused_body(const std::string& body) {
  return refused(kHeader + (".visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n"));
}

const Statement& only(const Module& module) {
  EXPECT_EQ(module.functions.size(), 1u);
  return module.functions[0].statements[0];
}

const std::string& register_name(const Module& module, const Operand& operand) {
  EXPECT_EQ(operand.kind, Kind::Register);
  return module.functions[0].registers[operand.reg].name;
}

TEST(Parser, ReadsTheHeader) {
  const Module module = parsed(".version 8.7\n.target sm_90a, debug\n.address_size 64\n");
  EXPECT_EQ(module.version_major, 8);
  EXPECT_EQ(module.version_minor, 7);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_EQ(module.address_size, 64);
}

TEST(Parser, OpcodeNeedsNoSpaceBeforeItsOperands) {
  const Module module = kernel(".reg .b32 %r<4>;\ntcgen05.ld.sync.aligned.32x32b.x1.b32{%r1},[%r2];");
  const Statement& s = only(module);
  EXPECT_THAT(s.opcode, ElementsAre("tcgen05", "ld", "sync", "aligned", "32x32b", "x1", "b32"));
  ASSERT_EQ(s.operands.size(), 2u);
  EXPECT_EQ(s.operands[0].kind, Kind::Vector);
  EXPECT_EQ(register_name(module, s.operands[0].elements[0]), "%r1");
  EXPECT_EQ(s.operands[1].kind, Kind::Address);
  EXPECT_EQ(s.text, "tcgen05.ld.sync.aligned.32x32b.x1.b32{%r1},[%r2];");
}

TEST(Parser, OpcodeMayBeBrokenAcrossLines) {
  const Module module = kernel("mbarrier.try_wait // c\n .parity.shared::cta.b64 _, [p], 0;");
  EXPECT_THAT(only(module).opcode, ElementsAre("mbarrier", "try_wait", "parity", "shared::cta", "b64"));
  EXPECT_EQ(only(module).text, "mbarrier.try_wait .parity.shared::cta.b64 _, [p], 0;");
}

TEST(Parser, BlocksScopeRegistersAndLabels) {
  const Module module = kernel(R"(
    .reg .pred p1; .reg .b32 r;
    { .reg .pred P; .reg .b32 r; W: setp.eq.s32 P, r, 0; @P bra W; bra D; D: }
    { .reg .pred P; .reg .b64 r; W: mov.b64 r, 1; @!P bra W; }
    ;
    mov.b32 r, 2;
    bra OUT;
    { bra OUT; }
    OUT: ret;)");
  const Function& f = module.functions[0];
  ASSERT_EQ(f.statements.size(), 9u);
  EXPECT_EQ(f.registers[f.statements[0].operands[1].reg].type, Type::B32);
  EXPECT_EQ(f.registers[f.statements[3].operands[0].reg].type, Type::B64);
  EXPECT_NE(f.statements[0].operands[1].reg, f.statements[5].operands[0].reg);
  EXPECT_NE(f.statements[1].guard, f.statements[4].guard);
  EXPECT_FALSE(f.statements[1].guard_negated);
  EXPECT_TRUE(f.statements[4].guard_negated);
  EXPECT_EQ(f.statements[1].operands[0].target, 0u);
  EXPECT_EQ(f.statements[2].operands[0].target, 3u);  // D stands at the end of its block
  EXPECT_EQ(f.statements[4].operands[0].target, 3u);
  EXPECT_EQ(f.statements[6].operands[0].target, 8u);
  EXPECT_EQ(f.statements[7].operands[0].target, 8u);  // from an inner block outwards, forwards
}

TEST(Parser, ABlockHidesAndThenGivesBackANumberedRange) {
  const Module module = kernel(
      ".reg .b32 %r<4>;\nmov.b32 %r1, 0;\n{ .reg .b64 %r<2>; mov.b64 %r1, 0; { .reg .f32 %r1; mov.f32 %r1, "
      "0f00000000; } }\nmov.b32 %r1, 1;");
  const Function& f = module.functions[0];
  EXPECT_EQ(f.registers[f.statements[1].operands[0].reg].type, Type::B64);
  EXPECT_EQ(f.registers[f.statements[2].operands[0].reg].type, Type::F32);
  EXPECT_EQ(f.statements[0].operands[0].reg, f.statements[3].operands[0].reg);
}

TEST(Parser, RangesOfRegistersAreMadeOnFirstUse) {
  const Module module =
      kernel(".reg .b32 %r<2000000000>, %x1<3>;\nadd.s32 %r1999999999, %r0, %r0;\nmov.b32 %x12, %r70000;");
  const Function& f = module.functions[0];
  ASSERT_EQ(f.registers.size(), 4u);
  EXPECT_EQ(f.registers[0].name, "%r1999999999");
  EXPECT_EQ(f.registers[1].name, "%r0");
  EXPECT_EQ(f.registers[2].name, "%x12");
  EXPECT_EQ(f.statements[0].operands[1].reg, f.statements[0].operands[2].reg);
  EXPECT_THAT(refused_body(".reg .b32 %r<4>;\nmov.b32 %r4, 0;").message, HasSubstr("undeclared register '%r4'"));
  EXPECT_THAT(refused_body(".reg .b32 %r<4>;\nmov.b32 %r03, 0;").message, HasSubstr("undeclared register '%r03'"));
}

TEST(Parser, Operands) {
  const Module module = kernel(R"(
    .reg .pred p, q; .reg .b32 %r<9>; .reg .b64 %rd<3>; .shared .align 8 .b8 buf[64];
    shfl.sync.idx.b32 %r1|p, %r2, 0x1f, 037, -1;
    elect.sync _|q, 0xffffffffU;
    ld.global.v4.f32 {%r1, %r2, _, %r4}, [%rd1+-8];
    st.shared.b32 [buf+8], -5;
    mov.u32 %r1, %tid.x;
    mov.u64 %rd1, buf;
    fma.rn.f32 %r1, 0f3F800000, -0f40000000, %r2;
    add.f64 %rd1, %rd2, 0dBFF0000000000000;
    createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [%rd1, {%r1, %r2}], [buf+32];
    selp.b32 %r1, WARP_SZ, 0b101, !p;
    mov.b32 %r1, ~1+2*3<<1;
    ld.shared.b32 %r1, [16];
    mov.u32 %r1, %envreg3;
    ld.param.u64 %rd1, [p];)");
  const auto& s = module.functions[0].statements;
  EXPECT_EQ(s[0].operands[0].kind, Kind::Pair);
  EXPECT_EQ(register_name(module, s[0].operands[0].elements[1]), "p");
  EXPECT_EQ(s[0].operands[2].bits, 31u);
  EXPECT_EQ(s[0].operands[3].bits, 31u);
  EXPECT_EQ(s[0].operands[4].bits, ~0ull);
  EXPECT_EQ(s[1].operands[0].elements[0].kind, Kind::Sink);
  EXPECT_EQ(s[1].operands[1].bits, 0xffffffffu);
  EXPECT_EQ(s[2].operands[0].elements[2].kind, Kind::Sink);
  EXPECT_EQ(s[2].operands[1].offset, -8);
  EXPECT_EQ(s[3].operands[0].kind, Kind::Address);
  EXPECT_EQ(s[3].operands[0].elements[0].kind, Kind::Symbol);
  EXPECT_EQ(s[3].operands[0].elements[0].name, "buf");
  EXPECT_EQ(s[3].operands[0].offset, 8);
  EXPECT_EQ(s[3].operands[1].bits, static_cast<uint64_t>(-5));
  EXPECT_EQ(s[4].operands[1].kind, Kind::Special);
  EXPECT_EQ(s[4].operands[1].name, "%tid.x");
  EXPECT_EQ(s[5].operands[1].kind, Kind::Symbol);
  EXPECT_EQ(s[6].operands[1].kind, Kind::Float32);
  EXPECT_EQ(s[6].operands[2].bits, 0xc0000000u);
  EXPECT_EQ(s[7].operands[2].kind, Kind::Float64);
  EXPECT_EQ(s[8].operands[1].kind, Kind::Float64);
  EXPECT_EQ(s[8].operands[1].bits, 0x3ff0000000000000u);
  const Operand& map = s[9].operands[1];
  ASSERT_EQ(map.elements.size(), 2u);
  EXPECT_EQ(map.elements[1].kind, Kind::Vector);
  EXPECT_EQ(map.elements[1].elements.size(), 2u);
  EXPECT_EQ(s[9].operands[2].offset, 32);
  EXPECT_EQ(s[10].operands[1].bits, 32u);
  EXPECT_EQ(s[10].operands[2].bits, 5u);
  EXPECT_TRUE(s[10].operands[3].negated);
  EXPECT_EQ(static_cast<int64_t>(s[11].operands[1].bits), (~1 + 2 * 3) * 2);
  EXPECT_EQ(s[12].operands[1].elements[0].kind, Kind::Integer);
  EXPECT_EQ(s[12].operands[1].elements[0].bits, 16u);
  EXPECT_EQ(s[13].operands[1].name, "%envreg3");
  // The register p is in sight where the parameter p is named: the inner name wins.
  EXPECT_EQ(s[14].operands[1].elements[0].kind, Kind::Register);
}

TEST(Parser, SignBindsTighterThanASum) {
  const Module module = kernel(".reg .b64 %rd1;\nmov.b64 %rd1, -3+4;\nmov.b64 %rd1, - -7;");
  EXPECT_EQ(module.functions[0].statements[0].operands[1].bits, 1u);
  EXPECT_EQ(module.functions[0].statements[1].operands[1].bits, 7u);
}

TEST(Parser, CallsWithAndWithoutResult) {
  const Module module = parsed(std::string(kHeader) + R"(
    .extern .func  (.param .b32 func_retval0) vprintf ( .param .b64 vprintf_param_0, .param .b64 vprintf_param_1 ) ;
    .func quiet() { ret; }
    .visible .entry k() {
      .reg .b32 %r<3>; .reg .b64 %rd<3>;
      { // callseq 0, 0
      .param .b64 param0; st.param.b64 [param0], %rd1; .param .b64 param1; .param .b32 retval0;
      call.uni (retval0),
      vprintf,
      (
      param0,
      param1
      );
      ld.param.b32 %r1, [retval0]; } // callseq 0
      { .param .align 8 .b8 param0[24]; st.param.b64 [param0+8], %rd2; call.uni quiet; }
      { .param .b32 retval0; .param .b32 param0;
        call (retval0), %rd2, (param0), prototype_1;
        prototype_1 : .callprototype (.param .b32 _) _ (.param .b32 _); }
      ret; })");
  ASSERT_EQ(module.functions.size(), 3u);
  EXPECT_FALSE(module.functions[0].has_body);
  EXPECT_EQ(module.functions[0].params.size(), 2u);
  EXPECT_EQ(module.functions[0].returns.size(), 1u);
  const Function& k = module.functions[2];
  const Statement& print = k.statements[1];
  ASSERT_EQ(print.operands.size(), 3u);
  EXPECT_EQ(print.operands[0].elements[0].name, "retval0");
  EXPECT_EQ(print.operands[1].name, "vprintf");
  EXPECT_EQ(print.operands[2].elements.size(), 2u);
  EXPECT_EQ(print.text, "call.uni (retval0), vprintf, ( param0, param1 );");
  const Statement& store = k.statements[3];
  EXPECT_EQ(store.operands[0].elements[0].name, "param0@1");
  EXPECT_EQ(k.statements[4].operands.size(), 1u);
  const Statement& indirect = k.statements[5];
  ASSERT_EQ(indirect.operands.size(), 4u);
  EXPECT_EQ(indirect.operands[0].elements[0].name, "retval0@1");
  EXPECT_EQ(indirect.operands[1].kind, Kind::Register);
  EXPECT_EQ(indirect.operands[3].kind, Kind::Symbol);
  EXPECT_EQ(indirect.operands[3].name, "prototype_1");
  std::vector<std::string> names;
  for (const Variable& variable : k.variables) names.push_back(variable.name);
  EXPECT_THAT(names, ElementsAre("param0", "param1", "retval0", "param0@1", "retval0@1", "param0@2"));
  EXPECT_EQ(k.variables[3].size, 24u);
}

TEST(Parser, BranchTables) {
  const Module module = kernel(R"(
    .reg .b32 %r1;
    $L_brx_0: .branchtargets
      $L1,
      $L2;
    brx.idx %r1, $L_brx_0;
    $L1: trap;
    $L2: ret;)");
  const Statement& s = only(module);
  ASSERT_EQ(s.operands[1].kind, Kind::Vector);
  ASSERT_EQ(s.operands[1].elements.size(), 2u);
  EXPECT_EQ(s.operands[1].elements[0].target, 1u);
  EXPECT_EQ(s.operands[1].elements[1].target, 2u);
}

TEST(Parser, EntryDirectivesAndParameters) {
  const Module module = parsed(std::string(kHeader) + R"(
    .visible .entry k(
      .param .u64 .ptr .align 1 k_param_0,
      .param .u64 .ptr .global .align 16 k_param_1,
      .param .align 64 .b8 k_param_2[128],
      .param .f32 k_param_3
    )
    .explicitcluster
    .reqnctapercluster 2, 1, 1
    .maxntid 256
    .minnctapersm 1
    .maxnreg 168
    { .pragma "nounroll"; ret; }
    .entry n .reqntid 32, 4 { }
  )");
  const Function& k = module.functions[0];
  EXPECT_TRUE(k.is_entry);
  EXPECT_TRUE(k.explicit_cluster);
  EXPECT_THAT(k.reqnctapercluster, ElementsAre(2, 1, 1));
  EXPECT_THAT(k.maxntid, ElementsAre(256, 1, 1));
  EXPECT_EQ(k.minnctapersm, 1u);
  EXPECT_EQ(k.maxnreg, 168u);
  ASSERT_EQ(k.params.size(), 4u);
  EXPECT_EQ(k.params[0].align, 8u);
  EXPECT_EQ(k.params[0].size, 8u);
  EXPECT_EQ(k.params[2].align, 64u);
  EXPECT_EQ(k.params[2].size, 128u);
  EXPECT_EQ(k.params[3].type, Type::F32);
  EXPECT_THAT(module.functions[1].reqntid, ElementsAre(32, 4, 1));
  EXPECT_THAT(module.functions[1].maxntid, ElementsAre(0, 0, 0));
}

TEST(Parser, ABodyThatRunsOffItsEndReturns) {
  const Module module = kernel(".reg .pred q;\n@q bra END;\ntrap;\nEND:");
  const auto& s = module.functions[0].statements;
  ASSERT_EQ(s.size(), 3u);
  EXPECT_EQ(s[0].operands[0].target, 2u);
  EXPECT_THAT(s[2].opcode, ElementsAre("ret"));
  EXPECT_EQ(kernel("ret;").functions[0].statements.size(), 1u);
}

TEST(Parser, ModuleVariablesAndTheirInitialValues) {
  const Module module = parsed(std::string(kHeader) + R"(
    .extern .shared .align 16 .b8 dyn[];
    .global .align 1 .b8 $str[4] = {97, 98, 0x63, 0};
    .const .align 4 .f32 t[4] = {0f3F800000, 1.5, -2};
    .visible .global .align 4 .u32 m[2][3] = {{1, 2}, {4}};
    .global .align 8 .u64 ptrs[3] = {generic($str)+2, m-4, 7};
    .global .align 8 .b8 packed[9] = {5, 0xFF(generic(m)+4), 0xFF00(generic(m)+4), 0xFF0000(generic(m)+4),
      0xFF000000(generic(m)+4)};
    .weak .global .align 8 .f64 one = 0d3FF0000000000000;
    .global .v4 .f32 quad = {1.0, 2.0, 3.0, 4.0};
    .global .u16 open[] = {1, 2, 3};
    .global .attribute(.managed) .align 4 .b32 managed;
    .const .s32 minus = -1;
    .extern .global .u32 elsewhere;
    .global .u32 elsewhere = 3;
  )");
  EXPECT_TRUE(module.find_variable("dyn")->unsized);
  EXPECT_TRUE(module.find_variable("dyn")->external);
  EXPECT_EQ(module.find_variable("dyn")->align, 16u);
  EXPECT_THAT(module.find_variable("$str")->init, ElementsAre(97, 98, 99, 0));
  EXPECT_THAT(module.find_variable("t")->init, ElementsAre(0, 0, 0x80, 0x3f, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0));
  EXPECT_EQ(module.find_variable("t")->size, 16u);
  const Variable& m = *module.find_variable("m");
  EXPECT_EQ(m.size, 24u);
  EXPECT_THAT(m.init, ElementsAre(1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0));
  const Variable& ptrs = *module.find_variable("ptrs");
  ASSERT_EQ(ptrs.relocs.size(), 2u);
  EXPECT_EQ(ptrs.relocs[0].symbol, "$str");
  EXPECT_EQ(ptrs.relocs[0].addend, 2);
  EXPECT_TRUE(ptrs.relocs[0].generic);
  EXPECT_EQ(ptrs.relocs[0].size, 8u);
  EXPECT_EQ(ptrs.relocs[1].offset, 8u);
  EXPECT_EQ(ptrs.relocs[1].addend, -4);
  EXPECT_FALSE(ptrs.relocs[1].generic);
  EXPECT_EQ(ptrs.init[16], 7);
  const Variable& packed = *module.find_variable("packed");
  ASSERT_EQ(packed.relocs.size(), 1u);
  EXPECT_EQ(packed.relocs[0].offset, 1u);
  EXPECT_EQ(packed.relocs[0].size, 4u);
  EXPECT_EQ(packed.relocs[0].addend, 4);
  EXPECT_EQ(module.find_variable("one")->init[7], 0x3f);
  EXPECT_EQ(module.find_variable("quad")->size, 16u);
  EXPECT_EQ(module.find_variable("open")->size, 6u);
  EXPECT_FALSE(module.find_variable("open")->unsized);
  EXPECT_EQ(module.find_variable("managed")->size, 4u);
  EXPECT_THAT(module.find_variable("minus")->init, ElementsAre(255, 255, 255, 255));
  EXPECT_FALSE(module.find_variable("elsewhere")->external);
  EXPECT_EQ(module.find_variable("nowhere"), nullptr);
}

TEST(Parser, LocationsLeadOutOfInlining) {
  const Module module = parsed(std::string(kHeader) + R"(
    .visible .entry k() {
      .loc 1 10 3
      .loc 2 69 9, function_name $L__info_string0, inlined_at 1 10 3
      .loc 3 292 5, function_name $L__info_string0 + 6, inlined_at 2 69 9
      trap;
      .loc 1 12 3
      trap;
      .loc 2 69 9, function_name $L__info_string0, inlined_at 1 10 3
      trap;
      ret;
    }
    .file 1 "/a/kernel.cu"
    .file 2 "/b/ptx.h", 1234, 99
    .section .debug_abbrev { .b8 1 { nested } .b32 .debug_info }
    .section .debug_str
    {
$L__info_string0:
.b8 95
.b8 90,102,49,0
.b8 10
.b8 103
.b8 0
    })");
  const auto& s = module.functions[0].statements;
  const auto& inner = module.locations[static_cast<size_t>(s[0].location)];
  EXPECT_EQ(inner.file, 3u);
  EXPECT_EQ(inner.line, 292u);
  EXPECT_EQ(inner.function, "g");
  const auto& middle = module.locations[static_cast<size_t>(inner.inlined_at)];
  EXPECT_EQ(middle.line, 69u);
  EXPECT_EQ(middle.function, "_Zf1");
  const auto& outer = module.locations[static_cast<size_t>(middle.inlined_at)];
  EXPECT_EQ(outer.file, 1u);
  EXPECT_EQ(outer.line, 10u);
  EXPECT_EQ(outer.column, 3u);
  EXPECT_EQ(outer.inlined_at, -1);
  EXPECT_EQ(s[2].location, inner.inlined_at);  // the same place once
  EXPECT_EQ(module.locations.size(), 4u);
  EXPECT_EQ(module.files.at(1), "/a/kernel.cu");
  EXPECT_EQ(module.files.at(2), "/b/ptx.h");
}

TEST(Parser, AnInliningWhoseCallWasNotWrittenStillLeadsThere) {
  const Module module = kernel(".loc 6 62 3, function_name $X, inlined_at 5 35 13\nret;");
  const Location& inner = module.locations[static_cast<size_t>(only(module).location)];
  ASSERT_GE(inner.inlined_at, 0);
  EXPECT_EQ(module.locations[static_cast<size_t>(inner.inlined_at)].line, 35u);
  EXPECT_EQ(inner.function, "");  // no .debug_str
}

TEST(Parser, StatementsKnowTheirLine) {
  const Module module = kernel("/* two\nlines */ trap;\n// c\n\nret;");
  EXPECT_EQ(module.functions[0].statements[0].line, 7u);
  EXPECT_EQ(module.functions[0].statements[1].line, 10u);
  EXPECT_EQ(module.functions[0].statements[0].location, -1);
}

TEST(Parser, TextIsFoldedAndKeepsItsGuard) {
  const Module module = kernel(".reg .pred %p1;\n@!%p1   bra /* far */\n\t END; // x\nEND: ret;");
  EXPECT_EQ(only(module).text, "@!%p1 bra END;");
}

TEST(Parser, AliasesAndDeclarationsLeadToTheBody) {
  const Module module =
      parsed(std::string(kHeader) + ".func f;\n.func f { ret; }\n.weak .func g() { ret; }\n.alias h, f;\n.alias i, h;");
  EXPECT_EQ(module.functions.size(), 3u);
  EXPECT_TRUE(module.find_function("f")->has_body);
  EXPECT_EQ(module.find_function("i"), module.find_function("f"));
  EXPECT_EQ(module.find_function("nobody"), nullptr);
}

TEST(Parser, RegistersAsParameters) {
  const Module module = parsed(std::string(kHeader) + ".func (.reg .b32 r) f(.reg .b32 a) { add.s32 r, a, 1; ret; }");
  EXPECT_EQ(register_name(module, module.functions[0].statements[0].operands[1]), "a");
}

TEST(Parser, ABranchGoesToALabelEvenIfAVariableHasItsName) {
  const Module module = parsed(std::string(kHeader) + ".global .u32 done;\n.entry k() { bra done; trap; done: ret; }");
  EXPECT_EQ(only(module).operands[0].kind, Kind::Label);
  EXPECT_EQ(only(module).operands[0].target, 2u);
}

TEST(Parser, UnknownInstructionsAreKept) {
  const Module module = kernel(".reg .b32 %r<3>;\nfrobnicate.fast::er.128x %r1, {%r2, 1}, (%r1);");
  EXPECT_THAT(only(module).opcode, ElementsAre("frobnicate", "fast::er", "128x"));
}

TEST(Parser, PaddingAfterTheTextIsIgnored) {
  EXPECT_THAT(parsed(std::string(kHeader) + std::string(9, '\0')).functions, IsEmpty());
}

TEST(ParserErrors, NameThePlace) {
  const ParseError error = refused(std::string(kHeader) + ".visible .entry k()\n{\n  mov.b32 %r1, 0;\n}\n");
  EXPECT_EQ(error.line, 6u);
  EXPECT_EQ(error.column, 11u);
  EXPECT_THAT(error.message, HasSubstr("undeclared register '%r1'"));
}

struct Refusal {
  const char* body;
  const char* message;
};

TEST(ParserErrors, InBodies) {
  const Refusal refusals[] = {
      {"bra NOWHERE;", "undeclared name 'NOWHERE'"},
      {"{ A: } bra A;", "undeclared name 'A'"},
      {"A: A: ret;", "label 'A' is defined twice"},
      {".reg .b32 r; .reg .b32 r;", "'r' is declared twice"},
      {".reg .b32 r; @r ret;", "'r' is not a predicate"},
      {".reg .b32 %r<9999999999>;", "expected a number of registers"},
      {".local .b8 big[2000000000];", "at most 1 GiB"},
      {".local .b8 big[65536][65536][65536][65536];", "at most 1 GiB"},
      {".local .align 3 .b8 b[4];", "power of two"},
      {".local .pred b;", "only registers may be predicates"},
      {".reg .b32 r; mov.b32 r, 0f123;", "0f needs 8"},
      {".reg .b32 r; mov.b32 r, 99999999999999999999999;", "above 64 bits"},
      {".reg .b32 r; mov.b32 r, 1/0;", "division by zero"},
      {".reg .b32 r; mov.b32 r, 08;", "malformed integer"},
      {".reg .b32 r; mov.b32 r 0;", "expected ',' or ';'"},
      {".reg .b32 r; brx.idx r, T;", "no .branchtargets named 'T'"},
      {".reg .b32 r; mov.u32 r, %tid.q;", "undeclared register '%tid.q'"},
      {".reg .b32 r; mov.u32 r, %laneid.x;", "undeclared register '%laneid.x'"},
      {".frob;", "unknown directive '.frob' in a function body"},
      {"ld.u32 _, [{}];", "expected an operand"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(refused_body(refusal.body).message, HasSubstr(refusal.message)) << refusal.body;
  }
}

TEST(ParserErrors, AtModuleScope) {
  const Refusal refusals[] = {
      {"", "begins with .version"},
      {"int main() {}", "begins with .version"},
      {".version 9", "expected a version"},
      {".version 9.0\n.address_size 32", "only .address_size 64"},
      {".version 9.0\n.frobnicate", "unknown directive '.frobnicate' at module scope"},
      {".version 9.0\n.entry k() { ret;", "never closed"},
      {".version 9.0\n.section .debug_info {", "never closed"},
      {".version 9.0\n.global .u32 a[2] = {1,2,3};", "more initial values"},
      {".version 9.0\n.global .u32 a = {{1}};", "more braces"},
      {".version 9.0\n.global .u32 a = \"x;", "closing quote"},
      {".version 9.0\n.global .u16 a = b;", "4 or 8 bytes"},
      {".version 9.0\n.global .u16 a = 1.5;", "does not fit"},
      {".version 9.0\n.global .b8 a[2] = {0xFF00(b)};", "must follow each other"},
      {".version 9.0\n.entry k(.param .u32 a, .param .u32 a) { ret; }", "two parameters"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(refused(refusal.body).message, HasSubstr(refusal.message)) << refusal.body;
  }
}

TEST(ParserErrors, DeepNestingIsRefusedNotFollowed) {
  EXPECT_THAT(refused_body(std::string(100000, '{')).message, HasSubstr("nested too deeply"));
  EXPECT_THAT(refused_body("mov.b32 _, " + std::string(100000, '{')).message, HasSubstr("nested too deeply"));
  EXPECT_THAT(refused_body("mov.b32 _, {" + std::string(100000, '[')).message, HasSubstr("expected"));
  EXPECT_THAT(refused_body(".local .u32 a[" + std::string(100000, '(')).message, HasSubstr("nested too deeply"));
  EXPECT_THAT(refused(".version 9.0\n.global .u32 a = " + std::string(100000, '{')).message, HasSubstr("more braces"));
}

TEST(ParserErrors, EveryPrefixIsRefusedOrParsed) {
  const std::string text = std::string(kHeader) + R"(
.extern .func (.param .b32 r0) vprintf (.param .b64 a, .param .b64 b);
.global .align 8 .u64 t[2][2] = {{generic(t)+8, 1}, {0xff, -2}};
.visible .entry k(.param .u64 .ptr .align 1 p) .maxntid 32, 1, 1
{
  .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>; .shared .align 8 .b8 s[16];
  .loc 1 2 3, function_name $L0, inlined_at 1 1 1
  B: .branchtargets X, Y;
  shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;
  @!%p1 bra X;
  { .param .b64 param0; call.uni (_), vprintf, (param0, param0); }
  brx.idx %r1, B;
  X: cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [s+8];
  Y: mov.f64 %rd1, 0d3FF0000000000000; /* end */
}
.file 1 "a.cu"
.section .debug_str { $L0: .b8 65 .b8 0 }
)";
  ASSERT_EQ(parsed(text).functions.size(), 2u);
  for (size_t length = 0; length < text.size(); ++length) {
    // A copy of exactly this length, so that a sanitizer sees any read past its end.
    const std::vector<char> prefix(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    Module module;
    ParseError error;
    if (!parse({prefix.data(), prefix.size()}, &module, &error)) {
      EXPECT_GE(error.line, 1u);
      EXPECT_GE(error.column, 1u);
      EXPECT_FALSE(error.message.empty());
    }
  }
}

TEST(Types, SpellingsRoundTrip) {
  for (int i = 1; i <= static_cast<int>(Type::S16x2); ++i) {
    const auto type = static_cast<Type>(i);
    EXPECT_EQ(type_from_string(to_string(type)), type);
  }
  EXPECT_EQ(type_from_string("none"), Type::None);
  EXPECT_EQ(type_from_string("b33"), Type::None);
  EXPECT_EQ(size_of(Type::B128), 16u);
  EXPECT_EQ(size_of(Type::Pred), 0u);
  EXPECT_EQ(size_of(Type::E2M1x2), 1u);
  EXPECT_EQ(to_string(Space::SharedCluster), "shared::cluster");
}

}  // namespace
}  // namespace handoff::ptx
