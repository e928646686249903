"""The benchmark can fail: what it must not count does not count."""
import os
import sys

import data
import house
import measure
import tables


class Fake:
    """A tool of the tables' test."""
    rounds = None

    def __init__(self, name):
        self.name = name


def run(scratch):
    faults = [*of_trees(scratch), *of_runs(scratch), *of_tables()]
    for fault in faults:
        print(f"self-test: {fault}")
    print(f"benchmark: self-test: {len(faults)} faults")
    return 1 if faults else 0


def of_trees(scratch):
    """A tree with other bytes, with a file too few or too many, is wrong; the same seed gives the same bytes."""
    made = data.make(os.path.join(scratch, "one"), "set", [10, 4096, 0], 7)
    same = data.make(os.path.join(scratch, "two"), "set", [10, 4096, 0], 7)
    other = data.make(os.path.join(scratch, "three"), "set", [10, 4096, 0], 8)
    if made.digests != same.digests or made.digests == other.digests:
        yield "the data do not come from the seed"
    if made.wrong(same.files):
        yield f"a right tree is called wrong: {made.wrong(same.files)}"
    path = os.path.join(same.files, same.paths[1])
    with open(path, "r+b") as stream:
        stream.write(b"x")
    if not made.wrong(same.files):
        yield "other bytes are not seen"
    os.unlink(path)
    if not made.wrong(same.files):
        yield "a missing file is not seen"
    os.rename(os.path.join(made.files, made.paths[1]), os.path.join(made.files, "more"))
    if not made.wrong(made.files):
        yield "a file of another name is not seen"


def of_runs(scratch):
    """A program that fails does not count, and what one costs is measured."""
    meter = house.build(scratch, "meter", [])
    environment = measure.environment(os.path.join(scratch, "home"))
    for words in (["false"], ["sh", "-c", "kill -9 $$"], ["no-such-program-at-all"]):
        try:
            measure.cost(meter, words, scratch, environment)
        except measure.Failed:
            continue
        yield f"{words} counts"
    script = ("import time; x = bytearray(b'x') * (64 << 20); end = time.process_time() + 0.2\n"
              "while time.process_time() < end: pass")
    found, _ = measure.cost(meter, [sys.executable, "-c", script], scratch, environment)
    if not (found.wall >= 0.2 and found.cpu >= 0.2 and 64 <= found.memory < 512):
        yield f"wrong costs: {found}"
    least, _ = measure.cost(meter, ["true"], scratch, environment)
    if least.memory > 16:
        yield f"true took {least.memory} MiB: the meter's own memory is counted"


def of_tables():
    """A run that does not count makes a trouble, and no ratio is made with it."""
    def of(total):
        return measure.Run(wall=total, total=total, cpu=total, memory=1)
    found = {Fake("tarn"): [of(1), of(2), of(3)], Fake("curl"): [of(2), None, of(2)]}
    table = tables.Table("row", "title", found, [], [("tarn", "fastest", 1.0)])
    ratios = [figures for _, figures in table.ratios()]
    if len(ratios) != 1 or ratios[0]["pairs"] != 2 or ratios[0]["median"] != 1.0:
        yield f"wrong ratios: {ratios}"
    if len(list(table.troubles())) != 1:
        yield "a run that does not count is no trouble"
    if list(tables.Table("row", "title", {}, [], []).troubles()) == []:
        yield "a row without a run is no trouble"
