// SPDX-License-Identifier: MIT
#include "plan/plan.hpp"

#include <doctest/doctest.h>

#include "support/tree_literal.hpp"

using namespace envsync;


namespace {

/// A plan's inputs with a manifest of defaults; the trees live as long as this.
struct Case {
  tree::Tree wanted, observed;
  manifest::Manifest manifest;
  plan::Inputs inputs;

  Case(tree::Tree w, tree::Tree o) : wanted(std::move(w)), observed(std::move(o)) {
    manifest.name = "app";
    inputs.manifest = &manifest;
    inputs.wanted = &wanted;
    inputs.wanted_full = wanted.full();
    inputs.target.host = "web-01";
    inputs.target.path = "/srv/app";
    inputs.target.observed = &observed;
    inputs.target.observed_full = observed.full();
    inputs.target.observed_root = observed.root(manifest.compare_policy());
    inputs.target.disk_free = u64{1} << 40;
  }
  void known(u32 generation) {
    inputs.target.current = generation;
    inputs.target.current_root = inputs.target.observed_root;
  }
  std::vector<ErrorCode> refusals() {
    std::vector<ErrorCode> codes;
    for (const plan::Refusal& refusal : plan::make_plan(inputs).refusals) codes.push_back(refusal.error.code);
    return codes;
  }
};

tree::RelPath path(const char* bytes) { return *tree::RelPath::parse(bytes); }

}  // namespace

TEST_CASE("the commit root is the smallest directory that holds every change") {
  const auto at = [](tree::Tree from, tree::Tree to) {
    Case c(std::move(to), std::move(from));
    c.known(1);
    return plan::make_plan(c.inputs).commit_root.bytes();
  };
  CHECK(at(test::tree({"lib/a/x=1", "lib/a/y=1", "lib/b/z=1"}), test::tree({"lib/a/x=2", "lib/a/y=1", "lib/b/z=1"})) == "lib/a");
  CHECK(at(test::tree({"lib/a/x=1", "lib/b/z=1"}), test::tree({"lib/a/x=2", "lib/b/z=2"})) == "lib");
  CHECK(at(test::tree({"lib/a/x=1"}), test::tree({"lib/a/x=1", "lib/new/sub/y=1"})) == "lib");
  CHECK(at(test::tree({"lib/a/x=1", "top=1"}), test::tree({"lib/a/x=1", "top=2"})) == "");
  CHECK(at(test::tree({"lib/a/x=1"}), test::tree({"lib/a=file"})) == "lib");
  CHECK(at(test::tree({"lib/a=file"}), test::tree({"lib/a/x=1"})) == "lib");
  CHECK(at(test::tree({"a/b=1", "a-b/c=1"}), test::tree({"a/b=2", "a-b/c=1"})) == "a");
}

TEST_CASE("a blank host commits at the environment's own path and needs no consent") {
  Case c(test::tree({"lib/a=1"}), {});
  const plan::HostPlan plan = plan::make_plan(c.inputs);
  CHECK(plan.commit_root.is_root());
  CHECK(plan.refusals.empty());
  CHECK(plan.bytes_wanted == 1);
}

TEST_CASE("a path that envsync does not know needs adoption, whatever it holds") {
  Case c(test::tree({"lib/a=1"}), test::tree({"lib/a=1"}));
  CHECK(c.refusals() == std::vector{ErrorCode::adoption_refused});
  c.inputs.consent.adopt = true;
  CHECK(c.refusals().empty());
  Case empty(test::tree({"lib/a=1"}), test::tree({}));
  empty.inputs.target.is_empty_dir = true;
  CHECK(empty.refusals().empty());
}

TEST_CASE("drift is refused unless it may be discarded") {
  Case c(test::tree({"lib/a=1"}), test::tree({"lib/a=edited"}));
  c.inputs.target.current = 3;
  c.inputs.target.current_root = test::tree({"lib/a=1"}).root(c.manifest.compare_policy());
  c.inputs.target.has_drifted = true;
  CHECK(c.refusals() == std::vector{ErrorCode::drift_refused});
  c.inputs.consent.discard_drift = true;
  CHECK(c.refusals().empty());
}

TEST_CASE("more deletions than the limit are refused; a rollback is not counted") {
  Case c(test::tree({"a=1"}), test::tree({"a=1", "b=1", "c=1", "d=1"}));
  c.known(1);
  CHECK(c.refusals() == std::vector{ErrorCode::delete_limit});
  c.manifest.settings.delete_limit = {false, 3};
  CHECK(c.refusals().empty());
  c.manifest.settings.delete_limit = {false, 2};
  CHECK(c.refusals() == std::vector{ErrorCode::delete_limit});
  c.inputs.purpose = plan::Purpose::rollback;
  CHECK(c.refusals().empty());
}

TEST_CASE("a dead or wrong base interpreter is refused before anything is sent, unless it is ignored") {
  Case c(test::tree({"lib/python3.12/site-packages/a=1"}), {});
  c.inputs.interpreter = {"/usr/bin/python3.12", false, 0, ""};
  CHECK(c.refusals() == std::vector{ErrorCode::invariant_violated});
  c.inputs.interpreter = {"/usr/bin/python3.12", true, 0, "3.13"};
  CHECK(c.refusals() == std::vector{ErrorCode::invariant_violated});
  c.inputs.interpreter = {"/usr/bin/python3.12", true, 0, "3.12"};
  CHECK(c.refusals().empty());
  c.inputs.interpreter = {"/usr/bin/python3.12", true, 1, ""};
  c.manifest.invariants.interpreter = manifest::InterpreterRule::ignore;
  CHECK(c.refusals().empty());
}

TEST_CASE("space, use and unreadable entries refuse, and no flag lifts them") {
  Case c(test::tree({"lib/a=1"}), test::tree({"lib/a=2"}));
  c.known(1);
  c.inputs.target.disk_free = 1000;
  c.inputs.target.problems = {"'pipe': is a pipe"};
  c.inputs.target.in_use = {"4121 python"};
  c.manifest.invariants.in_use = manifest::InUseRule::refuse;
  for (const plan::Refusal& refusal : plan::make_plan(c.inputs).refusals) CHECK_FALSE(refusal.lifted_by);
  CHECK(c.refusals() == std::vector{ErrorCode::unreadable, ErrorCode::in_use, ErrorCode::no_space});
}

TEST_CASE("an unchanged file keeps the mtime it has on the target, a changed one brings its own") {
  auto with_mtime = [](tree::Tree t, i64 mtime) {
    std::vector<tree::Entry> entries(t.entries().begin(), t.entries().end());
    for (tree::Entry& entry : entries)
      if (entry.file() != nullptr) entry.mtime_ns = mtime;
    return *tree::Tree::from_sorted(std::move(entries));
  };
  const tree::Tree observed = with_mtime(test::tree({"a=1", "b=1"}), 100);
  const tree::Tree wanted = with_mtime(test::tree({"a=1", "b=2"}), 200);
  manifest::Manifest manifest;
  const tree::Tree desired = plan::desired_tree(wanted, observed, manifest.settings, manifest.compare_policy());
  CHECK(desired.find(path("a"))->mtime_ns == 100);
  CHECK(desired.find(path("b"))->mtime_ns == 200);
  manifest.settings.mtime = manifest::MtimeRule::strict;
  CHECK(plan::desired_tree(wanted, observed, manifest.settings, manifest.compare_policy()).find(path("a"))->mtime_ns == 200);
}

TEST_CASE("the same inputs give the same plan digest, another observed tree gives another") {
  Case a(test::tree({"a=1"}), test::tree({"a=2"})), b(test::tree({"a=1"}), test::tree({"a=2"})), other(test::tree({"a=1"}), test::tree({"a=3"}));
  CHECK(plan::make_plan(a.inputs).digest == plan::make_plan(b.inputs).digest);
  CHECK(plan::make_plan(a.inputs).digest != plan::make_plan(other.inputs).digest);
}

TEST_CASE("the base interpreter is where the links of bin/python leave the tree, else home of pyvenv.cfg") {
  CHECK(plan::base_interpreter(test::tree({"bin/python -> python3", "bin/python3 -> /usr/bin/python3"}), "") == "/usr/bin/python3");
  CHECK(plan::base_interpreter(test::tree({"bin/python=ELF"}), "home = /opt/py/bin\nversion_info = 3.11.7\n") == "/opt/py/bin/python3.11");
  CHECK(plan::base_interpreter(test::tree({"bin/python -> python"}), "").empty());
  CHECK(plan::base_interpreter(test::tree({"bin/python -> ../../../etc"}), "").empty());
}

TEST_CASE("what a plan foretells is what staging asks for, spare included, and a full disk is one") {
  Case c(test::tree({"lib/a=1", "lib/b=2", "top=3"}), {});
  const plan::HostPlan plan = plan::make_plan(c.inputs);
  CHECK(plan.disk_needed == (u64{16} << 20) + 5 * 4096);
  CHECK(plan.inodes_needed == 64 + 5);
  c.inputs.target.disk_free = plan.disk_needed;
  c.inputs.target.inodes_free = plan.inodes_needed;
  CHECK(c.refusals().empty());
  c.inputs.target.inodes_free = 0;
  CHECK(c.refusals() == std::vector{ErrorCode::no_space});
  c.inputs.target.disk_free = 0;
  const Error error = plan::make_plan(c.inputs).refusals.front().error;
  CHECK(error.hints == std::vector<std::string>{"free some of it, or choose a path on another filesystem"});
  c.known(1);
  CHECK(plan::make_plan(c.inputs).refusals.back().error.hints.front().find("prune") != std::string::npos);
}

TEST_CASE("a path that is gone is no drift to consent to where the caller says so, and the plan tells what went with it") {
  Case c(test::tree({"lib/a=1"}), {});
  c.inputs.target.current = 4;
  c.inputs.target.has_drifted = true;
  CHECK(c.refusals() == std::vector{ErrorCode::drift_refused});
  c.inputs.consent.discard_drift = true;
  const plan::HostPlan plan = plan::make_plan(c.inputs);
  CHECK(plan.refusals.empty());
  REQUIRE(plan.findings.size() == 1);
  CHECK(plan.findings[0].code == "path_gone");
}
