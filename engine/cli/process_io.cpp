// SPDX-License-Identifier: MIT
#include "cli/process_io.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/guard.hpp"
#include "cli/error_text.hpp"

namespace envsync::cli {

namespace {

/// 0, or why not all of it was written.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) { text.remove_prefix(static_cast<std::size_t>(written)); continue; }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return errno;
    // A terminal or pipe that somebody made non-blocking: wait for room.
    pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
    ::poll(&room, 1, 1000);
  }
  return 0;
}

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

std::optional<std::string> read_line(const std::stop_token& stop) {
  // LIMIT: an answer is a word; whatever feeds us more is no person.
  constexpr std::size_t kLongest = 4096;
  std::string line;
  while (!stop.stop_requested() && line.size() < kLongest) {
    pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int count = ::poll(&ready, 1, 100);
    if (count < 0 && errno != EINTR) return std::nullopt;
    if (count <= 0) continue;
    char c = 0;
    const ssize_t got = ::read(STDIN_FILENO, &c, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return std::nullopt;
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

/// The terminal says nothing of what is typed, also where the process is stopped meanwhile: it comes back to the same state.
std::optional<std::string> read_secret(const std::stop_token& stop) {
  termios before{};
  if (::tcgetattr(STDIN_FILENO, &before) != 0) return std::nullopt;
  termios quiet = before;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  quiet.c_lflag |= ECHONL;
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) != 0) return std::nullopt;
  const ScopeGuard restore([&] { ::tcsetattr(STDIN_FILENO, TCSANOW, &before); });
  return read_line(stop);
}

/// A stream that the caller closed would be given to the first file we open, and our messages be written into it.
void keep_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]] const int opened = ::open("/dev/null", O_RDWR);
}

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

}  // namespace

ProcessIo::ProcessIo() {
  keep_standard_streams();
  io_.out = [this](std::string_view text) {
    if (out_errno_ == 0) out_errno_ = write_all(STDOUT_FILENO, text);
  };
  io_.err = [](std::string_view text) { write_all(STDERR_FILENO, text); };
  io_.read_line = [](std::stop_token stop) { return read_line(stop); };
  io_.read_secret = [](std::stop_token stop) { return read_secret(stop); };
  io_.in_is_terminal = ::isatty(STDIN_FILENO) == 1;
  io_.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  io_.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  io_.terminal_size = terminal_size;
  io_.environment = environment;
  io_.clock = &clock_;
  io_.random = [] { return static_cast<u32>(std::random_device{}()); };
  io_.has_ticker = true;
}

int ProcessIo::check_output(int exit_code) {
  if (out_errno_ == 0 || out_errno_ == EPIPE) return exit_code;
  io_.err(error_text(Error(ErrorCode::io, "cannot write the result to standard output").cause(std::strerror(out_errno_)), Palette()));
  return exit_code == 0 ? info(ErrorCode::io).exit_code : exit_code;
}

}  // namespace envsync::cli
