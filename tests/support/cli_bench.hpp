// SPDX-License-Identifier: MIT
// A command line on a bench: an engine that plays what a test wrote, streams that are strings, a clock that stands still.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <stdlib.h>

#include "cli/run.hpp"

namespace envsync::test {

class FakeClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point steady() const override { return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(ns.load())); }
  i64 realtime_ns() const override { return 1'796'061'600'123'456'789 + ns; }  // 2026-11-30T18:00:00.123456789Z
  void pass(double seconds) { ns += static_cast<i64>(seconds * 1e9); }
  std::atomic<i64> ns = 1'000'000'000;  // the ticker reads it from its own thread
};

/// Plays the same script for every verb; remembers how it was called.
class FakeEngine final : public Engine {
 public:
  using Script = std::function<Report(Observer&, std::stop_token)>;
  Script script = [](Observer&, std::stop_token) { return Report{.run = "20261130T180000.000000Z-00c0ffee", .outcomes = {}, .exit_code = 0}; };
  std::map<std::string, std::vector<Error>> bad_manifests;  // by text
  ManifestSummary summary{.name = "venv", .path = "/root/venv", .source = "ct200:/root/venv", .targets = {"web-01"}};
  Result<InitReply> reply = InitReply{.text = "version: 1\n", .summary = "Python 3.12, 312 distributions, 12 GB"};

  Result<Inspection> inspection = Inspection{};

  std::vector<std::string> calls;  // verb and text of the manifest
  RunOptions options;
  VerifyOptions verify_options;
  RollbackOptions rollback_options;
  PruneOptions prune_options;

  tl::expected<ManifestSummary, std::vector<Error>> validate(const ManifestText& text) override {
    if (const auto bad = bad_manifests.find(text.text); bad != bad_manifests.end()) return tl::unexpected(bad->second);
    return summary;
  }
  Report plan(const ManifestText& t, const RunOptions& o, Observer& b, std::stop_token s) override { return play("plan", t, o, b, s); }
  Report apply(const ManifestText& t, const RunOptions& o, Observer& b, std::stop_token s) override { return play("apply", t, o, b, s); }
  Report verify(const ManifestText& t, const RunOptions& o, const VerifyOptions& v, Observer& b, std::stop_token s) override { verify_options = v; return play("verify", t, o, b, s); }
  Report status(const ManifestText& t, const RunOptions& o, Observer& b, std::stop_token s) override { return play("status", t, o, b, s); }
  Report history(const ManifestText& t, const RunOptions& o, Observer& b, std::stop_token s) override { return play("history", t, o, b, s); }
  Report rollback(const ManifestText& t, const RunOptions& o, const RollbackOptions& r, Observer& b, std::stop_token s) override { rollback_options = r; return play("rollback", t, o, b, s); }
  Report prune(const ManifestText& t, const RunOptions& o, const PruneOptions& p, Observer& b, std::stop_token s) override { prune_options = p; return play("prune", t, o, b, s); }
  Result<Inspection> inspect(const std::string& place, const RunOptions& o, Observer&, std::stop_token) override {
    calls.push_back("inspect " + place);
    options = o;
    return inspection;
  }
  Result<InitReply> init(const InitRequest& request, const RunOptions& o, Observer&, std::stop_token) override {
    calls.push_back("init " + request.source);
    options = o;
    return reply;
  }

 private:
  Report play(const std::string& verb, const ManifestText& text, const RunOptions& given, Observer& observer, std::stop_token stop) {
    calls.push_back(verb + " " + text.text);
    options = given;
    return script(observer, stop);
  }
};

/// A folder of its own below $TMPDIR, gone with the object.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "envsync-cli-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Bench {
  FakeEngine engine;
  FakeClock clock;
  Folder folder;
  std::string out, err;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files{{"envsync.yaml", "envsync.yaml"}};  // name to text
  std::vector<std::string> answers;                                              // taken from the front
  std::stop_source stop;
  int signal = 0;
  cli::Io io;

  Bench() {
    environment["HOME"] = folder.path();
    io.out = [this](std::string_view text) { out += text; };
    io.err = [this](std::string_view text) { err += text; };
    io.read_line = [this](std::stop_token) -> std::optional<std::string> {
      if (answers.empty()) return std::nullopt;
      std::string answer = answers.front();
      answers.erase(answers.begin());
      return answer;
    };
    io.terminal_size = [] { return cli::TerminalSize{}; };
    io.environment = [this](const std::string& name) { return environment.contains(name) ? environment[name] : ""; };
    io.clock = &clock;
    io.random = [] { return 0x1a2b3c4du; };
  }
  void on_terminal() { io.in_is_terminal = io.out_is_terminal = io.err_is_terminal = true; environment["NO_COLOR"] = "1"; }

  int operator()(const std::vector<std::string>& line) {
    out.clear();
    err.clear();
    cli::Services services{.engine = engine, .load = [this](const std::string& file, std::vector<std::string> overrides) { return load(file, std::move(overrides)); },
                           .schema = "{}", .version = "0.1.0"};
    return cli::run(line, services, io, {.stop = stop.get_token(), .signal = [this] { return signal; }});
  }

 private:
  Result<ManifestText> load(const std::string& file, std::vector<std::string> overrides) {
    if (!files.contains(file)) return Error(ErrorCode::manifest_invalid, "cannot read the manifest '" + file + "'").cause("no such file or directory");
    return ManifestText{.file = file, .text = files[file], .overrides = std::move(overrides)};
  }
};

}  // namespace envsync::test
