// SPDX-License-Identifier: MIT
#include "delta/rsync.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <librsync.h>

namespace envsync::delta {

namespace {

constexpr std::size_t kBlock = 512, kStrong = 6;
constexpr rs_magic_number kMagic = RS_RK_BLAKE2_SIG_MAGIC;

struct FreeJob { void operator()(rs_job_t* job) const { rs_job_free(job); } };
using Job = std::unique_ptr<rs_job_t, FreeJob>;
struct FreeSums { void operator()(rs_signature_t* sums) const { rs_free_sumset(sums); } };
using Sums = std::unique_ptr<rs_signature_t, FreeSums>;

Error bad(std::string_view what, rs_result why) {
  return Error(ErrorCode::protocol, std::string(what)).cause(rs_strerror(why));
}

/// The library says on stderr what it returns anyway.
void keep_quiet() {
  static const bool is_quiet = (rs_trace_to([](rs_loglevel, const char*) {}), true);
  (void)is_quiet;
}

/// Runs a job over all of `in`. The output grows as needed, up to `limit`.
Result<Bytes> run(rs_job_t* job, ByteView in, std::size_t limit, std::string_view what) {
  keep_quiet();
  Bytes out(std::min(limit, in.size() / 8 + 1024));
  std::size_t filled = 0;
  rs_buffers_t buffers{};
  // SAFETY: the library takes char pointers and does not write through next_in.
  buffers.next_in = const_cast<char*>(as_text(in).data());
  buffers.avail_in = in.size();
  buffers.eof_in = 1;
  for (;;) {
    std::byte spare{};  // where all that may come is there, one more byte shows that there is more
    const bool is_full = filled == limit;
    if (filled == out.size() && !is_full) out.resize(std::min(limit, 2 * out.size() + 1024));
    buffers.next_out = reinterpret_cast<char*>(is_full ? &spare : out.data() + filled);
    buffers.avail_out = is_full ? 1 : out.size() - filled;
    const std::size_t room = buffers.avail_out;
    const rs_result result = rs_job_iter(job, &buffers);
    const std::size_t made = room - buffers.avail_out;
    if (is_full && made > 0) return Error(ErrorCode::protocol, std::string(what)).cause("it gives more bytes than were announced");
    if (!is_full) filled += made;
    if (result == RS_DONE) break;
    if (result != RS_BLOCKED) return bad(what, result);
    if (made == 0 && buffers.avail_in == 0 && buffers.avail_out > 0) return bad(what, RS_INPUT_ENDED);
  }
  out.resize(filled);
  return out;
}

u32 big_endian(ByteView in, std::size_t at) {
  u32 value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = (value << 8) | static_cast<u32>(in[at + i]);
  return value;
}

rs_result copy_from(void* opaque, rs_long_t at, std::size_t* length, void** bytes) {
  const ByteView& basis = *static_cast<const ByteView*>(opaque);
  if (at < 0 || static_cast<u64>(at) >= basis.size()) {
    *length = 0;
    return RS_INPUT_ENDED;
  }
  const ByteView part = basis.subspan(static_cast<std::size_t>(at), std::min(*length, basis.size() - static_cast<std::size_t>(at)));
  std::memcpy(*bytes, part.data(), part.size());
  *length = part.size();
  return RS_DONE;
}

}  // namespace

Bytes signature_of(ByteView basis) {
  const Job job(rs_sig_begin(kBlock, kStrong, kMagic));
  auto made = run(job.get(), basis, 12 + (basis.size() / kBlock + 1) * (4 + kStrong), "a signature");
  ENVSYNC_CHECK(made.has_value());
  return std::move(*made);
}

Result<Bytes> difference(ByteView signature, ByteView content) {
  // LIMIT: the block's length says how much the library takes for its buffers.
  constexpr std::size_t kHead = 12;
  if (signature.size() < kHead || big_endian(signature, 0) != static_cast<u32>(kMagic) || big_endian(signature, 4) != kBlock || big_endian(signature, 8) != kStrong)
    return Error(ErrorCode::protocol, "a signature of another kind");
  rs_signature_t* loaded = nullptr;
  const Job load(rs_loadsig_begin(&loaded));
  auto read = run(load.get(), signature, 0, "a damaged signature");
  const Sums sums(loaded);
  if (!read) return std::move(read).error();
  if (const rs_result built = rs_build_hash_table(sums.get()); built != RS_DONE) return bad("a damaged signature", built);
  const Job job(rs_delta_begin(sums.get()));
  return run(job.get(), content, 2 * content.size() + 1024, "a difference");
}

Result<Bytes> patched(ByteView basis, ByteView difference, std::size_t size) {
  const Job job(rs_patch_begin(copy_from, &basis));
  TRY(Bytes out, run(job.get(), difference, size, "a damaged difference"));
  if (out.size() != size) return Error(ErrorCode::protocol, "a damaged difference").cause("it gives fewer bytes than were announced");
  return out;
}

}  // namespace envsync::delta
