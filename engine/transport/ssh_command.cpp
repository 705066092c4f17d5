// SPDX-License-Identifier: MIT
// `ssh -G` tells what the user's configuration makes of a host; the command line adds only what envsync needs and the
// configuration does not forbid.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "os/process.hpp"
#include "transport/process_channel.hpp"
#include "transport/ssh.hpp"

namespace envsync::transport {
namespace {

constexpr Seconds kResolvePatience{20};  // a `Match exec` of the user may take its time
constexpr std::size_t kResolveBytesMax = 256u << 10;
constexpr std::string_view kFastCipher = "aes128-gcm@openssh.com";

/// Options that both `ssh -G` and the connection take.
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

Error ssh_missing(const Host& host, Error cause) {
  Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': the program 'ssh' cannot be started", host.name));
  error.causes = std::move(cause.causes);
  error.sys_errno = cause.sys_errno;
  error.hints.emplace_back("install the OpenSSH client, on Debian `apt-get install openssh-client`");
  return error;
}

Result<SshConfig> parse_config(std::string_view text) {
  SshConfig config;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t space = line.find(' ');
    std::string key(line.substr(0, space));
    std::ranges::transform(key, key.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const std::string value(space == std::string_view::npos ? "" : line.substr(space + 1));
    const bool is_new = std::ranges::find(config.values, key, &std::pair<std::string, std::string>::first) == config.values.end();
    if (!key.empty() && is_new) config.values.emplace_back(std::move(key), value);
  }
  return config;
}

/// `argv` is ssh with -G.
Result<SshConfig> ask(const Host& host, const Options& options, const std::vector<std::string>& argv) {
  auto captured = capture(argv, kResolvePatience, kResolveBytesMax);
  if (!captured && captured.error().sys_errno) return ssh_missing(host, std::move(captured).error());
  if (!captured) return std::move(captured).error().context(fmt::format("cannot resolve '{}' by ssh_config", host.name));
  if (captured->status == 0) return parse_config(captured->out);
  Error error(ErrorCode::connect_failed, fmt::format("cannot resolve '{}' by ssh_config", host.name));
  error.causes = last_lines(captured->err);
  error.hints.push_back(fmt::format("run `{} -G`", ssh_to_paste(host, options)));
  return error;
}

/// True where the ciphers are OpenSSH's own choice, not the user's, and the fast one is among them.
bool may_choose_cipher(const SshConfig& config, const Host& host, const Options& options) {
  const std::string ciphers = config.get("ciphers");
  if (ciphers.find(kFastCipher) == std::string::npos || ciphers.starts_with(kFastCipher) || !os::cpu_has("aes")) return false;
  const auto defaults = ask(host, options, {"ssh", "-F", "/dev/null", "-G", "x"});
  return defaults && defaults->get("ciphers") == ciphers;
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

std::string SshConfig::get(std::string_view key) const {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, std::string>::first);
  return found == values.end() ? std::string() : found->second;
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

Result<void> check_names(const Host& host) {
  const auto is_bad = [](const std::string& name) {
    return name.starts_with('-') || std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
  };
  if (host.host.empty() || is_bad(host.host) || is_bad(host.user) || host.jump.starts_with('-')) {
    Error error(ErrorCode::connect_failed, fmt::format("'{}' cannot be the name of a host for ssh", printable(host.host)));
    error.causes.emplace_back("a name or user that begins with '-' or holds a space would be taken for something else");
    error.notes.emplace_back("ssh was not started");
    return error;
  }
  return ok();
}

Result<SshConfig> resolve_ssh(const Host& host, const Options& options) {
  TRY_STATUS(check_names(host));
  std::vector<std::string> argv = {"ssh"};
  std::ranges::copy(common_options(host, options), std::back_inserter(argv));
  argv.insert(argv.end(), {"-G", "--", host.host});
  return ask(host, options, argv);
}

Result<bool> same_host(const Host& a, const Host& b, const Options& options) {
  if (a.kind != b.kind || a.kind == Kind::command) return false;  // a command may lead somewhere else each time
  if (a.kind == Kind::local) return true;
  TRY(const SshConfig config_a, resolve_ssh(a, options));
  TRY(const SshConfig config_b, resolve_ssh(b, options));
  // The way counts, too: one private address behind two jump hosts is two machines.
  return std::ranges::all_of(std::initializer_list<const char*>{"user", "hostname", "port", "proxyjump", "proxycommand"},
                             [&](const char* key) { return config_a.get(key) == config_b.get(key); });
}

Result<SshCommand> ssh_command(const Host& host, const Options& options) {
  TRY(const SshConfig config, resolve_ssh(host, options));
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
  add_corrections(config, command.argv);
  if (may_choose_cipher(config, host, options)) {
    set(fmt::format("Ciphers=^{}", kFastCipher));
    command.detail = "aes128-gcm asked for";
  }
  command.argv.insert(command.argv.end(), {"--", host.host});
  return command;
}

}  // namespace envsync::transport
