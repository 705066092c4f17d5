// SPDX-License-Identifier: MIT
#include "transport/known_hosts.hpp"

#include <doctest/doctest.h>

#include "os/process.hpp"
#include "os/paths.hpp"
#include "support/os_folder.hpp"

using namespace envsync;
using namespace envsync::transport;

namespace {

KnownHosts known(std::string_view text) {
  KnownHosts hosts;
  hosts.add("kh", text);
  return hosts;
}
Verdict verdict(std::string_view text, std::string_view name, std::string_view key = "AAAA", std::string_view type = "ssh-ed25519") {
  return known(text).look(name, type, key).verdict;
}

}  // namespace

TEST_CASE("a host is known by its name, by a pattern and by a hash of its name") {
  CHECK(verdict("box ssh-ed25519 AAAA comment\n", "box") == Verdict::known);
  CHECK(verdict("a,BOX,c ssh-ed25519 AAAA\n", "box") == Verdict::known);
  CHECK(verdict("*.example,!bad.example ssh-ed25519 AAAA\n", "web.example") == Verdict::known);
  CHECK(verdict("*.example,!bad.example ssh-ed25519 AAAA\n", "bad.example") == Verdict::unknown);
  CHECK(verdict("b?x ssh-ed25519 AAAA", "box") == Verdict::known);
  CHECK(verdict("# box ssh-ed25519 AAAA\n\nbo ssh-ed25519 AAAA\nbox\nbox ssh-ed25519\n", "box") == Verdict::unknown);
  // As `ssh-keygen -H` writes it.
  CHECK(verdict("|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-ed25519 AAAA\n", "192.168.1.61") == Verdict::known);
  CHECK(verdict("|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= ssh-ed25519 AAAA\n", "192.168.1.62") == Verdict::unknown);
  CHECK(verdict("|1|x|y ssh-ed25519 AAAA\n|1| ssh-ed25519 AAAA\n", "box") == Verdict::unknown);
}

TEST_CASE("another key of the same type is a changed key, one of another type is not, and one that fits is enough") {
  CHECK(verdict("box ssh-ed25519 BBBB\n", "box") == Verdict::changed);
  CHECK(verdict("box ssh-rsa BBBB\n", "box") == Verdict::other_type);
  CHECK(verdict("box ssh-ed25519 BBBB\nbox ssh-rsa CCCC\nbox ssh-ed25519 AAAA\n", "box") == Verdict::known);
  CHECK(known("\n\nbox ssh-ed25519 BBBB\n").look("box", "ssh-ed25519", "AAAA").where.line == 3);
}

TEST_CASE("a revoked key is refused wherever its line stands, and only that key") {
  CHECK(verdict("box ssh-ed25519 AAAA\n@revoked * ssh-ed25519 AAAA\n", "box") == Verdict::revoked);
  CHECK(verdict("@revoked box ssh-ed25519 AAAA\nbox ssh-ed25519 AAAA\n", "box") == Verdict::revoked);
  CHECK(verdict("@revoked box ssh-ed25519 BBBB\nbox ssh-ed25519 AAAA\n", "box") == Verdict::known);
  CHECK(verdict("@revoked other ssh-ed25519 AAAA\n", "box") == Verdict::unknown);
}

TEST_CASE("an authority vouches for no plain key") {
  const std::string_view text = "@cert-authority *.example ssh-ed25519 AAAA\n";
  CHECK(verdict(text, "web.example") == Verdict::unknown);
  CHECK(known(text).has_authority("web.example"));
  CHECK_FALSE(known(text).has_authority("web.test"));
  CHECK_FALSE(known("web.example ssh-ed25519 AAAA\n").has_authority("web.example"));
}

TEST_CASE("a port that is not 22 belongs to the name, and a plain line vouches for it where no other does") {
  CHECK(verdict("[box]:2222 ssh-ed25519 AAAA\n", "[box]:2222") == Verdict::known);
  CHECK(verdict("[box]:2222 ssh-ed25519 AAAA\n", "box") == Verdict::unknown);
  CHECK(verdict("box ssh-ed25519 AAAA\n", "[box]:2222") == Verdict::known);
  CHECK(verdict("box ssh-ed25519 BBBB\n", "[box]:2222") == Verdict::unknown);
  CHECK(verdict("[box]:2222 ssh-ed25519 BBBB\nbox ssh-ed25519 AAAA\n", "[box]:2222") == Verdict::changed);
  CHECK(verdict("@revoked box ssh-ed25519 AAAA\n[box]:2222 ssh-ed25519 AAAA\n", "[box]:2222") == Verdict::revoked);
}

TEST_CASE("types of a host's keys come in the order of its lines") {
  CHECK(known("box ssh-rsa A\nother ecdsa-sha2-nistp256 B\nbox ssh-ed25519 C\nbox ssh-rsa D\n").types_of("box") == std::vector<std::string>{"ssh-rsa", "ssh-ed25519"});
}

TEST_CASE("a pattern of many stars takes no time") {
  std::string pattern;
  for (int i = 0; i < 2000; ++i) pattern += "*a";
  CHECK_FALSE(names_host(pattern, std::string(2000, 'b')));
}

TEST_CASE("an accepted key is appended on a line of its own, in clear or hashed as ssh-keygen finds it") {
  const testing::Folder folder;
  const std::string file = folder.path("ssh/known_hosts");
  REQUIRE(append_known_host(file, "box", "ssh-ed25519", "AAAA", false));
  CHECK(folder.read("ssh/known_hosts") == "box ssh-ed25519 AAAA\n");
  folder.write("ssh/known_hosts", "no newline");
  REQUIRE(append_known_host(file, "[box]:2222", "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIDmP9hkDXXuVYxZ8Jp2BxLzW0QlYVm9Qm1KpN2jB4cde", true));
  const std::string text = folder.read("ssh/known_hosts");
  CHECK(text.starts_with("no newline\n|1|"));
  CHECK(text.find("box") == std::string::npos);
  const auto hosts = read_known_hosts({file, folder.path("absent"), "/dev/null"});
  REQUIRE(hosts);
  CHECK(hosts->look("[box]:2222", "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIDmP9hkDXXuVYxZ8Jp2BxLzW0QlYVm9Qm1KpN2jB4cde").verdict == Verdict::known);
  CHECK(os::run({"ssh-keygen", "-F", "[box]:2222", "-f", file}, Seconds(20)).status == 0);
  CHECK_FALSE(append_known_host(folder.path("absent/deeper/known_hosts"), "box", "ssh-ed25519", "AAAA", false));
}
