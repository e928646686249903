#!/usr/bin/env python3
"""Figures of a running agent: memory and CPU while idle, how soon it is ready after kill -9, how fast it answers.

    agent_figures.py --tarn TARN [--mirrors 10] [--files 10000] [--large 100000] [--entries 1000000] [--scraped 200] [--only metrics]

Five parts, on one nginx:
  idle      --mirrors mirrors of --files files each, all in sync: PSS of the agent and of its tarn-watch together (Pss of
            smaps_rollup), ten seconds after the last pass, and the agent's share of one CPU over 30 s
  restart   a mirror of --large files besides: from the start of the process after kill -9 to the first answer on the socket,
            five times idle and five times in the middle of a pass; then everything is in sync again, and no event number is
            missing
  status    GET /v1/status on the socket and the whole `tarn status`, 50 times each, while nothing happens
  metrics   GET /metrics of --scraped mirrors at rest: the first one after a start, which reads their ledgers, and 50 more; then
            the agent's share of one CPU over 30 s in which nobody asks
  planning  the same while a list of --entries entries is read and planned, and transfers of another mirror run

Prints a line per figure: least, median, most. It judges nothing: figures depend on the machine. Ends with 1 when something
did not work.
"""
import argparse
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import control_client


class Agent:
    def __init__(self, tarn, directory):
        self.tarn, self.directory = tarn, directory
        self.config = os.path.join(directory, "tarn.toml")
        self.socket = os.path.join(directory, "run", "tarn.sock")
        self.environment = {"HOME": directory, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8",
                            "STATE_DIRECTORY": os.path.join(directory, "state"),
                            "RUNTIME_DIRECTORY": os.path.join(directory, "run")}
        for name in ("STATE_DIRECTORY", "RUNTIME_DIRECTORY"):
            os.makedirs(self.environment[name])
        self.process = None

    def start(self):
        """Seconds until the first answer."""
        begin = time.monotonic()
        self.process = subprocess.Popen([self.tarn, "agent", "--config", self.config], env=self.environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while time.monotonic() - begin < 120:
            try:
                self.ask("/v1/status")
                return time.monotonic() - begin
            except OSError:
                time.sleep(0.002)
        raise SystemExit("the agent does not answer")

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def end(self):
        self.process.terminate()
        if self.process.wait(timeout=60) != 0:
            raise SystemExit("the agent did not end with 0")

    def ask(self, target):
        return json.loads(self.text(target))

    def text(self, target):
        connection = control_client.UnixConnection(self.socket)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{target}: {answer.status}: {body[:200]}")
            return body.decode()
        finally:
            connection.close()

    def run(self, *arguments, status=(0,)):
        result = subprocess.run([self.tarn, *arguments, "--config", self.config], env=self.environment,
                                cwd=self.directory, capture_output=True)
        if result.returncode not in status:
            raise SystemExit(f"tarn {' '.join(arguments)}: {result.returncode}: {result.stderr.decode()[-500:]}")
        return result.stdout

    def begin(self, *arguments):
        return subprocess.Popen([self.tarn, *arguments, "--config", self.config], env=self.environment, cwd=self.directory,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def mirror(self, name):
        return next(mirror for mirror in self.ask("/v1/status")["mirrors"] if mirror["name"] == name)

    def pss(self):
        """KiB, of the process and its children."""
        task = f"/proc/{self.process.pid}/task"
        processes = [str(self.process.pid)]
        for thread in os.listdir(task):
            with open(f"{task}/{thread}/children", encoding="ascii") as stream:
                processes += stream.read().split()
        total = 0
        for process in processes:
            with open(f"/proc/{process}/smaps_rollup", encoding="ascii") as stream:
                total += next(int(line.split()[1]) for line in stream if line.startswith("Pss:"))
        return total

    def ticks(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stream:
            fields = stream.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


def show(name, values, unit):
    print(f"{name:<44} {min(values):8.1f} {statistics.median(values):8.1f} {max(values):8.1f} {unit}", flush=True)


def write_files(directory, count):
    os.makedirs(directory)
    with open(os.path.join(directory, "SHA256SUMS"), "w", encoding="ascii") as sums:
        for number in range(count):
            text = f"{directory} {number}\n".encode()
            name = f"d{number // 1000}/f{number}"
            os.makedirs(os.path.join(directory, f"d{number // 1000}"), exist_ok=True)
            with open(os.path.join(directory, name), "wb") as stream:
                stream.write(text)
            sums.write(f"{hashlib.sha256(text).hexdigest()}  {name}\n")


def write_list(directory, entries):
    """Names that are not there: what is planned is never fetched, for the agent ends before."""
    os.makedirs(directory)
    with open(os.path.join(directory, "SHA256SUMS"), "w", encoding="ascii") as sums:
        for number in range(entries):
            sums.write(f"{hashlib.sha256(b'%d' % number).hexdigest()}  {number % 997:03d}/{number}\n")


def write_large(directory, count, size):
    os.makedirs(directory)
    with open(os.path.join(directory, "SHA256SUMS"), "w", encoding="ascii") as sums:
        for number in range(count):
            block = bytes([number]) * (1 << 20)
            digest = hashlib.sha256()
            with open(os.path.join(directory, f"large{number}"), "wb") as stream:
                for _ in range(size):
                    stream.write(block)
                    digest.update(block)
            sums.write(f"{digest.hexdigest()}  large{number}\n")


def settings(agent, server, mirrors):
    with open(agent.config, "w", encoding="utf-8") as stream:
        for name, source, more in mirrors:
            stream.write(f'[mirror.{name}]\nfeed = "http://127.0.0.1:{server.port}/{source}/SHA256SUMS"\n'
                         f'folder = "{agent.directory}/{name}"\n{more}\n')


def idle(agent, arguments):
    agent.start()
    for number in range(arguments.mirrors):
        agent.run("sync", "-q", f"m{number}")
    # Five seconds after the last pass the agent gives back what passes needed.
    time.sleep(10)
    show(f"idle: PSS, {arguments.mirrors} x {arguments.files} files", [agent.pss() / 1024 for _ in range(3)], "MiB")
    before = agent.ticks()
    time.sleep(30)
    show("idle: share of a CPU over 30 s", [(agent.ticks() - before) / os.sysconf("SC_CLK_TCK") / 30 * 100], "%")


def metrics(agent, server, arguments):
    settings(agent, server, [(f"s{number}", "tiny", "") for number in range(arguments.scraped)])
    agent.start()
    for number in range(arguments.scraped):
        agent.run("sync", "-q", f"s{number}")
    agent.end()
    agent.start()
    # What was written less than two seconds ago is read again, and each folder is looked at after the start.
    time.sleep(15)

    def scrape():
        begin = time.monotonic()
        text = agent.text("/metrics")
        return (time.monotonic() - begin) * 1000, len(text)

    show(f"metrics: first scrape of {arguments.scraped} mirrors", [scrape()[0]], "ms")
    scrapes = [scrape() for _ in range(50)]
    show(f"metrics: scrape of {arguments.scraped} mirrors", [took for took, _ in scrapes], "ms")
    show("metrics: the text", [size / 1024 for _, size in scrapes], "KiB")
    before = agent.ticks()
    time.sleep(30)
    show("metrics: share of a CPU between scrapes", [(agent.ticks() - before) / os.sysconf("SC_CLK_TCK") / 30 * 100], "%")
    agent.end()


def latency(agent, name, times):
    asked, whole = [], []
    for _ in range(times):
        begin = time.monotonic()
        agent.ask("/v1/status")
        asked.append((time.monotonic() - begin) * 1000)
        begin = time.monotonic()
        agent.run("status")
        whole.append((time.monotonic() - begin) * 1000)
    show(f"{name}: GET /v1/status", asked, "ms")
    show(f"{name}: tarn status, the whole process", whole, "ms")


def restart(agent):
    agent.run("sync", "-q", "large")
    quiet, busy = [], []
    for _ in range(5):
        agent.kill()
        quiet.append(agent.start())
    for number in range(5):
        shutil.rmtree(os.path.join(agent.directory, "large", f"d{number}"), ignore_errors=True)
        sync = subprocess.Popen([agent.tarn, "sync", "-q", "large", "--config", agent.config], env=agent.environment,
                                cwd=agent.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3 + 0.3 * number)
        agent.kill()
        sync.wait()
        busy.append(agent.start())
    show("restart: ready after kill -9, idle", [value * 1000 for value in quiet], "ms")
    show("restart: ready after kill -9, in a pass", [value * 1000 for value in busy], "ms")
    agent.run("sync", "-q", "large")
    if agent.mirror("large")["entries"]["pending"] != 0:
        raise SystemExit("the large mirror is not in sync")
    with sqlite3.connect(f"file:{agent.directory}/large/.tarn/ledger.sqlite?mode=ro", uri=True) as ledger:
        numbers = [number for number, in ledger.execute("SELECT number FROM events ORDER BY number")]
    missing = sum(b - a - 1 for a, b in zip(numbers, numbers[1:]))
    print(f"restart: events {len(numbers)}, numbers missing {missing}", flush=True)
    if missing or not numbers:
        raise SystemExit("events are missing")


def planning(agent):
    syncs = [subprocess.Popen([agent.tarn, "sync", "-q", name, "--config", agent.config], env=agent.environment,
                              cwd=agent.directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
             for name in ("bulk", "million")]
    deadline = time.monotonic() + 60
    while agent.mirror("million")["state"] not in ("reading", "planning") and time.monotonic() < deadline:
        time.sleep(0.01)
    asked, whole, transfers = [], [], 0
    while agent.mirror("million")["state"] in ("reading", "planning"):
        begin = time.monotonic()
        answer = agent.ask("/v1/status")
        asked.append((time.monotonic() - begin) * 1000)
        transfers = max(transfers, sum(len(mirror.get("transfers", [])) for mirror in answer["mirrors"]))
        begin = time.monotonic()
        agent.run("status")
        whole.append((time.monotonic() - begin) * 1000)
    if not asked:
        raise SystemExit("nothing was planned")
    show(f"planning, {transfers} transfers: GET /v1/status", asked, "ms")
    show(f"planning, {transfers} transfers: tarn status", whole, "ms")
    show("planning: PSS afterwards", [agent.pss() / 1024], "MiB")
    agent.run("cancel", "million", "bulk")
    for sync in syncs:
        sync.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--mirrors", type=int, default=10)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--scraped", type=int, default=200)
    parser.add_argument("--only", choices=["metrics"])
    arguments = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    arguments.tarn = bench.find_tarn(arguments.tarn)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-agent-figures."))
    server = agent = None
    try:
        source = os.path.join(scratch, "source")
        write_files(os.path.join(source, "tiny"), 5)
        if arguments.only is None:
            write_files(os.path.join(source, "small"), arguments.files)
            write_files(os.path.join(source, "large"), arguments.large)
            write_list(os.path.join(source, "million"), arguments.entries)
            write_large(os.path.join(source, "bulk"), 20, 64)
        home = os.path.join(scratch, "agent")
        os.makedirs(home)
        os.makedirs(os.path.join(scratch, "server"))
        server = bench.Server(os.path.join(scratch, "server"))
        server.turn_to(source)
        agent = Agent(arguments.tarn, home)
        metrics(agent, server, arguments)
        if arguments.only:
            return
        settings(agent, server, [(f"m{number}", "small", 'every = "12h"') for number in range(arguments.mirrors)])
        idle(agent, arguments)
        latency(agent, "idle", 50)
        agent.end()
        # By command only: a first pass by a schedule might begin in the middle of another part.
        settings(agent, server, [("large", "large", ""), ("million", "million", ""),
                                 ("bulk", "bulk", 'limit-rate = "8MiB/s"')])
        agent.start()
        restart(agent)
        planning(agent)
        agent.end()
    finally:
        if agent:
            agent.kill()
        if server:
            server.stop()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
