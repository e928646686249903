#!/usr/bin/env python3
"""Sums up one run of Swift Testing by suite, from its event stream.

For each suite one line: how many tests ran and failed, or that it was skipped and why. A test that began and never
ended (a crash, a time limit) counts as failed; so does a run that ended badly without a failed test. An issue that belongs to no test
(an expectation on a thread of its own) is a failure of the run, which no test that passes again takes back.

With --again COMMAND a test that failed in a run that came to its end is run again by itself, at most twice and for 300 s each;
none is where more than six failed. One that passes then counts as passed, and is written with its first failure to the file of --flaky.
"""
import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile


def suite_of(identifier):
    """`Target.Suite/test()/File.swift:1:2` -> `Target.Suite`; tests outside suites are their target's."""
    return identifier.split("/")[0]


def reason(message):
    """`Test x() skipped: "why"` -> `why`."""
    return message.rpartition(" skipped: ")[2].strip().strip('"') or "no reason given"


MOST_TEXT = 600


def issue(payload):
    """`File.swift:12: what was expected`, on one line."""
    place = payload.get("issue", {}).get("sourceLocation", {})
    where = f"{os.path.basename(place.get('_filePath') or place.get('fileID') or '?')}:{place.get('line', '?')}"
    text = " ".join(" ".join(m.get("text", "") for m in payload.get("messages", [])).split())
    return f"{where}: {text[:MOST_TEXT]}"


def is_failure(payload):
    """False for a known issue, and for a warning."""
    told = payload.get("issue", {})
    is_warning = "warning" in (told.get("severity"), told.get("_severity"))
    return told.get("isFailure", not told.get("isKnown", False) and not is_warning)


class Run:
    def __init__(self):
        self.tests = {}
        self.suites = []
        self.untested = []  # Issues that belong to no test.
        self.ended = False

    def read(self, lines):
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue  # The last line of a run that was killed.
            payload = record.get("payload", {})
            if record.get("kind") == "test":
                self.declare(payload)
            elif record.get("kind") == "event":
                self.event(payload)

    def declare(self, payload):
        if payload.get("kind") == "suite":
            self.suites.append(payload["id"])
        else:
            self.tests[payload["id"]] = {"state": "declared", "why": "", "issues": []}

    def event(self, payload):
        kind = payload.get("kind")
        if kind == "runEnded":
            self.ended = True
        test = self.tests.get(payload.get("testID"))
        if test is None:
            if kind == "issueRecorded" and is_failure(payload):
                self.untested.append(issue(payload))
            return
        if kind == "testStarted":
            test["state"] = "started"
        elif kind == "issueRecorded":
            test["issues"].append(issue(payload))
        elif kind == "testSkipped":
            text = next((m["text"] for m in payload.get("messages", []) if m.get("symbol") == "skip"), "")
            test.update(state="skipped", why=reason(text))
        elif kind == "testEnded":
            symbols = {m.get("symbol") for m in payload.get("messages", [])}
            test["state"] = "failed" if "fail" in symbols else "passed"

    def try_again(self, command):
        """Runs what failed by itself: a few tests, for of many the cause is not chance.

        Returns (whether all of them passed, a line for each that did)."""
        bad = [(i, t) for i, t in self.tests.items() if t["state"] == "failed"]
        if not self.ended or not bad or len(bad) > MOST_AGAIN:
            return False, []
        lines = []
        for identifier, test in bad:
            if any(passes(command, identifier) for _ in range(2)):
                test["state"] = "passed"
                first = test["issues"][0] if test["issues"] else "no reason given"
                lines.append(f"flaky {identifier}: {first}")
        return len(lines) == len(bad), lines

    def status_after(self, settled, status, log):
        """The status of the process, without the failures that were settled: 0 when these alone explain it."""
        explained = settled and status == STATUS_OF_FAILURES and not self.untested and not has_race(log)
        return 0 if explained else status

    def summary(self, label, status):
        """(lines, passed, failed, skipped)"""
        groups = {suite: [] for suite in self.suites}
        for identifier, test in self.tests.items():
            groups.setdefault(suite_of(identifier), []).append((identifier, test))
        lines, passed, failed, skipped = [], 0, 0, 0
        note = label.partition(" ")[2]
        note = " " + note if note else ""
        for suite in sorted(groups):
            tests = groups[suite]
            good = [i for i, t in tests if t["state"] == "passed"]
            left_out = [t["why"] for _, t in tests if t["state"] == "skipped"]
            bad = [(i, t) for i, t in tests if t["state"] not in ("passed", "skipped")]
            passed, failed, skipped = passed + len(good), failed + len(bad), skipped + len(left_out)
            if not tests:
                continue
            line = f"suite {suite}{note}: {len(good) + len(bad)} ran, {len(bad)} failed"
            if left_out and not good and not bad:
                line = f"suite {suite}{note}: skipped ({len(left_out)} tests): " + "; ".join(sorted(set(left_out)))
            elif left_out:
                line += f", {len(left_out)} skipped: " + "; ".join(sorted(set(left_out)))
            lines.append(line)
            for identifier, test in bad:
                lines.append(f"  failed: {identifier}" + ("" if test["state"] == "failed" else " (never ended)"))
                lines += [f"    {text}" for text in test["issues"]]
        if not lines:
            failed = 1
            lines.append(f"suite {label}: 0 ran, 1 failed: no test of that name was built")
        if self.untested:
            failed += 1
            lines.append(f"  failed: {label}: issues that belong to no test")
            lines += [f"    {text}" for text in self.untested]
        if failed == 0 and (status != 0 or (self.tests and not self.ended)):
            failed = 1
            lines.append(f"  failed: {label}: the test process ended with {status}" + ("" if self.ended else ", in the middle"))
        return lines, passed, failed, skipped


# Swift Testing's own, for a run in which a test failed.
STATUS_OF_FAILURES = 1
MOST_AGAIN = 6
SECONDS_AGAIN = 300


def passes(command, identifier):
    """Runs one test; True when it ran and passed."""
    pattern = "^" + re.escape(identifier.split("(")[0] + "(")
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        # In a session of its own: what the test has started ends with it.
        process = subprocess.Popen([*command, "--filter", pattern], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   start_new_session=True)
        try:
            status = process.wait(timeout=SECONDS_AGAIN)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return False
        output.seek(0)
        return status == 0 and re.search(r"Test run with [1-9]", output.read()) is not None


def has_race(log):
    """ThreadSanitizer found something, which is no fault of a test that fails by chance."""
    if not log or not os.path.exists(log):
        return False
    with open(log, encoding="utf-8", errors="replace") as stream:
        return any("WARNING: ThreadSanitizer" in line for line in stream)


def self_test():
    def stream(*events):
        run = Run()
        run.read([json.dumps(e) for e in events])
        return run

    def declared(name):
        return {"kind": "test", "payload": {"id": f"T.S/{name}()/F.swift:1:1", "kind": "function"}}

    def event(name, kind, symbol="default", text=""):
        messages = [{"symbol": symbol, "text": text}]
        return {"kind": "event", "payload": {"kind": kind, "testID": f"T.S/{name}()/F.swift:1:1", "messages": messages}}

    end = {"kind": "event", "payload": {"kind": "runEnded"}}
    issue_of_b = event("b", "issueRecorded", "fail", "Expectation failed:\n1 == 2")
    issue_of_b["payload"]["issue"] = {"sourceLocation": {"fileID": "T/F.swift", "line": 7}}
    run = stream(declared("a"), declared("b"), declared("c"), event("a", "testStarted"), event("a", "testEnded", "pass"),
                 event("b", "testStarted"), issue_of_b, event("b", "testEnded", "fail"),
                 event("c", "testSkipped", "skip", 'Test c() skipped: "no nginx"'), end)
    lines, *counts = run.summary("T", 1)
    assert counts == [1, 1, 1], counts
    assert "no nginx" in lines[0], lines
    assert lines[2] == "    F.swift:7: Expectation failed: 1 == 2", lines
    crashed = stream(declared("a"), event("a", "testStarted"))
    assert crashed.summary("T", 139)[2] == 1
    assert stream(declared("a"), event("a", "testStarted"), event("a", "testEnded", "pass"), end).summary("T", 66)[2] == 1
    assert stream().summary("T", 0)[1:] == (0, 1, 0), "a run of no test is no pass"
    again = ["bash", "-c", "echo Test run with 1 test; exit 0"]
    assert run.try_again(["bash", "-c", "echo Test run with 1 test; exit 1"]) == (False, [])
    assert run.try_again(["true"]) == (False, []), "a run of no test is no pass"
    settled, lines = run.try_again(again)
    assert settled and lines == ["flaky T.S/b()/F.swift:1:1: F.swift:7: Expectation failed: 1 == 2"], lines
    assert run.status_after(settled, 1, None) == 0
    assert run.summary("T", 0)[1:] == (2, 0, 1)
    lines, *counts = run.summary("T", run.status_after(settled, 139, None))
    assert counts == [2, 1, 1] and "ended with 139" in lines[-1], "a crash after the last test is none of the flaky test's"
    known = {"kind": "event", "payload": {"kind": "issueRecorded", "issue": {"isKnown": True}}}
    stray = {"kind": "event", "payload": {"kind": "issueRecorded", "messages": [{"symbol": "fail", "text": "3 == 4"}],
                                          "issue": {"sourceLocation": {"fileID": "T/F.swift", "line": 9}}}}
    run.read([json.dumps(known)])
    assert run.status_after(settled, 1, None) == 0 and run.summary("T", 0)[2] == 0, "a known issue is no failure"
    run.read([json.dumps(stray)])
    assert run.status_after(settled, 1, None) == 1
    lines, *counts = run.summary("T", 1)
    assert counts == [2, 1, 1], counts
    assert lines[-2:] == ["  failed: T: issues that belong to no test", "    F.swift:9: 3 == 4"], lines
    assert crashed.try_again(again) == (False, []), "a crash is not tried again"
    with tempfile.NamedTemporaryFile("w") as log:
        assert not has_race(log.name)
        log.write("WARNING: ThreadSanitizer: data race (pid=1)\n")
        log.flush()
        assert has_race(log.name)
        assert stream().status_after(True, 1, log.name) == 1
    print("report_tests.py: a failure, a crash, a sanitizer's exit status, a skip and an issue of no test are all seen")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("events", nargs="?", help="what --event-stream-output-path wrote")
    parser.add_argument("--label", default="tests")
    parser.add_argument("--status", type=int, default=0, help="how the test process ended")
    parser.add_argument("--totals", help="append `passed failed skipped` to this file")
    parser.add_argument("--again", help="the command that runs tests; a filter is added")
    parser.add_argument("--log", help="what the tests printed")
    parser.add_argument("--flaky", help="append a line for each test that passed when it ran again to this file")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    run = Run()
    status = arguments.status
    if not arguments.events or not os.path.exists(arguments.events):
        status = status or "no event stream"  # Nothing was counted, so nothing may pass.
    else:
        with open(arguments.events, encoding="utf-8", errors="replace") as stream:
            run.read(stream)
    if arguments.again:
        settled, flaky = run.try_again(shlex.split(arguments.again))
        status = run.status_after(settled, status, arguments.log)
        with open(arguments.flaky, "a", encoding="utf-8") as stream:
            stream.writelines(line + "\n" for line in flaky)
    lines, passed, failed, skipped = run.summary(arguments.label, status)
    print("\n".join(lines))
    if arguments.totals:
        with open(arguments.totals, "a", encoding="utf-8") as stream:
            stream.write(f"{passed} {failed} {skipped}\n")


if __name__ == "__main__":
    main()
