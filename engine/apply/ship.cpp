// SPDX-License-Identifier: MIT
#include "apply/ship.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "os/paths.hpp"
#include "python/environment.hpp"

namespace envsync::apply {

namespace {

/// The manifest of the base alone: every setting of the run, none of what is about packages.
manifest::Manifest manifest_of(const manifest::Manifest& whole, const manifest::Source& source, const python::BasePython& base) {
  manifest::Manifest out = whole;
  out.name = base.root.substr(base.root.rfind('/') + 1);
  out.source = source;
  out.source.path = out.source.host.path = base.root;
  out.source.exclude.clear();
  out.source.bytecode = tree::Bytecode::ship;  // nobody compiles a standard library that root alone may write
  out.overlays.clear();
  out.accept.clear();
  out.invariants = {};
  out.invariants.interpreter = manifest::InterpreterRule::ignore;
  out.invariants.record = manifest::RecordRule::none;
  out.invariants.atomic = whole.invariants.atomic;
  out.invariants.in_use = whole.invariants.in_use;
  for (manifest::Host& target : out.targets) target.path = base.root;
  return out;
}

std::string only_version(const format::EnvironmentFacts& facts) {
  constexpr std::string_view kPrefix = "python";
  return facts.lib_python.starts_with(kPrefix) ? facts.lib_python.substr(kPrefix.size()) : std::string{};
}

}  // namespace

Result<void> BaseShipment::find_base(Base& base) {
  TRY(const format::ScanReply* scanned, environment_->scan());
  TRY(const tree::Tree* tree, environment_->tree());
  const std::string& pyvenv = scanned->environment.pyvenv;
  TRY(base.python, python::base_python(pyvenv, plan::base_interpreter(*tree, pyvenv)));
  base.version = only_version(scanned->environment);
  base.manifest = manifest_of(*run_->manifest, environment_->place(), base.python);
  base.run.id = run_->id;
  base.run.operator_name = run_->operator_name;
  base.run.manifest = &base.manifest;
  base.run.options = run_->options;
  base.run.transport = run_->transport;
  base.run.dispatcher = run_->dispatcher;
  base.run.stop = run_->stop;
  base.run.files = run_->files;
  base.run.trees.emplace(*run_->files, os::cache_folder());
  base.source = std::make_unique<Source>(base.run, base.manifest.source, Reading::base);
  base.source->start();
  TRY(const tree::Tree* there, base.source->tree());
  if (const std::string why = python::wrong_with_base(base.python, *there, base.version); !why.empty()) {
    return Error{ErrorCode::invariant_violated, fmt::format("the base Python '{}' on {} cannot be brought", printable(base.python.root), environment_->place().host.name)}
        .cause(why)
        .note("nothing was changed");
  }
  if (python::kind_of(base.python, *there) != python::BaseKind::other) return ok();
  TRY(const format::LibrariesReply libraries, base.source->session().endpoint->libraries({.of_root = true, .sonames = {}}, run_->stop));
  std::vector<python::Library> known;
  for (const format::LibraryInfo& one : libraries.libraries) known.push_back({one.path, one.soname, one.needed});
  base.needed = python::needed_outside(known);
  return ok();
}

Result<BaseShipment::Base*> BaseShipment::base() {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  if (!base_) {
    auto found = std::make_unique<Base>();
    if (auto result = find_base(*found); !result) {
      error_ = std::move(result).error();
      return *error_;
    }
    base_ = std::move(found);
  }
  return base_.get();
}

/// A base that envsync brought is kept as the source's; another one is left alone while it runs.
Result<bool> BaseShipment::is_wanted(Base& base, const manifest::Host& host) {
  TRY(Session session, open_session(base.run, host, host.path, {}, host.name));
  if (!session.scan.current) {
    TRY(const format::ProbeReply reply, session.endpoint->probe({base.python.program, {"-I", "-B", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"}}, run_->stop));
    std::string said = reply.output;
    while (!said.empty() && (said.back() == '\n' || said.back() == '\r')) said.pop_back();
    if (reply.exists && reply.status == 0 && said == base.version) return false;
  }
  if (base.needed.empty()) return true;
  TRY(const format::LibrariesReply there, session.endpoint->libraries({.of_root = false, .sonames = base.needed}, run_->stop));
  if (there.absent.empty()) return true;
  return Error{ErrorCode::invariant_violated, fmt::format("the base Python '{}' needs libraries that {} does not have", printable(base.python.root), host.name)}
      .cause(printable(fmt::format("{}", fmt::join(there.absent, ", "))))
      .note("nothing was changed")
      .hint("install them there, or make the environment with a Python of uv or conda, which bring their own");
}

std::optional<Outcome> BaseShipment::bring(const manifest::Host& host, Ending ending) {
  Outcome outcome;
  const auto fail = [&](Error error) {
    outcome.host = host.name;
    outcome.environment = run_->manifest->name;
    outcome.path = host.path;
    const int exit_code = info(error.code).exit_code;
    outcome.kind = exit_code == 11 || exit_code == 13 || exit_code == 14 ? OutcomeKind::refused : OutcomeKind::failed;
    if (error.notes.empty()) error.notes.push_back("nothing was changed");
    outcome.error = std::move(error);
    return outcome;
  };
  auto found = base();
  if (!found) return fail(std::move(found).error());
  Base& base = **found;
  manifest::Host place = host;
  place.path = base.python.root;
  const auto wanted = is_wanted(base, place);
  if (!wanted) return fail(wanted.error());
  if (!*wanted) return std::nullopt;
  Goal goal;
  goal.source = base.source.get();
  goal.ending = ending;
  Outcome brought = HostJob(base.run, place, std::move(goal)).work();
  if (brought.error) return fail(std::move(*brought.error).context(fmt::format("the base Python '{}' could not be brought to {}", printable(base.python.root), host.name)));
  if (brought.kind != OutcomeKind::unchanged && ending == Ending::commit) run_->dispatcher->on(brought);
  return std::nullopt;
}

}  // namespace envsync::apply
