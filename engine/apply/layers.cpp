// SPDX-License-Identifier: MIT
#include "apply/layers.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "apply/texts.hpp"
#include "python/origin.hpp"
#include "python/record_check.hpp"
#include "python/scripts.hpp"
#include "python/wheel_tags.hpp"

namespace envsync::apply {

namespace {

using tree::RelPath;

/// An origin as an environment: itself, or a folder of packages put where the base has its own.
class OpenedOrigin {
 public:
  static Result<OpenedOrigin> open(Run& run, Source& source, const tree::Tree& base) {
    OpenedOrigin out(run, source);
    TRY(out.there_, source.tree());
    std::string root = source.session().scan.path;
    if (python::shape_of(*out.there_) != python::OriginShape::environment) {
      const auto site = python::site_of(base);
      if (!site) {
        return Error{ErrorCode::overlay_refused, fmt::format("the environment has no site-packages, or several: where the packages of '{}' go is not clear", source.text())}
            .note("nothing was changed");
      }
      TRY(out.staged_, python::stage_as_environment(*out.there_, *site));
      out.site_ = *site;
      root.clear();  // absolute rows of a folder that was copied mean another place
    }
    std::vector<RelPath> wanted;
    for (const RelPath& path : python::wanted_small_files(out.tree())) wanted.push_back(out.path_there(path));
    TRY(const python::SmallFiles* texts, source.texts(wanted));
    out.texts_ = out.site_ ? python::stage_as_environment(*texts, *out.site_) : *texts;
    out.root_ = std::move(root);
    return out;
  }

  const std::vector<std::string>& wheels() const { return source_->session().scan.wheels; }
  const tree::Tree& tree() const { return site_ ? staged_ : *there_; }
  const python::SmallFiles& texts() const { return texts_; }
  /// Borrows this, which must not move any more.
  python::DistributionSet set() const { return python::DistributionSet::read(tree(), texts_, root_); }
  RelPath path_there(const RelPath& path) const { return site_ ? site_->relative(path) : path; }

  Result<python::Sums> sums(const std::vector<RelPath>& paths) const {
    std::vector<RelPath> there;
    for (const RelPath& path : paths) there.push_back(path_there(path));
    TRY(const python::Sums found, fetch_sums(*run_, source_->session(), there));
    python::Sums out;
    for (const RelPath& path : paths)
      if (const auto sum = found.find(path_there(path).bytes()); sum != found.end()) out.emplace(path.bytes(), sum->second);
    return out;
  }

  Result<python::SmallFiles> scripts(const std::vector<RelPath>& paths) const {
    std::vector<RelPath> there;
    for (const RelPath& path : paths) there.push_back(path_there(path));
    TRY(const python::SmallFiles found, source_->read("scripts", there));
    return site_ ? python::stage_as_environment(found, *site_) : found;
  }

 private:
  OpenedOrigin(Run& run, Source& source) : run_(&run), source_(&source) {}

  Run* run_;
  Source* source_;
  const tree::Tree* there_ = nullptr;
  tree::Tree staged_;
  std::optional<RelPath> site_;
  python::SmallFiles texts_;
  std::string root_;
};

/// sha256 of paths of a tree that earlier layers have changed, by whoever has their content.
Result<python::Sums> sums_of(Run& run, const Layered& so_far, const BaseReader& reader, const std::vector<Layer>& layers, const std::vector<RelPath>& paths) {
  python::Sums out;
  std::vector<RelPath> of_base;
  std::map<std::size_t, std::vector<std::pair<RelPath, RelPath>>> of_layers;  // path, path there
  for (const RelPath& path : paths) {
    const auto made = so_far.made.find(path);
    const auto taken = so_far.taken.find(path);
    if (made != so_far.made.end()) out.emplace(path.bytes(), sha256(as_bytes(made->second)));
    else if (taken != so_far.taken.end()) of_layers[taken->second.layer].emplace_back(path, taken->second.path);
    else of_base.push_back(path);
  }
  if (!of_base.empty()) {
    TRY(python::Sums sums, reader.sums(of_base));
    out.merge(sums);
  }
  for (const auto& [layer, pairs] : of_layers) {
    std::vector<RelPath> there;
    for (const auto& [path, path_there] : pairs) there.push_back(path_there);
    TRY(const python::Sums sums, fetch_sums(run, layers[layer].origin->session(), there));
    for (const auto& [path, path_there] : pairs)
      if (const auto sum = sums.find(path_there.bytes()); sum != sums.end()) out.emplace(path.bytes(), sum->second);
  }
  return out;
}

/// Puts one overlay's result on top of what came before.
void merge(Layered& out, python::Overlay overlay, const OpenedOrigin& origin, std::size_t layer, const std::string& name, bool is_only) {
  const auto is_gone = [&](const auto& item) { return overlay.desired.find(item.first) == nullptr; };
  std::erase_if(out.taken, is_gone);
  std::erase_if(out.made, is_gone);
  for (const python::TakenPath& one : overlay.taken) {
    out.made.erase(one.path);
    out.taken.insert_or_assign(one.path, TakenFrom{layer, origin.path_there(one.origin_path)});
  }
  for (auto& [path, text] : overlay.made) {
    out.taken.erase(path);
    out.made.insert_or_assign(path, std::move(text));
  }
  for (python::PackageStep& step : overlay.packages) out.steps.push_back(std::move(step));
  for (Finding& finding : overlay.findings) {
    if (!is_only) finding.what = fmt::format("overlay '{}': {}", name, finding.what);
    out.findings.push_back(std::move(finding));
  }
  out.desired = std::move(overlay.desired);
}

std::vector<std::string> names_coming(const python::Overlay& overlay) {
  std::vector<std::string> names;
  for (const python::PackageStep& step : overlay.packages)
    if (step.kind != python::StepKind::evicted) names.push_back(step.name);
  return names;
}

/// Of an origin that is wheels: those that come and do not run there.
void find_wheel_tags(const OpenedOrigin& origin, const python::MarkerEnvironment& environment, python::Overlay& overlay) {
  const std::vector<std::string> coming = names_coming(overlay);
  std::vector<std::string> files;
  for (const std::string& file : origin.wheels()) {
    const auto wheel = python::parse_wheel_name(file);
    if (!wheel || std::ranges::find(coming, wheel->name) != coming.end()) files.push_back(file);
  }
  for (Finding& finding : python::check_wheel_tags(files, environment.python_version, environment.platform_machine)) overlay.findings.push_back(std::move(finding));
}

}  // namespace

Result<Layered> lay_layers(Run& run, const tree::Tree& base, const BaseReader& reader, const std::vector<Layer>& layers, const std::string& root,
                           std::string_view python, std::map<RelPath, std::string> made) {
  const python::MarkerEnvironment environment = python::MarkerEnvironment::for_python(python);
  Layered out;
  out.desired = base;
  TRY(out.texts, reader.texts(python::wanted_small_files(base)));
  out.made = std::move(made);
  for (auto& [path, text] : out.texts)
    if (const auto written = out.made.find(*RelPath::parse(path)); written != out.made.end()) text = written->second;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const manifest::Overlay& asked = *layers[i].overlay;
    TRY(const OpenedOrigin origin, OpenedOrigin::open(run, *layers[i].origin, out.desired));
    python::DistributionSet before = python::DistributionSet::read(out.desired, out.texts, root);
    python::DistributionSet offered = origin.set();
    TRY(const python::Sums before_sums, sums_of(run, out, reader, layers, before.contested()));
    TRY(const python::Sums offered_sums, origin.sums(offered.contested()));
    before.learn(before_sums);
    offered.learn(offered_sums);
    TRY(python::Overlay overlay, python::lay_over(before, offered, asked.options, environment));
    TRY(python::SmallFiles files, origin.scripts(python::wanted_scripts(overlay)));
    files.insert(origin.texts().begin(), origin.texts().end());
    TRY_STATUS(python::finish_scripts(overlay, files, root));
    out.texts = python::small_files_after(overlay, out.texts, origin.texts());
    const python::DistributionSet after = python::DistributionSet::read(overlay.desired, out.texts, root);
    for (Finding& finding : python::check_complete(after, names_coming(overlay), Severity::warning))
      if (finding.code != "incomplete") overlay.findings.push_back(std::move(finding));  // the arithmetic has judged those
    find_wheel_tags(origin, environment, overlay);
    merge(out, std::move(overlay), origin, i, asked.name, layers.size() == 1);
  }
  return out;
}

}  // namespace envsync::apply
