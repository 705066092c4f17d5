// SPDX-License-Identifier: MIT
// Private to manifest/: one value of a manifest, of the type that its key takes. What is not of it is reported.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "manifest/keys.hpp"

namespace envsync::manifest {

/// A value as messages call it: the key, or the list it is an item of.
struct Named {
  std::string_view key;
  const Node& node;
};
inline Named named(const Field& field) { return {field.key, field.value}; }

/// Any scalar, as it is written: 3.10 is "3.10". Never empty.
std::optional<std::string> read_text(const Named& value, Problems& problems);
std::optional<bool> read_flag(const Named& value, Problems& problems);
std::optional<u64> read_number(const Named& value, u64 least, u64 most, Problems& problems);

/// A whole number with its unit: 30s, 10m, 2h. In seconds.
std::optional<u32> read_duration(const Named& value, u32 most, Problems& problems);

/// A list of texts; empty where the key is absent.
std::vector<std::string> read_texts(const Field* field, Problems& problems);

/// Reports a value that is none of `words`; one of `later` is not built yet.
void report_word(const Named& value, std::span<const std::string_view> words, std::span<const std::string_view> later, Problems& problems);

template <class Enum>
struct Word {
  std::string_view name;
  Enum value;
};

/// One of `words`; `out` stays as it is where the key is absent or its value is reported.
template <class Enum, std::size_t N>
void read_word(const Field* field, const Word<Enum> (&words)[N], std::span<const std::string_view> later, Enum& out, Problems& problems) {
  if (field == nullptr) return;
  std::vector<std::string_view> names;
  for (const Word<Enum>& word : words) {
    if (field->value.is_scalar() && field->value.text == word.name) {
      out = word.value;
      return;
    }
    names.push_back(word.name);
  }
  report_word(named(*field), names, later, problems);
}

/// The error of parse_host() and its like, at the place of the value.
void report_at(const Mark& mark, const Error& error, Problems& problems);

}  // namespace envsync::manifest
