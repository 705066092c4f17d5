// SPDX-License-Identifier: MIT
#include "manifest/values.hpp"

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace envsync::manifest {
namespace {

constexpr std::size_t kTextMax = 8192;

/// "a, b or c"
std::string alternatives(std::span<const std::string_view> words) {
  if (words.size() < 2) return comma_list(words);
  return fmt::format("{} or {}", comma_list(words.first(words.size() - 1)), words.back());
}

}  // namespace

std::optional<std::string> read_text(const Named& value, Problems& problems) {
  const Node& node = value.node;
  if (node.kind == Node::Kind::null) {
    problems.report(node.mark, fmt::format("'{}' has no value", value.key));
    return std::nullopt;
  }
  if (!node.is_scalar()) {
    problems.report(node.mark, fmt::format("'{}' takes a text, not {}", value.key, described(node)));
    return std::nullopt;
  }
  if (node.text.empty()) {
    problems.report(node.mark, fmt::format("'{}' is empty", value.key));
    return std::nullopt;
  }
  if (node.text.size() > kTextMax) {
    problems.report(node.mark, fmt::format("'{}' has {} bytes, at most {} are allowed", value.key, node.text.size(), kTextMax));
    return std::nullopt;
  }
  if (std::ranges::any_of(node.text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; })) {
    problems.report(node.mark, fmt::format("'{}' holds a control character", value.key));
    return std::nullopt;
  }
  return node.text;
}

std::optional<bool> read_flag(const Named& value, Problems& problems) {
  const Node& node = value.node;
  if (node.is_scalar() && node.is_plain) {
    if (node.text == "true" || node.text == "True" || node.text == "TRUE") return true;
    if (node.text == "false" || node.text == "False" || node.text == "FALSE") return false;
  }
  Error& error = problems.report(node.mark, fmt::format("'{}' takes true or false, not {}", value.key, described(node)));
  if (node.is_scalar() && !node.is_plain && (node.text == "true" || node.text == "false")) error.hints.emplace_back("write it without quotes");
  return std::nullopt;
}

std::optional<u64> read_number(const Named& value, u64 least, u64 most, Problems& problems) {
  const Node& node = value.node;
  u64 number = 0;
  const char* end = node.text.data() + node.text.size();
  const auto parsed = std::from_chars(node.text.data(), end, number);
  const bool is_right = node.is_scalar() && parsed.ec == std::errc{} && parsed.ptr == end && number >= least && number <= most;
  if (is_right && node.is_plain) return number;
  Error& error = problems.report(node.mark, fmt::format("'{}' takes a number from {} to {}, not {}", value.key, least, most, described(node)));
  if (is_right) error.hints.push_back(fmt::format("write {} without quotes", node.text));
  return std::nullopt;
}

std::optional<u32> read_duration(const Named& value, u32 most, Problems& problems) {
  std::string_view digits = value.node.is_scalar() ? std::string_view(value.node.text) : std::string_view();
  constexpr std::string_view kUnits = "smh";
  constexpr std::array<u64, 3> kSeconds{1, 60, 3600};
  const std::size_t unit = digits.empty() ? std::string_view::npos : kUnits.find(digits.back());
  if (unit != std::string_view::npos) digits.remove_suffix(1);
  u64 number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_whole = unit != std::string_view::npos && parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size();
  if (is_whole && number <= most / kSeconds[unit]) return static_cast<u32>(number * kSeconds[unit]);
  problems.report(value.node.mark, fmt::format("'{}' takes a time with its unit such as 30s, 10m or 2h, at most {}h, not {}", value.key, most / 3600, described(value.node)));
  return std::nullopt;
}

std::vector<std::string> read_texts(const Field* field, Problems& problems) {
  std::vector<std::string> out;
  if (field == nullptr) return out;
  const Node& list = field->value;
  if (list.kind != Node::Kind::list) {
    Error& error = problems.report(list.mark, fmt::format("'{}' takes a list, not {}", field->key, described(list)));
    if (list.is_scalar()) error.hints.push_back(fmt::format("write [{}]", printable(list.text)));
    return out;
  }
  for (const Node& item : list.items)
    if (auto text = read_text({field->key, item}, problems)) out.push_back(*std::move(text));
  return out;
}

void report_word(const Named& value, std::span<const std::string_view> words, std::span<const std::string_view> later, Problems& problems) {
  const Node& node = value.node;
  const bool is_later = node.is_scalar() && std::ranges::find(later, node.text) != later.end();
  if (is_later) {
    problems.report(node.mark, fmt::format("the value '{}' of '{}' is not built yet in this version", node.text, value.key))
        .at_notes.push_back(fmt::format("values allowed here: {}", comma_list(words)));
    return;
  }
  Error& error = problems.report(node.mark, fmt::format("'{}' takes {}, not {}", value.key, alternatives(words), described(node)));
  const std::string_view near = node.is_scalar() ? nearest(node.text, words) : std::string_view();
  if (!near.empty()) error.hints.push_back(fmt::format("a value '{}' exists", near));
}

void report_at(const Mark& mark, const Error& error, Problems& problems) {
  Error& reported = problems.report(mark, error.what);
  reported.at_notes = error.at_notes;
  reported.notes = error.notes;
  reported.hints = error.hints;
}

}  // namespace envsync::manifest
