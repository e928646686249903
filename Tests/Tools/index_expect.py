#!/usr/bin/env python3
"""What a directory index names, for the tests of the parser: another route to the same answer.

Reads pages with html.parser (lists of Caddy and nginx with json), resolves every link of the whole page by
urllib.parse, and keeps those that lead exactly one segment below the page's URL. Knows of no server but for the size:
it stands in an attribute (Caddy), before the link (IIS) or behind the time (nginx).

Reads lines `FILE<tab>URL<tab>KIND` from standard input; KIND is `nginx`, `fancy`, `maven`, `attribute`, `iis`, `webfs` or
`none` and tells where an exact size stands; `python` has none, and writes bytes that are no UTF-8 as surrogates; `webfs` escapes
no `&`, nor the `:` of a name. Prints per line the file and, each behind a tab, `hex of the name` + `/` for a directory, or
`hex of the name` + `=` + the size (empty when unknown), sorted.
"""
import argparse
import html
import html.parser
import json
import re
import sys
import urllib.parse

class Page(html.parser.HTMLParser):
    """A flat run of ("text", bytes), ("link", href) and ("value", text of an attribute)."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.run, self.base, self.inside = [], None, False

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "base" and values.get("href"):
            self.base = values["href"]
        if tag == "a" and values.get("href") is not None:
            self.run.append(("link", values["href"]))
            self.inside = True
        for name in ("data-order", "data-size"):
            if name in values:
                self.run.append(("value", values[name]))

    def handle_endtag(self, tag):
        if tag == "a":
            self.inside = False

    def handle_data(self, data):
        if not self.inside:
            self.run.append(("text", data))


def raw(text):
    return urllib.parse.unquote_to_bytes(text.encode("utf-8", "surrogateescape"))


def child(href, base, url):
    """(name as bytes, is a directory), or None."""
    if "?" in href or "#" in href:
        return None
    there = urllib.parse.urlsplit(urllib.parse.urljoin(base, href))
    here = urllib.parse.urlsplit(url)
    if (there.scheme, there.netloc) != (here.scheme, here.netloc):
        return None
    folder = [raw(part) for part in here.path.split("/")[:-1]]
    parts = [raw(part) for part in there.path.split("/")]
    is_directory = parts[-1] == b""
    if is_directory:
        parts.pop()
    if len(parts) != len(folder) + 1 or parts[:-1] != folder or not parts[-1]:
        return None
    return parts[-1], is_directory


def size_behind(run, index, kind):
    """The exact size that the row of the link at this place shows, as text."""
    if kind in ("iis", "webfs"):
        before = run[index - 1][1] if index and run[index - 1][0] == "text" else ""
        found = re.search(r"\s{2}(\d+)\s*$" if kind == "iis" else r"\s(\d+)\s+B\s*$", before)
        return found.group(1) if found else ""
    for what, value in run[index + 1:]:
        if what == "link":
            return ""
        if what == "value" and kind == "attribute":
            return value if value.isdigit() else ""
        if what == "text" and kind == "nginx":
            found = re.match(r"\s*\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d\s+(\d+)\s*$", value.split("\n")[0])
            if found or value.strip():
                return found.group(1) if found else ""
        if what == "text" and kind == "maven" and value.strip():
            found = re.match(r"\s*\d{4}-\d\d-\d\d \d\d:\d\d\s+(\d+)\s*$", value)
            return found.group(1) if found else ""
        if what == "text" and kind == "fancy" and value.strip():
            found = re.match(r"\s*(\d+)(?: B)?\s*$", value)
            return found.group(1) if found else ""
    return ""


def names_of_page(body, url, kind):
    page = Page()
    if kind == "webfs":
        body = body.replace(b"&", b"&amp;")
    page.feed(body.decode("utf-8", "surrogateescape"))
    page.close()
    base = urllib.parse.urljoin(url, page.base) if page.base else url
    found = {}
    for index, (what, value) in enumerate(page.run):
        if kind == "webfs" and not value.startswith("/"):
            value = "./" + value
        target = child(value, base, url) if what == "link" else None
        if target and kind == "python":
            target = target[0].decode("utf-8", "surrogatepass").encode("utf-8", "surrogateescape"), target[1]
        if target:
            known = found.get(target, "")
            found[target] = size_behind(page.run, index, kind) or known
    return found


def names_of_list(body, url):
    found = {}
    for item in json.loads(body.decode("utf-8", "surrogateescape"), strict=False):
        if "is_dir" in item:
            target = child(item["url"], url, url)
        elif item["type"] in ("file", "directory"):
            target = item["name"].encode("utf-8", "surrogateescape"), item["type"] == "directory"
        else:
            continue
        found[target] = "" if target[1] else str(item["size"])
    return found


def names_of_xml(body):
    row = re.compile(rb'<(directory|file) mtime="[^"]*"(?: size="(\d+)")?>(.*?)</\1>', re.DOTALL)
    found = {}
    for match in row.finditer(body):
        name = html.unescape(match.group(3).decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        found[name, match.group(1) == b"directory"] = (match.group(2) or b"").decode()
    return found


def expect(path, url, kind):
    with open(path, "rb") as stream:
        body = stream.read()
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]
    if body.startswith(b"<?xml"):
        found = names_of_xml(body)
    else:
        found = names_of_list(body, url) if body.lstrip().startswith(b"[") else names_of_page(body, url, kind)
    return sorted(name.hex() + ("/" if is_directory else "=" + size) for (name, is_directory), size in found.items())


def self_test():
    import os
    import tempfile
    page = (b'<html><pre><a href="../">../</a>\n<a href="a%20b">a b</a>   14-Nov-2023 22:13   12\n<a href="d/">d</a>  -\n'
            b'<a href="?C=N">x</a> <a href="/other">y</a> <a href="./c:d">z</a></pre></html>')
    handle, name = tempfile.mkstemp()
    try:
        os.write(handle, page)
        os.close(handle)
        found = expect(name, "https://example.org/pub/", "nginx")
        assert found == sorted([b"a b".hex() + "=12", b"d".hex() + "/", b"c:d".hex() + "="]), found
    finally:
        os.unlink(name)
    print("index_expect.py: a page is read by links and by sizes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--self-test", action="store_true")
    if parser.parse_args().self_test:
        return self_test()
    for line in sys.stdin:
        path, url, kind = line.rstrip("\n").split("\t")
        try:
            print("\t".join([path] + expect(path, url, kind)))
        except Exception as error:  # a page of another kind: the test says so
            print(f"{path}\t!{type(error).__name__}: {str(error)[:60]}".replace("\n", " "))


if __name__ == "__main__":
    main()
