// SPDX-License-Identifier: MIT
#include "apply/source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apply/texts.hpp"
#include "scan/walk.hpp"

namespace envsync::apply {

namespace {

constexpr std::size_t kShownMax = 10;

std::string_view title(Reading reading) {
  switch (reading) {
    case Reading::environment: return "source";
    case Reading::origin: return "overlay's origin";
    case Reading::base: return "base Python";
    case Reading::inspected: return "environment";
  }
  return "place";
}

/// What makes a scanned place unusable, whatever the targets are.
Result<void> check_place(const manifest::Source& place, Reading reading, const format::ScanReply& scan) {
  const std::string where = fmt::format("{} '{}' on {}", title(reading), printable(scan.path), place.host.name);
  const auto missing = [&](std::string_view why) {
    return Error{ErrorCode::source_missing, fmt::format("the {} {}", where, why)}.note("nothing was changed");
  };
  if (scan.absent) return missing("does not exist");
  if (scan.entries <= 1 && reading == Reading::environment) return missing("is empty").hint("an empty source is never taken for an empty environment; check `source`");
  if (scan.entries <= 1 && reading == Reading::origin) return missing("is empty").hint("check `from`");
  if (scan.entries <= 1) return missing("is empty");
  if (reading == Reading::environment && !scan.wheels.empty())
    return Error{ErrorCode::source_missing, fmt::format("the source '{}' on {} is wheels, not an environment", printable(place.path), place.host.name)}
        .note("nothing was changed")
        .hint("name wheels as `from` of an overlay");
  if (reading == Reading::environment && !scan.environment.has_pyvenv)
    return missing("has no pyvenv.cfg: it is not a Python environment").hint("name the environment's own folder as `source`");
  if (reading == Reading::inspected && !scan.environment.has_pyvenv)
    return missing("has no pyvenv.cfg: it is not a Python environment").hint("name the environment's own folder");
  if (scan.problems_total == 0 || reading == Reading::inspected) return ok();
  // That the listed ones are all of a kind says it of no other one.
  const bool is_moving = scan.problems_total == scan.problems.size() &&
                         std::ranges::all_of(scan.problems, [](const format::ProblemInfo& p) { return p.what == scan::kChanged; });
  if (is_moving) {
    Error error{ErrorCode::source_changed, fmt::format("the {} changed while it was read", where)};
    for (std::size_t i = 0; i < std::min(kShownMax, scan.problems.size()); ++i) error.causes.push_back(fmt::format("'{}'", printable(scan.problems[i].path)));
    return std::move(error).note("nothing was changed").hint("run again when nothing writes there, or name what is written in source.exclude");
  }
  Error error{ErrorCode::unreadable, fmt::format("the {} holds {} that cannot be copied", where,
                                                 scan.problems_total == 1 ? "an entry" : fmt::format("{} entries", scan.problems_total))};
  for (std::size_t i = 0; i < std::min(kShownMax, scan.problems.size()); ++i)
    error.causes.push_back(fmt::format("'{}': {}", printable(scan.problems[i].path), scan.problems[i].what));
  return std::move(error).note("nothing was changed").hint("remove what is named, or name it in source.exclude");
}

}  // namespace

std::string Source::text() const {
  // Wheels are called by where they lie, not by where they were unpacked.
  const std::string& path = session_ && session_->scan.wheels.empty() ? session_->scan.path : place_.path;
  return place_.host.is_local ? path : place_.host.name + ":" + path;
}

Result<Session> Source::open() {
  ScanAsk ask;
  ask.role = format::Role::source;
  TRY(Session session, open_session(*run_, place_.host, place_.path, ask, place_.host.name));
  TRY_STATUS(check_place(place_, reading_, session.scan));
  return session;
}

Source::Source(Run& run, manifest::Source place, Reading reading)
    : run_(&run), place_(std::move(place)), reading_(reading), feed_([this](const auto& request, const auto& items, const auto& sink, std::stop_token stop) {
        return session_->lanes->pull(request, items, sink, std::move(stop));
      }) {}

Source::~Source() {
  // What runs uses all of this.
  if (opened_.valid()) opened_.wait();
  if (ahead_.valid()) ahead_.wait();
}

void Source::start() {
  opened_ = std::async(std::launch::async, [this] {
              auto session = open();
              if (!session) {
                error_ = std::move(session).error();
                return;
              }
              session_.emplace(std::move(*session));
              // A tree that was never seen here will be asked for, as hardly a target has it. It travels while they are scanned.
              if (!run_->trees->has(session_->scan.full)) ahead_ = std::async(std::launch::async, [this] { (void)fetched(); });
            }).share();
}

Source& Source::live() {
  opened_.wait();
  const std::lock_guard lock(next_mutex_);
  if (next_) return next_->live();
  const bool is_over = error_ ? is_network_error(*error_) : session_->endpoint->ended();
  if (!is_over) return *this;
  next_ = std::make_unique<Source>(*run_, place_, reading_);
  next_->start();
  return *next_;
}

Result<const format::ScanReply*> Source::scan() {
  opened_.wait();
  if (error_) return *error_;
  return &session_->scan;
}

Result<const tree::Tree*> Source::tree() {
  TRY_STATUS(scan());
  return fetched();
}

/// The session is there.
Result<const tree::Tree*> Source::fetched() {
  const std::lock_guard lock(tree_mutex_);
  if (!tree_) tree_.emplace(fetch_tree(*run_, *session_, {}, session_->scan.full));
  if (!*tree_) return tree_->error();
  return &**tree_;
}

Result<python::SmallFiles> Source::read(const std::string& label, const std::vector<tree::RelPath>& paths) {
  TRY(const tree::Tree* there, tree());
  std::vector<WantedText> wanted;
  for (const tree::RelPath& path : paths) {
    const tree::Entry* entry = there->find(path);
    if (entry != nullptr && entry->file() != nullptr) wanted.push_back({path.bytes(), path, entry->file()->content()});
  }
  return fetch_texts(*run_, *session_, label, wanted);
}

Result<const python::SmallFiles*> Source::texts(const std::vector<tree::RelPath>& paths) {
  TRY_STATUS(tree());
  const std::lock_guard lock(texts_mutex_);
  if (!texts_) texts_.emplace(read("dist-infos", paths));
  if (!*texts_) return texts_->error();
  return &**texts_;
}

}  // namespace envsync::apply
