// SPDX-License-Identifier: MIT
#include "cli/verbs.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "base/try.hpp"
#include "cli/console.hpp"
#include "cli/error_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/json_lines.hpp"

namespace envsync::cli {

namespace {

constexpr const char* kDefaultManifest = "envsync.yaml";

/// Tells a console that time passes while the engine is silent.
class Ticker {
 public:
  Ticker(Console& console, bool is_wanted) {
    if (!is_wanted) return;
    thread_ = std::jthread([this, &console](std::stop_token stop) {
      std::unique_lock lock(mutex_);
      while (!stop.stop_requested()) {
        wake_.wait_for(lock, stop, std::chrono::milliseconds(250), [] { return false; });
        console.tick();
      }
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: joined before what it uses goes
};

struct Good {
  ManifestText text;
  ManifestSummary summary;
};

std::string manifest_path(const std::string& manifest, const Io& io) {
  return manifest == kDefaultManifest && io.folder != "." ? io.folder + "/" + manifest : manifest;
}

/// Reads and checks one manifest, or shows all that is wrong with it.
std::optional<Good> read_manifest(const std::string& manifest, const Invocation& given, const Surroundings& around, int& exit_code) {
  const auto show = [&](const Error& error) {
    if (given.has_json) {
      const Envelope envelope{.run = "", .now_ns = around.io.clock->realtime_ns()};
      around.io.out(json_line(ProblemEvent{.host = {}, .severity = Severity::error, .error = error}, envelope, Paths::left_out) + "\n");
    }
    exit_code = fail(error, around);
  };
  auto text = around.services.load(manifest_path(manifest, around.io), given.overrides);
  if (!text) {
    Error error = std::move(text).error();
    if (given.manifests.empty() && error.hints.empty()) error.hints.emplace_back("run `envsync init SRC HOST...` to write one, or name a manifest");
    show(error);
    return std::nullopt;
  }
  auto summary = around.services.engine.validate(*text);
  if (summary) return Good{std::move(*text), std::move(*summary)};
  bool is_first = true;
  for (const Error& error : summary.error()) {
    if (!is_first) around.io.err("\n");
    is_first = false;
    show(error);
  }
  return std::nullopt;
}

std::string consent_words(const RunOptions& run) {
  std::string words;
  if (run.adopt) words += " --adopt";
  if (run.allow_delete) words += " --allow-delete";
  if (run.drift) words += " --drift " + *run.drift;
  return words;
}

std::string connection_words(const RunOptions& run) {
  std::string words;
  if (!run.ssh_config.empty()) words += " --ssh-config " + shell_word(run.ssh_config);
  if (!run.identity.empty()) words += " --identity " + shell_word(run.identity);
  if (!run.transport.empty()) words += " --transport " + shell_word(run.transport);
  return words;
}

View make_view(const Invocation& given, const Good& manifest, std::size_t manifests) {
  View view{.verb = given.verb, .manifest = manifest.text.file, .manifest_words = same_manifest(given.manifests.empty() ? kDefaultManifest : manifest.text.file, given.overrides),
            .connection_words = connection_words(given.run), .host_words = {}, .consent_words = consent_words(given.run)};
  for (const std::string& host : given.run.hosts) view.host_words += " --host " + shell_word(host);
  view.shows_host = manifest.summary.targets.size() > 1;
  view.shows_environment = manifests > 1;
  view.has_json = given.has_json;
  view.is_quiet = given.is_quiet;
  view.is_verbose = given.is_verbose;
  view.lists_files = given.lists_files;
  view.has_exit_code = given.has_exit_code;
  return view;
}

ConsoleOptions console_options(const Invocation& given, View view, std::string run, const Surroundings& around) {
  const Io& io = around.io;
  const bool can_ask = !given.no_input && io.in_is_terminal && io.err_is_terminal;
  const bool is_animated = io.err_is_terminal && io.environment("TERM") != "dumb";
  const TerminalOptions terminal{.style = given.is_quiet ? ProgressStyle::silent : is_animated ? ProgressStyle::animated : ProgressStyle::plain,
                                 .shows_host = view.shows_host, .is_verbose = given.is_verbose, .may_prompt = can_ask, .palette = around.err};
  return {.view = std::move(view), .run = std::move(run), .can_ask = can_ask, .assumes_yes = given.run.assume_yes, .out_palette = around.out,
          .err_palette = around.err, .terminal = terminal, .stop = around.interruption.stop};
}

Report call(const Invocation& given, const ManifestText& text, const RunOptions& options, Console& console, const Surroundings& around) {
  Engine& engine = around.services.engine;
  const std::stop_token& stop = around.interruption.stop;
  switch (given.verb) {
    case Verb::plan: return engine.plan(text, options, console, stop);
    case Verb::apply: return engine.apply(text, options, console, stop);
    case Verb::verify: return engine.verify(text, options, given.verify, console, stop);
    case Verb::status: return engine.status(text, options, console, stop);
    case Verb::history: return engine.history(text, options, console, stop);
    case Verb::rollback: return engine.rollback(text, options, given.rollback, console, stop);
    case Verb::prune: return engine.prune(text, options, given.prune, console, stop);
    case Verb::init: case Verb::validate: case Verb::inspect: case Verb::schema: case Verb::explain: break;
  }
  return {.run = {}, .outcomes = {}, .exit_code = info(ErrorCode::internal).exit_code};
}

std::optional<RunLog> open_log(const Invocation& given, const std::string& run, const Surroundings& around) {
  const std::string folder = run_log_folder(around.io);
  auto log = folder.empty() ? Result<RunLog>(Error(ErrorCode::io, "no run log: neither XDG_STATE_HOME nor HOME is set")) : RunLog::open(folder, run);
  if (log) {
    const Envelope envelope{.run = run, .now_ns = around.io.clock->realtime_ns()};
    log->write(json_start(envelope, spec(given.verb).name, around.arguments, around.services.version));
    return std::move(*log);
  }
  if (!given.is_quiet) around.io.err(error_text(log.error(), around.err, {.severity = Severity::warning, .at = {}, .run_log = {}}));
  return std::nullopt;
}

std::string new_run(const Io& io) { return make_run_name(io.clock->realtime_ns(), io.random()); }

int run_on_one(const Invocation& given, const Good& manifest, std::size_t manifests, const Surroundings& around) {
  const std::string run = new_run(around.io);
  std::optional<RunLog> log = open_log(given, run, around);
  Console console(around.io, log ? &*log : nullptr, console_options(given, make_view(given, manifest, manifests), run, around));
  RunOptions options = given.run;
  options.batch = given.no_input || !around.io.in_is_terminal || !around.io.err_is_terminal;
  options.run = run;
  const auto began = around.io.clock->steady();
  Report report;
  {
    const std::stop_callback stopping(around.interruption.stop, [&] { console.say_stopping(); });
    const Ticker ticker(console, around.io.has_ticker && !given.is_quiet);
    report = call(given, manifest.text, options, console, around);
  }
  int code = interrupted_exit_code(report.exit_code, around.interruption.signal());
  if (code == 0 && given.has_exit_code && console.saw_changes()) code = 4;
  console.finish(report, code, Seconds(around.io.clock->steady() - began).count());
  return code;
}

}  // namespace

int run_on_manifests(const Invocation& given, const Surroundings& around) {
  std::vector<std::string> files = given.manifests;
  if (files.empty()) files.emplace_back(kDefaultManifest);
  // All are read before the first is run: a typo in the third must not leave two applied.
  std::vector<Good> manifests;
  std::vector<int> codes;
  for (const std::string& file : files) {
    int code = 0;
    if (auto good = read_manifest(file, given, around, code)) manifests.push_back(std::move(*good));
    else codes.push_back(code);
  }
  if (!codes.empty()) {
    if (!given.is_quiet && files.size() > codes.size()) around.io.err(fmt::format("\n{}: nothing was run\n", around.err.bold("note")));
    return combined_exit_code(codes);
  }
  if (given.rollback.to_generation && given.run.hosts.empty() && manifests[0].summary.targets.size() > 1)
    return fail(usage_error(fmt::format("'--to {}' needs one host: generations are numbered on each", *given.rollback.to_generation))
                    .hint(fmt::format("add `--host {}`, or give a run: `envsync history{}` lists them", shell_word(manifests[0].summary.targets[0]),
                                      same_manifest(files[0], given.overrides))), around);
  for (std::size_t i = 0; i < manifests.size(); ++i) {
    if (around.interruption.stop.stop_requested()) {
      if (!given.is_quiet) around.io.err(fmt::format("{}: '{}' was not begun\n", around.err.bold("note"), safe(manifests[i].text.file)));
      codes.push_back(interrupted_exit_code(info(ErrorCode::interrupted).exit_code, around.interruption.signal()));
      break;
    }
    codes.push_back(run_on_one(given, manifests[i], manifests.size(), around));
  }
  return combined_exit_code(codes);
}

int run_validate(const Invocation& given, const Surroundings& around) {
  const std::string file = given.manifests.empty() ? kDefaultManifest : given.manifests[0];
  int code = 0;
  const auto good = read_manifest(file, given, around, code);
  if (!good) return code;
  const ManifestSummary& summary = good->summary;
  if (given.has_json) {
    const Envelope envelope{.run = "", .now_ns = around.io.clock->realtime_ns()};
    around.io.out(json_manifest(envelope, file, summary.name, summary.path, summary.source, summary.targets) + "\n");
  } else if (!given.is_quiet) {
    around.io.out(fmt::format("{} is valid: '{}', {} from {} to {}. Next: envsync plan{}\n", safe(file), safe(summary.name), safe(summary.path), safe(summary.source),
                              summary.targets.size() == 1 ? safe(summary.targets[0]) : count(summary.targets.size(), "host"), same_manifest(file, given.overrides)));
  }
  return 0;
}

}  // namespace envsync::cli
