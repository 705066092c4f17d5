// SPDX-License-Identifier: MIT
//   texts file := format::seal_file("ETXS", 1, zstd( ( text:string )* ))     in the cache folder, by the label's digest
#include "apply/texts.hpp"

#include <unordered_map>

#include <fmt/format.h>

#include "content/pack.hpp"
#include "os/paths.hpp"

namespace envsync::apply {

using namespace format;

namespace {

constexpr std::string_view kMagic = "ETXS";
constexpr u32 kVersion = 1;
constexpr u64 kTextMax = 64u << 20;        // LIMIT: one text; the largest RECORD of a real environment has 2 MB
constexpr u64 kTextsMax = 512u << 20;      // LIMIT: texts of one place
constexpr int kLevel = 1;

using Texts = std::unordered_map<content::ContentId, std::string, content::ContentIdHash>;

std::string file_name(const std::string& label) { return "texts-" + content::digest_of(as_bytes(label)).hex(); }

/// What is damaged or missing is a miss, never an error.
Texts load(const std::string& label) {
  Texts texts;
  const std::string folder = os::cache_folder();
  auto dir = folder.empty() ? Result<os::Fd>(Error{ErrorCode::io, "no cache"}) : os::open_dir_absolute(folder);
  if (!dir) return texts;
  const auto file = os::read_small(dir->get(), file_name(label), kTextsMax);
  const auto payload = file ? open_file(kMagic, kVersion, as_bytes(*file)) : Result<Bytes>(file.error());
  const auto all = payload ? content::decompress(*payload, kTextsMax) : payload;
  if (!all) return texts;
  for (ByteView in = *all; !in.empty();) {
    const auto text = take_string(in);
    if (!text) return texts;
    texts.emplace(content::ContentId{content::digest_of(as_bytes(*text)), text->size()}, *text);
  }
  return texts;
}

void save(Run& run, const std::string& label, const std::vector<WantedText>& wanted, const Texts& texts) {
  const std::string folder = os::cache_folder();
  if (folder.empty()) return;
  auto dir = os::open_dir_absolute(folder);
  if (!dir) return;
  Bytes all;
  for (const WantedText& one : wanted)
    if (const auto text = texts.find(one.content); text != texts.end()) put_string(all, text->second);
  (void)os::replace_cache_file(*run.files, dir->get(), file_name(label), seal_file(kMagic, kVersion, content::compress(all, kLevel)));
}

/// Files of more than one segment come in pieces.
class Gatherer {
 public:
  explicit Gatherer(const std::vector<PullItem>& items) : items_(items), parts_(items.size()) {}

  Result<void> take(Buffer packed) {
    TRY(const content::OpenPack pack, content::decode_pack(std::move(packed)));
    std::size_t at = 0;
    for (const content::Piece& piece : pack.pieces) {
      const bool fits = piece.want < items_.size() && piece.offset == parts_[piece.want].size() &&
                        piece.length <= items_[piece.want].content.size - piece.offset;
      if (!fits) return Error{ErrorCode::protocol, "a pack holds a piece that was not asked for"};
      parts_[piece.want] += as_text(pack.content().subspan(at, piece.length));
      at += piece.length;
    }
    return ok();
  }

  Result<void> finish(Texts& texts) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      content::FileHasher hasher;
      hasher.update(as_bytes(parts_[i]));
      const bool is_same = parts_[i].size() == items_[i].content.size && hasher.finish() == items_[i].content.digest;
      if (!is_same) return Error{ErrorCode::source_changed, fmt::format("'{}' changed after it was scanned", printable(items_[i].path.bytes()))}.note("nothing was changed");
      texts.emplace(items_[i].content, std::move(parts_[i]));
    }
    return ok();
  }

 private:
  const std::vector<PullItem>& items_;
  std::vector<std::string> parts_;
};

}  // namespace

Result<python::SmallFiles> fetch_texts(Run& run, Session& session, const std::string& label, const std::vector<WantedText>& wanted, TextPlace place) {
  const std::string kept = fmt::format("{}:{}:{}", session.name, session.scan.path, label);
  Texts texts = load(kept);
  std::vector<PullItem> items;
  u64 bytes = 0;
  std::unordered_map<content::ContentId, bool, content::ContentIdHash> asked;
  for (const WantedText& one : wanted) {
    if (one.content.size > kTextMax || bytes + one.content.size > kTextsMax) continue;
    if (texts.contains(one.content) || !asked.emplace(one.content, true).second) continue;
    bytes += one.content.size;
    items.push_back({narrow<u32>(items.size()), one.path, one.content});
  }
  if (!items.empty()) {
    PullRequest request;
    request.from_pool = place == TextPlace::pool;
    Gatherer gatherer(items);
    TRY_STATUS(session.endpoint->pull(request, items, [&](Buffer pack) { return gatherer.take(std::move(pack)); }, run.stop));
    TRY_STATUS(gatherer.finish(texts));
    save(run, kept, wanted, texts);
  }
  // Most have one name; RECORDs take megabytes.
  std::unordered_map<content::ContentId, std::size_t, content::ContentIdHash> names;
  for (const WantedText& one : wanted) ++names[one.content];
  python::SmallFiles files;
  for (const WantedText& one : wanted) {
    const auto text = texts.find(one.content);
    if (text == texts.end()) continue;
    if (--names[one.content] == 0) files.emplace(one.name, std::move(text->second));
    else files.emplace(one.name, text->second);
  }
  return files;
}

Result<python::Sums> fetch_sums(Run& run, Session& session, const std::vector<tree::RelPath>& paths) {
  python::Sums sums;
  constexpr std::size_t kPathBytesMax = 3u << 20;  // below what a control message carries
  for (std::size_t at = 0; at < paths.size();) {
    SumsRequest request;
    for (std::size_t bytes = 0; at < paths.size() && request.paths.size() < kSumsMax && bytes < kPathBytesMax; ++at) {
      bytes += paths[at].bytes().size();
      request.paths.push_back(paths[at].bytes());
    }
    TRY(const SumsReply reply, session.endpoint->sums(request, run.stop));
    if (reply.sums.size() != request.paths.size()) return Error{ErrorCode::protocol, "sums came for other files than were asked for"};
    for (std::size_t i = 0; i < reply.sums.size(); ++i)
      if (reply.sums[i]) sums.emplace(request.paths[i], *reply.sums[i]);
  }
  return sums;
}

}  // namespace envsync::apply
