// SPDX-License-Identifier: MIT
#include "store/carry.hpp"

#include <algorithm>
#include <cerrno>

namespace envsync::store {

bool Dropped::whole(const tree::RelPath& path, bool is_dir) const {
  const std::string bytes = is_dir ? path.bytes() + "/" : path.bytes();
  return std::ranges::any_of(prefixes_, [&](const std::string& prefix) { return bytes.starts_with(prefix); });
}

bool Dropped::some_below(const tree::RelPath& dir) const {
  const std::string bytes = dir.is_root() ? std::string() : dir.bytes() + "/";
  return std::ranges::any_of(prefixes_, [&](const std::string& prefix) { return prefix.starts_with(bytes); });
}

CarryOver::CarryOver(os::Files& files, const Rules& rules, const Dropped& dropped, tree::RelPath commit_root, const Twin& displaced,
                     const Twin& live, const LinkedNames& linked, Managed managed)
    : files_(files), rules_(rules), dropped_(dropped), commit_root_(std::move(commit_root)), displaced_(displaced), live_(live),
      linked_(linked), managed_(managed) {}

std::string CarryOver::in(const std::string& side, const tree::RelPath& path) const {
  const tree::RelPath below = commit_root_.relative(path);
  return below.is_root() ? side : side + "/" + below.bytes();
}

Result<CarryOver::Side> CarryOver::side_of(const Met& met) {
  const auto parent = folders_.find(met.path.parent().bytes());
  if (parent != folders_.end() && parent->second != Side::open_question) return parent->second;
  switch (rules_.verdict(met)) {
    case Rules::Verdict::excluded: return Side::unmanaged;
    case Rules::Verdict::bytecode: return Side::bytecode;
    case Rules::Verdict::managed: return managed_ == Managed::carry ? Side::unmanaged : Side::managed;
    case Rules::Verdict::look_inside: break;
  }
  TRY(const os::Fd dir, os::open_dir(met.dir, met.name));
  TRY(const auto entries, os::list(dir.get(), met.path.bytes()));
  if (!entries.empty()) return Side::open_question;
  return managed_ == Managed::carry ? Side::unmanaged : Side::managed;  // an empty folder is managed
}

Result<Into> CarryOver::unknown(const Met& met) {
  const bool is_dir = met.stat.kind == os::Kind::directory;
  TRY(const Side side, side_of(met));
  if (side == Side::managed) {
    if (difference_.empty()) difference_ = met.path.bytes();
    return Into::skip;
  }
  // A later process does not know which bytecode was dropped because its source changed; an interpreter makes it again.
  if (managed_ == Managed::carry && side == Side::bytecode) return Into::skip;
  if (dropped_.whole(met.path, is_dir)) return Into::skip;
  if (is_dir) return folder(met, side);
  TRY_STATUS(file(met, side == Side::bytecode));
  return Into::skip;
}

Result<Into> CarryOver::folder(const Met& met, Side side) {
  folders_[met.path.bytes()] = side;
  if (side == Side::open_question || dropped_.some_below(met.path)) return Into::enter;
  TRY(const auto there, os::stat_if_exists(live_.at, in(live_.rel, met.path)));
  if (there) return Into::enter;
  TRY_STATUS(move(met, side == Side::bytecode));
  return Into::skip;
}

/// Whether what lies at `path` has a folder to go to. Bytecode of a folder that went goes with it; for all else it is made.
Result<bool> CarryOver::parent_is_live(const tree::RelPath& path, bool is_bytecode) {
  const tree::RelPath parent = path.parent();
  TRY(const auto there, os::stat_if_exists(live_.at, in(live_.rel, parent)));
  if (there) return there->kind == os::Kind::directory;
  if (is_bytecode) return false;
  const tree::RelPath below = commit_root_.relative(parent);
  TRY(const os::Fd root, os::open_dir(live_.at, live_.rel));
  TRY_STATUS(os::make_dirs(files_, root.get(), below.bytes(), 0755));
  return true;
}

Result<void> CarryOver::move(const Met& met, bool is_bytecode) {
  TRY(const bool has_parent, parent_is_live(met.path, is_bytecode));
  if (!has_parent) return ok();
  auto moved = files_.rename_noreplace(displaced_.at, in(displaced_.rel, met.path), live_.at, in(live_.rel, met.path));
  if (!moved && moved.error().sys_errno != EEXIST) return moved;  // EEXIST: somebody has made a newer one
  if (moved) ++carried_;
  return ok();
}

Result<void> CarryOver::file(const Met& met, bool is_bytecode) {
  seen_.insert(met.path.bytes());
  TRY(const auto there, os::stat_if_exists(live_.at, in(live_.rel, met.path)));
  if (!there) return move(met, is_bytecode);
  const auto linked = linked_.find(met.path.bytes());
  // RACE: whoever replaces the live one between this stat and the rename loses to what was made just before the exchange.
  const bool is_renewed = linked != linked_.end() && linked->second != met.stat.ino && there->ino == linked->second;
  if (!is_renewed) return ok();
  ++carried_;
  return files_.rename(displaced_.at, in(displaced_.rel, met.path), live_.at, in(live_.rel, met.path));
}

Result<void> CarryOver::finish() {
  for (const auto& [bytes, ino] : linked_) {
    if (seen_.contains(bytes)) continue;
    const auto path = tree::RelPath::parse(bytes);
    if (!path) continue;
    // A folder that moved over whole, or was never entered because its like is there, has its files seen by nobody.
    TRY(const auto displaced, os::stat_if_exists(displaced_.at, in(displaced_.rel, *path)));
    TRY(const auto live, os::stat_if_exists(live_.at, in(live_.rel, *path)));
    if (!displaced && live && live->ino == ino) TRY_STATUS(files_.unlink(live_.at, in(live_.rel, *path)));
  }
  return ok();
}

}  // namespace envsync::store
