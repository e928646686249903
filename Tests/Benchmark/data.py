"""What the server serves: sets of files from a seed, each with its manifests.

A set is a directory: files/ holds the files, manifest.ndjson and manifest.meta4 name them with sizes, times and digests; the
lists for peers are made by peers.py.
"""
import hashlib
import math
import os
import random

TIME = 1_700_000_000  # Every file's, in whole seconds as HTTP tells it.
BLOCK = 1 << 20


class FileSet:
    """name; paths, sizes and digests in the order of the paths' bytes; directory: where it lies on the server."""

    def __init__(self, directory, name, files=None):
        self.directory, self.name = os.path.join(directory, name), name
        self.files = files or os.path.join(self.directory, "files")
        self.paths, self.sizes, self.digests = [], [], []

    @property
    def bytes(self):
        return sum(self.sizes)

    def add(self, path, size, digest):
        self.paths.append(path)
        self.sizes.append(size)
        self.digests.append(digest)

    def write_manifest(self):
        lines = hashlib.sha256()
        with open(os.path.join(self.directory, "manifest.ndjson"), "wb") as stream:
            def write(line):
                lines.update(line)
                stream.write(line)
            write(b'{"header":{"format":"mirror-manifest/1","version":1,"mirrors":["files/"],'
                  b'"defaults":{"mtime":%d}}}\n' % TIME)
            for path, size, digest in zip(self.paths, self.sizes, self.digests):
                write(manifest_line(path, size, digest))
            self.end = stream.tell()
            stream.write(end_line(len(self.paths), self.bytes, lines))
        # Long ago, as a feed that has not changed: a server's word of a moment ago proves less.
        os.utime(stream.name, (TIME, TIME))

    def change_manifest(self):
        """Another text that says the same: its last line ends with a blank more, or with one less."""
        with open(os.path.join(self.directory, "manifest.ndjson"), "r+b") as stream:
            stream.seek(self.end)
            line = stream.read().rstrip(b"\n")
            stream.seek(self.end)
            stream.write((line.rstrip() if line.endswith(b" ") else line + b" ") + b"\n")
            stream.truncate()

    def write_metalink(self, name, base):
        """base: the URL of the files' directory."""
        with open(os.path.join(self.directory, name), "w", encoding="ascii") as stream:
            stream.write('<?xml version="1.0" encoding="UTF-8"?>\n<metalink xmlns="urn:ietf:params:xml:ns:metalink">\n')
            for path, size, digest in zip(self.paths, self.sizes, self.digests):
                stream.write(f'<file name="{path}"><size>{size}</size><hash type="sha-256">{digest}</hash>'
                             f'<url>{base}{path}</url></file>\n')
            stream.write("</metalink>\n")

    def write_checksums(self):
        """sums/SHA256SUMS, beside links to the files: where they lie an index would show it as one of them."""
        directory = os.path.join(self.directory, "sums")
        os.makedirs(directory)
        for name in os.listdir(self.files):
            os.symlink(os.path.join(self.files, name), os.path.join(directory, name))
        with open(os.path.join(directory, "SHA256SUMS"), "w", encoding="ascii") as stream:
            for path, digest in zip(self.paths, self.digests):
                stream.write(f"{digest}  {path}\n")

    def wrong(self, folder):
        """What keeps a folder from being the set: the first few differences. Reads every byte; a directory whose name begins
        with a dot is its tool's own."""
        found = {}
        for parent, names, files in os.walk(folder):
            names[:] = [name for name in names if not name.startswith(".")]
            for name in files:
                full = os.path.join(parent, name)
                found[os.path.relpath(full, folder)] = full
        wrong = [f"missing: {path}" for path in self.paths if path not in found][:3]
        known = dict(zip(self.paths, self.digests))
        for path, full in found.items():
            if path not in known:
                wrong.append(f"not of the set: {path}")
            elif digest_of(full) != known[path]:
                wrong.append(f"other bytes: {path}")
            if len(wrong) > 5:
                break
        return wrong


def manifest_line(path, size, digest):
    return b'{"path":"%s","size":%d,"hashes":{"sha-256":"%s"}}\n' % (path.encode(), size, digest.encode())


def end_line(files, size, lines):
    return b'{"end":{"files":%d,"bytes":%d,"sha-256":"%s"}}\n' % (files, size, lines.hexdigest().encode())


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_file(path, size, chooser):
    """Random bytes; their digest."""
    digest = hashlib.sha256()
    with open(path, "wb", buffering=0) as stream:
        left = size
        while left > 0:
            block = chooser.randbytes(min(BLOCK, left))
            stream.write(block)
            digest.update(block)
            left -= len(block)
    os.utime(path, (TIME, TIME))
    return digest.hexdigest()


def make(directory, name, sizes, seed, folder_of=lambda number: f"d{number // 1000:04}", files=None):
    """A set of files of these sizes, a thousand in a directory. files: where they lie, if not on the server."""
    chooser = random.Random(f"{seed} {name}")
    made = FileSet(directory, name, files)
    os.makedirs(made.directory, exist_ok=True)
    for number, size in enumerate(sizes):
        path = os.path.join(folder_of(number), f"f{number:07}.bin")
        full = os.path.join(made.files, path)
        if number % 1000 == 0:
            os.makedirs(os.path.dirname(full), exist_ok=True)
        made.add(path, size, write_file(full, size, chooser))
    return made


def log_normal(count, seed, mean=270 << 10, sigma=1.5, most=256 << 20):
    """Sizes of files as they are found in the wild: many small ones, few large ones; `mean` bytes on average."""
    chooser = random.Random(f"{seed} sizes")
    centre = math.log(mean) - sigma * sigma / 2
    return [min(most, max(1, round(chooser.lognormvariate(centre, sigma)))) for _ in range(count)]
