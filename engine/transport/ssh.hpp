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
Result<SshCommand> ssh_command(const Host&, const Options&);

/// The user's own way to the host, to be pasted: `ssh -F file -p 2222 user@host`.
std::string ssh_to_paste(const Host&, const Options&);

/// Refuses a host or user that ssh would take for an option.
Result<void> check_names(const Host&);

/// What ssh's stderr says of a connection that ended before the agent spoke.
Error ssh_error(const Host&, const Options&, std::string_view stderr_text);

/// The last lines of a program's words, fit for causes.
std::vector<std::string> last_lines(std::string_view text);

std::string shell_quoted(std::string_view text);

}  // namespace envsync::transport
