// SPDX-License-Identifier: MIT
// The command line of the ssh program: the user's own way to the host, and only what envsync needs beyond it and the configuration
// does not forbid.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "os/process.hpp"
#include "transport/ssh.hpp"

namespace envsync::transport {
namespace {

constexpr std::string_view kFastCipher = "aes128-gcm@openssh.com";

/// True where the ciphers are OpenSSH's own choice, not the user's, and the fast one is among them.
bool may_choose_cipher(const Resolved& resolved) {
  const std::string ciphers = resolved.config.get("ciphers");
  if (ciphers.find(kFastCipher) == std::string::npos || ciphers.starts_with(kFastCipher) || !os::cpu_has("aes")) return false;
  return resolved.defaults.get("ciphers") == ciphers;
}

/// Settings of the user that are for terminals or tunnels and would break a stream. Older ssh refuses keywords that it does
/// not know, so only what `ssh -G` showed is set back.
void add_corrections(const SshConfig& config, std::vector<std::string>& argv) {
  struct Correction { const char* key; const char* harmless; };
  static constexpr Correction corrections[] = {
      {"stdinnull", "no"}, {"forkafterauthentication", "no"}, {"sessiontype", "default"}, {"remotecommand", "none"}};
  for (const auto& [key, harmless] : corrections) {
    const std::string value = config.get(key);
    if (value.empty() || value == harmless) continue;
    argv.emplace_back("-o");
    argv.push_back(fmt::format("{}={}", key, harmless));
  }
  const std::string level = config.get("loglevel");
  if (level == "QUIET" || level == "FATAL") argv.insert(argv.end(), {"-o", "LogLevel=ERROR"});
  // A dead network is noticed by ssh itself where the user has not said how.
  if (config.get("serveraliveinterval") == "0") argv.insert(argv.end(), {"-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"});
}

}  // namespace

std::vector<std::string> common_options(const Host& host, const Options& options) {
  std::vector<std::string> argv;
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    argv.emplace_back(option);
    argv.push_back(value);
  };
  add("-F", options.ssh_config);
  add("-p", host.port ? fmt::format("{}", host.port) : "");
  add("-l", host.user);
  add("-i", host.identity);
  add("-J", host.jump);
  return argv;
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string ssh_to_paste(const Host& host, const Options& options) {
  std::string text = "ssh";
  for (const auto& word : common_options(host, options)) text += " " + shell_quoted(word);
  return text + " " + shell_quoted(host.host);
}

SshCommand ssh_command(const Host& host, const Options& options, const Resolved& resolved) {
  SshCommand command;
  command.argv = {"ssh"};
  std::ranges::copy(common_options(host, options), std::back_inserter(command.argv));
  const auto set = [&](std::string setting) {
    command.argv.emplace_back("-o");
    command.argv.push_back(std::move(setting));
  };
  command.argv.insert(command.argv.end(), {"-T", "-a", "-x"});
  set("Compression=no");
  set("ClearAllForwardings=yes");  // a second connection could not bind the user's ports again
  set(fmt::format("ConnectTimeout={}", std::max(1L, std::lround(std::ceil(options.connect_timeout.count())))));
  if (options.batch) set("BatchMode=yes");
  if (options.accept_new_host_keys) set("StrictHostKeyChecking=accept-new");
  add_corrections(resolved.config, command.argv);
  if (may_choose_cipher(resolved)) {
    set(fmt::format("Ciphers=^{}", kFastCipher));
    command.detail = "aes128-gcm asked for";
  }
  command.argv.insert(command.argv.end(), {"--", host.host});
  return command;
}

}  // namespace envsync::transport
