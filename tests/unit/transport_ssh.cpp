// SPDX-License-Identifier: MIT
// The ssh transport against a program named `ssh` that records its arguments and answers as OpenSSH does.
#include "transport/transport.hpp"

#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>

#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::transport;
using envsync::testing::Folder;

namespace {

constexpr std::string_view kAgent =
    "#!/bin/sh\ncase $1 in --version) exit 0;; esac\nprintf 'HELLO\\n'\nexec cat\n";
constexpr std::string_view kDefaults =
    "host x\nuser op\nhostname box.example\nport 22\nidentityfile ~/.ssh/id_a\nidentityfile ~/.ssh/id_b\nstdinnull no\nsessiontype default\n"
    "forkafterauthentication no\nserveraliveinterval 0\nloglevel INFO\nciphers chacha20-poly1305@openssh.com,aes128-gcm@openssh.com\n";

/// A PATH that begins with a folder where `ssh` is the test's.
class FakeSsh {
 public:
  FakeSsh() : path_(std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin") {
    folder.write("defaults", kDefaults);
    folder.write("config", kDefaults);
    folder.write("agent", kAgent, 0755);
    folder.mkdir("home");
    folder.write("bin/ssh",
                 "#!/bin/sh\n"
                 "d=" + folder.path() + "\n"
                 "case \" $* \" in *' -F /dev/null -G '*) cat $d/defaults; exit 0;; *' -G '*) printf '%s\\n' \"$@\" >$d/asked; cat $d/config; exit 0;; esac\n"
                 "printf '%s\\n' \"$@\" >$d/arguments\n"
                 "if [ -e $d/words ]; then cat $d/words >&2; exit 255; fi\n"
                 "for line; do :; done\n"
                 "HOME=$d/home; export HOME; unset XDG_CACHE_HOME; exec sh -c \"$line\"\n", 0755);
    ::setenv("PATH", (folder.path("bin") + ":" + path_).c_str(), 1);
    options.agent_path = folder.path("agent");
    options.agent_digest = "0123abcd";
    options.batch = true;
  }
  ~FakeSsh() { ::setenv("PATH", path_.c_str(), 1); }

  Error fails_with(std::string_view words) {
    folder.write("words", words);
    auto connected = connect(host, options, {}, {});
    REQUIRE_FALSE(connected);
    return std::move(connected).error();
  }
  std::vector<std::string> arguments() const {
    std::vector<std::string> lines;
    std::string text = folder.read("arguments");
    for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) lines.push_back(text.substr(0, end));
    return lines;
  }
  /// Whether the arguments hold `a` followed by `b`.
  bool has(const std::string& a, const std::string& b) const {
    const auto all = arguments();
    for (std::size_t i = 0; i + 1 < all.size(); ++i)
      if (all[i] == a && all[i + 1] == b) return true;
    return false;
  }

  Folder folder;
  Options options;
  Host host{.name = "web-01", .kind = Kind::openssh, .user = "", .host = "web", .port = 0, .identity = "", .jump = "", .command = {}};

 private:
  std::string path_;
};

bool has_hint(const Error& error, std::string_view text) {
  return std::ranges::any_of(error.hints, [&](const std::string& hint) { return hint.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("ssh carries the start of the agent in one exec, without terminal, forwarding or compression") {
  FakeSsh ssh;
  auto connected = connect(ssh.host, ssh.options, as_bytes("request"), {});
  REQUIRE(connected);
  CHECK(connected->transport == "openssh");
  CHECK(connected->agent_uploaded);
  CHECK(ssh.folder.has("home/.cache/envsync-" + std::to_string(::geteuid()) + "/envsync-agent-0123abcd"));
  const auto arguments = ssh.arguments();
  for (const char* flag : {"-T", "-a", "-x"}) CHECK(std::ranges::count(arguments, flag) == 1);
  CHECK(ssh.has("-o", "BatchMode=yes"));
  CHECK(ssh.has("-o", "Compression=no"));
  CHECK(ssh.has("-o", "ConnectTimeout=30"));
  CHECK(ssh.has("-o", "ServerAliveInterval=10"));
  REQUIRE(arguments.size() > 3);
  CHECK(*(arguments.end() - 3) == "--");
  CHECK(*(arguments.end() - 2) == "web");
  CHECK(arguments.back().starts_with("exec sh -c '"));
  CHECK(arguments.back().find_first_of("!\\\n") == std::string::npos);
  CHECK(std::ranges::count(arguments.back(), '\'') == 2);
  CHECK_FALSE(ssh.has("-o", "StrictHostKeyChecking=accept-new"));
}

TEST_CASE("what the manifest says of a host reaches ssh and ssh -G alike") {
  FakeSsh ssh;
  ssh.folder.write("id", "");
  ssh.host = {.name = "web-01", .kind = Kind::openssh, .user = "deploy", .host = "web", .port = 2222,
              .identity = ssh.folder.path("id"), .jump = "bastion", .command = {}};
  ssh.options.ssh_config = "/etc/my_config";
  ssh.options.accept_new_host_keys = true;
  ssh.options.connect_timeout = Seconds(7);
  REQUIRE(connect(ssh.host, ssh.options, {}, {}));
  using Pair = std::pair<const char*, std::string>;
  for (const auto& [option, value] : {Pair{"-F", "/etc/my_config"}, {"-p", "2222"}, {"-l", "deploy"}, {"-i", ssh.folder.path("id")}, {"-J", "bastion"}}) {
    CHECK(ssh.has(option, value));
    CHECK(ssh.folder.read("asked").find(std::string(option) + "\n" + value + "\n") != std::string::npos);
  }
  CHECK(ssh.has("-o", "StrictHostKeyChecking=accept-new"));
  CHECK(ssh.has("-o", "ConnectTimeout=7"));
}

TEST_CASE("the fast cipher is asked for only where the user left the ciphers to OpenSSH") {
  FakeSsh ssh;
  const auto first = connect(ssh.host, ssh.options, {}, {});
  REQUIRE(first);
  CHECK(ssh.has("-o", "Ciphers=^aes128-gcm@openssh.com") == (first->detail == "aes128-gcm asked for"));
  ssh.folder.write("config", "ciphers aes128-gcm@openssh.com,aes256-ctr\n");
  const auto second = connect(ssh.host, ssh.options, {}, {});
  REQUIRE(second);
  CHECK(second->detail.empty());
  CHECK_FALSE(ssh.has("-o", "Ciphers=^aes128-gcm@openssh.com"));
}

TEST_CASE("settings for terminals are set back, and only those that this ssh knows") {
  FakeSsh ssh;
  ssh.folder.write("config", "remotecommand tmux attach\nstdinnull yes\nsessiontype none\nloglevel QUIET\nserveraliveinterval 60\n");
  REQUIRE(connect(ssh.host, ssh.options, {}, {}));
  for (const char* setting : {"remotecommand=none", "stdinnull=no", "sessiontype=default", "LogLevel=ERROR"}) CHECK(ssh.has("-o", setting));
  CHECK_FALSE(ssh.has("-o", "forkafterauthentication=no"));
  CHECK_FALSE(ssh.has("-o", "ServerAliveInterval=10"));
}

TEST_CASE("ssh -G gives the first value of each key") {
  FakeSsh ssh;
  const auto config = resolve_ssh(ssh.host, ssh.options);
  REQUIRE(config);
  CHECK(config->get("identityfile") == "~/.ssh/id_a");
  CHECK(config->get("hostname") == "box.example");
  CHECK(config->get("nosuchkey").empty());
}

TEST_CASE("hosts are the same only where user, name, port and way are equal") {
  FakeSsh ssh;
  const Host local{.name = "local", .kind = Kind::local, .user = "", .host = "", .port = 0, .identity = "", .jump = "", .command = {}};
  const Host command{.name = "c", .kind = Kind::command, .user = "", .host = "", .port = 0, .identity = "", .jump = "", .command = {"sh"}};
  CHECK(same_host(local, local, ssh.options).value());
  CHECK_FALSE(same_host(local, ssh.host, ssh.options).value());
  CHECK_FALSE(same_host(command, command, ssh.options).value());
  CHECK(same_host(ssh.host, ssh.host, ssh.options).value());
  // A configuration that tells the names apart by nothing but the jump host.
  ssh.folder.write("bin/ssh", "#!/bin/sh\nfor host; do :; done\necho user op; echo hostname 10.0.0.5; echo port 22\n[ $host = web ] || echo proxyjump j2\n", 0755);
  Host other = ssh.host;
  other.host = "behind";
  CHECK_FALSE(same_host(ssh.host, other, ssh.options).value());
}

TEST_CASE("a name that ssh would take for an option is refused before ssh is started") {
  FakeSsh ssh;
  for (const auto& [host, user, jump] : {std::tuple{"-oProxyCommand=x", "", ""}, {"web", "-l", ""}, {"web", "", "-x"}, {"", "", ""}, {"a b", "", ""}}) {
    ssh.host.host = host;
    ssh.host.user = user;
    ssh.host.jump = jump;
    const auto refused = connect(ssh.host, ssh.options, {}, {});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::connect_failed);
    CHECK_FALSE(resolve_ssh(ssh.host, ssh.options));
  }
  CHECK_FALSE(ssh.folder.has("arguments"));
  CHECK_FALSE(ssh.folder.has("asked"));
}

TEST_CASE("a machine without ssh is told to install it") {
  FakeSsh ssh;
  ssh.folder.mkdir("empty");
  ::setenv("PATH", ssh.folder.path("empty").c_str(), 1);
  const auto missing = connect(ssh.host, ssh.options, {}, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::connect_failed);
  CHECK(missing.error().what == "cannot reach 'web-01': the program 'ssh' cannot be started");
  CHECK(has_hint(missing.error(), "openssh-client"));
}

TEST_CASE("a changed host key names the line that knows another one and how to forget it") {
  FakeSsh ssh;
  const Error error = ssh.fails_with(
      "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n"
      "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
      "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r\n"
      "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\n"
      "The fingerprint for the ED25519 key sent by the remote host is\nSHA256:x9Wabc.\r\n"
      "Add correct host key in /home/op/.ssh/known_hosts to get rid of this message.\r\n"
      "Offending ED25519 key in /home/op/.ssh/known_hosts:27\r\n"
      "  remove with:\r\n  ssh-keygen -f \"/home/op/.ssh/known_hosts\" -R \"web\"\r\n"
      "Host key for web has changed and you have requested strict checking.\r\nHost key verification failed.\r\n");
  CHECK(error.code == ErrorCode::host_key_mismatch);
  CHECK(error.what == "'web-01' presented a different host key than the one known");
  REQUIRE(error.where);
  CHECK(error.where->file == "/home/op/.ssh/known_hosts");
  CHECK(error.where->line == 27);
  CHECK(error.at_notes == std::vector<std::string>{"offered SHA256:x9Wabc"});
  CHECK(error.notes == std::vector<std::string>{"envsync did not authenticate and sent nothing"});
  CHECK(has_hint(error, "`ssh-keygen -f \"/home/op/.ssh/known_hosts\" -R \"web\"`"));
}

TEST_CASE("an unknown host key, a refused login and a host not reached have their own codes and hints") {
  FakeSsh ssh;
  ssh.host.port = 2222;
  ssh.host.user = "op";
  Error error = ssh.fails_with("No ED25519 host key is known for web and you have requested strict checking.\r\nHost key verification failed.\r\n");
  CHECK(error.code == ErrorCode::host_key_unknown);
  CHECK(has_hint(error, "`ssh -p 2222 -l op web true`"));
  CHECK(has_hint(error, "--accept-new-host-keys"));
  error = ssh.fails_with("Load key \"/k\": bad permissions\r\nop@web: Permission denied (publickey,password).\r\n");
  CHECK(error.code == ErrorCode::auth_failed);
  CHECK(error.causes == std::vector<std::string>{"Load key \"/k\": bad permissions", "op@web: Permission denied (publickey,password)."});
  CHECK(has_hint(error, "`ssh -v -p 2222 -l op web true`"));
  error = ssh.fails_with("ssh: Could not resolve hostname web: Name or service not known\r\n");
  CHECK(error.code == ErrorCode::connect_failed);
  CHECK(error.what == "cannot reach 'web-01': its name does not resolve");
  error = ssh.fails_with("@ WARNING: REVOKED HOST KEY DETECTED! @\r\nHost key verification failed.\r\n");
  CHECK(error.code == ErrorCode::host_key_mismatch);
}

TEST_CASE("words of ssh without end are bounded in the error") {
  FakeSsh ssh;
  std::string words;
  for (int i = 0; i < 20'000; ++i) words += "debug: line " + std::to_string(i) + "\n";
  const Error error = ssh.fails_with(words + "\x1b[31mlast\n");
  CHECK(error.causes.size() == 12);
  CHECK(error.causes.back() == "\\x1b[31mlast");
}

TEST_CASE("a configuration that ssh refuses is reported with its words") {
  FakeSsh ssh;
  ssh.folder.write("bin/ssh", "#!/bin/sh\necho 'config: line 3: Bad configuration option: frobnicate' >&2\nexit 255\n", 0755);
  const auto refused = connect(ssh.host, ssh.options, {}, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::connect_failed);
  CHECK(refused.error().causes == std::vector<std::string>{"config: line 3: Bad configuration option: frobnicate"});
}

TEST_CASE("the agent is found where it was named, else beside the program") {
  const Folder folder;
  folder.write("agent", "", 0755);
  folder.write("data", "", 0644);
  CHECK(find_agent(folder.path("agent")).value() == folder.path("agent"));
  ::setenv("ENVSYNC_AGENT", folder.path("agent").c_str(), 1);
  CHECK(find_agent("").value() == folder.path("agent"));
  CHECK_FALSE(find_agent(folder.path("data")));
  ::setenv("ENVSYNC_AGENT", folder.path("absent").c_str(), 1);
  const auto missing = find_agent("");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().causes == std::vector<std::string>{"'" + folder.path("absent") + "' is not an executable file"});
  ::unsetenv("ENVSYNC_AGENT");
}
