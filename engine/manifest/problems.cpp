// SPDX-License-Identifier: MIT
#include "manifest/problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace envsync::manifest {
namespace {

constexpr std::size_t kErrorsMax = 100;      // LIMIT: more errors help nobody
constexpr std::size_t kLineBytesMax = 500;   // LIMIT: a longer line is shown up to here

std::string shown(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line.substr(0, kLineBytesMax));
}

}  // namespace

u32 Problems::add_text(std::string name, std::string_view text) {
  Text added{std::move(name), {}};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    added.lines.push_back(shown(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  texts_.push_back(std::move(added));
  return static_cast<u32>(texts_.size() - 1);
}

Location Problems::location(const Mark& mark) const {
  const Text& text = texts_.at(mark.text);
  Location where{.file = text.name, .line = mark.line, .column = mark.column, .length = std::max(mark.length, u32{1}), .line_text = {}};
  if (mark.line >= 1 && mark.line <= text.lines.size()) where.line_text = text.lines[mark.line - 1];
  if (mark.column > where.line_text.size() + 1) where.line_text.clear();  // past what is shown: no caret can point there
  return where;
}

Error& Problems::report(const Mark& mark, std::string what) {
  if (errors_.size() == kErrorsMax) {
    ++not_shown_;
    beyond_limit_ = {};
    return beyond_limit_;
  }
  Error error(ErrorCode::manifest_invalid, std::move(what));
  error.where = location(mark);
  errors_.push_back({mark, std::move(error)});
  return errors_.back().error;
}

Error& Problems::report_unquoted(u32 text, u32 line, std::string what) {
  Error& error = report({.text = text, .line = line}, std::move(what));
  if (error.where) error.where->line_text.clear();
  return error;
}

std::vector<Error> Problems::take() {
  std::ranges::stable_sort(errors_, {}, [](const Reported& r) { return std::tuple(r.mark.text, r.mark.line, r.mark.column); });
  std::vector<Error> out;
  for (Reported& reported : errors_) out.push_back(std::move(reported.error));
  if (not_shown_ > 0) out.back().notes.push_back(fmt::format("{} more errors are not shown", not_shown_));
  return out;
}

}  // namespace envsync::manifest
