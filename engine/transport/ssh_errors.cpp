// SPDX-License-Identifier: MIT
// OpenSSH says by its exit status only that it failed (255); why is in its words on stderr, which are not translated.
#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "transport/ssh.hpp"

namespace envsync::transport {
namespace {

constexpr std::size_t kLinesMax = 12, kLineBytesMax = 300;

bool has(std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; }

/// "Offending ED25519 key in /home/u/.ssh/known_hosts:27"
std::optional<Location> offending_key(std::string_view text) {
  const std::size_t begin = text.find("Offending ");
  if (begin == std::string_view::npos) return std::nullopt;
  auto line = text.substr(begin, text.substr(begin).find_first_of("\r\n"));
  const std::size_t in = line.find(" key in ");
  const std::size_t colon = line.rfind(':');
  if (in == std::string_view::npos || colon == std::string_view::npos || colon < in + 8) return std::nullopt;
  Location where;
  where.file = line.substr(in + 8, colon - in - 8);
  std::from_chars(line.data() + colon + 1, line.data() + line.size(), where.line);
  return where;
}

/// The command that ssh itself proposes, or one made from the host's name.
std::string forget_command(const Host& host, std::string_view text) {
  const std::size_t begin = text.find("ssh-keygen -f");
  if (begin != std::string_view::npos) return std::string(text.substr(begin, text.substr(begin).find_first_of("\r\n")));
  const std::string name = host.port ? fmt::format("[{}]:{}", host.host, host.port) : host.host;
  return "ssh-keygen -R " + shell_quoted(name);
}

Error changed_key(const Host& host, std::string_view text) {
  const std::size_t offered = text.find("SHA256:");
  std::string_view fingerprint;
  if (offered != std::string_view::npos) {
    fingerprint = text.substr(offered, text.substr(offered).find_first_of(" \r\n"));
    if (fingerprint.ends_with('.')) fingerprint.remove_suffix(1);
  }
  return changed_key_error(host, fingerprint, offending_key(text), forget_command(host, text));
}

Error revoked_key(const Host& host, std::string_view text) {
  Error error(ErrorCode::host_key_mismatch, fmt::format("'{}' presented a host key that is marked as revoked", host.name));
  error.causes = last_lines(text);
  error.notes.emplace_back("envsync did not authenticate and sent nothing");
  return error;
}

Error unknown_key(const Host& host, const Options& options, std::string_view text) {
  Error error(ErrorCode::host_key_unknown, fmt::format("the host key of '{}' is not known", host.name));
  error.causes = last_lines(text);
  error.notes.emplace_back("envsync did not authenticate and sent nothing");
  error.hints.push_back(fmt::format("run `{} true` once and compare the fingerprint", ssh_to_paste(host, options)));
  error.hints.emplace_back("run again with --accept-new-host-keys to accept the keys of hosts that are not known");
  return error;
}

Error refused_login(const Host& host, const Options& options, std::string_view text) {
  Error error(ErrorCode::auth_failed, fmt::format("'{}' refused the login", host.name));
  error.causes = last_lines(text);
  error.hints.push_back(fmt::format("run `{} true` to see which keys are offered",
                                    ssh_to_paste(host, options).replace(0, 3, "ssh -v")));
  return error;
}

/// The step that failed, and what to look at.
struct Step { std::string_view words, what, hint; };
constexpr Step kSteps[] = {
    {"Could not resolve hostname", "its name does not resolve", "correct the name in the manifest, or give it a HostName in ssh_config"},
    {"Connection refused", "no TCP connection", "see that the host is up and that its sshd listens on that port"},
    {"No route to host", "no TCP connection", "see that the host is up and that the network leads there"},
    {"Network is unreachable", "no TCP connection", "see that the network leads there"},
    {"timed out", "no TCP connection", "see that the host is up and that no firewall is between"},
    {"Unable to negotiate", "no key exchange with the server", ""},
    {"kex_exchange_identification", "no key exchange with the server", "see whether the server limits connections (MaxStartups, PerSourcePenalties)"},
};

}  // namespace

std::vector<std::string> last_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // The frame that ssh draws around its warnings.
    if (line.find_first_not_of(" \t@") == std::string_view::npos) continue;
    lines.push_back(printable(line.substr(0, kLineBytesMax)));
  }
  if (lines.size() > kLinesMax) lines.erase(lines.begin(), lines.end() - kLinesMax);
  return lines;
}

Error changed_key_error(const Host& host, std::string_view offered, std::optional<Location> known, std::string_view forget) {
  Error error(ErrorCode::host_key_mismatch, fmt::format("'{}' presented a different host key than the one known", host.name));
  error.where = std::move(known);
  if (!offered.empty()) error.at_notes.push_back(fmt::format("offered {}", printable(offered)));
  error.notes.emplace_back("envsync did not authenticate and sent nothing");
  if (!forget.empty()) error.hints.push_back(fmt::format("verify the new fingerprint out of band, then run `{}`", printable(forget)));
  return error;
}

Error ssh_error(const Host& host, const Options& options, std::string_view text) {
  if (has(text, "REMOTE HOST IDENTIFICATION HAS CHANGED")) return changed_key(host, text);
  if (has(text, "REVOKED HOST KEY")) return revoked_key(host, text);
  if (has(text, "Host key verification failed")) return unknown_key(host, options, text);
  if (has(text, "Permission denied (") || has(text, "Too many authentication failures") || has(text, "No more authentication methods"))
    return refused_login(host, options, text);
  Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}'", host.name));
  error.causes = last_lines(text);
  const auto* const step = std::ranges::find_if(kSteps, [&](const Step& one) { return has(text, one.words); });
  if (step != std::end(kSteps)) {
    error.what += fmt::format(": {}", step->what);
    if (!step->hint.empty()) error.hints.emplace_back(step->hint);
  }
  error.hints.push_back(fmt::format("run `{} true`", ssh_to_paste(host, options)));
  return error;
}

}  // namespace envsync::transport
