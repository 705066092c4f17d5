// SPDX-License-Identifier: MIT
#include "store/marker.hpp"

#include <cerrno>

#include "os/files.hpp"

namespace envsync::store {
bool Marker::names_same(const Marker& other) const {
  if (ino != other.ino) return false;
  if (btime_ns != 0 && other.btime_ns != 0 && btime_ns != other.btime_ns) return false;
  return handle.empty() || other.handle.empty() || handle == other.handle;
}

Result<std::optional<Marker>> marker_of(int at, const std::string& rel) {
  const std::size_t slash = rel.rfind('/');
  os::Fd parent;
  if (slash != std::string::npos) {
    auto opened = os::open_dir(at, std::string_view(rel).substr(0, slash));
    if (!opened && (opened.error().sys_errno == ENOENT || opened.error().sys_errno == ENOTDIR)) return std::optional<Marker>();
    if (!opened) return std::move(opened).error();
    parent = std::move(*opened);
  }
  const int dir = parent ? parent.get() : at;
  const std::string name = slash == std::string::npos ? rel : rel.substr(slash + 1);
  TRY(const auto stat, os::stat_if_exists(dir, name));
  if (!stat) return std::optional<Marker>();
  return std::optional<Marker>(Marker{stat->ino, stat->btime_ns, os::handle_of(dir, name)});
}

void put_marker(Bytes& out, const Marker& marker) {
  put_le(out, marker.ino);
  put_le(out, static_cast<u64>(marker.btime_ns));
  put_string(out, marker.handle);
}

std::optional<Marker> take_marker(ByteView& in) {
  const auto ino = take_le<u64>(in);
  const auto btime = take_le<u64>(in);
  if (!ino || !btime) return std::nullopt;
  const auto handle = take_string(in);
  if (!handle) return std::nullopt;
  return Marker{*ino, static_cast<i64>(*btime), std::string(*handle)};
}

}  // namespace envsync::store
