// SPDX-License-Identifier: MIT
// Private to transport: the way to an ssh server, by TCP or by a program (a jump host, a ProxyCommand).
#pragma once

#include <memory>
#include <string>

#include "os/process.hpp"
#include "transport/carrier.hpp"
#include "transport/login.hpp"

namespace envsync::transport {

/// Waits until a descriptor is ready or `wake` is readable. connection_lost past the deadline, interrupted where it was woken.
Result<void> await_ready(int fd, short events, int wake, Deadline deadline);

struct Proxy {
  os::Child child;
  Drain stderr_drain;
};

struct Dialled {
  os::Fd socket;                  // non-blocking
  std::unique_ptr<Proxy> proxy;   // where a program leads there
  std::string peer;               // "10.0.0.5 port 22", or the program
  std::string address;            // "10.0.0.5"; empty where a program leads there
};
/// `own_group`: the program cannot ask on the terminal.
Result<Dialled> dial(const Host&, const Options&, const Login&, bool own_group, int wake);

}  // namespace envsync::transport
