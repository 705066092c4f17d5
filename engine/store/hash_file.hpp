// SPDX-License-Identifier: MIT
// Reading files whole: to know their digest, or to copy them while it is taken. Private to store.
#pragma once

#include <string>

#include "content/digest.hpp"
#include "os/files.hpp"

namespace envsync::store {

Result<content::ContentId> hash_fd(int fd, std::string_view name_for_errors);
Result<content::ContentId> hash_file(int at, std::string_view rel);

struct Copied {
  content::ContentId content;  // of what the copy holds
  bool is_reflink = false;     // no bytes were written
};
/// Copies all of `from` into the empty file `to`, by reflink where that works; either way what `to` holds is hashed.
Result<Copied> copy_file(os::Files& files, int from, int to, std::string_view name_for_errors);

}  // namespace envsync::store
