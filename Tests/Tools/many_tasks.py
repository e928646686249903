#!/usr/bin/env python3
"""Hands very many tasks over to an agent, one at a time of which may be at work, and looks at what they cost.

    many_tasks.py --tarn TARN [--tasks 100000]

The server holds the first task, so that all others are queued. While they are added, in batches of 1,000, `tarn status`
runs, and the status and the session are asked for on the socket. Then all tasks are listed, and cancelled.

Judged are counts and memory: every task is there once, in its state, and its number is the next one; the events are the
one answer, the end of every task and that of all, numbered without a gap; the server has seen one connection; the agent
never had 100 MB resident, nor more than a few threads beyond those that it has with one task; each question was
answered. Times are printed only, for they depend on the machine. The last line sums up.
"""
import argparse
import collections
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import agent_figures
import bench
import control_client

BATCH = 1000
MOST_BYTES = 100_000_000
MOST_THREADS = 8  # Beyond those with one task: for calls that block.
SESSION = "session=s"


class HoldingServer:
    """Sends a byte a second, so that nobody finds it silent."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port, self.connections = self.listener.getsockname()[1], 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            self.connections += 1
            threading.Thread(target=self.hold, args=(connection,), daemon=True).start()

    @staticmethod
    def hold(connection):
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                connection.sendall(b".")
                time.sleep(1)
        except OSError:
            connection.close()


class Agent(agent_figures.Agent):
    def order(self, method, target, body):
        connection = control_client.UnixConnection(self.socket)
        connection.request(method, target, body)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{method} {target}: {answer.status} {text[:300]}")
        return json.loads(text)

    def add(self, numbers, port, out):
        lines = [json.dumps({"url": f"http://127.0.0.1:{port}/{n}", "to": f"{out}/{n}"}) for n in numbers]
        added = self.order("POST", f"/v1/session/tasks?{SESSION}", "\n".join(lines) + "\n")["tasks"]
        return [task["number"] for task in added]

    def list(self):
        after = 0
        while True:
            page = self.ask(f"/v1/session/tasks?{SESSION}&limit={BATCH}&after={after}")
            yield from (entry["task"] for entry in page["tasks"])
            if not page["hasMore"]:
                return
            after = page["tasks"][-1]["task"]["number"]

    def events(self):
        after = 0
        while True:
            page = self.ask(f"/v1/session/events?{SESSION}&limit={BATCH}&after={after}")
            yield from page["events"]
            if not page["hasMore"]:
                return
            after = page["events"][-1]["number"]

    def states(self):
        return self.ask(f"/v1/session?{SESSION}")["tasks"]

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def peak(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as stream:
            return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM")) * 1024


class Beside:
    """Asks again and again, each question in a thread of its own."""

    def __init__(self, agent):
        self.agent, self.times, self.threads, self.is_over = agent, collections.defaultdict(list), 0, threading.Event()
        self.failures = []
        questions = {"GET /v1/status": lambda: agent.ask("/v1/status"), "GET /v1/session": agent.states,
                     "tarn status": self.status, None: self.count}
        self.all = [threading.Thread(target=self.run, args=pair) for pair in questions.items()]

    def __enter__(self):
        for thread in self.all:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.all:
            thread.join()

    def run(self, name, ask):
        while True:
            begin = time.monotonic()
            try:
                ask()
            except (SystemExit, OSError, subprocess.SubprocessError) as error:
                self.failures.append(f"{name}: {error}")
                return
            if name:
                self.times[name].append((time.monotonic() - begin) * 1000)
            if self.is_over.wait(0.02):
                return

    def status(self):
        words = [self.agent.tarn, "status", "--config", self.agent.config]
        subprocess.run(words, env=self.agent.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                       timeout=bench.LIMIT)

    def count(self):
        self.threads = max(self.threads, self.agent.threads())


def wait(what, is_so):
    deadline = time.monotonic() + bench.LIMIT
    while not is_so():
        if time.monotonic() > deadline:
            raise SystemExit(f"not so: {what}")
        time.sleep(0.01)


def told(name, seconds, more=""):
    print(f"{name}: {seconds:.2f} s{more}", flush=True)


def events_wrong(events, count):
    """What is wrong with the events of tasks of which one was answered and all were cancelled."""
    found, codes = [], collections.Counter(event["code"] for event in events)
    if codes != {"response": 1, "cancelled": count, "all-delivered": 1}:
        found.append(f"the events are {dict(codes)}")
    if [event["number"] for event in events] != list(range(1, len(events) + 1)):
        found.append("the numbers of the events have a gap")
    if len({event["task"] for event in events if event["code"] == "cancelled"}) != codes["cancelled"]:
        found.append("the end of a task is told twice")
    return found


def measure(agent, count, out):
    """What is wrong."""
    server, found = HoldingServer(), []
    agent.order("PUT", f"/v1/session?{SESSION}", '{"transfers":1}')
    numbers = agent.add([1], server.port, out)
    wait("the first one is at work", lambda: agent.states() == {"running": 1} and server.connections == 1)
    before, begin = agent.threads(), time.monotonic()
    with Beside(agent) as beside:
        for start in range(2, count + 1, BATCH):
            numbers += agent.add(range(start, min(start + BATCH, count + 1)), server.port, out)
    told("adding", time.monotonic() - begin, f", {count} tasks")
    for name, times in sorted(beside.times.items()):
        print(f"{name} beside it: {len(times)} times, median {statistics.median(times):.1f} ms, most {max(times):.1f} ms")
    found += beside.failures
    begin = time.monotonic()
    listed = list(agent.list())
    told("listing", time.monotonic() - begin)
    states = collections.Counter(task["state"] for task in listed)
    if numbers != list(range(1, count + 1)) or [task["number"] for task in listed] != numbers:
        found.append(f"{len(numbers)} tasks were added, {len(listed)} are listed, and {count} were wanted")
    if states != {"running": 1, "queued": count - 1} or agent.states() != dict(states):
        found.append(f"the states are {dict(states)}, and the session counts {agent.states()}")
    if server.connections != 1:
        found.append(f"the server has seen {server.connections} connections")
    begin = time.monotonic()
    agent.order("POST", f"/v1/session/order?{SESSION}", '{"verb":"cancel"}')
    wait("all are cancelled", lambda: agent.states() == {"cancelled": count})
    told("cancelling", time.monotonic() - begin)
    found += events_wrong(list(agent.events()), count)
    if server.connections != 1:
        found.append(f"while all were cancelled {server.connections - 1} of them began")
    peak, threads = agent.peak(), max(beside.threads, agent.threads())
    if peak >= MOST_BYTES:
        found.append(f"{peak} bytes were resident")
    if threads > before + MOST_THREADS:
        found.append(f"{threads} threads, and {before} with one task")
    print(f"many tasks: {count} tasks, at most {peak / 1e6:.1f} MB resident and {threads} threads ({before} with one task)")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--tasks", type=int, default=100_000)
    arguments = parser.parse_args()
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-many-tasks."))
    agent = Agent(os.path.abspath(shutil.which(arguments.tarn) or arguments.tarn), scratch)
    try:
        out = os.path.join(scratch, "out")
        os.mkdir(out)
        with open(agent.config, "w", encoding="ascii"):
            pass
        agent.start()
        found = measure(agent, arguments.tasks, out)
        for text in found:
            print(f"many tasks: {text}")
    finally:
        agent.kill()
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
