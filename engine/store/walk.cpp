// SPDX-License-Identifier: MIT
#include "store/walk.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "store/layout.hpp"

namespace envsync::store {
namespace {

constexpr u32 kUnknown = ~u32{0};

std::string_view parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(path).substr(0, slash);
}

class Walk {
 public:
  Walk(int at, const std::string& rel, const tree::Tree& tree, const tree::RelPath& root, const WalkHooks& hooks)
      : at_(at), rel_(rel), tree_(tree), root_(root), hooks_(hooks), children_(tree, root) {}

  Result<void> run() {
    const auto index = tree_.index_of(root_);
    TRY(const auto stat, os::stat_if_exists(at_, rel_));
    if (!stat) return index ? missing(static_cast<u32>(*index)) : ok();
    const std::size_t slash = rel_.rfind('/');
    os::Fd parent;
    if (slash != std::string::npos) {
      TRY(parent, os::open_dir(at_, rel_.substr(0, slash)));
    }
    const std::string name = slash == std::string::npos ? rel_ : rel_.substr(slash + 1);
    TRY_STATUS(meet(index ? static_cast<u32>(*index) : kUnknown, {root_, *stat, parent ? parent.get() : at_, name}));
    while (!pending_.empty()) {
      const tree::RelPath dir = std::move(pending_.back());
      pending_.pop_back();
      TRY_STATUS(enter(dir));
    }
    return ok();
  }

 private:
  std::string on_disk(const tree::RelPath& path) const {
    const tree::RelPath below = root_.relative(path);
    if (below.is_root()) return rel_;
    return rel_.empty() ? below.bytes() : rel_ + "/" + below.bytes();
  }

  Result<void> missing(u32 index) {
    for (const std::size_t i : tree_.below(tree_.entries()[index].path)) TRY_STATUS(hooks_.missing(static_cast<u32>(i)));
    return ok();
  }

  Result<void> meet(u32 index, const Met& met) {
    const bool is_dir = met.stat.kind == os::Kind::directory;
    if (index == kUnknown) {
      TRY(const Into into, hooks_.unknown(met));
      if (is_dir && into == Into::enter) pending_.push_back(met.path);
      return ok();
    }
    TRY_STATUS(hooks_.known(index, met));
    const bool should_be_dir = tree_.entries()[index].is_dir();
    if (is_dir) pending_.push_back(met.path);
    if (should_be_dir && !is_dir)
      for (const std::size_t i : tree_.below(met.path))
        if (i != index) TRY_STATUS(hooks_.missing(static_cast<u32>(i)));
    return ok();
  }

  Result<void> enter(const tree::RelPath& dir) {
    const std::string rel = on_disk(dir);
    TRY(const os::Fd fd, os::open_dir(at_, rel));
    TRY(auto found, os::list(fd.get(), rel));
    std::ranges::sort(found, {}, &os::DirEntry::name);
    const auto& expected = children_.of(dir);
    std::size_t e = 0;
    for (const os::DirEntry& entry : found) {
      while (e < expected.size() && name_of(expected[e]) < entry.name) TRY_STATUS(missing(expected[e++]));
      const bool is_known = e < expected.size() && name_of(expected[e]) == entry.name;
      TRY(const auto stat, os::stat_if_exists(fd.get(), entry.name));
      if (!stat) {  // gone since it was listed
        if (is_known) TRY_STATUS(missing(expected[e++]));
        continue;
      }
      if (!is_known && !tree::is_component(entry.name))
        return Error(ErrorCode::unreadable, fmt::format("'{}' holds an entry with a name that is too long", printable(dir.bytes())));
      const u32 index = is_known ? expected[e++] : kUnknown;
      const tree::RelPath path = dir.child(entry.name);
      TRY_STATUS(meet(index, {path, *stat, fd.get(), entry.name}));
    }
    while (e < expected.size()) TRY_STATUS(missing(expected[e++]));
    return ok();
  }

  std::string_view name_of(u32 index) const { return tree_.entries()[index].path.name(); }

  int at_;
  const std::string& rel_;
  const tree::Tree& tree_;
  const tree::RelPath& root_;
  const WalkHooks& hooks_;
  Children children_;
  std::vector<tree::RelPath> pending_;
};

bool has_source_beside(const Met& met) {
  const std::string source = tree::source_beside(met.name);
  if (source.empty()) return false;
  const auto stat = os::stat_if_exists(met.dir, source);
  return stat && *stat;
}

}  // namespace

Children::Children(const tree::Tree& tree, const tree::RelPath& root) {
  for (const std::size_t i : tree.below(root)) {
    const std::string& path = tree.entries()[i].path.bytes();
    if (path != root.bytes()) children_[parent_of(path)].push_back(static_cast<u32>(i));
  }
}

const std::vector<u32>& Children::of(const tree::RelPath& dir) const {
  const auto found = children_.find(dir.bytes());
  return found == children_.end() ? none_ : found->second;
}

Result<void> walk_against(int at, const std::string& rel, const tree::Tree& tree, const tree::RelPath& root, const WalkHooks& hooks) {
  return Walk(at, rel, tree, root, hooks).run();
}

Rules::Verdict Rules::verdict(const Met& met) const {
  const bool is_dir = met.stat.kind == os::Kind::directory;
  if (exclude.matches(met.path, is_dir)) return Verdict::excluded;
  const bool leaves_out = bytecode == tree::Bytecode::leave_out;
  if (is_dir && leaves_out && tree::is_pycache_dir(met.name)) return Verdict::bytecode;
  if (!is_dir && leaves_out && has_source_beside(met)) return Verdict::bytecode;
  return is_dir ? Verdict::look_inside : Verdict::managed;
}

}  // namespace envsync::store
