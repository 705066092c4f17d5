// SPDX-License-Identifier: MIT
#include "store/build_plan.hpp"

#include <fmt/format.h>

namespace envsync::store {
namespace {

Error wrong_plan(std::string why) {
  return Error(ErrorCode::protocol, "a plan that does not fit the trees").cause(std::move(why));
}

bool is_state_path(const tree::RelPath& path) {
  return path.bytes().starts_with(".envsync") || path.bytes().find("/.envsync") != std::string::npos;
}

void pair_up(BuildPlan& plan, std::span<const tree::Entry> desired, std::span<const tree::Entry> observed) {
  plan.base_of.assign(desired.size(), kNoIndex);
  plan.desired_of.assign(observed.size(), kNoIndex);
  for (std::size_t d = 0, o = 0; d < desired.size() && o < observed.size();) {
    const int order = desired[d].path.bytes().compare(observed[o].path.bytes());
    if (order == 0) {
      plan.base_of[d] = static_cast<u32>(o);
      plan.desired_of[o] = static_cast<u32>(d);
    }
    if (order <= 0) ++d;
    if (order >= 0) ++o;
  }
}

Result<void> check_root(const Begin& begin, const tree::Tree& observed, BuildPlan& plan) {
  const tree::Entry* to = begin.desired.find(begin.commit_root);
  const tree::Entry* from = observed.find(begin.commit_root);
  if (observed.is_absent() && !begin.commit_root.is_root()) return wrong_plan("its commit root lies in a tree that is absent");
  if (!to || (!from && !observed.is_absent()) || (from && from->body.index() != to->body.index()))
    return wrong_plan(fmt::format("its commit root '{}' does not exist with the same type on both sides", printable(begin.commit_root.bytes())));
  plan.root_is_dir = to->is_dir();
  return ok();
}

}  // namespace

Result<BuildPlan> plan_build(const Begin& begin, const tree::Tree& observed) {
  BuildPlan plan;
  if (begin.desired.is_absent()) return wrong_plan("its desired tree is absent");
  TRY_STATUS(check_root(begin, observed, plan));
  const auto entries = begin.desired.entries();
  pair_up(plan, entries, observed.entries());
  std::vector<bool> changed(entries.size(), false);
  for (const tree::Change& change : tree::diff(observed, begin.desired, begin.head.policy)) {
    const tree::RelPath& path = change.to ? change.to->path : change.from->path;
    if (!begin.commit_root.contains(path))
      return wrong_plan(fmt::format("'{}' changes outside of its commit root '{}'", printable(path.bytes()), printable(begin.commit_root.bytes())));
    if (is_state_path(path)) return wrong_plan(fmt::format("'{}' is where envsync keeps its state", printable(path.bytes())));
    if (change.to) changed[static_cast<std::size_t>(change.to - entries.data())] = true;
  }
  plan.how.assign(entries.size(), How::outside);
  for (const std::size_t i : begin.desired.below(begin.commit_root)) {
    const tree::Entry& entry = entries[i];
    const u32 index = static_cast<u32>(i);
    const tree::File* file = entry.file();
    if (entry.is_dir()) {
      plan.how[i] = How::folder;
      plan.folders.push_back(index);
    } else if (!changed[i]) {
      if (entry.path == begin.commit_root) return wrong_plan("its commit root is a file that does not change");
      plan.how[i] = How::keep;
    } else if (!file) {
      plan.how[i] = How::symlink;
    } else if (const u32 first = file->link_group - 1; begin.head.policy.hardlinks && file->link_group != 0 && first != index) {
      if (plan.how[first] == How::outside) return wrong_plan(fmt::format("the link group of '{}' reaches out of its commit root", printable(entry.path.bytes())));
      plan.how[i] = How::join;
      plan.members[first].push_back(index);
    } else {
      plan.how[i] = How::make;
      plan.contents[file->content()].push_back(index);
    }
  }
  return plan;
}

}  // namespace envsync::store
