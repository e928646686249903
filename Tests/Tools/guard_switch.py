#!/usr/bin/env python3
"""Puts the guards of a source file behind a switch, so that one build serves for all of them.

A function from which a guard is to be removed gets one more body for each of its guards, the function's own text with
`old` replaced by `new`, and chooses by a number from the environment (TARN_GUARD_AWAY):

    if guardAway == 7 { body without guard 7 } else if guardAway == 8 { body without guard 8 } else { body }

A stored value (`static let most = 5`) chooses between the two values alike. What is neither, or what does not compile so,
has to be built by itself. guards.py uses this on its copy of the tree; nothing of it is ever in the program.
"""
import os
import re
import sys

VARIABLE = "TARN_GUARD_AWAY"
SWIFT_SWITCH = f'''import Glibc

/// The number of the guard that is away; 0 when none is.
let guardAway: Int = getenv("{VARIABLE}").flatMap {{ Int(String(cString: $0)) }} ?? 0
'''
C_SWITCH = f'''#include <stdlib.h>
static int guard_away(void) {{
  const char *text = getenv("{VARIABLE}");
  return text ? atoi(text) : 0;
}}
'''
TYPES = {"struct", "class", "enum", "extension", "actor", "protocol"}
MEMBER = re.compile(
    r"^[ \t]*(?:(?:@\w+(?:\([^)]*\))?|public|package|internal|private|fileprivate|static|final|mutating|nonmutating"
    r"|override|indirect|nonisolated(?:\(unsafe\))?|consuming|borrowing|lazy|weak|required|convenience|class(?=\s+func))\s+)*"
    r"(struct|class|enum|extension|actor|protocol|func|init|deinit|subscript|var|let|case)\b", re.MULTILINE)
ACCESSOR = re.compile(r"^\s*(?:mutating |nonmutating )?(?:get|set|willSet|didSet|_read|_modify)\b")
VALUE = re.compile(r"^(\s*(?:(?:package|private|fileprivate|static)\s+)*(?:let|var) \w+(?:: [^=]+)? = )(.+)$")


class Stale(Exception):
    """The entry is wrong; the text says how."""


class Unfit(Exception):
    """A guard cannot be put behind the switch; the text says why."""


def masked(text):
    """The text with comments and the contents of strings blanked; its lines and columns stay."""
    out, index, length = list(text), 0, len(text)

    def blank(begin, end):
        for place in range(begin, end):
            if out[place] != "\n":
                out[place] = " "

    while index < length:
        if text.startswith("//", index):
            end = text.find("\n", index)
            end = length if end < 0 else end
        elif text.startswith("/*", index):
            end, depth = index + 2, 1
            while depth and end < length:
                step = text[end:end + 2]
                depth += {"/*": 1, "*/": -1}.get(step, 0)
                end += 2 if step in ("/*", "*/") else 1
        elif quote := re.compile(r'(#*)("""|")').match(text, index):
            end = string_end(text, quote.end(), quote[1], quote[2])
        elif text[index] == "'":
            character = re.compile(r"'(?:\\.|[^'\\\n])+'").match(text, index)
            end = character.end() if character else index + 1
        else:
            index += 1
            continue
        blank(index, end)
        index = end
    return "".join(out)


def string_end(text, index, pounds, quote):
    """Behind the end of a string that was opened before `index`; expressions inside it are passed over."""
    escape, close = "\\" + pounds, quote + pounds
    while index < len(text):
        if text.startswith(close, index):
            return index + len(close)
        if text.startswith(escape + "(", index):
            index, depth = index + len(escape) + 1, 1
            while depth and index < len(text):
                if inner := re.compile(r'(#*)("""|")').match(text, index):
                    index = string_end(text, inner.end(), inner[1], inner[2])
                    continue
                depth += {"(": 1, ")": -1}.get(text[index], 0)
                index += 1
        elif text.startswith(escape, index):
            index += len(escape) + 1
        else:
            index += 1
    return index


def bodies(text, is_swift):
    """(begin, end) between the braces of each outermost function, accessor or initial value made by a closure."""
    mask, found, opened, depth, member = masked(text), [], [], 0, 0
    # `opened` holds, for each open brace, whether members stand in it; `depth` counts brackets of other kinds.
    begin = None
    for index, character in enumerate(mask):
        if begin is not None:
            if character in "{}":
                inner += 1 if character == "{" else -1
                if inner == 0:
                    # Braces inside brackets, as in a default argument, are a part of what stands before the body.
                    if depth == 0:
                        found.append((begin, index))
                        member = index + 1
                    begin = None
            continue
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "{":
            if depth == 0 and holds_members(mask[member:index], mask[index + 1:], is_swift):
                opened.append(True)
                member = index + 1
            else:
                begin, inner = index + 1, 1
        elif character == "}" and opened:
            opened.pop()
            member = index + 1
    return found


def holds_members(header, inside, is_swift):
    if not is_swift:
        return not header.rstrip().endswith(")")
    kinds = MEMBER.findall(header)
    kind = kinds[-1] if kinds else ""
    return kind in TYPES or (kind in ("var", "subscript") and ACCESSOR.match(inside) is not None)


def switched(text, edits, is_swift=True):
    """The text with every edit (number, old, new) behind the switch, and the lines (from 1, both included) of each number
    and of what it was put into: {number: [(first, last), ...]}. An edit that does not fit: see `fits`."""
    groups = {}
    for number, old, new in edits:
        place = text.index(old)
        begin, end = region(text, place, place + len(old), is_swift)
        groups.setdefault((begin, end), []).append((number, place, old, new))
    name, pieces, last, spans = "guardAway" if is_swift else "guard_away()", [], 0, {}

    def line():
        return "".join(pieces).count("\n") + 1

    if not is_swift:
        last = max(match.end() for match in re.finditer(r"^#include .*\n", text, re.MULTILINE))
        pieces += [text[:last], C_SWITCH]
    for begin, end in sorted(groups):
        pieces.append(text[last:begin])
        body, first = text[begin:end], line()
        is_value = VALUE.match(body) if is_swift else None
        for number, place, old, new in groups[begin, end]:
            other = body[:place - begin] + new + body[place - begin + len(old):]
            own = line()
            if is_value:
                head, value = is_value.groups()
                pieces.append(f"{head}{name} == {number} ? ({other[len(head):]}) : ({value})")
            else:
                test = f"{name} == {number}"
                pieces.append(f"\nif {test if is_swift else f'({test})'} {{\n{other}\n}} else")
            spans[number] = [(own, line())]
        if not is_value:
            pieces.append(f" {{\n{body}\n}}\n")
        for number, *_ in groups[begin, end]:
            spans[number].append((first, line()))
        last = end
    return "".join(pieces) + text[last:], spans


def region(text, begin, end, is_swift):
    """The body, or the line of a stored value, that holds all of begin..<end."""
    for first, last in bodies(text, is_swift):
        if first <= begin and end <= last:
            return first, last
    first, last = text.rfind("\n", 0, begin) + 1, text.find("\n", end)
    if is_swift and "\n" not in text[begin:end] and VALUE.match(text[first:last]):
        return first, last
    raise Unfit("it is not inside one function")


def fits(text, taken, edit, is_swift):
    """Throws `Unfit` when an edit cannot stand beside the ones that were taken."""
    number, old, new = edit
    place = text.index(old)
    where = region(text, place, place + len(old), is_swift)
    if is_swift and (match := VALUE.match(text[where[0]:where[1]])):
        other = VALUE.match(text[where[0]:place] + new + text[place + len(old):where[1]])
        if not other or other[1] != match[1]:
            raise Unfit("it changes more than a value")
        if any(text.index(one[1]) in range(*where) for one in taken):
            raise Unfit("another guard is in the same value")
    if new.count("{") - new.count("}") != old.count("{") - old.count("}"):
        raise Unfit("it changes where blocks end")


# --- a tree ----------------------------------------------------------------------------------------------------

def replaced(text, entry):
    """The file's text without the guard."""
    count = text.count(entry["old"])
    if count != 1:
        raise Stale(f"its text occurs {count} times")
    if entry["old"] == entry["new"]:
        raise Stale("it changes nothing")
    return text.replace(entry["old"], entry["new"])


def write_if_other(path, data):
    """Leaves a file that is right alone: its time decides what is built."""
    try:
        with open(path, "rb") as stream:
            if stream.read() == data:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(data)


class Switches:
    """Which guard has which number, and which cannot be behind the switch: name -> why."""

    def __init__(self, workshop, entries):
        self.workshop, self.numbers, self.stale = workshop, {}, {}
        self.alone = {entry["name"]: "as its entry says" for entry in entries if entry.get("alone")}
        self.entries = {number: entry for number, entry in enumerate(entries, 1)}

    def build(self):
        """Until it builds: what does not compile behind the switch is taken out. Throws `Stale` when nothing helps."""
        while True:
            spans = self.write()
            errors = self.workshop.try_build()
            if not errors:
                self.numbers = {self.entries[number]["name"]: number for _, number in spans}
                return
            blamed = {number: text for file, line, text in errors for number in blame(spans, file, line)}
            if not blamed:
                raise Stale(f"it does not build: {errors[0]}")
            for number, text in blamed.items():
                self.alone[self.entries[number]["name"]] = text

    def write(self):
        """Writes the copy with all guards that fit: {(file, number): spans}."""
        edits, spans, texts = {}, {}, {}
        for number, entry in self.entries.items():
            name, file = entry["name"], entry["file"]
            try:
                replaced(self.workshop.text(file), entry)
                if name not in self.alone:
                    edit, others = (number, entry["old"], entry["new"]), edits.setdefault(file, [])
                    fits(self.workshop.text(file), others, edit, is_swift(file))
                    others.append(edit)
            except Stale as reason:
                self.stale[name] = str(reason)
            except Unfit as reason:
                self.alone[name] = str(reason)
        for file, some in edits.items():
            if some:
                texts[file], found = switched(self.workshop.text(file), some, is_swift(file))
                spans |= {(file, number): lines for number, lines in found.items()}
                if is_swift(file):
                    texts["/".join(file.split("/")[:2]) + "/GuardSwitch.swift"] = SWIFT_SWITCH
        self.workshop.refresh(texts)
        return spans


def is_swift(file):
    return file.endswith(".swift")


def blame(spans, file, line):
    """The guards whose own lines an error is in; else those of the function that it is in."""
    inside = [[number for (where, number), lines in spans.items()
               if where == file and lines[index][0] <= line <= lines[index][1]] for index in (0, 1)]
    return inside[0] or inside[1]


# --- the test of this file -------------------------------------------------------------------------------------

SWIFT = r'''import Glibc
// func comment() { " }
/* struct /* nested { */ { */
struct Box {
  static let most = 5
  let other = "a { \("b } \(1)") {"
  var size: Int { most + 1 }
  var both: Int {
    get { return 1 }
    set { most = newValue }
  }
  enum Kind { case one, two }
  func check(_ value: Int = { 3 }()) throws -> Int {
    guard value < 9 else { throw Wrong.size }
    if value == 8 { return 0 }
    return value
  }
}
extension Box: P where T: Q {
  init() { self.most = #"a"{"# }
}
'''
C = '''#include <a.h>
#define RUN(call) ({ int value = (call); value; })
struct pair { int a, b; };
static const int names[] = { 1, 2 };
int limit(int value) {
  struct pair pair = { .a = 1 };
  return value | MORE;
}
'''


def self_test():
    def texts(text, is_swift):
        return [text[begin:end].strip() for begin, end in bodies(text, is_swift)]

    found = texts(SWIFT, True)
    assert [one.split("\n")[0] for one in found] == [
        "most + 1", "return 1", "most = newValue", "guard value < 9 else { throw Wrong.size }",
        'self.most = #"a"{"#'], found
    assert [one.split("\n")[0] for one in texts(C, False)][-1] == "struct pair pair = { .a = 1 };", texts(C, False)
    edits = [(1, "    guard value < 9 else { throw Wrong.size }\n", ""), (2, "value == 8", "value == 7"),
             (3, "most = 5", "most = 9"), (4, "most + 1", "most")]
    text, spans = switched(SWIFT, edits)
    assert "  static let most = guardAway == 3 ? (9) : (5)\n" in text, text
    assert text.count("throw Wrong.size") == 2 and text.count("value == 7") == 1, text
    assert text.count("if guardAway == 1 {") == 1 and text.count("} else\nif guardAway == 2 {") == 1, text
    lines = text.split("\n")
    (own, end), (first, last) = spans[2]
    assert "value == 7" in "\n".join(lines[own - 1:end]), spans
    assert first < own <= end < last and "guardAway" not in lines[first - 1], spans
    code, _ = switched(C, [(5, " | MORE", "")], is_swift=False)
    assert "if (guard_away() == 5) {" in code and code.count("| MORE") == 1, code
    assert code.index("static int guard_away") < code.index("#define RUN"), code
    for edit in ((6, "import Glibc", "import X"), (7, "enum Kind { case one", "enum Kind { case"),
                 (8, "if value == 8 {", "do { if value == 8 {"), (9, "let most", "let least")):
        try:
            fits(SWIFT, [], edit, True)
        except Unfit:
            continue
        raise AssertionError(edit)
    print("guard_switch.py: four guards of a Swift file and one of a C file are behind the switch, four do not fit")


if __name__ == "__main__":
    sys.exit(self_test())
