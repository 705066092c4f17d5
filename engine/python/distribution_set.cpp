// SPDX-License-Identifier: MIT
#include "python/distribution_set.hpp"

#include "python/site_packages.hpp"
#include "python/text.hpp"
#include "tree/exclude.hpp"

#include <array>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

namespace envsync::python {
namespace {

constexpr std::array<std::string_view, 6> kSmallNames{"METADATA", "PKG-INFO", "RECORD", "INSTALLER", "entry_points.txt", "direct_url.json"};

using EntryIndex = std::unordered_map<std::string_view, std::size_t>;

/// What read() knows while it reads one tree.
struct Reader {
  const tree::Tree& tree;
  const SmallFiles& files;
  std::string_view root;
  EntryIndex entries;
  bool lib64_is_lib = false;
  const std::vector<std::string>* about = nullptr;  // only of paths with these ends; `entries` is then empty

  const std::string* text(const tree::RelPath& folder, std::string_view name) const {
    const auto found = files.find(folder.child(name).bytes());
    return found == files.end() ? nullptr : &found->second;
  }
  std::optional<std::size_t> entry(const tree::RelPath& path) const {
    if (about != nullptr) return tree.index_of(path);
    const auto found = entries.find(path.bytes());
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  /// Where both names of one folder lead to, so that a path has one spelling.
  tree::RelPath canonical(tree::RelPath path) const {
    constexpr std::string_view kLib64 = "lib64/";
    if (!lib64_is_lib || !path.bytes().starts_with(kLib64)) return path;
    return *tree::RelPath::parse("lib/" + path.bytes().substr(kLib64.size()));
  }
};

void read_metadata(const Reader& reader, Installed& out) {
  const std::string* text = reader.text(out.about.folder, "METADATA");
  if (text == nullptr) text = reader.text(out.about.folder, "PKG-INFO");
  if (text == nullptr) return;
  const Metadata metadata = parse_metadata(*text);
  if (!metadata.name.empty()) {
    out.about.display_name = metadata.name;
    out.about.name = normalize_name(metadata.name);
  }
  if (!metadata.version.empty()) out.about.version = metadata.version;
  for (const std::string& extra : metadata.provides_extra) out.provides_extra.push_back(normalize_name(extra));
  for (const std::string& line : metadata.requires_dist) {
    if (auto requirement = Requirement::parse(line)) out.requirements.push_back(*std::move(requirement));
    else out.unread_requirements.push_back(line);
  }
}

/// Bytecode is left out of trees by default, so that its rows miss nothing.
bool is_bytecode_row(const Reader& reader, const tree::RelPath& path) {
  if (tree::is_pycache_dir(path.parent().name())) return true;
  const std::string source = tree::source_beside(path.name());
  return !source.empty() && reader.entry(path.parent().child(source));
}

void read_row(const Reader& reader, const RecordRow& row, Installed& out) {
  const auto refuse = [&](std::string_view why) { out.refused.push_back({row.line, row.path.substr(0, 200), std::string(why)}); };
  auto resolved = resolve_row(out.site, row.path, reader.root);
  if (!resolved) return refuse(resolved.error());
  const tree::RelPath path = reader.canonical(*std::move(resolved));
  if (is_environments_own(path)) return refuse("names a file of the environment itself");
  const auto entry = reader.entry(path);
  if (entry && reader.tree.entries()[*entry].is_dir()) return refuse("names a folder");
  if (entry) out.owned.push_back({*entry, parse_record_hash(row.hash), row.size});
  else if (!is_bytecode_row(reader, path)) out.missing.push_back({path, parse_record_hash(row.hash), row.size});
}

/// One row an entry; a second one that says something else is refused.
void settle_duplicates(const Reader& reader, Installed& out) {
  std::ranges::stable_sort(out.owned, {}, &OwnedEntry::entry);
  std::vector<OwnedEntry> owned;
  owned.reserve(out.owned.size());
  for (const OwnedEntry& next : out.owned) {
    if (owned.empty() || owned.back().entry != next.entry) {
      owned.push_back(next);
      continue;
    }
    OwnedEntry& first = owned.back();
    if (first.sum && next.sum && first.sum != next.sum) {
      out.refused.push_back({0, reader.tree.entries()[next.entry].path.bytes().substr(0, 200), "repeats a path with another hash"});
    }
    if (!first.sum) first = next;
  }
  out.owned = std::move(owned);
}

std::size_t find_in(std::string_view text, std::string_view what, std::size_t from = 0) {
  const void* at = ::memmem(text.data() + from, text.size() - from, what.data(), what.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

/// Rows with detours (a//b, a/./b, a/c/../b) end as other paths than they spell; "../../../bin/x" does not.
bool has_detours(std::string_view record) {
  constexpr std::string_view kUp = "/../";
  if (find_in(record, "//") != std::string_view::npos || find_in(record, "/./") != std::string_view::npos) return true;
  for (std::size_t at = find_in(record, kUp); at != std::string_view::npos; at = find_in(record, kUp, at + 1)) {
    const std::string_view before = record.substr(0, at);
    const bool is_up = before.ends_with("..") && (before.size() == 2 || std::string_view("/\n\"").find(before[before.size() - 3]) != std::string_view::npos);
    if (!is_up) return true;
  }
  return false;
}

/// False where no row can be of a path that ends in one of these. CSV may spell a quotation mark in another way.
bool may_list(std::string_view record, const std::vector<std::string>& ends) {
  const auto is_in = [&](const std::string& end) { return end.find('"') != std::string::npos || find_in(record, end) != std::string_view::npos; };
  return std::ranges::any_of(ends, is_in) || has_detours(record);
}

/// What of a path every row about it spells: its name, and the folder's below a site, whose own name no row has.
std::string end_of(const tree::RelPath& path) {
  const tree::RelPath folder = path.parent();
  return folder.is_root() || is_site(folder) ? std::string(path.name()) : fmt::format("{}/{}", folder.name(), path.name());
}

void read_record(const Reader& reader, Installed& out) {
  const std::string* text = reader.text(out.about.folder, "RECORD");
  if (reader.about != nullptr && text != nullptr && !may_list(*text, *reader.about)) {
    // nothing to learn of it
  } else if (text == nullptr) {
    out.unreadable = "no RECORD";
  } else {
    Record record = parse_record(*text);
    if (!record.broken.empty()) out.unreadable = "a RECORD that cannot be read: " + record.broken;
    out.refused = std::move(record.problems);
    for (const RecordRow& row : record.rows) read_row(reader, row, out);
  }
  // What lies in the dist-info belongs to it, listed or not.
  for (const std::size_t entry : reader.tree.below(out.about.folder))
    if (!reader.tree.entries()[entry].is_dir()) out.owned.push_back({entry, {}, {}});
  settle_duplicates(reader, out);
}

Installed read_installed(const Reader& reader, Distribution about) {
  Installed out;
  out.about = std::move(about);
  out.site = out.about.folder.parent();
  read_metadata(reader, out);
  read_record(reader, out);
  if (const std::string* text = reader.text(out.about.folder, "entry_points.txt")) out.scripts = parse_scripts(*text);
  if (const std::string* text = reader.text(out.about.folder, "INSTALLER")) out.installer = std::string(trimmed(*text));
  if (const std::string* text = reader.text(out.about.folder, "direct_url.json")) out.editable = is_editable(*text);
  return out;
}

/// The source that a .pyc was compiled from; nullopt for another file.
std::optional<tree::RelPath> source_of(const tree::RelPath& path) {
  const tree::RelPath folder = path.parent();
  if (tree::is_pycache_dir(folder.name())) {
    const std::string_view module = tree::module_of_cached(path.name());
    const std::string name = std::string(module) + ".py";
    return module.empty() || !tree::is_component(name) ? std::nullopt : std::optional(folder.parent().child(name));
  }
  const std::string source = tree::source_beside(path.name());
  return source.empty() ? std::nullopt : std::optional(folder.child(source));
}

/// Who owns a source owns its bytecode, listed or not.
void own_bytecode(const Reader& reader, std::vector<Installed>& all) {
  std::unordered_map<std::size_t, std::vector<std::size_t>> bytecode;  // of a source
  for (std::size_t i = 0; i < reader.tree.entries().size(); ++i) {
    const tree::Entry& entry = reader.tree.entries()[i];
    if (entry.file() == nullptr || !(entry.path.bytes().ends_with(".pyc") || entry.path.bytes().ends_with(".pyo"))) continue;
    const auto source = source_of(entry.path);
    const auto found = source ? reader.entry(*source) : std::nullopt;
    if (found) bytecode[*found].push_back(i);
  }
  if (bytecode.empty()) return;
  for (Installed& one : all) {
    const std::size_t rows = one.owned.size();
    for (std::size_t k = 0; k < rows; ++k) {
      const auto found = bytecode.find(one.owned[k].entry);
      if (found == bytecode.end()) continue;
      for (const std::size_t entry : found->second) one.owned.push_back({entry, {}, {}});
    }
    settle_duplicates(reader, one);
  }
}

enum class Match : u8 { no, unknown, yes };

Match match(const tree::Entry& entry, const OwnedEntry& row, const tree::RelPath& dist_info, const Sha256* sum) {
  if (dist_info.contains(entry.path)) return Match::yes;
  if (entry.file() == nullptr || !row.sum) return Match::unknown;
  if (sum != nullptr) return *sum == *row.sum ? Match::yes : Match::no;
  if (!row.size) return Match::unknown;
  return *row.size == entry.file()->size ? Match::yes : Match::no;
}

}  // namespace

bool is_environments_own(const tree::RelPath& path) {
  const std::string& bytes = path.bytes();
  if (bytes == "pyvenv.cfg" || bytes == "lib64") return true;
  constexpr std::string_view kBin = "bin/";
  if (!bytes.starts_with(kBin)) return false;
  std::string_view name = std::string_view(bytes).substr(kBin.size());
  if (name == "activate" || name == "activate_this.py" || name == "Activate.ps1") return true;
  if (name.starts_with("activate.")) return name.find('/') == std::string_view::npos;
  if (!name.starts_with("python")) return false;
  name.remove_prefix(std::string_view("python").size());
  // python, python3, python3.13, python3.13t
  return std::ranges::all_of(name, [&](const char& c) { return is_digit(c) || c == '.' || (c == 't' && &c == &name.back()); });
}

std::vector<tree::RelPath> wanted_small_files(const tree::Tree& tree) {
  std::vector<tree::RelPath> out;
  for (const Distribution& one : distributions(tree)) {
    for (const std::string_view name : kSmallNames) {
      tree::RelPath path = one.folder.child(name);
      const tree::Entry* entry = tree.find(path);
      if (entry != nullptr && entry->file() != nullptr) out.push_back(std::move(path));
    }
  }
  std::ranges::sort(out);
  return out;
}

DistributionSet DistributionSet::read(const tree::Tree& tree, const SmallFiles& files, std::string_view root) { return read(tree, files, root, nullptr); }

DistributionSet DistributionSet::read_about(const tree::Tree& tree, const SmallFiles& files, std::string_view root, const std::vector<tree::RelPath>& paths) {
  std::vector<std::string> ends;
  for (const tree::RelPath& path : paths) {
    ends.push_back(end_of(path));
    if (const auto source = source_of(path)) ends.push_back(end_of(*source));
  }
  return read(tree, files, root, &ends);
}

DistributionSet DistributionSet::read(const tree::Tree& tree, const SmallFiles& files, std::string_view root, const std::vector<std::string>* about) {
  Reader reader{.tree = tree, .files = files, .root = root, .entries = {}, .lib64_is_lib = false, .about = about};
  if (about == nullptr) {
    reader.entries.reserve(tree.entries().size());
    for (std::size_t i = 0; i < tree.entries().size(); ++i) reader.entries.emplace(tree.entries()[i].path.bytes(), i);
  }
  if (const tree::Entry* lib64 = tree.find(*tree::RelPath::parse("lib64")); lib64 != nullptr) {
    const tree::Symlink* link = lib64->symlink();
    reader.lib64_is_lib = link != nullptr && (link->target == "lib" || link->target == "lib/");
  }
  DistributionSet out;
  out.tree_ = &tree;
  for (Distribution& one : distributions(tree)) out.all_.push_back(read_installed(reader, std::move(one)));
  std::ranges::sort(out.all_, {}, [](const Installed& one) { return std::tie(one.about.name, one.about.folder); });
  own_bytecode(reader, out.all_);
  out.add_claims();
  return out;
}

void DistributionSet::add_claims() {
  claims_end_.assign(tree_->entries().size(), 0);
  for (const Installed& one : all_)
    for (const OwnedEntry& owned : one.owned) ++claims_end_[owned.entry];
  std::size_t end = 0;
  for (std::size_t& count : claims_end_) {
    const std::size_t begin = end;
    end += count;
    count = begin;  // grows to the end of its part below
  }
  claims_.resize(end);
  for (u32 i = 0; i < all_.size(); ++i)
    for (u32 k = 0; k < all_[i].owned.size(); ++k) claims_[claims_end_[all_[i].owned[k].entry]++] = {i, k};
}

std::vector<u32> DistributionSet::named(std::string_view name) const {
  const auto range = std::ranges::equal_range(all_, name, {}, [](const Installed& one) { return std::string_view(one.about.name); });
  std::vector<u32> out;
  for (auto at = range.begin(); at != range.end(); ++at) out.push_back(static_cast<u32>(at - all_.begin()));
  return out;
}

std::span<const DistributionSet::Claim> DistributionSet::claims(std::size_t entry) const {
  const std::size_t begin = entry == 0 ? 0 : claims_end_[entry - 1];
  return std::span(claims_).subspan(begin, claims_end_[entry] - begin);
}

std::vector<tree::RelPath> DistributionSet::contested() const {
  std::vector<tree::RelPath> out;
  for (std::size_t i = 0; i < tree_->entries().size(); ++i) {
    const tree::File* file = tree_->entries()[i].file();
    if (file == nullptr || claims(i).size() < 2) continue;
    std::vector<Sha256> sums;
    for (const Claim& claim : claims(i)) {
      const OwnedEntry& row = all_[claim.distribution].owned[claim.owned];
      if (row.sum && (!row.size || *row.size == file->size)) sums.push_back(*row.sum);
    }
    std::ranges::sort(sums);
    if (std::ranges::unique(sums).begin() - sums.begin() > 1) out.push_back(tree_->entries()[i].path);
  }
  return out;
}

void DistributionSet::learn(const Sums& sums) {
  for (const auto& [path, sum] : sums) {
    const auto relative = tree::RelPath::parse(path);
    const auto entry = relative ? tree_->index_of(*relative) : std::nullopt;
    if (entry) sums_.insert_or_assign(*entry, sum);
  }
}

std::vector<u32> DistributionSet::effective_owners(std::size_t entry) const {
  const auto known = sums_.find(entry);
  std::vector<u32> certain, possible;
  for (const Claim& claim : claims(entry)) {
    const Installed& owner = all_[claim.distribution];
    const Match found = match(tree_->entries()[entry], owner.owned[claim.owned], owner.about.folder, known == sums_.end() ? nullptr : &known->second);
    if (found == Match::yes) certain.push_back(claim.distribution);
    if (found == Match::unknown) possible.push_back(claim.distribution);
  }
  return certain.empty() ? possible : certain;
}

}  // namespace envsync::python
