// SPDX-License-Identifier: MIT
#include "python/requirement.hpp"

#include "python/environment.hpp"
#include "python/text.hpp"

namespace envsync::python {
namespace {

// LIMIT: a real requirement has some 200 bytes.
constexpr std::size_t kRequirementBytesMax = 65'536;

void skip_blank(std::string_view& rest) { rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size())); }

/// Letters and digits, and between them also -_.; empty where none begins here.
std::string_view take_identifier(std::string_view& rest) {
  std::size_t end = 0;
  const auto is_word = [](char c) { return is_digit(c) || is_letter(c); };
  while (end < rest.size() && (is_word(rest[end]) || (end > 0 && (rest[end] == '-' || rest[end] == '_' || rest[end] == '.')))) ++end;
  while (end > 0 && !is_word(rest[end - 1])) --end;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end);
  return taken;
}

bool take_extras(std::string_view& rest, Extras& out) {
  if (!rest.starts_with('[')) return true;
  rest.remove_prefix(1);
  skip_blank(rest);
  for (bool is_first = true; !rest.starts_with(']'); is_first = false) {
    if (!is_first) {
      if (!rest.starts_with(',')) return false;
      rest.remove_prefix(1);
      skip_blank(rest);
    }
    const std::string_view name = take_identifier(rest);
    if (name.empty()) return false;
    out.insert(normalize_name(name));
    skip_blank(rest);
  }
  rest.remove_prefix(1);
  skip_blank(rest);
  return true;
}

/// Specifiers up to the semicolon, in parentheses or without.
bool take_versions(std::string_view& rest, SpecifierSet& out) {
  const bool is_enclosed = rest.starts_with('(');
  if (is_enclosed) rest.remove_prefix(1);
  const std::size_t end = rest.find(is_enclosed ? ')' : ';');
  if (is_enclosed && end == std::string_view::npos) return false;
  auto versions = SpecifierSet::parse(rest.substr(0, end));
  if (!versions) return false;
  out = *std::move(versions);
  rest.remove_prefix(std::min(is_enclosed ? end + 1 : end, rest.size()));
  skip_blank(rest);
  return true;
}

bool take_url(std::string_view& rest, std::string& out) {
  rest.remove_prefix(1);
  skip_blank(rest);
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  out = std::string(rest.substr(0, end));
  rest.remove_prefix(end);
  skip_blank(rest);
  return !out.empty();
}

}  // namespace

std::optional<Requirement> Requirement::parse(std::string_view text) {
  if (text.size() > kRequirementBytesMax) return std::nullopt;
  Requirement out;
  out.text = std::string(trimmed(text));
  std::string_view rest = out.text;
  const std::string_view name = take_identifier(rest);
  if (name.empty()) return std::nullopt;
  out.name = normalize_name(name);
  skip_blank(rest);
  if (!take_extras(rest, out.extras)) return std::nullopt;
  if (!(rest.starts_with('@') ? take_url(rest, out.url) : take_versions(rest, out.versions))) return std::nullopt;
  if (rest.empty()) return out;
  if (rest.front() != ';') return std::nullopt;
  out.marker = Marker::parse(rest.substr(1));
  if (!out.marker) return std::nullopt;
  return out;
}

std::string Requirement::short_text() const {
  const std::string_view all = text;
  // A URL may hold a semicolon, so that only a blank before one ends it.
  return std::string(trimmed(all.substr(0, url.empty() ? all.find(';') : all.find(" ;"))));
}

}  // namespace envsync::python
