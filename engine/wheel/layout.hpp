// SPDX-License-Identifier: MIT
// Where the files of a wheel go, and what an installer writes beside them. No I/O.
//
// The result looks like an environment of no particular Python: packages lie in lib/python3/site-packages, headers in
// include/site/python3/<name>, scripts begin with "#!python". An overlay puts all three right for its target.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "python/record.hpp"
#include "wheel/archive.hpp"

namespace envsync::wheel {

inline constexpr std::string_view kSite = "lib/python3/site-packages", kHeaders = "include/site/python3";

struct PlacedFile {
  std::size_t entry = 0;      // of the archive
  tree::RelPath path;         // in the environment
  python::Sha256 sum{};       // as the wheel's RECORD promises
  bool is_executable = false;
};
struct WrittenFile { std::string text; bool is_executable = false; i64 mtime_ns = 0; };  // of the time of the wheel's RECORD

struct Layout {
  std::string name, version;  // as METADATA has them
  std::vector<PlacedFile> files;
  std::map<tree::RelPath, WrittenFile> written;  // RECORD, INSTALLER, the scripts of entry_points.txt
};

/// The dist-info of an archive, "x-1.0.dist-info"; an error where there is none or several.
Result<std::string> dist_info_of(const Archive& archive);

/// The texts of a dist-info that decide; entry_points is often absent.
struct Texts { std::string dist_info, wheel, metadata, record, entry_points; };
Result<Texts> read_texts(const Archive& archive, Reader& reader);

/// Refuses what is not in RECORD with its sha256, in this order or another, and what RECORD lists that is not there.
Result<Layout> lay_out(const Archive& archive, const Texts& texts);

}  // namespace envsync::wheel
