// SPDX-License-Identifier: MIT
// Who uses a tree. Paths that /proc shows are those of the process's own mount namespace: in another one the tree may bear
// another name, so there its mounts are compared by filesystem and by path within it.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <dirent.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "os/machine_text.hpp"
#include "os/process.hpp"

namespace envsync::os {
namespace {

constexpr std::size_t kProcTextMax = 16u << 20;  // LIMIT: of one /proc file

struct Mount {
  std::string device;  // major:minor
  std::string root;    // of the mount, within its filesystem
  std::string point;   // where it is seen
};

/// The kernel writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_octal = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(i + 1) && is_octal(i + 2) && is_octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<Mount> mounts_of(const std::string& pid) {
  std::vector<Mount> mounts;
  const std::string text = read_whole("/proc/" + pid + "/mountinfo", kProcTextMax);
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() > 4) mounts.push_back({std::string(fields[2]), unescape(fields[3]), unescape(fields[4])});
  }
  return mounts;
}

bool is_below(std::string_view path, std::string_view root) {
  if (root == "/") return path.starts_with('/');
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::string read_proc_link(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t got = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return target;
}

std::vector<std::string> numbers_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(path.c_str());
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir))
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') names.emplace_back(entry->d_name);
  ::closedir(dir);
  return names;
}

class Users {
 public:
  explicit Users(const std::string& root) {
    char* resolved = ::realpath(root.c_str(), nullptr);
    root_ = resolved ? resolved : root;
    std::free(resolved);  // NOLINT: realpath allocates with malloc
    own_namespace_ = read_proc_link("/proc/self/ns/mnt");
    const Mount* holder = nullptr;
    own_mounts_ = mounts_of("self");
    for (const Mount& mount : own_mounts_)  // the last of equal length lies on top
      if (is_below(root_, mount.point) && (!holder || mount.point.size() >= holder->point.size())) holder = &mount;
    if (!holder) return;
    device_ = holder->device;
    if (holder->root != "/") path_on_device_ = holder->root;
    path_on_device_ += root_.substr(holder->point == "/" ? 0 : holder->point.size());
    if (path_on_device_.empty()) path_on_device_ += '/';
  }

  /// What `pid` does with the tree, as the end of a sentence; empty: nothing.
  std::string use_of(const std::string& pid) {
    const std::string proc = "/proc/" + pid + "/";
    if (const auto exe = read_proc_link(proc + "exe"); is_below(exe, root_)) return said("runs from", exe);
    const auto cwd = read_proc_link(proc + "cwd");
    // An environment's bin/python is a link to the base's: what the process was started as tells whose it is.
    if (const auto started = started_as(proc, cwd); is_below(started, root_)) return said("was started as", started);
    if (is_below(cwd, root_)) return said("stands in", cwd);
    if (const auto dir = read_proc_link(proc + "root"); dir != "/" && is_below(dir, root_)) return said("has its root in", dir);
    if (const auto mapped = mapped_by(proc); !mapped.empty()) return said("has mapped", mapped);
    for (const auto& number : numbers_in(proc + "fd"))
      if (const auto file = read_proc_link(proc + "fd/" + number); is_below(file, root_)) return said("holds open", file);
    return mounted_by(pid);
  }

 private:
  static std::string said(std::string_view verb, std::string_view path) { return fmt::format("{} '{}'", verb, printable(path)); }

  static std::string started_as(const std::string& proc, const std::string& cwd) {
    constexpr std::size_t kPathMax = 4096;
    std::string program = read_whole(proc + "cmdline", kPathMax);
    program.resize(std::min(program.find('\0'), program.size()));
    if (program.starts_with('/') || program.find('/') == std::string::npos) return program;
    return cwd + "/" + (program.starts_with("./") ? program.substr(2) : program);
  }

  std::string mapped_by(const std::string& proc) const {
    const std::string text = read_whole(proc + "maps", kProcTextMax);
    // A search for the path first: most processes map nothing below it, and splitting costs more than finding.
    if (root_.find_first_of("\n\\") == std::string::npos && text.find(root_) == std::string::npos) return {};
    for (const auto line : split(text, '\n')) {
      const std::size_t slash = line.find('/');
      if (slash == std::string_view::npos) continue;
      if (auto path = unescape(line.substr(slash)); is_below(path, root_)) return path;
    }
    return {};
  }

  /// Where the process's mount namespace shows the tree by a mount of its own; each namespace is named once.
  std::string mounted_by(const std::string& pid) {
    const std::string mount_namespace = read_proc_link("/proc/" + pid + "/ns/mnt");
    if (mount_namespace.empty() || !namespaces_.insert(mount_namespace).second) return {};
    const bool is_own = mount_namespace == own_namespace_;
    for (const Mount& mount : is_own ? own_mounts_ : mounts_of(pid)) {
      const bool shows_tree = !device_.empty() && mount.device == device_ && is_below(mount.root, path_on_device_);
      if (shows_tree && !(is_own && mount.point == root_)) return fmt::format("has the tree mounted at '{}'", printable(mount.point));
      if (is_own && mount.point != root_ && is_below(mount.point, root_)) return said("has a mount at", mount.point);
    }
    return {};
  }

  std::string root_;
  std::string own_namespace_;
  std::vector<Mount> own_mounts_;
  std::string device_;          // of the tree, empty where its mount was not found
  std::string path_on_device_;  // of the tree within its filesystem
  std::set<std::string> namespaces_;
};

}  // namespace

std::vector<std::string> processes_using(const std::string& root, std::size_t limit) {
  std::vector<std::string> described;
  Users users(root);
  const std::string self = fmt::format("{}", ::getpid());
  for (const auto& pid : numbers_in("/proc")) {
    if (described.size() >= limit) break;
    if (pid == self) continue;
    const std::string use = users.use_of(pid);
    if (use.empty()) continue;
    std::string name = read_whole("/proc/" + pid + "/comm", 256);
    name.resize(std::min(name.find('\n'), name.size()));
    if (name.starts_with("envsync-agent")) continue;  // it looks at the tree; it does not run from it
    described.push_back(fmt::format("{} (process {}) {}", printable(name), pid, use));
  }
  return described;
}

}  // namespace envsync::os
