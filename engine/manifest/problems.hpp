// SPDX-License-Identifier: MIT
// Private to manifest/: errors with their place, collected, so that a person sees all of them at once.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <envsync/result.hpp>

namespace envsync::manifest {

/// A place in one of the texts that a manifest is made of: the file, and each --set. Lines and columns count from 1.
struct Mark {
  u32 text = 0;      // index of the text; 0 is the file
  u32 line = 1;
  u32 column = 1;    // in bytes
  u32 length = 1;    // in characters
};

class Problems {
 public:
  /// `name` is how messages call the text. Gives its index.
  u32 add_text(std::string name, std::string_view text);
  /// Adds an error; notes and hints may be put into what is returned. LIMIT: 100 errors, more are counted.
  Error& report(const Mark& mark, std::string what);
  /// An error of a line that cannot be shown, or of a text as a whole.
  Error& report_unquoted(u32 text, u32 line, std::string what);
  bool any() const { return !errors_.empty(); }
  Location location(const Mark& mark) const;
  /// By place: the file first, from top to bottom.
  std::vector<Error> take();

 private:
  struct Text { std::string name; std::vector<std::string> lines; };
  struct Reported { Mark mark; Error error; };
  std::vector<Text> texts_;
  std::deque<Reported> errors_;
  Error beyond_limit_;
  std::size_t not_shown_ = 0;
};

}  // namespace envsync::manifest
