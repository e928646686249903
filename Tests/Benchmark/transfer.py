"""Rows in which everything is fetched into an empty folder."""
import dataclasses
import os

import data
import disk
import measure
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


def fetch_once(house, variant, files, secure):
    """One run on a fresh disk: a measure.Run. Raises measure.Failed where it does not count."""
    room = files.bytes * 5 // 4 + len(files.paths) * 8192 + (256 << 20)
    place = house.disks.take(room, files=2 * len(files.paths))
    try:
        job = job_of(house, variant, files, secure, os.path.join(place.path, "out"))
        os.mkdir(job.out)
        environment = measure.environment(os.path.join(place.path, "home"))
        disk.sync(house.scratch)
        begin = house.server.mark()
        run, _ = measure.cost(house.meter, variant.tool.fetch(job), place.path, environment)
        after = measure.finish(place)
        asked = list(house.server.requests(begin, house.server.mark()))
        if wrong := files.wrong(job.out):
            raise measure.Failed("; ".join(wrong))
        run.wire, run.requests = sum(request[1] for request in asked), len(asked)
        run.total = run.wall if variant.tool.keeps else run.wall + after
        run.protocols = {request[4] for request in asked}
        return run
    finally:
        place.drop()


def job_of(house, variant, files, secure, out):
    return peers.Job(files=files, out=out, base=house.server.secure_base if secure else house.server.base,
                     port=house.server.port, authority=house.server.authority if secure else None,
                     lists=os.path.join(house.scratch, "lists"), manifest=variant.manifest)


def row(house, name, title, files, rounds, *, secure=False, reach, with_metalink=False):
    """Measures and prints one row; its figures for the JSON."""
    tools, missing = house.tools(lambda tool: not secure or tool.http2 or tool is house.floor)
    variants = [Variant(tool, tool.name) for tool in tools]
    if with_metalink and house.tarn in tools:
        variants.insert(1, Variant(house.tarn, "tarn, Metalink", "manifest-tls.meta4" if secure else "manifest.meta4"))
    peers.write_lists(job_of(house, variants[0], files, secure, ""))
    if secure:
        missing += [f"{peer.name}: does not speak HTTP/2: left out" for peer in peers.PEERS if not peer.http2]
        missing.append("floor: over plain HTTP/1.1, for comparison only: it has no TLS")
    found = measure.rounds(rounds, variants, lambda variant: fetch_once(house, variant, files, secure), house.seed)
    table = tables.Table(name, title, found, missing, reach)
    for variant in variants:
        table.command(variant.name, variant.tool.fetch(job_of(house, variant, files, secure, "FOLDER")))
    return table


def small(house):
    files = house.files("small", [4096] * (300 if house.is_small else 20_000))
    return row(house, "small", f"{len(files.paths):,} files of 4 KiB, HTTP/1.1", files, house.rounds(9), with_metalink=True, reach=[
        ("tarn", "curl", 1.0), ("tarn", "aria2", 0.1), ("tarn, Metalink", "curl", 1.0)])


def small_h2(house):
    files = house.files("small", [4096] * (300 if house.is_small else 20_000))
    return row(house, "small-h2", f"{len(files.paths):,} files of 4 KiB, HTTP/2 with TLS", files, house.rounds(9), secure=True,
               reach=[("tarn", "fastest", 1.0)])


def large(house):
    # Beside its manifest, not below a directory: lftp's get makes none.
    files = house.files("large", [(24 << 20) if house.is_small else (2 << 30)], folder_of=lambda number: "")
    return row(house, "large", f"one file of {files.bytes >> 20:,} MiB, HTTP/1.1", files, house.rounds(9), reach=[
        ("tarn", "fastest", 1.0), ("tarn", "floor", 1.2)])


def mixed(house):
    files = house.files("mixed", data.log_normal(60 if house.is_small else 5000, house.seed))
    return row(house, "mixed", f"{len(files.paths):,} files of mixed sizes, {files.bytes >> 20:,} MiB, HTTP/1.1", files,
               house.rounds(9), reach=[("tarn", "fastest", 1.0)])
