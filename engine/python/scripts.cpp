// SPDX-License-Identifier: MIT
#include "python/scripts.hpp"

#include "python/sha256.hpp"
#include "python/text.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace envsync::python {
namespace {

/// LIMIT: what every Linux reads of a first line, "#!" and the line's end included.
constexpr std::size_t kFirstLineMax = 127;
constexpr std::string_view kShell = "#!/bin/sh";
constexpr std::string_view kShellExec = "'''exec' ", kShellEnd = "' '''";
constexpr std::string_view kShellArguments = " \"$0\" \"$@\"";

/// The folder of an interpreter that belongs to no environment.
bool is_systems(std::string_view folder) {
  constexpr std::array<std::string_view, 4> kFolders{"/usr/bin", "/bin", "/usr/local/bin", "/usr/libexec"};
  return std::ranges::find(kFolders, folder) != kFolders.end();
}

/// Whether a script that starts `program` belongs to an environment: /x/bin/python3.12, or python alone, as wheels write it.
bool is_environments_python(std::string_view program) {
  const std::size_t slash = program.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? program : program.substr(slash + 1);
  if (!name.starts_with("python") && !name.starts_with("pypy")) return false;
  return slash == std::string_view::npos || !is_systems(program.substr(0, slash));
}

/// A word of a shell at the front of `text`: bare, or in quotes of either kind; nullopt for an open quote.
std::optional<std::string> take_shell_word(std::string_view& text) {
  const char quote = text.empty() ? ' ' : text.front();
  if (quote != '\'' && quote != '"') return std::string(take_until(text, ' '));
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) {
      text.remove_prefix(i + 1);
      return out;
    }
    if (quote == '"' && text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return std::nullopt;
}

/// In quotes that sh and Python, which reads the line as a string, both understand.
std::string shell_word(std::string_view word) {
  if (word.find('\'') == std::string_view::npos) return fmt::format("'{}'", word);
  std::string out = "\"";
  for (const char c : word) {
    if (c == '"' || c == '$' || c == '`' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// A launcher in the /bin/sh form, from its second line: its interpreter with the arguments, and what follows; nullopt where it is to stay.
struct ShellLauncher { std::string program, arguments; std::string_view after; };
std::optional<ShellLauncher> shell_launcher(std::string_view rest) {
  std::string_view exec = take_until(rest, '\n');
  const std::string_view end = take_until(rest, '\n');
  if (!exec.starts_with(kShellExec) || !end.starts_with(kShellEnd)) return std::nullopt;
  exec = trimmed(exec.substr(kShellExec.size()));
  if (!exec.ends_with(trimmed(kShellArguments))) return std::nullopt;
  exec.remove_suffix(trimmed(kShellArguments).size());
  // "$(dirname -- ...)"/'python' finds it beside the script.
  if (exec.starts_with("\"$(")) return std::nullopt;
  const auto program = take_shell_word(exec);
  if (!program || !is_environments_python(*program)) return std::nullopt;
  return ShellLauncher{*program, std::string(trimmed(exec)), rest};
}

}  // namespace

std::string launcher_lines(std::string_view interpreter, std::string_view arguments) {
  const std::string blank = arguments.empty() ? "" : " ";
  const std::string plain = fmt::format("#!{}{}{}\n", interpreter, blank, arguments);
  if (plain.size() <= kFirstLineMax && interpreter.find_first_of(" \t") == std::string_view::npos) return plain;
  return fmt::format("{}\n{}{}{}{}{}\n{}\n", kShell, kShellExec, shell_word(interpreter), blank, arguments, kShellArguments, kShellEnd);
}

std::optional<std::string> with_interpreter(std::string_view script, std::string_view interpreter) {
  if (!script.starts_with("#!")) return std::nullopt;
  std::string_view rest = script;
  const std::string_view first = trimmed(take_until(rest, '\n').substr(2));
  if (first == kShell.substr(2)) {
    const auto launcher = shell_launcher(rest);
    if (!launcher) return std::nullopt;
    return launcher_lines(interpreter, launcher->arguments) + std::string(launcher->after);
  }
  const std::size_t blank = std::min(first.find_first_of(" \t"), first.size());
  if (!is_environments_python(first.substr(0, blank))) return std::nullopt;
  return launcher_lines(interpreter, trimmed(first.substr(blank))) + std::string(rest);
}

std::optional<NamedInterpreter> interpreter_of(std::string_view script) {
  if (!script.starts_with("#!")) return std::nullopt;
  std::string_view rest = script;
  const std::string_view first = trimmed(take_until(rest, '\n').substr(2));
  if (first == kShell.substr(2)) {
    const auto launcher = shell_launcher(rest);
    if (!launcher) return std::nullopt;
    return NamedInterpreter{launcher->program, 2};
  }
  const std::string_view program = first.substr(0, first.find_first_of(" \t"));
  if (!is_environments_python(program)) return std::nullopt;
  return NamedInterpreter{std::string(program), 1};
}

std::string generated_script(const EntryPoint& point, std::string_view interpreter) {
  const std::string_view import = std::string_view(point.object).substr(0, point.object.find('.'));
  return launcher_lines(interpreter) + fmt::format("# -*- coding: utf-8 -*-\nimport sys\nfrom {} import {}\nif __name__ == \"__main__\":\n    sys.exit({}())\n",
                                                   point.module, import, point.object);
}

}  // namespace envsync::python
