// Tested by figure_test.cc.
#include "grader/report/figure_spec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace handoff::report {
namespace {

constexpr std::array<std::string_view, 10> kKeys = {"title", "kind",  "source", "kernel", "barriers",
                                                    "warps", "notes", "launch", "names",  "show"};
constexpr std::array<std::string_view, 4> kLaunchKeys = {"grid", "block", "smem", "arguments"};
constexpr std::array<std::string_view, 8> kShowKeys = {"from",   "to",   "waits",  "loads",
                                                       "stores", "mmas", "column", "variable"};
constexpr std::array<std::string_view, 12> kArgumentKeys = {"in",    "out",    "int", "map",     "over", "name",
                                                            "count", "passed", "dim", "strides", "box",  "swizzle"};
constexpr int64_t kMaxElements = 1 << 26;

// One table of a figure's file while it is read: collects errors with their line.
class Reader {
 public:
  Reader(const std::string& path, const toml::table& table, std::vector<std::string>* errors)
      : path_(path), table_(table), errors_(errors) {}

  void fail(const toml::node* node, const std::string& what) {
    const uint32_t line = node == nullptr ? table_.source().begin.line : node->source().begin.line;
    errors_->push_back(path_ + ":" + std::to_string(std::max(line, 1u)) + ": " + what);
  }

  const toml::node* get(std::string_view key) const { return table_.get(key); }

  /// A line of text; `otherwise` where it is not given, an error where that is nullptr.
  std::string text(std::string_view key, const char* otherwise) {
    const toml::node* node = get(key);
    if (node == nullptr) {
      if (otherwise == nullptr) fail(nullptr, std::string(key) + " is missing");
      return otherwise == nullptr ? "" : otherwise;
    }
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty() || value->find('\n') != std::string::npos) {
      fail(node, std::string(key) + " must be one line of text");
      return "";
    }
    return *value;
  }

  /// A whole number from `low` to `high`.
  int64_t number(std::string_view key, int64_t otherwise, int64_t low, int64_t high) {
    const toml::node* node = get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<int64_t>();
    if (value && *value >= low && *value <= high) return *value;
    fail(node,
         std::string(key) + " must be a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return otherwise;
  }

  bool flag(std::string_view key, bool otherwise) {
    const toml::node* node = get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<bool>();
    if (!value) fail(node, std::string(key) + " must be true or false");
    return value.value_or(otherwise);
  }

  template <class T>
  std::vector<T> list(std::string_view key) {
    std::vector<T> values;
    const toml::node* node = get(key);
    if (node == nullptr) return values;
    const toml::array* array = node->as_array();
    if (array == nullptr) {
      fail(node, std::string(key) + " must be a list");
      return values;
    }
    for (const toml::node& entry : *array) {
      if constexpr (std::is_same_v<T, std::string>) {
        const auto value = entry.value_exact<std::string>();
        if (value)
          values.push_back(*value);
        else
          fail(&entry, std::string(key) + " must be a list of texts");
      } else {
        const auto value = entry.value_exact<int64_t>();
        if (value && *value >= 0 && static_cast<uint64_t>(*value) <= std::numeric_limits<T>::max())
          values.push_back(static_cast<T>(*value));
        else
          fail(&entry, std::string(key) + " must be a list of whole numbers, 0 or more");
      }
    }
    return values;
  }

  template <size_t N>
  void reject_other_keys(const std::array<std::string_view, N>& known) {
    for (const auto& [key, value] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        fail(&value, "unknown key " + std::string(key.str()));
    }
  }

 private:
  const std::string& path_;
  const toml::table& table_;
  std::vector<std::string>* errors_;
};

void check_type(Reader& reader, std::string_view key, const std::string& type) {
  if (type != "f32" && type != "f16" && type != "bf16")
    reader.fail(reader.get(key), std::string(key) + " must be \"f32\", \"f16\" or \"bf16\", got \"" + type + "\"");
}

FigureArgument read_argument(Reader& reader) {
  using Kind = FigureArgument::Kind;
  FigureArgument argument;
  const bool in = reader.get("in") != nullptr, out = reader.get("out") != nullptr;
  const bool is_int = reader.get("int") != nullptr, map = reader.get("map") != nullptr;
  if (int{in} + int{out} + int{is_int} + int{map} != 1) {
    reader.fail(nullptr, "an argument has exactly one of in, out, int and map");
    return argument;
  }
  argument.kind = in ? Kind::In : out ? Kind::Out : is_int ? Kind::Int : Kind::Map;
  if (is_int) {
    argument.value = reader.number("int", 0, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  } else if (map) {
    argument.type = reader.text("map", nullptr);
    check_type(reader, "map", argument.type);
    argument.name = reader.text("over", nullptr);
    argument.dim = reader.list<uint64_t>("dim");
    argument.strides = reader.list<uint64_t>("strides");
    argument.box = reader.list<uint32_t>("box");
    argument.swizzle = reader.text("swizzle", "none");
    const size_t rank = argument.dim.size();
    if (rank < 1 || rank > 5 || argument.box.size() != rank ||
        (!argument.strides.empty() && argument.strides.size() + 1 != rank))
      reader.fail(nullptr, "a map has 1 to 5 numbers in dim, as many in box, and one fewer in strides");
    if (argument.swizzle != "none" && argument.swizzle != "128B")
      reader.fail(reader.get("swizzle"), "swizzle must be \"none\" or \"128B\"");
  } else {
    const char* key = in ? "in" : "out";
    argument.type = reader.text(key, nullptr);
    check_type(reader, key, argument.type);
    argument.value = reader.number("count", 0, 1, kMaxElements);
    if (argument.value == 0) reader.fail(nullptr, "a buffer needs count, its number of elements");
    argument.name = reader.text("name", key);
    argument.passed = reader.flag("passed", true);
  }
  reader.reject_other_keys(kArgumentKeys);
  return argument;
}

void read_launch(const std::string& path, const toml::table& table, FigureSpec* spec,
                 std::vector<std::string>* errors) {
  Reader reader(path, table, errors);
  spec->grid = static_cast<uint32_t>(reader.number("grid", 1, 1, 1 << 16));
  spec->block = static_cast<uint32_t>(reader.number("block", 32, 1, 1024));
  spec->smem = static_cast<uint32_t>(reader.number("smem", 0, 0, 227 * 1024));
  const toml::node* node = reader.get("arguments");
  const toml::array* arguments = node == nullptr ? nullptr : node->as_array();
  if (arguments == nullptr) {
    reader.fail(node, "[launch] needs arguments, a list of tables");
  } else {
    for (const toml::node& entry : *arguments) {
      if (!entry.is_table()) {
        reader.fail(&entry, "an argument is a table, { int = 4 }");
        continue;
      }
      Reader one(path, *entry.as_table(), errors);
      spec->arguments.push_back(read_argument(one));
    }
  }
  reader.reject_other_keys(kLaunchKeys);
}

void read_show(const std::string& path, const toml::table& table, FigureSpec* spec, std::vector<std::string>* errors) {
  Reader reader(path, table, errors);
  spec->from = static_cast<uint64_t>(reader.number("from", 0, 0, int64_t{1} << 40));
  spec->to = static_cast<uint64_t>(reader.number("to", 0, 0, int64_t{1} << 40));
  spec->waits = reader.flag("waits", true);
  spec->loads = reader.text("loads", "");
  spec->stores = reader.text("stores", "");
  spec->mmas = reader.text("mmas", "");
  spec->column = reader.text("column", "wait");
  spec->variable = reader.text("variable", "parity");
  if (spec->to != 0 && spec->to <= spec->from) reader.fail(reader.get("to"), "to must be later than from");
  reader.reject_other_keys(kShowKeys);
}

}  // namespace

std::string FigureSpec::name_of(const std::string& object) const {
  const auto found = names.find(object);
  return found == names.end() ? object : found->second;
}

FigureSpec read_figure_spec(const std::string& text, const std::string& shown_path, std::vector<std::string>* errors) {
  FigureSpec spec;
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    errors->push_back(shown_path + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
                      std::string(parsed.error().description()));
    return spec;
  }
  const toml::table& table = parsed.table();
  Reader reader(shown_path, table, errors);
  spec.title = reader.text("title", nullptr);
  spec.kind = reader.text("kind", nullptr);
  spec.source = reader.text("source", nullptr);
  spec.kernel = reader.text("kernel", nullptr);
  spec.barriers = reader.list<std::string>("barriers");
  spec.notes = reader.list<std::string>("notes");
  spec.warps = reader.list<int32_t>("warps");
  if (spec.kind != "fields" && spec.kind != "parity" && spec.kind != "timeline")
    reader.fail(reader.get("kind"), "kind must be fields, parity or timeline, got \"" + spec.kind + "\"");
  if (spec.kind == "fields" && spec.barriers.size() != 1)
    reader.fail(reader.get("barriers"), "a figure of fields has one barrier");
  if (spec.kind == "parity" && (spec.barriers.empty() || spec.warps.empty()))
    reader.fail(reader.get("barriers"), "a figure of parity has at least one warp and one barrier");
  const toml::node* launch = table.get("launch");
  if (launch == nullptr || !launch->is_table()) {
    reader.fail(launch, "[launch] must say how the kernel is launched");
  } else {
    read_launch(shown_path, *launch->as_table(), &spec, errors);
  }
  if (const toml::node* names = table.get("names"); names != nullptr && names->is_table()) {
    for (const auto& [key, value] : *names->as_table()) {
      const auto name = value.value_exact<std::string>();
      if (name)
        spec.names[std::string(key.str())] = *name;
      else
        reader.fail(&value, "a name is a text");
    }
  }
  if (const toml::node* show = table.get("show"); show != nullptr && show->is_table())
    read_show(shown_path, *show->as_table(), &spec, errors);
  reader.reject_other_keys(kKeys);
  return spec;
}

}  // namespace handoff::report
