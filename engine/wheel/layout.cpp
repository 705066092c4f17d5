// SPDX-License-Identifier: MIT
#include "wheel/layout.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "python/distribution_set.hpp"
#include "python/metadata.hpp"
#include "python/scripts.hpp"
#include "python/sha256.hpp"

namespace envsync::wheel {

namespace {

constexpr std::string_view kDistInfo = ".dist-info", kData = ".data", kInstaller = "envsync\n";
constexpr u64 kTextMax = 4u << 20;  // LIMIT: METADATA holds a whole README

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

/// The value of a header of the file WHEEL.
std::string header(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    const std::string_view value = line.substr(key.size() + 1);
    const std::size_t begin = value.find_first_not_of(" \t"), end = value.find_last_not_of(" \t\r");
    return begin == std::string_view::npos ? std::string{} : std::string(value.substr(begin, end - begin + 1));
  }
  return {};
}

class Installer {
 public:
  Installer(const Archive& archive, const Texts& texts) : archive_(archive), texts_(texts) {}

  Result<Layout> run() {
    TRY_STATUS(read_about());
    TRY_STATUS(read_record());
    scripts_ = python::parse_scripts(texts_.entry_points);
    for (std::size_t i = 0; i < archive_.entries().size(); ++i) TRY_STATUS(place(i));
    for (const auto& [path, row] : rows_)
      if (!row.is_met) return no(fmt::format("it lacks '{}', which its RECORD lists", printable(path)));
    TRY_STATUS(write());
    TRY_STATUS(check_folders());
    return std::move(out_);
  }

 private:
  struct Row { std::string hash; std::optional<u64> size; bool is_met = false; };

  Error no(std::string why) const { return refused(archive_.name(), std::move(why)); }
  std::string in_dist_info(std::string_view name) const { return fmt::format("{}/{}", texts_.dist_info, name); }

  Result<void> read_about() {
    const std::string version = header(texts_.wheel, "Wheel-Version");
    if (version.empty()) return no(fmt::format("'{}' has no Wheel-Version", printable(in_dist_info("WHEEL"))));
    if (first_component(version.substr(0, version.find('.'))) != "1") return no(fmt::format("it is of wheel version {}, not of 1", printable(version)));
    const python::Metadata about = python::parse_metadata(texts_.metadata);
    out_.name = about.name;
    out_.version = about.version;
    const std::string_view stem = std::string_view(texts_.dist_info).substr(0, texts_.dist_info.size() - kDistInfo.size());
    const std::string folder_name = python::normalize_name(stem.substr(0, stem.find('-')));
    const std::string file_name = python::normalize_name(std::string_view(archive_.name()).substr(0, archive_.name().find('-')));
    if (!tree::is_component(about.name) || about.version.empty()) return no("its METADATA names no distribution");
    if (python::normalize_name(about.name) != folder_name || folder_name != file_name)
      return no(fmt::format("its file name, its dist-info '{}' and its METADATA name different distributions", printable(texts_.dist_info)));
    return ok();
  }

  Result<void> read_record() {
    if (const ArchiveEntry* entry = archive_.find(in_dist_info("RECORD"))) time_ = entry->mtime_ns;
    const python::Record record = python::parse_record(texts_.record);
    if (!record.broken.empty()) return no(fmt::format("its RECORD {}", record.broken));
    if (!record.problems.empty())
      return no(fmt::format("line {} of its RECORD, '{}', {}", record.problems.front().line, printable(record.problems.front().row), record.problems.front().why));
    for (const python::RecordRow& row : record.rows) {
      if (row.path.ends_with('/')) continue;  // old tools listed folders
      if (!rows_.try_emplace(row.path, Row{row.hash, row.size}).second) return no(fmt::format("its RECORD lists '{}' twice", printable(row.path)));
    }
    return ok();
  }

  /// Written anew, or a signature of the RECORD that was.
  bool is_left_out(std::string_view name) const {
    constexpr std::array<std::string_view, 4> kNames{"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER"};
    return std::ranges::any_of(kNames, [&](std::string_view one) { return name == in_dist_info(one); });
  }

  Result<void> place(std::size_t index) {
    const ArchiveEntry& entry = archive_.entries()[index];
    const auto row = rows_.find(entry.name);
    if (row != rows_.end()) row->second.is_met = true;
    if (is_left_out(entry.name)) return ok();
    PlacedFile file{.entry = index, .path = {}, .sum = {}, .is_executable = entry.is_executable};
    TRY(auto target, target_of(entry.name));
    if (!target) return ok();
    file.path = *std::move(target);
    if (file.path.parent().bytes() == "bin") file.is_executable = true;
    if (python::is_environments_own(file.path)) return no(fmt::format("'{}' would replace the environment's own '{}'", printable(entry.name), printable(file.path.bytes())));
    if (row == rows_.end()) return no(fmt::format("its RECORD does not list '{}'", printable(entry.name)));
    const auto sum = python::parse_record_hash(row->second.hash);
    if (!sum) return no(fmt::format("its RECORD has no sha256 of '{}'", printable(entry.name)));
    if (row->second.size && *row->second.size != entry.size)
      return no(fmt::format("'{}' has {} bytes, by its RECORD {}", printable(entry.name), entry.size, *row->second.size));
    file.sum = *sum;
    if (!targets_.insert(file.path).second) return no(fmt::format("two of its files would be '{}'", printable(file.path.bytes())));
    add_row(file.path, *sum, entry.size);
    out_.files.push_back(std::move(file));
    return ok();
  }

  /// nullopt: the file is not installed, because a script of its name is generated.
  Result<std::optional<tree::RelPath>> target_of(const std::string& name) {
    const std::string_view top = first_component(name);
    if (!top.ends_with(kData) || top.size() == name.size()) return std::optional(tree::RelPath::parse(fmt::format("{}/{}", kSite, name)));
    const std::string_view below = std::string_view(name).substr(top.size() + 1);
    const std::string_view scheme = first_component(below);
    const std::string rest(below.substr(std::min(scheme.size() + 1, below.size())));
    std::string folder;
    if (scheme == "purelib" || scheme == "platlib") folder = fmt::format("{}/", kSite);
    else if (scheme == "scripts") folder = "bin/";
    else if (scheme == "headers") folder = fmt::format("{}/{}/", kHeaders, out_.name);
    else if (scheme != "data") return no(fmt::format("'{}' is of no scheme that wheels have", printable(name)));
    if (rest.empty()) return no(fmt::format("'{}' is a file where a folder must be", printable(name)));
    if (scheme == "scripts" && std::ranges::find(scripts_, rest, &python::EntryPoint::name) != scripts_.end()) return std::optional<tree::RelPath>();
    auto path = tree::RelPath::parse(folder + rest);
    if (!path) return no(fmt::format("'{}' is too long a path", printable(name)));
    return path;
  }

  void add_row(const tree::RelPath& path, const python::Sha256& sum, u64 size) {
    record_ += fmt::format("{},{},{}\n", row_path(path), python::render_record_hash(sum), size);
  }
  static std::string row_path(const tree::RelPath& path) {
    const tree::RelPath site = *tree::RelPath::parse(std::string(kSite));
    return python::csv_field(site.contains(path) ? site.relative(path).bytes() : "../../../" + path.bytes());
  }

  Result<void> add_written(std::string path, std::string text, bool is_executable) {
    auto target = tree::RelPath::parse(std::move(path));
    if (!target || !targets_.insert(*target).second) return no("two of its files would lie at one path");
    add_row(*target, python::sha256(as_bytes(text)), text.size());
    out_.written.emplace(*std::move(target), WrittenFile{std::move(text), is_executable, time_});
    return ok();
  }

  Result<void> write() {
    std::set<std::string> generated;
    for (const python::EntryPoint& script : scripts_) {
      if (!tree::is_component(script.name)) return no(fmt::format("its script '{}' is no file name", printable(script.name)));
      if (python::is_environments_own(tree::RelPath::parse("bin")->child(script.name)))
        return no(fmt::format("its script '{}' would replace the environment's own", printable(script.name)));
      if (!generated.insert(script.name).second) continue;  // as a console script and as one of a desktop
      TRY_STATUS(add_written("bin/" + script.name, python::generated_script(script, "python"), true));
    }
    const std::string info = fmt::format("{}/{}/", kSite, texts_.dist_info);
    TRY_STATUS(add_written(info + "INSTALLER", std::string(kInstaller), false));
    const tree::RelPath record = *tree::RelPath::parse(info + "RECORD");
    record_ += fmt::format("{},,\n", row_path(record));
    out_.written.insert_or_assign(record, WrittenFile{std::move(record_), false, time_});
    return ok();
  }

  /// A path that is a file cannot be a folder as well.
  Result<void> check_folders() const {
    for (const tree::RelPath& path : targets_) {
      for (tree::RelPath up = path.parent(); !up.is_root(); up = up.parent())
        if (targets_.contains(up)) return no(fmt::format("'{}' would be a file and a folder", printable(up.bytes())));
    }
    return ok();
  }

  const Archive& archive_;
  const Texts& texts_;
  std::map<std::string, Row, std::less<>> rows_;  // by path in the archive
  std::vector<python::EntryPoint> scripts_;
  std::set<tree::RelPath> targets_;
  std::string record_;
  i64 time_ = 0;
  Layout out_;
};

}  // namespace

Result<std::string> dist_info_of(const Archive& archive) {
  std::set<std::string, std::less<>> found;
  for (const ArchiveEntry& entry : archive.entries()) {
    const std::string_view top = first_component(entry.name);
    if (top.size() < entry.name.size() && top.ends_with(kDistInfo)) found.emplace(top);
  }
  if (found.size() == 1) return *found.begin();
  return refused(archive.name(), found.empty() ? "it has no dist-info" : "it has several dist-infos");
}

Result<Texts> read_texts(const Archive& archive, Reader& reader) {
  Texts out;
  TRY(out.dist_info, dist_info_of(archive));
  const auto read = [&](std::string_view name, u64 limit, bool is_needed, std::string& to) -> Result<void> {
    const std::string path = fmt::format("{}/{}", out.dist_info, name);
    const ArchiveEntry* entry = archive.find(path);
    if (entry == nullptr) return is_needed ? Result<void>(refused(archive.name(), fmt::format("it has no '{}'", printable(path)))) : ok();
    TRY(to, reader.text(*entry, limit));
    return ok();
  };
  TRY_STATUS(read("RECORD", python::kRecordBytesMax, true, out.record));
  TRY_STATUS(read("WHEEL", kTextMax, true, out.wheel));
  TRY_STATUS(read("METADATA", kTextMax, true, out.metadata));
  TRY_STATUS(read("entry_points.txt", kTextMax, false, out.entry_points));
  return out;
}

Result<Layout> lay_out(const Archive& archive, const Texts& texts) { return Installer(archive, texts).run(); }

}  // namespace envsync::wheel
