// SPDX-License-Identifier: MIT
#include "apply/place.hpp"

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "os/paths.hpp"

namespace envsync::apply {

std::string absolute_path(const std::string& path) {
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

Result<manifest::Source> place_of(const std::string& text) {
  TRY(manifest::Source source, manifest::parse_place(text));
  if (source.path.empty()) {
    Error error{ErrorCode::usage, fmt::format("'{}' is taken for a host and names no environment on it", printable(text))};
    if (source.host.is_local) return std::move(error).hint("write the path of the environment");
    if (os::real_path(text)) return std::move(error).hint(fmt::format("write './{}' for the folder here, or '{}:/path/of/venv'", printable(text), printable(text)));
    return std::move(error).hint(fmt::format("write '{}:/path/of/venv'", printable(text)));
  }
  if (source.host.is_local) source.host.path = source.path = absolute_path(source.path);
  return source;
}

Result<void> EngineImpl::look(const manifest::Source& place, Reading reading, const RunOptions& options, Observer& observer, std::stop_token stop,
                              const std::function<Result<void>(Run&, Source&)>& work) {
  manifest::Manifest manifest;
  manifest.source = place;
  manifest.name = place.path.substr(place.path.rfind('/') + 1);
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
  Source source(run, place, reading);
  Result<void> done;
  std::jthread worker([&] {
    source.start();
    done = work(run, source);
    dispatcher.finish();
  });
  dispatcher.pump();
  worker.join();
  return done;
}

}  // namespace envsync::apply
