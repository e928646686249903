#!/usr/bin/env python3
"""A toy that stands in for Tarn where the harness itself is tested: `toy_mirror.py sync FEED FOLDER [options]`.

Mirrors a list of SHA-256 sums and the list itself the right way, or with one sin named in $TOY_SIN, which the harness has to find:
torn (writes in place), unsynced (renames before the fsync), lossy (overwrites what the user edited), boastful (prints
that all is done before anything is).
"""
import hashlib
import json
import os
import sqlite3
import sys
import urllib.parse
import urllib.request

SIN = os.environ.get("TOY_SIN", "")


def fetch(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read()


def sync_path(path, flags=os.O_RDONLY):
    descriptor = os.open(path, flags)
    os.fsync(descriptor)
    os.close(descriptor)


def digest(path):
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


class Toy:
    def __init__(self, feed, folder, delete):
        self.feed, self.folder, self.delete = feed, os.path.abspath(folder), delete
        self.state = os.path.join(self.folder, ".tarn")
        for name in ("partial", "trash"):
            self.make_directories(os.path.join(self.state, name))
        self.ledger = sqlite3.connect(os.path.join(self.state, "ledger.sqlite"), isolation_level=None)
        self.ledger.execute("PRAGMA synchronous=FULL")
        self.ledger.execute("CREATE TABLE IF NOT EXISTS rows (path TEXT PRIMARY KEY, digest TEXT)")

    def placed(self, path):
        row = self.ledger.execute("SELECT digest FROM rows WHERE path = ?", (path,)).fetchone()
        return row and row[0]

    def record(self, path, value):
        if value is None:
            self.ledger.execute("DELETE FROM rows WHERE path = ?", (path,))
        else:
            self.ledger.execute("INSERT OR REPLACE INTO rows VALUES (?, ?)", (path, value))

    def trash(self, path):
        full = os.path.join(self.folder, path)
        target = os.path.join(self.state, "trash", hashlib.sha256(path.encode()).hexdigest() + "-" + digest(full)[:16])
        if os.path.exists(target):
            return os.unlink(full)
        os.link(full, target)

    def make_directories(self, path):
        if path and not os.path.isdir(path):
            self.make_directories(os.path.dirname(path))
            os.mkdir(path)
            sync_path(os.path.dirname(path))

    def say(self, code, path):
        print(json.dumps({"type": "done", "code": code, "path": path}, separators=(",", ":")), flush=True)

    def place(self, path, data, value):
        full = os.path.join(self.folder, path)
        self.make_directories(os.path.dirname(full))
        if os.path.exists(full) and SIN != "lossy":
            self.trash(path)
        if SIN == "torn":
            with open(full, "wb", buffering=0) as stream:
                stream.write(data[: len(data) // 2])
                stream.write(data[len(data) // 2:])
        else:
            partial = os.path.join(self.state, "partial", value[:32])
            with open(partial, "wb", buffering=0) as stream:
                for start in range(0, len(data), 1 << 18):
                    stream.write(data[start:start + (1 << 18)])
                if SIN != "unsynced":
                    os.fsync(stream.fileno())
            os.rename(partial, full)
        sync_path(os.path.dirname(full))
        self.record(path, value)
        if SIN != "boastful":
            self.say("fetched", path)

    def run(self):
        listed = fetch(self.feed)
        wanted = {}
        for line in listed.decode().splitlines():
            value, _, path = line.partition("  ")
            wanted[path] = value
            if SIN == "boastful":
                self.say("fetched", path)
        # The list is kept as well, from the bytes that were read, after all that it names.
        name = os.path.basename(urllib.parse.urlsplit(self.feed).path)
        rows = sorted(wanted.items()) + [(name, hashlib.sha256(listed).hexdigest())]
        wanted = dict(rows)
        for path, value in rows:
            full = os.path.join(self.folder, path)
            if not os.path.exists(full) or digest(full) != value:
                url = urllib.parse.urljoin(self.feed, urllib.parse.quote(path))
                self.place(path, listed if path == name else fetch(url), value)
            elif self.placed(path) != value:
                self.record(path, value)
        for (path,) in self.ledger.execute("SELECT path FROM rows").fetchall():
            if self.delete and path not in wanted:
                if os.path.exists(os.path.join(self.folder, path)):
                    self.trash(path)
                    os.unlink(os.path.join(self.folder, path))
                self.record(path, None)


if __name__ == "__main__":
    Toy(sys.argv[2], sys.argv[3], "--delete" in sys.argv).run()
