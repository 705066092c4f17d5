// SPDX-License-Identifier: MIT
#include "cli/plan_text.hpp"

#include <doctest/doctest.h>

#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::cli;
using envsync::test::check_golden;

namespace {

View view(std::string words = "") { return {.verb = Verb::plan, .manifest = "envsync.yaml", .manifest_words = std::move(words), .host_words = {}, .consent_words = {}}; }

PlanEvent first_apply() {
  PlanEvent plan;
  plan.host = "gpu-b300";
  plan.environment = "venv";
  plan.path = "/root/venv";
  plan.route = {.source = "ct200:/root/venv", .target = "gpu-b300", .same_host = false, .relayed = true, .transport = "openssh", .transport_reason = "the ssh program"};
  plan.generation_next = 1;
  plan.path_absent = true;
  for (int i = 0; i < 312; ++i) plan.packages.push_back({.kind = PackageChange::added, .name = "p" + std::to_string(i), .from_version = {}, .to_version = "1.0", .files = 250, .bytes = 40'000'000});
  plan.files_added = 78'214;
  plan.paths_total = 82'000;
  plan.bytes_total = plan.bytes_wanted = plan.bytes_to_send = plan.bytes_to_write = 12'000'000'000;
  plan.disk_needed = 12'100'000'000;
  plan.disk_free = 80'000'000'000;
  plan.inodes_needed = 82'010;
  plan.inodes_free = 5'000'000;
  plan.seconds_expected = 45;
  plan.digest = "8e0c1f2a3b4c5d6e7f8091a2b3c4d5e6";
  return plan;
}

PlanEvent upgrade() {
  PlanEvent plan = first_apply();
  plan.host = "ct200";
  plan.route = {.source = "/opt/venv", .target = "ct200", .same_host = false, .relayed = false, .transport = "openssh", .transport_reason = {}};
  plan.path_absent = false;
  plan.generation_now = 0;
  plan.packages = {{PackageChange::changed, "torch", "2.11.0+cu128", "2.11.0+cu130", 11'034, 2'900'000'000},
                   {PackageChange::rebuilt, "triton", "3.6.0", "3.6.0", 12, 3'100'000},
                   {PackageChange::added, "nvidia-cublas", "", "13.1", 40, 900'000'000},
                   {PackageChange::removed, "nvidia-cublas-cu12", "12.8", "", 41, 0}};
  plan.packages_unchanged = 281;
  plan.files_added = 40;
  plan.files_removed = 41;
  plan.files_changed = 11'046;
  plan.metadata_changed = 3;
  plan.commit_root = "lib/python3.12/site-packages";
  plan.in_use = {"PID 4121 sglang", "PID 4122 python3"};
  plan.findings = {{.code = "bytecode_stale", .severity = Severity::warning, .file = "lib/a.py", .what = "compiled for another source"}};
  plan.seconds_expected.reset();
  return plan;
}

}  // namespace

TEST_CASE("a first apply says that nothing is there and sums up what comes") { check_golden("cli_plan_first_apply", plan_text(first_apply(), view(), Palette())); }

TEST_CASE("an upgrade names each package with its versions, removals by name") {
  check_golden("cli_plan_upgrade", plan_text(upgrade(), view(" torch.yaml"), Palette()));
}

TEST_CASE("a path that envsync does not know becomes generation 0, and the plan says what apply would refuse") {
  PlanEvent plan = upgrade();
  plan.generation_now.reset();
  plan.findings.clear();
  plan.in_use.clear();
  plan.refused_by = {Error(ErrorCode::adoption_refused, "'/root/venv' on ct200 is not known to envsync"), Error(ErrorCode::no_space, "no space")};
  check_golden("cli_plan_adoption", plan_text(plan, view(), Palette()));
}

TEST_CASE("where nothing changes a plan is one line") {
  PlanEvent plan;
  plan.host = "web-01";
  plan.path = "/srv/venv";
  plan.generation_now = plan.generation_next = 7;
  plan.unchanged = true;
  CHECK(plan_text(plan, view(), Palette()) == "web-01:/srv/venv   generation 7, up to date\n");
}

TEST_CASE("--files lists every path, escaped, and every package") {
  PlanEvent plan = upgrade();
  plan.findings.clear();
  plan.in_use.clear();
  plan.packages.clear();
  plan.paths = {{'+', "lib/new\n.py", 1}, {'-', "lib/\xff", 0}, {'~', "lib/a\\b.py", 5}, {'m', "bin/x", 5}, {'t', "lib64", 0}};
  View files = view();
  files.lists_files = true;
  check_golden("cli_plan_files", plan_text(plan, files, Palette()));
}

TEST_CASE("many removals are named in one wrapped line, many changes up to forty") {
  PlanEvent plan = upgrade();
  plan.packages.clear();
  for (int i = 0; i < 14; ++i) plan.packages.push_back({PackageChange::removed, "nvidia-part-" + std::to_string(i) + "-cu12", "12.8", "", 10, 0});
  for (int i = 0; i < 41; ++i) plan.packages.push_back({PackageChange::changed, "pkg" + std::to_string(i), "1", "2", 3, 1000});
  const std::string text = plan_text(plan, view(), Palette());
  CHECK(text.find("  - 14 distributions (140 files): nvidia-part-0-cu12 12.8, nvidia-part-1-cu12 12.8,") != std::string::npos);
  CHECK(text.find("nvidia-part-13-cu12 12.8\n") != std::string::npos);
  CHECK(text.find("  ~ 41 distributions (123 files, 41 KB): pkg0 1 → 2, pkg1 1 → 2,") != std::string::npos);
  View verbose = view();
  verbose.is_verbose = true;
  CHECK(plan_text(plan, verbose, Palette()).find("  - nvidia-part-13-cu12 12.8 (10 files)\n") != std::string::npos);
}

TEST_CASE("the route says whether bytes pass through here") {
  PlanEvent plan = upgrade();
  plan.route.target = "local";
  CHECK(plan_text(plan, view(), Palette()).find("route       /opt/venv → here\n") != std::string::npos);
  plan.route.same_host = true;
  CHECK(plan_text(plan, view(), Palette()).find("route       /opt/venv → here (one host: nothing crosses a wire)\n") != std::string::npos);
}

TEST_CASE("a weaker guarantee is named with what a reader can see") {
  PlanEvent plan = upgrade();
  plan.commit_root.clear();
  plan.guarantee = Guarantee::brief_gap;
  CHECK(plan_text(plan, view(), Palette()).find("brief-gap: the whole environment is missing between two renames") != std::string::npos);
  plan.guarantee = Guarantee::per_file;
  CHECK(plan_text(plan, view(), Palette()).find("per-file: each file of the whole environment is old or new") != std::string::npos);
}

TEST_CASE("files that no distribution owns are named as such") {
  PlanEvent plan = upgrade();
  plan.packages = {{PackageChange::changed, "", "", "", 22, 31'000}};
  CHECK(plan_text(plan, view(), Palette()).find("  ~ files of no distribution (22 files, 31 KB)\n") != std::string::npos);
}
