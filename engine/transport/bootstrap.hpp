// SPDX-License-Identifier: MIT
// Private to transport: the one line of POSIX sh that starts the agent on a host, and the reading of its answers.
//
//   answer := token " " word [" " detail] "\n"      after at most 64 KiB of whatever the login says first
//   word   := OK                                    the agent's frames follow
//           | NEED                                  send the agent's bytes and nothing more; another answer follows
//           | ARCH machine                          the agent was built for another machine
//           | NONE (" " place ":" why)*             no place to run from
//           | SHORT bytes place                     fewer bytes arrived than were sent
//           | BAD place                             the agent is there and does not run
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "channel/channel.hpp"

namespace envsync::transport {

/// The agent's program file on this machine.
struct AgentFile {
  std::string path;
  std::string digest;   // hex
  u64 size = 0;
  std::string machine;  // as `uname -m` has it; empty where the file is not ELF or of an unknown machine
};
Result<AgentFile> look_at_agent(const std::string& path, const std::string& digest);

/// `exec sh -c '...' sh BASE64...`: one line without its newline, which sh, csh and fish read alike. `sudo`: by `sudo -n`, so that
/// all of it, the folder that the agent is kept in too, is root's.
std::string bootstrap_line(const AgentFile&, std::string_view token, ByteView first_request, bool sudo);

struct Answer { std::string word, detail; };
/// Reads through the newline of the next answer and not a byte beyond; nullopt where the stream ended before. Errors:
/// connection_lost where no byte came for `silence_max`; connect_failed where more than 64 KiB came without the token. `banner`
/// gets what came before it.
Result<std::optional<Answer>> read_answer(channel::Channel&, std::string_view token, Seconds silence_max, std::string& banner);

/// Sends the agent's bytes; each piece must be taken within `silence_max`.
Result<void> send_agent(channel::Channel&, const AgentFile&, Seconds silence_max);

}  // namespace envsync::transport
