// Tested by parser_test.cc and parser_fuzz.cc.
//
// A recursive-descent parser over the tokens of lexer.h, one pass over the text (PTX §4 syntax, §11 directives).
//
// What makes PTX more than a list of lines:
//  * Lexical scopes (§5.2, §7.1 call sequences). `{ … }` opens a scope for registers, variables and labels; inline
//    assembly redeclares the same few names hundreds of times a kernel. One hash table holds what is visible now;
//    each declaration that hides another pushes the hidden binding on an undo list that the closing brace unwinds.
//  * Parameterised registers, `.reg .b32 %r<103>;`. A declaration binds the prefix; registers come into being when they
//    are first used, so `<2000000000>` costs nothing.
//  * Labels may be used before they are defined, and a use in an inner scope may mean a label of an outer one.
//    Operands that name nothing yet are noted and resolved at the end of the function, from the inside outwards.
//  * `.loc … inlined_at` names the call's place, not a statement. It is linked to the latest Location of the
//    same function with that place, which nvcc writes first; so a chain ends at the line that the learner wrote.
//    Function names come as labels into .debug_str, which stands at the end of the text.
//
// Speed: names are views of a copy of the text that the module keeps in an arena, statements share opcodes, and
// operands and folded text go into the same arena. An ordinary statement takes nothing from the heap.
//
// What is deliberately not done: no check that an instruction exists or that its operands fit (instruction_table.h).
//
// Hostile text must not crash, hang, or allocate more than a small multiple of its own size: nesting is bounded, and
// sizes that a few characters can make large (arrays, initialisers, branch tables) have limits.
#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "grader/emulator/ptx/lexer.h"
#include "grader/emulator/ptx/module.h"

namespace handoff::ptx {
namespace {

constexpr size_t kMaxTextBytes = 1ull << 30;          // line numbers and indices are 32 bits
constexpr uint32_t kMaxScopeDepth = 512;              // braces in a function body
constexpr int kMaxOperandDepth = 8;                   // vectors in operands, parentheses in expressions, initialisers
constexpr uint64_t kMaxVariableSize = 1ull << 30;     // bytes of one variable
constexpr uint64_t kMaxInitBytes = 256ull << 20;      // initial bytes of all variables together
constexpr uint64_t kMaxBranchTargets = 1ull << 22;    // labels of all brx.idx together
constexpr size_t kMaxFunctionName = 4096;             // characters of an inlined function's (mangled) name
constexpr uint64_t kMaxFunctionNames = 256ull << 20;  // characters of all of them together
constexpr uint64_t kMaxAlignment = 1ull << 20;        // bytes
constexpr size_t kFirstDenseRegisters = 64;  // numbers of a register range that are looked up by index at first

struct SpecialRegister {
  std::string_view name;
  bool has_components;  // .x .y .z .w
};

// PTX §10. The numbered ones (%pm0, %envreg7, …) are matched without their number.
constexpr SpecialRegister kSpecialRegisters[] = {
    {"%tid", true},
    {"%ntid", true},
    {"%ctaid", true},
    {"%nctaid", true},
    {"%clusterid", true},
    {"%nclusterid", true},
    {"%cluster_ctaid", true},
    {"%cluster_nctaid", true},
    {"%laneid", false},
    {"%warpid", false},
    {"%nwarpid", false},
    {"%smid", false},
    {"%nsmid", false},
    {"%gridid", false},
    {"%is_explicit_cluster", false},
    {"%cluster_ctarank", false},
    {"%cluster_nctarank", false},
    {"%lanemask_eq", false},
    {"%lanemask_le", false},
    {"%lanemask_lt", false},
    {"%lanemask_ge", false},
    {"%lanemask_gt", false},
    {"%clock", false},
    {"%clock_hi", false},
    {"%clock64", false},
    {"%pm", false},
    {"%pm_64", false},
    {"%envreg", false},
    {"%globaltimer", false},
    {"%globaltimer_lo", false},
    {"%globaltimer_hi", false},
    {"%reserved_smem_offset_begin", false},
    {"%reserved_smem_offset_end", false},
    {"%reserved_smem_offset_cap", false},
    {"%reserved_smem_offset_", false},
    {"%total_smem_size", false},
    {"%aggr_smem_size", false},
    {"%dynamic_smem_size", false},
    {"%current_graph_exec", false},
};

bool is_special_register(std::string_view name) {
  const size_t dot = name.find('.');
  const std::string_view base = name.substr(0, dot);
  const auto matches = [&](std::string_view candidate) {
    for (const SpecialRegister& special : kSpecialRegisters) {
      if (special.name != candidate) continue;
      if (dot == std::string_view::npos) return true;
      const std::string_view component = name.substr(dot + 1);
      return special.has_components && component.size() == 1 &&
             std::string_view("xyzw").find(component[0]) != std::string_view::npos;
    }
    return false;
  };
  if (matches(base)) return true;
  // %pm3, %pm3_64, %envreg12, %reserved_smem_offset_1
  const size_t digit = base.find_first_of("0123456789");
  if (digit == std::string_view::npos || dot != std::string_view::npos) return false;
  const size_t rest = base.find_first_not_of("0123456789", digit);
  const std::string_view stem = base.substr(0, digit);
  if (rest == std::string_view::npos) return stem == "%pm" || stem == "%envreg" || stem == "%reserved_smem_offset_";
  return stem == "%pm" && base.substr(rest) == "_64";
}

Space space_from_directive(std::string_view name) {
  if (name == "reg") return Space::Reg;
  if (name == "global") return Space::Global;
  if (name == "const") return Space::Const;
  if (name == "param") return Space::Param;
  if (name == "local") return Space::Local;
  if (name == "shared") return Space::Shared;
  if (name == "shared::cta") return Space::SharedCta;
  if (name == "shared::cluster") return Space::SharedCluster;
  return Space::None;
}

/// Handles of textures and the like are opaque 64-bit values (PTX §5.3).
Type declared_type(std::string_view name) {
  if (name == "texref" || name == "samplerref" || name == "surfref") return Type::B64;
  return type_from_string(name);
}

/// Hash of a name. PTX names are short: eight characters at a time. Not noexcept, so that libstdc++ keeps the hash with
/// each name instead of hashing its neighbours again on every look-up.
struct NameHash {
  size_t operator()(std::string_view name) const {
    uint64_t h = name.size();
    const auto mix = [&h](uint64_t word) {
      h = (h ^ word) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 32;
    };
    uint64_t word = 0;
    for (; name.size() >= sizeof word; name.remove_prefix(sizeof word)) {
      std::memcpy(&word, name.data(), sizeof word);
      mix(word);
    }
    word = 0;
    for (const char c : name) word = word << 8 | static_cast<uint8_t>(c);
    mix(word);
    return h;
  }
};

/// A name within one block: the key of a label.
struct BlockName {
  uint32_t block;
  std::string_view name;
  bool operator==(const BlockName& other) const { return block == other.block && name == other.name; }
};
struct BlockNameHash {
  size_t operator()(const BlockName& key) const { return NameHash()(key.name) ^ (key.block * 0x9e3779b97f4a7c15ull); }
};

/// A place in the source: the key by which `inlined_at` finds its Location.
struct LocationKey {
  uint32_t file = 0, line = 0, column = 0;
  int32_t inlined_at = -1;
  std::string_view function;     // label in .debug_str
  uint32_t function_offset = 0;  // bytes after it
  bool operator==(const LocationKey& other) const {
    return file == other.file && line == other.line && column == other.column && inlined_at == other.inlined_at &&
           function == other.function && function_offset == other.function_offset;
  }
};
struct LocationKeyHash {
  size_t operator()(const LocationKey& key) const {
    uint64_t h = key.function.empty() ? 0 : NameHash()(key.function);
    for (uint64_t part : {uint64_t{key.file} << 32 | key.line, uint64_t{key.column} << 32 | key.function_offset,
                          uint64_t{static_cast<uint32_t>(key.inlined_at)}}) {
      h = (h ^ part) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 29;
    }
    return h;
  }
};

/// Empties a table that the next function fills again. Emptying costs the table's size: what one huge function left
/// must not be swept for each of the small ones behind it.
template <class Table>
void reset(Table* table) {
  if (table->bucket_count() > 4096) {
    *table = Table();
  } else {
    table->clear();
  }
}

/// Moves what stands in `list` into a block of its size; the room that it had grown goes to `spare`, for the next list.
template <class T>
void settle(std::vector<T>* list, std::vector<T>* spare) {
  spare->swap(*list);
  list->assign(std::make_move_iterator(spare->begin()), std::make_move_iterator(spare->end()));
  spare->clear();
}

/// A copy of `text` in the module's arena.
std::string_view keep(std::string_view text, Module* module) {
  if (text.empty()) return {};
  auto* copy = static_cast<char*>(module->arena->allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

class Parser {
 public:
  /// `module->arena` holds `text`.
  Parser(std::string_view text, Module* module, ParseError* error) : lexer_(text), module_(module), error_(error) {}

  bool parse_module();

 private:
  // ---- errors -------------------------------------------------------------------------------------------------
  bool fail_at(uint32_t line, const char* place, std::string message) {
    error_->line = line;
    error_->column = lexer_.column(place);
    error_->message = std::move(message);
    return false;
  }
  /// Fails at the current token, or with the lexer's reason where the token itself is malformed.
  bool fail(std::string message) {
    const Token& token = lexer_.current();
    if (token.kind == Token::Kind::Invalid) message = lexer_.message();
    if (token.kind == Token::Kind::End) message += "; the text ends here";
    return fail_at(token.line, token.begin, std::move(message));
  }
  std::string quoted_token() const {
    const Token& token = lexer_.current();
    if (token.kind == Token::Kind::End) return "the end of the text";
    std::string out = token.kind == Token::Kind::Directive ? "'." : "'";
    out += token.text.substr(0, 60);
    out += '\'';
    return out;
  }
  bool expect(char c) {
    if (!lexer_.current().is(c)) return fail(std::string("expected '") + c + "', found " + quoted_token());
    lexer_.advance();
    return true;
  }
  bool accept(char c) {
    if (!lexer_.current().is(c)) return false;
    lexer_.advance();
    return true;
  }
  bool parse_u32(const char* what, uint32_t* out) {
    const Token& token = lexer_.current();
    if (token.kind != Token::Kind::Integer || token.bits > UINT32_MAX) {
      return fail(std::string("expected ") + what + ", found " + quoted_token());
    }
    *out = static_cast<uint32_t>(token.bits);
    lexer_.advance();
    return true;
  }
  bool parse_name(const char* what, std::string_view* out) {
    if (lexer_.current().kind != Token::Kind::Identifier) {
      return fail(std::string("expected ") + what + ", found " + quoted_token());
    }
    *out = lexer_.current().text;
    lexer_.advance();
    return true;
  }
  /// Moves past the next ';' at any depth of parentheses.
  bool skip_to_semicolon() {
    while (!lexer_.current().is(';')) {
      if (lexer_.current().kind == Token::Kind::End) return fail("expected ';'");
      lexer_.advance();
    }
    lexer_.advance();
    return true;
  }

  // ---- module scope -------------------------------------------------------------------------------------------
  bool parse_version();
  bool parse_target();
  bool parse_file();
  bool parse_section();
  bool parse_debug_str();
  bool parse_alias();
  bool parse_linked();
  void resolve_function_names();

  // ---- declarations -------------------------------------------------------------------------------------------
  /// What stands between a state space and the names: alignment, vector length, type.
  struct Declarator {
    Variable variable;
    uint64_t element_size = 0;  // bytes of one element of `variable.type`
    std::vector<uint64_t> dims;
  };
  bool parse_declarator(Declarator* out);
  bool parse_dims(Declarator* out);
  bool parse_initializer(Declarator* declarator);
  bool parse_initializer_list(Declarator* declarator, size_t level, uint64_t begin, uint64_t end, uint64_t* used);
  bool parse_initializer_value(Declarator* declarator, uint64_t offset);
  bool store_init(Variable* variable, uint64_t offset, const void* bytes, size_t size);
  bool parse_module_variables(Space space, bool external);
  bool parse_body_variables(Space space);
  bool parse_registers();
  bool parse_params(std::vector<Variable>* params);

  // ---- functions ----------------------------------------------------------------------------------------------
  struct SharedOpcode {
    Opcode opcode;
    bool branches = false;  // bra or brx: its operands may be labels whatever else has their name
  };
  bool parse_function(bool is_entry);
  bool parse_function_directives();
  bool parse_three(uint32_t out[3]);
  bool parse_body();
  bool parse_body_directive();
  bool parse_loc();
  bool parse_label();
  bool parse_instruction(const char* begin, uint32_t line, int32_t guard, bool negated);
  const SharedOpcode& parse_opcode();
  std::string_view folded(const char* begin, const char* end);
  /// The operands in `operands_` from `first` on, moved into the arena.
  Operands keep_operands(size_t first);
  Operands keep_operands(Operand* operands, size_t count);
  bool parse_guarded();
  void append_implicit_return();
  bool resolve_labels();

  // ---- operands -----------------------------------------------------------------------------------------------
  /// Where in a statement a label that is not known yet stands.
  struct PendingLabel {
    uint32_t statement, operand;
    uint32_t block;
    uint32_t line;
    const char* place;
    std::string_view name;
  };
  bool parse_operand(Operand* out, int depth);
  bool parse_primary(Operand* out, int depth);
  bool parse_identifier(Operand* out, bool may_be_label);
  bool parse_address(Operand* out, int depth);
  bool parse_list(Operand* out, char close, int depth);
  bool parse_number(Operand* out, int depth);
  bool parse_expression(uint64_t* out, int depth, int level);
  bool parse_unary(uint64_t* out, int depth);
  bool parse_offset(int64_t* out, int depth);

  // ---- names --------------------------------------------------------------------------------------------------
  enum class Named : uint8_t { Register, Variable };
  struct Binding {
    Named kind = Named::Register;
    uint32_t index = 0;  // into Function::registers or Function::variables; for a range: into ranges_
    uint32_t depth = 0;  // of the scope that declares it
  };
  struct Hidden {
    std::string_view name;
    bool is_range = false;
    bool existed = false;
    Binding binding;
  };
  struct Range {
    uint32_t count = 0;
    Type type = Type::None;
    std::vector<int32_t> dense;  // register index by number, -1: not used yet
    std::unordered_map<uint32_t, uint32_t> sparse;
  };
  using Names = std::unordered_map<std::string_view, Binding, NameHash>;

  bool bind(std::string_view name, bool is_range, Binding binding, const Token& at);
  bool open_scope();
  void close_scope();
  uint32_t add_register(std::string_view name, Type type);
  /// Register named `name`, made now if it is the first use of one of a range; -1: no register of that name.
  int32_t find_register(std::string_view name);
  uint32_t add_variable(Variable variable);

  Lexer lexer_;
  Module* module_;
  ParseError* error_;
  Function* function_ = nullptr;

  using NameSet = std::unordered_set<std::string_view, NameHash>;
  NameSet globals_;  // module-scope variables and functions
  uint64_t init_bytes_ = 0;
  std::vector<uint8_t> debug_str_;
  std::unordered_map<std::string_view, size_t, NameHash> debug_labels_;
  std::unordered_map<std::string_view, SharedOpcode, NameHash> opcodes_;  // by spelling
  std::vector<std::string_view> parts_;                                   // of the opcode being read
  std::vector<Statement> spare_statements_;                               // empty, with room for those of a function
  std::vector<Register> spare_registers_;
  std::vector<Operand> operands_;  // of the lists being read, outer ones first

  Names names_, range_names_;
  std::vector<Hidden> hidden_;
  std::vector<size_t> scope_marks_;
  std::vector<Range> ranges_;
  uint32_t numbered_names_ = 0;   // exact bindings in sight that end in a digit
  uint32_t numbered_ranges_ = 0;  // ranges in sight whose prefix ends in a digit
  NameSet params_;
  std::unordered_map<std::string_view, uint32_t, NameHash> variable_uses_;  // declarations of a name so far
  std::vector<std::string_view> variable_names_;                            // by index into Function::variables

  std::vector<uint32_t> block_parents_;
  uint32_t block_ = 0;
  std::unordered_map<BlockName, uint32_t, BlockNameHash> labels_;
  std::unordered_map<BlockName, std::vector<std::string_view>, BlockNameHash> branch_tables_;
  std::vector<PendingLabel> pending_labels_;
  uint64_t branch_targets_ = 0;
  bool in_branch_ = false;      // the operands being read are those of bra or brx
  bool pending_minus_ = false;  // a sign that parse_number read and parse_unary applies

  /// A Location whose function's name is a label in .debug_str, resolved at the end of the text.
  struct NamedLocation {
    uint32_t location;  // index into Module::locations
    std::string_view label;
    uint32_t offset;  // bytes after the label
  };
  std::vector<NamedLocation> named_locations_;
  int32_t location_ = -1;
  std::unordered_map<LocationKey, int32_t, LocationKeyHash> location_index_;
  std::unordered_map<LocationKey, int32_t, LocationKeyHash> latest_location_;  // within this function, by place only
};

// ---- module scope -----------------------------------------------------------------------------------------------

bool Parser::parse_module() {
  if (!lexer_.current().is_directive("version")) return fail("a PTX module begins with .version");
  while (lexer_.current().kind != Token::Kind::End) {
    const Token& token = lexer_.current();
    if (token.is(';')) {
      lexer_.advance();
      continue;
    }
    if (token.is('@') && lexer_.following() == '@') {  // "@@DWARF …", the debug format of old compilers
      lexer_.skip_line();
      continue;
    }
    if (token.kind != Token::Kind::Directive)
      return fail("expected a directive at module scope, found " + quoted_token());
    const std::string_view name = token.text;
    bool ok;
    if (name == "version") {
      ok = parse_version();
    } else if (name == "target") {
      ok = parse_target();
    } else if (name == "address_size") {
      lexer_.advance();
      uint32_t size = 0;
      ok = parse_u32("the address size", &size);
      if (ok && size != 64) return fail("only .address_size 64 is supported");
      module_->address_size = 64;
    } else if (name == "file") {
      ok = parse_file();
    } else if (name == "section") {
      ok = parse_section();
    } else if (name == "pragma") {
      ok = skip_to_semicolon();
    } else if (name == "alias") {
      ok = parse_alias();
    } else if (name == "loc") {
      lexer_.skip_line();
      ok = true;
    } else {
      ok = parse_linked();
    }
    if (!ok) return false;
  }
  resolve_function_names();
  return true;
}

bool Parser::parse_version() {
  lexer_.advance();
  const Token token = lexer_.current();
  const size_t dot = token.text.find('.');
  const auto number = [](std::string_view digits, int* out) {
    if (digits.empty() || digits.size() > 4) return false;
    *out = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') return false;
      *out = *out * 10 + (c - '0');
    }
    return true;
  };
  if (token.kind != Token::Kind::Float64 || dot == std::string_view::npos ||
      !number(token.text.substr(0, dot), &module_->version_major) ||
      !number(token.text.substr(dot + 1), &module_->version_minor)) {
    return fail("expected a version such as 9.0, found " + quoted_token());
  }
  lexer_.advance();
  return true;
}

bool Parser::parse_target() {
  lexer_.advance();
  std::string_view name;
  do {
    if (!parse_name("a target such as sm_100a", &name)) return false;
    if (module_->target.empty()) module_->target = name;
  } while (accept(','));
  return true;
}

bool Parser::parse_file() {
  lexer_.advance();
  uint32_t index = 0;
  if (!parse_u32("a file index", &index)) return false;
  if (lexer_.current().kind != Token::Kind::String) return fail("expected a file name, found " + quoted_token());
  module_->files[index] = std::string(lexer_.current().text);
  lexer_.advance();
  // Optional ", timestamp, size".
  while (accept(',')) {
    if (lexer_.current().kind != Token::Kind::Integer) return fail("expected a number, found " + quoted_token());
    lexer_.advance();
  }
  return true;
}

bool Parser::parse_section() {
  const Token start = lexer_.current();
  lexer_.advance();
  const bool is_debug_str = lexer_.current().is_directive("debug_str");
  if (lexer_.current().kind != Token::Kind::Directive && lexer_.current().kind != Token::Kind::Identifier) {
    return fail("expected a section name, found " + quoted_token());
  }
  lexer_.advance();
  if (!lexer_.current().is('{')) return fail("expected '{', found " + quoted_token());
  if (is_debug_str) return parse_debug_str();
  if (!lexer_.skip_braces()) return fail_at(start.line, start.begin, "this .section is never closed");
  return true;
}

bool Parser::parse_debug_str() {
  lexer_.advance();
  while (!lexer_.current().is('}')) {
    const Token& token = lexer_.current();
    if (token.kind == Token::Kind::Identifier) {
      debug_labels_[token.text] = debug_str_.size();
      lexer_.advance();
      if (!expect(':')) return false;
    } else if (token.is_directive("b8")) {
      do {
        lexer_.advance();
        if (lexer_.current().kind != Token::Kind::Integer) return fail("expected a byte, found " + quoted_token());
        debug_str_.push_back(static_cast<uint8_t>(lexer_.current().bits));
        lexer_.advance();
      } while (lexer_.current().is(','));
      accept(';');
    } else {
      return fail("expected a label or .b8 in .debug_str, found " + quoted_token());
    }
  }
  lexer_.advance();
  return true;
}

bool Parser::parse_alias() {
  lexer_.advance();
  std::string_view name, target;
  if (!parse_name("a function name", &name) || !expect(',') || !parse_name("a function name", &target) ||
      !expect(';')) {
    return false;
  }
  // An alias of an alias would have to be followed again on every look-up.
  if (const auto it = module_->aliases.find(std::string(target)); it != module_->aliases.end()) {
    const std::string end = it->second;
    module_->aliases[std::string(name)] = end;
  } else {
    module_->aliases[std::string(name)] = std::string(target);
  }
  globals_.insert(name);
  return true;
}

bool Parser::parse_linked() {
  // PTX §11.6: linking directives stand before .entry, .func and variables.
  bool external = false;
  while (true) {
    const Token& token = lexer_.current();
    if (token.is_directive("extern")) {
      external = true;
    } else if (!token.is_directive("visible") && !token.is_directive("weak") && !token.is_directive("common")) {
      break;
    }
    lexer_.advance();
  }
  const Token& token = lexer_.current();
  if (token.is_directive("entry")) return parse_function(true);
  if (token.is_directive("func")) return parse_function(false);
  const Space space = token.kind == Token::Kind::Directive ? space_from_directive(token.text) : Space::None;
  if (space == Space::Global || space == Space::Const || space == Space::Shared || space == Space::SharedCta ||
      space == Space::Local) {
    return parse_module_variables(space == Space::SharedCta ? Space::Shared : space, external);
  }
  return fail("unknown directive " + quoted_token() + " at module scope");
}

void Parser::resolve_function_names() {
  uint64_t names = 0;
  for (const NamedLocation& named : named_locations_) {
    const auto label = debug_labels_.find(named.label);
    if (label == debug_labels_.end() || label->second + named.offset >= debug_str_.size()) {
      continue;
    }
    const uint8_t* begin = debug_str_.data() + label->second + named.offset;
    const size_t limit =
        std::min<size_t>(kMaxFunctionName, static_cast<size_t>(debug_str_.data() + debug_str_.size() - begin));
    const void* zero = std::memchr(begin, 0, limit);
    const size_t size = zero ? static_cast<size_t>(static_cast<const uint8_t*>(zero) - begin) : limit;
    // Many locations may name one long string: what all names take together is bounded.
    names += size;
    if (names > kMaxFunctionNames) continue;
    module_->locations[named.location].function.assign(reinterpret_cast<const char*>(begin), size);
  }
}

// ---- declarations -----------------------------------------------------------------------------------------------

bool Parser::parse_declarator(Declarator* out) {
  uint32_t vector_length = 1;
  uint32_t align = 0;
  bool pointer = false;
  while (lexer_.current().kind == Token::Kind::Directive) {
    const std::string_view name = lexer_.current().text;
    if (name == "align") {
      lexer_.advance();
      uint32_t value = 0;
      if (!parse_u32("an alignment", &value)) return false;
      if (!std::has_single_bit(value) || value > kMaxAlignment)
        return fail("an alignment is a power of two up to 1 MiB");
      // After .ptr it is the pointee's alignment (PTX §5.1.6.1), which nothing here needs.
      if (!pointer) align = value;
      continue;
    }
    if (name == "attribute") {
      lexer_.advance();
      if (!expect('(')) return false;
      while (!lexer_.current().is(')')) {
        if (lexer_.current().kind == Token::Kind::End || lexer_.current().is(';')) return fail("expected ')'");
        lexer_.advance();
      }
    } else if (name == "ptr") {
      pointer = true;
    } else if (name == "v2" || name == "v4" || name == "v8") {
      vector_length = static_cast<uint32_t>(name[1] - '0');
    } else if (const Type type = declared_type(name); type != Type::None && out->variable.type == Type::None) {
      out->variable.type = type;
    } else if (!pointer || space_from_directive(name) == Space::None) {
      return fail("unexpected " + quoted_token() + " in a declaration");
    }
    lexer_.advance();
  }
  if (out->variable.type == Type::None) return fail("a declaration needs a type, found " + quoted_token());
  out->element_size = size_of(out->variable.type) * vector_length;
  if (vector_length > 1 && out->variable.space == Space::Reg) return fail("vector registers are not supported");
  if (out->element_size == 0 && out->variable.space != Space::Reg) return fail("only registers may be predicates");
  out->variable.align = align != 0 ? align : static_cast<uint32_t>(std::max<uint64_t>(out->element_size, 1));
  return true;
}

bool Parser::parse_dims(Declarator* out) {
  out->dims.clear();
  out->variable.unsized = false;
  uint64_t size = out->element_size;
  while (accept('[')) {
    if (out->dims.size() == kMaxOperandDepth) return fail("too many array dimensions");
    uint64_t dim = 0;
    if (lexer_.current().is(']')) {
      if (!out->dims.empty()) return fail("only the first dimension may be left out");
      out->variable.unsized = true;
    } else {
      if (!parse_expression(&dim, 0, 0)) return false;
      if (dim > kMaxVariableSize || dim * std::max<uint64_t>(size, 1) > kMaxVariableSize) {
        return fail("a variable may have at most 1 GiB");
      }
      size *= dim;
    }
    if (!expect(']')) return false;
    out->dims.push_back(dim);
  }
  out->variable.size = out->variable.unsized ? 0 : size;
  return true;
}

bool Parser::store_init(Variable* variable, uint64_t offset, const void* bytes, size_t size) {
  if (offset + size > variable->init.size()) {
    init_bytes_ += offset + size - variable->init.size();
    if (init_bytes_ > kMaxInitBytes) return fail("more than 256 MiB of initial values");
    variable->init.resize(offset + size);
  }
  std::memcpy(variable->init.data() + offset, bytes, size);
  return true;
}

bool Parser::parse_initializer_value(Declarator* declarator, uint64_t offset) {
  Variable& variable = declarator->variable;
  const size_t size = size_of(variable.type);
  const Token token = lexer_.current();
  if (token.kind == Token::Kind::Integer && lexer_.next_is('(')) {
    // The mask operator (PTX §5.4.4): byte k of an address, written 0xFF << 8k (symbol). nvcc writes all eight in
    // order.
    const uint64_t mask = token.bits;
    if (size != 1 || mask == 0 || std::countr_zero(mask) % 8 != 0 || mask >> std::countr_zero(mask) != 0xff) {
      return fail("a mask selects one byte of an address for a .b8 element");
    }
    lexer_.advance();
    lexer_.advance();
    Variable::Reloc reloc{offset, {}, 0, false, 1};
    std::string_view name;
    if (lexer_.current().kind == Token::Kind::Identifier && lexer_.current().text == "generic" && lexer_.next_is('(')) {
      lexer_.advance();
      lexer_.advance();
      reloc.generic = true;
      if (!parse_name("a symbol", &name) || !expect(')')) return false;
    } else if (!parse_name("a symbol", &name)) {
      return false;
    }
    if (!parse_offset(&reloc.addend, 0) || !expect(')')) return false;
    reloc.symbol = name;
    const uint64_t byte = static_cast<uint64_t>(std::countr_zero(mask)) / 8;
    if (byte == 0) {
      variable.relocs.push_back(std::move(reloc));
    } else if (variable.relocs.empty() || variable.relocs.back().offset + byte != offset ||
               variable.relocs.back().size != byte || variable.relocs.back().symbol != name) {
      return fail_at(token.line, token.begin, "the bytes of an address must follow each other");
    } else {
      ++variable.relocs.back().size;
    }
    const uint8_t zero = 0;
    return store_init(&variable, offset, &zero, 1);
  }
  if (token.kind == Token::Kind::Identifier && token.text != "WARP_SZ") {
    Variable::Reloc reloc{offset, {}, 0, false, static_cast<uint8_t>(size)};
    std::string_view name;
    if (token.text == "generic" && lexer_.next_is('(')) {
      lexer_.advance();
      lexer_.advance();
      reloc.generic = true;
      if (!parse_name("a symbol", &name) || !expect(')')) return false;
    } else if (!parse_name("a symbol", &name)) {
      return false;
    }
    if (!parse_offset(&reloc.addend, 0)) return false;
    if (size != 4 && size != 8) return fail_at(token.line, token.begin, "an address needs an element of 4 or 8 bytes");
    reloc.symbol = name;
    variable.relocs.push_back(std::move(reloc));
    const uint64_t zero = 0;
    return store_init(&variable, offset, &zero, size);
  }
  Operand value;
  if (!parse_number(&value, 0)) return false;
  uint64_t bits = value.bits;
  if (variable.type == Type::F32 || variable.type == Type::F64) {
    double number = 0;
    if (value.kind == Operand::Kind::Float32) {
      number = std::bit_cast<float>(static_cast<uint32_t>(bits));
    } else if (value.kind == Operand::Kind::Float64) {
      number = std::bit_cast<double>(bits);
    } else {
      number = static_cast<double>(static_cast<int64_t>(bits));
    }
    if (variable.type == Type::F64) {
      bits = std::bit_cast<uint64_t>(number);
    } else if (value.kind != Operand::Kind::Float32) {  // a 0f constant keeps its bits, NaN payloads included
      bits = std::bit_cast<uint32_t>(static_cast<float>(number));
    }
  } else if (value.kind != Operand::Kind::Integer &&
             size != (value.kind == Operand::Kind::Float32 ? size_t{4} : size_t{8})) {
    return fail_at(token.line, token.begin, "a floating-point constant does not fit this element type");
  }
  return store_init(&variable, offset, &bits, size);  // little-endian hosts only, like the rest of the emulator
}

bool Parser::parse_initializer_list(Declarator* declarator, size_t level, uint64_t begin, uint64_t end,
                                    uint64_t* used) {
  if (!expect('{')) return false;
  // Bytes of one item at this level: a sub-array, or a single value.
  uint64_t stride = declarator->element_size;
  for (size_t i = level + 1; i < declarator->dims.size(); ++i) stride *= declarator->dims[i];
  const size_t value_size = size_of(declarator->variable.type);
  uint64_t offset = begin;
  *used = 0;
  while (!lexer_.current().is('}')) {
    if (lexer_.current().is('{')) {
      if (level + 1 >= std::max<size_t>(declarator->dims.size(), 1) + (declarator->element_size > value_size ? 1 : 0)) {
        return fail("more braces than array dimensions");
      }
      if (stride > end - offset) return fail("more initial values than elements");
      uint64_t inner = 0;
      if (!parse_initializer_list(declarator, level + 1, offset, offset + stride, &inner)) return false;
      offset += stride;
    } else {
      if (value_size > end - offset) return fail("more initial values than elements");
      if (!parse_initializer_value(declarator, offset)) return false;
      offset += value_size;
    }
    *used = offset - begin;
    if (!lexer_.current().is('}') && !expect(',')) return false;
  }
  lexer_.advance();
  return true;
}

bool Parser::parse_initializer(Declarator* declarator) {
  Variable& variable = declarator->variable;
  if (!lexer_.current().is('{')) {
    if (!declarator->dims.empty()) return fail("the initial value of an array stands in braces");
    return parse_initializer_value(declarator, 0);
  }
  uint64_t used = 0;
  if (!parse_initializer_list(declarator, 0, 0, variable.unsized ? kMaxVariableSize : variable.size, &used))
    return false;
  if (variable.unsized) {
    uint64_t stride = declarator->element_size;
    for (size_t i = 1; i < declarator->dims.size(); ++i) stride *= declarator->dims[i];
    if (stride == 0) return fail("an array of empty arrays cannot be initialised");
    variable.size = (used + stride - 1) / stride * stride;
    variable.unsized = false;
  }
  return true;
}

bool Parser::parse_module_variables(Space space, bool external) {
  lexer_.advance();
  Declarator declarator;
  declarator.variable.space = space;
  declarator.variable.external = external;
  if (!parse_declarator(&declarator)) return false;
  do {
    std::string_view name;
    if (!parse_name("a variable name", &name)) return false;
    Declarator one = declarator;
    one.variable.name = name;
    if (!parse_dims(&one)) return false;
    globals_.insert(name);
    if (accept('=') && !parse_initializer(&one)) return false;
    module_->variables.push_back(std::move(one.variable));
  } while (accept(','));
  return expect(';');
}

bool Parser::parse_body_variables(Space space) {
  lexer_.advance();
  Declarator declarator;
  declarator.variable.space = space == Space::SharedCta ? Space::Shared : space;
  if (!parse_declarator(&declarator)) return false;
  do {
    const Token at = lexer_.current();
    std::string_view name;
    if (!parse_name("a variable name", &name)) return false;
    Declarator one = declarator;
    if (!parse_dims(&one)) return false;
    // Unique within the function; '@' cannot occur in a PTX name.
    const std::string_view written = name;
    const uint32_t uses = variable_uses_[name]++ + static_cast<uint32_t>(params_.count(name));
    if (uses > 0) name = keep(std::string(name) + "@" + std::to_string(uses), module_);
    one.variable.name = name;
    if (accept('=') && !parse_initializer(&one)) return false;
    const auto index = static_cast<uint32_t>(function_->variables.size());
    function_->variables.push_back(std::move(one.variable));
    variable_names_.push_back(name);
    if (!bind(written, false, {Named::Variable, index, 0}, at)) return false;
  } while (accept(','));
  return expect(';');
}

bool Parser::parse_registers() {
  lexer_.advance();
  Declarator declarator;
  declarator.variable.space = Space::Reg;
  if (!parse_declarator(&declarator)) return false;
  const Type type = declarator.variable.type;
  do {
    const Token at = lexer_.current();
    std::string_view name;
    if (!parse_name("a register name", &name)) return false;
    if (accept('<')) {
      Range range;
      range.type = type;
      if (!parse_u32("a number of registers", &range.count) || !expect('>')) return false;
      const auto index = static_cast<uint32_t>(ranges_.size());
      ranges_.push_back(std::move(range));
      if (!bind(name, true, {Named::Register, index, 0}, at)) return false;
    } else {
      if (!bind(name, false, {Named::Register, add_register(name, type), 0}, at)) return false;
    }
  } while (accept(','));
  return expect(';');
}

bool Parser::parse_params(std::vector<Variable>* params) {
  if (!expect('(')) return false;
  if (accept(')')) return true;
  do {
    const Space space =
        lexer_.current().kind == Token::Kind::Directive ? space_from_directive(lexer_.current().text) : Space::None;
    if (space != Space::Param && space != Space::Reg) return fail("expected .param or .reg, found " + quoted_token());
    lexer_.advance();
    Declarator declarator;
    declarator.variable.space = space;
    std::string_view name;
    if (!parse_declarator(&declarator) || !parse_name("a parameter name", &name) || !parse_dims(&declarator))
      return false;
    declarator.variable.name = name;
    params->push_back(std::move(declarator.variable));
  } while (accept(','));
  return expect(')');
}

// ---- functions --------------------------------------------------------------------------------------------------

bool Parser::parse_three(uint32_t out[3]) {
  lexer_.advance();
  out[0] = out[1] = out[2] = 1;
  int i = 0;
  do {
    if (i == 3) return fail("at most three dimensions");
    if (!parse_u32("a dimension", &out[i++])) return false;
  } while (accept(','));
  return true;
}

bool Parser::parse_function_directives() {
  while (lexer_.current().kind == Token::Kind::Directive) {
    const std::string_view name = lexer_.current().text;
    if (name == "maxntid") {
      if (!parse_three(function_->maxntid)) return false;
    } else if (name == "reqntid") {
      if (!parse_three(function_->reqntid)) return false;
    } else if (name == "reqnctapercluster") {
      if (!parse_three(function_->reqnctapercluster)) return false;
    } else if (name == "explicitcluster") {
      function_->explicit_cluster = true;
      lexer_.advance();
    } else if (name == "minnctapersm") {
      lexer_.advance();
      if (!parse_u32("a number", &function_->minnctapersm)) return false;
    } else if (name == "maxnreg") {
      lexer_.advance();
      if (!parse_u32("a number", &function_->maxnreg)) return false;
    } else if (name == "maxnctapersm" || name == "maxclusterrank" || name == "abi_preserve" ||
               name == "abi_preserve_control") {
      lexer_.advance();
      uint32_t ignored = 0;
      if (!parse_u32("a number", &ignored)) return false;
    } else if (name == "noreturn" || name == "unique" || name == "blocksareclusters") {
      lexer_.advance();
    } else if (name == "pragma") {
      if (!skip_to_semicolon()) return false;
    } else {
      return fail("unknown directive " + quoted_token() + " of a function");
    }
  }
  return true;
}

bool Parser::parse_function(bool is_entry) {
  lexer_.advance();
  Function function;
  function.is_entry = is_entry;
  // `.attribute(.unified(…))` may stand before the name.
  if (lexer_.current().is_directive("attribute")) {
    lexer_.advance();
    while (!lexer_.current().is(')')) {
      if (lexer_.current().kind == Token::Kind::End) return fail("expected ')'");
      lexer_.advance();
    }
    lexer_.advance();
    if (lexer_.current().is(')')) lexer_.advance();
  }
  if (!is_entry && lexer_.current().is('(') && !parse_params(&function.returns)) return false;
  std::string_view name;
  if (!parse_name("a function name", &name)) return false;
  function.name = name;
  globals_.insert(name);
  const Token at = lexer_.current();
  if (lexer_.current().is('(') && !parse_params(&function.params)) return false;
  function_ = &function;
  bool ok = parse_function_directives();
  if (ok && lexer_.current().is('{')) {
    function.has_body = true;
    function.statements.swap(spare_statements_);
    function.registers.swap(spare_registers_);
    reset(&names_);
    reset(&range_names_);
    hidden_.clear();
    scope_marks_.clear();
    ranges_.clear();
    numbered_names_ = numbered_ranges_ = 0;
    reset(&params_);
    reset(&variable_uses_);
    variable_names_.clear();
    block_parents_.clear();
    reset(&labels_);
    reset(&branch_tables_);
    pending_labels_.clear();
    reset(&latest_location_);
    location_ = -1;
    for (std::vector<Variable>* list : {&function.returns, &function.params}) {
      for (const Variable& param : *list) {
        // The views must outlive this loop: the strings of `function` do not move while its body is parsed.
        const std::string_view param_name = param.name;
        if (param.space == Space::Reg) {
          if (!bind(param_name, false, {Named::Register, add_register(param_name, param.type), 0}, at)) return false;
        } else if (!params_.insert(param_name).second) {
          return fail_at(at.line, at.begin, "two parameters are named '" + param.name + "'");
        }
      }
    }
    ok = parse_body();
    settle(&function.statements, &spare_statements_);
    settle(&function.registers, &spare_registers_);
  } else if (ok) {
    ok = expect(';');
  }
  function_ = nullptr;
  if (!ok) return false;
  module_->functions.push_back(std::move(function));
  return true;
}

bool Parser::open_scope() {
  if (scope_marks_.size() == kMaxScopeDepth) return fail("blocks are nested too deeply");
  block_parents_.push_back(block_);
  block_ = static_cast<uint32_t>(block_parents_.size() - 1);
  scope_marks_.push_back(hidden_.size());
  return true;
}

void Parser::close_scope() {
  const size_t mark = scope_marks_.back();
  scope_marks_.pop_back();
  while (hidden_.size() > mark) {
    const Hidden& hidden = hidden_.back();
    Names& names = hidden.is_range ? range_names_ : names_;
    const char last = hidden.name.back();
    if (hidden.existed) {
      names[hidden.name] = hidden.binding;
    } else {
      names.erase(hidden.name);
      if (last >= '0' && last <= '9') --(hidden.is_range ? numbered_ranges_ : numbered_names_);
    }
    hidden_.pop_back();
  }
  block_ = block_parents_[block_];
}

bool Parser::bind(std::string_view name, bool is_range, Binding binding, const Token& at) {
  binding.depth = static_cast<uint32_t>(scope_marks_.size());
  Names& names = is_range ? range_names_ : names_;
  const auto [it, inserted] = names.try_emplace(name, binding);
  if (inserted) {
    hidden_.push_back({name, is_range, false, {}});
    if (name.back() >= '0' && name.back() <= '9') ++(is_range ? numbered_ranges_ : numbered_names_);
    return true;
  }
  if (it->second.depth == binding.depth) {
    return fail_at(at.line, at.begin, "'" + std::string(name) + "' is declared twice in this block");
  }
  hidden_.push_back({name, is_range, true, it->second});
  it->second = binding;
  return true;
}

uint32_t Parser::add_register(std::string_view name, Type type) {
  function_->registers.push_back({std::string(name), type});
  return static_cast<uint32_t>(function_->registers.size() - 1);
}

int32_t Parser::find_register(std::string_view name) {
  const bool numbered = name.back() >= '0' && name.back() <= '9';
  const Binding* exact = nullptr;
  if (!numbered || numbered_names_ > 0) {
    if (const auto it = names_.find(name); it != names_.end() && it->second.kind == Named::Register)
      exact = &it->second;
  }
  if (numbered) {
    // The longest run of digits is the number, unless the prefix itself ends in digits ("%x1<4>" gives %x10 … %x13).
    size_t split = name.size();
    while (split > 1 && name.size() - split < 10 && name[split - 1] >= '0' && name[split - 1] <= '9') {
      --split;
      if (numbered_ranges_ == 0 && name[split - 1] >= '0' && name[split - 1] <= '9') continue;
      const auto it = range_names_.find(name.substr(0, split));
      if (it == range_names_.end()) continue;
      if (exact && exact->depth > it->second.depth) break;
      if (name[split] == '0' && name.size() - split > 1) continue;  // "%r07" is not "%r7"
      uint64_t number = 0;
      for (char c : name.substr(split)) number = number * 10 + static_cast<uint64_t>(c - '0');
      Range& range = ranges_[it->second.index];
      if (number >= range.count) continue;
      const auto n = static_cast<uint32_t>(number);
      // Numbers near those seen are looked up by index, far ones by hash: one use of %r65535 must not cost 256 KiB.
      if (n < range.dense.size() && range.dense[n] >= 0) return range.dense[n];
      if (const auto entry = range.sparse.find(n); entry != range.sparse.end())
        return static_cast<int32_t>(entry->second);
      const uint32_t made = add_register(name, range.type);
      if (n < range.dense.size() || n < std::max(kFirstDenseRegisters, 2 * range.dense.size())) {
        if (n >= range.dense.size())
          range.dense.resize(std::max<size_t>(kFirstDenseRegisters, 2 * range.dense.size()), -1);
        range.dense[n] = static_cast<int32_t>(made);
      } else {
        range.sparse.emplace(n, made);
      }
      return static_cast<int32_t>(made);
    }
  }
  return exact ? static_cast<int32_t>(exact->index) : -1;
}

bool Parser::parse_body() {
  const Token open = lexer_.current();
  block_ = 0;
  do {
    const Token& token = lexer_.current();
    bool ok = true;
    switch (token.kind) {
      case Token::Kind::End:
        return fail_at(open.line, open.begin, "the body that begins here is never closed");
      case Token::Kind::Directive:
        ok = parse_body_directive();
        break;
      case Token::Kind::Identifier:
        ok = lexer_.next_is(':') ? parse_label() : parse_instruction(token.begin, token.line, -1, false);
        break;
      default:
        if (token.is('{')) {
          ok = open_scope();
          lexer_.advance();
        } else if (token.is('}')) {
          close_scope();
          lexer_.advance();
        } else if (token.is(';')) {
          lexer_.advance();
        } else if (token.is('@')) {
          ok = parse_guarded();
        } else {
          ok = fail("expected an instruction, found " + quoted_token());
        }
    }
    if (!ok) return false;
  } while (!scope_marks_.empty());
  append_implicit_return();
  return resolve_labels();
}

bool Parser::parse_body_directive() {
  const std::string_view name = lexer_.current().text;
  if (name == "loc") return parse_loc();
  if (name == "reg") return parse_registers();
  if (name == "pragma" || name == "callprototype" || name == "calltargets") return skip_to_semicolon();
  if (name == "file") return parse_file();
  if (name == "section") return parse_section();
  const Space space = space_from_directive(name);
  if (space == Space::Local || space == Space::Shared || space == Space::SharedCta || space == Space::Param ||
      space == Space::Global || space == Space::Const) {
    return parse_body_variables(space);
  }
  return fail("unknown directive " + quoted_token() + " in a function body");
}

bool Parser::parse_loc() {
  // PTX §11.5.3: .loc file line column [, function_name label[+offset], inlined_at file line column]
  lexer_.advance();
  Location location;
  if (!parse_u32("a file index", &location.file) || !parse_u32("a line", &location.line) ||
      !parse_u32("a column", &location.column)) {
    return false;
  }
  std::string_view label;
  uint32_t label_offset = 0;
  while (accept(',')) {
    std::string_view word;
    if (!parse_name("function_name or inlined_at", &word)) return false;
    if (word == "function_name") {
      if (!parse_name("a label", &label)) return false;
      label_offset = 0;
      if (accept('+') && !parse_u32("an offset", &label_offset)) return false;
    } else if (word == "inlined_at") {
      LocationKey at;
      if (!parse_u32("a file index", &at.file) || !parse_u32("a line", &at.line) ||
          !parse_u32("a column", &at.column)) {
        return false;
      }
      const auto it = latest_location_.find(at);
      if (it != latest_location_.end()) {
        location.inlined_at = it->second;
      } else {
        // The call's own place was never written: make it, so that the chain still leads there.
        module_->locations.push_back({at.file, at.line, at.column, -1, {}});
        location.inlined_at = static_cast<int32_t>(module_->locations.size() - 1);
        latest_location_[at] = location.inlined_at;
      }
    } else {
      return fail("expected function_name or inlined_at");
    }
  }
  const LocationKey key{location.file, location.line, location.column, location.inlined_at, label, label_offset};
  const auto [it, inserted] = location_index_.try_emplace(key, static_cast<int32_t>(module_->locations.size()));
  if (inserted) {
    if (!label.empty()) {
      named_locations_.push_back({static_cast<uint32_t>(module_->locations.size()), label, label_offset});
    }
    module_->locations.push_back(std::move(location));
  }
  location_ = it->second;
  latest_location_[{key.file, key.line, key.column, -1, {}, 0}] = location_;
  return true;
}

bool Parser::parse_label() {
  const Token at = lexer_.current();
  const std::string_view name = at.text;
  lexer_.advance();
  lexer_.advance();  // ':'
  if (lexer_.current().is_directive("branchtargets")) {
    lexer_.advance();
    std::vector<std::string_view> targets;
    do {
      std::string_view target;
      if (!parse_name("a label", &target)) return false;
      targets.push_back(target);
    } while (accept(','));
    if (!branch_tables_.try_emplace({block_, name}, std::move(targets)).second) {
      return fail_at(at.line, at.begin, "label '" + std::string(name) + "' is defined twice in this block");
    }
    return expect(';');
  }
  const auto target = static_cast<uint32_t>(function_->statements.size());
  if (!labels_.try_emplace({block_, name}, target).second) {
    return fail_at(at.line, at.begin, "label '" + std::string(name) + "' is defined twice in this block");
  }
  return true;
}

bool Parser::parse_guarded() {
  const Token at = lexer_.current();
  if (lexer_.following() == '@') {
    lexer_.skip_line();
    return true;
  }
  lexer_.advance();
  const bool negated = accept('!');
  if (lexer_.current().kind != Token::Kind::Identifier) return fail("expected a predicate, found " + quoted_token());
  const int32_t guard = find_register(lexer_.current().text);
  if (guard < 0) return fail("undeclared register " + quoted_token());
  if (function_->registers[static_cast<size_t>(guard)].type != Type::Pred) {
    return fail(quoted_token() + " is not a predicate");
  }
  lexer_.advance();
  if (lexer_.current().kind != Token::Kind::Identifier) return fail("expected an instruction, found " + quoted_token());
  return parse_instruction(at.begin, at.line, guard, negated);
}

/// The text from `begin` to `end` with runs of white space and comments made one space.
std::string_view Parser::folded(const char* begin, const char* end) {
  auto* const room = static_cast<char*>(module_->arena->allocate(static_cast<size_t>(end - begin), 1));
  char* out = room;
  for (const char* p = begin; p < end;) {
    const char c = *p;
    if (static_cast<unsigned char>(c) > ' ' && c != '/') {
      *out++ = c;
      ++p;
      continue;
    }
    if (c == '/' && p + 1 < end && (p[1] == '/' || p[1] == '*')) {
      const std::string_view rest(p, static_cast<size_t>(end - p));
      const size_t close = p[1] == '/' ? rest.find('\n') : rest.find("*/", 2);
      p = close == std::string_view::npos ? end : p + close + (p[1] == '/' ? 1 : 2);
    } else if (c == '/') {
      *out++ = *p++;
      continue;
    } else {
      ++p;
    }
    if (out != room && out[-1] != ' ') *out++ = ' ';
  }
  return {room, static_cast<size_t>(out - room)};
}

Operands Parser::keep_operands(Operand* operands, size_t count) {
  if (count == 0) return {};
  auto* kept = static_cast<Operand*>(module_->arena->allocate(count * sizeof(Operand), alignof(Operand)));
  std::uninitialized_move_n(operands, count, kept);
  return {kept, count};
}

Operands Parser::keep_operands(size_t first) {
  Operands kept = keep_operands(operands_.data() + first, operands_.size() - first);
  operands_.resize(first);
  return kept;
}

const Parser::SharedOpcode& Parser::parse_opcode() {
  const std::string_view first = lexer_.current().text;
  const char* end = first.data() + first.size();
  parts_.assign(1, first);
  for (std::string_view part = lexer_.opcode_part(); !part.empty(); part = lexer_.opcode_part()) {
    parts_.push_back(part);
    end = part.data() + part.size();
  }
  // The spelling, white space between parts included, decides what the parts are.
  const auto [it, inserted] = opcodes_.try_emplace({first.data(), static_cast<size_t>(end - first.data())});
  if (inserted) {
    it->second.opcode = Opcode(std::make_shared<const Opcode::Parts>(parts_.begin(), parts_.end()));
    it->second.branches = first == "bra" || first == "brx";
  }
  return it->second;
}

bool Parser::parse_instruction(const char* begin, uint32_t line, int32_t guard, bool negated) {
  const auto index = static_cast<uint32_t>(function_->statements.size());
  Statement& statement = function_->statements.emplace_back();
  statement.guard = guard;
  statement.guard_negated = negated;
  statement.location = location_;
  statement.line = line;
  const SharedOpcode& shared = parse_opcode();
  statement.opcode = shared.opcode;
  in_branch_ = shared.branches;
  lexer_.advance();
  if (!lexer_.current().is(';')) {
    do {
      Operand operand;
      const Token& token = lexer_.current();
      const uint32_t operand_line = token.line;
      const char* place = token.begin;
      if (!parse_operand(&operand, 0)) return false;
      if (operand.kind == Operand::Kind::Label) {
        pending_labels_.push_back({index, static_cast<uint32_t>(operands_.size()), block_, operand_line, place,
                                   std::string_view(place, operand.bits)});
        operand.bits = 0;
      }
      operands_.push_back(std::move(operand));
    } while (accept(','));
    statement.operands = keep_operands(0);
  }
  if (!lexer_.current().is(';')) return fail("expected ',' or ';', found " + quoted_token());
  statement.text = folded(begin, lexer_.position());
  lexer_.advance();
  return true;
}

void Parser::append_implicit_return() {
  // Control that runs off the end of a body returns (PTX §9.7.12.6 asks for ret; ptxas adds it). A label may stand
  // there.
  std::vector<Statement>& statements = function_->statements;
  bool needed = statements.empty() || statements.back().guard >= 0;
  if (!needed) {
    const std::string& last = statements.back().opcode[0];
    needed = last != "ret" && last != "exit" && last != "trap" && last != "bra" && last != "brx";
  }
  for (const auto& [key, target] : labels_) needed = needed || target == statements.size();
  if (!needed) return;
  Statement implied;
  implied.opcode = {"ret"};
  implied.location = location_;
  implied.line = lexer_.current().line;
  implied.text = "ret;";
  statements.push_back(std::move(implied));
}

bool Parser::resolve_labels() {
  const auto find = [this](const auto& table, uint32_t block, std::string_view name) {
    while (true) {
      const auto it = table.find(BlockName{block, name});
      if (it != table.end() || block == block_parents_[block]) return it;
      block = block_parents_[block];
    }
  };
  for (const PendingLabel& pending : pending_labels_) {
    Statement& statement = function_->statements[pending.statement];
    Operand& operand = statement.operands[pending.operand];
    if (statement.opcode[0] == "brx") {
      const auto table = find(branch_tables_, pending.block, pending.name);
      if (table == branch_tables_.end()) {
        return fail_at(pending.line, pending.place, "no .branchtargets named '" + std::string(pending.name) + "'");
      }
      branch_targets_ += table->second.size();
      if (branch_targets_ > kMaxBranchTargets) return fail_at(pending.line, pending.place, "too many branch targets");
      operand.kind = Operand::Kind::Vector;
      operands_.resize(table->second.size());
      operand.elements = keep_operands(0);
      for (size_t i = 0; i < table->second.size(); ++i) {
        const auto label = find(labels_, table->first.block, table->second[i]);
        if (label == labels_.end()) {
          return fail_at(pending.line, pending.place, "undeclared label '" + std::string(table->second[i]) + "'");
        }
        operand.elements[i].kind = Operand::Kind::Label;
        operand.elements[i].target = label->second;
        operand.elements[i].name = table->second[i];
      }
      continue;
    }
    operand.name = pending.name;
    if (statement.opcode[0] == "call" && pending.operand > 0) {
      // The label of a .callprototype or .calltargets.
      operand.kind = Operand::Kind::Symbol;
      continue;
    }
    const auto label = find(labels_, pending.block, pending.name);
    if (label == labels_.end()) {
      return fail_at(pending.line, pending.place, "undeclared name '" + std::string(pending.name) + "'");
    }
    operand.target = label->second;
  }
  return true;
}

// ---- operands ---------------------------------------------------------------------------------------------------

bool Parser::parse_operand(Operand* out, int depth) {
  if (!parse_primary(out, depth)) return false;
  if (!lexer_.current().is('|')) return true;
  lexer_.advance();
  Operand pair[2];
  pair[0] = std::move(*out);
  if (!parse_primary(&pair[1], depth + 1)) return false;
  for (const Operand& element : pair) {
    if (element.kind == Operand::Kind::Label) return fail("a pair holds registers or '_'");
  }
  *out = Operand();
  out->kind = Operand::Kind::Pair;
  out->elements = keep_operands(pair, 2);
  return true;
}

bool Parser::parse_primary(Operand* out, int depth) {
  if (depth > kMaxOperandDepth) return fail("operands are nested too deeply");
  const Token& token = lexer_.current();
  if (token.kind == Token::Kind::Identifier) return parse_identifier(out, depth == 0);
  if (token.kind == Token::Kind::Punctuation) {
    switch (token.text[0]) {
      case '[':
        return parse_address(out, depth);
      case '{':
        return parse_list(out, '}', depth);
      case '(':
        return parse_list(out, ')', depth);
      case '!':
        lexer_.advance();
        if (lexer_.current().kind != Token::Kind::Identifier)
          return fail("expected a predicate, found " + quoted_token());
        if (!parse_identifier(out, false)) return false;
        out->negated = true;
        return true;
      case '-':
        if (lexer_.following() == '%') {
          lexer_.advance();
          if (!parse_identifier(out, false)) return false;
          out->negated = true;
          return true;
        }
        break;
      default:
        break;
    }
  }
  return parse_number(out, depth);
}

bool Parser::parse_identifier(Operand* out, bool may_be_label) {
  const Token& token = lexer_.current();
  std::string_view name = token.text;
  if (name == "_") {
    out->kind = Operand::Kind::Sink;
    lexer_.advance();
    return true;
  }
  if (const int32_t reg = find_register(name); reg >= 0) {
    out->kind = Operand::Kind::Register;
    out->reg = static_cast<uint32_t>(reg);
    lexer_.advance();
    return true;
  }
  if (name[0] == '%') {
    name = lexer_.with_component();
    if (!is_special_register(name)) return fail("undeclared register " + quoted_token());
    out->kind = Operand::Kind::Special;
    out->name = name;
    lexer_.advance();
    return true;
  }
  if (name == "WARP_SZ") {
    out->kind = Operand::Kind::Integer;
    out->bits = 32;
    lexer_.advance();
    return true;
  }
  const auto it = names_.find(name);
  const bool named = it != names_.end() || params_.count(name) > 0 || globals_.count(name) > 0;
  if (may_be_label && (in_branch_ || !named)) {
    // parse_instruction notes it for resolve_labels; `bits` carries the length of the name to it.
    out->kind = Operand::Kind::Label;
    out->bits = name.size();
    lexer_.advance();
    return true;
  }
  if (!named) return fail("undeclared name " + quoted_token());
  if (it != names_.end()) {
    out->name = variable_names_[it->second.index];
  } else {
    out->name = name;
  }
  out->kind = Operand::Kind::Symbol;
  lexer_.advance();
  return parse_offset(&out->offset, 0);
}

bool Parser::parse_offset(int64_t* out, int depth) {
  uint64_t sum = 0;
  while (lexer_.current().is('+') || lexer_.current().is('-')) {
    const bool minus = lexer_.current().is('-');
    lexer_.advance();
    uint64_t value = 0;
    if (!parse_expression(&value, depth + 1, 1)) return false;
    sum += minus ? 0 - value : value;
  }
  *out = static_cast<int64_t>(sum);
  return true;
}

bool Parser::parse_address(Operand* out, int depth) {
  lexer_.advance();
  out->kind = Operand::Kind::Address;
  Operand parts[2];
  size_t count = 1;
  Operand& base = parts[0];
  if (lexer_.current().kind == Token::Kind::Identifier) {
    if (!parse_identifier(&base, false)) return false;
    if (base.kind == Operand::Kind::Sink) return fail("'_' is not an address");
    if (base.kind == Operand::Kind::Symbol) {
      std::swap(out->offset, base.offset);
    } else if (!parse_offset(&out->offset, depth)) {
      return false;
    }
  } else if (!parse_number(&base, depth)) {
    return false;
  }
  while (accept(',')) {
    if (!lexer_.current().is('{')) return fail("expected '{' of the coordinates, found " + quoted_token());
    if (count == 2) return fail("an address has one coordinate vector");
    if (!parse_list(&parts[count++], '}', depth + 1)) return false;
  }
  out->elements = keep_operands(parts, count);
  return expect(']');
}

bool Parser::parse_list(Operand* out, char close, int depth) {
  lexer_.advance();
  out->kind = Operand::Kind::Vector;
  if (accept(close)) return true;
  const size_t first = operands_.size();
  do {
    Operand element;
    if (!parse_operand(&element, depth + 1)) return false;
    operands_.push_back(std::move(element));
  } while (accept(','));
  out->elements = keep_operands(first);
  return expect(close);
}

bool Parser::parse_number(Operand* out, int depth) {
  // A floating-point constant, perhaps with signs, or an integer expression (PTX §4.5). Which one shows only after the
  // signs: those before an integer are handed to parse_unary, so that they bind tighter than what follows.
  bool minus = false;
  while (lexer_.current().is('-') || lexer_.current().is('+')) {
    minus ^= lexer_.current().is('-');
    lexer_.advance();
  }
  const Token& token = lexer_.current();
  if (token.kind == Token::Kind::Float32 || token.kind == Token::Kind::Float64) {
    const bool single = token.kind == Token::Kind::Float32;
    out->kind = single ? Operand::Kind::Float32 : Operand::Kind::Float64;
    out->bits = token.bits ^ (minus ? (single ? 1ull << 31 : 1ull << 63) : 0);
    lexer_.advance();
    return true;
  }
  out->kind = Operand::Kind::Integer;
  pending_minus_ = minus;
  return parse_expression(&out->bits, depth, 0);
}

bool Parser::parse_unary(uint64_t* out, int depth) {
  // Signs in a row are handled without recursion.
  const bool minus = std::exchange(pending_minus_, false);
  std::string operators;
  while (lexer_.current().is('-') || lexer_.current().is('+') || lexer_.current().is('~')) {
    operators += lexer_.current().text[0];
    lexer_.advance();
  }
  const Token& token = lexer_.current();
  if (token.is('(')) {
    if (depth >= kMaxOperandDepth) return fail("parentheses are nested too deeply");
    lexer_.advance();
    if (!parse_expression(out, depth + 1, 0) || !expect(')')) return false;
  } else if (token.kind == Token::Kind::Integer) {
    *out = token.bits;
    lexer_.advance();
  } else if (token.kind == Token::Kind::Identifier && token.text == "WARP_SZ") {
    *out = 32;
    lexer_.advance();
  } else {
    return fail("expected an operand, found " + quoted_token());
  }
  std::reverse(operators.begin(), operators.end());  // the one next to the operand applies first
  for (const char op : operators) {
    if (op == '-') *out = 0 - *out;
    if (op == '~') *out = ~*out;
  }
  if (minus) *out = 0 - *out;
  return true;
}

bool Parser::parse_expression(uint64_t* out, int depth, int level) {
  // Levels, loosest first: shifts, sums, products. '|' is left out: it separates pairs.
  if (level == 3) return parse_unary(out, depth);
  if (!parse_expression(out, depth, level + 1)) return false;
  while (true) {
    const Token& token = lexer_.current();
    const char op = token.kind == Token::Kind::Punctuation ? token.text[0] : '\0';
    const bool shift = level == 0 && (op == '<' || op == '>') && lexer_.following() == op;
    const bool sum = level == 1 && (op == '+' || op == '-');
    const bool product = level == 2 && (op == '*' || op == '/');
    if (!shift && !sum && !product) return true;
    lexer_.advance();
    if (shift) lexer_.advance();
    uint64_t right = 0;
    if (!parse_expression(&right, depth, level + 1)) return false;
    const auto left = static_cast<int64_t>(*out);
    switch (op) {
      case '+':
        *out += right;
        break;
      case '-':
        *out -= right;
        break;
      case '*':
        *out *= right;
        break;
      case '/':
        if (right == 0) return fail("division by zero");
        *out = right == ~0ull ? 0 - *out : static_cast<uint64_t>(left / static_cast<int64_t>(right));
        break;
      case '<':
        *out = right > 63 ? 0 : *out << right;
        break;
      default:
        *out = static_cast<uint64_t>(left >> (right > 63 ? 63 : right));
        break;
    }
  }
}

}  // namespace

bool parse(std::string_view text, Module* module, ParseError* error) {
  *module = Module();
  *error = ParseError();
  if (text.size() > kMaxTextBytes) {
    *error = {1, 1, "a module may have at most 1 GiB of text"};
    return false;
  }
  module->arena = std::make_shared<std::pmr::monotonic_buffer_resource>();
  return Parser(keep(text, module), module, error).parse_module();
}

}  // namespace handoff::ptx
