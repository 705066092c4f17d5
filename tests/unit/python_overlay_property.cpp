// SPDX-License-Identifier: MIT
// Random environments, whose distributions share paths and require each other, against the definition of an overlay written
// down a second time, path by path and in the slowest way.
#include "python/overlay.hpp"

#include "support/python_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <set>

using namespace envsync;
using namespace envsync::python;

namespace {

using Strings = std::set<std::string>;

class Random {
 public:
  explicit Random(u32 seed) : engine_(seed) {}
  std::size_t below(std::size_t end) { return engine_() % end; }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::mt19937 engine_;
};

constexpr std::string_view kNames[] = {"a", "b", "c", "d", "e", "f"};
constexpr std::string_view kPaths[] = {"ns/__init__.py", "ns/x/1.so", "ns/x/2.so", "ns/y/1.so", "ns/y/deep/2.so", "p/q.py", "p/r.py", "q.py", "/bin/s", "/bin/t", "/share/u/v", "ns/x.py"};

/// One of each name at most; each with rows of a few paths, some of which are another's too.
test::Environment random_environment(Random& random, std::vector<std::string>& unowned) {
  std::vector<test::Install> installs;
  for (const std::string_view name : kNames) {
    if (random.one_in(4)) continue;
    test::Install one{std::string(name), fmt::format("{}.0", 1 + random.below(3)), {}};
    Strings paths;
    for (std::size_t i = random.below(5); i > 0; --i) paths.insert(std::string(kPaths[random.below(std::size(kPaths))]));
    for (const std::string& path : paths) one.files.push_back(fmt::format("{}={}", path, random.below(3)));
    one.files.push_back(fmt::format("{}_own/{}.py={}", name, random.below(2), random.below(3)));
    for (std::size_t i = random.below(3); i > 0; --i)
      one.needs.push_back(fmt::format("{}{}{}.0{}", kNames[random.below(std::size(kNames))], random.one_in(2) ? "==" : ">=", 1 + random.below(3),
                                      random.one_in(5) ? "; sys_platform == 'win32'" : ""));
    installs.push_back(std::move(one));
  }
  std::shuffle(installs.begin(), installs.end(), std::mt19937(static_cast<u32>(random.below(1000))));
  for (const std::string_view path : {"ns/x/hand", "a_own/hand", "b_own/deep/hand", "ns/hand", "hand"})
    if (random.one_in(3)) unowned.push_back(std::string(test::kSite) + std::string(path) + "=hand");
  return test::environment(installs, unowned);
}

/// What the definition needs to know about one side, from its texts alone.
struct Side {
  const test::Environment& environment;
  std::map<std::string, Strings> rows;                                      // by name: paths listed, dist-info included
  std::map<std::string, std::map<std::string, std::string>> hashes;         // by name and path
  std::map<std::string, std::string> content;                               // by path
  std::map<std::string, const Installed*> installed;
  DistributionSet set;

  explicit Side(const test::Environment& there) : environment(there), set(there.set()) {
    set.learn(there.sums);
    for (const Installed& one : set.all()) {
      installed.emplace(one.name(), &one);
      const std::string folder = one.about.folder.bytes() + "/";
      for (const auto& [path, text] : there.files)
        if (path.starts_with(folder)) rows[one.name()].insert(path);
      for (const RecordRow& row : parse_record(there.files.at(folder + "RECORD")).rows) {
        const std::string path = resolve_row(one.site, row.path)->bytes();
        rows[one.name()].insert(path);
        if (!row.hash.empty()) hashes[one.name()][path] = row.hash;
      }
    }
    for (const tree::Entry& entry : there.tree.entries())
      if (entry.file() != nullptr) content[entry.path.bytes()] = entry.file()->digest.hex();
  }

  Strings owners(const std::string& path) const {
    Strings out;
    for (const auto& [name, paths] : rows)
      if (paths.contains(path)) out.insert(name);
    return out;
  }
  Strings effective(const std::string& path) const {
    Strings out;
    for (const std::string& name : owners(path)) {
      const auto& listed = hashes.contains(name) ? hashes.at(name) : std::map<std::string, std::string>{};
      if (!listed.contains(path) || listed.at(path) == render_record_hash(environment.sums.at(path))) out.insert(name);
    }
    return out;
  }
  /// Pins of `names`, and pins of those.
  Strings pinned_closure(Strings names) const {
    for (bool grown = true; grown;) {
      grown = false;
      for (const std::string& name : Strings(names))
        if (installed.contains(name))
          for (const Requirement& what : installed.at(name)->requirements)
            if (what.is_pin() && what.applies(MarkerEnvironment::for_python("3.12"), {}) && installed.contains(what.name)) grown = names.insert(what.name).second || grown;
    }
    return names;
  }
};

/// As rule 2 says it: pins join, ranges join where the base does not meet them.
Strings coming_by_definition(const Side& base, const Side& origin, Strings names) {
  const auto fits = [](const Side& side, const Requirement& what) {
    return side.installed.contains(what.name) && what.versions.contains(side.installed.at(what.name)->about.version);
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (const std::string& name : Strings(names)) {
      for (const Requirement& what : origin.installed.at(name)->requirements) {
        if (!what.applies(MarkerEnvironment::for_python("3.12"), {}) || !origin.installed.contains(what.name)) continue;
        const bool helps = fits(origin, what) || !base.installed.contains(what.name);
        if (what.is_pin() || (!fits(base, what) && helps)) grown = names.insert(what.name).second || grown;
      }
    }
  }
  return names;
}

Strings evicted_by_definition(const Side& base, const Side& origin, const Strings& coming) {
  Strings out;
  for (const std::string& name : base.pinned_closure(coming))
    if (base.installed.contains(name) && !coming.contains(name)) out.insert(name);
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    const auto keep = [&](const Installed& who) {
      for (const Requirement& what : who.requirements)
        if (what.applies(MarkerEnvironment::for_python("3.12"), {})) shrunk = out.erase(what.name) > 0 || shrunk;
    };
    for (const std::string& name : coming) keep(*origin.installed.at(name));
    for (const auto& [name, one] : base.installed)
      if (!coming.contains(name) && !Strings(out).contains(name)) keep(*one);
  }
  return out;
}

/// path -> content of the desired tree, and whether the plan is refused.
struct Defined {
  std::map<std::string, std::string> content;
  bool refused = false;
};

bool is_inside_left(const Side& base, const std::string& path, const Strings& leaving) {
  for (std::string folder = path.substr(0, path.rfind('/')); folder.size() > test::kSite.size(); folder = folder.substr(0, folder.rfind('/'))) {
    Strings owners;
    for (const auto& [name, paths] : base.rows)
      for (const std::string& owned : paths)
        if (owned.starts_with(folder + "/") && base.content.contains(owned)) owners.insert(name);
    if (!owners.empty()) return std::ranges::includes(leaving, owners);
  }
  return false;
}

Defined defined(const Side& base, const Side& origin, const Strings& coming, const Strings& leaving, const OverlayOptions& options) {
  Defined out;
  Strings paths;
  for (const auto& [path, _] : base.content) paths.insert(path);
  for (const auto& [path, _] : origin.content) paths.insert(path);
  const auto meets = [](const Strings& a, const Strings& b) { return std::ranges::any_of(a, [&](const std::string& one) { return b.contains(one); }); };
  for (const std::string& path : paths) {
    const bool in_base = base.content.contains(path), comes = origin.content.contains(path) && meets(origin.owners(path), coming);
    Strings staying;
    for (const std::string& name : base.owners(path))
      if (!leaving.contains(name)) staying.insert(name);
    const Strings effective = base.effective(path);
    if (comes && !origin.effective(path).empty() && !meets(origin.effective(path), coming)) out.refused = true;
    if (comes) {
      const bool conflicts = in_base && meets(effective, staying) && base.content.at(path) != origin.content.at(path);
      if (conflicts && options.conflicts == ConflictRule::error) out.refused = true;
      out.content[path] = conflicts && options.conflicts != ConflictRule::overlay ? base.content.at(path) : origin.content.at(path);
    } else if (in_base && base.owners(path).empty()) {
      const bool goes = options.unmanaged == UnmanagedRule::remove && is_inside_left(base, path, leaving);
      if (!goes) out.content[path] = base.content.at(path);
    } else if (in_base && !staying.empty()) {
      if (!effective.empty() && !meets(effective, staying)) out.refused = true;
      out.content[path] = base.content.at(path);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("overlays of random environments are what the definition says, and lose no path of what stays") {
  u64 refused = 0, evicted = 0, conflicts = 0;
  for (u32 seed = 0; seed < 3000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::vector<std::string> unowned, unowned_above;
    const test::Environment below = random_environment(random, unowned), above = random_environment(random, unowned_above);
    const Side base(below), origin(above);
    if (origin.installed.empty()) continue;
    OverlayOptions options;
    for (std::size_t i = 1 + random.below(2); i > 0; --i) options.packages.push_back(std::next(origin.installed.begin(), static_cast<std::ptrdiff_t>(random.below(origin.installed.size())))->first);
    options.closure = random.one_in(4) ? ClosureRule::none : ClosureRule::pinned;
    options.evict_auto = !random.one_in(4);
    options.conflicts = static_cast<ConflictRule>(random.below(3));
    options.unmanaged = random.one_in(3) ? UnmanagedRule::keep : UnmanagedRule::remove;

    Strings coming(options.packages.begin(), options.packages.end());
    const bool follows = options.closure == ClosureRule::pinned;
    if (follows) coming = coming_by_definition(base, origin, coming);
    Strings leaving = follows && options.evict_auto ? evicted_by_definition(base, origin, coming) : Strings{};
    const Strings unneeded = leaving;
    evicted += unneeded.size();
    for (const auto& [name, _] : base.installed)
      if (coming.contains(name)) leaving.insert(name);
    const Defined expected = defined(base, origin, coming, leaving, options);

    const auto laid = lay_over(base.set, origin.set, options, MarkerEnvironment::for_python("3.12"));
    REQUIRE(laid.has_value());
    Strings came, left;
    for (const PackageStep& step : laid->packages) (step.kind == StepKind::evicted ? left : came).insert(step.name);
    REQUIRE(came == coming);
    REQUIRE(left == unneeded);
    if (std::ranges::any_of(laid->findings, [](const Finding& f) { return f.code == "path_blocked"; })) continue;
    std::map<std::string, std::string> content;
    for (const tree::Entry& entry : laid->desired.entries())
      if (entry.file() != nullptr) content[entry.path.bytes()] = entry.file()->digest.hex();
    REQUIRE(content == expected.content);
    REQUIRE(laid->refused() == expected.refused);
    for (const auto& [name, one] : base.installed) {
      if (leaving.contains(name)) continue;
      for (const std::string& path : base.rows.at(name))
        if (base.content.contains(path)) REQUIRE(laid->desired.find(*tree::RelPath::parse(path)) != nullptr);
    }
    for (const TakenPath& taken : laid->taken) REQUIRE(tree::same_content(*laid->desired.find(taken.path), *above.tree.find(taken.origin_path)));
    refused += laid->refused() ? 1 : 0;
    conflicts += std::ranges::count(laid->findings, "conflicts", &Finding::code) > 0 ? 1 : 0;
  }
  // The generator reaches what it is there for.
  CHECK(refused > 100);
  CHECK(evicted > 100);
  CHECK(conflicts > 100);
}
