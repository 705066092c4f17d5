// SPDX-License-Identifier: MIT
#include "agent/old_agents.hpp"

#include <algorithm>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

namespace envsync::agent {

namespace {

constexpr std::string_view kPrefix = "envsync-agent-";
constexpr std::size_t kKept = 4;                              // beside our own: builds of several operators
constexpr i64 kDayNs = i64{86'400} * 1'000'000'000;

/// "envsync-agent-<digest>"; false also for half an upload, "envsync-agent-<digest>.<token>".
bool is_whole(const std::string& name) { return name.find('.') == std::string::npos; }

}  // namespace

void drop_old_agents(os::Files& files, int folder, const std::string& own, i64 now_ns) {
  struct Found { std::string name; i64 mtime_ns = 0; };
  std::vector<Found> whole, gone;
  const auto entries = os::list(folder, "the folder of agents");
  if (!entries) return;
  for (const os::DirEntry& entry : *entries) {
    if (!entry.name.starts_with(kPrefix) || entry.name == own) continue;
    const auto stat = os::stat_at(folder, entry.name);
    if (!stat || stat->kind != os::Kind::file) continue;
    (is_whole(entry.name) ? whole : gone).push_back({entry.name, stat->mtime_ns});
  }
  std::ranges::sort(whole, std::ranges::greater{}, &Found::mtime_ns);
  if (whole.size() > kKept) gone.insert(gone.end(), whole.begin() + kKept, whole.end());
  for (const Found& file : gone)
    if (now_ns - file.mtime_ns > kDayNs) static_cast<void>(files.unlink(folder, file.name));  // or the next agent does
}

void drop_old_agents(os::Files& files) {
  const auto proc = os::open_dir_absolute("/proc/self");
  if (!proc) return;
  const auto program = os::read_link(proc->get(), "exe");
  if (!program) return;
  const std::size_t slash = program->rfind('/');
  const std::string folder = program->substr(0, slash), own = program->substr(slash + 1);
  if (!own.starts_with(kPrefix) || folder.substr(folder.rfind('/') + 1) != fmt::format("envsync-{}", ::geteuid())) return;
  if (const auto dir = os::open_dir_absolute(folder)) drop_old_agents(files, dir->get(), own, os::filesystem_clock_ns());
}

}  // namespace envsync::agent
