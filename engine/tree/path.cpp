// SPDX-License-Identifier: MIT
#include "tree/path.hpp"

#include "base/try.hpp"

namespace envsync::tree {

namespace {
constexpr std::size_t kComponentBytesMax = 255;
}

bool is_component(std::string_view name) {
  if (name.empty() || name.size() > kComponentBytesMax || name == "." || name == "..") return false;
  return name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

std::optional<RelPath> RelPath::parse(std::string bytes) {
  if (bytes.size() > kPathBytesMax) return std::nullopt;
  if (!bytes.empty()) {
    std::string_view rest = bytes;
    for (;;) {
      const std::size_t slash = rest.find('/');
      if (!is_component(rest.substr(0, slash))) return std::nullopt;
      if (slash == std::string_view::npos) break;
      rest.remove_prefix(slash + 1);
    }
  }
  RelPath path;
  path.bytes_ = std::move(bytes);
  return path;
}

RelPath RelPath::parent() const {
  RelPath up;
  const std::size_t slash = bytes_.rfind('/');
  if (slash != std::string::npos) up.bytes_ = bytes_.substr(0, slash);
  return up;
}

std::string_view RelPath::name() const {
  const std::size_t slash = bytes_.rfind('/');
  return slash == std::string::npos ? std::string_view(bytes_) : std::string_view(bytes_).substr(slash + 1);
}

RelPath RelPath::child(std::string_view name) const {
  ENVSYNC_CHECK(is_component(name));
  RelPath down;
  down.bytes_.reserve(bytes_.size() + 1 + name.size());
  down.bytes_ = bytes_;
  if (!is_root()) down.bytes_ += '/';
  down.bytes_ += name;
  return down;
}

RelPath RelPath::join(const RelPath& below) const {
  if (below.is_root()) return *this;
  if (is_root()) return below;
  RelPath joined;
  joined.bytes_.reserve(bytes_.size() + 1 + below.bytes_.size());
  joined.bytes_ = bytes_;
  joined.bytes_ += '/';
  joined.bytes_ += below.bytes_;
  return joined;
}

bool RelPath::contains(const RelPath& other) const {
  if (is_root()) return true;
  return other.bytes_.starts_with(bytes_) && (other.bytes_.size() == bytes_.size() || other.bytes_[bytes_.size()] == '/');
}

RelPath RelPath::relative(const RelPath& other) const {
  ENVSYNC_CHECK(contains(other));
  RelPath rest;
  if (is_root()) rest.bytes_ = other.bytes_;
  else if (other.bytes_.size() > bytes_.size()) rest.bytes_ = other.bytes_.substr(bytes_.size() + 1);
  return rest;
}

}  // namespace envsync::tree
