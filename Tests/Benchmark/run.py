#!/usr/bin/env python3
"""Tarn beside its peers and the floor.

    run.py --tarn TARN [--rows NAME,...] [--only TOOL,...] [--rounds N] [--size small|full] [--json FILE]
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

import house
import latency
import nothing
import resume
import scale
import tables
import transfer

ROWS = {"small": transfer.small, "small-h2": transfer.small_h2, "large": transfer.large, "mixed": transfer.mixed,
        "noop-50k": nothing.noop_50k, "noop-1m": nothing.noop_1m, "agent-304": scale.agent_304, "plan-10m": scale.plan,
        "resume": resume.resume, "latency": latency.latency, "size": scale.binary}


def head(place, arguments):
    """What was run when, where, and how the figures are to be read."""
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
        model = next((line.split(":", 1)[1].strip() for line in stream if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    yield (f"{time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} x {model}, {memory} GiB, Linux {platform.release()}, load "
           f"{os.getloadavg()[0]:.1f}; seed {arguments.seed}, size {arguments.size}")
    if place.is_small:
        yield "Size small: this proves that all works. The figures are no measure of anything."
    yield place.disks.note or ("Each run writes to an ext4 file system of its own, fresh, on a sparse image behind a loop device"
                               + (" with direct I/O" if place.disks.direct else "") + "; those of nothing to do, to one that stays.")
    yield ("A run counts when its exit status is 0 and the tree's digests are right. Seconds are of the wall clock, medians; '+ sync': with "
           "the syncfs of what it wrote, where the tool makes nothing durable itself (tarn and floor do). CPU: user and system. MiB: the "
           "most that any run's largest process had resident (no tool here runs two). wire: all bytes that the server sent, heads included, "
           "by its log. Ratios are made round by round: the median, and the quartiles.")
    yield from tables.promises([tool for tool in place.tools()[0]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS))
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    tarn = os.path.abspath(shutil.which(arguments.tarn) or arguments.tarn)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-benchmark."))
    place, figures = None, []
    try:
        place = house.House(scratch, tarn, arguments.only, arguments.seed, arguments.size == "small", arguments.rounds)
        print("\n".join(head(place, arguments)), flush=True)
        for name in arguments.rows:
            table = ROWS[name](place)
            print("\n".join(table.lines()), flush=True)
            figures.append(table.figures())
    finally:
        if place:
            place.close()
        shutil.rmtree(scratch, ignore_errors=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as stream:
            json.dump(figures, stream, indent=1)


if __name__ == "__main__":
    sys.exit(main())
