"""Rows about downloads that are handed over: `tarn get` of one file, and a hundred thousand tasks that wait."""
import http.client
import json
import os
import socket
import subprocess
import time

import measure
import peers
import tables
import transfer

BATCH = 1000


class TarnGet(peers.Tarn):
    """Downloads the one file without an agent."""

    def fetch(self, job):
        authority = ["--cacert", job.authority] if job.authority else []
        return [self.program, "get", "--quiet", *authority, "--to", f"{job.out}/{job.files.paths[0]}",
                job.root + job.files.paths[0]]


def get(house):
    files = transfer.large_files(house)
    return transfer.row(
        house, "get", f"tarn get of one file of {files.bytes >> 20:,} MiB, HTTP/1.1", files, house.rounds(9),
        wanted=lambda tool: tool in (house.tarn, house.before) or tool.name in ("curl", "aria2"),
        made=lambda tool: TarnGet(tool.program, tool.name) if isinstance(tool, peers.Tarn) else tool,
        reach=[("tarn", "fastest", 1.05)])


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("tarn")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Agent:
    """Tarn's, with one session whose tasks wait for somebody to resume them."""
    name = "tarn"

    def __init__(self, house, place):
        self.socket = os.path.join(place, "run", "tarn.sock")
        home = os.path.join(place, "home")
        environment = measure.environment(home) | {"STATE_DIRECTORY": os.path.join(place, "state"),
                                                   "RUNTIME_DIRECTORY": os.path.join(place, "run")}
        settings = os.path.join(place, "tarn.toml")
        with open(settings, "w", encoding="ascii"):
            pass
        self.process = subprocess.Popen([house.tarn.program, "agent", "--config", settings], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait()
        self.ask("PUT", "/v1/session?session=s")

    def wait(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                return self.ask("GET", "/v1/sessions")
            except OSError:
                time.sleep(0.02)
        raise SystemExit("the agent does not answer")

    def ask(self, method, path, body=None):
        connection = UnixConnection(self.socket)
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {text[:300]}")
        return json.loads(text)

    def add(self, numbers):
        lines = (json.dumps({"url": f"http://127.0.0.1:9/{n}", "to": f"/nowhere/{n}", "suspended": True}) for n in numbers)
        self.ask("POST", "/v1/session/tasks?session=s", "\n".join(lines) + "\n")

    def list(self):
        count, after = 0, 0
        while True:
            page = self.ask("GET", f"/v1/session/tasks?session=s&limit={BATCH}&after={after}")
            count += len(page["tasks"])
            if not page["hasMore"]:
                return count
            after = page["tasks"][-1]["task"]["number"]

    def status(self):
        self.ask("GET", "/v1/session?session=s")

    def end(self):
        self.process.terminate()
        self.process.wait(60)


class Aria2:
    """aria2's RPC; its tasks are paused, and are written nowhere."""
    name = "aria2"

    def __init__(self, house, place):
        probe = socket.socket()
        probe.bind(("127.0.0.1", 0))
        self.port = probe.getsockname()[1]
        probe.close()
        self.process = subprocess.Popen(
            ["aria2c", "--no-conf", "--quiet", "--enable-rpc", f"--rpc-listen-port={self.port}", "--rpc-max-request-size=64M"],
            stdin=subprocess.DEVNULL, cwd=place)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                return self.status()
            except OSError:
                time.sleep(0.02)
        raise SystemExit("aria2 does not answer")

    def ask(self, method, *params):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/jsonrpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']}")
        return answer["result"]

    def add(self, numbers):
        self.ask("system.multicall", [
            {"methodName": "aria2.addUri",
             "params": [[f"http://127.0.0.1:9/{n}"], {"pause": "true", "dir": "/nowhere", "out": str(n)}]} for n in numbers])

    def list(self):
        count = 0
        while found := self.ask("aria2.tellWaiting", count, BATCH):
            count += len(found)
        return count

    def status(self):
        self.ask("aria2.getGlobalStat")

    def end(self):
        self.process.terminate()
        self.process.wait(60)


def memory_of(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS")) / 1024


def tasks(house):
    """Adding tasks in batches of 1,000, listing all, and a status beside the adding."""
    count = 2000 if house.is_small else 100_000
    table = tables.Figures("tasks", f"{count:,} tasks handed over that wait, in batches of {BATCH:,}")
    for kind in (Agent, Aria2):
        if kind is Aria2 and (not peers.Aria2().find() or house.only and "aria2" not in house.only):
            table.notes.append("aria2: not installed: skipped")
            continue
        place = house.disks.take(1 << 30)
        daemon = kind(house, place.path)
        try:
            answers, begin = [], time.monotonic()
            for start in range(0, count, BATCH):
                daemon.add(range(start, start + BATCH))
                asked = time.monotonic()
                daemon.status()
                answers.append((time.monotonic() - asked) * 1000)
            added = time.monotonic() - begin - sum(answers) / 1000
            begin = time.monotonic()
            if daemon.list() != count:
                raise SystemExit(f"{kind.name}: not all tasks are there")
            table.add(f"{kind.name}: adding them", added, "s")
            table.add(f"{kind.name}: listing them", time.monotonic() - begin, "s")
            table.add(f"{kind.name}: resident memory", memory_of(daemon.process), "MiB", 100.0 if kind is Agent else None)
            table.add(f"{kind.name}: threads", len(os.listdir(f"/proc/{daemon.process.pid}/task")), "", None, "{:,.0f}")
            table.spread(f"{kind.name}: status, beside the adding", answers, "ms", 50.0 if kind is Agent else None)
        finally:
            daemon.end()
            place.drop()
    table.notes.append("tarn writes each batch to its disk before it answers; aria2 keeps its tasks in memory")
    return table
