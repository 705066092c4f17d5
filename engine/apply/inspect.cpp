// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "apply/place.hpp"
#include "apply/texts.hpp"
#include "python/inspection.hpp"
#include "python/lint.hpp"
#include "python/path_findings.hpp"

namespace envsync::apply {

namespace {

/// What its own Python says of its version; empty where it does not run.
Result<std::string> answer_of(Run& run, Session& session, const std::string& program) {
  TRY(const format::ProbeReply reply, session.endpoint->probe({program, {"-I", "-B", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"}}, run.stop));
  if (!reply.exists || reply.status != 0) return std::string{};
  return reply.output.substr(0, reply.output.find_last_not_of(" \r\n") + 1);
}

/// Entries that an apply could not copy.
void add_problems(const format::ScanReply& scan, std::vector<Finding>& findings) {
  for (const format::ProblemInfo& problem : scan.problems)
    findings.push_back({"unreadable", Severity::warning, problem.path, fmt::format("{}: an apply refuses it", problem.what)});
  if (scan.problems_total > scan.problems.size())
    findings.push_back({"unreadable", Severity::warning, {}, fmt::format("{} more entries that cannot be copied", scan.problems_total - scan.problems.size())});
}

Result<Inspection> inspected(Run& run, Source& place) {
  TRY(const tree::Tree* tree, place.tree());
  Session& session = place.session();
  const format::ScanReply& scan = session.scan;
  TRY(const python::SmallFiles* texts, place.texts(python::wanted_small_files(*tree)));
  TRY(const python::SmallFiles launchers, place.read("paths", python::wanted_path_files(*tree)));
  auto set = python::DistributionSet::read(*tree, *texts, scan.path);
  TRY(const python::Sums sums, fetch_sums(run, session, set.contested()));
  set.learn(sums);
  Inspection out = python::inspect(set, launchers, scan.environment.pyvenv, scan.path);
  out.host = place.place().host.name;
  out.path = scan.path;
  out.program = scan.environment.bin_python_target;
  TRY(out.answer, answer_of(run, session, scan.path + "/bin/python"));
  add_problems(scan, out.findings);
  if (auto shared = python::shared_inodes(scan.linked_alone, scan.files)) out.findings.push_back(*std::move(shared));
  return out;
}

}  // namespace

Result<Inspection> EngineImpl::inspect(const std::string& text, const RunOptions& options, Observer& observer, std::stop_token stop) {
  TRY(manifest::Source place, place_of(text));
  place.bytecode = tree::Bytecode::ship;  // looked at as it is, bytecode too
  Inspection out;
  TRY_STATUS(look(place, Reading::inspected, options, observer, std::move(stop), [&](Run& run, Source& source) -> Result<void> {
    TRY(out, inspected(run, source));
    return ok();
  }));
  return out;
}

}  // namespace envsync::apply
