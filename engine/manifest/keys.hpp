// SPDX-License-Identifier: MIT
// Private to manifest/: every key of a manifest, in one table: those that are built, and those of the design that are not yet.
// The parser asks it, a test holds the schema to it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "manifest/yaml.hpp"

namespace envsync::manifest {

enum class Section : u8 { manifest, source, targets, host, overlay, accept, invariants, settings, transport };
inline constexpr Section kSections[] = {Section::manifest, Section::source,   Section::targets,  Section::host,
                                        Section::overlay,    Section::accept,   Section::invariants, Section::settings, Section::transport};

struct Key {
  std::string_view name;
  bool is_built = true;
};

std::span<const Key> keys_of(Section section);
/// "the manifest", "'settings'", "a host".
std::string_view title(Section section);
/// Names of the built keys, sorted: "name, path, version".
std::string allowed_keys(Section section);

/// The candidate nearest to `text` by edits, case and - _ aside; empty where none is near.
std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates);
/// "a, b, c"
std::string comma_list(std::span<const std::string_view> words);

/// What of a section's map belongs there; the rest is reported when it is made.
class Fields {
 public:
  /// A node that is no map is reported and gives no fields.
  Fields(const Node& node, Section section, Problems& problems);
  /// `key` must be a built key of the section.
  const Field* find(std::string_view key) const;
  bool is_map() const { return node_ != nullptr; }
  const Mark& mark() const { return mark_; }

 private:
  const Node* node_ = nullptr;  // borrowed from the caller
  Section section_;
  Mark mark_;
};

/// "a list", "a map", "nothing", "'text'".
std::string described(const Node& node);

}  // namespace envsync::manifest
