#!/usr/bin/env python3
"""The independent checker of a mirror's folder. Shares no code with Tarn, and asks it nothing.

  I1  every regular file outside .tarn is whole: one of the versions that a feed ever named, or the user's own; what is
      no regular file is the user's own
  I2  every byte string, link, FIFO and directory that a user put there still exists: at its path, or in the trash
  I5  nothing outside the folder changed: the digest of a canary directory is what it was
  I11 the ledger is a sound SQLite file, and none was set aside as damaged

With --final every path has exactly its one wanted version and nothing else is there but the user's files.

VERSIONS is JSON {path hex: [[size, sha256], ...]}; an empty list names a path that has to be gone in the end.
USERS is JSON [[path hex, size, sha256], ...], where "link" and its target, or "fifo" or "directory" and "", may stand for
size and sha256. Other programs call check_removals (I8) and check_promises (I4) as well. Prints JSON
{"checked": N, "violations": [...]}; ends with 1 if there is any violation.
"""
import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import sys
import tempfile


def digest_of(path):
    digest, size = hashlib.sha256(), 0
    with open(path, "rb", buffering=0) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
            size += len(block)
    return [size, digest.hexdigest()]


def canary_of(directory):
    """One digest over names, kinds, modes and bytes of everything below a directory."""
    digest, root = hashlib.sha256(), os.fsencode(directory)
    for parent, directories, files in os.walk(root):
        directories.sort()
        for name in sorted(directories + files):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            digest.update(repr((os.path.relpath(path, root), status.st_mode, status.st_nlink)).encode())
            if stat.S_ISLNK(status.st_mode):
                digest.update(os.readlink(path))
            elif stat.S_ISREG(status.st_mode):
                digest.update(repr(digest_of(path)).encode())
    return digest.hexdigest()


def regular_files(root):
    """(relative path, full path, lstat) of everything outside .tarn that is no directory."""
    for parent, directories, files in os.walk(root):
        if parent == root and b".tarn" in directories:
            directories.remove(b".tarn")
        for name in files + [d for d in directories if os.path.islink(os.path.join(parent, d))]:
            full = os.path.join(parent, name)
            relative = os.path.relpath(full, root)
            if relative == b".tarn":
                continue
            yield relative, full, os.lstat(full)


def object_of(path, status):
    """What something is that is no regular file, as USERS writes it; None when users make no such things."""
    if stat.S_ISLNK(status.st_mode):
        return ["link", os.fsdecode(os.readlink(path))]
    if stat.S_ISFIFO(status.st_mode):
        return ["fifo", ""]
    return ["directory", ""] if stat.S_ISDIR(status.st_mode) else None


def inventory(folder):
    """{path hex: [size, sha256]} of the regular files outside .tarn."""
    return {relative.hex(): digest_of(full) for relative, full, status in regular_files(os.fsencode(folder))
            if stat.S_ISREG(status.st_mode)}


def stamps(folder):
    """{path: inode, mode, size, time} of everything outside .tarn: the same before and after when nothing was written."""
    found, root = {}, os.fsencode(folder)
    for parent, directories, files in os.walk(root):
        if parent == root and b".tarn" in directories:
            directories.remove(b".tarn")
        for name in directories + files:
            status = os.lstat(os.path.join(parent, name))
            found[os.path.relpath(os.path.join(parent, name), root)] = (
                status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return found


def trash_of(state):
    """[[size, sha256] or as object_of, ...] of what lies in the trash."""
    found = []
    for parent, directories, files in os.walk(os.path.join(state, b"trash")):
        for name in directories + files:
            full = os.path.join(parent, name)
            status = os.lstat(full)
            found.append(digest_of(full) if stat.S_ISREG(status.st_mode) else object_of(full, status))
    return found


def check_removals(folder, before, most, state=None):
    """I8: of what was there before, an inventory, at most so many files are gone, and each of them is in the trash."""
    root, now = os.fsencode(folder), inventory(folder)
    trash = trash_of(os.fsencode(state) if state else os.path.join(root, b".tarn"))
    gone = [name for name in before if name not in now]
    lost = [f"I8 {bytes.fromhex(name)!r} is gone and not in the trash" for name in gone if before[name] not in trash]
    return lost + ([f"I8 {len(gone)} files are gone, {most} may be"] if len(gone) > most else [])


def check_promises(folder, promises):
    """I4: [(path hex, [[size, sha256], ...]), ...]: each path has one of its versions; with none it is gone."""
    now, violations = inventory(folder), []
    for name, wanted in promises:
        if wanted and now.get(name) not in wanted:
            what = f"{now[name][0]} bytes, {now[name][1][:16]}" if name in now else "missing"
            violations.append(f"I4 {bytes.fromhex(name)!r} was said to be in place: {what}")
        elif not wanted and name in now:
            violations.append(f"I4 {bytes.fromhex(name)!r} was said to be deleted")
    return violations


def check_ledger(state):
    """integrity_check on a copy, with the write-ahead log: the original is not to be recovered by the checker."""
    ledger = os.path.join(state, b"ledger.sqlite")
    aside = [name for name in os.listdir(state) if name.startswith(b"ledger.sqlite.corrupt")] if os.path.isdir(state) else []
    if aside:
        return [f"I11 a ledger was set aside as damaged: {aside}"]
    if not os.path.exists(ledger):
        return []
    scratch = tempfile.mkdtemp()
    try:
        for suffix in (b"", b"-wal", b"-journal"):
            if os.path.exists(ledger + suffix):
                shutil.copyfile(ledger + suffix, os.fsencode(scratch) + b"/ledger.sqlite" + suffix)
        connection = sqlite3.connect(os.path.join(scratch, "ledger.sqlite"))
        rows = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        connection.close()
        return [] if rows == ["ok"] else [f"I11 the ledger: {'; '.join(map(str, rows))[:300]}"]
    except sqlite3.Error as error:
        return [f"I11 the ledger: {error}"]
    finally:
        shutil.rmtree(scratch)


def check(folder, versions, users=(), canary=None, final=False, state=None):
    """(files checked, violations)"""
    root = os.fsencode(os.path.abspath(folder))
    state = os.fsencode(state) if state else os.path.join(root, b".tarn")
    violations, found = [], {}
    if not os.path.isdir(root):
        return 0, ([f"the folder {folder} is missing"] if final or users else [])
    of_users = {}
    for path, size, sha256 in users:
        of_users.setdefault(path, []).append([size, sha256])

    for relative, full, status in regular_files(root):
        name = relative.hex()
        if not stat.S_ISREG(status.st_mode):
            found[name] = object_of(full, status)
            if found[name] not in of_users.get(name, []):
                violations.append(f"I1 {relative!r} is no regular file")
            continue
        found[name] = identity = digest_of(full)
        wanted = versions.get(name, [])
        if final:
            wanted = wanted[-1:]
        if identity not in wanted and identity not in of_users.get(name, []):
            what = "is not the wanted version" if final else "is no version of it"
            violations.append(f"I1 {relative!r} {what}: {identity[0]} bytes, {identity[1][:16]}")
    if final:
        for name, wanted in versions.items():
            if wanted and name not in found:
                violations.append(f"I6 {bytes.fromhex(name)!r} is missing")

    trash = trash_of(state)
    for path, size, sha256 in users:
        if size == "directory" and os.path.isdir(os.path.join(root, bytes.fromhex(path))):
            continue
        if found.get(path) != [size, sha256] and [size, sha256] not in trash:
            violations.append(f"I2 the user's {bytes.fromhex(path)!r} is lost: {size} {sha256[:16]}")
    for directory, expected in (canary or {}).items():
        if canary_of(directory) != expected:
            violations.append(f"I5 {directory} changed")
    return len(found), violations + check_ledger(state)


def self_test():
    """Every rule fails on a tree that breaks it, and none on a sound one."""
    def identity(data):
        return [len(data), hashlib.sha256(data).hexdigest()]

    def build(changes):
        top = tempfile.mkdtemp()
        tree = {"f/a": b"new", "f/.tarn/trash/x": b"mine", "f/.tarn/partial/y": b"half", "out/canary": b"sing"}
        tree.update(changes)
        for name, data in tree.items():
            if data is not None:
                os.makedirs(os.path.dirname(os.path.join(top, name)), exist_ok=True)
                with open(os.path.join(top, name), "wb") as stream:
                    stream.write(data)
        return top

    versions = {b"a".hex(): [identity(b"old"), identity(b"new")], b"gone".hex(): []}
    users = [[b"a".hex(), *identity(b"mine")]]
    sound = build({})
    expected = canary_of(os.path.join(sound, "out"))
    cases = [("sound", {}, False, None), ("old version", {"f/a": b"old"}, False, None),
             ("old version at the end", {"f/a": b"old"}, True, "I1"), ("torn", {"f/a": b"ne"}, False, "I1"),
             ("stranger", {"f/b": b"?"}, False, "I1"), ("missing at the end", {"f/a": None, "f/.tarn/z": b""}, True, "I6"),
             ("lost user bytes", {"f/.tarn/trash/x": b"min"}, False, "I2"),
             ("displaced", {"f/.tarn/trash/x": None, "f/.tarn/partial/y": b"mine"}, False, "I2"),
             ("canary", {"out/canary": b"silent"}, False, "I5"),
             ("ledger", {"f/.tarn/ledger.sqlite": b"SQLite format 3\0" + b"\7" * 4096}, False, "I11")]
    cases.append(("set aside", {"f/.tarn/ledger.sqlite.corrupt-1": b""}, False, "I11"))
    for name, changes, final, rule in cases:
        top = build(changes)
        _, violations = check(top + "/f", versions, users, {top + "/out": expected}, final)
        rules = {text.split()[0] for text in violations}
        assert rules == ({rule} if rule else set()), (name, violations)
        shutil.rmtree(top)
    special = [[b"l".hex(), "link", "a"], [b"p".hex(), "fifo", ""], [b"d".hex(), "directory", ""]]
    os.symlink("a", sound + "/f/l")
    os.mkfifo(sound + "/f/p")
    os.mkdir(sound + "/f/d")
    assert not check(sound + "/f", versions, users + special)[1]
    os.replace(sound + "/f/p", sound + "/f/.tarn/trash/p")
    assert not check(sound + "/f", versions, users + special)[1]
    os.unlink(sound + "/f/l")
    os.symlink("b", sound + "/f/l")
    os.rmdir(sound + "/f/d")
    rules = sorted(text.split()[0] for text in check(sound + "/f", versions, users + special)[1])
    assert rules == ["I1", "I2", "I2"], rules
    before = {**inventory(sound + "/f"), b"x".hex(): identity(b"mine"), b"y".hex(): identity(b"lost")}
    assert not check_removals(sound + "/f", inventory(sound + "/f"), 0)
    assert [text.split()[0] for text in check_removals(sound + "/f", before, 2)] == ["I8"]
    assert [text.split()[0] for text in check_removals(sound + "/f", before, 1)] == ["I8", "I8"]
    assert not check_promises(sound + "/f", [(b"a".hex(), [identity(b"new")]), (b"gone".hex(), [])])
    assert len(check_promises(sound + "/f", [(b"a".hex(), [identity(b"old")]), (b"b".hex(), [identity(b"?")]),
                                             (b"a".hex(), [])])) == 3
    shutil.rmtree(sound)
    print(f"check_tree.py: {len(cases)} trees judged rightly, and what was removed, promised and put in the way")


def load(path, default):
    if path is None:
        return default
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--versions")
    parser.add_argument("--users")
    parser.add_argument("--state", help="where the state is, if not in FOLDER/.tarn")
    parser.add_argument("--canary", action="append", default=[], metavar="DIR=DIGEST")
    parser.add_argument("--print-canary", metavar="DIR", help="print the digest of a directory and end")
    parser.add_argument("--final", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.print_canary:
        return print(canary_of(arguments.print_canary))
    if not arguments.folder or not arguments.versions:
        parser.error("a folder and --versions are needed")
    canary = dict(item.rsplit("=", 1) for item in arguments.canary)
    checked, violations = check(arguments.folder, load(arguments.versions, {}), load(arguments.users, []), canary,
                                arguments.final, arguments.state)
    json.dump({"checked": checked, "violations": violations}, sys.stdout, indent=1)
    print()
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
