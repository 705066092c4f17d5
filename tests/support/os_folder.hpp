// SPDX-License-Identifier: MIT
// A folder of a test's own below $TMPDIR, deleted at its end, and short ways to look into it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "os/files.hpp"

namespace envsync::testing {

class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base ? base : "/tmp") + "/envsync-test-XXXXXX";
    if (!::mkdtemp(path_.data())) std::abort();
    fd_ = os::open_dir_absolute(path_).value();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    // A test may have closed folders to their owner.
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  std::string path(const std::string& rel) const { return path_ + "/" + rel; }
  /// Makes the parents too.
  void write(const std::string& rel, std::string_view text, ::mode_t mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(path(rel)).parent_path());
    std::ofstream(path(rel), std::ios::binary) << text;
    ::chmod(path(rel).c_str(), mode);
  }
  std::string read(const std::string& rel) const {
    std::ifstream in(path(rel), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool has(const std::string& rel) const {
    struct stat found {};
    return ::lstat(path(rel).c_str(), &found) == 0;
  }
  void mkdir(const std::string& rel) const { std::filesystem::create_directories(path(rel)); }
  void symlink(const std::string& target, const std::string& rel) const { std::filesystem::create_symlink(target, path(rel)); }

 private:
  std::string path_;
  os::Fd fd_;
};

}  // namespace envsync::testing
