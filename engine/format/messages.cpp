// SPDX-License-Identifier: MIT
// The messages that are neither request nor reply.
#include "format/messages.hpp"

#include "format/proto_bytes.hpp"
#include "format/wire.hpp"

#include "messages.pb.h"

#include <algorithm>

namespace envsync::format {
namespace {

constexpr std::size_t kErrorLinesMax = 100;

/// An error must arrive, if cut, rather than be refused for its length.
std::vector<std::string> clipped(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  for (const std::string& line : lines) {
    if (out.size() == kErrorLinesMax) break;
    out.push_back(line.substr(0, kErrorTextMax));
  }
  return out;
}

}  // namespace

Bytes encode(const Hello& hello) {
  wire::Hello out;
  out.set_build(hello.build);
  out.set_exe_digest(hello.exe_digest);
  out.set_pid(hello.pid);
  return to_bytes(out);
}

Result<Hello> decode_hello(ByteView bytes) {
  TRY(const auto in, from_bytes<wire::Hello>(bytes, "a hello"));
  Door door;
  Hello out;
  out.build = door.text(in.build(), "build");
  out.exe_digest = door.text(in.exe_digest(), "exe_digest");
  out.pid = in.pid();
  TRY_STATUS(door.verdict("a hello"));
  return out;
}

Bytes encode(const Progress& progress) {
  wire::Progress out;
  out.set_phase(static_cast<u32>(progress.phase));
  out.set_files_done(progress.files_done);
  out.set_files_total(progress.files_total);
  out.set_bytes_done(progress.bytes_done);
  out.set_bytes_total(progress.bytes_total);
  return to_bytes(out);
}

Result<Progress> decode_progress(ByteView bytes) {
  TRY(const auto in, from_bytes<wire::Progress>(bytes, "a progress"));
  Door door;
  Progress out;
  out.phase = door.choice(in.phase(), Phase::verify, "phase");
  out.files_done = in.files_done();
  out.files_total = in.files_total();
  out.bytes_done = in.bytes_done();
  out.bytes_total = in.bytes_total();
  TRY_STATUS(door.verdict("a progress"));
  return out;
}

Bytes encode(const Error& error) {
  wire::Error out;
  out.set_code(static_cast<u32>(error.code));
  out.set_what(error.what.substr(0, kErrorTextMax));
  if (error.where) {
    wire::Location& where = *out.mutable_where();
    where.set_file(error.where->file.substr(0, kErrorTextMax));
    where.set_line(error.where->line);
    where.set_column(error.where->column);
    where.set_length(error.where->length);
    where.set_line_text(error.where->line_text.substr(0, kErrorTextMax));
  }
  out.set_causes(encode_strings(clipped(error.causes)));
  out.set_at_notes(encode_strings(clipped(error.at_notes)));
  out.set_notes(encode_strings(clipped(error.notes)));
  out.set_hints(encode_strings(clipped(error.hints)));
  out.set_sys_errno(error.sys_errno);
  return to_bytes(out);
}

Result<Error> decode_error(ByteView bytes) {
  TRY(const auto in, from_bytes<wire::Error>(bytes, "an error"));
  Door door;
  Error out;
  out.code = door.choice(in.code(), ErrorCode::terminated, "code");
  out.what = door.text(in.what(), "what", kErrorTextMax);
  if (in.has_where()) {
    const wire::Location& where = in.where();
    out.where = Location{.file = door.text(where.file(), "file", kErrorTextMax), .line = where.line(), .column = where.column(),
                         .length = where.length(), .line_text = door.text(where.line_text(), "line_text", kErrorTextMax)};
  }
  out.causes = door.strings(in.causes(), "causes", kErrorLinesMax, kErrorTextMax);
  out.at_notes = door.strings(in.at_notes(), "at_notes", kErrorLinesMax, kErrorTextMax);
  out.notes = door.strings(in.notes(), "notes", kErrorLinesMax, kErrorTextMax);
  out.hints = door.strings(in.hints(), "hints", kErrorLinesMax, kErrorTextMax);
  out.sys_errno = in.sys_errno();
  TRY_STATUS(door.verdict("an error"));
  return Result<Error>(tl::in_place, std::move(out));
}

}  // namespace envsync::format
