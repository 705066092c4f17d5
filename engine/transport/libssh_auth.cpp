// SPDX-License-Identifier: MIT
// Authentication as OpenSSH goes about it: keys of the agent that the configuration names, its other keys, key files, then what a
// person has to say. A key file is signed with at once, without asking first whether the server would take it: one round trip less.
#include <algorithm>
#include <map>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/files.hpp"
#include "transport/agent_keys.hpp"
#include "transport/libssh_link.hpp"

namespace envsync::transport {
namespace {

constexpr unsigned kPromptsMax = 32;  // LIMIT: of one round of a server's questions

class Authenticator {
 public:
  Authenticator(LibsshLink& link, const Host& host, const Options& options, bool& program_may_help)
      : link_(link), login_(link.login()), host_(host), options_(options), program_may_help_(program_may_help) {}

  Result<void> run() {
    TRY(bool is_in, by_keys());
    // Nothing was tried, so the server has not said yet what it takes.
    if (!is_in && !was_asked_) { TRY(is_in, attempt([this] { return ssh_userauth_none(session(), nullptr); })); }
    if (!is_in && offers(SSH_AUTH_METHOD_INTERACTIVE) && login_.may_interactive) { TRY(is_in, by_questions()); }
    if (!is_in && offers(SSH_AUTH_METHOD_PASSWORD) && login_.may_password) { TRY(is_in, by_password()); }
    if (is_in) return ok();
    return refused();
  }

 private:
  struct File { std::string path, public_text; bool is_from_pub = false; };

  ssh_session session() const { return link_.session(); }
  bool can_ask() const { return options_.ask && !options_.batch; }
  bool offers(unsigned method) const { return (static_cast<unsigned>(ssh_userauth_list(session(), nullptr)) & method) != 0; }
  std::string who() const { return fmt::format("{}@{}", login_.user, login_.host); }

  /// One attempt; true where it let us in. A partial success counts as a denial: what else is wanted is tried next.
  template <class Operation>
  Result<bool> attempt(Operation operation) {
    auto status = link_.drive(operation);
    was_asked_ = true;
    if (!status && status.error().code == ErrorCode::interrupted) return std::move(status).error();
    if (!status) return broken(status.error().what);
    if (*status == static_cast<int>(SSH_AUTH_ERROR)) return broken(printable(ssh_get_error(session())));
    return *status == static_cast<int>(SSH_AUTH_SUCCESS);
  }

  /// A server that counts attempts hangs up, and not each says why.
  Error broken(const std::string& why) const {
    Error error(tried_.empty() ? ErrorCode::connect_failed : ErrorCode::auth_failed, fmt::format("'{}' ended the connection in the login of '{}'", host_.name, login_.user));
    error.causes = tried_;
    error.causes.push_back(why);
    if (tried_.size() > 1 && !login_.identities_only) error.hints.emplace_back("set IdentityFile and 'IdentitiesOnly yes' for this host in ssh_config");
    error.hints.push_back(fmt::format("run `{} true`", ssh_to_paste(host_, options_)));
    return error;
  }

  Result<bool> by_keys() {
    if (!login_.may_publickey) return false;
    const std::vector<File> files = public_halves();
    std::vector<std::string> offered;
    TRY(bool is_in, by_agent(files, offered));
    for (const File& file : files) {
      if (is_in) break;
      if (!file.public_text.empty() && std::ranges::find(offered, file.public_text) != offered.end()) continue;
      TRY(is_in, by_file(file));
    }
    return is_in;
  }

  /// The identities that exist, with the public halves that lie beside them.
  std::vector<File> public_halves() const {
    std::vector<File> files;
    for (const auto& path : login_.identities) {
      const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      const std::string beside = path + ".pub";
      ssh_key raw = nullptr;
      const bool has_public = ssh_pki_import_pubkey_file(beside.c_str(), &raw) == SSH_OK || ssh_pki_import_pubkey_file(path.c_str(), &raw) == SSH_OK;
      const Key key(raw);
      if (file || has_public) files.push_back({path, has_public ? base64_of(raw) : std::string(), has_public});
    }
    return files;
  }

  Result<bool> by_agent(const std::vector<File>& files, std::vector<std::string>& offered) {
    agent_ = AgentKeys::open(login_.agent);
    if (!agent_) {
      if (!login_.agent.empty()) tried_.emplace_back("agent: it does not answer");
      return false;
    }
    std::vector<AgentKey> chosen;
    const auto take = [&](const AgentKey& key) {
      if (std::ranges::any_of(chosen, [&](const AgentKey& other) { return other.blob == key.blob; })) return;
      chosen.push_back(key);
      offered.push_back(to_base64(key.blob));
    };
    for (const File& file : files)
      for (const AgentKey& key : agent_->keys()) if (to_base64(key.blob) == file.public_text) take(key);
    if (!login_.identities_only) std::ranges::for_each(agent_->keys(), take);
    if (chosen.empty()) return false;
    for (const AgentKey& key : chosen) tried_.push_back(fmt::format("key '{}' of the agent", printable(key.comment)));
    auto fd = agent_->serve(std::move(chosen));
    if (!fd || ssh_set_agent_socket(session(), fd->get()) != SSH_OK) return false;
    static_cast<void>(fd->release());
    return attempt([this] { return ssh_userauth_agent(session(), nullptr); });
  }

  /// A private key that others can read is not used, as with ssh.
  bool is_too_open(const std::string& path) {
    const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto stat = file ? os::stat_fd(file.get()) : Result<os::Stat>(Error());
    return stat && stat->uid == ::getuid() && (stat->mode & 077) != 0;
  }

  Result<bool> by_file(const File& file) {
    if (is_too_open(file.path)) {
      tried_.push_back(fmt::format("key '{}': not used, for others may read it", printable(file.path)));
      return false;
    }
    ssh_key raw = nullptr;
    int status = ssh_pki_import_privkey_file(file.path.c_str(), "", nullptr, nullptr, &raw);
    if (status != SSH_OK) { TRY(raw, with_passphrase(file)); }
    const Key key(raw);
    if (!key) return false;
    tried_.push_back(fmt::format("key '{}'", printable(file.path)));
    return attempt([&] { return ssh_userauth_publickey(session(), nullptr, raw); });
  }

  /// The old forms say it in words; OpenSSH's own names its cipher first, in base64.
  static bool is_encrypted(std::string_view text) {
    constexpr std::string_view kOwn = "b3BlbnNzaC1rZXktdjEA", kOwnOpen = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUA";
    if (text.find("ENCRYPTED") != std::string_view::npos) return true;
    return text.find(kOwn) != std::string_view::npos && text.find(kOwnOpen) == std::string_view::npos;
  }

  /// Null where there is nothing to be had.
  Result<ssh_key> with_passphrase(const File& file) {
    constexpr std::size_t kKeyBytesMax = 64u << 10;
    const os::Fd fd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    Bytes text(kKeyBytesMax);
    const auto got = fd ? os::read_at(fd.get(), 0, text, file.path) : Result<std::size_t>(std::size_t{0});
    if (!got || *got == 0) return nullptr;
    if (!is_encrypted(as_text(std::span(text).first(*got)))) {
      tried_.push_back(fmt::format("key '{}': libssh cannot use it", printable(file.path)));
      program_may_help_ = true;
      return nullptr;
    }
    if (file.is_from_pub) {
      // Nobody is asked for the passphrase of a key that the server does not want.
      ssh_key raw = nullptr;
      if (ssh_pki_import_pubkey_file((file.path + ".pub").c_str(), &raw) == SSH_OK) {
        const Key key(raw);
        auto status = link_.drive([&] { return ssh_userauth_try_publickey(session(), nullptr, raw); });
        was_asked_ = true;
        if (!status) return std::move(status).error();
        if (*status != static_cast<int>(SSH_AUTH_SUCCESS)) {
          tried_.push_back(fmt::format("key '{}'", printable(file.path)));
          return nullptr;
        }
      }
    }
    if (!can_ask()) {
      tried_.push_back(fmt::format("key '{}': it has a passphrase, and nobody can be asked", printable(file.path)));
      return nullptr;
    }
    for (unsigned i = 0; i < login_.prompts; ++i) {
      const auto passphrase = options_.ask({Prompt::Kind::secret, host_.name, fmt::format("Passphrase of the key '{}'", file.path)});
      if (!passphrase) break;
      ssh_key raw = nullptr;
      if (ssh_pki_import_privkey_file(file.path.c_str(), passphrase->c_str(), nullptr, nullptr, &raw) == SSH_OK) return raw;
    }
    tried_.push_back(fmt::format("key '{}': no passphrase that opens it", printable(file.path)));
    return nullptr;
  }

  Result<bool> by_questions() {
    if (!can_ask()) return nobody("keyboard-interactive");
    for (unsigned i = 0; i < login_.prompts; ++i) {
      for (;;) {
        auto status = link_.drive([this] { return ssh_userauth_kbdint(session(), nullptr, nullptr); });
        if (!status && status.error().code == ErrorCode::interrupted) return std::move(status).error();
        if (!status) return broken(status.error().what);
        if (*status == static_cast<int>(SSH_AUTH_SUCCESS)) return true;
        if (*status == static_cast<int>(SSH_AUTH_ERROR)) return broken(printable(ssh_get_error(session())));
        if (*status != static_cast<int>(SSH_AUTH_INFO)) break;
        if (!answer_questions()) return false;
      }
      if (i == 0) tried_.emplace_back("keyboard-interactive");
      if (!offers(SSH_AUTH_METHOD_INTERACTIVE)) return false;
    }
    return false;
  }

  bool answer_questions() {
    const int count = ssh_userauth_kbdint_getnprompts(session());
    if (count < 0 || static_cast<unsigned>(count) > kPromptsMax) return false;
    for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
      char is_echoed = 0;
      const char* const text = ssh_userauth_kbdint_getprompt(session(), i, &is_echoed);
      const auto answer = options_.ask({is_echoed ? Prompt::Kind::visible : Prompt::Kind::secret, host_.name, fmt::format("{}: {}", who(), printable(text ? text : ""))});
      if (!answer || ssh_userauth_kbdint_setanswer(session(), i, answer->c_str()) < 0) return false;
    }
    return true;
  }

  Result<bool> by_password() {
    if (!can_ask()) return nobody("password");
    bool is_in = false;
    for (unsigned i = 0; i < login_.prompts && !is_in; ++i) {
      const auto password = options_.ask({Prompt::Kind::secret, host_.name, fmt::format("Password of {}", who())});
      if (!password) return false;
      if (i == 0) tried_.emplace_back("password");
      TRY(is_in, attempt([&] { return ssh_userauth_password(session(), nullptr, password->c_str()); }));
    }
    return is_in;
  }

  bool nobody(std::string_view method) {
    tried_.push_back(fmt::format("{}: nobody can be asked", method));
    // Where there is a terminal that only the ssh program may use.
    program_may_help_ = program_may_help_ || !options_.batch;
    return false;
  }

  Error refused() {
    program_may_help_ = program_may_help_ || (login_.may_gssapi && offers(SSH_AUTH_METHOD_GSSAPI_MIC));
    Error error(ErrorCode::auth_failed, fmt::format("'{}' refused the login of '{}'", host_.name, login_.user));
    if (tried_.empty()) tried_.emplace_back("no key was found to try");
    error.causes = tried_;
    std::vector<std::string_view> methods;
    constexpr std::pair<unsigned, std::string_view> kMethods[] = {{SSH_AUTH_METHOD_PUBLICKEY, "publickey"}, {SSH_AUTH_METHOD_PASSWORD, "password"},
        {SSH_AUTH_METHOD_INTERACTIVE, "keyboard-interactive"}, {SSH_AUTH_METHOD_GSSAPI_MIC, "gssapi-with-mic"}, {SSH_AUTH_METHOD_HOSTBASED, "hostbased"}};
    for (const auto& [bit, name] : kMethods) if (offers(bit)) methods.push_back(name);
    error.causes.push_back(fmt::format("the server takes: {}", fmt::join(methods, ", ")));
    error.hints.push_back(fmt::format("run `{} true` to see which keys are offered", ssh_to_paste(host_, options_).replace(0, 3, "ssh -v")));
    return error;
  }

  LibsshLink& link_;
  const Login& login_;
  const Host& host_;
  const Options& options_;
  bool& program_may_help_;
  std::unique_ptr<AgentKeys> agent_;
  std::vector<std::string> tried_;
  bool was_asked_ = false;
};

}  // namespace

Result<void> authenticate_by_libssh(LibsshLink& link, const Host& host, const Options& options, bool& program_may_help) {
  return Authenticator(link, host, options, program_may_help).run();
}

}  // namespace envsync::transport
