#!/usr/bin/env python3
"""Servers that never stop sending what holds no content; standard library only.

Usage: flood_server.py CERT KEY KIND...

Listens on a free port of 127.0.0.1 for each kind and prints "ready PORT...". The kinds are those of HTTP2, BROKEN and HTTP1 below:
the first two speak HTTP/2 over TLS, the others HTTP/1.1 over TLS. BROKEN ends a body in the middle,
or refuses the stream, instead. Whatever is asked for, the answer is a good head, where the
kind has one, and then the same bytes without end. With "=MILLISECONDS" behind a kind there is a pause after each MiB. Ends when
its standard input closes.
"""
import os, socket, ssl, sys, threading, time


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


HEAD = frame(1, 4, 1, b"\x88")                        # :status 200, END_HEADERS
HTTP2 = {                                             # the head, and what is repeated
    "data": (HEAD, frame(0, 0, 1)),
    "thin": (HEAD, frame(0, 0, 1) * 100_000 + frame(0, 0, 1, b"x")),
    "padding": (HEAD, frame(0, 8, 1, b"\xff" + bytes(255))),
    "priority": (HEAD, frame(2, 0, 3, bytes(4) + b"\x10")),
    "window": (HEAD, frame(8, 0, 0, b"\0\0\0\1")),
    "unknown": (HEAD, frame(0x42, 0, 0)),
    "unknown-before": (b"", frame(0x42, 0, 0)),
    "altsvc": (HEAD, frame(10, 0, 0, b"\0\1xh2=\":1\"")),
    "ping": (HEAD, frame(6, 0, 0, bytes(8))),
    "settings": (HEAD, frame(4, 0, 0)),
    "continuation": (frame(1, 0, 1, b"\x88"), frame(9, 0, 1)),
    "hints": (b"", frame(1, 4, 1, b"\x08\x03103")),
    "trailers": (HEAD, frame(1, 4, 1, b"\x00\x01a\x01b")),
}
DATA = HEAD + frame(0, 0, 1, bytes(1000))
BROKEN = {                                            # sent once, and then the connection is closed
    "close": DATA,
    "reset": DATA + frame(3, 0, 1, b"\0\0\0\2"),
    "goaway": DATA + frame(7, 0, 0, bytes(4) + b"\0\0\0\2"),
    "refused": frame(3, 0, 1, b"\0\0\0\7"),
    "bad-trailers": DATA + frame(1, 4, 1, b"\x00\x01a\x01b"),
}
OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HTTP1 = {
    "chunk-extension": (OK + b"5;x=", b"x" * 4096),
    "chunk-tiny": (OK, b"1;" + b"x" * 4000 + b"\r\na\r\n"),
    "chunk-trailers": (OK + b"0\r\n", b"X-Trailer: 1\r\n"),
    "hints-1": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "blank-lines": (b"", b"\r\n"),
}
PREFACE = 24


def serve(connection, context, kind, pause):
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = context.wrap_socket(connection, server_side=True)
        if kind in HTTP2 or kind in BROKEN:
            connection.sendall(frame(4, 0, 0))
            while (data := connection.recv(65536)) and not has_headers(data):
                pass
        else:
            connection.recv(65536)
        if kind in BROKEN:
            connection.sendall(BROKEN[kind])
            # The connection of a refused stream stays.
            while kind == "refused" and connection.recv(65536):
                pass
            return
        head, more = HTTP2.get(kind) or HTTP1[kind]
        connection.sendall(head)
        block = more * max(1, (1 << 20) // len(more))
        while True:
            connection.sendall(block)
            if pause:
                time.sleep(pause / 1000)
    except (OSError, ValueError):
        pass
    finally:
        connection.close()


def has_headers(data):
    """Whether the frames behind the preface end with one of HEADERS."""
    offset = PREFACE if data.startswith(b"PRI") else 0
    while offset + 9 <= len(data):
        if data[offset + 3] == 1:
            return True
        offset += 9 + int.from_bytes(data[offset:offset + 3], "big")
    return False


def accept(listener, context, kind, pause):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, context, kind, pause), daemon=True).start()


def main():
    certificate, key, *kinds = sys.argv[1:]
    ports = []
    for word in kinds:
        kind, _, pause = word.partition("=")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["http/1.1"] if kind in HTTP1 else ["h2"])
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        ports.append(listener.getsockname()[1])
        threading.Thread(target=accept, args=(listener, context, kind, int(pause or 0)), daemon=True).start()
    print("ready", *ports, flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
