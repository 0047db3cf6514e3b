// The parsed form of a PTX module: what the text says, names resolved, nothing interpreted.
//
// The parser never rejects an instruction that it does not know: it keeps opcode, modifiers and
// operands as written, and the decoder (machine/decode.h) turns what it cannot execute into an
// instruction that faults when it is reached. Only text that is not PTX at all is a ParseError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace handoff::ptx {

/// Fundamental and packed types of PTX §5.2, as they appear after a '.' in an opcode or declaration.
enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F32x2,
  F64,
  E4M3x2,
  E5M2x2,
  E2M1x2,
  E2M3x2,
  E3M2x2,
  UE8M0x2,
  E4M3x4,
  E5M2x4,
  E2M1x4,
  E2M3x4,
  E3M2x4,
  E4M3,
  E5M2,
  U16x2,
  S16x2,
};

/// Size of a value of type `t` in bytes (predicates and None: 0; E2M1x2: 1).
size_t size_of(Type t);
/// Spelling without the dot ("u32"); "none" for Type::None.
std::string_view to_string(Type t);
/// Type spelled `text` (without dot), or Type::None.
Type type_from_string(std::string_view text);

/// State spaces of PTX §5.1. `SharedCta` and `SharedCluster` are the explicit sub-spaces; plain
/// `.shared` is `Shared` (an alias of shared::cta except for the operands where PTX says otherwise).
enum class Space : uint8_t { None, Generic, Reg, Global, Const, Param, Local, Shared, SharedCta, SharedCluster };
std::string_view to_string(Space s);

/// One `.loc`: a position in Module::files, and where that code was inlined.
/// `inlined_at` indexes Module::locations (-1: not inlined).
struct Location {
  uint32_t file = 0;        ///< the .file index as written
  uint32_t line = 0;        ///< 1-based; 0 means "no line", as nvcc writes for compiler-made code
  uint32_t column = 0;      ///< 1-based; 0: unknown
  int32_t inlined_at = -1;  ///< index of the call's place in Module::locations; -1: not inlined
  std::string function;     ///< name of the inlined function where the PTX gives it, else empty
};

/// Text of a module: a view of characters that the module keeps (Module::arena), good as long as the module or a copy
/// of it lives. Becomes a std::string wherever one is asked for.
class Spelling : public std::string_view {
 public:
  Spelling() = default;
  /// Views `text`, which must outlive the spelling.
  ///@{
  // NOLINTBEGIN(google-explicit-constructor): as implicit as those of std::string_view, which it stands for.
  Spelling(std::string_view text) : std::string_view(text) {}
  Spelling(const std::string& text) : std::string_view(text) {}
  Spelling(const char* text) : std::string_view(text) {}
  ///@}
  /// A copy of the characters.
  operator std::string() const { return std::string(data(), size()); }
  // NOLINTEND(google-explicit-constructor)
  /// `left` with the characters of `right` behind it.
  friend std::string operator+(std::string left, Spelling right) { return left.append(right.data(), right.size()); }
};

/// An opcode split at its dots: "mbarrier.try_wait.parity.shared::cta.b64" is
/// {"mbarrier", "try_wait", "parity", "shared::cta", "b64"}. A kernel writes few opcodes many times: equal opcodes of a
/// module share one list of parts, and a copy is the price of a pointer.
class Opcode {
 public:
  /// The list that statements share.
  using Parts = std::vector<std::string>;
  /// As of a standard container.
  ///@{
  using value_type = std::string;
  using const_iterator = const std::string*;
  ///@}

  Opcode() = default;
  /// Of a statement that was not parsed.
  Opcode(std::initializer_list<std::string> parts) : parts_(std::make_shared<const Parts>(parts)) {}
  /// Shares `parts`, which may not be null.
  explicit Opcode(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  /// Number of parts; of a parsed statement at least one.
  size_t size() const { return parts_ ? parts_->size() : 0; }
  /// True of no parsed statement.
  bool empty() const { return size() == 0; }
  /// Part `i` < size().
  const std::string& operator[](size_t i) const { return (*parts_)[i]; }
  /// The first part; the opcode may not be empty.
  const std::string& front() const { return parts_->front(); }
  /// The parts in order.
  ///@{
  const_iterator begin() const { return parts_ ? parts_->data() : nullptr; }
  const_iterator end() const { return begin() + size(); }
  ///@}
  /// Appends a part to this opcode alone.
  void push_back(std::string part);

 private:
  std::shared_ptr<const Parts> parts_;
};

struct Operand;

/// The operands of a statement, or the parts of one operand. Those of a parsed module lie in its arena and go with it;
/// a list made otherwise, a copy too, keeps its own.
class Operands {
 public:
  Operands() = default;
  /// Views `size` operands that an arena keeps.
  Operands(Operand* operands, size_t size) : data_(operands), size_(static_cast<uint32_t>(size)) {}
  /// Keeps these operands.
  Operands(std::vector<Operand> operands);  // NOLINT(google-explicit-constructor): lists are written as vectors
  /// Keeps operands of its own.
  Operands(const Operands& other);
  /// Takes over what `other` views or keeps.
  Operands(Operands&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        owned_(std::exchange(other.owned_, false)) {}
  /// As of a standard container.
  Operands& operator=(Operands other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~Operands() {
    if (owned_) free_own();
  }

  /// As of a standard container.
  ///@{
  using value_type = Operand;
  using const_iterator = const Operand*;
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Operand* data() { return data_; }
  const Operand* data() const { return data_; }
  Operand* begin() { return data_; }
  const Operand* begin() const { return data_; }
  inline Operand* end();
  inline const Operand* end() const;
  inline Operand& operator[](size_t i);
  inline const Operand& operator[](size_t i) const;
  inline const Operand& front() const;
  inline const Operand& back() const;
  ///@}

 private:
  void free_own();

  Operand* data_ = nullptr;
  uint32_t size_ = 0;
  bool owned_ = false;
};

/// One operand as written.
struct Operand {
  /// Which of the fields below hold the operand.
  enum class Kind : uint8_t {
    Register,  ///< `reg` indexes Function::registers
    Special,   ///< `name` is a special register such as "%tid.x"
    Integer,   ///< `bits` holds the two's complement 64-bit value
    Float32,   ///< 0fXXXXXXXX: `bits` holds the 32 bits
    Float64,   ///< 0dXXXXXXXXXXXXXXXX or a decimal literal: `bits` holds the 64 bits
    Symbol,    ///< variable, function or parameter `name`, plus `offset` (`name+8`)
    Label,     ///< `target` is a statement index in the function. The second operand of brx.idx is a Vector of the
               ///< labels that its .branchtargets lists
    Address,   ///< `[base + offset]`, base in elements[0] (Register, Symbol or Integer; none: absolute offset);
               ///< tensor coordinates `[map, {c0, c1}]`: elements[0] = map, elements[1] = Vector
    Vector,    ///< `{a, b, …}` in `elements`
    Pair,      ///< `a|b` in elements[0], elements[1]
    Sink,      ///< `_`
  };
  Kind kind = Kind::Integer;  ///< form of the operand
  bool negated = false;       ///< `!p` before a predicate, or `-r`
  uint32_t reg = 0;           ///< Register: index into Function::registers
  uint32_t target = 0;        ///< Label: index into Function::statements
  int64_t offset = 0;         ///< Symbol, Address: bytes added
  uint64_t bits = 0;          ///< Integer, Float32, Float64: the value's bits
  Spelling name;              ///< Special, Symbol, Label: as written
  Operands elements;          ///< Address, Vector, Pair: the parts
};

Operand* Operands::end() { return data_ + size_; }
const Operand* Operands::end() const { return data_ + size_; }
Operand& Operands::operator[](size_t i) { return data_[i]; }
const Operand& Operands::operator[](size_t i) const { return data_[i]; }
const Operand& Operands::front() const { return data_[0]; }
const Operand& Operands::back() const { return data_[size_ - 1]; }

/// A virtual register. Block-scoped names that recur are distinct entries.
struct Register {
  std::string name;        ///< as declared, parameterised names expanded ("%r7")
  Type type = Type::None;  ///< as declared
};

/// One statement that executes.
struct Statement {
  Opcode opcode;  ///< at least one part
  /// call: {return params Vector?}, callee (Symbol, or Register of an indirect call), {args Vector?}, {prototype
  /// Symbol?}, as `call` has them.
  Operands operands;
  int32_t guard = -1;          ///< register index of the @p guard, or -1
  bool guard_negated = false;  ///< `@!p`
  int32_t location = -1;       ///< index into Module::locations in force here, or -1
  uint32_t line = 0;           ///< 1-based line in the PTX text
  Spelling text;               ///< the statement as written, white space folded, without the guard's '@' stripped
};

/// A variable in a state space (module scope or body scope).
struct Variable {
  std::string name;           ///< unique in its scope
  Space space = Space::None;  ///< where it lives
  Type type = Type::None;     ///< of one element
  uint32_t align = 1;         ///< bytes
  uint64_t size = 0;          ///< bytes; 0 with `unsized` for `extern .shared x[]`
  bool unsized = false;       ///< declared with `[]`: the launch gives the size
  bool external = false;      ///< `.extern`
  std::vector<uint8_t> init;  ///< initial bytes, shorter than `size` means zeros follow; empty: none
  /// Places in `init` that hold an address of another symbol (pointer initialisers).
  struct Reloc {
    uint64_t offset;     ///< bytes into `init`
    std::string symbol;  ///< whose address
    int64_t addend;      ///< bytes added to it
    bool generic;        ///< `generic(symbol)`: the generic address, else the address within the symbol's space
    uint8_t size = 8;    ///< bytes of the address that are stored, least significant first
  };
  std::vector<Reloc> relocs;  ///< in the order of the text
};

/// An .entry or .func, with or without body.
struct Function {
  std::string name;                 ///< mangled, as in the PTX
  bool is_entry = false;            ///< .entry, not .func
  bool has_body = false;            ///< false: a declaration
  std::vector<Variable> returns;    ///< .param return values of a .func
  std::vector<Variable> params;     ///< in order, space Param
  std::vector<Register> registers;  ///< all of the body
  /// Body-scope .local, .shared and .param variables, block-scoped repeats renamed uniquely; operands refer to the
  /// unique name. The name as written stays a prefix of the unique name (suffix "@N").
  std::vector<Variable> variables;
  /// In order; labels are resolved to indices. A body whose end can be reached gets a final `ret`, so that control
  /// never leaves the list and every label has a statement.
  std::vector<Statement> statements;
  uint32_t maxntid[3] = {0, 0, 0};            ///< 0: not given
  uint32_t reqntid[3] = {0, 0, 0};            ///< 0: not given
  uint32_t reqnctapercluster[3] = {0, 0, 0};  ///< 0: not given
  bool explicit_cluster = false;              ///< .explicitcluster: must be launched with a cluster size
  /// 0: not given.
  ///@{
  uint32_t minnctapersm = 0, maxnreg = 0;
  ///@}
};

/// A whole PTX module.
struct Module {
  /// Of the .version directive.
  ///@{
  int version_major = 0, version_minor = 0;
  ///@}
  std::string target;                                    ///< first .target name: "sm_100a"
  int address_size = 64;                                 ///< bits
  std::unordered_map<uint32_t, std::string> files;       ///< .file index → path
  std::vector<Location> locations;                       ///< one for each distinct .loc
  std::vector<Variable> variables;                       ///< module scope .global/.const/.shared
  std::vector<Function> functions;                       ///< declarations included
  std::unordered_map<std::string, std::string> aliases;  ///< `.alias name, target;`
  /// The characters that spellings view and the operands of the statements; parse() makes it.
  std::shared_ptr<std::pmr::monotonic_buffer_resource> arena;

  /// Function by name, preferring one with a body; nullptr if none.
  const Function* find_function(std::string_view name) const;
  /// Module-scope variable by name, preferring a definition to an `.extern` declaration; nullptr if none.
  const Variable* find_variable(std::string_view name) const;
};

/// Text that is not PTX.
struct ParseError {
  uint32_t line = 0;    ///< 1-based
  uint32_t column = 0;  ///< 1-based
  std::string message;  ///< one sentence
};

/// Parses a whole module. On failure returns false and fills `error`; `module` is then unspecified.
/// Errors: unknown directive at module scope, unbalanced braces, undeclared register or label, text that ends early.
/// Source: PTX §4 (syntax), §5 (spaces, types), §11 (directives).
bool parse(std::string_view text, Module* module, ParseError* error);

}  // namespace handoff::ptx
