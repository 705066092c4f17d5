// SPDX-License-Identifier: MIT
// Private to transport: the user's ssh agent, shown to libssh with the keys that we want to offer, in our order. libssh by itself
// offers all of them first, which a server that counts attempts does not forgive, and waits for the agent without end.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "channel/channel.hpp"

namespace envsync::transport {

struct AgentKey { Bytes blob; std::string comment; };

/// Reads the answer to a request for identities; bounded.
Result<std::vector<AgentKey>> read_identities(ByteView answer);
/// The answer that lists these keys, its length before it.
Bytes write_identities(const std::vector<AgentKey>& keys);

class AgentKeys {
 public:
  /// Null where no agent answers at the socket.
  static std::unique_ptr<AgentKeys> open(const std::string& socket_path);
  ~AgentKeys();
  const std::vector<AgentKey>& keys() const { return keys_; }
  /// Starts to answer for the agent; gives the descriptor to talk to. Once.
  Result<os::Fd> serve(std::vector<AgentKey> offered);

 private:
  AgentKeys() = default;
  void answer();
  Result<Bytes> ask(ByteView framed);

  std::unique_ptr<channel::Channel> agent_, near_;
  std::vector<AgentKey> keys_, offered_;
  std::thread thread_;
};

}  // namespace envsync::transport
