// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>
#include <ranges>

#include "scan/walk_node.hpp"

namespace envsync::scan {

namespace {

/// Byte order of whole paths, made from the order within each folder: what lies beneath "a" comes where "a/" sorts, so "a-b"
/// goes between "a" and "a/b". Sorting 86,000 whole paths would cost as much as the walk.
struct Step {
  std::string_view key;       // the name; with the slash for what lies beneath
  Item* item = nullptr;
  Node* dir = nullptr;
  bool is_beneath = false;
};

struct Frame {
  Node* node = nullptr;
  std::vector<std::string> slashed;  // holds the keys of the steps that go beneath
  std::vector<Step> steps;
  std::size_t next = 0;
};

Frame frame_of(Node& node) {
  Frame frame;
  frame.node = &node;
  frame.steps.reserve(node.items.size() + 2 * node.subdirs.size());
  frame.slashed.reserve(node.subdirs.size());
  for (Item& item : node.items) frame.steps.push_back({item.entry.path.name(), &item, nullptr, false});
  for (Node* dir : node.subdirs) {
    if (dir->is_dropped) continue;
    const std::string_view name = dir->entry.path.name();
    frame.slashed.push_back(std::string(name) + '/');
    frame.steps.push_back({name, nullptr, dir, false});
    frame.steps.push_back({frame.slashed.back(), nullptr, dir, true});
  }
  std::ranges::sort(frame.steps, {}, &Step::key);
  return frame;
}

void add_item(Listing& listing, Item& item) {
  const auto index = static_cast<u32>(listing.entries.size());
  if (item.is_cached) ++listing.cache_hits;
  if (!item.is_read) listing.unread.push_back(index);
  if (item.is_linked) listing.linked.push_back({item.key.dev, item.key.ino, index});
  listing.stats.push_back(item.key);
  listing.entries.push_back(std::move(item.entry));
}

template <class T>
void take_all(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void drop_unmanaged_dirs(const std::vector<Node*>& nodes) {
  for (Node* node : nodes | std::views::reverse) {
    if (node->parent == nullptr || node->is_dropped) continue;
    const bool has_managed = !node->items.empty() || !node->problems.empty() ||
                             std::ranges::any_of(node->subdirs, [](const Node* dir) { return !dir->is_dropped || !dir->problems.empty(); });
    if (has_managed || node->unmanaged.empty()) continue;
    const bool is_bytecode = std::ranges::all_of(node->unmanaged, &Unmanaged::is_bytecode);
    node->is_dropped = true;
    node->unmanaged.clear();  // it stands for all beneath it
    node->parent->unmanaged.push_back({node->entry.path, os::Kind::directory, is_bytecode});
  }
}

Listing to_listing(const std::vector<Node*>& nodes) {
  Listing listing;
  std::size_t count = nodes.size();
  for (const Node* node : nodes) count += node->items.size();
  listing.entries.reserve(count);
  listing.stats.reserve(count);
  for (Node* node : nodes) {
    take_all(listing.unmanaged, node->unmanaged);
    take_all(listing.problems, node->problems);
  }
  std::ranges::sort(listing.unmanaged, {}, &Unmanaged::path);
  std::vector<Frame> frames;  // a stack of our own: trees may be deeper than a thread's stack
  const auto enter = [&](Node& node) { frames.push_back(frame_of(node)); };
  const auto add_dir = [&](Node& node) {
    listing.stats.push_back(node.key);
    listing.entries.push_back(std::move(node.entry));
  };
  Node& root = *nodes.front();
  enter(root);
  add_dir(root);
  while (!frames.empty()) {
    Frame& top = frames.back();
    if (top.next == top.steps.size()) {
      top.node->items = {};  // moved out of: their memory is wanted for the listing
      frames.pop_back();
      continue;
    }
    const Step step = top.steps[top.next++];
    if (step.item != nullptr) add_item(listing, *step.item);
    else if (step.is_beneath) enter(*step.dir);
    else add_dir(*step.dir);
  }
  return listing;
}

}  // namespace envsync::scan
