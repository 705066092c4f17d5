// SPDX-License-Identifier: MIT
// An option of ssh_config is honoured, harmless for a stream of bytes, or beyond libssh. What neither list names is beyond it as
// soon as its value is not OpenSSH's default: so an option that is new to us never passes unseen.
#include "transport/login.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <fcntl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "os/paths.hpp"
#include "os/process.hpp"

namespace envsync::transport {
namespace {

constexpr auto kHonoured = std::to_array<std::string_view>({
    "addressfamily", "batchmode", "ciphers", "connecttimeout", "globalknownhostsfile", "hashknownhosts", "host", "hostkeyalgorithms",
    "hostkeyalias", "hostname", "identitiesonly", "identityagent", "identityfile", "kbdinteractiveauthentication", "kexalgorithms", "macs",
    "numberofpasswordprompts", "passwordauthentication", "port", "proxycommand", "proxyjump", "pubkeyacceptedalgorithms",
    "pubkeyauthentication", "stricthostkeychecking", "tcpkeepalive", "user", "userknownhostsfile"});
/// Done by `ssh -G`, set back for every transport (forwarding, terminals, compression), about what is shown, or left to the protocol.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "canonicaldomains", "canonicalizefallbacklocal", "canonicalizehostname", "canonicalizemaxdots", "canonicalizepermittedcnames",
    "casignaturealgorithms", "clearallforwardings", "compression", "controlmaster", "controlpersist", "dynamicforward",
    "enableescapecommandline", "enablesshkeysign", "escapechar", "exitonforwardfailure", "fingerprinthash", "forkafterauthentication",
    "forwardagent", "forwardx11", "forwardx11timeout", "forwardx11trusted", "gatewayports", "gssapiauthentication",
    "gssapidelegatecredentials", "gssapitrustdns", "hostbasedacceptedalgorithms", "ignoreunknown", "localforward", "loglevel", "logverbose",
    "obscurekeystroketiming", "permitremoteopen", "remotecommand", "remoteforward", "requesttty", "serveralivecountmax",
    "serveraliveinterval", "sessiontype", "stdinnull", "streamlocalbindunlink", "tag", "updatehostkeys", "visualhostkey",
    "xauthlocation"});

template <std::size_t N>
bool has(const std::array<std::string_view, N>& list, std::string_view key) { return std::ranges::find(list, key) != list.end(); }

/// The language of messages is nobody's here; another variable may be one that the user's start-up files want.
bool sends_language_only(const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [](const std::string& name) { return name == "LANG" || name.starts_with("LC_") || name == "COLORTERM" || name == "NO_COLOR"; });
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) all.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

bool has_tokens(std::string_view text) { return text.find('%') != std::string_view::npos || text.find("${") != std::string_view::npos; }
bool is_yes(const SshConfig& config, std::string_view key) {
  const std::string value = config.get(key);
  return value.empty() || value == "yes" || value == "true";
}

/// What the user chose; empty where the choice is OpenSSH's own.
std::string chosen(const Resolved& resolved, std::string_view key) {
  const std::string value = resolved.config.get(key);
  return value == resolved.defaults.get(key) ? std::string() : value;
}

/// Why an option cannot be honoured although it is in the list of those that can.
std::string beyond(const Resolved& resolved, const Login& login) {
  for (const auto& [key, value] : resolved.config.values) {
    if (has(kHonoured, key) || has(kHarmless, key)) continue;
    if (key == "controlpath" ? value == "none" : resolved.config.all(key) == resolved.defaults.all(key)) continue;
    if (key == "sendenv" && sends_language_only(resolved.config.all(key))) continue;
    return key;
  }
  for (const auto& path : login.identities) {
    if (has_tokens(path)) return "identityfile with a token";
    if (os::Fd(::open((path + "-cert.pub").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))) return "a certificate beside the identity file";
  }
  for (const auto& path : login.known_hosts) if (has_tokens(path)) return "userknownhostsfile with a token";
  if (has_tokens(login.agent)) return "identityagent with a token";
  return {};
}

std::string with_port(const std::string& name, u16 port) { return port == 22 ? name : fmt::format("[{}]:{}", name, port); }

/// `ssh -J j1,j2 host` as ssh itself goes about it: through j1 to j2, whose sshd connects on to the host.
std::vector<std::string> jump_command(const std::string& jumps, const Login& login, const Options& options) {
  const std::size_t comma = jumps.rfind(',');
  std::string last = comma == std::string::npos ? jumps : jumps.substr(comma + 1);
  std::vector<std::string> argv = {"ssh"};
  if (!options.ssh_config.empty()) argv.insert(argv.end(), {"-F", options.ssh_config});
  if (options.batch) argv.insert(argv.end(), {"-o", "BatchMode=yes"});
  if (options.accept_new_host_keys) argv.insert(argv.end(), {"-o", "StrictHostKeyChecking=accept-new"});
  argv.insert(argv.end(), {"-o", fmt::format("ConnectTimeout={:.0f}", std::max(1.0, login.timeout.count()))});
  if (comma != std::string::npos) argv.insert(argv.end(), {"-J", jumps.substr(0, comma)});
  argv.insert(argv.end(), {"-W", fmt::format("[{}]:{}", login.host, login.port), "--"});
  // user@host, user@host:port and [address]:port: only the form of a URI lets ssh itself take the port off.
  argv.push_back(last.starts_with("ssh://") ? last : "ssh://" + last);
  return argv;
}

/// The user's ProxyCommand for sh, as ssh gives it to the user's shell; empty where a token is not one of %h %n %p %r %%.
std::string proxy_command(std::string_view text, const Login& login, const Host& host) {
  std::string out = "exec ";
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') { out += text[at]; continue; }
    switch (++at < text.size() ? text[at] : '\0') {
      case 'h': out += login.host; break;
      case 'n': out += host.host; break;
      case 'p': out += fmt::format("{}", login.port); break;
      case 'r': out += login.user; break;
      case '%': out += '%'; break;
      default: return {};
    }
  }
  return out;
}

/// The option in the way; empty where the way is set.
std::string set_proxy(const Host& host, const Options& options, const SshConfig& config, Login& login) {
  const std::string jumps = config.get("proxyjump"), command = config.get("proxycommand");
  const auto is_plain = [](std::string_view name) { return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-@%") == std::string_view::npos; };
  if (!jumps.empty() && jumps != "none") {
    login.proxy = jump_command(jumps, login, options);
  } else if (!command.empty() && command != "none") {
    // They go to a shell.
    if (!is_plain(login.host) || !is_plain(login.user) || !is_plain(host.host)) return "proxycommand for an unusual name";
    const std::string line = proxy_command(command, login, host);
    if (line.empty()) return "proxycommand with a token";
    login.proxy = {"sh", "-c", line};
  }
  return {};
}

std::string agent_socket(const SshConfig& config) {
  const std::string wanted = config.get("identityagent");
  if (wanted == "none") return {};
  if (wanted.empty() || wanted == "SSH_AUTH_SOCK") {
    const char* socket = std::getenv("SSH_AUTH_SOCK");
    return socket ? socket : "";
  }
  if (wanted.starts_with('$') && !wanted.starts_with("${")) {
    const char* socket = std::getenv(wanted.c_str() + 1);
    return socket ? socket : "";
  }
  return os::expand_home(wanted);
}

UnknownKey unknown_key(const std::string& strict, const Options& options) {
  if (options.accept_new_host_keys || strict == "accept-new" || strict == "false" || strict == "no" || strict == "off") return UnknownKey::accept;
  return strict == "true" || strict == "yes" ? UnknownKey::refuse : UnknownKey::ask;
}

}  // namespace

Fit fit_login(const Host& host, const Options& options, const Resolved& resolved) {
  const SshConfig& config = resolved.config;
  Fit fit;
  Login& login = fit.login;
  const auto number = [&](std::string_view key, unsigned otherwise) {
    const std::string text = config.get(key);
    unsigned value = otherwise;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  login.host = config.get("hostname");
  login.user = config.get("user");
  login.port = static_cast<u16>(std::min(number("port", 22), 65535u));
  const std::string family = config.get("addressfamily");
  login.family = family == "inet" ? AF_INET : family == "inet6" ? AF_INET6 : AF_UNSPEC;
  login.timeout = std::min(options.connect_timeout, Seconds(std::max(1u, number("connecttimeout", 3600))));
  const std::string alias = config.get("hostkeyalias");
  login.key_name = alias.empty() ? with_port(login.host, login.port) : alias;
  std::ranges::transform(login.key_name, login.key_name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const char* key : {"userknownhostsfile", "globalknownhostsfile"})
    for (const auto& path : words(config.get(key))) if (path != "none") login.known_hosts.push_back(os::expand_home(path));
  if (!login.known_hosts.empty() && !words(config.get("userknownhostsfile")).empty() && config.get("userknownhostsfile") != "none")
    login.new_keys = login.known_hosts.front();
  login.unknown_key = unknown_key(config.get("stricthostkeychecking"), options);
  login.hashes_names = config.get("hashknownhosts") == "yes";
  for (const auto& path : config.all("identityfile")) if (path != "none") login.identities.push_back(os::expand_home(path));
  login.identities_only = config.get("identitiesonly") == "yes";
  login.agent = agent_socket(config);
  login.may_publickey = is_yes(config, "pubkeyauthentication");
  login.may_password = is_yes(config, "passwordauthentication");
  login.may_interactive = is_yes(config, "kbdinteractiveauthentication");
  login.prompts = std::clamp(number("numberofpasswordprompts", 3), 1u, 10u);
  login.may_gssapi = config.get("gssapiauthentication") == "yes";
  login.ciphers = chosen(resolved, "ciphers");
  login.macs = chosen(resolved, "macs");
  login.kex = chosen(resolved, "kexalgorithms");
  login.host_key_types = chosen(resolved, "hostkeyalgorithms");
  login.public_key_types = chosen(resolved, "pubkeyacceptedalgorithms");
  fit.beyond = beyond(resolved, login);
  const std::string way = set_proxy(host, options, config, login);
  if (fit.beyond.empty()) fit.beyond = way;
  return fit;
}

}  // namespace envsync::transport
