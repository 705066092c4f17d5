// SPDX-License-Identifier: MIT
// An environment with its state in a folder of a test's own, and large contents.
#pragma once

#include <filesystem>

#include "store/journal.hpp"
#include "support/store_env.hpp"

namespace envsync::testing {

struct Env {
  Folder folder;
  os::PosixFiles files;
  std::string path = folder.path("env");
  Settings settings = {};

  std::string apply(const Desired& to) {
    const auto accepted = envsync::testing::apply(files, path, to, settings);
    if (!accepted) return told(accepted);
    if (const auto wrong = differences(to.tree, path); !wrong.empty()) return "differs: " + wrong;
    if (const auto lost = lost_contents(files, path); !lost.empty()) return "lost: " + lost;
    return "";
  }
  u64 ino(const std::string& rel) const { return os::stat_at(folder.fd(), rel)->ino; }
  std::vector<std::string> pool() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path(".envsync/env/contents"))) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  std::size_t staging() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path(".envsync/env/staging"))) count += entry.exists();
    return count;
  }
};

/// More than two segments, unlike in each.
inline std::string large(char seed) {
  std::string text(content::kSegmentBytes * 2 + 12345, seed);
  for (std::size_t i = 0; i < text.size(); i += 4096) text[i] = static_cast<char>(i >> 12);
  return text;
}

/// "staging/<tx>/" of the one that there is.
inline std::string staging_of(const Env& env) {
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(env.folder.path(".envsync/env/staging")))
    name = ".envsync/env/staging/" + entry.path().filename().string() + "/";
  return name;
}

/// As if it had been written before the machine was started.
inline void age_staging(Env& env) {
  const std::string journal = staging_of(env) + "journal";
  store::Terms terms = *store::parse_journal(as_bytes(env.folder.read(journal))).terms;
  terms.boot = "another";
  Bytes bytes = store::encode_record(store::Entry::begin, store::encode_terms(terms));
  const Bytes end = store::encode_record(store::Entry::abandoned, {});
  bytes.insert(bytes.end(), end.begin(), end.end());
  env.folder.write(journal, as_text(bytes), 0600);
}

inline Desired with_large(std::string text, std::string_view path = "lib/large.so") {
  Desired made;
  add_text(made, std::move(text));
  const auto id = made.texts.begin()->first;
  std::vector<tree::Entry> entries{test::entry(""), test::entry("lib"), test::entry(std::string(path) + "=")};
  std::get<tree::File>(entries.back().body) = {id.size, id.digest, 0};
  made.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  return made;
}

}  // namespace envsync::testing
