// SPDX-License-Identifier: MIT
// A session of the agent in a thread, and further logins to it: what several processes are on a host.
#pragma once

#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "agent/agent.hpp"
#include "agent/joins.hpp"
#include "os/process.hpp"
#include "protocol/endpoint.hpp"
#include "support/store_large.hpp"

namespace envsync::testing {

using protocol::Endpoint;

inline std::unique_ptr<Endpoint> endpoint_on(os::Fd fd) { return std::make_unique<Endpoint>(channel::make_fd_channel(std::move(fd), {}), nullptr, ""); }

/// A session in a thread, with its control connection.
struct Served {
  Folder folder;
  os::PosixFiles files;
  std::future<int> status;
  std::unique_ptr<Endpoint> control;
  os::Fd wire;  // of the control connection, to cut it

  Served() {
    ::setenv("XDG_CACHE_HOME", folder.path("cache").c_str(), 1);
    auto ends = os::make_socket_pair();
    REQUIRE(ends);
    auto far = std::make_shared<std::unique_ptr<channel::Channel>>(channel::make_fd_channel(std::move(ends->second), {}));
    status = std::async(std::launch::async, [this, far] { return agent::serve(std::move(*far), {}, files); });
    wire = os::Fd(::dup(ends->first.get()));
    control = endpoint_on(std::move(ends->first));
    REQUIRE(control->greet({}));
  }
  void close() {
    control.reset();
    wire.reset();
  }
  ~Served() {
    close();
    if (status.valid()) status.wait();
  }
  std::string open_door(const std::string& secret = "0123") {
    const auto reply = control->lanes({secret}, {});
    REQUIRE(reply);
    return reply->name;
  }
  format::ScanReply scan(format::Role role, const std::string& rel) {
    format::ScanRequest request;
    request.run = "r";
    request.operator_name = "ada";
    request.role = role;
    request.path = folder.path(rel);
    request.lock = role == format::Role::target ? format::LockMode::exclusive : format::LockMode::none;
    auto reply = control->scan(request, {}, {});
    REQUIRE(reply);
    return std::move(*reply);
  }
};

/// The login of a further connection: what its agent does, in a thread.
struct Login {
  std::future<int> status;
  std::unique_ptr<Endpoint> endpoint;
  os::Fd wire;  // to cut it

  void close() {
    endpoint.reset();
    wire.reset();
  }
  explicit Login(const std::string& name) {
    auto ends = os::make_socket_pair();
    REQUIRE(ends);
    wire = os::Fd(::dup(ends->first.get()));
    endpoint = endpoint_on(std::move(ends->first));
    status = std::async(std::launch::async, [name, fd = ends->second.release()] {
      const std::string hello(as_text(format::encode(format::Hello{"0", "", 1})));
      return agent::hand_over(name, hello, os::Fd(fd), os::Fd(::dup(fd)));
    });
    REQUIRE(endpoint->greet({}));
  }
};

inline content::ContentId id_of(const std::string& text) {
  content::FileHasher hasher;
  hasher.update(as_bytes(text));
  return {hasher.finish(), text.size()};
}

inline Buffer pack_of(u32 want, u64 offset, ByteView bytes) {
  content::PackBuilder pack(1, bytes.size());
  std::ranges::copy(bytes, pack.add({want, offset, narrow<u32>(bytes.size())}).begin());
  return std::move(pack).finish(content::kRawLevel);
}

inline Result<format::StageReply> stage(Served& served, const tree::Tree& desired) {
  format::StageRequest request;
  request.head.run = "r";
  return served.control->stage(request, tree::make_delta({}, desired), {}, {}, {}, {});
}

}  // namespace envsync::testing
