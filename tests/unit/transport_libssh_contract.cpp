// SPDX-License-Identifier: MIT
// What every channel keeps, over libssh and a real sshd.
#include "transport/libssh_channel.hpp"

#include "support/channel_contract.hpp"
#include "support/inetd_sshd.hpp"

using namespace envsync;
using namespace envsync::testing;
using namespace envsync::transport;

namespace {

class LibsshPeer {
 public:
  explicit LibsshPeer(Manner manner) {
    const Resolved resolved = resolve_with_defaults(server_.host, server_.options).value();
    auto link = LibsshLink::prepare(server_.host, server_.options, fit_login(server_.host, server_.options, resolved).login).value();
    REQUIRE(link->connect(true, {}));
    const std::string command = manner == Manner::echo ? "exec cat" : manner == Manner::mute ? "exec sleep 1000" : "echo " + std::string(kLastWords);
    auto started = LibsshChannel::start(std::move(link), server_.host, command, {});
    REQUIRE(started);
    channel_ = std::move(*started);
    if (manner == Manner::last_words) CHECK(channel_->finish(kLong) == 0);
  }
  Channel& channel() { return *channel_; }
  /// What is on a network's way takes its time to be noticed: until a read says so.
  void die() {
    server_.die();
    std::byte out[1];
    CHECK(is_lost(channel_->read(out, deadline_in(kLong))));
  }

 private:
  InetdSshd server_;
  std::unique_ptr<LibsshChannel> channel_;
};

}  // namespace

#define ENVSYNC_CHANNEL_PEERS LibsshPeer
#include "support/channel_contract_cases.hpp"
