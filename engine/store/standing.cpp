// SPDX-License-Identifier: MIT
#include "store/standing.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "os/files.hpp"

namespace envsync::store {
namespace {

constexpr std::size_t kMountsMax = 16u << 20;  // LIMIT: of one /proc file

bool is_number(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

/// The fourth field of a line of mountinfo: which folder of its filesystem is mounted.
bool any_mount_of(const std::string& mountinfo, const std::string& needle) {
  for (std::size_t at = mountinfo.find(needle); at != std::string::npos; at = mountinfo.find(needle, at + 1)) {
    const std::size_t begin = mountinfo.rfind('\n', at) + 1;
    if (std::count(mountinfo.begin() + static_cast<std::ptrdiff_t>(begin), mountinfo.begin() + static_cast<std::ptrdiff_t>(at), ' ') == 3)
      return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> standing_in(const std::string& staging_tx) {
  std::vector<std::string> found;
  const auto proc = os::open_dir_absolute("/proc");
  if (!proc) return found;
  const auto entries = os::list(proc->get(), "/proc");
  if (!entries) return found;
  const std::string needle = "/" + staging_tx + "/";
  std::set<std::string> namespaces;
  for (const os::DirEntry& entry : *entries) {
    if (!is_number(entry.name)) continue;
    const auto link = [&](const char* name) {
      const auto target = os::read_link(proc->get(), fmt::format("{}/{}", entry.name, name));
      return target ? *target : std::string();
    };
    for (const char* where : {"cwd", "root"})
      // A path within the folder ends in "new" or goes on behind it.
      if ((link(where) + "/").find(needle) != std::string::npos) found.push_back(fmt::format("process {} stands in it", entry.name));
    const std::string mounts = link("ns/mnt");
    if (mounts.empty() || !namespaces.insert(mounts).second) continue;
    const auto text = os::read_small(proc->get(), entry.name + "/mountinfo", kMountsMax);
    if (text && any_mount_of(*text, needle)) found.push_back(fmt::format("process {} has it mounted", entry.name));
  }
  return found;
}

}  // namespace envsync::store
