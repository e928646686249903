#!/usr/bin/env python3
"""What a reader of lists must find in a directory of samples: python3 list_expect.py DIRECTORY KIND

KIND is metalink, checksums or urls. Shares nothing with Tarn's parsers: XML goes through ElementTree as a whole
tree, text through regular expressions over the whole file. For each sample, sorted by name, one line
`sample NAME FORMAT|fails COMPLETE REFUSED` and then its entries, sorted:
`PATH-IN-HEX SIZE ALGORITHM:HEX,... PIECES*LENGTH PRIORITY=URL ...` with `-` for what is not there. Documents are
taken to lie at https://example.org/pub/NAME, and {PORT_PLACEHOLDER} in them to be 8080.
"""

import base64
import gzip
import os
import re
import sys
import unicodedata
import xml.etree.ElementTree as tree
from urllib.parse import quote, unquote_to_bytes, urljoin, urlsplit

BASE = "https://example.org/pub/"
ALGORITHMS = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}
STRENGTH = list(ALGORITHMS)
HEX = re.compile(rb"[0-9a-fA-F]+\Z")


class Sample:
    """Collects what one document gives."""

    def __init__(self, form):
        self.form, self.complete, self.refused, self.entries = form, True, 0, []

    def entry(self, path, sources, size=None, digests=None, pieces="-"):
        if not is_path(path) or not sources:
            self.refused += 1
            return
        shown = ",".join(f"{a}:{d.lower()}" for a, d in sorted(
            (digests or {}).items(), key=lambda item: -STRENGTH.index(item[0])))
        places = " ".join(f"{priority}={url}" for priority, url in sources)
        self.entries.append(f"{path.hex()} {'-' if size is None else size} {shown or '-'} {pieces} {places}")

    def malformed(self):
        self.refused += 1
        self.complete = False


def is_path(path):
    """The rules of a relative path, for Linux."""
    segments = path.split(b"/")
    if any(s in (b"", b".", b"..") or len(s) > 255 for s in segments) or segments[0] == b".tarn":
        return False
    text = path.decode("utf-8", "replace")
    return not any(unicodedata.category(c) == "Cc" or c in "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
                   "\u2066\u2067\u2068\u2069" for c in text) and len(path) <= 4095


def beside(path):
    return [(1, BASE + quote(path, safe="/-._~!$'()*,;:@&=+"))]


def url_of(text):
    """An http URL that may be asked, as it is sent; None for others."""
    allowed = "".join(chr(c) for c in range(33, 127) if chr(c) not in "\"<>\\^`{|}")
    text = quote(text, safe=allowed).split("#")[0]
    url = urljoin(BASE, text) if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) else text
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or re.search("[@%]", parts.netloc):
        return None
    return re.sub("^[A-Za-z]+", lambda m: m.group().lower(), url)


def algorithm(name):
    name = re.sub("[^a-z0-9]", "", name.lower())
    name = {"sha": "sha1"}.get(name, re.sub("^sha2(?=224$|256$|384$|512$)", "sha", name))
    return name if name in ALGORITHMS else None


# Metalink


def metalink(data):
    if b"<!DOCTYPE" in data:
        return None
    try:
        root = tree.fromstring(data)
    except tree.ParseError:
        return None
    space, _, local = root.tag.rpartition("}")
    prefix = space + "}" if space else ""
    if local != "metalink":
        return None
    if space == "{urn:ietf:params:xml:ns:metalink":
        sample, files, below, order = Sample("Metalink 4"), "{0}file", ("{0}hash", "{0}url", "{0}pieces"), priority4
    elif "metalinker.org" in space or not space and root.get("version", "").startswith("3"):
        sample, files, order = Sample("Metalink 3"), "{0}files/{0}file", priority3
        below = ("{0}verification/{0}hash", "{0}resources/{0}url", "{0}verification/{0}pieces")
    else:
        return None
    for file in root.findall(files.format(prefix)):
        one_file(sample, file, prefix, [file.findall(path.format(prefix)) for path in below], order)
    return sample


def pieces_of(sets, prefix, size):
    """The last set of a known type, when it fits the size."""
    sets = [s for s in sets if algorithm(s.get("type") or "")]
    if not sets or not size or algorithm(sets[-1].get("type")) not in ("sha1", "sha256", "sha512"):
        return "-"
    found = sets[-1].findall(prefix + "hash")
    order = sorted(int(h.get("piece", n)) for n, h in enumerate(found))
    length, width = int(sets[-1].get("length") or 0), ALGORITHMS[algorithm(sets[-1].get("type"))]
    good = all(re.fullmatch("[0-9a-fA-F]{%d}" % width, (h.text or "").strip()) for h in found)
    fits = length > 0 and order == list(range(-(-int(size) // length)))
    return f"{len(found)}*{length}" if good and fits else "-"


def one_file(sample, file, prefix, found, order):
    hashes, urls, sets = found
    size = file.findtext(prefix + "size")
    digests, good = {}, True
    for element in hashes:
        kind, value = algorithm(element.get("type") or ""), (element.text or "").strip().lower()
        if kind:
            good &= bool(re.fullmatch("[0-9a-f]{%d}" % ALGORITHMS[kind], value))
            good &= digests.setdefault(kind, value) == value
    if size is not None:
        good &= bool(re.fullmatch(r"\d{1,18}", size.strip()))
    pieces = pieces_of(sets, prefix, size)
    # What is only known by digests of other kinds, or by pieces that do not fit, would be taken unverified.
    unknown = any(not algorithm(h.get("type") or "") for h in hashes) or any(
        algorithm(s.get("type") or "") not in ("sha1", "sha256", "sha512") for s in sets)
    unfit = pieces == "-" and any(s.findall(prefix + "hash") for s in sets)
    if not good or (unknown or unfit) and not digests and pieces == "-":
        sample.refused += 1
        return
    sources = [(order(u), url_of((u.text or "").strip())) for u in urls if u.get("type") != "bittorrent"]
    sources = sorted((s for s in sources if s[1]), key=lambda s: s[0])
    sample.entry((file.get("name") or "").encode(), sources, size and int(size), digests, pieces)


def priority4(url):
    try:
        return min(max(int(url.get("priority")), 1), 999999)
    except (TypeError, ValueError):
        return 999999


def priority3(url):
    try:
        return 101 - min(max(int(url.get("preference")), 0), 100)
    except (TypeError, ValueError):
        return 999999


# Checksums

DIGEST = rb"(?:([0-9A-Za-z-]+):)?([0-9a-fA-F]{8,})"
GNU = re.compile(rb"[ \t]*(\\?)(?:(\d{1,19}) {2,})?" + DIGEST + rb"(?: *\t[ \t]*| [ *]?)(.+)\Z", re.S)
BSD = re.compile(rb"[ \t]*(\\?)([A-Za-z][A-Za-z0-9/-]*) *\((.+)\) *=\s*([0-9A-Za-z+/]+=*|\d+ bytes)\s*\Z", re.S)
SIZE = re.compile(rb"[ \t]*(#?)\s*(.+):\s*(\d{1,18}) bytes\s*\Z", re.S)
NAME_FIRST = re.compile(rb"\s*(.+?):?\s+" + DIGEST + rb"(?:\s+(https?://\S+))?\s*\Z", re.S)
SFV = re.compile(rb"(.*\S)[ \t]+([0-9a-fA-F]{8})\s*\Z", re.S)


def checksums(data, name):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        data = data.decode("utf-16").encode()
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith(b"%%%% HASHDEEP-1."):
        return hashdeep(data)
    ended = data.endswith(b"\n")
    signed = re.findall(
        rb"^-----BEGIN PGP SIGNED MESSAGE-----\r*\n(?:[^\r\n]+\r*\n)*\r*\n(.*?)^-----BEGIN PGP SIGNATURE-----"
        rb"(.*?^-----END PGP SIGNATURE-----)?", data, re.S | re.M)
    if signed:
        data = b"".join(re.sub(rb"(?m)^- ", b"", text) for text, _ in signed)
    data = re.sub(rb"(?m)^untrusted comment: .*\n.*\n", b"", data)
    if data.lstrip().startswith(b"<"):
        return None
    lines = [line.rstrip(b"\r") for line in data.removesuffix(b"\n").split(b"\n")]
    kinds = [kind(line, bare_is_unknown(name)) for line in lines]
    if not any(k[0] in ("file", "unknown") for k in kinds):
        kinds = [name_first(line, bare_is_unknown(name)) for line in lines]
        is_named = re.search("md5|sha1|sha2|sha5|checksum|digest", name.lower())
        if not all(k[0] == "nothing" or k[0] in ("file", "unknown") and (is_named or b"/" in k[1] or
                   re.search(rb"\.[0-9]*[A-Za-z][0-9A-Za-z]*\Z", k[1])) for k in kinds) \
                or not any(k[0] == "file" for k in kinds):
            return sfv(lines, ended, name)
    # Text directly between two lines that name files was one of them.
    words = "".join({"file": "f", "unknown": "f", "text": "t"}.get(k[0], "-") for k in kinds)
    for run in re.finditer("(?<=f)t+(?=f)", words):
        kinds[run.start():run.end()] = [("damaged",)] * len(run.group())
    sample, last, sizes = Sample("checksum list"), None, {}
    merged = []
    for k in kinds:
        if k[0] == "size":
            sizes[k[1]] = k[2]
        elif k[0] == "file":
            path = re.sub(rb"\A(?:\./+)+", b"", k[1])
            if path == name.encode():
                continue
            if last and last[0] == path and k[2] not in last[2]:
                last[2][k[2]] = k[3]
            else:
                last = (path, k[4] if k[4] is not None else sizes.get(k[1]), {k[2]: k[3]}, k[5])
                merged.append(last)
        elif k[0] == "text":
            sample.complete = False
        elif k[0] in ("malformed", "damaged"):
            sample.malformed()
            last = None
    for path, size, digests, url in merged:
        sample.entry(path, url or beside(path), size, digests)
    known = {path for path, *_ in merged}
    unknown = {re.sub(rb"\A(?:\./+)+", b"", k[1]) for k in kinds if k[0] == "unknown"}
    sample.refused += len(unknown - known)
    if not signed and not ended:
        if kinds[-1][0] in ("text", "malformed"):
            return None
        sample.complete = False
    sample.complete &= not signed or bool(signed[-1][1])
    return sample


def bare_is_unknown(name):
    name = name.lower()
    return not re.search("sha1|sha2|sha5|md5", name) and bool(re.search("b2|blake|sm3|sha3[-_s]", name))


def kind(line, unknown):
    if not line.strip(b" \t") or re.match(rb"[ \t]*;", line):
        return ("nothing",)
    found = SIZE.match(line)
    if found:
        return ("size", found.group(2), int(found.group(3)))
    if re.match(rb"[ \t]*#|TIMESTAMP = ", line):
        return ("nothing",)
    found = GNU.match(line)
    if found and b"\0" not in line:
        escape, size, tag, digest, path = found.groups()
        named, good = kind_of(tag, digest.decode(), unknown)
        if good:
            return judged(escape, path, named, digest.decode(), size and int(size))
    found = BSD.match(line)
    if found and b"\0" not in line:
        tag, value = found.group(2).decode(), found.group(4)
        size = re.match(rb"(\d+)( bytes)?\Z", value)
        if tag.lower() == "size" and size:
            return ("size", found.group(3), int(size.group(1)))
        named = algorithm(tag)
        if not HEX.match(value) or len(value) < 8 or named and len(value) != ALGORITHMS[named]:
            try:
                value = base64.b64decode(value, validate=True).hex().encode()
            except ValueError:
                return ("malformed",) if named else other(line)
            if not named and not 32 <= len(value) <= 128:
                return other(line)
        if named and len(value) != ALGORITHMS[named]:
            return ("malformed",)
        return judged(found.group(1), found.group(3), named, value.decode())
    return other(line)


def kind_of(tag, digest, unknown):
    """The algorithm of a digest, None for one that cannot be checked; and whether it can be a digest at all."""
    if tag:
        named = algorithm(tag.decode())
        return named, bool(named) and len(digest) == ALGORITHMS[named]
    if len(digest) not in ALGORITHMS.values():
        return None, False
    return None if unknown else STRENGTH[list(ALGORITHMS.values()).index(len(digest))], True


def other(line):
    return ("malformed",) if re.search(rb"[0-9a-fA-F]{24}", line) else ("text",)


def name_first(line, unknown):
    if not line.strip() or re.match(rb"\s*[#;]", line):
        return ("nothing",)
    found = NAME_FIRST.match(line)
    if not found or re.search(rb"[0-9a-fA-F]{24}", found.group(1)):
        return other(line)
    path, tag, digest, url = found.groups()
    named, good = kind_of(tag, digest.decode(), unknown)
    if not good:
        return other(line)
    if re.match(rb'".+"\Z', path):
        path = path[1:-1]
    elif re.match(rb"(?:[^ \\]|\\ )+\Z", path):
        path = path.replace(b"\\ ", b" ")
    url = url_of(url.decode("latin-1")) if url else None
    return ("file", path, named, digest.decode(), None, url and [(1, url)]) if named else ("unknown", path)


def judged(escape, name, named, digest, size=None):
    if escape:
        if re.search(rb"(?<!\\)(?:\\\\)*\\(?![\\nr])", name):
            return ("malformed",)
        name = re.sub(rb"\\([\\nr])", lambda m: {b"n": b"\n", b"r": b"\r"}.get(m.group(1), b"\\"), name)
    return ("file", name, named, digest, size, None) if named else ("unknown", name)


def sfv(lines, ended, name):
    lines = [line for line in lines if line.strip()]
    if not name.endswith(".sfv") and not (lines and lines[0].startswith(b";")):
        return None
    found = [SFV.match(line) for line in lines if not line.startswith(b";")]
    if not any(found) or 2 * sum(map(bool, found)) < len(found):
        return None
    sample = Sample("SFV list")
    announced = {}
    for line in lines:
        comment = re.match(rb"; *(\d+) +\d\d:\d\d\.\d\d \d{4}-\d\d-\d\d (.+)\Z", line, re.S)
        if comment:
            announced[comment.group(2)] = int(comment.group(1))
    for match in found:
        if not match:
            sample.malformed()
            continue
        path = re.sub(rb'\A"(.+)"\Z', rb"\1", match.group(1), flags=re.S)
        size = announced.get(path)
        path = re.sub(rb"\A(?:\./+)+", b"", path)
        sample.entry(path, beside(path), size)
    sample.complete &= ended
    return sample


def hashdeep(data):
    columns = re.search(rb"(?m)^%%%% (size,.*),filename\r*$", data).group(1).decode().split(",")
    root = re.search(rb"(?m)^## Invoked from: (.*?)\r*$", data)
    body = re.sub(rb"(?m)^(?:%%%%|##).*\n", b"", data)
    fields = ",".join(r"(\d+)" if c == "size" else "([0-9a-fA-F]+)" for c in columns).encode()
    sample = Sample("hashdeep list")
    next_row = rb"(?=\n" + fields.replace(b"(", b"(?:") + rb",|\n*\Z)"
    for row in re.finditer(rb"(?ms)^" + fields + rb",(.*?)\r*" + next_row, body):
        *values, path = row.groups()
        size, digests = None, {}
        for column, value in zip(columns, values):
            if column == "size":
                size = int(value)
            elif algorithm(column):
                digests[algorithm(column)] = value.decode()
        sample.complete &= b"\n" not in path
        path = path.removeprefix(root.group(1) + b"/") if root else path
        path = re.sub(rb"\A(?:\./+)+", b"", path)
        sample.entry(path, beside(path), size, digests)
    sample.complete &= data.endswith(b"\n")
    return sample


# URLs


def urls(data):
    lines = [line for line in data.split(b"\n") if line.strip() and not line.strip().startswith(b"#")]
    if not lines:
        return None
    texts = [line.strip().decode("latin-1") for line in lines]
    split = [urlsplit(t) for t in texts]
    if all(re.match("(https?|ftp|rsync)://[^/\\s]+/(\\S*/)?\\Z", t) and not s.query for t, s in zip(texts, split)) \
            and any(s.scheme in ("http", "https") for s in split):
        sample = Sample("mirror list")
        sources = [url_of(t + "repodata/repomd.xml") for t in texts]
        sample.entry(b"repomd.xml", [(1, s) for s in sources if s])
        sample.complete = False
        return sample
    options = [line for line in lines if re.match(rb"[ \t]+[A-Za-z0-9-]+=", line)]
    if not re.match("(?i)https?://" + ("|ftp://|magnet:" if options else ""), texts[0]):
        return None
    sample, groups = Sample("aria2 input file" if options else "URL list"), []
    for line in lines:
        text = line.strip().decode("latin-1")
        option = re.match(r"([A-Za-z0-9-]+)=(.*)", text)
        if options and line[:1] in b" \t":
            if option and groups:
                groups[-1][1][option.group(1)] = option.group(2).strip()
            else:
                sample.malformed()
        elif not all(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S*\Z", u) for u in re.split(r"\s*\t\s*", text)):
            sample.malformed()
        else:
            groups.append((re.split(r"\s*\t\s*", text), {}))
    for group, chosen in groups:
        one_download(sample, group, chosen)
    sample.complete &= data.endswith(b"\n")
    return sample


def one_download(sample, group, chosen):
    known = [u.encode("latin-1") for u in group if re.match("(?i)https?:", u)]
    digests = {}
    if "checksum" in chosen:
        name, _, value = chosen["checksum"].partition("=")
        if not algorithm(name) or not re.fullmatch("[0-9a-fA-F]{%d}" % ALGORITHMS[algorithm(name)], value):
            sample.refused += 1
            return
        digests = {algorithm(name): value}
    if not known:
        sample.refused += 1
        return
    path = re.sub(rb"[?#].*", b"", known[0]).split(b"/", 3)
    raw = path[3].rsplit(b"/", 1)[-1] if len(path) > 3 else b""
    name = chosen["out"].encode("latin-1") if chosen.get("out") else unquote_to_bytes(raw)
    if b"/" in name and not chosen.get("out"):
        sample.refused += 1
        return
    folder = re.sub(r"\A(\./+)+", "", chosen.get("dir", ""))
    folder = folder if folder == "/" else re.sub(r"/+\Z", "", folder)
    parts = [folder.encode("latin-1")] if folder not in ("", ".") else []
    sample.entry(b"/".join(parts + [re.sub(rb"\A(\./+)+", b"", name)]),
                 [(1, u) for u in map(url_of, known) if u], None, digests)


def main(directory, group):
    out = sys.stdout.buffer
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as file:
            data = file.read()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        data = data.replace(b"{PORT_PLACEHOLDER}", b"8080")
        if group == "checksums":
            sample = checksums(data, name)
        else:
            sample = metalink(data) if group == "metalink" else urls(data)
        if sample is None:
            out.write(f"sample {name} fails\n".encode())
            continue
        out.write(f"sample {name} {sample.form.replace(' ', '-')} {int(sample.complete)} {sample.refused}\n".encode())
        for entry in sorted(sample.entries):
            out.write(entry.encode() + b"\n")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("metalink", "checksums", "urls"):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
