// SPDX-License-Identifier: MIT
// Child processes, pipes and locks.
#include "os/process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/files.hpp"

extern char** environ;  // NOLINT: POSIX leaves its declaration to the program

namespace envsync::os {
namespace {

int shell_status(int raw) { return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw); }

int poll_timeout_ms(Deadline deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<i64>(ms, 0, 60'000));
}

/// Waits until the child may have ended or the deadline passed.
void await_end(const Fd& pidfd, Deadline deadline) {
  const int timeout_ms = poll_timeout_ms(deadline);
  if (pidfd) {
    struct pollfd wait_for = {.fd = pidfd.get(), .events = POLLIN, .revents = 0};
    ::poll(&wait_for, 1, timeout_ms);
    return;
  }
  // A kernel before 5.3 has no descriptor for a process: asked again every 5 ms.
  ::poll(nullptr, 0, std::min(timeout_ms, 5));
}

/// Descriptors 0 to 2 may be each other's target: such a source is first moved out of the way.
Result<int> above_stdio(int fd, std::vector<Fd>& held) {
  if (fd < 0 || fd > 2) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return os_error(errno, "duplicate", "a descriptor");
  held.emplace_back(moved);
  return moved;
}

class SpawnSetup {
 public:
  SpawnSetup() { ::posix_spawn_file_actions_init(&actions); ::posix_spawnattr_init(&attributes); }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() { ::posix_spawn_file_actions_destroy(&actions); ::posix_spawnattr_destroy(&attributes); }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

Result<void> redirect(SpawnSetup& setup, const SpawnIo& io, std::vector<Fd>& held) {
  const int sources[3] = {io.in, io.out, io.err};
  for (int target = 0; target < 3; ++target) {
    TRY(const int source, above_stdio(sources[target], held));
    if (source >= 0) ::posix_spawn_file_actions_adddup2(&setup.actions, source, target);
  }
  // What other code of this process may have opened without O_CLOEXEC must not reach the child.
  ::posix_spawn_file_actions_addclosefrom_np(&setup.actions, 3);
  return ok();
}

void set_attributes(SpawnSetup& setup, bool own_group) {
  sigset_t signals;
  sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&setup.attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&setup.attributes, &signals);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (own_group) flags = static_cast<short>(flags | POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setflags(&setup.attributes, flags);
}

/// Pointers into `extra` and into the environment, which must not change meanwhile.
std::vector<char*> environment(const std::vector<std::string>& extra) {
  std::vector<char*> all;
  for (const std::string& entry : extra) all.push_back(const_cast<char*>(entry.c_str()));  // SAFETY: exec only reads
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('=') + 1);
    const bool is_replaced = std::ranges::any_of(extra, [&](const std::string& e) { return e.starts_with(name); });
    if (!is_replaced) all.push_back(*entry);
  }
  all.push_back(nullptr);
  return all;
}

}  // namespace

Result<std::optional<Fd>> try_lock(Fd file) {
  int rc = -1;
  do rc = ::flock(file.get(), LOCK_EX | LOCK_NB);
  while (rc < 0 && errno == EINTR);
  if (rc == 0) return std::optional<Fd>(std::move(file));
  if (errno == EWOULDBLOCK) return std::optional<Fd>();
  return os_error(errno, "lock", "the lock file");
}

bool try_share(const Fd& file) {
  int rc = -1;
  do rc = ::flock(file.get(), LOCK_SH | LOCK_NB);
  while (rc < 0 && errno == EINTR);
  return rc == 0;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), leads_group_(other.leads_group_), status_(std::exchange(other.status_, {})) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this == &other) return *this;
  kill_now();
  wait(kNoDeadline);
  pid_ = std::exchange(other.pid_, -1);
  leads_group_ = other.leads_group_;
  status_ = std::exchange(other.status_, {});
  return *this;
}

Child::~Child() {
  kill_now();
  wait(kNoDeadline);
}

void Child::kill_now() noexcept {
  if (pid_ > 0 && !status_) ::kill(leads_group_ ? -pid_ : pid_, SIGKILL);
}

std::optional<int> Child::wait(Deadline deadline) {
  if (pid_ <= 0 || status_) return status_;
  Fd pidfd;
  for (;;) {
    int raw = 0;
    const pid_t ended = ::waitpid(pid_, &raw, deadline == kNoDeadline ? 0 : WNOHANG);
    if (ended == pid_) return status_ = shell_status(raw);
    if (ended < 0 && errno != EINTR) return status_ = 255;  // somebody else reaped it: its status is lost
    if (ended < 0) continue;
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    if (!pidfd) pidfd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    await_end(pidfd, deadline);
  }
}

Result<Child> spawn(const std::vector<std::string>& argv, const SpawnIo& io, bool own_group,
                    const std::vector<std::string>& extra_env) {
  ENVSYNC_CHECK(!argv.empty());
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));  // SAFETY: exec only reads
  arguments.push_back(nullptr);
  SpawnSetup setup;
  std::vector<Fd> held;
  TRY_STATUS(redirect(setup, io, held));
  set_attributes(setup, own_group);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &setup.actions, &setup.attributes, arguments.data(), environment(extra_env).data());
  if (error) return os_error(error, "start", argv[0]);
  return Child(pid, own_group);
}

Result<PipePair> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "make", "a pipe");
  return PipePair{Fd(ends[0]), Fd(ends[1])};
}

Result<std::pair<Fd, Fd>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return os_error(errno, "make", "a socket pair");
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

}  // namespace envsync::os
