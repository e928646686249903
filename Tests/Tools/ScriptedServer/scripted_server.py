#!/usr/bin/env python3
"""An HTTP/1.1 server that misbehaves as told; standard library only.

    /<behaviour>/<seed>/<size>/<name>   ->   <size> bytes of the SHA-256 counter stream of <seed>

The stream is sha256("<seed>:0") sha256("<seed>:1") ..., cut to size; a client can compute it. What a behaviour does
is data, in behaviours.json; the keys of a phase are documented at DEFAULTS below. The n-th request for a path gets
the n-th phase, the last phase repeats. /redirect-N/... is the first of N redirects to /ok/.... As /resumed~<behaviour>/... the first answer is PRIME's: a good beginning that
stalls, for a client that is to be killed and to come back.

A file SEED~NAME of the documents is what /<behaviour>/SEED/<size>/NAME is answered with, without misbehaving: a feed beside its files.

Usage: scripted_server.py [--behaviours FILE] [--documents DIR] [--log FILE] [--cert FILE --key FILE]...

Listens on free ports of 127.0.0.1 and prints "ready PLAIN OTHER TLS..." (one TLS port for each certificate, 0 without
any; PLAIN and OTHER differ in origin only). Ends when its standard input closes. Each request becomes a line of
JSON in the log when it comes, and another with the status and the bytes sent when it has been answered.
"""
import argparse, datetime, gzip, hashlib, json, os, re, socket, ssl, struct, sys, threading, time

DEFAULTS = {
    "status": None,            # int; None: 200, 206 or 304 as the request deserves
    "version": 1,              # other versions have other bytes and another ETag
    "etag": "strong",          # strong, weak, none, or the literal text
    "lastModified": True,      # send Last-Modified; a text is sent as it is
    "ranges": "honour",        # honour, ignore, always (whatever If-Range says), or a lie: start, end, total, unit,
                               # missing, multipart, unasked
    "most": None,              # an answer to a range ends honestly after so many bytes, before the file does
    "rangeStatus": None,       # answers with this status, without a body, to requests with a range; 0: RST
    "length": "right",         # right, none, longer, shorter, double, conflicting, negative, text
    "chunked": False,          # Transfer-Encoding: chunked; with "both" also a Content-Length; or a text that is sent
                               # in place of the second chunk's size line
    "headers": [],             # [name, value] pairs; {tail} {plain} {other} {tls} {httpdate+N} are filled in
    "cookieWall": False,       # 302 to itself, which sets a cookie, until that comes back
    "body": None,              # text in place of the stream; {fill} as above
    "gzip": False,             # encode the body and say so; "bomb": 64 MiB of zeros
    "informational": 0,        # so many 103 responses first
    "flood": None,             # [count, size]: so many junk headers of that size
    "raw": None,               # bytes sent in place of a status line and headers (latin-1)
    "reset": None,             # "accept": RST before anything; "head": in the head; "body": after "cut" bytes
    "cut": None,               # send only so many body bytes, then close (or reset, or hang)
    "endless": False,          # never stop sending
    "hang": None,              # "head": never answer; "body": stop after "cut" bytes, keep the connection
    "dripHead": None,          # [bytes, milliseconds]: send the head in pieces
    "dripBody": None,          # [bytes, milliseconds]
    "close": False,            # close the connection after the response
}
# What every resumed case begins with.
PRIME = {"cut": 3 << 20, "hang": "body"}
MODIFIED = "Wed, 01 Jan 2025 00:00:00 GMT"
LOGGED = ("range", "if-range", "if-none-match", "if-modified-since", "authorization", "cookie", "accept",
          "accept-encoding", "user-agent", "proxy-authorization")


def stream(seed, size):
    blocks = (hashlib.sha256(f"{seed}:{index}".encode()).digest() for index in range((size + 31) // 32))
    return b"".join(blocks)[:size]


class Stop(Exception):
    """The connection is over."""


class Server:
    def __init__(self, options):
        with open(options.behaviours, encoding="utf-8") as file:
            self.behaviours = {entry["name"]: entry["phases"] for entry in json.load(file)}
        self.log_file = open(options.log, "a", encoding="utf-8") if options.log else None
        self.documents = options.documents
        self.lock = threading.Lock()
        self.counts = {}
        self.connections = 0
        self.tls = []
        for cert, key in zip(options.cert, options.key):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            self.tls.append(context)
        self.sockets = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(2 + len(self.tls))]
        self.ports = [s.getsockname()[1] for s in self.sockets] + ([] if self.tls else [0])

    def run(self):
        for index, listener in enumerate(self.sockets):
            context = self.tls[index - 2] if index >= 2 else None
            threading.Thread(target=self.accept, args=(listener, context), daemon=True).start()
        print("ready", *self.ports, flush=True)
        sys.stdin.read()
        os._exit(0)

    def accept(self, listener, secure):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve, args=(connection, secure), daemon=True).start()

    def serve(self, connection, secure):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.connections += 1
            number = self.connections
        reader = None
        try:
            if secure:
                connection = secure.wrap_socket(connection, server_side=True)
            reader = connection.makefile("rb")
            while True:
                request = read_request(reader)
                Answer(self, connection, number, secure, *request).send()
        except (OSError, Stop, ValueError):
            pass
        finally:
            try:
                # Both, or the socket stays open and a reset is never sent.
                if reader:
                    reader.close()
                connection.close()
            except OSError:
                pass

    def document(self, seed, name):
        """The text of a document; None when there is none of that name."""
        try:
            with open(os.path.join(self.documents or "", f"{seed}~{os.path.basename(name)}"), encoding="utf-8") as file:
                return file.read()
        except OSError:
            return None

    def phase(self, path, name):
        primed = name.startswith("resumed~")
        phases = self.behaviours.get(name.removeprefix("resumed~"))
        if phases and primed:
            phases = [PRIME, *phases]
        if chain := re.fullmatch(r"redirect-(\d+)", name):
            phases = [redirect(int(chain[1]))]
        if phases is None:
            return {**DEFAULTS, "status": 404, "body": "no such behaviour\n"}
        with self.lock:
            count = self.counts.get(path, 0)
            self.counts[path] = count + 1
        return {**DEFAULTS, **phases[min(count, len(phases) - 1)]}

    def log(self, **entry):
        if self.log_file:
            with self.lock:
                self.log_file.write(json.dumps(entry) + "\n")
                self.log_file.flush()


def redirect(count):
    """One hop of so many in a row."""
    target = f"/redirect-{count - 1}{{tail}}" if count > 1 else "/ok{tail}"
    return {"status": 302, "body": "", "headers": [["Location", target]]}


def read_request(reader):
    line = reader.readline(65536)
    if not line:
        raise Stop()
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := reader.readline(65536)) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return method, target, headers


class Answer:
    def __init__(self, server, connection, number, secure, method, target, headers):
        self.server, self.connection, self.number, self.secure = server, connection, number, secure
        self.method, self.target, self.headers = method, target, headers
        parts = target.split("?")[0].split("/", 4)
        self.name = parts[1] if len(parts) > 1 else ""
        self.seed = parts[2] if len(parts) > 2 else "0"
        size = parts[3] if len(parts) > 3 else "0"
        self.size = int(size) if size.isdigit() else 0
        self.tail = "/" + "/".join(parts[2:])
        document = server.document(self.seed, parts[4]) if len(parts) > 4 else None
        if document is None:
            self.plan = server.phase(target, self.name)
        else:
            self.plan = {**DEFAULTS, "body": document, "etag": "none", "lastModified": False}
        self.port = connection.getsockname()[1]
        self.sent = 0
        self.status = 0

    # The decision: status, headers and bytes.

    def fill(self, text):
        for name, port, scheme in (("plain", 0, "http"), ("other", 1, "http"), ("tls", 2, "https")):
            text = text.replace("{" + name + "}", f"{scheme}://127.0.0.1:{self.server.ports[port]}")
        while "{httpdate+" in text:
            start = text.index("{httpdate+")
            end = text.index("}", start)
            text = text[:start] + http_date(int(text[start + 10:end])) + text[end + 1:]
        return text.replace("{tail}", self.tail)

    def etag(self):
        kind = self.plan["etag"]
        strong = f'"{self.seed}-{self.size}-v{self.plan["version"]}"'
        return {"strong": strong, "weak": "W/" + strong, "none": None}.get(kind, kind)

    def modified(self):
        said = self.plan["lastModified"]
        return MODIFIED if said is True else said or None

    def content(self):
        if self.plan["body"] is not None:
            return self.fill(self.plan["body"]).encode()
        if self.plan["gzip"] == "bomb":
            return gzip.compress(bytes(64 << 20), mtime=0)
        version = self.plan["version"]
        body = stream(self.seed if version == 1 else f"{self.seed}.v{version}", self.size)
        return gzip.compress(body, mtime=0) if self.plan["gzip"] else body

    def range_start(self, total):
        """The first byte wanted; None for the whole."""
        value = self.headers.get("range", "")
        if self.plan["ranges"] == "ignore" or not value.startswith("bytes=") or not value.endswith("-"):
            return None
        condition = self.headers.get("if-range")
        tag = self.etag()
        strong = tag is not None and not tag.startswith("W/") and condition == tag
        if condition is not None and not strong and condition != self.modified() and self.plan["ranges"] != "always":
            return None
        return int(value[6:-1])

    def is_unchanged(self):
        tag = self.etag()
        if "if-none-match" in self.headers:
            return tag is not None and self.headers["if-none-match"].removeprefix("W/") == tag.removeprefix("W/")
        return self.modified() is not None and self.headers.get("if-modified-since") == self.modified()

    def decide(self):
        plan, body, extra = self.plan, self.content(), []
        total = len(body)
        start = self.range_start(total)
        if plan["cookieWall"] and f"pass={self.seed}" not in self.headers.get("cookie", ""):
            return 302, b"", [("Location", self.target), ("Set-Cookie", f"pass={self.seed}; Path=/; HttpOnly")]
        if plan["rangeStatus"] is not None and "range" in self.headers:
            return plan["rangeStatus"], b"", extra
        if plan["status"] is not None:
            return plan["status"], body, extra
        if self.is_unchanged():
            return 304, b"", extra
        if plan["ranges"] == "unasked":
            return 206, body, [("Content-Range", f"bytes 0-{total - 1}/{total}")]
        if start is None:
            return 200, body, extra
        if start >= total:
            return 416, b"", [("Content-Range", f"bytes */{total}")]
        lies = {
            "start": [f"bytes {start + 1}-{total - 1}/{total}"],
            "end": [f"bytes {start}-{total}/{total + 1}"],
            "total": [f"bytes {start}-{total - 1}/{total + 7}"],
            "unit": [f"lines {start}-{total - 1}/{total}"],
            "missing": [],
            "multipart": [],
        }
        end = min(total, start + (plan["most"] or total))
        ranges = lies.get(plan["ranges"], [f"bytes {start}-{end - 1}/{total}"])
        extra = [("Content-Range", value) for value in ranges]
        if plan["ranges"] == "multipart":
            extra.append(("Content-Type", "multipart/byteranges; boundary=x"))
            part = f"--x\r\nContent-Range: bytes {start}-{total - 1}/{total}\r\n\r\n".encode()
            return 206, part + body[start:] + b"\r\n--x--\r\n", extra
        return 206, body[start:end], extra

    def head(self, status, body, extra):
        plan = self.plan
        if plan["raw"] is not None:
            return self.fill(plan["raw"]).encode("latin-1")
        lines = ["HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n"] * plan["informational"]
        lines.append(f"HTTP/1.1 {status} Scripted")
        lines.append(f"Date: {http_date(0)}")
        if self.etag() is not None and status < 400:
            lines.append(f"ETag: {self.etag()}")
        if self.modified() and status < 400:
            lines.append(f"Last-Modified: {self.modified()}")
        if plan["gzip"]:
            lines.append("Content-Encoding: gzip")
        lines += [f"{name}: {value}" for name, value in extra]
        lines += [f"{name}: {self.fill(value)}" for name, value in plan["headers"]]
        if plan["flood"]:
            count, size = plan["flood"]
            lines += [f"X-Flood-{index}: {'x' * size}" for index in range(count)]
        if status not in (204, 304):
            lines += self.framing(len(body))
        lines.append("Connection: close" if self.ends() else "Connection: keep-alive")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def framing(self, length):
        plan = self.plan
        lines = ["Transfer-Encoding: chunked"] if plan["chunked"] else []
        if plan["chunked"] and plan["chunked"] != "both":
            return lines
        values = {
            "right": [length], "none": [], "longer": [length + 1000], "shorter": [max(0, length - 10)],
            "double": [length, length], "conflicting": [length, length + 1], "negative": [-length],
            "text": ["many"],
        }[plan["length"]]
        return lines + [f"Content-Length: {value}" for value in values]

    def ends(self):
        plan = self.plan
        return bool(plan["close"] or plan["cut"] is not None or plan["endless"] or plan["raw"] is not None
                    or plan["length"] != "right")

    # The performance.

    def send(self):
        kept = {name: value for name, value in self.headers.items() if name in LOGGED or name.startswith("x-")}
        # Before the answer, so that whoever has the answer finds the request in the log.
        self.server.log(event="request", time=time.time(), connection=self.number, port=self.port,
                        method=self.method, path=self.target, headers=kept)
        try:
            self.perform()
        finally:
            self.server.log(event="response", time=time.time(), connection=self.number, port=self.port,
                            path=self.target, status=self.status, sent=self.sent)

    def perform(self):
        plan = self.plan
        if plan["reset"] == "accept":
            self.reset()
        if plan["rangeStatus"] == 0 and "range" in self.headers:
            self.reset()
        if plan["hang"] == "head":
            self.wait_for_peer()
        self.status, body, extra = self.decide()
        head = self.head(self.status, body, extra)
        if plan["reset"] == "head":
            self.put(head[:len(head) // 2], count=False)
            self.reset()
        self.put(head, plan["dripHead"], count=False)
        if self.method == "HEAD" or self.status in (204, 304):
            return
        while plan["endless"]:
            self.put((body or b"x")[:65536])
            time.sleep(0.002)
        if plan["cut"] is not None and not (plan["most"] and self.status == 206):
            body = body[:plan["cut"]]
        if plan["chunked"]:
            self.put_chunked(body)
        else:
            self.put(body, plan["dripBody"])
        if plan["hang"] == "body":
            self.wait_for_peer()
        if plan["reset"] == "body":
            self.reset()
        if self.ends():
            raise Stop()

    def put(self, data, drip=None, count=True):
        step, pause = (drip[0], drip[1] / 1000) if drip else (len(data) or 1, 0)
        for offset in range(0, len(data), step):
            if offset and pause:
                time.sleep(pause)
            piece = data[offset:offset + step]
            self.connection.sendall(piece)
            self.sent += len(piece) if count else 0

    def put_chunked(self, body):
        for offset in range(0, len(body), 4000):
            piece = body[offset:offset + 4000]
            size = f"{len(piece):x}"
            if offset == 4000 and self.plan["chunked"] not in (True, "both"):
                size = self.plan["chunked"]
            self.put(size.encode() + b"\r\n" + piece + b"\r\n")
        if self.plan["cut"] is None:
            self.put(b"0\r\nX-Trailer: 1\r\n\r\n")

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raise Stop()

    def wait_for_peer(self):
        while self.connection.recv(4096):
            pass
        raise Stop()


def http_date(offset):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset)
    return moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


def main():
    parser = argparse.ArgumentParser()
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--behaviours", default=os.path.join(here, "behaviours.json"))
    parser.add_argument("--documents")
    parser.add_argument("--log")
    parser.add_argument("--cert", action="append", default=[])
    parser.add_argument("--key", action="append", default=[])
    Server(parser.parse_args()).run()


if __name__ == "__main__":
    main()
