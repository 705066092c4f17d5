// SPDX-License-Identifier: MIT
#include "agent/joins.hpp"

#include <atomic>

#include <sys/eventfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "os/process.hpp"
#include "os/sockets.hpp"

namespace envsync::agent {

namespace {

constexpr std::size_t kJoinedMax = 16;      // LIMIT: further connections of one session
constexpr Seconds kHandingMax{5};           // LIMIT: a process that connects and hands nothing over holds the door so long
constexpr u32 kFirstRequest = 1;

void shout(int wake) {
  const u64 one = 1;
  // It fails only where the counter is full, which wakes as well.
  static_cast<void>(!::write(wake, &one, sizeof one));
}

/// In a time that does not tell how much of it is right.
bool is_equal(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace

struct Joins::Joined {
  Joined(os::Fd l, std::unique_ptr<channel::Channel> channel) : link(std::move(l)), connection(std::move(channel)) {}
  os::Fd link;                      // its end tells the process that handed over that it may go
  bool is_known = false;            // of the reader thread
  std::atomic<bool> has_ended = false;
  std::size_t users = 0;            // handlers that have it; under the mutex of Joins
  bool is_dropped = false;          // likewise: it is about to be destroyed
  protocol::Connection connection;  // last: its threads use what is above
};

Joins::Joins(std::string hello, Serve serve) : hello_(std::move(hello)), serve_(std::move(serve)) {}
Joins::~Joins() { close(); }

Result<std::string> Joins::open(std::string secret) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return Error{ErrorCode::interrupted, "the session ends"};
  if (secret.empty()) return Error{ErrorCode::protocol, "connections were to be let in without a secret"};
  if (!name_.empty()) return name_;
  const std::string name = "envsync-" + os::random_token();
  TRY(listener_, os::listen_at(name));
  wake_ = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  ENVSYNC_CHECK(wake_);
  name_ = name;
  secret_ = std::move(secret);
  thread_ = std::thread([this] { watch(); });
  return name_;
}

void Joins::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    if (wake_) shout(wake_.get());
  }
  if (thread_.joinable()) thread_.join();
  for (const auto& joined : joined_) joined->connection.abort();
}

std::size_t Joins::count() const {
  const std::lock_guard lock(mutex_);
  return joined_.size();
}

bool Joins::is_right(const std::string& secret) const {
  const std::lock_guard lock(mutex_);
  return !is_closed_ && is_equal(secret, secret_);
}

void Joins::watch() {
  for (;;) {
    const bool is_asked = os::await_connection(listener_.get(), wake_.get());
    drop_ended();
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) return;
    }
    if (!is_asked) continue;
    auto link = os::accept_from(listener_.get());
    if (link && *link) take(std::move(*link));
  }
}

/// Closes what connections that are over held, unless a handler still has them.
void Joins::drop_ended() {
  std::vector<std::unique_ptr<Joined>> ended;  // RACE: destroyed after the mutex is let go, for which a reader thread may wait
  const std::lock_guard lock(mutex_);
  for (auto& joined : joined_) {
    if (!joined->has_ended || joined->users > 0) continue;
    joined->is_dropped = true;
    ended.push_back(std::move(joined));
  }
  std::erase(joined_, nullptr);
}

void Joins::take(os::Fd link) {
  if (!os::is_same_user(link.get())) return;
  auto both = os::receive_descriptors(link.get(), deadline_in(kHandingMax));
  if (!both) return;
  auto made = std::make_unique<Joined>(std::move(link), channel::make_fd_channel(std::move(both->first), std::move(both->second)));
  Joined& joined = *made;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_ || joined_.size() >= kJoinedMax) return;
    joined_.push_back(std::move(made));
  }
  joined.connection.open(kFirstRequest);
  if (!joined.connection.send(protocol::FrameType::hello, kFirstRequest, as_bytes(hello_))) joined.has_ended = true;
  joined.connection.close(kFirstRequest);
  joined.connection.start([this, &joined](protocol::Frame frame) { hear(joined, std::move(frame)); },
                          [this, &joined] {
                            joined.has_ended = true;
                            shout(wake_.get());
                          });
}

/// On the connection's reader thread. Nothing is heard before the secret.
void Joins::hear(Joined& joined, protocol::Frame frame) {
  if (joined.is_known) {
    if (auto used = use(joined)) serve_(std::move(used), std::move(frame));
    return;
  }
  auto request = format::decode_request(frame.payload);
  const auto* join = request ? std::get_if<format::JoinRequest>(&*request) : nullptr;
  if (join != nullptr && is_right(join->secret)) {
    joined.is_known = true;
    (void)joined.connection.send(protocol::FrameType::reply, frame.request, format::encode(format::Reply{format::JoinReply{}}));
    return joined.connection.close(frame.request);
  }
  (void)joined.connection.send(protocol::FrameType::error, frame.request, format::encode(Error{ErrorCode::protocol, "the connection is not of this run"}));
  joined.connection.abort();
}

/// For a handler; null where it is about to be destroyed.
std::shared_ptr<protocol::Connection> Joins::use(Joined& joined) {
  const std::lock_guard lock(mutex_);
  if (joined.is_dropped) return nullptr;
  ++joined.users;
  return {&joined.connection, [this, &joined](protocol::Connection*) {
            const std::lock_guard done(mutex_);
            --joined.users;
            shout(wake_.get());
          }};
}

int hand_over(const std::string& name, const std::string& hello, os::Fd in, os::Fd out) {
  const auto given = [&]() -> Result<os::Fd> {
    TRY(os::Fd link, os::connect_to(name));
    if (!os::is_same_user(link.get())) return Error{ErrorCode::protocol, "another user's process has the name of the agent"};
    TRY_STATUS(os::send_descriptors(link.get(), in.get(), out.get()));
    return link;
  }();
  if (!given) {
    Error error = Error{ErrorCode::connect_failed, "the agent that this connection was to join is not here"}.cause(given.error().what);
    protocol::Connection connection(channel::make_fd_channel(std::move(in), std::move(out)));
    (void)connection.send(protocol::FrameType::hello, kFirstRequest, as_bytes(hello));
    (void)connection.send(protocol::FrameType::error, kFirstRequest, format::encode(error));
    return 1;
  }
  // The copies here would keep the stream from ending where the agent closes its own.
  in.reset();
  out.reset();
  os::await_end(given->get());
  return 0;
}

}  // namespace envsync::agent
