#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds every preset and runs every test, on a Debian 12 machine that may have nothing yet.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: tests/run.sh [--quick] [--preset NAME] [--only REGEX] [--without NAME] [--fresh]

  --quick         the release preset's unit tests and lints, and one integration test: a few minutes
  --preset NAME   only release, asan or tsan [all three]
  --only REGEX    only tests whose name matches, in each preset that has them
  --without NAME  leave out integration test NAME where the machine cannot run it (crash_images: no loop devices); the end names it
  --fresh         in a new Debian 12 below a temporary folder (root; needs debootstrap), which is removed afterwards

release runs everything; asan every unit test and one integration test; tsan the unit tests that have threads and one integration
test. The last line is 'N passed, N failed', over all presets. Wheels come from PyPI and are kept in ~/.cache/envsync-tests.
TEXT
}

die() { echo "tests/run.sh: $*" >&2; exit 2; }
say() { echo "== $*"; }

packages=(
  g++ cmake ninja-build libexpected-dev libfmt-dev libspdlog-dev libxxhash-dev libzstd-dev libminizip-dev librsync-dev libb2-dev libyaml-cpp-dev libprotobuf-dev
  protobuf-compiler libssh-dev libssl-dev libcli11-dev nlohmann-json3-dev doctest-dev
  python3 python3-venv ca-certificates openssh-client openssh-server csh rsync git e2fsprogs xfsprogs btrfs-progs mount util-linux
)
presets=(release asan tsan)
asan_tests='^(unit\.|integration\.local$)'
tsan_tests='^(unit\.(channel|protocol|apply)|integration\.local)$'
quick_tests='^(unit\.|lint\.|integration\.local$)'

only='' without='' quick='' fresh=''
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
arguments=("$@")
while (($#)); do
  case $1 in
    --quick) quick=yes presets=(release) ;;
    --preset) [[ ${2:-} =~ ^(release|asan|tsan)$ ]] || die "--preset takes release, asan or tsan"; presets=("$2"); shift ;;
    --only) [[ -n ${2:-} ]] || die "--only takes a regular expression"; only=$2; shift ;;
    --without) [[ -f $here/integration/${2:-}.py ]] || die "--without takes a name of tests/integration, without its .py"; without=$2; shift ;;
    --fresh) fresh=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; die "'$1' is no option" ;;
  esac
  shift
done

root=$(dirname "$here")
cd "$root"

# --- packages

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "'$*' needs root: run this as root, or install sudo"
  fi
}

missing_packages() {
  local name
  for name in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || echo "$name"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || die "this is no Debian: install by hand: ${packages[*]}"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}"
}

# --- a new Debian around all of this

run_fresh() {
  [[ $(id -u) == 0 ]] || die "--fresh needs root"
  install_packages debootstrap util-linux mount
  fresh_root=$(mktemp -d /var/tmp/envsync-fresh.XXXXXXXX)
  chmod 0755 "$fresh_root"
  # Everything is mounted in a mount namespace of its own, so nothing is mounted here that a deletion could reach.
  trap 'rm -rf --one-file-system -- "$fresh_root"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  local rest=() argument
  for argument in "${arguments[@]}"; do [[ $argument == --fresh ]] || rest+=("$argument"); done
  make_debian "$fresh_root"
  say "running in $fresh_root"
  local status=0
  unshare --mount --pid --fork --kill-child --propagation private \
    bash -euo pipefail -c "$(declare -f enter_debian); enter_debian \"\$@\"" enter "$fresh_root" "${rest[@]}" || status=$?
  say "removing $fresh_root"
  exit "$status"
}

make_debian() {
  local target=$1 mirror proxy=''
  mirror=$(sed -nE 's/^(URIs:|deb( \[[^]]*\])?) +(https?:[^ ]+).*/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
    grep -E '/debian/?$' | head -n 1 || true)
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  say "debootstrap of bookworm from ${mirror:=http://deb.debian.org/debian}"
  env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase bookworm "$target" "$mirror" >"$target.log" 2>&1 ||
    { tail -n 20 "$target.log" >&2; rm -f "$target.log"; die "debootstrap failed"; }
  rm -f "$target.log"
  # What this machine needs to reach its mirrors and PyPI, a fresh one needs as well.
  local path
  rm -rf "$target/etc/apt/sources.list"
  for path in /etc/apt/apt.conf /etc/apt/apt.conf.d /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/apt/sources.list /etc/apt/sources.list.d \
    /etc/apt/trusted.gpg.d /etc/apt/keyrings /etc/apt/preferences.d /usr/share/keyrings /etc/pip.conf /etc/resolv.conf /etc/hosts \
    /etc/ssl/certs /usr/share/ca-certificates /usr/local/share/ca-certificates; do
    [[ -e $path ]] || continue
    mkdir -p "$target$(dirname "$path")"
    cp -aL --remove-destination "$path" "$target$(dirname "$path")/" 2>/dev/null || cp -a --remove-destination "$path" "$target$(dirname "$path")/"
  done
  if [[ -d ${XDG_CONFIG_HOME:-$HOME/.config}/pip ]]; then
    mkdir -p "$target/root/.config" && cp -a "${XDG_CONFIG_HOME:-$HOME/.config}/pip" "$target/root/.config/"
  fi
  # Installing ca-certificates there writes its bundle anew: this machine's own is kept under another name.
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then cp -L /etc/ssl/certs/ca-certificates.crt "$target/etc/host-certificates.crt"; fi
  mkdir -p "$target/srv/envsync"
  tar -C "$root" --exclude='./build*' --exclude=./.git --exclude=__pycache__ --exclude=./shared -cf - . | tar -C "$target/srv/envsync" -xf -
}

# In a mount and process namespace of its own.
enter_debian() {
  local target=$1 name keep=()
  shift
  mount --bind "$target" "$target"  # a mount point for a root, as a machine has
  cd "$target"
  mount -t proc proc "$target/proc"
  mount --rbind /sys "$target/sys"
  mount --rbind /dev "$target/dev"
  while IFS= read -r name; do keep+=("$name=${!name}"); done < <(compgen -e | grep -iE '^(PIP_.*|[a-z]+_proxy|CI)$' || true)
  if [[ -e $target/etc/host-certificates.crt ]]; then
    keep+=(PIP_CERT=/etc/host-certificates.crt SSL_CERT_FILE=/etc/host-certificates.crt)
  fi
  exec chroot "$target" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${keep[@]}" /srv/envsync/tests/run.sh "$@"
}

# --- build and test

passed=0 failed=0
jobs=$(nproc)

build_preset() {
  local preset=$1 launcher=() targets=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  cmake --preset "$preset" "${launcher[@]}" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log" >&2; return 1; }
  # tsan runs few tests: what they do not need is not built.
  if [[ $preset == tsan && -z $only ]]; then targets=(--target test_channel test_protocol test_apply envsync envsync-agent); fi
  cmake --build --preset "$preset" "${targets[@]}" -- -j "$jobs" | tail -n 40
}

# ThreadSanitizer of GCC 12 cannot start under a kernel that spreads addresses widely; where personality() is refused, it is tried as it is.
tests_of() {
  local preset=$1
  shift
  if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then setarch -R ctest "$@"; else ctest "$@"; fi
}

run_preset() {
  local preset=$1 select=() log=build/$1.test.log line
  case $preset in
    asan) select=(-R "$asan_tests") ;;
    tsan) select=(-R "$tsan_tests") ;;
    release) [[ -z $quick ]] || select=(-R "$quick_tests") ;;
  esac
  if [[ -n $only ]]; then select=(-R "$only"); fi
  if [[ -n $without ]]; then select+=(-E "^integration\.$without\$"); fi
  say "$preset: building"
  if ! build_preset "$preset"; then
    echo "$preset: the build failed"
    failed=$((failed + 1))
    return
  fi
  say "$preset: testing"
  tests_of "$preset" --preset "$preset" --timeout 900 -j "$jobs" "${select[@]}" </dev/null 2>&1 | tee "$log" || true
  line=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" || true)
  if [[ $line =~ ,\ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
  elif [[ -z $only ]]; then  # a preset may lack what --only names; nothing else may run no test
    echo "$preset: ctest ran no test"
    failed=$((failed + 1))
  fi
}

main() {
  say "$(. /etc/os-release && echo "$PRETTY_NAME"), $(nproc) cores, $(id -un)"
  install_packages "${packages[@]}"
  mkdir -p build
  local preset
  for preset in "${presets[@]}"; do run_preset "$preset"; done
  if ((passed + failed == 0)); then
    echo "no test matches '$only'"
    failed=1
  fi
  if [[ -n $without ]]; then say "left out by --without: integration.$without"; fi
  say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
  echo "$passed passed, $failed failed"
  ((failed == 0))
}

if [[ -n $fresh ]]; then run_fresh; else main; fi
