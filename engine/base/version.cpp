// SPDX-License-Identifier: MIT
#include <envsync/engine.hpp>

namespace envsync {

std::string_view version() { return "0.1.0"; }

}  // namespace envsync
