// SPDX-License-Identifier: MIT
// The files that the command line itself writes: init's manifest and schema, and the run log.
#include "cli/run_log.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "support/cli_bench.hpp"
#include "support/golden.hpp"

using namespace envsync;
using namespace envsync::test;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("init writes the manifest and its schema and says what comes next") {
  Bench bench;
  bench.io.folder = bench.folder.path();
  CHECK(bench({"init", "ct200:/root/venv", "root@gpu"}) == 0);
  CHECK(bench.out == "Wrote envsync.yaml (Python 3.12, 312 distributions, 12 GB). Next: envsync plan\n");
  CHECK(text_of(bench.folder.path() + "/envsync.yaml") == "version: 1\n");
  CHECK(text_of(bench.folder.path() + "/.envsync.schema.json") == "{}");
}

TEST_CASE("init never writes over a manifest, and does not even look at the source then") {
  Bench bench;
  bench.io.folder = bench.folder.path();
  write(bench.folder.path() + "/envsync.yaml", "mine");
  CHECK(bench({"init", "ct200:/root/venv", "gpu"}) == 2);
  CHECK(bench.engine.calls.empty());
  CHECK(text_of(bench.folder.path() + "/envsync.yaml") == "mine");
  CHECK(bench.err.starts_with("error[usage]: 'envsync.yaml' exists\n"));
}

TEST_CASE("init does not write through a link that points nowhere") {
  Bench bench;
  bench.io.folder = bench.folder.path();
  fs::create_symlink(bench.folder.path() + "/elsewhere", bench.folder.path() + "/envsync.yaml");
  CHECK(bench({"init", "ct200:/root/venv", "gpu"}) == 2);
  CHECK_FALSE(fs::exists(bench.folder.path() + "/elsewhere"));
}

TEST_CASE("init leaves a schema that is there as it is") {
  Bench bench;
  bench.io.folder = bench.folder.path();
  write(bench.folder.path() + "/.envsync.schema.json", "mine");
  CHECK(bench({"init", "ct200:/root/venv", "gpu"}) == 0);
  CHECK(text_of(bench.folder.path() + "/.envsync.schema.json") == "mine");
  CHECK(bench.err.find("'.envsync.schema.json' exists and was left as it is") != std::string::npos);
}

TEST_CASE("where the source cannot be looked at, init writes nothing") {
  Bench bench;
  bench.io.folder = bench.folder.path();
  bench.engine.reply = Error(ErrorCode::source_missing, "'/root/venv' on ct200 has no pyvenv.cfg");
  CHECK(bench({"init", "ct200:/root/venv", "gpu"}) == 13);
  CHECK(bench.err == "error[source_missing]: '/root/venv' on ct200 has no pyvenv.cfg\n");
  CHECK(names_in(bench.folder.path()).empty());
}

TEST_CASE("a run is logged line by line, for its owner alone, and ends with the summary") {
  Bench bench;
  bench.environment["XDG_STATE_HOME"] = bench.folder.path() + "/state";
  CHECK(bench({"apply", "--host", "web-01"}) == 0);
  const fs::path path = bench.folder.path() + "/state/envsync/runs/20261130T180001.123456Z-1a2b3c4d.ndjson";
  check_golden("cli_run_log", text_of(path));
  struct stat info{};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("a relative XDG_STATE_HOME is ignored and HOME is used") {
  Bench bench;
  bench.environment["XDG_STATE_HOME"] = "relative";
  CHECK(cli::run_log_folder(bench.io) == bench.folder.path() + "/.local/state/envsync/runs");
  CHECK(cli::under_home(bench.folder.path() + "/x", bench.io) == "~/x");
  CHECK(cli::under_home(bench.folder.path() + "y", bench.io) == bench.folder.path() + "y");
}

TEST_CASE("twenty logs are kept, the oldest go, and a file that is no log of ours stays") {
  Folder folder;
  for (int i = 10; i < 35; ++i) write(folder.path() + "/202611" + std::to_string(i) + "T180000.000000Z-00000000.ndjson", "");
  write(folder.path() + "/00-notes.ndjson", "mine");
  write(folder.path() + "/20200101T000000.txt", "mine");
  REQUIRE(cli::RunLog::open(folder.path(), "20270101T000000.000000Z-00000000"));
  const std::vector<std::string> names = names_in(folder.path());
  CHECK(names.size() == 22);
  CHECK(std::ranges::count(names, "00-notes.ndjson") == 1);
  CHECK(std::ranges::count(names, "20200101T000000.txt") == 1);
  CHECK(std::ranges::count(names, "20261115T180000.000000Z-00000000.ndjson") == 0);
  CHECK(std::ranges::count(names, "20261116T180000.000000Z-00000000.ndjson") == 1);
  CHECK(std::ranges::count(names, "20270101T000000.000000Z-00000000.ndjson") == 1);
}

TEST_CASE("a log is never written through a link or over a file") {
  Folder folder;
  write(folder.path() + "/target", "mine");
  fs::create_symlink(folder.path() + "/target", folder.path() + "/20270101T000000.000000Z-00000000.ndjson");
  CHECK_FALSE(cli::RunLog::open(folder.path(), "20270101T000000.000000Z-00000000"));
  CHECK(text_of(folder.path() + "/target") == "mine");
}

TEST_CASE("a log that cannot be written is a warning, the run goes on") {
  Bench bench;
  write(bench.folder.path() + "/file", "");
  bench.environment["XDG_STATE_HOME"] = bench.folder.path() + "/file";
  CHECK(bench({"apply"}) == 0);
  CHECK(bench.engine.calls.size() == 1);
  CHECK(bench.err.starts_with("warning[io]: cannot write the run log '"));
  CHECK(bench({"apply", "-q"}) == 0);
  CHECK(bench.err.empty());
}

TEST_CASE("names of runs sort by time") {
  CHECK(cli::make_run_name(1'796'061'600'123'456'789, 0x1a2b3c4d) == "20261130T180000.123456Z-1a2b3c4d");
  CHECK(cli::make_run_name(1'796'061'600'123'456'789, 0) < cli::make_run_name(1'796'061'600'123'457'789, 0));
}
