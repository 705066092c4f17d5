// SPDX-License-Identifier: MIT
#include "transport/agent_keys.hpp"

#include <algorithm>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include "os/process.hpp"

namespace envsync::transport {
namespace {

constexpr std::byte kFailure{5}, kListRequest{11}, kList{12}, kSignRequest{13};
constexpr std::size_t kMessageBytesMax = 256u << 10;  // LIMIT: what OpenSSH's agent itself takes
constexpr std::size_t kKeysMax = 2048;                // LIMIT: likewise
constexpr Seconds kPatience{5};
constexpr Seconds kSigning{120};                      // LIMIT: a person confirms, or touches a token

std::optional<u32> take_be32(ByteView& in) {
  if (in.size() < 4) return std::nullopt;
  u32 value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<u32>(in[static_cast<std::size_t>(i)]);
  in = in.subspan(4);
  return value;
}

void put_be32(Bytes& out, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::byte>(value >> shift & 0xff));
}

std::optional<ByteView> take_block(ByteView& in) {
  const auto size = take_be32(in);
  if (!size || *size > in.size()) return std::nullopt;
  const auto block = in.first(*size);
  in = in.subspan(*size);
  return block;
}

Result<void> read_exactly(channel::Channel& stream, std::span<std::byte> out, Deadline deadline) {
  while (!out.empty()) {
    TRY(const std::size_t got, stream.read(out, deadline));
    if (got == 0) return Error(ErrorCode::connection_lost, "the ssh agent went away");
    out = out.subspan(got);
  }
  return ok();
}

/// A message without its length.
Result<Bytes> read_message(channel::Channel& stream, Deadline deadline) {
  Bytes head(4);
  TRY_STATUS(read_exactly(stream, head, deadline));
  ByteView rest = head;
  const u32 size = *take_be32(rest);
  if (size == 0 || size > kMessageBytesMax) return Error(ErrorCode::protocol, "a message of the ssh agent has no plausible length");
  Bytes message(size);
  TRY_STATUS(read_exactly(stream, message, deadline));
  return message;
}

Bytes framed(ByteView message) {
  Bytes out;
  put_be32(out, message.size());
  out.insert(out.end(), message.begin(), message.end());
  return out;
}

}  // namespace

Result<std::vector<AgentKey>> read_identities(ByteView answer) {
  const Error broken(ErrorCode::protocol, "the ssh agent's list of keys is broken");
  if (answer.empty() || answer[0] != kList) return broken;
  answer = answer.subspan(1);
  const auto count = take_be32(answer);
  if (!count || *count > kKeysMax) return broken;
  std::vector<AgentKey> keys;
  for (u32 i = 0; i < *count; ++i) {
    const auto blob = take_block(answer), comment = take_block(answer);
    if (!blob || !comment) return broken;
    keys.push_back({Bytes(blob->begin(), blob->end()), std::string(as_text(*comment))});
  }
  return keys;
}

Bytes write_identities(const std::vector<AgentKey>& keys) {
  Bytes message = {kList};
  put_be32(message, keys.size());
  for (const AgentKey& key : keys) {
    put_be32(message, key.blob.size());
    message.insert(message.end(), key.blob.begin(), key.blob.end());
    const auto comment = as_bytes(key.comment);
    put_be32(message, comment.size());
    message.insert(message.end(), comment.begin(), comment.end());
  }
  return framed(message);
}

std::unique_ptr<AgentKeys> AgentKeys::open(const std::string& socket_path) {
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof address.sun_path) return nullptr;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  os::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // SAFETY: the sockets interface takes every family's address by its common head.
  if (!fd || ::connect(fd.get(), reinterpret_cast<const struct sockaddr*>(&address), sizeof address) != 0) return nullptr;
  std::unique_ptr<AgentKeys> keys(new AgentKeys);
  keys->agent_ = channel::make_fd_channel(std::move(fd), os::Fd());
  auto answer = keys->ask(framed(std::span(&kListRequest, 1)));
  if (!answer) return nullptr;
  auto list = read_identities(*answer);
  if (!list) return nullptr;
  keys->keys_ = std::move(*list);
  return keys;
}

AgentKeys::~AgentKeys() {
  if (near_) near_->abort();
  agent_->abort();
  if (thread_.joinable()) thread_.join();
}

Result<Bytes> AgentKeys::ask(ByteView message) {
  TRY_STATUS(agent_->write(message, deadline_in(kPatience)));
  const bool is_signing = message.size() > 4 && message[4] == kSignRequest;
  return read_message(*agent_, deadline_in(is_signing ? kSigning : kPatience));
}

Result<os::Fd> AgentKeys::serve(std::vector<AgentKey> offered) {
  offered_ = std::move(offered);
  TRY(auto ends, os::make_socket_pair());
  near_ = channel::make_fd_channel(std::move(ends.first), os::Fd());
  thread_ = std::thread([this] { answer(); });
  return std::move(ends.second);
}

void AgentKeys::answer() {
  for (;;) {
    const auto request = read_message(*near_, kNoDeadline);
    if (!request) return;
    Bytes reply;
    if ((*request)[0] == kListRequest) {
      reply = write_identities(offered_);
    } else {
      const bool is_allowed = (*request)[0] == kSignRequest && [&] {
        ByteView rest = ByteView(*request).subspan(1);
        const auto blob = take_block(rest);
        return blob && std::ranges::any_of(offered_, [&](const AgentKey& key) { return std::ranges::equal(key.blob, *blob); });
      }();
      auto signed_ = is_allowed ? ask(framed(*request)) : Result<Bytes>(Bytes{kFailure});
      reply = framed(signed_ ? *signed_ : Bytes{kFailure});
    }
    if (!near_->write(reply, deadline_in(kPatience))) return;
  }
}

}  // namespace envsync::transport
