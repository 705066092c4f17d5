// SPDX-License-Identifier: MIT
#include "python/path_findings.hpp"

#include "python/absolute_paths.hpp"
#include "python/relocate.hpp"
#include "python/scripts.hpp"
#include "python/site_packages.hpp"
#include "python/text.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace envsync::python {
namespace {

constexpr u64 kTextBytesMax = 256 * 1024;
constexpr std::size_t kNamesMax = 5;  // of many that say the same

bool is_direct_url(const tree::RelPath& path) { return path.name() == "direct_url.json" && path.parent().name().ends_with(".dist-info"); }
bool is_finder(const tree::RelPath& path) { return path.name().starts_with("__editable__") && path.name().ends_with(".py"); }

/// Texts with paths that tools outside Python read.
bool is_config(const tree::RelPath& path) {
  return path.name().ends_with(".pc") || path.bytes().starts_with("share/jupyter/kernels/") || path.bytes().starts_with("etc/");
}

bool is_wanted_in_site(const tree::RelPath& path) {
  return is_site(path.parent()) && (path.name().ends_with(".pth") || path.name().ends_with(".egg-link") || is_finder(path));
}

/// A quoted absolute path of a text, from `at` on; advances `at` behind it.
std::optional<std::string> next_quoted_path(std::string_view text, std::size_t& at) {
  for (std::size_t i = at; i + 1 < text.size(); ++i) {
    if ((text[i] != '\'' && text[i] != '"') || text[i + 1] != '/') continue;
    const std::size_t end = text.find(text[i], i + 1);
    if (end == std::string_view::npos) break;
    at = end + 1;
    return std::string(text.substr(i + 1, end - i - 1));
  }
  at = text.size();
  return std::nullopt;
}

/// The path of a file:// URL in direct_url.json, escapes as they are; empty for other URLs.
std::string file_url_of(std::string_view json) {
  constexpr std::string_view kKey = "\"url\"", kScheme = "file://";
  const std::size_t key = json.find(kKey);
  if (key == std::string_view::npos) return {};
  const std::size_t begin = json.find(kScheme, key), end = json.find('"', begin == std::string_view::npos ? key : begin);
  const std::size_t quote = json.find('"', key + kKey.size());
  if (begin == std::string_view::npos || end == std::string_view::npos || quote + 1 != begin) return {};
  return std::string(json.substr(begin + kScheme.size(), end - begin - kScheme.size()));
}

class Finder {
 public:
  Finder(const DistributionSet& set, const SmallFiles& texts, const Roots& roots) : set_(set), texts_(texts), roots_(roots) {}

  std::vector<Finding> run() {
    for (std::size_t i = 0; i < set_.tree().entries().size(); ++i) {
      const tree::Entry& entry = set_.tree().entries()[i];
      if (const tree::Symlink* link = entry.symlink()) look_at_link(i, *link);
      const auto text = entry.file() != nullptr ? texts_.find(entry.path.bytes()) : texts_.end();
      if (text != texts_.end()) look_at_text(i, text->second);
    }
    tell_scripts();
    tell_direct_urls();
    tell_cache_links();
    std::ranges::stable_sort(out_, std::ranges::greater{}, &Finding::severity);
    return std::move(out_);
  }

 private:
  struct Named { std::string script, owner; u32 line = 0; };

  void add(std::string_view code, Severity severity, const tree::RelPath& file, std::string what) { out_.push_back({std::string(code), severity, file.bytes(), std::move(what)}); }

  /// ", of 'torch 2.11'"; empty where nobody owns it.
  std::string owner_of(std::size_t entry) const {
    const auto claims = set_.claims(entry);
    return claims.empty() ? std::string{} : fmt::format(" of '{}'", set_.all()[claims.front().distribution].label());
  }
  bool is_here(std::string_view path) const { return lies_in(path, roots_.target); }
  /// The target's own path in the place of the origin's.
  bool is_old(std::string_view path) const { return roots_.origin != roots_.target && lies_in(path, roots_.origin); }

  void look_at_link(std::size_t index, const tree::Symlink& link) {
    const tree::RelPath& path = set_.tree().entries()[index].path;
    if (is_environments_own(path)) return;  // bin/python leads to the base interpreter
    const std::string folder = fmt::format("{}/{}", roots_.target, path.parent().bytes());
    const std::string end = normalized(link.target.starts_with('/') ? link.target : fmt::format("{}/{}", folder, link.target));
    if (is_here(end)) return;
    if (end.find("/archive-v0/") != std::string::npos) {
      if (cache_links_++ == 0) first_cache_link_ = path;
      return;
    }
    const std::string_view why = is_old(end) ? "leads into the place that the environment came from; it will find nothing there, or another environment"
                                             : "leads out of the environment, and is brought as it is";
    add("link_leaves", Severity::warning, path, fmt::format("the link{} to '{}' {}", owner_of(index), printable(link.target), why));
  }

  void look_at_text(std::size_t index, const std::string& text) {
    const tree::RelPath& path = set_.tree().entries()[index].path;
    if (path.bytes() == "pyvenv.cfg") return look_at_pyvenv(path, text);
    if (path.parent().bytes() == "bin") return is_environments_own(path) ? look_at_activate(path, text) : look_at_script(index, text);
    if (path.name().ends_with(".pth")) return look_at_pth(index, text);
    if (path.name().ends_with(".egg-link")) return tell_editable(index, 1, std::string(trimmed(text.substr(0, text.find('\n')))));
    if (is_finder(path)) return look_at_finder(index, text);
    if (is_direct_url(path)) return look_at_direct_url(path, text);
    if (is_config(path)) look_at_config(index, text);
  }

  void look_at_pyvenv(const tree::RelPath& path, const std::string& text) {
    if (roots_.origin == roots_.target) return;
    const auto found = find_root(text, roots_.origin);
    if (!found.empty()) add("pyvenv_path", Severity::note, path, fmt::format("line {} names '{}', where the environment came from; Python does not read it", line_of(text, found.front()), roots_.origin));
  }

  void look_at_activate(const tree::RelPath& path, const std::string& text) {
    constexpr std::string_view kVariable = "VIRTUAL_ENV";
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = take_until(rest, '\n');
      const std::size_t key = line.find(kVariable), after = key + kVariable.size();
      const std::size_t begin = key == std::string_view::npos ? key : line.find('/', key);
      // Where it is set, not where it is used: $VIRTUAL_ENV/bin, ${VIRTUAL_ENV}.
      if (begin == std::string_view::npos || (key > 0 && (line[key - 1] == '$' || line[key - 1] == '{'))) continue;
      const std::string_view between = line.substr(after, begin - after);
      if (between.find_first_of("= ") == std::string_view::npos || between.find_first_not_of("= '\"") != std::string_view::npos) continue;
      const std::string_view named = line.substr(begin, line.find_first_of("'\" )\r", begin) - begin);
      if (is_here(named)) continue;
      const auto number = line_of(text, static_cast<std::size_t>(line.data() - text.data()));
      return add("activate_elsewhere", Severity::warning, path, fmt::format("line {} activates '{}', not '{}'; relocate: true rewrites it", number, printable(named), roots_.target));
    }
  }

  void look_at_script(std::size_t index, const std::string& text) {
    const auto named = interpreter_of(text);
    if (!named || !named->program.starts_with('/') || is_here(named->program)) return;
    const std::size_t bin = named->program.rfind("/bin/");
    const std::string root = bin == std::string::npos ? named->program : named->program.substr(0, bin);
    scripts_[root].push_back({set_.tree().entries()[index].path.bytes(), owner_of(index), named->line});
  }

  void look_at_pth(std::size_t index, const std::string& text) {
    u32 number = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = trimmed(take_until(rest, '\n'));
      ++number;
      if (line.empty() || line.front() == '#' || line.starts_with("import ") || line.starts_with("import\t")) continue;
      const tree::RelPath& path = set_.tree().entries()[index].path;
      const std::string folder = fmt::format("{}/{}", roots_.target, path.parent().bytes());
      const std::string end = normalized(line.starts_with('/') ? std::string(line) : fmt::format("{}/{}", folder, line));
      if (is_here(end)) continue;
      if (path.name().starts_with("__editable__") || path.name() == "easy-install.pth") tell_editable(index, number, end);
      else add("pth_leaves", Severity::warning, path, fmt::format("line {}{} adds '{}', which lies outside the environment and does not come along", number, owner_of(index), printable(line)));
    }
  }

  void look_at_finder(std::size_t index, const std::string& text) {
    const std::size_t mapping = text.find("MAPPING");
    if (mapping == std::string::npos) return;
    std::size_t at = mapping;
    const std::size_t end = std::min(text.find('\n', mapping), text.size());
    while (const auto path = next_quoted_path(std::string_view(text).substr(0, end), at))
      if (!is_here(*path)) tell_editable(index, line_of(text, mapping), *path);
  }

  void tell_editable(std::size_t index, u32 line, const std::string& where) {
    if (!where.starts_with('/') || is_here(where)) return;
    add("editable", Severity::warning, set_.tree().entries()[index].path,
        fmt::format("line {}{}: an editable install, whose code lies in '{}' and does not come along; install it there, or as a wheel", line, owner_of(index), printable(where)));
  }

  void look_at_direct_url(const tree::RelPath& path, const std::string& text) {
    const std::string where = file_url_of(text);
    if (where.empty() || is_editable(text)) return;  // an editable install is told by its .pth
    if (direct_urls_++ == 0) first_direct_url_ = path;
  }

  void look_at_config(std::size_t index, const std::string& text) {
    if (roots_.origin == roots_.target) return;
    const auto found = find_root(text, roots_.origin);
    if (found.empty()) return;
    add("path_elsewhere", Severity::warning, set_.tree().entries()[index].path,
        fmt::format("line {}{} names '{}', where the environment came from", line_of(text, found.front()), owner_of(index), roots_.origin));
  }

  void tell_scripts() {
    for (const auto& [root, scripts] : scripts_) {
      const auto path = tree::RelPath::parse(scripts.front().script);
      const std::string_view hint = root == roots_.origin ? "; relocate: true rewrites it" : "";
      if (scripts.size() == 1) {
        add("shebang_elsewhere", Severity::warning, *path, fmt::format("line {}{} starts the Python of '{}', not of '{}'{}", scripts.front().line, scripts.front().owner, printable(root), roots_.target, hint));
        continue;
      }
      std::string names;
      for (std::size_t i = 0; i < std::min(kNamesMax, scripts.size()); ++i) names += (i > 0 ? ", " : "") + printable(std::string_view(scripts[i].script).substr(4));
      add("shebang_elsewhere", Severity::warning, *path,
          fmt::format("{} scripts start the Python of '{}', not of '{}' ({}{}){}", scripts.size(), printable(root), roots_.target, names, scripts.size() > kNamesMax ? ", ..." : "", hint));
    }
  }

  void tell_direct_urls() {
    if (direct_urls_ == 0) return;
    add("direct_url", Severity::note, first_direct_url_, fmt::format("{} {} installed from a file of the machine that built it", direct_urls_, direct_urls_ == 1 ? "distribution was" : "distributions were"));
  }

  void tell_cache_links() {
    if (cache_links_ == 0) return;
    add("cache_links", Severity::warning, first_cache_link_,
        fmt::format("{} {} into uv's cache, which does not come along; make the environment with UV_LINK_MODE=copy", cache_links_, cache_links_ == 1 ? "link leads" : "links lead"));
  }

  const DistributionSet& set_;
  const SmallFiles& texts_;
  const Roots roots_;
  std::map<std::string, std::vector<Named>> scripts_;  // by the environment that they start
  u64 direct_urls_ = 0, cache_links_ = 0;
  tree::RelPath first_direct_url_, first_cache_link_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<tree::RelPath> wanted_path_files(const tree::Tree& tree) {
  std::vector<tree::RelPath> out = wanted_launchers(tree);
  for (const tree::Entry& entry : tree.entries()) {
    if (entry.file() == nullptr || entry.file()->size > kTextBytesMax) continue;
    if (is_wanted_in_site(entry.path) || is_direct_url(entry.path) || is_config(entry.path)) out.push_back(entry.path);
  }
  std::ranges::sort(out);
  return out;
}

std::vector<Finding> find_paths(const DistributionSet& set, const SmallFiles& texts, const Roots& roots) { return Finder(set, texts, roots).run(); }

std::vector<Finding> check_library_paths(const DistributionSet& set, const std::vector<LibraryPaths>& libraries, const Roots& roots) {
  constexpr std::array<std::string_view, 6> kSystem{"/usr", "/lib", "/lib64", "/opt/rocm", "/run/opengl-driver", "/etc/alternatives"};
  std::map<std::string, std::vector<const LibraryPaths*>> found;  // by element
  for (const LibraryPaths& library : libraries) {
    std::set<std::string> own;
    for (std::string_view rest = library.search; !rest.empty();) {
      const std::string_view element = take_until(rest, ':');
      if (!element.starts_with('/')) continue;
      const std::string path = normalized(element);
      const bool is_system = std::ranges::any_of(kSystem, [&](std::string_view one) { return lies_in(path, one); });
      if (!is_system && !lies_in(path, roots.target) && own.insert(path).second) found[path].push_back(&library);
    }
  }
  std::vector<Finding> out;
  for (const auto& [path, where] : found) {
    const auto entry = set.tree().index_of(where.front()->path);
    const auto claims = entry ? set.claims(*entry) : std::span<const DistributionSet::Claim>{};
    const std::string owner = claims.empty() ? "" : fmt::format(" of '{}'", set.all()[claims.front().distribution].label());
    const bool is_old = lies_in(path, roots.origin);
    out.push_back({"library_path", is_old ? Severity::warning : Severity::note, where.front()->path.bytes(),
                   fmt::format("{}{} {} for libraries in '{}', which {}", where.size() == 1 ? "the library" : fmt::format("{} libraries, the first", where.size()), owner,
                               where.size() == 1 ? "looks" : "look", printable(path), is_old ? "the environment came from" : "does not come along")});
  }
  return out;
}

}  // namespace envsync::python
