// SPDX-License-Identifier: MIT
#include <envsync/codes.hpp>

#include <array>

#include <envsync/event.hpp>

#include "base/try.hpp"

namespace envsync {

namespace {

using enum ErrorCode;
constexpr std::array kCodes{
    CodeInfo{failed, "failed", 1, "An operation failed and no more exact code fits; the causes below the error say why."},
    CodeInfo{io, "io", 1, "The operating system refused an operation on a file. The message names the operation, the path and the reason the system gave. Staging is kept: the next run uses what was already received."},
    CodeInfo{usage, "usage", 2, "The command line is wrong. Nothing was contacted."},
    CodeInfo{not_built, "not_built", 2, "The flag or key belongs to envsync's design, but this version does not have it. It is refused, never ignored."},
    CodeInfo{manifest_invalid, "manifest_invalid", 10, "The manifest has errors; all of them are shown, each with its line. No host was contacted."},
    CodeInfo{locked, "locked", 11, "Another run holds the environment on that host. The message says who, from where and since when. The lock goes with its holder: a killed run leaves none behind. Use --lock-wait to wait."},
    CodeInfo{connect_failed, "connect_failed", 12, "The host was not reached, or the agent did not start there. The causes carry what ssh and the host's shell said."},
    CodeInfo{auth_failed, "auth_failed", 12, "The host was reached, but did not let us in."},
    CodeInfo{host_key_unknown, "host_key_unknown", 12, "The host's key is not in known_hosts. Verify the fingerprint out of band, connect once with ssh, or pass --accept-new-host-keys."},
    CodeInfo{host_key_mismatch, "host_key_mismatch", 12, "The host presented another key than the one known. envsync never goes on from there."},
    CodeInfo{connection_lost, "connection_lost", 12, "The connection ended in the middle of a run. The environment's path is untouched unless the message says otherwise; what was received is kept and used by the next run."},
    CodeInfo{protocol, "protocol", 12, "The other side sent something that the protocol does not allow."},
    CodeInfo{invariant_violated, "invariant_violated", 13, "A condition of the manifest's invariants does not hold on that host."},
    CodeInfo{adoption_refused, "adoption_refused", 13, "The target path holds something that envsync did not put there. With --adopt it becomes generation 0, to which `envsync rollback` returns."},
    CodeInfo{delete_limit, "delete_limit", 13, "More paths would go than settings.delete_limit allows, which is often a wrong source path. --allow-delete goes on."},
    CodeInfo{source_missing, "source_missing", 13, "The source is absent, empty, or has no pyvenv.cfg. An empty source is never taken for an empty environment."},
    CodeInfo{source_changed, "source_changed", 1, "A file of the source changed while it was read, three times in a row or after the plan was made. Run again when the source is quiet."},
    CodeInfo{overlay_refused, "overlay_refused", 13, "Laying the packages of an overlay onto the environment would break it, or what the overlay asks for is not in its origin. The causes name each finding with its code, file and owner. A finding that is known and fine is taken by an entry of `accept` with its code."},
    CodeInfo{unreadable, "unreadable", 13, "An entry cannot be read, or is a socket, pipe or device, or lies behind a mount. envsync refuses a tree that it cannot copy whole."},
    CodeInfo{wheel_refused, "wheel_refused", 13, "A wheel is no zip archive of regular files with safe names, or its files are not those that its RECORD lists with their sha256; or a folder holds several wheels of one distribution. Nothing of it is installed in part."},
    CodeInfo{no_space, "no_space", 13, "The target's filesystem lacks bytes or inodes for the staged tree; the message has both numbers. `envsync prune` frees old generations."},
    CodeInfo{place_refused, "place_refused", 13, "The place cannot hold the guarantee that the manifest asks for: a mount point, a filesystem without exchange, a parent that is not writable."},
    CodeInfo{in_use, "in_use", 13, "Processes run from the environment and invariants.in_use is refuse."},
    CodeInfo{changed_meanwhile, "changed_meanwhile", 1, "The target changed while the new tree was staged. Nothing was swapped; run again."},
    CodeInfo{drift_refused, "drift_refused", 14, "The target was changed since the last apply. settings.drift and --drift say what to do with such changes; the replaced files stay in the generation before."},
    CodeInfo{stale_plan, "stale_plan", 14, "The source or the target is not what the plan was made for."},
    CodeInfo{content_gone, "content_gone", 1, "A kept generation names content that exists nowhere on the host any more, because a live file was edited in place. Nothing was changed."},
    CodeInfo{no_generation, "no_generation", 1, "There is no generation to return to."},
    CodeInfo{check_failed, "check_failed", 15, "A check failed against the staged tree. Nothing was changed."},
    CodeInfo{rolled_back, "rolled_back", 16, "A step after the swap failed and the old tree is back."},
    CodeInfo{interference, "interference", 17, "The path, or envsync's staging beside it, holds something that neither was there before nor was made by this run. envsync deletes nothing then. Look at both, move what you want to keep, then run `envsync status`."},
    CodeInfo{corrupt, "corrupt", 1, "A file in envsync's state folder does not decode: its checksum or its structure is wrong. It is never believed in part."},
    CodeInfo{internal, "internal", 70, "A bug in envsync."},
    CodeInfo{interrupted, "interrupted", 130, "The run was interrupted. The state is safe and named in the message."},
    CodeInfo{terminated, "terminated", 143, "The run was terminated. The state is safe and named in the message."},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kCodes.size(); ++i)
    if (static_cast<std::size_t>(kCodes[i].code) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const CodeInfo> all_codes() { return kCodes; }

const CodeInfo& info(ErrorCode code) {
  ENVSYNC_CHECK(static_cast<std::size_t>(code) < kCodes.size());
  return kCodes[static_cast<std::size_t>(code)];
}

std::optional<ErrorCode> code_by_name(std::string_view name) {
  for (const CodeInfo& entry : kCodes)
    if (entry.name == name) return entry.code;
  return std::nullopt;
}

std::string_view name(Guarantee g) {
  switch (g) {
    case Guarantee::atomic: return "atomic";
    case Guarantee::brief_gap: return "brief-gap";
    case Guarantee::per_file: return "per-file";
  }
  return "?";
}

std::string_view name(OutcomeKind k) {
  switch (k) {
    case OutcomeKind::applied: return "applied";
    case OutcomeKind::unchanged: return "unchanged";
    case OutcomeKind::failed: return "failed";
    case OutcomeKind::refused: return "refused";
    case OutcomeKind::rolled_back: return "rolled_back";
    case OutcomeKind::skipped: return "skipped";
  }
  return "?";
}

std::string_view name(Phase p) {
  switch (p) {
    case Phase::connect: return "connect";
    case Phase::scan: return "scan";
    case Phase::plan: return "plan";
    case Phase::stage: return "stage";
    case Phase::transfer: return "transfer";
    case Phase::seal: return "seal";
    case Phase::commit: return "commit";
    case Phase::accept: return "accept";
    case Phase::verify: return "verify";
  }
  return "?";
}

std::string_view name(Severity s) {
  switch (s) {
    case Severity::note: return "note";
    case Severity::warning: return "warning";
    case Severity::error: return "error";
  }
  return "?";
}

std::string_view name(PackageChange c) {
  switch (c) {
    case PackageChange::added: return "added";
    case PackageChange::removed: return "removed";
    case PackageChange::changed: return "changed";
    case PackageChange::rebuilt: return "rebuilt";
  }
  return "?";
}

}  // namespace envsync
