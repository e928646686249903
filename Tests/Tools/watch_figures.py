#!/usr/bin/env python3
"""Figures of watched folders, each beside what is wanted of it.

    watch_figures.py --tarn TARN [--only edits,burst,directories,passes,beside,idle] [--sizes 1000,100000] [--edits 1000] ...

Parts, each with an agent, its tarn-watch and an nginx of its own:
  edits        --edits changes of mirrored files, one after the other: deleted, edited, renamed, chmodded, replaced by a link,
               replaced by a directory; milliseconds until the file is as the feed wants it
  burst        the modes of --burst files changed at once (one event each; the kernel's queue is max_queued_events): from the end of
               the burst until the folder matches, with tarn-watch running, and with tarn-watch held still meanwhile so that the
               queue overflows; beside `tarn sync` of the same repair, without an agent
  directories  --directories directories below a watched folder: seconds until tarn-watch is ready and until the agent says so, the
               resident memory of tarn-watch, and the kernel's for watches where /proc/slabinfo may be read
  passes       a pass over a feed that answers 304, with the folder watched: system calls of agent and tarn-watch together, the
               median of five, for each size of --sizes (1000,1000000 by hand; a million takes some minutes to set up)
  beside       500 files deleted in the middle of a pass that has read a list and waits for a file at 1 B/s: seconds until all are
               back, requests for them, and the most memory that the agent had meanwhile, for each size of --sizes
  idle         --mirrors mirrors of --files files each, in sync and watched: the share of one CPU over 60 s, and PSS of agent and
               tarn-watch then

Prints a table. It judges nothing: figures depend on the machine. Ends with 1 when something did not work.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import time

import agent_figures
import bench
import watch_chaos

PARTS = ("edits", "burst", "directories", "passes", "beside", "idle")
PATIENCE = 900


def show(name, value, unit, wanted=""):
    print(f"{name:<62} {value:>12} {unit:<8} {wanted}", flush=True)


def seconds_until(is_so, what, step=0.02):
    begin = time.monotonic()
    while not is_so():
        if time.monotonic() - begin > PATIENCE:
            raise SystemExit(f"not so after {PATIENCE} s: {what}")
        time.sleep(step)
    return time.monotonic() - begin


class House:
    """A server, an agent, and folders that it mirrors."""

    def __init__(self, arguments, scratch):
        self.directory = tempfile.mkdtemp(dir=scratch)
        self.source = os.path.join(self.directory, "source")
        self.home = os.path.join(self.directory, "home")
        for name in ("server", "source", "home"):
            os.makedirs(os.path.join(self.directory, name))
        self.server = bench.Server(os.path.join(self.directory, "server"))
        self.server.turn_to(self.source)
        self.agent = agent_figures.Agent(arguments.tarn, self.home)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.agent.kill()
        self.server.stop()
        shutil.rmtree(self.directory)

    def publish(self, name, count):
        agent_figures.write_files(os.path.join(self.source, name), count)

    def adopted(self, name):
        """What the server has lies in the folder already: a first pass hashes it, and fetches nothing."""
        folder = os.path.join(self.home, name)
        subprocess.run(["cp", "-a", os.path.join(self.source, name), folder], check=True)
        os.unlink(os.path.join(folder, "SHA256SUMS"))
        return folder

    def follow(self, *mirrors, more=""):
        agent_figures.settings(self.agent, self.server, [(name, source, more) for name, source in mirrors])

    def watcher(self):
        return next(iter(watch_chaos.processes(self.agent.process.pid)), None)

    def wait_for_watch(self, names, mode="watching"):
        return seconds_until(lambda: all(self.agent.mirror(name)["watch"]["mode"] == mode for name in names), "watched")

    def rest(self):
        """Until agent and tarn-watch do nothing for a second."""
        def ticks():
            return sum(cpu_ticks(pid) for pid in (self.agent.process.pid, self.watcher()) if pid)
        before = -1
        while before != ticks():
            before = ticks()
            time.sleep(1)


def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
        fields = stream.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


# --- edits ------------------------------------------------------------------------------------------------------

def change(kind, full, number):
    if kind == "delete":
        os.unlink(full)
    elif kind == "edit":
        with open(full, "wb") as stream:
            stream.write(b"edited %d\n" % number)
    elif kind == "rename":
        os.rename(full, f"{full}.moved-{number}")
    elif kind == "chmod":
        os.chmod(full, 0o600)
    elif kind == "link":
        os.symlink("nowhere", full + ".link")
        os.rename(full + ".link", full)
    else:
        os.unlink(full)
        os.mkdir(full)
        with open(full + "/inner", "wb") as stream:
            stream.write(b"inner %d\n" % number)


def stands(full, data):
    try:
        status = os.lstat(full)
        if status.st_mode != stat.S_IFREG | 0o644 or status.st_size != len(data):
            return False
        with open(full, "rb") as stream:
            return stream.read() == data
    except OSError:
        return False


def edits(arguments, scratch):
    with House(arguments, scratch) as house:
        house.publish("files", 1000)
        house.follow(("files", "files"))
        house.agent.start()
        house.agent.run("sync", "-q", "files")
        house.wait_for_watch(["files"])
        house.rest()
        chooser, times = random.Random(arguments.seed), {}
        folder = os.path.join(house.home, "files")
        for number in range(arguments.edits):
            kind = chooser.choice(("delete", "edit", "rename", "chmod", "link", "directory"))
            name = f"d0/f{chooser.randrange(1000)}"
            with open(os.path.join(house.source, "files", name), "rb") as stream:
                data = stream.read()
            full = os.path.join(folder, name)
            try:
                change(kind, full, number)
            except FileExistsError:
                pass  # It was back before the directory was made: fast enough.
            times.setdefault(kind, []).append(seconds_until(lambda: stands(full, data), name, 0.001) * 1000)
        house.agent.end()
    every = sorted(value for values in times.values() for value in values)
    for kind, values in sorted(times.items()):
        show(f"edits: {kind}, {len(values)}: median and most", f"{statistics.median(values):.0f} {max(values):.0f}", "ms")
    show(f"edits: all {len(every)}: median", f"{statistics.median(every):.0f}", "ms")
    show("edits: all: 99th percentile", f"{every[max(0, -(-len(every) * 99 // 100) - 1)]:.0f}", "ms", "<= 2000")
    show("edits: all: most", f"{every[-1]:.0f}", "ms")


# --- burst ------------------------------------------------------------------------------------------------------

def burst(arguments, scratch):
    with House(arguments, scratch) as house:
        house.publish("files", arguments.burst)
        folder = os.path.join(house.home, "files")
        house.follow(("files", "files"))
        paths = [os.path.join(folder, f"d{number // 1000}/f{number}") for number in range(arguments.burst)]

        def change_all():
            begin = time.monotonic()
            for path in paths:
                os.chmod(path, 0o600)
            return time.monotonic() - begin

        def until_right():
            left = list(paths)

            def is_right():
                while left and os.stat(left[-1]).st_mode & 0o777 == 0o644:
                    left.pop()
                return not left
            return seconds_until(is_right, "the modes are right")

        house.agent.run("sync", "-q", "files")
        change_all()
        begin = time.monotonic()
        house.agent.run("sync", "-q", "files")
        alone = time.monotonic() - begin
        if any(os.stat(path).st_mode & 0o777 != 0o644 for path in paths):
            raise SystemExit("tarn sync left modes that are wrong")
        show(f"burst: {arguments.burst} modes: tarn sync, without an agent", f"{alone:.1f}", "s")
        with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as stream:
            limit = stream.read().strip()
        house.agent.start()
        house.wait_for_watch(["files"])
        house.rest()
        for name, is_held in (("tarn-watch reads meanwhile", False), (f"held still, queue of {limit}", True)):
            watcher = house.watcher()
            if is_held:
                os.kill(watcher, signal.SIGSTOP)
            made = change_all()
            if is_held:
                os.kill(watcher, signal.SIGCONT)
            took = until_right()
            show(f"burst: {name}: made in {made:.1f} s, then right after", f"{took:.1f}", "s", f"<= {alone + 10:.1f}")
            house.rest()
        house.agent.end()


# --- directories ------------------------------------------------------------------------------------------------

def slab():
    """Bytes of the kernel's inotify marks; None where that may not be read."""
    try:
        with open("/proc/slabinfo", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("inotify_inode_mark"):
                    fields = line.split()
                    return int(fields[1]) * int(fields[3])
    except OSError:
        pass
    return None


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS:")) / 1024


def ready_after(program, folder):
    """Seconds until tarn-watch by itself is ready, directories, MiB resident, MiB of the kernel's."""
    before = slab()
    begin = time.monotonic()
    with subprocess.Popen([program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        said = b""
        while b"\0ready 0 " not in b"\0" + said or not said.endswith(b"\0"):
            said += os.read(process.stdout.fileno(), 65536)
            if said.startswith(b"blind"):
                raise SystemExit(f"tarn-watch: {said}")
        took = time.monotonic() - begin
        count = int(said.split(b"ready 0 ")[1].split(b"\0")[0])
        kernel = None if before is None else (slab() - before) / (1 << 20)
        memory = resident(process.pid)
        process.stdin.close()
    return took, count, memory, kernel


def directories(arguments, scratch):
    with House(arguments, scratch) as house:
        house.publish("files", 10)
        house.follow(("files", "files"))
        house.agent.run("sync", "-q", "files")
        folder = os.path.join(house.home, "files")
        for number in range(-(-arguments.directories // 1000)):
            os.mkdir(f"{folder}/t{number}")
            for inner in range(min(999, arguments.directories - number * 1000 - 1)):
                os.mkdir(f"{folder}/t{number}/{inner}")
        program = os.path.join(os.path.dirname(arguments.tarn), "tarn-watch")
        took, count, memory, kernel = ready_after(program, folder)
        show(f"directories: {count}: tarn-watch alone is ready after", f"{took:.2f}", "s", "printed")
        show("directories: tarn-watch, resident", f"{memory:.1f}", "MiB", "printed")
        show("directories: the kernel's marks", "unknown" if kernel is None else f"{kernel:.1f}", "MiB", "printed")
        house.agent.start()
        show("directories: the agent says watching after", f"{house.wait_for_watch(['files']):.2f}", "s", "printed")
        show("directories: agent's tarn-watch, resident", f"{resident(house.watcher()):.1f}", "MiB", "printed")
        house.agent.end()


# --- passes -----------------------------------------------------------------------------------------------------

def calls_of_pass(house, name):
    """System calls of agent and tarn-watch during one pass."""
    summary = os.path.join(house.directory, "calls")
    tracer = subprocess.Popen(["strace", "-f", "-c", "-o", summary, "-p", str(house.agent.process.pid), "-p",
                               str(house.watcher())], stderr=subprocess.PIPE, text=True)
    for _ in range(2):
        tracer.stderr.readline()  # "Process N attached", once for each.
    house.agent.run("sync", "-q", name)
    tracer.send_signal(signal.SIGINT)
    tracer.communicate()
    with open(summary, encoding="ascii") as stream:
        total = next(line for line in stream if line.rstrip().endswith("total"))
    return int(total.split()[3])


def passes(arguments, scratch):
    counts = {}
    for size in arguments.sizes:
        with House(arguments, scratch) as house:
            house.publish("files", size)
            house.adopted("files")
            house.follow(("files", "files"), more="adopt = true")
            house.agent.start()
            house.agent.run("sync", "-q", "files")
            house.wait_for_watch(["files"])
            house.rest()
            house.agent.run("sync", "-q", "files")
            begin = time.monotonic()
            house.agent.run("sync", "-q", "files")
            took = time.monotonic() - begin
            counts[size] = statistics.median(calls_of_pass(house, "files") for _ in range(5))
            show(f"passes: {size} files, 304: system calls", f"{counts[size]:.0f}", "calls")
            show(f"passes: {size} files, 304: the whole tarn sync", f"{took * 1000:.0f}", "ms")
            house.agent.end()
    if len(counts) > 1:
        ratio = counts[max(counts)] / counts[min(counts)]
        show(f"passes: {max(counts)} files to {min(counts)}", f"{ratio:.2f}", "", "<= 1.20")


# --- beside -----------------------------------------------------------------------------------------------------

def most_resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM:")) / 1024


def is_coming(house):
    status = json.loads(house.agent.run("status", "--json", "files"))
    transfers = status["mirrors"][0].get("transfers", [])
    return any(one["path"] == "a.slow" and one["state"] == "running" for one in transfers)


def beside(arguments, scratch):
    for size in arguments.sizes:
        with House(arguments, scratch) as house:
            house.publish("files", size)
            source, folder = os.path.join(house.source, "files"), house.adopted("files")
            house.follow(("files", "files"), more="adopt = true")
            house.agent.start()
            house.agent.run("sync", "-q", "files")
            house.wait_for_watch(["files"])
            # Five seconds after the last pass the agent gives back what passes needed.
            time.sleep(10)
            text = b"slow " * 2000
            with open(os.path.join(source, "a.slow"), "wb") as stream:
                stream.write(text)
            with open(os.path.join(source, "SHA256SUMS"), "a", encoding="ascii") as stream:
                stream.write(f"{hashlib.sha256(text).hexdigest()}  a.slow\n")
            before = resident(house.agent.process.pid)
            with open(f"/proc/{house.agent.process.pid}/clear_refs", "w", encoding="ascii") as stream:
                stream.write("5")  # From now on.
            waiting = house.agent.begin("sync", "-q", "files")
            seconds_until(lambda: is_coming(house), "a.slow comes")
            alone = most_resident(house.agent.process.pid)
            names = [f"d{number // 1000}/f{number}" for number in random.Random(arguments.seed).sample(range(size), min(size, 500))]
            begin = house.server.marker()
            for name in names:
                os.unlink(os.path.join(folder, name))
            took = seconds_until(lambda: all(os.path.exists(os.path.join(folder, name)) for name in names), "all are back")
            asked = [path for path, _ in house.server.bodies_between(begin, house.server.marker()) if "/f" in path.removeprefix("/files")]
            show(f"beside: {size} files: {len(names)} deleted are back after", f"{took:.2f}", "s", "<= 2")
            show(f"beside: {size} files: requests for them", len(asked), "", f"= {len(names)}")
            show(f"beside: {size} files: memory before them", f"{before:.1f}", "MiB")
            show(f"beside: {size} files: the most memory until they are deleted", f"{alone:.1f}", "MiB")
            show(f"beside: {size} files: the most memory of pass and repair", f"{most_resident(house.agent.process.pid):.1f}", "MiB",
                 "<= 64")
            house.agent.run("cancel", "files")
            waiting.wait()
            house.agent.end()


# --- idle -------------------------------------------------------------------------------------------------------

def idle(arguments, scratch):
    with House(arguments, scratch) as house:
        house.publish("small", arguments.files)
        names = [f"m{number}" for number in range(arguments.mirrors)]
        house.follow(*((name, "small") for name in names), more='every = "12h"')
        house.agent.start()
        for name in names:
            house.agent.run("sync", "-q", name)
        house.wait_for_watch(names)
        house.rest()
        both = (house.agent.process.pid, house.watcher())
        before = sum(cpu_ticks(pid) for pid in both)
        time.sleep(60)
        spent = sum(cpu_ticks(pid) for pid in both) - before
        # Memory after that minute: what the first passes used is given back a few seconds after the last.
        parts = [watch_chaos.pss(pid) / 1024 for pid in both]
        show(f"idle: PSS, {arguments.mirrors} x {arguments.files} files: agent", f"{parts[0]:.1f}", "MiB")
        show("idle: PSS: tarn-watch", f"{parts[1]:.1f}", "MiB")
        show("idle: PSS: both", f"{sum(parts):.1f}", "MiB", "<= 40")
        show("idle: share of a CPU over 60 s", f"{spent / os.sysconf('SC_CLK_TCK') / 60 * 100:.2f}", "%", "< 0.2")
        house.agent.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--burst", type=int, default=100_000)
    parser.add_argument("--directories", type=int, default=100_000)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[1000, 100_000])
    parser.add_argument("--mirrors", type=int, default=10)
    parser.add_argument("--files", type=int, default=10_000)
    arguments = parser.parse_args()
    if unknown := set(arguments.only) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    # What was started is ended, too, where a limit of time ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = bench.find_tarn(arguments.tarn)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-watch-figures."))
    try:
        for part in PARTS:
            if part in arguments.only:
                globals()[part](arguments, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
