"""Rows about growth: the plan of a very long manifest, a pass of the agent over a feed that has not changed, the binary."""
import hashlib
import os
import shutil
import sys
import tempfile
import time
import types

import command
import data
import disk
import measure
import peers
import tables

PLACE = os.path.dirname(os.path.abspath(__file__))


def write_manifest(path, count, is_sorted):
    """A manifest whose files are nowhere; with paths in order, or in none."""
    lines = hashlib.sha256()
    with open(path, "wb", buffering=1 << 20) as stream:
        head = b'{"header":{"format":"mirror-manifest/1","version":1,"mirrors":["files/"]}}\n'
        lines.update(head)
        stream.write(head)
        block = []
        for index in range(count):
            # A factor that has none in common with the counts here: each number comes once.
            number = index if is_sorted else index * 7_368_787 % count
            digest = hashlib.sha256(b"%d" % number).hexdigest()
            block.append(data.manifest_line(f"d{number // 1000:05}/f{number:08}.bin", 4096, digest))
            if len(block) == 10_000 or index == count - 1:
                text = b"".join(block)
                lines.update(text)
                stream.write(text)
                block.clear()
        stream.write(data.end_line(count, 4096 * count, lines))


def plans(house, size):
    """The runs of `tarn plan` over the manifest as it is."""
    runs = []
    for _ in range(1 if size >= 10_000_000 else min(3, house.rounds(3))):
        place = house.disks.take(size * 1024 + (512 << 20))
        try:
            environment = measure.environment(os.path.join(place.path, "home"))
            words = plan_command(house, os.path.join(place.path, "out"))
            runs.append(measure.cost(house.meter, words, place.path, environment, is_silent=True)[0])
        finally:
            place.drop()
    return runs


def plan_command(house, folder):
    return [house.tarn.program, "plan", "--no-input", house.server.base + "/plan/manifest.ndjson", folder]


def plan(house):
    sizes = [3000, 10_000, 30_000] if house.is_small else [1_000_000, 3_000_000, 10_000_000]
    table = tables.Figures("plan-10m", f"tarn plan of a manifest of {sizes[-1]:,} entries, into an empty folder")
    directory = os.path.join(house.source, "plan")
    os.makedirs(directory, exist_ok=True)
    path, per_entry = os.path.join(directory, "manifest.ndjson"), {}
    for order in ("sorted", "in no order"):
        for size in sizes:
            write_manifest(path, size, order == "sorted")
            disk.sync(directory)
            runs = plans(house, size)
            per_entry[order, size] = measure.median([run.wall for run in runs]) / size
            named = f"{size:,} entries, {order}"
            table.add(f"{named}: time ({len(runs)} runs)", measure.median([run.wall for run in runs]), "s", None, "{:,.2f}")
            table.add(f"{named}: CPU", measure.median([run.cpu for run in runs]), "s", None, "{:,.2f}")
            table.add(f"{named}: peak memory", max(run.memory for run in runs), "MiB", 128.0)
            os.unlink(path)
        table.add(f"time for each entry, {sizes[-1]:,} to {sizes[0]:,} entries, {order} (1 is linear)",
                  per_entry[order, sizes[-1]] / per_entry[order, sizes[0]], "", None, "{:,.2f}")
    table.command("tarn", plan_command(house, "FOLDER"))
    table.notes.append("what it prints, a line for each entry, goes to /dev/null")
    return table


def agent_304(house):
    """The agent's pass over a feed that answers 304, its folder watched: as Tests/Tools/watch_figures.py has it."""
    sizes = [100, 1000] if house.is_small else [1000, 100_000]
    table = tables.Figures("agent-304", f"the agent's pass: feed answers 304, watch intact, {sizes[0]:,} and {sizes[1]:,} files")
    table.command("the same by itself", ["Tests/Tools/watch_figures.py", "--tarn", house.tarn.program, "--only", "passes",
                                         "--sizes", ",".join(map(str, sizes))])
    program = os.path.join(os.path.dirname(house.tarn.program), "tarn-watch")
    if not os.path.exists(program) or not shutil.which("strace"):
        table.notes.append("skipped: it needs tarn-watch beside tarn, and strace")
        return table
    sys.path.append(os.path.join(os.path.dirname(PLACE), "Tools"))
    import watch_figures  # pylint: disable=import-outside-toplevel
    counts, seconds = {}, {}
    scratch = tempfile.mkdtemp(dir=house.scratch)
    for size in sizes:
        with watch_figures.House(types.SimpleNamespace(tarn=house.tarn.program), scratch) as place:
            counts[size], seconds[size] = passes(place, watch_figures, size, 3 if house.is_small else 9)
        table.spread(f"{size:,} files: system calls of agent and tarn-watch for a pass", counts[size], "calls", form="{:,.0f}")
        table.spread(f"{size:,} files: CPU time of both for a pass", seconds[size], "ms", form="{:,.2f}")
    small, large = (measure.median(counts[size]) for size in sizes)
    table.add(f"system calls, {sizes[1]:,} files to {sizes[0]:,}", large / small, "", 1.2, "{:,.2f}")
    return table


def passes(place, figures, size, count):
    """([system calls], [milliseconds of CPU]) of passes over that many files, in sync and watched."""
    place.publish("files", size)
    place.adopted("files")
    place.follow(("files", "files"), more="adopt = true")
    place.agent.start()
    place.agent.run("sync", "-q", "files")
    place.wait_for_watch(["files"])
    place.rest()
    place.agent.run("sync", "-q", "files")
    milliseconds = []
    for _ in range(count):
        before = nanoseconds(place)
        place.agent.run("sync", "-q", "files")
        milliseconds.append((nanoseconds(place) - before) / 1e6)
    calls = [figures.calls_of_pass(place, "files") for _ in range(count)]
    place.agent.end()
    return calls, milliseconds


def nanoseconds(place):
    """CPU time of the agent and tarn-watch so far, with the threads that have ended: their processes' clocks, as
    clock_getcpuclockid(3) makes them."""
    return sum(time.clock_gettime_ns(~pid << 3 | 2) for pid in (place.agent.process.pid, place.watcher()))


def binary(house):
    """The release binary, stripped, and how long `tarn status` takes."""
    table = tables.Figures("size", "the release binary with Swift's runtime linked in, and tarn status")
    stripped = os.path.join(house.scratch, "stripped")
    command.expect(["strip", "-o", stripped, house.tarn.program])
    table.add("stripped binary", os.path.getsize(stripped) / 1e6, "MB", 30.0)
    table.command("strip", ["strip", "-o", "STRIPPED", house.tarn.program])
    loaded = command.expect(["ldd", house.tarn.program]).decode()
    is_whole = "libswift" not in loaded
    table.notes.append("Swift's runtime is linked in" if is_whole else "NOT THE RELEASE BUILD: Swift's runtime is loaded")
    files = house.files("tiny", [1000] * 20)
    place = house.disks.take(64 << 20)
    try:
        job = peers.Job(files, os.path.join(place.path, "out"), house.server.base, 0, None, "")
        environment = measure.environment(os.path.join(place.path, "home"))
        command.expect(house.tarn.fetch(job), env=environment)
        words = [house.tarn.program, "status", job.out]
        runs = [measure.cost(house.meter, words, place.path, environment)[0] for _ in range(5 if house.is_small else 41)]
    finally:
        place.drop()
    table.spread("tarn status", [run.wall * 1000 for run in runs], "ms", 30.0)
    table.spread("tarn status, CPU", [run.cpu * 1000 for run in runs], "ms")
    table.add("tarn status, peak memory", max(run.memory for run in runs), "MiB")
    table.command("tarn status", [house.tarn.program, "status", "FOLDER"])
    return table
