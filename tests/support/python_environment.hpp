// SPDX-License-Identifier: MIT
// Environments as a list of installs, so that a test shows what it is about. As with pip, who is installed last writes last.
//
//   "torch/a.py=text"   a file in site-packages and its row     "/bin/tool=text"   the same below the root
//   "!torch/a.py=text"  a row whose file is not there
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "python/distribution_set.hpp"
#include "support/tree_literal.hpp"

namespace envsync::test {

/// Not a sha256, but as good as one here: 32 bytes that only equal texts share.
inline python::Sha256 sum_of(std::string_view text) {
  python::Sha256 out{};
  const std::string again = std::string(text) + "again";
  const auto first = content::digest_of(as_bytes(text)), second = content::digest_of(as_bytes(again));
  std::ranges::copy(second.bytes, std::ranges::copy(first.bytes, out.begin()).out);
  return out;
}

struct Install {
  std::string name, version;
  std::vector<std::string> files;
  std::vector<std::string> needs = {};   // Requires-Dist
  std::vector<std::string> extras = {};  // Provides-Extra
  std::string entry_points = {};
};

inline constexpr std::string_view kSite = "lib/python3.12/site-packages/";

struct Environment {
  tree::Tree tree;
  python::SmallFiles files;  // every text
  python::Sums sums;
  python::DistributionSet set() const { return python::DistributionSet::read(tree, files); }
};

/// `others`: lines as of tree(), from the root, that nobody owns.
inline Environment environment(const std::vector<Install>& installs, const std::vector<std::string>& others = {}, std::string_view site = kSite) {
  std::map<std::string, std::string> texts;
  std::vector<std::string> lines{"pyvenv.cfg=home = /usr/bin", std::string(site)};
  for (const Install& one : installs) {
    const std::string info = one.name + "-" + one.version + ".dist-info/";
    std::string record = info + "METADATA,,\n" + info + "RECORD,,\n";
    for (std::string_view file : one.files) {
      const bool is_there = !file.starts_with('!');
      if (!is_there) file.remove_prefix(1);
      const std::string path(file.substr(0, file.find('='))), text(file.substr(file.find('=') + 1));
      const bool is_outside = path.starts_with('/');
      record += python::csv_field(is_outside ? "../../.." + path : path) + "," + python::render_record_hash(sum_of(text)) + "," + std::to_string(text.size()) + "\n";
      if (is_there) texts[is_outside ? path.substr(1) : std::string(site) + path] = text;
    }
    std::string metadata = "Metadata-Version: 2.1\nName: " + one.name + "\nVersion: " + one.version + "\n";
    for (const std::string& need : one.needs) metadata += "Requires-Dist: " + need + "\n";
    for (const std::string& extra : one.extras) metadata += "Provides-Extra: " + extra + "\n";
    texts[std::string(site) + info + "METADATA"] = metadata;
    texts[std::string(site) + info + "RECORD"] = record;
    if (!one.entry_points.empty()) texts[std::string(site) + info + "entry_points.txt"] = one.entry_points;
  }
  Environment out;
  std::map<std::string, tree::Entry> entries;
  const auto add = [&](std::string_view line) {
    tree::Entry made = entry(line);
    for (tree::RelPath up = made.path.parent(); !up.is_root(); up = up.parent()) entries.try_emplace(up.bytes(), entry(up.bytes() + "/"));
    entries.insert_or_assign(made.path.bytes(), std::move(made));
  };
  entries[""] = entry("");
  for (const std::string& line : lines) add(line);
  for (const auto& [path, text] : texts) add(path + "=" + text);
  for (const std::string& line : others) add(line);
  std::vector<tree::Entry> list;
  for (auto& [path, made] : entries) list.push_back(std::move(made));
  out.tree = std::move(*tree::Tree::from_unsorted(std::move(list)));
  for (const auto& [path, text] : texts) {
    out.files.emplace(path, text);
    out.sums.emplace(path, sum_of(text));
  }
  for (const std::string& line : others)
    if (const std::size_t equals = line.find('='); equals != std::string::npos) out.sums.insert_or_assign(line.substr(0, equals), sum_of(line.substr(equals + 1)));
  return out;
}

}  // namespace envsync::test
