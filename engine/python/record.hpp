// SPDX-License-Identifier: MIT
// RECORD of a dist-info: which paths a distribution owns, with their sha256. It is untrusted input: a row that is absolute,
// leaves the environment or cannot be a path is set aside with its reason, and never resolved to something else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/sha256.hpp"
#include "tree/path.hpp"

namespace envsync::python {

// LIMIT: the largest RECORD of a real environment of 78,000 files has 16,000 rows and 2 MB.
inline constexpr std::size_t kRecordBytesMax = 128u << 20, kRecordRowsMax = 500'000, kRecordFieldBytesMax = 65'536;

using envsync::Sha256;
/// From "sha256=" and 43 characters of urlsafe base64 without padding; nullopt for anything else, other algorithms included.
std::optional<Sha256> parse_record_hash(std::string_view field);
std::string render_record_hash(const Sha256& sum);

struct RecordRow {
  std::string path;            // as written, quotes resolved
  std::string hash;            // as written; often empty for RECORD itself and for bytecode
  std::optional<u64> size;
  u32 line = 0;                // from 1
  std::size_t begin = 0, end = 0;  // its bytes in the text, line end included
};

struct RecordProblem {
  u32 line = 0;
  std::string row;  // the path as written, shortened
  std::string why;  // "holds a NUL byte"
};

struct Record {
  std::vector<RecordRow> rows;
  std::vector<RecordProblem> problems;  // rows set aside
  std::string broken;                   // why nothing of it counts (too many rows, an open quote); rows are empty then
};

/// CSV as Python's csv module reads it: quoted fields may hold commas, doubled quotes and line ends.
Record parse_record(std::string_view text);

/// Where a row lies beneath the environment's root: resolved lexically against `site`, the folder that holds the dist-info, and
/// guarded by path components. `root`: the environment's absolute path, under which absolute rows are accepted; empty: none are.
/// The error is a reason that completes "the row ...".
tl::expected<tree::RelPath, std::string_view> resolve_row(const tree::RelPath& site, std::string_view row, std::string_view root = {});

/// A RECORD with other content for some rows (keyed by their path as written); nullopt drops the row. All other bytes stay.
struct RowContent { Sha256 sum{}; u64 size = 0; };
using RowChanges = std::map<std::string, std::optional<RowContent>, std::less<>>;
std::string with_changed_rows(std::string_view text, const RowChanges& changes);

/// A RECORD with other paths for some rows, keyed by their path as written. All other bytes stay.
using RowMoves = std::map<std::string, std::string, std::less<>>;
std::string with_moved_rows(std::string_view text, const RowMoves& moves);

/// A field as Python's csv module writes it: in quotes only where it must be.
std::string csv_field(std::string_view field);

}  // namespace envsync::python
