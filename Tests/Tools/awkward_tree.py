#!/usr/bin/env python3
"""Makes a tree of files with awkward names and prints its inventory as JSON.

Seeded: the same seed makes the same names, bytes and times. The inventory is a list of
{"path": hex of the path's bytes, "size": bytes, "sha256": hex}; paths are bytes, because one of them is not UTF-8.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile

NAMES = [
    b"plain.txt", b"with space.txt", b" leading space", b"trailing space ", b"two  spaces", b"100%.txt",
    b"percent%20literal.txt", b"%2e%2e", b"hash#fragment.txt", b"question?query=1.txt", b"a&b.txt", b"&amp;entity.txt",
    b"&lt;b&gt;", b"<b>tag</b>.txt".replace(b"/", b""), b"double\"quote.txt", b"single'quote.txt", b"plus+plus.txt",
    b"semi;colon.txt", b"colon:colon.txt", b"http:scheme.txt", b"back\\slash.txt", b"back\\..\\slash.txt", b"tilde~",
    b"~home", b"-dash", b"--delete", b"$HOME.txt", b"`tick`.txt", b"*star*.txt", b"[bracket].txt", b"{brace}.txt",
    b"pipe|pipe.txt", b"comma,comma.txt", b"at@at.txt", b"equals=.txt", b"caret^.txt", b"bang!.txt", b"(paren).txt",
    b".hidden", b"..two dots", b"...", b"dot.", b"CON", b"UPPER.txt", b"upper.txt",
    "caf\u00e9 NFC.txt".encode(), "cafe\u0301 NFD.txt".encode(), "tw\u00efn".encode(), "twi\u0308n".encode(),
    "\U0001F3D4\uFE0F mountain.txt".encode(), "\U0001F468\u200D\U0001F469\u200D\U0001F467.txt".encode(),
    "\u6e56.txt".encode(), "\u0622\u0628.txt".encode(), b"invalid-\xff\xfe.bin", b"latin1-\xe9.txt",
    b"n" * 200, ("\u00e9" * 100).encode(), b"l" * 255,
]
DIRECTORIES = [b"", b"sub dir", b"100% dir", "d\u00efr #1".encode(), b"deep/er/and/deeper still"]
# Names that a mirror has to refuse: control characters, and text direction.
HOSTILE = [b"new\nline.txt", b"tab\there.txt", b"escape\x1b[31m.txt", "bidi\u202Etxt.exe".encode()]
BIG = b"three gibibytes, sparse.img"
BIG_SIZE = 3 << 30


def contents(seed, path):
    chooser = random.Random(hashlib.sha256(b"%d:" % seed + path).digest())
    size = chooser.choice([0, 1, 2, 511, 4096, 4097, 65536, 70001])
    return chooser.randbytes(size)


def plan(seed, hostile=False):
    """Every path with its bytes; one name of each kind in the top, a changing third of them in each directory."""
    chooser = random.Random(seed)
    paths = []
    for directory in DIRECTORIES:
        names = NAMES if directory == b"" else chooser.sample(NAMES, len(NAMES) // 3)
        paths += [directory + b"/" + name if directory else name for name in names]
    if hostile:
        paths += HOSTILE
    return [(path, contents(seed, path)) for path in sorted(paths)]


def write_sparse(path):
    """A file with a few bytes at odd places and holes between them; its digest is made while it is read back."""
    with open(path, "wb") as stream:
        for offset, text in ((0, b"head"), ((1 << 31) - 2, b"over 2 GiB"), ((1 << 32 >> 1) + 12345, b"x"), (BIG_SIZE - 4, b"tail")):
            stream.seek(offset)
            stream.write(text)
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def make(folder, seed, big=False, hostile=False):
    root = os.fsencode(folder)
    os.makedirs(root, exist_ok=True)
    inventory = []
    for number, (path, data) in enumerate(plan(seed, hostile)):
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as stream:
            stream.write(data)
        stamp = 1_600_000_000 + number * 61
        os.utime(full, (stamp, stamp))
        inventory.append({"path": path.hex(), "size": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    if big:
        digest = write_sparse(os.path.join(root, BIG))
        inventory.append({"path": BIG.hex(), "size": BIG_SIZE, "sha256": digest})
    return inventory


def self_test():
    folder = tempfile.mkdtemp()
    try:
        one = make(os.path.join(folder, "one"), 7, hostile=True)
        two = make(os.path.join(folder, "two"), 7, hostile=True)
        assert one == two, "the same seed made two trees"
        assert one != make(os.path.join(folder, "three"), 8, hostile=True), "another seed made the same tree"
        found = sum(len(files) for _, _, files in os.walk(os.fsencode(os.path.join(folder, "one"))))
        assert found == len(one) == len({entry["path"] for entry in one}), (found, len(one))
        print(f"awkward_tree.py: {found} files, the same from the same seed")
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--big", action="store_true", help="with a sparse file of 3 GiB")
    parser.add_argument("--hostile", action="store_true", help="with names that a mirror refuses")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if not arguments.folder:
        parser.error("which folder?")
    json.dump(make(arguments.folder, arguments.seed, arguments.big, arguments.hostile), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
