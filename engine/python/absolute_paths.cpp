// SPDX-License-Identifier: MIT
#include "python/absolute_paths.hpp"

#include "python/text.hpp"

#include <algorithm>

namespace envsync::python {
namespace {

/// Bytes that may go on a file name; a path ends before all others.
bool is_of_name(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '+' || c == '~' || c == '@' || c == '%' || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

bool lies_in(std::string_view path, std::string_view root) {
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/' || root == "/");
}

std::string normalized(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::string_view part = take_until(path, '/');
    if (part == ".." && !parts.empty()) parts.pop_back();
    else if (!part.empty() && part != "." && part != "..") parts.push_back(part);
  }
  std::string out;
  for (const std::string_view part : parts) (out += '/') += part;
  return out.empty() ? "/" : out;
}

std::vector<std::size_t> find_root(std::string_view text, std::string_view root) {
  std::vector<std::size_t> out;
  if (root.size() < 2) return out;  // "/" is everywhere
  for (std::size_t at = text.find(root); at != std::string_view::npos; at = text.find(root, at + 1)) {
    const std::size_t end = at + root.size();
    const bool begins = at == 0 || (!is_of_name(text[at - 1]) && text[at - 1] != '/');
    if (begins && (end == text.size() || !is_of_name(text[end]))) out.push_back(at);
  }
  return out;
}

std::string with_root_replaced(std::string_view text, std::string_view root, std::string_view by) {
  std::string out;
  std::size_t copied = 0;
  for (const std::size_t at : find_root(text, root)) {
    out += text.substr(copied, at - copied);
    out += by;
    copied = at + root.size();
  }
  out += text.substr(copied);
  return out;
}

u32 line_of(std::string_view text, std::size_t offset) { return static_cast<u32>(1 + std::ranges::count(text.substr(0, offset), '\n')); }

}  // namespace envsync::python
