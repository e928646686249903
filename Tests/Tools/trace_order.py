#!/usr/bin/env python3
"""Checks the order of a pass's system calls, from `strace -f -y -o TRACE`: what was published is durable, in order.

For each file that was renamed or linked from .tarn/partial to its final name, or from there to .tarn/trash and then
exchanged with what had its final name (then the trash's directory has to be synced as well):
  last write of its bytes -> fsync or fdatasync of it, or syncfs -> the rename -> fsync of the parent directory (or
  syncfs) -> fsync or fdatasync of the ledger -> the end.
For each directory made in the folder: fsync of its parent (or syncfs) before the end.

A call counts from where it began to where it came back: a sync that began before the last write returned proves
nothing. Ends with 1 on a violation, or when fewer files were published than --expect.
"""
import argparse
import os
import re
import sys

WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "sendfile"}
SYNCS = {"fsync", "fdatasync"}
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
    def __init__(self, calls, folder):
        self.folder = os.path.abspath(folder)
        self.state = os.path.join(self.folder, ".tarn")
        self.calls = [call for call in calls if call.worked]
        self.violations = []
        self.counts = {"published": 0, "exchanged": 0, "directories": 0}
        self.trash = os.path.join(self.state, "trash")
        self.partial = os.path.join(self.state, "partial")
        # Path in the trash -> path in partial/ under which the file was written.
        self.staged = {}

    def is_own(self, path):
        return path == self.state or path.startswith(self.state + "/")

    def is_published(self, path):
        return path.startswith(self.folder + "/") and not self.is_own(path)

    def sync(self, path, after, before=None):
        """The end of the first sync of a path (or of its file system) that began after one line; None without."""
        for call in self.calls:
            covers = call.name == "syncfs" or (call.name in SYNCS and call.descriptor == path)
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
            elif call.name in ("mkdir", "mkdirat") and paths and self.is_published(paths[0]):
                self.counts["directories"] += 1
                if self.sync(os.path.dirname(paths[0]), call.end) is None:
                    self.violations.append(f"{paths[0]}: made, but its parent directory was never synced")
        return self.violations

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
        if self.ledger_sync(last) is None:
            self.violations.append(f"{target}: the ledger was not synced after the directory")


GOOD = r'''
10 mkdirat(3</m>, "sub", 0755) = 0
10 write(5</m/.tarn/partial/x1>, "abc"..., 3) = 3
11 pwrite64(6</m/.tarn/partial/x2>, "abc"..., 3, 0 <unfinished ...>
10 fsync(5</m/.tarn/partial/x1>) = 0
11 <... pwrite64 resumed>) = 3
11 fdatasync(6</m/.tarn/partial/x2>) = 0
10 renameat2(4</m/.tarn/partial>, "x1", 3</m>, "a \"b\"", RENAME_NOREPLACE) = 0
10 renameat2(4</m/.tarn/partial>, "x2", 7</m/sub>, "caf\303\251", RENAME_NOREPLACE) = 0
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


def self_test():
    def verdict(text):
        """The violations, or the number of files published."""
        order = Order(parse(text.splitlines()), "/m")
        return order.check() or order.counts["published"]

    assert verdict(GOOD) == 3, verdict(GOOD)
    assert verdict(GOOD.replace("fsync(5</m/.tarn/partial/x1>)", "syncfs(5</m/.tarn/partial/x1>)")) == 3

    def broken(old, new, word):
        assert old in GOOD, old
        result = verdict(GOOD.replace(old, new))
        assert isinstance(result, list) and any(word in line for line in result), (old, result)

    broken("10 fsync(5</m/.tarn/partial/x1>) = 0\n", "", "before its bytes")
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
    print("trace_order.py: a good trace passes, ten bad ones do not")


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
