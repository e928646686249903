"""The server of the benchmark: nginx on loopback, over plain HTTP/1.1 and over TLS with HTTP/2, with a log of what went over
the wire."""
import dataclasses
import os
import random
import socket
import subprocess
import threading
import time

import command

PATIENCE = 120  # Seconds for what is to happen at all.
# As Debian sets nginx up, but for what would cut connections short: 1,000 requests are allowed on one by default.
CONFIGURATION = """daemon off; pid {directory}/nginx.pid; error_log {directory}/error.log warn;
worker_processes auto; worker_rlimit_nofile 4096; events {{ worker_connections 1024; }}
http {{ default_type application/octet-stream; types {{ }} {temporary}
sendfile on; tcp_nopush on; keepalive_requests 10000000; keepalive_timeout 300s;
log_format wire '$status $bytes_sent $body_bytes_sent $request_method $server_protocol $connection $msec $request_time '
'$request_uri';
access_log {log} wire;
server {{ listen {address}:{plain}; root {root}; autoindex on; }}
server {{ listen {address}:{secure} ssl http2; root {root}; autoindex on;
ssl_certificate {directory}/server.pem; ssl_certificate_key {directory}/server.key; ssl_protocols TLSv1.2 TLSv1.3; }} }}"""


class Acceptor:
    """Listens on a port of loopback, and calls `serve` with each connection, in a thread of its own, until `close`."""

    def __init__(self, serve):
        self.listener, self.serve = socket.create_server(("127.0.0.1", 0), backlog=128), serve
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        # To close it wakes nobody: the thread would accept for whoever gets the descriptor's number next.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


def free_port(address):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def make_authority(directory, address):
    """A certificate authority of its own, and a certificate for an address and localhost: ca.pem, server.pem, server.key."""
    def run(*words):
        command.expect(["openssl", *words], cwd=directory)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch"]
    run("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Benchmark authority",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    run("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    with open(os.path.join(directory, "names"), "w", encoding="ascii") as stream:
        stream.write(f"subjectAltName=DNS:localhost,IP:{address}\nextendedKeyUsage=serverAuth\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "server.pem")


@dataclasses.dataclass(frozen=True)
class Request:
    """A line of the log. wire, body: bytes sent with and without the head; end: seconds since 1970; took: seconds."""
    status: int
    wire: int
    body: int
    method: str
    protocol: str
    connection: int
    end: float
    took: float
    target: str


class Server:
    def __init__(self, directory, root, address="127.0.0.1"):
        self.directory, self.root, self.address = directory, root, address
        self.log = os.path.join(directory, "access.log")
        self.authority = os.path.join(directory, "ca.pem")
        make_authority(directory, address)
        for _ in range(10):
            self.port, self.secure_port = free_port(address), free_port(address)
            if self.start():
                return
        raise SystemExit(f"nginx did not start: {directory}/error.log")

    @property
    def base(self):
        return f"http://{self.address}:{self.port}"

    @property
    def secure_base(self):
        host = "localhost" if self.address == "127.0.0.1" else self.address
        return f"https://{host}:{self.secure_port}"

    def start(self):
        temporary = " ".join(f"{kind}_temp_path {self.directory}/{kind};"
                             for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = os.path.join(self.directory, "nginx.conf")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(CONFIGURATION.format(
                directory=self.directory, address=self.address, temporary=temporary, log=self.log, plain=self.port, secure=self.secure_port,
                root=self.root))
        # Workers that drop root's rights could not read below a directory that only root may enter.
        user = ["-g", "user root;"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(["nginx", "-p", self.directory, "-c", path, "-e", f"{self.directory}/error.log",
                                         *user])
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((self.address, self.port)) == 0:
                    return True
            time.sleep(0.02)
        self.stop()
        return False

    def mark(self):
        """Bytes of the log so far. Asks for a name of its own and waits for it in the log; a worker logs a request when it
        has ended, so that what was cut off a moment before may come later."""
        name = f"/mark-{random.getrandbits(64):x}"
        with socket.create_connection((self.address, self.port), timeout=PATIENCE) as connection:
            connection.sendall(f"HEAD {name} HTTP/1.0\r\n\r\n".encode())
            while connection.recv(4096):
                pass
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            size = os.path.getsize(self.log)
            with open(self.log, "rb") as stream:
                stream.seek(max(0, size - 65536))
                if name.encode() in stream.read():
                    return size
            time.sleep(0.005)
        raise SystemExit("the server's log does not move")

    def requests(self, begin, end):
        """What was asked for between two marks."""
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            stream.seek(begin)
            lines = stream.read(end - begin).splitlines()
        for line in lines:
            status, wire, body, method, protocol, connection, end, took, target = line.split(" ", 8)
            if not target.startswith("/mark-"):
                yield Request(int(status), int(wire), int(body), method, protocol, int(connection), float(end), float(took),
                              target)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
