// SPDX-License-Identifier: MIT
// Private to transport: one libssh session, from its options to an authenticated connection. It is used by one thread at a time.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include <libssh/libssh.h>

#include "transport/dial.hpp"
#include "transport/known_hosts.hpp"

namespace envsync::transport {

/// Whether a libssh checks the tags of AES-GCM, and with it whether it has the fixes of that time: `version` as ssh_version() has
/// it, `package` as the distribution counts it, empty where unknown.
bool is_sound_libssh(std::string_view version, std::string_view package);
/// Of the library that this process has loaded.
bool has_sound_libssh();

struct KeyDeleter { void operator()(ssh_key key) const { ssh_key_free(key); } };
using Key = std::unique_ptr<ssh_key_struct, KeyDeleter>;
/// Base64, as in known_hosts and .pub files; empty where the key has no public part.
std::string base64_of(ssh_key key);
/// "SHA256:..."
std::string fingerprint_of(ssh_key key);

class LibsshLink {
 public:
  /// Sets what `login` says. An error names the option that this libssh does not take.
  static Result<std::unique_ptr<LibsshLink>> prepare(const Host&, const Options&, Login);
  ~LibsshLink();
  /// Dials, agrees on keys, checks the host's key, authenticates.
  Result<void> connect(bool own_group, const std::stop_token&);
  /// Whether the ssh program knows a way to authenticate that was wanted and is not known here. After a failure of connect().
  bool program_may_help() const { return program_may_help_; }

  ssh_session session() const { return session_; }
  int wake_fd() const { return wake_.get(); }
  /// Makes every wait return. From any thread.
  void wake() const noexcept;
  const Login& login() const { return login_; }
  const std::shared_ptr<BoundedText>& words() const { return words_; }
  const std::string& address() const { return address_; }

  /// Calls a non-blocking operation until it stops asking for more time.
  template <class Operation>
  Result<int> drive(Operation operation) {
    const Deadline deadline = deadline_in(login_.timeout);
    for (;;) {
      const int status = operation();
      if (status != SSH_AGAIN && status != static_cast<int>(SSH_AUTH_AGAIN)) return status;
      TRY_STATUS(await(deadline));
    }
  }

 private:
  LibsshLink(const Host& host, const Options& options, Login login) : host_(host), options_(options), login_(std::move(login)) {}
  Result<void> set_options();
  Result<void> exchange_keys();
  Result<void> check_host_key();
  /// True where the key is the one of this run; false where none is pinned yet.
  Result<bool> is_pinned(const std::string& line, ssh_key key);
  Result<void> take_unknown_key(const std::string& line, ssh_key key, const KnownHosts::Found& found);
  Result<void> await(Deadline deadline);
  Error in_step(std::string_view step, Error cause) const;

  Host host_;
  Options options_;
  Login login_;
  KnownHosts known_;
  ssh_session session_ = nullptr;
  os::Fd wake_;
  std::unique_ptr<Proxy> proxy_;
  std::string peer_, address_;
  std::shared_ptr<BoundedText> words_ = std::make_shared<BoundedText>();  // what the far side wrote to stderr
  bool program_may_help_ = false;
};

/// Authenticates a session whose host key was accepted. `program_may_help`: see LibsshLink.
Result<void> authenticate_by_libssh(LibsshLink&, const Host&, const Options&, bool& program_may_help);

}  // namespace envsync::transport
