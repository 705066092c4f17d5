// SPDX-License-Identifier: MIT
// A hint is a command that can be pasted: the engine writes `envsync VERB`, here the words are added that this run was given to
// reach the same manifest and hosts.
#pragma once

#include <string>

#include <envsync/event.hpp>

#include "cli/view.hpp"

namespace envsync::cli {

/// Completes what stands between backquotes in the error's hints. `host`: whose error it is, or empty.
Error with_commands(Error error, const View& view, const std::string& host);
/// The same for every error that the event carries.
Event with_commands(const Event& event, const View& view);

}  // namespace envsync::cli
