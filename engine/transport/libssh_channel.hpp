// SPDX-License-Identifier: MIT
// Private to transport: a command on a host over libssh, as a carrier. A thread of its own drives the session: libssh lets nobody
// else near it, and in its blocking mode two ends that both write wait for each other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "transport/carrier.hpp"
#include "transport/libssh_link.hpp"

struct ssh_channel_callbacks_struct;

namespace envsync::transport {

class LibsshChannel final : public Carrier {
 public:
  /// Runs the command; `link` is authenticated.
  static Result<std::unique_ptr<LibsshChannel>> start(std::unique_ptr<LibsshLink> link, const Host&, const std::string& command, const std::stop_token&);
  /// Ends the command's input and gives it a second to end.
  ~LibsshChannel() override;

  Result<std::size_t> read(std::span<std::byte> out, Deadline deadline) override;
  Result<void> write(ByteView bytes, Deadline deadline) override;
  void close_write() override;
  void abort() noexcept override;
  std::optional<int> finish(Seconds patience) override;
  std::shared_ptr<const BoundedText> stderr_log() const override { return link_->words(); }
  /// What both agreed on: "aes128-gcm@openssh.com".
  const std::string& cipher() const { return cipher_; }

 private:
  struct Callbacks;
  explicit LibsshChannel(std::unique_ptr<LibsshLink> link);
  Result<void> open(const Host& host, const std::string& command);
  void serve();
  void take_refused();
  void top_up_window();
  void send();
  void note_end(std::string why);
  std::size_t receive(std::string_view bytes);
  void stop() noexcept;
  Error lost_or_closed();

  std::unique_ptr<LibsshLink> link_;
  ssh_channel channel_ = nullptr;
  std::unique_ptr<Callbacks> callbacks_;
  std::string cipher_;
  const std::size_t window_;

  // Of the session's thread.
  std::size_t received_ = 0;     // since the window was last asked for
  bool is_topping_up_ = false;
  std::unique_ptr<std::byte[]> scratch_;

  std::mutex mutex_;             // guards what follows
  std::condition_variable changed_;
  Bytes arrived_;                // not yet with the reader
  ByteView outgoing_;            // the writer's own bytes, while it waits
  bool is_sending_ = false;      // libssh reads outgoing_ at this moment
  bool is_refusing_ = false;     // the reader is behind: bytes wait inside libssh
  bool wants_end_ = false;       // close_write() was called
  bool is_ended_ = false;        // no more bytes will come
  bool is_closed_ = false;       // the command is gone
  bool must_stop_ = false;       // the thread is to end
  std::string lost_;             // why the connection broke; empty where it did not
  std::optional<int> status_;
  std::atomic<bool> is_dead_ = false;

  // Of the reader.
  Bytes current_;
  std::size_t at_ = 0;
  bool is_write_closed_ = false; // of the writer

  std::thread thread_;
};

}  // namespace envsync::transport
