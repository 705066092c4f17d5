// SPDX-License-Identifier: MIT
#include "manifest/keys.hpp"

#include "base/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace envsync::manifest {
namespace {

constexpr bool kLater = false;

constexpr std::array kManifestKeys = {Key{"version"}, Key{"name"}, Key{"path"}, Key{"source"}, Key{"targets"}, Key{"invariants"},
                                      Key{"settings"}, Key{"overlays"}, Key{"accept"}, Key{"checks", kLater},
                                      Key{"before", kLater}, Key{"after", kLater}};
constexpr std::array kSourceKeys = {Key{"host"}, Key{"path"}, Key{"exclude"}, Key{"bytecode"}};
constexpr std::array kTargetsKeys = {Key{"path"}, Key{"hosts"}, Key{"hosts_from"}};
constexpr std::array kHostKeys = {Key{"host"}, Key{"user"}, Key{"port"}, Key{"path"}, Key{"jump"}, Key{"identity"}, Key{"transport"},
                                  Key{"gpu"}, Key{"sudo"}};
constexpr std::array kOverlayKeys = {Key{"name"}, Key{"from"}, Key{"packages"}, Key{"closure"}, Key{"evict"}, Key{"roots"}, Key{"incomplete"},
                                     Key{"conflicts"}, Key{"unmanaged"}, Key{"hosts"}, Key{"gpu"}};
constexpr std::array kAcceptKeys = {Key{"code"}, Key{"files"}, Key{"hosts"}, Key{"why"}};
constexpr std::array kInvariantsKeys = {Key{"same_path"}, Key{"interpreter"}, Key{"python"}, Key{"atomic"}, Key{"in_use"},
                                        Key{"record"}, Key{"relocate"}, Key{"checks_fallback", kLater}};
constexpr std::array kSettingsKeys = {Key{"owner"}, Key{"mtime"}, Key{"xattrs"}, Key{"hardlinks"}, Key{"delete_limit"}, Key{"drift"},
                                      Key{"keep_generations"}, Key{"hosts_at_once"}, Key{"on_failure"}, Key{"transport"},
                                      Key{"bandwidth"}, Key{"retry_for"}};
constexpr std::array kTransportKeys = {Key{"command"}};

std::string folded(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

const Key* key_of(Section section, std::string_view name) {
  const auto keys = keys_of(section);
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

/// Where else in a manifest a key of this name belongs; nullopt where nowhere.
std::optional<Section> home_of(std::string_view name) {
  for (const Section section : kSections) {
    const Key* key = key_of(section, name);
    if (key != nullptr && key->is_built) return section;
  }
  return std::nullopt;
}

void hint_at_key(Error& error, Section section, const Field& field) {
  std::vector<std::string_view> names;
  for (const Key& key : keys_of(section)) names.push_back(key.name);
  const std::string_view near = nearest(field.key, names);
  if (!near.empty()) {
    const bool is_built = key_of(section, near)->is_built;
    error.hints.push_back(fmt::format("a key named '{}' exists{}", near, is_built ? "" : ", which is not built yet in this version"));
  } else if (const auto home = home_of(field.key)) {
    error.hints.push_back(fmt::format("'{}' is a key of {}", field.key, title(*home)));
  } else if (field.key.starts_with('-') && field.value.kind == Node::Kind::null) {
    error.hints.push_back(fmt::format("write '- {}' for an item of a list", printable(field.key.substr(1))));
  } else if (section == Section::host && field.value.is_scalar() && field.value.text.find_first_of("/~0123456789") == 0) {
    error.hints.push_back(fmt::format("write '{}:{}' without a space", printable(field.key), printable(field.value.text)));
  }
}

void check_key(const Field& field, Section section, Problems& problems) {
  const Key* key = key_of(section, field.key);
  if (key != nullptr && key->is_built) return;
  if (section == Section::manifest && field.key.starts_with("x-")) return;
  if (key != nullptr) {
    problems.report(field.key_mark, fmt::format("the key '{}' is not built yet in this version", field.key))
        .hints.push_back("remove the key");
    return;
  }
  Error& error = problems.report(field.key_mark, fmt::format("unknown key '{}' in {}", printable(field.key), title(section)));
  error.at_notes.push_back(fmt::format("keys allowed here: {}", allowed_keys(section)));
  hint_at_key(error, section, field);
}

}  // namespace

std::span<const Key> keys_of(Section section) {
  switch (section) {
    case Section::manifest: return kManifestKeys;
    case Section::source: return kSourceKeys;
    case Section::targets: return kTargetsKeys;
    case Section::host: return kHostKeys;
    case Section::overlay: return kOverlayKeys;
    case Section::accept: return kAcceptKeys;
    case Section::invariants: return kInvariantsKeys;
    case Section::settings: return kSettingsKeys;
    case Section::transport: return kTransportKeys;
  }
  return {};
}

std::string_view title(Section section) {
  switch (section) {
    case Section::manifest: return "the manifest";
    case Section::source: return "'source'";
    case Section::targets: return "'targets'";
    case Section::host: return "a host";
    case Section::overlay: return "an overlay";
    case Section::accept: return "an item of 'accept'";
    case Section::invariants: return "'invariants'";
    case Section::settings: return "'settings'";
    case Section::transport: return "'transport'";
  }
  return {};
}

std::string allowed_keys(Section section) {
  std::vector<std::string_view> names;
  for (const Key& key : keys_of(section)) {
    if (key.is_built) names.push_back(key.name);
  }
  std::ranges::sort(names);
  return comma_list(names);
}

std::string comma_list(std::span<const std::string_view> words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  constexpr std::size_t kWordMax = 40;
  if (text.empty() || text.size() > kWordMax) return {};
  const std::string wanted = folded(text);
  std::size_t best = std::max<std::size_t>(1, text.size() / 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edits(wanted, folded(candidate));
    if (distance >= best || distance >= candidate.size()) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

Fields::Fields(const Node& node, Section section, Problems& problems) : section_(section), mark_(node.mark) {
  if (node.kind != Node::Kind::map) {
    Error& error = problems.report(node.mark, fmt::format("{} takes a map of keys, not {}", title(section), described(node)));
    error.at_notes.push_back(fmt::format("keys allowed here: {}", allowed_keys(section)));
    return;
  }
  node_ = &node;
  for (const Field& field : node.fields) check_key(field, section, problems);
}

const Field* Fields::find(std::string_view key) const {
  const Key* known = key_of(section_, key);
  ENVSYNC_CHECK(known != nullptr && known->is_built);
  return node_ == nullptr ? nullptr : node_->find(key);
}

std::string described(const Node& node) {
  constexpr std::size_t kShownMax = 60;
  switch (node.kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a map";
    case Node::Kind::scalar: break;
  }
  if (node.text.size() > kShownMax) return "a long text";
  const bool is_quoted_number = !node.is_plain && !node.text.empty() && node.text.find_first_not_of("0123456789.") == std::string::npos;
  return fmt::format("{}'{}'", is_quoted_number ? "the quoted text " : "", printable(node.text));
}

}  // namespace envsync::manifest
