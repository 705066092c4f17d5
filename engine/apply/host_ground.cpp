// SPDX-License-Identifier: MIT
// The base of a target under `source: target`.
#include <fmt/format.h>

#include "apply/ground.hpp"
#include "apply/host_job.hpp"
#include "apply/texts.hpp"

namespace envsync::apply {

using namespace format;

/// Where no overlay was ever laid onto the record's tree, that tree itself.
Result<tree::Tree> HostJob::recorded_ground(const RecordInfo& record, const tree::Tree& recorded) {
  if (record.ground.is_zero()) return recorded;
  TreeRequest request;
  request.kind = TreeKind::ground;
  request.record = record.number;
  return fetch_tree(*run_, *session_, request, record.ground);
}

Result<const tree::Tree*> HostJob::wanted_on_target() {
  const ScanReply& scan = session_->scan;
  if (scan.absent || scan.empty_dir || !scan.environment.has_pyvenv) {
    return Error{ErrorCode::source_missing, fmt::format("'{}' on {} {}, and `source` is target", scan.path, target_->name,
                                                        scan.absent ? "does not exist" : scan.empty_dir ? "is empty" : "has no pyvenv.cfg")}
        .note("nothing was changed")
        .hint("name a `source` that has the environment, for the first apply at least");
  }
  DriftTrees trees;
  TargetTrees borrowed{&observed_, &observed_, &observed_, &observed_};
  std::optional<tree::Tree> ground;
  if (scan.current) {
    TRY(trees, fetch_drift(*run_, *session_));
    TRY(ground, recorded_ground(*scan.current, trees.recorded));
    borrowed = {&*ground, &trees.recorded, &trees.observed, &observed_};
    TRY(ground_, ground_now(borrowed, scan.current->policy));
  } else {
    ground_ = observed_;
  }
  const BaseReader reader{[this](const std::vector<tree::RelPath>&) { return texts_here(*ground_); },
                          [this](const std::vector<tree::RelPath>& paths) { return sums_here(*ground_, paths); }};
  wanted_full_ = ground_->full();
  const tree::Tree* wanted = &*ground_;
  if (!layers_.empty()) {
    TRY(wanted, lay(*ground_, reader, scan.environment));
  }
  if (!scan.current) return wanted;
  std::set<tree::RelPath> discarded;
  for (const auto& [kind, path] : discarded_drift(borrowed, *wanted, scan.current->policy)) {
    discarded_.push_back(fmt::format("{} {}", kind, printable(path.bytes())));
    discarded.insert(path);
  }
  // Whoever lets them go does not want them back with the base.
  if (discarded.empty() || layers_.empty()) return wanted;
  TRY(ground_, ground_now(borrowed, scan.current->policy, discarded));
  return wanted;
}

/// Of what is live; contents that only the pool has are not summed, and count by their size.
Result<python::Sums> HostJob::sums_here(const tree::Tree& tree, const std::vector<tree::RelPath>& paths) {
  std::vector<tree::RelPath> live;
  for (const tree::RelPath& path : paths) {
    const tree::Entry *wanted = tree.find(path), *there = observed_.find(path);
    if (wanted != nullptr && there != nullptr && tree::same_content(*wanted, *there)) live.push_back(path);
  }
  return fetch_sums(*run_, *session_, live);
}

/// What the record to be written says of its ground, as a difference to its tree.
Result<std::optional<tree::TreeDelta>> HostJob::ground_delta(const tree::Tree& tree) {
  if (!ground_) return std::optional<tree::TreeDelta>{};
  return std::optional(tree::make_delta(tree, *ground_));
}

}  // namespace envsync::apply
