// SPDX-License-Identifier: MIT
#include "base/try.hpp"

#include <cstdio>
#include <cstdlib>

namespace envsync {

void check_failed(std::string_view expression, std::string_view file, int line) {
  std::fprintf(stderr, "internal error: %.*s (%.*s:%d)\n  This is a bug in envsync. No environment is left half made: what a run has not swapped in is only staging.\n",
               static_cast<int>(expression.size()), expression.data(), static_cast<int>(file.size()), file.data(), line);
  std::abort();
}

}  // namespace envsync
