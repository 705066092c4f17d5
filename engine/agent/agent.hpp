// SPDX-License-Identifier: MIT
// The agent's serve loop: each request to scan, store or content. The agent knows trees, not Python; it obeys and protects,
// checking every path, length and digest that it is told.
#pragma once

#include <memory>

#include "channel/channel.hpp"
#include "os/files.hpp"

namespace envsync::agent {

/// Serves one connection until it ends; the exit status. `first` is the first request's bytes, handled as request 1.
/// After a commit was asked for, the commit is finished even if the connection ends.
int serve(std::unique_ptr<channel::Channel> channel, ByteView first, os::Files& files);

/// Arguments of the agent program: `serve [BASE64]`; stdin and stdout are the channel. `--version` prints the build.
int main(int argc, char** argv, os::Files& files);

}  // namespace envsync::agent
