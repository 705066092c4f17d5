// SPDX-License-Identifier: MIT
// Starts the program that leads to a host, then the agent there, uploading it where it is missing.
#include <algorithm>
#include <cstdlib>

#include <fcntl.h>

#include <fmt/format.h>

#include "os/process.hpp"
#include "transport/bootstrap.hpp"
#include "transport/process_channel.hpp"
#include "transport/ssh.hpp"

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

/// One attempt to start an agent over a program that leads to `sh`.
class Attempt {
 public:
  Attempt(const Host& host, const Options& options, bool asks)
      : host_(host), options_(options), silence_max_(asks ? std::max(kPersonPatience, options.connect_timeout) : options.connect_timeout),
        own_group_(!asks), token_(os::random_token()) {}

  const std::string& token() const { return token_; }

  /// The terminal's interrupt is for the controller, which then ends its connections in order. A program that may have to ask
  /// stays in the foreground, so there the signal is ignored.
  Result<void> start(std::vector<std::string> argv, std::string shown) {
    shown_ = std::move(shown);
    if (!own_group_) argv.insert(argv.begin(), {"sh", "-c", "trap \"\" INT QUIT; exec \"$@\"", "sh"});
    auto started = ProcessChannel::start(argv, ProcessChannel::Wiring::pipes, own_group_);
    if (started) {
      process_ = std::move(*started);
      return ok();
    }
    Error error(ErrorCode::connect_failed, fmt::format("cannot reach '{}': `{}` cannot be started", host_.name, printable(shown_)));
    error.causes = std::move(started.error().causes);
    error.sys_errno = started.error().sys_errno;
    return error;
  }

  ProcessChannel& process() { return *process_; }

  /// Takes the shell's answers until the agent runs. True where it was uploaded.
  Result<bool> await_agent(const AgentFile& agent) {
    auto first = read_answer(*process_, token_, silence_max_, banner_);
    if (!first) return failed(start_failure(), std::move(first).error().what, Seconds(0));
    if (!*first) return ended();
    if ((*first)->word == "OK") return false;
    if ((*first)->word != "NEED") return refused(**first, agent);
    const auto sent = send_agent(*process_, agent, options_.connect_timeout);
    std::string between;
    // Where sending failed the host may have said why before it went. Where it did not, much of it may still be on a slow way.
    auto second = read_answer(*process_, token_, sent ? std::max(kTransitPatience, options_.connect_timeout) : kEndPatience, between);
    if (second && *second && (*second)->word != "OK") return refused(**second, agent);
    if (sent && second && *second) return true;
    const std::string headline = fmt::format("cannot upload the agent to '{}'", host_.name);
    if (!sent) return failed(headline, sent.error().what, kEndPatience);
    if (!second) return failed(headline, second.error().what, Seconds(0));
    return failed(headline, "the connection ended before the agent was started", kEndPatience);
  }

  std::unique_ptr<ProcessChannel> take() { return std::move(process_); }

 private:
  std::string start_failure() const { return fmt::format("cannot start the agent on '{}'", host_.name); }

  /// Ends the program, with `patience` where it is about to end by itself, and reports its words.
  Error failed(std::string headline, std::string cause, Seconds patience) {
    process_->finish(patience);
    Error error(ErrorCode::connect_failed, std::move(headline));
    error.causes.push_back(std::move(cause));
    for (auto& line : last_lines(process_->stderr_text())) error.causes.push_back(std::move(line));
    for (const auto& line : last_lines(banner_)) error.causes.push_back("output: " + line);
    if (host_.kind == Kind::openssh) error.hints.push_back(fmt::format("run `{} true`", ssh_to_paste(host_, options_)));
    else error.hints.emplace_back("the command must lead to a POSIX 'sh' that reads its standard input");
    return error;
  }

  /// The stream ended without an answer.
  Error ended() {
    const auto status = process_->finish(kEndPatience);
    if (host_.kind == Kind::openssh && status == 255) return ssh_error(host_, options_, process_->stderr_text());
    const std::string how = status ? fmt::format("ended with status {}", *status) : "closed its output";
    return failed(start_failure(), fmt::format("`{}` {}", shown_, how), Seconds(0));
  }

  Error refused(const Answer& answer, const AgentFile& agent) {
    process_->finish(kEndPatience);
    const std::string detail = printable(answer.detail);
    Error error(ErrorCode::connect_failed, fmt::format("the agent does not run on '{}'", host_.name));
    if (answer.word == "NONE") {
      error.what = fmt::format("no place to run from on '{}': all of the folders tried are noexec, full or not writable", host_.name);
      for (const auto& place : words(detail)) error.causes.push_back(place);
      error.hints.emplace_back("set XDG_CACHE_HOME on the host to a folder of yours on a filesystem without noexec");
    } else if (answer.word == "ARCH") {
      error.causes.push_back(fmt::format("the host is {}, the agent '{}' is for {}", detail, agent.path, agent.machine));
    } else if (answer.word == "SHORT") {
      error.what = fmt::format("cannot upload the agent to '{}'", host_.name);
      error.causes.push_back(fmt::format("of {} bytes the host kept: {}", agent.size, detail));
    } else if (answer.word == "BAD") {
      error.causes.push_back(fmt::format("the copy in '{}' does not answer to --version", detail));
    } else {
      error.causes.push_back(fmt::format("the host's shell answered '{}'", printable(answer.word)));
    }
    for (auto& line : last_lines(process_->stderr_text())) error.causes.push_back(std::move(line));
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

  const Host& host_;  // both outlive the call
  const Options& options_;
  Seconds silence_max_;
  bool own_group_;
  std::string token_;
  std::string shown_;
  std::string banner_;
  std::unique_ptr<ProcessChannel> process_;
};

Error stopped(const Host& host) { return Error(ErrorCode::interrupted, fmt::format("stopped while connecting to '{}'", host.name)); }

Connected connected_by(std::unique_ptr<ProcessChannel> process, std::string transport) {
  Connected connected;
  connected.stderr_text = [log = process->stderr_log()] { return log->text(); };
  connected.channel = std::move(process);
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

Result<Connected> connect_remote(const Host& host, const Options& options, ByteView first_request, const std::stop_token& stop) {
  TRY(const AgentFile agent, look_at_agent(options.agent_path, options.agent_digest));
  Attempt attempt(host, options, may_ask(options));
  const std::string line = bootstrap_line(agent, attempt.token(), first_request);
  std::string detail;
  if (host.kind == Kind::openssh) {
    TRY(SshCommand command, ssh_command(host, options));
    detail = std::move(command.detail);
    command.argv.push_back(line);
    TRY_STATUS(attempt.start(std::move(command.argv), ssh_to_paste(host, options)));
  } else {
    auto argv = host.command;
    if (argv.back() == "--") argv.emplace_back("sh");  // `pct exec 200 --`: what follows is the command
    const std::string shown = joined(argv);
    TRY_STATUS(attempt.start(std::move(argv), shown));
  }
  Result<bool> uploaded = false;
  {
    const std::stop_callback on_stop(stop, [&] { attempt.process().abort(); });
    if (host.kind == Kind::command) static_cast<void>(attempt.process().write(as_bytes(line + "\n"), deadline_in(options.connect_timeout)));
    uploaded = attempt.await_agent(agent);
  }
  if (stop.stop_requested()) {
    attempt.process().finish(Seconds(0));
    return stopped(host);
  }
  if (!uploaded) return std::move(uploaded).error();
  Connected connected = connected_by(attempt.take(), host.kind == Kind::openssh ? "openssh" : "command");
  connected.agent_uploaded = *uploaded;
  connected.detail = std::move(detail);
  return connected;
}

}  // namespace

Result<Connected> connect(const Host& host, const Options& options, ByteView first_request, std::stop_token stop) {
  ENVSYNC_CHECK(first_request.size() <= kFirstRequestBytesMax);
  if (stop.stop_requested()) return stopped(host);
  if (host.kind == Kind::local) return connect_local(host, options, first_request);
  if (host.kind == Kind::command && host.command.empty())
    return Error(ErrorCode::connect_failed, fmt::format("the command that reaches '{}' is empty", host.name));
  return connect_remote(host, options, first_request, stop);
}

}  // namespace envsync::transport
