"""Hostile names, a rule of what a safe one is, and how each format of feeds writes a name down.

Shares no code with Tarn: the rule works on decoded text and Python's Unicode tables, Tarn's on bytes. A `Case` is
one name in one format; `is_exact` says that the document means exactly that name (the format can carry it).
"""
import base64
import collections
import json
import os
import random
import unicodedata
import urllib.parse

HOST = "https://mirror.example"
PLACE = "/pub/"
SUM = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
BEFORE, AFTER = b"before.txt", b"later.txt"
BIDI_CLASSES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}

Case = collections.namedtuple("Case", "format number name is_exact url document")


def why_unsafe(name):
    """Why a name must never become a path below a mirror; None for one that may."""
    if not 1 <= len(name) <= 4095:
        return "length"
    parts = name.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts):
        return "segment"
    if max(map(len, parts)) > 255:
        return "long segment"
    if b".tarn" in parts:
        return "reserved"
    for character in name.decode("utf-8", "replace"):
        if unicodedata.category(character) == "Cc":
            return "control"
        if unicodedata.bidirectional(character) in BIDI_CLASSES:
            return "bidi"
    return None


def why_unprintable(text):
    """What in an output of Tarn's must never reach a terminal; None when nothing does."""
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        return "no UTF-8"
    for character in decoded:
        if unicodedata.category(character) == "Cc" or unicodedata.bidirectional(character) in BIDI_CLASSES:
            return f"U+{ord(character):04X}"
    return None


# --- names ------------------------------------------------------------------------------------------------------
def climbing():
    dots = [b"..", b".", b"...", b"....", b"..a", b"a..", b".. ", b" ..", b"..\t", b"..\\", b"..;", b"..%00", b"..\0"]
    yield from dots
    for up in (b"../x", b"../../x", b"../" * 12 + b"etc/passwd", b"a/../x", b"a/../../x", b"a/b/../../../x", b"./x",
               b"./../x", b".//x", b"././x", b"a/./x", b"a/.", b"a/..", b"a//x", b"a/", b"a//", b"/", b"//", b"///",
               b"/x", b"/etc/passwd", b"//host/share/x", b"/../x", b"\\..\\x", b"..\\x", b"..\\..\\x", b"..\\/x",
               b"../\\x", b"\\x", b"\\\\host\\share\\x", b"C:", b"C:x", b"C:\\x", b"c:/x", b"a/C:/x", b"\\\\?\\C:\\x",
               b"\\\\.\\PhysicalDrive0", b"file:///etc/passwd", b"http://evil.example/x", b"//evil.example/x",
               b"javascript:x", b"..;/x", b"x;/../y", b"~", b"~/x", b"~root/x", b"a/~", b"", b" ", b"  ", b"\xa0"):
        yield up


def encoded():
    """Percent-encodings that must stay text, of slash, dots, NUL, newline and backslash, once to three times."""
    for text in (b"%2e%2e", b"%2E%2E%2Fx", b"..%2fx", b"%2e%2e/x", b".%2e/x", b"%2e./x", b"a%2f..%2fx", b"%2fx",
                 b"%2Fetc%2Fpasswd", b"a%00", b"%00", b"a%00.txt", b"..%5cx", b"%5c..%5cx", b"a%0ab", b"a%0d%0aX: y",
                 b"%1b[31mx", b"%c0%ae%c0%ae%c0%afx", b"%c1%9cx", b"%u002e%u002e%u002fx", b"%uff0e%uff0e%u2215x",
                 b"%", b"%%", b"%2", b"%zz", b"a%20b", b"%7e", b"%2etarn/x", b".tarn%2fx", b"%e2%80%aex", b"%23x",
                 b"%3fx"):
        yield text
        twice = text.replace(b"%", b"%25")
        yield twice
        if len(text) < 8:
            yield twice.replace(b"%", b"%25")
    for text in (b"&#46;&#46;/x", b"&#x2e;&#x2e;&#x2f;x", b"&period;&period;&sol;x", b"&amp;", b"&lt;b&gt;", b"&#0;",
                 b"&nbsp;", b"\\u002e\\u002e\\u002fx", b"\\x2e\\x2e/x", b"a\\nb", b"a\\0b", b"\\", b"\\\\", b"x\\"):
        yield text


def controls():
    for byte in list(range(32)) + [127]:
        yield bytes([byte])
        yield b"a%cb.txt" % byte
        yield b"dir/x%c" % byte
    for point in range(0x80, 0xA0):
        yield b"c1-" + chr(point).encode()
    yield from (b"a\r\nSet-Cookie: x", b"a\nb\nc", b"\n\n", b"x\n../y", b"x\n/etc/passwd", b"\x1b[2Jx", b"\x1b]0;x\x07",
                b"\x1b]52;c;eA==\x07", b"\x1bP$q\x1b\\", b"\x9b31mx", b"a\x08\x08b", b"x\x0d\x1b[K", b"a\tb", b"nul\0.txt",
                b"x\0/../../y", b"\0")


def lengths():
    for count in (254, 255, 256, 257, 1000):
        yield b"n" * count
        yield b"d/" + b"n" * count
        yield b"n" * count + b"/f"
    yield "é".encode() * 127
    yield "é".encode() * 128
    yield "語".encode() * 85
    yield "語".encode() * 86
    yield b"%41" * 85 + b"x"
    for total in (4094, 4095, 4096, 4097, 8192):
        yield (b"p" * 250 + b"/") * (total // 251) + b"q" * (total % 251 or 1)
    yield from (b"l/" * 511 + b"f", b"l/" * 512 + b"f", b"l/" * 2047 + b"f", b"../" * 1365)


def characters():
    for point in [0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x061C, 0x2028, 0x2029, 0x2060, 0xFEFF, 0x00AD, 0x180E, 0x034F,
                  0x115F, 0x3164, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x1F600, 0xE0001, 0xE0041, 0x10FFFF, 0x2024, 0x2025,
                  0x2044, 0x2215, 0x29F8, 0xFF0E, 0xFF0F, 0xFF3C, 0x0130, 0x0131, 0x212A, 0x1160, 0x00A0,
                  *range(0x202A, 0x202F), *range(0x2066, 0x206A)]:
        yield f"u{chr(point)}.txt".encode()
        yield f"{chr(point)}{chr(point)}/x".encode()
    yield from ("caf\u00e9".encode(), "cafe\u0301".encode(), "\u1e69".encode(), "s\u0323\u0307".encode(),
                "s\u0307\u0323".encode(), "\ufb01x".encode(), "K".encode(), "\u212a".encode(), "ß".encode(), b"SS",
                "invoice\u202egpj.exe".encode(), "\u2024\u2024/x".encode(), "\uff0e\uff0e\uff0fx".encode())


def broken_text():
    yield from (b"\xc0\xae\xc0\xae\xc0\xafx", b"\xc0\xae\xc0\xae/x", b"\xe0\x80\xae\xe0\x80\xae/x", b"..\xc0\xafx",
                b"..\xe0\x80\xafx", b"..\xf0\x80\x80\xafx", b"a\xc0\x80b", b"\xff", b"\xfe\xff", b"\x80", b"\xbf\xbf",
                b"a\xc3", b"\xc3(", b"\xe2\x80", b"\xe2\x80x\xae", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80",
                b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xed\xa0\xbd\xed\xb8\x80", b"x\xed\xb2\x80", b"x\xed\xb3\xbf\xed\xb3",
                b"latin-\xe9.txt", b"\xe9/\xe8", b"cp-\x93x\x94", b"\xc2", b"\xc2/\x85", b"\xe2\x80/\xae", b"\xf0\x90\xc2\x85",
                b"\xe1\xe2\x80\xae", b"sjis-\x83\x5c.txt", b"gbk-\x81\x2e\x81\x2f", b"\xa1\xa1", b"\xef\xbb\xbfx")


def own_names():
    for own in (b".tarn", b".TARN", b".Tarn", b".tarN", b".tarn.", b".tarn ", b".tarn2", b".tar", b"tarn", b" .tarn",
                b".tarn\\x", ".ta\u200brn".encode(), "．tarn".encode(), b".tarn:x", b"TARN~1"):
        yield own
        yield own + b"/trash/x"
        yield b"a/" + own
        yield b"a/" + own + b"/x"
    yield from (b".tarn/ledger.sqlite", b".tarn/partial/x", b".tarn/../x", b"./.tarn/x", b"a/../.tarn/x", b".//.tarn/x",
                b".stfolder", b".git/config", b".git/hooks/post-checkout", b".ssh/authorized_keys", b".htaccess",
                b"lost+found", b".nfs0001", b".fuse_hidden1", b".Trash-0/x")


def portable():
    for device in (b"CON", b"con", b"PRN", b"AUX", b"NUL", b"nul.txt", b"COM1", b"lpt9.tar.gz", "COM\u00b9".encode(),
                   b"CONIN$", b"x/NUL", b"NUL/x", b"nul .txt", b"CLOCK$"):
        yield device
    for end in (b".", b" ", b"..", b". .", b"  ", b".\t", b" ."):
        yield b"trailing" + end
        yield b"trailing" + end + b"/x"
    for odd in b"<>:\"|?*":
        yield b"a%cb" % odd
    yield from (b"a:stream", b"a::$DATA", b"?C=N;O=D", b"?x", b"#x", b"a?b#c", b"a;b=c", b"a&b=c", b"a@b", b"@x",
                b"user:pass@host", b"[::1]", b"a,b", b"a=b", b"a+b", b"+", b"*", b"**/x")


def words():
    """Names that a shell, an option parser or a format may take for something else."""
    yield from (b"-", b"--", b"-rf", b"--help", b"--delete", b"-o/etc/passwd", b"--checkpoint-action=exec=x", b"-/x",
                b"$(reboot)", b"`reboot`", b"$HOME", b"${IFS}", b";reboot", b"|x", b"||x", b"&&x", b"& x", b">x", b">>x",
                b"<x", b"'x", b"\"x", b"'\"'\"'", b"x' OR '1'='1", b"'; DROP TABLE entry;--", b"{a,b}", b"[a-z]", b"!x", b"!!",
                b"^x", b"(x)", b"x) = " + SUM.encode(), b"%s%n%x", b"%(x)s", b"{0}", b"{{x}}", b"${jndi:ldap://x}",
                b"<script>x</script>", b"</pre>", b"</ul></html>", b"\"><a href=\"y\">", b"]]>", b"<!--", b"-->", b"<?x?>",
                b"</file><file name=\"y\">", b"\",\"path\":\"y", b"\"},{\"path\":\"y\"}", b"null", b"true", b"0", b"-1",
                b"a b", b" a", b"a ", b"*a", b"  a", b"; a", b"# a", b"## a", b"%%%% a", b"\\a", b"SHA256 (a) = b",
                SUM.encode() + b"  y", b"dir=/etc", b"out=y", b"Parent Directory", b"index.html", b"desktop.ini")


def hostile_names():
    """Every name once, in a fixed order; at least 500."""
    found = {}
    for group in (climbing, encoded, controls, lengths, characters, broken_text, own_names, portable, words):
        for name in group():
            found.setdefault(name, group.__name__)
    mix = random.Random(20)
    pieces = [b"..", b".", b"/", b"\\", b"%2e", b"%2f", b"\0", b"\n", b"a", b".tarn", b" ", b"\xc2\x85", b"\xe2\x80\xae",
              b"\xff", b"%00", b":", b"~"]
    while len(found) < 620:
        found.setdefault(b"".join(mix.choices(pieces, k=mix.randint(2, 6))), "mixed")
    return list(found)


# --- formats ----------------------------------------------------------------------------------------------------
def quoted(name):
    return urllib.parse.quote(name, safe="~!$'()*,;:@=+").replace("%26", "&")


def escaped_html(text):
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def lines(rows, end=b"\n"):
    return end.join(rows) + end


def text_of(name):
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def gnu(name):
    rows = [SUM.encode() + b"  " + each for each in (BEFORE, name, AFTER)]
    return lines(rows), bool(name) and b"\n" not in name and not name.endswith(b"\r")


def gnu_escaped(name):
    written = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    rows = [SUM.encode() + b"  " + BEFORE, b"\\" + SUM.encode() + b" *" + written, SUM.encode() + b"  " + AFTER]
    return lines(rows), bool(name)


def bsd(name):
    rows = [b"SHA256 (" + each + b") = " + SUM.encode() for each in (BEFORE, name, AFTER)]
    return lines(rows), bool(name) and b"\n" not in name


def hashdeep(name):
    rows = [b"%%%% HASHDEEP-1.0", b"%%%% size,sha256,filename", b"## Invoked from: /srv/pub", b"## "]
    rows += [b"0," + SUM.encode() + b"," + each for each in (BEFORE, name, AFTER)]
    pieces = name.split(b"\n")
    is_exact = all(pieces) and not any(piece.endswith(b"\r") for piece in pieces)
    return lines(rows), is_exact and not any(piece.startswith((b"##", b"%%%% ")) for piece in pieces[1:])


def sfv(name):
    rows = [each + b" 00000000" for each in (BEFORE, name, AFTER)]
    is_exact = bool(name) and b"\n" not in name and name[-1:] not in b" \t\n\v\f\r" and name[:1] not in b";"
    # A row of a checksum list makes the whole document one.
    is_exact = is_exact and not (name[:1] == b'"' and name[-1:] == b'"') and not name.startswith(SUM.encode())
    return lines(rows), is_exact


def manifest_row(fields):
    return {**fields, "size": 0, "hashes": {"sha-256": SUM}, "url": HOST + "/any/file"}


def manifest_files(name, is_raw):
    if is_raw:
        field = {"pathBytes": base64.b64encode(name).decode()}
    else:
        field = {"path": name.decode("utf-8", "surrogatepass" if b"\xed" in name else "surrogateescape")}
    files = [manifest_row({"path": BEFORE.decode()}), manifest_row(field), manifest_row({"path": AFTER.decode()})]
    return files, is_raw or text_of(name) is not None


def ndjson(name, is_raw=False, is_ascii=True):
    try:
        files, is_exact = manifest_files(name, is_raw)
    except UnicodeDecodeError:
        return None
    head = json.dumps({"header": {"format": "mirror-manifest/1", "version": 1}})
    rows = [head] + [json.dumps(row, ensure_ascii=is_ascii) for row in files] + [json.dumps({"end": {"files": 3}})]
    return lines([row.encode("utf-8", "surrogatepass") for row in rows]), is_exact


def document_json(name, is_raw=False):
    try:
        files, is_exact = manifest_files(name, is_raw)
    except UnicodeDecodeError:
        return None
    document = {"manifest": {"format": "mirror-manifest/1", "version": 1}, "files": files}
    return json.dumps(document).encode(), is_exact


def attribute(name):
    """The text of an XML attribute, and whether XML 1.0 can hold that name."""
    out, is_exact = [], text_of(name) is not None
    for character in name.decode("utf-8", "surrogateescape"):
        point = ord(character)
        if 0xDC80 <= point <= 0xDCFF:
            out.append(bytes([point - 0xDC00]))
        elif character in "&<>\"\t\n\r":
            out.append(b"&#%d;" % point)
        else:
            if point < 32 or point in (0xFFFE, 0xFFFF):
                is_exact = False
            out.append(b"&#%d;" % point if point < 32 else character.encode())
    return b"".join(out), is_exact


def metalink4(name):
    written, is_exact = attribute(name)
    rows = [b'<file name="' + each + b'"><size>0</size><hash type="sha-256">' + SUM.encode() + b"</hash><url>"
            + HOST.encode() + b"/any/file</url></file>" for each in (BEFORE, written, AFTER)]
    return (b'<?xml version="1.0" encoding="UTF-8"?>\n<metalink xmlns="urn:ietf:params:xml:ns:metalink">\n'
            + lines(rows) + b"</metalink>\n"), is_exact


def metalink3(name):
    written, is_exact = attribute(name)
    rows = [b'<file name="' + each + b'"><size>0</size><verification><hash type="sha256">' + SUM.encode()
            + b'</hash></verification><resources><url type="https">' + HOST.encode()
            + b"/any/file</url></resources></file>" for each in (BEFORE, written, AFTER)]
    return (b'<?xml version="1.0" encoding="UTF-8"?>\n<metalink version="3.0" xmlns="http://www.metalinker.org/">'
            b"<files>\n" + lines(rows) + b"</files></metalink>\n"), is_exact


def hrefs(name, is_raw, quote=quoted):
    """The links of an index: percent-encoded as servers do, or the name as it is (then anything may be meant)."""
    link = escaped_html(name.decode("latin-1")).encode("latin-1") if is_raw else escaped_html(quote(name)).encode()
    shown = escaped_html(name.decode("utf-8", "replace")).encode()
    before = b"" if is_raw or b":" not in link else b"./"
    # To itself and to the directory above every listing leads.
    is_exact = name not in (b"", b".", b"..") and not is_raw
    return [(BEFORE, BEFORE), (before + link, shown), (AFTER, AFTER)], is_exact


def nginx(name, is_raw=False):
    links, is_exact = hrefs(name, is_raw, lambda n: urllib.parse.quote(n, safe="~!$'()*,;@=+&"))
    rows = [b'<a href="' + href + b'">x</a>      14-Nov-2023 22:13        0' for href, _ in links]
    return (b"<html>\r\n<head><title>Index of /pub/</title></head>\r\n<body>\r\n<h1>Index of /pub/</h1><hr><pre>"
            b'<a href="../">../</a>\r\n' + lines(rows, b"\r\n") + b"</pre><hr></body>\r\n</html>\r\n"), is_exact


def nginx_json(name):
    def written(text):
        text = text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return b"".join(b"\\u%04X" % byte if byte < 32 else bytes([byte]) for byte in text)
    rows = [b'{ "name":"' + written(each) + b'", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":0 }'
            for each in (BEFORE, name, AFTER)]
    return b"[\r\n" + b",\r\n".join(rows) + b"\r\n]\r\n", True


def apache(name, is_raw=False):
    links, is_exact = hrefs(name, is_raw)
    rows = [b'<tr><td valign="top">&nbsp;</td><td><a href="' + href + b'">x</a></td><td align="right">2023-11-14 22:13'
            b'  </td><td align="right">  0 </td><td>&nbsp;</td></tr>' for href, _ in links]
    return (b'<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">\n<html>\n <head>\n  <title>Index of /pub</title>\n'
            b" </head>\n <body>\n<h1>Index of /pub</h1>\n  <table>\n   <tr><th valign=\"top\">&nbsp;</th><th>"
            b'<a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>\n'
            + lines(rows) + b"</table>\n</body></html>\n"), is_exact


def lighttpd(name, is_raw=False):
    links, is_exact = hrefs(name, is_raw)
    rows = [b'<tr><td class="n"><a href="' + href + b'">x</a></td><td class="m">2023-Nov-14 22:13:20</td><td class="s">'
            b'0.0K</td><td class="t">x/y</td></tr>' for href, _ in links]
    return (b"<!DOCTYPE html>\n<html><head><title>Index of /pub/</title></head>\n<body><h2>Index of /pub/</h2>\n<table "
            b'summary="Directory Listing" cellpadding="0"><tbody>\n' + lines(rows)
            + b"</tbody></table></body></html>\n"), is_exact


def caddy(name, is_raw=False):
    links, is_exact = hrefs(name, is_raw)
    rows = [b'<tr class="file"><td><a href="' + (b"" if is_raw or h.startswith(b"./") else b"./") + h
            + b'">x</a></td><td data-order="0">0 B</td>'
            b'<td><time datetime="2023-11-14T22:13:20Z">x</time></td></tr>' for h, _ in links]
    return (b'<!DOCTYPE html>\n<html><body><div class="listing">\n<table aria-describedby="summary"><thead><tr><th>'
            b'<a href="?sort=name&order=asc">Name</a></th></tr></thead>\n' + lines(rows)
            + b"</table></div></body>\n</html>\n"), is_exact


def caddy_json(name):
    rows = [{"name": each.decode("utf-8", "replace"), "size": 0, "url": "./" + quoted(each),
             "mod_time": "2023-11-14T22:13:20Z", "mode": 420, "is_dir": False, "is_symlink": False}
            for each in (BEFORE, name, AFTER)]
    return json.dumps(rows, separators=(",", ":")).encode() + b"\n", bool(name)


def python_server(name, is_raw=False):
    def quote(text):
        return urllib.parse.quote(os.fsdecode(text), safe="", errors="surrogatepass")
    links, is_exact = hrefs(name, is_raw, quote)
    rows = [b'<li><a href="' + href + b'">x</a></li>' for href, _ in links]
    return (b"<!DOCTYPE HTML>\n<html>\n<head>\n<title>Directory listing for /pub/</title>\n</head>\n<body>\n"
            b"<h1>Directory listing for /pub/</h1>\n<hr>\n<ul>\n" + lines(rows) + b"</ul>\n<hr>\n</body>\n</html>\n"), is_exact


def h2o(name, is_raw=False):
    links, is_exact = hrefs(name, is_raw)
    rows = b"".join(b'<LI><A HREF="' + href + b'">x</A>' for href, _ in links)
    return (b"<!DOCTYPE html>\n<TITLE>Index of /pub/</TITLE>\n<H2>Index of /pub/</H2>\n<UL>\n"
            b'<LI><A HREF="..">Parent Directory</A>' + rows + b"</UL>\n"), is_exact


def iis(name, is_raw=False):
    links, is_exact = hrefs(name, is_raw)
    rows = b"".join(b" 1/16/2014  5:06 PM            0 <A HREF=\"" + (b"" if is_raw else PLACE.encode())
                    + (h[2:] if h.startswith(b"./") and not is_raw else h) + b'">x</A><br>' for h, _ in links)
    return (b"<html><head><title>mirror.example - /pub/</title></head><body><H1>mirror.example - /pub/</H1><hr>\r\n\r\n"
            b'<pre><A HREF="/">[To Parent Directory]</A><br><br>' + rows + b"</pre><hr></body></html>"), is_exact


def url_list(name, is_raw=False):
    names = [BEFORE, name, AFTER]
    rows = [HOST.encode() + b"/any/" + (each if is_raw else quoted(each).encode()) for each in names]
    return lines(rows), bool(name) and not is_raw


def aria2_out(name):
    rows = []
    for each in (BEFORE, name, AFTER):
        rows += [HOST.encode() + b"/any/file", b" out=" + each]
    blanks = b" \t\n\v\f\r"
    is_exact = bool(name) and b"\n" not in name and name[:1] not in blanks and name[-1:] not in blanks
    return lines(rows), is_exact


def aria2_dir(name):
    rows = []
    for each in (BEFORE, name, AFTER):
        rows += [HOST.encode() + b"/any/f", b"  dir=" + each, b"  out=f"]
    return lines(rows), False


FORMATS = {
    "checksum list": gnu, "checksum list, escaped": gnu_escaped, "checksum list, BSD": bsd, "hashdeep": hashdeep,
    "SFV": sfv, "NDJSON": ndjson, "NDJSON, raw UTF-8": lambda n: ndjson(n, is_ascii=False),
    "NDJSON, pathBytes": lambda n: ndjson(n, is_raw=True), "JSON": document_json,
    "JSON, pathBytes": lambda n: document_json(n, is_raw=True), "Metalink 3": metalink3, "Metalink 4": metalink4,
    "nginx HTML": nginx, "nginx JSON": nginx_json, "Apache HTML": apache, "lighttpd HTML": lighttpd,
    "Caddy HTML": caddy, "Caddy JSON": caddy_json, "Python HTML": python_server, "h2o HTML": h2o, "IIS HTML": iis,
    "URL list": url_list, "aria2 out": aria2_out, "aria2 dir": aria2_dir,
    "nginx HTML, as it is": lambda n: nginx(n, True), "Apache HTML, as it is": lambda n: apache(n, True),
    "Caddy HTML, as it is": lambda n: caddy(n, True), "Python HTML, as it is": lambda n: python_server(n, True),
    "h2o HTML, as it is": lambda n: h2o(n, True), "IIS HTML, as it is": lambda n: iis(n, True),
    "URL list, as it is": lambda n: url_list(n, True),
}
# A name's `./` in front means nothing in these.
DROPS_DOT = {"checksum list", "checksum list, escaped", "checksum list, BSD", "hashdeep", "SFV", "aria2 out"}


def cases():
    names = hostile_names()
    for kind, write in FORMATS.items():
        for number, name in enumerate(names):
            made = write(name)
            if made is None:
                continue
            document, is_exact = made
            url = HOST + PLACE + ("" if "HTML" in kind or kind.endswith("r JSON") or kind == "nginx JSON" else "list")
            url += ".sfv" if kind == "SFV" else ""
            yield Case(kind, number, name, is_exact, url, document)
