// SPDX-License-Identifier: MIT
#include "cli/plan_text.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "cli/error_text.hpp"

namespace envsync::cli {

namespace {

constexpr std::size_t kWidth = 100;

std::string fact(std::string_view label, std::string_view text) { return fmt::format("  {:<11} {}\n", label, text); }

char mark(PackageChange change) {
  switch (change) {
    case PackageChange::added: return '+';
    case PackageChange::removed: return '-';
    case PackageChange::changed: return '~';
    case PackageChange::rebuilt: return '~';
  }
  return '?';
}

std::string painted(char sign, std::string_view text, const Palette& palette) {
  return sign == '+' ? palette.green(text) : sign == '-' ? palette.red(text) : palette.yellow(text);
}

std::string heading(const PlanEvent& plan, const Palette& palette) {
  const std::string place = palette.bold(fmt::format("{}:{}", safe(plan.host), printable(plan.path)));
  if (plan.unchanged) return fmt::format("{}   generation {}, up to date\n", place, plan.generation_now ? std::to_string(*plan.generation_now) : "none");
  if (plan.path_absent && plan.generation_now)
    return fmt::format("{}   generation {} was deleted: nothing there → generation {}\n", place, *plan.generation_now, plan.generation_next);
  if (plan.path_absent) return fmt::format("{}   first apply: nothing there → generation {}\n", place, plan.generation_next);
  if (!plan.generation_now) return fmt::format("{}   not known to envsync: what is there becomes generation 0 → {}\n", place, plan.generation_next);
  return fmt::format("{}   generation {}{} → {}\n", place, *plan.generation_now, *plan.generation_now == 0 ? " (yours)" : "", plan.generation_next);
}

std::string route(const Route& route) {
  const std::string source = route.source == "local" ? "here" : safe(route.source), target = route.target == "local" ? "here" : safe(route.target);
  if (route.same_host) return fmt::format("{} → {} (one host: nothing crosses a wire)", source, target);
  if (route.relayed) return fmt::format("{} → here (relay, nothing stored) → {}", source, target);
  return fmt::format("{} → {}", source, target);
}

std::string figures(const PackageLine& line) {
  std::vector<std::string> parts;
  if (!line.why.empty()) parts.push_back(safe(line.why));
  if (line.files > 0) parts.push_back(count(line.files, "file"));
  if (line.files > 0 && line.bytes > 0) parts.push_back(human_bytes(line.bytes));
  return parts.empty() ? std::string() : fmt::format(" ({})", join(parts, ", "));
}

/// A short list one a line; a long one by names, wrapped; `is_summed`: a long one only as its sum.
std::string package_group(const std::vector<const PackageLine*>& lines, std::size_t one_a_line, bool is_summed, const Palette& palette) {
  std::string out;
  if (lines.empty()) return out;
  if (lines.size() <= one_a_line) {
    for (const PackageLine* line : lines) out += "  " + package_text(*line, palette) + figures(*line) + "\n";
    return out;
  }
  const char sign = mark(lines[0]->kind);
  PackageLine sum;
  std::vector<std::string> names;
  for (const PackageLine* line : lines) {
    sum.files += line->files;
    sum.bytes += line->bytes;
    names.push_back(package_text(*line, Palette()).substr(2));
  }
  const std::string first = fmt::format("  {} {}{}", painted(sign, std::string(1, sign), palette), count(lines.size(), "distribution"), figures(sum));
  if (is_summed) return first + "\n";
  return wrap(": " + join(names, ", "), kWidth, first, 4);
}

std::string packages(const PlanEvent& plan, const View& view, const Palette& palette) {
  std::vector<const PackageLine*> changed, added, removed;
  for (const PackageLine& line : plan.packages) {
    if (line.kind == PackageChange::added) added.push_back(&line);
    else if (line.kind == PackageChange::removed) removed.push_back(&line);
    else changed.push_back(&line);
  }
  const std::size_t all = plan.packages.size();
  const bool is_long = view.is_verbose || view.lists_files;
  std::string out = package_group(changed, is_long ? all : 40, false, palette) + package_group(added, is_long ? all : 12, plan.path_absent, palette) +
                    package_group(removed, is_long ? all : 12, false, palette);
  if (plan.packages_unchanged > 0) out += fmt::format("  = {} unchanged\n", count(plan.packages_unchanged, "distribution"));
  return out;
}

std::string files(const PlanEvent& plan) {
  std::vector<std::string> parts;
  if (plan.files_added > 0) parts.push_back("+" + thousands(plan.files_added));
  if (plan.files_removed > 0) parts.push_back("-" + thousands(plan.files_removed));
  if (plan.files_changed > 0) parts.push_back("~" + thousands(plan.files_changed));
  std::string changed = join(parts, " ");
  if (plan.metadata_changed > 0) changed += fmt::format("{}{} in modes or times only", changed.empty() ? "" : ", ", thousands(plan.metadata_changed));
  return fmt::format("{}; {} in the new tree, {}", changed.empty() ? "none" : changed, count(plan.paths_total, "path"), human_bytes(plan.bytes_total));
}

std::string content(const PlanEvent& plan) {
  std::string out = fmt::format("{} to read, at most {} to send, {} to write", human_bytes(plan.bytes_wanted), human_bytes(plan.bytes_to_send), human_bytes(plan.bytes_to_write));
  if (plan.seconds_expected) out += fmt::format(", about {}", rough_duration(*plan.seconds_expected));
  return out;
}

std::string disk(const PlanEvent& plan) {
  std::string out = fmt::format("{} needed, {} free", human_bytes(plan.disk_needed), human_bytes(plan.disk_free));
  if (plan.inodes_free != ~u64{0}) out += fmt::format("; {} needed, {} free", count(plan.inodes_needed, "inode"), thousands(plan.inodes_free));
  return out;
}

std::string guarantee(const PlanEvent& plan) {
  const std::string what = plan.commit_root.empty() ? "the whole environment" : "'" + printable(plan.commit_root) + "'";
  switch (plan.guarantee) {
    case Guarantee::atomic: return fmt::format("atomic: {} in one rename, old or new and nothing else", what);
    case Guarantee::brief_gap: return fmt::format("brief-gap: {} is missing between two renames", what);
    case Guarantee::per_file: return fmt::format("per-file: each file of {} is old or new", what);
  }
  return {};
}

std::string undo(const PlanEvent& plan, const View& view) {
  if (plan.path_absent) return "nothing to return to: the path is absent now";
  if (!plan.generation_now) return fmt::format("{} (returns to generation 0, what is there now)", view.command("rollback"));
  return fmt::format("{} (returns to generation {})", view.command("rollback"), *plan.generation_now);
}

std::string changes(const PlanEvent& plan, const View& view, const Palette& palette) {
  std::string out = packages(plan, view, palette);
  out += fact("files", files(plan));
  if (view.lists_files)
    for (const PathLine& line : plan.paths) out += "    " + path_text(line, palette) + "\n";
  out += fact("route", route(plan.route));
  if (!plan.route.transport.empty())
    out += fact("transport", safe(plan.route.transport) + (plan.route.transport_reason.empty() ? "" : ": " + safe(plan.route.transport_reason)));
  out += fact("content", content(plan));
  out += fact("disk", disk(plan));
  out += fact("commit", guarantee(plan));
  out += fact("undo", undo(plan, view));
  if (!plan.digest.empty()) out += fact("plan", safe(plan.digest));
  return out;
}

}  // namespace

std::string path_text(const PathLine& line, const Palette& palette) {
  const std::string path = printable(line.path);
  if (line.kind == 'm') return fmt::format("{} {} (mode, time or attributes)", painted('~', "~", palette), path);
  if (line.kind == 't') return fmt::format("{} {} (another type)", painted('~', "~", palette), path);
  return fmt::format("{} {}", painted(line.kind, std::string(1, line.kind), palette), path);
}

std::string package_text(const PackageLine& line, const Palette& palette) {
  // Files that no distribution owns are one line without a name.
  if (line.name.empty()) return painted('~', "~", palette) + " files of no distribution";
  const std::string from = safe(line.from_version), to = safe(line.to_version);
  std::string out = painted(mark(line.kind), std::string(1, mark(line.kind)), palette) + " " + safe(line.name);
  switch (line.kind) {
    case PackageChange::added: return to.empty() ? out : out + " " + to;
    case PackageChange::removed: return from.empty() ? out : out + " " + from;
    case PackageChange::changed: return fmt::format("{} {} → {}", out, from.empty() ? "?" : from, to.empty() ? "?" : to);
    case PackageChange::rebuilt: return to.empty() ? out + ", content differs" : fmt::format("{} {}, content differs", out, to);
  }
  return out;
}

std::string plan_text(const PlanEvent& plan, const View& view, const Palette& palette) {
  std::string out = heading(plan, palette);
  if (!plan.unchanged) out += changes(plan, view, palette);
  for (const std::string& process : plan.in_use) out += fact(&process == &plan.in_use.front() ? "in use" : "", safe(process));
  std::vector<std::string> codes;
  for (const Error& error : plan.refused_by) codes.emplace_back(info(error.code).name);
  if (!codes.empty()) out += fact("refused", palette.red(join(codes, ", ")));
  for (const Finding& finding : plan.findings) out += finding_text(finding, palette);
  return out;
}

}  // namespace envsync::cli
