// SPDX-License-Identifier: MIT
// A path beneath a root: bytes, components between single slashes, none of them empty, "." or "..", none over 255
// bytes, no NUL, no slash at either end. "" is the root itself.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include <envsync/types.hpp>

namespace envsync::tree {

inline constexpr std::size_t kPathBytesMax = 16384;

class RelPath {
 public:
  RelPath() = default;  // the root
  /// nullopt where the bytes are not a path by the rule above.
  static std::optional<RelPath> parse(std::string bytes);
  const std::string& bytes() const { return bytes_; }
  bool is_root() const { return bytes_.empty(); }
  RelPath parent() const;                // of the root: the root
  std::string_view name() const;         // last component
  /// `name` must be one valid component.
  RelPath child(std::string_view name) const;
  RelPath join(const RelPath& below) const;
  /// True for itself and everything beneath it.
  bool contains(const RelPath& other) const;
  /// `other` must be contained.
  RelPath relative(const RelPath& other) const;
  auto operator<=>(const RelPath&) const = default;

 private:
  std::string bytes_;
};

bool is_component(std::string_view name);

}  // namespace envsync::tree
