// SPDX-License-Identifier: MIT
// One overlay with its two sides, and what a test asks of the result, as short lines.
#pragma once

#include <fmt/format.h>

#include "python/overlay.hpp"
#include "support/python_environment.hpp"

namespace envsync::test {

/// An overlay with the trees that it was made of, and what a test asks of it.
struct Laid {
  Environment base, origin;
  python::Overlay overlay;

  /// "path" of every file of site-packages that is no dist-info's, and "/path" of those outside, with '+' where the origin's came.
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const tree::Entry& entry : overlay.desired.entries()) {
      const std::string& path = entry.path.bytes();
      if (entry.is_dir() || path.find(".dist-info/") != std::string::npos || path == "pyvenv.cfg") continue;
      const bool taken = std::ranges::binary_search(overlay.taken, entry.path, {}, &python::TakenPath::path);
      out.push_back((taken ? "+" : "") + (path.starts_with(kSite) ? path.substr(kSite.size()) : "/" + path));
    }
    return out;
  }
  /// Names of the folders directly in site-packages.
  std::vector<std::string> folders() const {
    std::vector<std::string> out;
    for (const tree::Entry& entry : overlay.desired.entries())
      if (entry.is_dir() && entry.path.parent().bytes() + "/" == kSite) out.push_back(std::string(entry.path.name()));
    return out;
  }
  std::vector<std::string> steps() const {
    std::vector<std::string> out;
    for (const python::PackageStep& step : overlay.packages) {
      const char kind = step.kind == python::StepKind::added ? '+' : step.kind == python::StepKind::evicted ? '-' : '~';
      out.push_back(fmt::format("{} {} {}>{} ({})", kind, step.name, step.from_version, step.to_version, step.why));
    }
    return out;
  }
  std::vector<std::string> findings() const {
    std::vector<std::string> out;
    for (const Finding& finding : overlay.findings)
      out.push_back(fmt::format("{} {}: {}", std::string_view("nwe")[static_cast<std::size_t>(finding.severity)], finding.code, finding.what));
    return out;
  }
};

inline Laid lay(Environment origin, Environment base, const python::OverlayOptions& options) {
  Laid out{std::move(base), std::move(origin), {}};
  python::DistributionSet below = out.base.set(), above = out.origin.set();
  below.learn(out.base.sums);
  above.learn(out.origin.sums);
  auto laid = python::lay_over(below, above, options, python::MarkerEnvironment::for_python("3.12"));
  ENVSYNC_CHECK(laid.has_value());
  out.overlay = std::move(*laid);
  return out;
}

}  // namespace envsync::test
