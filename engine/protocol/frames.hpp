// SPDX-License-Identifier: MIT
// Frames on a channel, and the connection that both sides speak: requests by number, blobs under credit, liveness.
//
//   frame := length:u32le type:u8 request:u32le payload[length]
//
//   type      payload                        who
//   hello     format::Hello                  agent, first frame
//   request   format::Request                controller
//   reply     format::Reply                  agent, ends the request
//   error     envsync::Error                 agent, ends the request
//   progress  format::Progress               agent
//   blob      bytes, at most kBlobMax        whoever sends the request's or the reply's blob
//   blob_end  -                              after the last blob frame
//   credit    u64le                          bytes of blob that the receiver is ready to take, added to what is left
//   cancel    -                              controller: the agent ends the request soon with an error
//   ping/pong -                              both; request 0
//
// LIMIT: length is checked against its type's limit before anything is allocated.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "base/buffer.hpp"
#include "channel/channel.hpp"
#include "format/messages.hpp"

namespace envsync::protocol {

enum class FrameType : u8 { hello = 1, request, reply, error, progress, blob, blob_end, credit, cancel, ping, pong };

inline constexpr std::size_t kBlobMax = 10u << 20;      // LIMIT: a pack, which is at most 9 MiB and its header
inline constexpr u64 kCreditWindow = 16u << 20;         // blob bytes that may be on their way for one request
inline constexpr Seconds kSilenceMax{30};               // any frame resets it
inline constexpr Seconds kPingEvery{5};

struct Frame {
  FrameType type = FrameType::ping;
  u32 request = 0;
  Buffer payload;
};

/// Called before so many bytes are written; may wait.
using Pacer = std::function<void(std::size_t bytes)>;

/// One side of a connection. Owns a reader thread that never blocks on a handler: frames of a request are queued
/// (blobs within the credit given) and PINGs answered. Writes are whole frames under a mutex.
class Connection {
 public:
  explicit Connection(std::unique_ptr<channel::Channel> channel);
  ~Connection();                              // aborts the channel and joins
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// A request frame is given to `on_new` on the reader thread, its mailbox already open (agent side); without `on_new` it is a
  /// protocol error. Frames of a closed request are dropped. `on_end` is called once, when the connection ends.
  void start(std::function<void(Frame)> on_new, std::function<void()> on_end);

  /// Opens a request's mailbox. Numbers are never used twice on one connection.
  void open(u32 request);
  void close(u32 request);
  /// Requested when the peer cancels the request or the connection ends.
  std::stop_token stop_of(u32 request) const;
  /// The next frame of the request but credit, which is accounted inside. Blocks; an error when the connection ended.
  Result<Frame> next(u32 request, std::stop_token stop = {});
  Result<void> send(FrameType type, u32 request, ByteView payload);
  /// Sends a blob frame when the peer's credit for the request covers it: back-pressure. Fails when the peer ends the request first
  /// (an error or reply frame is then in the mailbox). Written in pieces of 256 KiB at most, each after `pacer`.
  Result<void> send_blob(u32 request, ByteView payload, std::stop_token stop = {}, const Pacer& pacer = {});
  /// Lets the peer send that many blob bytes more.
  Result<void> grant(u32 request, u64 bytes);

  /// A byte string of any length as blobs, ended by blob_end; and its counterpart, which grants credit as it takes.
  Result<void> send_stream(u32 request, ByteView bytes, std::stop_token stop = {});
  Result<Bytes> receive_stream(u32 request, std::size_t limit, std::stop_token stop = {});

  /// Why it ended; meaningful once ended() is true.
  Error end_reason() const;
  u64 bytes_sent() const;
  u64 bytes_received() const;
  bool ended() const;
  /// Seconds that the quickest PONG took so far; 0: none came yet. The side that asks sends its first PING when the first frame came.
  double round_trip() const;
  void abort() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace envsync::protocol
