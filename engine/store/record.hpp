// SPDX-License-Identifier: MIT
// A generation's file: records/<n>. Private to store.
//
//   file    := format::seal_file("EVRC", 1, payload)
//   payload := head_size:u32le head[head_size] ground? tree        -- tree: tree::encode_tree
//   ground  := size:u64le delta[size]                              -- tree::encode_delta of tree to ground; where the head names one
//   head    := root[16] full[16] policy:u8 bytecode:u8 flags:u8 restores:u32le committed_at:u64le files:u64le bytes:u64le
//              run plan_digest operator manifest name source undoes (strings)  exclude_count:varint exclude:string *  ground_full[16]?
//   flags   := 1 adopted, 2 restores is set, 4 a ground follows
//   string  := length:varint bytes
//
// The number is the file's name.
#pragma once

#include "store/state.hpp"

namespace envsync::store {

inline constexpr std::size_t kRecordBytesMax = 512u << 20;  // LIMIT: 4,000,000 entries take less

/// head.ground names `ground`, or is zero and it is null.
Bytes encode_record_file(const RecordHead& head, const tree::Tree& tree, const tree::Tree* ground = nullptr);
Result<RecordHead> decode_record_head(u32 number, ByteView file);
Result<Record> decode_record_file(u32 number, ByteView file);

/// Writes and syncs a new file `rel`; the caller syncs its folder.
Result<void> write_record(os::Files& files, int at, const std::string& rel, const RecordHead& head, const tree::Tree& tree, const tree::Tree* ground = nullptr);
Result<Record> read_record(int at, const std::string& rel, u32 number);
/// Numbers of the record files in `state`, ascending. Names that are no numbers are left out, and left alone.
Result<std::vector<u32>> record_numbers(int state);

}  // namespace envsync::store
