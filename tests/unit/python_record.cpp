// SPDX-License-Identifier: MIT
#include "python/record.hpp"

#include "base/bytes.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace envsync;
using namespace envsync::python;

namespace {

const tree::RelPath kSite = *tree::RelPath::parse("lib/python3.12/site-packages");
constexpr std::string_view kEmptySum = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

/// "path|hash|size" of each row, then "line: why" of each row set aside.
std::vector<std::string> read(std::string_view text) {
  const Record record = parse_record(text);
  std::vector<std::string> out;
  for (const RecordRow& row : record.rows) out.push_back(fmt::format("{}|{}|{}", row.path, row.hash, row.size ? fmt::format("{}", *row.size) : ""));
  for (const RecordProblem& problem : record.problems) out.push_back(fmt::format("{}: {} {}", problem.line, printable(problem.row), problem.why));
  if (!record.broken.empty()) out.push_back(record.broken);
  return out;
}

std::string resolved(std::string_view row, std::string_view root = {}) {
  const auto path = resolve_row(kSite, row, root);
  return path ? path->bytes() : fmt::format("the row {}", path.error());
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("RECORD is read as pip writes it") {
  CHECK(read("numpy/__init__.py,sha256=x,22388\r\n../../../bin/f2py,sha256=y,310\n\nnumpy-2.dist-info/RECORD,,\nold.pyc\n") ==
        Lines{"numpy/__init__.py|sha256=x|22388", "../../../bin/f2py|sha256=y|310", "numpy-2.dist-info/RECORD||", "old.pyc||"});
  CHECK(read("a.py,,1") == Lines{"a.py||1"});
  CHECK(read("").empty());
}

TEST_CASE("quoted fields hold commas, quotes and line ends") {
  CHECK(read("\"sglang/E=1,N=14336.json\",sha256=x,1\n\"a \"\"b\"\".txt\",,2\n\"two\nlines\",,3\nq\"uote,,4\n") ==
        Lines{"sglang/E=1,N=14336.json|sha256=x|1", "a \"b\".txt||2", "two\nlines||3", "q\"uote||4"});
}

TEST_CASE("a row that is none is set aside by line and name, and the others count") {
  CHECK(read("a.py,,1\nb.py,,x\nc.py,,1,2\n,,\nd.py,,-1\ne.py,,99999999999999999999\nf.py,,6\n") ==
        Lines{"a.py||1", "f.py||6", "2: b.py has a size that is no number", "3: c.py has more than three fields", "4:  names no path",
              "5: d.py has a size that is no number", "6: e.py has a size that is no number"});
  CHECK(read(std::string_view("a\0b,,\n", 6)) == Lines{"1: a\\x00b holds a NUL byte"});
}

TEST_CASE("a RECORD that is no list of rows counts for nothing") {
  CHECK(read("a.py,,1\n\"b.py,,2\nc.py,,3\n") == Lines{"a quote that is not closed in line 4"});
  CHECK(read("a.py,,1\n" + std::string(70'000, 'x') + ",,\n") == Lines{"a field of more than 65536 bytes in line 2"});
  CHECK(read("a" + std::string(100, ',') + "\n") == Lines{"more fields than a row can have in line 1"});
  std::string million;
  for (int i = 0; i < 1'000'000; ++i) million += "a\n";
  CHECK(read(million) == Lines{"more than 500000 rows"});
}

TEST_CASE("rows lie where their components lead from the folder of the dist-info") {
  CHECK(resolved("torch/__init__.py") == "lib/python3.12/site-packages/torch/__init__.py");
  CHECK(resolved("../../../bin/torchrun") == "bin/torchrun");
  CHECK(resolved("../../../share/man/man1/f2py.1") == "share/man/man1/f2py.1");
  CHECK(resolved("./a//b/../c.py") == "lib/python3.12/site-packages/a/c.py");
  CHECK(resolved("..hidden") == "lib/python3.12/site-packages/..hidden");
  CHECK(resolve_row(tree::RelPath(), "torch/a.py")->bytes() == "torch/a.py");
}

TEST_CASE("a row that leaves the environment is refused, a sibling of the same beginning too") {
  CHECK(resolved("../../../../env_backup/x", "/x/env") == "the row leaves the environment");
  CHECK(resolved("../../../../env/bin/x", "/x/env") == "the row leaves the environment");
  CHECK(resolved("../../../..") == "the row leaves the environment");
  CHECK(resolved("a/../../../../../etc/passwd") == "the row leaves the environment");
  CHECK(resolved("../../..") == "the row names the environment itself");
  CHECK(resolved("../../../lib/python3.12/site-packages/../../..") == "the row names the environment itself");
}

TEST_CASE("an absolute row counts below the environment alone, by components") {
  CHECK(resolved("/etc/passwd") == "the row is absolute");
  CHECK(resolved("/x/env/bin/tool") == "the row is absolute");
  CHECK(resolved("/x/env/bin/tool", "/x/env") == "bin/tool");
  CHECK(resolved("//x/./env/bin/tool", "/x/env/") == "bin/tool");
  CHECK(resolved("/x/env_backup/bin/tool", "/x/env") == "the row leaves the environment");
  CHECK(resolved("/x/env/../env_backup/tool", "/x/env") == "the row leaves the environment");
  CHECK(resolved("/x/env", "/x/env") == "the row names the environment itself");
  CHECK(resolved("/etc/passwd", "/") == "the row is absolute");
}

TEST_CASE("a row that no disk can hold is refused") {
  CHECK(resolved(std::string_view("a\0b", 3)) == "the row holds a NUL byte");
  CHECK(resolved(std::string(256, 'n')) == "the row is no path that a disk can hold");
  std::string deep;
  for (int i = 0; i < 9000; ++i) deep += "d/";
  CHECK(resolved(deep + "x") == "the row is no path that a disk can hold");
}

TEST_CASE("hashes are 32 bytes in urlsafe base64, and nothing else is one") {
  const auto sum = parse_record_hash(kEmptySum);
  REQUIRE(sum);
  CHECK(to_hex(*sum) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(render_record_hash(*sum) == kEmptySum);
  CHECK(parse_record_hash(std::string(kEmptySum) + "=") == sum);
  for (const std::string_view other : {"", "sha256=", "md5=1B2M2Y8AsgTpgAmY7PhCfg", "sha384=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
                                       "sha256=47DEQpj8HBSa+/TImW-5JCeuQeRkm5NMpJWZG3hSuF", "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSu!U"})
    CHECK_FALSE(parse_record_hash(other));
}

TEST_CASE("changed rows are written anew, dropped rows go, and every other byte stays") {
  const Sha256 sum = *parse_record_hash(kEmptySum);
  CHECK(with_changed_rows("a.py, odd ,\n../../../bin/t,sha256=old,3\r\n\"x,y\",,\r\nlast,,", {{"../../../bin/t", RowContent{sum, 310}}, {"x,y", RowContent{sum, 7}}}) ==
        fmt::format("a.py, odd ,\n../../../bin/t,{0},310\r\n\"x,y\",{0},7\r\nlast,,", kEmptySum));
  CHECK(with_changed_rows("a,,\nb,,\nc,,\n", {{"b", std::nullopt}, {"z", std::nullopt}}) == "a,,\nc,,\n");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
}
