// SPDX-License-Identifier: MIT
#include "wheel/archive.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <minizip/unzip.h>

#include "os/files.hpp"
#include "tree/path.hpp"

namespace envsync::wheel {

namespace {

constexpr std::size_t kNameMax = 4096;
constexpr std::size_t kPieceBytes = 256u << 10;
constexpr u64 kEntryOverhead = 30 + 46;  // a local header and its line in the directory, both without the name
constexpr u32 kTypeMask = 0170000, kRegular = 0100000, kFolder = 0040000, kSymlink = 0120000, kAnyExecute = 0111;

/// The archive's bytes, as minizip asks for them: positions of its own on a descriptor that many share.
struct Cursor {
  int fd = -1;
  u64 size = 0, at = 0;
  bool has_failed = false;  // also by the archive's end: minizip takes bytes beyond it for zeros
};

extern "C" {
voidpf open_cursor(voidpf opaque, const void*, int) { return opaque; }
uLong read_cursor(voidpf, voidpf stream, void* buffer, uLong size) {
  auto& cursor = *static_cast<Cursor*>(stream);
  const auto got = os::read_at(cursor.fd, cursor.at, std::span(static_cast<std::byte*>(buffer), size), "the wheel");
  cursor.has_failed = cursor.has_failed || !got || *got < size;
  if (!got) return 0;
  cursor.at += *got;
  return *got;
}
uLong write_cursor(voidpf, voidpf, const void*, uLong) { return 0; }
ZPOS64_T tell_cursor(voidpf, voidpf stream) { return static_cast<Cursor*>(stream)->at; }
long seek_cursor(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  auto& cursor = *static_cast<Cursor*>(stream);
  const u64 base = origin == ZLIB_FILEFUNC_SEEK_CUR ? cursor.at : origin == ZLIB_FILEFUNC_SEEK_END ? cursor.size : 0;
  const auto to = checked_add<u64>(base, offset);
  if (!to || *to > cursor.size) return -1;
  cursor.at = *to;
  return 0;
}
int close_cursor(voidpf, voidpf) { return 0; }
int error_cursor(voidpf, voidpf stream) { return static_cast<Cursor*>(stream)->has_failed ? 1 : 0; }
}

/// Nanoseconds of an archive's date, which has no zone. Not before the second day of 1980: tools refuse an earlier one, in any zone.
i64 time_of(const tm_unz& date) {
  using namespace std::chrono;
  const year_month_day day{year(static_cast<int>(date.tm_year)), month(static_cast<unsigned>(date.tm_mon) + 1), std::chrono::day(static_cast<unsigned>(date.tm_mday))};
  constexpr sys_days kFirst{year{1980} / January / 2};
  const sys_seconds earliest{kFirst};
  if (!day.ok()) return duration_cast<nanoseconds>(earliest.time_since_epoch()).count();
  const sys_seconds time = sys_days{day} + hours(date.tm_hour) + minutes(date.tm_min) + seconds(date.tm_sec);
  return duration_cast<nanoseconds>(std::max(time, earliest).time_since_epoch()).count();
}

/// Why an entry is refused; empty: it is not. Folders end in a slash.
std::string wrong_with(const std::string& name, const unz_file_info64& info) {
  constexpr uLong kEncrypted = 1, kStored = 0, kDeflated = 8;
  const u32 type = static_cast<u32>(info.external_fa >> 16) & kTypeMask;
  const bool is_folder = name.ends_with('/');
  if (name.find('\0') != std::string::npos) return "its name holds a NUL byte";
  if (name.find('\\') != std::string::npos) return "its name holds a backslash";
  if (name.starts_with('/')) return "its name is absolute";
  const auto path = tree::RelPath::parse(is_folder ? name.substr(0, name.size() - 1) : name);
  if (!path || path->is_root()) return "its name leaves the wheel, or is no path";
  if (type == kSymlink) return "it is a symbolic link";
  if (type != 0 && type != kRegular && type != kFolder) return "it is no regular file";
  if ((info.flag & kEncrypted) != 0) return "it is encrypted";
  if (info.compression_method != kStored && info.compression_method != kDeflated)
    return fmt::format("it is packed by method {}, which wheels do not use", info.compression_method);
  if (is_folder && info.uncompressed_size != 0) return "it is a folder with content";
  if (info.compression_method == kStored && info.compressed_size != info.uncompressed_size) return "its sizes contradict each other";
  return {};
}

}  // namespace

Error refused(const std::string& wheel, std::string cause) {
  return Error{ErrorCode::wheel_refused, fmt::format("the wheel '{}' is refused", printable(wheel))}
      .cause(std::move(cause))
      .note("nothing of it was installed")
      .hint("fetch the wheel again from where it is published");
}

struct Reader::State {
  const Archive* archive = nullptr;
  Cursor cursor;
  unzFile zip = nullptr;
  Bytes buffer;
  ~State() {
    if (zip != nullptr) ::unzClose(zip);
  }
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader::~Reader() = default;

namespace {

Result<unzFile> open_zip(Cursor& cursor, const std::string& name) {
  zlib_filefunc64_def functions{open_cursor, read_cursor, write_cursor, tell_cursor, seek_cursor, close_cursor, error_cursor, &cursor};
  unzFile zip = ::unzOpen2_64("", &functions);
  if (zip == nullptr) return refused(name, "it is no zip archive, or its end is missing");
  return zip;
}

}  // namespace

Result<Reader> Reader::open(const Archive& archive) {
  TRY(const os::Stat st, os::stat_fd(archive.fd()));
  auto state = std::make_unique<State>();
  state->archive = &archive;
  state->cursor = {archive.fd(), st.size};
  TRY(state->zip, open_zip(state->cursor, archive.name()));
  state->buffer.resize(kPieceBytes);
  return Reader(std::move(state));
}

Result<void> Reader::read(const ArchiveEntry& entry, const Sink& sink) {
  const auto damaged = [&](std::string_view why) { return refused(state_->archive->name(), fmt::format("'{}': {}", printable(entry.name), why)); };
  const unz64_file_pos place{entry.directory_at, entry.number};
  if (::unzGoToFilePos64(state_->zip, &place) != UNZ_OK || ::unzOpenCurrentFile(state_->zip) != UNZ_OK)
    return damaged("the archive is damaged where it lies");
  u64 total = 0;
  Result<void> result = ok();
  for (;;) {
    const int got = ::unzReadCurrentFile(state_->zip, state_->buffer.data(), static_cast<unsigned>(state_->buffer.size()));
    if (got < 0) result = damaged("its content does not unpack");
    if (got <= 0) break;
    total += static_cast<u64>(got);
    if (total > entry.size) result = damaged("it unpacks to more than it promised");
    else result = sink(ByteView(state_->buffer).first(static_cast<std::size_t>(got)));
    if (!result) break;
  }
  const int closed = ::unzCloseCurrentFile(state_->zip);
  TRY_STATUS(std::move(result));
  if (total != entry.size) return damaged("it is cut off");
  if (closed != UNZ_OK) return damaged("its checksum is wrong");
  return ok();
}

Result<std::string> Reader::text(const ArchiveEntry& entry, u64 limit) {
  if (entry.size > limit) return refused(state_->archive->name(), fmt::format("'{}' has {}, more than {}", printable(entry.name), human_bytes(entry.size), human_bytes(limit)));
  std::string out;
  TRY_STATUS(read(entry, [&](ByteView piece) {
    out += as_text(piece);
    return ok();
  }));
  return out;
}

Result<Archive> Archive::open(os::Fd file, std::string name) {
  Archive archive;
  archive.file_ = std::move(file);
  archive.name_ = std::move(name);
  TRY_STATUS(archive.read_list());
  return archive;
}

const ArchiveEntry* Archive::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &ArchiveEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

Result<void> Archive::read_list() {
  TRY(const os::Stat st, os::stat_fd(file_.get()));
  Cursor cursor{file_.get(), st.size};
  TRY(const unzFile zip, open_zip(cursor, name_));
  const auto close = [](unzFile open) { ::unzClose(open); };
  const std::unique_ptr<void, decltype(close)> closer(zip, close);
  unz_global_info64 global{};
  if (::unzGetGlobalInfo64(zip, &global) != UNZ_OK) return refused(name_, "its list of files is damaged");
  if (global.number_entry > kEntriesMax) return refused(name_, fmt::format("it says that it holds {} files, more than {}", global.number_entry, kEntriesMax));
  std::array<char, kNameMax + 1> buffer{};
  std::set<std::string> names;
  u64 packed = 0;
  for (u64 i = 0; i < global.number_entry; ++i) {
    unz_file_info64 info{};
    unz64_file_pos place{};
    if ((i == 0 ? ::unzGoToFirstFile(zip) : ::unzGoToNextFile(zip)) != UNZ_OK || ::unzGetFilePos64(zip, &place) != UNZ_OK ||
        ::unzGetCurrentFileInfo64(zip, &info, buffer.data(), buffer.size(), nullptr, 0, nullptr, 0) != UNZ_OK)
      return refused(name_, fmt::format("its list of files is damaged after {} files", i));
    if (info.size_filename > kNameMax) return refused(name_, fmt::format("a name has {} bytes, more than {}", info.size_filename, kNameMax));
    const std::string name(buffer.data(), info.size_filename);
    if (const std::string why = wrong_with(name, info); !why.empty()) return refused(name_, fmt::format("'{}': {}", printable(name), why));
    if (!names.insert(name).second) return refused(name_, fmt::format("'{}' is in it twice", printable(name)));
    // Files that share their bytes would add up to more than the archive has.
    const auto occupied = checked_add<u64>(packed, info.compressed_size);
    if (!occupied || *occupied > st.size) return refused(name_, "its files overlap each other");
    packed = *occupied + kEntryOverhead + 2 * name.size();
    if (info.uncompressed_size > kUnpackedMax - unpacked_) return refused(name_, fmt::format("it unpacks to more than {}", human_bytes(kUnpackedMax)));
    unpacked_ += info.uncompressed_size;
    if (name.ends_with('/')) continue;
    const u32 mode = static_cast<u32>(info.external_fa >> 16);
    entries_.push_back({name, info.uncompressed_size, info.compressed_size, (mode & kTypeMask) == kRegular && (mode & kAnyExecute) != 0,
                        time_of(info.tmu_date), place.pos_in_zip_directory, place.num_of_file});
  }
  if (packed > st.size) return refused(name_, "its files overlap each other");
  if (unpacked_ > kInflationFree && unpacked_ / kInflationMax > st.size)
    return refused(name_, fmt::format("it has {} and unpacks to {}", human_bytes(st.size), human_bytes(unpacked_)));
  return ok();
}

}  // namespace envsync::wheel
