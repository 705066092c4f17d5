// SPDX-License-Identifier: MIT
// Small histories that end in the run which a test lets fail or kills, and what must hold after that.
#pragma once

#include <string>
#include <vector>

#include "support/faulty_files.hpp"
#include "support/store_env.hpp"

namespace envsync::testing {

struct Scenario {
  const char* name;
  std::vector<Desired> before;       // applied in order; none: the path is absent
  std::vector<std::string> unmanaged;  // written then
  Desired base, to, next;            // what lies there, what the run brings, what a later one brings
  Settings settings;
};

/// Every way a content can come (the pool, another path, the source), groups, links, types that change, unmanaged entries of
/// all kinds, and a generation that is pruned.
enum class Large : u8 { no, yes };
inline Scenario rich_scenario(Large large = Large::no) {
  Scenario s;
  s.name = "rich";
  s.settings.exclude = {"*.log"};
  s.settings.keep = 1;
  const Desired first = desired({"lib/a.py=one", "lib/b.py=two", "0755 bin/tool=#!", "bin/python -> tool", "gone/x/y=1", "g/a=group", "g/b == g/a", "t=file"});
  s.base = desired({"lib/a.py=uno", "lib/b.py=two", "0755 bin/tool=#!", "bin/python -> tool", "gone/x/y=1", "g/a=group", "g/b == g/a", "t=file"});
  s.before = {first, s.base};
  s.unmanaged = {"lib/run.log", "lib/__pycache__/b.cpython-312.pyc", "gone/__pycache__/y.cpython-312.pyc", "gone/kept.log"};
  s.to = desired({"lib/a.py=one", "lib/b.py=two", "lib/c.py=moved", "0711 bin/tool=#!", "bin/python -> ../t/file", "g/a=group", "g/b=group", "t/file=1",
                  "new/deep/er=3", "new/twin=3", "new/x -> twin", "n/a=pair", "n/b == n/a"});
  s.next = desired({"lib/a.py=one", "lib/b.py=three", "t=again"});
  if (large == Large::no) return s;
  std::string text(content::kSegmentBytes + 100, 'L');
  add_text(s.to, text);
  std::vector<tree::Entry> entries(s.to.tree.entries().begin(), s.to.tree.entries().end());
  entries.push_back(test::entry("lib/large.so="));
  content::FileHasher hasher;
  hasher.update(as_bytes(text));
  std::get<tree::File>(entries.back().body) = {text.size(), hasher.finish(), 0};
  s.to.tree = tree::Tree::from_unsorted(std::move(entries)).value();
  return s;
}

inline Scenario first_apply_scenario() {
  Scenario s;
  s.name = "first apply";
  s.to = desired({"lib/a.py=one", "0755 bin/tool=#!", "bin/python -> tool", "lib/twin=one"});
  s.next = desired({"lib/a.py=two", "0755 bin/tool=#!"});
  return s;
}

inline Scenario file_scenario() {
  Scenario s;
  s.name = "one file below";
  s.base = desired({"lib/a.py=one", "lib/b.py=two"});
  s.before = {s.base};
  s.to = desired({"lib/a.py=1", "lib/b.py=two"});
  s.next = desired({"lib/a.py=one", "lib/c.py=three"});
  s.settings.commit_root = "lib/a.py";
  return s;
}

inline Scenario adoption_scenario() {
  Scenario s;
  s.name = "adoption of a folder below";
  s.base = desired({"lib/a.py=mine", "lib/d/b.py=two", "top=t"});
  s.to = desired({"lib/a.py=1", "lib/d/b.py=2", "top=t"});
  s.next = desired({"lib/a.py=one", "top=t"});
  s.settings.commit_root = "lib";
  return s;
}

/// A folder in which the scenario's run is about to begin.
struct Stage {
  FastFolder fast;
  const Folder& folder = *fast.folder;
  std::string env = folder.path("env");

  explicit Stage(const Scenario& s) {
    os::PosixFiles files;
    Settings settings = s.settings;
    settings.commit_root.clear();
    for (const Desired& tree : s.before) ENVSYNC_CHECK(apply(files, env, tree, settings).has_value());
    if (s.before.empty())
      for (const tree::Entry& entry : s.base.tree.entries())
        if (const tree::File* file = entry.file()) folder.write("env/" + entry.path.bytes(), s.base.texts.at(file->content()));
    for (const std::string& path : s.unmanaged) folder.write("env/" + path, path);
  }

  bool holds(const Desired& tree, const Scenario& s) const { return differences(tree.tree, env, s.settings).empty(); }
  /// Unmanaged files that the run must not lose; bytecode of a folder that goes may go.
  std::string lost_unmanaged(const Scenario& s) const {
    std::string lost;
    for (const std::string& path : s.unmanaged)
      if (path.find("gone/__pycache__") == path.npos && folder.read("env/" + path) != path) lost += path + " ";
    return lost;
  }
  /// A later run succeeds, has nothing left to recover, and all that records name is still there.
  std::string next_run(const Scenario& s) const {
    os::PosixFiles files;
    Settings settings = s.settings;
    settings.commit_root.clear();
    const auto accepted = apply(files, env, s.next, settings);
    if (!accepted) return "next run: " + told(accepted);
    std::string wrong;
    if (accepted->recovery_pending) wrong += "next run: pending ";
    if (const auto differs = differences(s.next.tree, env, s.settings); !differs.empty()) wrong += "next run differs: " + differs;
    if (const auto lost = lost_contents(files, env); !lost.empty()) wrong += "lost contents: " + lost;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path(".envsync/env/staging"))) wrong += "staging: " + entry.path().filename().string();
    return wrong;
  }
};

}  // namespace envsync::testing
