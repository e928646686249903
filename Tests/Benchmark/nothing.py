"""Rows in which nothing is to be done: trees that are right, and tools that are run over them again and again."""
import dataclasses
import hashlib
import os
import sqlite3

import command
import data
import disk
import measure
import peers
import tables


@dataclasses.dataclass(frozen=True)
class Variant:
    """A tool and how it is run. rereads: the feed has a new date, so that the server does not say that it is unchanged;
    reparses: and another text, which says the same."""
    tool: object
    name: str
    rereads: bool = False
    reparses: bool = False

    @property
    def rounds(self):
        return self.tool.again_rounds


class Tree:
    """A folder that holds the set, and what is run over it. The digests are right when it is made; a file whose inode, size,
    mtime and ctime are what they were holds the bytes that it held, and where one differs all are read again."""

    def __init__(self, house, files, place, job):
        self.house, self.files, self.place, self.job = house, files, place, job
        self.ledger = os.path.join(place.path, "ledger.sqlite")
        self.environment = environment_of(place)
        disk.sync(place.path)
        if wrong := files.wrong(job.out):
            raise SystemExit(f"the tree was not made right: {wrong}")
        self.state = fingerprint(job.out)

    def command(self, variant):
        if variant.tool is self.house.floor:
            return variant.tool.check(self.job, self.ledger)
        return variant.tool.again(self.job)

    def run(self, variant):
        disk.sync(self.place.path)
        server, manifest = self.house.server, os.path.join(self.files.directory, self.job.manifest)
        if variant.rereads or variant.reparses:
            before = int(os.stat(manifest).st_mtime)
            if variant.reparses:
                self.files.change_manifest()
            os.utime(manifest, (0, before + 1))
        begin = server.mark()
        run, _ = measure.cost(self.house.meter, self.command(variant), self.place.path, self.environment)
        after = disk.sync(self.place.path)
        asked = list(server.requests(begin, server.mark()))
        state = fingerprint(self.job.out)
        if state != self.state:
            if wrong := self.files.wrong(self.job.out):
                raise measure.Failed("; ".join(wrong))
            self.state = state
        run.wire, run.requests = sum(request.wire for request in asked), len(asked)
        run.total = run.wall if variant.tool.keeps else run.wall + after
        return run

    def calls(self, variant):
        return measure.calls(self.command(variant), self.place.path, self.environment)


def environment_of(place):
    return measure.environment(os.path.join(place.path, "home"))


def job_in(house, files, place):
    return peers.Job(files=files, out=os.path.join(place.path, "out"), base=house.server.base, port=house.server.port,
                     authority=None, lists=os.path.join(house.scratch, "lists"))


def mirrored(house, files, place, *options):
    """A tree that is Tarn's, with a copy of its ledger for the floor. The second pass finds nothing to do: caches are warm."""
    job = job_in(house, files, place)
    os.makedirs(job.out, exist_ok=True)
    for words in (house.tarn.fetch(job) + list(options), house.tarn.again(job)):
        command.expect(words, env=environment_of(place))
    tree = Tree(house, files, place, job)
    with sqlite3.connect(f"file:{job.out}/.tarn/ledger.sqlite?mode=ro", uri=True) as ledger:
        ledger.execute("VACUUM INTO ?", (tree.ledger,))
    ledger.close()
    return tree


def copied(house, files, place):
    """A tree for a tool without a record: the files with their times are all that it goes by."""
    job = job_in(house, files, place)
    command.expect(["cp", "-a", files.files, job.out])
    peers.write_lists(job)
    return Tree(house, files, place, job)


def fingerprint(folder):
    """One digest of the inode, size, mtime and ctime of every file below a folder, and of the paths."""
    digest = hashlib.sha256()
    stack = [folder]
    while stack:
        names, parent = [], stack.pop()
        with os.scandir(parent) as listing:
            for item in listing:
                if item.name.startswith("."):
                    continue
                if item.is_dir(follow_symlinks=False):
                    stack.append(item.path)
                else:
                    status = item.stat(follow_symlinks=False)
                    names.append((item.name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        stack.sort()
        names.sort()
        digest.update(repr((parent, names)).encode(errors="surrogateescape"))
    return digest.digest()


def tarns_variants(house, tools):
    """Tarn and the floor, which share a tree."""
    variants = []
    if house.tarn in tools:
        variants += [Variant(house.tarn, "tarn"), Variant(house.tarn, "tarn, new date", rereads=True),
                     Variant(house.tarn, "tarn, new text", reparses=True)]
    if house.floor in tools:
        variants.append(Variant(house.floor, "floor"))
    return variants


def noop_50k(house):
    count = 500 if house.is_small else 50_000
    files = house.files("noop", [1024] * count)
    tools, missing = house.tools()
    trees, room = {}, count * 8192 + (512 << 20)
    if variants := tarns_variants(house, tools):
        tree = mirrored(house, files, house.disks.take(room, files=count))
        trees.update((variant, tree) for variant in variants)
    if others := [Variant(tool, tool.name) for tool in tools if tool not in (house.tarn, house.before, house.floor)]:
        others += [Variant(peers.HashingAria2(), "aria2, hashing") for variant in others if variant.name == "aria2"]
        tree = copied(house, files, house.disks.take(room, files=count))
        trees.update((variant, tree) for variant in others)
    table = races(house, "noop-50k", files, trees, house.rounds(9), missing, [
        ("tarn", "wget2", 0.5), ("tarn", "floor", 1.5), ("tarn, new date", "floor", 1.5), ("tarn, new text", "floor", 1.5)])
    table.notes.append("wget2, curl, aria2: a conditional request for each file; aria2, hashing: HEAD and the digest of each "
                       "file; lftp: dates and sizes of the indexes; rclone: their names only (--ignore-existing)")
    return table


def races(house, name, files, trees, rounds, notes, reach):
    found = measure.rounds(rounds, list(trees), lambda variant: trees[variant].run(variant), house.seed)
    table = tables.Table(name, f"nothing to do, {len(files.paths):,} files, one-shot, warm", found, notes, reach)
    for variant, tree in trees.items():
        table.command(variant.name, tree.command(variant))
        if not variant.rounds:
            table.calls[variant.name] = tree.calls(variant)
    for tree in set(trees.values()):
        tree.place.drop()
    table.notes.append("tarn: its feed answers 304; new date: it is sent, with the same text; new text: it is sent, and says the same "
                       "in other words; floor: reads the feed in full")
    return table


def noop_1m(house):
    """Tarn and the floor only. The files are made by this program, and Tarn takes them as its own (--adopt): it hashes each
    and writes its row, as if it had fetched it. That, and contents that lie in the inodes, takes minutes off the making."""
    count = 5000 if house.is_small else 1_000_000
    place = house.disks.take(count * 1024 + (1 << 30), files=count, inline=True)
    files = data.make(house.source, "noop-1m", [24] * count, house.seed, files=os.path.join(place.path, "out"))
    files.write_manifest()
    disk.sync(place.path)
    tools, missing = house.tools(lambda tool: tool in (house.tarn, house.floor))
    tree = mirrored(house, files, place, "--adopt")
    trees = {variant: tree for variant in tarns_variants(house, tools)}
    table = races(house, "noop-1m", files, trees, house.rounds(9), missing, [
        ("tarn", "floor", 1.5), ("tarn, new date", "floor", 1.5), ("tarn, new text", "floor", 1.5)])
    table.memory = [("tarn", 64), ("tarn, new date", 64), ("tarn, new text", 64)]
    table.notes.append("the files, of 24 bytes each, were adopted (tarn sync --adopt), not fetched; ext4 with inline_data")
    return table
