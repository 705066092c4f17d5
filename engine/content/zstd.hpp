// SPDX-License-Identifier: MIT
// Private to content/: zstd on bulk, without a second copy.
#pragma once

#include "base/buffer.hpp"

namespace envsync::content {

/// `front` undefined bytes, then the frame.
Buffer compress_behind(std::size_t front, ByteView bytes, int level);
/// As decompress(); `limit` bounds what it may allocate.
Result<Buffer> unpack(ByteView bytes, std::size_t limit);

}  // namespace envsync::content
