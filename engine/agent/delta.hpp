// SPDX-License-Identifier: MIT
// What agents do for changed files: cut, match, sum up, and build from what is there. Files are read beneath a descriptor; one that
// cannot be read, or is another by now, gives nothing, and the digest of what is built has the last word.
#pragma once

#include <map>
#include <stop_token>

#include "delta/lists.hpp"
#include "store/transaction.hpp"

namespace envsync::agent {

/// Where the fine chunks of a file end, for copies that name them by number.
struct FineCut {
  std::vector<delta::Range> ranges;
  std::vector<u16> lengths;
};
using FineCuts = std::map<std::string, FineCut>;  // by path

/// Chunks of each file, in order; of a fine grain also into `kept`, which may be null.
std::vector<delta::ChunkList> cut_files(int root_fd, const std::vector<delta::FileRanges>& files, delta::Grain grain, FineCuts* kept, std::stop_token stop);
/// What of each question's file its names have.
std::vector<std::vector<delta::Found>> match_files(int root_fd, const std::vector<delta::Question>& questions, delta::Grain grain, std::stop_token stop);
/// Puts what the plan copies; the bytes that were copied. A base that does not have it leaves its file incomplete.
Result<u64> copy_parts(int root_fd, const delta::CopyPlan& plan, const FineCuts& cuts, store::Transaction& transaction, std::stop_token stop);

std::vector<Bytes> sign_files(int root_fd, const std::vector<delta::Named>& files, std::stop_token stop);
/// Empty where there is none.
std::vector<Bytes> differences(int root_fd, const std::vector<delta::Named>& files, std::stop_token stop);
Result<void> patch_files(int root_fd, const std::vector<delta::Named>& files, store::Transaction& transaction, std::stop_token stop);

}  // namespace envsync::agent
