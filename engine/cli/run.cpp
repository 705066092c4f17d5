// SPDX-License-Identifier: MIT
#include "cli/run.hpp"

#include <exception>

#include <fmt/format.h>

#include "cli/error_text.hpp"
#include "cli/help.hpp"
#include "cli/verbs.hpp"

namespace envsync::cli {

namespace {

bool has_color(ColorWhen when, bool is_terminal, const Io& io) {
  switch (when) {
    case ColorWhen::always: return true;
    case ColorWhen::never: return false;
    case ColorWhen::automatic: return is_terminal && io.environment("NO_COLOR").empty() && io.environment("TERM") != "dumb";
  }
  return false;
}

int show_page(const PageWanted& wanted, const Services& services, const Io& io) {
  switch (wanted.page) {
    case Page::bare: io.err(short_help()); return info(ErrorCode::usage).exit_code;
    case Page::help: io.out(long_help()); return 0;
    case Page::verb_help: io.out(verb_help(wanted.verb)); return 0;
    case Page::version: io.out(fmt::format("envsync {}\n", services.version)); return 0;
  }
  return 0;
}

int run_explain(const Invocation& given, const Surroundings& around) {
  const auto code = find_code(given.code);
  if (!code) return fail(code.error(), around);
  around.io.out(explanation(**code));
  return 0;
}

int run_verb(const Invocation& given, const Surroundings& around) {
  switch (given.verb) {
    case Verb::init: return run_init(given, around);
    case Verb::validate: return run_validate(given, around);
    case Verb::plan: case Verb::apply: case Verb::verify: case Verb::status: case Verb::history: case Verb::rollback: case Verb::prune:
      return run_on_manifests(given, around);
    case Verb::inspect: return run_inspect(given, around);
    case Verb::schema: around.io.out(std::string(around.services.schema) + (around.services.schema.ends_with('\n') ? "" : "\n")); return 0;
    case Verb::explain: return run_explain(given, around);
  }
  return info(ErrorCode::internal).exit_code;
}

}  // namespace

int fail(const Error& error, const Surroundings& around) {
  around.io.err(error_text(error, around.err));
  return info(error.code).exit_code;
}

int run(std::span<const std::string> arguments, Services& services, const Io& io, const Interruption& interruption) {
  const Palette plain_err(has_color(ColorWhen::automatic, io.err_is_terminal, io));
  try {
    auto parsed = parse(arguments);
    if (const auto* page = std::get_if<PageWanted>(&parsed)) return show_page(*page, services, io);
    const std::vector<std::string> words(arguments.begin(), arguments.end());
    const ColorWhen when = std::holds_alternative<Invocation>(parsed) ? std::get<Invocation>(parsed).color : ColorWhen::automatic;
    const Surroundings around{.services = services, .io = io, .interruption = interruption, .arguments = words,
                              .out = Palette(has_color(when, io.out_is_terminal, io)), .err = Palette(has_color(when, io.err_is_terminal, io))};
    if (const auto* error = std::get_if<Error>(&parsed)) return fail(*error, around);
    return run_verb(std::get<Invocation>(parsed), around);
  } catch (const std::exception& problem) {
    // Out of memory, or a bug: whatever a host was doing, its agent leaves old or new at the path.
    io.err(error_text(Error(ErrorCode::internal, fmt::format("an exception reached the command line: {}", problem.what())), plain_err));
    return info(ErrorCode::internal).exit_code;
  }
}

}  // namespace envsync::cli
