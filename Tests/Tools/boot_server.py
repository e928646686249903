#!/usr/bin/env python3
"""The feeds of the boot test, on the loopback of the booted root: boot_server.py DIRECTORY PORT LOG GATE

Files of DIRECTORY, with entity tags and ranges. What lies below /secret wants the header that DIRECTORY/../secret has.
Bodies below /held come up to 3 MiB from the file's begin, and the rest once the file GATE is there. Each answer is a
line of LOG: status, path, the first byte sent.
"""
import hashlib
import http.server
import os
import sys
import time

DIRECTORY, PORT, LOG, GATE = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
HELD = 3 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = os.path.normpath(self.path.split("?")[0])
        body, status, first = b"", 404, 0
        if os.path.isfile(DIRECTORY + path):
            with open(DIRECTORY + path, "rb") as file:
                body, status = file.read(), 200
        if path.startswith("/secret/"):
            with open(DIRECTORY + "/../secret") as file:
                name, _, value = file.read().strip().partition(": ")
            if self.headers.get(name) != value:
                body, status = b"", 403
        tag = '"' + hashlib.sha256(body).hexdigest()[:16] + '"'
        range_ = self.headers.get("Range", "")
        if status == 200 and range_.startswith("bytes=") and self.headers.get("If-Range", tag) == tag:
            first, status = int(range_[6:].split("-")[0]), 206
        self.send_response(status)
        if status < 300:
            self.send_header("ETag", tag)
            self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        with open(LOG, "a") as log:
            log.write(f"{status} {path} {first}\n")
        if path.startswith("/held/") and first < len(body) > HELD:
            self.wfile.write(body[first:HELD])
            self.wfile.flush()
            while not os.path.exists(GATE):
                time.sleep(0.05)
            first = max(first, HELD)
        self.wfile.write(body[first:])

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # Clients that are killed leave in the middle.


Server(("127.0.0.1", PORT), Handler).serve_forever()
