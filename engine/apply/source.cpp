// SPDX-License-Identifier: MIT
#include "apply/source.hpp"

#include <fmt/format.h>

namespace envsync::apply {

namespace {

constexpr std::size_t kShownMax = 10;

/// What makes a scanned source unusable, whatever the targets are.
Result<void> check_source(const manifest::Source& source, const format::ScanReply& scan) {
  const std::string where = fmt::format("'{}' on {}", printable(scan.path), source.host.name);
  const auto missing = [&](std::string_view why) {
    return Error{ErrorCode::source_missing, fmt::format("the source {} {}", where, why)}.note("nothing was changed");
  };
  if (scan.absent) return missing("does not exist");
  if (scan.entries <= 1) return missing("is empty").hint("an empty source is never taken for an empty environment; check `source`");
  if (!scan.environment.has_pyvenv) return missing("has no pyvenv.cfg: it is not a Python environment").hint("name the environment's own folder as `source`");
  if (scan.problems_total == 0) return ok();
  Error error{ErrorCode::unreadable, fmt::format("the source {} holds {} that cannot be copied", where,
                                                 scan.problems_total == 1 ? "an entry" : fmt::format("{} entries", scan.problems_total))};
  for (std::size_t i = 0; i < std::min(kShownMax, scan.problems.size()); ++i)
    error.causes.push_back(fmt::format("'{}': {}", printable(scan.problems[i].path), scan.problems[i].what));
  return std::move(error).note("nothing was changed").hint("remove what is named, or name it in source.exclude");
}

}  // namespace

Result<Session> Source::open() {
  const manifest::Source& source = run_->manifest->source;
  ScanAsk ask;
  ask.role = format::Role::source;
  TRY(Session session, open_session(*run_, source.host, source.path, ask, source.host.name));
  TRY_STATUS(check_source(source, session.scan));
  return session;
}

void Source::start() {
  opened_ = std::async(std::launch::async, [this] {
              auto session = open();
              if (session) session_.emplace(std::move(*session));
              else error_ = std::move(session).error();
            }).share();
}

Result<const format::ScanReply*> Source::scan() {
  opened_.wait();
  if (error_) return *error_;
  return &session_->scan;
}

Result<const tree::Tree*> Source::tree() {
  TRY(const format::ScanReply* scanned, scan());
  const std::lock_guard lock(tree_mutex_);
  if (!tree_) tree_.emplace(fetch_tree(*run_, *session_, {}, scanned->full));
  if (!*tree_) return tree_->error();
  return &**tree_;
}

}  // namespace envsync::apply
