#!/usr/bin/env python3
"""Feeds that give no digest, from a server that answers in parts, under kill -9; everything follows from a seed.

    digestless_chaos.py --tarn TARN [--seconds 60] [--seed N] [--files 8] [--self-test]

An agent keeps a watched mirror of each kind of feed: URLs, aria2, RSS, Atom, JSON Feed, Metalink, manifest, SFV, links, and
indexes of Apache, nginx (HTML and JSON) and Caddy. For --seconds the server
  - ends an answer to a range early and honestly (206 with the Content-Range of what it sends)
  - cuts bodies off, sends them slowly, answers 503, refuses ranges (416, 200)
  - changes files, their ETags alone, and their kind of ETag (strong, weak, none)
while the agent is killed with SIGKILL and started again, passes are asked for, and files are deleted by a user.

Whenever a file gets its final name, and at the end, its bytes have to be one version that the server had: of its length, from its
first byte to its last. inotify tells when; the folders are looked at as well. At the end the server is healthy, and every mirror has
all of its files.

Prints the seed, what was done and the violations; ends with 1 if there is any.
"""
import argparse
import collections
import ctypes
import hashlib
import http.server
import json
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import agent_figures

KINDS = ["urls", "aria2", "rss", "atom", "jsonfeed", "metalink", "manifest", "sfv", "links", "apache", "nginx", "nginxjson", "caddy"]
PATIENCE = 300  # Seconds for what is to happen at all.
MODIFIED = "Wed, 01 Jan 2025 00:00:{:02d} GMT"
IN_CLOSE_WRITE, IN_MOVED_TO, IN_CREATE = 0x8, 0x80, 0x100


class Site:
    """The files of all kinds, from memory. Any thread."""

    def __init__(self, seed, count):
        self.random, self.lock = random.Random(seed), threading.Lock()
        self.files, self.known = {}, collections.defaultdict(set)
        self.counts, self.isHealthy = collections.Counter(), False
        for kind in KINDS:
            for number in range(count):
                self.change(f"{kind}/f{number}.bin")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.site = True, self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def change(self, path):
        """A new version: other bytes, another length, another ETag."""
        with self.lock:
            body = self.random.randbytes(self.random.randrange(20_000, 400_000))
            number = self.files[path]["number"] + 1 if path in self.files else 1
            self.files[path] = {"body": body, "number": number, "tag": self.random.choice(["strong", "strong", "weak", "none"]),
                                "extra": 0}
            self.known[path].add(hashlib.sha256(body).digest())

    def stir(self):
        path = self.random.choice(sorted(self.files))
        if self.random.random() < 0.5:
            self.change(path)
            self.counts["versions"] += 1
        else:
            with self.lock:
                self.files[path]["extra"] += 1
            self.counts["tags"] += 1

    def weather(self):
        with self.lock:
            if self.isHealthy:
                return None
            return self.random.choices(["fine", "short", "cut", "slow", "busy", "whole", "unsatisfied"], [4, 6, 4, 3, 1, 1, 1])[0]

    def feed(self, kind):
        with self.lock:
            rows = [(path.split("/")[1], f"{self.url}/{path}", len(file["body"]), file["number"])
                    for path, file in sorted(self.files.items()) if path.startswith(kind + "/")]
        if kind == "urls":
            return "".join(f"{url}\n" for _, url, _, _ in rows)
        if kind == "aria2":
            return "".join(f"{url}\n  out={name}\n" for name, url, _, _ in rows)
        if kind == "rss":
            return '<rss version="2.0"><channel><title>t</title>' + "".join(
                f'<item><title>{name[:-4]}</title><guid>{name}</guid><enclosure url="{url}" length="{size}" type="application/zip"/></item>'
                for name, url, size, _ in rows) + "</channel></rss>"
        if kind == "atom":
            return '<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><id>t</id>' + "".join(
                f'<entry><title>{name[:-4]}</title><id>{name}</id><link rel="enclosure" href="{url}"/></entry>'
                for name, url, _, _ in rows) + "</feed>"
        if kind == "jsonfeed":
            return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [
                {"id": name, "title": name[:-4], "attachments": [{"url": url, "mime_type": "application/zip"}]}
                for name, url, _, _ in rows]})
        if kind == "metalink":
            return '<metalink xmlns="urn:ietf:params:xml:ns:metalink">' + "".join(
                f'<file name="{name}"><url>{url}</url></file>' for name, url, _, _ in rows) + "</metalink>"
        if kind == "manifest":
            return json.dumps({"manifest": {"format": "mirror-manifest/1", "complete": True},
                               "files": [{"path": name, "url": url} for name, url, _, _ in rows]})
        if kind == "sfv":
            return "; made by a test\n" + "".join(f"{name} {number:08X}\n" for name, _, _, number in rows)
        return self.page(kind, rows)

    def page(self, kind, rows):
        if kind == "links":
            return "<html><body>" + "".join(f'<p><a href="{name}">{name}</a></p>' for name, _, _, _ in rows) + "</body></html>"
        if kind == "nginxjson":
            return json.dumps([{"name": name, "type": "file", "mtime": f"Thu, 01 Jan 2026 00:{number % 60:02d}:00 GMT", "size": size}
                               for name, _, size, number in rows])
        if kind == "caddy":
            return json.dumps([{"name": name, "size": size, "url": f"./{name}", "mod_time": f"2026-01-01T00:{number % 60:02d}:00Z",
                                "mode": 420, "is_dir": False, "is_symlink": False} for name, _, size, number in rows])
        if kind == "apache":
            lines = "".join(f'<a href="{name}">{name}</a>  2026-01-01 00:{number % 60:02d}  {size / 1024:.0f}K\n'
                            for name, _, size, number in rows)
            return ('<html><head><title>Index of /d</title></head><body><h1>Index of /d</h1><pre><a href="?C=N;O=D">Name</a> '
                    '<a href="?C=M;O=A">Last modified</a> <a href="?C=S;O=A">Size</a>  <hr><a href="/">Parent Directory</a>   -\n'
                    f"{lines}<hr></pre></body></html>")
        lines = "".join(f'<a href="{name}">{name}</a>   01-Jan-2026 00:{number % 60:02d}   {size}\n' for name, _, size, number in rows)
        return ('<html><head><title>Index of /d/</title></head><body><h1>Index of /d/</h1><hr><pre><a href="../">../</a>\n'
                f"{lines}</pre><hr></body></html>")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site, path = self.server.site, self.path.lstrip("/")
        kind, _, name = path.partition("/")
        try:
            if path in site.files:
                with site.lock:
                    file = dict(site.files[path])
                self.answer(site, file, site.weather())
            elif kind in KINDS and name in ("", "feed", "feed.sfv"):
                body = site.feed(kind).encode()
                kinds = {"nginxjson": "application/json", "caddy": "application/json"}
                self.head(200, len(body), [("Content-Type", kinds.get(kind, "text/html" if not name else "text/plain"))])
                self.wfile.write(body)
            else:
                self.head(404, 0)
        except OSError:
            self.close_connection = True

    def head(self, status, length, fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def validators(self, file):
        tag = f'"{file["number"]}-{file["extra"]}"'
        fields = [("Last-Modified", MODIFIED.format((file["number"] * 7 + file["extra"]) % 60)), ("Content-Type", "application/octet-stream")]
        return {"strong": [("ETag", tag)], "weak": [("ETag", "W/" + tag)], "none": []}[file["tag"]] + fields

    def answer(self, site, file, weather):
        body, fields = file["body"], self.validators(file)
        own = {value for name, value in fields if name in ("ETag", "Last-Modified")}
        if weather == "busy":
            return self.head(503, 0)
        if self.headers.get("If-None-Match") in own and weather is not None:
            return self.head(304, 0, fields)
        wanted, guard = self.headers.get("Range", ""), self.headers.get("If-Range")
        if wanted and weather == "unsatisfied":
            return self.head(416, 0, [("Content-Range", f"bytes */{len(body)}")])
        if not wanted or weather == "whole" or (guard and (guard not in own or guard.startswith("W/"))):
            self.head(200, len(body), fields + [("Accept-Ranges", "bytes")])
            return self.send(site, body, weather)
        first = int(wanted.removeprefix("bytes=").split("-")[0])
        if first >= len(body):
            return self.head(416, 0, [("Content-Range", f"bytes */{len(body)}")])
        last = len(body) - 1
        if weather == "short":
            last = first + site.random.randrange(0, len(body) - first)
            site.counts["short ranges"] += last < len(body) - 1
        self.head(206, last + 1 - first, fields + [("Content-Range", f"bytes {first}-{last}/{len(body)}")])
        self.send(site, body[first:last + 1], weather)

    def send(self, site, body, weather):
        if weather in ("cut", "short") and len(body) > 1:
            # Else nobody would come back for the rest.
            cut = site.random.randrange(1, len(body)) if weather == "cut" or not self.headers.get("Range") else len(body)
            site.counts["cuts"] += cut < len(body)
            self.wfile.write(body[:cut])
            self.close_connection = cut < len(body)
            return
        pause = 0.02 if weather == "slow" else 0
        for start in range(0, len(body), 32_768):
            self.wfile.write(body[start:start + 32_768])
            time.sleep(pause)

    def log_message(self, *_):
        pass


class Watch:
    """Looks at each file as soon as it has its name, by inotify(7), and at all of them now and then."""

    def __init__(self, site, root):
        self.site, self.root, self.violations, self.looks = site, root, [], 0
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self.libc.inotify_init1(os.O_CLOEXEC)
        self.places = {}
        for kind in KINDS:
            os.makedirs(os.path.join(root, kind))
            mark = self.libc.inotify_add_watch(self.descriptor, os.path.join(root, kind).encode(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE)
            self.places[mark] = kind
        self.isOver = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.isOver:
            if not select.select([self.descriptor], [], [], 0.2)[0]:
                self.look_at_all()
                continue
            data, position = os.read(self.descriptor, 65_536), 0
            while position < len(data):
                mark, _, _, length = struct.unpack_from("iIII", data, position)
                name = data[position + 16:position + 16 + length].rstrip(b"\0").decode()
                position += 16 + length
                if mark in self.places:
                    self.look(f"{self.places[mark]}/{name}")

    def look(self, path):
        if not path.endswith(".bin"):
            return
        try:
            with open(os.path.join(self.root, path), "rb") as stream:
                body = stream.read()
        except OSError:
            return
        self.looks += 1
        # Files of podcasts are called by their title, which is the name without its ending.
        with self.site.lock:
            if hashlib.sha256(body).digest() in self.site.known[path]:
                return
            whole = any(body == file["body"][:len(body)] for name, file in self.site.files.items() if name == path)
        self.violations.append(f"{path}: {len(body)} bytes of no version" + (": a cut one" if whole else ""))

    def look_at_all(self):
        for kind in KINDS:
            for name in os.listdir(os.path.join(self.root, kind)):
                self.look(f"{kind}/{name}")

    def end(self):
        self.isOver = True
        self.thread.join()
        self.look_at_all()


def settings(site, root):
    text = '[agent]\nlog-format = "text"\n'
    for kind in KINDS:
        name = {"sfv": "feed.sfv", "links": "", "apache": "", "nginx": "", "nginxjson": "", "caddy": ""}.get(kind, "feed")
        text += (f'[mirror.{kind}]\nfeed = "{site.url}/{kind}/{name}"\nfolder = "{root}/{kind}"\nevery = "1min"\nretries = 4\n'
                 'template = "{title}.{ext}"\nkeep-list = false\nadopt = true\n' + ('format = "links"\n' if kind == "links" else ""))
    return text


def run(arguments, directory):
    dice, root = random.Random(arguments.seed + 1), os.path.join(directory, "folders")
    site = Site(arguments.seed, arguments.files)
    watch = Watch(site, root)
    agent = agent_figures.Agent(arguments.tarn, directory)
    with open(agent.config, "w", encoding="utf-8") as stream:
        stream.write(settings(site, root))
    done, asked, faults = collections.Counter(), [], []
    agent.start()
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        time.sleep(dice.random() * 0.4)
        step = dice.choices(["pass", "stir", "delete", "kill"], [4, 8, 3, 1])[0]
        done[step] += 1
        if step == "pass":
            asked.append(subprocess.Popen([agent.tarn, "sync", dice.choice(KINDS), "--config", agent.config], env=agent.environment,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        elif step == "stir":
            site.stir()
        elif step == "delete":
            path = dice.choice(sorted(site.files))
            try:
                os.remove(os.path.join(root, path))
            except OSError:
                pass
        else:
            agent.kill()
            agent.start()
        asked = [process for process in asked if process.poll() is None]
    with site.lock:
        site.isHealthy = True
    for process in asked:
        process.wait(PATIENCE)
    for kind in KINDS:
        # The one of a window stays deleted by its user: what is missing there comes back by order only.
        last = subprocess.run([agent.tarn, "sync", kind, "--config", agent.config], env=agent.environment, capture_output=True, timeout=PATIENCE)
        last = subprocess.run([agent.tarn, "sync", kind, "--config", agent.config], env=agent.environment, capture_output=True, timeout=PATIENCE)
        if last.returncode != 0:
            faults.append(f"{kind}: {last.returncode} in the end: {(last.stdout + last.stderr).decode()[-400:]}")
    agent.end()
    watch.end()
    for kind in KINDS:
        names = {name for name in os.listdir(os.path.join(root, kind)) if name.endswith(".bin")}
        if kind not in ("rss", "atom", "jsonfeed") and len(names) != arguments.files:
            faults.append(f"{kind}: {len(names)} of {arguments.files} files in the end")
    return site, watch, done, faults


def self_test():
    """A cut file, and one of two versions, have to be seen."""
    directory = tempfile.mkdtemp()
    try:
        site = Site(1, 2)
        watch = Watch(site, os.path.join(directory, "folders"))
        body = site.files["urls/f0.bin"]["body"]
        site.change("urls/f0.bin")
        mixed = body[:9000] + site.files["urls/f0.bin"]["body"][9000:]
        for data, count in ((body, 0), (site.files["urls/f0.bin"]["body"], 0), (body[:-1], 1), (mixed, 2)):
            with open(os.path.join(directory, "new"), "wb") as stream:
                stream.write(data)
            looks = watch.looks
            os.rename(os.path.join(directory, "new"), os.path.join(directory, "folders/urls/f0.bin"))
            deadline = time.monotonic() + PATIENCE
            while (watch.looks == looks or len(set(watch.violations)) < count) and time.monotonic() < deadline:
                time.sleep(0.01)
            if len(set(watch.violations)) != count:
                raise SystemExit(f"self test: {watch.violations}")
        print("digestless chaos self test: a cut file and a mixed one are seen")
    finally:
        shutil.rmtree(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    arguments.tarn = os.path.abspath(arguments.tarn)
    directory = tempfile.mkdtemp(prefix="tarn-digestless-")
    print(f"seed {arguments.seed}", flush=True)
    site, watch, done, faults = run(arguments, directory)
    violations = sorted(set(watch.violations)) + faults
    for line in violations:
        print(f"  {line}")
    print(f"digestless chaos: {', '.join(f'{count} {name}' for name, count in sorted((done + site.counts).items()))}; "
          f"looked {watch.looks} times, violated {len(violations)}")
    if violations:
        print(f"left in {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
