// SPDX-License-Identifier: MIT
// Sockets between processes of this host, under names that no folder holds; descriptors travel over them.
#pragma once

#include <string>
#include <utility>

#include <envsync/result.hpp>

#include "base/clock.hpp"
#include "os/fd.hpp"

namespace envsync::os {

/// LIMIT: of a name, which any process of the same network namespace can see and connect to: ask is_same_user().
inline constexpr std::size_t kSocketNameMax = 100;

Result<Fd> listen_at(const std::string& name);
Result<Fd> connect_to(const std::string& name);
/// A connection that waits, non-blocking: an empty descriptor where there is none.
Result<Fd> accept_from(int listener);
/// Waits until somebody connects (true) or the eventfd `wake` was written to, which is read.
bool await_connection(int listener, int wake);
/// Waits until the other side closes.
void await_end(int socket);
/// Whether the process at the other end is this process's user.
bool is_same_user(int socket);

Result<void> send_descriptors(int socket, int first, int second);
Result<std::pair<Fd, Fd>> receive_descriptors(int socket, Deadline deadline);

}  // namespace envsync::os
