// SPDX-License-Identifier: MIT
#include "cli/inspection_text.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "cli/error_text.hpp"

namespace envsync::cli {

namespace {

constexpr std::size_t kLargest = 20;
constexpr std::size_t kSharedShown = 5;
constexpr std::size_t kWidth = 100;

std::string fact(std::string_view label, std::string_view text) { return fmt::format("  {:<13} {}\n", label, text); }

std::string heading(const Inspection& found, const Palette& palette) {
  std::vector<std::string> parts{"Python " + (found.python_version.empty() ? "of no known version" : safe(found.python_version))};
  if (!found.implementation.empty()) parts[0] += fmt::format(" ({})", safe(found.implementation));
  if (!found.made_by.empty()) parts.push_back("made by " + safe(found.made_by));
  return fmt::format("{}   {}\n", palette.bold(fmt::format("{}:{}", safe(found.host), printable(found.path))), join(parts, ", "));
}

std::string interpreter(const Inspection& found, const Palette& palette) {
  const std::string way = fmt::format("bin/python is {}", printable(found.program));
  return found.answer.empty() ? way + ", " + palette.red("which does not run here") : fmt::format("{}, which runs: {}", way, safe(found.answer));
}

/// "198 distributions, by uv" or "... (uv 197, pip 1)".
std::string installers(const Inspection& found) {
  std::map<std::string, u64> counts;
  for (const DistributionFacts& one : found.distributions) ++counts[one.installer.empty() ? "unknown" : safe(one.installer)];
  std::string out = count(found.distributions.size(), "distribution");
  if (counts.size() == 1) return counts.begin()->first == "unknown" ? out : out + ", installed by " + counts.begin()->first;
  std::vector<std::string> parts;
  for (const auto& [name, number] : counts) parts.push_back(fmt::format("{} {}", name, number));
  return parts.empty() ? out : fmt::format("{}, installed by {}", out, join(parts, ", "));
}

std::string bytecode(const BytecodeFacts& code) {
  if (code.files == 0) return "none";
  std::vector<std::string> parts{fmt::format("{}, {}", count(code.files, "file"), human_bytes(code.bytes))};
  if (code.older > 0) parts.push_back(fmt::format("{} older than the source", thousands(code.older)));
  if (code.orphaned > 0) parts.push_back(fmt::format("{} of sources that went", thousands(code.orphaned)));
  if (code.sourceless > 0) parts.push_back(fmt::format("{} run without a source", thousands(code.sourceless)));
  return join(parts, "; ");
}

std::string shared(const SharedPaths& group) {
  std::vector<std::string> names;
  for (const std::string& name : group.owners) names.push_back(safe(name));
  std::string out = fmt::format("{} of {}", count(group.paths, "path"), join(names, ", "));
  if (group.differing == 0) return out + ": the same in all";
  out += fmt::format(": {} {} in their RECORDs", thousands(group.differing), group.differing == 1 ? "differs" : "differ");
  if (group.unmatched == 0) return out + "; what is there is what one of them says";
  return out + fmt::format("; {} {} what none of them says", thousands(group.unmatched), group.unmatched == 1 ? "is" : "are");
}

std::string all_shared(const Inspection& found, bool shows_all) {
  std::string out;
  const std::size_t shown = shows_all ? found.shared.size() : std::min(kSharedShown, found.shared.size());
  for (std::size_t i = 0; i < shown; ++i) out += wrap(shared(found.shared[i]), kWidth, fmt::format("  {:<13} ", i == 0 ? "shared" : ""), 16);
  if (shown < found.shared.size()) out += fact("", fmt::format("and {} more; -v shows them", count(found.shared.size() - shown, "group")));
  return out;
}

std::string odd(const DistributionFacts& one) {
  std::vector<std::string> parts;
  if (one.editable) parts.emplace_back("editable");
  if (one.missing > 0) parts.push_back(fmt::format("{} missing", count(one.missing, "file")));
  if (!one.unreadable.empty()) parts.push_back(safe(one.unreadable));
  return parts.empty() ? "" : "  " + join(parts, ", ");
}

std::string distributions(const Inspection& found, bool shows_all) {
  std::string out;
  const std::size_t all = found.distributions.size();
  const std::size_t shown = shows_all || all <= kLargest + 1 ? all : kLargest;
  for (std::size_t i = 0; i < shown; ++i) {
    const DistributionFacts& one = found.distributions[i];
    out += fmt::format("  {:>8}  {} {}  ({}){}\n", human_bytes(one.bytes), safe(one.name), safe(one.version), count(one.files, "file"), odd(one));
  }
  if (shown == all) return out;
  u64 rest = 0;
  for (std::size_t i = shown; i < all; ++i) rest += found.distributions[i].bytes;
  return out + fmt::format("  {:>8}  in {} more distributions; -v lists them\n", human_bytes(rest), thousands(all - shown));
}

}  // namespace

std::string inspection_text(const Inspection& found, bool shows_all, const Palette& palette) {
  std::string out = heading(found, palette);
  out += fact("interpreter", interpreter(found, palette));
  if (!found.base.empty()) out += fact("base", printable(found.base));
  out += fact("content", fmt::format("{}, {}; {}", count(found.files, "file"), human_bytes(found.bytes), installers(found)));
  out += fact("bytecode", bytecode(found.bytecode));
  if (found.unowned_files > 0) out += fact("unowned", fmt::format("{}, {}, of no distribution", count(found.unowned_files, "file"), human_bytes(found.unowned_bytes)));
  out += all_shared(found, shows_all);
  out += distributions(found, shows_all);
  for (const Finding& finding : found.findings)
    if (shows_all || finding.severity != Severity::note) out += finding_text(finding, palette);
  return out;
}

}  // namespace envsync::cli
