// SPDX-License-Identifier: MIT
// Small files by rolling checksums (librsync): 512-byte blocks, 6 bytes of strong sum each. The basis is summed up where it lies, the
// difference made where the new content lies, and both are bounded by what was announced.
#pragma once

#include <envsync/result.hpp>

#include "base/bytes.hpp"

namespace envsync::delta {

inline constexpr std::size_t kRsyncFileMax = 256u << 10;  // LIMIT: larger files go by chunks

Bytes signature_of(ByteView basis);
/// From a signature, which may be anything, to the content.
Result<Bytes> difference(ByteView signature, ByteView content);
/// The content again: exactly `size` bytes, or an error; never more than `size` are written.
Result<Bytes> patched(ByteView basis, ByteView difference, std::size_t size);

}  // namespace envsync::delta
