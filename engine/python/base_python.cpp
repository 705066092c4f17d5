// SPDX-License-Identifier: MIT
#include "python/base_python.hpp"

#include "python/absolute_paths.hpp"
#include "python/environment.hpp"
#include "python/text.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace envsync::python {
namespace {

std::string_view parent_of(std::string_view path) { return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)); }

Error refused(std::string what) {
  return Error{ErrorCode::invariant_violated, std::move(what)}
      .note("nothing was changed")
      .hint("install that Python on the target and set invariants.interpreter to require, or make the environment with a Python of uv or conda");
}

bool is_systems(std::string_view root) {
  constexpr std::array<std::string_view, 5> kRoots{"/", "/usr", "/usr/local", "/opt", "/home"};
  return std::ranges::find(kRoots, root) != kRoots.end() || lies_in(root, "/usr/lib") || lies_in(root, "/lib");
}

}  // namespace

Result<BasePython> base_python(std::string_view pyvenv, std::string_view program) {
  const auto cfg = parse_pyvenv(pyvenv);
  const auto found = cfg.find("home");
  if (found == cfg.end() || !found->second.starts_with('/')) return refused("pyvenv.cfg names no base interpreter, so none can be brought");
  const std::string home = normalized(found->second);
  if (home.substr(home.rfind('/') + 1) != "bin") return refused(fmt::format("the base interpreter lies in '{}', not in a folder 'bin' of its own", printable(home)));
  BasePython out{std::string(parent_of(home)), normalized(program)};
  if (is_systems(out.root)) return refused(fmt::format("the base interpreter '{}' is the system's, and is not brought to other hosts", printable(program)));
  if (!lies_in(out.program, out.root))
    return refused(fmt::format("the base interpreter has its home in '{}' and its program at '{}', which are two places", printable(home), printable(program)));
  return out;
}

BaseKind kind_of(const BasePython& base, const tree::Tree& tree) {
  if (tree.find(*tree::RelPath::parse("conda-meta")) != nullptr) return BaseKind::conda;
  return base.root.find("/uv/python/") != std::string::npos ? BaseKind::uv : BaseKind::other;
}

std::string wrong_with_base(const BasePython& base, const tree::Tree& tree, std::string_view version) {
  const auto program = tree::RelPath::parse(base.program.substr(std::min(base.root.size() + 1, base.program.size())));
  if (!program || tree.find(*program) == nullptr) return fmt::format("it has no '{}'", printable(base.program));
  const auto library = tree::RelPath::parse(fmt::format("lib/python{}/os.py", version));
  if (version.empty() || !library || tree.find(*library) == nullptr) return fmt::format("its standard library is not in 'lib/python{}'", version);
  return {};
}

std::vector<std::string> needed_outside(const std::vector<Library>& libraries) {
  std::set<std::string, std::less<>> names, needed;
  for (const Library& one : libraries) {
    names.insert(one.soname);
    names.insert(one.path.substr(one.path.rfind('/') + 1));
    for (std::string_view rest = one.needed; !rest.empty();) needed.emplace(take_until(rest, ':'));
  }
  std::vector<std::string> out;
  for (const std::string& name : needed)
    if (!name.empty() && !names.contains(name)) out.push_back(name);
  return out;
}

}  // namespace envsync::python
