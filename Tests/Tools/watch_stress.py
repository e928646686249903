#!/usr/bin/env python3
"""Directories are made, renamed, exchanged, moved between two watched folders and out of them, and removed at random
beside tarn-watch, from a seed. A model that looks only where it was told to look has to agree with the folders in the end,
and every directory has to be seen under the name that it has then.

  watch_stress.py --watch PROGRAM [--seed N] [--seconds S]
  watch_stress.py --self-test                        shows that a program that tells nothing is found out
  watch_stress.py --watch PROGRAM --directories N    how long N directories take until they are watched, and the memory

Ends with 0 when all is well. PROGRAM may be built with AddressSanitizer: what it reports makes the program end badly.
"""

import argparse
import ctypes
import os
import random
import select
import shutil
import stat
import subprocess
import sys
import tempfile
import time

AT_FDCWD, RENAME_EXCHANGE = -100, 2
libc = ctypes.CDLL(None, use_errno=True)


def look(root, path):
    try:
        status = os.lstat(os.path.join(root, path) if path else root)
    except OSError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return (status.st_ino, "directory")
    return (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)


def everything(root, path=b""):
    top = os.path.join(root, path) if path else root
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            below = os.path.relpath(os.path.join(directory, name), root)
            value = look(root, below)
            if value:
                yield below, value


class Watcher:
    """tarn-watch, and what a reader of its records knows of the folders."""

    def __init__(self, program, roots):
        self.roots = roots
        self.known = [{} for _ in roots]
        self.rest = b""
        self.overflows = 0
        self.process = subprocess.Popen([program] + [os.fsdecode(root) for root in roots],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def take(self, seconds):
        """Takes records until none has come for so long."""
        while select.select([self.process.stdout], [], [], seconds)[0]:
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                raise SystemExit(f"tarn-watch ended with {self.process.wait()}")
            *records, self.rest = (self.rest + piece).split(b"\0")
            for record in records:
                kind, number, rest = record.split(b" ", 2)
                if kind in (b"dirty", b"tree"):
                    self.look(int(number), rest, kind == b"tree")
                elif kind == b"blind":
                    if not rest.startswith(b"overflow "):
                        raise SystemExit(f"tarn-watch said {record}")
                    self.overflows += 1

    def look(self, number, path, is_tree):
        root, known = self.roots[number], self.known[number]
        value = look(root, path)
        is_directory = value and value[1] == "directory"
        if path:
            known.pop(path, None)
            if value:
                known[path] = value
        if is_tree or not is_directory:
            for old in [old for old in known if not path or old.startswith(path + b"/")]:
                del known[old]
        if is_tree and is_directory:
            known.update(everything(root, path))

    def end(self):
        self.process.stdin.close()
        return self.process.wait(120)


def change(numbers, places):
    """One change at random; one that cannot be is none."""
    directories = [d for place in places for d, _, _ in os.walk(place)][:600]
    movable = [d for d in directories if d not in places] or [b"/nowhere"]
    name = os.path.join(numbers.choice(directories), b"%d" % numbers.randrange(6))
    kind = numbers.randrange(12)
    try:
        if kind < 3:
            os.makedirs(name + b"/x/y"[:numbers.choice([0, 2, 4])])
        elif kind < 5:
            with open(name + b".f", "wb") as file:
                file.write(b"x" * numbers.randrange(50))
        elif kind == 5:
            shutil.rmtree(name)
        elif kind < 9:
            os.rename(numbers.choice(movable), name)
        elif kind == 9:
            libc.renameat2(AT_FDCWD, numbers.choice(movable), AT_FDCWD, numbers.choice(movable), RENAME_EXCHANGE)
        elif kind == 10:
            os.chmod(name, numbers.choice([0o755, 0o700]))
        else:
            os.unlink(name + b".f")
    except OSError:
        pass


def differences(watcher):
    count = 0
    for root, known in zip(watcher.roots, watcher.known):
        true = dict(everything(root))
        for path in sorted(set(true) | set(known)):
            if true.get(path) != known.get(path):
                count += 1
                print(f"{root} {path}: is {true.get(path)}, known as {known.get(path)}")
    return count


def stress(program, seed, seconds, base):
    numbers = random.Random(seed)
    roots, outside = [base + b"/A", base + b"/B"], base + b"/out"
    for place in roots + [outside]:
        os.mkdir(place)
    watcher = Watcher(program, roots)
    end, changes = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(numbers.choice([1, 5, 50])):
            change(numbers, roots + [outside])
            changes += 1
        watcher.take(numbers.choice([0, 0, 0.02]))
    watcher.take(2)
    wrong = differences(watcher)
    for root in roots:
        for directory, _, _ in os.walk(root):
            open(directory + b"/probe", "wb").close()
    watcher.take(2)
    wrong += differences(watcher)
    status = watcher.end()
    print(f"watch stress: seed {seed}, {changes} changes, {watcher.overflows} overflows, {wrong} differences, "
          f"status {status}")
    return wrong == 0 and status == 0


def measure(program, count, base):
    os.mkdir(base + b"/big")
    made = 1
    while made < count:
        directory = base + b"/big/%03d" % (made // 1000)
        os.mkdir(directory)
        made += 1
        for number in range(min(999, count - made)):
            os.mkdir(directory + b"/%03d" % number)
            made += 1
    start = time.monotonic()
    process = subprocess.Popen([program, base + b"/big"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said = b""
    while b"ready" not in said or not said.endswith(b"\0"):
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece or b"blind" in piece:
            raise SystemExit(f"tarn-watch said {said + piece}")
        said += piece
    seconds = time.monotonic() - start
    with open(f"/proc/{process.pid}/status") as file:
        memory = next(line.split(":")[1].strip() for line in file if line.startswith("VmRSS"))
    process.stdin.close()
    seen = said.split(b"ready ")[-1].split(b"\0")[0].split()[-1].decode()
    print(f"watch stress: {seen} directories watched after {seconds:.2f} s, {memory} resident")
    return process.wait(120) == 0


def self_test(base):
    """A program that says that it sees, and then nothing."""
    mute = base + b"/mute"
    with open(mute, "w") as file:
        file.write("#!/bin/sh\nprintf 'tree 0 \\0ready 0 1\\0tree 1 \\0ready 1 1\\0'\nwhile read -r line; do :; done\n")
    os.chmod(mute, 0o755)
    is_found = not stress(os.fsdecode(mute), 1, 1, base)
    print("watch stress: a mute program was found out" if is_found else "watch stress: a mute program passed")
    return is_found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watch", required="--self-test" not in sys.argv)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--directories", type=int)
    options = parser.parse_args()
    base = tempfile.mkdtemp(prefix="tarn-watch-stress-").encode()
    try:
        if options.self_test:
            return self_test(base)
        if options.directories:
            return measure(options.watch, options.directories, base)
        return stress(options.watch, options.seed, options.seconds, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
