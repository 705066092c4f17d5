// SPDX-License-Identifier: MIT
// Locks, child processes and facts of this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <envsync/result.hpp>

#include "base/clock.hpp"
#include "os/fd.hpp"

namespace envsync::os {

/// An exclusive flock; nullopt where somebody else holds it.
Result<std::optional<Fd>> try_lock(Fd file);
/// A flock that many may hold, on what the descriptor is open for; false where somebody holds the exclusive one, or locks are unsupported.
bool try_share(const Fd& file);

/// A child whose end is awaited by the owner. The destructor kills and reaps.
class [[nodiscard]] Child {
 public:
  Child() = default;
  /// `leads_group`: kill_now() kills its whole process group.
  explicit Child(pid_t pid, bool leads_group = false) : pid_(pid), leads_group_(leads_group) {}
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();
  pid_t pid() const noexcept { return pid_; }
  /// Exit status as the shell gives it (128 + signal); nullopt when the deadline passed first. Asked again: the same.
  std::optional<int> wait(Deadline);
  void kill_now() noexcept;
  /// Gives the child up: it runs on, and nobody here awaits it.
  void release() noexcept { pid_ = -1; }

 private:
  pid_t pid_ = -1;
  bool leads_group_ = false;
  std::optional<int> status_;  // set once the child is reaped
};

struct SpawnIo { int in = -1, out = -1, err = -1; };  // -1: inherited; descriptors are dup-ed into 0, 1, 2
/// Starts argv[0] (searched in PATH) with every other descriptor closed, no signal blocked and SIGPIPE at its default;
/// a program that cannot be started is an error here, not a status later. `own_group`: a process group of its own.
/// `extra_env`: "NAME=VALUE", before what is inherited.
Result<Child> spawn(const std::vector<std::string>& argv, const SpawnIo&, bool own_group = false,
                    const std::vector<std::string>& extra_env = {});
struct PipePair { Fd read, write; };
Result<PipePair> make_pipe();
Result<std::pair<Fd, Fd>> make_socket_pair();

/// This process in words that name no other one, however many come later: number, start, boot. Empty where the kernel does not tell.
std::string process_token();
/// Ends the process that a token names: SIGTERM, and SIGKILL where it is there after `patience` and `may_kill` says so. Returns once
/// it is gone, or with false at the deadline. True where there is no such process.
bool end_process(std::string_view token, Seconds patience, const std::function<bool()>& may_kill, Deadline deadline);

std::string hostname();
/// Changes with every boot; empty where the kernel does not tell.
std::string boot_id();
/// From /etc/passwd, read directly: a static program must not need the host's name services.
std::string user_name();
std::string home_dir();  // $HOME, else from /etc/passwd
/// Raises the soft limit of open files to the hard one.
void raise_fd_limit();
/// What this process makes is for its user to change and for all to read, whatever umask it was started with.
void set_usual_umask();
/// 16 random bytes as hex.
std::string random_token();
/// Processors that this process may use, the cgroup's quota included.
u32 cpu_count();
/// What this process has used of processors so far.
Seconds cpu_time();
/// Whether /proc/cpuinfo lists a feature, as "aes".
bool cpu_has(std::string_view feature);

/// Processes of this machine that run from, map, stand in, hold open or mount something below `root`; described,
/// at most `limit`. Unreadable processes are left out.
std::vector<std::string> processes_using(const std::string& root, std::size_t limit);

}  // namespace envsync::os
