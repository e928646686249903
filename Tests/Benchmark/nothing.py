"""Rows in which nothing is to be done: every tool has a tree of its own that is right, and is run over it again and again."""
import dataclasses
import os

import command
import disk
import measure
import peers
import tables


@dataclasses.dataclass(frozen=True)
class Variant:
    """A tool with a tree of its own. feed: below which path of the server Tarn's feed is."""
    tool: object
    name: str
    feed: str = ""

    @property
    def rounds(self):
        return self.tool.rounds


class Tree:
    """A folder that holds the set, as the tool would have left it."""

    def __init__(self, house, variant, files):
        self.house, self.variant, self.files = house, variant, files
        count = len(files.paths)
        self.place = house.disks.take(count * 8192 + files.bytes + (512 << 20), files=count)
        self.out = os.path.join(self.place.path, "out")
        self.environment = measure.environment(os.path.join(self.place.path, "home"))
        self.job = peers.Job(files=files, out=self.out, base=house.server.base + variant.feed, port=house.server.port,
                             authority=None, lists=os.path.join(house.scratch, "lists"))
        if isinstance(variant.tool, (peers.Tarn, peers.Floor)):
            os.mkdir(self.out)
            command.expect(house.tarn.fetch(self.job), env=self.environment)
        else:
            command.expect(["cp", "-a", files.files, self.out])
        disk.sync(self.place.path)
        if wrong := files.wrong(self.out):
            raise SystemExit(f"{variant.name}: the tree was not made right: {wrong}")
        self.state = fingerprints(self.out)

    def command(self):
        if isinstance(self.variant.tool, peers.Floor):
            ledger = os.path.join(self.out, ".tarn", "ledger.sqlite")
            return [self.variant.tool.program, "check", str(self.job.port), f"{self.files.name}/manifest.ndjson", ledger, self.out]
        return self.variant.tool.again(self.job)

    def run(self):
        """One run over it. The digests were right when it was made; a file whose inode, size, mtime and ctime are what they
        were holds the bytes that it held, and where one differs all are read again."""
        disk.sync(self.place.path)
        server = self.house.server
        begin = server.mark()
        run, _ = measure.cost(self.house.meter, self.command(), self.place.path, self.environment)
        after = measure.finish(self.place)
        asked = list(server.requests(begin, server.mark()))
        state = fingerprints(self.out)
        if state != self.state:
            if wrong := self.files.wrong(self.out):
                raise measure.Failed("; ".join(wrong))
            self.state = state
        fetched = sum(request[0] == 200 and request[3] == "GET" and request[6].endswith(".bin") for request in asked)
        if fetched:
            raise measure.Failed(f"{fetched} files were fetched again")
        run.wire, run.requests = sum(request[1] for request in asked), len(asked)
        run.total = run.wall if self.variant.tool.keeps else run.wall + after
        return run


def fingerprints(folder):
    found, stack = {}, [folder]
    while stack:
        with os.scandir(stack.pop()) as listing:
            for item in listing:
                if item.name.startswith("."):
                    continue
                if item.is_dir(follow_symlinks=False):
                    stack.append(item.path)
                else:
                    status = item.stat(follow_symlinks=False)
                    found[item.path] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def noop_50k(house):
    files = house.files("noop", [1024] * (500 if house.is_small else 50_000))
    tools, missing = house.tools()
    variants = [Variant(tool, tool.name) for tool in tools]
    if house.tarn in tools:
        variants.insert(1, Variant(house.tarn, "tarn, feed read", "/unvalidated"))
    trees = {variant: Tree(house, variant, files) for variant in variants}
    for tree in trees.values():
        if tree.variant.name == "curl" or "curl" not in {variant.name for variant in variants}:
            peers.write_lists(dataclasses.replace(tree.job, base=house.server.base))
    found = measure.rounds(house.rounds(9), variants, lambda variant: trees[variant].run(), house.seed)
    table = tables.Table("noop-50k", f"nothing to do, {len(files.paths):,} files, one-shot", found, missing, [
        ("tarn", "wget2", 0.5), ("tarn", "floor", 1.5), ("tarn, feed read", "floor", 1.5)])
    for variant, tree in trees.items():
        table.command(variant.name, tree.command())
        tree.place.drop()
    return table
