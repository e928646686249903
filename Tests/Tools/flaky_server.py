"""A web server on loopback that publishes versions of a checksum list and its files, and fails as it is told to."""
import contextlib
import hashlib
import http.server
import random
import socket
import struct
import threading
import time

FEED = "SHA256SUMS"


class Publisher:
    """What is served, from memory. Any thread.

    weather: fails(share, kinds) makes that share of the answers one of "error", "reset", "cut", "slow".
    """

    def __init__(self, seed):
        self.lock = threading.Lock()
        self.random = random.Random(seed)
        self.files, self.share, self.kinds = {}, 0.0, ()
        self.answers, self.failures = 0, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.publisher = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def publish(self, files):
        """A new version: {path: bytes}, and a list of exactly these."""
        lines = [f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(files.items())]
        with self.lock:
            self.files = {**files, FEED: "".join(lines).encode()}

    def fails(self, share, kinds=()):
        with self.lock:
            self.share, self.kinds = share, kinds

    def answer(self, path):
        """(body or None, the failure or None)"""
        with self.lock:
            self.answers += 1
            failure = self.random.choice(self.kinds) if self.random.random() < self.share else None
            self.failures += failure is not None
            return self.files.get(path.lstrip("/")), failure

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body, failure = self.server.publisher.answer(self.path)
        if failure == "error":
            return self.send(503, b"not now\n")
        if failure == "reset":
            # RST instead of FIN.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return self.connection.close()
        if body is None:
            return self.send(404, b"no such file\n")
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if self.headers.get("If-None-Match") == tag:
            return self.send(304, b"", tag)
        self.send(200, body, tag, failure)

    def send(self, status, body, tag=None, failure=None):
        try:
            self.send_response(status)
            if tag:
                self.send_header("ETag", tag)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if failure == "cut":
                self.close_connection = True
                body = body[:len(body) // 2]
            for start in range(0, len(body), 65536):
                if failure == "slow":
                    time.sleep(0.2)
                self.wfile.write(body[start:start + 65536])
        except OSError:
            self.close_connection = True

    def handle(self):
        # Who asks may be killed at any moment.
        with contextlib.suppress(OSError, ValueError):
            super().handle()

    def finish(self):
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def log_message(self, *arguments):
        pass
