// SPDX-License-Identifier: MIT
// Private to format/: lists in bytes, and the door that every field passes on its way in.
//
//   string list  := count:varint ( length:varint bytes )*
//   number list  := count:varint ( zigzag of the difference to the number before, the first to 0 :varint )*
//   path column  := ( shared:varint rest_length:varint rest )*      shared: bytes taken from the path before
//   path list    := zstd( count:varint path column )
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <envsync/result.hpp>

#include "base/bytes.hpp"
#include "content/digest.hpp"
#include "format/messages.hpp"
#include "tree/path.hpp"

namespace envsync::wire {
class Error;
class RecordInfo;
class Request;
class Reply;
}  // namespace envsync::wire

namespace envsync::format {

inline constexpr std::size_t kTextBytesMax = 64u << 10;    // LIMIT: one line or small file for a person to read
inline constexpr std::size_t kErrorTextMax = 8u << 10;     // LIMIT: one line of an Error; with its 400 lines below 4 MiB
inline constexpr std::size_t kFileBytesMax = 1u << 20;     // LIMIT: one file of a FilesReply
inline constexpr std::size_t kListMax = 10'000;            // LIMIT: one string list
inline constexpr std::size_t kEntriesMax = 4'000'000;      // LIMIT: entries of a tree
inline constexpr std::size_t kPrefixesMax = 1'000'000;     // LIMIT: one compressed path list
inline constexpr std::size_t kPathColumnMax = 256u << 20;  // LIMIT: bytes of all paths of one column, prefixes included
inline constexpr std::size_t kProblemsMax = 100;

std::string encode_strings(const std::vector<std::string>& strings);
std::string encode_numbers(const std::vector<u32>& numbers);
std::string encode_paths(const std::vector<std::string>& paths);
/// One number of a number list; `before` is the number before it, 0 at first, and becomes this one.
void put_number(Bytes& out, i64& before, u32 number);
std::optional<u32> take_number(ByteView& in, i64& before);
/// Appends one path of a column; `before` is the path before it.
void put_path(Bytes& out, std::string_view before, std::string_view path);
/// Takes one path of a column; `budget` is what is left of kPathColumnMax.
std::optional<std::string> take_path(ByteView& in, std::string_view before, std::size_t& budget);

/// Takes fields in and remembers the first that is not acceptable; what it then gives are empty values.
class Door {
 public:
  /// At most `max` bytes of any kind.
  std::string text(std::string_view bytes, std::string_view field, std::size_t max = kTextBytesMax);
  /// A path of a file system: no NUL, absolute or below "~/".
  std::string absolute(std::string_view bytes, std::string_view field);
  std::string absolute_or_empty(std::string_view bytes, std::string_view field);
  tree::RelPath relative(std::string_view bytes, std::string_view field);
  Digest digest(std::string_view bytes, std::string_view field);
  std::vector<Digest> digests(std::string_view bytes, std::size_t max, std::string_view field);
  double seconds(double value, std::string_view field);
  tree::ComparePolicy policy(u32 bits);
  template <class Enum>
  Enum choice(u32 value, Enum last, std::string_view field) {
    if (value > static_cast<u32>(last)) return refuse(field, "is no value of its kind"), Enum{};
    return static_cast<Enum>(value);
  }
  std::vector<std::string> strings(std::string_view bytes, std::string_view field, std::size_t max = kListMax,
                                   std::size_t text_max = kTextBytesMax);
  std::vector<u32> numbers(std::string_view bytes, std::size_t max, std::string_view field);
  std::vector<std::string> prefixes(std::string_view compressed, std::string_view field);

  void refuse(std::string_view field, std::string_view why);
  bool is_open() const { return refusal_.empty(); }
  /// ok(), or ErrorCode::protocol with the first field that was refused.
  Result<void> verdict(std::string_view message) const;

 private:
  std::string refusal_;
};

inline std::string bytes_of(const Digest& digest) { return std::string(as_text(digest.bytes)); }

void put_record(wire::RecordInfo& out, const RecordInfo& record);
RecordInfo take_record(Door& door, const wire::RecordInfo& in);

/// ErrorCode::protocol: the message is not one, for a reason that names no field.
Error no_message(std::string_view message, std::string_view why);

}  // namespace envsync::format
