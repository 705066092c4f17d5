// SPDX-License-Identifier: MIT
// Facts of this machine.
#include "os/process.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>

#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "os/machine_text.hpp"

namespace envsync::os {
namespace {

/// The fields of this user's line in /etc/passwd; empty where there is none.
std::vector<std::string> passwd_fields() {
  const std::string text = read_whole("/etc/passwd", 1u << 20);
  const std::string uid = fmt::format("{}", ::geteuid());
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() >= 6 && fields[2] == uid) return {fields.begin(), fields.end()};
  }
  return {};
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Whole processors that cgroup v2's quota grants; nullopt where there is none.
std::optional<u32> cgroup_cpus() {
  const std::string text = read_whole("/sys/fs/cgroup/cpu.max", 256);
  u64 quota = 0, period = 0;
  const auto first = std::from_chars(text.data(), text.data() + text.size(), quota);
  if (first.ec != std::errc() || first.ptr == text.data() + text.size()) return std::nullopt;  // "max"
  const auto second = std::from_chars(first.ptr + 1, text.data() + text.size(), period);
  if (second.ec != std::errc() || period == 0) return std::nullopt;
  return static_cast<u32>(std::clamp<u64>((quota + period - 1) / period, 1, 4096));
}

}  // namespace

std::string read_whole(const std::string& path, std::size_t limit) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  char buffer[16384];
  while (text.size() < limit) {
    const ssize_t got = ::read(file.get(), buffer, std::min(sizeof buffer, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string hostname() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "unknown";
  return name;
}

std::string boot_id() {
  std::string text = read_whole("/proc/sys/kernel/random/boot_id", 256);
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::string user_name() {
  const auto fields = passwd_fields();
  if (!fields.empty()) return fields[0];
  for (const char* name : {"LOGNAME", "USER"})
    if (auto value = environment_variable(name); !value.empty()) return value;
  return fmt::format("{}", ::geteuid());
}

std::string home_dir() {
  if (auto home = environment_variable("HOME"); home.starts_with('/')) return home;
  const auto fields = passwd_fields();
  return !fields.empty() && fields[5].starts_with('/') ? fields[5] : "/";
}

void raise_fd_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string random_token() {
  std::byte bytes[16];
  std::size_t done = 0;
  while (done < sizeof bytes) {
    const ssize_t got = ::getrandom(bytes + done, sizeof bytes - done, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
    else ENVSYNC_CHECK(got < 0 && errno == EINTR);
  }
  return to_hex(bytes);
}

Seconds cpu_time() {
  struct rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const struct timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return Seconds{seconds(used.ru_utime) + seconds(used.ru_stime)};
}

u32 cpu_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  u32 count = 0;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) count = static_cast<u32>(CPU_COUNT(&set));
  else count = static_cast<u32>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));  // more than the set holds
  return std::max(1u, std::min(count, cgroup_cpus().value_or(count)));
}

bool cpu_has(std::string_view feature) {
  const std::string text = read_whole("/proc/cpuinfo", 1u << 20);
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    const auto features = split(line, ' ');
    return std::ranges::find(features, feature) != features.end();
  }
  return false;
}

}  // namespace envsync::os
