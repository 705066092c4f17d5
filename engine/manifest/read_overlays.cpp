// SPDX-License-Identifier: MIT
// overlays and accept.
#include "manifest/draft.hpp"

#include "base/bytes.hpp"
#include "manifest/place.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace envsync::manifest {
namespace {

constexpr std::size_t kOverlaysMax = 64;  // LIMIT: each is a connection
constexpr std::string_view kOnTarget = "target:";

constexpr Word<python::ClosureRule> kClosure[] = {{"pinned", python::ClosureRule::pinned}, {"none", python::ClosureRule::none}};
constexpr Word<python::IncompleteRule> kIncomplete[] = {{"refuse", python::IncompleteRule::refuse}, {"base", python::IncompleteRule::base}};
constexpr Word<python::ConflictRule> kConflicts[] = {
    {"error", python::ConflictRule::error}, {"overlay", python::ConflictRule::overlay}, {"base", python::ConflictRule::base}};
constexpr Word<python::UnmanagedRule> kUnmanaged[] = {{"remove", python::UnmanagedRule::remove}, {"keep", python::UnmanagedRule::keep}};

/// HOST:PATH, PATH, or target:PATH.
Result<Source> parse_origin(const std::string& text) {
  Source origin;
  if (text.starts_with(kOnTarget)) {
    origin.is_target = true;
    origin.host.name = kOnTarget.substr(0, kOnTarget.size() - 1);
    TRY(origin.path, environment_path(std::string_view(text).substr(kOnTarget.size())));
    return origin;
  }
  TRY(origin, parse_place(text));
  if (origin.host.is_local && !origin.path.empty()) {
    TRY(origin.path, environment_path(origin.path));
  }
  origin.host.path = origin.path;
  if (!origin.path.empty()) return origin;
  return Error(ErrorCode::usage, fmt::format("'{}' names no path", printable(text))).hint(fmt::format("write '{}:/path'", printable(text)));
}

void read_from(const Field& field, Overlay& overlay, Problems& problems) {
  const auto text = read_text(named(field), problems);
  if (!text) return;
  auto origin = parse_origin(*text);
  if (!origin) return report_at(field.value.mark, origin.error(), problems);
  overlay.from = *std::move(origin);
  overlay.from.host.where = problems.location(field.value.mark);
  if (overlay.name.empty()) overlay.name = *text;
}

/// auto, or a list of names and globs.
void read_evict(const Field* field, python::OverlayOptions& options, Problems& problems) {
  if (field == nullptr || (field->value.is_scalar() && field->value.text == "auto")) return;
  if (field->value.kind != Node::Kind::list) {
    problems.report(field->value.mark, fmt::format("'evict' takes auto or a list of distributions, not {}", described(field->value)));
    return;
  }
  options.evict = read_texts(field, problems);
}

void check_roots(const Field* field, const std::vector<std::string>& roots, Problems& problems) {
  for (const std::string& root : roots) {
    const auto path = tree::RelPath::parse(root);
    if (path && !path->is_root()) continue;
    problems.report(field->value.mark, fmt::format("'{}' is no folder of site-packages", printable(root)));
  }
}

Overlay read_overlay(const Fields& fields, Problems& problems) {
  Overlay overlay;
  if (const Field* name = fields.find("name")) overlay.name = read_text(named(*name), problems).value_or("");
  if (const Field* from = fields.find("from")) read_from(*from, overlay, problems);
  else problems.report(fields.mark(), "'from' is missing in an overlay").hints.emplace_back("name where the packages are: 'from: HOST:PATH'");
  python::OverlayOptions& options = overlay.options;
  options.packages = read_texts(fields.find("packages"), problems);
  options.roots = read_texts(fields.find("roots"), problems);
  check_roots(fields.find("roots"), options.roots, problems);
  if (fields.find("packages") == nullptr && fields.find("roots") == nullptr)
    problems.report(fields.mark(), "'packages' is missing in an overlay").hints.emplace_back("name what it brings: 'packages: [torch]'");
  read_word(fields.find("closure"), kClosure, {}, options.closure, problems);
  read_evict(fields.find("evict"), options, problems);
  read_word(fields.find("incomplete"), kIncomplete, {}, options.incomplete, problems);
  read_word(fields.find("conflicts"), kConflicts, {}, options.conflicts, problems);
  read_word(fields.find("unmanaged"), kUnmanaged, {}, options.unmanaged, problems);
  overlay.hosts = read_texts(fields.find("hosts"), problems);
  read_gpu(fields.find("gpu"), overlay.gpu, problems);
  overlay.where = problems.location(fields.mark());
  return overlay;
}

bool is_list(const Field& field, std::string_view of, Problems& problems) {
  if (field.value.kind == Node::Kind::list) return true;
  problems.report(field.value.mark, fmt::format("'{}' takes a list of {}, not {}", field.key, of, described(field.value)));
  return false;
}

}  // namespace

void read_gpu(const Field* field, std::vector<std::string>& out, Problems& problems) {
  const auto is_capability = [](std::string_view text) {
    const std::size_t dot = text.find('.');
    const auto is_number = [](std::string_view part) {
      return !part.empty() && part.size() <= 3 && part.find_first_not_of("0123456789") == std::string_view::npos;
    };
    return dot != std::string_view::npos && is_number(text.substr(0, dot)) && is_number(text.substr(dot + 1));
  };
  for (std::string& one : read_texts(field, problems)) {
    if (is_capability(one)) out.push_back(std::move(one));
    else problems.report(field->value.mark, fmt::format("'gpu' takes compute capabilities such as 10.3, not '{}'", printable(one)));
  }
}

void read_overlays(const Field& field, Draft& draft, Problems& problems) {
  if (!is_list(field, "overlays", problems)) return;
  if (field.value.items.size() > kOverlaysMax)
    problems.report(field.value.mark, fmt::format("{} overlays, at most {} are allowed", field.value.items.size(), kOverlaysMax));
  for (const Node& item : field.value.items) {
    const Fields fields(item, Section::overlay, problems);
    if (fields.is_map()) draft.overlays.push_back({read_overlay(fields, problems), item.mark});
  }
}

void read_accept(const Field& field, Draft& draft, Problems& problems) {
  if (!is_list(field, "findings", problems)) return;
  for (const Node& item : field.value.items) {
    const Fields fields(item, Section::accept, problems);
    if (!fields.is_map()) continue;
    Accept accept;
    if (const Field* code = fields.find("code")) accept.code = read_text(named(*code), problems).value_or("");
    else problems.report(fields.mark(), "'code' is missing in an item of 'accept'").hints.emplace_back("copy the code of the finding from the plan");
    if (const Field* files = fields.find("files")) accept.files = read_text(named(*files), problems).value_or("");
    accept.hosts = read_texts(fields.find("hosts"), problems);
    if (const Field* why = fields.find("why")) accept.why = read_text(named(*why), problems).value_or("");
    accept.where = problems.location(item.mark);
    draft.accept.push_back(std::move(accept));
  }
}

}  // namespace envsync::manifest
