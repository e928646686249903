#!/usr/bin/env python3
"""Chaos around a folder that an agent watches; everything follows from a seed.

    watch_chaos.py --tarn TARN [--seconds 60] [--seed N] [--files 300]

For --seconds (60 in packaging/test; 1800 by hand) all of this at once:
  user      creates, edits, appends, truncates, replaces, renames, deletes, chmods, links; directories in a file's place,
            moved directories, hard links; sometimes in bursts
  server    new versions of the list and its files; errors, resets, bodies cut off, slow answers
  kills     kill -9 of the agent and of tarn-watch; tarn-watch is stopped for a moment now and then

A model (watch_user.py) keeps count of every byte string of the user's and of what the feed wants. After each third the server
is healthy, the user rests, a pass is asked for, and the folder has to match. At the end, then:
  - a file that is changed now comes back without a pass, and so do 200 changes at once, and the status counts what is in place;
    after another pass `tarn plan` has nothing to do but to look at files that the user linked,
    nor has `tarn verify` of what the feed names; the ledger is sound
  - every byte string that the user did not overwrite or delete himself is in the folder, beside it, or in the trash
  - agent and tarn-watch together hold no more than 24 MiB (PSS) and 16 descriptors more than after the first third
  - no process is left: no zombie of the agent's, and no tarn-watch of an agent that was killed

Prints the seed, what was done and the violations; ends with 1 if there is any, and leaves the directory then.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import agent_figures
import bench
import check_tree
import flaky_server
import watch_user

MEMORY, DESCRIPTORS = 24 << 10, 16  # KiB, and how many: what the end may have more than the first third.
FAILURES = ("error", "reset", "cut", "slow")
PATIENCE = 90  # Seconds for what is to happen at all.
LOCKED = 75  # Another Tarn holds the folder.


def processes(parent, name="tarn-watch"):
    """{pid: state} of a process's children of that name, zombies among them."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
                line = stream.read()
        except OSError:
            continue
        fields = line[line.rindex(")") + 1:].split()
        if int(fields[1]) == parent and line[line.index("(") + 1:line.rindex(")")] == name:
            found[int(pid)] = fields[0]
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(limit, is_so):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.05)
    return False


class Chaos:
    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, directory
        self.random = random.Random(arguments.seed)
        self.publisher = flaky_server.Publisher(arguments.seed + 1)
        self.agent = agent_figures.Agent(arguments.tarn, directory)
        self.folder = os.path.join(directory, "home", "files")
        os.makedirs(os.path.dirname(self.folder))
        with open(self.agent.config, "w", encoding="utf-8") as stream:
            stream.write(f'[agent]\nlog-format = "text"\n[mirror.files]\nfeed = "{self.publisher.url}/{flaky_server.FEED}"\n'
                         f'folder = "{self.folder}"\nevery = "1min"\nretries = 2\nkeep-list = false\n')
        self.user = watch_user.User(self.folder, random.Random(arguments.seed + 2))
        self.wanted, self.names, self.asked = {}, 0, []
        self.counts, self.violations, self.figures = collections.Counter(), [], []
        for _ in range(arguments.files):
            self.add_file()
        self.publisher.publish(self.wanted)

    # --- what the feed wants ----------------------------------------------------------------------------------

    def content(self):
        return self.random.randbytes(self.random.choice([40, 300, 5000, 5000, 60_000, 400_000]))

    def add_file(self):
        self.names += 1
        directory = self.random.choice(["", "d1/", "d2/", "d2/deep/", "d3/a/b/", f"d{4 + self.names % 5}/"])
        self.wanted[f"{directory}file-{self.names}"] = self.content()

    def new_version(self):
        for path in self.random.sample(sorted(self.wanted), 3):
            self.wanted[path] = self.content()
        self.add_file()
        if len(self.wanted) > self.arguments.files:
            # Nothing is deleted for it: what stands there is anybody's from now on.
            del self.wanted[self.random.choice(sorted(self.wanted))]
        self.publisher.publish(self.wanted)
        self.counts["versions"] += 1

    # --- what is killed ---------------------------------------------------------------------------------------

    def start(self):
        environment = self.agent.environment
        with open(os.path.join(self.directory, "agent.log"), "ab") as log:
            self.agent.process = subprocess.Popen([self.agent.tarn, "agent", "-v", "--config", self.agent.config],
                                                  env=environment, stdout=log, stderr=log)

        def answers():
            try:
                return self.agent.ask("/v1/status") is not None
            except OSError:
                return False
        if not wait_until(PATIENCE, answers):
            raise SystemExit("the agent does not answer")

    def kill_agent(self):
        watchers = processes(self.agent.process.pid)
        self.agent.kill()
        self.counts["agent killed"] += 1
        if not wait_until(PATIENCE, lambda: not any(alive(pid) for pid in watchers)):
            self.violations.append(f"tarn-watch {watchers} outlives its agent")
        for _ in range(self.random.randrange(20)):
            self.user.act(self.wanted)
        self.start()

    def kill_watcher(self):
        self.counts["tarn-watch killed"] += self.signal_watcher(signal.SIGKILL)

    def signal_watcher(self, number):
        """So many have it."""
        count = 0
        for pid in processes(self.agent.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                count += 1
        return count

    def stop_watcher(self):
        """Behind by a burst, or by more than the kernel's queue holds."""
        self.counts["tarn-watch stopped"] += self.signal_watcher(signal.SIGSTOP)
        for _ in range(300):
            self.user.act(self.wanted)
        self.signal_watcher(signal.SIGCONT)

    # --- the time in between ----------------------------------------------------------------------------------

    def rage(self, seconds):
        end = time.monotonic() + seconds
        rhythm = max(8, self.arguments.seconds / 15)
        plan = [(self.kill_agent, rhythm), (self.kill_watcher, rhythm), (self.stop_watcher, 2 * rhythm),
                (self.new_version, 3), (self.ask, 3), (self.change_weather, 4), (self.burst, 6)]
        due = [time.monotonic() + self.random.uniform(0, mean) for _, mean in plan]
        while time.monotonic() < end:
            self.user.act(self.wanted)
            time.sleep(self.random.choice([0, 0.01, 0.05, 0.2]))
            for index, (what, mean) in enumerate(plan):
                if time.monotonic() >= due[index]:
                    what()
                    due[index] = time.monotonic() + self.random.expovariate(1 / mean)

    def ask(self):
        """A pass, not waited for."""
        self.asked = [sync for sync in self.asked if sync.poll() is None]
        if len(self.asked) < 4:
            self.asked.append(subprocess.Popen([self.agent.tarn, "sync", "-q", "files", "--config", self.agent.config],
                                               env=self.agent.environment, cwd=self.directory, stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.counts["passes asked for"] += 1

    def burst(self):
        for _ in range(self.random.choice([30, 300])):
            self.user.act(self.wanted)
        self.counts["bursts"] += 1

    def change_weather(self):
        kinds = self.random.sample(FAILURES, self.random.randint(1, 4))
        self.publisher.fails(self.random.choice([0, 0, 0.1, 0.5, 1]), kinds)

    # --- what has to be ---------------------------------------------------------------------------------------

    def run(self, *words):
        """The exit status and what was printed. Waits while the agent holds the folder for a repair."""
        deadline = time.monotonic() + PATIENCE
        while True:
            result = subprocess.run([self.agent.tarn, *words, "--config", self.agent.config], env=self.agent.environment,
                                    cwd=self.directory, capture_output=True)
            if result.returncode != LOCKED or time.monotonic() > deadline:
                return result.returncode, (result.stdout + result.stderr).decode(errors="replace")
            time.sleep(0.1)

    def wrong(self):
        """Paths that are not as the feed wants them."""
        return [path for path, data in self.wanted.items() if not self.stands(path, data)]

    def stands(self, path, data):
        full = os.path.join(self.folder, path)
        try:
            if not stat.S_ISREG(os.lstat(full).st_mode):
                return False
            with open(full, "rb") as stream:
                return stream.read() == data
        except OSError:
            return False

    def calm(self, name):
        """All is healthy, and a pass was asked for: the folder has to match."""
        self.publisher.fails(0)
        begin = time.monotonic()
        for _ in range(20):
            status, text = self.run("sync", "files")
            self.clear_conflicts()
            if status == 0:
                break
            time.sleep(1)
        else:
            self.violations.append(f"{name}: the last of 20 passes ended with {status}: {text[-600:]}")
        if not wait_until(PATIENCE, lambda: not self.wrong()):
            wrong = self.wrong()
            self.violations.append(f"{name}: {len(wrong)} files are not as the feed wants them: {wrong[:5]}")
            for path in wrong[:2]:
                self.violations.append(self.run("explain", "files", path)[1])
        self.figures.append((self.memory(), self.descriptors()))
        print(f"{name}: matches after {time.monotonic() - begin:.1f} s, {self.figures[-1][0] / 1024:.1f} MiB, "
              f"{self.figures[-1][1]} descriptors", flush=True)

    def clear_conflicts(self):
        """A file of the user's where Tarn had not placed one so far, as after a kill between both: the user moves it."""
        for problem in self.agent.mirror("files").get("problems", []):
            full = os.path.join(self.folder, problem["path"])
            if problem["code"] == "foreign-file" and os.path.lexists(full):
                os.makedirs(os.path.join(self.folder, "mine"), exist_ok=True)
                os.rename(full, self.user.fresh(os.path.join(self.folder, "mine")))
                self.counts["conflicts"] += 1

    def members(self):
        return [self.agent.process.pid, *processes(self.agent.process.pid)]

    def memory(self):
        return sum(pss(pid) for pid in self.members())

    def descriptors(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.members())

    def is_adopted(self, path):
        return "was adopted" in self.run("explain", "files", path)[1]

    def probe(self):
        """It is watched again, and what changes comes back without a pass."""
        if not wait_until(400, lambda: self.agent.mirror("files")["watch"]["mode"] == "watching"):
            self.violations.append(f"not watched again: {self.agent.mirror('files')['watch']}")
            return
        for path in self.random.sample(sorted(self.wanted), 20):
            kind = self.random.choice([self.user.delete, self.user.edit, self.user.chmod, self.user.replace])
            # What was adopted has the user's mode; an edit is what makes it Tarn's.
            before = self.mode(path) if kind == self.user.chmod and not self.is_adopted(path) else None
            kind(path, None)
            if not wait_until(PATIENCE, lambda: self.stands(path, self.wanted[path])
                              and before in (None, self.mode(path))):
                self.violations.append(f"{path}: {kind.__name__} under a watch is not undone: {self.mode(path):o}, "
                                       f"it was {before or 0:o}")
                self.violations.append(self.run("explain", "files", path)[1])

    def settle(self):
        """Many changes at once, and nobody asks for a pass: all comes back, and is counted."""
        for _ in range(200):
            self.user.act(self.wanted)

        def is_right():
            self.clear_conflicts()
            return not self.wrong()

        def is_counted():
            entries = self.agent.mirror("files")["entries"]
            return entries["current"] == entries["wanted"] == len(self.wanted)
        if not wait_until(PATIENCE, is_right):
            self.violations.append(f"without a pass {len(self.wrong())} files are not as the feed wants them: {self.wrong()[:5]}")
        if not wait_until(PATIENCE, is_counted):
            self.violations.append(f"all is in place, and counted are {self.agent.mirror('files')['entries']}")

    def mode(self, path):
        """0 when nothing is there."""
        try:
            return os.lstat(os.path.join(self.folder, path)).st_mode
        except OSError:
            return 0

    def verify(self):
        """What the feed names no more, and the user changed, stays so: nobody says what it should be."""
        status, text = self.run("verify", "--json", "files")
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        for line in lines:
            if line.get("type") == "problem" and line["path"] in self.wanted:
                self.violations.append(f"tarn verify: {line['path']}: {line['code']}")
        if status not in (0, 3) or not any(line.get("type") == "summary" for line in lines):
            self.violations.append(f"tarn verify ends with {status}: {text[-600:]}")

    def plan(self):
        """Nothing is to be done. A second name that the user gave a file changes its ctime, and inotify tells nobody of that: such a
        file is looked at again, and found to be what it was."""
        status, text = self.run("plan", "--exit-code", "--json", "files")
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        for line in lines:
            if line.get("type") != "action":
                continue
            path = line["path"]
            if line["action"] != "adopt" or os.lstat(os.path.join(self.folder, path)).st_nlink < 2:
                self.violations.append(f"tarn plan: {line['action']} {path}")
        if status not in (0, 2) or not any(line.get("type") == "summary" for line in lines):
            self.violations.append(f"tarn plan --exit-code ends with {status}: {text[-600:]}")

    def judge(self):
        self.verify()
        self.plan()
        lost = self.user.lost([os.path.dirname(self.folder)])
        self.violations += [f"lost: {data[:60]!r}, {len(data)} bytes" for data in sorted(lost)[:10]]
        for path, data in self.user.kept.items():
            with open(os.path.join(self.folder, path), "rb") as stream:
                if stream.read() != data:
                    self.violations.append(f"{path} is another file")
        (first, opened), (last, left) = self.figures[0], self.figures[-1]
        if last > first + MEMORY:
            self.violations.append(f"memory grew from {first} to {last} KiB")
        if left > opened + DESCRIPTORS:
            self.violations.append(f"descriptors grew from {opened} to {left}")
        zombies = [pid for pid, state in processes(self.agent.process.pid).items() if state == "Z"]
        if zombies:
            self.violations.append(f"zombies: {zombies}")
        watchers = processes(self.agent.process.pid)
        self.agent.end()
        if not wait_until(PATIENCE, lambda: not any(alive(pid) for pid in watchers)):
            self.violations.append(f"tarn-watch {watchers} outlives an agent that ended")
        self.violations += check_tree.check_ledger(os.fsencode(os.path.join(self.folder, ".tarn")))

    def all(self):
        self.start()
        self.calm("first pass")
        self.figures.clear()
        for number in range(3):
            self.rage(self.arguments.seconds / 3)
            self.calm(f"third {number + 1}")
        self.probe()
        self.settle()
        self.calm("in the end")
        self.judge()

    def summary(self):
        user = self.user
        done = ", ".join(f"{count} {name}" for name, count in sorted({**self.counts, **user.counts}.items()))
        return (f"{done}; {self.publisher.answers} answers, {self.publisher.failures} of them failures; byte strings: "
                f"{len(user.alive)} kept, {len(user.destroyed)} destroyed by the user himself")


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as stream:
            return next(int(line.split()[1]) for line in stream if line.startswith("Pss:"))
    except OSError:
        return 0


def self_test():
    """What nobody but the user may take away is missed, and nothing else."""
    with tempfile.TemporaryDirectory() as directory:
        user = watch_user.User(directory, random.Random(1))
        for name in ("own", "taken", "moved"):
            with open(os.path.join(directory, name), "wb") as stream:
                stream.write(b"as the feed wants it\n")
        assert not user.lost([directory])
        user.edit("own", [])
        user.replace("taken", [])
        user.link("moved", [])
        assert len(user.alive) == 3 and not user.lost([directory])
        user.edit("own", [])
        user.append("own", [])
        assert len(user.alive) == 3 and len(user.destroyed) == 2 and not user.lost([directory])
        os.mkdir(os.path.join(directory, "trash"))
        os.rename(os.path.join(directory, "moved"), os.path.join(directory, "trash", "1"))
        assert not user.lost([directory])
        os.truncate(os.path.join(directory, "taken"), 20)
        os.unlink(os.path.join(directory, "trash", "1"))
        assert len(user.lost([directory])) == 2
        user.delete("own", [])
        assert len(user.lost([directory])) == 2
    print("watch_chaos.py: of what is gone the user's own doing is told from a loss")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    # What was started is ended, too, where a limit of time ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = bench.find_tarn(arguments.tarn)
    directory = os.path.realpath(tempfile.mkdtemp(prefix="tarn-watch-chaos."))
    print(f"watch chaos: seed {arguments.seed}, {arguments.seconds:g} s, {directory}", flush=True)
    chaos = Chaos(arguments, directory)
    try:
        chaos.all()
    finally:
        if chaos.agent.process:
            chaos.agent.kill()
        for sync in chaos.asked:
            sync.kill()
            sync.wait()
        chaos.publisher.stop()
    for text in chaos.violations:
        print(f"violation: {text}")
    if not chaos.violations:
        shutil.rmtree(directory)
    print(f"watch chaos: seed {arguments.seed}: {chaos.summary()}; {len(chaos.violations)} violations")
    return 1 if chaos.violations else 0


if __name__ == "__main__":
    sys.exit(main())
