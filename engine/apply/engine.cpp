// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "os/paths.hpp"
#include "os/process.hpp"

namespace envsync {

namespace apply {

tl::expected<ManifestSummary, std::vector<Error>> EngineImpl::validate(const ManifestText& text) {
  auto manifest = manifest::parse(text.file, text.text, text.overrides, hosts_reader(text.file));
  if (!manifest) return tl::unexpected(std::move(manifest).error());
  ManifestSummary summary;
  summary.name = manifest->name;
  summary.path = manifest->targets.empty() ? std::string{} : manifest->targets.front().path;
  summary.source = manifest->source.is_target ? manifest->source.host.name : manifest->source.host.is_local ? manifest->source.path : manifest->source.host.name + ":" + manifest->source.path;
  for (const manifest::Host& target : manifest->targets) summary.targets.push_back(target.name);
  return summary;
}

Report EngineImpl::plan(const ManifestText& text, const RunOptions& options, Observer& observer, std::stop_token stop) {
  return with_run("plan", text, options, observer, stop, [](Run& run, const Hosts& hosts) { return mirror(run, hosts, Ending::plan_only); });
}

Report EngineImpl::apply(const ManifestText& text, const RunOptions& options, Observer& observer, std::stop_token stop) {
  return with_run("apply", text, options, observer, stop, [](Run& run, const Hosts& hosts) { return mirror(run, hosts, Ending::commit); });
}

Report EngineImpl::verify(const ManifestText& text, const RunOptions& options, const VerifyOptions& verify_options, Observer& observer,
                          std::stop_token stop) {
  return with_run("verify", text, options, observer, stop, [&](Run& run, const Hosts& hosts) {
    return each_host(run, hosts, [&](const manifest::Host& host) { return verify_host(run, host, verify_options); });
  });
}

Report EngineImpl::status(const ManifestText& text, const RunOptions& options, Observer& observer, std::stop_token stop) {
  return with_run("status", text, options, observer, stop, [](Run& run, const Hosts& hosts) {
    return each_host(run, hosts, [&](const manifest::Host& host) { return status_host(run, host); });
  });
}

Report EngineImpl::history(const ManifestText& text, const RunOptions& options, Observer& observer, std::stop_token stop) {
  return with_run("history", text, options, observer, stop, [](Run& run, const Hosts& hosts) {
    return each_host(run, hosts, [&](const manifest::Host& host) { return history_host(run, host); });
  });
}

Report EngineImpl::rollback(const ManifestText& text, const RunOptions& options, const RollbackOptions& rollback_options,
                            Observer& observer, std::stop_token stop) {
  return with_run("rollback", text, options, observer, stop,
                  [&](Run& run, const Hosts& hosts) { return roll_back(run, hosts, rollback_options); });
}

Report EngineImpl::prune(const ManifestText& text, const RunOptions& options, const PruneOptions& prune_options, Observer& observer,
                         std::stop_token stop) {
  return with_run("prune", text, options, observer, stop, [&](Run& run, const Hosts& hosts) {
    return each_host(run, hosts, [&](const manifest::Host& host) { return prune_host(run, host, prune_options); });
  });
}

Result<transport::Options> EngineImpl::transport_options(const RunOptions& options) {
  transport::Options out;
  TRY(out.agent_path, transport::find_agent(agent_path_));
  TRY(out.agent_digest, file_digest(out.agent_path));
  out.ssh_config = options.ssh_config;
  out.accept_new_host_keys = options.accept_new_host_keys;
  out.batch = options.batch;
  return out;
}

manifest::ReadHosts EngineImpl::hosts_reader(const std::string& manifest) {
  return [this, manifest](const std::string& name) -> Result<std::string> {
    constexpr std::size_t kHostsMax = 1u << 20;
    if (name == "-") {
      // Both the check of all manifests and each run ask for it.
      if (!input_) input_ = os::read_input(kHostsMax);
      return *input_;
    }
    const std::string home = os::expand_home(name);
    const std::string path = home.starts_with('/') ? home : manifest.substr(0, manifest.rfind('/') + 1) + home;
    const std::size_t slash = path.rfind('/');
    TRY(const os::Fd dir, os::open_dir_absolute(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
    return os::read_small(dir.get(), path.substr(slash + 1), kHostsMax);
  };
}

Result<std::string> EngineImpl::file_digest(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  TRY(const os::Fd dir, os::open_dir_absolute(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
  constexpr std::size_t kAgentMax = 256u << 20;
  TRY(const std::string bytes, os::read_small(dir.get(), path.substr(slash + 1), kAgentMax));
  return content::digest_of(as_bytes(bytes)).hex();
}

Report EngineImpl::with_run(const std::string& verb, const ManifestText& text, const RunOptions& options, Observer& observer,
                            std::stop_token stop, const std::function<std::vector<Outcome>(Run&, const Hosts&)>& work) {
  const auto began = std::chrono::steady_clock::now();
  Report report;
  report.run = options.run.empty() ? new_run_id() : options.run;
  const auto end = [&](int code) {
    report.exit_code = code;
    observer.on(summarize(verb, report, Seconds(std::chrono::steady_clock::now() - began).count()));
    return report;
  };
  const auto fail = [&](Error error) {
    const int code = info(error.code).exit_code;
    observer.on(ProblemEvent{{}, Severity::error, std::move(error)});
    return end(code);
  };
  auto manifest = manifest::parse(text.file, text.text, text.overrides, hosts_reader(text.file));
  if (!manifest) {
    for (Error& error : manifest.error()) observer.on(ProblemEvent{{}, Severity::error, std::move(error)});
    return end(info(ErrorCode::manifest_invalid).exit_code);
  }
  auto transport = transport_options(options);
  if (!transport) return fail(std::move(transport).error());
  auto hosts = select_hosts(*manifest, options.hosts);
  if (!hosts) return fail(std::move(hosts).error());

  os::raise_fd_limit();
  Dispatcher dispatcher(observer);
  Run run;
  run.id = report.run;
  run.operator_name = operator_name();
  run.manifest = &*manifest;
  run.options = &options;
  run.transport = std::move(*transport);
  run.transport.ask = asker(dispatcher);
  run.dispatcher = &dispatcher;
  run.stop = stop;
  run.files = &files_;
  if (options.bandwidth > 0) run.pace = std::make_shared<Pace>(options.bandwidth);
  run.trees.emplace(files_, os::cache_folder());
  std::jthread worker([&] {
    report.outcomes = work(run, *hosts);
    dispatcher.finish();
  });
  dispatcher.pump();
  worker.join();
  return end(exit_code(verb, report.outcomes));
}

}  // namespace apply

Result<ManifestText> load_manifest(const std::string& file, std::vector<std::string> overrides) {
  constexpr std::size_t kManifestMax = 1u << 20;
  const std::size_t slash = file.rfind('/');
  auto dir = os::open_dir_absolute(slash == std::string::npos ? "." : file.substr(0, slash + 1));
  auto text = dir ? os::read_small(dir->get(), file.substr(slash + 1), kManifestMax) : Result<std::string>(std::move(dir).error());
  if (text) return ManifestText{file, std::move(*text), std::move(overrides)};
  Error error = std::move(text).error();
  error.code = ErrorCode::manifest_invalid;
  return std::move(error).context(fmt::format("cannot read the manifest '{}'", printable(file))).note("no host was contacted")
      .hint("run `envsync init SRC HOST...` to write one");
}

std::unique_ptr<Engine> make_engine(std::string agent_path) { return std::make_unique<apply::EngineImpl>(std::move(agent_path)); }

std::string_view manifest_schema() { return manifest::schema(); }

}  // namespace envsync
