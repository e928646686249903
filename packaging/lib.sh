# shellcheck shell=bash
# What packaging/run and packaging/test share: the system packages, the Swift toolchain, the build.
# shellcheck disable=SC2034  # the lists are for those who source this
# Sourced, never run; the caller has set `set -euo pipefail`. A command that fails ends a function in $(...) as well.
shopt -s inherit_errexit

# The repository, whatever the caller's directory.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What a build needs beside the toolchain on a Debian 12 that has nothing else.
BUILD_PACKAGES=(
  ca-certificates git binutils pkg-config libc6-dev libstdc++-12-dev libncurses6
  libcurl4-openssl-dev libxml2-dev libsqlite3-dev libssl-dev zlib1g-dev libtomlplusplus-dev libinotifytools0-dev
)
# What packaging/deb needs beyond that.
DEB_PACKAGES=(debhelper dpkg-dev)
# What the example needs: a real server to mirror from.
DEMO_PACKAGES=(nginx-light)
# What the tests use beyond that. gdb's and lldb's needs are not among them.
TEST_PACKAGES=(
  nginx-light apache2-bin caddy curl python3-minimal python3 strace openssl procps systemd e2fsprogs xfsprogs btrfs-progs
  mmdebstrap systemd-container groff-base man-db python3-yaml python3-jsonschema lintian mandoc prometheus python3-prometheus-client zsh fish
)

say() { printf '%s\n' "==> $*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# True when dpkg knows the package as installed.
is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Installs those of the named packages that are missing; asks apt nothing when none is.
install_packages() {
  local missing=() package unit fresh=()
  command -v dpkg-query >/dev/null || die "this script knows Debian 12 (dpkg, apt-get); install by hand: $*"
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  # The servers that are new here, as package:unit.
  for unit in nginx-common:nginx.service caddy:caddy.service prometheus:prometheus.service; do
    is_installed "${unit%%:*}" || fresh+=("$unit")
  done

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null \
      || die "these packages are missing, and neither root nor sudo is at hand: ${missing[*]}
  as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing: ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -qq update
  # Installing a server must not start one: the example and the tests run their own, on a port of their own.
  local policy=/usr/sbin/policy-rc.d placed=no
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    placed=yes
  fi
  local status=0
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
    apt-get -qq -y -o Dpkg::Use-Pty=0 install --no-install-recommends "${missing[@]}" >/dev/null || status=$?
  [ "$placed" = no ] || "${as_root[@]}" rm -f "$policy"
  [ "$status" -eq 0 ] || die "apt-get install ended with $status"
  [ -d /run/systemd/system ] || return 0
  for unit in "${fresh[@]}"; do
    is_installed "${unit%%:*}" || continue
    "${as_root[@]}" systemctl --quiet disable "${unit#*:}" || true
  done
}

# Puts the toolchain's directory into PATH: $SWIFT (the swift binary, or a directory), PATH, the usual places.
find_swift() {
  local candidate
  for candidate in "${SWIFT:-}" "${SWIFT:+$SWIFT/swift}" "${SWIFT:+$SWIFT/usr/bin/swift}" \
    "$(command -v swift || true)" /opt/swift/usr/bin/swift "${HOME:-/root}/.local/share/swiftly/bin/swift" \
    /usr/local/bin/swift; do
    if [ -n "$candidate" ] && [ -f "$candidate" ] && [ -x "$candidate" ]; then
      PATH=$(dirname "$candidate"):$PATH
      export PATH
      return 0
    fi
  done
  die "no Swift toolchain found: put Swift 6.3 in PATH, or set SWIFT to where it is (https://www.swift.org/install/linux/debian/12/)"
}

# Where the release build goes.
RELEASE_SCRATCH=${TARN_RELEASE_SCRATCH:-$ROOT/.build}

# Sets release_flags: how the package manager builds in release mode.
set_release_flags() {
  release_flags=(-c release --package-path "$ROOT" --scratch-path "$RELEASE_SCRATCH")
  # Nothing is looked for beside the binary, and what the loader filled in nobody changes afterwards.
  release_flags+=(--disable-local-rpath -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now -Xlinker --build-id=sha1)
  # The sources are where a distribution's debuggers look for them, and not where this checkout happens to be.
  path_maps=("$RELEASE_SCRATCH=/usr/src/tarn/.build" "$ROOT=/usr/src/tarn")
  local map
  for map in "${path_maps[@]}"; do
    # Not -file-prefix-map: the package manager finds no tests in an index of other paths.
    release_flags+=(-Xswiftc -debug-prefix-map -Xswiftc "$map" -Xcc "-ffile-prefix-map=$map")
  done
  # The debug information does not name the compiled C modules: their digests differ from one build to the next.
  release_flags+=(-Xswiftc -Xfrontend -Xswiftc -no-clang-module-breadcrumbs)
}

# Builds `tarn` in release mode with the Swift runtime linked in, so that the binary runs where no Swift is, and beside it
# `tarn-watch`, by which it watches folders; prints the path of `tarn`.
build_release() {
  local release_flags path_maps
  set_release_flags
  # Nothing is loaded into tarn that would ask for its 21,000 names.
  release_flags+=(--static-swift-stdlib -Xlinker --no-export-dynamic)
  say "building tarn and tarn-watch, release mode"
  swift build "${release_flags[@]}" --product tarn >&2
  build_watch_and_tell
}

# Builds the tests and what they try, all in release mode and in one build; prints the path of `tarn`, which is linked as in
# build_release. Its code differs in what the tests may see of it.
build_release_and_tests() {
  local release_flags path_maps
  set_release_flags
  release_flags+=(-Xswiftc -enable-testing)
  say "building the tests, tarn and tarn-watch, release mode"
  swift build "${release_flags[@]}" --product tarnPackageTests >&2
  swift build "${release_flags[@]}" --product Fetcher >&2
  # The tests need Swift's libraries beside them: so this is one more call, which compiles nothing again.
  TARN_STATIC_RUNTIME=1 swift build "${release_flags[@]}" --product tarn >&2
  build_watch_and_tell
}

# The watcher, by the compiler alone: the package manager would link Swift's runtime into it, whose licence does not go with its own.
build_watch_and_tell() {
  local place compiler
  place=$(swift build "${release_flags[@]}" --show-bin-path)
  rm -f "$place/tarn-watch"
  compiler=$(dirname "$(readlink -f "$(command -v swift)")")/clang
  [ -x "$compiler" ] || compiler=$(command -v clang || command -v cc) || die "no C compiler found: apt install clang"
  "$compiler" -std=gnu17 -g -O2 -Wall -Wextra -fPIE -pie -fstack-protector-strong -D_FORTIFY_SOURCE=2 \
    "${path_maps[@]/#/-ffile-prefix-map=}" -Wl,-z,relro -Wl,-z,now -Wl,--build-id=sha1 \
    -o "$place/tarn-watch" "$ROOT"/Sources/tarn-watch/*.c -linotifytools >&2
  printf '%s/tarn\n' "$place"
}

# True when something listens on this port of 127.0.0.1.
is_listening() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Starts nginx in the foreground as a child, on a free port, serving the directory $1 with its files in the
# directory $2. Sets SERVER_PID and SERVER_PORT.
start_server() {
  local root=$1 prefix=$2 deadline
  PATH=$PATH:/usr/sbin
  for _ in 1 2 3 4 5 6 7 8; do
    SERVER_PORT=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    is_listening "$SERVER_PORT" && continue
    sed -e "s|@PORT@|$SERVER_PORT|g" -e "s|@ROOT@|$root|g" -e "s|@PREFIX@|$prefix|g" \
      "$ROOT/config/nginx.conf.in" >"$prefix/nginx.conf"
    nginx -p "$prefix" -c "$prefix/nginx.conf" -e "$prefix/error.log" &
    SERVER_PID=$!
    deadline=$((SECONDS + 120))
    while kill -0 "$SERVER_PID" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do
      # The port may be someone else's by now; then this nginx has ended, or ends.
      if is_listening "$SERVER_PORT" && [ -s "$prefix/nginx.pid" ]; then return 0; fi
      sleep 0.05
    done
    stop_server
  done
  cat "$prefix/error.log" >&2 || true
  die "nginx did not start"
}

stop_server() {
  [ -n "${SERVER_PID:-}" ] || return 0
  kill "$SERVER_PID" 2>/dev/null || true
  wait "$SERVER_PID" 2>/dev/null || true
  SERVER_PID=
}
