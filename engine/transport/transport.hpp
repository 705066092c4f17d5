// SPDX-License-Identifier: MIT
// Reaching a host: starts the agent there, uploading it where it is missing, and gives the channel to it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "channel/channel.hpp"

namespace envsync::transport {

/// automatic: libssh where it honours all of the host's configuration, else the ssh program.
enum class Kind : u8 { local, automatic, libssh, openssh, command };

struct Host {
  std::string name;                   // as the manifest has it, for messages
  Kind kind = Kind::openssh;
  std::string user, host;             // user may be empty
  u16 port = 0;                       // 0: as ssh_config says
  std::string identity;               // -i
  std::string jump;                   // -J
  /// Kind::command: argv; its stdin and stdout reach `sh` on the host. Where it ends in "--", `sh` is appended.
  std::vector<std::string> command;
  bool sudo = false;                  // the agent is started by `sudo -n`
};

/// A question to a person while a connection is made.
struct Prompt {
  enum class Kind : u8 { secret, visible, yes_no } kind = Kind::secret;
  std::string host;                   // as the manifest has it
  std::string text;                   // one line
};
/// The answer, "yes" or "no" to a yes_no; nullopt where nobody can be asked or the person gave up. Called from any thread.
using Asker = std::function<std::optional<std::string>(const Prompt&)>;

/// Host keys that were accepted in this run, by the name they are known under: later connections must meet the same.
struct HostKeyPins {
  std::mutex deciding;                // held while a person decides, so that nobody is asked twice; taken before the other
  std::mutex mutex;                   // guards keys
  std::map<std::string, std::string> keys;  // "type base64"
};

struct Options {
  std::string agent_path;             // the static agent of this build
  std::string agent_digest;           // hex; names the uploaded file
  std::string ssh_config;             // -F
  bool accept_new_host_keys = false;
  bool batch = false;                 // BatchMode: never prompt
  Seconds connect_timeout{30};
  Asker ask;                          // may be empty. The ssh program asks by itself, on its terminal
  std::string address;                // where the host's name led before: a further connection goes there and nowhere else
  std::shared_ptr<HostKeyPins> pins = std::make_shared<HostKeyPins>();
};

/// The agent's end, started: the next byte read is its first frame. Destroying the channel ends the stream and not the agent: what
/// the agent finishes alone, it finishes.
struct Connected {
  std::unique_ptr<channel::Channel> channel;
  bool agent_uploaded = false;
  std::string transport;              // "local", "libssh", "openssh", "command"
  std::string detail;                 // "aes128-gcm asked for", why not libssh, ...
  std::string address;                // numeric; empty where a program led there
  bool has_asked = false;             // a person was asked for a secret
  /// What the transport's program wrote to stderr so far; for causes. Thread-safe.
  std::function<std::string()> stderr_text;
};

/// What `ssh -G` says of a host, keys in lower case, in its order.
struct SshConfig {
  std::vector<std::pair<std::string, std::string>> values;
  std::string get(std::string_view key) const;                 // the first value; empty where there is none
  std::vector<std::string> all(std::string_view key) const;
};
Result<SshConfig> resolve_ssh(const Host&, const Options&);
/// True where both are `local`, or both resolve to equal user, host name and port.
Result<bool> same_host(const Host& a, const Host& b, const Options&);

/// Connects and starts the agent with its first request in the same exec (`first_request`: raw bytes, at most 6 KiB,
/// no secret). Errors: connect_failed, auth_failed, host_key_unknown, host_key_mismatch; they name the step, causes carry what was
/// tried and the program's stderr. A host name that begins with '-' is refused.
Result<Connected> connect(const Host&, const Options&, ByteView first_request, std::stop_token);

/// $ENVSYNC_AGENT, beside the running program, ../libexec/envsync/envsync-agent.
Result<std::string> find_agent(const std::string& given);

}  // namespace envsync::transport
