// SPDX-License-Identifier: MIT
#include "os/paths.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "os/files.hpp"
#include "os/process.hpp"

namespace envsync::os {

namespace {

constexpr std::size_t kOutputMax = 64u << 10;  // LIMIT: what is kept of a program's words

/// Reads until the writer ends, the deadline passes, or enough is had.
std::string drain(int fd, Deadline deadline) {
  std::string out;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd p{fd, POLLIN, 0};
    if (left <= 0 || ::poll(&p, 1, static_cast<int>(left)) <= 0) return out;
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n <= 0) return out;
    if (out.size() < kOutputMax) out.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string expand_home(const std::string& path) {
  if (path == "~") return home_dir();
  if (path.starts_with("~/")) return home_dir() + path.substr(1);
  return path;
}

std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
  if (!resolved) return std::nullopt;
  return std::string(resolved.get());
}

bool is_executable(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  std::string base = xdg != nullptr && xdg[0] == '/' ? xdg : home_dir();
  if (base.empty() || base[0] != '/') return {};
  if (xdg == nullptr || xdg[0] != '/') base += "/.cache";
  (void)::mkdir(base.c_str(), 0700);
  const std::string folder = base + "/envsync";
  (void)::mkdir(folder.c_str(), 0700);
  struct stat st {};
  // A folder that others may write could hand us digests of their choosing.
  if (::lstat(folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & 022) != 0) return {};
  return folder;
}

Result<std::string> read_input(std::size_t limit) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error(errno, "read", "standard input");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) return Error(ErrorCode::io, fmt::format("standard input holds more than {} KiB", limit >> 10));
  }
}

Result<Fd> open_self() {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!fd) return os_error(errno, "open", "/proc/self/exe");
  return fd;
}

RunResult run(const std::vector<std::string>& argv, Seconds limit) {
  const Deadline deadline = deadline_in(limit);
  auto pipe = make_pipe();
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!pipe || !null) return {127, "no pipe"};
  auto child = spawn(argv, {null.get(), pipe->write.get(), pipe->write.get()}, true);
  if (!child) return {127, child.error().what};
  pipe->write.reset();
  RunResult result;
  result.output = drain(pipe->read.get(), deadline);
  const auto status = child->wait(deadline);
  if (!status) child->kill_now();
  result.status = status.value_or(124);
  return result;
}

}  // namespace envsync::os
