// SPDX-License-Identifier: MIT
#include "manifest/draft.hpp"

#include <fmt/format.h>

namespace envsync::manifest {
namespace {

constexpr u64 kVersion = 1;
constexpr std::size_t kNameMax = 100;

void read_version(const Field* field, const Mark& top, Problems& problems) {
  if (field == nullptr) {
    problems.report(top, "'version' is missing").hints.push_back(fmt::format("begin the manifest with 'version: {}'", kVersion));
    return;
  }
  const Node& node = field->value;
  if (node.is_scalar() && node.is_plain && node.text == std::to_string(kVersion)) return;
  Error& error = problems.report(node.mark, fmt::format("'version' takes {}, the only one that this envsync reads, not {}", kVersion, described(node)));
  if (node.is_scalar() && node.text == std::to_string(kVersion)) error.hints.push_back(fmt::format("write {} without quotes", kVersion));
}

void read_name(const Field* field, Draft& draft, Problems& problems) {
  if (field == nullptr) return;
  const auto name = read_text(named(*field), problems);
  if (!name) return;
  if (name->find('/') != std::string::npos || name->size() > kNameMax) {
    problems.report(field->value.mark,
                    fmt::format("'name' takes a word of at most {} bytes without slashes, not {}", kNameMax, described(field->value)));
    return;
  }
  draft.name = *name;
}

Draft read_manifest(const Fields& fields, const ReadHosts& read_hosts, Problems& problems) {
  Draft draft;
  read_version(fields.find("version"), fields.mark(), problems);
  read_name(fields.find("name"), draft, problems);
  draft.path = read_path(fields.find("path"), problems);
  draft.is_path_refused = fields.find("path") != nullptr && draft.path.empty();
  if (const Field* field = fields.find("invariants")) read_invariants(*field, draft, problems);
  if (const Field* field = fields.find("settings")) read_settings(*field, draft, problems);
  if (const Field* field = fields.find("source")) read_source(*field, draft, problems);
  else problems.report(fields.mark(), "'source' is missing")
           .hints.emplace_back("name where the environment is: 'source: HOST', 'HOST:PATH' or 'PATH'");
  if (const Field* field = fields.find("overlays")) read_overlays(*field, draft, problems);
  if (const Field* field = fields.find("accept")) read_accept(*field, draft, problems);
  if (const Field* field = fields.find("targets")) read_targets(*field, read_hosts, draft, problems);
  else problems.report(fields.mark(), "'targets' is missing").hints.emplace_back("name where the environment goes: 'targets: [HOST]'");
  return draft;
}

/// The root as a map, or nothing if there is no manifest in it.
std::optional<Node> read_root(const std::string& text, const std::vector<std::string>& overrides, Problems& problems) {
  auto root = read_yaml(text, {}, problems);
  if (!root) return std::nullopt;
  if (root->kind == Node::Kind::null) {
    problems.report({}, "the manifest is empty").hints.emplace_back("run `envsync init SRC HOST` to write one");
    return std::nullopt;
  }
  if (root->kind != Node::Kind::map) {
    Error& error = problems.report(root->mark, fmt::format("a manifest is a map of keys, not {}", described(*root)));
    if (root->is_scalar() && root->text.find(':') != std::string::npos) error.hints.emplace_back("put a space after each colon");
    return std::nullopt;
  }
  apply_overrides(*root, overrides, problems);
  return root;
}

}  // namespace

tree::ComparePolicy Manifest::compare_policy() const {
  return {.owner = settings.owner == OwnerRule::preserve,
          .mtime = settings.mtime == MtimeRule::strict,
          .xattrs = settings.xattrs,
          .hardlinks = settings.hardlinks,
          .source_mtimes = source.bytecode == tree::Bytecode::ship};
}

tl::expected<Manifest, Errors> parse(const std::string& file, const std::string& text, const std::vector<std::string>& overrides,
                                     const ReadHosts& read_hosts) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::string clean = text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
  Problems problems;
  problems.add_text(file, clean);
  const auto root = read_root(clean, overrides, problems);
  if (!root) return tl::unexpected(problems.take());
  Draft draft = read_manifest(Fields(*root, Section::manifest, problems), read_hosts, problems);
  complete(draft, problems);
  if (problems.any()) return tl::unexpected(problems.take());
  Manifest manifest;
  manifest.file = file;
  manifest.name = std::move(draft.name);
  manifest.source = *std::move(draft.source);
  for (DraftHost& target : draft.targets) manifest.targets.push_back(std::move(target.host));
  for (DraftOverlay& overlay : draft.overlays) manifest.overlays.push_back(std::move(overlay.overlay));
  manifest.accept = std::move(draft.accept);
  manifest.invariants = draft.invariants;
  manifest.settings = draft.settings;
  return manifest;
}

}  // namespace envsync::manifest
