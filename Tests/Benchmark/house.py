"""Where a benchmark lives: its scratch directory, the server, the built helpers, the sets of files, the disks."""
import os
import shutil

import command
import data
import disk
import peers
import server

PLACE = os.path.dirname(os.path.abspath(__file__))


def build(directory, name, libraries):
    """Compiles one of the programs beside this file; its path."""
    compiler = shutil.which("cc") or shutil.which("clang") or shutil.which("gcc")
    if not compiler:
        raise SystemExit("a C compiler is needed: apt install gcc libc6-dev")
    program = os.path.join(directory, name)
    command.expect([compiler, "-O2", "-Wall", "-Wextra", "-std=gnu17", "-D_GNU_SOURCE", "-o", program,
                    os.path.join(PLACE, f"{name}.c"), *libraries])
    return program


class House:
    """small: sizes that only prove that all works; before: the program of an earlier Tarn, or None."""

    def __init__(self, scratch, tarn, only, seed, is_small, rounds, kept=None, before=None):
        self.scratch, self.seed, self.is_small, self.asked_rounds, self.only = scratch, seed, is_small, rounds, only
        self.source = os.path.join(kept or scratch, "source")
        for name in ("server", "lists", "disks", "bin"):
            os.makedirs(os.path.join(scratch, name))
        os.makedirs(self.source, exist_ok=True)
        self.meter = build(os.path.join(scratch, "bin"), "meter", [])
        self.floor = peers.Floor(build(os.path.join(scratch, "bin"), "floor", ["-lcrypto", "-lsqlite3", "-lpthread"]))
        self.tarn = peers.Tarn(tarn)
        self.before = peers.Tarn(before, "before") if before else None
        self.disks = disk.Disks(os.path.join(scratch, "disks"))
        self.server = server.Server(os.path.join(scratch, "server"), self.source)
        self.sets = {}

    def rounds(self, full):
        """How many rounds a row has that wants so many."""
        return self.asked_rounds or (2 if self.is_small else full)

    def files(self, name, sizes, **more):
        """The set of files, made once for all rows that want it."""
        if name not in self.sets:
            made = data.make(self.source, name, sizes, self.seed, **more)
            made.write_manifest()
            made.write_metalink("manifest.meta4", f"{self.server.base}/{name}/files/")
            made.write_metalink("manifest-tls.meta4", f"{self.server.secure_base}/{name}/files/")
            self.sets[name] = made
            disk.sync(self.source)
        return self.sets[name]

    def tools(self, wanted=lambda tool: True, floor=True):
        """Those that are installed and asked for: (tools, sentences about those that are not)."""
        chosen, missing = [], []
        for tool in [self.tarn, *([self.before] if self.before else []), *([self.floor] if floor else []), *peers.PEERS]:
            if self.only and tool is not self.before and tool.name not in self.only or not wanted(tool):
                continue
            if tool.find():
                chosen.append(tool)
            else:
                missing.append(f"{tool.name}: not installed: skipped")
        return chosen, missing

    def close(self):
        self.server.stop()
        self.disks.drop_all()
