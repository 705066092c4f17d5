// SPDX-License-Identifier: MIT
#include "agent/old_agents.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/os_folder.hpp"

using namespace envsync;
using envsync::testing::Folder;

namespace {

constexpr i64 kHour = i64{3600} * 1'000'000'000, kNow = 1000 * 24 * kHour;

std::string left_in(const Folder& folder) {
  std::vector<std::string> names;
  const auto entries = os::list(os::open_dir(folder.fd(), "").value().get(), "the folder").value();
  for (const auto& entry : entries) names.push_back(entry.name);
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace

TEST_CASE("old agents: the newest few stay beside our own, halves of uploads go, both once they are a day old") {
  Folder folder;
  os::PosixFiles files;
  const auto add = [&](const std::string& name, i64 hours_old) {
    folder.write(name, "agent");
    REQUIRE(files.set_mtime(folder.fd(), name, kNow - hours_old * kHour));
  };
  add("envsync-agent-own", 9000);
  for (int i = 1; i <= 7; ++i) add("envsync-agent-" + std::to_string(i), i * 20);
  add("envsync-agent-7.half", 25);
  add("envsync-agent-1.arriving", 1);
  add("something-else", 9000);
  folder.mkdir("envsync-agent-folder");
  agent::drop_old_agents(files, folder.fd(), "envsync-agent-own", kNow);
  CHECK(left_in(folder) == "envsync-agent-1 envsync-agent-1.arriving envsync-agent-2 envsync-agent-3 envsync-agent-4 envsync-agent-folder envsync-agent-own something-else");
}

TEST_CASE("old agents: what was uploaded today stays, however many there are") {
  Folder folder;
  os::PosixFiles files;
  for (int i = 1; i <= 7; ++i) {
    const std::string name = "envsync-agent-" + std::to_string(i);
    folder.write(name, "agent");
    REQUIRE(files.set_mtime(folder.fd(), name, kNow - i * kHour));
  }
  agent::drop_old_agents(files, folder.fd(), "envsync-agent-1", kNow);
  CHECK(std::ranges::count(left_in(folder), ' ') == 6);
}
