// SPDX-License-Identifier: MIT
// `ssh -G` tells what the user's configuration makes of a host: Match, Include, canonical names and tokens are its work.
#include <algorithm>
#include <cerrno>
#include <future>
#include <iterator>

#include <fcntl.h>

#include <fmt/format.h>

#include "os/files.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"
#include "transport/process_channel.hpp"
#include "transport/ssh.hpp"

namespace envsync::transport {
namespace {

constexpr Seconds kResolvePatience{20};  // a `Match exec` of the user may take its time
constexpr std::size_t kResolveBytesMax = 256u << 10;

SshConfig parse_config(std::string_view text) {
  SshConfig config;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t space = line.find(' ');
    std::string key(line.substr(0, space));
    std::ranges::transform(key, key.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (!key.empty()) config.values.emplace_back(std::move(key), space == std::string_view::npos ? "" : line.substr(space + 1));
  }
  return config;
}

/// `argv` is ssh with -G. An errno is that of a program that cannot be started.
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

bool can_read(const std::string& path) { return os::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)).get() >= 0; }

/// A machine without the ssh program: nothing reads ssh_config there, so nothing of it may be wanted.
Result<Resolved> resolve_alone(const Host& host, const Options& options, Error missing) {
  const bool has_config = !options.ssh_config.empty() || can_read(os::expand_home("~/.ssh/config"));
  if (has_config || !host.jump.empty()) {
    missing.causes.push_back(host.jump.empty() ? "without it ssh_config cannot be read" : "without it no jump host can be passed");
    return missing;
  }
  Resolved resolved;
  resolved.is_ssh_missing = true;
  auto& values = resolved.config.values;
  values = {{"hostname", host.host}, {"user", host.user.empty() ? os::user_name() : host.user},
            {"port", fmt::format("{}", host.port ? host.port : 22)}, {"userknownhostsfile", "~/.ssh/known_hosts"},
            {"globalknownhostsfile", "/etc/ssh/ssh_known_hosts"}, {"stricthostkeychecking", "ask"}};
  if (!host.identity.empty()) values.emplace_back("identityfile", host.identity);
  else for (const char* name : {"id_rsa", "id_ecdsa", "id_ed25519"}) values.emplace_back("identityfile", std::string("~/.ssh/") + name);
  resolved.defaults = resolved.config;
  return resolved;
}

}  // namespace

std::string SshConfig::get(std::string_view key) const {
  const auto found = std::ranges::find(values, key, &std::pair<std::string, std::string>::first);
  return found == values.end() ? std::string() : found->second;
}

std::vector<std::string> SshConfig::all(std::string_view key) const {
  std::vector<std::string> found;
  for (const auto& [name, value] : values) if (name == key) found.push_back(value);
  return found;
}

Error ssh_missing(const Host& host, Error cause) {
  Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': the program 'ssh' cannot be started", host.name));
  error.causes = std::move(cause.causes);
  error.sys_errno = cause.sys_errno;
  error.hints.emplace_back("install the OpenSSH client, on Debian `apt-get install openssh-client`");
  return error;
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
  const std::string key = os::expand_home(host.identity);
  if (!host.identity.empty() && !can_read(key)) {
    const int saved = errno;
    Error error(ErrorCode::connect_failed, fmt::format("cannot log in to '{}' with the key '{}'", host.name, printable(host.identity)));
    error.causes = os::os_error(saved, "read", key).causes;
    error.sys_errno = saved;
    error.notes.emplace_back("no connection was made");
    error.hints.emplace_back("name a private key that is there, or leave 'identity' away to use those of ssh_config");
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

Result<Resolved> resolve_with_defaults(const Host& host, const Options& options) {
  TRY_STATUS(check_names(host));
  // Side by side: each takes some 5 ms.
  auto defaults = std::async(std::launch::async, [&] { return ask(host, options, {"ssh", "-F", "/dev/null", "-G", "x"}); });
  auto config = resolve_ssh(host, options);
  auto own = defaults.get();
  if (!config && config.error().sys_errno == ENOENT && host.kind != Kind::openssh) return resolve_alone(host, options, std::move(config).error());
  if (!config) return std::move(config).error();
  if (!own) return std::move(own).error();
  return Resolved{std::move(*config), std::move(*own)};
}

Result<bool> same_host(const Host& a, const Host& b, const Options& options) {
  const auto is_by_ssh = [](const Host& host) { return host.kind != Kind::local && host.kind != Kind::command; };
  if (a.kind == Kind::local && b.kind == Kind::local) return true;
  // A command may lead somewhere else each time. What root reads, a user's agent may not.
  if (!is_by_ssh(a) || !is_by_ssh(b) || a.sudo != b.sudo) return false;
  TRY(const Resolved of_a, resolve_with_defaults(a, options));
  TRY(const Resolved of_b, resolve_with_defaults(b, options));
  // The way counts, too: one private address behind two jump hosts is two machines.
  return std::ranges::all_of(std::initializer_list<const char*>{"user", "hostname", "port", "proxyjump", "proxycommand"},
                             [&](const char* key) { return of_a.config.get(key) == of_b.config.get(key); });
}

}  // namespace envsync::transport
