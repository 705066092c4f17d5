// SPDX-License-Identifier: MIT
#include "agent/session.hpp"
#include "os/paths.hpp"

namespace envsync::agent {

namespace {

constexpr std::size_t kPyvenvMax = 64u << 10;

/// "3.12" of "python3.12"; empty where the name is another.
std::string version_in(std::string_view name) {
  constexpr std::string_view kPrefix = "python";
  if (!name.starts_with(kPrefix)) return {};
  name.remove_prefix(kPrefix.size());
  if (name.find('.') == std::string_view::npos || name.find_first_not_of("0123456789.") != std::string_view::npos) return {};
  return std::string(name);
}

/// The only folder lib/pythonX.Y; empty: none or several.
std::string only_lib_python(int root_fd) {
  auto lib = os::open_dir(root_fd, "lib");
  if (!lib) return {};
  const auto entries = os::list(lib->get(), "lib");
  if (!entries) return {};
  std::string found;
  for (const os::DirEntry& entry : *entries) {
    if (version_in(entry.name).empty()) continue;
    if (!found.empty()) return {};
    found = entry.name;
  }
  return found;
}

}  // namespace

format::EnvironmentFacts environment_facts(int root_fd, const std::string& root_path) {
  format::EnvironmentFacts facts;
  if (auto text = os::read_small(root_fd, "pyvenv.cfg", kPyvenvMax)) {
    facts.has_pyvenv = true;
    facts.pyvenv = std::move(*text);
  }
  facts.lib_python = only_lib_python(root_fd);
  const std::string python = root_path + "/bin/python";
  facts.bin_python_runs = os::is_executable(python);
  const auto end = os::real_path(python);
  facts.bin_python_target = end.value_or(python);
  facts.home_version = end ? version_in(end->substr(end->rfind('/') + 1)) : std::string{};
  return facts;
}

}  // namespace envsync::agent
