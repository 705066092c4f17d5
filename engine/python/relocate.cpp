// SPDX-License-Identifier: MIT
#include "python/relocate.hpp"

#include "python/absolute_paths.hpp"
#include "python/scripts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/sha256.hpp"

namespace envsync::python {
namespace {

constexpr std::string_view kBin = "bin";

bool is_activate(std::string_view name) { return name == "activate" || name == "activate_this.py" || name == "Activate.ps1" || name.starts_with("activate."); }

class Relocator {
 public:
  Relocator(const DistributionSet& set, const SmallFiles& texts, std::string_view from, std::string_view to) : set_(set), texts_(texts), from_(from), to_(to) {}

  Result<Relocation> run() {
    if (from_ != to_) {
      TRY_STATUS(check_path());
      for (const tree::RelPath& path : wanted_launchers(set_.tree())) rewrite(path);
      for (const Installed& one : set_.all()) rewrite_record(one);
    }
    TRY(out_.tree, with_texts(set_.tree(), out_.made));
    return std::move(out_);
  }

 private:
  /// The scripts that hold the path are of four shells, each with quotes of its own.
  Result<void> check_path() const {
    if (to_.find_first_of("'\"$`\\\n\r!") == std::string_view::npos) return ok();
    return Error{ErrorCode::invariant_violated, fmt::format("activate scripts cannot hold the path '{}': it has quotes or signs that shells read", printable(to_))}
        .note("nothing was changed")
        .hint("choose another path for the target");
  }

  void rewrite(const tree::RelPath& path) {
    const auto text = texts_.find(path.bytes());
    if (text == texts_.end()) return;
    std::string made = text->second;
    if (path.parent().bytes() == kBin && !is_activate(path.name())) {
      const auto named = interpreter_of(made);
      if (!named || !lies_in(named->program, from_)) return;
      made = with_interpreter(made, fmt::format("{}{}", to_, std::string_view(named->program).substr(from_.size()))).value_or(made);
    } else {
      made = with_root_replaced(made, from_, to_);
    }
    if (made != text->second) out_.made.emplace(path, std::move(made));
  }

  /// Rows of what was rewritten, and rows that are absolute.
  void rewrite_record(const Installed& one) {
    const tree::RelPath path = one.about.folder.child("RECORD");
    const auto text = texts_.find(path.bytes());
    if (text == texts_.end()) return;
    RowMoves moves;
    RowChanges changes;
    for (const RecordRow& row : parse_record(text->second).rows) {
      std::string written = row.path;
      if (lies_in(row.path, from_)) {
        written = fmt::format("{}{}", to_, std::string_view(row.path).substr(from_.size()));
        moves.emplace(row.path, written);
      }
      const auto there = resolve_row(one.site, row.path, from_);
      const auto made = there ? out_.made.find(*there) : out_.made.end();
      if (made != out_.made.end()) changes.emplace(written, RowContent{sha256(as_bytes(made->second)), made->second.size()});
    }
    if (moves.empty() && changes.empty()) return;
    out_.made.insert_or_assign(path, with_changed_rows(moves.empty() ? text->second : with_moved_rows(text->second, moves), changes));
  }

  const DistributionSet& set_;
  const SmallFiles& texts_;
  const std::string_view from_, to_;
  Relocation out_;
};

}  // namespace

std::vector<tree::RelPath> wanted_launchers(const tree::Tree& tree) {
  std::vector<tree::RelPath> out;
  for (const tree::Entry& entry : tree.entries()) {
    const bool is_asked = entry.path.parent().bytes() == kBin || entry.path.bytes() == "pyvenv.cfg";
    if (is_asked && entry.file() != nullptr && entry.file()->size <= kScriptBytesMax) out.push_back(entry.path);
  }
  return out;
}

Result<tree::Tree> with_texts(const tree::Tree& tree, const std::map<tree::RelPath, std::string>& made) {
  std::vector<tree::Entry> entries(tree.entries().begin(), tree.entries().end());
  for (tree::Entry& entry : entries) {
    const auto text = made.find(entry.path);
    if (text != made.end()) entry.body = tree::File{text->second.size(), content::digest_of(as_bytes(text->second)), 0};
  }
  // A group of which one member is left is none.
  std::map<u32, u32> members;
  for (const tree::Entry& entry : entries)
    if (entry.file() != nullptr && entry.file()->link_group != 0) ++members[entry.file()->link_group];
  for (tree::Entry& entry : entries) {
    auto* file = std::get_if<tree::File>(&entry.body);
    if (file != nullptr && file->link_group != 0 && members[file->link_group] == 1) file->link_group = 0;
  }
  return tree::Tree::from_unsorted(std::move(entries));
}

Result<Relocation> relocate(const DistributionSet& set, const SmallFiles& texts, std::string_view from, std::string_view to) {
  return Relocator(set, texts, from, to).run();
}

}  // namespace envsync::python
