// SPDX-License-Identifier: MIT
// The one file that knows zstd. Contexts are per thread: making one costs more than compressing a small pack.
#include "content/pack.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <zstd.h>

#include "content/zstd.hpp"

namespace envsync::content {

namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

/// What a thread keeps between two calls.
struct PerThread {
  std::unique_ptr<ZSTD_CCtx, FreeContext> compressor;
  std::unique_ptr<ZSTD_DCtx, FreeContext> decompressor;
};

PerThread& per_thread() {
  thread_local PerThread mine;
  return mine;
}

Error not_zstd(std::string_view why) { return Error(ErrorCode::corrupt, fmt::format("bytes that are no zstd frame of ours: {}", why)); }

/// LIMIT: a block of a zstd frame gives at most 128 KiB and costs at least 3 bytes, so a short frame cannot claim a long content.
constexpr u64 kBlockBytesMax = 128u << 10, kBlockCostMin = 3;

}  // namespace

Buffer compress_behind(std::size_t front, ByteView bytes, int level) {
  PerThread& mine = per_thread();
  if (!mine.compressor) mine.compressor.reset(ZSTD_createCCtx());
  ENVSYNC_CHECK(mine.compressor != nullptr);
  Buffer out(front + ZSTD_compressBound(bytes.size()));
  level = std::clamp(level, ZSTD_minCLevel(), ZSTD_maxCLevel());
  const std::size_t size =
      ZSTD_compressCCtx(mine.compressor.get(), out.data() + front, out.size() - front, bytes.data(), bytes.size(), level);
  ENVSYNC_CHECK(!ZSTD_isError(size));
  out.shorten(front + size);
  return out;
}

Bytes compress(ByteView bytes, int level) {
  const Buffer out = compress_behind(0, bytes, level);
  return Bytes(out.begin(), out.end());
}

Result<Buffer> unpack(ByteView bytes, std::size_t limit) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) return not_zstd("no content size");
  if (size > limit) return not_zstd(fmt::format("content of {} bytes, at most {} are allowed", size, limit));
  if (size > (bytes.size() / kBlockCostMin + 1) * kBlockBytesMax) return not_zstd("content size beyond what its bytes can give");
  if (ZSTD_findFrameCompressedSize(bytes.data(), bytes.size()) != bytes.size()) return not_zstd("cut short, or bytes after its end");
  PerThread& mine = per_thread();
  if (!mine.decompressor) mine.decompressor.reset(ZSTD_createDCtx());
  ENVSYNC_CHECK(mine.decompressor != nullptr);
  Buffer out(static_cast<std::size_t>(size));
  const std::size_t got = ZSTD_decompressDCtx(mine.decompressor.get(), out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got)) return not_zstd(ZSTD_getErrorName(got));
  if (got != out.size()) return not_zstd("shorter than its content size");
  return out;
}

Result<Bytes> decompress(ByteView bytes, std::size_t limit) {
  TRY(const Buffer out, unpack(bytes, limit));
  return Bytes(out.begin(), out.end());
}

}  // namespace envsync::content
