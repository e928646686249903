#!/usr/bin/env python3
"""Swaps names of a mirror for symbolic links that lead out of it, while passes of Tarn publish under them.

A program in a tight loop exchanges (renameat2, RENAME_EXCHANGE) each name with a link beside it: directories that
files are published under (dir, dir/deep), files (leaf), and with --inner Tarn's own .tarn/partial and .tarn/trash.
Every link leads into a canary directory that has the same names in it. Meanwhile passes run in two folders, one of
them with --delete; the feed changes with every pass, files vanish and have to be restored. In the end: the canaries
are what they were, no file that the server ever sent lies outside the folders, what lies in them is whole, and,
the swapper gone, one pass converges.

  swap_grid.py --tarn BINARY [--swaps N] [--passes N]    until both numbers are reached
  swap_grid.py --self-test                               shows that a careless mirror is found out
"""
import argparse
import collections
import ctypes
import hashlib
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import check_tree
import loopback_server

EXCHANGE, AT_FDCWD, ENOENT = 2, -100, 2
LIMIT = 60  # Seconds for one pass.
FILES = 40


def swap_for_ever(pairs, counters):
    """Exchanges each pair in turn; counts what succeeded. The process ends by a signal."""
    libc = ctypes.CDLL(None, use_errno=True)
    pairs = [(os.fsencode(first), os.fsencode(second)) for first, second in pairs]
    done = failed = 0
    while True:
        for first, second in pairs:
            if libc.renameat2(AT_FDCWD, first, AT_FDCWD, second, EXCHANGE) == 0:
                done += 1
            else:
                failed += 1
        struct.pack_into("QQ", counters, 0, done, failed)


class Swapper:
    """A process of its own."""

    def __init__(self, pairs):
        self.counters = mmap.mmap(-1, 16)
        self.process = os.fork()
        if self.process == 0:
            try:
                swap_for_ever(pairs, self.counters)
            finally:
                os._exit(1)

    @property
    def swaps(self):
        return struct.unpack_from("Q", self.counters, 0)[0]

    def stop(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        return self.swaps


# --- the feed ---------------------------------------------------------------------------------------------------
class Feed:
    """Files under every name that is swapped, another version of most of them with each turn."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.files = {}
        self.bodies = {}
        self.sent = set()
        self.gone = []
        self.turn()

    def names(self):
        for number in range(FILES):
            yield ("dir/f%d", "dir/deep/f%d", "plain/f%d", "leaf%d")[number % 4] % (number // 4)

    def turn(self):
        """The next version: one in four changed, one or two gone, what was gone before there again."""
        for name in self.names():
            if name not in self.files or self.random.random() < 0.25:
                size = self.random.choice([1, 100, 5_000, 70_000])
                self.files[name] = self.random.randbytes(size)
        self.gone = self.random.sample(list(self.names()), 2)
        files = {name: body for name, body in self.files.items() if name not in self.gone}
        self.bodies = {f"/{name}": body for name, body in files.items()}
        for name, body in files.items():
            self.sent.add(hashlib.sha256(body).digest())
        rows = [{"header": {"format": "mirror-manifest/1"}}]
        rows += [{"path": name, "size": len(body), "hashes": {"sha-256": hashlib.sha256(body).hexdigest()}}
                 for name, body in files.items()]
        rows.append({"end": {"files": len(files)}})
        self.bodies["/list"] = "".join(json.dumps(row) + "\n" for row in rows).encode()

    def body_of(self, path):
        return self.bodies.get(path)


# --- the world --------------------------------------------------------------------------------------------------
class World:
    """world/mirror beside world/canary, which holds every name of the feed and of Tarn's own directory."""

    def __init__(self, directory, feed, url, words=()):
        self.root = directory
        self.folder = os.path.join(directory, "mirror")
        self.canary = os.path.join(directory, "canary")
        self.feed, self.url, self.words = feed, url, list(words)
        os.makedirs(self.folder)
        for name in [*feed.names(), "x", "partial/x", "trash/x"]:
            for place in (name, os.path.basename(name)):
                path = os.path.join(self.canary, place)
                if not os.path.lexists(path):
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, "wb") as stream:
                        stream.write(b"sing " + name.encode())
        self.before = check_tree.canary_of(self.canary)
        self.passes, self.disturbed, self.placed, self.faults = 0, 0, 0, []
        self.targets, self.replaced = {}, 0
        self.codes = collections.Counter()

    def run(self, tarn, words=()):
        environment = {**os.environ, "HOME": self.root, "XDG_STATE_HOME": self.root + "/state",
                       "NO_COLOR": "1"}
        return subprocess.run([*tarn, "sync", self.url + "/list", self.folder, "--json", "--retries", "0", *self.words, *words],
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT, check=False)

    def make_links(self, is_inner):
        """The names that are swapped, each with its link beside it; all in the folder, so that nothing of it ever lies
        outside."""
        pairs = []
        targets = {"dir": "", "dir/deep": "dir/deep", "plain": "plain", "leaf0": "leaf0", "leaf1": "leaf1"}
        if is_inner:
            targets.update({".tarn/partial": "partial", ".tarn/trash": "trash"})
        for name, target in targets.items():
            # A pass does not even begin while a link stands for a directory of Tarn's own: there and back at once.
            times = 2 if name.startswith(".tarn") else 1
            link = os.path.join(self.folder, name + ".link")
            self.targets[name] = os.path.join(self.canary, target)
            os.symlink(self.targets[name], link)
            pairs += [(os.path.join(self.folder, name), link)] * times
        return pairs

    def one_pass(self, tarn, random_source):
        self.vanish(random_source)
        try:
            done = self.run(tarn)
        except subprocess.TimeoutExpired:
            self.faults.append(f"I9 a pass did not end in {LIMIT} s")
            return
        self.passes += 1
        self.account(done.stdout)
        self.disturbed += done.returncode != 0
        # In sync, partial, or a folder that is not fit for a pass just now: anything else is a defect.
        if done.returncode not in (0, 3, 73, 74, 77):
            self.faults.append(f"I10 a pass ended with {done.returncode}: {done.stdout[-400:]!r}")

    def account(self, output):
        """What a pass placed and what stood in its way, from the last line that is a summary."""
        for line in output.splitlines():
            if line.startswith(b'{') and b'"summary"' in line:
                summary = json.loads(line)
                counts = summary["counts"]
                self.placed += sum(counts.get(name, 0) for name in ("fetched", "updated", "restored", "copied"))
                self.codes.update(problem["code"] for problem in summary.get("problems", []))

    def vanish(self, random_source):
        """The user removes some files, wherever they are just now; never through a link."""
        for name in random_source.sample([n for n in self.feed.names() if n not in ("leaf0", "leaf1")], 4):
            parent, leaf = os.path.split(os.path.join(self.folder, name))
            try:
                descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError:
                continue
            try:
                # The parent of `dir/deep` may have been a link: only what lies in the folder is removed.
                here = os.readlink(f"/proc/self/fd/{descriptor}")
                if here.startswith(self.folder + "/") or here == self.folder:
                    os.unlink(leaf, dir_fd=descriptor)
            except OSError:
                pass
            finally:
                os.close(descriptor)

    def put_back(self, pairs):
        """Names are what they were, links are gone; parents first."""
        for name, link in pairs:
            if os.path.islink(name):
                os.unlink(name)
                if os.path.lexists(link):
                    os.rename(link, name)
            elif os.path.islink(link):
                os.unlink(link)
        for name, link in dict.fromkeys(pairs):
            if os.path.lexists(link) and not self.was_replaced(name):
                self.faults.append(f"two things are called {name}")

    def was_replaced(self, name):
        """A link that stood still for a whole pass is a local change like others: it is in the trash, the file in its place,
        and what the swapper hid beside it is the user's."""
        relative = os.path.relpath(name, self.folder)
        target = self.targets[relative]
        for parent, directories, files in os.walk(os.path.join(self.folder, ".tarn", "trash")):
            for leaf in directories + files:
                path = os.path.join(parent, leaf)
                if os.path.islink(path) and os.readlink(path) == target:
                    self.replaced += 1
                    return not relative.startswith(".tarn")
        return False

    def clear(self):
        """The user moves every file away: what the swapper hid may stand in the way by now, as nobody's file."""
        for _, full, _ in check_tree.regular_files(os.fsencode(self.folder)):
            os.unlink(full)

    def converge(self, tarn):
        last = self.run(tarn)
        if last.returncode not in (0, 3):
            self.faults.append(f"I6 after the last swap: {last.returncode} {last.stdout[-600:]!r}")
        self.clear()
        for _ in range(2):
            last = self.run(tarn)
        if last.returncode != 0:
            self.faults.append(f"I6 does not converge: {last.returncode} {last.stdout[-600:]!r}")
        for name, body in self.feed.bodies.items():
            path = self.folder + name
            if name != "/list" and (not os.path.isfile(path) or open(path, "rb").read() != body):
                self.faults.append(f"I6 {name} is not what the feed says")

    def check(self):
        violations = list(self.faults)
        if check_tree.canary_of(self.canary) != self.before:
            violations.append("I5 the canary changed")
        for parent, directories, files in os.walk(self.root):
            if parent == self.root:
                directories.remove("mirror")
            for name in files:
                path = os.path.join(parent, name)
                if not os.path.islink(path) and hashlib.sha256(open(path, "rb").read()).digest() in self.feed.sent:
                    violations.append(f"I5 a file of the mirror lies outside: {path}")
        for relative, full, status in check_tree.regular_files(os.fsencode(self.folder)):
            if os.path.islink(full):
                continue
            if hashlib.sha256(open(full, "rb").read()).digest() not in self.feed.sent:
                violations.append(f"I1 {relative!r} is nothing that was ever sent")
        return violations


def grid(tarn, swaps_wanted, passes_wanted, is_inner, seed, words=()):
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tarn-swap-grid.") as scratch:
        worlds, servers = [], []
        for number, extra in enumerate([[], ["--delete"]]):
            feed = Feed(seed + number)
            server, url = loopback_server.serve(feed.body_of)
            servers.append(server)
            worlds.append(World(os.path.join(scratch, f"world{number}"), feed, url, [*extra, *words]))
        for world in worlds:
            first = world.run(tarn)
            if first.returncode != 0:
                raise SystemExit(f"swap grid: the first pass ended with {first.returncode}: {first.stdout!r}")
        pairs = [world.make_links(is_inner) for world in worlds]
        swappers = [Swapper(each) for each in pairs]
        is_over = threading.Event()

        def lane(world, number):
            source = random.Random(seed + 10 + number)
            while not is_over.is_set():
                world.feed.turn()
                world.one_pass(tarn, source)

        lanes = [threading.Thread(target=lane, args=(world, number)) for number, world in enumerate(worlds)]
        for each in lanes:
            each.start()
        while sum(s.swaps for s in swappers) < swaps_wanted or sum(w.passes for w in worlds) < passes_wanted:
            time.sleep(0.05)
            if any(len(world.faults) > 20 for world in worlds):
                break
        is_over.set()
        for each in lanes:
            each.join()
        swaps = sum(swapper.stop() for swapper in swappers)
        violations = []
        for world, each in zip(worlds, pairs):
            world.put_back(each)
            world.converge(tarn)
            violations += world.check()
        for server in servers:
            server.shutdown()
        for violation in violations[:20]:
            print("VIOLATION", violation)
        codes = sum((world.codes for world in worlds), collections.Counter())
        print("met: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))
        print(f"swap grid: {swaps} swaps of {sum(len(set(each)) for each in pairs)} names, {sum(w.passes for w in worlds)} passes, "
              f"{sum(w.disturbed for w in worlds)} of them met one, {sum(w.placed for w in worlds)} files placed, {sum(w.replaced for w in worlds)} links replaced, violations {len(violations)}, "
              f"{time.monotonic() - started:.0f} s")
        return not violations and sum(w.disturbed for w in worlds) > 0


CARELESS = """
import hashlib, json, os, sys, urllib.request
get = lambda url: urllib.request.urlopen(url).read()
url, folder = sys.argv[2], sys.argv[3]
for line in get(url).splitlines():
    row = json.loads(line)
    if "path" not in row: continue
    path = os.path.join(folder, row["path"])
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(os.path.dirname(path)) or os.path.islink(path): continue
        body = get(url[:-4] + row["path"])
        with open(path + ".part", "wb") as stream: stream.write(body)
        os.replace(path + ".part", path)
    except (OSError, ValueError): pass
"""


def self_test():
    """A mirror that looks for links first and then goes by path has to be found out."""
    with tempfile.TemporaryDirectory(prefix="tarn-swap-grid.") as scratch:
        program = os.path.join(scratch, "careless.py")
        with open(program, "w", encoding="ascii") as stream:
            stream.write(CARELESS)
        output = os.path.join(scratch, "output")
        child = os.fork()
        if child == 0:
            with open(output, "w", encoding="utf-8") as stream:
                os.dup2(stream.fileno(), 1)
                sys.stdout = stream
                try:
                    grid([sys.executable, program], 1000, 6, False, 5)
                finally:
                    stream.flush()
                    os._exit(0)
        os.waitpid(child, 0)
        with open(output, encoding="utf-8") as stream:
            text = stream.read()
        assert "I5" in text, f"a careless mirror passes: {text}"
    print("swap_grid.py: a mirror that looks first and then goes by path is found out")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", metavar="BINARY")
    parser.add_argument("--swaps", type=int, default=20_000)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--inner", action="store_true", help="swap .tarn/partial and .tarn/trash, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    is_good = grid([os.path.abspath(arguments.tarn)], arguments.swaps, arguments.passes, arguments.inner,
                   arguments.seed)
    return sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
