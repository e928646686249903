#!/usr/bin/env python3
"""Kills `tarn get` at many of its system calls, or cuts the power there, and checks what is left.

A session's ledger and its partial files are those of `tarn get`; agent_grid.py does the same to the agent's. One run is traced,
and at points spread evenly over it the run is held still right before the call. Then it is killed with SIGKILL; or,
with --file-system, the image that it ran on is copied, and the copy judged. Scenarios: `fresh` (30 files), `resume`
(one of 32 MiB, killed in its middle before), `replace` (files stand there that new ones take the place of).

What is judged: a file under a final name is the new one or the one that stood there, whole; what the run had told as
finished is there; no hidden file but partial files. The same command then ends with 0 within three runs, leaves exactly
the wanted files and no record, and fetches nothing again that had been told as finished, and 1 MiB at most of what had
come.

`session grid: WHAT reached X/Y, violations Z`; ends with 1 on a violation, or when fewer than nine in ten were reached.
"""
import argparse
import glob
import json
import os
import random
import shutil
import sys
import tempfile
import urllib.parse
import uuid

import bench
import point_runs
import power_grid

SCENARIOS = ["fresh", "resume", "replace"]
LEAST_WASTE = 1 << 20


class Scenario:
    """What is upstream; the same bytes for the same seed."""

    def __init__(self, name, seed, scratch):
        chooser = random.Random(seed)
        self.name, self.status, self.options = name, 0, []
        if name == "resume":
            self.files = {"large.bin": chooser.randbytes(32 << 20), "small.bin": chooser.randbytes(5000)}
        else:
            self.files = {f"dir{n % 3}/file {n:02}.bin": chooser.randbytes(chooser.choice([0, 700, 5000, 90_000, 3 << 20]))
                          for n in range(30)}
        self.wanted = {os.path.basename(path): data for path, data in self.files.items()}
        self.old = {name: b"it stood there: " + name.encode() for name in sorted(self.wanted)[::2]} \
            if name == "replace" else {}
        self.first = os.path.join(scratch, "upstream")
        bench.publish(self.first, self.files)


class SessionWorker(bench.Worker):
    """Runs `tarn get`; `folder` is where both the files and the records are."""

    def __init__(self, tarn, scenario, scratch, kind=None):
        super().__init__(tarn, scenario, scratch)
        self.label = f"{kind or 'kill'}, {scenario.name}"
        self.disk = power_grid.Disk(kind, self.directory) if kind else None
        self.said, self.boot = (os.path.join(self.directory, name) for name in ("said", "boot"))
        self.server.turn_to(scenario.first)
        self.list = os.path.join(self.directory, "list")
        with open(self.list, "w", encoding="utf-8") as stream:
            for path in sorted(scenario.files):
                stream.write(f"http://127.0.0.1:{self.server.port}/{urllib.parse.quote(path)}\n")

    def command(self, folder):
        return [self.tarn, "get", "-i", self.list, "--to", os.path.join(folder, "out") + "/", "--existing", "replace", "--json"]

    def new_folder(self):
        if self.disk:
            self.disk.renew()
            folder = self.disk.place
        else:
            folder = os.path.join(self.directory, "place")
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
        self.environment["XDG_STATE_HOME"] = os.path.join(folder, "state")
        os.mkdir(os.path.join(folder, "out"))
        for name, data in self.scenario.old.items():
            with open(os.path.join(folder, "out", name), "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        for directory in (os.path.join(folder, "out"), folder):
            number = os.open(directory, os.O_RDONLY)
            os.fsync(number)
            os.close(number)
        return folder

    def prepare(self):
        if self.scenario.name == "resume" and self.middle is None:
            self.middle = self.find_middle(self.new_folder())
        folder = self.new_folder()
        if self.scenario.name == "resume":
            self.kill(folder, self.middle)
        return folder

    def find_middle(self, folder):
        calls = [call for call in self.trace(folder) if ".part" in (call.descriptor or "") and "write" in call.name]
        counts, points = {}, []
        for call in calls:
            counts[call.thread, call.name] = counts.get((call.thread, call.name), 0) + 1
            points.append((call.name, counts[call.thread, call.name]))
        if not points:
            raise SystemExit("no write to a partial file was seen")
        return points[len(points) // 2]

    def judge(self, folder, told, is_final):
        """Violations of what lies there."""
        found, out = [], os.path.join(folder, "out")
        names = set(os.listdir(out))
        for name in names:
            if name.startswith("."):
                if is_final or not (name.startswith(".tarn-get-") and name.endswith(".part")):
                    found.append(f"{name} lies there")
                continue
            with open(os.path.join(out, name), "rb") as stream:
                data = stream.read()
            allowed = [self.scenario.wanted.get(name)] + ([] if is_final or name in told else [self.scenario.old.get(name)])
            if data not in allowed:
                found.append(f"I1 {name} has {len(data)} bytes that are neither the new nor the old ones")
        missing = (set(self.scenario.wanted) if is_final else set(told) | set(self.scenario.old)) - names
        found += [f"I4 {name} is not there" for name in sorted(missing)]
        records = os.path.join(folder, "state", "tarn", "get")
        if is_final and os.path.isdir(records) and os.listdir(records):
            found.append(f"a record stays: {os.listdir(records)}")
        return found

    def told(self):
        """Names that the run had printed as finished."""
        names = []
        with open(self.said, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                task = json.loads(line) if line.endswith("\n") else {}
                if task.get("state") == "finished":
                    names.append(os.path.basename(task["path"]))
        return names

    def kept(self, folder):
        out = os.path.join(folder, "out")
        return max((os.lstat(os.path.join(out, name)).st_size for name in os.listdir(out) if name.endswith(".part")), default=0)

    def examine(self, point):
        """One point: (reached, violations)."""
        folder = self.prepare()
        with open(self.said, "wb") as output:
            frozen = bench.Frozen(self, folder, point, output)
            try:
                reached = frozen.wait()
                if self.disk:
                    self.disk.cut()
            finally:
                frozen.kill()
        prefix = []
        if self.disk:
            self.disk.unmount()
            self.disk.mount(self.disk.copy)
            with open(self.boot, "w", encoding="ascii") as stream:
                stream.write(f"{uuid.uuid4()}\n")
            prefix = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {power_grid.BOOT_ID} && exec "$@"', self.boot]
        told, kept = self.told(), self.kept(folder)
        has_record = bool(glob.glob(os.path.join(folder, "state/tarn/get/*/ledger.sqlite")))
        found = [f"after it: {text}" for text in self.judge(folder, told, is_final=False)]
        marker = self.server.marker()
        for _ in range(3):
            result = self.run(folder, prefix)
            if result.returncode == 0:
                break
        else:
            found.append(f"I6 three runs, and the last ended with {result.returncode}: {bench.last_words(result)}")
        bodies = self.server.bodies_between(marker, self.server.marker())
        # Without a record the run was over: the same command asks for the files anew.
        found += [f"I3 {path} had been told as finished and was fetched again"
                  for path, _ in bodies if has_record and os.path.basename(urllib.parse.unquote(path)) in told]
        largest = max(len(data) for data in self.scenario.wanted.values())
        again = sum(count for path, count in bodies if path.endswith("large.bin"))
        if not self.disk and kept and again > largest - kept + LEAST_WASTE:
            found.append(f"I3 {again} bytes of large.bin came, and {kept} of {largest} were there")
        found += [f"in the end: {text}" for text in self.judge(folder, [], is_final=True)]
        if self.disk:
            self.disk.unmount()
        return reached, [f"{point[0]} #{point[1]}: {text}" for text in found]

    def stop(self):
        super().stop()
        if self.disk:
            self.disk.unmount()


def grid(arguments, scenario, worker, kind, scratch):
    """True when nothing was violated.

    - worker: the class of those that run what is under test."""
    workers = []
    try:
        for _ in range(arguments.jobs):
            workers.append(worker(arguments.tarn, scenario, scratch, kind))
        every = point_runs.common(workers[0].points)
        chosen = bench.spread(every, arguments.points)
        for other in workers[1:]:
            other.middle = workers[0].middle
        results = point_runs.examine_all(workers, chosen, worker.examine)
        absent = point_runs.tell_unreached(results, scenario.name, workers[0].points)
    finally:
        for made in workers:
            made.stop()
    violations = sum(len(texts) for _, _, texts in results)
    reached = sum(1 for _, hit, _ in results if hit)
    print(f"session grid: {kind or 'kill'}, {scenario.name}: of {len(every)} calls reached {reached}/{len(chosen)}, "
          f"violations {violations}", flush=True)
    return not violations and reached * 10 >= (len(chosen) - absent) * 9 and len(chosen) >= min(arguments.points, len(every), 1)


def downloads(arguments, name, kind):
    """The grid of `tarn get`."""
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-session-grid."))
    try:
        return grid(arguments, Scenario(name, arguments.seed, scratch), SessionWorker, kind, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


SIN = """#!/usr/bin/env python3
import os, shutil, sys, urllib.request, json
words = dict(zip(sys.argv[2:], sys.argv[3:]))
for url in open(words["-i"]).read().split():
    path = words["--to"] + os.path.basename(urllib.parse.unquote(url))
    with open(path, "wb") as stream, urllib.request.urlopen(url) as answer:
        shutil.copyfileobj(answer, stream, 4096)
    print(json.dumps({"state": "finished", "path": path}), flush=True)
"""


def self_test(arguments):
    """A program that writes under final names is found out."""
    scratch = tempfile.mkdtemp(prefix="tarn-session-grid.")
    try:
        arguments.tarn = os.path.join(scratch, "toy")
        with open(arguments.tarn, "w", encoding="utf-8") as stream:
            stream.write(SIN.replace("import os,", "import urllib.parse, os,"))
        os.chmod(arguments.tarn, 0o755)
        arguments.points = 6
        return not downloads(arguments, "fresh", None)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="repeatable; all without it")
    parser.add_argument("--file-system", choices=list(power_grid.DISKS), help="cut the power there instead")
    parser.add_argument("--points", type=int, default=20, help="of each scenario")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = bench.find_tarn(arguments.tarn)
    if arguments.file_system:
        reason = power_grid.obstacle(argparse.Namespace(file_system=[arguments.file_system]))
        if reason:
            print(f"session grid: skipped: {reason}")
            sys.exit(0)
    if arguments.self_test:
        sys.exit(0 if self_test(arguments) else 1)
    good = [downloads(arguments, name, arguments.file_system) for name in arguments.scenario or SCENARIOS]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
