// SPDX-License-Identifier: MIT
#include "python/metadata.hpp"

#include "python/text.hpp"

namespace envsync::python {
namespace {

// LIMIT: the longest list of a real environment has some 300.
constexpr std::size_t kHeadersMax = 20'000;

void store(Metadata& out, std::string_view key, std::string_view value) {
  const std::string name = lowered(trimmed(key));
  if (name == "name" && out.name.empty()) out.name = value;
  else if (name == "version" && out.version.empty()) out.version = value;
  else if (name == "requires-python" && out.requires_python.empty()) out.requires_python = value;
  else if (name == "requires-dist" && !value.empty()) out.requires_dist.emplace_back(value);
  else if (name == "provides-extra" && !value.empty()) out.provides_extra.emplace_back(value);
}

}  // namespace

Metadata parse_metadata(std::string_view text) {
  Metadata out;
  std::string header;  // with its folded lines
  const auto finish = [&] {
    const std::size_t colon = header.find(':');
    if (colon != std::string::npos) store(out, std::string_view(header).substr(0, colon), trimmed(std::string_view(header).substr(colon + 1)));
    header.clear();
  };
  std::size_t headers = 0;
  while (!text.empty() && headers < kHeadersMax) {
    std::string_view line = take_until(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t') {
      header += line;
      continue;
    }
    finish();
    header = line;
    ++headers;
  }
  finish();
  return out;
}

std::vector<EntryPoint> parse_scripts(std::string_view text) {
  std::vector<EntryPoint> out;
  bool is_script = false;
  while (!text.empty()) {
    const std::string_view line = trimmed(take_until(text, '\n'));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      is_script = line == "[console_scripts]" || line == "[gui_scripts]";
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!is_script || equals == std::string_view::npos) continue;
    // name = module.path:object.attribute [extra]
    const std::string_view target = trimmed(line.substr(equals + 1).substr(0, line.substr(equals + 1).find('[')));
    const std::size_t colon = target.find(':');
    if (colon == std::string_view::npos) continue;
    EntryPoint point{std::string(trimmed(line.substr(0, equals))), std::string(trimmed(target.substr(0, colon))),
                     std::string(trimmed(target.substr(colon + 1)))};
    if (!point.name.empty() && !point.module.empty() && !point.object.empty()) out.push_back(std::move(point));
  }
  return out;
}

bool is_editable(std::string_view json) {
  // Inside a JSON string the quotes of this key would be escaped, so that the bytes are the key and nothing else.
  constexpr std::string_view kKey = "\"editable\"";
  const std::size_t at = json.find(kKey);
  if (at == std::string_view::npos || (at > 0 && json[at - 1] == '\\')) return false;
  std::string_view rest = trimmed(json.substr(at + kKey.size()));
  if (!rest.starts_with(':')) return false;
  return trimmed(rest.substr(1)).starts_with("true");
}

}  // namespace envsync::python
