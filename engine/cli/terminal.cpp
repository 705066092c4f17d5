// SPDX-License-Identifier: MIT
#include "cli/terminal.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/bytes.hpp"

namespace envsync::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kRedraw = 100ms;
constexpr auto kSayAgain = 30s;

std::string_view present(Phase phase) {
  switch (phase) {
    case Phase::connect: return "Connecting";
    case Phase::scan: return "Scanning";
    case Phase::plan: return "Planning";
    case Phase::stage: return "Staging";
    case Phase::transfer: return "Sending";
    case Phase::seal: return "Sealing";
    case Phase::commit: return "Swapping";
    case Phase::accept: return "Accepting";
    case Phase::verify: return "Verifying";
  }
  return "";
}

std::string_view past(Phase phase) {
  switch (phase) {
    case Phase::connect: return "Connected";
    case Phase::scan: return "Scanned";
    case Phase::plan: return "Planned";
    case Phase::stage: return "Staged";
    case Phase::transfer: return "Sent";
    case Phase::seal: return "Sealed";
    case Phase::commit: return "Swapped";
    case Phase::accept: return "Accepted";
    case Phase::verify: return "Verified";
  }
  return "";
}

double seconds(std::chrono::steady_clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

Terminal::Host& Terminal::host(const std::string& name) {
  const auto found = std::ranges::find(hosts_, name, &Host::name);
  if (found != hosts_.end()) return *found;
  const Time now = io_->clock->steady();
  if (!hosts_.empty()) options_.shows_host = true;
  hosts_.push_back({.name = name, .phase = Phase::connect, .since = now, .said = now, .progress = {}, .has_progress = false, .is_at_work = true});
  return hosts_.back();
}

void Terminal::on(const PhaseEvent& event) {
  Host& at = host(event.host);
  const Time now = io_->clock->steady();
  if (!event.finished) {
    if (at.phase != event.phase) at.has_progress = false;
    at.phase = event.phase;
    at.since = now;
  }
  at.is_at_work = !event.finished;
  const bool says_line = event.finished && (options_.style == ProgressStyle::plain || (options_.style == ProgressStyle::animated && options_.is_verbose));
  if (says_line) {
    at.said = now;
    erase();
    io_->err(finished(event));
    draw();
  }
  // The next phase begins at once; a redraw in between would only flicker.
  if (!event.finished && options_.style == ProgressStyle::animated) redraw(now);
}

void Terminal::on(const ProgressEvent& event) {
  Host& at = host(event.host);
  const Time now = io_->clock->steady();
  const bool is_new_phase = at.phase != event.phase;
  if (is_new_phase) at.since = now;
  at.phase = event.phase;
  at.progress = event;
  at.has_progress = true;
  at.is_at_work = true;
  if (is_new_phase && options_.style == ProgressStyle::animated) redraw(now);
  else tick();
}

void Terminal::done(const std::string& host) {
  erase();
  std::erase_if(hosts_, [&](const Host& h) { return h.name == host; });
}

void Terminal::tick() {
  const Time now = io_->clock->steady();
  if (options_.style == ProgressStyle::animated && now - drawn_at_ >= kRedraw) redraw(now);
  if (options_.style != ProgressStyle::plain) return;
  for (Host& at : hosts_) {
    if (!at.is_at_work || now - at.said < kSayAgain) continue;
    at.said = now;
    io_->err(options_.palette.green(verb_column(present(at.phase))) + status(at, now) + "\n");
  }
}

std::string Terminal::status(const Host& at, Time now) const {
  std::vector<std::string> parts;
  if (options_.shows_host) parts.push_back(safe(at.name));
  if (at.has_progress) {
    const ProgressEvent& p = at.progress;
    if (p.bytes_total > 0) parts.push_back(bytes_of_bytes(p.bytes_done, p.bytes_total));
    else if (p.files_total > 0) parts.push_back(fmt::format("{} of {}", thousands(p.files_done), count(p.files_total, "file")));
    else if (p.files_done > 0) parts.push_back(count(p.files_done, "file"));
    if (p.bytes_per_second > 0) parts.push_back(rate(p.bytes_per_second));
  }
  const bool is_estimated = at.has_progress && at.progress.seconds_left.has_value();
  if (is_estimated) parts.push_back(rough_duration(*at.progress.seconds_left) + " left");
  else if (const double taken = seconds(now - at.since); taken >= 1) parts.push_back(duration(taken));
  return join(parts, "  ");
}

std::string Terminal::finished(const PhaseEvent& event) const {
  std::vector<std::string> parts;
  if (event.files > 0) parts.push_back(count(event.files, "file"));
  if (event.bytes > 0) parts.push_back(human_bytes(event.bytes));
  std::string text = options_.shows_host ? safe(event.host) : "";
  if (!parts.empty()) text += (text.empty() ? "" : ": ") + join(parts, ", ");
  if (event.seconds >= 1) text += (text.empty() ? "in " : " in ") + duration(event.seconds);
  std::string line = options_.palette.green(verb_column(past(event.phase))) + text;
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

std::vector<std::string> Terminal::status_lines(Time now) const {
  const TerminalSize size = io_->terminal_size();
  // A line that wraps, or more lines than the screen has, could not be taken away again.
  const std::size_t width = size.columns > 1 ? size.columns - 1 : 1;
  const std::size_t room = size.rows > 4 ? size.rows - 3 : 1;
  std::vector<const Host*> working;
  for (const Host& at : hosts_) {
    if (!at.is_at_work) continue;
    if (at.phase == Phase::connect && options_.may_prompt) return {};
    working.push_back(&at);
  }
  const std::size_t shown = working.size() <= room ? working.size() : room - 1;
  std::vector<std::string> lines;
  for (const Host* at : std::span(working).first(shown)) {
    const std::string verb = verb_column(present(at->phase));
    lines.push_back(options_.palette.green(verb) + clip(status(*at, now), width - std::min(width, columns(verb))));
  }
  if (shown < working.size()) lines.push_back(clip(verb_column("") + fmt::format("and {}", count(working.size() - shown, "more host")), width));
  return lines;
}

void Terminal::erase() {
  if (drawn_ == 0) return;
  std::string out = "\r\x1b[2K";
  for (std::size_t i = 1; i < drawn_; ++i) out += "\x1b[1A\x1b[2K";
  io_->err(out);
  drawn_ = 0;
}

void Terminal::draw() {
  if (options_.style == ProgressStyle::animated) redraw(io_->clock->steady());
}

void Terminal::redraw(Time now) {
  const std::vector<std::string> lines = status_lines(now);
  // One write, so that nothing flickers: to the first line, then each over its old self.
  std::string out;
  if (drawn_ > 0) out += "\r";
  if (drawn_ > 1) out += fmt::format("\x1b[{}A", drawn_ - 1);
  for (std::size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\n") + lines[i] + "\x1b[K";
  if (lines.empty() && drawn_ > 0) out += "\x1b[K";
  for (std::size_t i = std::max<std::size_t>(lines.size(), 1); i < drawn_; ++i) out += "\n\x1b[K";
  const std::size_t end = std::max<std::size_t>(lines.size(), 1);
  if (drawn_ > end) out += fmt::format("\x1b[{}A", drawn_ - end);
  if (!out.empty()) io_->err(out);
  drawn_ = lines.size();
  drawn_at_ = now;
}

}  // namespace envsync::cli
