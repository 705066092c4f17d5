// SPDX-License-Identifier: MIT
#include "manifest/manifest.hpp"

#include "support/error_text.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::manifest;

namespace {

/// "name|user|host|port|path", or the refusal.
std::string host(const std::string& text) {
  const auto h = parse_host(text);
  if (!h) return h.error().what;
  if (h->is_local) return fmt::format("{}|local|{}", h->name, h->path);
  return fmt::format("{}|{}|{}|{}|{}", h->name, h->user, h->host, h->port, h->path);
}

std::string place(const std::string& text) {
  const auto p = parse_place(text);
  if (!p) return p.error().what;
  return fmt::format("{} {}", p->host.name, p->path);
}

}  // namespace

TEST_CASE("a host is a user, a name, a port and a path, most of them optional") {
  CHECK(host("b300") == "b300||b300|0|");
  CHECK(host("root@b300") == "root@b300|root|b300|0|");
  CHECK(host("b300:2222") == "b300:2222||b300|2222|");
  CHECK(host("b300:/srv/v") == "b300||b300|0|/srv/v");
  CHECK(host("b300:~/v/") == "b300||b300|0|~/v");
  CHECK(host("root@b300:2222:/srv//v") == "root@b300:2222|root|b300|2222|/srv/v");
  CHECK(host("ada@b300:/srv/p@th:1") == "ada@b300|ada|b300|0|/srv/p@th:1");
  CHECK(host("DOM\\ada@b300") == "DOM\\ada@b300|DOM\\ada|b300|0|");
  CHECK(host("10.0.0.7") == "10.0.0.7||10.0.0.7|0|");
}

TEST_CASE("an IPv6 address stands in brackets") {
  CHECK(host("[::1]") == "[::1]||::1|0|");
  CHECK(host("[fe80::1%eth0]:22") == "[fe80::1%eth0]:22||fe80::1%eth0|22|");
  CHECK(host("ada@[fe80::1]:22:/srv/v") == "ada@[fe80::1]:22|ada|fe80::1|22|/srv/v");
  CHECK(host("fe80::1") == "an IPv6 address without brackets: 'fe80::1'");
  CHECK(host("[::1") == "no IPv6 address in the brackets of '[::1'");
  CHECK(host("[b300]") == "no IPv6 address in the brackets of '[b300]'");
  CHECK(host("[::1]x") == "'[::1]x' goes on after its address");
}

TEST_CASE("local is this machine") {
  CHECK(host("local") == "local|local|");
  CHECK(host("local:/srv/b") == "local|local|/srv/b");
  CHECK(host("local:22") == "'local' is this machine and takes no port");
  CHECK(host("ada@local") == "'local' is this machine and takes no user");
  CHECK(host("localhost") == "localhost||localhost|0|");
  CHECK(host("local.example.org") == "local.example.org||local.example.org|0|");
}

TEST_CASE("what ssh could read as an option, or a shell as more than a name, is no host") {
  CHECK(host("-oProxyCommand=x") == "the host name '-oProxyCommand=x' begins with '-'");
  CHECK(host("-l@b") == "the user name '-l' begins with '-'");
  CHECK(host("ada@-x") == "the host name '-x' begins with '-'");
  CHECK(host("a b") == "' ' cannot stand in the host name 'a b'");
  CHECK(host("a;b") == "';' cannot stand in the host name 'a;b'");
  CHECK(host("$(x)@b") == "the user name '$(x)' holds a character that no user name has");
  CHECK(host("a\nb") == "'\\x0a' cannot stand in the host name 'a\\x0ab'");
  CHECK(host("") == "a host without a name");
  CHECK(host("@b") == "a user without a name");
  CHECK(host(":22") == "a host without a name");
  CHECK(host(std::string(300, 'a')) == "a host name of 300 bytes, at most 255 are allowed");
}

TEST_CASE("a port is a number from 1 to 65535") {
  CHECK(host("b:65535") == "b:65535||b|65535|");
  CHECK(host("b:65536") == "'65536' is no port: ports go from 1 to 65535");
  CHECK(host("b:0") == "'0' is no port: ports go from 1 to 65535");
  CHECK(host("b:99999999999999999999") == "'99999999999999999999' is no port: ports go from 1 to 65535");
  CHECK(host("b:22x") == "'b:22x': what follows the colon is neither a port nor a path that begins with / or ~/");
  CHECK(host("b:22:venv") == "'b:22:venv': what follows the colon is neither a port nor a path that begins with / or ~/");
  CHECK(host("b:") == "'b:': what follows the colon is neither a port nor a path that begins with / or ~/");
}

TEST_CASE("a path where a host is wanted is told how to be one of this machine") {
  CHECK(host("/srv/v") == "'/srv/v' is a path where a host is wanted");
  CHECK(parse_host("/srv/v").error().hints.at(0) == "write 'local:/srv/v' for a folder of this machine");
  CHECK(host("envs/v") == "'envs/v' is a path where a host is wanted");
}

TEST_CASE("a place with a slash before any colon is a path of this machine") {
  CHECK(place("/srv/v") == "local /srv/v");
  CHECK(place("~/v") == "local ~/v");
  CHECK(place("envs/a:b") == "local envs/a:b");
  CHECK(place(".") == "local .");
  CHECK(place("../v") == "local ../v");
  CHECK(place("ct200") == "ct200 ");
  CHECK(place("ct200:/srv/v") == "ct200 /srv/v");
  CHECK(place("ct200:2222") == "ct200:2222 ");
  CHECK(place("local") == "local ");
  CHECK(place("local:/srv/v") == "local /srv/v");
  CHECK(place("/") == "'/' is the whole machine, not an environment");
  CHECK(place("ct200:/") == "'/' is the whole machine, not an environment");
}

TEST_CASE("a refusal on the command line is wrong usage, or not built") {
  CHECK(parse_host("a b").error().code == ErrorCode::usage);
  CHECK(parse_host("gpu-[01-08]").error().code == ErrorCode::usage);
  CHECK(parse_place("target").error().code == ErrorCode::not_built);
  CHECK(parse_place("target:/srv/overlay").error().code == ErrorCode::not_built);
}
