// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "os/paths.hpp"
#include "python/environment.hpp"

namespace envsync::apply {

Result<InitReply> EngineImpl::init(const InitRequest& request, const RunOptions& options, Observer& observer, std::stop_token stop) {
  TRY(manifest::Source source, manifest::parse_place(request.source));
  if (source.host.is_local) source.path = os::real_path(os::expand_home(source.path)).value_or(source.path);
  for (const std::string& target : request.targets) TRY_STATUS(manifest::parse_host(target.starts_with('/') ? "local:" + target : target));
  manifest::Manifest manifest;
  manifest.file = "envsync.yaml";
  manifest.source = source;
  manifest.name = source.path.substr(source.path.rfind('/') + 1);
  Run run;
  TRY(run.transport, transport_options(options));
  Dispatcher dispatcher(observer);
  run.id = new_run_id();
  run.operator_name = operator_name();
  run.manifest = &manifest;
  run.options = &options;
  run.transport.ask = asker(dispatcher);
  run.dispatcher = &dispatcher;
  run.stop = stop;
  run.files = &files_;
  run.trees.emplace(files_, os::cache_folder());
  Source looked(run, source, Reading::environment);
  std::optional<Result<tree::Tree>> tree;
  format::ScanReply scan;
  std::jthread worker([&] {
    looked.start();
    auto found = looked.tree();
    if (found) {
      tree.emplace(**found);
      scan = looked.session().scan;
    } else {
      tree.emplace(std::move(found).error());
    }
    dispatcher.finish();
  });
  dispatcher.pump();
  worker.join();
  if (!*tree) return std::move(*tree).error();
  InitReply reply;
  reply.text = manifest::render_init(source, request.targets);
  const std::string version = python::pyvenv_version(python::parse_pyvenv(scan.environment.pyvenv));
  reply.summary = fmt::format("Python {}, {} distributions, {}", version.empty() ? "?" : version, python::distributions(**tree).size(), human_bytes(scan.bytes));
  return reply;
}

}  // namespace envsync::apply
