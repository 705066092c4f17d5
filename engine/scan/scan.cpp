// SPDX-License-Identifier: MIT
#include "scan/scan.hpp"

#include <algorithm>
#include <tuple>

#include "scan/read_files.hpp"
#include "scan/walk.hpp"

namespace envsync::scan {

namespace {

/// The first path of each inode, for each entry that has more than one path in the tree; itself for all others is left out.
/// Ascending by index.
struct Member { u32 index = 0, leader = 0; };

std::vector<Member> members_of_groups(std::vector<LinkedFile> linked) {
  std::ranges::sort(linked, {}, [](const LinkedFile& f) { return std::tie(f.dev, f.ino, f.index); });
  std::vector<Member> members;
  for (std::size_t i = 1, first = 0; i < linked.size(); ++i) {
    if (linked[i].dev != linked[first].dev || linked[i].ino != linked[first].ino) { first = i; continue; }
    members.push_back({linked[i].index, linked[first].index});
  }
  std::ranges::sort(members, {}, &Member::index);
  return members;
}

/// Files with more than one link, of which the tree has one.
u64 linked_alone(std::size_t linked, const std::vector<Member>& members) {
  std::vector<u32> leaders;
  for (const Member& member : members) leaders.push_back(member.leader);
  std::ranges::sort(leaders);
  const auto [again, end] = std::ranges::unique(leaders);
  return linked - members.size() - static_cast<std::size_t>(again - leaders.begin());
}

/// Each inode once. Where the walk saw two stats of one inode, it changed meanwhile, and no digest of before counts.
std::vector<u32> to_read(const Listing& listing, const std::vector<Member>& members) {
  std::vector<u32> indexes = listing.unread;
  for (const Member& member : members)
    if (listing.stats[member.index] != listing.stats[member.leader]) indexes.push_back(member.leader);
  std::ranges::sort(indexes);
  const auto [again, end] = std::ranges::unique(indexes);
  indexes.erase(again, end);
  const auto is_member = [&](u32 index) {
    const auto at = std::ranges::lower_bound(members, index, {}, &Member::index);
    return at != members.end() && at->index == index;
  };
  std::erase_if(indexes, is_member);
  return indexes;
}

/// Members of a group are one inode, so they are read once and get what was read. Their numbers are one more than the leader's
/// index; Tree::from_unsorted makes them right where entries are missing.
void complete_members(Listing& listing, const std::vector<Member>& members) {
  for (const Member& member : members) {
    tree::Entry& first = listing.entries[member.leader];
    tree::Entry& entry = listing.entries[member.index];
    std::get<tree::File>(first.body).link_group = member.leader + 1;
    entry.mode = first.mode;
    entry.mtime_ns = first.mtime_ns;
    entry.owner = first.owner;
    entry.xattrs = first.xattrs;
    entry.body = first.body;
    listing.stats[member.index] = listing.stats[member.leader];
  }
}

/// Takes the entries that could not be read out of the listing, with the reason for each.
void drop_failed(Listing& listing, std::vector<std::pair<u32, std::string>> failed, const std::vector<Member>& members) {
  if (failed.empty()) return;
  const std::size_t read = failed.size();
  for (const Member& member : members) {
    const auto leader = std::ranges::lower_bound(failed.begin(), failed.begin() + static_cast<std::ptrdiff_t>(read), member.leader, {},
                                                 &std::pair<u32, std::string>::first);
    if (leader != failed.begin() + static_cast<std::ptrdiff_t>(read) && leader->first == member.leader) {
      std::string why = leader->second;
      failed.emplace_back(member.index, std::move(why));
    }
  }
  std::vector<char> is_failed(listing.entries.size(), 0);
  for (auto& [index, why] : failed) {
    listing.problems.push_back({listing.entries[index].path, std::move(why)});
    is_failed[index] = 1;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < listing.entries.size(); ++i) {
    if (is_failed[i]) continue;
    if (kept != i) {
      listing.entries[kept] = std::move(listing.entries[i]);
      listing.stats[kept] = listing.stats[i];
    }
    ++kept;
  }
  listing.entries.resize(kept);
  listing.stats.resize(kept);
}

}  // namespace

Result<Scan> scan(int root_fd, const Options& options, StatCache& cache) {
  if (root_fd < 0) return Scan{};
  TRY(const os::Space space, os::space(root_fd));
  const Believed believed{&cache, space.network};
  TRY(Listing listing, walk(root_fd, Depth::entries, options, believed));
  const std::size_t linked = listing.linked.size();
  const std::vector<Member> members = members_of_groups(std::move(listing.linked));
  TRY(ReadReport report, read_files(root_fd, listing, to_read(listing, members), options, believed));
  complete_members(listing, members);
  drop_failed(listing, std::move(report.failed), members);

  Scan scan;
  TRY(scan.tree, tree::Tree::from_unsorted(std::move(listing.entries)));
  scan.stats = std::move(listing.stats);
  scan.unmanaged = std::move(listing.unmanaged);
  scan.problems = std::move(listing.problems);
  std::ranges::sort(scan.problems, {}, &Problem::path);
  scan.counters = {.entries = scan.stats.size(), .files_hashed = report.files, .bytes_hashed = report.bytes, .cache_hits = listing.cache_hits,
                   .linked_alone = linked_alone(linked, members)};
  return scan;
}

}  // namespace envsync::scan
