// SPDX-License-Identifier: MIT
// What yaml-cpp takes and a manifest does not, and syntax errors in words.
#include "manifest/manifest.hpp"

#include "support/error_text.hpp"

#include <doctest/doctest.h>

using namespace envsync;
using namespace envsync::manifest;

namespace {

std::string messages(const std::string& text) {
  const auto manifest = parse("m.yaml", text, {});
  REQUIRE_FALSE(manifest.has_value());
  return test::errors_text(manifest.error());
}

}  // namespace

TEST_CASE("a key that stands twice is an error at the second") {
  CHECK(messages("version: 1\npath: /srv/v\nsource: a\ntargets: [b]\npath: /srv/w\n") == R"(the key 'path' stands here twice
 --> m.yaml:5:1
 | path: /srv/w
 | ^^^^
= note: the first is in line 2
)");
  CHECK(messages("version: 1\npath: /srv/v\nsource: a\ntargets: [{host: b, host: c}]\n").starts_with("the key 'host' stands here twice\n"));
}

TEST_CASE("a second document is an error at its mark") {
  CHECK(messages("version: 1\n---\nversion: 1\n") == R"(a second document begins here
 --> m.yaml:2:1
 | ---
 | ^^^
hint: write one manifest a file; several files can be given to one command
)");
}

TEST_CASE("one document between its marks is a manifest") {
  CHECK(parse("m.yaml", "%YAML 1.2\n---\nversion: 1\npath: /srv/v\nsource: a\ntargets: [b]\n...\n", {}));
}

TEST_CASE("keys below a list are not taken for a second document") {
  CHECK(messages("- a\nb: 1\n").starts_with("this does not belong to what stands above it\n --> m.yaml:2:1\n"));
}

TEST_CASE("what is no text is named by its line") {
  CHECK(messages("version: 1\npath: \xff\n").starts_with("bytes that are no UTF-8\n --> m.yaml:2:1\n"));
  CHECK(messages(std::string("version: 1\na: \0b\n", 17)).starts_with("a NUL byte, which no text holds\n --> m.yaml:2:1\n"));
  CHECK(messages(std::string("v\0e\0r\0", 6)).starts_with("a NUL byte, which no text holds\n"));
  CHECK(messages(std::string((1 << 20) + 1, '#')).starts_with("a manifest of 1.0 MB is larger than the 1 MiB that is read\n"));
}

TEST_CASE("an empty manifest says what writes one") {
  for (const char* empty : {"", "\n", "# only a comment\n", "---\n", "~\n"}) {
    CHECK(messages(empty).ends_with("hint: run `envsync init SRC HOST` to write one\n"));
  }
}

TEST_CASE("a manifest that is no map is told what it is") {
  CHECK(messages("- a\n").starts_with("a manifest is a map of keys, not a list\n"));
  CHECK(messages("version:1\n").ends_with("hint: put a space after each colon\n"));
}

TEST_CASE("an alias within what it names is an error and not an endless walk") {
  CHECK(messages("x-a: &x [*x]\n") == R"(an alias within what it names
 --> m.yaml:1:10
 | x-a: &x [*x]
 |          ^^
)");
  CHECK(messages("x-a: &x {b: {c: *x}}\n").starts_with("an alias within what it names\n"));
  CHECK(messages("x-a: *nope\n").starts_with("an alias of an anchor that is not defined above it\n --> m.yaml:1:6\n"));
}

TEST_CASE("aliases that multiply end at a limit") {
  std::string text = "x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("x-{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  CHECK(messages(text).starts_with("more than 100000 values, aliases resolved\n"));
}

TEST_CASE("aliases of a long text end at a limit") {
  std::string text = "x-0: &a " + std::string(500'000, 'x') + "\nx-1: [";
  for (int i = 0; i < 1000; ++i) text += "*a, ";
  CHECK(messages(text + "]\n").starts_with("more than 100000 values, aliases resolved\n"));
}

TEST_CASE("nesting ends at a limit, whatever its depth") {
  for (const int depth : {40, 1'000, 400'000}) {
    CHECK(messages("x-0: " + std::string(static_cast<std::size_t>(depth), '[')).starts_with("more than 32 levels of nesting\n"));
  }
}

TEST_CASE("many errors are cut and counted") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("k{}: 1\n", i);
  const auto manifest = parse("m.yaml", text, {});
  REQUIRE_FALSE(manifest.has_value());
  CHECK(manifest.error().size() == 100);
  CHECK(manifest.error().back().notes.at(0) == "203 more errors are not shown");
}

TEST_CASE("a tag, a key that is no word and a merge of no map are errors") {
  const auto has = [](const std::string& text, const std::string& message) { return messages(text).find(message) != std::string::npos; };
  CHECK(has("x-a: !python/object:os.system [x]\n", "the tag '!python/object:os.system' means nothing in a manifest\n --> m.yaml:1:6\n"));
  CHECK(has("x-a: 1\n[a, b]: 2\n", "a key that is no word\n --> m.yaml:2:1\n"));
  CHECK(has("<<: 3\n", "<< takes a map, or a list of maps\n --> m.yaml:1:5\n"));
}

TEST_CASE("syntax errors are put into words") {
  const auto first = [](const std::string& text) {
    const std::string all = messages(text);
    const std::size_t hint = all.find("hint: ");
    return all.substr(0, all.find('\n')) + " | " + (hint == std::string::npos ? std::string() : all.substr(hint + 6, all.size() - hint - 7));
  };
  CHECK(first("name: a: b\n") == "a colon makes a key here, where none can stand | begin all keys of one map in the same column; quote a text that holds ': '");
  CHECK(first("version:1\npath: /x\n") == "a colon makes a key here, where none can stand | put a space after the colon of 'version:1' above it");
  CHECK(first("targets: [a, b\nname: x\n") == "a list that begins with [ is not closed, or lacks a comma | close it with ], and put commas between its items");
  CHECK(first("source: {host: a\nname: x\n") == "a map that begins with { is not closed, or lacks a comma | close it with }, and put commas between its keys");
  CHECK(first("settings:\n\tdrift: ask\n") == "a tab indents this line | indent with spaces");
  CHECK(first("settings:\n    drift: ask\n  mtime: strict\n") == "this does not belong to the keys above it | begin all keys of one map in the same column; quote a text that holds a quote");
  CHECK(first("name: \"x\nversion: 1\n") == "a quoted text does not end | close its quote");
  CHECK(first("name: 'it's'\n") == "this does not belong to the keys above it | begin all keys of one map in the same column; quote a text that holds a quote");
  CHECK(first("name: @x\n") == "a text cannot begin with this character | quote the text");
  CHECK(first("name: \"\\q\"\n") == "an escape that YAML does not have | write \\\\ for a backslash, or use single quotes");
  CHECK(first("targets: - a\n") == "a list cannot begin in the line of its key | put each item on a line of its own, or write [a, b]");
  CHECK(first("name: ]\n") == "a bracket is closed here that was not opened | remove it, or quote the text that holds it");
}

TEST_CASE("a syntax error does not hide the duplicates before it") {
  CHECK(messages("name: a\nname: b\npath: @x\n").find("stands here twice") != std::string::npos);
}

TEST_CASE("a caret counts characters, and columns count bytes") {
  const auto manifest = parse("m.yaml", "version: 1\npath: /srv/v\nsource: a\ntargets: [z\xc3\xbcrich, \"\xc3\xbc \xc3\xbc\"]\n", {});
  REQUIRE_FALSE(manifest.has_value());
  const Location& at = manifest.error().at(0).where.value();
  CHECK(at.column == 20);
  CHECK(at.length == 5);
}

TEST_CASE("a manifest damaged at any byte is parsed or refused, with errors that have a place") {
  const std::string good = "x-d: &d {user: root, port: 22}\nversion: 1\npath: '/srv/v'\nsource: {host: a, exclude: [\"*.log\", b]}\n"
                           "targets:\n  - <<: *d\n    host: b\n  - c\nsettings: {drift: ask, delete_limit: 50%}\ninvariants:\n  python: 3.11\n";
  REQUIRE(parse("m.yaml", good, {}));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char put : {'\0', '\t', '\n', '"', '\'', '[', '}', '&', '*', '!', '%', '|', ':', '-', '\xff', '<'}) {
      std::string bad = good;
      bad[at] = put;
      const auto manifest = parse("m.yaml", bad, {});
      if (manifest) continue;
      REQUIRE_FALSE(manifest.error().empty());
      for (const Error& error : manifest.error()) REQUIRE(error.where);
    }
    const auto cut = parse("m.yaml", good.substr(0, at), {});
    CHECK((cut || !cut.error().empty()));
  }
}
