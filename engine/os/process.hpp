// SPDX-License-Identifier: MIT
// Locks, child processes and facts of this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <envsync/result.hpp>

#include "base/clock.hpp"
#include "os/fd.hpp"

namespace envsync::os {

/// An exclusive flock; nullopt where somebody else holds it.
Result<std::optional<Fd>> try_lock(Fd file);

/// A child whose end is awaited by the owner. The destructor kills and reaps.
class [[nodiscard]] Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child();
  pid_t pid() const noexcept { return pid_; }
  /// Exit status as the shell gives it (128 + signal); nullopt when the deadline passed first.
  std::optional<int> wait(Deadline);
  void kill_now() noexcept;

 private:
  pid_t pid_ = -1;
};

struct SpawnIo { int in = -1, out = -1, err = -1; };  // -1: inherited; descriptors are dup-ed into 0, 1, 2
/// Starts argv[0] (searched in PATH). Every other descriptor is close-on-exec. `own_group`: a process group of its own.
Result<Child> spawn(const std::vector<std::string>& argv, const SpawnIo&, bool own_group = false,
                    const std::vector<std::string>& extra_env = {});
struct PipePair { Fd read, write; };
Result<PipePair> make_pipe();
Result<std::pair<Fd, Fd>> make_socket_pair();

std::string hostname();
std::string boot_id();
std::string user_name();
std::string home_dir();
/// Raises the soft limit of open files to the hard one.
void raise_fd_limit();
/// 16 random bytes as hex.
std::string random_token();
u32 cpu_count();

/// Processes of this machine that run from, map, stand in, hold open or mount something below `root`; described,
/// at most `limit`. Unreadable processes are left out.
std::vector<std::string> processes_using(const std::string& root, std::size_t limit);

}  // namespace envsync::os
