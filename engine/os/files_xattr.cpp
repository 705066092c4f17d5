// SPDX-License-Identifier: MIT
// Extended attributes of any entry, links included: read by path through /proc/self/fd, so that nothing is opened.
#include "os/files.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/xattr.h>

#include "os/resolve.hpp"

namespace envsync::os {
namespace {

constexpr std::size_t kXattrBytesMax = 1u << 20;  // LIMIT: the kernel's own are 64 KiB

bool is_unsupported(int error) { return error == EOPNOTSUPP || error == ENOSYS; }

/// Calls `get(buffer, size)` with a buffer that grows until the answer fits. `out` on success, else errno.
template <class Get>
int grow(std::string& out, Get get) {
  out.resize(1024);
  for (;;) {
    const ssize_t got = get(out.data(), out.size());
    if (got >= 0) {
      out.resize(static_cast<std::size_t>(got));
      return 0;
    }
    if (errno != ERANGE || out.size() >= kXattrBytesMax) return errno;
    out.resize(out.size() * 8);
  }
}

}  // namespace

Result<XattrList> xattrs(int at, std::string_view rel) {
  TRY(const Name name, locate(at, rel, "read the attributes of"));
  // The folder's magic link may be followed, the entry itself must not be.
  std::string path = proc_path(name.dir);
  const bool is_dir_itself = name.last.empty();
  if (!is_dir_itself) path += "/" + name.last;
  std::string names;
  int saved = grow(names, [&](char* buffer, std::size_t size) {
    return is_dir_itself ? ::listxattr(path.c_str(), buffer, size) : ::llistxattr(path.c_str(), buffer, size);
  });
  if (is_unsupported(saved)) return XattrList();
  if (saved) return os_error(saved, "read the attributes of", rel);
  XattrList list;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::string key(names.c_str() + begin);
    begin += key.size() + 1;
    std::string value;
    saved = grow(value, [&](char* buffer, std::size_t size) {
      return is_dir_itself ? ::getxattr(path.c_str(), key.c_str(), buffer, size)
                           : ::lgetxattr(path.c_str(), key.c_str(), buffer, size);
    });
    if (saved == ENODATA || is_unsupported(saved)) continue;  // went away since it was listed
    if (saved) return os_error(saved, "read the attributes of", rel);
    list.emplace_back(key, std::move(value));
  }
  std::ranges::sort(list);
  return list;
}

}  // namespace envsync::os
