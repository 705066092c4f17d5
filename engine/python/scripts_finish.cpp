// SPDX-License-Identifier: MIT
// Scripts and their RECORDs, written into an overlay's tree.
#include "python/scripts.hpp"

#include "python/sha256.hpp"
#include "python/site_packages.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace envsync::python {
namespace {

constexpr std::string_view kBin = "bin";

struct Finisher {
  Overlay& overlay;
  const SmallFiles& files;
  std::string_view root;
  std::map<tree::RelPath, tree::Entry> entries = {};          // written anew
  std::map<tree::RelPath, RowContent> rows = {};              // what RECORDs must say now

  const TakenPath* taken(const tree::RelPath& path) const {
    const auto found = std::ranges::lower_bound(overlay.taken, path, {}, &TakenPath::path);
    return found != overlay.taken.end() && found->path == path ? &*found : nullptr;
  }

  void write(const tree::RelPath& path, tree::Entry like, std::string text) {
    like.path = path;
    like.body = tree::File{text.size(), content::digest_of(as_bytes(text)), 0};
    entries.insert_or_assign(path, std::move(like));
    overlay.made.insert_or_assign(path, std::move(text));
  }

  void write_script(const tree::RelPath& path, tree::Entry like, std::string text) {
    rows.insert_or_assign(path, RowContent{sha256(as_bytes(text)), text.size()});
    write(path, std::move(like), std::move(text));
  }

  std::string interpreter() const { return fmt::format("{}/{}/python", root, kBin); }

  void rewrite_scripts() {
    for (const TakenPath& script : overlay.taken) {
      if (script.path.parent().bytes() != kBin) continue;
      const auto text = files.find(script.origin_path.bytes());
      auto changed = text == files.end() ? std::nullopt : with_interpreter(text->second, interpreter());
      const tree::Entry& entry = *overlay.desired.find(script.path);
      if (changed && entry.file() != nullptr && *changed != text->second) write_script(script.path, entry, *std::move(changed));
    }
  }

  void generate_scripts() {
    constexpr u32 kExecutable = 0755;
    for (const MissingScript& script : overlay.scripts) {
      const tree::Entry* record = overlay.desired.find(script.dist_info.child("RECORD"));
      tree::Entry like = record != nullptr ? *record : tree::Entry{};
      like.mode = kExecutable;
      like.xattrs.clear();
      write_script(script.path, std::move(like), generated_script(script.entry_point, interpreter()));
    }
  }

  /// Rows of headers name the Python that the origin is of.
  std::string with_headers_of_target(const TakenPath& record, const std::string& text) const {
    const tree::RelPath from = record.origin_path.parent().parent(), to = record.path.parent().parent();
    RowMoves moves;
    if (!is_site(from) || !is_site(to) || headers_of(from) == headers_of(to)) return text;
    for (const RecordRow& row : parse_record(text).rows) {
      const auto path = resolve_row(from, row.path);
      if (path && headers_of(from).contains(*path)) moves.emplace(row.path, "../../../" + with_headers_moved(*path, from, to).bytes());
    }
    return moves.empty() ? text : with_moved_rows(text, moves);
  }

  /// RECORDs that came and list what was written, or what lies elsewhere here.
  void rewrite_records() {
    std::vector<TakenPath> records;
    for (const TakenPath& one : overlay.taken)
      if (one.path.name() == "RECORD" && one.path.parent().name().ends_with(".dist-info")) records.push_back(one);
    for (const TakenPath& record : records) {
      const auto text = files.find(record.origin_path.bytes());
      if (text == files.end()) continue;
      const std::string here = with_headers_of_target(record, text->second);
      RowChanges changes;
      for (const RecordRow& row : parse_record(here).rows) {
        const auto path = resolve_row(record.path.parent().parent(), row.path, root);
        const auto content = path ? rows.find(*path) : rows.end();
        if (content != rows.end()) changes.insert_or_assign(row.path, content->second);
      }
      if (!changes.empty() || here != text->second) write(record.path, *overlay.desired.find(record.path), with_changed_rows(here, changes));
    }
  }

  Result<void> put_into_tree() {
    std::vector<tree::Entry> all;
    for (const tree::Entry& entry : overlay.desired.entries())
      if (!entries.contains(entry.path)) all.push_back(entry);
    std::set<tree::RelPath> folders;
    for (auto& [path, entry] : entries) {
      if (overlay.desired.find(path.parent()) == nullptr) folders.insert(path.parent());
      all.push_back(std::move(entry));
    }
    for (const tree::RelPath& folder : folders) {
      constexpr u32 kFolderMode = 0755;
      all.push_back({.path = folder, .mode = kFolderMode, .mtime_ns = 0, .owner = {}, .xattrs = {}, .body = tree::Dir{}});
    }
    TRY(overlay.desired, tree::Tree::from_unsorted(std::move(all)));
    std::erase_if(overlay.taken, [&](const TakenPath& one) { return overlay.made.contains(one.path); });
    overlay.scripts.clear();
    return ok();
  }
};

}  // namespace

std::vector<tree::RelPath> wanted_scripts(const Overlay& overlay) {
  std::vector<tree::RelPath> out;
  for (const TakenPath& one : overlay.taken) {
    if (one.path.parent().bytes() != kBin) continue;
    const tree::Entry* entry = overlay.desired.find(one.path);
    if (entry != nullptr && entry->file() != nullptr && entry->file()->size <= kScriptBytesMax) out.push_back(one.origin_path);
  }
  return out;
}

Result<void> finish_scripts(Overlay& overlay, const SmallFiles& files, std::string_view root) {
  Finisher finisher{.overlay = overlay, .files = files, .root = root};
  finisher.rewrite_scripts();
  finisher.generate_scripts();
  finisher.rewrite_records();
  return finisher.put_into_tree();
}

}  // namespace envsync::python
