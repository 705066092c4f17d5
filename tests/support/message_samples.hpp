// SPDX-License-Identifier: MIT
// Every message with every field set to something that is not its default.
#pragma once

#include "format/messages.hpp"

#include <fmt/format.h>

namespace envsync::test {

inline format::Digest sample_digest(u8 first) {
  format::Digest digest;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) digest.bytes[i] = static_cast<std::byte>(first + i);
  return digest;
}

inline tree::RelPath rel(const char* path) { return tree::RelPath::parse(path).value(); }

inline format::RecordInfo sample_record(u32 number) {
  return {.number = number, .root = sample_digest(1), .full = sample_digest(2), .ground = sample_digest(50), .run = "20240501-1", .plan_digest = "ab12",
          .operator_name = "ada@desk", .manifest = "fleet \xff.yaml", .name = "venv", .source = "ct200:/srv/venv",
          .undoes = "20240430-9", .committed_at = -5, .restores = 3, .adopted = true, .damaged = true,
          .policy = {.owner = true, .mtime = false, .xattrs = false, .hardlinks = true, .source_mtimes = true}, .files = 78'572,
          .bytes = 10'900'000'000, .exclusive_bytes = 7, .missing = 6};
}

inline std::vector<format::Request> sample_requests() {
  using namespace format;
  return {
      ScanRequest{.run = "r1", .operator_name = "ada", .role = Role::source, .path = "~/venv", .exclude = {"*.log", "", "!keep.log"},
                  .bytecode = tree::Bytecode::ship,
                  .policy = {.owner = true, .mtime = true, .xattrs = false, .hardlinks = false, .source_mtimes = true},
                  .lock = LockMode::exclusive, .lock_wait_seconds = 1.5, .full = true, .want_facts = true, .any_record = true},
      TreeRequest{.kind = TreeKind::record, .record = 8, .bases = {sample_digest(9), sample_digest(40)}},
      PullRequest{.force_level = -7, .first_level = 6, .from_pool = true},
      PullRequest{},
      StageRequest{.head = sample_record(4), .commit_root = rel("lib/python3.12"), .adopt = true, .preserve_owner = true,
                   .write_mtime = false, .drop_unmanaged = {"a/__pycache__/m.", "a/__pycache__/n.", "b/"},
                   .has_ground = true, .host_folders = {"/srv/venv", "~/torch"}, .keep_generations = 5, .verify_staged = true, .use_local_content = false,
                   .least = Guarantee::brief_gap},
      PutRequest{},
      SealRequest{},
      CommitRequest{},
      AbandonRequest{},
      AdoptRequest{.head = sample_record(6), .has_ground = true},
      RecordsRequest{},
      PruneRequest{.keep = 0, .drop = {9, 2, 4'000'000'000, 0}, .all = true},
      FilesRequest{.paths = {"pyvenv.cfg", "lib/python3.12/site-packages/x-1.dist-info/METADATA"}},
      LibrariesRequest{.of_root = true, .sonames = {"libssl.so.3"}},
      SumsRequest{.paths = {"lib/a.so", "lib/\xff"}},
      DeltaRequest{.step = DeltaStep::patch, .grain = 2},
      ProbeRequest{.program = "/usr/bin/python3.12", .arguments = {"-c", ""}},
      LanesRequest{.secret = "00ff"},
      JoinRequest{.name = "envsync-1f", .secret = "00ff"},
      LackRequest{},
      HelpRequest{.pull = 7},
  };
}

inline std::vector<format::Reply> sample_replies() {
  using namespace format;
  return {
      BlobReply{},
      ScanReply{.hostname = "b300", .path = "/srv/venv", .wheels = {"a-1-py3-none-any.whl"}, .absent = true, .empty_dir = true, .root = sample_digest(1),
                .full = sample_digest(2), .entries = 3, .files = 4, .bytes = 5, .files_hashed = 6, .bytes_hashed = 7, .linked_alone = 8,
                .problems = {{"run/sock\xff", "is a socket"}, {"", "permission denied"}}, .problems_total = 12, .attributes_left = 13,
                .environment = {.has_pyvenv = true, .pyvenv = "home = /usr/bin\n", .lib_python = "python3.12",
                                .bin_python_runs = true, .bin_python_target = "/usr/bin/python3.12", .home_version = "3.12"},
                .current = sample_record(8), .current_root = sample_digest(3), .drifted = true, .recorded_view = sample_digest(5), .state_exists = true, .foreign_state = "'/srv/.envsync' belongs to user 0",
                .recovered = {"finished the commit of generation 8"}, .journal_state = "clean", .lock_holder = "ada, pid 7",
                .pool_bytes = 8, .leftover_bytes = 9, .disk_free = 10, .inodes_free = 11, .filesystem = "xfs",
                .in_use = {"sglang (pid 17) runs from it"}, .seconds = 0.25},
      StageReply{.wanted = {5, 7, 6, 3'999'999}, .missing = {{7, 0, 2}, {7, 5, 1}}, .wanted_bytes = 1, .linked = 2, .copied = 3, .bytes_read = 4, .bytes_written = 5,
                 .guarantee = Guarantee::per_file, .in_use = {"x"}},
      PutReply{.bytes_written = ~u64{0}},
      SealReply{},
      CommitReply{.generation = 9, .adopted = 0, .guarantee = Guarantee::brief_gap, .recovery_pending = true, .warnings = {"w"},
                  .bytes_read = 1, .bytes_written = 2},
      AbandonReply{},
      AdoptReply{.generation = 1},
      RecordsReply{.records = {sample_record(1), sample_record(2)}},
      PruneReply{.generations = {1, 2}, .contents = 3, .bytes_freed = 4},
      FilesReply{.files = {{"pyvenv.cfg", "home = /usr\n"}, {"a/b", std::string("\0\xff", 2)}}},
      LibrariesReply{.libraries = {{"lib/a.so", "a.so", "$ORIGIN", "libc.so.6:libm.so.6"}}, .is_cut = true, .absent = {"libffi.so.8"}},
      SumsReply{.sums = {Sha256{std::byte{7}}, std::nullopt, Sha256{}}},
      ProbeReply{.exists = true, .status = -9, .output = "Python 3.12.3\n"},
      LanesReply{.name = "envsync-1f"},
      JoinReply{},
      LackReply{.wanted = {5, 7}, .missing = {{7, 3, 1}}, .wanted_bytes = 9},
  };
}

inline Error sample_error() {
  Error error(ErrorCode::no_space, "cannot stage generation 8 of 'analytics'");
  error.where = Location{.file = "fleet.yaml", .line = 3, .column = 4, .length = 5, .line_text = "path: /srv"};
  error.causes = {"writing '/srv/x'", "no space left on device"};
  error.at_notes = {"known"};
  error.notes = {"generation 7 is still current; nothing was changed", ""};
  error.hints = {"run `envsync prune`"};
  error.sys_errno = 28;
  return error;
}

inline constexpr u64 kSampleHuge = 1ull << 50;

inline std::vector<format::PullItem> sample_items() {
  return {{.want = 7, .path = rel("lib/a.py"), .content = {sample_digest(1), 300}},
          {.want = 5, .path = rel("lib/b.py"), .content = {sample_digest(17), 0}},
          {.want = 3'999'999, .path = rel("lib"), .content = {sample_digest(33), kSampleHuge}, .first = 5, .count = 65535}};
}

}  // namespace envsync::test
