// SPDX-License-Identifier: MIT
// Where an environment lies and where its state lies beside it.
#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include <fmt/format.h>

#include "os/paths.hpp"
#include "os/process.hpp"
#include "store/state_impl.hpp"

namespace envsync::store {
namespace {

constexpr std::string_view kStatePrefix = ".envsync";
constexpr u32 kWritableByOthers = 022, kSticky = 01000;

Error refused(const std::string& path, std::string why) {
  return Error(ErrorCode::place_refused, fmt::format("'{}' cannot be an environment's path", printable(path))).cause(std::move(why));
}

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string join(const std::string& dir, std::string_view name) {
  return dir == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", dir, name);
}

/// All links of the part that exists are resolved; what does not exist yet is taken as it is written.
Result<std::string> resolved(const std::string& path) {
  std::string have = "/";
  bool is_missing = false;
  for (const std::string& part : components(path)) {
    const std::string next = join(have, part);
    if (is_missing) { have = next; continue; }
    if (auto real = os::real_path(next)) { have = *real; continue; }
    auto dir = os::open_dir_absolute(have);
    if (!dir && dir.error().sys_errno == ENOTDIR) return refused(path, fmt::format("'{}' is not a folder", printable(have)));
    if (!dir && dir.error().sys_errno == EACCES) return refused(path, fmt::format("'{}' may not be looked into", printable(have)));
    if (!dir) return std::move(dir).error();
    TRY(const auto stat, os::stat_if_exists(dir->get(), part));
    if (stat && stat->kind == os::Kind::symlink) return refused(path, fmt::format("'{}' is a link that leads nowhere", printable(next)));
    if (stat) return refused(path, fmt::format("'{}' cannot be resolved", printable(next)));
    is_missing = true;
    have = next;
  }
  return have;
}

bool is_home(const std::string& path) {
  const std::string home = os::home_dir();
  const std::string real_home = os::real_path(home).value_or(home);
  const bool is_in_home = path.starts_with("/home/") && path.find('/', 6) == std::string::npos;
  return path == home || path == real_home || path == "/root" || path == "/home" || is_in_home;
}

std::string uid_name() { return fmt::format("{}-{}", kStatePrefix, ::geteuid()); }

bool is_ours(const os::Stat& stat) {
  return stat.kind == os::Kind::directory && stat.uid == ::geteuid() && (stat.mode & kWritableByOthers) == 0;
}

/// A state folder that is there already wins, so that it is found again when the parent's mode has changed since.
Result<std::string> choose_state_name(int parent, const std::string& name) {
  TRY(const os::Stat stat, os::stat_fd(parent));
  const bool is_shared = stat.uid != ::geteuid() || (stat.mode & (kWritableByOthers | kSticky)) != 0;
  const std::string plain(kStatePrefix), by_uid = uid_name();
  const std::string first = is_shared ? by_uid : plain, second = is_shared ? plain : by_uid;
  for (const std::string& candidate : {first, second}) {
    TRY(const auto outer, os::stat_if_exists(parent, candidate));
    if (!outer || !is_ours(*outer)) continue;
    TRY(const auto inner, os::stat_if_exists(parent, fmt::format("{}/{}", candidate, name)));
    if (inner && is_ours(*inner)) return candidate;
  }
  return first;
}

/// State of another user, who may have put the environment there: root's, or that of the environment's owner.
Result<std::string> find_foreign(int parent, const std::string& folder, const std::string& name) {
  std::vector<std::string> candidates{std::string(kStatePrefix), fmt::format("{}-0", kStatePrefix)};
  TRY(const auto environment, os::stat_if_exists(parent, name));
  if (environment) candidates.push_back(fmt::format("{}-{}", kStatePrefix, environment->uid));
  for (const std::string& candidate : candidates) {
    TRY(const auto outer, os::stat_if_exists(parent, candidate));
    if (!outer || outer->kind != os::Kind::directory || outer->uid == ::geteuid()) continue;
    const auto inner = os::stat_if_exists(parent, fmt::format("{}/{}", candidate, name));
    if (inner && !*inner) continue;  // it may be looked into, and holds nothing of this environment
    return fmt::format("'{}' belongs to user {}", printable(join(folder, candidate)), outer->uid);
  }
  return std::string();
}

/// An environment inside another one would be swapped with it.
Result<void> check_not_nested(const std::string& path) {
  std::string above = path;
  for (std::size_t slash = above.rfind('/'); slash != 0 && slash != std::string::npos; slash = above.rfind('/')) {
    above.resize(slash);
    const std::size_t cut = above.rfind('/');
    auto dir = os::open_dir_absolute(cut == 0 ? "/" : above.substr(0, cut));
    if (!dir) continue;
    for (const std::string& folder : {std::string(kStatePrefix), uid_name()}) {
      const auto state = os::stat_if_exists(dir->get(), fmt::format("{}/{}/{}", folder, above.substr(cut + 1), kRecordsDir));
      if (state && *state) return refused(path, fmt::format("it lies inside '{}', which is an environment of its own", printable(above)));
    }
  }
  return ok();
}

}  // namespace

Result<Place> resolve_place(const std::string& path) {
  if (path.empty() || path.front() != '/') return refused(path, "it is not absolute");
  if (path.find('\0') != std::string::npos || path.size() > tree::kPathBytesMax) return refused(path, "no path can have these bytes");
  for (const std::string& part : components(path))
    if (part == "." || part == "..") return refused(path, fmt::format("it has '{}' in it", part));
  Place place;
  TRY(place.path, resolved(path));
  const auto parts = components(place.path);
  if (parts.empty()) return refused(path, "it is the root of the filesystem");
  if (is_home(place.path)) return refused(path, "it is a home folder");
  const auto in_state = std::ranges::find_if(parts, [](const std::string& part) { return part.starts_with(kStatePrefix); });
  if (in_state != parts.end()) return refused(path, fmt::format("it lies inside '{}', where envsync keeps its state", *in_state));
  TRY_STATUS(check_not_nested(place.path));
  place.name = parts.back();
  const std::string parent = place.path.substr(0, std::max<std::size_t>(1, place.path.size() - place.name.size() - 1));
  auto opened = os::open_dir_absolute(parent);
  if (!opened && opened.error().sys_errno != ENOENT) return std::move(opened).error();
  place.state_name = std::string(kStatePrefix);
  if (!opened) return place;
  place.parent = std::move(*opened);
  TRY(place.state_name, choose_state_name(place.parent.get(), place.name));
  // What is wrong with a folder that is no state is said when it is opened.
  const auto own = os::stat_if_exists(place.parent.get(), fmt::format("{}/{}", place.state_name, place.name));
  if (!own || *own) return place;
  TRY(place.foreign_state, find_foreign(place.parent.get(), parent, place.name));
  return place;
}

Result<os::Fd> open_environment(const Place& place) {
  if (!place.parent) return os::Fd();
  TRY(const auto stat, os::stat_if_exists(place.parent.get(), place.name));
  if (!stat) return os::Fd();
  if (stat->kind != os::Kind::directory) return refused(place.path, "it is not a folder");
  auto opened = os::open_dir(place.parent.get(), place.name);
  if (!opened && opened.error().sys_errno == EXDEV)
    return refused(place.path, "a filesystem is mounted there, so no rename can replace it at once");
  return opened;
}

Result<os::Space> space_at(const Place& place) {
  if (place.parent) return os::space(place.parent.get());
  std::string above = place.path;
  for (;;) {
    above.resize(std::max<std::size_t>(1, above.rfind('/')));
    auto dir = os::open_dir_absolute(above);
    if (dir) return os::space(dir->get());
    if (above == "/" || dir.error().sys_errno != ENOENT) return std::move(dir).error();
  }
}

}  // namespace envsync::store
