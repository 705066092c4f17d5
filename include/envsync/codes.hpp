// SPDX-License-Identifier: MIT
// Error codes: one table gives each its name on the terminal and in JSON, its exit code and its long explanation.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include <envsync/types.hpp>

namespace envsync {

enum class ErrorCode : u16 {
  failed,              // 1   an operation failed and no other code says why
  io,                  // 1   the operating system refused an operation on a file
  usage,               // 2   wrong command line
  not_built,           // 2   a flag or key of the design that this version does not have
  manifest_invalid,    // 10
  locked,              // 11  another run holds the environment
  connect_failed,      // 12  host not reached, or the agent did not come up
  auth_failed,         // 12
  host_key_unknown,    // 12
  host_key_mismatch,   // 12
  connection_lost,     // 12
  protocol,            // 12  the other side said something that it must not
  invariant_violated,  // 13
  adoption_refused,    // 13  a non-empty path that envsync does not know
  delete_limit,        // 13
  source_missing,      // 13  the source is absent, empty or not an environment
  source_changed,      // 1   a file changed while it was read
  overlay_refused,     // 13  an overlay cannot be laid onto the environment without breaking it
  unreadable,          // 13  an entry that cannot be read, or a special file
  wheel_refused,       // 13  a wheel that is damaged or hostile, or two of one distribution
  no_space,            // 13
  place_refused,       // 13  the place cannot hold the guarantee asked for
  in_use,              // 13
  changed_meanwhile,   // 1   the target changed while the plan ran; nothing was swapped
  drift_refused,       // 14
  stale_plan,          // 14
  content_gone,        // 1   a kept generation names content that no longer exists
  no_generation,       // 1   nothing to roll back to
  check_failed,        // 15
  rolled_back,         // 16  failed after the swap, the old tree is back
  interference,        // 17  somebody moved things that only envsync may move: a person is needed
  corrupt,             // 1   a file of envsync's own state does not decode
  internal,            // 70
  interrupted,         // 130
  terminated,          // 143
};

struct CodeInfo {
  ErrorCode code;
  std::string_view name;     // as printed: error[name]
  int exit_code;
  std::string_view explain;  // the long form, for `envsync explain NAME`; paragraphs separated by blank lines
};

/// Every code, in order of the enum.
std::span<const CodeInfo> all_codes();
const CodeInfo& info(ErrorCode code);
std::optional<ErrorCode> code_by_name(std::string_view name);

}  // namespace envsync
