"""What the grids share: a real server, the scenarios, and passes that are run, traced, killed or held still at one
system call. Linux, strace and nginx are needed.

Scenarios, each a state of the folder and a pass over it:
  fresh      an empty folder
  update     half of the files changed upstream, one edited by the user
  resume     a large file half there, left by a kill
  few        an empty folder, and so few files that each is made durable by itself
  large      an empty folder, and one file that is made durable several times while it arrives
  delete     two files gone upstream, --delete
  conflict   a link, a FIFO, a directory and a file of the user's where the feed wants files, a link where it wants a
             directory, an edited file, a file that fits (--adopt), and more files gone than may be deleted (--delete)
  migration  as update, with a ledger of the schema before the newest (see OLDER)
"""
import collections
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import urllib.parse

import trace_order

# write, openat and openat2 are traced whole, since strace's count is over all of them; only those that touch the
# folder are points.
CALLS = ["openat", "openat2", "write", "pwrite64", "writev", "pwritev", "pwritev2", "copy_file_range", "sendfile",
         "fsync", "fdatasync", "syncfs", "sync_file_range", "ftruncate", "fallocate", "rename", "renameat",
         "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "symlinkat", "utimensat",
         "fchmod", "fchmodat", "fchown", "fsetxattr"]
LIMIT = 180  # Seconds for one pass, traced or not.
PATIENCE = 120  # Seconds for what is to happen at all.


class Server:
    """An nginx of its own, one process, whose document root is a link that can be turned to another version."""

    def __init__(self, directory):
        self.directory = directory
        self.root = os.path.join(directory, "current")
        self.log = os.path.join(directory, "access.log")
        for _ in range(10):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            if self.start():
                return
        raise SystemExit("nginx did not start")

    def start(self):
        temporary = " ".join(f"{kind}_temp_path {self.directory}/{kind};"
                             for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration = f"""daemon off; master_process off; pid {self.directory}/nginx.pid;
error_log {self.directory}/error.log warn; events {{ worker_connections 512; }}
http {{ default_type application/octet-stream; {temporary}
log_format plain '$status $body_bytes_sent $request_method $request_uri';
access_log {self.log} plain;
server {{ listen 127.0.0.1:{self.port}; root {self.root}; location ~ \\.slow$ {{ limit_rate 1; }}
location ~ \\.locked$ {{ if ($http_authorization = "") {{ return 401; }} }} }} }}"""
        with open(os.path.join(self.directory, "nginx.conf"), "w", encoding="utf-8") as stream:
            stream.write(configuration)
        self.process = subprocess.Popen(["nginx", "-p", self.directory, "-c", f"{self.directory}/nginx.conf",
                                         "-e", f"{self.directory}/error.log"])
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.02)
        self.stop()
        return False

    def turn_to(self, version):
        temporary = self.root + ".new"
        os.symlink(version, temporary)
        os.replace(temporary, self.root)

    def marker(self):
        """How much the log holds now: asks for a name of its own and waits until the log has it, so that all
        requests before it are there."""
        name = f"/{random.getrandbits(64):x}"
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(f"HEAD {name} HTTP/1.0\r\n\r\n".encode())
            while connection.recv(4096):
                pass
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with open(self.log, encoding="utf-8", errors="replace") as stream:
                text = stream.read()
            if name in text:
                return len(text)
        raise SystemExit("the server's log does not move")

    def bodies_between(self, begin, end):
        """(path, bytes) of what was sent between two markers, the feed itself aside."""
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            lines = stream.read()[begin:end].splitlines()
        fields = [line.split(" ", 3) for line in lines]
        return [(urllib.parse.unquote(f[3][1:]), int(f[1])) for f in fields
                if f[2] == "GET" and f[0] in ("200", "206") and not f[3].endswith("SHA256SUMS")]

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def identity(data):
    return [len(data), hashlib.sha256(data).hexdigest()]


def publish(directory, files, before=None, former=None):
    """Writes files and their SHA256SUMS, and returns that list, which is mirrored, too. The paths have no characters
    that such a list would escape. What is the same in the directory before is a link to it, so that the server gives
    it the same validators."""
    for path, data in files.items():
        full = os.path.join(directory, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if before and former.get(path) == data:
            os.link(os.path.join(before, path), full)
            continue
        with open(full, "wb") as stream:
            stream.write(data)
    sums = "".join(f"{identity(files[path])[1]}  {path}\n" for path in sorted(files)).encode()
    with open(os.path.join(directory, "SHA256SUMS"), "wb") as stream:
        stream.write(sums)
    return sums


# Schema version -> the statements that turn its ledger back into one of the version before it, exactly. A new schema
# gets its line here; a ledger of another version has no migration to be killed in, and the scenario says so. What is turned
# back is turned back to version 2: what came after it took most statements.
OLDER = {
    3: "ALTER TABLE rows DROP COLUMN adopted; ALTER TABLE intents DROP COLUMN adopted;"
       "ALTER TABLE trash DROP COLUMN changed; ALTER TABLE trash DROP COLUMN modified;"
       "ALTER TABLE trash DROP COLUMN inode; ALTER TABLE trash DROP COLUMN device;"
       "UPDATE trash SET own = reason <> 'edited'",
    4: "CREATE INDEX IF NOT EXISTS rows_by_digest ON rows (digest)",
    5: "DROP TABLE intent_groups; DROP INDEX deletions; CREATE INDEX events_by_code ON events (code, moment);"
       "CREATE INDEX events_by_path ON events (path) WHERE path IS NOT NULL",
}
OLD = 2


class Skipped(Exception):
    """A scenario that cannot be made with this Tarn; the text says why."""


class Scenario:
    """What is upstream first and then, what the folder goes through before the pass under test, and what may be in
    it after. The bytes are the same for the same seed.

    versions, final: path hex -> [[size, sha256], ...]; users: as check_tree.py has them; most_removed: how many files
    a pass may take away; status, problems, held: how a pass that has converged ends and what it names.
    """

    def __init__(self, name, seed, scratch):
        chooser = random.Random(seed)
        self.name, self.options, self.users, self.edited = name, [], [], None
        self.status, self.problems, self.held, self.most_removed = 0, {}, 0, 0
        self.has_first_pass = name in ("update", "delete", "conflict", "migration")
        first = {f"dir{n % 3}/sub{n % 5}/file {n:02}.bin": chooser.randbytes(chooser.choice([0, 700, 5000, 90_000]))
                 for n in range(30)}
        if name == "resume":
            first = {f"small{n}.bin": chooser.randbytes(5000) for n in range(4)}
            first["large.bin"] = chooser.randbytes(32 << 20)
        if name == "few":
            first = {f"dir/few{n}.bin": chooser.randbytes(5000) for n in range(2)}
        if name == "large":
            first = {"large.bin": chooser.randbytes(96 << 20)}
        then = dict(first)
        if name in ("update", "migration"):
            for path in sorted(first)[::2]:
                then[path] = chooser.randbytes(len(first[path]) + 17)
            then["new/one.bin"] = chooser.randbytes(3000)
            self.edit(sorted(first)[3])
        if name == "delete":
            self.options, self.most_removed = ["--delete"], max(1, len(first) // 10)
            for path in sorted(first)[4:6]:
                del then[path]
        if name == "conflict":
            self.obstruct(chooser, first, then)
        self.first, self.then = os.path.join(scratch, "first"), os.path.join(scratch, "then")
        lists = [publish(self.first, first), publish(self.then, then, self.first, first)]
        self.versions, self.final = {}, {}
        for path in {**first, **then}:
            versions = [identity(files[path]) for files in (first, then) if path in files]
            self.versions[path.encode().hex()] = versions
            stays = self.held and path not in then
            wanted = versions if stays else [identity(then[path])] if path in then else []
            self.final[path.encode().hex()] = [] if path in self.problems else wanted
        self.versions[b"SHA256SUMS".hex()] = [identity(sums) for sums in lists]
        self.final[b"SHA256SUMS".hex()] = [identity(lists[1])]
        self.sizes = {path: len(data) for path, data in then.items()}

    def edit(self, path):
        self.edited = path
        self.users.append([path.encode().hex(), *identity(b"edited by hand\n")])

    def obstruct(self, chooser, first, then):
        """What a user put in the way, and what a pass has to say of each."""
        self.options = ["--delete", "--adopt"]
        then.update({f"way/{name}": chooser.randbytes(4000) for name in ("link", "fifo", "directory", "other", "fits")})
        then["linked/inside.bin"] = chooser.randbytes(4000)
        for path in sorted(first)[1::4]:
            then[path] = chooser.randbytes(len(first[path]) + 17)
        self.edit(sorted(first)[5])
        for path in sorted(first)[8:28:4] + sorted(first)[10:28:8]:
            del then[path]
            self.held += 1
        self.obstacles = {"way/link": ("link", "../../../user/canary"), "way/fifo": ("fifo", ""),
                          "way/directory": ("directory", ""), "way/directory/mine": b"of the user\n",
                          "way/other": b"another file of the user\n", "way/fits": then["way/fits"],
                          "linked": ("link", "../../user")}
        for path, what in self.obstacles.items():
            self.users.append([path.encode().hex(), *(identity(what) if isinstance(what, bytes) else what)])
        self.status = 3
        self.problems = {"way/link": "link-in-the-way", "way/fifo": "special-file-in-the-way",
                         "way/directory": "directory-in-the-way", "way/other": "foreign-file",
                         "linked/inside.bin": "parent-not-a-directory"}

    def hand(self, folder):
        """What the user does between the first pass and the one under test; durable, as far as it is a file."""
        for path, what in {**({self.edited: b"edited by hand\n"} if self.edited else {}),
                           **getattr(self, "obstacles", {})}.items():
            full = os.path.join(folder, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            if isinstance(what, bytes):
                with open(full, "wb") as stream:
                    stream.write(what)
                    stream.flush()
                    os.fsync(stream.fileno())
            elif what[0] == "link":
                os.symlink(what[1], full)
            elif what[0] == "fifo":
                os.mkfifo(full)
            else:
                os.mkdir(full)


def turn_back(ledger):
    """Makes the ledger one of schema 2."""
    connection = sqlite3.connect(ledger, isolation_level=None)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in OLDER:
        connection.close()
        raise Skipped(f"the ledger is of schema {version}, and no older one is known that it could be turned back to")
    steps = "; ".join(OLDER[number] for number in range(version, OLD, -1))
    connection.executescript(f"BEGIN; {steps}; PRAGMA user_version = {OLD}; COMMIT;")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


class Frozen:
    """A pass that is held still right before one of its calls takes effect: the call is left out, and the process
    stops with all its threads. It is never let go on; `kill` ends it as kill -9 does."""

    def __init__(self, worker, folder, point, output=subprocess.DEVNULL):
        name, number = point
        self.log, self.leader = os.path.join(worker.directory, "frozen"), None
        with open(self.log, "w", encoding="utf-8"):
            pass
        inject = f"inject={name}:error=EINTR:signal=SIGSTOP:when={number}"
        self.process = subprocess.Popen(
            # All calls, as where the points were counted: a pass at another pace shares its work otherwise.
            ["strace", "-f", "-qq", "-e", "signal=SIGSTOP", "-e", "trace=" + ",".join(CALLS), "-e", inject, "-o", self.log,
             *worker.command(folder)], env=worker.environment, cwd=worker.directory, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL)

    def wait(self):
        """True once all its threads stand still; False when it ended before it came to the call."""
        deadline = time.monotonic() + LIMIT
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
                raise subprocess.TimeoutExpired("a pass that was to be stopped", LIMIT)
            if self.leader is None:
                self.leader = self.find_leader()
            elif self.is_still():
                return True
            time.sleep(0.004)
        return False

    def find_leader(self):
        with open(self.log, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if "stopped by SIGSTOP" in line:
                    with open(f"/proc/{line.split()[0]}/status", encoding="utf-8") as status:
                        return next(text.split()[1] for text in status if text.startswith("Tgid:"))
        return None

    def is_still(self):
        """True when every thread is stopped, and none has run between two looks."""
        def look():
            threads = []
            for thread in os.listdir(f"/proc/{self.leader}/task"):
                with open(f"/proc/{self.leader}/task/{thread}/status", encoding="utf-8") as stream:
                    fields = dict(line.split(":", 1) for line in stream)
                threads.append((thread, fields["State"].strip()[0], fields["voluntary_ctxt_switches"],
                                fields["nonvoluntary_ctxt_switches"]))
            return sorted(threads)
        before = look()
        time.sleep(0.004)
        return before == look() and all(state in "tT" for _, state, _, _ in before)

    def kill(self):
        if self.process.poll() is None:
            if self.leader:
                os.kill(int(self.leader), signal.SIGKILL)
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)


class Worker:
    """Runs passes, one at a time, against a server of its own."""

    def __init__(self, tarn, scenario, scratch):
        self.tarn, self.scenario = tarn, scenario
        self.directory = tempfile.mkdtemp(dir=scratch)
        os.mkdir(os.path.join(self.directory, "server"))
        self.server = Server(os.path.join(self.directory, "server"))
        self.home = os.path.join(self.directory, "user")
        os.mkdir(self.home)
        with open(os.path.join(self.home, "canary"), "w", encoding="utf-8") as stream:
            stream.write("sings\n")
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LC_ALL": "C.UTF-8",
                            "XDG_STATE_HOME": os.path.join(self.directory, "state")}
        self.middle, self.label = None, scenario.name

    def command(self, folder):
        feed = f"http://127.0.0.1:{self.server.port}/SHA256SUMS"
        return [self.tarn, "sync", feed, folder, "--no-input", "--json", "--verbose", *self.scenario.options]

    def run(self, folder, prefix=(), limit=LIMIT, words=None):
        """A pass, or other words of Tarn's. Whoever is over the limit is killed with all its children: a strace alone
        would let its tracee go on."""
        command = [*prefix, *(words or self.command(folder))]
        with subprocess.Popen(command, env=self.environment, cwd=self.directory, start_new_session=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                output, messages = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, output, messages)

    def new_folder(self):
        """One that no list of the user's mirrors knows: a pass makes none anew that was removed."""
        shutil.rmtree(os.path.join(self.directory, "out"), ignore_errors=True)
        shutil.rmtree(self.environment["XDG_STATE_HOME"], ignore_errors=True)
        folder = os.path.join(self.directory, "out", "mirror")
        os.makedirs(folder)
        return folder

    def prepare(self):
        """A new folder, brought to where the pass under test begins. Returns it."""
        scenario = self.scenario
        self.server.turn_to(scenario.first)
        if scenario.name == "resume" and self.middle is None:
            self.middle = self.find_middle(self.new_folder())
        folder = self.new_folder()
        if scenario.has_first_pass:
            self.expect(self.run(folder), 0, "the first pass")
        if scenario.name == "migration":
            turn_back(os.path.join(folder, ".tarn", "ledger.sqlite"))
        scenario.hand(folder)
        if scenario.name == "resume":
            self.kill(folder, self.middle)
        self.server.turn_to(scenario.then)
        return folder

    def find_middle(self, folder):
        """The point in the middle of writing the large file, from a trace of a whole pass."""
        counts, points = collections.Counter(), []
        for call in self.trace(folder):
            counts[call.thread, call.name] += 1
            if call.name in trace_order.WRITES and "/.tarn/partial" in (call.descriptor or ""):
                points.append((call.name, counts[call.thread, call.name]))
        if not points:
            raise SystemExit("no write to a partial file was seen: the resume scenario cannot be made")
        return points[len(points) // 2]

    @staticmethod
    def expect(result, status, what):
        if result.returncode != status:
            raise SystemExit(f"{what} ended with {result.returncode}, not {status}:\n{last_words(result)}")

    def trace(self, folder, keep=None, status=0, words=None):
        """One whole pass, or other words, under strace; its calls in the order in which they began."""
        path = keep or os.path.join(self.directory, "trace")
        result = self.run(folder, ["strace", "-f", "-y", "-qq", "-s", "256", "-e", "signal=none",
                                   "-e", "trace=" + ",".join(CALLS), "-o", path], words=words)
        self.expect(result, status, "the traced pass")
        with open(path, encoding="utf-8", errors="replace") as stream:
            return sorted(trace_order.parse(stream), key=lambda call: call.begin)

    def kill(self, folder, point):
        """True when the pass was killed there. The pass may end before, when its threads share the work otherwise."""
        name, number = point
        result = self.run(folder, ["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=" + ",".join(CALLS), "-o", "/dev/null",
                                   "-e", f"inject={name}:signal=KILL:when={number}"])
        return result.returncode in (-9, 137)

    def points(self):
        """Every changing call of the pass under test, in its order: (call, n-th of its thread)."""
        folder = self.prepare()
        counts, points, seen = collections.Counter(), [], set()
        for call in self.trace(folder, status=self.scenario.status):
            counts[call.thread, call.name] += 1
            point = (call.name, counts[call.thread, call.name])
            if point not in seen and self.changes(call, folder):
                seen.add(point)
                points.append(point)
        return points

    @staticmethod
    def changes(call, folder):
        touched = (call.descriptor or "").startswith(folder) or any(p.startswith(folder) for p in call.paths())
        if call.name in ("openat", "openat2"):
            return touched and "O_CREAT" in call.raw
        return touched

    def converge(self, folder, passes, prefix=()):
        """Passes until one ends as the scenario's have to: (how many, violations). Where entries are in conflict or
        held, the last one has to name each with its code."""
        scenario = self.scenario
        for count in range(1, passes + 1):
            result = self.run(folder, prefix)
            if result.returncode == scenario.status:
                break
        else:
            return passes, [f"I6 {passes} passes, and the last ended with {result.returncode}: {last_words(result)}"]
        return count, [] if self.ended_well(result) else [f"I6 the pass names something else: {last_words(result)}"]

    def ended_well(self, result):
        """True when a pass ended as one has to that did all there is to do: with its status, and with each conflict and
        the number of what is held, and nothing else, in its summary."""
        if result.returncode != self.scenario.status or self.scenario.status == 0:
            return result.returncode == self.scenario.status
        summary = json.loads(result.stdout.splitlines()[-1])
        problems = {problem["path"]: problem["code"] for problem in summary["problems"] if problem["kind"] != "held"}
        return problems == self.scenario.problems and summary["counts"]["held"] == self.scenario.held

    def stop(self):
        self.server.stop()


def last_words(result):
    """The last line that a pass wrote, in one line."""
    lines = (result.stdout + b"\n" + result.stderr).decode(errors="replace").strip().splitlines()
    return lines[-1][:1000] if lines else "it wrote nothing"


def find_tarn(name):
    """The program's absolute path. The tools that all grids use have to be there."""
    if not shutil.which("strace") or not shutil.which("nginx"):
        raise SystemExit("strace and nginx are needed")
    return os.path.abspath(shutil.which(name) or name)


def spread(points, wanted, whole=True):
    """So many of the points, evenly; with `whole` the first of each kind of call is always among them."""
    if len(points) <= wanted:
        return points
    kept = {round(index * (len(points) - 1) / max(1, wanted - 1)) for index in range(wanted)}
    if whole:
        kept |= {next(i for i, p in enumerate(points) if p[0] == name) for name in {p[0] for p in points}}
    return [points[index] for index in sorted(kept)]


def shard(points, which):
    """Those of the K-th of N shards, `which` being "K/N"."""
    first, step = (int(part) for part in which.split("/"))
    return points[first - 1::step]
