#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# envsync against rsync on one real environment, both over one private sshd, in one run: builds the release preset and measures.
#   tests/bench/run.sh [--env PATH] [--work DIR] [--cases a,b] [--json FILE]      see bench.py --help
#   tests/bench/run.sh --links [--env PATH] [--cases a,b] [--gb N]                over slow and far lines: see links.py --help
#   tests/bench/run.sh --overlays [--cache DIR] [--env PATH] [--cases a,b]        torch builds laid onto real environments: see overlays.py --help
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for program in rsync ssh ssh-keygen cmake ninja python3; do
  command -v "$program" >/dev/null || { echo "bench: '$program' is not installed; run tests/run.sh once, it installs what is missing" >&2; exit 2; }
done
if [[ -z ${ENVSYNC_BIN:-} ]]; then
  mkdir -p build
  cmake --preset release >build/bench.configure.log
  cmake --build --preset release --target envsync envsync-agent bench_link -- --quiet
  export ENVSYNC_BIN=$PWD/build/release/engine/envsync ENVSYNC_AGENT=$PWD/build/release/engine/envsync-agent
fi
export ENVSYNC_BENCH_LINK=${ENVSYNC_BENCH_LINK:-$PWD/build/release/tests/bench_link}
if [[ ${1:-} == --links ]]; then
  shift
  exec python3 -B tests/bench/links.py "$@"
fi
if [[ ${1:-} == --overlays ]]; then
  shift
  exec python3 -B tests/bench/overlays.py "$@"
fi
exec python3 -B tests/bench/bench.py "$@"
