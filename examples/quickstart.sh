#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two minutes with envsync on one Debian 12 machine: builds it, makes a small real environment, and brings it to another place on
# this machine (no sshd is needed): first whole, then patched, then rolled back. All of it lies below one temporary folder.
set -euo pipefail
trap 'echo "quickstart: line $LINENO failed" >&2' ERR
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '$ envsync %s\n' "${*/#$work/…}"; "$envsync" "$@"; }

packages=(g++ cmake ninja-build libexpected-dev libfmt-dev libspdlog-dev libxxhash-dev libzstd-dev libminizip-dev librsync-dev libb2-dev libyaml-cpp-dev libprotobuf-dev
  protobuf-compiler libssh-dev libssl-dev libcli11-dev nlohmann-json3-dev doctest-dev python3 python3-venv ca-certificates)
missing=()
for name in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
done
if ((${#missing[@]})); then
  say "Installing ${missing[*]}"
  sudo=() && [[ $(id -u) == 0 ]] || sudo=(sudo)
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

say "Building envsync (release)"
cmake --preset release >/dev/null
cmake --build --preset release --target envsync envsync-agent -- --quiet
envsync=$PWD/build/release/engine/envsync

work=$(mktemp -d "${TMPDIR:-/tmp}/envsync-quickstart.XXXXXXXX")
trap 'rm -rf -- "$work"' EXIT
export XDG_STATE_HOME=$work/state XDG_CACHE_HOME=$work/cache
say "Making a small environment in $work/made (numpy and requests, from PyPI)"
python3 -m venv "$work/made/env"
"$work/made/env/bin/pip" install -q --disable-pip-version-check numpy requests
cat >"$work/envsync.yaml" <<YAML
version: 1
path: $work/served/env
source: $work/made/env
targets: [local]
invariants: {same_path: false}       # source and target are one machine here; elsewhere both have the same path
YAML
cat "$work/envsync.yaml"

say "What would happen"
show plan "$work/envsync.yaml"
say "The first apply: staged, verified, and swapped in with one rename"
show apply "$work/envsync.yaml"
"$work/served/env/bin/python" -B -c 'import numpy, requests; print("the new environment runs: numpy", numpy.__version__, "requests", requests.__version__)'
say "Nothing to do costs next to nothing"
show apply "$work/envsync.yaml"

say "One file is patched at the source"
module=$(find "$work/made/env/lib" -path '*site-packages/requests/__version__.py')
echo '__title__ = "requests, patched"' >>"$module"
show apply "$work/envsync.yaml"
title=$("$work/served/env/bin/python" -B -c 'import requests; print(requests.__title__)')
[[ $title == "requests, patched" ]]
echo "the environment now says: $title"

say "And back"
show rollback "$work/envsync.yaml" -y
title=$("$work/served/env/bin/python" -B -c 'import requests; print(requests.__title__)')
[[ $title == requests ]]
echo "the environment says again: $title"
show history "$work/envsync.yaml"

say "Everything worked; $work is removed."
