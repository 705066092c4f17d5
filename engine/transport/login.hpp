// SPDX-License-Identifier: MIT
// Private to transport: what libssh is told of a host, made from its resolved configuration, and whether that is all of it.
#pragma once

#include <string>
#include <vector>

#include "transport/ssh.hpp"

namespace envsync::transport {

enum class UnknownKey : u8 { ask, accept, refuse };

struct Login {
  std::string host, user;
  u16 port = 22;
  int family = 0;                         // AF_UNSPEC, AF_INET, AF_INET6
  std::vector<std::string> proxy;         // a program whose stdin and stdout lead to the server; empty: TCP
  std::string key_name;                   // its host key is known under this, "[name]:port" where the port is not 22
  std::vector<std::string> known_hosts;   // the user's, then the machine's
  std::string new_keys;                   // the file that takes accepted keys; empty: none
  UnknownKey unknown_key = UnknownKey::ask;
  bool hashes_names = false;
  std::vector<std::string> identities;    // in the order to try
  bool identities_only = false;
  std::string agent;                      // socket; empty: none
  bool may_publickey = true, may_password = true, may_interactive = true;
  unsigned prompts = 3;
  bool may_gssapi = false;                // the user wants it, libssh here does not do it
  // As the user chose them; empty: as libssh likes.
  std::string ciphers, macs, kex, host_key_types, public_key_types;
  Seconds timeout{30};
};

struct Fit {
  Login login;
  std::string beyond;                     // the first option that needs the ssh program; empty: none
};
/// Looks for certificates beside the identities; else pure.
Fit fit_login(const Host&, const Options&, const Resolved&);

}  // namespace envsync::transport
