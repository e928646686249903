#!/usr/bin/env python3
"""Kills a pass of Tarn at many system calls, one run for each, and checks what every kill leaves behind.

1. One pass is traced: every system call that changes the disk is a point, written as (call, n).
2. For points spread evenly over the pass: the same pass again, killed with SIGKILL right before that call takes
   effect (strace counts per thread, so n is the n-th of its thread); check_tree.py judges the folder; passes run
   until one ends with 0, at most three; the checker judges again, strictly; one more pass has to fetch no body.
3. `kill grid: reached X/Y, violations Z`; ends with 1 on a violation, or when fewer than nine in ten were reached.

Scenarios: fresh (an empty folder), update (half of the files changed upstream, one edited by the user), resume (a
large file half there), delete (two files gone upstream, --delete). The server is a real nginx; the bodies that were
sent are counted from its log. --order checks the order of the durable steps with trace_order.py instead.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import queue
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import check_tree
import trace_order

# write, openat and openat2 are traced whole, since strace's count is over all of them; only those that touch the
# folder are points.
CALLS = ["openat", "openat2", "write", "pwrite64", "writev", "pwritev", "pwritev2", "copy_file_range", "sendfile",
         "fsync", "fdatasync", "syncfs", "sync_file_range", "ftruncate", "fallocate", "rename", "renameat",
         "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "symlinkat", "utimensat",
         "fchmod", "fchmodat", "fchown", "fsetxattr"]
LIMIT = 90  # Seconds for one pass, traced or not.


class Server:
    """An nginx of its own, one process, whose document root is a link that can be turned to another version."""

    def __init__(self, directory):
        self.directory = directory
        self.root = os.path.join(directory, "current")
        self.log = os.path.join(directory, "access.log")
        for _ in range(10):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            if self.start():
                return
        raise SystemExit("nginx did not start")

    def start(self):
        temporary = " ".join(f"{kind}_temp_path {self.directory}/{kind};"
                             for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration = f"""daemon off; master_process off; pid {self.directory}/nginx.pid;
error_log {self.directory}/error.log warn; events {{ worker_connections 512; }}
http {{ default_type application/octet-stream; {temporary}
log_format plain '$status $body_bytes_sent $request_method $request_uri';
access_log {self.log} plain;
server {{ listen 127.0.0.1:{self.port}; root {self.root}; }} }}"""
        with open(os.path.join(self.directory, "nginx.conf"), "w", encoding="utf-8") as stream:
            stream.write(configuration)
        self.process = subprocess.Popen(["nginx", "-p", self.directory, "-c", f"{self.directory}/nginx.conf",
                                         "-e", f"{self.directory}/error.log"])
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.02)
        self.stop()
        return False

    def turn_to(self, version):
        temporary = self.root + ".new"
        os.symlink(version, temporary)
        os.replace(temporary, self.root)

    def marker(self):
        """How much the log holds now: asks for a name of its own and waits until the log has it, so that all
        requests before it are there."""
        name = f"/{random.getrandbits(64):x}"
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(f"HEAD {name} HTTP/1.0\r\n\r\n".encode())
            while connection.recv(4096):
                pass
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with open(self.log, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
            if name in text:
                return len(text)
        raise SystemExit("the server's log does not move")

    def bodies_since(self, marker):
        """(path, bytes) of what was sent since, the feed itself aside."""
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            lines = stream.read()[marker:].splitlines()
        fields = [line.split(" ", 3) for line in lines]
        return [(f[3], int(f[1])) for f in fields
                if f[2] == "GET" and f[0] in ("200", "206") and not f[3].endswith("SHA256SUMS")]

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def identity(data):
    return [len(data), hashlib.sha256(data).hexdigest()]


def publish(directory, files):
    """Writes files and their SHA256SUMS; the paths have no characters that such a list would escape."""
    for path, data in files.items():
        full = os.path.join(directory, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as stream:
            stream.write(data)
    with open(os.path.join(directory, "SHA256SUMS"), "w", encoding="utf-8") as stream:
        for path in sorted(files):
            stream.write(f"{identity(files[path])[1]}  {path}\n")


class Scenario:
    """What is upstream first and then, what the folder goes through before the pass under test, and what may be in
    it after. The bytes are the same for the same seed."""

    def __init__(self, name, seed, scratch):
        chooser = random.Random(seed)
        self.name, self.options, self.users = name, [], []
        first = {f"dir{n % 3}/sub{n % 5}/file {n:02}.bin": chooser.randbytes(chooser.choice([0, 700, 5000, 90_000]))
                 for n in range(30)}
        if name == "resume":
            first = {f"small{n}.bin": chooser.randbytes(5000) for n in range(4)}
            first["large.bin"] = chooser.randbytes(32 << 20)
        then = dict(first)
        if name == "update":
            for path in sorted(first)[::2]:
                then[path] = chooser.randbytes(len(first[path]) + 17)
            then["new/one.bin"] = chooser.randbytes(3000)
            self.edited = sorted(first)[3]
            self.users = [[self.edited.encode().hex(), *identity(b"edited by hand\n")]]
        if name == "delete":
            self.options = ["--delete"]
            for path in sorted(first)[4:6]:
                del then[path]
        self.first, self.then = os.path.join(scratch, "first"), os.path.join(scratch, "then")
        publish(self.first, first)
        publish(self.then, then)
        self.versions, self.final = {}, {}
        for path in {**first, **then}:
            versions = [identity(files[path]) for files in (first, then) if path in files]
            self.versions[path.encode().hex()] = versions
            self.final[path.encode().hex()] = [identity(then[path])] if path in then else []


class Worker:
    """Runs passes, one at a time, against a server of its own."""

    def __init__(self, tarn, scenario, scratch):
        self.tarn, self.scenario = tarn, scenario
        self.directory = tempfile.mkdtemp(dir=scratch)
        os.mkdir(os.path.join(self.directory, "server"))
        self.server = Server(os.path.join(self.directory, "server"))
        self.state = os.path.join(self.directory, "state")
        self.home = os.path.join(self.directory, "home")
        os.mkdir(self.home)
        with open(os.path.join(self.home, "canary"), "w", encoding="utf-8") as stream:
            stream.write("sings\n")
        self.middle = None

    def command(self, folder):
        feed = f"http://127.0.0.1:{self.server.port}/SHA256SUMS"
        return [self.tarn, "sync", feed, folder, "--no-input", *self.scenario.options]

    def run(self, folder, prefix=()):
        environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LC_ALL": "C.UTF-8",
                       "XDG_STATE_HOME": self.state}
        return subprocess.run([*prefix, *self.command(folder)], env=environment, cwd=self.directory, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def new_folder(self):
        shutil.rmtree(os.path.join(self.directory, "out"), ignore_errors=True)
        folder = os.path.join(self.directory, "out", "mirror")
        os.makedirs(folder)
        return folder

    def prepare(self):
        """A new folder, brought to where the pass under test begins. Returns it."""
        folder, name = self.new_folder(), self.scenario.name
        self.server.turn_to(self.scenario.first)
        if name in ("update", "delete"):
            self.expect(self.run(folder), 0, "the first pass")
        if name == "update":
            with open(os.path.join(folder, self.scenario.edited), "wb") as stream:
                stream.write(b"edited by hand\n")
        if name == "resume":
            self.kill(folder, self.find_middle())
        self.server.turn_to(self.scenario.then)
        return folder

    def find_middle(self):
        """The point in the middle of writing the large file, from a trace of a whole pass."""
        if self.middle is None:
            folder = self.new_folder()
            calls = self.trace(folder)
            counts, points = collections.Counter(), []
            for call in calls:
                counts[call.thread, call.name] += 1
                if call.name in trace_order.WRITES and "/.tarn/partial" in (call.descriptor or ""):
                    points.append((call.name, counts[call.thread, call.name]))
            if not points:
                raise SystemExit("no write to a partial file was seen: the resume scenario cannot be made")
            self.middle = points[len(points) // 2]
        # A fresh folder again: the trace above filled one.
        shutil.rmtree(os.path.join(self.directory, "out", "mirror"), ignore_errors=True)
        os.makedirs(os.path.join(self.directory, "out", "mirror"))
        return self.middle

    @staticmethod
    def expect(result, status, what):
        if result.returncode != status:
            raise SystemExit(f"{what} ended with {result.returncode}, not {status}:\n"
                             + result.stderr.decode(errors="replace")[-2000:])

    def trace(self, folder, keep=None):
        """One whole pass under strace; its calls in the order in which they began."""
        path = keep or os.path.join(self.directory, "trace")
        result = self.run(folder, ["strace", "-f", "-y", "-qq", "-s", "256", "-e", "signal=none",
                                   "-e", "trace=" + ",".join(CALLS), "-o", path])
        self.expect(result, 0, "the traced pass")
        with open(path, encoding="utf-8", errors="replace") as stream:
            return sorted(trace_order.parse(stream), key=lambda call: call.begin)

    def kill(self, folder, point):
        """True when the pass was killed there. The pass may end before, when its threads share the work otherwise."""
        name, number = point
        result = self.run(folder, ["strace", "-f", "-qq", "-e", "signal=none", "-e", f"trace={name}", "-o", "/dev/null",
                                   "-e", f"inject={name}:signal=KILL:when={number}"])
        return result.returncode in (-9, 137)

    def points(self):
        """Every changing call of the pass under test, in its order: (call, n-th of its thread)."""
        folder = self.prepare()
        counts, points, seen = collections.Counter(), [], set()
        for call in self.trace(folder):
            counts[call.thread, call.name] += 1
            point = (call.name, counts[call.thread, call.name])
            if point not in seen and self.changes(call, folder):
                seen.add(point)
                points.append(point)
        return points

    @staticmethod
    def changes(call, folder):
        touched = (call.descriptor or "").startswith(folder) or any(p.startswith(folder) for p in call.paths())
        if call.name in ("openat", "openat2"):
            return touched and "O_CREAT" in call.raw
        return touched

    def examine(self, point):
        """One point: (reached, violations)."""
        folder = self.prepare()
        canary = {self.home: check_tree.canary_of(self.home)}
        reached = self.kill(folder, point)
        scenario, found = self.scenario, []
        _, violations = check_tree.check(folder, scenario.versions, scenario.users, canary)
        found += [f"after the kill: {text}" for text in violations]
        for _ in range(3):
            result = self.run(folder)
            if result.returncode == 0:
                break
        else:
            tail = result.stderr.decode(errors="replace").strip().splitlines()[-1:]
            found.append(f"I6 three passes, and the last ended with {result.returncode}: {tail}")
        _, violations = check_tree.check(folder, scenario.final, scenario.users, canary, final=True)
        found += [f"after convergence: {text}" for text in violations]
        marker = self.server.marker()
        self.run(folder)
        self.server.marker()
        bodies = self.server.bodies_since(marker)
        if bodies:
            found.append(f"I6 a pass over a folder in sync fetched {bodies[:3]}")
        return reached, [f"{point[0]} #{point[1]}: {text}" for text in found]

    def stop(self):
        self.server.stop()


def spread(points, wanted):
    """So many of the points, evenly; the first of each kind of call is always among them."""
    if len(points) <= wanted:
        return points
    kept = {round(index * (len(points) - 1) / max(1, wanted - 1)) for index in range(wanted)}
    kept |= {next(i for i, p in enumerate(points) if p[0] == name) for name in {p[0] for p in points}}
    return [points[index] for index in sorted(kept)]


def grid(arguments, scratch):
    scenario = Scenario(arguments.scenario, arguments.seed, scratch)
    workers = [Worker(arguments.tarn, scenario, scratch) for _ in range(arguments.jobs)]
    try:
        every = workers[0].points()
        chosen = spread(every, arguments.points)
        for worker in workers[1:]:
            worker.middle = workers[0].middle
        kinds = collections.Counter(name for name, _ in every)
        print(f"{scenario.name}: {len(every)} changing calls in a pass ({dict(kinds)}), {len(chosen)} of them are killed")
        idle = queue.SimpleQueue()
        for worker in workers:
            idle.put(worker)

        def examine(point):
            worker = idle.get()
            try:
                return worker.examine(point)
            except (SystemExit, subprocess.TimeoutExpired) as error:
                return False, [f"{point[0]} #{point[1]}: {error}"]
            finally:
                idle.put(worker)

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            results = list(pool.map(examine, chosen))
    finally:
        for worker in workers:
            worker.stop()
    violations = [text for _, texts in results for text in texts]
    reached = sum(1 for hit, _ in results if hit)
    for text in violations:
        print(text)
    for (name, number), (hit, _) in zip(chosen, results):
        if not hit:
            print(f"not reached: {name} #{number}")
    print(f"kill grid: reached {reached}/{len(chosen)}, violations {len(violations)}")
    return not violations and reached * 10 >= len(chosen) * 9 and len(chosen) >= min(arguments.points, len(every), 1)


def order(arguments, scratch):
    """The order of the durable steps, over a fresh pass and over an update."""
    good, lines = True, []
    for name in ("fresh", "update"):
        inner = os.path.join(scratch, name)
        os.mkdir(inner)
        worker = Worker(arguments.tarn, Scenario(name, arguments.seed, inner), inner)
        try:
            folder = worker.prepare()
            calls = worker.trace(folder)
        finally:
            worker.stop()
        judge = trace_order.Order(sorted(calls, key=lambda call: call.end), folder)
        for violation in judge.check():
            print(f"{name}: {violation}")
        good = good and not judge.violations and judge.counts["published"] > 0
        lines.append(f"{name}: {judge.counts['published']} published, violations {len(judge.violations)}")
    print("order: " + "; ".join(lines))
    return good


def self_test(arguments):
    """The toy of toy_mirror.py passes when it behaves, and each of its sins is found."""
    toy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toy_mirror.py")
    arguments.points = 10
    verdicts = {}
    for sin, scenario, wanted in (("", "update", True), ("torn", "update", False), ("lossy", "update", False),
                                  ("", "order", True), ("unsynced", "order", False)):
        scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-kill-grid."))
        try:
            arguments.tarn, arguments.scenario = os.path.join(scratch, "toy"), scenario
            with open(arguments.tarn, "w", encoding="utf-8") as stream:
                stream.write(f'#!/bin/sh\nTOY_SIN={sin} exec {sys.executable} -S -E {toy} "$@"\n')
            os.chmod(arguments.tarn, 0o755)
            verdict = order(arguments, scratch) if scenario == "order" else grid(arguments, scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        verdicts[f"{scenario} {sin or 'sound'}"] = verdict == wanted
    print(f"kill_grid.py: {sum(verdicts.values())} of {len(verdicts)} toys judged rightly {verdicts}")
    return all(verdicts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--scenario", choices=["fresh", "update", "resume", "delete"], default="fresh")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--order", action="store_true", help="check the order of one pass instead")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory")
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = os.path.abspath(shutil.which(arguments.tarn) or arguments.tarn)
    if not shutil.which("strace") or not shutil.which("nginx"):
        raise SystemExit("strace and nginx are needed")
    if arguments.self_test:
        sys.exit(0 if self_test(arguments) else 1)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-kill-grid."))
    try:
        good = order(arguments, scratch) if arguments.order else grid(arguments, scratch)
    finally:
        if arguments.keep:
            print(f"kept: {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
