"""A server that is far away: small files over HTTP/2, each packet 50 ms on its way."""
import ctypes
import os
import signal
import subprocess
import sys

import command
import house as houses
import measure
import peers
import server
import tables
import transfer

DELAY, RATE = 0.05, 200e6  # Seconds one way, bytes per second.
SERVER, CLIENT = "10.213.0.1", "10.213.0.2"
CLONE_NEWNET = 0x40000000


class Line:
    """A network namespace for this process, with the server's end of a long line, and one for clients at the other end. Afterwards this
    process is where it was. Needs root and /dev/net/tun."""

    def __init__(self):
        self.processes = []

    def __enter__(self):
        self.before = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.libc = ctypes.CDLL(None, use_errno=True)
        if self.libc.unshare(CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            relay = self.start([sys.executable, os.path.join(houses.PLACE, "relay.py"), "near", "far", str(DELAY), str(RATE)])
            client = self.start(["unshare", "--net", "sh", "-c", "echo ready; exec sleep infinity"])
            self.enter = ["nsenter", f"--net=/proc/{client.pid}/ns/net", "--"]
            ip = ["ip"]
            for words in ((ip, "link set lo up"), (ip, f"link set far netns {client.pid}"), (ip, f"addr add {SERVER}/24 dev near"),
                          (ip, "link set near up"), ([*self.enter, "ip"], f"addr add {CLIENT}/24 dev far"),
                          ([*self.enter, "ip"], "link set far up"), ([*self.enter, "ip"], "link set lo up")):
                command.expect([*words[0], *words[1].split()])
            assert relay.poll() is None
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, words):
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        self.processes.append(process)
        if process.stdout.readline() != b"ready\n":
            raise OSError(f"{words[0]} did not start")
        return process

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.libc.setns(self.before, CLONE_NEWNET)
        os.close(self.before)


class Far(peers.Tool):
    """A tool at the other end of the line."""

    def __init__(self, tool, enter):
        self.tool, self.enter = tool, enter
        self.name, self.keeps, self.rounds = tool.name, tool.keeps, tool.rounds

    def fetch(self, job):
        return [*self.enter, *self.tool.fetch(job)]


class Place:
    """What a run needs of the house, with the server at the far end."""

    def __init__(self, house, far_server):
        self.disks, self.scratch, self.meter, self.server = house.disks, house.scratch, house.meter, far_server


def far(house):
    files = house.files("far", [10_240] * (50 if house.is_small else 1000))
    files.write_checksums()
    title = f"{len(files.paths):,} files of 10 KiB, HTTP/2 with TLS, {2 * DELAY * 1000:.0f} ms there and back"
    tools, missing = house.tools(lambda tool: tool.http2, floor=False)
    try:
        with Line() as line:
            return measured(house, line, files, title, tools, missing)
    except OSError as failure:
        table = tables.Figures("far", title)
        table.notes.append(f"no long line here: {failure}: left out")
        return table


def measured(house, line, files, title, tools, missing):
    directory = os.path.join(house.scratch, "far")
    os.makedirs(directory)
    far_server = server.Server(directory, house.source, SERVER)
    try:
        variants = []
        for tool in tools:
            if tool is house.tarn:
                for name, manifest in (("tarn", "sums/SHA256SUMS"), ("tarn, index", "files/"), ("tarn, manifest", "manifest.ndjson")):
                    variants.append(transfer.Variant(Far(tool, line.enter), name, manifest))
            elif tool is house.before:
                variants += [transfer.Variant(Far(tool, line.enter), "before", "sums/SHA256SUMS"),
                             transfer.Variant(Far(tool, line.enter), "before, index", "files/")]
            else:
                variants.append(transfer.Variant(Far(tool, line.enter), tool.name))
        place = Place(house, far_server)
        peers.write_lists(transfer.job_of(place, variants[0], files, True, ""))

        def once(variant):
            with transfer.Run(place, variant, files, True) as run:
                return run.measured()

        found = measure.rounds(house.rounds(5), variants, once, house.seed)
        table = tables.Table("far", title, found, missing, [("tarn", "fastest", 1.0)])
        for variant in variants:
            table.command(variant.name, variant.tool.tool.fetch(transfer.job_of(place, variant, files, True, "FOLDER")))
        return table
    finally:
        far_server.stop()
