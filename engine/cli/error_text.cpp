// SPDX-License-Identifier: MIT
#include "cli/error_text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace envsync::cli {

namespace {

/// `failed` says no more than "error" does, so what is no error leaves it out.
std::string heading(Severity severity, std::string_view code, const Palette& palette) {
  const bool is_bare = code.empty() || (severity != Severity::error && code == info(ErrorCode::failed).name);
  const std::string bracket = is_bare ? "" : fmt::format("[{}]", code);
  switch (severity) {
    case Severity::error: return palette.red("error" + bracket);
    case Severity::warning: return palette.yellow("warning" + bracket);
    case Severity::note: return palette.blue("note" + bracket);
  }
  return {};
}

/// `label: text`, where later lines of the text (what ssh printed, say) stand under its beginning.
std::string labelled(std::string_view indent, const std::string& label, std::size_t label_width, std::string_view text) {
  std::string out;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  for (bool is_first = true; is_first || !text.empty(); is_first = false) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out += fmt::format("{}{}{}\n", indent, is_first ? label : std::string(label_width, ' '), safe(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Tabs become four spaces, so that what stands under the line fits whatever the terminal makes of a tab.
std::string untabbed(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t tab = text.find('\t');
    out += safe(text.substr(0, tab));
    if (tab == std::string_view::npos) return out;
    out += "    ";
    text.remove_prefix(tab + 1);
  }
}

struct Quote { std::string line; std::size_t before = 0, under = 1; };

/// The line cut to what fits, with the place to underline in columns. The column counts bytes.
Quote quote(const Location& where) {
  std::string_view line = where.line_text;
  const std::size_t at = std::min<std::size_t>(where.column > 0 ? where.column - 1 : 0, line.size());
  std::size_t from = 0;
  // LIMIT: a minified manifest may have one line of a megabyte; show the neighbourhood of the place.
  constexpr std::size_t kShown = 140, kBefore = 60;
  if (line.size() > kShown && at > kBefore) {
    from = at - kBefore;
    while (from < at && (static_cast<unsigned char>(line[from]) & 0xc0) == 0x80) ++from;
  }
  const std::string lead = from > 0 ? "…" : "";
  const std::string before = lead + untabbed(line.substr(from, at - from));
  const std::string after = untabbed(line.substr(at, std::min<std::size_t>(kShown, line.size() - at)));
  const std::string marked = untabbed(line.substr(at, std::min<std::size_t>(where.length, line.size() - at)));
  Quote result;
  result.before = columns(before);
  result.line = clip(before + after, kShown);
  const std::size_t room = columns(result.line) > result.before ? columns(result.line) - result.before : 1;
  result.under = std::clamp<std::size_t>(columns(marked), 1, room);
  return result;
}

std::string place(const Location& where) {
  std::string out = safe(where.file);
  if (where.line > 0) out += fmt::format(":{}", where.line);
  if (where.line > 0 && where.column > 0) out += fmt::format(":{}", where.column);
  return out;
}

std::string where_text(const Error& error, const Palette& palette, const ErrorContext& context) {
  std::string out;
  std::size_t gutter = 3;
  if (error.where) {
    out += fmt::format("  {} {}\n", palette.blue("-->"), place(*error.where));
    if (error.where->line > 0 && !error.where->line_text.empty()) {
      const std::string number = std::to_string(error.where->line);
      const Quote quoted = quote(*error.where);
      gutter = number.size() + 1;
      const std::string bar = std::string(gutter, ' ') + palette.blue("|");
      out += fmt::format("{}\n{} {} {}\n{} {}{}\n", bar, palette.blue(number), palette.blue("|"), quoted.line, bar, std::string(quoted.before, ' '),
                         palette.red(std::string(quoted.under, '^')));
    }
  } else if (!context.at.empty()) {
    out += fmt::format("  {} {}\n", palette.blue("-->"), safe(context.at));
  }
  for (const std::string& note : error.at_notes) {
    // Lists of paths come as they would in a plan: "~ lib/a.py".
    const bool is_path_line = note.size() > 2 && note[1] == ' ' && std::string_view("~+-m").find(note[0]) != std::string_view::npos;
    out += is_path_line ? labelled("  ", "", 0, note) : labelled(std::string(gutter, ' '), "= note: ", 8, note);
  }
  return out;
}

std::string bug_text(const Error& error, const Palette& palette, const ErrorContext& context) {
  std::string out = labelled("", palette.red("internal error") + ": ", 16, error.what);
  for (const std::string& cause : error.causes) out += labelled("  ", "cause: ", 7, cause);
  std::string state;
  for (const std::string& note : error.notes) {
    std::string sentence = safe(note);
    if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    state += " " + sentence + ".";
  }
  out += fmt::format("  This is a bug in envsync.{}\n", state);
  if (!context.run_log.empty()) out += fmt::format("  Report it with the run log {}, which holds no file contents.\n", safe(context.run_log));
  return out;
}

}  // namespace

std::string error_text(const Error& error, const Palette& palette, const ErrorContext& context) {
  if (error.code == ErrorCode::internal && context.severity == Severity::error) return bug_text(error, palette, context);
  std::string out = labelled("", heading(context.severity, info(error.code).name, palette) + ": ", 2, error.what);
  out += where_text(error, palette, context);
  for (const std::string& cause : error.causes) out += labelled("  ", palette.bold("cause") + ": ", 7, cause);
  if (!error.notes.empty() || !error.hints.empty()) out += "\n";
  for (const std::string& note : error.notes) out += labelled("", palette.bold("note") + ": ", 6, note);
  for (const std::string& hint : error.hints) out += labelled("", palette.cyan("hint") + ": ", 6, hint);
  return out;
}

std::string finding_text(const Finding& finding, const Palette& palette) {
  std::string out = fmt::format("{}: {}\n", heading(finding.severity, safe(finding.code), palette), safe(finding.what));
  if (!finding.file.empty()) out += fmt::format("  {} {}\n", palette.blue("-->"), safe(finding.file));
  return out;
}

}  // namespace envsync::cli
