// SPDX-License-Identifier: MIT
#include "manifest/yaml_words.hpp"

#include <fmt/format.h>

#include <array>

namespace envsync::manifest {
namespace {

struct Words {
  std::string_view message, what, hint;
};

// The first whose message is the beginning of yaml-cpp's.
constexpr std::array kWords = {
    Words{"end of sequence flow not found", "a list that begins with [ is not closed, or lacks a comma",
          "close it with ], and put commas between its items"},
    Words{"end of map flow not found", "a map that begins with { is not closed, or lacks a comma",
          "close it with }, and put commas between its keys"},
    Words{"end of map not found", "this does not belong to the keys above it",
          "begin all keys of one map in the same column; quote a text that holds a quote"},
    Words{"end of sequence not found", "this does not belong to the list above it", "begin all items of one list in the same column, each with '- '"},
    Words{"illegal map value", "a colon makes a key here, where none can stand",
          "begin all keys of one map in the same column; quote a text that holds ': '"},
    Words{"illegal map key", "a ? begins a key here, where none can stand", "quote a text that begins with '? '"},
    Words{"illegal block entry", "a list cannot begin in the line of its key", "put each item on a line of its own, or write [a, b]"},
    Words{"illegal flow end", "a bracket is closed here that was not opened", "remove it, or quote the text that holds it"},
    Words{"unknown token", "a text cannot begin with this character", "quote the text"},
    Words{"illegal EOF in scalar", "a quoted text does not end", "close its quote"},
    Words{"illegal document indicator in scalar", "a quoted text does not end", "close its quote"},
    Words{"illegal tab", "a tab indents this line", "indent with spaces"},
    Words{"unknown escape character", "an escape that YAML does not have", "write \\\\ for a backslash, or use single quotes"},
    Words{"the referenced anchor is not defined", "an alias of an anchor that is not defined above it",
          "define it with & above, or quote a text that begins with *"},
    Words{"alias not found", "a * names an alias, and none follows", "quote a text that begins with *"},
    Words{"anchor not found", "an & names an anchor, and none follows", "quote a text that begins with &"},
    Words{"bad character", "a character that cannot stand here", "quote the text"},
};

/// Around a [ within a word: "gpu-[01-08]" of "[gpu-[01-08], b]"; else empty.
std::string_view word_with_bracket(std::string_view line, std::size_t bracket) {
  if (bracket >= line.size() || line[bracket] != '[') return {};
  std::size_t begin = bracket;
  while (begin > 0 && std::string_view(" \t,[{").find(line[begin - 1]) == std::string_view::npos) --begin;
  const std::size_t close = line.find(']', bracket);
  if (begin == bracket || close == std::string_view::npos) return {};
  const std::size_t end = std::min(line.find_first_of(" \t,]}", close + 1), line.size());
  return line.substr(begin, end - begin);
}

bool is_indented_by_tab(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return line.substr(0, first).find('\t') != std::string_view::npos;
}

/// The last line before the error that reads "key:value" without a space; else empty.
std::string_view glued_key(std::string_view text_before) {
  while (text_before.ends_with('\n')) text_before.remove_suffix(1);
  const std::size_t newline = text_before.rfind('\n');
  std::string_view line = newline == std::string_view::npos ? text_before : text_before.substr(newline + 1);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == line.size()) return {};
  const bool is_glued = line.find(' ') == std::string_view::npos && line[colon + 1] != ' ';
  return is_glued ? line : std::string_view();
}

}  // namespace

SyntaxWords in_words(std::string_view message, std::string_view text_before, std::string_view line, std::size_t column) {
  if (const auto word = word_with_bracket(line, column); !word.empty()) {
    return {"a list begins within a word", fmt::format("quote '{}': a [ starts a list here", word)};
  }
  if (is_indented_by_tab(line)) return {"a tab indents this line", "indent with spaces"};
  if (message.starts_with("illegal map value")) {
    if (const auto glued = glued_key(text_before); !glued.empty()) {
      return {"a colon makes a key here, where none can stand", fmt::format("put a space after the colon of '{}' above it", glued)};
    }
  }
  for (const Words& words : kWords) {
    if (message.starts_with(words.message)) return {std::string(words.what), std::string(words.hint)};
  }
  return {fmt::format("YAML that cannot be read: {}", message), {}};
}

}  // namespace envsync::manifest
