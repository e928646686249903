#!/usr/bin/env bash
# Proves the README's two commands in a Debian 12 root where nothing is installed: debootstrap's minbase, the Swift
# toolchain mounted read-only, and the committed tree of HEAD. By hand, as root; not part of the test run.
#
#   Tests/Tools/bare_root.sh [run|test|all] [ARGUMENT...]   the arguments go to packaging/run or packaging/test
#   Tests/Tools/bare_root.sh deb                            packaging/deb there; then the root is booted with systemd, for
#                                                           `apt install`, a service that mirrors the example, and `man tarn`
#
#   SWIFT_ROOT     the toolchain's directory, the one with usr/bin/swift; else found through PATH
#   BASE_TARBALL   a cache: the root as debootstrap left it; made when missing
#   BARE_SCRATCH   where the root is unpacked; else below $TMPDIR
#   BARE_BINDS     more directories to mount read-only at the same place, parted by blanks (a mirror of packages)
#   GIT_CONFIG     a git configuration file to be the root's /etc/gitconfig (`insteadOf` of such a mirror)
#   APT_SOURCES, APT_CONFIG_DIR   a file and a directory to replace the root's apt sources and to add to apt.conf.d
#   KEEP=1         leave the root in place
#
# Every mount is made in a mount namespace of its own, so that none is left, however this ends.
set -euo pipefail

what=${1:-all}
[ $# -eq 0 ] || shift
case $what in
  run | test | all | deb) ;;
  *)
    sed -n '2,20s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 64
    ;;
esac
[ "$(id -u)" -eq 0 ] || { echo "bare_root.sh: mounting needs root" >&2; exit 77; }

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
swift_root=${SWIFT_ROOT:-$(dirname "$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")")}
[ -x "$swift_root/usr/bin/swift" ] || { echo "bare_root.sh: no usr/bin/swift in $swift_root" >&2; exit 66; }
scratch=$(mktemp -d "${BARE_SCRATCH:-${TMPDIR:-/tmp}}/tarn-bare.XXXXXX")
root=$scratch/root
# shellcheck disable=SC2317  # called by the trap
cleanup() {
  if [ "${KEEP:-0}" = 1 ]; then echo "bare_root.sh: kept $root" >&2; else rm -rf --one-file-system "$scratch"; fi
}
trap cleanup EXIT

mkdir "$root"
if [ -n "${BASE_TARBALL:-}" ] && [ -s "$BASE_TARBALL" ]; then
  tar -C "$root" --numeric-owner -xf "$BASE_TARBALL"
else
  debootstrap --variant=minbase bookworm "$root" >"$scratch/debootstrap.log" || { tail "$scratch/debootstrap.log" >&2; exit 1; }
  [ -z "${BASE_TARBALL:-}" ] || tar -C "$root" --numeric-owner -cf "$BASE_TARBALL" .
fi
cp /etc/resolv.conf /etc/hosts "$root/etc/"
if [ -n "${APT_SOURCES:-}" ]; then
  rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d"/*
  cp "$APT_SOURCES" "$root/etc/apt/sources.list.d/"
fi
[ -z "${APT_CONFIG_DIR:-}" ] || cp "$APT_CONFIG_DIR"/* "$root/etc/apt/apt.conf.d/"
[ -z "${GIT_CONFIG:-}" ] || cp "$GIT_CONFIG" "$root/etc/gitconfig"
mkdir -p "$root/src/tarn" "$root/opt/swift" "$root/proc" "$root/sys" "$root/dev"
git -C "$repository" archive HEAD | tar -C "$root/src/tarn" -xf -
echo "bare_root.sh: installed in the root: $(chroot "$root" dpkg-query -W | wc -l) packages of minbase" >&2

# shellcheck disable=SC2016  # expanded inside
inside='
  set -euo pipefail
  root=$1 swift_root=$2 binds=$3
  shift 3
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount --bind "$swift_root" "$root/opt/swift"
  mount -o remount,bind,ro "$root/opt/swift"
  for directory in $binds; do
    mkdir -p "$root$directory"
    mount --bind "$directory" "$root$directory"
    mount -o remount,bind,ro "$root$directory"
  done
  exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 ${CI:+CI=$CI} \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
'
enter() {
  unshare --mount --pid --fork --kill-child bash -c "$inside" bash "$root" "$swift_root" "${BARE_BINDS:-}" "$@"
}

# What somebody types into the machine, once it has booted.
# shellcheck disable=SC2016  # expanded inside
machine='
  set -eux
  cd /src
  apt-get -y -qq install ./tarn_*.deb
  timeout 60 bash -c "until (cd /srv/mirrors/example && sha256sum --check --quiet SHA256SUMS) 2>/dev/null; do sleep 0.1; done"
  systemctl is-active tarn
  systemctl is-enabled tarn
  tarn status
  man tarn | head -n 12
  echo "the machine came to the end"
'
# Boots the root; it has the network of this machine, for apt.
boot() {
  printf '%s\n' "$machine" >"$root/src/machine"
  cat >"$root/etc/systemd/system/typed.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
Environment=DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8
ExecStart=/bin/bash /src/machine
StandardOutput=append:/src/results
StandardError=append:/src/results
ExecStopPost=/usr/bin/systemctl --no-block poweroff
END
  mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
  ln -s ../typed.service "$root/etc/systemd/system/multi-user.target.wants/"
  timeout --kill-after=30 600 systemd-nspawn -q -D "$root" --boot --register=no --keep-unit --machine="tarn-bare-$$" \
    --link-journal=no --resolv-conf=off --timezone=off --console=pipe </dev/null >"$scratch/console" 2>&1 || true
  cat "$root/src/results"
  [ "$(tail -n 1 "$root/src/results")" = "the machine came to the end" ]
}

status=0
start=$SECONDS
if [ "$what" = deb ]; then
  enter bash -c 'cd /src && /src/tarn/packaging/deb' || exit
  echo "bare_root.sh: packaging/deb ended after $((SECONDS - start)) s" >&2
  # What a minbase lacks to be a machine at all.
  enter bash -c 'apt-get -y -qq install --no-install-recommends systemd-sysv dbus man-db' >"$scratch/machine.log" 2>&1
  boot || status=$?
  echo "bare_root.sh: the machine with the package ended with $status" >&2
  exit "$status"
fi
if [ "$what" != test ]; then
  enter bash /src/tarn/packaging/run "$@" || status=$?
  echo "bare_root.sh: packaging/run ended with $status after $((SECONDS - start)) s" >&2
fi
start=$SECONDS
if [ "$what" != run ] && [ "$status" -eq 0 ]; then
  enter bash /src/tarn/packaging/test "$@" || status=$?
  echo "bare_root.sh: packaging/test ended with $status after $((SECONDS - start)) s" >&2
fi
exit "$status"
