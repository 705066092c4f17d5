// SPDX-License-Identifier: MIT
// Connecting by libssh to a real sshd: host keys, keys and questions.
#include "transport/transport.hpp"

#include <algorithm>
#include <thread>

#include <doctest/doctest.h>

#include "support/inetd_sshd.hpp"

using namespace envsync;
using namespace envsync::transport;
using envsync::testing::InetdSshd;

namespace {

struct Box : InetdSshd {
  Box() {
    folder.write("agent", "#!/bin/sh\ncase $1 in --version) exit 0;; esac\necho ready >&2\necho HELLO\nexec cat\n", 0755);
    options.agent_path = folder.path("agent");
    options.agent_digest = "0123abcd";
  }
  Error fails() {
    const auto refused = connect(host, options, {}, {});
    REQUIRE_FALSE(refused);
    return refused.error();
  }
  void answer(std::vector<std::string> answers) {
    options.batch = false;
    options.ask = [this, answers](const Prompt& prompt) -> std::optional<std::string> {
      asked.push_back(prompt.text);
      CHECK(prompt.host == "box-1");
      return asked.size() <= answers.size() ? std::optional(answers[asked.size() - 1]) : std::nullopt;
    };
  }
  std::vector<std::string> asked;
};

bool has(const std::vector<std::string>& lines, std::string_view text) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("libssh brings the agent and starts it, and what it writes to stderr is kept") {
  if (!InetdSshd::is_there()) return;
  Box box;
  for (const bool is_first : {true, false}) {
    auto connected = connect(box.host, box.options, {}, {});
    REQUIRE(connected);
    CHECK((connected->transport == "libssh" && connected->agent_uploaded == is_first));
    CHECK_FALSE(connected->detail.empty());
    std::string greeting(6, ' ');
    for (std::size_t at = 0; at < greeting.size();) at += connected->channel->read(std::as_writable_bytes(std::span(greeting).subspan(at)), deadline_in(Seconds(20))).value();
    CHECK(greeting == "HELLO\n");
    REQUIRE(connected->channel->write(as_bytes("x"), deadline_in(Seconds(20))));
    std::byte back[1];
    REQUIRE(connected->channel->read(back, deadline_in(Seconds(20))));
    CHECK(connected->stderr_text().find("ready\n") != std::string::npos);
  }
  CHECK(box.folder.has("home/.cache/envsync-" + std::to_string(::geteuid()) + "/envsync-agent-0123abcd"));
}

TEST_CASE("auto takes libssh for what it honours, and says which option needs the ssh program") {
  if (!InetdSshd::is_there()) return;
  Box box;
  box.host.kind = Kind::automatic;
  CHECK(connect(box.host, box.options, {}, {})->transport == "libssh");
  box.write_client_config("Host *\n  RekeyLimit 1G\n");
  const auto by_program = connect(box.host, box.options, {}, {});
  REQUIRE(by_program);
  CHECK(by_program->transport == "openssh");
  CHECK(by_program->detail.starts_with("ssh_config says 'rekeylimit', which libssh does not honour"));
  box.host.kind = Kind::libssh;
  CHECK(box.fails().what == "libssh cannot honour 'rekeylimit' of ssh_config for 'box-1'");
}

TEST_CASE("a changed, a revoked and an unknown host key each stop before anything is sent") {
  if (!InetdSshd::is_there()) return;
  Box box;
  box.options.accept_new_host_keys = true;
  box.trust(box.folder.read("other.pub"));
  const Error changed = box.fails();
  CHECK(changed.code == ErrorCode::host_key_mismatch);
  CHECK((changed.where && changed.where->file == box.folder.path("known_hosts") && changed.where->line == 1));
  CHECK(has(changed.hints, "-R box.test"));
  box.trust(box.folder.read("hostkey.pub"), "@revoked ");
  CHECK(box.fails().code == ErrorCode::host_key_mismatch);
  box.options.accept_new_host_keys = false;
  box.folder.write("known_hosts", "");
  const Error unknown = box.fails();
  CHECK(unknown.code == ErrorCode::host_key_unknown);
  CHECK(has(unknown.causes, "ssh-ed25519 SHA256:"));
  box.write_client_config("Host *\n  StrictHostKeyChecking no\n");
  box.trust(box.folder.read("other.pub"));
  CHECK(box.fails().code == ErrorCode::host_key_mismatch);
  CHECK_FALSE(box.folder.has("home/.cache"));
}

TEST_CASE("an unknown host key is accepted by flag or by a person, written down, and pinned for the run") {
  if (!InetdSshd::is_there()) return;
  for (const bool by_flag : {true, false}) {
    CAPTURE(by_flag);
    Box box;
    box.folder.write("known_hosts", "");
    if (by_flag) box.options.accept_new_host_keys = true;
    else box.answer({"yes"});
    REQUIRE(connect(box.host, box.options, {}, {}));
    const std::string key = box.folder.read("hostkey.pub");
    CHECK(box.folder.read("known_hosts") == "box.test " + key.substr(0, key.rfind(' ')) + "\n");
    CHECK(box.asked.size() == (by_flag ? 0 : 1));
    box.folder.write("known_hosts", "");
    box.make_key("hostkey");
    CHECK(box.fails().code == ErrorCode::host_key_mismatch);
    box.options.pins = std::make_shared<HostKeyPins>();
    CHECK((by_flag ? connect(box.host, box.options, {}, {}).has_value() : box.fails().code == ErrorCode::host_key_unknown));
  }
}

TEST_CASE("a key of another type than those known takes a person, and a known one is asked for first") {
  if (!InetdSshd::is_there()) return;
  Box box;
  box.make_key("ecdsakey", "", "ecdsa");
  box.trust(box.folder.read("ecdsakey.pub"));
  box.options.accept_new_host_keys = true;
  CHECK(box.fails().code == ErrorCode::host_key_unknown);
  box.write_server_config("HostKey " + box.folder.path("ecdsakey") + "\n");
  CHECK(connect(box.host, box.options, {}, {}));
}

TEST_CASE("a refused login names the keys that were tried and what the server takes") {
  if (!InetdSshd::is_there()) return;
  Box box;
  box.write_client_config("", "other");
  const Error error = box.fails();
  CHECK(error.code == ErrorCode::auth_failed);
  CHECK(has(error.causes, "key '" + box.folder.path("other") + "'"));
  CHECK(has(error.causes, "the server takes: publickey"));
  box.write_client_config("", "absent");
  CHECK(has(box.fails().causes, "no key was found to try"));
  ::chmod(box.folder.path("key").c_str(), 0644);
  box.write_client_config("");
  CHECK(has(box.fails().causes, "others may read it"));
}

TEST_CASE("a passphrase is asked for where the server wants the key and somebody can be asked") {
  if (!InetdSshd::is_there()) return;
  Box box;
  box.make_key("key", "open sesame");
  CHECK(has(box.fails().causes, "the key") == false);
  CHECK(box.asked.empty());
  box.folder.write("authorized", box.folder.read("key.pub"));
  CHECK(has(box.fails().causes, "it has a passphrase, and nobody can be asked"));
  box.answer({"wrong", "open sesame"});
  CHECK(connect(box.host, box.options, {}, {}));
  CHECK(box.asked == std::vector<std::string>(2, "Passphrase of the key '" + box.folder.path("key") + "'"));
}

TEST_CASE("keys of an agent are offered as the configuration says") {
  if (!InetdSshd::is_there()) return;
  Box box;
  const auto run = [&](const std::string& script) { return os::run({"sh", "-c", "cd " + box.folder.path() + " && SSH_AUTH_SOCK=$PWD/sock && export SSH_AUTH_SOCK && " + script}, Seconds(20)); };
  auto agent = os::spawn({"ssh-agent", "-D", "-a", box.folder.path("sock")}, {}).value();
  REQUIRE(run("for i in 1 2 3 4 5 6 7 8 9; do ssh-add -l >/dev/null 2>&1; [ $? = 2 ] && sleep 0.2; done; ssh-keygen -q -t ed25519 -N '' -f extra1; ssh-keygen -q -t ed25519 -N '' -f extra2; ssh-add -q extra1 extra2 key && mv key key.moved").status == 0);
  const std::string with_agent = "Host *\n  IdentityAgent " + box.folder.path("sock") + "\n";
  // One attempt only: the key that the configuration names must be the first, and the other two must not be offered.
  box.write_server_config("MaxAuthTries 1\n");
  box.write_client_config(with_agent);
  CHECK(connect(box.host, box.options, {}, {}));
  box.write_client_config(with_agent, "extra1");
  CHECK(box.fails().code == ErrorCode::auth_failed);
  agent.kill_now();
  agent.wait(kNoDeadline);
  CHECK(has(box.fails().causes, "agent: it does not answer"));
}

TEST_CASE("a server that never answers and one that hangs up are told apart, in time") {
  Box box;
  box.options.connect_timeout = Seconds(0.2);
  box.folder.write("proxy", "#!/bin/sh\nexec sleep 100\n", 0755);
  Error error = box.fails();
  CHECK(error.what == "cannot reach 'box-1': the server did not finish the key exchange");
  box.options.connect_timeout = Seconds(30);
  box.folder.write("proxy", "#!/bin/sh\necho not today >&2\n", 0755);
  error = box.fails();
  CHECK(error.what == "cannot reach 'box-1': no key exchange with the server");
  CHECK(has(error.causes, "not today"));
}

TEST_CASE("a run that is stopped stops connecting") {
  Box box;
  box.folder.write("proxy", "#!/bin/sh\nexec sleep 100\n", 0755);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  const auto stopped = connect(box.host, box.options, {}, stop.get_token());
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::interrupted);
}
