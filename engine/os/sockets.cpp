// SPDX-License-Identifier: MIT
#include "os/sockets.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/files.hpp"

namespace envsync::os {

namespace {

constexpr std::size_t kDescriptors = 2;

struct Address { struct sockaddr_un bytes = {}; socklen_t size = 0; };

/// Abstract: the name begins with a zero byte and lies in no folder.
Result<Address> address_of(const std::string& name) {
  if (name.empty() || name.size() > kSocketNameMax) return os_error(EINVAL, "name the socket", name);
  static_assert(kSocketNameMax + 1 <= sizeof Address{}.bytes.sun_path);
  Address address;
  address.bytes.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.bytes.sun_path + 1);
  address.size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

const struct sockaddr* bare(const Address& address) { return reinterpret_cast<const struct sockaddr*>(&address.bytes); }

union Control {
  char bytes[CMSG_SPACE(kDescriptors * sizeof(int))];
  struct cmsghdr alignment;
};

}  // namespace

Result<Fd> listen_at(const std::string& name) {
  TRY(const Address address, address_of(name));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::bind(fd.get(), bare(address), address.size) != 0 || ::listen(fd.get(), 16) != 0) return os_error(errno, "listen at the socket", name);
  return fd;
}

Result<Fd> connect_to(const std::string& name) {
  TRY(const Address address, address_of(name));
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), bare(address), address.size) != 0) return os_error(errno, "connect to the socket", name);
  return fd;
}

Result<Fd> accept_from(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (fd || errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return fd;
  return os_error(errno, "accept from", "the socket");
}

bool await_connection(int listener, int wake) {
  struct pollfd wait_for[2] = {{.fd = listener, .events = POLLIN, .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}};
  if (::poll(wait_for, 2, -1) < 0) return false;
  u64 count = 0;
  if (wait_for[1].revents != 0) static_cast<void>(!::read(wake, &count, sizeof count));
  return (wait_for[0].revents & POLLIN) != 0;
}

void await_end(int socket) {
  struct pollfd wait_for = {.fd = socket, .events = POLLIN, .revents = 0};
  while (::poll(&wait_for, 1, -1) < 0) {}
}

bool is_same_user(int socket) {
  struct ucred peer = {};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof peer && peer.uid == ::geteuid();
}

Result<void> send_descriptors(int socket, int first, int second) {
  char mark = 'd';
  struct iovec payload = {&mark, 1};
  Control control = {};
  struct msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  struct cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(kDescriptors * sizeof(int));
  const int both[kDescriptors] = {first, second};
  std::memcpy(CMSG_DATA(header), both, sizeof both);
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) == 1) return ok();
    if (errno != EINTR) return os_error(errno, "hand descriptors to", "the socket");
  }
}

Result<std::pair<Fd, Fd>> receive_descriptors(int socket, Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  struct pollfd wait_for = {.fd = socket, .events = POLLIN, .revents = 0};
  if (::poll(&wait_for, 1, static_cast<int>(std::clamp<i64>(left, 0, std::numeric_limits<int>::max()))) <= 0) return os_error(ETIMEDOUT, "take descriptors from", "the socket");
  char mark = 0;
  struct iovec payload = {&mark, 1};
  Control control = {};
  struct msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return os_error(errno, "take descriptors from", "the socket");
  // Whatever came is ours to close, were it too few.
  Fd taken[kDescriptors];
  std::size_t count = 0;
  const struct cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
    for (; count < kDescriptors && CMSG_LEN((count + 1) * sizeof(int)) <= header->cmsg_len; ++count) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + count * sizeof fd, sizeof fd);
      taken[count] = Fd(fd);
    }
  if (count < kDescriptors) return os_error(EPROTO, "take descriptors from", "the socket");
  return std::pair{std::move(taken[0]), std::move(taken[1])};
}

}  // namespace envsync::os
