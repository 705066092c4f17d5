// SPDX-License-Identifier: MIT
// Scripts that start the environment they lie in: whatever they said where they came from, after an overlay they name the target's
// interpreter, and the rows of RECORD that list them say what they are now.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/overlay.hpp"

namespace envsync::python {

// LIMIT: launchers have some 300 bytes; what is larger than this is a program, and stays as it is.
inline constexpr u64 kScriptBytesMax = 256 * 1024;

/// The first line or lines that start `interpreter` with `arguments`: plain, or through /bin/sh where the kernel would not read it whole.
std::string launcher_lines(std::string_view interpreter, std::string_view arguments = {});

/// The script started by `interpreter`. nullopt where it is to stay as it is: no Python script, one of the system's Python or of `env`,
/// or one that finds its interpreter beside itself. Knows the plain form, distlib's and uv's /bin/sh form, and "#!python".
std::optional<std::string> with_interpreter(std::string_view script, std::string_view interpreter);

/// The interpreter that a script names, and where: "/x/bin/python3" in line 1, or in line 2 of the /bin/sh forms. nullopt where it names none, or
/// finds it beside itself.
struct NamedInterpreter { std::string program; u32 line = 1; };
std::optional<NamedInterpreter> interpreter_of(std::string_view script);

/// As an installer generates it.
std::string generated_script(const EntryPoint& entry_point, std::string_view interpreter);

/// The paths in the origin's tree whose texts finish_scripts() wants: small files that came into bin/.
std::vector<tree::RelPath> wanted_scripts(const Overlay& overlay);

/// Writes scripts and the RECORDs that list them anew, into overlay.desired and overlay.made; they are taken from the origin no longer.
/// `files`: the origin's small files and scripts, by their paths there; `root`: the target's environment, absolute.
Result<void> finish_scripts(Overlay& overlay, const SmallFiles& files, std::string_view root);

}  // namespace envsync::python
