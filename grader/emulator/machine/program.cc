// Decoding: from parsed PTX to the flat code array that the interpreter runs.
//
// Everything that does not change during a launch is settled here: operands become byte offsets into the register file,
// immediates and symbols become constant slots, labels become code indices, `call` becomes copies of parameter bytes
// around a jump. What the tables do not know becomes an instruction that faults when it is executed, with its own text.
//
// Functions are placed side by side, in code, in the register file and in local memory; none may recurse. So lanes of
// one warp may be inside different functions at the same time without sharing a byte.
#include "grader/emulator/machine/program.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "grader/emulator/machine/control_ops.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/liveness.h"
#include "grader/emulator/machine/matrix_ops.h"
#include "grader/emulator/machine/timing.h"

namespace handoff::machine {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

uint32_t align_up(uint32_t v, uint32_t a) { return (v + a - 1) / a * a; }

/// Slot width that holds a value of type `t`; untyped and symbol operands default to 64 bits.
SlotWidth width_of(Type t) { return t == Type::None ? SlotWidth{8} : slot_width(t); }

struct SpecialName {
  const char* name;
  SpecialRegister which;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", SpecialRegister::TidX},
    {"%tid.y", SpecialRegister::TidY},
    {"%tid.z", SpecialRegister::TidZ},
    {"%ntid.x", SpecialRegister::NtidX},
    {"%ntid.y", SpecialRegister::NtidY},
    {"%ntid.z", SpecialRegister::NtidZ},
    {"%ctaid.x", SpecialRegister::CtaidX},
    {"%ctaid.y", SpecialRegister::CtaidY},
    {"%ctaid.z", SpecialRegister::CtaidZ},
    {"%nctaid.x", SpecialRegister::NctaidX},
    {"%nctaid.y", SpecialRegister::NctaidY},
    {"%nctaid.z", SpecialRegister::NctaidZ},
    {"%laneid", SpecialRegister::LaneId},
    {"%warpid", SpecialRegister::WarpId},
    {"%nwarpid", SpecialRegister::NwarpId},
    {"%smid", SpecialRegister::SmId},
    {"%nsmid", SpecialRegister::NsmId},
    {"%gridid", SpecialRegister::GridId},
    {"%lanemask_eq", SpecialRegister::LanemaskEq},
    {"%lanemask_le", SpecialRegister::LanemaskLe},
    {"%lanemask_lt", SpecialRegister::LanemaskLt},
    {"%lanemask_ge", SpecialRegister::LanemaskGe},
    {"%lanemask_gt", SpecialRegister::LanemaskGt},
    {"%clusterid.x", SpecialRegister::ClusteridX},
    {"%clusterid.y", SpecialRegister::ClusteridY},
    {"%clusterid.z", SpecialRegister::ClusteridZ},
    {"%nclusterid.x", SpecialRegister::NclusteridX},
    {"%nclusterid.y", SpecialRegister::NclusteridY},
    {"%nclusterid.z", SpecialRegister::NclusteridZ},
    {"%cluster_ctaid.x", SpecialRegister::ClusterCtaidX},
    {"%cluster_ctaid.y", SpecialRegister::ClusterCtaidY},
    {"%cluster_ctaid.z", SpecialRegister::ClusterCtaidZ},
    {"%cluster_nctaid.x", SpecialRegister::ClusterNctaidX},
    {"%cluster_nctaid.y", SpecialRegister::ClusterNctaidY},
    {"%cluster_nctaid.z", SpecialRegister::ClusterNctaidZ},
    {"%cluster_ctarank", SpecialRegister::ClusterCtarank},
    {"%cluster_nctarank", SpecialRegister::ClusterNctarank},
    {"%is_explicit_cluster", SpecialRegister::IsExplicitCluster},
    {"%total_smem_size", SpecialRegister::TotalSmemSize},
    {"%dynamic_smem_size", SpecialRegister::DynamicSmemSize},
    {"%aggr_smem_size", SpecialRegister::AggrSmemSize},
    {"%reserved_smem_offset_begin", SpecialRegister::ReservedSmemBegin},
    {"%envreg0", SpecialRegister::Envreg0},
    {"%envreg1", SpecialRegister::Envreg1},
    {"%envreg2", SpecialRegister::Envreg2},
};

/// The rest of what tells of the system's part of shared memory, which ends where the CTA's begins (PTX §10.29). At the
/// second offset cooperative_groups has 288 bytes for tiles of several warps.
constexpr std::pair<std::string_view, uint32_t> kReservedRegion[] = {{"%reserved_smem_offset_end", kSharedBase},
                                                                     {"%reserved_smem_offset_cap", kSharedBase},
                                                                     {"%reserved_smem_offset_0", 0},
                                                                     {"%reserved_smem_offset_1", kSharedBase / 2}};

SlotWidth special_width(SpecialRegister which) {
  return which == SpecialRegister::GridId ? 8 : which == SpecialRegister::IsExplicitCluster ? 0 : 4;
}

/// What an instruction costs whose decoder does not say.
uint16_t arithmetic_cost(const TimingModel& timing, const ptx::Resolved& resolved) {
  using ptx::Op;
  if (resolved.spec == nullptr) return timing.alu;
  switch (resolved.spec->op) {
    case Op::Rcp:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Sin:
    case Op::Cos:
    case Op::Lg2:
    case Op::Ex2:
    case Op::Tanh:
      return timing.special;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Fma:
    case Op::Div:
      return resolved.type(0) == ptx::Type::F64 ? timing.float64 : timing.alu;
    default:
      return timing.alu;
  }
}

bool is_clock(std::string_view name) { return name.starts_with("%clock") || name.starts_with("%globaltimer"); }

/// The name that a learner gave to a variable: the last component of its demangled form.
std::string source_name(const std::string& ptx_name) {
  if (!ptx_name.starts_with("_Z")) return ptx_name;  // the demangler would take `s` for the type short
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> demangled(abi::__cxa_demangle(ptx_name.c_str(), nullptr, nullptr, &status),
                                                   std::free);
  if (status != 0 || !demangled) return ptx_name;
  std::string s = demangled.get();
  const size_t colons = s.rfind("::");
  return colons == std::string::npos ? s : s.substr(colons + 2);
}

/// The part of a block-scoped unique name ("x@3") that was written.
std::string written_name(const std::string& unique) { return unique.substr(0, unique.find('@')); }

class Builder : public DecodeContext {
 public:
  Builder(const ptx::Module& module, const std::unordered_map<std::string, LoadedModule::Symbol>& symbols,
          const DecoderTable& decoders, const TimingModel& timing, Program* program)
      : DecodeContext(timing), module_(module), symbols_(symbols), decoders_(decoders), p_(*program) {}

  void build(const ptx::Function& entry, GlobalMemory& memory) {
    p_.module = &module_;
    p_.name = entry.name;
    collect(entry);
    place_parameters(entry, memory);
    place_shared();
    std::vector<std::vector<ptx::Resolved>> resolved(p_.functions.size());
    std::vector<std::vector<Flow>> flows(p_.functions.size());
    for (uint32_t f = 0; f < p_.functions.size(); f++) {
      const ptx::Function& function = *p_.functions[f];
      place_local(f);
      resolved[f].reserve(function.statements.size());
      for (const ptx::Statement& s : function.statements) resolved[f].push_back(ptx::resolve(s));
      for (uint32_t s = 0; s < function.statements.size(); s++)
        flows[f].push_back(flow_of(function, s, resolved[f][s]));
      colourings_.push_back(colour(function, flows[f]));
      area_.push_back(register_bytes_);
      register_bytes_ += colourings_.back().bytes;
    }
    p_.register_template.assign(register_bytes_, std::byte{0});
    for (uint32_t f = 0; f < p_.functions.size(); f++) decode_function(f, resolved[f]);
    patch_targets();
    for (Inst& inst : p_.code) {
      if (inst.watched_fn == nullptr) inst.watched_fn = inst.fn;
    }
    p_.local_bytes = align_up(local_bytes_, 16);
    p_.main_file = main_file(entry);
  }

  // DecodeContext
  uint32_t destination(const Operand& operand, SlotWidth width) override {
    if (operand.kind == Operand::Kind::Register) return slot(operand.reg);
    return scratch(width);
  }
  uint32_t source(const Operand& operand, Type type) override {
    switch (operand.kind) {
      case Operand::Kind::Register: {
        const uint32_t s = slot(operand.reg);
        if (!operand.negated) return s;
        const uint32_t t = scratch(0);
        Inst inst;
        inst.fn = negate_predicate;
        inst.d = t;
        inst.a = s;
        emit(inst);
        return t;
      }
      case Operand::Kind::Special:
        return special(operand.name);
      case Operand::Kind::Integer:
        if (type == Type::Pred) return constant(operand.bits != 0, 0);
        return constant(operand.bits, width_of(type));
      case Operand::Kind::Float32:
        if (type == Type::F64)
          return constant(bits_of(static_cast<double>(float_of(static_cast<uint32_t>(operand.bits)))), 8);
        return constant(operand.bits, 4);
      case Operand::Kind::Float64:
        if (ptx::size_of(type) == 4) return constant(bits_of(static_cast<float>(double_of(operand.bits))), 4);
        return constant(operand.bits, 8);
      case Operand::Kind::Symbol:
        return symbol_constant(symbol_address(operand), find_symbol(operand.name).space, width_of(type) == 4 ? 4 : 8);
      default:
        return constant(0, width_of(type));
    }
  }
  SlotWidth width(const Operand& operand, Type type) override {
    switch (operand.kind) {
      case Operand::Kind::Register:
        return slot_width(p_.functions[function_]->registers[operand.reg].type);
      case Operand::Kind::Special:
        if (is_clock(operand.name)) return operand.name == "%clock64" || operand.name == "%globaltimer" ? 8 : 4;
        for (const SpecialName& s : kSpecials) {
          if (operand.name == s.name) return special_width(s.which);
        }
        return 4;
      case Operand::Kind::Symbol:
        return width_of(type) == 4 ? 4 : 8;
      default:
        return width_of(type);
    }
  }
  bool narrow(const Operand& operand) override {
    if (operand.kind != Operand::Kind::Register) return false;
    const size_t bytes = ptx::size_of(p_.functions[function_]->registers[operand.reg].type);
    return bytes == 1 || bytes == 2;
  }
  uint32_t constant(uint64_t value, SlotWidth width) override {
    if (width == 4) value &= 0xffffffffu;
    const auto key = std::make_pair(value, width);
    for (const auto& [k, offset] : constants_) {
      if (k == key) return offset;
    }
    const uint32_t offset = grow(width);
    fill(offset, value, width);
    constants_.emplace_back(key, offset);
    return offset;
  }
  uint32_t pool(const std::vector<uint32_t>& offsets) override {
    const auto first = static_cast<uint32_t>(p_.operand_pool.size());
    p_.operand_pool.insert(p_.operand_pool.end(), offsets.begin(), offsets.end());
    return first;
  }
  uint32_t carry() override {
    if (carry_ == kNoOperand) carry_ = grow(0);
    return carry_;
  }
  MemoryOperand address(const Operand& operand, Space space) override {
    MemoryOperand m;
    m.space = space;
    const Operand* base =
        operand.kind == Operand::Kind::Address && !operand.elements.empty() ? operand.elements.data() : &operand;
    m.offset = operand.kind == Operand::Kind::Address ? operand.offset : 0;
    if (base->kind == Operand::Kind::Symbol) {
      const Place place = find_symbol(base->name);
      m.offset += base->offset;
      m.slot = symbol_constant(place.address, place.space, 8);
      m.wide = true;
      // The parameters of a .func and of call sequences live in local memory; the entry's in its parameter block.
      if (space == Space::Param || space == Space::Generic)
        m.space = place.space == Space::Local ? Space::Local : place.space == Space::Param ? Space::Global : space;
      if (space == Space::Generic &&
          (place.space == Space::Shared || place.space == Space::Global || place.space == Space::Const))
        m.space = place.space;
    } else if (base->kind == Operand::Kind::Register) {
      m.slot = slot(base->reg);
      m.wide = slot_width(p_.functions[function_]->registers[base->reg].type) == 8;
      if (space == Space::Param) m.space = Space::Generic;
    } else {
      m.slot = constant(base->bits, 8);
      m.wide = true;
      if (operand.kind != Operand::Kind::Address) m.offset = 0;
    }
    if (m.space == Space::Const) m.space = Space::Global;
    return m;
  }

 private:
  struct Place {
    Space space = Space::None;
    uint64_t address = 0;
  };

  static uint64_t bits_of(double d) {
    uint64_t b;
    std::memcpy(&b, &d, 8);
    return b;
  }
  static uint64_t bits_of(float f) {
    uint32_t b;
    std::memcpy(&b, &f, 4);
    return b;
  }
  static float float_of(uint32_t b) {
    float f;
    std::memcpy(&f, &b, 4);
    return f;
  }
  static double double_of(uint64_t b) {
    double d;
    std::memcpy(&d, &b, 8);
    return d;
  }

  /// The address of a variable; where it is a shared one, a slot that each CTA fills with its own.
  uint32_t symbol_constant(uint64_t address, Space space, SlotWidth width) {
    if (space != Space::Shared) return constant(address, width);
    const auto key = std::make_pair(address, width);
    for (const auto& [k, offset] : shared_constants_) {
      if (k == key) return offset;
    }
    const uint32_t offset = grow(width);
    fill(offset, address, width);
    shared_constants_.emplace_back(key, offset);
    p_.shared_constants.push_back({offset, width});
    return offset;
  }

  uint32_t slot(uint32_t reg) { return area_[function_] + colourings_[function_].slot[reg]; }

  uint32_t grow(SlotWidth width) {
    auto at = static_cast<uint32_t>(p_.register_template.size());
    if (width != 0) at = align_up(at, 64);
    p_.register_template.resize(at + (width == 0 ? 4u : width * uint32_t{kWarpSize}), std::byte{0});
    return at;
  }
  void fill(uint32_t offset, uint64_t value, SlotWidth width) {
    std::byte* regs = p_.register_template.data();
    if (width == 0) {
      const uint32_t all = value != 0 ? kFullMask : 0;
      std::memcpy(regs + offset, &all, 4);
      return;
    }
    for (int l = 0; l < kWarpSize; l++) {
      std::memset(regs + offset + l * width, 0, width);
      std::memcpy(regs + offset + l * width, &value, std::min<size_t>(width, 8));
    }
  }
  uint32_t scratch(SlotWidth width) {
    // A statement may need several predicates at once, so predicates are not shared.
    if (width == 0) return grow(0);
    uint32_t& s = width == 4 ? scratch4_ : width == 8 ? scratch8_ : scratch16_;
    if (s == kNoOperand) s = grow(width);
    return s;
  }
  uint32_t special(const std::string& name) {
    if (is_clock(name)) {
      const bool wide = name == "%clock64" || name == "%globaltimer";
      Inst inst;
      inst.fn = read_clock;
      inst.d = grow(wide ? 8 : 4);
      inst.width = wide ? 8 : 4;
      inst.sub = static_cast<uint8_t>((name.find("globaltimer") != std::string::npos ? 1 : 0) |
                                      (name.ends_with("_hi") ? 2 : 0));
      inst.cost = timing().clock;
      emit(inst);
      return inst.d;
    }
    for (const auto& [reserved, value] : kReservedRegion) {
      if (name != reserved) continue;
      special("%reserved_smem_offset_begin");  // Program::specials then says that the kernel knows of the region
      return constant(value, 4);
    }
    for (const SpecialName& s : kSpecials) {
      if (name != s.name) continue;
      for (const Program::Special& known : p_.specials) {
        if (known.which == s.which) return known.offset;
      }
      const uint32_t offset = grow(special_width(s.which));
      p_.specials.push_back({s.which, offset});
      return offset;
    }
    problem_ = fmt::format("special register {} is not supported", name);
    return constant(0, 4);
  }

  void emit(Inst inst) {
    inst.function = function_;
    inst.statement = statement_;
    p_.code.push_back(inst);
  }

  void collect(const ptx::Function& entry) {
    p_.functions.push_back(&entry);
    for (size_t f = 0; f < p_.functions.size(); f++) {
      for (const ptx::Statement& s : p_.functions[f]->statements) {
        if (s.opcode.empty() || s.opcode[0] != "call") continue;
        const ptx::Function* callee = callee_of(s);
        if (callee != nullptr && callee->has_body &&
            std::find(p_.functions.begin(), p_.functions.end(), callee) == p_.functions.end()) {
          p_.functions.push_back(callee);
        }
      }
    }
  }
  const ptx::Function* callee_of(const ptx::Statement& s) const {
    for (const Operand& o : s.operands) {
      if (o.kind == Operand::Kind::Symbol) return module_.find_function(o.name);
    }
    return nullptr;
  }

  void place_parameters(const ptx::Function& entry, GlobalMemory& memory) {
    uint32_t at = 0;
    for (const ptx::Variable& v : entry.params) {
      const auto size = static_cast<uint32_t>(v.size);
      at = align_up(at, std::max<uint32_t>(v.align, static_cast<uint32_t>(std::max<size_t>(
                                                        1, std::min<size_t>(ptx::size_of(v.type), 16)))));
      p_.parameters.push_back({v.name, at, size});
      at += size;
    }
    p_.param_bytes = at;
    const Allocation* block =
        memory.allocate(std::max<uint32_t>(at, 1), fmt::format("parameters of {}", entry.name), false);
    p_.param_address = block != nullptr ? block->base : 0;
    for (const Parameter& v : p_.parameters) entry_params_[v.name] = p_.param_address + v.offset;
  }

  void place_shared() {
    std::unordered_set<std::string> used;
    for (const ptx::Function* f : p_.functions) {
      for (const ptx::Statement& s : f->statements) {
        for (const Operand& o : s.operands) collect_symbols(o, used);
      }
    }
    uint32_t at = kSharedBase;
    uint32_t dynamic_align = 16;
    std::vector<std::string> dynamic;
    const auto place = [&](const ptx::Variable& v) {
      if (v.space != Space::Shared) return;
      if (v.unsized || (v.external && v.size == 0)) {
        dynamic_align = std::max(dynamic_align, v.align);
        dynamic.push_back(v.name);
        return;
      }
      at = align_up(at, std::max<uint32_t>(v.align, 1));
      shared_[v.name] = at;
      p_.shared_symbols.push_back({source_name(written_name(v.name)), v.name, at, v.size, false});
      at += static_cast<uint32_t>(v.size);
    };
    for (const ptx::Variable& v : module_.variables) {
      if (used.contains(v.name)) place(v);
    }
    for (const ptx::Function* f : p_.functions) {
      for (const ptx::Variable& v : f->variables) place(v);
    }
    p_.static_smem = at - kSharedBase;
    if (!dynamic.empty()) at = align_up(at, dynamic_align);
    p_.dynamic_smem_offset = at;
    for (const std::string& name : dynamic) {
      shared_[name] = at;
      p_.shared_symbols.push_back({source_name(written_name(name)), name, at, 0, true});
    }
    std::stable_sort(p_.shared_symbols.begin(), p_.shared_symbols.end(),
                     [](const SharedSymbol& a, const SharedSymbol& b) { return a.offset < b.offset; });
  }
  static void collect_symbols(const Operand& o, std::unordered_set<std::string>& used) {
    if (o.kind == Operand::Kind::Symbol) used.insert(o.name);
    for (const Operand& e : o.elements) collect_symbols(e, used);
  }

  void place_local(uint32_t f) {
    const ptx::Function& function = *p_.functions[f];
    std::unordered_map<std::string, uint32_t> names;
    const auto place = [&](const ptx::Variable& v) {
      local_bytes_ = align_up(local_bytes_, std::max<uint32_t>({v.align, 8u}));
      names[v.name] = local_bytes_;
      local_bytes_ += static_cast<uint32_t>(std::max<uint64_t>(v.size, 8));
    };
    for (const ptx::Variable& v : function.variables) {
      if (v.space == Space::Local || v.space == Space::Param) place(v);
    }
    if (f != 0) {
      for (const ptx::Variable& v : function.params) place(v);
      for (const ptx::Variable& v : function.returns) place(v);
    }
    local_.push_back(std::move(names));
  }

  Place find_symbol(const std::string& name) {
    if (auto it = local_[function_].find(name); it != local_[function_].end()) return {Space::Local, it->second};
    if (function_ == 0) {
      if (auto it = entry_params_.find(name); it != entry_params_.end()) return {Space::Param, it->second};
    }
    if (auto it = shared_.find(name); it != shared_.end()) return {Space::Shared, it->second};
    if (auto it = symbols_.find(name); it != symbols_.end()) return {Space::Global, it->second.address};
    problem_ = fmt::format("symbol {} has no address here", name);
    return {};
  }
  uint64_t symbol_address(const Operand& operand) {
    return find_symbol(operand.name).address + static_cast<uint64_t>(operand.offset);
  }

  // Control flow and data flow of a statement.
  static void add_uses(const Operand& o, std::vector<uint32_t>& uses) {
    if (o.kind == Operand::Kind::Register) uses.push_back(o.reg);
    for (const Operand& e : o.elements) add_uses(e, uses);
  }
  static void add_defs(const Operand& o, Flow& flow) {
    if (o.kind == Operand::Kind::Register) {
      flow.defs.push_back(o.reg);
    } else if (o.kind == Operand::Kind::Address) {
      add_uses(o, flow.uses);
    } else {
      for (const Operand& e : o.elements) add_defs(e, flow);
    }
  }
  static void add_targets(const Operand& o, Flow& flow) {
    if (o.kind == Operand::Kind::Label) flow.targets.push_back(o.target);
    for (const Operand& e : o.elements) add_targets(e, flow);
  }
  static Flow flow_of(const ptx::Function& function, uint32_t index, const ptx::Resolved& resolved) {
    const ptx::Statement& s = function.statements[index];
    Flow flow;
    if (s.guard >= 0) flow.uses.push_back(static_cast<uint32_t>(s.guard));
    for (size_t i = 0; i < s.operands.size(); i++) {
      if (resolved.spec != nullptr && ptx::is_destination(*resolved.spec, i)) {
        add_defs(s.operands[i], flow);
      } else {
        add_uses(s.operands[i], flow.uses);
      }
      add_targets(s.operands[i], flow);
    }
    const std::string& op = s.opcode.empty() ? function.name : s.opcode[0];
    const bool leaves = op == "ret" || op == "exit" || op == "trap" || op == "bra" || op == "brx";
    flow.falls_through = !leaves || s.guard >= 0;
    return flow;
  }

  void decode_function(uint32_t f, const std::vector<ptx::Resolved>& resolved) {
    function_ = f;
    const ptx::Function& function = *p_.functions[f];
    entry_points_.push_back(static_cast<uint32_t>(p_.code.size()));
    starts_.emplace_back();
    for (uint32_t s = 0; s < function.statements.size(); s++) {
      statement_ = s;
      starts_.back().push_back(static_cast<uint32_t>(p_.code.size()));
      decode_statement(function.statements[s], resolved[s]);
    }
    starts_.back().push_back(static_cast<uint32_t>(p_.code.size()));
    // A body may end without ret.
    statement_ = function.statements.empty() ? 0 : static_cast<uint32_t>(function.statements.size() - 1);
    Inst end;
    end.fn = return_from_function;
    end.ends_slice = 1;
    emit(end);
  }

  void decode_statement(const ptx::Statement& s, const ptx::Resolved& resolved) {
    problem_.clear();
    Inst inst;
    inst.cost = arithmetic_cost(timing(), resolved);
    std::string why;
    if (resolved.spec == nullptr) {
      why = resolved.problem;
    } else if (resolved.spec->op == ptx::Op::Call) {
      why = decode_call(s);
      if (why.empty() && problem_.empty()) return;
    } else if (Decoder decoder = decoders_[resolved.spec->op]; decoder != nullptr) {
      why = decoder(*this, resolved, s, &inst);
    } else {
      why = fmt::format("{} is not supported yet", resolved.spec->name);
    }
    if (why.empty()) why = problem_;
    if (!why.empty()) {
      inst = Inst{};
      inst.fn = unsupported_instruction;
      inst.imm = p_.unsupported.size();
      p_.unsupported.push_back(why);
    }
    if (s.guard >= 0) {
      inst.guard = slot(static_cast<uint32_t>(s.guard));
      inst.guard_negated = s.guard_negated ? 1 : 0;
    }
    emit(inst);
  }

  std::string decode_call(const ptx::Statement& s) {
    const ptx::Function* callee = nullptr;
    std::string name;
    std::vector<Operand> returns, args;
    bool seen = false;
    for (const Operand& o : s.operands) {
      if (o.kind == Operand::Kind::Symbol && !seen) {
        callee = module_.find_function(o.name);
        name = o.name;
        seen = true;
      } else {
        auto& list = seen ? args : returns;
        if (o.kind == Operand::Kind::Vector) {
          list.insert(list.end(), o.elements.begin(), o.elements.end());
        } else {
          list.push_back(o);
        }
      }
    }
    if (callee == nullptr) return "indirect calls are not supported";
    if (s.guard >= 0) return "a guarded call is not supported";
    std::vector<uint32_t> offsets;
    const auto local_offset = [&](const Operand& o) { return static_cast<uint32_t>(find_symbol(o.name).address); };
    if (!callee->has_body) {
      Inst inst;
      inst.fn = builtin_function(name);
      if (inst.fn == nullptr) return fmt::format("the device runtime's function {} is not supported", name);
      for (const Operand& o : args) offsets.push_back(local_offset(o));
      offsets.push_back(returns.empty() ? kNoOperand : local_offset(returns[0]));
      inst.list = pool(offsets);
      inst.list_size = static_cast<uint16_t>(offsets.size());
      inst.cost = timing().vprintf;
      if (problem_.empty()) emit(inst);
      return {};
    }
    const auto index =
        static_cast<uint32_t>(std::find(p_.functions.begin(), p_.functions.end(), callee) - p_.functions.begin());
    if (index <= function_ && reaches(index, function_))
      return fmt::format("recursion ({}) is not supported", source_name(name));
    const auto copy = [&](uint32_t to, uint32_t from, uint64_t bytes) {
      Inst inst;
      inst.fn = copy_local;
      inst.d = to;
      inst.a = from;
      inst.imm = bytes;
      emit(inst);
    };
    for (size_t i = 0; i < args.size() && i < callee->params.size(); i++) {
      copy(local_[index].at(callee->params[i].name), local_offset(args[i]), callee->params[i].size);
    }
    Inst inst;
    inst.fn = call_function;
    inst.ends_slice = 1;
    inst.target = index;  // patched to the entry point
    inst.cost = timing().branch;
    calls_.push_back(static_cast<uint32_t>(p_.code.size()));
    emit(inst);
    for (size_t i = 0; i < returns.size() && i < callee->returns.size(); i++) {
      copy(local_offset(returns[i]), local_[index].at(callee->returns[i].name), callee->returns[i].size);
    }
    return {};
  }
  /// Does function `from` reach `to` by calls?
  bool reaches(uint32_t from, uint32_t to) const {
    std::vector<uint32_t> work{from};
    std::vector<bool> seen(p_.functions.size(), false);
    while (!work.empty()) {
      const uint32_t f = work.back();
      work.pop_back();
      if (f == to) return true;
      if (seen[f]) continue;
      seen[f] = true;
      for (const ptx::Statement& s : p_.functions[f]->statements) {
        if (s.opcode.empty() || s.opcode[0] != "call") continue;
        const auto at = std::find(p_.functions.begin(), p_.functions.end(), callee_of(s));
        if (at != p_.functions.end()) work.push_back(static_cast<uint32_t>(at - p_.functions.begin()));
      }
    }
    return false;
  }

  void patch_targets() {
    for (uint32_t at : calls_) p_.code[at].target = entry_points_[p_.code[at].target];
    for (Inst& inst : p_.code) {
      if (inst.fn == branch) {
        inst.target = starts_[inst.function][inst.target];
      } else if (inst.fn == branch_indexed) {
        for (uint32_t i = 0; i < inst.list_size; i++) {
          uint32_t& t = p_.operand_pool[inst.list + i];
          t = starts_[inst.function][t];
        }
      }
    }
    for (uint32_t f = 0; f < p_.functions.size(); f++) {
      for (const Colouring::Loop& loop : colourings_[f].loops) {
        LoopInfo info;
        for (uint32_t r : loop.carried)
          info.carried.push_back({area_[f] + colourings_[f].slot[r], slot_width(p_.functions[f]->registers[r].type)});
        p_.loops[starts_[f][loop.branch + 1] - 1] = std::move(info);
      }
    }
  }

  std::string main_file(const ptx::Function& entry) const {
    // The entry's first line that is not inlined belongs to the file that defines the kernel.
    for (const ptx::Statement& s : entry.statements) {
      if (s.location < 0) continue;
      const ptx::Location* l = &module_.locations[static_cast<size_t>(s.location)];
      while (l->inlined_at >= 0) l = &module_.locations[static_cast<size_t>(l->inlined_at)];
      if (auto it = module_.files.find(l->file); it != module_.files.end()) return it->second;
    }
    return {};
  }

  const ptx::Module& module_;
  const std::unordered_map<std::string, LoadedModule::Symbol>& symbols_;
  const DecoderTable& decoders_;
  Program& p_;
  std::vector<Colouring> colourings_;
  std::vector<uint32_t> area_;
  uint32_t register_bytes_ = 0, local_bytes_ = 0;
  std::vector<std::unordered_map<std::string, uint32_t>> local_;
  std::unordered_map<std::string, uint64_t> entry_params_;
  std::unordered_map<std::string, uint32_t> shared_;
  std::vector<std::vector<uint32_t>> starts_;
  std::vector<uint32_t> entry_points_, calls_;
  std::vector<std::pair<std::pair<uint64_t, SlotWidth>, uint32_t>> constants_;
  std::vector<std::pair<std::pair<uint64_t, SlotWidth>, uint32_t>> shared_constants_;
  uint32_t carry_ = kNoOperand, scratch4_ = kNoOperand, scratch8_ = kNoOperand, scratch16_ = kNoOperand;
  uint32_t function_ = 0, statement_ = 0;
  std::string problem_;
};

}  // namespace

SourcePlace Program::place(const Inst& inst) const {
  const ptx::Statement& s = statement(inst);
  const auto file_name = [&](const ptx::Location& l) {
    auto it = module->files.find(l.file);
    return it == module->files.end() ? std::string() : it->second;
  };
  // Line 0 marks code that the compiler made up: the nearest earlier statement with a line speaks for it.
  int32_t location = s.location;
  const ptx::Function& function = *functions[inst.function];
  for (uint32_t i = inst.statement;
       location >= 0 && module->locations[static_cast<size_t>(location)].line == 0 && i > 0;) {
    location = function.statements[--i].location;
  }
  SourcePlace outermost;
  for (int32_t l = location; l >= 0; l = module->locations[static_cast<size_t>(l)].inlined_at) {
    const ptx::Location& at = module->locations[static_cast<size_t>(l)];
    SourcePlace place{file_name(at), at.line};
    if (place.file == main_file && at.line != 0) return place;
    outermost = std::move(place);
  }
  return outermost;
}

const SharedSymbol* Program::find_shared(uint32_t offset) const {
  const SharedSymbol* best = nullptr;
  for (const SharedSymbol& s : shared_symbols) {
    if (s.offset <= offset && (s.dynamic || offset - s.offset < s.size)) best = &s;
  }
  return best;
}

std::string Program::describe_shared(uint32_t offset) const {
  const SharedSymbol* s = find_shared(offset);
  if (s == nullptr) return fmt::format("shared offset {:#x}", offset);
  if (s->offset == offset) return s->name;
  return fmt::format("{}+{}", s->name, offset - s->offset);
}

std::unique_ptr<Program> decode_kernel(const ptx::Module& module, const ptx::Function& entry,
                                       const std::unordered_map<std::string, LoadedModule::Symbol>& symbols,
                                       const DecoderTable& decoders, GlobalMemory& memory, const TimingModel& timing) {
  auto program = std::make_unique<Program>();
  Builder(module, symbols, decoders, timing, program.get()).build(entry, memory);
  return program;
}

std::unique_ptr<LoadedModule> LoadedModule::load(const std::string& ptx, GlobalMemory& memory,
                                                 const DecoderTable& decoders, std::string* error,
                                                 const TimingModel& timing) {
  std::unique_ptr<LoadedModule> loaded(new LoadedModule(memory, decoders, timing));
  ptx::ParseError parse_error;
  if (!ptx::parse(ptx, &loaded->module_, &parse_error)) {
    *error = fmt::format("PTX line {}, column {}: {}", parse_error.line, parse_error.column, parse_error.message);
    return nullptr;
  }
  for (const ptx::Variable& v : loaded->module_.variables) {
    if (v.space != ptx::Space::Global && v.space != ptx::Space::Const) continue;
    if (v.external && v.init.empty()) continue;
    const Allocation* a = memory.allocate(v.size, source_name(v.name), v.space == ptx::Space::Global);
    if (a == nullptr) {
      *error = fmt::format("module variable {} ({} bytes) does not fit into device memory", v.name, v.size);
      return nullptr;
    }
    std::memset(a->host, 0, v.size);
    if (!v.init.empty()) std::memcpy(a->host, v.init.data(), std::min<size_t>(v.init.size(), v.size));
    loaded->symbols_[v.name] = {a->base, v.size};
  }
  for (const ptx::Variable& v : loaded->module_.variables) {
    for (const ptx::Variable::Reloc& r : v.relocs) {
      auto at = loaded->symbols_.find(v.name);
      auto to = loaded->symbols_.find(r.symbol);
      if (at == loaded->symbols_.end() || to == loaded->symbols_.end() || r.offset + r.size > at->second.size) continue;
      const uint64_t value = to->second.address + static_cast<uint64_t>(r.addend);
      std::memcpy(memory.find(at->second.address, 1)->host + r.offset, &value, r.size);
    }
  }
  return loaded;
}

LoadedModule::~LoadedModule() {
  for (const auto& [name, symbol] : symbols_) memory_.free(symbol.address);
  for (const auto& [name, program] : kernels_) memory_.free(program->param_address);
}

std::vector<std::string> LoadedModule::entries() const {
  std::vector<std::string> names;
  for (const ptx::Function& f : module_.functions) {
    if (f.is_entry && f.has_body) names.push_back(f.name);
  }
  return names;
}

const Program* LoadedModule::kernel(std::string_view name) {
  const std::string key(name);
  if (auto it = kernels_.find(key); it != kernels_.end()) return it->second.get();
  const ptx::Function* f = module_.find_function(name);
  if (f == nullptr || !f->is_entry || !f->has_body) return nullptr;
  return (kernels_[key] = decode_kernel(module_, *f, symbols_, decoders_, memory_, timing_)).get();
}

std::optional<LoadedModule::Symbol> LoadedModule::symbol(std::string_view name) const {
  auto it = symbols_.find(std::string(name));
  if (it == symbols_.end()) return std::nullopt;
  return it->second;
}

void register_machine_decoders(DecoderTable& table) {
  register_alu_decoders(table);
  register_memory_decoders(table);
  register_control_decoders(table);
  register_matrix_decoders(table);
}

}  // namespace handoff::machine
