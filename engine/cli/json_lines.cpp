// SPDX-License-Identifier: MIT
// The only file that knows nlohmann-json.
#include "cli/json_lines.hpp"

#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "cli/text.hpp"

namespace envsync::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Text for a JSON string: as it is where it is UTF-8 (JSON escapes control characters), else escaped.
std::string utf8(std::string_view text) { return is_utf8(text) ? std::string(text) : printable(text); }

Json opening(const Envelope& envelope, std::string_view event, const std::string& host, std::string_view code = {}) {
  Json json;
  json["v"] = 1;
  json["run"] = envelope.run.empty() ? Json(nullptr) : Json(utf8(envelope.run));
  json["ts"] = rfc3339(envelope.now_ns);
  json["event"] = event;
  json["host"] = host.empty() ? Json(nullptr) : Json(utf8(host));
  json["code"] = code.empty() ? Json(nullptr) : Json(utf8(code));
  return json;
}

/// Sets `key`, or `key`_b64 where the bytes are not UTF-8.
void put_path(Json& json, const std::string& key, const std::string& path) {
  if (is_utf8(path)) json[key] = path;
  else json[key + "_b64"] = to_base64(as_bytes(path));
}

template <class T>
Json optional_number(const std::optional<T>& value) { return value ? Json(*value) : Json(nullptr); }

Json texts(const std::vector<std::string>& list) {
  Json json = Json::array();
  for (const std::string& text : list) json.push_back(utf8(text));
  return json;
}

std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json to_json(const Error& error) {
  Json json;
  json["code"] = info(error.code).name;
  json["exit"] = info(error.code).exit_code;
  json["what"] = utf8(error.what);
  if (error.where) {
    Json where;
    put_path(where, "file", error.where->file);
    where["line"] = error.where->line;
    where["column"] = error.where->column;
    where["length"] = error.where->length;
    json["where"] = where;
  }
  json["causes"] = texts(error.causes);
  json["at_notes"] = texts(error.at_notes);
  json["notes"] = texts(error.notes);
  json["hints"] = texts(error.hints);
  if (error.sys_errno != 0) json["errno"] = error.sys_errno;
  return json;
}

Json to_json(const PackageLine& package) {
  Json json;
  json["change"] = name(package.kind);
  json["name"] = utf8(package.name);
  json["from"] = package.from_version.empty() ? Json(nullptr) : Json(utf8(package.from_version));
  json["to"] = package.to_version.empty() ? Json(nullptr) : Json(utf8(package.to_version));
  json["files"] = package.files;
  json["bytes"] = package.bytes;
  json["why"] = package.why.empty() ? Json(nullptr) : Json(utf8(package.why));
  return json;
}

Json to_json(const PathLine& path) {
  Json json;
  json["kind"] = std::string(1, path.kind);
  put_path(json, "path", path.path);
  json["bytes"] = path.bytes;
  return json;
}

Json to_json(const Finding& finding) {
  Json json;
  json["code"] = utf8(finding.code);
  json["severity"] = name(finding.severity);
  put_path(json, "file", finding.file);
  json["what"] = utf8(finding.what);
  return json;
}

Json to_json(const DistributionFacts& one) {
  Json json;
  json["name"] = utf8(one.name);
  json["version"] = utf8(one.version);
  json["installer"] = one.installer.empty() ? Json(nullptr) : Json(utf8(one.installer));
  json["files"] = one.files;
  json["bytes"] = one.bytes;
  json["missing"] = one.missing;
  json["editable"] = one.editable;
  json["unreadable"] = one.unreadable.empty() ? Json(nullptr) : Json(utf8(one.unreadable));
  return json;
}

Json to_json(const SharedPaths& group) {
  Json json;
  json["owners"] = texts(group.owners);
  json["paths"] = group.paths;
  json["differing"] = group.differing;
  json["unmatched"] = group.unmatched;
  return json;
}

template <class List>
Json list_of(const List& list) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(to_json(item));
  return json;
}

void put_generation(Json& json, const GenerationEvent& generation) {
  put_path(json, "path", generation.path);
  json["generation"] = generation.number;
  json["current"] = generation.current;
  json["committed_run"] = utf8(generation.run);
  json["operator"] = utf8(generation.operator_name);
  json["manifest"] = utf8(generation.manifest);
  json["source"] = utf8(generation.source);
  json["committed_at"] = generation.committed_at;
  json["files"] = generation.files;
  json["bytes"] = generation.bytes;
  json["pool_bytes"] = generation.pool_bytes;
  json["restores"] = optional_number(generation.restores);
  json["undoes"] = generation.undoes.empty() ? Json(nullptr) : Json(utf8(generation.undoes));
  json["adopted"] = generation.adopted;
  json["damaged"] = generation.damaged;
  json["missing"] = generation.missing;
}

Json to_json(const Route& route) {
  Json json;
  json["source"] = utf8(route.source);
  json["target"] = utf8(route.target);
  json["same_host"] = route.same_host;
  json["relayed"] = route.relayed;
  json["transport"] = utf8(route.transport);
  json["transport_reason"] = utf8(route.transport_reason);
  return json;
}

Json make(const PlanEvent& plan, const Envelope& envelope, Paths paths) {
  Json json = opening(envelope, "plan", plan.host, plan.refused_by.empty() ? std::string_view() : info(plan.refused_by[0].code).name);
  json["environment"] = utf8(plan.environment);
  put_path(json, "path", plan.path);
  json["route"] = to_json(plan.route);
  json["generation_now"] = optional_number(plan.generation_now);
  json["generation_next"] = plan.generation_next;
  json["path_absent"] = plan.path_absent;
  json["unchanged"] = plan.unchanged;
  json["packages"] = list_of(plan.packages);
  json["packages_unchanged"] = plan.packages_unchanged;
  json["files_added"] = plan.files_added;
  json["files_removed"] = plan.files_removed;
  json["files_changed"] = plan.files_changed;
  json["metadata_changed"] = plan.metadata_changed;
  json["paths_total"] = plan.paths_total;
  json["bytes_total"] = plan.bytes_total;
  json["bytes_to_read"] = plan.bytes_wanted;
  json["bytes_to_send"] = plan.bytes_to_send;
  json["bytes_to_write"] = plan.bytes_to_write;
  json["disk_needed"] = plan.disk_needed;
  json["disk_free"] = plan.disk_free;
  json["inodes_needed"] = plan.inodes_needed;
  json["inodes_free"] = plan.inodes_free;
  put_path(json, "commit_root", plan.commit_root);
  json["guarantee"] = name(plan.guarantee);
  json["seconds_expected"] = optional_number(plan.seconds_expected);
  json["in_use"] = texts(plan.in_use);
  json["findings"] = list_of(plan.findings);
  json["refused_by"] = list_of(plan.refused_by);
  json["digest"] = utf8(plan.digest);
  if (paths == Paths::listed) json["paths"] = list_of(plan.paths);
  return json;
}

Json make(const PhaseEvent& phase, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "phase", phase.host);
  json["phase"] = name(phase.phase);
  json["finished"] = phase.finished;
  json["seconds"] = phase.seconds;
  json["files"] = phase.files;
  json["bytes"] = phase.bytes;
  return json;
}

Json make(const ProgressEvent& progress, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "progress", progress.host);
  json["phase"] = name(progress.phase);
  json["bytes_done"] = progress.bytes_done;
  json["bytes_total"] = progress.bytes_total;
  json["files_done"] = progress.files_done;
  json["files_total"] = progress.files_total;
  json["bytes_per_second"] = progress.bytes_per_second;
  json["seconds_left"] = optional_number(progress.seconds_left);
  return json;
}

Json make(const ProblemEvent& problem, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "problem", problem.host, info(problem.error.code).name);
  json["severity"] = name(problem.severity);
  json["error"] = to_json(problem.error);
  return json;
}

Json make(const Outcome& outcome, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "outcome", outcome.host, outcome.error ? info(outcome.error->code).name : std::string_view());
  json["environment"] = utf8(outcome.environment);
  put_path(json, "path", outcome.path);
  json["result"] = name(outcome.kind);
  if (outcome.recovery_pending) json["pending"] = true;
  json["generation"] = optional_number(outcome.generation);
  json["generation_before"] = optional_number(outcome.generation_before);
  json["packages"] = list_of(outcome.packages);
  json["files"] = outcome.files;
  json["bytes_up"] = outcome.bytes_up;
  json["bytes_down"] = outcome.bytes_down;
  json["bytes_read"] = outcome.bytes_read;
  json["bytes_written"] = outcome.bytes_written;
  json["guarantee"] = name(outcome.guarantee);
  Json seconds = Json::object();
  for (const PhaseSeconds& phase : outcome.seconds) seconds[std::string(name(phase.phase))] = phase.seconds;
  json["seconds"] = seconds;
  for (const Connections& host : outcome.connections) {
    Json& one = json["connections"].emplace_back(Json::object());
    one["host"] = host.host;
    one["most"] = host.most;
    one["why_no_more"] = utf8(host.why_no_more);
  }
  json["error"] = outcome.error ? to_json(*outcome.error) : Json(nullptr);
  return json;
}

Json make(const StatusEvent& status, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "status", status.host, status.error ? info(status.error->code).name : std::string_view());
  json["environment"] = utf8(status.environment);
  put_path(json, "path", status.path);
  json["path_absent"] = status.path_absent;
  json["generation"] = status.current ? Json(status.current->number) : Json(nullptr);
  if (status.current) put_generation(json["current"] = Json::object(), *status.current);
  json["drift_added"] = status.drift_added;
  json["drift_removed"] = status.drift_removed;
  json["drift_changed"] = status.drift_changed;
  json["leftover_bytes"] = status.leftover_bytes;
  json["pool_bytes"] = status.pool_bytes;
  json["generations"] = status.generations;
  json["lock_holder"] = status.lock_holder.empty() ? Json(nullptr) : Json(utf8(status.lock_holder));
  json["journal_state"] = utf8(status.journal_state);
  json["error"] = status.error ? to_json(*status.error) : Json(nullptr);
  return json;
}

Json make(const GenerationEvent& generation, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "generation", generation.host);
  put_generation(json, generation);
  return json;
}

Json make(const DifferenceEvent& difference, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "difference", difference.host);
  json.update(to_json(difference.line));
  json["detail"] = utf8(difference.detail);
  return json;
}

Json make(const FindingEvent& finding, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "finding", finding.host, finding.finding.code);
  json.update(to_json(finding.finding));
  return json;
}

Json make(const PrunedEvent& pruned, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "pruned", pruned.host);
  json["generations"] = pruned.generations;
  json["contents"] = pruned.contents;
  json["bytes_freed"] = pruned.bytes_freed;
  return json;
}

Json make(const Inspection& found, const Envelope& envelope) {
  Json json = opening(envelope, "inspection", found.host);
  put_path(json, "path", found.path);
  json["python_version"] = utf8(found.python_version);
  json["implementation"] = utf8(found.implementation);
  json["made_by"] = utf8(found.made_by);
  put_path(json, "base", found.base);
  put_path(json, "program", found.program);
  json["answer"] = found.answer.empty() ? Json(nullptr) : Json(utf8(found.answer));
  json["files"] = found.files;
  json["bytes"] = found.bytes;
  json["distributions"] = list_of(found.distributions);
  json["shared"] = list_of(found.shared);
  json["unowned_files"] = found.unowned_files;
  json["unowned_bytes"] = found.unowned_bytes;
  const BytecodeFacts& code = found.bytecode;
  json["bytecode"] = {{"files", code.files}, {"bytes", code.bytes}, {"older", code.older}, {"orphaned", code.orphaned}, {"sourceless", code.sourceless}};
  json["findings"] = list_of(found.findings);
  return json;
}

Json make(const SummaryEvent& summary, const Envelope& envelope, Paths) {
  Json json = opening(envelope, "summary", {});
  json["verb"] = utf8(summary.verb);
  json["exit_code"] = summary.exit_code;
  json["applied"] = summary.applied;
  json["unchanged"] = summary.unchanged;
  json["failed"] = summary.failed;
  json["refused"] = summary.refused;
  json["rolled_back"] = summary.rolled_back;
  json["skipped"] = summary.skipped;
  json["differing"] = summary.differing;
  json["seconds"] = summary.seconds;
  return json;
}

}  // namespace

std::string json_line(const Event& event, const Envelope& envelope, Paths paths) {
  return std::visit([&](const auto& e) { return line(make(e, envelope, paths)); }, event);
}

std::string json_inspection(const Inspection& found, const Envelope& envelope) { return line(make(found, envelope)); }

std::string json_start(const Envelope& envelope, std::string_view verb, const std::vector<std::string>& arguments, std::string_view version) {
  Json json = opening(envelope, "start", {});
  json["verb"] = verb;
  json["arguments"] = texts(arguments);
  json["version"] = version;
  return line(json);
}

std::string json_question(const Envelope& envelope, const Question& question, Answer answer) {
  Json json = opening(envelope, "question", question.host);
  json["text"] = utf8(question.text);
  json["answer"] = answer == Answer::yes ? "yes" : answer == Answer::no ? "no" : "cannot_ask";
  return line(json);
}

std::string json_manifest(const Envelope& envelope, const std::string& file, const std::string& name, const std::string& path, const std::string& source,
                          const std::vector<std::string>& targets) {
  Json json = opening(envelope, "manifest", {});
  put_path(json, "file", file);
  json["name"] = utf8(name);
  put_path(json, "path", path);
  json["source"] = utf8(source);
  json["targets"] = texts(targets);
  return line(json);
}

}  // namespace envsync::cli
