// SPDX-License-Identifier: MIT
#include "python/distribution_set.hpp"

#include "support/python_environment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

using Lines = std::vector<std::string>;

/// The paths that a distribution owns, its dist-info aside; site-packages is left away.
Lines owned(const DistributionSet& set, std::string_view name) {
  Lines out;
  for (const u32 i : set.named(name)) {
    for (const OwnedEntry& one : set.all()[i].owned) {
      const std::string& path = set.tree().entries()[one.entry].path.bytes();
      if (set.all()[i].about.folder.contains(set.tree().entries()[one.entry].path)) continue;
      out.push_back(path.starts_with(test::kSite) ? path.substr(test::kSite.size()) : "/" + path);
    }
  }
  return out;
}

Lines effective(const DistributionSet& set, std::string_view path) {
  Lines out;
  for (const u32 i : set.effective_owners(*set.tree().index_of(*tree::RelPath::parse(std::string(path))))) out.push_back(set.all()[i].name());
  return out;
}

std::string site(std::string_view path) { return std::string(test::kSite) + std::string(path); }

/// An environment whose one distribution has this RECORD.
test::Environment with_record(std::string record, const Lines& others = {}) {
  test::Environment out = test::environment({{"a", "1", {}}}, others);
  out.files[site("a-1.dist-info/RECORD")] = std::move(record);
  return out;
}

Lines refused(const test::Environment& environment) {
  Lines out;
  const DistributionSet set = environment.set();
  for (const RecordProblem& problem : set.all()[0].refused) out.push_back(fmt::format("{} {}", problem.row, problem.why));
  return out;
}

}  // namespace

TEST_CASE("a distribution owns its rows wherever they lie, and what lies in its dist-info") {
  const auto there = test::environment({{"Torch.Foo", "2.11.0", {"torch/__init__.py=1", "/bin/torchrun=2", "/share/man/man1/t.1=3"}, {"filelock", "bad requirement"}}},
                                       {"lib/python3.12/site-packages/Torch.Foo-2.11.0.dist-info/REQUESTED="});
  const DistributionSet set = there.set();
  REQUIRE(set.all().size() == 1);
  CHECK(set.all()[0].label() == "torch-foo 2.11.0");
  CHECK(owned(set, "torch-foo") == Lines{"/bin/torchrun", "torch/__init__.py", "/share/man/man1/t.1"});
  CHECK(set.all()[0].owned.size() == 6);
  CHECK(set.all()[0].requirements.size() == 1);
  CHECK(set.all()[0].unread_requirements == Lines{"bad requirement"});
  CHECK(set.is_unowned_file(*set.tree().index_of(*tree::RelPath::parse("pyvenv.cfg"))));
}

TEST_CASE("METADATA names the distribution, not the folder, and two of one name are both there") {
  auto there = test::environment({{"a", "1", {}}, {"a", "2", {}}});
  there.files[site("a-2.dist-info/METADATA")] = "Name: Renamed_It\nVersion: 3\n";
  CHECK(there.set().named("renamed-it").size() == 1);
  CHECK(test::environment({{"a", "1", {}}, {"A", "2", {}}}).set().named("a").size() == 2);
}

TEST_CASE("bytecode belongs to the owner of its source, listed or not, and its missing rows miss nothing") {
  const auto there = test::environment({{"a", "1", {"a/x.py=1", "!a/__pycache__/y.cpython-312.pyc=", "!a/x.pyc=", "!a/gone.py=1", "!a/other.pyc=1"}}},
                                       {"lib/python3.12/site-packages/a/__pycache__/x.cpython-312.opt-1.pyc=p", "lib/python3.12/site-packages/a/__pycache__/z.cpython-312.pyc=p"});
  const DistributionSet set = there.set();
  CHECK(owned(set, "a") == Lines{"a/__pycache__/x.cpython-312.opt-1.pyc", "a/x.py"});
  Lines missing;
  for (const MissingRow& row : set.all()[0].missing) missing.push_back(row.path.bytes());
  CHECK(missing == Lines{site("a/gone.py"), site("a/other.pyc")});
}

TEST_CASE("rows of a folder that lib64 names too are found") {
  const auto there = with_record("../../../lib64/python3.12/site-packages/a.py,,\n", {"lib64 -> lib", "lib/python3.12/site-packages/a.py=1"});
  CHECK(owned(there.set(), "a") == Lines{"a.py"});
}

TEST_CASE("what a RECORD may not claim is refused by name and owned by nobody") {
  const auto there = with_record("../../../../env_backup/x,,\n/etc/passwd,,\n../../../pyvenv.cfg,,\n../../../bin/python3.12,,\n../../../bin/activate.fish,,\n../../../lib64,,\na,,\n",
                                 {"bin/python3.12 -> /usr/bin/python3.12", "bin/activate.fish=x", "lib64 -> lib", "lib/python3.12/site-packages/a/x.py=1"});
  CHECK(refused(there) == Lines{"../../../../env_backup/x leaves the environment", "/etc/passwd is absolute", "../../../pyvenv.cfg names a file of the environment itself",
                                "../../../bin/python3.12 names a file of the environment itself", "../../../bin/activate.fish names a file of the environment itself",
                                "../../../lib64 names a file of the environment itself", "a names a folder"});
  CHECK(owned(there.set(), "a").empty());
}

TEST_CASE("scripts whose names only begin like the environment's own are owned") {
  for (const std::string_view own : {"bin/python", "bin/python3", "bin/python3.13t", "bin/activate", "bin/activate.csh", "bin/Activate.ps1", "pyvenv.cfg", "lib64"})
    CHECK_MESSAGE(is_environments_own(*tree::RelPath::parse(std::string(own))), own);
  for (const std::string_view other : {"bin/python-argcomplete-check", "bin/activate-global-python-argcomplete", "bin/pythonwin", "lib64/x", "share/pyvenv.cfg", "bin/python.d/x"})
    CHECK_MESSAGE(!is_environments_own(*tree::RelPath::parse(std::string(other))), other);
}

TEST_CASE("a path listed twice counts once, and is refused where the hashes differ") {
  const std::string one = render_record_hash(test::sum_of("1")), two = render_record_hash(test::sum_of("2"));
  const Lines file{"lib/python3.12/site-packages/x.py=1"};
  CHECK(refused(with_record("x.py," + one + ",1\nx.py," + one + ",1\n./x.py,,\n", file)).empty());
  CHECK(refused(with_record("x.py," + one + ",1\nx.py," + two + ",1\n", file)) == Lines{site("x.py") + " repeats a path with another hash"});
  CHECK(owned(with_record("x.py," + one + ",1\nx.py," + two + ",1\n", file).set(), "a") == Lines{"x.py"});
}

TEST_CASE("a distribution without a readable RECORD says why") {
  test::Environment there = test::environment({{"a", "1", {"a.py=1"}}});
  CHECK(there.set().all()[0].unreadable.empty());
  there.files[site("a-1.dist-info/RECORD")] = "\"a.py,,";
  CHECK(there.set().all()[0].unreadable == "a RECORD that cannot be read: a quote that is not closed in line 1");
  there.files.erase(site("a-1.dist-info/RECORD"));
  CHECK(there.set().all()[0].unreadable == "no RECORD");
}

TEST_CASE("the owner of a shared path is the one whose row matches what is there") {
  const auto there = test::environment({{"base", "1", {"dsl/x.py=old!", "dsl/same.py=s", "dsl/size.py=123"}}, {"cu13", "1", {"dsl/x.py=newer", "dsl/same.py=s", "dsl/size.py=12"}}});
  DistributionSet set = there.set();
  CHECK(effective(set, site("dsl/same.py")) == Lines{"base", "cu13"});
  CHECK(effective(set, site("dsl/size.py")) == Lines{"cu13"});
  CHECK(effective(set, site("dsl/x.py")) == Lines{"cu13"});
}

TEST_CASE("sizes alone may leave several owners, sha256 does not") {
  const auto there = test::environment({{"base", "1", {"dsl/x.py=aaa"}}, {"cu13", "1", {"dsl/x.py=bbb"}}});
  DistributionSet set = there.set();
  CHECK(set.contested() == std::vector<tree::RelPath>{*tree::RelPath::parse(site("dsl/x.py"))});
  CHECK(effective(set, site("dsl/x.py")) == Lines{"base", "cu13"});
  set.learn(there.sums);
  CHECK(effective(set, site("dsl/x.py")) == Lines{"cu13"});
}

TEST_CASE("what no row matches belongs to nobody, and what has no hash to who lists it") {
  test::Environment there = test::environment({{"a", "1", {"x.py=abc"}}}, {"lib/python3.12/site-packages/x.py=edited"});
  CHECK(effective(there.set(), site("x.py")).empty());
  there.files[site("a-1.dist-info/RECORD")] = "x.py,,\n";
  CHECK(effective(there.set(), site("x.py")) == Lines{"a"});
}

TEST_CASE("another distribution's claim on a dist-info takes nothing from its owner") {
  const auto there = test::environment({{"evil", "1", {"!good-1.dist-info/METADATA=x", "!good.py=2"}}, {"good", "1", {"good.py=1"}}});
  DistributionSet set = there.set();
  set.learn(there.sums);
  CHECK(effective(set, site("good-1.dist-info/METADATA")) == Lines{"good"});
  CHECK(effective(set, site("good.py")) == Lines{"good"});
}

TEST_CASE("the wanted small files are those of dist-infos that are there") {
  const auto there = test::environment({{"a", "1", {"a.py=1"}, {}, {}, "[console_scripts]\na = a:m\n"}}, {"lib/python3.12/site-packages/a-1.dist-info/LICENSE=x"});
  CHECK(wanted_small_files(there.tree) == std::vector<tree::RelPath>{*tree::RelPath::parse(site("a-1.dist-info/METADATA")), *tree::RelPath::parse(site("a-1.dist-info/RECORD")),
                                                                     *tree::RelPath::parse(site("a-1.dist-info/entry_points.txt"))});
  CHECK(there.set().all()[0].scripts.size() == 1);
}

TEST_CASE("who asks of few paths hears the same of them, however rows spell them") {
  auto there = test::environment({{"a", "1", {"a/x.py=1", "top.py=1", "/bin/run=1"}}, {"b", "1", {"b/x.py=1", "a/x.py=1"}}, {"c", "1", {"c/\"q\".py=1"}}});
  const std::vector<tree::RelPath> paths{*tree::RelPath::parse(site("a/x.py")), *tree::RelPath::parse(site("top.py")), *tree::RelPath::parse("bin/run")};
  const std::vector<tree::RelPath> quoted{*tree::RelPath::parse(site("c/\"q\".py"))};
  const auto claims = [](const DistributionSet& set, const std::vector<tree::RelPath>& of) {
    Lines out;
    for (const tree::RelPath& path : of)
      for (const DistributionSet::Claim& claim : set.claims(*set.tree().index_of(path))) out.push_back(fmt::format("{} {}", path.name(), set.all()[claim.distribution].name()));
    return out;
  };
  const auto about = [&](const std::vector<tree::RelPath>& of) { return DistributionSet::read_about(there.tree, there.files, {}, of); };
  CHECK(claims(about(paths), paths) == Lines{"x.py a", "x.py b", "top.py a", "run a"});
  CHECK(claims(about(quoted), quoted) == Lines{"\"q\".py c"});
  for (const std::string_view row : {"a//x.py,,\n", "./a/x.py,,\n", "a/./x.py,,\n", "a/y/../x.py,,\n", "../site-packages/a/x.py,,\n"}) {
    there.files[site("b-1.dist-info/RECORD")] = std::string(row);
    CHECK(claims(about(paths), paths) == Lines{"x.py a", "x.py b", "top.py a", "run a"});
  }
  there.files[site("b-1.dist-info/RECORD")] = "b/x.py,,\n";
  CHECK(claims(about(paths), paths) == Lines{"x.py a", "top.py a", "run a"});
  CHECK(about(paths).all()[1].owned.size() < there.set().all()[1].owned.size());
}
