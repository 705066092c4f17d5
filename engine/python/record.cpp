// SPDX-License-Identifier: MIT
#include "python/record.hpp"

#include "base/bytes.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace envsync::python {
namespace {

constexpr std::string_view kHashPrefix = "sha256=";
constexpr std::size_t kProblemBytesMax = 200;

/// Takes rows from the front of a text.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}
  bool at_end() const { return at_ == text_.size(); }
  std::size_t position() const { return at_; }
  u32 line() const { return line_; }
  const std::string& broken() const { return broken_; }

  /// The fields of the next row, its line end taken; empty where broken() says why.
  std::vector<std::string> next() {
    std::vector<std::string> fields;
    for (;;) {
      std::string field;
      if (!take_field(field)) return {};
      fields.push_back(std::move(field));
      if (at_end()) return fields;
      const char end = text_[at_++];
      if (end == ',') {
        if (fields.size() > kFieldsMax) return stop("more fields than a row can have");
        continue;
      }
      if (end == '\r' && !at_end() && text_[at_] == '\n') ++at_;
      ++line_;
      return fields;
    }
  }

 private:
  static constexpr std::size_t kFieldsMax = 16;

  std::vector<std::string> stop(std::string_view why) {
    broken_ = fmt::format("{} in line {}", why, line_);
    return {};
  }

  /// Up to the comma or line end that closes the field, which is not taken.
  bool take_field(std::string& field) {
    bool is_quoted = !at_end() && text_[at_] == '"';
    if (is_quoted) ++at_;
    while (!at_end()) {
      const char c = text_[at_];
      if (field.size() > kRecordFieldBytesMax) return stop(fmt::format("a field of more than {} bytes", kRecordFieldBytesMax)), false;
      if (!is_quoted && (c == ',' || c == '\n' || c == '\r')) return true;
      ++at_;
      if (is_quoted && c == '"') {
        // A doubled quote is one; any other ends the quoting, and what follows is taken as it is.
        if (!at_end() && text_[at_] == '"') field += text_[at_++];
        else is_quoted = false;
        continue;
      }
      if (c == '\n') ++line_;
      field += c;
    }
    if (is_quoted) return stop("a quote that is not closed"), false;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  u32 line_ = 1;
  std::string broken_;
};

std::string shortened(std::string_view row) {
  if (row.size() <= kProblemBytesMax) return std::string(row);
  return std::string(row.substr(0, kProblemBytesMax)) + "...";
}

/// Applies "a/../b" to `parts`; false where it climbs over the first of them.
bool walk(std::vector<std::string_view>& parts, std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part != "..") parts.push_back(part);
    else if (parts.empty()) return false;
    else parts.pop_back();
  }
  return true;
}

}  // namespace

std::optional<Sha256> parse_record_hash(std::string_view field) {
  constexpr std::size_t kDigits = 43;
  if (!field.starts_with(kHashPrefix)) return std::nullopt;
  std::string digits(field.substr(kHashPrefix.size()));
  // Some writers pad.
  if (digits.size() == kDigits + 1 && digits.back() == '=') digits.pop_back();
  if (digits.size() != kDigits) return std::nullopt;
  std::ranges::replace(digits, '-', '+');
  std::ranges::replace(digits, '_', '/');
  const auto bytes = from_base64(digits + "=");
  Sha256 sum;
  if (!bytes || bytes->size() != sum.size()) return std::nullopt;
  std::ranges::copy(*bytes, sum.begin());
  return sum;
}

std::string render_record_hash(const Sha256& sum) {
  std::string digits = to_base64(sum);
  std::ranges::replace(digits, '+', '-');
  std::ranges::replace(digits, '/', '_');
  return std::string(kHashPrefix) + digits.substr(0, digits.find('='));
}

Record parse_record(std::string_view text) {
  Record out;
  if (text.size() > kRecordBytesMax) {
    out.broken = fmt::format("{}, at most {} are read", human_bytes(text.size()), human_bytes(kRecordBytesMax));
    return out;
  }
  CsvReader reader(text);
  std::size_t rows = 0;
  while (!reader.at_end()) {
    RecordRow row{.path = {}, .hash = {}, .size = {}, .line = reader.line(), .begin = reader.position(), .end = 0};
    std::vector<std::string> fields = reader.next();
    if (reader.broken().empty() && ++rows > kRecordRowsMax) return Record{{}, {}, fmt::format("more than {} rows", kRecordRowsMax)};
    if (!reader.broken().empty()) return Record{{}, {}, reader.broken()};
    if (fields.size() == 1 && fields[0].empty()) continue;
    row.end = reader.position();
    row.path = std::move(fields[0]);
    const auto set_aside = [&](std::string_view why) { out.problems.push_back({row.line, shortened(row.path), std::string(why)}); };
    if (row.path.empty()) set_aside("names no path");
    else if (row.path.find('\0') != std::string::npos) set_aside("holds a NUL byte");
    else if (fields.size() > 3) set_aside("has more than three fields");
    else {
      if (fields.size() > 1) row.hash = std::move(fields[1]);
      u64 size = 0;
      const std::string_view digits = fields.size() > 2 ? std::string_view(fields[2]) : std::string_view();
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
      if (error == std::errc() && end == digits.data() + digits.size()) row.size = size;
      if (!digits.empty() && !row.size) set_aside("has a size that is no number");
      else out.rows.push_back(std::move(row));
    }
  }
  return out;
}

tl::expected<tree::RelPath, std::string_view> resolve_row(const tree::RelPath& site, std::string_view row, std::string_view root) {
  const auto refused = [](std::string_view why) { return tl::unexpected(why); };
  constexpr std::string_view kLeaves = "leaves the environment", kAbsolute = "is absolute";
  if (row.find('\0') != std::string_view::npos) return refused("holds a NUL byte");
  std::vector<std::string_view> parts;
  if (row.starts_with('/')) {
    std::vector<std::string_view> above;
    if (!root.starts_with('/') || !walk(above, root) || above.empty()) return refused(kAbsolute);
    // ".." at the system's root stays there.
    if (!walk(parts, row) || parts.size() < above.size() || !std::equal(above.begin(), above.end(), parts.begin())) return refused(kLeaves);
    parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(above.size()));
  } else if (!walk(parts, site.bytes()) || !walk(parts, row)) {
    return refused(kLeaves);
  }
  if (parts.empty()) return refused("names the environment itself");
  auto path = tree::RelPath::parse(fmt::format("{}", fmt::join(parts, "/")));
  if (!path) return refused("is no path that a disk can hold");
  return *std::move(path);
}

std::string csv_field(std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(field);
  std::string out = "\"";
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

namespace {

/// The text with other rows for those that `render` gives one for; it ends without a line end. An inner nullopt drops the row.
template <class Render>
std::string with_rows(std::string_view text, const Render& render) {
  std::string out;
  std::size_t copied = 0;
  for (const RecordRow& row : parse_record(text).rows) {
    const std::optional<std::optional<std::string>> change = render(row);
    if (!change) continue;
    out += text.substr(copied, row.begin - copied);
    copied = row.end;
    if (!*change) continue;
    const std::string_view line = text.substr(row.begin, row.end - row.begin);
    const std::string_view line_end = line.ends_with("\r\n") ? "\r\n" : line.ends_with('\r') ? "\r" : "\n";
    out += **change + std::string(line_end);
  }
  out += text.substr(copied);
  return out;
}

}  // namespace

std::string with_changed_rows(std::string_view text, const RowChanges& changes) {
  using Rendered = std::optional<std::optional<std::string>>;
  return with_rows(text, [&](const RecordRow& row) -> Rendered {
    const auto change = changes.find(row.path);
    if (change == changes.end()) return std::nullopt;
    if (!change->second) return Rendered(std::in_place);
    return Rendered(fmt::format("{},{},{}", csv_field(row.path), render_record_hash(change->second->sum), change->second->size));
  });
}

std::string with_moved_rows(std::string_view text, const RowMoves& moves) {
  using Rendered = std::optional<std::optional<std::string>>;
  return with_rows(text, [&](const RecordRow& row) -> Rendered {
    const auto move = moves.find(row.path);
    if (move == moves.end()) return std::nullopt;
    return Rendered(fmt::format("{},{},{}", csv_field(move->second), row.hash, row.size ? fmt::format("{}", *row.size) : ""));
  });
}

}  // namespace envsync::python
