// SPDX-License-Identifier: MIT
// What a staged tree takes of a filesystem, for the plan that foretells it and the store that asks for it.
#pragma once

#include <envsync/types.hpp>

namespace envsync::tree {

struct StagedSpace {
  static constexpr u64 kSpareBytes = 16u << 20;  // records, journal, folders that grow
  static constexpr u64 kSpareInodes = 64;
  u64 bytes = kSpareBytes, inodes = kSpareInodes;
  void add_file(u64 size) {
    bytes += (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    ++inodes;
  }
  void add_folder() { add_file(kBlockBytes); }

 private:
  static constexpr u64 kBlockBytes = 4096;
};

}  // namespace envsync::tree
