"""What is printed of a row."""
import dataclasses
import shlex
import statistics

import measure


def summary(rows):
    """All that is wanted of all rows, as Markdown."""
    yield "| row | what | measured | wanted |"
    yield "|---|---|---|---|"
    for row in rows:
        for what, value, wanted in row.reached():
            yield f"| `{row.name}`: {row.title} | {what} | {value} | {wanted} |"


def promises(tools):
    """What each tool does of what Tarn promises."""
    yield f"{'tool':<8} {'version':<44} {'checks digests':<16} {'syncs':<28} {'whole or nothing under the final name'}"
    for tool in tools:
        yield f"{tool.name:<8} {tool.version():<44.44} {tool.verifies:<16} {tool.syncs:<28} {tool.atomic}"


class Table:
    """found: tool or variant -> its runs, round by round. reach: (who, beside whom, at most); whoever is called "fastest" is
    the peer with the least median, its sync included, the floor aside."""

    def __init__(self, name, title, found, notes, reach):
        self.name, self.title, self.notes = name, title, list(notes)
        names = {tool.name for tool in found} | {"fastest"}
        self.reach = [pair for pair in reach if {*pair[:2]} <= names]
        self.notes += [f"{pair[0]} / {pair[1]}: not measured" for pair in reach if pair not in self.reach]
        self.runs = {tool.name: runs for tool, runs in found.items()}
        self.commands, self.calls, self.memory = {}, {}, []  # memory: (who, MiB at most).

    def command(self, name, words):
        self.commands[name] = shlex.join(words)

    def fastest(self):
        peers = {name: measure.median([run.total for run in runs if run]) for name, runs in self.runs.items()
                 if not name.startswith(("tarn", "floor", "before"))}
        peers = {name: value for name, value in peers.items() if value is not None}
        return min(peers, key=peers.get) if peers else None

    def ratios(self):
        """(sentence, figures) for each thing to reach."""
        for ours, theirs, most in self.reach:
            other = self.fastest() if theirs == "fastest" else theirs
            if ours not in self.runs or other not in self.runs:
                yield f"{ours} / {theirs}: not measured", None
                continue
            ratio = measure.paired(self.runs[ours], self.runs[other], "total")
            if ratio is None:
                yield f"{ours} / {other}: no pair of runs that count", None
                continue
            low, middle, high, count = ratio
            what = f"{other} (the fastest peer)" if theirs == "fastest" else other
            verdict = "reached" if middle <= most else "NOT REACHED"
            yield (f"{ours} / {what}, each with its sync: {middle:.2f} (quartiles {low:.2f} to {high:.2f}, {count} pairs); "
                   f"wanted <= {most}: {verdict}", {"ours": ours, "theirs": other, "low": low, "median": middle, "high": high,
                                                   "pairs": count, "wanted": most})

    def troubles(self):
        """What keeps the row from being whole."""
        if not self.runs:
            yield f"{self.name}: no tool ran"
        for name, runs in self.runs.items():
            if None in runs:
                yield f"{self.name}: {name}: {runs.count(None)} of {len(runs)} runs do not count"

    def reached(self):
        """(what, what was measured, what is wanted) of each thing to reach, in words."""
        for ours, theirs, most in self.reach:
            other = self.fastest() if theirs == "fastest" else theirs
            ratio = measure.paired(self.runs.get(ours, []), self.runs.get(other, []), "total")
            beside = "the floor" if other == "floor" else f"{other} + sync"
            if ratio:
                yield f"{ours} / {beside}", f"{ratio[1]:.2f} ({ratio[0]:.2f} to {ratio[2]:.2f})", f"<= {most}"
        for name, most in self.memory:
            if (peak := self.peak(name)) is not None:
                yield f"{name}, peak memory", f"{peak:.0f} MiB", f"<= {most} MiB"

    def lines(self):
        yield f"== {self.name}: {self.title}"
        yield (f"{'tool':<16} {'runs':>7} {'as it is':>9} {'quartiles':>15} {'+ sync':>8} {'CPU s':>7} {'MiB':>6} "
               f"{'wire MB':>9} {'requests':>9} {'tarn / it + sync':>22}")
        for name, runs in self.runs.items():
            yield self.line(name, runs)
        for sentence, _ in self.ratios():
            yield f"   {sentence}"
        for name, most in self.memory:
            peak = self.peak(name)
            if peak is not None:
                yield f"   {name}: peak memory {peak:.1f} MiB; wanted <= {most}: {'reached' if peak <= most else 'NOT REACHED'}"
        if counted := {name: count for name, count in self.calls.items() if count is not None}:
            yield "   system calls of one run: " + ", ".join(f"{name} {count:,}" for name, count in counted.items())
        for name, words in self.commands.items():
            yield f"   {name}: {words}"
        for note in self.notes:
            yield f"   {note}"

    def peak(self, name):
        return max((run.memory for run in self.runs.get(name, []) if run), default=None)

    def line(self, name, runs):
        good = [run for run in runs if run]
        counted = f"{len(good)}/{len(runs)}"
        if not good:
            return f"{name:<16} {counted:>7} {'no run that counts':>20}"
        middle = {key: measure.median([getattr(run, key) for run in good])
                  for key in ("wall", "total", "cpu", "memory", "wire", "requests")}
        low, high = measure.quartiles([run.wall for run in good])
        ratio = measure.paired(self.runs.get("tarn", []), runs, "total")
        beside = f"{ratio[1]:.2f} ({ratio[0]:.2f} to {ratio[2]:.2f})" if ratio and name != "tarn" else ""
        wire = "" if middle["wire"] is None else f"{middle['wire'] / 1e6:.1f}"
        asked = "" if middle["requests"] is None else f"{middle['requests']:.0f}"
        return (f"{name:<16} {counted:>7} {middle['wall']:>9.3f} {f'{low:.3f}-{high:.3f}':>15} {middle['total']:>8.3f} "
                f"{middle['cpu']:>7.2f} {max(run.memory for run in good):>6.0f} {wire:>9} {asked:>9} {beside:>22}")

    def figures(self):
        """For the JSON."""
        return {"row": self.name, "title": self.title, "notes": self.notes, "commands": self.commands, "calls": self.calls,
                "runs": {name: [dataclasses.asdict(run) if run else None for run in runs]
                         for name, runs in self.runs.items()},
                "ratios": [figures for _, figures in self.ratios() if figures]}


class Figures:
    """A row that is no race: named figures, each beside what is wanted of it."""

    def __init__(self, name, title):
        self.name, self.title, self.lists, self.notes, self.commands = name, title, [], [], {}

    def add(self, what, value, unit, wanted=None, form="{:,.1f}"):
        """wanted: at most so much; None where nothing is."""
        self.lists.append((what, value, unit, wanted, form))

    def spread(self, what, values, unit, wanted=None, form="{:,.1f}"):
        """The median of several, with the quartiles in the next line."""
        self.add(f"{what}, median of {len(values)}", statistics.median(values), unit, wanted, form)
        low, high = measure.quartiles(values)
        self.add(f"{what}, quartiles", (low, high), unit, None, form)

    def command(self, name, words):
        self.commands[name] = shlex.join(words)

    def troubles(self):
        if not self.lists:
            yield f"{self.name}: no figures: {'; '.join(self.notes)}"
        yield from (f"{self.name}: {note}" for note in self.notes if "does not count" in note)

    def reached(self):
        for what, value, unit, wanted, form in self.lists:
            if wanted is not None:
                yield what, f"{form.format(value)} {unit}".strip(), f"<= {form.format(wanted)} {unit}".strip()

    def lines(self):
        yield f"== {self.name}: {self.title}"
        for what, value, unit, wanted, form in self.lists:
            shown = " to ".join(form.format(part) for part in (value if isinstance(value, tuple) else (value,)))
            verdict = ""
            if wanted is not None:
                verdict = f"wanted <= {form.format(wanted)}: {'reached' if value <= wanted else 'NOT REACHED'}"
            yield f"{what:<72} {shown:>20} {unit:<8} {verdict}".rstrip()
        for name, words in self.commands.items():
            yield f"   {name}: {words}"
        for note in self.notes:
            yield f"   {note}"

    def figures(self):
        return {"row": self.name, "title": self.title, "notes": self.notes, "commands": self.commands,
                "figures": [{"what": what, "value": value, "unit": unit, "wanted": wanted}
                            for what, value, unit, wanted, _ in self.lists]}
