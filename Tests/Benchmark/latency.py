"""How long a 404 takes that is asked for beside a transfer at full speed.

A pass over a manifest with one large file, which nginx sends as fast as it can, and many files that are not there. Those are
asked for from a server of this file, which holds each request for some milliseconds, so that the trials spread over the transfer,
and takes the time from the arrival of a request until the next one arrives on the same connection, the holding taken off: Tarn has
then received the answer, ended that transfer, and begun another. So it is what a 404 takes as Tarn's client feels it, and more:
both ways, the waiting behind the large transfer's bytes in Tarn's network thread, and Tarn's own work between two requests. Only
trials that lie wholly within the large transfer, by nginx's log, are counted.
"""
import hashlib
import itertools
import os
import random
import socket
import time

import data
import disk
import measure
import peers
import server
import tables
import transfer

MISSING = 400


class AbsentServer:
    """Answers 404 to everything, each after a while: begin, end (seconds since 1970), and seconds held of each trial."""

    def __init__(self, seed, longest):
        self.seed, self.longest, self.trials, self.numbers = seed, longest, [], itertools.count(1)
        self.acceptor = server.Acceptor(self.serve)
        self.port = self.acceptor.port

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        chooser, before, held = random.Random(f"{self.seed} {next(self.numbers)}"), None, 0.0
        with connection:
            pending = b""
            while True:
                try:
                    while b"\r\n\r\n" not in pending:
                        if not (got := connection.recv(65536)):
                            return
                        pending += got
                    now = time.time()
                    pending = pending.split(b"\r\n\r\n", 1)[1]
                    if before is not None:
                        self.trials.append((before, now, held))
                    before, wanted = now, chooser.uniform(0.001, self.longest)
                    time.sleep(wanted)
                    held = time.time() - now
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nnone\n")
                except OSError:
                    return


def write_manifest(path, files, port):
    lines = hashlib.sha256()
    with open(path, "wb") as stream:
        entries = [b'{"header":{"format":"mirror-manifest/1","version":1,"mirrors":["../%s/files/"]}}\n' % files.name.encode()]
        for name, size, digest in zip(files.paths, files.sizes, files.digests):
            entries.append(data.manifest_line(name, size, digest))
        for number in range(MISSING):
            entries.append(b'{"path":"missing/m%05d","size":100,"hashes":{"sha-256":"%s"},"url":"http://127.0.0.1:%d/m%05d"}\n'
                           % (number, hashlib.sha256(b"%d" % number).hexdigest().encode(), port, number))
        for line in entries:
            lines.update(line)
            stream.write(line)
        stream.write(data.end_line(len(files.paths) + MISSING, files.bytes + 100 * MISSING, lines))


def one_pass(house, files, absent):
    """Seconds that each trial took, of those within the large transfer."""
    place = house.disks.take(files.bytes * 5 // 4 + (512 << 20))
    try:
        job = job_of(house, os.path.join(place.path, "out"))
        os.mkdir(job.out)
        disk.sync(house.scratch)
        absent.trials.clear()
        begin = house.server.mark()
        environment = measure.environment(os.path.join(place.path, "home"))
        # 3: some entries failed, as they have to.
        measure.cost(house.meter, house.tarn.fetch(job), place.path, environment, status=3)
        large = [request for request in house.server.requests(begin, house.server.mark()) if request.target.endswith(".bin")]
        if len(large) != 1 or large[0].body != files.bytes:
            raise measure.Failed("the large file did not come in one piece")
        if wrong := files.wrong(job.out):
            raise measure.Failed("; ".join(wrong))
        return [end - start - held for start, end, held in list(absent.trials)
                if start > large[0].end - large[0].took and end < large[0].end]
    finally:
        place.drop()


class Lists:
    """What a manifest's place looks like to peers.Job."""
    name = "latency"


def job_of(house, out):
    return peers.Job(files=Lists, out=out, base=house.server.base, port=0, authority=None, lists="")


def latency(house):
    files = transfer.large_files(house)
    wanted = 40 if house.is_small else 1000
    table = tables.Figures("latency", f"a 404 asked for beside a transfer of {files.bytes >> 20:,} MiB at full speed")
    # So long that some hundred trials spread over the transfer.
    absent, times, passes = AbsentServer(house.seed, 0.005 if house.is_small else 0.1), [], 0
    os.makedirs(os.path.join(house.source, "latency"), exist_ok=True)
    write_manifest(os.path.join(house.source, "latency", "manifest.ndjson"), files, absent.port)
    while len(times) < wanted and passes < 12:
        passes += 1
        try:
            times += one_pass(house, files, absent)
        except measure.Failed as failure:
            table.notes.append(f"pass {passes} does not count: {failure}")
    absent.acceptor.close()
    if times:
        times = sorted(value * 1000 for value in times)
        table.add(f"trials within the transfer, of {passes} passes", len(times), "", None, "{:,.0f}")
        for name, share, most in (("median", 0.5, None), ("90th percentile", 0.9, None), ("99th percentile", 0.99, 20.0)):
            table.add(name, times[min(len(times) - 1, int(len(times) * share))], "ms", most, "{:,.2f}")
        table.add("most", times[-1], "ms", None, "{:,.2f}")
    if len(times) < wanted:
        table.notes.append(f"fewer than {wanted} trials")
    table.command("tarn", house.tarn.fetch(job_of(house, "FOLDER")))
    return table
