// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "transport/transport.hpp"

namespace envsync::transport {

Result<std::string> find_agent(const std::string& given) {
  std::vector<std::filesystem::path> places;
  const char* named = std::getenv("ENVSYNC_AGENT");
  if (!given.empty()) {
    places.emplace_back(given);
  } else if (named && *named) {
    places.emplace_back(named);
  } else {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (!error) places = {self.parent_path() / "envsync-agent", self.parent_path() / "../libexec/envsync/envsync-agent"};
  }
  Error error(ErrorCode::failed, "cannot find the agent program");
  for (const auto& place : places) {
    std::error_code ignored;
    const auto path = std::filesystem::canonical(place, ignored);
    if (!ignored && std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), R_OK | X_OK) == 0) return path.string();
    error.causes.push_back(fmt::format("'{}' is not an executable file", printable(place.lexically_normal().string())));
  }
  error.hints.emplace_back("set ENVSYNC_AGENT to the path of envsync-agent of the same build");
  return error;
}

}  // namespace envsync::transport
