// SPDX-License-Identifier: MIT
// Which configurations libssh can honour, what it is told of them, and which libssh is sound.
#include "transport/login.hpp"

#include <doctest/doctest.h>

#include "support/os_folder.hpp"
#include "transport/agent_keys.hpp"
#include "transport/libssh_link.hpp"

using namespace envsync;
using namespace envsync::transport;

namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

const Values kDefaults = {{"user", "op"}, {"hostname", "x"}, {"port", "22"}, {"ciphers", "c1,c2"}, {"ipqos", "af21 cs1"}, {"stricthostkeychecking", "ask"},
                          {"identityfile", "/k/id"}, {"controlmaster", "false"}, {"gssapiauthentication", "no"}, {"rekeylimit", "0 0"}};

/// The defaults with some values replaced or added.
Resolved with(const Values& changed) {
  Resolved resolved{.config = {kDefaults}, .defaults = {kDefaults}};
  for (const auto& [key, value] : changed) {
    std::erase_if(resolved.config.values, [&](const auto& pair) { return pair.first == key; });
  }
  for (const auto& pair : changed) resolved.config.values.push_back(pair);
  return resolved;
}
const Host kHost{.name = "box-1", .kind = Kind::automatic, .user = "", .host = "box", .port = 0, .identity = "", .jump = "", .command = {}};
Fit fit(const Values& changed, const Options& options = {}) { return fit_login(kHost, options, with(changed)); }
std::string beyond(const std::string& key, const std::string& value) { return fit({{key, value}}).beyond; }

}  // namespace

TEST_CASE("what a usual configuration says is honoured") {
  const Fit usual = fit({{"user", "deploy"}, {"hostname", "Web.Example"}, {"port", "2222"}, {"identitiesonly", "yes"}, {"identityagent", "none"}, {"addressfamily", "inet"},
                         {"userknownhostsfile", "/k/a /k/b"}, {"globalknownhostsfile", "/g/a"}, {"hashknownhosts", "yes"}, {"sendenv", "LANG"}, {"sendenv", "LC_*"},
                         {"gssapiauthentication", "yes"}, {"forwardagent", "yes"}, {"localforward", "8080 [x]:80"}, {"ciphers", "c2"}, {"connecttimeout", "7"},
                         {"passwordauthentication", "no"}, {"numberofpasswordprompts", "1"}});
  CHECK(usual.beyond.empty());
  const Login& login = usual.login;
  CHECK((login.user == "deploy" && login.host == "Web.Example" && login.port == 2222 && login.key_name == "[web.example]:2222"));
  CHECK(login.known_hosts == std::vector<std::string>{"/k/a", "/k/b", "/g/a"});
  CHECK((login.new_keys == "/k/a" && login.hashes_names && login.identities_only && login.agent.empty()));
  CHECK((login.ciphers == "c2" && login.macs.empty() && login.timeout == Seconds(7) && !login.may_password && login.may_interactive && login.prompts == 1));
  CHECK(login.proxy.empty());
}

TEST_CASE("an option beyond libssh, or one that nobody here has heard of, is named") {
  for (const auto& [key, value] : Values{{"certificatefile", "/k/id-cert.pub"}, {"pkcs11provider", "/lib/p.so"}, {"knownhostscommand", "/bin/k"}, {"revokedhostkeys", "/k/r"},
                                         {"controlpath", "/tmp/c"}, {"proxyusefdpass", "yes"}, {"setenv", "A=b"}, {"sendenv", "SECRET"}, {"bindaddress", "10.0.0.1"},
                                         {"addkeystoagent", "true"}, {"rekeylimit", "1000 0"}, {"ipqos", "throughput"}, {"quantumauthentication", "yes"}}) {
    CAPTURE(key);
    CHECK(beyond(key, value) == key);
  }
  CHECK(beyond("controlpath", "none").empty());
  CHECK(beyond("controlmaster", "auto").empty());
  CHECK(beyond("identityfile", "~/%h").find("identityfile") == 0);
  const testing::Folder folder;
  folder.write("id-cert.pub", "");
  CHECK(beyond("identityfile", folder.path("id")) == "a certificate beside the identity file");
}

TEST_CASE("the rule for unknown host keys is the user's, and the flag's") {
  Options accepting;
  accepting.accept_new_host_keys = true;
  CHECK(fit({}).login.unknown_key == UnknownKey::ask);
  CHECK(fit({}, accepting).login.unknown_key == UnknownKey::accept);
  for (const char* word : {"accept-new", "no", "false", "off"}) CHECK(fit({{"stricthostkeychecking", word}}).login.unknown_key == UnknownKey::accept);
  for (const char* word : {"yes", "true"}) CHECK(fit({{"stricthostkeychecking", word}}).login.unknown_key == UnknownKey::refuse);
  CHECK(fit({{"hostkeyalias", "Alias"}, {"port", "2222"}}).login.key_name == "alias");
}

TEST_CASE("jumps are passed in their order, the last of them connects on") {
  Options options;
  options.ssh_config = "/c";
  options.batch = true;
  CHECK(fit({{"proxyjump", "j1,op@j2:2022"}, {"hostname", "10.0.0.5"}, {"port", "2222"}}, options).login.proxy ==
        std::vector<std::string>{"ssh", "-F", "/c", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-J", "j1", "-W", "[10.0.0.5]:2222", "--", "ssh://op@j2:2022"});
  CHECK(fit({{"proxyjump", "none"}}).login.proxy.empty());
}

TEST_CASE("a proxy command gets its tokens, and one that is not known here needs the ssh program") {
  CHECK(fit({{"proxycommand", "nc -x %n %h %p %r 100%%"}, {"hostname", "a.b"}, {"port", "5"}}).login.proxy == std::vector<std::string>{"sh", "-c", "exec nc -x box a.b 5 op 100%"});
  CHECK_FALSE(beyond("proxycommand", "nc %C").empty());
  CHECK_FALSE(beyond("proxycommand", "nc %").empty());
  CHECK_FALSE(fit({{"proxycommand", "nc %h"}, {"hostname", "a;rm"}}).beyond.empty());
}

TEST_CASE("a libssh is sound from the versions on that check tags, or with the distribution's fixes") {
  for (const char* version : {"0.11.5/openssl/zlib", "0.12.1", "0.13.0", "1.0.0"}) CHECK(is_sound_libssh(version, ""));
  for (const char* version : {"0.10.6/openssl/zlib", "0.11.4", "0.12.0", "0.9.8", "", "x"}) CHECK_FALSE(is_sound_libssh(version, ""));
  CHECK(is_sound_libssh("0.10.6/openssl/zlib", "0.10.6-0+deb12u3"));
  CHECK(is_sound_libssh("0.10.6/openssl/zlib", "0.10.6-0+deb12u12"));
  for (const char* package : {"0.10.6-0+deb12u2", "0.10.6-0+deb12u", "0.10.6-0ubuntu3", "0.10.5-0+deb12u3"}) CHECK_FALSE(is_sound_libssh("0.10.6", package));
  CHECK_FALSE(is_sound_libssh("0.9.8", "0.10.6-0+deb12u3"));
}

TEST_CASE("an agent's list of keys is read back as it was written, and a broken one is refused") {
  const std::vector<AgentKey> keys = {{Bytes(40, std::byte{7}), "one"}, {Bytes(400, std::byte{9}), ""}};
  const Bytes framed = write_identities(keys);
  const ByteView answer = ByteView(framed).subspan(4);
  const auto read = read_identities(answer);
  REQUIRE(read);
  REQUIRE(read->size() == 2);
  CHECK(((*read)[0].blob == keys[0].blob && (*read)[0].comment == "one" && (*read)[1].blob == keys[1].blob));
  for (std::size_t size = 0; size < answer.size(); ++size) CHECK_FALSE(read_identities(answer.first(size)));
  Bytes many(answer.begin(), answer.end());
  many[1] = std::byte{0xff};
  CHECK_FALSE(read_identities(many));
}
