// SPDX-License-Identifier: MIT
// SHA-256, for the rows of RECORD that are written here. What is read from disks is summed by the agent.
#pragma once

#include "base/bytes.hpp"
#include "python/record.hpp"

namespace envsync::python {

Sha256 sha256(ByteView bytes);

}  // namespace envsync::python
