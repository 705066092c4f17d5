// SPDX-License-Identifier: MIT
// `init` writes a manifest that never replaces one, and the schema that editors read beside it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/guard.hpp"
#include "base/try.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/json_lines.hpp"
#include "cli/verbs.hpp"

namespace envsync::cli {

namespace {

constexpr const char* kManifest = "envsync.yaml";
constexpr const char* kSchema = ".envsync.schema.json";

Error exists_error(const std::string& file) {
  return usage_error(fmt::format("'{}' exists", file)).note("nothing was written").hint("move it away, or edit it and run `envsync plan`");
}

/// Writes a file that must not exist; one that could not be written whole is taken away again.
Result<void> write_new(const std::string& path, const std::string& shown, std::string_view text) {
  const auto failure = [&](int number) {
    Error error = number == EEXIST ? exists_error(shown) : Error(ErrorCode::io, fmt::format("cannot write '{}'", shown)).cause(std::strerror(number));
    error.sys_errno = number;
    return error;
  };
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return failure(errno);
  ScopeGuard undo([&] { ::unlink(path.c_str()); });
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int saved = errno;
      ::close(fd);
      return failure(saved);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::close(fd) != 0) return failure(errno);
  undo.dismiss();
  return ok();
}

}  // namespace

int run_init(const Invocation& given, const Surroundings& around) {
  const std::string manifest = around.io.folder + "/" + kManifest, schema = around.io.folder + "/" + kSchema;
  // Asked before a host is, so that nobody waits for an answer that cannot be written; O_EXCL decides.
  if (::access(manifest.c_str(), F_OK) == 0) return fail(exists_error(kManifest), around);
  Result<InitReply> reply;
  const auto looked = without_manifest(given, around, [&](const RunOptions& options, Console& console) -> Result<void> {
    TRY(reply, around.services.engine.init(given.init, options, console, around.interruption.stop));
    return ok();
  });
  if (!looked) return interrupted_exit_code(info(looked.error().code).exit_code, around.interruption.signal());
  if (auto status = write_new(manifest, kManifest, reply->text); !status) return fail(status.error(), around);
  const auto schema_status = write_new(schema, kSchema, around.services.schema);
  if (!schema_status && schema_status.error().sys_errno != EEXIST) {
    around.io.err(fmt::format("{}: '{}' was not written: {}\n", around.err.yellow("warning"), kSchema, schema_status.error().causes[0]));
  } else if (!schema_status && !given.is_quiet) {
    around.io.err(fmt::format("{}: '{}' exists and was left as it is; `envsync schema` prints this version's\n", around.err.bold("note"), kSchema));
  }
  if (given.has_json) {
    const Envelope envelope{.run = "", .now_ns = around.io.clock->realtime_ns()};
    around.io.out(json_manifest(envelope, kManifest, "", "", given.init.source, given.init.targets) + "\n");
  } else if (!given.is_quiet) {
    around.io.out(fmt::format("Wrote {} ({}). Next: envsync plan\n", kManifest, safe(reply->summary)));
  }
  return 0;
}

}  // namespace envsync::cli
