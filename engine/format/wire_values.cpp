// SPDX-License-Identifier: MIT
// Values that more than one message holds.
#include "format/wire.hpp"

#include "messages.pb.h"

namespace envsync::format {

void put_record(wire::RecordInfo& out, const RecordInfo& record) {
  out.set_number(record.number);
  out.set_root(bytes_of(record.root));
  out.set_full(bytes_of(record.full));
  out.set_run(record.run);
  out.set_plan_digest(record.plan_digest);
  out.set_operator_name(record.operator_name);
  out.set_manifest(record.manifest);
  out.set_name(record.name);
  out.set_source(record.source);
  out.set_undoes(record.undoes);
  out.set_committed_at(record.committed_at);
  if (record.restores) out.set_restores(*record.restores);
  out.set_adopted(record.adopted);
  out.set_files(record.files);
  out.set_bytes(record.bytes);
  out.set_exclusive_bytes(record.exclusive_bytes);
  out.set_damaged(record.damaged);
  out.set_policy(record.policy.bits());
  out.set_missing(record.missing);
  out.set_ground(bytes_of(record.ground));
}

RecordInfo take_record(Door& door, const wire::RecordInfo& in) {
  RecordInfo out;
  out.number = in.number();
  out.root = door.digest(in.root(), "root");
  out.full = door.digest(in.full(), "full");
  out.run = door.text(in.run(), "run");
  out.plan_digest = door.text(in.plan_digest(), "plan_digest");
  out.operator_name = door.text(in.operator_name(), "operator_name");
  out.manifest = door.text(in.manifest(), "manifest");
  out.name = door.text(in.name(), "name");
  out.source = door.text(in.source(), "source");
  out.undoes = door.text(in.undoes(), "undoes");
  out.committed_at = in.committed_at();
  if (in.has_restores()) out.restores = in.restores();
  out.adopted = in.adopted();
  out.files = in.files();
  out.bytes = in.bytes();
  out.exclusive_bytes = in.exclusive_bytes();
  out.damaged = in.damaged();
  out.policy = door.policy(in.policy());
  out.missing = in.missing();
  out.ground = door.digest(in.ground(), "ground");
  return out;
}

}  // namespace envsync::format
