// SPDX-License-Identifier: MIT
// `inspect` looks at one environment; what it and `init` share: a run without a manifest.
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/inspection_text.hpp"
#include "cli/json_lines.hpp"
#include "cli/verbs.hpp"

#include "base/try.hpp"

namespace envsync::cli {

Result<void> without_manifest(const Invocation& given, const Surroundings& around, const std::function<Result<void>(const RunOptions&, Console&)>& work) {
  const Io& io = around.io;
  const bool can_ask = !given.no_input && io.in_is_terminal && io.err_is_terminal;
  const bool is_animated = io.err_is_terminal && io.environment("TERM") != "dumb";
  View view{.verb = given.verb, .manifest = {}, .manifest_words = {}, .connection_words = {}, .host_words = {}, .consent_words = {}};
  view.has_json = given.has_json;
  view.is_quiet = given.is_quiet;
  view.is_verbose = given.is_verbose;
  const TerminalOptions terminal{.style = given.is_quiet ? ProgressStyle::silent : is_animated ? ProgressStyle::animated : ProgressStyle::plain,
                                 .shows_host = false, .is_verbose = given.is_verbose, .may_prompt = can_ask, .palette = around.err};
  RunOptions options = given.run;
  options.run = make_run_name(io.clock->realtime_ns(), io.random());
  Console console(io, nullptr, {.view = view, .run = options.run, .can_ask = can_ask, .assumes_yes = given.run.assume_yes,
                                .out_palette = around.out, .err_palette = around.err, .terminal = terminal, .stop = around.interruption.stop});
  options.batch = !can_ask;
  const std::stop_callback stopping(around.interruption.stop, [&] { console.say_stopping(); });
  auto done = work(options, console);
  if (!done) console.show_error(done.error());
  return done;
}

int run_inspect(const Invocation& given, const Surroundings& around) {
  Inspection found;
  Envelope envelope;
  const auto looked = without_manifest(given, around, [&](const RunOptions& options, Console& console) -> Result<void> {
    envelope.run = options.run;
    TRY(found, around.services.engine.inspect(given.place, options, console, around.interruption.stop));
    return ok();
  });
  if (!looked) return interrupted_exit_code(info(looked.error().code).exit_code, around.interruption.signal());
  if (!given.has_json) {
    around.io.out(inspection_text(found, given.is_verbose, around.out));
    return 0;
  }
  envelope.now_ns = around.io.clock->realtime_ns();
  around.io.out(json_inspection(found, envelope) + "\n");
  return 0;
}

}  // namespace envsync::cli
