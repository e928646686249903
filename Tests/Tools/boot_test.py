#!/usr/bin/env python3
"""Boots a Debian 12 root with systemd as PID 1 and runs boot_checks.py in it: the agent as a service, by packaging/INSTALL.md.

1. A root of its own: mmdebstrap's minbase with systemd, dbus, sudo, Python and the libraries that tarn needs; unpacked from
   $TARN_BOOT_TARBALL when that is there and has them all, else made, and left at that place for the next time. $APT_SOURCES
   is a file of apt's to take the packages from, if not from Debian's own servers.
2. The binary and the `tarn-watch` beside it, the units, and the settings go into /src/tarn of it, as a
   checkout with a build has them.
3. `systemd-nspawn --boot`, with a network of its own that is loopback alone; the checks are a unit that turns the machine
   off in the end. A second boot looks whether the service comes up by itself.
4. A line for each check, and `boot test: checks N, failed M`; ends with 1 when one failed or not all were run.

--package DEB boots another one in place of these: without any of the service's files, and with the package's life as checks, from its
installation over an upgrade in mid-transfer to its purge. The version before is the same package under a lower number.

--can-run says why not, and ends with 3. --self-test boots with a service that cannot start, and wants that to be seen.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOOLS = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(TOOLS))
PACKAGES = (
    "systemd,systemd-sysv,dbus,libpam-systemd,sudo,python3,libcurl4,libxml2,libsqlite3-0,libssl3,zlib1g,libstdc++6,"
    "libinotifytools0"
)
# What the root is for takes none of it, and unpacking is most of the time.
WITHOUT = ("doc", "man", "locale", "info", "lintian", "bash-completion")
# Units of Debian's own that would run beside the checks.
MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
    "systemd-networkd.service", "systemd-timesyncd.service", "systemd-resolved.service", "getty.target",
    "console-getty.service",
)
CHECKS_UNIT = """[Unit]
Description=Checks of the boot test
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /src/boot_checks.py {phase}
StandardOutput=append:/src/results
StandardError=append:/src/results
ExecStopPost=/usr/bin/systemctl --no-block poweroff
"""
BROKEN = "[Service]\nExecStart=\nExecStart=/usr/bin/tarn nonsense\n"


def obstacle():
    """Why no root can be booted here; None when one can, as far as can be told before trying."""
    if os.geteuid() != 0:
        return "booting a root needs root"
    if not shutil.which("systemd-nspawn"):
        return "systemd-nspawn is not installed"
    if not shutil.which("mmdebstrap") and not os.path.exists(os.environ.get("TARN_BOOT_TARBALL") or "/nowhere"):
        return "mmdebstrap is not installed, and TARN_BOOT_TARBALL names no root"
    if os.stat("/").st_dev == os.stat("/proc").st_dev or not os.path.ismount("/proc"):
        return "/proc is not mounted"
    if not os.path.isdir("/sys/fs/cgroup") or not os.path.ismount("/sys/fs/cgroup"):
        return "no control groups are mounted at /sys/fs/cgroup"
    probe = subprocess.run(
        ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        return "no namespaces: " + probe.stderr.strip()
    return None


class NoRoot(Exception):
    """The root could not be made, or not be booted."""


def make_root(root, log):
    tarball = os.environ.get("TARN_BOOT_TARBALL")
    if tarball and os.path.exists(tarball):
        os.mkdir(root)
        subprocess.run(["tar", "-C", root, "--numeric-owner", "-xf", tarball], check=True)
        if has_packages(root):
            return
        shutil.rmtree(root)
    os.mkdir(root)
    command = ["mmdebstrap", "--variant=minbase", "--include=" + PACKAGES]
    command += ["--aptopt=Acquire::Languages none", "--aptopt=Acquire::Retries 2"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in WITHOUT]
    with open(log, "w") as stream:
        sources = [os.environ["APT_SOURCES"]] if os.environ.get("APT_SOURCES") else []
        made = subprocess.run(command + ["bookworm", root, *sources], stdout=stream, stderr=stream, timeout=600)
    if made.returncode != 0:
        with open(log, errors="replace") as stream:
            lines = stream.read().strip().splitlines() or ["no word"]
        # Its last line says only that it failed.
        told = [line for line in lines if line.startswith("E: ")] or lines
        raise NoRoot("mmdebstrap: " + told[0])
    if tarball:
        subprocess.run(["tar", "-C", root, "--numeric-owner", "-cf", tarball + ".new", "."], check=True)
        os.rename(tarball + ".new", tarball)


def has_packages(root):
    """Whether a root that was kept has what is wanted by now."""
    with open(root + "/var/lib/dpkg/status", errors="replace") as file:
        installed = {line.split()[1] for line in file if line.startswith("Package: ")}
    return installed.issuperset(PACKAGES.split(","))


def libraries(tarn):
    """Of the shared libraries of a binary those that no package of Debian's brings (a Swift runtime that is not linked in)."""
    found = subprocess.run(["ldd", tarn], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"=> (/\S+)", found)
    return [path for path in paths if not path.startswith(("/lib/", "/lib64/", "/usr/lib/x86_64", "/usr/lib/aarch64"))]


def fill(root, tarn):
    source = root + "/src/tarn"
    os.makedirs(source + "/.build/release")
    programs = [tarn, os.path.dirname(os.path.realpath(tarn)) + "/tarn-watch"]
    for program, name in zip(programs, ("tarn", "tarn-watch")):
        shutil.copy2(program, f"{source}/.build/release/{name}")
    for library in {library for program in programs for library in libraries(program)}:
        os.makedirs(root + os.path.dirname(library), exist_ok=True)
        shutil.copy2(library, root + library)
    for name in ("packaging", "config"):
        copy = shutil.copytree if os.path.isdir(f"{REPOSITORY}/{name}") else shutil.copy2
        copy(f"{REPOSITORY}/{name}", f"{source}/{name}")
    for name in ("boot_checks.py", "boot_package.py", "boot_users.py", "boot_watch.py", "boot_bench.py", "boot_server.py"):
        shutil.copy2(f"{TOOLS}/{name}", f"{root}/src/{name}")
    for unit in MASKED:
        path = f"{root}/etc/systemd/system/{unit}"
        if not os.path.lexists(path):
            os.symlink("/dev/null", path)
    wants = root + "/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wants, exist_ok=True)
    os.symlink("/etc/systemd/system/boot-checks.service", wants + "/boot-checks.service")
    for name in ("machine-id", "hostname"):
        if os.path.lexists(f"{root}/etc/{name}"):
            os.unlink(f"{root}/etc/{name}")
    for name, text in (("machine-id", "5ad0c6a1f8a94ff2b5a7a1c30b4c7d11"), ("hosts", "127.0.0.1 localhost tarn-boot")):
        with open(f"{root}/etc/{name}", "w") as file:
            file.write(text + "\n")


def boot(root, phase, console, limit):
    """Runs the checks of a phase, and waits for the machine to be off; False when it never was."""
    with open(root + "/etc/systemd/system/boot-checks.service", "w") as file:
        file.write(CHECKS_UNIT.format(phase=phase))
    command = [
        "systemd-nspawn", "-q", "-D", root, "--boot", "--register=no", "--keep-unit", "--private-network",
        f"--machine=tarn-boot-{os.getpid()}", "--hostname=tarn-boot", "--link-journal=no", "--resolv-conf=off",
        "--timezone=off", "--console=pipe",
    ]
    with open(console, "ab") as stream:
        machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        try:
            machine.wait(limit)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            end(machine)


def end(machine):
    """Turns a machine off that is still on: in order (the first SIGTERM), then at once."""
    for signal_, patience in ((signal.SIGTERM, 20), (signal.SIGTERM, 5), (signal.SIGKILL, None)):
        if machine.poll() is not None:
            return
        machine.send_signal(signal_)
        try:
            machine.wait(patience)
        except subprocess.TimeoutExpired:
            pass


def results(root):
    try:
        with open(root + "/src/results", errors="replace") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def run(tarn, phases, limit, prepare=lambda root: None, keep=False):
    """The lines of the checks of all phases; raises NoRoot when nothing could be booted."""
    scratch = tempfile.mkdtemp(prefix="tarn-boot.")
    root, console = scratch + "/root", scratch + "/console"
    try:
        make_root(root, scratch + "/mmdebstrap.log")
        fill(root, tarn)
        prepare(root)
        lines = []
        for phase in phases:
            started = time.monotonic()
            was_off = boot(root, phase, console, limit)
            lines = results(root)
            if was_off and f"end of {phase}" in lines:
                lines.append(f"{phase}: {time.monotonic() - started:.0f} s from boot to off")
                continue
            with open(console, errors="replace") as stream:
                tail = stream.read().strip().splitlines()[-15:]
            if not lines:
                raise NoRoot("the root did not boot: " + " | ".join(tail[-3:] or ["no word on its console"]))
            lines += tail + [f"FAILED {phase}: " + ("it was off" if was_off else "it was stuck") + " before its end"]
            break
        return lines
    finally:
        if keep:
            print(f"kept {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def put_package(root, package):
    """The package and the version before it; what the root leaves out of packages it leaves out no longer."""
    place = root + "/src/deb"
    os.mkdir(place)
    shutil.copy2(package, place + "/tarn.deb")
    for name in os.listdir(root + "/etc/dpkg/dpkg.cfg.d"):
        if "mmdebstrap" in name:
            os.unlink(f"{root}/etc/dpkg/dpkg.cfg.d/{name}")
    with tempfile.TemporaryDirectory() as unpacked:
        subprocess.run(["dpkg-deb", "-R", package, unpacked], check=True)
        with open(unpacked + "/DEBIAN/control") as file:
            control = re.sub(r"^Version: .*", "Version: 0.0.1-1", file.read(), flags=re.MULTILINE)
        with open(unpacked + "/DEBIAN/control", "w") as file:
            file.write(control)
        subprocess.run(["dpkg-deb", "-b", "-Zgzip", "-z1", unpacked, place + "/before.deb"], check=True, capture_output=True)


def self_test(tarn):
    """The service cannot start: the checks have to say so, and the account has to count it."""

    def prepare(root):
        os.makedirs(root + "/etc/systemd/system/tarn.service.d")
        with open(root + "/etc/systemd/system/tarn.service.d/broken.conf", "w") as file:
            file.write(BROKEN)

    lines = run(tarn, ["broken"], 400, prepare)
    failed = [line for line in lines if line.startswith("FAILED ")]
    assert any("the commands of the page" in line for line in failed), lines
    assert any("type notify" in line for line in failed), lines
    assert any(line.startswith("ok ") for line in lines), lines
    assert account(lines)[1] == 1
    print(f"boot_test.py: of a service that cannot start {len(failed)} checks fail")


def account(lines):
    good = sum(line.startswith("ok ") for line in lines)
    bad = sum(line.startswith("FAILED ") for line in lines)
    return f"boot test: checks {good + bad}, failed {bad}", 0 if good and not bad else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", REPOSITORY + "/.build/release/tarn"))
    parser.add_argument("--can-run", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--package", metavar="DEB", help="check this package in place of the service")
    parser.add_argument("--keep", action="store_true", help="leave the root in place")
    arguments = parser.parse_args()
    reason = obstacle()
    if reason:
        print("boot test: skipped: " + reason)
        return 3
    if arguments.can_run:
        return 0
    # A machine does not outlive its test.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        if arguments.self_test:
            return self_test(arguments.tarn)
        phases, prepare = ["start", "again"], lambda root: None
        if arguments.package:
            phases, prepare = ["package"], lambda root: put_package(root, arguments.package)
        lines = run(arguments.tarn, phases, 420, prepare, arguments.keep)
    except NoRoot as error:
        print(f"boot test: skipped: {error}")
        return 3
    line, status = account(lines)
    print("\n".join(lines + [line]))
    return status


if __name__ == "__main__":
    sys.exit(main())
