#!/usr/bin/env python3
"""Looks at the Debian packages that packaging/deb left in a directory: check_package.py DIRECTORY, or --self-test

1. lintian has neither an error nor a warning but those that an override explains.
2. Both programs are bound at their start, read-only behind that, at any address, stripped, and look for libraries at no place of
   their own; their debug symbols are in the other package.
3. What the package depends on is Debian's, and no Swift; tarn-watch, under GPL-2, is linked with libinotifytools and libc alone.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAMS = ("usr/bin/tarn", "usr/libexec/tarn/tarn-watch")
DEPENDS = {
    "debconf", "init-system-helpers", "systemd", "libc6", "libcurl4", "libgcc-s1", "libinotifytools0", "libsqlite3-0", "libssl3",
    "libstdc++6", "libxml2", "zlib1g",
}


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout


def program_complaints(path, debug):
    name = os.path.basename(path)
    dynamic, headers, sections = (output("readelf", "-W", option, path) for option in ("-d", "-l", "-S"))
    if "(RUNPATH)" in dynamic or "(RPATH)" in dynamic:
        yield f"{name}: a RUNPATH"
    if not re.search(r"FLAGS_1\).*\bNOW\b", dynamic):
        yield f"{name}: not bound at its start"
    if "GNU_RELRO" not in headers:
        yield f"{name}: no RELRO"
    if "PIE" not in dynamic:
        yield f"{name}: at a fixed address"
    if ".symtab" in sections or ".debug_info" in sections:
        yield f"{name}: not stripped"
    build = re.search(r"Build ID: (\w\w)(\w+)", output("readelf", "-W", "-n", path))
    if not build or not os.path.exists(f"{debug}/usr/lib/debug/.build-id/{build.group(1)}/{build.group(2)}.debug"):
        yield f"{name}: no debug symbols"
    if name == "tarn-watch" and set(re.findall(r"NEEDED.*\[(.*?)\.so", dynamic)) != {"libinotifytools", "libc"}:
        yield f"{name}: linked with more than libinotifytools"


def complaints(directory):
    """What is wrong with the packages; empty when nothing is."""
    packages = sorted(glob.glob(directory + "/*.deb"))
    found = [f"lintian: {line}" for line in output("lintian", "--allow-root", *packages).splitlines() if line[:2] in ("E:", "W:")]
    with tempfile.TemporaryDirectory() as scratch:
        for package in packages:
            subprocess.run(["dpkg-deb", "-x", package, f"{scratch}/{os.path.basename(package).split('_')[0]}"], check=True)
        for program in PROGRAMS:
            path = f"{scratch}/tarn/{program}"
            found += program_complaints(path, scratch + "/tarn-dbgsym") if os.path.exists(path) else [f"no {program}"]
    main = next(package for package in packages if os.path.basename(package).startswith("tarn_"))
    depends = {words.split()[0] for words in output("dpkg-deb", "-f", main, "Depends").split(",") if words.strip()}
    return found + [f"depends on {name}" for name in sorted(depends - DEPENDS)]


def self_test():
    """A package of somebody else's program, which is bound when it likes, and has no symbols anywhere."""
    with tempfile.TemporaryDirectory() as scratch:
        root = scratch + "/root"
        os.makedirs(root + "/DEBIAN")
        os.makedirs(root + "/usr/bin")
        shutil.copy2("/bin/ls", root + "/usr/bin/tarn")
        with open(root + "/DEBIAN/control", "w") as file:
            file.write("Package: tarn\nVersion: 1-1\nArchitecture: all\nMaintainer: A <a@b.invalid>\nDepends: swift\nDescription: x\n")
        subprocess.run(["dpkg-deb", "-b", "--root-owner-group", root, scratch + "/tarn_1-1_all.deb"], check=True, capture_output=True)
        found = complaints(scratch)
    for expected in ("lintian: E: tarn: ", "tarn: not bound at its start", "tarn: no debug symbols", "no usr/libexec/tarn/tarn-watch",
                     "depends on swift"):
        assert any(line.startswith(expected) for line in found), (expected, found)
    print(f"check_package.py: of a bad package {len(found)} complaints")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = complaints(sys.argv[1])
    print("\n".join(found + [f"package: {len(found)} complaints"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
