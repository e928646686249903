#!/usr/bin/env python3
"""Tarn beside what Debian has that could do the work (curl, aria2, wget2, rclone, lftp), and beside the floor, a small C program
that does the least there is to do. Data from a seed, nginx on loopback, random order, a fresh file system for each run.

    run.py --tarn TARN [--before TARN] [--rows NAME,...] [--only TOOL,...] [--rounds N] [--size small|full] [--seed N] [--json FILE]

Rows, each from a function of its own:
  small      20,000 files of 4 KiB over HTTP/1.1, from a manifest of lines and from a Metalink
  small-h2   the same over HTTP/2 with TLS
  large      one file of 2 GiB
  mixed      5,000 files, log-normal sizes, 270 KiB on average
  far        1,000 files of 10 KiB over HTTP/2 with TLS, 100 ms there and back
  noop-50k   nothing to do, 50,000 files
  noop-1m    nothing to do, a million files
  agent-304  a pass of the agent: its feed answers 304, its folder is watched
  plan-10m   the plan of manifests of 1, 3 and 10 million entries
  resume     what is fetched twice after kill -9 at half of 2 GiB
  get        tarn get of one file of 2 GiB
  tasks      100,000 downloads handed over to the agent, beside aria2's RPC
  latency    a 404 asked for beside a transfer at full speed
  size       the stripped binary, and tarn status

A race has 9 rounds (aria2, whose transfers are long, takes part in the first 3, and when it hashes what is there, in the first
one); --rounds sets another number. --only takes part of the tools: tarn, floor, curl, aria2, wget2, rclone, lftp; what is not
installed is left out, and said. --before lets an earlier Tarn run in each race that fetches. --size small proves in a minute that
all works. As root each run has an ext4 of its own, on a loop device; where nothing can be mounted the runs share a file system, and
that is said. Needed are nginx, openssl and a C compiler with
the headers of OpenSSL and SQLite; perf or strace counts system calls.

Prints a table for each row, and at the end all that is wanted as Markdown. It judges nothing: figures depend on the machine. Ends
with 1 when a run did not count or a row has no figures.
"""
import argparse
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import time

import far
import house
import latency
import nothing
import peers
import resume
import scale
import self_test
import sessions
import tables
import transfer

ROWS = {"small": transfer.small, "small-h2": transfer.small_h2, "large": transfer.large, "mixed": transfer.mixed, "far": far.far,
        "noop-50k": nothing.noop_50k, "noop-1m": nothing.noop_1m, "agent-304": scale.agent_304, "plan-10m": scale.plan,
        "resume": resume.resume, "get": sessions.get, "tasks": sessions.tasks,
        "latency": latency.latency, "size": scale.binary}


def head(place, arguments):
    """What was run when, where, and how the figures are to be read."""
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        model = next((line.split(":", 1)[1].strip() for line in stream if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    yield (f"{time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} x {model}, {memory} GiB, Linux {platform.release()}, "
           f"load {os.getloadavg()[0]:.1f}; seed {arguments.seed}, size {arguments.size}")
    if place.is_small:
        yield "Size small: this proves that all works. The figures are no measure of anything."
    how = " with direct I/O" if place.disks.direct else ""
    yield place.disks.note or ("Each run writes to an ext4 file system of its own, fresh, on a sparse image behind a loop device"
                               f"{how}; those of nothing to do, to one that stays.")
    yield ("A run counts when its exit status is 0 and the tree's digests are right. Seconds are of the wall clock, medians; "
           "'+ sync': with the syncfs of what it wrote, but for tarn and floor, which make all durable themselves. CPU: user and "
           "system. MiB: the most that any run's largest process had resident (no tool here runs two). wire: all bytes that the "
           "server sent, heads included and TLS left out, by its log. Ratios are made round by round: median and quartiles.")
    yield from tables.promises([tool for tool in place.tools()[0]])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--before")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS))
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    if unknown := set(arguments.only) - {"tarn", "floor", *(peer.name for peer in peers.PEERS)}:
        parser.error(f"no such tool: {', '.join(sorted(unknown))}")
    return arguments


def measured(arguments, scratch):
    """Makes the rows, and prints each as soon as it is made."""
    tarn = os.path.abspath(shutil.which(arguments.tarn) or arguments.tarn)
    before = arguments.before and os.path.abspath(arguments.before)
    place = house.House(scratch, tarn, arguments.only, arguments.seed, arguments.size == "small", arguments.rounds, before=before)
    try:
        print("\n".join(head(place, arguments)), flush=True)
        for name in arguments.rows:
            row = ROWS[name](place)
            print("\n" + "\n".join(row.lines()))
            asked = f"--size {arguments.size} --seed {arguments.seed}"
            asked += f" --rounds {arguments.rounds}" if arguments.rounds else ""
            asked += f" --only {','.join(arguments.only)}" if arguments.only else ""
            print(f"   made by: Tests/Benchmark/run.py --tarn {arguments.tarn} {asked} --rows {name}", flush=True)
            yield row
    finally:
        place.close()


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-benchmark."))
    begin = time.monotonic()
    try:
        if arguments.self_test:
            return self_test.run(scratch)
        rows = list(measured(arguments, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as stream:
            json.dump([row.figures() for row in rows], stream, indent=1)
    print("\n" + "\n".join(tables.summary(rows)))
    troubles = [trouble for row in rows for trouble in row.troubles()]
    absent = ", ".join(peer.name for peer in peers.PEERS if not peer.find())
    account = f"benchmark: {len(rows)} rows, {len(troubles)} troubles, {time.monotonic() - begin:.0f} s"
    print("\n" + "\n".join([*troubles, account + (f"; not installed, left out: {absent}" if absent else "")]))
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
