#!/usr/bin/env python3
"""The files that RSS, Atom and JSON feeds name: a second opinion for the tests.

window_items.py DIRECTORY prints for each file of it

    F <tab> file <tab> read | not-strict | other <tab> items
    E <tab> item <tab> id <tab> title <tab> URL <tab> seconds since 1970

with id and title as hexadecimal UTF-8 ("-" for none), an E line for each file that an item names. It reads the
document tree of expat (strict) or of json, and asks the tree for what it needs; relative URLs are resolved
against https://example.org/.
"""

import datetime
import email.utils
import gzip
import html
import html.parser
import json
import os
import re
import sys
import urllib.parse
import xml.dom.minidom
import xml.parsers.expat

DOCUMENT = "https://example.org/"
ATOM = {"http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#"}
RSS1 = {"http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/"}
MEDIA = {"http://search.yahoo.com/mrss/", "http://search.yahoo.com/mrss"}
DC = {"http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"}
ITUNES = {"http://www.itunes.com/dtds/podcast-1.0.dtd", "http://www.itunes.com/DTDs/Podcast-1.0.dtd"}
PODCAST = {"https://podcastindex.org/namespace/1.0"}
ENC = {"http://purl.oclc.org/net/rss_2.0/enc#"}
XML = "http://www.w3.org/XML/1998/namespace"


def children(node):
    return [child for child in node.childNodes if child.nodeType == child.ELEMENT_NODE]


def below(node):
    for child in children(node):
        yield child
        yield from below(child)


def text(node, decode=False):
    parts = []
    for child in node.childNodes:
        if child.nodeType == child.CDATA_SECTION_NODE:
            parts.append(html.unescape(child.data) if decode else child.data)
        elif child.nodeType == child.TEXT_NODE:
            parts.append(child.data)
        elif child.nodeType == child.ELEMENT_NODE:
            parts.append(text(child, decode))
    return "".join(parts)


def attribute(node, name):
    """By local name, one without a prefix first."""
    if node.hasAttribute(name):
        return node.getAttribute(name)
    for index in range(node.attributes.length):
        one = node.attributes.item(index)
        if one.localName == name and one.namespaceURI and one.namespaceURI != XML and "xmlns" not in one.namespaceURI:
            return one.value
    return None


class Stripper(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts = []

    def handle_starttag(self, tag, attrs):
        if tag in ("br", "p", "div", "li", "hr", "tr", "td"):
            self.parts.append(" ")

    def handle_endtag(self, tag):
        self.handle_starttag(tag, [])

    def handle_data(self, data):
        self.parts.append(data)


def plain(markup):
    stripper = Stripper()
    stripper.feed(markup)
    stripper.close()
    return "".join(stripper.parts)


TAGS = """a abbr b big blockquote br center cite code del div em font h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre
q s small span strike strong sub sup table tbody td th thead tr tt u ul var wbr""".split()


def cleaned(string):
    """What should be plain text, without tags of HTML and entities."""
    tag = re.compile(r"</?(%s)(\s*/?\s*|\s[^>]*=[^>]*)>" % "|".join(TAGS), re.I)
    string = tag.sub(lambda found: " " if found[1].lower() in ("br", "p", "div", "li", "hr", "tr", "td") else "", string)
    return re.sub(r"&#?\w+;", lambda found: html.unescape(found[0]), string)


def line(string):
    return " ".join(string.split())


def resolve(base, reference):
    kept = re.sub(r"[\t\r\n]", "", reference.strip())
    joined = urllib.parse.urldefrag(urllib.parse.urljoin(base, kept)).url
    return urllib.parse.quote(joined, safe="%!#$&'()*+,/:;=?@[]~-._")


def base_of(node):
    chain = []
    while node is not None and node.nodeType == node.ELEMENT_NODE:
        if node.hasAttributeNS(XML, "base"):
            chain.append(node.getAttributeNS(XML, "base").strip())
        node = node.parentNode
    base = DOCUMENT
    for reference in reversed(chain):
        base = urllib.parse.urldefrag(urllib.parse.urljoin(base, reference)).url
    return base


def moment(string):
    """Seconds since 1970; None for what the library does not read."""
    string = string.strip()
    try:
        found = datetime.datetime.fromisoformat(string.replace("Z", "+00:00"))
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.timezone.utc)
        return int(found.timestamp() // 1)
    except ValueError:
        pass
    found = email.utils.parsedate_tz(string)
    if found is None:
        return None
    try:
        return int(email.utils.mktime_tz(found))
    except (ValueError, OverflowError):
        return None


def usable(url):
    parts = urllib.parse.urlsplit(url)
    return parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc


class Item:
    def __init__(self, node, kind):
        self.node = node
        self.kind = kind
        self.own = [child for child in children(node)]

    def first(self, names, spaces, decode=False, markup=False):
        for child in self.own:
            if child.localName in names and child.namespaceURI in spaces:
                found = text(child, decode)
                if markup:
                    is_html = attribute(child, "type") in ("html", "text/html")
                    found = plain(found) if is_html else cleaned(found)
                if line(found):
                    return found
        return None

    def core(self):
        return ATOM if self.kind == "atom" else self.spaces

    def title(self):
        if self.kind == "atom":
            found = self.first(["title"], ATOM, markup=True)
        else:
            found = self.first(["title"], self.spaces, decode=True, markup=True)
        found = (found or self.first(["title"], ITUNES, decode=True, markup=True)
                 or self.first(["title"], DC, decode=True, markup=True))
        if found is None:
            near = self.own + [c for g in self.own if g.localName == "group" and g.namespaceURI in MEDIA for c in children(g)]
            for child in near:
                if child.localName == "title" and child.namespaceURI in MEDIA:
                    kind = attribute(child, "type")
                    found = plain(text(child)) if kind == "html" else cleaned(text(child))
                    break
        return line(found) if found else None

    def guid(self):
        found = self.first(["id"], ATOM) if self.kind == "atom" else self.first(["guid"], self.spaces)
        if not found and self.kind == "rdf":
            found = attribute(self.node, "about")
        return found.strip() if found and found.strip() else None

    def date(self):
        if self.kind == "atom":
            order = [(["published", "issued"], ATOM), (["date"], DC), (["created"], ATOM), (["updated", "modified"], ATOM)]
        else:
            order = [(["pubDate"], self.spaces), (["date", "issued", "created"], DC), (["published"], ATOM),
                     (["updated", "modified"], ATOM | DC)]
        for names, spaces in order:
            found = self.first(names, spaces)
            when = moment(found) if found else None
            if when is not None:
                return when
        return None

    def urls(self):
        found = []

        def add(node, reference):
            if reference and reference.strip():
                url = resolve(base_of(node), reference)
                if url not in found:
                    found.append(url)

        for node in below(self.node):
            if node.localName == "enclosure" and (node.namespaceURI in ENC or self.kind != "atom" and node.namespaceURI in self.spaces):
                add(node, attribute(node, "url") or attribute(node, "resource"))
            direct = node.parentNode is self.node
            if direct and node.localName == "link" and node.namespaceURI in ATOM:
                if (attribute(node, "rel") or "").lower().endswith("enclosure"):
                    add(node, attribute(node, "href"))
        self.add_media(add, found)
        if not found:
            self.add_rendition(add)
        return [url for url in found if usable(url)]

    def add_media(self, add, found):
        units = []
        for node in below(self.node):
            if node.namespaceURI in MEDIA and node.localName == "group":
                units.append([c for c in below(node) if c.namespaceURI in MEDIA and c.localName == "content"])
            elif node.namespaceURI in MEDIA and node.localName == "content":
                above = node.parentNode
                while above is not self.node and above.localName != "group":
                    above = above.parentNode
                if above is self.node:
                    units.append([node])
            elif node.namespaceURI in ATOM and node.localName == "content" and node.parentNode is self.node:
                kind = attribute(node, "type") or ""
                if "/" in kind and not kind.startswith("text/") and "html" not in kind and attribute(node, "src"):
                    node.setAttribute("url", attribute(node, "src"))
                    units.append([node])
        for unit in units:
            named = [c for c in unit if (attribute(c, "url") or "").strip()]
            if not named or any(resolve(base_of(c), attribute(c, "url")) in found for c in named):
                continue
            chosen = [c for c in named if attribute(c, "isDefault") == "true"] or named
            add(chosen[0], attribute(chosen[0], "url"))

    def add_rendition(self, add):
        options = [n for n in below(self.node) if n.localName == "alternateEnclosure" and n.namespaceURI in PODCAST]
        options.sort(key=lambda n: attribute(n, "default") != "true")
        for option in options:
            for source in below(option):
                if source.localName == "source" and (attribute(source, "uri") or "").startswith("http"):
                    return add(source, attribute(source, "uri"))


def xml_items(tree):
    root = tree.documentElement
    ATOM.discard(None)
    if root.localName == "feed" and root.namespaceURI is None and "entry" in (names := {n.localName for n in below(root)}) and names & {"link", "title"}:
        ATOM.add(None)
    if root.localName == "feed" and root.namespaceURI in ATOM:
        kind, wanted, spaces = "atom", "entry", ATOM
    elif root.localName == "rss":
        kind, wanted, spaces = "rss", "item", {None, root.namespaceURI} | RSS1
    elif root.localName == "RDF" and any(node.namespaceURI in RSS1 for node in below(root)):
        kind, wanted, spaces = "rdf", "item", RSS1
    else:
        return None
    found = []
    for node in below(root):
        if node.localName == wanted and node.namespaceURI in spaces:
            item = Item(node, kind)
            item.spaces = spaces
            found.append((item.guid(), item.title(), item.date(), item.urls()))
    return found


def is_json_feed(document):
    """By its version; some write a bare number, and then its first item shows it."""
    if not isinstance(document, dict):
        return False
    version, items = document.get("version"), document.get("items")
    if "jsonfeed.org/version/" in str(version):
        return True
    if version not in ("1", "1.0", "1.1") or not isinstance(items, list) or not items or not isinstance(items[0], dict):
        return False
    return bool({"attachments", "content_html", "content_text"} & set(items[0]))


def json_items(document):
    if not is_json_feed(document):
        return None
    found = []
    for item in document.get("items", []):
        guid = item.get("id")
        guid = str(guid).strip() if guid is not None else None
        when = None
        for key in ("date_published", "date_modified"):
            if when is None and isinstance(item.get(key), str):
                when = moment(item[key])
        urls, titles = [], set()
        attachments = item.get("attachments") or []
        for one in [attachments] if isinstance(attachments, dict) else attachments:
            title = one.get("title")
            if not one.get("url") or (title and title in titles):
                continue
            titles.add(title)
            url = resolve(DOCUMENT, one["url"])
            if usable(url) and url not in urls:
                urls.append(url)
        found.append((guid, line(cleaned(item.get("title") or "")), when, urls))
    return found


def look(data):
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            return json_items(json.loads(data.decode("utf-8-sig")))
        except ValueError:
            return "not-strict"
    try:
        return xml_items(xml.dom.minidom.parseString(data))
    except (xml.parsers.expat.ExpatError, ValueError, LookupError):
        return "not-strict"


def coded(string):
    return string.encode("utf-8", "replace").hex() if string else "-"


def main():
    directory = sys.argv[1]
    for name in sorted(os.listdir(directory)):
        if name.startswith(".") or name.endswith(".headers"):
            continue
        with open(os.path.join(directory, name), "rb") as file:
            found = look(file.read())
        if found is None or found == "not-strict":
            print("F", name, found or "other", 0, sep="\t")
            continue
        print("F", name, "read", len(found), sep="\t")
        for position, (guid, title, when, urls) in enumerate(found):
            for url in urls:
                print("E", position, coded(guid), coded(title), url, "-" if when is None else when, sep="\t")


main()
