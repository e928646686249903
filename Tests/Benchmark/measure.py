"""Runs of measured programs: what each cost, and the rounds that make medians and paired ratios of them."""
import dataclasses
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

PATIENCE = 1800  # Seconds for one run.


@dataclasses.dataclass
class Run:
    """What one run of one tool cost. Seconds, MiB and bytes; `total` is with the syncfs that follows a tool without a promise
    of its own, `wire` is None where nothing of the server's was asked."""
    wall: float
    total: float
    cpu: float
    memory: float
    wire: int | None = None
    requests: int | None = None
    protocols: str = ""


class Failed(Exception):
    """A run that does not count; the text says why."""


def watched(words, **more):
    """Runs a command as a group of processes, of which none is left, whatever ends this. Its exit status."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True, **more)
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {PATIENCE} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def cost(meter, command, place, environment, *, is_silent=False, status=0):
    """Runs a command and measures it: (Run without its sync, what it wrote). place: where its logs go, and its directory.
    is_silent: what it writes is thrown away, as it is too much. Raises Failed unless it ends with `status`."""
    report = os.path.join(place, "report")
    output = os.devnull if is_silent else os.path.join(place, "output")
    with open(output, "wb") as stream:
        if watched([meter, report, *command], cwd=place, env=environment, stdout=stream, stderr=subprocess.STDOUT) != 0:
            raise Failed("it was not measured")
    with open(output, "rb") as stream:
        text = stream.read()
    with open(report, encoding="ascii") as stream:
        ended, wall, user, system, memory = stream.read().split()
    if int(ended) != status:
        raise Failed(f"status {ended}: {' | '.join(text[-500:].decode(errors='replace').split(chr(10)))}")
    wall = float(wall)
    return Run(wall=wall, total=wall, cpu=float(user) + float(system), memory=int(memory) / 1024), text


def environment(home):
    """What every measured program gets: a home of its own, on the disk of its run."""
    os.makedirs(home, exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "XDG_STATE_HOME": os.path.join(home, "state"),
            "LC_ALL": "C.UTF-8"}


def calls(command, place, environment, status=0):
    """System calls of one more run of a command, with all its threads and children; None where nothing here can count them.
    By the kernel's tracepoint (perf), else by strace."""
    report = os.path.join(place, "calls")
    counters = [(["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o", report], r"^(\d+),"),
                (["strace", "-f", "-qq", "-c", "-o", report], r"^100\.00 +\S+ +\S+ +(\d+) .*total$")]
    for words, pattern in counters:
        if not shutil.which(words[0]):
            continue
        if subprocess.run(words + ["true"], capture_output=True).returncode != 0:
            continue
        if watched(words + command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) != status:
            return None
        with open(report, encoding="ascii", errors="replace") as stream:
            if found := re.search(pattern, stream.read(), re.MULTILINE):
                return int(found[1])
    return None


def rounds(count, tools, run, seed, says=sys.stderr):
    """So many rounds of all tools, each in a random order: tool -> [Run or None for each round]. `run` is called with a tool
    and makes a Run or raises Failed. A tool may ask for fewer rounds (its attribute `rounds`)."""
    chooser = random.Random(f"{seed} order")
    found = {tool: [] for tool in tools}
    for number in range(count):
        order = [tool for tool in tools if number < min(count, getattr(tool, "rounds", None) or count)]
        chooser.shuffle(order)
        for tool in order:
            begin = time.monotonic()
            try:
                result = run(tool)
            except Failed as failure:
                print(f"  round {number + 1}: {tool.name}: does not count: {failure}", file=says, flush=True)
                result = None
            else:
                print(f"  round {number + 1}: {tool.name}: {result.wall:.2f} s, with sync {result.total:.2f} s "
                      f"({time.monotonic() - begin:.1f} s with making and checking)", file=says, flush=True)
            found[tool].append(result)
    return found


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def paired(ours, theirs, key):
    """The ratios of two tools, round by round: (lower quartile, median, upper quartile, how many); None without any."""
    ratios = sorted(getattr(a, key) / getattr(b, key) for a, b in zip(ours, theirs) if a and b and getattr(b, key) > 0)
    if not ratios:
        return None
    if len(ratios) < 2:
        return ratios[0], ratios[0], ratios[0], len(ratios)
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return low, middle, high, len(ratios)

