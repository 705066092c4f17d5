// SPDX-License-Identifier: MIT
#include "manifest/yaml.hpp"

#include "base/bytes.hpp"
#include "manifest/yaml_words.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

namespace envsync::manifest {
namespace {

constexpr std::size_t kTextBytesMax = 1u << 20;
constexpr std::size_t kDepthMax = 32;
constexpr std::size_t kNodesMax = 100'000;
constexpr std::size_t kNodeTextMax = 4u << 20;
constexpr std::size_t kLineBytesMax = 4096;
constexpr std::string_view kMergeKey = "<<";

u32 characters(std::string_view text) {
  return static_cast<u32>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string_view line_from(std::string_view text, std::size_t offset) {
  // Cut, so that many values in one long line cost no more than their number.
  text = text.substr(std::min(offset, text.size()), kLineBytesMax);
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// The offset of the quote that ends the quoted text at `begin`; npos where it never ends.
std::size_t closing_quote(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') ++i;
    else if (text[i] == quote && quote == '\'' && i + 1 < text.size() && text[i + 1] == quote) ++i;
    else if (text[i] == quote) return i;
  }
  return std::string_view::npos;
}

/// Builds nodes from events. After a limit is met, or a second document begins, it ignores what follows.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view text, Origin origin, Problems& problems) : text_(text), origin_(origin), problems_(problems) {}

  bool is_broken() const { return is_broken_; }
  std::optional<Node> take() { return is_broken_ ? std::nullopt : std::optional(std::move(root_)); }
  Mark mark_at(const YAML::Mark& at, u32 length) const {
    const u32 line = static_cast<u32>(std::max(at.line, 0));
    const u32 column = static_cast<u32>(std::max(at.column, 0)) + (line == 0 ? origin_.column : 0);
    return {.text = origin_.text, .line = line + 1, .column = column + 1, .length = length};
  }

  void OnDocumentStart(const YAML::Mark& at) override {
    if (++documents_ != 2 || is_broken_) return;
    const bool is_marked = line_from(text_, offset(at)).starts_with("---");
    Error& error = problems_.report(mark_at(at, 3), is_marked ? "a second document begins here" : "this does not belong to what stands above it");
    error.hints.emplace_back(is_marked ? "write one manifest a file; several files can be given to one command"
                                       : "begin all keys of one map in the same column");
    is_broken_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& at, YAML::anchor_t anchor) override {
    Node node;
    node.mark = stack_.empty() ? mark_at(at, 1) : stack_.back().pending ? stack_.back().pending->second : stack_.back().node.mark;
    if (spend(1, 0, node.mark)) add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    Node node;
    node.kind = Node::Kind::scalar;
    node.text = value;
    node.is_plain = tag == "?";
    node.mark = mark_at(at, scalar_length(at, value));
    check_tag(tag, node.mark, "tag:yaml.org,2002:str");
    if (spend(1, value.size(), node.mark)) add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& at, YAML::anchor_t anchor) override {
    if (is_broken_) return;
    const auto found = anchors_.find(anchor);
    const Mark mark = mark_at(at, characters(word_at(at)));
    if (found == anchors_.end()) {
      problems_.report(mark, "an alias within what it names");
      is_broken_ = true;
      return;
    }
    if (fits(found->second, mark)) add(Node(found->second), 0);
  }

  void OnSequenceStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(Node::Kind::list, at, tag, anchor, "tag:yaml.org,2002:seq");
  }
  void OnMapStart(const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(Node::Kind::map, at, tag, anchor, "tag:yaml.org,2002:map");
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<std::pair<std::string, Mark>> pending;  // map: the key whose value comes next
    bool is_key_merge = false;
    bool has_bad_key = false;                             // the next value belongs to a key that was reported
    std::vector<Node> merges;
    std::unordered_map<std::string, Mark> seen;
  };

  std::size_t offset(const YAML::Mark& at) const { return static_cast<std::size_t>(std::max(at.pos, 0)); }
  std::string_view word_at(const YAML::Mark& at) const {
    const std::string_view line = line_from(text_, offset(at));
    return line.substr(0, std::min(line.find_first_of(" \t,:]}"), line.size()));
  }

  u32 scalar_length(const YAML::Mark& at, const std::string& value) {
    const std::string_view line = line_from(text_, offset(at));
    if (line.empty()) return 1;
    if (line.front() != '"' && line.front() != '\'') return line.starts_with(value) ? characters(value) : 1;
    const std::size_t end = closing_quote(text_, offset(at));
    if (end == std::string_view::npos && !is_broken_) {
      problems_.report(mark_at(at, 1), "a quoted text does not end").hints.emplace_back("close its quote");
      is_broken_ = true;
    }
    return characters(line.substr(0, end == std::string_view::npos ? 1 : end - offset(at) + 1));
  }

  void check_tag(const std::string& tag, const Mark& mark, std::string_view allowed) {
    if (is_broken_ || tag.empty() || tag == "?" || tag == "!" || tag == allowed) return;
    problems_.report(mark, fmt::format("the tag '{}' means nothing in a manifest", printable(tag))).hints.emplace_back("remove the tag");
  }

  bool spend(std::size_t nodes, std::size_t bytes, const Mark& at) {
    if (is_broken_) return false;
    nodes_ += nodes;
    bytes_ += bytes;
    if (nodes_ <= kNodesMax && bytes_ <= kNodeTextMax && stack_.size() <= kDepthMax) return true;
    const bool is_deep = stack_.size() > kDepthMax;
    problems_.report(at, is_deep ? fmt::format("more than {} levels of nesting", kDepthMax)
                                             : fmt::format("more than {} values, aliases resolved", kNodesMax));
    is_broken_ = true;
    return false;
  }

  /// Whether a copy of `node` is within the budget, which it then spends.
  bool fits(const Node& node, const Mark& at) {
    if (!spend(1, node.text.size(), at)) return false;
    if (depth_of(node) + stack_.size() > kDepthMax) return spend(kNodesMax, 0, at);
    for (const Node& item : node.items) {
      if (!fits(item, at)) return false;
    }
    for (const Field& field : node.fields) {
      if (!spend(1, field.key.size(), at) || !fits(field.value, at)) return false;
    }
    return true;
  }
  static std::size_t depth_of(const Node& node) {
    std::size_t below = 0;
    for (const Node& item : node.items) below = std::max(below, depth_of(item));
    for (const Field& field : node.fields) below = std::max(below, depth_of(field.value));
    return below + 1;
  }

  void open(Node::Kind kind, const YAML::Mark& at, const std::string& tag, YAML::anchor_t anchor, std::string_view allowed) {
    Frame frame;
    frame.node.kind = kind;
    frame.node.mark = mark_at(at, std::max(characters(word_at(at)), u32{1}));
    frame.anchor = anchor;
    if (std::string_view("[{").find(line_from(text_, offset(at)).substr(0, 1)) != std::string_view::npos) frame.node.mark.length = 1;
    check_tag(tag, frame.node.mark, allowed);
    if (spend(1, 0, frame.node.mark)) stack_.push_back(std::move(frame));
  }

  void close() {
    if (is_broken_) return;
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    merge(frame);
    add(std::move(frame.node), frame.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0 && fits(node, node.mark)) anchors_[anchor] = node;
    if (is_broken_) return;
    if (stack_.empty()) root_ = std::move(node);
    else if (stack_.back().node.kind == Node::Kind::list) stack_.back().node.items.push_back(std::move(node));
    else if (stack_.back().pending || stack_.back().is_key_merge || stack_.back().has_bad_key) add_value(stack_.back(), std::move(node));
    else add_key(stack_.back(), std::move(node));
  }

  void add_key(Frame& map, Node key) {
    if (!key.is_scalar()) {
      problems_.report(key.mark, "a key that is no word");
      map.has_bad_key = true;
      return;
    }
    if (key.is_plain && key.text == kMergeKey) {
      map.is_key_merge = true;
      return;
    }
    const auto [before, is_new] = map.seen.try_emplace(key.text, key.mark);
    if (!is_new) {
      problems_.report(key.mark, fmt::format("the key '{}' stands here twice", printable(key.text)))
          .at_notes.push_back(fmt::format("the first is in line {}", before->second.line));
    }
    map.has_bad_key = !is_new;
    if (is_new) map.pending.emplace(std::move(key.text), key.mark);
  }

  void add_value(Frame& map, Node value) {
    if (map.is_key_merge) add_merge(map, std::move(value));
    else if (map.pending) map.node.fields.push_back({std::move(map.pending->first), map.pending->second, std::move(value)});
    map.pending.reset();
    map.is_key_merge = map.has_bad_key = false;
  }

  void add_merge(Frame& map, Node value) {
    std::vector<Node> maps;
    if (value.kind == Node::Kind::list) maps = std::move(value.items);
    else maps.push_back(std::move(value));
    for (Node& one : maps) {
      if (one.kind == Node::Kind::map) map.merges.push_back(std::move(one));
      else problems_.report(one.mark, "<< takes a map, or a list of maps");
    }
  }

  /// Own keys win over merged ones, and earlier merges over later ones.
  static void merge(Frame& map) {
    for (Node& merged : map.merges) {
      for (Field& field : merged.fields) {
        if (map.seen.try_emplace(field.key, field.key_mark).second) map.node.fields.push_back(std::move(field));
      }
    }
  }

  std::string_view text_;
  Origin origin_;
  Problems& problems_;
  Node root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0, bytes_ = 0;
  int documents_ = 0;
  bool is_broken_ = false;
};

/// The byte where `text` stops being text; npos where it never does.
std::size_t first_bad_byte(std::string_view text) {
  const std::size_t nul = text.find('\0');
  if (is_utf8(text)) return nul;
  // Whole lines are valid or not: UTF-8 has no newline within a character.
  std::size_t begin = 0;
  while (begin < text.size() && is_utf8(text.substr(begin, text.find('\n', begin) - begin))) begin = text.find('\n', begin) + 1;
  return std::min(begin, nul);
}

bool is_text(std::string_view text, Origin origin, Problems& problems) {
  if (text.size() > kTextBytesMax) {
    problems.report_unquoted(origin.text, 1, fmt::format("a manifest of {} is larger than the 1 MiB that is read", human_bytes(text.size())));
    return false;
  }
  const std::size_t bad = first_bad_byte(text);
  if (bad == std::string_view::npos) return true;
  const auto line = static_cast<u32>(std::ranges::count(text.substr(0, bad), '\n') + 1);
  problems.report_unquoted(origin.text, line, text[bad] == '\0' ? "a NUL byte, which no text holds" : "bytes that are no UTF-8");
  return false;
}

}  // namespace

const Field* Node::find(std::string_view key) const {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}
Field* Node::find(std::string_view key) { return const_cast<Field*>(std::as_const(*this).find(key)); }

std::optional<Node> read_yaml(std::string_view text, Origin origin, Problems& problems) {
  if (!is_text(text, origin, problems)) return std::nullopt;
  Builder builder(text, origin, problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {}
  } catch (const YAML::ParserException& e) {
    if (builder.is_broken()) return std::nullopt;
    const std::size_t at = std::min(static_cast<std::size_t>(std::max(e.mark.pos, 0)), text.size());
    const std::size_t column = static_cast<std::size_t>(std::max(e.mark.column, 0));
    const std::size_t begin = at - std::min(column, at);
    SyntaxWords words = in_words(e.msg, text.substr(0, begin), line_from(text, begin), column);
    Error& error = problems.report(builder.mark_at(e.mark, 1), std::move(words.what));
    if (!words.hint.empty()) error.hints.push_back(std::move(words.hint));
    return std::nullopt;
  } catch (const std::exception& e) {
    problems.report_unquoted(origin.text, 1, fmt::format("the manifest cannot be read: {}", e.what()));
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace envsync::manifest
