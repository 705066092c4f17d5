// SPDX-License-Identifier: MIT
// An sshd without a network: a program that speaks ssh on its stdin and stdout, reached as a ProxyCommand. It has keys and a home of
// its own in a folder of the test, and an account of whoever runs the test.
#pragma once

#include <csignal>
#include <cstdlib>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "os/paths.hpp"
#include "os/process.hpp"
#include "support/os_folder.hpp"
#include "transport/transport.hpp"

namespace envsync::testing {

class InetdSshd {
 public:
  InetdSshd() {
    folder.mkdir("home");
    for (const char* name : {"hostkey", "key", "other"}) make_key(name);
    folder.write("authorized", folder.read("key.pub"));
    if (::geteuid() == 0) ::mkdir("/run/sshd", 0755);  // sshd started by root wants it
    write_server_config("");
    write_client_config("");
    folder.write("proxy", "#!/bin/sh\necho $$ >" + folder.path("pid") + "\nexec /usr/sbin/sshd -i -e -f " + folder.path("sshd_config") + "\n", 0755);
    trust(folder.read("hostkey.pub"));
    options.ssh_config = folder.path("ssh_config");
    options.batch = true;
  }

  /// Where there is none, a test has nothing to test against, and says so.
  static bool is_there() {
    const bool is_found = os::is_executable("/usr/sbin/sshd");
    if (!is_found) MESSAGE("not checked: no /usr/sbin/sshd");
    return is_found;
  }

  void make_key(const std::string& name, const std::string& passphrase = "", const std::string& type = "ed25519") {
    ::unlink(folder.path(name).c_str());
    REQUIRE(os::run({"ssh-keygen", "-q", "-t", type, "-N", passphrase, "-C", "test", "-f", folder.path(name)}, Seconds(20)).status == 0);
  }
  void write_server_config(const std::string& more) {
    folder.write("sshd_config", "HostKey " + folder.path("hostkey") + "\nAuthorizedKeysFile " + folder.path("authorized") +
        "\nPidFile none\nStrictModes no\nUsePAM " + (has_locked_root() ? "yes" : "no") + "\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin prohibit-password\nSetEnv HOME=" + folder.path("home") + "\n" + more);
  }
  /// One host 'box', whose proxy command says where die() finds it.
  void write_client_config(const std::string& more, const std::string& key = "key") {
    folder.write("ssh_config", more + "Host box\n  HostName box.test\n  User " + os::user_name() + "\n  IdentityFile " + folder.path(key) +
        "\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile " + folder.path("known_hosts") + "\n  GlobalKnownHostsFile /dev/null\n"
        "  ProxyCommand " + folder.path("proxy") + "\n");
  }
  void trust(const std::string& key, const std::string& marker = "") {
    folder.write("known_hosts", marker + "box.test " + key.substr(0, key.rfind(' ')) + "\n");
  }
  void die() const { ::kill(static_cast<pid_t>(std::atoi(folder.read("pid").c_str())), SIGKILL); }

  Folder folder;
  transport::Options options;
  transport::Host host{.name = "box-1", .kind = transport::Kind::libssh, .user = "", .host = "box", .port = 0, .identity = "", .jump = "", .command = {}};

 private:
  /// Without PAM sshd lets nobody into an account whose password is locked.
  static bool has_locked_root() {
    return ::geteuid() == 0 && os::run({"grep", "-q", "^root:!", "/etc/shadow"}, Seconds(5)).status == 0;
  }
};

}  // namespace envsync::testing
