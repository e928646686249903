#!/usr/bin/env python3
"""Lets the changing system calls of a pass fail, one in each run, and checks what every fault leaves behind.

The points are those of the kill grid. At each, the call fails with an errno that strace injects: once, or at every call
of that name by the same thread from there on. EMFILE is for calls that open only. EINTR for ever is twenty in a row:
SQLite repeats such a call without end, and no kernel interrupts a file's call for ever.

Two faults are made by a small library that is compiled here and preloaded (fault_shim.c): opens that fail, since strace
would count what the loader opens, and short writes, which write the first half and say so. It counts over all threads and
in the folder only; that it sees every open and every write that strace sees is checked first.

Judged for every run: no signal, no hang, an exit status that is documented for such a fault; check_tree.py's rules; what
was printed as done is there. With another status than 0 the output names the errno, by its text, number or Tarn's code
for it, and a path, in one line. With 0 the fault is of a kind that is harmless (HARMLESS says why), was told, or was
repeated with success - but never a sync of a file: what follows a failed one proves nothing, so its file must not get a
final name. A short write has to be completed: 0. In the end at most two passes without faults converge.

`errno grid: enumerated X, reached Y, violated Z`, and a table with a line for each errno.
"""
import argparse
import collections
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import bench
import check_tree
import point_runs
import trace_order

SCENARIOS = ["fresh", "update", "resume", "delete", "conflict", "migration"]
SHORT = "short write"
ERRNOS = ["ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "ENOMEM", "EINTR", SHORT]
OPENS = {"openat", "openat2"}
SYNCS = {"fsync", "fdatasync", "syncfs"}
# The exit statuses that may follow a fault of the folder: in sync, some entries failed, the folder cannot be used,
# input/output error, permission denied.
STATUSES = {0, 3, 73, 74, 77}
# Tarn's codes that say the same as an errno.
CODES = {"ENOSPC": ["no-space"], "EDQUOT": ["quota", "no-space"], "EROFS": ["read-only"], "EMFILE": ["too-many-files"],
         "ENOMEM": ["out-of-memory"], "EIO": ["input-output-error"], "EINTR": []}
LIMIT = 120  # Seconds for a pass with faults.
LEDGER = r"/\.tarn/ledger\.sqlite"
# Faults after which a pass may end with 0 and say nothing: (calls, pattern of the path, reason).
HARMLESS = [
    ("sync_file_range", r"", "a hint to begin writing early; the sync that counts comes later and is checked"),
    ("fchown", r"/\.tarn/(ledger|stage)\.sqlite", "SQLite gives a new file the owner that its database has, which it has"),
    ("openat", LEDGER + r"-(wal|shm)$", "SQLite opens it to read only; a connection that has to write fails then, and tells"),
    ("unlink", LEDGER + r"-(wal|shm|journal)$", "an empty log that is left is taken up by the next opening"),
    ("unlink", r"/\.tarn/stage\.sqlite", "scratch of the pass: the next one removes what lies there"),
    ("ftruncate", r"/\.tarn/lock$", "the name of a process that ends: who reads it looks whether that process is there"),
    ("fdatasync", r"/\.tarn$", "SQLite passes over it, of the name of its log; what the log holds is in the database, synced, "
     "before a pass ends with 0"),
    ("pwrite64 fdatasync ftruncate", LEDGER + r"$", "a checkpoint: the log keeps everything, and the next opening tries again"),
    ("ftruncate", LEDGER + r"-wal$", "an emptied log that keeps its length: its frames are void"),
]


class Open(trace_order.Call):
    """An open that the library let fail, or let through afterwards."""

    def __init__(self, path, number):
        super().__init__("", "openat", "", "-1", int(number), int(number))
        self.raw, self.tokens = path, [("text", path)]


class ErrnoWorker(bench.Worker):
    def __init__(self, tarn, scenario, scratch, shim):
        super().__init__(tarn, scenario, scratch)
        self.shim, self.log = shim, os.path.join(self.directory, "faults")

    def examine(self, cell):
        """One fault: (reached, violations). A cell is (errno, call, n, whether for ever)."""
        name, call, number, forever = cell
        folder, scenario = self.prepare(), self.scenario
        canary = {self.home: check_tree.canary_of(self.home)}
        before = check_tree.inventory(folder) if scenario.has_first_pass else {}
        try:
            if name == SHORT:
                result, hits = self.run_preloaded(folder, name, number, forever)
                found = [f"I10 ended with {result.returncode}: {bench.last_words(result)}"] \
                    if result.returncode != scenario.status else []
            elif call in OPENS:
                result, lines = self.run_preloaded(folder, name, number, forever)
                hits = [Open(path, number) for number, count, path in lines if count == "0"]
                later = [Open(path, number) for number, count, path in lines if count == "1"]
                found = self.judge(result, name, later, hits, folder)
            else:
                result, calls = self.run_failing(folder, name, call, number, forever)
                hits = [hit for hit in calls if "INJECTED" in hit.tail]
                found = self.judge(result, name, calls, hits, folder)
        except subprocess.TimeoutExpired:
            hits, found, result = [call], [f"I9 the pass did not end in {LIMIT} s"], None
        ended_well = result is not None and self.ended_well(result)
        wanted = scenario.final if ended_well else scenario.versions
        _, violations = check_tree.check(folder, wanted, scenario.users, canary, final=ended_well)
        violations += check_tree.check_removals(folder, before, scenario.most_removed)
        violations += check_tree.check_promises(folder, self.promises(result.stdout if result else b""))
        found += [f"after the fault: {text}" for text in violations]
        found += self.converge(folder, 2)[1]
        _, violations = check_tree.check(folder, scenario.final, scenario.users, canary, final=True)
        found += [f"after convergence: {text}" for text in violations]
        label = f"{name} at {call} #{number}{' and for ever' if forever else ''}"
        return bool(hits), [f"{label}: {text}" for text in found]

    def all_points(self):
        """The points of one pass, with those that the library counts."""
        preloaded = [("openat", number) for number in self.preloaded_points("EMFILE")] if self.shim else []
        shorts = [("write", number) for number in self.preloaded_points(SHORT)] if self.shim else []
        return [point for point in self.points() if point[0] not in OPENS] + preloaded + shorts

    def run_failing(self, folder, name, call, number, forever):
        """(result, its calls)"""
        when = f"{number}..{number + 19}" if name == "EINTR" else f"{number}+"
        result = self.run(folder, ["strace", "-f", "-y", "-qq", "-s", "256", "--seccomp-bpf", "-e", "signal=none", "-e",
                                   "trace=" + ",".join(bench.CALLS), "-o", self.log, "-e",
                                   f"inject={call}:error={name}:when={when if forever else number}"], limit=LIMIT)
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            return result, sorted(trace_order.parse(stream), key=lambda one: one.begin)

    def run_preloaded(self, folder, name, number, forever, prefix=()):
        """(result, the library's log): a fault of an open, or a short write."""
        if os.path.exists(self.log):
            os.unlink(self.log)
        variables = {"LD_PRELOAD": self.shim, "FAULT_FOLDER": folder, "FAULT_LOG": self.log, "FAULT_AT": str(number),
                     "FAULT_ERRNO": str(0 if name == SHORT else getattr(errno, name))}
        if forever:
            variables["FAULT_ALWAYS"] = "20" if name == "EINTR" else "1000000"
        result = self.run(folder, [*prefix, "env", *(f"{k}={v}" for k, v in variables.items())], limit=LIMIT)
        if not os.path.exists(self.log):
            return result, []
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            return result, [line.rstrip("\n").split(" ", 2) for line in stream]

    def preloaded_points(self, name):
        """The numbers of the calls on which the library's fault can fall: as many as strace sees."""
        folder, trace = self.prepare(), os.path.join(self.directory, "seen")
        calls = "write,pwrite64,writev,pwritev,pwritev2" if name == SHORT else "open,openat,openat2"
        result, lines = self.run_preloaded(folder, name, 0, False, [
            "strace", "-f", "-y", "-qq", "-s", "256", "-e", "signal=none", "-e", f"trace={calls}", "-o", trace])
        self.expect(result, self.scenario.status, "the pass with the library")
        with open(trace, encoding="utf-8", errors="replace") as stream:
            seen = sum(1 for call in trace_order.parse(stream) if self.changes(call, folder))
        if seen != len(lines):
            raise SystemExit(f"{name}: the library saw {len(lines)} calls, strace {seen}: it cannot be relied on")
        return [int(number) for number, count, _ in lines if name != SHORT or int(count) > 1]

    def judge(self, result, name, calls, hits, folder):
        """What is wrong with how a pass with injected faults ended."""
        if result.returncode not in STATUSES:
            return [f"I10 ended with {result.returncode}: {bench.last_words(result)}"]
        if result.returncode == 73 and "marker" in bench.last_words(result):
            return [f"I6 refuses the folder: {bench.last_words(result)}"]
        if not hits or self.is_told(result, name, hits, folder):
            return []
        if not self.ended_well(result):
            return [f"I10 ended with {result.returncode} and does not tell {name} with a path: {bench.last_words(result)}"]
        silent = [hit for hit in hits if excuse(hit, calls, name) is None]
        return [f"I10 ended with {result.returncode} and says nothing of {hit.name}({hit.raw[:160]})" for hit in silent[:2]]

    def is_told(self, result, name, hits, folder):
        number = getattr(errno, name)
        signs = [os.strerror(number).lower(), f"errno {number}", *(f'"{code}"' for code in CODES[name])]
        places = [folder, *self.scenario.sizes, *(path for hit in hits for path in hit.paths())]
        text = (result.stdout + b"\n" + result.stderr).decode(errors="replace")
        if all(re.search(LEDGER, " ".join(hit.paths())) and hit.name in OPENS for hit in hits):
            # SQLite tries again to read only, and keeps that second answer.
            signs += ["unable to open database file", "attempt to write a readonly database"]
        if any(hit.name == "unlink" and hit.paths()[0].endswith("/stage.sqlite") for hit in hits):
            signs.append(os.strerror(errno.EEXIST).lower())  # What is still there cannot be made anew.
        return any(any(sign in line.lower() for sign in signs) and any(place in line for place in places)
                   for line in text.splitlines())

    @staticmethod
    def promises_of(line):
        event = json.loads(line)
        return (event["path"], event["code"]) if event.get("type") == "done" else None

    def promises(self, output):
        said = filter(None, (self.promises_of(line) for line in output.splitlines()))
        return [(path.encode().hex(), [] if code == "deleted" else self.scenario.final[path.encode().hex()])
                for path, code in said]


def excuse(hit, calls, name):
    """Why a pass may end with 0 after this fault without a word; None when it may not."""
    path = hit.descriptor or next(iter(hit.paths()), "")
    for names, pattern, reason in HARMLESS:
        if hit.name in names.split() and re.search(pattern, path):
            return reason
    if isinstance(hit, Open) and name == "EINTR":
        return "an open has no effect before it succeeds, and the tree is complete"
    if hit.name in SYNCS and is_synced(hit, calls):
        return "nothing was written since the last sync of it"
    if re.search(LEDGER + "-wal$", hit.descriptor or "") and is_note(hit, calls):
        return "a note for `tarn status`, or that the pass ended well: neither is a promise"
    return "repeated" if was_redone(hit, calls, name) else None


def is_synced(hit, calls):
    """True when the file was synced before, after its last write."""
    before = [call for call in calls if call.end < hit.begin and call.worked and call.descriptor == hit.descriptor]
    last = max((call.begin for call in before if call.name in SYNCS), default=-1)
    return last > max((call.end for call in before if call.name in trace_order.WRITES), default=len(calls) * 2)


def is_note(hit, calls):
    """True when the fault befell a connection to the ledger that syncs nothing, or came after the last rename and after
    the ledger was synced once more: then the rows of all that was published are durable."""
    number = hit.raw.split("<")[0]
    if not any(call.name in SYNCS and call.raw.split("<")[0] == number and call.descriptor == hit.descriptor for call in calls):
        return True
    renamed = max((call.end for call in calls if call.name in trace_order.RENAMES and call.worked), default=-1)
    return any(call.worked and call.name in SYNCS and call.descriptor == hit.descriptor and renamed < call.begin
               and call.end < hit.begin for call in calls)


def was_redone(hit, calls, name):
    """True when the same call was let through later; what it answered then is the kernel's. A sync that failed proves
    nothing when it is repeated: its file must not have got a final name; a sync of the whole file system may be made up
    for by one of each file."""
    later = [call for call in calls if call.begin > hit.begin and call.worked]
    if hit.name in SYNCS and name != "EINTR":
        if hit.name == "syncfs":
            return not trace_order.Order(calls, hit.descriptor.split("/.tarn/")[0]).check()
        moved = [call for call in later if call.name in trace_order.RENAMES and hit.descriptor in call.paths()[:1]]
        return "/.tarn/partial/" in (hit.descriptor or "") and not moved
    return any(call.name == hit.name and call.descriptor == hit.descriptor and call.paths() == hit.paths()
               for call in calls if call.begin > hit.begin and "INJECTED" not in call.tail)


def build_shim(scratch):
    """The library; None without a C compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return None
    source, library = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault_shim.c"), os.path.join(scratch, "shim.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def choose(points, opens, shorts, wanted, calls):
    """(how many there are, the cells): for each errno so many points, evenly, every errno beginning at another one, once
    and for ever by halves; all of them when there are not more."""
    names = [name for name in ERRNOS if {SHORT: shorts, "EMFILE": opens}.get(name, True)]
    cells, enumerated = [], 0
    for index, name in enumerate(names):
        mine = [("write", number) for number in shorts] if name == SHORT else [("openat", number) for number in opens]
        if name not in (SHORT, "EMFILE"):
            mine += [point for point in points if point[0] not in OPENS]
        mine = [point for point in mine if not calls or point[0] in calls]
        enumerated += 2 * len(mine)
        share = wanted * (index + 1) // len(names) - wanted * index // len(names)
        for forever in (False, True):
            count = min(len(mine), share // 2 if forever else share - share // 2)
            cells += [(name, *mine[int((turn + (index + 0.5) / len(names)) * len(mine) / count)], forever)
                      for turn in range(count)]
    return enumerated, cells


def grid(arguments, name, points, scratch):
    """One scenario: (enumerated, [(cell, reached, violations)])."""
    inner = tempfile.mkdtemp(dir=scratch)
    scenario, shim, workers = bench.Scenario(name, arguments.seed, inner), build_shim(scratch), []
    try:
        for _ in range(arguments.jobs):
            workers.append(ErrnoWorker(arguments.tarn, scenario, inner, shim))
        every = workers[0].points()
        opens, shorts = (workers[0].preloaded_points(kind) if shim else [] for kind in ("EMFILE", SHORT))
        if not shim:
            print("errno grid: opens and short writes skipped: no C compiler is there")
        enumerated, cells = choose(every, opens, shorts, points, arguments.call)
        cells = [cell for cell in cells if not arguments.errno or cell[0] in arguments.errno]
        for worker in workers[1:]:
            worker.middle = workers[0].middle
        results = point_runs.examine_all(workers, bench.shard(cells, arguments.shard), ErrnoWorker.examine)
        point_runs.tell_unreached(results, name, workers[0].all_points, lambda cell: cell[1:3])
    finally:
        for worker in workers:
            worker.stop()
        shutil.rmtree(inner, ignore_errors=True)
    return enumerated, results


def grids(arguments, scratch):
    names, enumerated, results = arguments.scenario or ["update"], 0, []
    for index, name in enumerate(names):
        share = arguments.points * (index + 1) // len(names) - arguments.points * index // len(names)
        try:
            count, some = grid(arguments, name, share, scratch)
        except bench.Skipped as reason:
            print(f"errno grid: {name} skipped: {reason}")
            continue
        enumerated, results = enumerated + count, results + some
    table = collections.defaultdict(lambda: [0, 0, 0])
    for (name, _, _, forever), reached, violations in results:
        for key in ((name, forever), ("all", None)):
            table[key] = [a + b for a, b in zip(table[key], (1, reached, bool(violations)))]
    for (name, forever), counts in table.items():
        if forever is not None:
            mode = "for ever" if forever else "once"
            print(f"  {name:<12} {mode:<9} runs {counts[0]:>4}  reached {counts[1]:>4}  violated {counts[2]:>4}")
    runs, reached, violated = table["all", None]
    print(f"errno grid: enumerated {enumerated}, runs {runs}, reached {reached}, violated {violated}", flush=True)
    return violated == 0 and reached * 10 >= runs * 8 and runs > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="repeatable; update without it")
    parser.add_argument("--errno", action="append", choices=ERRNOS, help="repeatable; all without it")
    parser.add_argument("--call", action="append", help="only faults of this system call; repeatable")
    parser.add_argument("--points", type=int, default=1000, help="runs in all, shared by all errnos")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="only each N-th of the runs, from the K-th on")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = bench.find_tarn(arguments.tarn)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-errno-grid."))
    try:
        good = grids(arguments, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
