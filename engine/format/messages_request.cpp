// SPDX-License-Identifier: MIT
// Requests, controller to agent.
#include "format/messages.hpp"

#include "format/proto_bytes.hpp"
#include "format/wire.hpp"

#include "messages.pb.h"

#include <algorithm>

namespace envsync::format {
namespace {

constexpr std::size_t kBasesMax = 8;
constexpr int kLevelMin = -1000, kLevelMax = 22;

void put(wire::Request& out, const ScanRequest& r) {
  wire::ScanRequest& scan = *out.mutable_scan();
  scan.set_run(r.run);
  scan.set_operator_name(r.operator_name);
  scan.set_role(static_cast<u32>(r.role));
  scan.set_path(r.path);
  scan.set_exclude(encode_strings(r.exclude));
  scan.set_bytecode(static_cast<u32>(r.bytecode));
  scan.set_policy(r.policy.bits());
  scan.set_lock(static_cast<u32>(r.lock));
  scan.set_lock_wait_seconds(r.lock_wait_seconds);
  scan.set_full(r.full);
  scan.set_want_facts(r.want_facts);
  scan.set_any_record(r.any_record);
}

ScanRequest take(Door& door, const wire::ScanRequest& in) {
  ScanRequest out;
  out.run = door.text(in.run(), "run");
  out.operator_name = door.text(in.operator_name(), "operator_name");
  out.role = door.choice(in.role(), Role::target, "role");
  out.path = door.absolute(in.path(), "path");
  out.exclude = door.strings(in.exclude(), "exclude");
  out.bytecode = door.choice(in.bytecode(), tree::Bytecode::ship, "bytecode");
  out.policy = door.policy(in.policy());
  out.lock = door.choice(in.lock(), LockMode::exclusive, "lock");
  out.lock_wait_seconds = door.seconds(in.lock_wait_seconds(), "lock_wait_seconds");
  out.full = in.full();
  out.want_facts = in.want_facts();
  out.any_record = in.any_record();
  return out;
}

void put(wire::Request& out, const TreeRequest& r) {
  wire::TreeRequest& tree = *out.mutable_tree();
  tree.set_kind(static_cast<u32>(r.kind));
  tree.set_record(r.record);
  std::string bases;
  for (const Digest& base : r.bases) bases += bytes_of(base);
  tree.set_bases(std::move(bases));
}

TreeRequest take(Door& door, const wire::TreeRequest& in) {
  TreeRequest out;
  out.kind = door.choice(in.kind(), TreeKind::ground, "kind");
  out.record = in.record();
  out.bases = door.digests(in.bases(), kBasesMax, "bases");
  return out;
}

void put(wire::Request& out, const PullRequest& r) {
  wire::PullRequest& pull = *out.mutable_pull();
  if (r.force_level) pull.set_force_level(*r.force_level);
  if (r.first_level) pull.set_first_level(*r.first_level);
  pull.set_from_pool(r.from_pool);
}

PullRequest take(Door& door, const wire::PullRequest& in) {
  PullRequest out;
  out.from_pool = in.from_pool();
  const auto level = [&](i32 value, std::string_view field) {
    if (value < kLevelMin || value > kLevelMax) door.refuse(field, "is no compression level");
    return value;
  };
  if (in.has_force_level()) out.force_level = level(in.force_level(), "force_level");
  if (in.has_first_level()) out.first_level = level(in.first_level(), "first_level");
  return out;
}

void put(wire::Request& out, const StageRequest& r) {
  wire::StageRequest& stage = *out.mutable_stage();
  put_record(*stage.mutable_head(), r.head);
  stage.set_commit_root(r.commit_root.bytes());
  stage.set_adopt(r.adopt);
  stage.set_preserve_owner(r.preserve_owner);
  stage.set_write_mtime(r.write_mtime);
  if (!r.drop_unmanaged.empty()) stage.set_drop_unmanaged(encode_paths(r.drop_unmanaged));
  stage.set_has_ground(r.has_ground);
  stage.set_host_folders(encode_strings(r.host_folders));
  stage.set_keep_generations(r.keep_generations);
  stage.set_verify_staged(r.verify_staged);
  stage.set_use_local_content(r.use_local_content);
  stage.set_least(static_cast<u32>(r.least));
}

StageRequest take(Door& door, const wire::StageRequest& in) {
  StageRequest out;
  out.head = take_record(door, in.head());
  out.commit_root = door.relative(in.commit_root(), "commit_root");
  out.adopt = in.adopt();
  out.preserve_owner = in.preserve_owner();
  out.write_mtime = in.write_mtime();
  out.drop_unmanaged = door.prefixes(in.drop_unmanaged(), "drop_unmanaged");
  out.has_ground = in.has_ground();
  constexpr std::size_t kFoldersMax = 100;
  for (const std::string& folder : door.strings(in.host_folders(), "host_folders", kFoldersMax)) out.host_folders.push_back(door.absolute(folder, "host_folders"));
  out.keep_generations = in.keep_generations();
  out.verify_staged = in.verify_staged();
  out.use_local_content = in.use_local_content();
  out.least = door.choice(in.least(), Guarantee::per_file, "least");
  return out;
}

void put(wire::Request& out, const PutRequest&) { out.mutable_put(); }
void put(wire::Request& out, const SealRequest&) { out.mutable_seal(); }
void put(wire::Request& out, const CommitRequest&) { out.mutable_commit(); }
void put(wire::Request& out, const AbandonRequest&) { out.mutable_abandon(); }
void put(wire::Request& out, const RecordsRequest&) { out.mutable_records(); }
void put(wire::Request& out, const AdoptRequest& r) {
  put_record(*out.mutable_adopt()->mutable_head(), r.head);
  out.mutable_adopt()->set_has_ground(r.has_ground);
}

void put(wire::Request& out, const PruneRequest& r) {
  wire::PruneRequest& prune = *out.mutable_prune();
  if (r.keep) prune.set_keep(*r.keep);
  prune.set_drop(encode_numbers(r.drop));
  prune.set_all(r.all);
}

PruneRequest take(Door& door, const wire::PruneRequest& in) {
  PruneRequest out;
  if (in.has_keep()) out.keep = in.keep();
  out.drop = door.numbers(in.drop(), kListMax, "drop");
  out.all = in.all();
  return out;
}

void put(wire::Request& out, const FilesRequest& r) { out.mutable_files()->set_paths(encode_strings(r.paths)); }

FilesRequest take(Door& door, const wire::FilesRequest& in) {
  FilesRequest out;
  out.paths = door.strings(in.paths(), "paths", kListMax, tree::kPathBytesMax);
  for (const std::string& path : out.paths) {
    if (door.relative(path, "paths").is_root()) door.refuse("paths", "names the root, which is no file");
  }
  return out;
}

void put(wire::Request& out, const LibrariesRequest& r) {
  out.mutable_libraries()->set_of_root(r.of_root);
  out.mutable_libraries()->set_sonames(encode_strings(r.sonames));
}

LibrariesRequest take(Door& door, const wire::LibrariesRequest& in) {
  constexpr std::size_t kSonamesMax = 10'000, kSonameBytesMax = 4096;
  LibrariesRequest out;
  out.of_root = in.of_root();
  out.sonames = door.strings(in.sonames(), "sonames", kSonamesMax, kSonameBytesMax);
  return out;
}

void put(wire::Request& out, const SumsRequest& r) { out.mutable_sums()->set_paths(encode_strings(r.paths)); }

SumsRequest take(Door& door, const wire::SumsRequest& in) {
  SumsRequest out;
  out.paths = door.strings(in.paths(), "paths", kSumsMax, tree::kPathBytesMax);
  for (const std::string& path : out.paths) {
    if (door.relative(path, "paths").is_root()) door.refuse("paths", "names the root, which is no file");
  }
  return out;
}

void put(wire::Request& out, const DeltaRequest& r) {
  out.mutable_delta()->set_step(static_cast<u32>(r.step));
  out.mutable_delta()->set_grain(r.grain);
}

DeltaRequest take(Door& door, const wire::DeltaRequest& in) {
  constexpr u32 kGrainMax = 2;
  DeltaRequest out;
  out.step = door.choice(in.step(), DeltaStep::patch, "step");
  if (in.grain() > kGrainMax) door.refuse("grain", "is no value of its kind");
  else out.grain = narrow<u8>(in.grain());
  return out;
}

void put(wire::Request& out, const ProbeRequest& r) {
  out.mutable_probe()->set_program(r.program);
  out.mutable_probe()->set_arguments(encode_strings(r.arguments));
}

ProbeRequest take(Door& door, const wire::ProbeRequest& in) {
  ProbeRequest out;
  out.program = door.absolute(in.program(), "program");
  out.arguments = door.strings(in.arguments(), "arguments");
  return out;
}

void put(wire::Request& out, const LanesRequest& r) { out.mutable_lanes()->set_secret(r.secret); }
void put(wire::Request& out, const HelpRequest& r) { out.set_help(r.pull); }
void put(wire::Request& out, const LackRequest&) { out.mutable_lack(); }
void put(wire::Request& out, const JoinRequest& r) {
  out.mutable_join()->set_name(r.name);
  out.mutable_join()->set_secret(r.secret);
}

Request take(Door& door, const wire::Request& in) {
  constexpr std::size_t kSecretBytesMax = 256, kNameBytesMax = 100;

  switch (in.kind_case()) {
    case wire::Request::kScan: return take(door, in.scan());
    case wire::Request::kTree: return take(door, in.tree());
    case wire::Request::kPull: return take(door, in.pull());
    case wire::Request::kStage: return take(door, in.stage());
    case wire::Request::kPut: return PutRequest{};
    case wire::Request::kSeal: return SealRequest{};
    case wire::Request::kCommit: return CommitRequest{};
    case wire::Request::kAbandon: return AbandonRequest{};
    case wire::Request::kAdopt: return AdoptRequest{take_record(door, in.adopt().head()), in.adopt().has_ground()};
    case wire::Request::kRecords: return RecordsRequest{};
    case wire::Request::kPrune: return take(door, in.prune());
    case wire::Request::kFiles: return take(door, in.files());
    case wire::Request::kProbe: return take(door, in.probe());
    case wire::Request::kLibraries: return take(door, in.libraries());
    case wire::Request::kSums: return take(door, in.sums());
    case wire::Request::kLanes: return LanesRequest{door.text(in.lanes().secret(), "secret", kSecretBytesMax)};
    case wire::Request::kJoin: return JoinRequest{door.text(in.join().name(), "name", kNameBytesMax), door.text(in.join().secret(), "secret", kSecretBytesMax)};
    case wire::Request::kLack: return LackRequest{};
    case wire::Request::kDelta: return take(door, in.delta());
    case wire::Request::kHelp: return HelpRequest{in.help()};
    case wire::Request::KIND_NOT_SET: break;
  }
  door.refuse("kind", "is absent");
  return PutRequest{};
}

}  // namespace

Bytes encode(const Request& request) {
  wire::Request out;
  std::visit([&out](const auto& r) { put(out, r); }, request);
  return to_bytes(out);
}

Result<Request> decode_request(ByteView bytes) {
  TRY(const auto in, from_bytes<wire::Request>(bytes, "a request"));
  Door door;
  Request out = take(door, in);
  TRY_STATUS(door.verdict("a request"));
  return out;
}

}  // namespace envsync::format
