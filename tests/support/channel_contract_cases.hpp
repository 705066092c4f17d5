// SPDX-License-Identifier: MIT
// The cases of channel_contract.hpp, for the peers that ENVSYNC_CHANNEL_PEERS names. Included once a test program, after them.
#pragma once

#include "support/channel_contract.hpp"

namespace envsync::testing {

TEST_CASE_TEMPLATE("a large write comes back whole while it is still being written", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::echo);
  const Bytes sent = pattern(5'000'001);
  std::thread writer([&] {
    CHECK(peer.channel().write(sent, deadline_in(kLong)));
    peer.channel().close_write();
  });
  const Bytes received = read_all(peer.channel());
  writer.join();
  CHECK(received == sent);
}

TEST_CASE_TEMPLATE("a closed write side ends the other's input and leaves the way back open", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::echo);
  REQUIRE(peer.channel().write(as_bytes("last words"), deadline_in(kLong)));
  peer.channel().close_write();
  peer.channel().close_write();
  CHECK(as_text(read_all(peer.channel())) == "last words");
  std::byte more[1];
  CHECK(peer.channel().read(more, deadline_in(kLong)).value() == 0);
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("abort wakes a blocked reader and a blocked writer", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::mute);
  std::thread reader([&] {
    std::byte out[1];
    CHECK(is_lost(peer.channel().read(out, kNoDeadline)));
  });
  std::thread writer([&] { CHECK(is_lost(peer.channel().write(pattern(50'000'000), kNoDeadline))); });
  peer.channel().abort();
  reader.join();
  writer.join();
}

TEST_CASE_TEMPLATE("after an abort nothing is read or written", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::echo);
  peer.channel().abort();
  peer.channel().abort();
  std::byte out[1];
  CHECK(is_lost(peer.channel().read(out, kNoDeadline)));
  CHECK(is_lost(peer.channel().write(as_bytes("x"), kNoDeadline)));
}

TEST_CASE_TEMPLATE("a read past its deadline is a lost connection, and stays lost", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::mute);
  std::byte out[1];
  CHECK(is_lost(peer.channel().read(out, deadline_in(Seconds(0.01)))));
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("a write that nobody takes ends at its deadline", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::mute);
  CHECK(is_lost(peer.channel().write(pattern(50'000'000), deadline_in(Seconds(0.01)))));
  std::byte out[1];
  CHECK(is_lost(peer.channel().read(out, deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("a write after the other's death is an error and no signal", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::mute);
  peer.die();
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
}

TEST_CASE_TEMPLATE("the other's death ends a read", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::echo);
  peer.die();
  CHECK(read_all(peer.channel()).empty());
}

TEST_CASE_TEMPLATE("what the other side said before it went can be read after a failed write", Peer, ENVSYNC_CHANNEL_PEERS) {
  Peer peer(Manner::last_words);
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
  CHECK(is_lost(peer.channel().write(as_bytes("x"), deadline_in(kLong))));
  CHECK(as_text(read_all(peer.channel())) == kLastWords);
}

}  // namespace envsync::testing
