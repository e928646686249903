#!/usr/bin/env python3
"""Checks the order of a pass's system calls, from `strace -f -y -o TRACE`: what was published is durable, in order.

For each file that was renamed or linked from .tarn/partial, where it had a name or none, to its final name, or from
there to .tarn/trash and then exchanged with what had its final name (then the trash's directory has to be synced as well):
  last write of its bytes -> fsync or fdatasync of it, or syncfs -> the rename -> fsync of the parent directory (or
  syncfs) -> fsync or fdatasync of the ledger -> the line that reports it, if there is one -> the end.
For each directory made in the folder: fsync of its parent (or syncfs) before the end; for the folder itself, the
directories above it, Tarn's own: before the next file is published.
For each small file of Tarn's own that gets its name by a rename (the id, the marker, a ledger's backup, a ledger that is
set aside): its bytes, when they were written here, -> fsync -> the rename -> fsync of its directory -> whatever comes
next: a write to the ledger, the marker's rename, a publication.
For the marker that goes: fsync of the folder before the end. For a partial file: never more than 64 MiB that were not
synced. Every openat2 in the folder: all four flags that keep it there; every openat in partial/ and trash/: O_NOFOLLOW.

A call counts from where it began to where it came back: a sync that began before the last write returned proves
nothing. Ends with 1 on a violation, or when fewer files were published than --expect.
"""
import argparse
import json
import os
import re
import sys

WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "sendfile"}
SYNCS = {"fsync", "fdatasync"}
# Tarn's own. SQLite's fdatasync, of a copy that VACUUM INTO made or of a directory in which it made a file, is chance: it
# promises none for the first, and the second is for a file of its own.
OWN_SYNCS = {"fsync"}
REMOVALS = {"unlink", "unlinkat", "rmdir"}
FLAGS = ("RESOLVE_BENEATH", "RESOLVE_NO_SYMLINKS", "RESOLVE_NO_MAGICLINKS", "RESOLVE_NO_XDEV")
MOST_UNSYNCED = 64 << 20  # Bytes of a partial file that a power cut may cost (I3).
RENAMES = {"rename", "renameat", "renameat2", "link", "linkat"}
LINE = re.compile(r"^(?:\[pid +)?(\d+)\]? +(.*)$")
CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+|\?)(.*)$")
TOKEN = re.compile(r'(?:(\d+|AT_FDCWD)<((?:[^>\\]|\\.)*)>)|"((?:[^"\\]|\\.)*)"|([^,\s][^,]*)')
ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9a-fA-F]{2}|.)")
LETTERS = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b"}


def unescape(text):
    def one(match):
        code = match.group(1)
        if code[0] in "01234567":
            return chr(int(code, 8))
        if code[0] == "x" and len(code) == 3:
            return chr(int(code[1:], 16))
        return LETTERS.get(code, code)
    return ESCAPE.sub(one, text)


class Call:
    """One system call: what, with which arguments, and the lines on which it began and came back."""

    def __init__(self, thread, name, arguments, result, begin, end, tail=""):
        self.thread, self.name, self.result, self.begin, self.end = thread, name, result, begin, end
        self.tail = tail  # What follows the result: the name of the errno, and whether it was injected.
        self.raw = arguments
        self.tokens = [("fd", unescape(m[2])) if m[1] else ("text", unescape(m[3])) if m[3] is not None
                       else ("word", m[4]) for m in TOKEN.finditer(arguments)]

    @property
    def worked(self):
        return not self.result.startswith("-") and self.result != "?"

    @property
    def descriptor(self):
        """The path behind the first descriptor; None when the first argument is none."""
        return self.tokens[0][1] if self.tokens and self.tokens[0][0] == "fd" else None

    def paths(self):
        """The paths that the call names, each put together from a directory descriptor and a name."""
        found, directory = [], None
        for kind, text in self.tokens:
            if kind == "fd":
                directory = text
            elif kind == "text":
                found.append(os.path.normpath(os.path.join(directory or "/", text)) if text else directory)
                directory = None
        return found


def parse(lines):
    calls, pending = [], {}
    for number, line in enumerate(lines):
        match = LINE.match(line.rstrip("\n"))
        if not match:
            continue
        thread, text = match.groups()
        if text.endswith("<unfinished ...>"):
            pending[thread] = (text[: -len("<unfinished ...>")], number)
            continue
        begin = number
        if text.startswith("<... ") and thread in pending:
            head, begin = pending.pop(thread)
            text = head.rstrip() + text.partition("resumed>")[2]
        found = CALL.match(text)
        if found:
            calls.append(Call(thread, found[1], found[2], found[3], begin, number, found[4]))
    return calls


class Order:
    """Judges the calls of one run over a folder, whose state is in it or elsewhere."""

    def __init__(self, calls, folder, state=None):
        self.folder = os.path.abspath(folder)
        self.marker = os.path.join(self.folder, ".tarn")
        self.state = os.path.abspath(state or self.marker)
        self.calls = [call for call in calls if call.worked]
        self.violations = []
        self.counts = {"published": 0, "exchanged": 0, "directories": 0, "settled": 0, "opened": 0, "told": 0}
        self.trash = os.path.join(self.state, "trash")
        self.partial = os.path.join(self.state, "partial")
        # Path in the trash -> path in partial/ under which the file was written.
        self.staged = {}

    def is_own(self, path):
        return any(path == own or path.startswith(own + "/") for own in (self.state, self.marker))

    def is_published(self, path):
        return path.startswith(self.folder + "/") and not self.is_own(path)

    def sync(self, path, after, before=None, names=frozenset(SYNCS)):
        """The end of the first sync of a path (or of its file system) that began after one line; None without."""
        for call in self.calls:
            covers = call.name == "syncfs" or (call.name in names and call.descriptor == path)
            if covers and call.begin > after and (before is None or call.end < before):
                return call.end
        return None

    def ledger_sync(self, after):
        return next((call.end for call in self.calls if call.name in SYNCS and call.begin > after
                     and os.path.basename(call.descriptor or "").startswith("ledger.sqlite")), None)

    def last_write(self, path, before):
        ends = [call.end for call in self.calls
                if call.begin < before and ((call.name in WRITES and call.descriptor == path)
                                            or (call.name == "copy_file_range" and path in [t for k, t in call.tokens if k == "fd"][1:2]))]
        return max(ends, default=-1)

    def check(self):
        for call in self.calls:
            paths = call.paths()
            if call.name in RENAMES and len(paths) == 2:
                self.follow(call, *paths)
            elif call.name in ("mkdir", "mkdirat") and paths:
                self.check_made(call, paths[0])
            elif call.name in REMOVALS and paths and paths[0] == self.marker:
                self.counts["settled"] += 1
                if self.sync(self.folder, call.end) is None:
                    self.violations.append(f"{paths[0]}: gone, but the folder was never synced")
            elif call.name == "openat" and os.path.dirname(call.descriptor or "") == self.state:
                # By its name in partial/ or trash/.
                if "O_NOFOLLOW" not in call.raw:
                    self.violations.append(f"{paths[0]}: opened without O_NOFOLLOW")
            elif call.name == "openat2" and (call.descriptor or "").startswith((self.folder, self.state)):
                self.counts["opened"] += 1
                missing = [flag for flag in FLAGS if flag not in call.raw]
                if missing:
                    self.violations.append(f"{paths[0]}: opened without {', '.join(missing)}")
        self.check_unsynced()
        return self.violations

    def check_made(self, call, path):
        parent = os.path.dirname(path)
        if self.is_published(path):
            self.counts["directories"] += 1
            if self.sync(parent, call.end) is None:
                self.violations.append(f"{path}: made, but its parent directory was never synced")
        elif self.is_own(path) or (self.state + "/").startswith(path + "/") or (self.folder + "/").startswith(path + "/"):
            self.counts["directories"] += 1
            if self.sync(parent, call.end, self.next_of(call, self.publishes), OWN_SYNCS) is None:
                self.violations.append(f"{path}: made, but {parent} was not synced before a file was published")

    def next_of(self, call, test):
        """Where the first later call that passes a test begins; None without one."""
        return next((other.begin for other in self.calls if other.begin > call.end and test(other)), None)

    def publishes(self, call):
        paths = call.paths()
        return call.name in RENAMES and len(paths) == 2 and self.is_own(paths[0]) and self.is_published(paths[1])

    def depends(self, call):
        """What must not come before a name of Tarn's own is durable."""
        if call.name in WRITES:
            return (call.descriptor or "").startswith(os.path.join(self.state, "ledger.sqlite"))
        return self.publishes(call) or (call.name in RENAMES and call.paths()[1:] == [self.marker])

    def check_settled(self, call, source, target):
        """A file of Tarn's own that got its name."""
        self.counts["settled"] += 1
        written = self.last_write(source, call.begin)
        if (written >= 0 and not self.is_database(source)
                and self.sync(source, written, call.begin, OWN_SYNCS) is None):
            self.violations.append(f"{target}: renamed before its bytes were synced")
        if self.sync(os.path.dirname(target), call.end, self.next_of(call, self.depends), OWN_SYNCS) is None:
            self.violations.append(f"{target}: its directory was not synced after the rename, before what needs it")

    def check_adopted(self):
        """Files that somebody else wrote: durable before the ledger says that they are synced."""
        flushed = next((call.end for call in self.calls if call.name == "syncfs"), None)
        if flushed is None or self.ledger_sync(flushed) is None:
            self.violations.append("adopted without a syncfs before the ledger's sync")
        return self.violations

    def is_database(self, path):
        """The ledger or what SQLite keeps beside it: synced when SQLite sees fit."""
        return path.startswith(os.path.join(self.state, "ledger.sqlite")) and not path.endswith(".new")

    def check_unsynced(self):
        """The most bytes of a partial file that lie unsynced at a time."""
        waiting = {}
        for call in sorted(self.calls, key=lambda call: call.end):
            if call.name == "syncfs":
                waiting = {}
            elif call.name in SYNCS:
                # What was written while it ran may not be durable.
                begun = [(end, count) for end, count in waiting.get(call.descriptor, []) if end > call.begin]
                waiting[call.descriptor] = begun
            elif call.name in WRITES - {"ftruncate"} and os.path.dirname(call.descriptor or "") == self.partial:
                writes = waiting.setdefault(call.descriptor, [])
                writes.append((call.end, int(call.result)))
                if sum(count for _, count in writes) > MOST_UNSYNCED:
                    self.violations.append(f"{call.descriptor}: more than {MOST_UNSYNCED} bytes were not synced")
                    waiting[call.descriptor] = []

    def follow(self, call, source, target):
        if os.path.dirname(source) == self.partial and os.path.dirname(target) == self.trash:
            self.staged[target] = source
        elif source in self.staged:
            written = self.staged.pop(source)
            if self.is_published(target):
                self.counts["exchanged"] += 1
                if "RENAME_EXCHANGE" not in call.raw:
                    self.violations.append(f"{target}: renamed over, not exchanged")
                self.check_published(call, written, target, self.trash)
        elif self.is_own(source) and self.is_published(target) and os.path.dirname(source) != self.trash:
            self.check_published(call, source, target)
        elif self.is_own(source) and self.is_own(target) and os.path.dirname(source) not in (self.partial, self.trash):
            self.check_settled(call, source, target)

    def check_published(self, rename, source, target, also=None):
        self.counts["published"] += 1
        if self.sync(source, self.last_write(source, rename.begin), rename.begin) is None:
            self.violations.append(f"{target}: renamed before its bytes were synced")
        last = rename.end
        for directory in filter(None, (os.path.dirname(target), also)):
            synced = self.sync(directory, rename.end)
            if synced is None:
                what = "the trash" if directory == also else "its directory"
                self.violations.append(f"{target}: {what} was not synced after the rename")
            last = max(last, synced or 0)
        recorded = self.ledger_sync(last)
        if recorded is None:
            self.violations.append(f"{target}: the ledger was not synced after the directory")
        told = self.told(target)
        if told is not None:
            self.counts["told"] += 1
            if recorded is not None and told < recorded:
                self.violations.append(f"{target}: reported before the ledger was synced")

    def told(self, path):
        """Where the line of standard output that names a path begins to be written; None without one."""
        words = f'"path":{json.dumps(os.path.relpath(path, self.folder), ensure_ascii=False)}'
        return next((call.begin for call in self.calls if call.name == "write" and call.raw.startswith("1<")
                     and words in call.tokens[1][1] and '"type":"done"' in call.tokens[1][1]), None)


GOOD = r'''
10 mkdirat(3</m>, "sub", 0755) = 0
10 write(5</m/.tarn/partial/x1>, "abc"..., 3) = 3
11 pwrite64(6</m/.tarn/partial/x2>, "abc"..., 3, 0 <unfinished ...>
10 fsync(5</m/.tarn/partial/x1>) = 0
11 <... pwrite64 resumed>) = 3
11 fdatasync(6</m/.tarn/partial/x2>) = 0
10 renameat2(4</m/.tarn/partial>, "x1", 3</m>, "a \"b\"", RENAME_NOREPLACE) = 0
10 renameat2(4</m/.tarn/partial>, "x2", 7</m/sub>, "caf\303\251", RENAME_NOREPLACE) = 0
10 pwrite64(12</m/.tarn/partial/#31>(deleted), "abc"..., 3, 0) = 3
10 fsync(12</m/.tarn/partial/#31>(deleted)) = 0
10 linkat(12</m/.tarn/partial/#31>(deleted), "", 3</m>, "unnamed", AT_EMPTY_PATH) = 0
10 write(5</m/.tarn/partial/x3>, "abc"..., 3) = 3
10 fsync(5</m/.tarn/partial/x3>) = 0
10 renameat2(4</m/.tarn/partial>, "x3", 9</m/.tarn/trash>, "t3", RENAME_NOREPLACE) = 0
10 renameat2(9</m/.tarn/trash>, "t3", 3</m>, "old", RENAME_EXCHANGE) = 0
10 fsync(9</m/.tarn/trash>) = 0
10 fsync(3</m>) = 0
10 fsync(7</m/sub>) = 0
10 fdatasync(8</m/.tarn/ledger.sqlite-wal>) = 0
10 exit_group(0) = ?
'''


# A mirror that is made, fed and forgotten.
WHOLE_LIFE = r'''
10 mkdirat(AT_FDCWD</>, "/d", 0755) = 0
10 fsync(3</>) = 0
10 mkdirat(AT_FDCWD</>, "/d/m", 0755) = 0
10 fsync(3</d>) = 0
10 mkdirat(3</d/m>, ".tarn", 0700) = 0
10 pwrite64(5</d/m/.tarn/id.x>, "abc"..., 3, 0) = 3
10 fsync(5</d/m/.tarn/id.x>) = 0
10 renameat2(4</d/m/.tarn>, "id.x", 4</d/m/.tarn>, "id", RENAME_NOREPLACE) = 0
10 fsync(4</d/m/.tarn>) = 0
10 fsync(3</d/m>) = 0
10 pwrite64(8</d/m/.tarn/ledger.sqlite-wal>, "abc"..., 3, 0) = 3
10 openat2(3</d/m>, "a", {flags=O_RDONLY, resolve=RESOLVE_NO_XDEV|RESOLVE_NO_MAGICLINKS|RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH}, 24) = 9
10 openat(4</d/m/.tarn/partial>, "x1", O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600) = 5
10 write(5</d/m/.tarn/partial/x1>, "abc"..., 60000000) = 60000000
10 fdatasync(5</d/m/.tarn/partial/x1>) = 0
10 write(5</d/m/.tarn/partial/x1>, "abc"..., 60000000) = 60000000
10 fsync(5</d/m/.tarn/partial/x1>) = 0
10 renameat2(4</d/m/.tarn/partial>, "x1", 3</d/m>, "a", RENAME_NOREPLACE) = 0
10 fsync(7</d/m>) = 0
10 fdatasync(8</d/m/.tarn/ledger.sqlite-wal>) = 0
10 write(1<pipe:[7]>, "{\"code\":\"fetched\",\"path\":\"a\",\"type\":\"done\"}\n", 44) = 44
10 rename("/d/m/.tarn/ledger.sqlite", "/d/m/.tarn/ledger.sqlite.corrupt-1") = 0
10 fsync(14</d/m/.tarn>) = 0
10 pwrite64(8</d/m/.tarn/ledger.sqlite>, "abc"..., 3, 0) = 3
10 unlinkat(3</d/m>, ".tarn", AT_REMOVEDIR) = 0
10 fsync(13</d/m>) = 0
'''
WHOLE_LIFE_SINS = [("fsync(3</>)", "/d: made"), ("fsync(3</d>)", "/d/m: made"), ("fsync(3</d/m>)", ".tarn: made"),
                   ("fsync(5</d/m/.tarn/id.x>)", "id: renamed before its bytes"),
                   ("fsync(4</d/m/.tarn>)", "id: its directory"), ("fdatasync(5</d/m/.tarn/partial/x1>)", "more than"),
                   ("fsync(14</d/m/.tarn>)", "corrupt-1: its directory"), ("fsync(13</d/m>)", ".tarn: gone")]


def self_test():
    def verdict(text, folder="/m", state=None):
        """The violations, or the number of files published."""
        order = Order(parse(text.splitlines()), folder, state)
        return order.check() or order.counts["published"]

    assert verdict(GOOD) == 4, verdict(GOOD)
    assert verdict(GOOD.replace("fsync(5</m/.tarn/partial/x1>)", "syncfs(5</m/.tarn/partial/x1>)")) == 4

    assert verdict(WHOLE_LIFE, "/d/m") == 1, verdict(WHOLE_LIFE, "/d/m")
    for call, word in WHOLE_LIFE_SINS:
        result = verdict(WHOLE_LIFE.replace(f"10 {call} = 0\n", ""), "/d/m")
        assert isinstance(result, list) and len(result) == 1 and word in result[0], (call, result)
    assert "id: renamed before" in str(verdict(WHOLE_LIFE.replace("fsync(5</d/m/.tarn/id", "fdatasync(5</d/m/.tarn/id"), "/d/m"))
    for flag in FLAGS + ("O_NOFOLLOW",):
        assert f"without {flag}" in str(verdict(WHOLE_LIFE.replace(flag, "0"), "/d/m")), flag
    line = next(line for line in WHOLE_LIFE.splitlines(True) if "write(1<" in line)
    early = WHOLE_LIFE.replace(line, "").replace("10 fsync(7</d/m>)", line + "10 fsync(7</d/m>)")
    assert "reported before" in str(verdict(early, "/d/m")), verdict(early, "/d/m")
    # The state beside the folder: the marker is named after the id is there for good.
    beside = WHOLE_LIFE.replace("/d/m/.tarn", "/d/s").replace('3</d/m>, ".tarn", 0700', '3</d>, "s", 0700').replace(
        "10 fsync(3</d/m>)", '10 renameat2(4</d/s>, "y", 3</d/m>, ".tarn", RENAME_NOREPLACE) = 0\n10 fsync(3</d/m>)')
    beside = beside.replace('"s", 0700) = 0\n', '"s", 0700) = 0\n10 fsync(3</d>) = 0\n')
    assert verdict(beside, "/d/m", "/d/s") == 1, verdict(beside, "/d/m", "/d/s")
    for call, word in (("fsync(4</d/s>)", "/id: its directory"), ("fsync(3</d/m>)", "/.tarn: its directory")):
        result = verdict(beside.replace(f"10 {call} = 0\n", ""), "/d/m", "/d/s")
        assert isinstance(result, list) and word in str(result), (call, result)

    def broken(old, new, word):
        assert old in GOOD, old
        result = verdict(GOOD.replace(old, new))
        assert isinstance(result, list) and any(word in line for line in result), (old, result)

    broken("10 fsync(5</m/.tarn/partial/x1>) = 0\n", "", "before its bytes")
    broken("10 fsync(12</m/.tarn/partial/#31>(deleted)) = 0\n", "", "unnamed: renamed before its bytes")
    broken("10 fsync(5</m/.tarn/partial/x1>) = 0", "10 fsync(5</m/.tarn/partial/x1>) = -1 EIO (Input/output error)", "before its bytes")
    # This sync begins before the last write has come back.
    broken("11 <... pwrite64 resumed>) = 3\n11 fdatasync(6</m/.tarn/partial/x2>) = 0",
           "12 fdatasync(6</m/.tarn/partial/x2>) = 0\n11 <... pwrite64 resumed>) = 3", "before its bytes")
    broken("10 fsync(7</m/sub>) = 0\n", "", "directory was not synced")
    broken("10 fsync(3</m>) = 0\n", "", "directory was never synced")
    broken("10 fdatasync(8</m/.tarn/ledger.sqlite-wal>) = 0\n", "", "ledger was not synced")
    broken("10 fsync(9</m/.tarn/trash>) = 0\n", "", "the trash was not synced")
    broken("10 fsync(5</m/.tarn/partial/x3>) = 0\n", "", "before its bytes")
    broken("RENAME_EXCHANGE", "0", "renamed over")
    swapped = "10 fdatasync(8</m/.tarn/ledger.sqlite-wal>) = 0\n10 fsync(7</m/sub>) = 0"
    broken("10 fsync(7</m/sub>) = 0\n10 fdatasync(8</m/.tarn/ledger.sqlite-wal>) = 0", swapped, "ledger was not synced")
    print("trace_order.py: three good traces pass, 28 bad ones do not")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--folder", help="the mirror's folder, absolute, without links")
    parser.add_argument("--expect", type=int, default=1, help="so many files have to be published")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.trace or not arguments.folder:
        parser.error("a trace and --folder are needed")
    with open(arguments.trace, encoding="utf-8", errors="replace") as stream:
        order = Order(parse(stream), arguments.folder)
    for violation in order.check():
        print(violation)
    published, directories = order.counts["published"], order.counts["directories"]
    print(f"order: {published} files published ({order.counts['exchanged']} exchanged), {directories} directories made, violations {len(order.violations)}")
    sys.exit(1 if order.violations or published < arguments.expect else 0)


if __name__ == "__main__":
    main()
