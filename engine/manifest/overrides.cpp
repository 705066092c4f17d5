// SPDX-License-Identifier: MIT
// --set key.path=value. The value is YAML: a word, or a list or map in one line.
#include "manifest/draft.hpp"

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace envsync::manifest {
namespace {

struct Step {
  std::string key;
  Mark mark;
};

/// The keys before the '='; none where there is no '=' or a key is empty.
std::vector<Step> steps_of(std::string_view override_text, u32 text) {
  const std::size_t equals = override_text.find('=');
  if (equals == std::string_view::npos) return {};
  std::vector<Step> steps;
  for (std::size_t begin = 0; begin <= equals;) {
    const std::size_t end = std::min(override_text.find('.', begin), equals);
    if (end == begin) return {};
    steps.push_back({std::string(override_text.substr(begin, end - begin)),
                     {.text = text, .line = 1, .column = static_cast<u32>(begin + 1), .length = static_cast<u32>(end - begin)}});
    begin = end + 1;
  }
  return steps;
}

/// The value that `step` names in `map`, made empty where it is absent.
Node& enter(Node& map, const Step& step) {
  if (Field* field = map.find(step.key)) {
    field->key_mark = step.mark;
    return field->value;
  }
  Node empty;
  empty.mark = step.mark;
  map.fields.push_back({step.key, step.mark, std::move(empty)});
  return map.fields.back().value;
}

void put_value(Node& root, const std::vector<Step>& steps, Node value, Problems& problems) {
  Node* node = &root;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (node->kind == Node::Kind::null) {
      node->kind = Node::Kind::map;
      node->mark = steps[i].mark;
    }
    if (node->kind != Node::Kind::map) {
      const std::string outer = printable(steps[i - 1].key);
      problems.report(steps[i - 1].mark, fmt::format("'{}' is {} in the manifest, so that no key in it can be set", outer, described(*node)))
          .hints.push_back(fmt::format("set all of '{}'", outer));
      return;
    }
    node = &enter(*node, steps[i]);
  }
  if (value.kind == Node::Kind::null) value.mark = steps.back().mark;
  *node = std::move(value);
}

}  // namespace

void apply_overrides(Node& root, const std::vector<std::string>& overrides, Problems& problems) {
  for (const std::string& given : overrides) {
    const u32 text = problems.add_text("--set", given);
    const auto steps = steps_of(given, text);
    if (steps.empty()) {
      problems.report({.text = text, .length = static_cast<u32>(given.size())}, fmt::format("'{}' is no key=value", printable(given)));
      continue;
    }
    const std::size_t begin = given.find('=') + 1;
    auto value = read_yaml(std::string_view(given).substr(begin), {.text = text, .column = static_cast<u32>(begin)}, problems);
    if (value) put_value(root, steps, *std::move(value), problems);
  }
}

}  // namespace envsync::manifest
