// SPDX-License-Identifier: MIT
// source, targets and the hosts in them.
#include "manifest/draft.hpp"

#include "base/bytes.hpp"
#include "manifest/place.hpp"

#include <fmt/format.h>

namespace envsync::manifest {
namespace {

constexpr std::string_view kTarget = "target";

constexpr Word<tree::Bytecode> kBytecode[] = {{"leave-out", tree::Bytecode::leave_out}, {"ship", tree::Bytecode::ship}};

/// A value that the short form of a host gives too must be the same.
template <class T>
void set_once(const Field& field, T& slot, T value, Problems& problems) {
  if (slot != T{} && slot != value) {
    problems.report(field.value.mark, fmt::format("'{}' contradicts what 'host' says", field.key));
  }
  slot = std::move(value);
}

void read_user_and_port(const Fields& fields, Host& host, Problems& problems) {
  if (const Field* field = fields.find("user")) {
    if (auto user = read_text(named(*field), problems)) {
      if (const auto status = check_user_name(*user); !status) report_at(field->value.mark, status.error(), problems);
      else set_once(*field, host.user, *std::move(user), problems);
    }
  }
  if (const Field* field = fields.find("port")) {
    if (const auto port = read_number(named(*field), 1, 65535, problems)) set_once(*field, host.port, static_cast<u16>(*port), problems);
  }
}

void read_reaching(const Fields& fields, Host& host, Problems& problems) {
  for (const std::string_view key : {"jump", "identity"}) {
    const Field* field = fields.find(key);
    if (field == nullptr) continue;
    const auto text = read_text(named(*field), problems);
    if (!text) continue;
    // ssh would read it as an option.
    if (text->starts_with('-')) problems.report(field->value.mark, fmt::format("'{}' begins with '-'", key));
    else if (key == "identity" && !text->starts_with('/') && !text->starts_with("~/")) {
      problems.report(field->value.mark, fmt::format("'{}' is no absolute path", printable(*text))).hints.emplace_back("begin the path with / or ~/");
    }
    (key == "jump" ? host.jump : host.identity) = *text;
  }
  if (const Field* field = fields.find("transport")) host.transport = read_transport(*field, problems);
  if (const Field* field = fields.find("sudo")) host.sudo = read_flag(named(*field), problems).value_or(false);
}

/// This machine is not reached by anything.
void check_local(const Fields& fields, Problems& problems) {
  for (const std::string_view key : {"user", "port", "jump", "identity", "transport", "sudo"}) {
    const Field* field = fields.find(key);
    if (field == nullptr) continue;
    problems.report(field->key_mark, fmt::format("'local' is this machine and takes no '{}'", key))
        .hints.emplace_back("write 'localhost' to reach it over ssh");
  }
}

std::optional<Host> read_short_host(const Named& value, Problems& problems) {
  const auto text = read_text(value, problems);
  if (!text) return std::nullopt;
  auto host = parse_host(*text);
  if (!host) return report_at(value.node.mark, host.error(), problems), std::nullopt;
  return *std::move(host);
}

std::optional<Host> read_long_host(const Node& node, Problems& problems) {
  const Fields fields(node, Section::host, problems);
  if (!fields.is_map()) return std::nullopt;
  const Field* name = fields.find("host");
  // One unknown key is "local: /srv" without quotes; what it lacks is then no further error.
  if (name == nullptr) {
    if (node.fields.size() != 1 || fields.find("path") != nullptr) problems.report(node.mark, "'host' is missing in a host");
    return std::nullopt;
  }
  auto host = read_short_host(named(*name), problems);
  if (!host) return std::nullopt;
  if (host->is_local) {
    check_local(fields, problems);
  } else {
    read_user_and_port(fields, *host, problems);
    read_reaching(fields, *host, problems);
  }
  if (const Field* field = fields.find("path")) {
    auto path = read_path(field, problems);
    if (path.empty()) return std::nullopt;
    set_once(*field, host->path, std::move(path), problems);
  }
  read_gpu(fields.find("gpu"), host->gpu, problems);
  host->name = host_name(*host);
  return host;
}

std::optional<Host> read_host(const Named& value, Problems& problems) {
  auto host = value.node.kind == Node::Kind::map ? read_long_host(value.node, problems) : read_short_host(value, problems);
  if (host) host->where = problems.location(value.node.mark);
  return host;
}

void read_exclude(const Field& field, Source& source, Problems& problems) {
  if (field.value.kind != Node::Kind::list) {
    problems.report(field.value.mark, fmt::format("'exclude' takes a list of patterns, not {}", described(field.value)));
    return;
  }
  for (const Node& item : field.value.items) {
    auto pattern = read_text({"exclude", item}, problems);
    if (!pattern) continue;
    if (const auto parsed = tree::Exclude::parse({*pattern}); !parsed) report_at(item.mark, parsed.error(), problems);
    source.exclude.push_back(*std::move(pattern));
  }
}

void read_long_source(const Node& node, Draft& draft, Problems& problems) {
  const Fields fields(node, Section::source, problems);
  if (!fields.is_map()) return;
  Source source;
  source.host.is_local = true;
  source.host.name = host_name(source.host);
  source.host.where = problems.location(node.mark);
  bool is_host_refused = false;
  if (const Field* field = fields.find("host")) {
    if (field->value.is_scalar() && field->value.text == kTarget) {
      source.is_target = true;
      source.host.is_local = false;
      source.host.name = kTarget;
    } else if (auto host = read_host(named(*field), problems)) source.host = *std::move(host);
    else is_host_refused = true;
  }
  source.path = source.host.path;
  if (const Field* field = fields.find("path")) {
    auto path = read_path(field, problems);
    if (source.is_target)
      problems.report(field->key_mark, "'target' as a source is what each target has at its own path, and takes no 'path'");
    else if (path.empty()) draft.is_path_refused = true;
    else set_once(*field, source.path, std::move(path), problems);
  }
  if (const Field* field = fields.find("exclude")) read_exclude(*field, source, problems);
  read_word(fields.find("bytecode"), kBytecode, {}, source.bytecode, problems);
  source.host.path = source.path;
  if (!is_host_refused) draft.source = std::move(source);
}

void read_short_source(const Field& field, Draft& draft, Problems& problems) {
  const auto text = read_text(named(field), problems);
  if (!text) return;
  if (*text == kTarget) {
    draft.source.emplace();
    draft.source->is_target = true;
    draft.source->host.name = kTarget;
    draft.source->host.where = problems.location(field.value.mark);
    return;
  }
  auto source = parse_place(*text);
  if (source && source->host.is_local && !source->path.empty()) {
    auto path = environment_path(source->path);
    if (!path) return report_at(field.value.mark, path.error(), problems);
    source->path = *path;
  }
  if (!source) return report_at(field.value.mark, source.error(), problems);
  source->host.where = problems.location(field.value.mark);
  draft.source = *std::move(source);
}

/// A target, or as many as its range names.
void read_target(const Named& value, Draft& draft, Problems& problems) {
  const bool is_map = value.node.kind == Node::Kind::map;
  const Node* const name = is_map ? [&]() -> const Node* {
    const Field* field = value.node.find("host");
    return field == nullptr ? nullptr : &field->value;
  }() : &value.node;
  if (name == nullptr || !name->is_scalar() || !is_range(name->text)) {
    if (auto host = read_host(value, problems)) draft.targets.push_back({*std::move(host), value.node.mark});
    return;
  }
  const auto names = expand_ranges(name->text);
  if (!names) return report_at(name->mark, names.error(), problems);
  Node one = value.node;
  for (const std::string& text : *names) {
    if (!is_map) one.text = text;
    else for (Field& field : one.fields) if (field.key == "host") field.value.text = text;
    auto host = read_host({value.key, one}, problems);
    if (!host) return;  // the others have the same error
    draft.targets.push_back({*std::move(host), value.node.mark});
  }
}

void read_target_list(const Field& field, Draft& draft, Problems& problems) {
  const Node& list = field.value;
  if (list.kind != Node::Kind::list) {
    Error& error = problems.report(list.mark, fmt::format("'{}' takes a list of hosts, not {}", field.key, described(list)));
    if (list.is_scalar()) error.hints.push_back(fmt::format("write [{}]", printable(list.text)));
    return;
  }
  if (list.items.empty()) problems.report(list.mark, fmt::format("'{}' names no host", field.key));
  for (const Node& item : list.items) read_target({field.key, item}, draft, problems);
}

/// One host a line; "#" begins a comment.
void read_hosts_from(const Field& field, const ReadHosts& read_hosts, Draft& draft, Problems& problems) {
  const auto name = read_text(named(field), problems);
  if (!name) return;
  auto text = read_hosts ? read_hosts(*name) : Result<std::string>(Error(ErrorCode::usage, "files beside a manifest are not read here"));
  if (!text) return report_at(field.value.mark, std::move(text).error().context(fmt::format("'hosts_from' cannot be read: '{}'", printable(*name))), problems);
  const u32 index = problems.add_text(*name == "-" ? "standard input" : *name, *text);
  const std::size_t before = draft.targets.size();
  std::string_view rest = *text;
  for (u32 number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const auto line = rest.substr(0, std::min(end, rest.find('#')));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t from = line.find_first_not_of(" \t\r");
    if (from == std::string_view::npos) continue;
    Node node;
    node.kind = Node::Kind::scalar;
    node.text = line.substr(from, line.find_last_not_of(" \t\r") + 1 - from);
    node.mark = {.text = index, .line = number, .column = narrow<u32>(from + 1), .length = narrow<u32>(node.text.size())};
    read_target({field.key, node}, draft, problems);
  }
  if (draft.targets.size() == before && !problems.any()) problems.report(field.value.mark, fmt::format("'{}' names no host", printable(*name)));
}

}  // namespace

std::string read_path(const Field* field, Problems& problems) {
  if (field == nullptr) return {};
  const auto text = read_text(named(*field), problems);
  if (!text) return {};
  auto path = environment_path(*text);
  if (!path) return report_at(field->value.mark, path.error(), problems), std::string();
  return *std::move(path);
}

std::optional<Transport> read_transport(const Field& field, Problems& problems) {
  static constexpr Word<TransportKind> kWords[] = {
      {"auto", TransportKind::automatic}, {"libssh", TransportKind::libssh}, {"openssh", TransportKind::openssh}};
  Transport transport;
  if (field.value.kind != Node::Kind::map) {
    read_word(&field, kWords, {}, transport.kind, problems);
    return transport;
  }
  const Fields fields(field.value, Section::transport, problems);
  const Field* command = fields.find("command");
  if (command == nullptr || command->value.kind != Node::Kind::list || command->value.items.empty()) {
    problems.report(command == nullptr ? fields.mark() : command->value.mark, "'transport' takes auto, libssh, openssh or {command: [program, argument...]}");
    return std::nullopt;
  }
  transport.kind = TransportKind::command;
  for (const Node& item : command->value.items) {
    if (auto word = read_text({"command", item}, problems)) transport.command.push_back(*std::move(word));
  }
  return transport;
}

void read_source(const Field& field, Draft& draft, Problems& problems) {
  draft.source_mark = field.value.mark;
  if (field.value.kind == Node::Kind::map) read_long_source(field.value, draft, problems);
  else read_short_source(field, draft, problems);
}

void read_targets(const Field& field, const ReadHosts& read_hosts, Draft& draft, Problems& problems) {
  if (field.value.kind != Node::Kind::map) return read_target_list(field, draft, problems);
  const Fields fields(field.value, Section::targets, problems);
  draft.targets_path = read_path(fields.find("path"), problems);
  if (fields.find("path") != nullptr && draft.targets_path.empty()) draft.is_path_refused = true;
  const Field* const hosts = fields.find("hosts");
  const Field* const hosts_from = fields.find("hosts_from");
  if (hosts != nullptr) read_target_list(*hosts, draft, problems);
  if (hosts_from != nullptr) read_hosts_from(*hosts_from, read_hosts, draft, problems);
  if (hosts == nullptr && hosts_from == nullptr) problems.report(field.value.mark, "'hosts' or 'hosts_from' is missing in 'targets'");
}

}  // namespace envsync::manifest
