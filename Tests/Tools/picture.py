#!/usr/bin/env python3
"""Makes the picture in README: a terminal in which Tarn is at work.

    sudo python3 -B Tests/Tools/picture.py --tarn .build/release/tarn --output packaging/tarn.svg

What it shows was printed by the program: tmux runs the commands in a network of their own, in which a small server is
example.org. Needs tmux, and root for the network.
"""
import argparse
import hashlib
import html
import http.server
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

COMMANDS = [
    "tarn sync http://example.org/iso/SHA256SUMS iso",
    "tarn sync iso",
    "tarn status iso",
    "tarn get http://example.org/iso/tarn-0.1.0.iso --to /srv/",
]
COLUMNS, LINES = 86, 40
FACES = {"31": "#e06c75", "32": "#98c379", "33": "#e5c07b", "34": "#61afef", "35": "#c678dd", "36": "#56b6c2", "2": "#7f848e"}


def serve(root):
    """A server on port 80 of this network, with three images and their checksum list."""
    folder = root / "srv/iso"
    folder.mkdir(parents=True)
    lines = []
    for number, size in enumerate([3_300_000, 5_100_000, 8_700_000]):
        name, data = f"tarn-0.{number}.0.iso", random.Random(number).randbytes(size)
        (folder / name).write_bytes(data)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=root / "srv")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 80), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def record(tarn, root):
    """What tmux has on its screen when all commands have ended, with its colours."""
    home = Path("/srv/mirrors")
    home.mkdir()
    environment = {
        "PATH": f"{Path(tarn).resolve().parent}:/usr/bin:/bin", "HOME": str(home), "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    tmux = ["tmux", "-L", f"tarn-picture-{os.getpid()}", "-f", "/dev/null"]

    def ask(*words):
        return subprocess.run([*tmux, *words], check=True, capture_output=True, text=True, env=environment).stdout

    def prompts():
        return sum(line.strip() == "$" or line.startswith("$ ") for line in ask("capture-pane", "-p").splitlines())

    ask("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-c", str(home), "env PS1='$ ' bash --norc --noprofile")
    try:
        for number, command in enumerate(COMMANDS):
            wait(lambda: prompts() == number + 1, "a prompt")
            ask("send-keys", command, "Enter")
        wait(lambda: prompts() == len(COMMANDS) + 1, "the last prompt")
        return ask("capture-pane", "-p", "-e").rstrip().splitlines()[:-1]
    finally:
        ask("kill-server")


def wait(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"picture: not within a minute: {what}")
        time.sleep(0.1)


def draw(lines):
    """An SVG of lines that hold escape sequences for colours (ECMA-48, SGR)."""
    high, wide = 18, 8.43
    height = high * (len(lines) + 3)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{round(wide * COLUMNS + 32)}" height="{height}" '
        'font-family="ui-monospace, DejaVu Sans Mono, Menlo, monospace" font-size="14">',
        "<title>Tarn makes a mirror, finds nothing left to do, and tells how it stands</title>",
        f'<rect width="100%" height="{height}" rx="8" fill="#1e222a"/>',
    ]
    for number, line in enumerate(lines):
        spans, face, bold = [], "#d7dae0", False
        if line.startswith("$ "):
            bold = True
        for part in re.split(r"(\x1b\[[0-9;]*m)", line):
            if part.startswith("\x1b["):
                for code in part[2:-1].split(";"):
                    if code in ("", "0", "39"):
                        face, bold = "#d7dae0", bold and code == "39"
                    elif code == "1":
                        bold = True
                    else:
                        face = FACES.get(code, face)
            elif part:
                weight = ' font-weight="bold"' if bold else ""
                spans.append(f'<tspan fill="{face}"{weight}>{html.escape(part)}</tspan>')
        out.append(f'<text x="16" y="{high * (number + 2)}" xml:space="preserve">{"".join(spans)}</text>')
    return "\n".join(out + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tarn", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        sys.exit(subprocess.call(["unshare", "-mn", sys.executable, "-B", *sys.argv, "--inside"]))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="tarn-picture-") as place:
        root = Path(place)
        (root / "hosts").write_text("127.0.0.1 localhost example.org\n")
        subprocess.run(["mount", "--bind", root / "hosts", "/etc/hosts"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/srv"], check=True)
        serve(root)
        lines = record(options.tarn, root)
    Path(options.output).write_text(draw(lines))
    print(f"{options.output}: {len(lines)} lines")


main()
