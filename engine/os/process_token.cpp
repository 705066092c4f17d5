// SPDX-License-Identifier: MIT
#include <charconv>
#include <csignal>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/files.hpp"
#include "os/process.hpp"

namespace envsync::os {

namespace {

/// "number start", the start in clock ticks since boot; empty where there is no such process.
std::string name_of(pid_t pid) {
  constexpr std::size_t kStatMax = 4096;
  constexpr int kFieldsBeforeStart = 20;  // after the command, whose end is the last ')'
  auto proc = open_dir_absolute("/proc");
  const auto text = proc ? read_small(proc->get(), fmt::format("{}/stat", pid), kStatMax) : Result<std::string>(proc.error());
  const std::size_t end = text ? text->rfind(')') : std::string::npos;
  if (end == std::string::npos) return {};
  std::size_t at = end + 1;
  for (int field = 0; field < kFieldsBeforeStart - 1 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  if (at == std::string::npos) return {};
  return fmt::format("{} {}", pid, text->substr(at + 1, text->find(' ', at + 1) - at - 1));
}

bool has_ended(const Fd& pidfd, Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(std::max<i64>(0, left))) > 0;
}

}  // namespace

std::string process_token() {
  const std::string name = name_of(::getpid()), boot = boot_id();
  return name.empty() || boot.empty() ? std::string() : name + " " + boot;
}

bool end_process(std::string_view token, Seconds patience, const std::function<bool()>& may_kill, Deadline deadline) {
  const std::size_t boot = token.rfind(' ');
  pid_t pid = 0;
  const auto parsed = std::from_chars(token.data(), token.data() + token.size(), pid);
  if (boot == std::string_view::npos || parsed.ec != std::errc() || pid <= 1 || token.substr(boot + 1) != boot_id()) return true;
  // RACE: the descriptor first, then the name: what it leads to cannot become another process.
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd || name_of(pid) != token.substr(0, boot)) return true;
  const auto signal = [&](int number) { (void)::syscall(SYS_pidfd_send_signal, pidfd.get(), number, nullptr, 0); };
  signal(SIGTERM);
  if (has_ended(pidfd, std::min(deadline, deadline_in(patience)))) return true;
  constexpr Seconds kAgain{0.1};
  while (!may_kill())
    if (has_ended(pidfd, std::min(deadline, deadline_in(kAgain)))) return true;
    else if (std::chrono::steady_clock::now() >= deadline) return false;
  signal(SIGKILL);
  return has_ended(pidfd, deadline);
}

}  // namespace envsync::os
