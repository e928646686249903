#!/usr/bin/env python3
"""Removes the guards of the program, one at a time, and looks whether some test turns red.

guards.json is the list. An entry has a name, a file, the text `old` that occurs exactly once in it, the text `new` that
stands for it while the guard is away, and who has to notice: `filter`, a pattern for `swift test --filter`, or `grid`, the
arguments of a Python program beside this one that ends with another status than 0; {tarn} in them is the freshly built
binary. With `"alone": true` it is built by itself, as where the variable of the switch does not get to (tarn-watch).

The tree is copied to --scratch, where the build directory stays from run to run. All guards are put behind one switch
(guard_switch.py) and built once; those that do not fit behind it are built one at a time in the end. First all filters and
grids run with every guard in place: what fails there proves nothing later. Then, for each entry: away with the guard,
test until the first failure.

  red     a test that was green fails (and again, alone, but not alone with the guard), crashes or hangs
  green   nobody noticed: a hole
  stale   `old` does not occur exactly once, the result does not build, or no test ran: the entry is wrong

A table (name, red by, seconds), then `guards: N removed, N red, N green, N stale`; ends with 1 unless all are red.
"""
import argparse
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import guard_switch
from guard_switch import Stale, Switches, replaced, write_if_other

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = os.path.join(HERE, "guards.json")
NO_TESTS = 69  # The status of the tests when the filter leaves none.
BUILD_LIMIT = 1800  # Seconds; a first build takes long.
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Tests write at once: only the last of a line is whole.
ISSUE = re.compile(r"^.*✘ Test (?!run\b|case\b)(.+?) (?:recorded an issue|failed after|with \d+ test cases? failed)(.*)$")
PLACE = re.compile(r" at (\w+\.swift):\d+")
ERROR = re.compile(r"^(/.+?):(\d+):\d+: error: (.*)$")
RUN = re.compile(r"Test run with (\d+) tests?")
KEPT = {"TERM", "HOME", "PATH", "TMPDIR", "LANG", "LC_ALL", "TARN_FEEDS"}


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


def chosen(entries, only, shard):
    if only:
        unknown = set(only) - {entry["name"] for entry in entries}
        if unknown:
            raise SystemExit(f"guards.json has no {', '.join(sorted(unknown))}")
        entries = [entry for entry in entries if entry["name"] in only]
    number, _, count = shard.partition("/")
    return [entry for index, entry in enumerate(entries) if index % int(count) == int(number) - 1]


# --- the copy --------------------------------------------------------------------------------------------------

def snapshot(source):
    """What git knows of the tree, changed and new files included: {name: (bytes, mode)}."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, stdout=subprocess.PIPE).stdout.decode()
    files = {}
    for name in [*listed.split("\0"), "Package.resolved"]:
        path = os.path.join(source, name)
        if name and os.path.isfile(path):
            with open(path, "rb") as stream:
                files[name] = stream.read(), os.stat(path).st_mode & 0o777
    return files


# --- commands --------------------------------------------------------------------------------------------------

def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def lines_of(process, limit):
    """The lines of a process's output as they come; ends it when the time is up, and says so in the last line."""
    late = threading.Event()

    def end():
        late.set()
        end_group(process)

    timer = threading.Timer(limit, end)
    timer.start()
    try:
        yield from process.stdout
        if late.is_set():
            yield "TIME IS UP\n"
    finally:
        timer.cancel()


class Workshop:
    """The copy, and the commands that build and test it."""

    def __init__(self, source, scratch, limit, log):
        self.tree, self.limit, self.log = os.path.join(scratch, "tree"), limit, log
        self.build_directory = os.path.join(scratch, "build")
        self.binary = os.path.join(self.build_directory, "debug", "tarn")
        self.tests = os.path.join(self.build_directory, "debug", "tarnPackageTests.xctest")
        self.files = snapshot(source)
        self.environment = {name: value for name, value in os.environ.items()
                            if name in KEPT or name.startswith("SWIFT")}
        self.environment.update(TARN_BINARY=self.binary, PYTHONDONTWRITEBYTECODE="1")
        self.environment["PATH"] += ":/usr/sbin:/sbin"

    def start(self, command, away=0):
        """A process in which the guard of that number is away."""
        self.log.write(f"$ {shlex.join(command)} # {away or 'all'}\n")
        return subprocess.Popen(command, cwd=self.tree, env={**self.environment, guard_switch.VARIABLE: str(away)},
                                stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                errors="replace", start_new_session=True)

    def lines(self, process, limit, away=0):
        for line in lines_of(process, limit):
            self.log.write(f"{away}: {line}")
            self.log.flush()
            yield line

    def refresh(self, others=None):
        """Makes the copy what the tree was at the start, but for other texts: {name: text}. Leaves alone what is so."""
        others = others or {}
        for name, (data, mode) in self.files.items():
            path = os.path.join(self.tree, name)
            write_if_other(path, others[name].encode() if name in others else data)
            os.chmod(path, mode)
        for name in others.keys() - self.files.keys():
            write_if_other(os.path.join(self.tree, name), others[name].encode())
        for directory, _, files in os.walk(self.tree):
            for name in files:
                path = os.path.join(directory, name)
                if os.path.relpath(path, self.tree) not in self.files.keys() | others.keys():
                    os.remove(path)

    def text(self, name):
        """The file's text at the start. Throws `Stale` without one."""
        if name not in self.files:
            raise Stale("there is no such file")
        return self.files[name][0].decode()

    def try_build(self):
        """The errors, [(file, line, text)]; [] when it builds."""
        process = self.start(["swift", "build", "--build-tests", "--scratch-path", self.build_directory])
        errors, last = [], ""
        for line in self.lines(process, BUILD_LIMIT):
            last = line.strip() or last
            if match := ERROR.match(line):
                errors.append((os.path.relpath(match[1], self.tree), int(match[2]), match[3]))
        if process.wait() == 0:
            return []
        return errors or [("", 0, last)]

    def build(self):
        """Throws `Stale` with the first error."""
        if errors := self.try_build():
            raise Stale(f"it does not build: {':'.join(str(part) for part in errors[0])}")

    def test(self, pattern, known=(), whole=False, away=0):
        """The names of the tests that fail, but for the known ones: the first, or all of them."""
        process = self.start([self.tests, "--testing-library", "swift-testing", "--filter", pattern], away)
        failed, ran = [], 0
        for line in self.lines(process, self.limit if not whole else 6 * self.limit, away):
            ran = max(ran, *(int(count) for count in RUN.findall(line)), 0)
            name = "hangs" if line == "TIME IS UP\n" else failure(line)
            if name and name not in known and name not in failed:
                failed.append(name)
                if not whole:
                    end_group(process)
                    return failed
        status = process.wait()
        if ran == 0 and status in (0, NO_TESTS) and not failed:
            raise Stale(f"no test is called {pattern}")
        if status != 0 and not failed and (ran == 0 or not known):
            failed.append(f"the tests end with {status}")
        return failed

    def grid(self, text, away=0):
        """[] when the grid ends with 0, else the first thing that it says."""
        binary = os.path.join(self.build_directory, f"tarn-without-{away}")
        write_if_other(binary, f'#!/bin/sh\n{guard_switch.VARIABLE}={away} exec {self.binary} "$@"\n'.encode())
        os.chmod(binary, 0o755)
        command = [part.replace("{tarn}", binary) for part in shlex.split(text)]
        command[0] = os.path.join(self.tree, "Tests", "Tools", command[0])
        process, first, last = self.start([sys.executable] + command), "", ""
        for line in self.lines(process, 2 * self.limit, away):
            last = line.strip() or last
            first = first or last
        os.remove(binary)
        if "skipped" in last:
            raise Stale(f"the grid did not run: {last}")
        first = re.sub(r"(?<!\S)/\S+/", "", first)  # Scratch directories say nothing.
        return [] if process.wait() == 0 else [f"{os.path.basename(command[0])}: {first[:120]}"]

    def judge(self, entry, known, broken, away=0):
        """(verdict, by whom) for the entry whose guard is away. `away` is 0 when it is built by itself."""
        try:
            if entry.get("grid") in broken:
                raise Stale("its grid fails unchanged")
            if "grid" in entry:
                failed = self.grid(entry["grid"], away)
                return ("red", failed[0]) if failed else ("green", "nobody")
            doubted = set(known)
            while failed := self.test(entry["filter"], doubted, away=away):
                if self.is_sure(failed[0], known, away):
                    return "red", failed[0]
                doubted.add(failed[0])
        except Stale as reason:
            return "stale", str(reason)
        return "green", "nobody"

    def is_sure(self, name, known, away):
        """Whether a test fails again without the guard, and passes with it: else it failed for another reason."""
        function = re.search(r"(\w+)\(", name)
        if not function:
            return True
        pattern = rf"[./]{function[1]}\("
        return bool(self.test(pattern, known, away=away)) and (away == 0 or not self.test(pattern, known))


def failure(line):
    """The file and name of a test that a line says to have failed; None for any other line."""
    match = ISSUE.match(COLOUR.sub("", line))
    if not match:
        return None
    place = PLACE.search(match[2])
    name = match[1].split(" recorded")[0]
    return f"{place[1].removesuffix('.swift')}.{name}" if place else name


# --- the run ---------------------------------------------------------------------------------------------------

def baseline(workshop, entries):
    """What fails although every guard is in its place: names of tests, and grids."""
    filters = sorted({entry["filter"] for entry in entries if "filter" in entry})
    failed = set(workshop.test("|".join(f"({text})" for text in filters), whole=True)) if filters else set()
    short = {name.rpartition(".")[2] for name in failed}
    grids = {text for text in sorted({entry["grid"] for entry in entries if "grid" in entry}) if workshop.grid(text)}
    for name in sorted(failed | grids):
        print(f"fails unchanged: {name}", flush=True)
    return failed | short, grids


def examine(workshop, entry, known, broken):
    """(verdict, by whom) for one entry that is built by itself."""
    try:
        workshop.refresh({entry["file"]: replaced(workshop.text(entry["file"]), entry)})
        workshop.build()
    except Stale as reason:
        return "stale", str(reason)
    return workshop.judge(entry, known, broken)


class Table:
    """The verdicts, printed as they come and appended to a file."""

    def __init__(self, entries, stream):
        self.counts, self.stream = {"red": 0, "green": 0, "stale": 0}, stream
        self.width = max([len(entry["name"]) for entry in entries] + [4])
        self.say(f"{'name':{self.width}} | red by | seconds")

    def say(self, line):
        print(line, flush=True)
        self.stream.write(line + "\n")
        self.stream.flush()

    def row(self, entry, work):
        begin = time.monotonic()
        verdict, who = work()
        self.counts[verdict] += 1
        who = who if verdict == "red" else f"{verdict.upper()}: {who}"
        self.say(f"{entry['name']:{self.width}} | {who} | {time.monotonic() - begin:.0f}")

    def end(self):
        self.say(f"guards: {sum(self.counts.values())} removed, {self.counts['red']} red, "
                 f"{self.counts['green']} green, {self.counts['stale']} stale")


def run(workshop, entries, stream, jobs=1):
    """True when every guard was missed."""
    table, switches = Table(entries, stream), Switches(workshop, entries)
    switches.build()
    known, broken = baseline(workshop, entries)
    for name, reason in switches.alone.items():
        print(f"built by itself: {name}: {reason}", flush=True)

    def one(entry):
        number = switches.numbers[entry["name"]]
        table.row(entry, lambda: workshop.judge(entry, known, broken, number))

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, [entry for entry in entries if entry["name"] in switches.numbers]))
    for name, reason in switches.stale.items():
        table.row({"name": name}, lambda reason=reason: ("stale", reason))
    for entry in entries:
        if entry["name"] in switches.alone:
            table.row(entry, lambda entry=entry: examine(workshop, entry, known, broken))
    table.end()
    return table.counts["red"] == len(entries) > 0


def show(entries):
    """The list, and whether each entry fits the tree. True when all do."""
    stale = []
    for entry in entries:
        try:
            with open(os.path.join(ROOT, entry["file"]), encoding="utf-8") as stream:
                replaced(stream.read(), entry)
            print(f"{entry['name']} | {entry['file']} | {entry.get('filter') or entry['grid']}")
        except (Stale, FileNotFoundError) as reason:
            stale.append(f"{entry['name']} | {entry['file']} | STALE: {reason}")
    for line in stale:
        print(line)
    print(f"guards: {len(entries)} in the list, {len(stale)} stale")
    return not stale


# --- the test of this file -------------------------------------------------------------------------------------

FAKE_SWIFT = r'''#!/bin/sh
# swift build --build-tests --scratch-path DIRECTORY
mkdir -p "$4/debug" && exec clang -o "$4/debug/tarnPackageTests.xctest" "$PWD/limit.c"
'''

FAKE = r'''#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static const int most = 7;
int limit(void) {
  return 5;
}
int spare(void) { return 1; }
/* A test that fails for a reason of its own, once. */
static bool fails_once(void) {
  if (access("failed", F_OK) == 0) return false;
  fclose(fopen("failed", "w"));
  return true;
}
int main(int count, char **words) {
  if (strcmp(words[count - 1], "Nobody") == 0) return 69;
  printf("✔ Test run with 2 tests in 1 suite passed\n");
  printf("✘ Test alwaysRed() recorded an issue at FakeTests.swift:9:5: known\n");
  if (limit() != 5 || most != 7) {
    printf("✘ Test keepsItsLimit() recorded an issue at FakeTests.swift:3:5: no\n");
    fflush(stdout);
    sleep(60);
  }
  if (spare() == 4 && fails_once()) printf("✘ Test sometimes() recorded an issue at FakeTests.swift:4:5: no\n");
  return spare() > 0;
}
'''


def self_test():
    cases = [("guarded", "return 5", "return 9", "Fake", "red"), ("hole", "return 1", "return 2", "Fake", "green"),
             ("gone", "no such text", "x", "Fake", "stale"), ("twice", "return", "x", "Fake", "stale"),
             ("unbuildable", "return 5", "return broken", "Fake", "stale"),
             ("unasked", "return 1", "return 3", "Nobody", "stale"), ("outside", "most = 7", "most = 8", "Fake", "red"),
             ("doubtful", "return 1;", "return 4;", "Fake", "green"), ("alone", "return 5", "return 8", "Fake", "red")]
    entries = [dict(name=name, file="limit.c", old=old, new=new, filter=pattern) for name, old, new, pattern, _ in cases]
    entries[-1]["alone"] = True
    wrong, table = [], io.StringIO()
    with tempfile.TemporaryDirectory(prefix="tarn-guards.") as scratch, open(os.devnull, "w", encoding="utf-8") as log:
        source = os.path.join(scratch, "source")
        write_if_other(os.path.join(scratch, "bin", "swift"), FAKE_SWIFT.encode())
        os.chmod(os.path.join(scratch, "bin", "swift"), 0o755)
        write_if_other(os.path.join(source, "limit.c"), FAKE.encode())
        subprocess.run(["git", "init", "-q", source], check=True)
        workshop = Workshop(source, scratch, 10, log)
        workshop.environment["PATH"] = os.path.join(scratch, "bin") + ":" + workshop.environment["PATH"]
        if run(workshop, entries, table, jobs=2):
            wrong.append("the run was good, with a hole and four stale entries")
    rows = {line.partition("|")[0].strip(): line.partition("|")[2].strip() for line in table.getvalue().splitlines()}
    for name, _, _, _, verdict in cases:
        text = rows.get(name, "missing")
        start = {"red": "FakeTests.keepsItsLimit()", "green": "GREEN", "stale": "STALE"}[verdict]
        if not text.startswith(start):
            wrong.append(f"{name}: {text}, not {verdict}")
    for text, only, shard, count in (("all", [], "1/1", 9), ("shard", [], "2/4", 2), ("one", ["hole"], "1/1", 1)):
        if len(chosen(entries, only, shard)) != count:
            wrong.append(f"{text} were not {count}")
    for text in wrong:
        print(f"guards.py: {text}")
    print(f"guards.py: {len(cases)} entries of a fake, {len(wrong)} judged wrongly")
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
    parser.add_argument("--jobs", type=int, default=1, help="so many entries at once (%(default)s)")
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
        sys.exit(0 if run(workshop, entries, table, arguments.jobs) else 1)


if __name__ == "__main__":
    main()
