// SPDX-License-Identifier: MIT
// invariants and settings.
#include "base/rate.hpp"
#include "manifest/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace envsync::manifest {
namespace {

constexpr u32 kRetryMax = 24 * 3600;  // seconds

constexpr u64 kGenerationsMax = 1000;
constexpr u64 kHostsAtOnceMax = 256;
constexpr u64 kPathsMax = 4'000'000;  // LIMIT: entries of a tree

constexpr Word<InterpreterRule> kInterpreter[] = {{"require", InterpreterRule::require}, {"ship", InterpreterRule::ship}, {"ignore", InterpreterRule::ignore}};
constexpr Word<Guarantee> kAtomic[] = {{"required", Guarantee::atomic}};
constexpr Word<InUseRule> kInUse[] = {{"warn", InUseRule::warn}, {"refuse", InUseRule::refuse}, {"ignore", InUseRule::ignore}};
constexpr Word<OwnerRule> kOwner[] = {{"agent", OwnerRule::agent}, {"preserve", OwnerRule::preserve}};
constexpr Word<MtimeRule> kMtime[] = {{"preserve", MtimeRule::preserve}, {"strict", MtimeRule::strict}, {"ignore", MtimeRule::ignore}};
constexpr Word<bool> kKept[] = {{"preserve", true}, {"ignore", false}};
constexpr Word<DriftRule> kDrift[] = {{"ask", DriftRule::ask}, {"replace", DriftRule::replace}, {"refuse", DriftRule::refuse}};
constexpr Word<RecordRule> kRecord[] = {{"overlay", RecordRule::overlay}, {"all", RecordRule::all}, {"none", RecordRule::none}};
constexpr Word<FailureRule> kOnFailure[] = {{"continue", FailureRule::carry_on}, {"stop", FailureRule::stop},
                                              {"all-or-nothing", FailureRule::all_or_nothing}};

constexpr std::string_view kAtomicLater[] = {"brief-gap", "best"};
constexpr std::string_view kDriftLater[] = {"keep"};

/// "3", "3.11", "3.11.4": what a version can begin with.
bool is_version_pin(std::string_view text) {
  constexpr std::size_t kPinMax = 20;
  std::size_t dots = 0, digits = 0;
  for (const char c : text) {
    if (c == '.') {
      if (digits == 0 || ++dots > 2) return false;
      digits = 0;
    } else if (c >= '0' && c <= '9') {
      ++digits;
    } else {
      return false;
    }
  }
  return digits > 0 && text.size() <= kPinMax;
}

void read_python(const Field* field, std::string& out, Problems& problems) {
  if (field == nullptr) return;
  const auto pin = read_text(named(*field), problems);
  if (!pin) return;
  if (!is_version_pin(*pin)) {
    problems.report(field->value.mark, fmt::format("'python' takes a version such as 3.11 or 3.11.4, not {}", described(field->value)));
    return;
  }
  out = *pin;
}

void read_delete_limit(const Field* field, DeleteLimit& out, Problems& problems) {
  if (field == nullptr) return;
  const Node& node = field->value;
  std::string_view digits = node.is_scalar() ? std::string_view(node.text) : std::string_view();
  const bool is_percent = digits.ends_with('%');
  if (is_percent) digits.remove_suffix(1);
  u64 value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size() || value > (is_percent ? 100 : kPathsMax)) {
    problems.report(node.mark, fmt::format("'delete_limit' takes a share of the paths such as 50%, or a count of paths, not {}", described(node)));
    return;
  }
  out = {is_percent, value};
}

void read_bandwidth(const Node& node, u64& out, Problems& problems) {
  if (node.is_scalar() && node.text == "unlimited") return;
  const auto rate = node.is_scalar() ? parse_rate(node.text) : std::nullopt;
  if (rate) out = *rate;
  else problems.report(node.mark, fmt::format("'bandwidth' takes a rate with its unit such as 50MB/s or 400Mbit/s, or unlimited, not {}", described(node)));
}

void read_count(const Field* field, u64 least, u64 most, u32& out, Problems& problems) {
  if (field == nullptr) return;
  if (const auto number = read_number(named(*field), least, most, problems)) out = static_cast<u32>(*number);
}

}  // namespace

void read_invariants(const Field& field, Draft& draft, Problems& problems) {
  Invariants& out = draft.invariants;
  const Fields fields(field.value, Section::invariants, problems);
  if (const Field* same_path = fields.find("same_path")) out.same_path = read_flag(named(*same_path), problems).value_or(false);
  read_word(fields.find("interpreter"), kInterpreter, {}, out.interpreter, problems);
  read_python(fields.find("python"), out.python, problems);
  read_word(fields.find("atomic"), kAtomic, kAtomicLater, out.atomic, problems);
  read_word(fields.find("in_use"), kInUse, {}, out.in_use, problems);
  if (const Field* relocate = fields.find("relocate")) out.relocate = read_flag(named(*relocate), problems).value_or(false);
  read_word(fields.find("record"), kRecord, {}, out.record, problems);
}

void read_settings(const Field& field, Draft& draft, Problems& problems) {
  Settings& out = draft.settings;
  const Fields fields(field.value, Section::settings, problems);
  read_word(fields.find("owner"), kOwner, {}, out.owner, problems);
  read_word(fields.find("mtime"), kMtime, {}, out.mtime, problems);
  read_word(fields.find("xattrs"), kKept, {}, out.xattrs, problems);
  read_word(fields.find("hardlinks"), kKept, {}, out.hardlinks, problems);
  read_delete_limit(fields.find("delete_limit"), out.delete_limit, problems);
  read_word(fields.find("drift"), kDrift, kDriftLater, out.drift, problems);
  read_count(fields.find("keep_generations"), 0, kGenerationsMax, out.keep_generations, problems);
  read_count(fields.find("hosts_at_once"), 1, kHostsAtOnceMax, out.hosts_at_once, problems);
  read_word(fields.find("on_failure"), kOnFailure, {}, out.on_failure, problems);
  if (const Field* bandwidth = fields.find("bandwidth")) read_bandwidth(bandwidth->value, out.bandwidth, problems);
  if (const Field* retry = fields.find("retry_for")) out.retry_for_seconds = read_duration(named(*retry), kRetryMax, problems).value_or(0);
  if (const Field* transport = fields.find("transport")) out.transport = read_transport(*transport, problems).value_or(Transport{});
}

}  // namespace envsync::manifest
