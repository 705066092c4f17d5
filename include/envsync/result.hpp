// SPDX-License-Identifier: MIT
// Errors are values. An Error says what failed in the user's nouns, where, why, what the state is now and what to do.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include <envsync/codes.hpp>

namespace envsync {

/// A place in a text file that a user wrote. Lines and columns count from 1; column counts bytes.
struct Location {
  std::string file;
  u32 line = 0;
  u32 column = 0;
  u32 length = 1;         // characters to underline
  std::string line_text;  // the line itself, without its newline
};

/// One failure, one Error. `what` is a noun phrase or lower-case clause without a full stop.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::failed;
  std::string what;
  std::optional<Location> where;
  std::vector<std::string> causes;    // outermost first, each adding a fact
  std::vector<std::string> at_notes;  // facts about the quoted line ("= note:")
  std::vector<std::string> notes;     // facts; the first states what is true now
  std::vector<std::string> hints;     // what to do, imperative, a command that can be pasted
  int sys_errno = 0;                  // of the system call that failed, 0 where none did

  Error() = default;
  Error(ErrorCode c, std::string w) : code(c), what(std::move(w)) {}

  /// Puts a new headline before this one, which becomes the first cause.
  Error&& context(std::string headline) && {
    causes.insert(causes.begin(), std::move(what));
    what = std::move(headline);
    return std::move(*this);
  }
  Error&& cause(std::string c) && { causes.push_back(std::move(c)); return std::move(*this); }
  Error&& note(std::string n) && { notes.push_back(std::move(n)); return std::move(*this); }
  Error&& hint(std::string h) && { hints.push_back(std::move(h)); return std::move(*this); }
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

/// For functions that give a Result<void>: `return ok();`
inline Result<void> ok() { return {}; }

}  // namespace envsync
