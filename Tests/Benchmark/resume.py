"""How much is fetched twice after kill -9 in the middle of a large file.

The server is one of this file: it kills Tarn when it has sent about half, and then asks the kernel of its own end how many bytes
the killed client's kernel acknowledged (tcpi_bytes_acked, tcp(7)): what the client received, be it read by Tarn or not. What
the next pass asks for below that, by the start of its Range, is fetched twice.
"""
import os
import random
import re
import signal
import socket
import struct
import subprocess
import threading

import disk
import measure
import peers
import server
import tables
import transfer

ACKED = 120  # Offset of tcpi_bytes_acked, 64 bits, in struct tcp_info (linux/tcp.h).


class Answer:
    """One body that was sent: of what, from which byte on, how many bytes, how many of them were acknowledged; None as long as
    it has not ended."""

    def __init__(self, target, start):
        self.target, self.start, self.sent, self.acked = target, start, 0, None


class KillingServer:
    """Serves a directory over HTTP/1.1 with ranges, and calls `at_offset` when it has sent a file up to there."""

    def __init__(self, root):
        self.root, self.answers, self.kill_at, self.kill = root, [], None, None
        self.changed = threading.Condition()
        self.acceptor = server.Acceptor(self.serve)
        self.port = self.acceptor.port

    def serve(self, connection):
        before = 0  # Bytes that were sent over the connection before the body at hand.
        with connection, connection.makefile("rb") as stream:
            while head := read_head(stream):
                target, start = head
                path = os.path.join(self.root, target.lstrip("/"))
                size, answer = os.path.getsize(path), Answer(target, start)
                with self.changed:
                    self.answers.append(answer)
                lines = [f"HTTP/1.1 {'206 Partial Content' if start else '200 OK'}", f"Content-Length: {size - start}",
                         'ETag: "one"', "Accept-Ranges: bytes", "Content-Type: application/octet-stream"]
                if start:
                    lines.append(f"Content-Range: bytes {start}-{size - 1}/{size}")
                text = ("\r\n".join(lines) + "\r\n\r\n").encode()
                try:
                    connection.sendall(text)
                    before += len(text)
                    self.send(connection, path, answer, size)
                except OSError:
                    pass
                acked = struct.unpack_from("=Q", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), ACKED)[0]
                with self.changed:
                    # What was sent in full and is on its way still counts as received.
                    answer.acked = size - start if answer.sent == size - start else max(0, acked - before)
                    self.changed.notify_all()
                if answer.sent < size - start:
                    return
                before += answer.sent

    def send(self, connection, path, answer, size):
        with open(path, "rb") as file:
            at = answer.start
            while at < size:
                count = os.sendfile(connection.fileno(), file.fileno(), at, min(1 << 18, size - at))
                at += count
                answer.sent += count
                if self.kill_at is not None and at >= self.kill_at and answer.start == 0 and answer.target.endswith(".bin"):
                    self.kill_at = None
                    self.kill()

    def ended(self, target):
        """The answers for a target, once all have ended."""
        with self.changed:
            self.changed.wait_for(lambda: all(answer.acked is not None for answer in self.answers), 30)
            return [answer for answer in self.answers if answer.target == target]


def read_head(stream):
    """(target, first byte asked for) of the next request; None at the end."""
    try:
        line = stream.readline()
        if not line:
            return None
        start = 0
        while (field := stream.readline()).strip():
            if found := re.match(rb"range:\s*bytes=(\d+)-", field, re.IGNORECASE):
                start = int(found[1])
    except OSError:
        return None
    return line.split()[1].decode(), start


def trial(house, files, chooser, killer):
    """(bytes received before the kill, bytes of them fetched twice, seconds of the second pass)."""
    # Room for the file twice: what the first pass has taken is not free for the second.
    place = house.disks.take(files.bytes * 9 // 4 + (512 << 20))
    try:
        job = peers.Job(files=files, out=os.path.join(place.path, "out"), base=f"http://127.0.0.1:{killer.port}", port=0,
                        authority=None, lists="")
        os.mkdir(job.out)
        environment = measure.environment(os.path.join(place.path, "home"))
        disk.sync(house.scratch)
        killer.answers.clear()
        with subprocess.Popen(house.tarn.fetch(job), env=environment, cwd=place.path, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            killer.kill = lambda: process.send_signal(signal.SIGKILL)
            killer.kill_at = int(files.bytes * chooser.uniform(0.45, 0.55))
            if process.wait(measure.PATIENCE) != -signal.SIGKILL:
                raise measure.Failed(f"the first pass ended with {process.returncode} before it was killed")
        target = f"/{files.name}/files/{files.paths[0]}"
        received = killer.ended(target)[0].acked
        killer.answers.clear()
        run, _ = measure.cost(house.meter, house.tarn.fetch(job), place.path, environment)
        starts = [answer.start for answer in killer.ended(target)]
        if wrong := files.wrong(job.out):
            raise measure.Failed("; ".join(wrong))
        return received, sum(max(0, received - start) for start in starts), run.wall
    finally:
        place.drop()


def resume(house):
    files = transfer.large_files(house)
    table = tables.Figures("resume", f"kill -9 at half of {files.bytes >> 20:,} MiB, then a second pass")
    killer, chooser, trials = KillingServer(house.source), random.Random(f"{house.seed} kills"), []
    for number in range(house.rounds(9)):
        try:
            trials.append(trial(house, files, chooser, killer))
        except measure.Failed as failure:
            table.notes.append(f"trial {number + 1} does not count: {failure}")
    killer.acceptor.close()
    if trials:
        table.spread("received before the kill (acknowledged by the client's kernel)", [t[0] / 2**20 for t in trials], "MiB")
        table.spread("fetched twice", [t[1] / 2**20 for t in trials], "MiB", form="{:,.3f}")
        table.add("fetched twice, most", max(t[1] for t in trials) / 2**20, "MiB", 1.0, "{:,.3f}")
        table.spread("the second pass", [t[2] for t in trials], "s", form="{:,.2f}")
    table.notes.append("the tree's digests were right after each second pass that counts")
    table.command("tarn", [house.tarn.program, "sync", "--quiet", "--no-input",
                           f"http://127.0.0.1:PORT/{files.name}/manifest.ndjson", "FOLDER"])
    return table
