// SPDX-License-Identifier: MIT
// Wheels onto a disk, each file checked against its wheel's RECORD while it is written.
#pragma once

#include <functional>
#include <stop_token>

#include "os/files.hpp"
#include "wheel/layout.hpp"

namespace envsync::wheel {

struct Opened { Archive archive; Layout layout; };
/// Reads a wheel's list and texts. `folder` holds the file `name`.
Result<Opened> open_wheel(int folder, const std::string& name);

using Progress = std::function<void(u64 bytes_done, u64 bytes_total)>;  // from any thread, one at a time

/// Writes all of them into the empty folder `root`. Where several bring one path, the last one's stays, as with pip.
Result<void> unpack(os::Files& files, const std::vector<Opened>& wheels, int root, const Progress& progress, std::stop_token stop);

}  // namespace envsync::wheel
