// SPDX-License-Identifier: MIT
#include "transport/libssh_link.hpp"

#include <algorithm>
#include <iterator>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <libssh/callbacks.h>

namespace envsync::transport {
namespace {

// Without AES in hardware, or where tags are not checked, chacha20 first: it has its own authenticator.
constexpr const char* kGcmFirst = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";
constexpr const char* kChachaFirst = "chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";
constexpr const char* kNoGcm = "chacha20-poly1305@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr";
constexpr const char* kEtmFirst = "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512";
constexpr Seconds kLastWords{1};
constexpr const char* kHostKeyTypes = "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,rsa-sha2-512,rsa-sha2-256";

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> all;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end > 0) all.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return all;
}

std::string joined(const std::vector<std::string>& all) { return fmt::format("{}", fmt::join(all, ",")); }

std::string ciphers_for(const std::string& chosen, bool is_sound) {
  if (chosen.empty()) return !is_sound ? kNoGcm : os::cpu_has("aes") ? kGcmFirst : kChachaFirst;
  if (is_sound) return chosen;
  auto all = split(chosen);
  std::erase_if(all, [](const std::string& name) { return name.find("-gcm") != std::string::npos; });
  return joined(all);
}

/// A server has several host keys and shows the one we ask for: one that is known, if there is any.
std::string host_key_types(const std::string& chosen, const std::vector<std::string>& known) {
  auto all = split(chosen.empty() ? kHostKeyTypes : chosen.c_str());
  std::erase_if(all, [](const std::string& name) { return name.find("-cert-") != std::string::npos || name.starts_with("sk-"); });
  std::ranges::stable_partition(all, [&](const std::string& name) {
    return std::ranges::find(known, name.starts_with("rsa-sha2-") ? "ssh-rsa" : name) != known.end();
  });
  return joined(all);
}

}  // namespace

std::string base64_of(ssh_key key) {
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK || !text) return {};
  std::string out(text);
  ssh_string_free_char(text);
  return out;
}

std::string fingerprint_of(ssh_key key) {
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0) return {};
  char* text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
  ssh_clean_pubkey_hash(&hash);
  std::string out(text ? text : "");
  ssh_string_free_char(text);
  return out;
}

Result<std::unique_ptr<LibsshLink>> LibsshLink::prepare(const Host& host, const Options& options, Login login) {
  std::unique_ptr<LibsshLink> link(new LibsshLink(host, options, std::move(login)));
  auto known = read_known_hosts(link->login_.known_hosts);
  if (!known) return std::move(known).error().context(fmt::format("cannot check the host key of '{}'", host.name));
  link->known_ = std::move(*known);
  link->wake_ = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  link->session_ = ssh_new();
  ENVSYNC_CHECK(link->wake_ && link->session_);
  TRY_STATUS(link->set_options());
  return link;
}

LibsshLink::~LibsshLink() {
  if (!session_) return;
  ssh_disconnect(session_);
  ssh_free(session_);
}

Result<void> LibsshLink::set_options() {
  const int on = 1, strict = 1;
  const bool reads_config = false;
  const auto set = [&](ssh_options_e option, const void* value, std::string_view name) -> Result<void> {
    if (ssh_options_set(session_, option, value) == SSH_OK) return ok();
    Error error(ErrorCode::connect_failed, fmt::format("libssh cannot honour '{}' of ssh_config for '{}'", name, host_.name));
    error.hints.emplace_back("write 'transport: openssh' for this host");
    return error;
  };
  if (known_.has_authority(login_.key_name)) {
    Error error(ErrorCode::connect_failed, fmt::format("libssh cannot honour '@cert-authority' of known_hosts for '{}'", host_.name));
    error.hints.emplace_back("write 'transport: openssh' for this host");
    return error;
  }
  const std::string ciphers = ciphers_for(login_.ciphers, has_sound_libssh());
  const std::string types = host_key_types(login_.host_key_types, known_.types_of(login_.key_name));
  const std::string macs = login_.macs.empty() ? kEtmFirst : login_.macs;
  TRY_STATUS(set(SSH_OPTIONS_PROCESS_CONFIG, &reads_config, "Include"));
  // The session is given a descriptor and known_hosts is our own code: it needs no name.
  TRY_STATUS(set(SSH_OPTIONS_HOST, "peer", "HostName"));
  TRY_STATUS(set(SSH_OPTIONS_USER, login_.user.c_str(), "User"));
  TRY_STATUS(set(SSH_OPTIONS_STRICTHOSTKEYCHECK, &strict, "StrictHostKeyChecking"));
  TRY_STATUS(set(SSH_OPTIONS_KNOWNHOSTS, "/dev/null", "UserKnownHostsFile"));
  TRY_STATUS(set(SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null", "GlobalKnownHostsFile"));
  TRY_STATUS(set(SSH_OPTIONS_NODELAY, &on, "TCPNoDelay"));
  TRY_STATUS(set(SSH_OPTIONS_CIPHERS_C_S, ciphers.c_str(), "Ciphers"));
  TRY_STATUS(set(SSH_OPTIONS_CIPHERS_S_C, ciphers.c_str(), "Ciphers"));
  TRY_STATUS(set(SSH_OPTIONS_HMAC_C_S, macs.c_str(), "MACs"));
  TRY_STATUS(set(SSH_OPTIONS_HMAC_S_C, macs.c_str(), "MACs"));
  TRY_STATUS(set(SSH_OPTIONS_HOSTKEYS, types.c_str(), "HostKeyAlgorithms"));
  if (!login_.kex.empty()) TRY_STATUS(set(SSH_OPTIONS_KEY_EXCHANGE, login_.kex.c_str(), "KexAlgorithms"));
  if (!login_.public_key_types.empty()) TRY_STATUS(set(SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES, login_.public_key_types.c_str(), "PubkeyAcceptedAlgorithms"));
  ssh_set_blocking(session_, 0);
  return ok();
}

void LibsshLink::wake() const noexcept {
  const u64 one = 1;
  // It fails only where the counter is full, which wakes as well.
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

Result<void> LibsshLink::await(Deadline deadline) {
  const int fd = ssh_get_fd(session_);
  if (fd < 0) return Error(ErrorCode::connection_lost, "the connection was closed");
  // A server that waits for our acknowledgement before it sends its next small packet would have us wait 40 ms each time.
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
  const bool has_more = (ssh_get_status(session_) & SSH_WRITE_PENDING) != 0;
  return await_ready(fd, has_more ? POLLIN | POLLOUT : POLLIN, wake_.get(), deadline);
}

Error LibsshLink::in_step(std::string_view step, Error cause) const {
  if (cause.code == ErrorCode::interrupted) return cause;
  Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': {}", host_.name, step));
  error.causes.push_back(fmt::format("{}: {}", peer_, cause.what));
  if (proxy_) {
    // Where it gave up it says why on its way out.
    if (proxy_->child.wait(deadline_in(kLastWords))) proxy_->stderr_drain.stop();
    for (auto& line : last_lines(proxy_->stderr_drain.log()->text())) error.causes.push_back(std::move(line));
  }
  error.hints.push_back(fmt::format("run `{} true`", ssh_to_paste(host_, options_)));
  return error;
}

Result<void> LibsshLink::connect(bool own_group, const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { wake(); });
  TRY(Dialled dialled, dial(host_, options_, login_, own_group, wake_.get()));
  peer_ = dialled.peer;
  address_ = dialled.address;
  proxy_ = std::move(dialled.proxy);
  const socket_t fd = dialled.socket.get();
  if (ssh_options_set(session_, SSH_OPTIONS_FD, &fd) != SSH_OK) return in_step("libssh takes no socket", Error(ErrorCode::connect_failed, ssh_get_error(session_)));
  static_cast<void>(dialled.socket.release());
  TRY_STATUS(exchange_keys());
  TRY_STATUS(check_host_key());
  return authenticate_by_libssh(*this, host_, options_, program_may_help_);
}

Result<void> LibsshLink::exchange_keys() {
  auto status = drive([this] { return ssh_connect(session_); });
  if (!status) return in_step("the server did not finish the key exchange", std::move(status).error());
  if (*status != SSH_OK) return in_step("no key exchange with the server", Error(ErrorCode::connect_failed, printable(ssh_get_error(session_))));
  return ok();
}

Result<void> LibsshLink::check_host_key() {
  ssh_key raw = nullptr;
  if (ssh_get_server_publickey(session_, &raw) != SSH_OK) return in_step("the server has no host key", Error(ErrorCode::connect_failed, ssh_get_error(session_)));
  const Key key(raw);
  const char* const type = ssh_key_type_to_char(ssh_key_type(raw));
  const std::string text = base64_of(raw), line = fmt::format("{} {}", type ? type : "", text);
  const KnownHosts::Found found = known_.look(login_.key_name, type ? type : "", text);
  if (found.verdict == Verdict::revoked) {
    Error error(ErrorCode::host_key_mismatch, fmt::format("'{}' presented a host key that is marked as revoked", host_.name));
    error.where = found.where;
    error.at_notes.push_back(fmt::format("offered {}", fingerprint_of(raw)));
    error.notes.emplace_back("envsync did not authenticate and sent nothing");
    return error;
  }
  TRY(const bool is_known, is_pinned(line, raw));
  if (is_known) return ok();
  if (found.verdict == Verdict::changed) {
    std::string forget = "ssh-keygen -R " + shell_quoted(login_.key_name);
    if (!found.where.file.empty()) forget = fmt::format("ssh-keygen -f {} -R {}", shell_quoted(found.where.file), shell_quoted(login_.key_name));
    return changed_key_error(host_, fingerprint_of(raw), found.where, forget);
  }
  if (found.verdict != Verdict::known) return take_unknown_key(line, raw, found);
  const std::lock_guard lock(options_.pins->mutex);
  options_.pins->keys[login_.key_name] = line;
  return ok();
}

Result<bool> LibsshLink::is_pinned(const std::string& line, ssh_key key) {
  const std::lock_guard lock(options_.pins->mutex);
  const auto pinned = options_.pins->keys.find(login_.key_name);
  if (pinned == options_.pins->keys.end()) return false;
  if (pinned->second == line) return true;
  return changed_key_error(host_, fingerprint_of(key), std::nullopt, {}).note("another connection of this run was shown another key");
}

Result<void> LibsshLink::take_unknown_key(const std::string& line, ssh_key key, const KnownHosts::Found& found) {
  const std::lock_guard deciding(options_.pins->deciding);
  TRY(const bool is_known_by_now, is_pinned(line, key));
  if (is_known_by_now) return ok();
  const std::string shown = fmt::format("{} {}", ssh_key_type_to_char(ssh_key_type(key)), fingerprint_of(key));
  // Another type where some are known is what a machine in the middle would show: that takes a person.
  bool is_accepted = login_.unknown_key == UnknownKey::accept && found.verdict == Verdict::unknown;
  const bool can_ask = options_.ask && !options_.batch && login_.unknown_key != UnknownKey::refuse;
  if (!is_accepted && can_ask) {
    const std::string text = fmt::format("'{}' ({}) shows the host key {}, which is not known. Is it the right one?", host_.name, peer_, shown);
    is_accepted = options_.ask({Prompt::Kind::yes_no, host_.name, text}) == "yes";
  }
  if (!is_accepted) {
    Error error(ErrorCode::host_key_unknown, fmt::format("the host key of '{}' is not known", host_.name));
    error.causes.push_back(fmt::format("{} shows {}", peer_, shown));
    if (found.verdict == Verdict::other_type) error.causes.push_back(fmt::format("'{}' line {} knows a key of another type", found.where.file, found.where.line));
    error.notes.emplace_back("envsync did not authenticate and sent nothing");
    error.hints.push_back(fmt::format("run `{} true` once and compare the fingerprint", ssh_to_paste(host_, options_)));
    error.hints.emplace_back("run again with --accept-new-host-keys to accept the keys of hosts that are not known");
    return error;
  }
  {
    const std::lock_guard lock(options_.pins->mutex);
    options_.pins->keys[login_.key_name] = line;
  }
  if (login_.new_keys.empty()) return ok();
  const std::size_t space = line.find(' ');
  const auto kept = append_known_host(login_.new_keys, login_.key_name, line.substr(0, space), line.substr(space + 1), login_.hashes_names);
  // Pinned for this run all the same; the next one will ask again.
  if (!kept) words_->append(fmt::format("the host key could not be written to '{}': {}\n", login_.new_keys, kept.error().what));
  return ok();
}

}  // namespace envsync::transport
