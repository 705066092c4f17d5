// SPDX-License-Identifier: MIT
#include "python/environment.hpp"

#include "python/site_packages.hpp"
#include "python/text.hpp"

#include <algorithm>
#include <cctype>
#include <tuple>

namespace envsync::python {
namespace {

/// "-py3.9" or "-py3.9-linux-x86_64" of an egg-info, which follows the version.
std::string_view without_python_tag(std::string_view stem) {
  for (std::size_t at = stem.find("-py"); at != std::string_view::npos; at = stem.find("-py", at + 1)) {
    if (at + 3 < stem.size() && is_digit(stem[at + 3])) return stem.substr(0, at);
  }
  return stem;
}

std::string_view take_component(std::string_view& text) { return take_until(text, '.'); }

}  // namespace

std::string normalize_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool is_separator = c == '-' || c == '_' || c == '.';
    if (!is_separator) out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    else if (out.empty() || out.back() != '-') out.push_back('-');
  }
  return out;
}

std::optional<Distribution> distribution_named(std::string_view name) {
  constexpr std::string_view kDistInfo = ".dist-info", kEggInfo = ".egg-info";
  std::string_view stem = name;
  const bool is_egg = stem.ends_with(kEggInfo);
  if (!is_egg && !stem.ends_with(kDistInfo)) return std::nullopt;
  stem.remove_suffix(is_egg ? kEggInfo.size() : kDistInfo.size());
  if (is_egg) stem = without_python_tag(stem);
  // pip renames what it is about to remove to "~umpy-1.26.4.dist-info".
  if (stem.empty() || stem.starts_with('~')) return std::nullopt;
  const std::size_t dash = stem.rfind('-');
  if (dash == 0 || (dash == std::string_view::npos && !is_egg)) return std::nullopt;
  Distribution out;
  out.display_name = std::string(stem.substr(0, dash));
  if (dash != std::string_view::npos) out.version = std::string(stem.substr(dash + 1));
  out.name = normalize_name(out.display_name);
  return out;
}

std::optional<SiteItem> site_item(std::string_view path) {
  // lib*/python*/site-packages/<below>
  const std::size_t lib_end = path.find('/');
  if (lib_end == std::string_view::npos || !path.starts_with("lib")) return std::nullopt;
  const std::string_view rest = path.substr(lib_end + 1);
  const std::size_t python_end = rest.find('/');
  constexpr std::string_view kSite = "site-packages/";
  if (python_end == std::string_view::npos || !rest.starts_with("python")) return std::nullopt;
  const std::string_view below = rest.substr(python_end + 1);
  if (!below.starts_with(kSite) || below.size() == kSite.size()) return std::nullopt;
  return SiteItem{below.substr(kSite.size())};
}

bool is_site(const tree::RelPath& path) {
  return path.name() == "site-packages" && std::ranges::count(path.bytes(), '/') == 2 && site_item(path.bytes() + "/x");
}

std::vector<tree::RelPath> sites_of(const tree::Tree& tree) {
  std::vector<tree::RelPath> out;
  for (const tree::Entry& entry : tree.entries())
    if (entry.is_dir() && is_site(entry.path)) out.push_back(entry.path);
  return out;
}

bool is_of_any_python(const tree::RelPath& site) { return site.parent().name().find('.') == std::string_view::npos; }

tree::RelPath headers_of(const tree::RelPath& site) {
  return tree::RelPath().child("include").child("site").child(site.parent().name());
}

tree::RelPath with_headers_moved(const tree::RelPath& path, const tree::RelPath& from_site, const tree::RelPath& to_site) {
  const tree::RelPath from = headers_of(from_site);
  return from.contains(path) ? headers_of(to_site).join(from.relative(path)) : path;
}

std::string_view SiteItem::top() const { return below.substr(0, below.find('/')); }

std::vector<Distribution> distributions(const tree::Tree& tree) {
  std::vector<Distribution> out;
  for (const tree::Entry& entry : tree.entries()) {
    const auto item = site_item(entry.path.bytes());
    if (!item || item->top().size() != item->below.size() || entry.symlink() != nullptr) continue;
    auto found = distribution_named(entry.path.name());
    // A dist-info is a folder; distutils wrote egg-infos as files too.
    if (!found || (entry.file() != nullptr && !item->below.ends_with(".egg-info"))) continue;
    found->folder = entry.path;
    out.push_back(*std::move(found));
  }
  std::ranges::sort(out, {}, [](const Distribution& d) { return std::tie(d.name, d.version, d.folder); });
  return out;
}

std::map<std::string, std::string> parse_pyvenv(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    std::string key = lowered(trimmed(line.substr(0, equals)));
    if (!key.empty()) out.insert_or_assign(std::move(key), std::string(trimmed(line.substr(equals + 1))));
  }
  return out;
}

std::string pyvenv_version(const std::map<std::string, std::string>& cfg) {
  for (const char* key : {"version", "version_info"}) {
    const auto found = cfg.find(key);
    if (found == cfg.end()) continue;
    std::string_view rest = found->second;
    const std::string_view major = take_component(rest), minor = take_component(rest);
    const auto is_number = [](std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); };
    if (is_number(major) && is_number(minor)) return std::string(major) + "." + std::string(minor);
  }
  return {};
}

bool version_matches(std::string_view pin, std::string_view version) {
  while (!pin.empty()) {
    if (version.empty() || take_component(pin) != take_component(version)) return false;
  }
  return true;
}

}  // namespace envsync::python
