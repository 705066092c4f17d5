// SPDX-License-Identifier: MIT
// Schema, parser and the ready manifests say the same.
#include "manifest/keys.hpp"
#include "manifest/manifest.hpp"
#include "support/error_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace envsync;
using namespace envsync::manifest;
using nlohmann::json;

namespace {

std::filesystem::path manifests() { return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "manifests"; }

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE_MESSAGE(in, file);
  return {std::istreambuf_iterator<char>(in), {}};
}

json schema_json() { return json::parse(schema()); }

/// The schema of a section's map, and a manifest in which `key: value` stands in such a map.
json of_section(Section section) {
  const json all = schema_json();
  switch (section) {
    case Section::manifest: return all;
    case Section::source: return all["definitions"]["source"];
    case Section::targets: return all["definitions"]["targets"];
    case Section::host: return all["definitions"]["host"];
    case Section::overlay: return all["definitions"]["overlay"];
    case Section::accept: return all["definitions"]["accept"];
    case Section::invariants: return all["definitions"]["invariants"];
    case Section::settings: return all["definitions"]["settings"];
    case Section::transport: return all["definitions"]["transport"];
  }
  return {};
}

json manifest_with(Section section, const std::string& key, const json& value) {
  json m = {{"version", 1}, {"path", "/srv/venv"}, {"source", "ct200"}, {"targets", {"web-01"}}};
  switch (section) {
    case Section::manifest: m[key] = value; break;
    case Section::source: m["source"] = {{"host", "ct200"}}; m["source"][key] = value; break;
    case Section::targets: m["targets"] = {{"hosts", {"web-01"}}}; m["targets"][key] = value; break;
    case Section::host: m["targets"] = {{{"host", "web-01"}}}; m["targets"][0][key] = value; break;
    case Section::overlay: m["overlays"] = {{{"from", "ct129:/root/venv"}, {"packages", {"torch"}}}}; m["overlays"][0][key] = value;
      m["targets"] = {{{"host", "web-01"}, {"gpu", {"10.3"}}}};
      break;
    case Section::accept: m["accept"] = {{{"code", "conflicts"}}}; m["accept"][0][key] = value; break;
    case Section::invariants: m["invariants"] = {{key, value}}; break;
    case Section::settings: m["settings"] = {{key, value}}; break;
    case Section::transport: m["settings"] = {{"transport", {{key, value}}}}; break;
  }
  return m;
}

/// JSON is YAML, but for scalars that the schema takes as text and YAML as plain words.
tl::expected<Manifest, Errors> parsed(const json& m) { return parse("m.json", m.dump(), {}, [](const std::string&) -> Result<std::string> { return std::string("web-02\n"); }); }

bool is_type(const json& property, const char* type) { return property.contains("type") && property["type"] == type; }

json resolved(json value) {
  while (value.contains("$ref")) {
    json target = schema_json()[json::json_pointer(value["$ref"].get<std::string>().substr(1))];
    value.erase("$ref");
    target.update(value);
    value = target;
  }
  return value;
}

/// Every value that the schema shows or allows by name.
std::vector<json> samples(const json& property) {
  const json p = resolved(property);
  std::vector<json> out;
  for (const char* list : {"examples", "enum"}) {
    if (p.contains(list)) out.insert(out.end(), p[list].begin(), p[list].end());
  }
  if (p.contains("const")) out.push_back(p["const"]);
  if (p.contains("default")) out.push_back(p["default"]);
  for (const char* bound : {"minimum", "maximum"}) {
    if (p.contains(bound)) out.push_back(p[bound]);
  }
  if (p.contains("oneOf")) {
    for (const json& one : p["oneOf"]) {
      const auto more = samples(one);
      out.insert(out.end(), more.begin(), more.end());
    }
  }
  if (is_type(p, "object")) {
    json map = json::object();
    for (const auto& [key, value] : p["properties"].items()) {
      if (p.value("required", json::array()).size() == 0 || p["required"].front() == key) map[key] = samples(value).at(0);
    }
    out.push_back(map);
  }
  return out;
}

}  // namespace

TEST_CASE("the schema in the program is the file, byte by byte") { CHECK(std::string(schema()) == read_file(manifests() / "envsync.schema.json")); }

TEST_CASE("schema and parser know the same keys in every section") {
  for (const Section section : kSections) {
    std::set<std::string> in_schema, in_parser;
    const json schema = of_section(section);  // items() borrows
    for (const auto& [key, value] : schema["properties"].items()) in_schema.insert(key);
    for (const Key& key : keys_of(section)) {
      if (key.is_built) in_parser.insert(std::string(key.name));
    }
    CAPTURE(title(section));
    CHECK(in_schema == in_parser);
    CHECK(schema["additionalProperties"] == false);
  }
}

TEST_CASE("the parser takes every key of the schema with each value that the schema shows") {
  for (const Section section : kSections) {
    const json schema = of_section(section);
    for (const auto& [key, property] : schema["properties"].items()) {
      const auto values = samples(property);
      CAPTURE(title(section));
      CAPTURE(key);
      REQUIRE_FALSE(values.empty());
      for (const json& value : values) {
        const json m = manifest_with(section, key, value);
        const auto manifest = parsed(m);
        CAPTURE(m.dump());
        if (!manifest) FAIL_CHECK(test::errors_text(manifest.error()));
      }
    }
  }
}

TEST_CASE("the parser takes no word that the schema does not list, and nothing below or above its bounds") {
  for (const Section section : kSections) {
    const json schema = of_section(section);
    for (const auto& [key, unresolved] : schema["properties"].items()) {
      const json property = resolved(unresolved);
      CAPTURE(title(section));
      CAPTURE(key);
      if (property.contains("enum")) CHECK_FALSE(parsed(manifest_with(section, key, "bogus")));
      if (property.contains("minimum")) CHECK_FALSE(parsed(manifest_with(section, key, property["minimum"].get<int>() - 1)));
      if (property.contains("maximum")) CHECK_FALSE(parsed(manifest_with(section, key, property["maximum"].get<int>() + 1)));
      if (is_type(property, "object")) CHECK_FALSE(parsed(manifest_with(section, key, "bogus")));
      if (is_type(property, "boolean")) CHECK_FALSE(parsed(manifest_with(section, key, "bogus")));
    }
  }
}

TEST_CASE("the parser takes no key that is in no section's schema") {
  for (const Section section : kSections) CHECK_FALSE(parsed(manifest_with(section, "bogus", 1)));
}

TEST_CASE("the keys that the schema requires are those that the parser misses") {
  const json schema = schema_json();
  for (const auto& key : schema["required"]) {
    json m = manifest_with(Section::manifest, "path", "/srv/venv");
    m.erase(key.get<std::string>());
    const auto manifest = parsed(m);
    REQUIRE_FALSE(manifest);
    CHECK(manifest.error().at(0).what == fmt::format("'{}' is missing", key.get<std::string>()));
  }
}

TEST_CASE("the ready manifests are valid") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(manifests())) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    const auto manifest = parse(entry.path().filename().string(), read_file(entry.path()), {});
    if (!manifest) FAIL_CHECK(test::errors_text(manifest.error()));
  }
  CHECK(count >= 3);
}
