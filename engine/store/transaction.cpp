// SPDX-License-Identifier: MIT
#include "store/transaction.hpp"

#include <fmt/format.h>

#include "store/remember.hpp"
#include "store/settle.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {

Transaction::Impl::Impl() = default;

Transaction::Impl::~Impl() {
  // What was received is left for the next run, and nothing is left prepared.
  if (dir && (stage == Stage::building || stage == Stage::sealed)) static_cast<void>(drop());
}

const tree::Entry* Transaction::Impl::base_entry(u32 index) const {
  const u32 at = plan.base_of[index];
  return at == kNoIndex ? nullptr : &base()[at];
}

std::string Transaction::Impl::shown(const tree::RelPath& path) const {
  const std::string& root = state->place().path;
  return printable(path.is_root() ? root : root + "/" + path.bytes());
}

std::vector<u32> Transaction::Impl::made() const {
  std::vector<u32> indexes;
  for (u32 i = 0; i < plan.how.size(); ++i) {
    const bool is_copy = plan.how[i] == How::keep && staged[i].ino != 0 && staged[i].ino != expected[plan.base_of[i]].ino;
    if (desired()[i].file() && staged[i].ino != 0 && (plan.how[i] == How::make || plan.how[i] == How::join || is_copy)) indexes.push_back(i);
  }
  return indexes;
}

/// Before the commit: the journal says that it is over, links of live files go, what was received stays.
Result<void> Transaction::Impl::drop() {
  stage = Stage::ended;
  Result<void> done = ok();
  if (journal.exists() && journal.parsed().last != Last::terminal) done = journal.append(Entry::abandoned);
  remember(*cache, dir.get(), desired(), made(), space.network, [this](const tree::Entry& e) { return staged_path(e.path); });
  CacheMoves moves(cache);
  if (done) done = settle_leftover(*state, tx, journal.parsed(), moves);
  if (auto saved = state->save_cache(*cache); done && !saved) done = std::move(saved);
  return done;
}

Transaction::Transaction(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

const Needs& Transaction::needs() const { return impl_->needs; }

Result<void> Transaction::abandon() {
  if (impl_->stage == Impl::Stage::ended) return ok();
  if (impl_->stage == Impl::Stage::committed) return Error(ErrorCode::protocol, "a commit cannot be abandoned any more");
  return impl_->drop();
}

Result<Accepted> Transaction::accept(const StepSink& sink) {
  if (impl_->stage != Impl::Stage::committed) return Error(ErrorCode::protocol, "there is no commit to accept");
  Impl& t = *impl_;
  t.stage = Impl::Stage::ended;
  Accepted accepted;
  accepted.generation = t.terms.number;
  if (t.terms.writes_base) accepted.adopted = t.terms.base_number;
  if (!t.is_pending) {
    const auto made = t.made();
    CacheMoves moves(t.cache);
    Acceptance acceptance{*t.state, t.dir.get(), t.tx, t.journal, t.terms, &t.observed.tree, t.begin.desired, t.begin.ground ? &*t.begin.ground : nullptr, moves, t.cache, made};
    auto done = finish_accept(acceptance, sink);
    t.warnings.insert(t.warnings.end(), acceptance.warnings.begin(), acceptance.warnings.end());
    if (!done) t.pending(done.error());
  }
  accepted.recovery_pending = t.is_pending;
  accepted.warnings = std::move(t.warnings);
  accepted.bytes_read = t.bytes_read;
  accepted.bytes_written = t.bytes_written;
  return accepted;
}

}  // namespace envsync::store
