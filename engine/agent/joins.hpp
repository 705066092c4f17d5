// SPDX-License-Identifier: MIT
// Further connections of one controller. Each is an ssh connection of its own, whose agent hands its descriptors to this process and then
// waits only to keep the login's session open; so one session serves them all.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "os/fd.hpp"
#include "protocol/frames.hpp"

namespace envsync::agent {

class Joins {
 public:
  /// `serve` gets the requests of connections that proved to be the controller's, on their reader threads.
  using Serve = std::function<void(std::shared_ptr<protocol::Connection>, protocol::Frame)>;
  Joins(std::string hello, Serve serve);
  ~Joins();
  Joins(const Joins&) = delete;
  Joins& operator=(const Joins&) = delete;

  /// From now on connections may come; the name to come to. Asked again: the same name, and the secret of the first time.
  Result<std::string> open(std::string secret);
  /// Ends the connections and lets no more in. Handlers must be over before this is destroyed.
  void close();
  std::size_t count() const;

 private:
  struct Joined;
  void watch();
  void take(os::Fd link);
  void hear(Joined& joined, protocol::Frame frame);
  std::shared_ptr<protocol::Connection> use(Joined& joined);
  void drop_ended();
  bool is_right(const std::string& secret) const;

  const std::string hello_;  // what a connection begins with, encoded
  const Serve serve_;
  mutable std::mutex mutex_;  // all below but the thread
  std::string name_, secret_;
  os::Fd listener_, wake_;
  bool is_closed_ = false;
  std::vector<std::unique_ptr<Joined>> joined_;
  std::thread thread_;
};

/// In a further connection's agent: hands `in` and `out` to the agent of that name and waits until it lets go of them; the exit status.
/// Where that fails, the controller is told over `out`.
int hand_over(const std::string& name, const std::string& hello, os::Fd in, os::Fd out);

}  // namespace envsync::agent
