// SPDX-License-Identifier: MIT
// The journal of a killed run is cut at every length and flipped at every byte: whatever recovery then believes, the path holds
// exactly the tree from before or the desired one, and where recovery stops it has deleted nothing.
#include <doctest/doctest.h>

#include <sys/wait.h>

#include "store/journal.hpp"
#include "store/state_impl.hpp"
#include "support/store_scenario.hpp"

using namespace envsync;
using namespace envsync::testing;

namespace {

Scenario scenario() {
  Scenario s;
  s.name = "small";
  s.base = desired({"lib/a=one", "b=two"});
  s.before = {s.base};
  s.to = desired({"lib/a=1", "b=2"});
  s.next = desired({"lib/a=x"});
  return s;
}

void run_killed_at(const Stage& stage, const Scenario& s, u64 n) {
  const pid_t child = ::fork();
  if (child == 0) {
    FaultyFiles files(*Fault::parse(fmt::format("any:{}:before", n)));
    static_cast<void>(apply(files, stage.env, s.to, s.settings));
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

std::string journal_of(const Stage& stage) {
  for (const auto& entry : std::filesystem::directory_iterator(stage.folder.path(".envsync/env/staging"))) {
    const std::string path = ".envsync/env/staging/" + entry.path().filename().string() + "/journal";
    if (stage.folder.has(path)) return path;
  }
  return {};
}

std::size_t files_in_staging(const Stage& stage) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(stage.folder.path(".envsync/env/staging"))) count += entry.exists();
  return count;
}

/// Damages the journal of a run that was killed before operation `n`, recovers, and looks.
void check_damaged(const Scenario& s, u64 n, const std::function<void(std::string&)>& damage) {
  Stage stage(s);
  run_killed_at(stage, s, n);
  const std::string path = journal_of(stage);
  if (path.empty()) return;
  std::string text = stage.folder.read(path);
  damage(text);
  std::filesystem::remove(stage.folder.path(path));
  stage.folder.write(path, text, 0600);
  const std::size_t before = files_in_staging(stage);
  os::PosixFiles files;
  auto state = store::State::open(files, store::resolve_place(stage.env).value(), store::OpenMode::existing).value();
  const auto lock = state.lock("test", 0);
  const auto recovered = store::recover(state, *lock);
  CHECK((stage.holds(s.base, s) || stage.holds(s.to, s)));
  if (recovered) return;
  CAPTURE(told(recovered));
  CHECK((recovered.error().code == ErrorCode::corrupt || recovered.error().code == ErrorCode::interference));
  CHECK(files_in_staging(stage) == before);
}

/// Operations before which the journal ends in each of its states.
std::map<store::Last, u64> kill_points(const Scenario& s) {
  std::map<store::Last, u64> points;
  for (u64 n = 1;; ++n) {
    Stage stage(s);
    run_killed_at(stage, s, n);
    const std::string path = stage.folder.has(".envsync/env/staging") ? journal_of(stage) : "";
    if (path.empty() && stage.holds(s.to, s)) return points;
    if (path.empty()) continue;
    points[store::parse_journal(as_bytes(stage.folder.read(path))).last] = n;  // the last such operation
  }
}

}  // namespace

TEST_CASE("damage: a journal that is cut anywhere never costs the path its one whole tree") {
  const Scenario s = scenario();
  for (const auto& [last, n] : kill_points(s)) {
    std::size_t end = 1;
    for (std::size_t size = 0; size < end; size += 5) {
      CAPTURE(n);
      CAPTURE(size);
      check_damaged(s, n, [&](std::string& text) {
        end = store::parse_journal(as_bytes(text)).end;
        text.resize(std::min(size, text.size()));
      });
    }
  }
}

TEST_CASE("damage: a journal with a flipped byte never costs the path its one whole tree") {
  const Scenario s = scenario();
  for (const auto& [last, n] : kill_points(s)) {
    std::size_t end = 1;
    for (std::size_t at = 0; at < end; at += 4) {
      CAPTURE(n);
      CAPTURE(at);
      check_damaged(s, n, [&](std::string& text) {
        end = store::parse_journal(as_bytes(text)).end;
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 0x11);
      });
    }
  }
}
