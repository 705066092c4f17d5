// SPDX-License-Identifier: MIT
#include "store/host_xattrs.hpp"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include <fmt/format.h>

namespace envsync::store {
namespace {

constexpr const char* kCapability = "security.capability";
constexpr u32 kUnchangedId = ~u32{0};

/// Whether the desired tree alone says what becomes of the attribute.
bool is_decided(const std::string& name, const tree::ComparePolicy& policy) {
  if (!policy.xattrs) return false;
  return name.starts_with("user.") || (name == kCapability && policy.owner);
}

}  // namespace

Result<void> give_owner(os::Files& files, int fd, tree::Owner owner, bool required) {
  if (owner.uid == kUnchangedId && owner.gid == kUnchangedId) return ok();
  TRY(const os::Stat stat, os::stat_fd(fd));
  const bool is_uid = owner.uid == kUnchangedId || owner.uid == stat.uid;
  const bool is_gid = owner.gid == kUnchangedId || owner.gid == stat.gid;
  if (is_uid && is_gid) return ok();
  auto given = files.chown(fd, "", owner.uid, owner.gid);
  if (given || required || given.error().sys_errno != EPERM) return given;
  // A user may still hand a file to a group that is theirs.
  given = files.chown(fd, "", kUnchangedId, owner.gid);
  if (!given && given.error().sys_errno == EPERM) return ok();
  return given;
}

Result<void> give_xattrs(os::Files& files, int fd, const tree::Xattrs& desired, int base_at, const std::string& base_rel,
                         const XattrRules& rules) {
  if (base_at >= 0) {
    TRY(const auto base, os::xattrs(base_at, base_rel));
    for (const auto& [name, value] : base) {
      if (is_decided(name, rules.policy) || (name == kCapability && !rules.same_content)) continue;
      static_cast<void>(files.set_xattr(fd, name, value));  // of the host: where this process may
    }
  }
  if (!rules.policy.xattrs) return ok();
  for (const auto& [name, value] : desired) {
    auto given = files.set_xattr(fd, name, value);
    if (!given && given.error().sys_errno == EOPNOTSUPP)
      return std::move(given).error().hint("set `settings.xattrs: ignore`: the target's filesystem holds no such attributes");
    TRY_STATUS(std::move(given));
  }
  return ok();
}

Result<void> remove_strange_xattrs(os::Files& files, int fd, const tree::Xattrs& desired) {
  TRY(const auto found, os::xattrs(fd, ""));
  for (const auto& [name, value] : found) {
    const bool is_wanted = std::ranges::any_of(desired, [&](const auto& x) { return x.first == name; });
    if (is_wanted || !(name.starts_with("user.") || name == kCapability)) continue;
    TRY_STATUS(files.remove_xattr(fd, name));
  }
  return ok();
}

}  // namespace envsync::store
