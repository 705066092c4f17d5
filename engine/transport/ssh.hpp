// SPDX-License-Identifier: MIT
// Private to transport: the command line of the ssh program, and what its words on stderr mean.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/result.hpp>

#include "transport/transport.hpp"

namespace envsync::transport {

struct SshCommand {
  std::vector<std::string> argv;  // all but the remote command
  std::string detail;             // "aes128-gcm asked for", or empty
};

/// `ssh -G` of a host, and of no host at all: what differs is the user's own choice. Without an ssh program `config` has what its
/// absence leaves of `host`, `is_ssh_missing` is set, and a configuration that nobody can read then is an error.
struct Resolved { SshConfig config, defaults; bool is_ssh_missing = false; };
Result<Resolved> resolve_with_defaults(const Host&, const Options&);

SshCommand ssh_command(const Host&, const Options&, const Resolved&);

/// Options that lead to a host: -F, -p, -l, -i, -J.
std::vector<std::string> common_options(const Host&, const Options&);

/// The user's own way to the host, to be pasted: `ssh -F file -p 2222 user@host`.
std::string ssh_to_paste(const Host&, const Options&);

/// Refuses a host or user that ssh would take for an option, and a named key that is not there.
Result<void> check_names(const Host&);

/// The program 'ssh' is not there.
Error ssh_missing(const Host&, Error cause);

/// Ours are the ones to give where the key that a host presents is not the one known.
Error changed_key_error(const Host&, std::string_view offered_fingerprint, std::optional<Location> known, std::string_view forget);

/// What ssh's stderr says of a connection that ended before the agent spoke.
Error ssh_error(const Host&, const Options&, std::string_view stderr_text);

/// The last lines of a program's words, fit for causes.
std::vector<std::string> last_lines(std::string_view text);

std::string shell_quoted(std::string_view text);

}  // namespace envsync::transport
