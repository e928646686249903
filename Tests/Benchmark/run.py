#!/usr/bin/env python3
"""Tarn beside its peers and the floor.

    run.py --tarn TARN [--rows NAME,...] [--only TOOL,...] [--rounds N] [--size small|full] [--json FILE]
"""
import argparse
import json
import os
import shutil
import signal
import sys
import tempfile

import house
import nothing
import transfer

ROWS = {"small": transfer.small, "small-h2": transfer.small_h2, "large": transfer.large, "mixed": transfer.mixed,
        "noop-50k": nothing.noop_50k}


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
        if place.disks.note:
            print(place.disks.note)
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
