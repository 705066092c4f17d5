// SPDX-License-Identifier: MIT
// What uploads of other builds, and uploads that broke off, leave in a host's folder of agents.
#pragma once

#include <string>

#include "os/files.hpp"

namespace envsync::agent {

/// Deletes in `folder` the agents beyond the newest few beside `own`, and halves of uploads, once they are older than a day: so old
/// that nobody is just about to start or to finish one. What has another kind of name stays.
void drop_old_agents(os::Files& files, int folder, const std::string& own, i64 now_ns);
/// Of the program that runs, where it lies in such a folder.
void drop_old_agents(os::Files& files);

}  // namespace envsync::agent
