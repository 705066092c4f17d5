// SPDX-License-Identifier: MIT
// SHA-256, for the rows of RECORD that are written here. What is read from disks is summed by the agent.
#pragma once

#include "base/sha256.hpp"

namespace envsync::python {

using envsync::sha256;

}  // namespace envsync::python
