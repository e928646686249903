#!/usr/bin/env python3
"""Hostile names in every format of feeds, and through a whole pass.

  names_grid.py --documents            prints every case: a line of format, number, URL and length, by tabs, and so many
                                       bytes of a document; a test parses them all and writes what came out
  names_grid.py --judge FILE           judges that: format x (accepted, refused, violations)
  names_grid.py --tarn BINARY          a pass over all names into a folder beside a canary
  names_grid.py --self-test            shows that the judge and the pass's checks can fail

Every name in a format that can carry it has to come out as an entry of exactly its bytes, safe by the rule of
hostile_names.py, or as a refusal with a code; its neighbours have to come out as they are. Where a format cannot
carry a name, or it stands there without the escapes a server writes, whatever comes out has to be safe.
"""
import argparse
import base64
import collections
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse

import check_tree
import hostile_names
import loopback_server
from hostile_names import AFTER, BEFORE, DROPS_DOT, HOST, PLACE, why_unprintable, why_unsafe

LIMIT = 120  # Seconds for one command.


# --- formats ----------------------------------------------------------------------------------------------------
def cases_of(share):
    """One of so many cases, spread over all formats and names."""
    return list(hostile_names.cases())[::share]


def print_documents(share):
    for case in cases_of(share):
        head = "\t".join([case.format, str(case.number), case.url, str(len(case.document))])
        sys.stdout.buffer.write(head.encode() + b"\n" + case.document)


def expected_name(case):
    name = case.name
    if case.format in DROPS_DOT:
        while name.startswith(b"./"):
            name = name[2:].lstrip(b"/")
    return name


def faults_of_entry(case, name, url):
    faults = []
    why = why_unsafe(name)
    if why:
        faults.append(f"unsafe ({why}): {name[:80]!r}")
    parts = urllib.parse.urlsplit(url)
    if url.startswith(HOST + "/any/"):
        return faults
    if not url.startswith(HOST + "/") or parts.query or parts.fragment or not url.isascii():
        return faults + [f"fetched from {url[:120]}"]
    if case.is_exact and not case.format.startswith("Python"):
        asked = urllib.parse.unquote_to_bytes(parts.path)
        if asked != PLACE.encode() + name and asked != PLACE.encode() + case.name:
            faults.append(f"{name[:80]!r} is fetched from {url[:120]}")
    return faults


def judge_case(case, items, end):
    """(accepted, refused, violations) of one case. `items` are [kind, name, url or code, shown, reason]."""
    violations, kept, codes = [], [], []
    for kind, name, detail, shown, reason in items:
        for text in (shown, reason):
            why = why_unprintable(text)
            if why:
                violations.append(f"prints {why}")
        if kind == "refused":
            if not detail:
                violations.append("refused without a code")
            codes.append(detail)
        elif kind == "entry":
            violations += faults_of_entry(case, name, detail)
            kept.append(name)
        elif kind == "directory":
            if why_unsafe(name) or b"/" in name or case.is_exact:
                violations.append(f"a directory {name[:80]!r}")
        else:
            violations.append(f"a {kind}")
    if end[0] == "failed":
        if not end[1]:
            violations.append("failed without a code")
        return 0, 1, violations
    if not case.is_exact:
        return len(kept), len(codes), violations
    for neighbour in (BEFORE, AFTER):
        if neighbour in kept:
            kept.remove(neighbour)
        else:
            violations.append(f"{neighbour.decode()} is lost")
    wanted = expected_name(case)
    # The record of a mirror that is served itself.
    is_index = "HTML" in case.format or case.format in ("nginx JSON", "Caddy JSON")
    if wanted == b".tarn" and is_index and not kept and not codes:
        return 0, 0, violations
    if kept not in ([wanted], []) or len(codes) + len(kept) != 1:
        violations.append(f"became {[name[:80] for name in kept]} and {codes}")
    return len(kept), len(codes), violations


def read_results(path):
    """(format, number) -> (items, end): lines of `case F N`, items in hexadecimal, `end CODE`."""
    results, items, key = {}, [], None
    with open(path, encoding="ascii") as stream:
        for line in stream:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "case":
                key, items = (fields[1], int(fields[2])), []
            elif fields[0] in ("ended", "failed"):
                results[key] = (items, fields)
            else:
                items.append([fields[0], bytes.fromhex(fields[1]), fields[2], bytes.fromhex(fields[3]),
                              bytes.fromhex(fields[4])])
    return results


def judge(path, cases=None):
    results = read_results(path)
    table = collections.OrderedDict()
    details, unreached, over = [], 0, collections.Counter()
    for case in cases if cases is not None else hostile_names.cases():
        row = table.setdefault(case.format, collections.Counter())
        row["names"] += 1
        if (case.format, case.number) not in results:
            unreached += 1
            continue
        items, end = results[case.format, case.number]
        accepted, refused, violations = judge_case(case, items, end)
        row["accepted" if case.is_exact else "of others"] += accepted
        row["refused"] += refused
        row["violations"] += len(violations)
        row["exact"] += case.is_exact
        if case.is_exact and not accepted and not why_unsafe(expected_name(case)):
            over[code_of(items, end)] += 1
        details += [f"{case.format} {case.name[:80]!r}: {violation}" for violation in violations]
    print(f"{'format':26} {'names':>6} {'carried':>8} {'accepted':>9} {'refused':>8} {'other entries':>14} {'violations':>11}")
    for name, row in table.items():
        print(f"{name:26} {row['names']:6} {row['exact']:8} {row['accepted']:9} {row['refused']:8} "
              f"{row['of others']:14} {row['violations']:11}")
    if over:
        print("refused although the rule here calls them safe: "
              + ", ".join(f"{code} {count}" for code, count in sorted(over.items())))
    for detail in details[:40]:
        print("VIOLATION", detail)
    total = sum(row["names"] for row in table.values())
    print(f"names grid: {len(table)} formats, enumerated {total}, reached {total - unreached}, violations {len(details)}")
    return not details and not unreached


def code_of(items, end):
    if end[0] == "failed":
        return end[1]
    codes = [item[2] for item in items if item[0] == "refused"]
    return codes[0] if codes else "no code"


# --- a pass -----------------------------------------------------------------------------------------------------
def content_of(name):
    return b"content of " + hashlib.sha256(name).hexdigest().encode() + b"\n"


def names_of_the_pass():
    """All names but those that name a directory of another one."""
    names = hostile_names.hostile_names()
    directories = set()
    for name in names:
        if not why_unsafe(name):
            parts = name.split(b"/")
            directories.update(b"/".join(parts[:count]) for count in range(1, len(parts)))
    return [name for name in names if name not in directories]


def manifest(names):
    rows = [json.dumps({"header": {"format": "mirror-manifest/1", "version": 1}})]
    for name in names:
        body = content_of(name)
        row = {"size": len(body), "hashes": {"sha-256": hashlib.sha256(body).hexdigest()}}
        try:
            row["path"] = name.decode("utf-8")
        except UnicodeDecodeError:
            row["pathBytes"] = base64.b64encode(name).decode()
        rows.append(json.dumps(row))
    rows.append(json.dumps({"end": {"files": len(names)}}))
    return ("\n".join(rows) + "\n").encode()


def read_below(root, name):
    """The bytes of a file by single steps, since the whole path may be longer than the kernel takes; None if it is
    no regular file below that root, reached without a link."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        parts = name.split(b"/")
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        with os.fdopen(os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW, dir_fd=descriptor), "rb") as stream:
            return stream.read()
    except OSError:
        return None
    finally:
        os.close(descriptor)


def count_files(root):
    """Regular files outside .tarn, and what is neither file nor directory; single steps again."""
    files, others = 0, []
    stack = [os.open(root, os.O_RDONLY | os.O_DIRECTORY)]
    is_top = True
    while stack:
        descriptor = stack.pop()
        for entry in os.scandir(descriptor):
            if is_top and entry.name == ".tarn":
                continue
            if entry.is_dir(follow_symlinks=False):
                stack.append(os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor))
            elif entry.is_file(follow_symlinks=False):
                files += 1
            else:
                others.append(entry.name)
        is_top = False
        os.close(descriptor)
    return files, others


def run(command, environment):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, env=environment,
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout


def faults_of_output(what, text):
    faults = []
    for line in text.split(b"\n"):
        why = why_unprintable(line)
        if why:
            faults.append(f"I14 {what} prints {why}: {line[:120]!r}")
    return faults


def pass_over_names(tarn):
    names = names_of_the_pass()
    wanted = [name for name in names if not why_unsafe(name) and name.count(b"/") < 512]
    with tempfile.TemporaryDirectory(prefix="tarn-names.") as work:
        world = os.path.join(work, "world")
        folder = os.path.join(world, "a", "b", "mirror")
        os.makedirs(os.path.dirname(folder))
        for place in ("", "a", "a/b", "a/b/c"):
            os.makedirs(os.path.join(world, place), exist_ok=True)
            with open(os.path.join(world, place, "canary"), "wb") as stream:
                stream.write(b"sing")
        before = canary_beside(world, folder)
        files = {b"/pub/" + name: content_of(name) for name in names}
        files[b"/pub/list"] = manifest(names)
        server, url = loopback_server.serve(lambda path: files.get(urllib.parse.unquote_to_bytes(path)))
        environment = {**os.environ, "HOME": work, "XDG_STATE_HOME": work + "/state", "XDG_CONFIG_HOME": work + "/config",
                       "NO_COLOR": "1"}
        violations = []
        commands = [("sync", ["sync", url + "/pub/list", folder]), ("sync, again", ["sync", folder]),
                    ("sync --json", ["sync", "--json", folder]), ("plan", ["plan", folder]),
                    ("plan --json", ["plan", "--json", folder]), ("status", ["status", folder]),
                    ("status --json", ["status", "--json", folder]), ("verify", ["verify", folder])]
        output = {}
        for what, words in commands:
            status, output[what] = run([tarn] + words, environment)
            violations += faults_of_output(what, output[what])
            if status not in (0, 3):
                violations.append(f"I10 {what} ended with {status}: {output[what][-300:]!r}")
        server.shutdown()
        if canary_beside(world, folder) != before:
            violations.append("I5 something outside the folder changed")
        placed = 0
        for name in names:
            body = read_below(folder, name) if name and b"\0" not in name and not why_unsafe(name) else None
            if body == content_of(name):
                placed += 1
            elif name in wanted:
                violations.append(f"I6 {name[:80]!r} ({len(name)} bytes) is {'wrong' if body else 'missing'}")
        found, others = count_files(folder)
        if found != placed or others:
            violations.append(f"I5 {found} files lie in the folder, {placed} of them wanted; and {others[:5]}")
        refused = output["sync"].count(b"path-")
        for violation in violations[:40]:
            print("VIOLATION", violation)
        print(f"names pass: enumerated {len(names)}, placed {placed} of {len(wanted)}, refused {len(names) - placed} "
              f"({refused} codes printed), violations {len(violations)}")
        return not violations


def canary_beside(world, folder):
    """The canary digest of everything but the folder itself, which is moved aside for a moment."""
    aside = world + ".aside"
    is_there = os.path.exists(folder)
    if is_there:
        os.rename(folder, aside)
    try:
        return check_tree.canary_of(world)
    finally:
        if is_there:
            os.rename(aside, folder)


# --- the checks themselves --------------------------------------------------------------------------------------
def self_test():
    def case(name, is_exact=True, kind="NDJSON"):
        return hostile_names.Case(kind, 0, name, is_exact, HOST + PLACE + "list", b"")

    def entry(name, url=None, shown=b"x"):
        return ["entry", name, url or HOST + PLACE + urllib.parse.quote(name), shown, b""]

    good = [entry(BEFORE), entry(AFTER)]
    ended = ["ended", ""]
    assert judge_case(case(b"a"), good + [entry(b"a")], ended) == (1, 0, [])
    assert judge_case(case(b".."), good + [["refused", b"..", "path-dot-segment", b"..", b""]], ended) == (0, 1, [])
    bad = [
        (case(b".."), good + [entry(b"..")]), (case(b"a"), good + [entry(b"b")]), (case(b"a"), good),
        (case(b"a"), [entry(BEFORE), entry(b"a")]), (case(b"a"), good + [entry(b"a"), entry(b"c")]),
        (case(b"a"), good + [["refused", b"a", "", b"a", b""]]), (case(b"a"), good + [entry(b"a", "file:///etc/passwd")]),
        (case(b"a"), good + [entry(b"a", HOST + PLACE + "b")]), (case(b"a"), good + [entry(b"a", shown=b"\x1b[2J")]),
        (case(b"a"), good + [["refused", b"a", "c", b"a", "\u202e".encode()]]), (case(b"x", False), [entry(b"/x")]),
        (case(b"x", False), [["directory", b"..", HOST, b"", b""]]), (case(b"a"), good + [["deleted", b"a", "", b"", b""]]),
    ]
    for number, (each, items) in enumerate(bad):
        assert judge_case(each, items, ended)[2], f"bad case {number} passes"
    unsafe = [b"", b"/", b"..", b"a/..", b"./a", b"a//b", b"a/", b"a\n", b"a\x7f", b"a\xc2\x80", "\u202e".encode(),
              b".tarn/x", b"a/.tarn", b"n" * 256, b"a/" * 3000, b"a\0"]
    assert all(map(why_unsafe, unsafe)) and not any(map(why_unsafe, [b"a", b"..a", b".TARN", b"a.tarn", b"\xff", b"a\\b"]))
    names = hostile_names.hostile_names()
    assert len(names) >= 500 and len(names) == len(set(names))
    print(f"names_grid.py: {len(names)} names in {len(hostile_names.FORMATS)} formats, {len(bad)} faults found")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", action="store_true")
    parser.add_argument("--judge", metavar="FILE")
    parser.add_argument("--share", type=int, default=1, help="of the documents only one of so many")
    parser.add_argument("--tarn", metavar="BINARY")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.documents:
        return print_documents(arguments.share)
    is_good = True
    if arguments.judge:
        is_good = judge(arguments.judge, cases_of(arguments.share))
    if arguments.tarn:
        is_good = pass_over_names(os.path.abspath(arguments.tarn)) and is_good
    return sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
