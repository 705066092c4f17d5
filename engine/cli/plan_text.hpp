// SPDX-License-Identifier: MIT
// What a plan shows of one host, and what it ends with.
#pragma once

#include <string>

#include <envsync/event.hpp>

#include "cli/view.hpp"

namespace envsync::cli {

std::string plan_text(const PlanEvent& plan, const View& view, const Palette& palette);
/// "+ lib/new.py", escaped; 'm' and 't' say what they mean.
std::string path_text(const PathLine& line, const Palette& palette);
/// "~ torch 2.9.0 → 2.9.1", without figures.
std::string package_text(const PackageLine& line, const Palette& palette);

}  // namespace envsync::cli
