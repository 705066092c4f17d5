// SPDX-License-Identifier: MIT
// Reaching a host: starts the agent there, uploading it where it is missing, and gives the channel to it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "channel/channel.hpp"

namespace envsync::transport {

enum class Kind : u8 { local, openssh, command };

struct Host {
  std::string name;                   // as the manifest has it, for messages
  Kind kind = Kind::openssh;
  std::string user, host;             // user may be empty
  u16 port = 0;                       // 0: as ssh_config says
  std::string identity;               // -i
  std::string jump;                   // -J
  /// Kind::command: argv; its stdin and stdout reach `sh` on the host. Where it ends in "--", `sh` is appended.
  std::vector<std::string> command;
};

struct Options {
  std::string agent_path;             // the static agent of this build
  std::string agent_digest;           // hex; names the uploaded file
  std::string ssh_config;             // -F
  bool accept_new_host_keys = false;
  bool batch = false;                 // BatchMode: never prompt
  Seconds connect_timeout{30};
};

/// The agent's end, started: the next byte read is its first frame. Destroying the channel ends the stream and not the agent: what
/// the agent finishes alone, it finishes.
struct Connected {
  std::unique_ptr<channel::Channel> channel;
  bool agent_uploaded = false;
  std::string transport;              // "local", "openssh", "command"
  std::string detail;                 // "aes128-gcm asked for", ...
  /// What the transport's program wrote to stderr so far; for causes. Thread-safe.
  std::function<std::string()> stderr_text;
};

/// What `ssh -G` says of a host, keys in lower case; the first value of each.
struct SshConfig { std::vector<std::pair<std::string, std::string>> values; std::string get(std::string_view key) const; };
Result<SshConfig> resolve_ssh(const Host&, const Options&);
/// True where both are `local`, or both resolve to equal user, host name and port.
Result<bool> same_host(const Host& a, const Host& b, const Options&);

/// Connects and starts the agent with its first request in the same exec (`first_request`: raw bytes, at most 6 KiB,
/// no secret). Errors: connect_failed, auth_failed, host_key_unknown, host_key_mismatch; causes carry the program's stderr. A host
/// name that begins with '-' is refused.
Result<Connected> connect(const Host&, const Options&, ByteView first_request, std::stop_token);

/// $ENVSYNC_AGENT, beside the running program, ../libexec/envsync/envsync-agent.
Result<std::string> find_agent(const std::string& given);

}  // namespace envsync::transport
