// SPDX-License-Identifier: MIT
#include "tree/validate.hpp"

#include <fmt/format.h>

namespace envsync::tree {

namespace {

std::optional<std::string> wrong_with_xattrs(const Xattrs& xattrs) {
  if (xattrs.size() > kXattrsMax) return fmt::format("{} attributes", xattrs.size());
  const std::string* before = nullptr;
  for (const auto& [name, value] : xattrs) {
    if (name.size() > kXattrNameMax || name.find('\0') != std::string::npos) return "an attribute's name that no file can have";
    // What the host itself writes (security.selinux, system.*, trusted.*) never travels in a tree.
    if (!(name.size() > 5 && name.starts_with("user.")) && name != "security.capability")
      return fmt::format("attribute '{}', which belongs to the host", printable(name));
    if (value.size() > kXattrValueMax) return fmt::format("attribute '{}' of {} bytes", printable(name), value.size());
    if (before != nullptr && !(*before < name)) return "attributes that are not sorted";
    before = &name;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> wrong_with(const Entry& entry) {
  if (entry.mode > 07777) return fmt::format("mode {:o}", entry.mode);
  if (!entry.file() && entry.mtime_ns != 0) return "an mtime on what is no file";
  if (const Symlink* link = entry.symlink()) {
    if (entry.mode != 0) return "a mode on a link";
    if (link->target.empty() || link->target.size() > kTargetBytesMax || link->target.find('\0') != std::string::npos)
      return "a link target that no link can have";
  }
  if (entry.path.is_root() && !entry.is_dir()) return "a root that is no directory";
  return wrong_with_xattrs(entry.xattrs);
}

Error bad_tree(const RelPath& path, std::string_view why) {
  return Error(ErrorCode::corrupt, fmt::format("a tree that is not valid: '{}': {}", printable(path.bytes()), why));
}

}  // namespace envsync::tree
