#!/usr/bin/env python3
"""Kills an agent with a session at many of its system calls, or cuts the power there, and checks what a program hears.

A program makes a session, adds tasks in two batches, cancels one, reads events as they come, answers the one for which the
server wants credentials, and acknowledges most of them. At points spread evenly over one traced run the agent is held still
right before the call. Then it is killed with SIGKILL; or, with --file-system, the image that it ran on is copied, and the
copy judged. The next agent begins, and the program says once more all that it may have missed the answer of, until every
task has ended.

Meanwhile the program is `running`; or it is `stopped` once it has handed over, and goes on with the next agent; or it is
`killed`, and another one knows nothing; or that one begins `offline`, and the server comes when all tasks wait for it.

What is judged, of the files: one under a final name is the new one or the one that stood there, whole; what an event told
as finished is there, and is not fetched again; a partial file is one that the ledger names, and in the end there is none.
Of the events of both runs: numbered without a gap; the same number is the same event; the second agent begins behind the
last that was acknowledged; each task ends once, as it has to; all-delivered counts each once; the snapshot agrees; what
was answered before the end of the first agent holds.

`session grid: WHAT, agent, program STATE: of N calls reached X/Y, violations Z`; ends with 1 on a violation, or when fewer than nine in ten were reached.
"""
import argparse
import collections
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import bench
import control_client
import power_grid
import session_grid

ENDS = ("finished", "failed", "cancelled")
SESSION = "session=s"
PROGRAMS = ("running", "stopped", "killed", "offline")
UNACKNOWLEDGED = 2  # So many of the newest events that were heard of are not acknowledged.


class Scenario:
    """What is upstream, and what is asked for; the same bytes for the same seed."""

    def __init__(self, program, seed, scratch):
        chooser = random.Random(seed)
        self.name, self.program = f"agent, program {program}", program
        self.status, self.options = 0, []
        sizes = [0, 700, 5000, 90_000, 3 << 20, 1, 200_000, 4096, 65_536, 70_000]
        self.files = {f"file {n}.bin": chooser.randbytes(size) for n, size in enumerate(sizes)}
        self.old = {"file 2.bin": b"it stood there", "file 7.bin": b"of the user"}
        # Key -> (path, how it ends, more of the request).
        self.tasks = {f"k{n}": (f"file {n}.bin", "finished", {}) for n in range(len(sizes))}
        self.tasks["k2"] = ("file 2.bin", "finished", {"existing": "replace"})
        self.tasks["k7"] = ("file 7.bin", "finished", {"existing": "keep-both", "group": "g"})
        self.files["file.locked"] = chooser.randbytes(30_000)
        self.tasks["locked"] = ("file.locked", "finished", {"group": "g"})
        self.tasks["gone"] = ("nothing.bin", "failed", {"group": "g"})
        self.tasks["cancelled"] = ("file 0.bin", "cancelled", {"suspended": True, "to": "not wanted.bin"})
        keys = sorted(self.tasks)
        self.batches = [keys[::2], keys[1::2]]
        # Names in the end.
        self.wanted = dict(self.files)
        self.wanted["file 7 (1).bin"] = self.wanted["file 7.bin"]
        self.wanted["file 7.bin"] = self.old["file 7.bin"]
        self.first = os.path.join(scratch, "upstream")
        bench.publish(self.first, self.files)

    def request(self, key, port, out):
        path, _, more = self.tasks[key]
        url = f"http://127.0.0.1:{port}/{path.replace(' ', '%20')}?{key}"
        return {"url": url, "key": key, **more, "to": f"{out}/{more.get('to', path)}"}


class Gone(Exception):
    """The agent does not answer any more."""


class Program:
    """Hands over, reads and acknowledges, in a thread of its own. What it heard and was answered stays with it."""

    def __init__(self, worker, out, known=None, falls_silent=False, begins_offline=False):
        """- known: the numbers of tasks that it knows already
        - falls_silent: it hands over, and does nothing else
        - begins_offline: the server comes when all tasks wait for it."""
        self.worker, self.out = worker, out
        self.falls_silent, self.begins_offline = falls_silent, begins_offline
        self.events, self.numbers = [], dict(known or {})
        self.sent, self.answered, self.begun = 0, 0, False
        self.tasks, self.document, self.begin_at, self.left = [], {}, None, None
        self.found, self.is_done, self.is_over = [], False, threading.Event()
        self.thread = None

    def ask(self, method, path, body=None):
        connection = control_client.UnixConnection(self.worker.socket)
        connection.timeout = bench.PATIENCE
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Gone(str(error)) from error
        finally:
            connection.close()
        document = json.loads(text)
        if answer.status != 200:
            self.found.append(f"{method} {path}: {answer.status} {document}")
            raise Gone("refused")
        return document

    def order(self, **order):
        return self.ask("POST", f"/v1/session/order?{SESSION}", json.dumps(order))

    def start(self, end):
        """- end: called when all is done."""
        def body():
            try:
                self.run()
                self.is_done = True
                end()
            except (Gone, OSError):
                pass
        self.thread = threading.Thread(target=body)
        self.thread.start()

    def give_up(self):
        self.is_over.set()
        self.thread.join()

    def run(self):
        self.wait("the agent answers", self.is_there)
        self.ask("PUT", f"/v1/session?{SESSION}", '{"transfers":3}')
        self.begun = True
        if self.falls_silent:
            for batch in self.worker.scenario.batches:
                self.add(batch)
            return self.wait("nothing is at work", lambda: not self.has_any("queued", "running"))
        acknowledged = self.ask("GET", f"/v1/session?{SESSION}")["acknowledged"]
        listed = [self.ask("GET", f"/v1/session/events?{SESSION}&limit=1000")["events"] for _ in range(2)]
        if listed[1][:len(listed[0])] != listed[0]:
            self.found.append("two lists of events are not the same")
        self.begin_at = acknowledged + 1
        connection = control_client.UnixConnection(self.worker.socket)
        connection.connect()
        stream = connection.sock
        reader = threading.Thread(target=self.read, args=(connection,))
        reader.start()
        try:
            for batch in self.worker.scenario.batches:
                self.add(batch)
                if self.begins_offline:
                    self.go_online()
                self.wait("a batch is done", self.is_quiet)
            self.finish()
        finally:
            stream.shutdown(socket.SHUT_RDWR)
            reader.join()

    def is_there(self):
        try:
            connection = control_client.UnixConnection(self.worker.socket)
            connection.connect()
            connection.close()
            return True
        except OSError:
            return False

    def wait(self, what, is_so):
        deadline = time.monotonic() + bench.LIMIT
        while not is_so():
            if self.is_over.wait(0.005):
                raise Gone("it was told to give up")
            if time.monotonic() > deadline:
                self.found.append(f"not so: {what}")
                raise Gone(what)

    def add(self, batch):
        scenario, port = self.worker.scenario, self.worker.server.port
        lines = [json.dumps(scenario.request(key, port, self.out)) for key in batch]
        added = self.ask("POST", f"/v1/session/tasks?{SESSION}", "\n".join(lines) + "\n")["tasks"]
        for key, task in zip(batch, added):
            if self.numbers.setdefault(key, task["number"]) != task["number"]:
                self.found.append(f"{key} was task {self.numbers[key]} and is {task['number']}")
            if key == "cancelled":
                self.order(verb="cancel", task=task["number"])

    def has_any(self, *states):
        document = self.ask("GET", f"/v1/session?{SESSION}")
        return any(document["tasks"].get(state) for state in states)

    def waiting(self):
        page = self.ask("GET", f"/v1/session/tasks?{SESSION}&limit=1000")
        return [entry["task"]["number"] for entry in page["tasks"] if entry["task"]["state"] == "waiting"]

    def go_online(self):
        self.begins_offline = False
        self.wait("all tasks wait", lambda: not self.has_any("queued", "running"))
        if not self.worker.server.start():
            raise SystemExit("nginx did not start again")
        for number in self.waiting():
            self.order(verb="retry", task=number)

    def is_quiet(self):
        """No task is open, and the last event was heard of."""
        document = self.ask("GET", f"/v1/session?{SESSION}")
        is_open = any(document["tasks"].get(state) for state in ("queued", "running", "waiting", "suspended"))
        heard = self.events[-1]["number"] if self.events else document["acknowledged"]
        return not is_open and heard >= document["lastEvent"]

    def read(self, connection):
        """The stream, from the first event that is not acknowledged."""
        try:
            connection.request("GET", f"/v1/session/stream?{SESSION}")
            for line in connection.getresponse():
                if line.startswith(b"data: ") and line.endswith(b"\n"):
                    self.hear(json.loads(line[6:]))
        except (OSError, http.client.HTTPException, Gone):
            pass

    def hear(self, event):
        self.events.append(event)
        # Answered before it is acknowledged: an event that comes again may have been answered.
        if event["code"] == "needs-request" and event["task"] in self.waiting():
            self.order(verb="answer", task=event["task"], headers=["Authorization: Bearer s"])
        if len(self.events) % 3 == 0:
            self.acknowledge(event["number"] - UNACKNOWLEDGED)

    def acknowledge(self, number):
        self.sent = max(self.sent, number)
        self.order(verb="acknowledge", number=number)
        self.answered = max(self.answered, number)

    def finish(self):
        """What there is in the end."""
        page = self.ask("GET", f"/v1/session/tasks?{SESSION}&limit=1000")
        self.tasks = [entry["task"] for entry in page["tasks"]]
        self.document = self.ask("GET", f"/v1/session?{SESSION}") | {"asOf": page["asOf"]}
        self.acknowledge(self.document["lastEvent"])
        self.left = self.ask("GET", f"/v1/session/events?{SESSION}")["events"]


def judge_events(scenario, first, second):
    """Violations of what a program heard of two agents, the first of which was ended."""
    found = [f"{key} was task {number} and is {second.numbers[key]}" for key, number in first.numbers.items()
             if second.numbers.get(key, number) != number]
    for name, program in (("first", first), ("second", second)):
        numbers = [event["number"] for event in program.events]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers)) if numbers else []):
            found.append(f"the numbers of the {name} agent's events: {numbers}")
    if not first.answered <= second.begin_at - 1 <= first.sent:
        found.append(f"acknowledged are {second.begin_at - 1}: {first.answered} were answered, {first.sent} sent")
    if second.events and second.events[0]["number"] != second.begin_at:
        found.append(f"the second agent begins with {second.events[0]['number']} and not with {second.begin_at}")
    every = {event["number"]: event for event in second.events}
    for event in first.events:
        if every.setdefault(event["number"], event) != event:
            found.append(f"event {event['number']} was {event} and is {every[event['number']]}")
    last = second.document.get("lastEvent", 0)
    if sorted(every) != list(range(1, last + 1)):
        found.append(f"of {last} events there are {sorted(every)}")
    events = [every[number] for number in sorted(every)]
    if second.document.get("asOf") != last or second.left:
        found.append(f"the snapshot is of {second.document.get('asOf')} of {last}; left are {second.left}")
    return found + judge_ends(scenario, events, second)


def judge_ends(scenario, events, second):
    found, keys = [], {number: key for key, number in second.numbers.items()}
    ends = collections.defaultdict(list)
    answered = set()
    for event in events:
        if event["code"] in ENDS:
            ends[event["task"]].append(event["code"])
        if event["code"] == "response":
            answered.add(event["task"])
            if ends[event["task"]]:
                found.append(f"event {event['number']} is an answer behind the end of task {event['task']}")
        if event["code"] == "finished" and event["task"] not in answered:
            found.append(f"{event} without an answer before it")
    states = {task["number"]: task["state"] for task in second.tasks}
    for key, (_, end, _) in scenario.tasks.items():
        number = second.numbers.get(key)
        if ends.pop(number, None) != [end] or states.pop(number, None) != end:
            found.append(f"{key} has not ended once as {end}: {[(e['number'], e['code']) for e in events if e.get('task') == number]}")
    found += [f"there is a task {number} that nobody added" for number in {*ends, *states} - set(keys)]
    for code, group in (("all-delivered", None), ("group-delivered", "g")):
        for end in ("finished", "failed"):
            told = sum(event[end] for event in events if event["code"] == code)
            wanted = sum(1 for _, how, more in scenario.tasks.values()
                         if how == end and (group is None or more.get("group") == group))
            if told != wanted:
                found.append(f"{code} counts {told} {end}, and there are {wanted}")
    if events and events[-1]["code"] != "all-delivered":
        found.append(f"the last event is {events[-1]}")
    return found


class AgentWorker(session_grid.SessionWorker):
    """Runs agents; `folder` is where both the files and the records are."""

    def __init__(self, tarn, scenario, scratch, kind=None):
        super().__init__(tarn, scenario, scratch, kind)
        self.config = os.path.join(self.directory, "tarn.toml")
        with open(self.config, "w", encoding="ascii"):
            pass
        # The path of a socket is short.
        self.runtime = tempfile.mkdtemp(prefix="tarn-agent-grid.")
        self.socket = os.path.join(self.runtime, "tarn.sock")
        self.environment["RUNTIME_DIRECTORY"] = self.runtime
        self.program = None

    def command(self, folder):
        return [self.tarn, "agent", "--config", self.config]

    def new_folder(self):
        folder = super().new_folder()
        self.environment["STATE_DIRECTORY"] = os.path.join(folder, "state")
        self.clear()
        return folder

    def clear(self):
        for name in os.listdir(self.runtime):
            os.unlink(os.path.join(self.runtime, name))

    def first_program(self, out):
        return Program(self, out, falls_silent=self.scenario.program != "running")

    def next_program(self, out):
        remembers = self.scenario.program in ("running", "stopped")
        return Program(self, out, self.program.numbers if remembers else None,
                       begins_offline=self.scenario.program == "offline")

    def run(self, folder, prefix=(), limit=bench.LIMIT, words=None):
        """An agent, for as long as its program has something to do."""
        make = self.next_program if self.program else self.first_program
        self.program = make(os.path.join(folder, "out"))
        command = [*prefix, *self.command(folder)]
        with subprocess.Popen(command, env=self.environment, cwd=self.directory, start_new_session=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.program.start(lambda: self.terminate(process.pid))
            try:
                output, messages = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                self.program.give_up()
        return subprocess.CompletedProcess(command, process.returncode, output, messages)

    def terminate(self, process):
        """Ends the agent below a process as a service manager does."""
        while os.path.basename(os.readlink(f"/proc/{process}/exe")) != os.path.basename(os.path.realpath(self.tarn)):
            with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as stream:
                process = int(stream.read().split()[0])
        os.kill(process, signal.SIGTERM)

    def points(self):
        self.program = None
        return super().points()

    def examine(self, point):
        """One point: (reached, violations)."""
        folder = self.prepare()
        out = os.path.join(folder, "out")
        first = self.first_program(out)
        frozen = bench.Frozen(self, folder, point)
        first.start(lambda: self.terminate(frozen.process.pid))
        try:
            reached = frozen.wait()
            if self.disk:
                self.disk.cut()
        finally:
            frozen.kill()
            first.give_up()
        prefix = []
        if self.disk:
            self.disk.unmount()
            self.disk.mount(self.disk.copy)
            with open(self.boot, "w", encoding="ascii") as stream:
                stream.write(f"{uuid.uuid4()}\n")
            prefix = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {power_grid.BOOT_ID} && exec "$@"', self.boot]
        told = {os.path.basename(event["path"]) for event in first.events if event["code"] == "finished"}
        found = [f"after it: {text}" for text in first.found + self.judge_files(out, folder, told)]
        if reached:
            found += self.go_on(folder, out, first, told, prefix)
        if self.disk:
            self.disk.unmount()
        return reached, [f"{point[0]} #{point[1]}: {text}" for text in found]

    def go_on(self, folder, out, first, told, prefix):
        """The next agent, to the end of all."""
        found = []
        self.clear()
        marker = self.server.marker()
        self.program = first
        if self.scenario.program == "offline":
            self.server.stop()
        result = self.run(folder, prefix)
        second = self.program
        if first.begun and not second.events and not second.numbers:
            found.append("the session is gone")
        found += second.found
        if second.begins_offline:
            self.server.start()
        if not second.is_done or result.returncode != 0:
            return found + [f"it did not come to its end ({result.returncode}): {bench.last_words(result)}"]
        found += judge_events(self.scenario, first, second)
        bodies = self.server.bodies_between(marker, self.server.marker())
        found += [f"I3 {path} had been told as finished and was fetched again" for path, _ in bodies
                  if self.final_name(path.split("?")[0]) in told]
        return found + [f"in the end: {text}" for text in self.judge_files(out, folder, None)]

    @staticmethod
    def final_name(path):
        return "file 7 (1).bin" if path == "file 7.bin" else path

    def judge_files(self, out, folder, told):
        """- told: names that have to be there; None for all, and nothing else."""
        found, wanted = [], self.scenario.wanted
        named = self.named(folder) if told is not None else set()
        for name in os.listdir(out):
            if name.startswith("."):
                if name not in named:
                    found.append(f"{name} lies there, and the ledger names {named or 'none'}")
                continue
            with open(os.path.join(out, name), "rb") as stream:
                data = stream.read()
            is_old = told is not None and name not in told and data == self.scenario.old.get(name)
            if data != wanted.get(name) and not is_old:
                found.append(f"I1 {name} has {len(data)} bytes that are neither the new nor the old ones")
        expected = set(wanted) if told is None else told | set(self.scenario.old)
        return found + [f"I4 {name} is not there" for name in sorted(expected - set(os.listdir(out)))]

    def named(self, folder):
        """Partial files that the ledger names."""
        place, copy = os.path.join(folder, "state", "sessions", "s"), os.path.join(self.directory, "ledger")
        if not os.path.exists(os.path.join(place, "ledger.sqlite")):
            return set()
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(place, copy)
        connection = sqlite3.connect(os.path.join(copy, "ledger.sqlite"))
        try:
            # What a new file took the place of lies there until it is recorded, and its intent until it is gone.
            tasks = connection.execute("SELECT number FROM tasks WHERE directory IS NOT NULL UNION SELECT task FROM intents"
                                       " UNION SELECT CAST(CAST(path AS TEXT) AS INTEGER) FROM partials").fetchall()
            token = connection.execute("SELECT value FROM facts WHERE name = 'token'").fetchone()
        except sqlite3.OperationalError:
            # Not made yet.
            tasks, token = [], None
        finally:
            connection.close()
        return {f".tarn-s-{token[0] if token else ''}-{number}.part" for number, in tasks}

    def stop(self):
        super().stop()
        shutil.rmtree(self.runtime, ignore_errors=True)


def self_test(arguments):
    """Of a history that is sound nothing is found; each fault that is put into it is."""
    scratch = tempfile.mkdtemp(prefix="tarn-agent-grid.")
    try:
        scenario = Scenario("running", 1, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)

    def history():
        first, second = Program(None, ""), Program(None, "")
        events, codes = [], {key: how for key, (_, how, _) in scenario.tasks.items()}
        second.numbers = {key: number for number, key in enumerate(codes, 1)}
        for key, number in second.numbers.items():
            events += [{"code": "response", "task": number}] * (codes[key] == "finished")
            events.append({"code": codes[key], "task": number})
        counts = collections.Counter(codes.values())
        events.append({"code": "group-delivered", "finished": 2, "failed": 1})
        events.append({"code": "all-delivered", "finished": counts["finished"], "failed": counts["failed"]})
        events = [{"number": number, **event} for number, event in enumerate(events, 1)]
        first.events, first.sent, first.answered = events[:9], 6, 3
        second.events, second.begin_at, second.left = events[3:], 4, []
        second.document = {"lastEvent": len(events), "asOf": len(events)}
        second.tasks = [{"number": number, "state": codes[key]} for key, number in second.numbers.items()]
        return first, second

    def renumbered(first, _):
        first.events[5] = {**first.events[5], "code": "waiting"}

    def lost(_, second):
        del second.events[7]

    def doubled(_, second):
        second.events.append({**second.events[1], "number": second.events[-1]["number"] + 1})
        second.document = {"lastEvent": second.events[-1]["number"], "asOf": second.events[-1]["number"]}

    def forgotten(_, second):
        second.begin_at, second.events = 1, [*history()[0].events[:3], *second.events]

    def another(first, _):
        first.numbers = {"k1": 77}

    def skipped(first, second):
        second.begin_at, second.events, first.events = 8, second.events[4:], first.events[:6]

    def untrue(_, second):
        second.tasks[0]["state"] = "waiting"

    def miscounted(_, second):
        second.events[-1] = {**second.events[-1], "finished": 1}

    def stays(_, second):
        second.left = second.events[-1:]

    sound = judge_events(scenario, *history())
    verdicts = {"sound": not sound}
    for sin in (renumbered, lost, doubled, forgotten, another, skipped, untrue, miscounted, stays):
        programs = history()
        sin(*programs)
        verdicts[sin.__name__] = bool(judge_events(scenario, *programs))
    print(f"agent_grid.py: {sum(verdicts.values())} of {len(verdicts)} histories judged rightly {verdicts} {sound}")
    return all(verdicts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--file-system", choices=list(power_grid.DISKS), help="cut the power there instead")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="repeatable; all without it")
    parser.add_argument("--points", type=int, default=20, help="spread over the states of the program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if arguments.self_test:
        sys.exit(0 if self_test(arguments) else 1)
    arguments.tarn = bench.find_tarn(arguments.tarn)
    if arguments.file_system:
        reason = power_grid.obstacle(argparse.Namespace(file_system=[arguments.file_system]))
        if reason:
            print(f"agent grid: skipped: {reason}")
            sys.exit(0)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-agent-grid."))
    programs = arguments.program or PROGRAMS
    arguments.points = max(2, arguments.points // len(programs))
    try:
        scenarios = [Scenario(program, arguments.seed, os.path.join(scratch, program)) for program in programs]
        good = [session_grid.grid(arguments, scenario, AgentWorker, arguments.file_system, scratch) for scenario in scenarios]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
