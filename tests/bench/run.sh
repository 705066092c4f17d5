#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# envsync against rsync on one real environment, both over one private sshd, in one run: builds the release preset and measures.
#   tests/bench/run.sh [--env PATH] [--work DIR] [--cases a,b] [--json FILE]      see bench.py --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for program in rsync ssh ssh-keygen cmake ninja python3; do
  command -v "$program" >/dev/null || { echo "bench: '$program' is not installed; run tests/run.sh once, it installs what is missing" >&2; exit 2; }
done
if [[ -z ${ENVSYNC_BIN:-} ]]; then
  mkdir -p build
  cmake --preset release >build/bench.configure.log
  cmake --build --preset release --target envsync envsync-agent -- --quiet
  export ENVSYNC_BIN=$PWD/build/release/engine/envsync ENVSYNC_AGENT=$PWD/build/release/engine/envsync-agent
fi
exec python3 -B tests/bench/bench.py "$@"
