"""Rows in which everything is fetched into an empty folder."""
import dataclasses
import os

import data
import disk
import measure
import memory
import peers
import tables


@dataclasses.dataclass(frozen=True)
class Variant:
    """A tool with a manifest of another kind, in the same row."""
    tool: object
    name: str
    manifest: str = "manifest.ndjson"

    @property
    def rounds(self):
        return self.tool.rounds


class Run:
    """One run on a fresh disk, which is gone after it."""

    def __init__(self, house, variant, files, secure):
        self.house, self.variant, self.files = house, variant, files
        room = files.bytes * 5 // 4 + len(files.paths) * 8192 + (256 << 20)
        self.place = house.disks.take(room, files=2 * len(files.paths))
        self.job = job_of(house, variant, files, secure, os.path.join(self.place.path, "out"))
        os.mkdir(self.job.out)
        self.command = variant.tool.fetch(self.job)
        self.environment = measure.environment(os.path.join(self.place.path, "home"))
        disk.sync(house.scratch)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.drop()

    def measured(self):
        """A measure.Run; raises measure.Failed where it does not count."""
        server = self.house.server
        begin = server.mark()
        with memory.Reserve(self.files.bytes * 5 // 4 + (256 << 20)):
            run, _ = measure.cost(self.house.meter, self.command, self.place.path, self.environment)
            after = disk.sync(self.place.path)
        asked = list(server.requests(begin, server.mark()))
        if wrong := self.files.wrong(self.job.out):
            raise measure.Failed("; ".join(wrong))
        run.wire, run.requests = sum(request.wire for request in asked), len(asked)
        run.total = run.wall if self.variant.tool.keeps else run.wall + after
        run.protocols = "+".join(sorted({request.protocol for request in asked}))
        return run

    def calls(self):
        return measure.calls(self.command, self.place.path, self.environment)


def job_of(house, variant, files, secure, out):
    return peers.Job(files=files, out=out, base=house.server.secure_base if secure else house.server.base,
                     port=house.server.port, authority=house.server.authority if secure else None,
                     lists=os.path.join(house.scratch, "lists"), manifest=variant.manifest)


def row(house, name, title, files, rounds, *, secure=False, reach, with_metalink=False, wanted=lambda tool: True,
        made=lambda tool: tool):
    """Measures and prints one row; its figures for the JSON. wanted: tools that take part; made: what a tool is run as."""
    tools, missing = house.tools(lambda tool: wanted(tool) and (not secure or tool.http2 or tool is house.floor))
    variants = [Variant(made(tool), tool.name) for tool in tools]
    if with_metalink and house.tarn in tools:
        variants.insert(1, Variant(house.tarn, "tarn, Metalink", "manifest-tls.meta4" if secure else "manifest.meta4"))
    peers.write_lists(job_of(house, variants[0], files, secure, ""))
    if secure:
        missing += [f"{peer.name}: does not speak HTTP/2: left out" for peer in peers.PEERS if not peer.http2]
        missing.append("floor: over plain HTTP/1.1, for comparison only: it has no TLS")

    def once(variant):
        with Run(house, variant, files, secure) as run:
            return run.measured()

    found = measure.rounds(rounds, variants, once, house.seed)
    table = tables.Table(name, title, found, missing, reach)
    for variant in variants:
        table.command(variant.name, variant.tool.fetch(job_of(house, variant, files, secure, "FOLDER")))
        if not variant.rounds:
            with Run(house, variant, files, secure) as run:
                table.calls[variant.name] = run.calls()
    if secure:
        spoken = {name: sorted({run.protocols for run in runs if run}) for name, runs in table.runs.items()}
        words = ", ".join(f"{name} {'+'.join(what)}" for name, what in spoken.items())
        table.notes.append(f"spoken, by the server's log: {words}")
    return table


def small(house):
    files = house.files("small", [4096] * (300 if house.is_small else 20_000))
    title = f"{len(files.paths):,} files of 4 KiB, HTTP/1.1"
    table = row(house, "small", title, files, house.rounds(9), with_metalink=True, reach=[
        ("tarn", "curl", 1.0), ("tarn", "aria2", 0.1), ("tarn, Metalink", "curl", 1.0), ("tarn, Metalink", "aria2", 0.1)])
    table.memory = [("tarn", 40), ("tarn, Metalink", 40)]
    return table


def small_h2(house):
    files = house.files("small", [4096] * (300 if house.is_small else 20_000))
    return row(house, "small-h2", f"{len(files.paths):,} files of 4 KiB, HTTP/2 with TLS", files, house.rounds(9), secure=True,
               reach=[("tarn", "fastest", 1.0)])


def large_files(house):
    # Not below a directory: lftp's get makes none.
    return house.files("large", [(24 << 20) if house.is_small else (2 << 30)], folder_of=lambda number: "")


def large(house):
    files = large_files(house)
    return row(house, "large", f"one file of {files.bytes >> 20:,} MiB, HTTP/1.1", files, house.rounds(9), reach=[
        ("tarn", "fastest", 1.0), ("tarn", "floor", 1.2)])


def mixed(house):
    files = house.files("mixed", data.log_normal(60 if house.is_small else 5000, house.seed))
    return row(house, "mixed", f"{len(files.paths):,} files of mixed sizes, {files.bytes >> 20:,} MiB, HTTP/1.1", files,
               house.rounds(9), reach=[("tarn", "fastest", 1.0)])
