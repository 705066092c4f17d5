// SPDX-License-Identifier: MIT
// Wanted contents come in pieces, from several threads. A small file that is one piece is verified in memory and made at its place. A
// large one, or one of which parts come, is written in partial/; each segment is hashed when its last byte is there, and the whole is verified before the
// file moves into the tree.
#include <algorithm>

#include <fmt/format.h>

#include "base/buffer.hpp"
#include "store/receiving.hpp"
#include "store/tx_impl.hpp"

namespace envsync::store {

using content::Digest;
using content::kSegmentBytes;

namespace {

constexpr u64 kWritebackMin = 1u << 20;

Error bad_piece(const std::string& shown, std::string why) {
  return Error(ErrorCode::protocol, fmt::format("a piece of '{}' that was not asked for", shown)).cause(std::move(why));
}

Error wrong_content(const std::string& shown) {
  return Error(ErrorCode::source_changed, fmt::format("the content of '{}' is not the one that was planned", shown))
      .cause("it changed at the source after it was scanned")
      .note("nothing was changed")
      .hint("run again when the source is quiet");
}

}  // namespace

/// One put(): takes the pieces of a pack one after the other.
class PutPieces {
 public:
  explicit PutPieces(Transaction::Impl& t) : t_(t) {}

  Result<void> take(const content::Piece& piece, ByteView bytes) {
    if (piece.want >= t_.desired().size()) return bad_piece(fmt::format("entry {}", piece.want), "there is no such entry");
    const tree::Entry& entry = t_.desired()[piece.want];
    const std::string shown = t_.shown(entry.path);
    const tree::File* file = entry.file();
    if (!file || !is_wanted(piece.want)) return bad_piece(shown, "it is not among the wanted ones");
    const auto end = checked_add<u64>(piece.offset, piece.length);
    if (!end || *end > file->size || piece.length == 0) return bad_piece(shown, "it does not lie in the file");
    if (piece.length != file->size || file->size > kSegmentBytes) return take_part(piece, *file, shown, bytes);
    if (!take_up(piece.want)) return bad_piece(shown, "it came before");
    if (content::digest_of(bytes) != file->digest) return is_built(piece.want) ? ok() : wrong_content(shown);
    for (const u32 user : users(*file)) {
      TRY_STATUS(t_.make_small(user, bytes));
      TRY_STATUS(t_.join_members(user));
    }
    done(piece.want);
    return ok();
  }

 private:
  bool is_built(u32 index) {
    const std::lock_guard lock(t_.put_mutex);
    return t_.built.contains(index);
  }
  const std::vector<u32>& users(const tree::File& file) const { return t_.plan.contents.at(file.content()); }

  bool is_wanted(u32 index) {
    const std::lock_guard lock(t_.put_mutex);
    return t_.wanted.contains(index);
  }
  bool take_up(u32 index) {
    const std::lock_guard lock(t_.put_mutex);
    bool& is_taken = t_.wanted.at(index);
    return !std::exchange(is_taken, true);
  }
  void done(u32 index) {
    const std::lock_guard lock(t_.put_mutex);
    t_.built.erase(index);
    --t_.wanted_left;
  }

  Result<std::shared_ptr<Receiving>> receiving(u32 index, const tree::File& file) {
    const std::lock_guard lock(t_.put_mutex);
    std::shared_ptr<Receiving>& found = t_.receiving[index];
    if (found) return found;
    TRY(auto made, Receiving::make(*t_.files, t_.dir.get(), file.content()));
    t_.wanted.at(index) = true;
    found = std::move(made);
    return found;
  }

  Result<void> take_part(const content::Piece& piece, const tree::File& file, const std::string& shown, ByteView bytes) {
    TRY(const auto into, receiving(piece.want, file));
    {
      const std::lock_guard lock(into->mutex);
      if (!into->fd || !reserve(into->ranges, piece.offset, piece.offset + piece.length)) return bad_piece(shown, "some of it came before");
    }
    TRY_STATUS(t_.files->write_at(into->fd.get(), piece.offset, bytes, partial_path(into->content)));
    // DURABILITY: writeback begins while more arrives, so that sealing has little left to wait for. Of small parts it would write each page
    // several times.
    if (piece.length >= kWritebackMin) TRY_STATUS(t_.files->start_writeback(into->fd.get(), piece.offset, piece.length));
    t_.bytes_written += piece.length;
    bool is_last = false;
    for (u64 at = piece.offset; at < piece.offset + piece.length;) {
      const u64 segment = at / kSegmentBytes;
      const u64 part = std::min(piece.offset + piece.length, (segment + 1) * kSegmentBytes) - at;
      TRY(const bool is_whole, add_to_segment(*into, segment, bytes.subspan(static_cast<std::size_t>(at - piece.offset), static_cast<std::size_t>(part))));
      is_last = is_last || is_whole;
      at += part;
    }
    return is_last ? finish(piece.want, *into, file, shown) : ok();
  }

  /// True for the one call that completes the file's last segment.
  Result<bool> add_to_segment(Receiving& into, u64 segment, ByteView part) {
    const std::size_t index = static_cast<std::size_t>(segment);
    const u64 size = into.segment_size(index);
    std::optional<Digest> digest;
    if (part.size() == size) digest = content::digest_of(part);
    {
      const std::lock_guard lock(into.mutex);
      into.written[index] += part.size();
      if (into.written[index] < size) return false;
    }
    if (!digest) {
      Buffer whole(static_cast<std::size_t>(size));
      TRY(const std::size_t got, os::read_at(into.fd.get(), segment * kSegmentBytes, {whole.data(), whole.size()}, partial_path(into.content)));
      digest = content::digest_of(ByteView(whole).first(got));
      TRY_STATUS(t_.files->start_writeback(into.fd.get(), segment * kSegmentBytes, size));
    }
    const std::lock_guard lock(into.mutex);
    TRY_STATUS(into.add(*t_.files, index, *digest));
    return into.segments_left == 0;
  }

  Result<void> finish(u32 index, Receiving& into, const tree::File& file, const std::string& shown) {
    std::vector<Digest> digests;
    for (const auto& digest : into.digests) digests.push_back(*digest);
    const Digest whole = file.size > kSegmentBytes ? content::digest_of_segments(digests, file.size) : digests.front();
    if (whole != file.digest) {
      if (is_built(index)) return ok();  // lack() finds it
      TRY_STATUS(t_.files->unlink(t_.dir.get(), partial_path(into.content)));
      TRY_STATUS(t_.files->unlink(t_.dir.get(), segments_path(into.content)));
      return wrong_content(shown);
    }
    TRY_STATUS(t_.finish_file(index, into.fd.get(), true));
    const std::string to = t_.staged_path(t_.desired()[index].path);
    TRY_STATUS(t_.files->rename_noreplace(t_.dir.get(), partial_path(into.content), t_.dir.get(), to));
    TRY_STATUS(t_.files->unlink(t_.dir.get(), segments_path(into.content)));
    TRY(const os::Stat stat, os::stat_fd(into.fd.get()));
    t_.staged[index] = scan::key_of(stat);
    into.fd.reset();
    into.list.reset();
    TRY_STATUS(t_.finish_content(users(file)));
    done(index);
    return ok();
  }

  Transaction::Impl& t_;
};

Result<void> Transaction::put(const std::vector<content::Piece>& pieces, ByteView content) {
  if (impl_->stage != Impl::Stage::building) return Error(ErrorCode::protocol, "a pack came after the staged tree was sealed");
  PutPieces put(*impl_);
  std::size_t at = 0;
  for (const content::Piece& piece : pieces) {
    if (content.size() - at < piece.length) return Error(ErrorCode::protocol, "a pack with fewer bytes than its pieces name");
    TRY_STATUS(put.take(piece, content.subspan(at, piece.length)));
    at += piece.length;
  }
  if (at != content.size()) return Error(ErrorCode::protocol, "a pack with more bytes than its pieces name");
  return ok();
}

namespace {

/// Under the mutex of puts: as if nothing of it had come.
Result<void> forget(Transaction::Impl& t, u32 index) {
  t.wanted.at(index) = false;
  t.built.erase(index);
  const auto begun = t.receiving.extract(index);
  if (!begun || !begun.mapped()->fd) return ok();
  TRY_STATUS(t.files->unlink(t.dir.get(), partial_path(begun.mapped()->content)));
  return t.files->unlink(t.dir.get(), segments_path(begun.mapped()->content));
}

}  // namespace

std::optional<content::ContentId> Transaction::expects(u32 want) const {
  const std::lock_guard lock(impl_->put_mutex);
  const bool is_wanted = impl_->stage == Impl::Stage::building && impl_->wanted.contains(want);
  return is_wanted ? std::optional(impl_->desired()[want].file()->content()) : std::nullopt;
}

Result<void> Transaction::build(u32 want) {
  const std::lock_guard lock(impl_->put_mutex);
  if (!impl_->wanted.contains(want)) return Error(ErrorCode::protocol, "a content is to be built that is not wanted");
  impl_->built.insert(want);
  return ok();
}

Result<std::size_t> Transaction::read_begun(u32 want, u64 offset, std::span<std::byte> into) const {
  std::shared_ptr<Receiving> begun;
  {
    const std::lock_guard lock(impl_->put_mutex);
    if (const auto found = impl_->receiving.find(want); found != impl_->receiving.end()) begun = found->second;
  }
  // It is whole only once all that is read into has been put.
  if (!begun || !begun->fd) return std::size_t{0};
  return os::read_at(begun->fd.get(), offset, into, partial_path(begun->content));
}

Result<Lack> Transaction::lack() {
  Impl& t = *impl_;
  if (t.stage != Impl::Stage::building) return Error(ErrorCode::protocol, "the staged tree is sealed");
  Lack lack;
  const std::lock_guard lock(t.put_mutex);
  for (const u32 index : t.needs.wanted) {
    const tree::File& file = *t.desired()[index].file();
    auto begun = t.receiving.find(index);
    const bool is_begun = begun != t.receiving.end() && begun->second->fd;
    // All of it came and it is another content; or it is too small to have segments.
    const bool is_wrong = is_begun ? begun->second->segments_left == 0 || file.size <= kSegmentBytes : begun == t.receiving.end() && t.built.contains(index);
    if (is_wrong) {
      TRY_STATUS(forget(t, index));
      begun = t.receiving.end();
    }
    u64 there = 0;
    if (begun != t.receiving.end()) {
      if (!begun->second->fd) continue;  // whole, and in the tree
      begun->second->forget_unfinished();
      there = list_missing(index, *begun->second, lack.missing);
    } else if (t.wanted.at(index)) {
      continue;
    }
    lack.wanted.push_back(index);
    lack.wanted_bytes += file.size - there;
  }
  if (lack.wanted.size() == t.wanted_left) return lack;
  return Error(ErrorCode::io, fmt::format("{} contents came and could not be written", t.wanted_left - lack.wanted.size()));
}

}  // namespace envsync::store
