// SPDX-License-Identifier: MIT
// The messages that controller and agent exchange, as values, and their bytes (protobuf, format/messages.proto).
// Agents are named by the digest of their binary, so both ends are one build: no field is ever optional for old peers.
// decode() gives only values that passed validation; counts travel as packed columns or bytes and meet a limit first.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <envsync/event.hpp>
#include <envsync/result.hpp>

#include "base/sha256.hpp"
#include "content/digest.hpp"
#include "tree/exclude.hpp"
#include "tree/tree.hpp"

namespace envsync::format {

using content::ContentId;
using content::Digest;

inline constexpr std::size_t kSumsMax = 10'000;  // LIMIT: paths of one SumsRequest
inline constexpr std::size_t kControlBytesMax = 4u << 20;  // LIMIT: one control message

enum class Role : u8 { source, target };
enum class LockMode : u8 { none, exclusive };

struct ScanRequest {
  std::string run;
  std::string operator_name;
  Role role = Role::target;
  std::string path;                  // "~/..." is the agent's home
  std::vector<std::string> exclude;
  tree::Bytecode bytecode = tree::Bytecode::leave_out;
  tree::ComparePolicy policy;
  LockMode lock = LockMode::none;    // exclusive: also recovers
  double lock_wait_seconds = 0;
  bool full = false;                 // read every byte
  bool want_facts = false;           // who uses the tree, space, place
  bool any_record = false;           // a current record that does not decode is no error: there is then no current one
  bool operator==(const ScanRequest&) const = default;
};

/// As in store::RecordHead, which this mirrors for the wire.
struct RecordInfo {
  u32 number = 0;
  Digest root, full;
  Digest ground;                     // full; zero: none
  std::string run, plan_digest, operator_name, manifest, name, source, undoes;
  i64 committed_at = 0;
  std::optional<u32> restores;
  bool adopted = false;
  bool damaged = false;              // it does not decode: only the number is known
  tree::ComparePolicy policy;        // that `root` is of
  u64 files = 0, bytes = 0, exclusive_bytes = 0;
  u64 missing = 0;                   // contents that neither the pool nor the live tree has (in RecordsReply)
  bool operator==(const RecordInfo&) const = default;
};

struct ProblemInfo { std::string path, what; bool operator==(const ProblemInfo&) const = default; };

struct EnvironmentFacts {
  bool has_pyvenv = false;
  std::string pyvenv;                // the file, at most 64 KiB
  std::string lib_python;            // "python3.12", the folder below lib/; empty: none or several
  bool bin_python_runs = false;      // bin/python resolves to an executable file
  std::string bin_python_target;     // where its links end, or where they dangle
  std::string home_version;          // X.Y of the base interpreter that `home` has (bin/pythonX.Y beside it); empty: none
  bool operator==(const EnvironmentFacts&) const = default;
};

struct ScanReply {
  std::string hostname;
  std::string path;                  // absolute, resolved
  std::vector<std::string> wheels;   // file names: wheels lie at the request's path, and `path` is the folder that they were unpacked to
  bool absent = false;
  bool empty_dir = false;
  Digest root;                       // under the request's policy
  Digest full;
  u64 entries = 0, files = 0, bytes = 0;
  u64 files_hashed = 0, bytes_hashed = 0;
  u64 linked_alone = 0;              // files that share their inode with some outside
  std::vector<ProblemInfo> problems; // at most 100
  u64 problems_total = 0;
  u64 attributes_left = 0;           // entries with attributes that this policy leaves out though it compares others
  EnvironmentFacts environment;
  std::optional<RecordInfo> current; // the greatest record
  Digest current_root;               // of its tree under the request's policy; zero without a record
  bool drifted = false;              // by the rules under which `current` was committed, the tree is not what it records
  Digest recorded_view;              // full digest of the tree as those rules see it; zero: they see what the request's do
  bool state_exists = false;
  std::string foreign_state;         // of another user, where there is none of this one
  std::vector<std::string> recovered;
  std::string journal_state;         // "clean", or what recovery would do (lock none)
  std::string lock_holder;
  u64 pool_bytes = 0, leftover_bytes = 0;
  u64 disk_free = 0, inodes_free = 0;
  std::string filesystem;
  std::vector<std::string> in_use;
  double seconds = 0;
  bool operator==(const ScanReply&) const = default;
};

enum class TreeKind : u8 { observed, record, recorded_view, ground };
/// The reply is a blob: an encoded TreeDelta to `base` (zero: to the absent tree).
struct TreeRequest {
  TreeKind kind = TreeKind::observed;
  u32 record = 0;
  std::vector<Digest> bases;         // full digests that the controller holds, best first, at most 8
  bool operator==(const TreeRequest&) const = default;
};

struct ByteRange { u64 offset = 0, length = 0; bool operator==(const ByteRange&) const = default; };
/// A file to send, or of one larger than a segment only the segments [first, first + count), or only `ranges` (ascending); count 0 and
/// no ranges: all of it.
struct PullItem {
  u32 want = 0;
  tree::RelPath path;
  ContentId content;
  u32 first = 0, count = 0;
  std::vector<ByteRange> ranges = {};
  bool operator==(const PullItem&) const = default;
};
/// Of a content that is `want`ed: segments [first, first + count).
struct SegmentRange { u32 want = 0, first = 0, count = 0; bool operator==(const SegmentRange&) const = default; };
/// Followed by a blob: encode_pull_items(). The reply is a blob of packs. Each pack is one blob frame.
struct PullRequest {
  std::optional<int> force_level;
  std::optional<int> first_level = {};  // where more is known of the way than that it is new
  bool from_pool = false;            // of a target: contents that its records keep and its tree no longer has; paths do not count
  bool operator==(const PullRequest&) const = default;
};
Bytes encode_pull_items(const std::vector<PullItem>&);
Result<std::vector<PullItem>> decode_pull_items(ByteView);

/// Followed by a blob: an encoded TreeDelta from the observed tree to the desired one; then one for each of host_folders: the
/// items that lie there (encode_pull_items; their `want` is an index of the desired tree), none for all by their own paths.
struct StageRequest {
  RecordInfo head;                   // number, root, full, files, bytes are the agent's to fill in
  tree::RelPath commit_root;
  bool adopt = false;
  bool preserve_owner = false;
  bool write_mtime = true;
  std::vector<std::string> drop_unmanaged;
  bool has_ground = false;           // a blob follows the first: a TreeDelta from the desired tree to the ground
  std::vector<std::string> host_folders;  // of the target's host: where contents are taken from before the controller is asked
  u32 keep_generations = 2;
  bool verify_staged = false;
  bool use_local_content = true;
  Guarantee least = Guarantee::atomic;
  bool operator==(const StageRequest&) const = default;
};
struct StageReply {
  std::vector<u32> wanted;           // packed, ascending in send order
  std::vector<SegmentRange> missing; // of wanted contents that are there in part; all of the others is wanted
  u64 wanted_bytes = 0, linked = 0, copied = 0, bytes_read = 0, bytes_written = 0;
  Guarantee guarantee = Guarantee::atomic;
  std::vector<std::string> in_use;
  bool operator==(const StageReply&) const = default;
};
/// Followed by a blob of packs. The reply comes when all of them are written.
struct PutRequest { bool operator==(const PutRequest&) const = default; };
struct PutReply { u64 bytes_written = 0; bool operator==(const PutReply&) const = default; };
/// One exchange about changed files. Followed by a blob, and answered by one; both are lists of delta/lists.hpp.
enum class DeltaStep : u8 {
  chunks,       // files -> chunks. With a fine grain a target keeps their lengths for `copy`
  match,        // of a source: questions -> recipes
  copy,         // of a target: copies -> nothing; contents of the scanned tree go into the staged one
  signatures,   // of a target: named -> strings
  differences,  // of a source: named, with signatures -> strings
  patch,        // of a target: named, with differences -> nothing
};
struct DeltaRequest {
  DeltaStep step = DeltaStep::chunks;
  u8 grain = 0;                      // delta::Grain
  bool operator==(const DeltaRequest&) const = default;
};
struct SealRequest { bool operator==(const SealRequest&) const = default; };
struct SealReply { bool operator==(const SealReply&) const = default; };
/// Prepares, exchanges and accepts; the agent finishes it alone if the controller goes away.
struct CommitRequest { bool operator==(const CommitRequest&) const = default; };
struct CommitReply {
  u32 generation = 0;
  std::optional<u32> adopted;
  Guarantee guarantee = Guarantee::atomic;
  bool recovery_pending = false;
  std::vector<std::string> warnings;
  u64 bytes_read = 0, bytes_written = 0;
  bool operator==(const CommitReply&) const = default;
};
struct AbandonRequest { bool operator==(const AbandonRequest&) const = default; };
struct AbandonReply { bool operator==(const AbandonReply&) const = default; };
/// Writes a record for the tree as observed, without touching the tree: adopting what already equals the desired tree.
/// `has_ground`: followed by a blob, a TreeDelta from the observed tree to the ground.
struct AdoptRequest { RecordInfo head; bool has_ground = false; bool operator==(const AdoptRequest&) const = default; };
struct AdoptReply { u32 generation = 0; bool operator==(const AdoptReply&) const = default; };
struct RecordsRequest { bool operator==(const RecordsRequest&) const = default; };
struct RecordsReply { std::vector<RecordInfo> records; bool operator==(const RecordsReply&) const = default; };   // ascending, at most 10,000
struct PruneRequest {
  std::optional<u32> keep;
  std::vector<u32> drop;
  bool all = false;
  bool operator==(const PruneRequest&) const = default;
};
struct PruneReply { std::vector<u32> generations; u64 contents = 0, bytes_freed = 0; bool operator==(const PruneReply&) const = default; };
/// Small text files of the scanned root, by exact path, each at most 1 MiB; absent ones are left out. A reply of more than
/// kControlBytesMax is refused by its receiver: the agent leaves out what does not fit.
struct FilesRequest { std::vector<std::string> paths; bool operator==(const FilesRequest&) const = default; };
struct FilesReply { std::vector<std::pair<std::string, std::string>> files; bool operator==(const FilesReply&) const = default; };
/// sha256 of files of the scanned root. `paths`: at most kSumsMax.
struct SumsRequest { std::vector<std::string> paths; bool operator==(const SumsRequest&) const = default; };
struct SumsReply {
  std::vector<std::optional<Sha256>> sums;  // of each path; none where it is no file that can be read
  bool operator==(const SumsReply&) const = default;
};
/// What the libraries and programs of the scanned root say of themselves, and which of the names the host's own loader does not find.
struct LibrariesRequest {
  bool of_root = false;
  std::vector<std::string> sonames;  // at most 10,000
  bool operator==(const LibrariesRequest&) const = default;
};
struct LibraryInfo { std::string path, soname, search, needed; bool operator==(const LibraryInfo&) const = default; };  // needed: names, ':' between
struct LibrariesReply {
  std::vector<LibraryInfo> libraries;
  bool is_cut = false;               // there are more than a message holds
  std::vector<std::string> absent;
  bool operator==(const LibrariesReply&) const = default;
};
/// Runs a program of the host by its absolute path, 10 s at most, stdin closed: is the base interpreter there and alive.
struct ProbeRequest { std::string program; std::vector<std::string> arguments; bool operator==(const ProbeRequest&) const = default; };
struct ProbeReply {
  bool exists = false;   // and is executable
  int status = 0;        // as the shell gives it
  std::string output;    // at most 64 KiB
  bool operator==(const ProbeReply&) const = default;
};

/// Further connections may join the session from now on. `secret` proves that they are the controller's; it travels on this connection and
/// never in a command line.
struct LanesRequest { std::string secret; bool operator==(const LanesRequest&) const = default; };
struct LanesReply { std::string name; bool operator==(const LanesReply&) const = default; };   // of the socket, known on that host alone
/// In the start command of a further connection's agent, which hands the connection to the one of that `name`; then, as a request over
/// it and before any other, with the secret.
struct JoinRequest { std::string name, secret; bool operator==(const JoinRequest&) const = default; };
struct JoinReply { bool operator==(const JoinReply&) const = default; };
/// Over a further connection: packs of the pull that is request `pull` of the control connection come over this one, too.
struct HelpRequest { u32 pull = 0; bool operator==(const HelpRequest&) const = default; };
/// What of the wanted contents has not come, once every put is over; those that are open are ended first.
struct LackRequest { bool operator==(const LackRequest&) const = default; };
struct LackReply {
  std::vector<u32> wanted;           // as in StageReply
  std::vector<SegmentRange> missing;
  u64 wanted_bytes = 0;
  bool operator==(const LackReply&) const = default;
};

using Request = std::variant<ScanRequest, TreeRequest, PullRequest, StageRequest, PutRequest, SealRequest, CommitRequest,
                             AbandonRequest, AdoptRequest, RecordsRequest, PruneRequest, FilesRequest, ProbeRequest, SumsRequest, LibrariesRequest,
                             LanesRequest, JoinRequest, LackRequest, HelpRequest, DeltaRequest>;
struct BlobReply { bool operator==(const BlobReply&) const = default; };   // what was asked for came as blob frames
using Reply = std::variant<BlobReply, ScanReply, StageReply, PutReply, SealReply, CommitReply, AbandonReply, AdoptReply,
                           RecordsReply, PruneReply, FilesReply, ProbeReply, SumsReply, LibrariesReply, LanesReply, JoinReply, LackReply>;

struct Hello {
  std::string build;       // version
  std::string exe_digest;  // hex of XXH3-128 of /proc/self/exe
  u64 pid = 0;
  bool operator==(const Hello&) const = default;
};
struct Progress {
  Phase phase = Phase::scan;
  u64 files_done = 0, files_total = 0, bytes_done = 0, bytes_total = 0;
  bool operator==(const Progress&) const = default;
};

/// What breaks a limit of decode() is the sender's to avoid, but errors and problems are cut so that they always arrive.
Bytes encode(const Hello&);
Bytes encode(const Request&);
Bytes encode(const Reply&);
Bytes encode(const Progress&);
Bytes encode(const Error&);
Result<Hello> decode_hello(ByteView);
Result<Request> decode_request(ByteView);
Result<Reply> decode_reply(ByteView);
Result<Progress> decode_progress(ByteView);
/// An Error that the peer sent. `outer` is what could go wrong with the decoding itself.
Result<Error> decode_error(ByteView);

/// A framed, versioned, checksummed file: magic[4] version:u32le size:u64le checksum:u64le payload. For records, tree caches, stat caches.
Bytes seal_file(std::string_view magic, u32 version, ByteView payload);
Result<Bytes> open_file(std::string_view magic, u32 version, ByteView file);

}  // namespace envsync::format
