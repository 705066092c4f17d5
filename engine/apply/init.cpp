// SPDX-License-Identifier: MIT
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "os/paths.hpp"
#include "python/environment.hpp"

namespace envsync::apply {

namespace {

/// A path of this machine as the command line has it, complete.
std::string absolute(const std::string& path) {
  const std::string given = os::expand_home(path);
  if (auto real = os::real_path(given)) return *real;
  // What does not exist yet has no links in it: the words are enough.
  const std::string whole = given.starts_with('/') ? given : os::real_path(".").value_or("") + "/" + given;
  std::string out;
  for (std::size_t begin = 0; begin < whole.size();) {
    const std::size_t end = std::min(whole.find('/', begin), whole.size());
    const std::string_view part = std::string_view(whole).substr(begin, end - begin);
    if (part == "..") out.resize(std::min(out.rfind('/'), out.size()));
    else if (!part.empty() && part != ".") out.append("/").append(part);
    begin = end + 1;
  }
  return out.empty() ? "/" : out;
}

bool is_path_word(const std::string& text) { return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") || text == "." || text == ".."; }

Result<manifest::Source> source_of(const std::string& text) {
  TRY(manifest::Source source, manifest::parse_place(text));
  if (source.path.empty()) {
    Error error{ErrorCode::usage, fmt::format("'{}' is taken for a host and names no environment on it", printable(text))};
    if (source.host.is_local) return std::move(error).hint("write the path of the environment");
    if (os::real_path(text)) return std::move(error).hint(fmt::format("write './{}' for the folder here, or '{}:/path/of/venv'", printable(text), printable(text)));
    return std::move(error).hint(fmt::format("write '{}:/path/of/venv'", printable(text)));
  }
  if (source.host.is_local) source.host.path = source.path = absolute(source.path);
  return source;
}

Result<std::vector<std::string>> targets_of(const std::vector<std::string>& given, const manifest::Source& source) {
  std::vector<std::string> targets;
  std::set<std::pair<std::string, std::string>> seen;
  for (const std::string& text : given) {
    const std::string target = is_path_word(text) ? "local:" + absolute(text) : text;
    TRY(const auto names, manifest::expand_ranges(target));
    for (const std::string& name : names) {
      TRY(const manifest::Host host, manifest::parse_host(name));
      const std::string path = host.path.empty() ? source.path : host.path;
      if (host.name == source.host.name && path == source.path)
        return Error{ErrorCode::usage, fmt::format("the target '{}' is the source itself", printable(text))}
            .hint(host.is_local ? "name another folder as 'local:/path/of/venv', or a host" : fmt::format("name another path as '{}:/path/of/venv', or another host", printable(host.name)));
      if (!seen.emplace(host.name, path).second) return Error{ErrorCode::usage, fmt::format("the target '{}' is named twice", printable(text))};
    }
    targets.push_back(target);
  }
  return targets;
}

}  // namespace

Result<InitReply> EngineImpl::init(const InitRequest& request, const RunOptions& options, Observer& observer, std::stop_token stop) {
  TRY(const manifest::Source source, source_of(request.source));
  TRY(const std::vector<std::string> targets, targets_of(request.targets, source));
  manifest::Manifest manifest;
  manifest.file = "envsync.yaml";
  manifest.source = source;
  manifest.name = source.path.substr(source.path.rfind('/') + 1);
  Run run;
  TRY(run.transport, transport_options(options));
  Dispatcher dispatcher(observer);
  run.id = options.run.empty() ? new_run_id() : options.run;
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
  reply.text = manifest::render_init(source, targets);
  // What is written is a manifest, whatever was given.
  if (const auto parsed = manifest::parse(manifest.file, reply.text, {}); !parsed) return parsed.error().front();
  const std::string version = python::pyvenv_version(python::parse_pyvenv(scan.environment.pyvenv));
  reply.summary = fmt::format("Python {}, {} distributions, {}", version.empty() ? "?" : version, python::distributions(**tree).size(), human_bytes(scan.bytes));
  return reply;
}

}  // namespace envsync::apply
