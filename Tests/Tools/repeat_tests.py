#!/usr/bin/env python3
"""Runs the Swift tests again and again on a machine that is kept busy, to find those that look too early.

    repeat_tests.py --log FILE [--units 20] [--end-to-end 5] [--only TARGET] [--scratch-path PATH] [--filter FILTER] [--release]
                    [--at-once N]

Each target is run --units times (EndToEndTests --end-to-end times) beside a process for each core that never rests, and as often on
one core (taskset). With --at-once 2, two targets run at a time: each on a core of its own, or both beside those processes. Tests have to be built before: swift build --build-tests. Those of packaging/test take a third of the time:
--release --scratch-path .build-tests.

The log begins with a line of JSON that has the SHA-256 of the tests and of the program beside them, which other builds must not
add to. Then it has a line for each run: target, filter, mode, number, tests, failed (each test with its first issue), seconds. Runs
that it has are not made again, so that a stopped script goes on where it was. A line for each test that failed ends the output,
then `repeat: N runs, T tests, F failures`; ends with 1 on a failure, and with 2 for the log of another build.
"""
import argparse
import collections
import hashlib
import itertools
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

import report_tests

TESTS = pathlib.Path(__file__).resolve().parent.parent
TARGETS = sorted(path.name for path in TESTS.glob("*Tests"))
MODES = ("busy", "one-core")
LIMIT = 3600  # Seconds for one run.


class Load:
    """A process for each core that never rests; none on one core."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        self.processes = [] if self.mode == "one-core" else [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


class Runs:
    """Runs of tests, some at a time. The end of the block kills those that still run."""

    def __init__(self, at_once):
        self.pool = ThreadPoolExecutor(at_once)
        self.cores = queue.SimpleQueue()
        self.processes = set()
        for core in range(at_once):
            self.cores.put(core % (os.cpu_count() or 1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in list(self.processes):
            process.kill()
        self.pool.shutdown(cancel_futures=True)

    def start(self, command, mode):
        return self.pool.submit(self.run, command, mode)

    def run(self, command, mode):
        """(tests, {test: first issue}, seconds) of one run."""
        core = self.cores.get()
        try:
            prefix = ["taskset", "-c", str(core)] if mode == "one-core" else []
            return run([*prefix, *command], self.processes)
        finally:
            self.cores.put(core)


def run(command, processes):
    """(tests, {test: first issue}, seconds) of one run, which is one of the processes until it ends."""
    with tempfile.TemporaryDirectory() as directory:
        events = os.path.join(directory, "events")
        begin = time.monotonic()
        process = subprocess.Popen([*command, "--event-stream-output-path", events], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        processes.add(process)
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        processes.discard(process)
        seconds = time.monotonic() - begin
        result = report_tests.Run()
        if os.path.exists(events):
            with open(events, encoding="utf-8", errors="replace") as stream:
                result.read(stream)
    failed = {name: (test.get("issues") or ["it did not end"])[0] for name, test in result.tests.items()
              if test.get("state") not in ("passed", "skipped")}
    if result.untested:
        failed["no test"] = result.untested[0]
    if status != 0 and not failed:
        failed = {"the run": f"ended with {status}"}
    if not result.tests:
        failed = {"the run": "no test ran"}
    return len(result.tests), failed, seconds


def plan(arguments):
    """Round by round, so that a script that was stopped has seen all targets about as often."""
    targets = arguments.only or TARGETS
    for number in range(1, max(arguments.units, arguments.end_to_end) + 1):
        for mode in MODES:
            for target in targets:
                if number <= (arguments.end_to_end if target == "EndToEndTests" else arguments.units):
                    yield target, mode, number


def digest_of(paths):
    """SHA-256 over the files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as stream:
            while piece := stream.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def read_log(path, build):
    """{key: entry} of the runs that the log has. A last line that a kill cut off is taken out, and its run made again.

    None when the log is of another build; a new one gets its first line."""
    with open(path, "a+b") as stream:
        stream.seek(0)
        whole = stream.read()
        kept = whole[:whole.rfind(b"\n") + 1]
        stream.truncate(len(kept))
        if not kept:
            stream.write(json.dumps({"build": build}).encode() + b"\n")
            return {}
    header, *lines = [json.loads(line) for line in kept.decode().splitlines()]
    if header.get("build") != build:
        return None
    return {(entry["target"], entry["filter"], entry["mode"], entry["number"]): entry for entry in lines}


def self_test():
    """The log of another build, and one from before there was a first line, are refused; what a kill cut off is taken out.

    An issue that belongs to no test is told."""
    entry = {"target": "T", "filter": "", "mode": "busy", "number": 1, "tests": 3, "failed": {}, "seconds": 0.1}
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        assert read_log(log, "a") == {} and read_log(log, "a") == {}
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + '\n{"target": "T"')
        assert read_log(log, "a") == {("T", "", "busy", 1): entry} == read_log(log, "a")
        assert read_log(log, "b") is None and len(read_log(log, "a")) == 1
        with open(log, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
        assert read_log(log, "a") is None
    test = {"kind": "test", "payload": {"id": "T.S/a()/F.swift:1:1", "kind": "function"}}
    ended = {"kind": "event", "payload": {"kind": "testEnded", "testID": "T.S/a()/F.swift:1:1", "messages": [{"symbol": "pass"}]}}
    stray = {"kind": "event", "payload": {"kind": "issueRecorded", "messages": [{"symbol": "fail", "text": "3 == 4"}],
                                          "issue": {"sourceLocation": {"fileID": "T/F.swift", "line": 9}}}}
    events = "\n".join(json.dumps(line) for line in (test, ended, stray))
    # `run` appends the option and the path of the events.
    with Runs(2) as runs:
        begun = [runs.start(["bash", "-c", 'printf "%s\\n" "$0" >"$2"; exit 1', events], mode) for mode in MODES]
        for one in begun:
            tests, failed, _ = one.result()
            assert (tests, failed) == (1, {"no test": "F.swift:9: 3 == 4"}), failed
    begin = time.monotonic()
    with Runs(1) as runs:
        endless = runs.start(["bash", "-c", "exec sleep 600"], "busy")
        while not runs.processes:
            time.sleep(0.01)
    assert endless.result()[1] and time.monotonic() - begin < 300
    print("repeat_tests.py: the log of another build is refused, and an issue of no test is told")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # nohup ignores it, and the programs that the tests start would, too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log")
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--end-to-end", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only", action="append")
    parser.add_argument("--filter", default="", help="suites or tests of the targets, as a regular expression")
    parser.add_argument("--scratch-path", default=".build")
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.log:
        parser.error("--log FILE is missing")
    # Not through `swift test`: SwiftPM's own database is for one at a time.
    program = os.path.join(arguments.scratch_path, "release" if arguments.release else "debug", "tarnPackageTests.xctest")
    # The program that the end-to-end tests try: TARN_BINARY, or the one beside them.
    tarn = os.environ.get("TARN_BINARY") or os.path.join(os.path.dirname(program), "tarn")
    done = read_log(arguments.log, digest_of(path for path in (program, tarn) if os.path.exists(path)))
    if done is None:
        print(f"repeat: {arguments.log} is of another build, whose runs prove nothing for this one; to begin anew, remove it or "
              "give another --log", file=sys.stderr)
        return 2
    for (mode, number), targets in itertools.groupby(plan(arguments), lambda one: one[1:]):
        missing = [target for target, _, _ in targets if (target, arguments.filter, mode, number) not in done]
        if not missing:
            continue
        with Load(mode), Runs(arguments.at_once) as runs:
            begun = {runs.start([program, "--testing-library", "swift-testing", "--filter", f"^{target}\\.{arguments.filter}"],
                                mode): target for target in missing}
            for one in as_completed(begun):
                target, (tests, failed, seconds) = begun[one], one.result()
                entry = {"target": target, "filter": arguments.filter, "mode": mode, "number": number, "tests": tests,
                         "failed": failed, "seconds": round(seconds, 1)}
                done[target, arguments.filter, mode, number] = entry
                with open(arguments.log, "a", encoding="utf-8") as stream:
                    stream.write(json.dumps(entry) + "\n")
                print(f"{target} {mode} {number}: {tests} tests, {len(failed)} failed, {seconds:.0f} s", flush=True)
    failures = collections.Counter()
    for entry in done.values():
        for name, issue in entry["failed"].items():
            failures[name] += 1
            print(f"  {entry['target']} {entry['mode']} {entry['number']}: {name}: {issue}")
    print(f"repeat: {len(done)} runs, {sum(entry['tests'] for entry in done.values())} tests, {sum(failures.values())} failures")
    return 1 if failures or not done else 0


if __name__ == "__main__":
    sys.exit(main())
