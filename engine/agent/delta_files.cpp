// SPDX-License-Identifier: MIT
// The reading half of deltas.
#include <numeric>

#include "agent/delta.hpp"
#include "agent/each.hpp"
#include "delta/match.hpp"
#include "delta/rsync.hpp"

namespace envsync::agent {

namespace {

using delta::Grain;

/// Of an open file, until `stop`.
delta::ReadAt reader(const os::Fd& fd, const std::string& path, const std::stop_token& stop) {
  return [&fd, &path, &stop](u64 offset, std::span<std::byte> into) -> Result<std::size_t> {
    if (stop.stop_requested()) return Error{ErrorCode::interrupted, "the request was cancelled"};
    return os::read_at(fd.get(), offset, into, path);
  };
}

/// Indexes by what is to be read, the most first, so that no core is left with a large one at the end.
template <class T>
std::vector<std::size_t> largest_first(const std::vector<T>& files) {
  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<u64> bytes;
  for (const T& file : files) bytes.push_back(delta::total(file.ranges));
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return bytes[i]; });
  return order;
}

delta::ChunkList cut_file(int root_fd, const delta::FileRanges& file, Grain grain, const std::stop_token& stop) {
  delta::ChunkList list;
  const std::string& path = file.path.bytes();
  const auto fd = os::open_file(root_fd, path);
  if (!fd) return list;
  const auto take = [&](u64, ByteView chunk) {
    list.push_back({delta::name_of(chunk), narrow<u32>(chunk.size())});
    return list.size() < delta::kNamesMax;
  };
  if (!delta::for_each_chunk(reader(*fd, path, stop), file.ranges, grain, take)) list.clear();
  return list;
}

}  // namespace

std::vector<delta::ChunkList> cut_files(int root_fd, const std::vector<delta::FileRanges>& files, Grain grain, FineCuts* kept, std::stop_token stop) {
  std::vector<delta::ChunkList> lists(files.size());
  const std::vector<std::size_t> order = largest_first(files);
  for_each_index(files.size(), [&](std::size_t i) { lists[order[i]] = cut_file(root_fd, files[order[i]], grain, stop); });
  for (std::size_t i = 0; kept != nullptr && i < files.size(); ++i) {
    FineCut& cut = (*kept)[files[i].path.bytes()];
    cut = {files[i].ranges, {}};
    cut.lengths.reserve(lists[i].size());
    for (const delta::Chunk& chunk : lists[i]) cut.lengths.push_back(narrow<u16>(chunk.length));
  }
  return lists;
}

std::vector<std::vector<delta::Found>> match_files(int root_fd, const std::vector<delta::Question>& questions, Grain grain, std::stop_token stop) {
  std::vector<std::vector<delta::Found>> recipes(questions.size());
  const std::vector<std::size_t> order = largest_first(questions);
  for_each_index(questions.size(), [&](std::size_t i) {
    const delta::Question& question = questions[order[i]];
    const std::string& path = question.path.bytes();
    const auto fd = os::open_file(root_fd, path);
    if (!fd) return;
    if (auto found = delta::answer(reader(*fd, path, stop), question, grain)) recipes[order[i]] = std::move(*found);
  });
  return recipes;
}

namespace {

/// Empty where it cannot be read, or is too large to go this way.
Bytes read_whole(int root_fd, const tree::RelPath& path) {
  const auto text = os::read_small(root_fd, path.bytes(), delta::kRsyncFileMax);
  if (!text) return {};
  const ByteView view = as_bytes(*text);
  return {view.begin(), view.end()};
}

}  // namespace

std::vector<Bytes> sign_files(int root_fd, const std::vector<delta::Named>& files, std::stop_token stop) {
  std::vector<Bytes> out(files.size());
  for_each_index(files.size(), [&](std::size_t i) {
    if (!stop.stop_requested()) out[i] = delta::signature_of(read_whole(root_fd, files[i].path));
  });
  return out;
}

std::vector<Bytes> differences(int root_fd, const std::vector<delta::Named>& files, std::stop_token stop) {
  std::vector<Bytes> out(files.size());
  for_each_index(files.size(), [&](std::size_t i) {
    if (stop.stop_requested()) return;
    if (auto made = delta::difference(files[i].bytes, read_whole(root_fd, files[i].path))) out[i] = std::move(*made);
  });
  return out;
}

Result<void> patch_files(int root_fd, const std::vector<delta::Named>& files, store::Transaction& transaction, std::stop_token stop) {
  std::mutex mutex;
  Result<void> result = ok();
  for_each_index(files.size(), [&](std::size_t i) {
    if (stop.stop_requested()) return;
    const auto content = transaction.expects(files[i].number);
    if (!content || content->size > delta::kRsyncFileMax) return;
    const auto bytes = delta::patched(read_whole(root_fd, files[i].path), files[i].bytes, static_cast<std::size_t>(content->size));
    auto put = transaction.build(files[i].number);
    if (put && bytes && !bytes->empty()) put = transaction.put({{files[i].number, 0, narrow<u32>(bytes->size())}}, *bytes);
    if (put) return;
    const std::lock_guard lock(mutex);
    if (result) result = std::move(put);
  });
  return result;
}

}  // namespace envsync::agent
