// SPDX-License-Identifier: MIT
#include "python/requirement.hpp"

#include "python/environment.hpp"
#include "python/text.hpp"

#include <array>

namespace envsync::python {
namespace {

struct Variable {
  std::string_view name;
  const std::string MarkerEnvironment::*value;  // null: extra
  bool is_version = false;                      // compared as one where both sides are versions
};
constexpr std::array kVariables{
    Variable{"python_version", &MarkerEnvironment::python_version, true},
    Variable{"python_full_version", &MarkerEnvironment::python_full_version, true},
    Variable{"implementation_version", &MarkerEnvironment::implementation_version, true},
    Variable{"platform_release", &MarkerEnvironment::platform_release, true},
    Variable{"implementation_name", &MarkerEnvironment::implementation_name},
    Variable{"os_name", &MarkerEnvironment::os_name},
    Variable{"os.name", &MarkerEnvironment::os_name},
    Variable{"sys_platform", &MarkerEnvironment::sys_platform},
    Variable{"sys.platform", &MarkerEnvironment::sys_platform},
    Variable{"platform_machine", &MarkerEnvironment::platform_machine},
    Variable{"platform.machine", &MarkerEnvironment::platform_machine},
    Variable{"platform_system", &MarkerEnvironment::platform_system},
    Variable{"platform_version", &MarkerEnvironment::platform_version},
    Variable{"platform.version", &MarkerEnvironment::platform_version},
    Variable{"platform_python_implementation", &MarkerEnvironment::platform_python_implementation},
    Variable{"platform.python_implementation", &MarkerEnvironment::platform_python_implementation},
    Variable{"python_implementation", &MarkerEnvironment::platform_python_implementation},
    Variable{"extra", nullptr}};

const Variable* variable_named(std::string_view name) {
  const auto found = std::ranges::find(kVariables, name, &Variable::name);
  return found == kVariables.end() ? nullptr : &*found;
}

bool compare_words(std::string_view left, std::string_view op, std::string_view right) {
  if (op == "in") return right.find(left) != std::string_view::npos;
  if (op == "not in") return right.find(left) == std::string_view::npos;
  if (op == "==" || op == "<=" || op == ">=") return left == right;
  return op == "!=" && left != right;
}

}  // namespace

/// or := and ("or" and)*;  and := atom ("and" atom)*;  atom := "(" or ")" | operand op operand
class MarkerParser {
 public:
  explicit MarkerParser(std::string_view text) : rest_(text) {}

  std::optional<Marker> parse() {
    if (!take_any(0)) return std::nullopt;
    skip_blank();
    if (!rest_.empty()) return std::nullopt;
    return std::move(out_);
  }

 private:
  // LIMIT: what stops a hostile text before it fills the stack.
  static constexpr int kDepthMax = 100;
  using Index = std::optional<u32>;

  void skip_blank() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size())); }

  bool take_word(std::string_view word) {
    skip_blank();
    if (!rest_.starts_with(word)) return false;
    const char next = rest_.size() > word.size() ? rest_[word.size()] : ' ';
    if (is_letter(next) || is_digit(next) || next == '_') return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  Index add(Marker::Node node) {
    out_.nodes_.push_back(std::move(node));
    return static_cast<u32>(out_.nodes_.size() - 1);
  }

  template <class Take>
  Index take_joined(std::string_view word, Marker::Kind kind, Take take) {
    Marker::Node node{.kind = kind, .left = {}, .right = {}, .op = {}, .children = {}};
    do {
      const Index child = take();
      if (!child) return std::nullopt;
      node.children.push_back(*child);
    } while (take_word(word));
    // A child alone is the last node already.
    return node.children.size() == 1 ? Index(node.children[0]) : add(std::move(node));
  }

  Index take_any(int depth) {
    return take_joined("or", Marker::Kind::any, [&] { return take_joined("and", Marker::Kind::all, [&] { return take_atom(depth); }); });
  }

  Index take_atom(int depth) {
    skip_blank();
    if (rest_.starts_with('(')) {
      if (depth == kDepthMax) return std::nullopt;
      rest_.remove_prefix(1);
      const Index inner = take_any(depth + 1);
      skip_blank();
      if (!inner || !rest_.starts_with(')')) return std::nullopt;
      rest_.remove_prefix(1);
      return inner;
    }
    Marker::Node node;
    if (!take_operand(node.left) || !take_operator(node.op) || !take_operand(node.right)) return std::nullopt;
    if (node.left.is_variable == node.right.is_variable) return std::nullopt;
    return add(std::move(node));
  }

  bool take_operand(Marker::Operand& out) {
    skip_blank();
    if (rest_.empty()) return false;
    const char quote = rest_.front();
    if (quote == '\'' || quote == '"') {
      const std::size_t end = rest_.find(quote, 1);
      if (end == std::string_view::npos) return false;
      out = {false, std::string(rest_.substr(1, end - 1))};
      rest_.remove_prefix(end + 1);
      return true;
    }
    std::size_t end = 0;
    while (end < rest_.size() && (is_letter(rest_[end]) || is_digit(rest_[end]) || rest_[end] == '_' || rest_[end] == '.')) ++end;
    out = {true, std::string(rest_.substr(0, end))};
    rest_.remove_prefix(end);
    return variable_named(out.text) != nullptr;
  }

  bool take_operator(std::string& out) {
    if (take_word("in")) return out = "in", true;
    if (take_word("not")) return out = "not in", take_word("in");
    for (const std::string_view op : {"===", "==", "~=", "!=", "<=", ">=", "<", ">"}) {
      if (!rest_.starts_with(op)) continue;
      rest_.remove_prefix(op.size());
      out = op;
      return true;
    }
    return false;
  }

  std::string_view rest_;
  Marker out_;
};

std::optional<Marker> Marker::parse(std::string_view text) { return MarkerParser(text).parse(); }

bool Marker::holds(const MarkerEnvironment& environment, const Extras& extras) const {
  return holds(static_cast<u32>(nodes_.size() - 1), environment, extras);
}

bool Marker::holds(u32 index, const MarkerEnvironment& environment, const Extras& extras) const {
  const Node& node = nodes_[index];
  const auto child_holds = [&](u32 child) { return holds(child, environment, extras); };
  switch (node.kind) {
    case Kind::all: return std::ranges::all_of(node.children, child_holds);
    case Kind::any: return std::ranges::any_of(node.children, child_holds);
    case Kind::compare: break;
  }
  const Variable& variable = *variable_named(node.left.is_variable ? node.left.text : node.right.text);
  if (variable.value == nullptr) {
    const std::string name = normalize_name(node.left.is_variable ? node.right.text : node.left.text);
    const bool is_asked = name.empty() ? extras.empty() : extras.contains(name);
    return node.op == "==" ? is_asked : node.op == "!=" && !is_asked;
  }
  const std::string& value = environment.*variable.value;
  const std::string& left = node.left.is_variable ? value : node.left.text;
  const std::string& right = node.left.is_variable ? node.right.text : value;
  if (variable.is_version) {
    if (const auto specifier = parse_specifier(node.op + right)) return specifier->contains(left);
  }
  return compare_words(left, node.op, right);
}

MarkerEnvironment MarkerEnvironment::for_python(std::string_view version, std::string_view machine) {
  MarkerEnvironment out;
  std::string_view rest = version;
  const std::string_view major = take_until(rest, '.'), minor = take_until(rest, '.'), patch = take_until(rest, '.');
  out.python_version = std::string(major) + "." + std::string(minor);
  out.python_full_version = out.python_version + "." + (patch.empty() ? "0" : std::string(patch));
  out.implementation_version = out.python_full_version;
  out.platform_machine = machine;
  return out;
}

}  // namespace envsync::python
