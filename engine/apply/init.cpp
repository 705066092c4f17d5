// SPDX-License-Identifier: MIT
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "apply/engine_impl.hpp"
#include "apply/place.hpp"
#include "python/environment.hpp"

namespace envsync::apply {

namespace {

bool is_path_word(const std::string& text) { return text.starts_with('/') || text.starts_with("./") || text.starts_with("../") || text == "." || text == ".."; }

Result<std::vector<std::string>> targets_of(const std::vector<std::string>& given, const manifest::Source& source) {
  std::vector<std::string> targets;
  std::set<std::pair<std::string, std::string>> seen;
  for (const std::string& text : given) {
    const std::string target = is_path_word(text) ? "local:" + absolute_path(text) : text;
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
  TRY(const manifest::Source source, place_of(request.source));
  TRY(const std::vector<std::string> targets, targets_of(request.targets, source));
  InitReply reply;
  reply.text = manifest::render_init(source, targets);
  // What is written is a manifest, whatever was given.
  if (const auto parsed = manifest::parse("envsync.yaml", reply.text, {}); !parsed) return parsed.error().front();
  TRY_STATUS(look(source, Reading::environment, options, observer, std::move(stop), [&](Run&, Source& looked) -> Result<void> {
    TRY(const tree::Tree* tree, looked.tree());
    const format::ScanReply& scan = looked.session().scan;
    const std::string version = python::pyvenv_version(python::parse_pyvenv(scan.environment.pyvenv));
    reply.summary = fmt::format("Python {}, {} distributions, {}", version.empty() ? "?" : version, python::distributions(*tree).size(), human_bytes(scan.bytes));
    return ok();
  }));
  return reply;
}

}  // namespace envsync::apply
