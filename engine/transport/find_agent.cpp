// SPDX-License-Identifier: MIT
#include <cstdlib>

#include <fmt/format.h>

#include "os/paths.hpp"
#include "transport/transport.hpp"

namespace envsync::transport {
namespace {

/// The folder of the running program; empty where /proc does not tell.
std::string program_folder() {
  const auto self = os::real_path("/proc/self/exe");
  return self ? self->substr(0, self->rfind('/')) : std::string();
}

}  // namespace

Result<std::string> find_agent(const std::string& given) {
  std::vector<std::string> places;
  const char* named = std::getenv("ENVSYNC_AGENT");
  if (!given.empty()) places = {given};
  else if (named && *named) places = {named};
  else if (const auto folder = program_folder(); !folder.empty())
    places = {folder + "/envsync-agent", folder.substr(0, folder.rfind('/')) + "/libexec/envsync/envsync-agent"};
  Error error(ErrorCode::failed, "cannot find the agent program");
  for (const auto& place : places) {
    if (const auto path = os::real_path(place); path && os::is_executable(*path)) return *path;
    error.causes.push_back(fmt::format("'{}' is not an executable file", printable(place)));
  }
  error.hints.emplace_back("set ENVSYNC_AGENT to the path of envsync-agent of the same build");
  return error;
}

}  // namespace envsync::transport
