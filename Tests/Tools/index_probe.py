#!/usr/bin/env python3
"""What a server's directory index really offers: walks it, fetches every file that it lists, prints JSON.

The oracle of the tests of indexes: a name counts when the listing holds it AND the server serves it. Shares no code
with Tarn; the listing is read by Python's own HTML and JSON parsers, names are kept as bytes.
{"files": {path hex: [size, sha256]}, "unserved": [path hex, ...]}
"""
import argparse
import hashlib
import html.parser
import http.client
import json
import sys
import urllib.parse

SAFE = "!$&'()*+,-.:;=@_~"


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.hrefs = []

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.hrefs += [value for name, value in attributes if name == "href" and value]


def names_of_html(body, page="/"):
    """Child names as bytes, a directory's with its slash. Surrogate escapes keep bytes that are no UTF-8."""
    links = Links()
    links.feed(body.decode("utf-8", "surrogateescape"))
    names = []
    for href in links.hrefs:
        if "?" in href or "#" in href:
            continue
        there = urllib.parse.urlsplit(urllib.parse.urljoin("http://host" + page, href))
        rest = there.path[len(page):]
        if there.netloc != "host" or not there.path.startswith(page) or not rest or "/" in rest[:-1]:
            continue
        names.append(urllib.parse.unquote_to_bytes(rest.encode("utf-8", "surrogateescape")))
    return list(dict.fromkeys(names))


def names_of_json(body):
    names = []
    for item in json.loads(body.decode("utf-8", "surrogateescape"), strict=False):
        name = item["name"].encode("utf-8", "surrogateescape")
        is_directory = item["is_dir"] if "is_dir" in item else item["type"] == "directory"
        names.append(name + b"/" if is_directory and not name.endswith(b"/") else name)
    return names


def quote(path):
    return urllib.parse.quote_from_bytes(path, safe="/" + SAFE)


class Probe:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.base = parts.path
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
        self.files, self.unserved = {}, []
        self.is_python = False

    def get(self, path):
        self.connection.request("GET", self.base + quote(path))
        response = self.connection.getresponse()
        self.is_python = response.getheader("Server", "").startswith("SimpleHTTP")
        return response

    def key(self, path):
        """Hexadecimal. Python's http.server writes bytes that are no UTF-8 as surrogates."""
        if self.is_python:
            path = path.decode("utf-8", "surrogatepass").encode("utf-8", "surrogateescape")
        return path.hex()

    def walk(self, directory=b""):
        response = self.get(directory)
        body, kind = response.read(), response.getheader("Content-Type", "")
        if response.status != 200:
            self.unserved.append(self.key(directory))
            return
        names = names_of_json(body) if "json" in kind else names_of_html(body, self.base + quote(directory))
        for name in names:
            if name.endswith(b"/"):
                self.walk(directory + name)
            else:
                self.fetch(directory + name)

    def fetch(self, path):
        response = self.get(path)
        digest, size = hashlib.sha256(), 0
        while block := response.read(1 << 20):
            digest.update(block)
            size += len(block)
        if response.status == 200:
            self.files[self.key(path)] = [size, digest.hexdigest()]
        else:
            self.unserved.append(self.key(path))


def self_test():
    page = b'<html><body><pre><a href="../">../</a>\n<a href="a%20b%2Bc">a b..&gt;</a>\n<a href="d%FF/">d\xff/</a>\n' \
           b'<a href="x&amp;y">x</a><a href="?C=M">sort</a></pre></body></html>'
    assert names_of_html(page) == [b"a b+c", b"d\xff/", b"x&y"], names_of_html(page)
    page = b'<a href="/">up</a><a href="./c:d">icon</a><a href="./c:d">c:d</a><a href="http://other/p/x">x</a><a href="..">up</a>'
    assert names_of_html(page, "/p/") == [b"c:d"], names_of_html(page, "/p/")
    listing = b'[{"name":"a b","type":"file"},{"name":"bad\xff","type":"file"},{"name":"d","type":"directory"}]'
    assert names_of_json(listing) == [b"a b", b"bad\xff", b"d/"], names_of_json(listing)
    assert quote(b"a b/%\xff?#") == "a%20b/%25%FF%3F%23", quote(b"a b/%\xff?#")
    print("index_probe.py: both kinds of index are read as bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", help="http://HOST:PORT/PATH/ of the index")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    probe = Probe(arguments.url)
    probe.walk()
    json.dump({"files": probe.files, "unserved": probe.unserved}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
