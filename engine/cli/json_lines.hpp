// SPDX-License-Identifier: MIT
// Events as JSON, one object a line: "v", "run", "ts", "event", "host", "code", then the event's own fields. Fields are
// only ever added. Text that is not UTF-8 is escaped as on the terminal; a path that is not UTF-8 comes as path_b64.
#pragma once

#include <string>
#include <vector>

#include <envsync/event.hpp>

namespace envsync::cli {

struct Envelope {
  std::string run;      // names this run's log; every line carries it. Empty (null): nothing was run
  i64 now_ns = 0;
};

enum class Paths : u8 { left_out, listed };

/// Without its newline.
std::string json_line(const Event& event, const Envelope& envelope, Paths paths);
/// What `inspect` found: event "inspection".
std::string json_inspection(const Inspection& found, const Envelope& envelope);
/// A run began: what was asked for, with the words of the command line.
std::string json_start(const Envelope& envelope, std::string_view verb, const std::vector<std::string>& arguments, std::string_view version);
std::string json_question(const Envelope& envelope, const Question& question, Answer answer);
/// The manifest is good: event "manifest".
std::string json_manifest(const Envelope& envelope, const std::string& file, const std::string& name, const std::string& path, const std::string& source,
                          const std::vector<std::string>& targets);

}  // namespace envsync::cli
