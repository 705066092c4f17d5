// SPDX-License-Identifier: MIT
// Replies, agent to controller.
#include "format/messages.hpp"

#include "format/proto_bytes.hpp"
#include "format/wire.hpp"

#include "messages.pb.h"

#include <algorithm>

namespace envsync::format {
namespace {

void put(wire::EnvironmentFacts& out, const EnvironmentFacts& facts) {
  out.set_has_pyvenv(facts.has_pyvenv);
  out.set_pyvenv(facts.pyvenv);
  out.set_lib_python(facts.lib_python);
  out.set_bin_python_runs(facts.bin_python_runs);
  out.set_bin_python_target(facts.bin_python_target);
  out.set_home_version(facts.home_version);
}

EnvironmentFacts take(Door& door, const wire::EnvironmentFacts& in) {
  EnvironmentFacts out;
  out.has_pyvenv = in.has_pyvenv();
  out.pyvenv = door.text(in.pyvenv(), "pyvenv");
  out.lib_python = door.text(in.lib_python(), "lib_python");
  out.bin_python_runs = in.bin_python_runs();
  out.bin_python_target = door.text(in.bin_python_target(), "bin_python_target");
  out.home_version = door.text(in.home_version(), "home_version");
  return out;
}

std::string encode_problems(const std::vector<ProblemInfo>& problems) {
  std::vector<std::string> flat;
  for (std::size_t i = 0; i < std::min(problems.size(), kProblemsMax); ++i) {
    flat.push_back(problems[i].path);
    flat.push_back(problems[i].what);
  }
  return encode_strings(flat);
}

std::vector<ProblemInfo> take_problems(Door& door, std::string_view bytes) {
  auto flat = door.strings(bytes, "problems", 2 * kProblemsMax);
  std::vector<ProblemInfo> out;
  if (flat.size() % 2 != 0) return door.refuse("problems", "is not in pairs"), out;
  for (std::size_t i = 0; i < flat.size(); i += 2) out.push_back({std::move(flat[i]), std::move(flat[i + 1])});
  return out;
}

void put(wire::Reply& reply, const ScanReply& r) {
  wire::ScanReply& out = *reply.mutable_scan();
  out.set_hostname(r.hostname);
  out.set_path(r.path);
  out.set_absent(r.absent);
  out.set_empty_dir(r.empty_dir);
  out.set_root(bytes_of(r.root));
  out.set_full(bytes_of(r.full));
  out.set_entries(r.entries);
  out.set_files(r.files);
  out.set_bytes(r.bytes);
  out.set_files_hashed(r.files_hashed);
  out.set_bytes_hashed(r.bytes_hashed);
  out.set_problems(encode_problems(r.problems));
  out.set_problems_total(r.problems_total);
  put(*out.mutable_environment(), r.environment);
  if (r.current) put_record(*out.mutable_current(), *r.current);
  out.set_current_root(bytes_of(r.current_root));
  out.set_state_exists(r.state_exists);
  out.set_recovered(encode_strings(r.recovered));
  out.set_linked_alone(r.linked_alone);
  out.set_wheels(encode_strings(r.wheels));
  out.set_journal_state(r.journal_state);
  out.set_lock_holder(r.lock_holder);
  out.set_pool_bytes(r.pool_bytes);
  out.set_leftover_bytes(r.leftover_bytes);
  out.set_disk_free(r.disk_free);
  out.set_inodes_free(r.inodes_free);
  out.set_filesystem(r.filesystem);
  out.set_in_use(encode_strings(r.in_use));
  out.set_seconds(r.seconds);
  out.set_drifted(r.drifted);
  out.set_recorded_view(bytes_of(r.recorded_view));
  out.set_foreign_state(r.foreign_state);
  out.set_attributes_left(r.attributes_left);
}

ScanReply take(Door& door, const wire::ScanReply& in) {
  ScanReply out;
  out.hostname = door.text(in.hostname(), "hostname");
  out.path = door.absolute(in.path(), "path");
  out.absent = in.absent();
  out.empty_dir = in.empty_dir();
  out.root = door.digest(in.root(), "root");
  out.full = door.digest(in.full(), "full");
  out.entries = in.entries();
  out.files = in.files();
  out.bytes = in.bytes();
  out.files_hashed = in.files_hashed();
  out.bytes_hashed = in.bytes_hashed();
  out.problems = take_problems(door, in.problems());
  out.problems_total = in.problems_total();
  out.environment = take(door, in.environment());
  if (in.has_current()) out.current = take_record(door, in.current());
  out.current_root = door.digest(in.current_root(), "current_root");
  out.state_exists = in.state_exists();
  out.recovered = door.strings(in.recovered(), "recovered");
  out.linked_alone = in.linked_alone();
  out.wheels = door.strings(in.wheels(), "wheels");
  out.journal_state = door.text(in.journal_state(), "journal_state");
  out.lock_holder = door.text(in.lock_holder(), "lock_holder");
  out.pool_bytes = in.pool_bytes();
  out.leftover_bytes = in.leftover_bytes();
  out.disk_free = in.disk_free();
  out.inodes_free = in.inodes_free();
  out.filesystem = door.text(in.filesystem(), "filesystem");
  out.in_use = door.strings(in.in_use(), "in_use");
  out.seconds = door.seconds(in.seconds(), "seconds");
  out.drifted = in.drifted();
  out.attributes_left = in.attributes_left();
  out.foreign_state = door.text(in.foreign_state(), "foreign_state");
  out.recorded_view = door.digest(in.recorded_view(), "recorded_view");
  return out;
}

std::string ranges_text(const std::vector<SegmentRange>& ranges) {
  std::vector<u32> numbers;
  for (const SegmentRange& range : ranges) numbers.insert(numbers.end(), {range.want, range.first, range.count});
  return encode_numbers(numbers);
}

std::vector<SegmentRange> take_ranges(Door& door, std::string_view bytes) {
  constexpr std::size_t kFields = 3;
  std::vector<SegmentRange> ranges;
  const std::vector<u32> numbers = door.numbers(bytes, kFields * kEntriesMax, "missing");
  if (numbers.size() % kFields != 0) door.refuse("missing", "is not whole");
  for (std::size_t i = 0; i + kFields <= numbers.size(); i += kFields) ranges.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  return ranges;
}

void put(wire::Reply& reply, const StageReply& r) {
  wire::StageReply& out = *reply.mutable_stage();
  out.set_wanted(encode_numbers(r.wanted));
  out.set_wanted_bytes(r.wanted_bytes);
  out.set_linked(r.linked);
  out.set_copied(r.copied);
  out.set_bytes_read(r.bytes_read);
  out.set_bytes_written(r.bytes_written);
  out.set_guarantee(static_cast<u32>(r.guarantee));
  out.set_in_use(encode_strings(r.in_use));
  out.set_missing(ranges_text(r.missing));
}

StageReply take(Door& door, const wire::StageReply& in) {
  StageReply out;
  out.wanted = door.numbers(in.wanted(), kEntriesMax, "wanted");
  out.wanted_bytes = in.wanted_bytes();
  out.linked = in.linked();
  out.copied = in.copied();
  out.bytes_read = in.bytes_read();
  out.bytes_written = in.bytes_written();
  out.guarantee = door.choice(in.guarantee(), Guarantee::per_file, "guarantee");
  out.in_use = door.strings(in.in_use(), "in_use");
  out.missing = take_ranges(door, in.missing());
  return out;
}

void put(wire::Reply& reply, const LackReply& r) {
  wire::LackReply& out = *reply.mutable_lack();
  out.set_wanted(encode_numbers(r.wanted));
  out.set_missing(ranges_text(r.missing));
  out.set_wanted_bytes(r.wanted_bytes);
}

LackReply take(Door& door, const wire::LackReply& in) {
  return {door.numbers(in.wanted(), kEntriesMax, "wanted"), take_ranges(door, in.missing()), in.wanted_bytes()};
}

void put(wire::Reply& reply, const CommitReply& r) {
  wire::CommitReply& out = *reply.mutable_commit();
  out.set_generation(r.generation);
  if (r.adopted) out.set_adopted(*r.adopted);
  out.set_guarantee(static_cast<u32>(r.guarantee));
  out.set_recovery_pending(r.recovery_pending);
  out.set_warnings(encode_strings(r.warnings));
  out.set_bytes_read(r.bytes_read);
  out.set_bytes_written(r.bytes_written);
}

CommitReply take(Door& door, const wire::CommitReply& in) {
  CommitReply out;
  out.generation = in.generation();
  if (in.has_adopted()) out.adopted = in.adopted();
  out.guarantee = door.choice(in.guarantee(), Guarantee::per_file, "guarantee");
  out.recovery_pending = in.recovery_pending();
  out.warnings = door.strings(in.warnings(), "warnings");
  out.bytes_read = in.bytes_read();
  out.bytes_written = in.bytes_written();
  return out;
}

void put(wire::Reply& reply, const RecordsReply& r) {
  std::vector<std::string> records;
  for (const RecordInfo& record : r.records) {
    wire::RecordInfo one;
    put_record(one, record);
    records.push_back(one.SerializeAsString());
  }
  reply.mutable_records()->set_records(encode_strings(records));
}

RecordsReply take(Door& door, const wire::RecordsReply& in) {
  RecordsReply out;
  for (const std::string& bytes : door.strings(in.records(), "records", kListMax, kControlBytesMax)) {
    wire::RecordInfo one;
    if (!one.ParseFromString(bytes)) return door.refuse("records", "holds a record that is damaged"), out;
    out.records.push_back(take_record(door, one));
    if (!door.is_open()) break;
    if (out.records.size() > 1 && out.records.end()[-2].number >= out.records.back().number) {
      return door.refuse("records", "is not ascending"), out;
    }
  }
  return out;
}

void put(wire::Reply& reply, const PruneReply& r) {
  wire::PruneReply& out = *reply.mutable_prune();
  out.set_generations(encode_numbers(r.generations));
  out.set_contents(r.contents);
  out.set_bytes_freed(r.bytes_freed);
}

PruneReply take(Door& door, const wire::PruneReply& in) {
  PruneReply out;
  out.generations = door.numbers(in.generations(), kListMax, "generations");
  out.contents = in.contents();
  out.bytes_freed = in.bytes_freed();
  return out;
}

void put(wire::Reply& reply, const FilesReply& r) {
  std::vector<std::string> flat;
  for (const auto& [path, content] : r.files) {
    flat.push_back(path);
    flat.push_back(content);
  }
  reply.mutable_files()->set_files(encode_strings(flat));
}

FilesReply take(Door& door, const wire::FilesReply& in) {
  FilesReply out;
  auto flat = door.strings(in.files(), "files", 2 * kListMax, kFileBytesMax);
  if (flat.size() % 2 != 0) return door.refuse("files", "is not in pairs"), out;
  for (std::size_t i = 0; i < flat.size(); i += 2) {
    if (door.relative(flat[i], "files").is_root()) door.refuse("files", "names the root, which is no file");
    out.files.emplace_back(std::move(flat[i]), std::move(flat[i + 1]));
  }
  return out;
}

void put(wire::Reply& reply, const LibrariesReply& r) {
  wire::LibrariesReply& out = *reply.mutable_libraries();
  std::vector<std::string> flat;
  for (const LibraryInfo& one : r.libraries) flat.insert(flat.end(), {one.path, one.soname, one.search, one.needed});
  out.set_libraries(encode_strings(flat));
  out.set_is_cut(r.is_cut);
  out.set_absent(encode_strings(r.absent));
}

LibrariesReply take(Door& door, const wire::LibrariesReply& in) {
  constexpr std::size_t kFields = 4;
  LibrariesReply out;
  std::vector<std::string> flat = door.strings(in.libraries(), "libraries");
  if (flat.size() % kFields != 0) return door.refuse("libraries", "has another length"), out;
  for (std::size_t i = 0; i < flat.size(); i += kFields)
    out.libraries.push_back({std::move(flat[i]), std::move(flat[i + 1]), std::move(flat[i + 2]), std::move(flat[i + 3])});
  out.is_cut = in.is_cut();
  out.absent = door.strings(in.absent(), "absent");
  return out;
}

void put(wire::Reply& reply, const SumsReply& r) {
  std::string bytes;
  for (const auto& sum : r.sums) {
    bytes.push_back(sum ? 1 : 0);
    bytes += as_text(sum.value_or(Sha256{}));
  }
  reply.mutable_sums()->set_sums(std::move(bytes));
}

SumsReply take(Door& door, const wire::SumsReply& in) {
  constexpr std::size_t kOne = 1 + sizeof(Sha256);
  SumsReply out;
  const ByteView bytes = as_bytes(in.sums());
  if (bytes.size() % kOne != 0 || bytes.size() / kOne > kSumsMax) return door.refuse("sums", "has another length"), out;
  for (std::size_t at = 0; at < bytes.size(); at += kOne) {
    Sha256 sum{};
    std::ranges::copy(bytes.subspan(at + 1, sizeof(Sha256)), sum.begin());
    out.sums.push_back(bytes[at] == std::byte{1} ? std::optional(sum) : std::nullopt);
  }
  return out;
}

void put(wire::Reply& reply, const ProbeReply& r) {
  reply.mutable_probe()->set_exists(r.exists);
  reply.mutable_probe()->set_status(r.status);
  reply.mutable_probe()->set_output(r.output);
}

ProbeReply take(Door& door, const wire::ProbeReply& in) {
  return {in.exists(), in.status(), door.text(in.output(), "output")};
}

void put(wire::Reply& reply, const BlobReply&) { reply.mutable_blob(); }
void put(wire::Reply& reply, const SealReply&) { reply.mutable_seal(); }
void put(wire::Reply& reply, const AbandonReply&) { reply.mutable_abandon(); }
void put(wire::Reply& reply, const PutReply& r) { reply.mutable_put()->set_bytes_written(r.bytes_written); }
void put(wire::Reply& reply, const JoinReply&) { reply.mutable_join(); }
void put(wire::Reply& reply, const LanesReply& r) { reply.mutable_lanes()->set_name(r.name); }
void put(wire::Reply& reply, const AdoptReply& r) { reply.mutable_adopt()->set_generation(r.generation); }

Reply take(Door& door, const wire::Reply& in) {
  switch (in.kind_case()) {
    case wire::Reply::kBlob: return BlobReply{};
    case wire::Reply::kScan: return take(door, in.scan());
    case wire::Reply::kStage: return take(door, in.stage());
    case wire::Reply::kPut: return PutReply{in.put().bytes_written()};
    case wire::Reply::kSeal: return SealReply{};
    case wire::Reply::kCommit: return take(door, in.commit());
    case wire::Reply::kAbandon: return AbandonReply{};
    case wire::Reply::kAdopt: return AdoptReply{in.adopt().generation()};
    case wire::Reply::kRecords: return take(door, in.records());
    case wire::Reply::kPrune: return take(door, in.prune());
    case wire::Reply::kFiles: return take(door, in.files());
    case wire::Reply::kProbe: return take(door, in.probe());
    case wire::Reply::kLibraries: return take(door, in.libraries());
    case wire::Reply::kSums: return take(door, in.sums());
    case wire::Reply::kLanes: return LanesReply{door.text(in.lanes().name(), "name")};
    case wire::Reply::kJoin: return JoinReply{};
    case wire::Reply::kLack: return take(door, in.lack());
    case wire::Reply::KIND_NOT_SET: break;
  }
  door.refuse("kind", "is absent");
  return BlobReply{};
}

}  // namespace

Bytes encode(const Reply& reply) {
  wire::Reply out;
  std::visit([&out](const auto& r) { put(out, r); }, reply);
  return to_bytes(out);
}

Result<Reply> decode_reply(ByteView bytes) {
  TRY(const auto in, from_bytes<wire::Reply>(bytes, "a reply"));
  Door door;
  Reply out = take(door, in);
  TRY_STATUS(door.verdict("a reply"));
  return out;
}

}  // namespace envsync::format
