#!/usr/bin/env python3
"""Kills a pass of Tarn at many system calls, one run for each, and checks what every kill leaves behind.

1. One pass is traced: every system call that changes the disk is a point, written as (call, n).
2. For points spread evenly over the pass: the same pass again, held still right before that call takes effect
   (strace counts per thread, so n is the n-th of its thread). If it holds the folder's lock by then, a second Tarn is
   started on the folder by another path. Then the first is killed with SIGKILL.
3. check_tree.py judges the folder; passes run until one ends as it has to, at most three; the checker judges again,
   strictly; one more pass has to write nothing and to fetch no body.
4. `kill grid: reached X/Y, violations Z`; ends with 1 on a violation, or when fewer than nine in ten were reached
   of those that one more pass has as well, or fewer than half of all.

What is judged at every point: I1 whole files, I2 nothing of the user's lost, I3 no body that had arrived fetched twice
but for 1 MiB, none of a file in place, I5 nothing outside touched, I6 convergence, I8 no more files gone than allowed, and
those in the trash, I11 the ledger sound and not set aside, I12 the second Tarn ends at once with 75 and changes nothing.

Scenarios: see bench.py. The server is a real nginx; the bodies that were sent are counted from its log. --order checks
the order of the durable steps with trace_order.py instead: of passes (fresh, update, migration, large), of a mirror that
is made, with its directories (new) and with --state (state), of a partial/ that is gone (partial), of a damaged ledger that
is set aside (damaged), of files that are adopted (adopt), of `tarn forget` (forget), also when the state is gone (marker).
"""
import argparse
import collections
import os
import shutil
import sys
import tempfile
import time

import bench
import check_tree
import point_runs
import trace_order

SCENARIOS = ["fresh", "update", "resume", "delete", "conflict", "migration"]
LOCKED = 75  # The exit status of a Tarn that finds the folder taken.
AT_ONCE = 30  # Seconds that a second Tarn may take on a busy machine; one that waits for the first never ends.
LEAST_WASTE = 1 << 20  # Bytes that may be fetched twice after a kill (I3).


def unread_of(server):
    """Bytes that the server has handed to the kernel and that no client has read, of clients that stand still: taken
    once the server waits, for on a busy machine it may have more to hand over yet."""
    deadline = time.monotonic() + bench.PATIENCE
    while time.monotonic() < deadline:
        before = queued(server.port)
        with open(f"/proc/{server.process.pid}/stat", encoding="ascii", errors="replace") as stream:
            is_waiting = stream.read().rpartition(")")[2].split()[0] == "S"
        if is_waiting and before == queued(server.port):
            return before
        time.sleep(0.004)
    raise SystemExit("the server does not come to rest")


def queued(port):
    """Bytes in the sockets' queues, from the server on that port to its clients."""
    total, port = 0, f":{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as stream:
        for line in stream.readlines()[1:]:
            fields = line.split()
            sent, received = (int(part, 16) for part in fields[4].split(":"))
            if fields[3] != "0A":
                total += sent if fields[1].endswith(port) else received if fields[2].endswith(port) else 0
    return total


class KillWorker(bench.Worker):
    """Examines one point after the other, and keeps the worst figures seen."""

    def __init__(self, tarn, scenario, scratch):
        super().__init__(tarn, scenario, scratch)
        self.wasted, self.seconds, self.contested = 0, 0.0, 0

    def second_writer(self, folder):
        """A second Tarn, by another path (I12): violations. Only while the first has the lock; before, it may run."""
        if not holds_lock(folder):
            return []
        alias = os.path.join(self.directory, "alias")
        if not os.path.lexists(alias):
            os.symlink(os.path.dirname(folder), alias)
        found, before, start = [], check_tree.canary_of(folder), time.monotonic()
        result = self.run(os.path.join(alias, os.path.basename(folder)))
        seconds = time.monotonic() - start
        if result.returncode != LOCKED:
            found.append(f"I12 the second Tarn ended with {result.returncode}: {bench.last_words(result)}")
        if seconds > AT_ONCE:
            found.append(f"I12 the second Tarn took {seconds:.1f} s")
        if check_tree.canary_of(folder) != before:
            found.append("I12 the second Tarn changed the folder")
        self.seconds, self.contested = max(self.seconds, seconds), self.contested + 1
        return found

    def waste(self, bodies, unread, kept, whole):
        """Bodies fetched twice (I3). The kernel's queues hold what the server sent and Tarn never saw."""
        found, sums = [], collections.Counter()
        for path, count in bodies[0] + bodies[1]:
            sums[path] += count
        for path, count in sums.items():
            size = self.scenario.sizes.get(path, 0)
            twice = count - unread - max(0, size - (kept if size > kept else 0))
            self.wasted = max(self.wasted, twice)
            if twice > LEAST_WASTE:
                found.append(f"I3 {path}: {count} bytes sent, {unread} of them unread, for {size}, of which {kept} were there")
        found += [f"I3 {path} was in place and was fetched again" for path, _ in bodies[1] if path in whole]
        return found

    def examine(self, point):
        """One point: (reached, violations)."""
        folder, scenario = self.prepare(), self.scenario
        canary = {self.home: check_tree.canary_of(self.home)}
        before, kept, marker = check_tree.inventory(folder), largest_partial(folder), self.server.marker()
        frozen, found, unread = bench.Frozen(self, folder, point), [], 0
        try:
            reached = frozen.wait()
            if reached:
                found += self.second_writer(folder)
                unread = unread_of(self.server)
        finally:
            frozen.kill()
        _, violations = check_tree.check(folder, scenario.versions, scenario.users, canary)
        violations += check_tree.check_removals(folder, before, scenario.most_removed)
        found += [f"after the kill: {text}" for text in violations]
        whole = {bytes.fromhex(name).decode() for name, data in check_tree.inventory(folder).items()
                 if data in scenario.final.get(name, [])}
        middle = self.server.marker()
        found += self.converge(folder, 3)[1]
        _, violations = check_tree.check(folder, scenario.final, scenario.users, canary, final=True)
        violations += check_tree.check_removals(folder, before, scenario.most_removed)
        found += [f"after convergence: {text}" for text in violations]
        end = self.server.marker()
        bodies = self.server.bodies_between(marker, middle), self.server.bodies_between(middle, end)
        found += self.waste(bodies, unread, kept, whole) + self.idle_pass(folder, end)
        return reached, [f"{point[0]} #{point[1]}: {text}" for text in found]

    def idle_pass(self, folder, marker):
        """One more pass over a folder in sync: no body, and no write outside .tarn (I6)."""
        before = check_tree.stamps(folder)
        self.run(folder)
        bodies = self.server.bodies_between(marker, self.server.marker())
        found = [f"I6 a pass over a folder in sync fetched {bodies[:3]}"] if bodies else []
        after = check_tree.stamps(folder)
        if before != after:
            changed = sorted(set(before.items()) ^ set(after.items()))[:3]
            found.append(f"I6 a pass over a folder in sync wrote: {changed}")
        return found


def holds_lock(folder):
    """True when some process holds a lock on the folder's lock file, as the kernel tells it."""
    try:
        number = os.stat(os.path.join(folder, ".tarn", "lock")).st_ino
    except FileNotFoundError:
        return False
    with open("/proc/locks", encoding="ascii") as stream:
        return any(f":{number} " in line and "OFDLCK" in line and "->" not in line for line in stream)


def largest_partial(folder):
    directory = os.path.join(folder, ".tarn", "partial")
    if not os.path.isdir(directory):
        return 0
    return max((os.lstat(entry.path).st_size for entry in os.scandir(directory)), default=0)


def grid(arguments, scratch):
    scenario = bench.Scenario(arguments.scenario, arguments.seed, scratch)
    workers = [KillWorker(arguments.tarn, scenario, scratch) for _ in range(arguments.jobs)]
    try:
        every = point_runs.common(workers[0].points)
        chosen = bench.shard(bench.spread(every, arguments.points), arguments.shard)
        for worker in workers[1:]:
            worker.middle = workers[0].middle
        kinds = collections.Counter(name for name, _ in every)
        print(f"{scenario.name}: {len(every)} changing calls in a pass ({dict(kinds)}), {len(chosen)} of them are killed")
        results = point_runs.examine_all(workers, chosen, KillWorker.examine)
        absent = point_runs.tell_unreached(results, scenario.name, workers[0].points)
    finally:
        for worker in workers:
            worker.stop()
    violations = [text for _, _, texts in results for text in texts]
    reached = sum(1 for _, hit, _ in results if hit)
    print(f"{scenario.name}: a second Tarn at {sum(w.contested for w in workers)} points, its slowest "
          f"{max(w.seconds for w in workers):.2f} s; fetched twice at most {max(w.wasted for w in workers)} bytes")
    print(f"kill grid: reached {reached}/{len(chosen)}, violations {len(violations)}")
    return (not violations and reached * 10 >= (len(chosen) - absent) * 9 and reached * 2 >= len(chosen)
            and len(chosen) >= min(arguments.points, len(every), 1))


# What is traced for the order of the durable steps, and what has to be seen in it. Where directories are made few files
# are fetched: the syncfs of a larger group would cover them.
CASES = {"fresh": "told", "update": "published", "migration": "settled", "large": "published",
         "new": "settled", "state": "settled", "partial": "published", "damaged": "settled", "adopt": None, "forget": "settled",
         "marker": "settled"}


def trace_case(worker, name):
    """The calls of a case, the folder, and its state's directory when that lies elsewhere."""
    folder, state = worker.prepare(), None
    words, out = worker.command(folder), os.path.dirname(folder)
    if name in ("new", "state", "marker"):
        # Two directories above it are missing as well.
        shutil.rmtree(out)
        folder = os.path.join(out, "between", "mirror")
        words = worker.command(folder)
        if name != "new":
            state = os.path.join(out, "beside")
            words += ["--state", state]
    if name in ("partial", "damaged", "forget", "marker"):
        worker.expect(worker.run(folder, words=words), 0, "the first pass")
    if name == "damaged":
        with open(os.path.join(folder, ".tarn", "ledger.sqlite"), "r+b") as stream:
            stream.write(b"no ledger" * 500)
        words += ["--adopt"]
    if name == "partial":
        os.rmdir(os.path.join(folder, ".tarn", "partial"))
        os.unlink(os.path.join(folder, sorted(worker.scenario.sizes)[0]))
    if name == "adopt":
        shutil.copytree(worker.server.root, folder, ignore=shutil.ignore_patterns("SHA256SUMS"), dirs_exist_ok=True)
        words += ["--adopt"]
    if name == "marker":
        shutil.rmtree(state)
        state = None
    if name in ("forget", "marker"):
        words = [worker.tarn, "forget", folder]
    return worker.trace(folder, words=words), folder, state


def order(arguments, scratch):
    """The order of the durable steps, case by case."""
    good, lines = True, []
    for name in arguments.case or CASES:
        inner = os.path.join(scratch, name)
        os.mkdir(inner)
        scenario = name if name in ("update", "migration", "large") else "fresh"
        if name in ("new", "state", "partial"):
            scenario = "few"
        worker = bench.Worker(arguments.tarn, bench.Scenario(scenario, arguments.seed, inner), inner)
        try:
            calls, folder, state = trace_case(worker, name)
        finally:
            worker.stop()
        judge = trace_order.Order(sorted(calls, key=lambda call: call.end), folder, state)
        violations = judge.check()
        if name == "adopt":
            violations = judge.check_adopted()
        if CASES[name] and not judge.counts[CASES[name]]:
            violations.append(f"nothing was {CASES[name]}: the case is none")
        for violation in violations:
            print(f"{name}: {violation}")
        good = good and not violations
        lines.append(f"{name}: {judge.counts['published']} published, violations {len(violations)}")
        shutil.rmtree(inner)
    print("order: " + "; ".join(lines))
    return good


def self_test(arguments):
    """The toy of toy_mirror.py passes when it behaves, and each of its sins is found."""
    toy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toy_mirror.py")
    arguments.points, arguments.case = 10, ["fresh", "update"]
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
    parser.add_argument("--scenario", choices=SCENARIOS, default="fresh")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="only each N-th of the points, from the K-th on")
    parser.add_argument("--order", action="store_true", help="check the order of one pass instead")
    parser.add_argument("--case", action="append", choices=list(CASES), help="with --order, repeatable: only these")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory")
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = bench.find_tarn(arguments.tarn)
    if arguments.self_test:
        sys.exit(0 if self_test(arguments) else 1)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-kill-grid."))
    try:
        good = order(arguments, scratch) if arguments.order else grid(arguments, scratch)
    except bench.Skipped as reason:
        print(f"kill grid: {arguments.scenario} skipped: {reason}")
        good = True
    finally:
        if arguments.keep:
            print(f"kept: {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
