// SPDX-License-Identifier: MIT
// What a target should become: a record's tree, or the source's with the overlays that are for this target; and who has each content of it.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "apply/host_job.hpp"
#include "apply/texts.hpp"
#include "python/environment.hpp"

namespace envsync::apply {

using namespace format;

/// Origins that are folders of this target's own are opened here; the run's are opened already.
void HostJob::open_layers() {
  for (const Layer& layer : goal_.layers) {
    if (!layer.overlay->is_for(*target_)) continue;
    Layer own = layer;
    if (own.origin == nullptr) {
      manifest::Source place = layer.overlay->from;
      place.host = *target_;
      place.host.path = place.path;
      own_origins_.push_back(std::make_unique<Source>(*run_, std::move(place), Reading::origin));
      own.origin = own_origins_.back().get();
      own.origin->start();
    }
    layers_.push_back(own);
  }
}

/// As the manifest says it, where that is absolute: scripts name this path and not where its links lead to.
const std::string& HostJob::environment_root() const { return target_->path.starts_with('/') ? target_->path : session_->scan.path; }

Result<const tree::Tree*> HostJob::wanted_tree() {
  if (is_rollback()) return record_tree();
  if (is_on_target()) return wanted_on_target();
  TRY(const ScanReply* scanned, goal_.source->scan());
  TRY(const tree::Tree* base, relocated_source());
  wanted_full_ = scanned->full;
  if (layers_.empty() && !relocation_) return base;
  const BaseReader reader{[this](const std::vector<tree::RelPath>& paths) -> Result<python::SmallFiles> {
                            TRY(const python::SmallFiles* texts, goal_.source->texts(paths));
                            return *texts;
                          },
                          [this](const std::vector<tree::RelPath>& paths) { return fetch_sums(*run_, goal_.source->session(), paths); }};
  return lay(*base, reader, scanned->environment);
}

Result<const tree::Tree*> HostJob::lay(const tree::Tree& base, const BaseReader& reader, const EnvironmentFacts& environment) {
  std::string python = python::pyvenv_version(python::parse_pyvenv(environment.pyvenv));
  constexpr std::string_view kPrefix = "python";
  if (python.empty() && environment.lib_python.starts_with(kPrefix)) python = environment.lib_python.substr(kPrefix.size());
  TRY(layered_, lay_layers(*run_, base, reader, layers_, environment_root(), python,
                           relocation_ ? relocation_->made : std::map<tree::RelPath, std::string>{}));
  wanted_full_ = layered_.desired.full();
  return &layered_.desired;
}

Result<const tree::Tree*> HostJob::record_tree() {
  TreeRequest request;
  request.kind = TreeKind::record;
  request.record = *goal_.to_generation;
  TRY(const RecordsReply records, session_->endpoint->records(run_->stop));
  for (const RecordInfo& record : records.records) {
    if (record.number != *goal_.to_generation) continue;
    wanted_full_ = record.full;
    TRY(record_tree_, fetch_tree(*run_, *session_, request, record.full));
    if (!record.ground.is_zero()) {
      TRY(ground_, recorded_ground(record, record_tree_));
    }
    return &record_tree_;
  }
  return Error{ErrorCode::no_generation, fmt::format("{} keeps no generation {} of '{}'", target_->name, *goal_.to_generation, run_->manifest->name)};
}

/// Texts of a tree that this target has or had: of what is live there, else of what its records keep.
Result<python::SmallFiles> HostJob::texts_here(const tree::Tree& tree) {
  std::vector<WantedText> live, kept;
  for (const tree::RelPath& path : python::wanted_small_files(tree)) {
    const tree::File* file = tree.find(path)->file();
    const tree::Entry* there = observed_.find(path);
    const bool is_live = there != nullptr && there->file() != nullptr && there->file()->content() == file->content();
    (is_live ? live : kept).push_back({path.bytes(), path, file->content()});
  }
  // The pool holds only what no path of the live tree has.
  std::unordered_map<content::ContentId, const tree::RelPath*, content::ContentIdHash> elsewhere;
  if (!kept.empty())
    for (const tree::Entry& entry : observed_.entries())
      if (entry.file() != nullptr) elsewhere.emplace(entry.file()->content(), &entry.path);
  std::erase_if(kept, [&](const WantedText& one) {
    const auto found = elsewhere.find(one.content);
    if (found != elsewhere.end()) live.push_back({one.name, *found->second, one.content});
    return found != elsewhere.end();
  });
  python::SmallFiles out;
  if (!live.empty()) {
    TRY(out, fetch_texts(*run_, *session_, "dist-infos", live));
  }
  if (!kept.empty()) {
    TRY(python::SmallFiles more, fetch_texts(*run_, *session_, "kept", kept, TextPlace::pool));
    out.merge(more);
  }
  return out;
}

/// Texts of the dist-infos of what the target should become. They live as long as this, or the source.
Result<const python::SmallFiles*> HostJob::texts_of_wanted(const tree::Tree& wanted) {
  if (!layers_.empty() || relocation_) return &layered_.texts;
  if (goal_.source != nullptr) return goal_.source->texts(python::wanted_small_files(wanted));
  TRY(layered_.texts, texts_here(wanted));
  return &layered_.texts;
}

/// The place that has the content of a path of the desired tree; null: none but this target, or the controller itself.
Source* HostJob::provider_of(const tree::RelPath& path) const {
  if (layered_.made.contains(path)) return nullptr;
  const auto taken = layered_.taken.find(path);
  return taken != layered_.taken.end() ? layers_[taken->second.layer].origin : goal_.source;
}

tree::RelPath HostJob::path_there(const tree::RelPath& path) const {
  const auto taken = layered_.taken.find(path);
  return taken != layered_.taken.end() ? taken->second.path : path;
}

/// Which places the target's own agent can read.
Result<void> HostJob::find_same_hosts() {
  const auto look = [this](Source& place) -> Result<void> {
    TRY_STATUS(place.scan());
    TRY(const bool is_same, transport::same_host(place.session().host, session_->host, run_->transport));
    if (is_same) same_host_.push_back(&place);
    return ok();
  };
  if (goal_.source != nullptr) TRY_STATUS(look(*goal_.source));
  for (const Layer& layer : layers_) {
    if (layer.overlay->from.is_target) same_host_.push_back(layer.origin);
    else TRY_STATUS(look(*layer.origin));
  }
  return ok();
}

std::vector<Source*> HostJob::places() const {
  std::vector<Source*> out;
  if (goal_.source != nullptr) out.push_back(goal_.source);
  for (const Layer& layer : layers_)
    if (std::ranges::find(out, layer.origin) == out.end()) out.push_back(layer.origin);
  return out;
}

bool HostJob::is_all_on_host() const {
  return std::ranges::all_of(places(), [this](const Source* place) { return is_on_same_host(place); });
}

bool HostJob::is_any_remote() const {
  return std::ranges::any_of(places(), [this](const Source* place) { return !place->place().host.is_local && !is_on_same_host(place); });
}

/// "ct200:/root/venv", and what is laid onto it.
std::string HostJob::source_text() const {
  return (goal_.source != nullptr ? goal_.source->text() : target_->name + ":" + session_->scan.path) + layers_text();
}

std::string HostJob::layers_text() const {
  std::string out;
  for (const Layer& layer : layers_) out += " + " + layer.origin->text();
  return out;
}

/// Contents that the target does not have and cannot read on its own host.
u64 HostJob::bytes_to_send() const {
  if (is_rollback()) return 0;
  auto held = tree::held_contents(observed_, plan_->changes);
  u64 bytes = 0;
  for (const tree::Change& change : plan_->changes) {
    const tree::File* file = change.to != nullptr ? change.to->file() : nullptr;
    if (file == nullptr || !held.insert(file->content()).second) continue;
    const Source* place = provider_of(change.to->path);
    const bool is_here = place != nullptr ? is_on_same_host(place) : !layered_.made.contains(change.to->path);
    if (is_here) continue;
    bytes += file->size;
  }
  return bytes;
}

bool HostJob::is_on_same_host(const Source* place) const { return std::ranges::find(same_host_, place) != same_host_.end(); }

/// Folders of the target's host and what of the changes lies in each.
HostJob::HostFolders HostJob::host_folders() const {
  HostFolders out;
  if (layers_.empty() && !relocation_) {
    // One list says it all: every path of the tree lies there by its own name.
    if (!same_host_.empty()) out.push_back({same_host_.front()->session().scan.path, {}});
    return out;
  }
  std::map<const Source*, std::vector<PullItem>> lists;
  for (const tree::Change& change : plan_->changes) {
    const tree::File* file = change.to != nullptr ? change.to->file() : nullptr;
    const Source* place = file != nullptr ? provider_of(change.to->path) : nullptr;
    if (place == nullptr || !is_on_same_host(place)) continue;
    const auto index = static_cast<u32>(change.to - plan_->desired.entries().data());
    lists[place].push_back({index, path_there(change.to->path), file->content()});
  }
  for (auto& [place, items] : lists) out.push_back({place->session().scan.path, std::move(items)});
  return out;
}

}  // namespace envsync::apply
