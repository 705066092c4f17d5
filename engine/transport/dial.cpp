// SPDX-License-Identifier: MIT
#include "transport/dial.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace envsync::transport {
namespace {

std::string text_of(int saved_errno) {
  const char* text = ::strerrordesc_np(saved_errno);
  return text ? text : fmt::format("error {}", saved_errno);
}

std::string numeric(const struct addrinfo& address) {
  std::array<char, 128> host{};
  if (::getnameinfo(address.ai_addr, address.ai_addrlen, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return host.data();
}

std::string shown(const struct addrinfo& address) {
  std::array<char, 128> host{}, port{};
  if (::getnameinfo(address.ai_addr, address.ai_addrlen, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an address";
  return fmt::format("{} port {}", host.data(), port.data());
}

void set_option(int fd, int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); }

/// An Error's sys_errno is why this address did not answer; interrupted ends the search.
Result<os::Fd> connect_to(const struct addrinfo& address, int wake, Deadline deadline) {
  os::Fd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto failed = [](int saved) {
    Error error(ErrorCode::connect_failed, text_of(saved));
    error.sys_errno = saved;
    return error;
  };
  if (!fd) return failed(errno);
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return failed(errno);
    if (auto ready = await_ready(fd.get(), POLLOUT, wake, deadline); !ready)
      return ready.error().code == ErrorCode::interrupted ? std::move(ready).error() : failed(ETIMEDOUT);
    int saved = 0;
    socklen_t size = sizeof saved;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &saved, &size);
    if (saved != 0) return failed(saved);
  }
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
  return fd;
}

Error no_name(const Host& host, const Login& login, int code) {
  Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': its name does not resolve", host.name));
  error.causes.push_back(fmt::format("'{}': {}", printable(login.host), code == EAI_SYSTEM ? text_of(errno) : ::gai_strerror(code)));
  error.hints.emplace_back("correct the name in the manifest, or give it a HostName in ssh_config");
  return error;
}

Result<Dialled> dial_tcp(const Host& host, const Options& options, const Login& login, int wake) {
  struct addrinfo hints = {};
  hints.ai_family = login.family;
  hints.ai_socktype = SOCK_STREAM;
  struct addrinfo* found = nullptr;
  const std::string& name = options.address.empty() ? login.host : options.address;
  if (const int code = ::getaddrinfo(name.c_str(), fmt::format("{}", login.port).c_str(), &hints, &found); code != 0) return no_name(host, login, code);
  const std::unique_ptr<struct addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': no TCP connection", host.name));
  for (const struct addrinfo* address = found; address; address = address->ai_next) {
    auto fd = connect_to(*address, wake, deadline_in(login.timeout));
    if (fd) return Dialled{std::move(*fd), nullptr, shown(*address), numeric(*address)};
    if (fd.error().code == ErrorCode::interrupted) return std::move(fd).error();
    error.causes.push_back(fmt::format("{}: {}", shown(*address), fd.error().what));
    error.sys_errno = fd.error().sys_errno;
  }
  error.hints.push_back(fmt::format("see that the host is up and that its sshd listens on port {}, then run `{} true`", login.port, ssh_to_paste(host, options)));
  return error;
}

Result<Dialled> dial_by(const Host& host, const Login& login, bool own_group) {
  TRY(auto ends, os::make_socket_pair());
  TRY(auto errors, os::make_pipe());
  auto argv = login.proxy;
  // As for the ssh program: a program that may ask stays in the foreground, and the terminal's interrupt is for us.
  if (!own_group) argv.insert(argv.begin(), {"sh", "-c", "trap \"\" INT QUIT; exec \"$@\"", "sh"});
  auto child = os::spawn(argv, {.in = ends.second.get(), .out = ends.second.get(), .err = errors.write.get()}, own_group);
  if (!child) return std::move(child).error().context(fmt::format("cannot reach '{}': the program on the way there cannot be started", host.name));
  const int flags = ::fcntl(ends.first.get(), F_GETFL);
  ::fcntl(ends.first.get(), F_SETFL, flags | O_NONBLOCK);
  errors.write.reset();
  return Dialled{std::move(ends.first), std::unique_ptr<Proxy>(new Proxy{std::move(*child), Drain(std::move(errors.read))}), "the program on the way there", {}};
}

}  // namespace

Result<void> await_ready(int fd, short events, int wake, Deadline deadline) {
  for (;;) {
    int timeout_ms = -1;
    if (deadline != kNoDeadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
      if (left <= 0) return Error(ErrorCode::connection_lost, "nothing came in the time allowed");
      timeout_ms = static_cast<int>(std::min<i64>(left, std::numeric_limits<int>::max()));
    }
    struct pollfd wait_for[2] = {{.fd = fd, .events = events, .revents = 0}, {.fd = wake, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(wait_for, 2, timeout_ms);
    if (ready < 0 && errno != EINTR) return Error(ErrorCode::connection_lost, fmt::format("cannot wait for the connection: {}", text_of(errno)));
    if (ready <= 0) continue;
    if (wait_for[1].revents) return Error(ErrorCode::interrupted, "stopped");
    return ok();
  }
}

Result<Dialled> dial(const Host& host, const Options& options, const Login& login, bool own_group, int wake) {
  return login.proxy.empty() ? dial_tcp(host, options, login, wake) : dial_by(host, login, own_group);
}

}  // namespace envsync::transport
