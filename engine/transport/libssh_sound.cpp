// SPDX-License-Identifier: MIT
// libssh with OpenSSL did not check the tag of AES-GCM before 0.11.5 and 0.12.1 (CVE-2026-59847), and used channels after their end
// (CVE-2026-59850). Distributions carry the fixes in older versions, which only their package's version tells.
#include <algorithm>
#include <array>
#include <charconv>

#include <dlfcn.h>
#include <fcntl.h>

#include "os/files.hpp"
#include "transport/libssh_link.hpp"

namespace envsync::transport {
namespace {

constexpr std::string_view kDebian12 = "0.10.6-0+deb12u";
constexpr unsigned kDebian12Fixed = 3;

/// The version of a package in dpkg's list of what is installed; empty where there is none.
std::string installed_version(std::string_view list, std::string_view package) {
  const std::string head = "Package: " + std::string(package) + "\n";
  std::size_t at = list.starts_with(head) ? 0 : list.find("\n" + head);
  if (at == std::string_view::npos) return {};
  const auto paragraph = list.substr(at, list.find("\n\n", at + 1) - at);
  at = paragraph.find("\nVersion: ");
  if (at == std::string_view::npos || paragraph.find("\nStatus: install ok installed\n") == std::string_view::npos) return {};
  const auto rest = paragraph.substr(at + 10);
  return std::string(rest.substr(0, rest.find('\n')));
}

std::string package_of_loaded() {
  // Only the distribution's own file has the distribution's fixes.
  Dl_info loaded = {};
  // SAFETY: dladdr wants any address inside the library.
  if (::dladdr(reinterpret_cast<const void*>(&ssh_version), &loaded) == 0 || !loaded.dli_fname) return {};
  const std::string_view file = loaded.dli_fname;
  if (!file.starts_with("/usr/lib/") && !file.starts_with("/lib/")) return {};
  const os::Fd status(::open("/var/lib/dpkg/status", O_RDONLY | O_CLOEXEC));
  if (!status) return {};
  const auto stat = os::stat_fd(status.get());
  constexpr u64 kStatusBytesMax = 256u << 20;
  if (!stat || stat->size > kStatusBytesMax) return {};
  Bytes text(stat->size);
  const auto got = os::read_at(status.get(), 0, text, "/var/lib/dpkg/status");
  return got ? installed_version(as_text(std::span(text).first(*got)), "libssh-4") : std::string();
}

}  // namespace

bool is_sound_libssh(std::string_view version, std::string_view package) {
  std::array<unsigned, 3> parts{};
  for (unsigned& part : parts) {
    const auto [end, status] = std::from_chars(version.data(), version.data() + version.size(), part);
    if (status != std::errc()) return false;
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (version.starts_with('.')) version.remove_prefix(1);
  }
  const auto [major, minor, patch] = parts;
  if (major > 0 || minor > 12) return true;
  if (minor == 12) return patch >= 1;
  if (minor == 11) return patch >= 5;
  if (!package.starts_with(kDebian12)) return false;
  unsigned revision = 0;
  const auto rest = package.substr(kDebian12.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), revision);
  return minor == 10 && patch == 6 && revision >= kDebian12Fixed;
}

bool has_sound_libssh() {
  static const bool is_sound = [] {
    const char* const version = ssh_version(0);
    return version && (is_sound_libssh(version, {}) || is_sound_libssh(version, package_of_loaded()));
  }();
  return is_sound;
}

}  // namespace envsync::transport
