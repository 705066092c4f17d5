// SPDX-License-Identifier: MIT
// Random histories of apply, drift, roll back, prune and killed runs. After each step of ours: the path holds the tree that the
// step says, and every content that a kept record names is in the pool or in the live tree.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include <sys/wait.h>

#include "support/store_scenario.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

using content::ContentId;

class Model {
 public:
  explicit Model(u32 seed) : random_(seed) {}

  void step() {
    switch (pick(9)) {
      case 0: case 1: case 2: return apply_random();
      case 3: case 4: return drift();
      case 5: case 6: return roll_back();
      case 7: return prune();
      default: return killed();
    }
  }
  std::string said;   // what the last step did, for a failure's message
  std::map<std::string, u64> done;

 private:
  u32 pick(u32 below) { return static_cast<u32>(random_() % below); }

  Desired random_tree() {
    Desired made;
    std::map<std::string, tree::Entry> entries;
    entries[""] = test::entry("");
    const auto add = [&](tree::Entry entry) {
      for (tree::RelPath up = entry.path.parent(); !up.is_root(); up = up.parent()) entries[up.bytes()] = test::entry(up.bytes() + "/");
      entries[entry.path.bytes()] = std::move(entry);
    };
    for (u32 i = 0, count = 1 + pick(8); i < count; ++i) {
      const std::string path = fmt::format("{}/{}", std::array{"a", "a/b", "c"}[pick(3)], std::array{"x", "y", "z", "w"}[pick(4)]);
      const std::string text = fmt::format("content {}", pick(12));
      if (pick(6) == 0) {
        add(test::entry(path + " -> " + text));
        continue;
      }
      add(test::entry((pick(3) == 0 ? "0755 " : "") + path + "=" + text));
      add_text(made, text);
    }
    std::vector<tree::Entry> list;
    for (auto& [_, entry] : entries) list.push_back(std::move(entry));
    made.tree = tree::Tree::from_unsorted(std::move(list)).value();
    return made;
  }

  std::set<ContentId> live() const {
    std::set<ContentId> contents;
    const tree::Tree found = tree_at(env_);
    for (const tree::Entry& entry : found.entries())
      if (entry.file()) contents.insert(entry.file()->content());
    return contents;
  }
  std::vector<u32> numbers() {
    auto state = store::State::open(files_, store::resolve_place(env_).value(), store::OpenMode::existing).value();
    std::vector<u32> list;
    const auto heads = state.heads().value();
    for (const auto& head : heads) list.push_back(head.number);
    return list;
  }

  void check() {
    CAPTURE(said);
    CHECK(lost_contents(files_, env_, {lost_.begin(), lost_.end()}) == "");
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path(".envsync/env/staging"))) CHECK(entry.path() == "");
  }

  void apply_random() {
    const Desired to = random_tree();
    Settings settings;
    settings.keep = pick(4);
    said = fmt::format("apply keep {}", settings.keep);
    const auto accepted = apply(files_, env_, to, settings);
    CAPTURE(said);
    CHECK(told(accepted) == "");
    CHECK(differences(to.tree, env_) == "");
    ++done["apply"];
    check();
  }

  void drift() {
    const tree::Tree before = tree_at(env_);
    if (before.entries().size() < 2) return;
    const std::set<ContentId> had = live();
    const tree::Entry& entry = before.entries()[1 + pick(narrow<u32>(before.entries().size() - 1))];
    const std::string path = "env/" + entry.path.bytes();
    const u32 how = pick(4);
    if (!entry.file()) return;
    if (how == 0) std::filesystem::remove(folder_.path(path));
    if (how == 1) folder_.write(path, fmt::format("content {}", pick(14)));          // in place, perhaps to a known content
    if (how == 2) folder_.write(path + "-new", fmt::format("drift {}", pick(5)));
    if (how == 3) std::filesystem::permissions(folder_.path(path), std::filesystem::perms::owner_read);
    const std::set<ContentId> has = live();
    for (const ContentId& id : had)
      if (!has.contains(id) && !folder_.has(".envsync/env/contents/" + id.name())) lost_.insert(id);
    ++done["drift"];
  }

  void roll_back() {
    if (!folder_.has(".envsync")) return;
    const auto kept = numbers();
    if (kept.empty()) return;
    const u32 number = kept[pick(narrow<u32>(kept.size()))];
    Settings settings;
    settings.keep = 1 + pick(3);
    said = fmt::format("roll back to {}", number);
    CAPTURE(said);
    Run run;
    REQUIRE(run.open(files_, env_, settings));
    const Desired to{run.state->load(number)->tree, {}};
    const auto begun = run.begin(to.tree, settings);
    CHECK(told(begun) == "");
    for (const u32 index : run.transaction->needs().wanted) CHECK(lost_.contains(to.tree.entries()[index].file()->content()));
    if (!run.transaction->needs().wanted.empty()) {
      CHECK(told(run.transaction->abandon()) == "");
      run.transaction.reset();
      delete_leftovers(run);
      ++done["content gone"];
      return;
    }
    CHECK(told(run.transaction->seal({})) == "");
    CHECK(told(run.transaction->commit({})) == "");
    CHECK(told(run.transaction->accept({})) == "");
    run.transaction.reset();
    run.lock.reset();
    CHECK(differences(to.tree, env_) == "");
    ++done["roll back"];
    check();
  }

  void delete_leftovers(Run& run) {
    auto lock = std::move(*run.lock);
    run.lock.reset();
    CHECK(told(store::prune(*run.state, std::move(lock), {})) == "");
    check();
  }

  void prune() {
    if (!folder_.has(".envsync")) return;
    auto kept = numbers();
    if (kept.empty()) return;
    store::PruneRequest request;
    if (pick(2) == 0) request.keep = pick(3);
    else if (kept.size() > 1) request.drop = {kept[pick(narrow<u32>(kept.size() - 1))]};
    said = "prune";
    CAPTURE(said);
    auto state = store::State::open(files_, store::resolve_place(env_).value(), store::OpenMode::existing).value();
    auto lock = state.lock("test", 0);
    const tree::Tree before = tree_at(env_);
    CHECK(told(store::prune(state, std::move(*lock), request)) == "");
    CHECK(differences(before, env_) == "");
    CHECK(numbers().back() == kept.back());
    ++done["prune"];
    check();
  }

  void killed() {
    const Desired to = random_tree();
    const tree::Tree before = tree_at(env_);
    const u64 n = 1 + pick(110);
    said = fmt::format("killed at {}", n);
    CAPTURE(said);
    const pid_t child = ::fork();
    if (child == 0) {
      FaultyFiles files(*Fault::parse(fmt::format("any:{}:{}", n, pick(2) == 0 ? "before" : "after")));
      static_cast<void>(apply(files, env_, to, {}));
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    CHECK((differences(before, env_) == "" || differences(to.tree, env_) == ""));
    if (!folder_.has(".envsync/env/lock")) return;
    auto state = store::State::open(files_, store::resolve_place(env_).value(), store::OpenMode::existing).value();
    auto lock = state.lock("test", 0);
    CHECK(told(store::prune(state, std::move(*lock), {})) == "");  // recovers, and deletes leftovers
    CHECK((differences(before, env_) == "" || differences(to.tree, env_) == ""));
    ++done["killed"];
    check();
  }

  FastFolder fast_;
  const Folder& folder_ = *fast_.folder;
  const std::string env_ = folder_.path("env");
  os::PosixFiles files_;
  std::mt19937 random_;
  std::set<ContentId> lost_;   // to drift: replaced or edited in place by somebody else
};

}  // namespace

TEST_CASE("model: random histories lose no content that a kept generation names") {
  std::map<std::string, u64> done;
  for (u32 seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Model model(seed);
    for (int i = 0; i < 60; ++i) {
      CAPTURE(i);
      model.step();
    }
    for (const auto& [what, count] : model.done) done[what] += count;
  }
  for (const char* what : {"apply", "drift", "roll back", "prune", "killed", "content gone"}) {
    CAPTURE(std::string(what));
    CHECK(done[what] > 5);
  }
}
