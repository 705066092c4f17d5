// SPDX-License-Identifier: MIT
// A tree as a list of short lines, so that a test shows what it is about. Parents are implied. Every content is there as text.
//
//   "lib/a.py=text"         a file, mode 644         "0755 bin/tool=text"    with a mode (four or five digits)
//   "lib/b.py == lib/a.py"  a hard link to a file that an earlier line names
//   "bin/python -> python3" a symbolic link          "lib/d/"                a directory, mode 755
#pragma once

#include <charconv>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tree/tree.hpp"

namespace envsync::test {

inline constexpr i64 kLiteralMtimeNs = 1'700'000'000'123'456'789;

/// One entry from one line; for a hard link, use tree().
inline tree::Entry entry(std::string_view line) {
  tree::Entry made;
  u32 mode = 0;
  const std::size_t digits = line.find_first_not_of("01234567");
  if ((digits == 4 || digits == 5) && line[0] == '0' && line[digits] == ' ') {
    std::from_chars(line.data(), line.data() + digits, mode, 8);
    line.remove_prefix(digits + 1);
  }
  const auto path = [](std::string_view text) {
    auto parsed = tree::RelPath::parse(std::string(text));
    ENVSYNC_CHECK(parsed.has_value());
    return *parsed;
  };
  if (const std::size_t arrow = line.find(" -> "); arrow != std::string_view::npos) {
    made.path = path(line.substr(0, arrow));
    made.body = tree::Symlink{std::string(line.substr(arrow + 4))};
  } else if (const std::size_t equals = line.find('='); equals != std::string_view::npos) {
    const std::string_view text = line.substr(equals + 1);
    made.path = path(line.substr(0, equals));
    made.mode = mode != 0 ? mode : 0644;
    made.mtime_ns = kLiteralMtimeNs;
    made.body = tree::File{text.size(), content::digest_of(as_bytes(text)), 0};
  } else {
    if (line.ends_with('/')) line.remove_suffix(1);
    made.path = path(line);
    made.mode = mode != 0 ? mode : 0755;
    made.body = tree::Dir{};
  }
  return made;
}

inline tree::Tree tree(std::initializer_list<std::string_view> lines) {
  std::map<std::string, tree::Entry> entries;
  u32 groups = 0;
  entries[""] = entry("");
  for (const std::string_view line : lines) {
    tree::Entry made;
    if (const std::size_t same = line.find(" == "); same != std::string_view::npos) {
      tree::Entry& first = entries.at(std::string(line.substr(same + 4)));
      tree::File& file = std::get<tree::File>(first.body);
      if (file.link_group == 0) file.link_group = ++groups;
      made = first;
      made.path = *tree::RelPath::parse(std::string(line.substr(0, same)));
    } else {
      made = entry(line);
    }
    for (tree::RelPath up = made.path.parent(); !up.is_root(); up = up.parent()) entries.try_emplace(up.bytes(), entry(up.bytes()));
    entries[made.path.bytes()] = std::move(made);
  }
  std::vector<tree::Entry> list;
  for (auto& [_, made] : entries) list.push_back(std::move(made));
  auto result = tree::Tree::from_unsorted(std::move(list));
  ENVSYNC_CHECK(result.has_value());
  return std::move(*result);
}

}  // namespace envsync::test
