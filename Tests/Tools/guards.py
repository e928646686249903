#!/usr/bin/env python3
"""Removes the guards of the program, one at a time, and looks whether some test turns red.

guards.json is the list. An entry has a name, a file, the text `old` that occurs exactly once in it, the text `new` that
stands for it while the guard is away, and who has to notice: `filter`, a pattern for `swift test --filter`, or `grid`, the
arguments of a Python program beside this one that ends with another status than 0; {tarn} in them is the freshly built
binary.

The tree is copied to --scratch, where the build directory stays from run to run. First all filters and grids run over
the unchanged copy: what fails there proves nothing later. Then, for each entry: replace, build, test until the first
failure, put back.

  red     a test that was green fails, crashes or hangs: the guard is guarded
  green   nobody noticed: a hole
  stale   `old` does not occur exactly once, the result does not build, or no test ran: the entry is wrong

A table (name, red by, seconds), then `guards: N removed, N red, N green, N stale`; ends with 1 unless all are red.
"""
import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(HERE, "guards.json")
BUILD_LIMIT = 1800  # Seconds; a first build takes long.
ISSUE = re.compile(r"^\S+ Test (?!run\b)(.+?) (?:recorded an issue|failed after|with \d+ test cases? failed)(.*)$")
PLACE = re.compile(r" at (\w+\.swift):\d+")
RUN = re.compile(r"Test run with (\d+) tests?")
KEPT = {"TERM", "HOME", "PATH", "TMPDIR", "LANG", "LC_ALL", "TARN_FEEDS"}


class Stale(Exception):
    """The entry is wrong; the text says how."""


# --- entries ---------------------------------------------------------------------------------------------------

def load(path):
    with open(path, encoding="utf-8") as stream:
        entries = json.load(stream)
    names = set()
    for entry in entries:
        name = entry.get("name")
        if not {"name", "file", "old", "new"} <= entry.keys() or ("filter" in entry) == ("grid" in entry):
            raise SystemExit(f"guards.json: {name}: needs name, file, old, new and either filter or grid")
        if name in names:
            raise SystemExit(f"guards.json: {name} is there twice")
        names.add(name)
    return entries


def replaced(tree, entry):
    """The text of the entry's file without the guard."""
    try:
        with open(os.path.join(tree, entry["file"]), encoding="utf-8") as stream:
            text = stream.read()
    except FileNotFoundError:
        raise Stale("there is no such file") from None
    count = text.count(entry["old"])
    if count != 1:
        raise Stale(f"its text occurs {count} times")
    if entry["old"] == entry["new"]:
        raise Stale("it changes nothing")
    return text.replace(entry["old"], entry["new"])


def chosen(entries, only, shard):
    if only:
        unknown = set(only) - {entry["name"] for entry in entries}
        if unknown:
            raise SystemExit(f"guards.json has no {', '.join(sorted(unknown))}")
        entries = [entry for entry in entries if entry["name"] in only]
    number, _, count = shard.partition("/")
    return [entry for index, entry in enumerate(entries) if index % int(count) == int(number) - 1]


# --- the copy --------------------------------------------------------------------------------------------------

def write_if_other(path, data):
    """Leaves a file that is right alone: its time decides what is built."""
    try:
        with open(path, "rb") as stream:
            if stream.read() == data:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(data)


def copy_tree(source, target):
    """Brings a copy into line with what git knows of the tree, changed and new files included."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, stdout=subprocess.PIPE).stdout.decode()
    names = {name for name in listed.split("\0") if name and os.path.isfile(os.path.join(source, name))}
    for extra in ("Package.resolved",):
        if os.path.isfile(os.path.join(source, extra)):
            names.add(extra)
    for name in names:
        path = os.path.join(target, name)
        with open(os.path.join(source, name), "rb") as stream:
            write_if_other(path, stream.read())
        shutil.copymode(os.path.join(source, name), path)
    for directory, inner, files in os.walk(target):
        inner[:] = [name for name in inner if not name.startswith(".build")]
        for name in files:
            path = os.path.join(directory, name)
            if os.path.relpath(path, target) not in names:
                os.remove(path)


# --- commands --------------------------------------------------------------------------------------------------

def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def lines_of(process, limit):
    """The lines of a process's output as they come; ends it when the time is up, and says so in the last line."""
    def alarm(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(limit)
    try:
        yield from process.stdout
    except TimeoutError:
        end_group(process)
        yield "TIME IS UP\n"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Workshop:
    """The copy, and the commands that build and test it."""

    def __init__(self, source, scratch, limit, log):
        self.tree, self.limit, self.log = os.path.join(scratch, "tree"), limit, log
        self.build_directory = os.path.join(scratch, "build")
        self.binary = os.path.join(self.build_directory, "debug", "tarn")
        self.source = source
        self.environment = {name: value for name, value in os.environ.items()
                            if name in KEPT or name.startswith("SWIFT")}
        self.environment.update(TARN_BINARY=self.binary, PYTHONDONTWRITEBYTECODE="1")
        self.environment["PATH"] += ":/usr/sbin:/sbin"

    def start(self, command):
        self.log.write(f"$ {shlex.join(command)}\n")
        return subprocess.Popen(command, cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                                start_new_session=True)

    def lines(self, process, limit):
        for line in lines_of(process, limit):
            self.log.write(line)
            self.log.flush()
            yield line

    def refresh(self):
        copy_tree(self.source, self.tree)

    def build(self):
        """Throws `Stale` with the first error."""
        process = self.start(["swift", "build", "--build-tests", "--scratch-path", self.build_directory])
        error = ""
        for line in self.lines(process, BUILD_LIMIT):
            if "error: " in line and not error:
                error = line.strip()
        if process.wait() != 0:
            raise Stale(f"it does not build: {error}")

    def test(self, pattern, known=(), whole=False):
        """The names of the tests that fail, but for the known ones: the first, or all of them."""
        process = self.start(["swift", "test", "--skip-build", "--disable-xctest", "--scratch-path",
                              self.build_directory, "--filter", pattern])
        failed, ran = [], 0
        for line in self.lines(process, self.limit if not whole else 6 * self.limit):
            ran = max(ran, *(int(count) for count in RUN.findall(line)), 0)
            name = "hangs" if line == "TIME IS UP\n" else failure(line)
            if name and name not in known and name not in failed:
                failed.append(name)
                if not whole:
                    end_group(process)
                    return failed
        status = process.wait()
        if status != 0 and not failed and (ran == 0 or not known):
            failed.append(f"the tests end with {status}")
        elif ran == 0 and not failed:
            raise Stale(f"no test is called {pattern}")
        return failed

    def grid(self, text):
        """[] when the grid ends with 0, else the first thing that it says."""
        command = [part.replace("{tarn}", self.binary) for part in shlex.split(text)]
        command[0] = os.path.join(self.tree, "Tests", "Tools", command[0])
        process, first, last = self.start([sys.executable] + command), "", ""
        for line in self.lines(process, 2 * self.limit):
            last = line.strip() or last
            first = first or last
        if "skipped" in last:
            raise Stale(f"the grid did not run: {last}")
        return [] if process.wait() == 0 else [f"{os.path.basename(command[0])}: {first[:120]}"]


def failure(line):
    """The file and name of a test that a line says to have failed; None for any other line."""
    match = ISSUE.match(line)
    if not match:
        return None
    place = PLACE.search(match[2])
    name = match[1].split(" recorded")[0]
    return f"{place[1].removesuffix('.swift')}.{name}" if place else name


# --- the run ---------------------------------------------------------------------------------------------------

def baseline(workshop, entries):
    """What fails although nothing was removed: names of tests, and grids."""
    workshop.refresh()
    workshop.build()
    filters = sorted({entry["filter"] for entry in entries if "filter" in entry})
    failed = set(workshop.test("|".join(f"({text})" for text in filters), whole=True)) if filters else set()
    short = {name.rpartition(".")[2] for name in failed}
    grids = {text for text in sorted({entry["grid"] for entry in entries if "grid" in entry}) if workshop.grid(text)}
    for name in sorted(failed | grids):
        print(f"fails unchanged: {name}", flush=True)
    return failed | short, grids


def examine(workshop, entry, known, broken):
    """(verdict, by whom) for one entry."""
    path = os.path.join(workshop.tree, entry["file"])
    try:
        text = replaced(workshop.tree, entry)
        if entry.get("grid") in broken:
            raise Stale("its grid fails unchanged")
        with open(path, encoding="utf-8") as stream:
            before = stream.read()
    except Stale as reason:
        return "stale", str(reason)
    try:
        write_if_other(path, text.encode())
        workshop.build()
        failed = workshop.test(entry["filter"], known) if "filter" in entry else workshop.grid(entry["grid"])
    except Stale as reason:
        return "stale", str(reason)
    finally:
        write_if_other(path, before.encode())
    return ("red", failed[0]) if failed else ("green", "nobody")


def run(workshop, entries, table, skip_baseline):
    known, broken = (), ()
    if skip_baseline:
        workshop.refresh()
        workshop.build()
    else:
        known, broken = baseline(workshop, entries)
    counts = {"red": 0, "green": 0, "stale": 0}
    width = max([len(entry["name"]) for entry in entries] + [4])

    def row(name, who, seconds):
        line = f"{name:{width}} | {who} | {seconds}"
        print(line, flush=True)
        table.write(line + "\n")
        table.flush()

    row("name", "red by", "seconds")
    # Entries of one file after another: what was put back is built together with what is removed next.
    for entry in entries:
        begin = time.monotonic()
        verdict, who = examine(workshop, entry, known, broken)
        counts[verdict] += 1
        row(entry["name"], who if verdict == "red" else f"{verdict.upper()}: {who}", f"{time.monotonic() - begin:.0f}")
    line = (f"guards: {sum(counts.values())} removed, {counts['red']} red, {counts['green']} green, "
            f"{counts['stale']} stale")
    print(line)
    table.write(line + "\n")
    return counts["red"] == len(entries) > 0


def show(entries):
    """The list, and whether each entry fits the tree. True when all do."""
    good = True
    for entry in entries:
        try:
            replaced(ROOT, entry)
            state = entry.get("filter") or entry["grid"]
        except Stale as reason:
            state, good = f"STALE: {reason}", False
        print(f"{entry['name']} | {entry['file']} | {state}")
    print(f"guards: {len(entries)} in the list")
    return good


# --- the test of this file -------------------------------------------------------------------------------------

FAKE_SWIFT = r'''#!/bin/sh
# Builds and tests a text instead of a program.
case $1 in
  build) if grep -q broken limit.txt; then echo "limit.txt:1:1: error: broken"; exit 1; fi ;;
  test)
    case $* in *"--filter Nobody"*) exit 0 ;; esac
    echo "✔ Test run with 2 tests in 1 suite passed"
    echo '✘ Test alwaysRed() recorded an issue at FakeTests.swift:9:5: known'
    grep -q 'limit 5' limit.txt || { echo '✘ Test keepsItsLimit() recorded an issue at FakeTests.swift:3:5: no'; sleep 60; }
    exit 1 ;;
esac
'''


def self_test():
    cases = [("guarded", "limit 5", "limit 9", "Fake", "red"), ("hole", "spare", "none", "Fake", "green"),
             ("gone", "no such text", "x", "Fake", "stale"), ("twice", "e", "x", "Fake", "stale"),
             ("unbuildable", "limit 5", "broken", "Fake", "stale"), ("unasked", "spare", "x", "Nobody", "stale")]
    wrong = []
    with tempfile.TemporaryDirectory(prefix="tarn-guards.") as scratch, open(os.devnull, "w", encoding="utf-8") as log:
        source = os.path.join(scratch, "source")
        os.makedirs(os.path.join(scratch, "bin"))
        write_if_other(os.path.join(scratch, "bin", "swift"), FAKE_SWIFT.encode())
        os.chmod(os.path.join(scratch, "bin", "swift"), 0o755)
        write_if_other(os.path.join(source, "limit.txt"), b"limit 5\nspare\nsee\n")
        subprocess.run(["git", "init", "-q", source], check=True)
        workshop = Workshop(source, scratch, 10, log)
        workshop.environment["PATH"] = os.path.join(scratch, "bin") + ":" + workshop.environment["PATH"]
        entries = [dict(name=name, file="limit.txt", old=old, new=new, filter=pattern)
                   for name, old, new, pattern, _ in cases]
        known, broken = baseline(workshop, entries[:1])
        for entry, case in zip(entries, cases):
            verdict, who = examine(workshop, entry, known, broken)
            if verdict != case[4] or (verdict == "red" and who != "FakeTests.keepsItsLimit()"):
                wrong.append(f"{entry['name']}: {verdict} by {who}, not {case[4]}")
        with open(os.path.join(workshop.tree, "limit.txt"), encoding="utf-8") as stream:
            if stream.read() != "limit 5\nspare\nsee\n":
                wrong.append("the copy was not put back")
        for text, only, shard, count in (("all", [], "1/1", 6), ("shard", [], "2/4", 2), ("one", ["hole"], "1/1", 1)):
            if len(chosen(entries, only, shard)) != count:
                wrong.append(f"{text} were not {count}")
    for text in wrong:
        print(f"guards.py: {text}")
    print(f"guards.py: {len(cases) - len(wrong)} of {len(cases)} entries of a fake judged rightly")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="repeatable")
    parser.add_argument("--list", action="store_true", help="show the entries, and which fit the tree no more")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="only each N-th entry, from the I-th on")
    parser.add_argument("--scratch", default=os.path.join(tempfile.gettempdir(), "tarn-guards"),
                        help="where the copy is built; it stays (%(default)s)")
    parser.add_argument("--limit", type=int, default=240, help="seconds for the tests of an entry")
    parser.add_argument("--table", default=os.devnull, help="append the table to this file as well")
    parser.add_argument("--skip-baseline", action="store_true", help="when the tests were just seen to pass unchanged")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(0 if self_test() else 1)
    entries = chosen(load(DATA), arguments.only, arguments.shard)
    if arguments.list:
        sys.exit(0 if show(entries) else 1)
    os.makedirs(arguments.scratch, exist_ok=True)
    with open(os.path.join(arguments.scratch, "log"), "w", encoding="utf-8") as log, \
            open(arguments.table, "a", encoding="utf-8") as table:
        workshop = Workshop(ROOT, os.path.abspath(arguments.scratch), arguments.limit, log)
        sys.exit(0 if run(workshop, entries, table, arguments.skip_baseline) else 1)


if __name__ == "__main__":
    main()
