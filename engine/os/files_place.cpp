// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.hpp"
#include "os/process.hpp"

namespace envsync::os {

std::string handle_of(int at, const std::string& name) {
  alignas(file_handle) char buffer[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
  // SAFETY: the buffer is aligned and large enough for the header and the largest handle.
  auto* handle = reinterpret_cast<file_handle*>(buffer);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount_id = 0;
  if (::name_to_handle_at(at, name.c_str(), handle, &mount_id, name.empty() ? AT_EMPTY_PATH : 0) != 0) return {};
  Bytes type;
  put_le(type, static_cast<u32>(handle->handle_type));
  std::string text(as_text(type));
  text.append(buffer + sizeof(file_handle), handle->handle_bytes);
  return text;
}

void set_usual_umask() { ::umask(022); }

u32 project_of(int dir) {
  struct fsxattr found {};
  return ::ioctl(dir, FS_IOC_FSGETXATTR, &found) == 0 ? found.fsx_projid : 0;
}

bool may_change(int dir) { return ::faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) == 0; }

}  // namespace envsync::os
