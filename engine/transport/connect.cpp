// SPDX-License-Identifier: MIT
// Starts the program that leads to a host, then the agent there, uploading it where it is missing.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include <fcntl.h>

#include <fmt/format.h>

#include "os/process.hpp"
#include "transport/bootstrap.hpp"
#include "transport/libssh_channel.hpp"
#include "transport/process_channel.hpp"

namespace envsync::transport {
namespace {

constexpr std::size_t kFirstRequestBytesMax = 6u << 10;
constexpr Seconds kPersonPatience{300};  // LIMIT: for a password, a passphrase, a second factor
constexpr Seconds kTransitPatience{120};  // LIMIT: what buffers between here and the host hold, at some 200 kbit/s
constexpr Seconds kEndPatience{5};

std::string joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const auto& word : argv) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

/// Whether the program could ask a person something.
bool may_ask(const Options& options) {
  if (options.batch) return false;
  const os::Fd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  return terminal || std::getenv("SSH_ASKPASS");
}

struct Start {
  AgentFile agent;
  ByteView first_request;
  std::stop_token stop;
};

/// One attempt to start an agent over whatever leads to `sh`.
class Attempt {
 public:
  Attempt(const Host& host, const Options& options, const Start& start, std::string token)
      : host_(host), options_(options), agent_(start.agent), token_(std::move(token)) {}

  /// The terminal's interrupt is for the controller, which then ends its connections in order. A program that may have to ask
  /// stays in the foreground, so there the signal is ignored.
  Result<void> start_program(std::vector<std::string> argv, std::string shown) {
    const bool asks = may_ask(options_);
    silence_max_ = asks ? std::max(kPersonPatience, options_.connect_timeout) : options_.connect_timeout;
    shown_ = std::move(shown);
    if (asks) argv.insert(argv.begin(), {"sh", "-c", "trap \"\" INT QUIT; exec \"$@\"", "sh"});
    auto started = ProcessChannel::start(argv, ProcessChannel::Wiring::pipes, !asks);
    if (started) {
      carrier_ = std::move(*started);
      return ok();
    }
    Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': `{}` cannot be started", host_.name, printable(shown_)));
    error.causes = std::move(started.error().causes);
    error.sys_errno = started.error().sys_errno;
    return error;
  }

  /// Who had to be asked was asked before.
  void take(std::unique_ptr<Carrier> carrier) {
    silence_max_ = options_.connect_timeout;
    carrier_ = std::move(carrier);
    is_ssh_program_ = false;
    shown_ = "the login shell";
  }

  Carrier& carrier() { return *carrier_; }

  /// Takes the shell's answers until the agent runs. True where it was uploaded.
  Result<bool> await_agent() {
    auto first = read_answer(*carrier_, token_, silence_max_, banner_);
    if (!first) return failed(start_failure(), std::move(first).error().what, Seconds(0));
    if (!*first) return ended();
    if ((*first)->word == "OK") return false;
    if ((*first)->word != "NEED") return refused(**first);
    const auto sent = send_agent(*carrier_, agent_, options_.connect_timeout);
    std::string between;
    // Where sending failed the host may have said why before it went. Where it did not, much of it may still be on a slow way.
    auto second = read_answer(*carrier_, token_, sent ? std::max(kTransitPatience, options_.connect_timeout) : kEndPatience, between);
    if (second && *second && (*second)->word != "OK") return refused(**second);
    if (sent && second && *second) return true;
    const std::string headline = fmt::format("cannot upload the agent to '{}'", host_.name);
    if (!sent) return failed(headline, sent.error().what, kEndPatience);
    if (!second) return failed(headline, second.error().what, Seconds(0));
    return failed(headline, "the connection ended before the agent was started", kEndPatience);
  }

  std::unique_ptr<Carrier> take_carrier() { return std::move(carrier_); }

 private:
  std::string start_failure() const { return fmt::format("cannot start the agent on '{}'", host_.name); }

  /// Ends the program, with `patience` where it is about to end by itself, and reports its words.
  Error failed(std::string headline, std::string cause, Seconds patience) {
    carrier_->finish(patience);
    Error error(ErrorCode::connect_failed, std::move(headline));
    error.causes.push_back(std::move(cause));
    for (auto& line : last_lines(carrier_->stderr_text())) error.causes.push_back(std::move(line));
    for (const auto& line : last_lines(banner_)) error.causes.push_back("output: " + line);
    if (host_.sudo) say_sudo(error);
    else if (host_.kind != Kind::command) error.hints.push_back(fmt::format("run `{} true`", ssh_to_paste(host_, options_)));
    else error.hints.emplace_back("the command must lead to a POSIX 'sh' that reads its standard input");
    return error;
  }

  /// The stream ended without an answer.
  Error ended() {
    const auto status = carrier_->finish(kEndPatience);
    if (is_ssh_program_ && host_.kind != Kind::command && status == 255) return ssh_error(host_, options_, carrier_->stderr_text());
    const std::string how = status ? fmt::format("ended with status {}", *status) : "closed its output";
    return failed(start_failure(), fmt::format("`{}` {}", shown_, how), Seconds(0));
  }

  /// `sudo -n` fails by its words on stderr, or the login shell has no sudo.
  void say_sudo(Error& error) const {
    error.notes.emplace_back("the host's 'sudo: true' starts the agent by `sudo -n sh`, which must ask for no password");
    error.hints.push_back(fmt::format("run `{} sudo -n true`, and let sudoers say 'NOPASSWD: ALL' for that user", ssh_to_paste(host_, options_)));
    error.hints.emplace_back("log in as root, or take 'sudo' away");
  }

  Error refused(const Answer& answer) {
    carrier_->finish(kEndPatience);
    const std::string detail = printable(answer.detail);
    Error error(ErrorCode::connect_failed, fmt::format("the agent does not run on '{}'", host_.name));
    if (answer.word == "NONE") {
      error.what = fmt::format("no place to run from on '{}': all of the folders tried are noexec, full or not writable", host_.name);
      for (const auto& place : words(detail)) error.causes.push_back(place);
      error.hints.emplace_back("set XDG_CACHE_HOME on the host to a folder of yours on a filesystem without noexec");
    } else if (answer.word == "ARCH") {
      error.causes.push_back(fmt::format("the host is {}, the agent '{}' is for {}", detail, agent_.path, agent_.machine));
    } else if (answer.word == "SHORT") {
      error.what = fmt::format("cannot upload the agent to '{}'", host_.name);
      error.causes.push_back(fmt::format("of {} bytes the host kept: {}", agent_.size, detail));
    } else if (answer.word == "BAD") {
      error.causes.push_back(fmt::format("the copy in '{}' does not answer to --version", detail));
    } else {
      error.causes.push_back(fmt::format("the host's shell answered '{}'", printable(answer.word)));
    }
    for (auto& line : last_lines(carrier_->stderr_text())) error.causes.push_back(std::move(line));
    return error;
  }

  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      if (end > at) all.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return all;
  }

  const Host& host_;  // these outlive the call
  const Options& options_;
  const AgentFile& agent_;
  Seconds silence_max_{};
  bool is_ssh_program_ = true;
  std::string token_;
  std::string shown_;
  std::string banner_;
  std::unique_ptr<Carrier> carrier_;
};

Error stopped(const Host& host) { return Error(ErrorCode::interrupted, fmt::format("stopped while connecting to '{}'", host.name)); }

Connected connected_by(std::unique_ptr<Carrier> carrier, std::string transport) {
  Connected connected;
  connected.stderr_text = [log = carrier->stderr_log()] { return log->text(); };
  connected.channel = std::move(carrier);
  connected.transport = std::move(transport);
  return connected;
}

Result<Connected> connect_local(const Host& host, const Options& options, ByteView first_request) {
  std::vector<std::string> argv = {options.agent_path, "serve"};
  if (!first_request.empty()) argv.push_back(to_base64(first_request));
  auto started = ProcessChannel::start(argv, ProcessChannel::Wiring::socket, true);
  if (started) return connected_by(std::move(*started), "local");
  Error error(ErrorCode::connect_failed, fmt::format("cannot start the agent on '{}'", host.name));
  error.causes = std::move(started.error().causes);
  error.causes.insert(error.causes.begin(), started.error().what);
  error.sys_errno = started.error().sys_errno;
  return error;
}

/// The agent's start over an attempt that is under way; `line` is what a command still has to be told.
Result<Connected> start_agent(Attempt& attempt, const Host& host, const Options& options, const Start& start, const std::string& line, std::string transport) {
  Result<bool> uploaded = false;
  {
    const std::stop_callback on_stop(start.stop, [&] { attempt.carrier().abort(); });
    if (!line.empty()) static_cast<void>(attempt.carrier().write(as_bytes(line + "\n"), deadline_in(options.connect_timeout)));
    uploaded = attempt.await_agent();
  }
  if (start.stop.stop_requested()) {
    attempt.carrier().finish(Seconds(0));
    return stopped(host);
  }
  if (!uploaded) return std::move(uploaded).error();
  Connected connected = connected_by(attempt.take_carrier(), std::move(transport));
  connected.agent_uploaded = *uploaded;
  return connected;
}

Result<Connected> connect_by_command(const Host& host, const Options& options, const Start& start) {
  const std::string token = os::random_token();
  Attempt attempt(host, options, start, token);
  auto argv = host.command;
  if (argv.back() == "--") argv.emplace_back("sh");  // `pct exec 200 --`: what follows is the command
  const std::string shown = joined(argv);
  TRY_STATUS(attempt.start_program(std::move(argv), shown));
  return start_agent(attempt, host, options, start, bootstrap_line(start.agent, token, start.first_request, host.sudo), "command");
}

/// `why`: not libssh; empty where nobody wanted that.
Result<Connected> connect_by_program(const Host& host, const Options& options, const Start& start, const Resolved& resolved, std::string why) {
  const std::string token = os::random_token();
  Attempt attempt(host, options, start, token);
  SshCommand command = ssh_command(host, options, resolved);
  command.argv.push_back(bootstrap_line(start.agent, token, start.first_request, host.sudo));
  TRY_STATUS(attempt.start_program(std::move(command.argv), ssh_to_paste(host, options)));
  TRY(Connected connected, start_agent(attempt, host, options, start, {}, "openssh"));
  connected.detail = std::move(why);
  if (!command.detail.empty()) connected.detail += (connected.detail.empty() ? "" : "; ") + command.detail;
  return connected;
}

Result<Connected> connect_by_libssh(const Host& host, const Options& options, const Start& start, std::unique_ptr<LibsshLink> link) {
  const std::string token = os::random_token();
  Attempt attempt(host, options, start, token);
  const std::string line = bootstrap_line(start.agent, token, start.first_request, host.sudo);
  TRY(auto channel, LibsshChannel::start(std::move(link), host, line, start.stop));
  const std::string cipher = channel->cipher();
  attempt.take(std::move(channel));
  TRY(Connected connected, start_agent(attempt, host, options, start, {}, "libssh"));
  connected.detail = cipher;
  return connected;
}

Error beyond_libssh(const Host& host, std::string_view option) {
  Error error(ErrorCode::connect_failed, fmt::format("libssh cannot honour '{}' of ssh_config for '{}'", option, host.name));
  error.notes.emplace_back("no connection was made");
  error.hints.emplace_back("write 'transport: auto' or 'transport: openssh' for this host");
  return error;
}

Result<Connected> connect_by_ssh(const Host& host, const Options& options, const Start& start) {
  TRY(const Resolved resolved, resolve_with_defaults(host, options));
  if (host.kind == Kind::openssh) return connect_by_program(host, options, start, resolved, {});
  const bool has_choice = host.kind == Kind::automatic && !resolved.is_ssh_missing;
  Fit fit = fit_login(host, options, resolved);
  if (!fit.beyond.empty() && !has_choice) return beyond_libssh(host, fit.beyond);
  if (!fit.beyond.empty()) return connect_by_program(host, options, start, resolved, fmt::format("ssh_config says '{}', which libssh does not honour", fit.beyond));
  // Its channels were used after their end: no server that is not trusted should be able to make use of that unasked.
  if (has_choice && !has_sound_libssh()) return connect_by_program(host, options, start, resolved, "this machine's libssh lacks security fixes");
  const auto has_asked = std::make_shared<std::atomic<bool>>(false);
  Options watched = options;
  if (options.ask)
    watched.ask = [ask = options.ask, has_asked](const Prompt& prompt) {
      if (prompt.kind != Prompt::Kind::yes_no) *has_asked = true;
      return ask(prompt);
    };
  auto link = LibsshLink::prepare(host, watched, std::move(fit.login));
  if (!link && has_choice) return connect_by_program(host, options, start, resolved, link.error().what);
  if (!link) return std::move(link).error();
  auto connected = (*link)->connect(!may_ask(options), start.stop);
  if (start.stop.stop_requested()) return stopped(host);
  if (connected) {
    const std::string address = (*link)->address();
    TRY(Connected through, connect_by_libssh(host, options, start, std::move(*link)));
    through.address = address;
    through.has_asked = *has_asked;
    return through;
  }
  if (has_choice && (*link)->program_may_help() && connected.error().code == ErrorCode::auth_failed)
    return connect_by_program(host, options, start, resolved, "libssh found no way to log in");
  return std::move(connected).error();
}

}  // namespace

Result<Connected> connect(const Host& host, const Options& options, ByteView first_request, std::stop_token stop) {
  ENVSYNC_CHECK(first_request.size() <= kFirstRequestBytesMax);
  if (stop.stop_requested()) return stopped(host);
  if (host.kind == Kind::local) return connect_local(host, options, first_request);
  if (host.kind == Kind::command && host.command.empty())
    return Error(ErrorCode::connect_failed, fmt::format("the command that reaches '{}' is empty", host.name));
  TRY(AgentFile agent, look_at_agent(options.agent_path, options.agent_digest));
  const Start start{std::move(agent), first_request, stop};
  return host.kind == Kind::command ? connect_by_command(host, options, start) : connect_by_ssh(host, options, start);
}

}  // namespace envsync::transport
