// SPDX-License-Identifier: MIT
// Private to format/: a protobuf message to bytes and back. The only place that serializes and parses.
#pragma once

#include "format/wire.hpp"

#include <fmt/format.h>

namespace envsync::format {

template <class Message>
Bytes to_bytes(const Message& message) {
  Bytes out(message.ByteSizeLong());
  ENVSYNC_CHECK(message.SerializeToArray(out.data(), narrow<int>(out.size())));
  return out;
}

template <class Message>
Result<Message> from_bytes(ByteView bytes, std::string_view what) {
  if (bytes.size() > kControlBytesMax) {
    return no_message(what, fmt::format("it has {} bytes, at most {} are allowed", bytes.size(), kControlBytesMax));
  }
  Message message;
  if (!message.ParseFromArray(bytes.data(), narrow<int>(bytes.size()))) return no_message(what, "its bytes are damaged");
  return message;
}

}  // namespace envsync::format
