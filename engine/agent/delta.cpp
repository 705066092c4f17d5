// SPDX-License-Identifier: MIT
// The requests about changed files.
#include "agent/delta.hpp"

#include <malloc.h>

#include "agent/session.hpp"

namespace envsync::agent {

using namespace format;

namespace {

constexpr std::size_t kBlobBytesMax = delta::kListBytesMax;  // LIMIT: an encoded list is no longer than its plain form, but for a few bytes

}  // namespace

/// The staged transaction, where there is one.
Result<store::Transaction*> Session::staged() {
  const std::lock_guard lock(mutex_);
  if (!transaction_) return Error{ErrorCode::protocol, "there is no staged tree on this connection"};
  return &*transaction_;
}

Result<Bytes> Session::chunk_lists(ByteView blob, delta::Grain grain, int root_fd, std::stop_token stop) {
  TRY(const auto files, delta::decode_files(blob));
  const bool is_fine = grain != delta::Grain::coarse;
  FineCuts cuts;
  const auto lists = cut_files(root_fd, files, grain, is_fine ? &cuts : nullptr, stop);
  if (is_fine) {
    const std::lock_guard lock(mutex_);
    for (auto& [path, cut] : cuts) fine_cuts_[path] = std::move(cut);
  }
  return delta::encode_chunks(lists, !is_fine);
}

Result<Bytes> Session::delta_step(const DeltaRequest& request, ByteView blob, int root_fd, std::stop_token stop) {
  const auto grain = static_cast<delta::Grain>(request.grain);
  switch (request.step) {
    case DeltaStep::chunks: return chunk_lists(blob, grain, root_fd, stop);
    case DeltaStep::match: {
      TRY(const auto questions, delta::decode_questions(blob));
      return delta::encode_recipes(match_files(root_fd, questions, grain, stop));
    }
    case DeltaStep::copy: {
      TRY(const auto plan, delta::decode_copies(blob));
      TRY(store::Transaction* transaction, staged());
      FineCuts cuts;
      {
        const std::lock_guard lock(mutex_);
        for (const tree::RelPath& base : plan.bases)
          if (const auto cut = fine_cuts_.find(base.bytes()); cut != fine_cuts_.end()) cuts.insert(*cut);
      }
      TRY_STATUS(copy_parts(root_fd, plan, cuts, *transaction, stop));
      return Bytes();
    }
    case DeltaStep::signatures: {
      TRY(const auto files, delta::decode_named(blob));
      return delta::encode_strings(sign_files(root_fd, files, stop), 1);
    }
    case DeltaStep::differences: {
      TRY(const auto files, delta::decode_named(blob));
      return delta::encode_strings(differences(root_fd, files, stop), 9);
    }
    case DeltaStep::patch: break;
  }
  TRY(const auto files, delta::decode_named(blob));
  TRY(store::Transaction* transaction, staged());
  TRY_STATUS(patch_files(root_fd, files, *transaction, stop));
  return Bytes();
}

Result<Reply> Session::on(Call call, const DeltaRequest& request) {
  const std::stop_token stop = call.stop();
  TRY(const Bytes blob, call.connection->receive_stream(call.number, kBlobBytesMax, stop));
  int root_fd = -1;
  {
    const std::lock_guard lock(mutex_);
    if (!root_ || !root_->fd) return Error{ErrorCode::protocol, "changed files were asked about before a scan"};
    root_fd = root_->fd.get();
  }
  TRY(const Bytes reply, delta_step(request, blob, root_fd, stop));
  // LIMIT: an agent stays near 96 MB. What cutting and matching needed goes back before packs are made.
  ::malloc_trim(0);
  TRY_STATUS(call.connection->send_stream(call.number, reply, stop));
  return Reply{BlobReply{}};
}

}  // namespace envsync::agent
