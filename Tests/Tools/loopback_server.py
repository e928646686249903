"""A web server on loopback for the grids: what it answers is a function of the path."""
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        # What is asked for may have changed since the feed was read: the digest tells.
        body = self.server.body_of(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *arguments):
        pass


def serve(body_of):
    """Serves body_of(path), 404 for None; gives the server, which its caller shuts down, and its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.body_of = body_of
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"
