#!/usr/bin/env python3
"""Every behaviour of the scripted server against a whole pass of Tarn, fresh and resumed, with and without a digest.

For each behaviour of behaviours.json, four runs of `tarn sync`, each beside 20 healthy files of the same server:

  fresh    an empty folder                     digest   a manifest with sizes and SHA-256
  resumed  a pass was killed at 3 MiB of 5     none     a list of URLs, nothing known

A behaviour that is a rung of the ladder ("ladder": true) is tried with every kind of feed that gives no digest, too: text, XML and
JSON with hints of size and type, and directory indexes with rounded and with exact sizes.

Each run has to
  - leave nothing under the final name but the wanted bytes; without a digest: one whole answer of the server, never
    parts of two
  - finish all healthy files
  - end with 0 when the entry is "ok", else with 3 and the stated reason code
  - end within the stated seconds (20 if not stated), and GRACE more for a busy machine

A behaviour with a "disk" gets a tmpfs of that size, so that what never ends meets a limit; without root such a
case is left out, and said so.

What is stated is "expect" in behaviours.json: {"fresh-digest": "ok", ...}; "*" stands for all that are not named.
Prints `server grid: enumerated N, reached M, violated V`; ends with 1 on a violation.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.path.join(HERE, "ScriptedServer", "scripted_server.py")
BEHAVIOURS = os.path.join(HERE, "ScriptedServer", "behaviours.json")
HEALTHY, HEALTHY_SIZE = 20, 65536
# Those that the ladder is tried with beside "digest" and "none".
KINDS = ["sums", "sfv", "aria2", "rss", "atom", "jsonfeed", "metalink", "apache", "nginx"]
SIZES = {"fresh": 200_000, "resumed": 5 << 20}
PRIMED = 3 << 20
SECONDS, GRACE = 20, 40


def stream(seed, size):
    blocks = (hashlib.sha256(f"{seed}:{index}".encode()).digest() for index in range((size + 31) // 32))
    return b"".join(blocks)[:size]


class Certificates:
    """One authority, and leaves of every kind, by openssl."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = self.path("authority.pem")
        self.run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=grid", "-keyout",
                 self.path("authority.key"), "-out", self.authority)
        self.leaves = [self.leaf("good"), self.leaf("untrusted", signed=False),
                       self.leaf("expired", dates=True), self.leaf("other-host", name="IP:127.9.9.9")]

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def leaf(self, kind, name="IP:127.0.0.1", signed=True, dates=False):
        key, request, cert, extension = (self.path(kind + end) for end in (".key", ".csr", ".pem", ".ext"))
        with open(extension, "w", encoding="utf-8") as stream:
            stream.write(f"subjectAltName={name}\n")
        self.run("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=leaf", "-keyout", key, "-out", request)
        # openssl 3.0 cannot give a past end; a life of zero days has ended a moment later.
        days = ["-days", "0"] if dates else ["-days", "30"]
        signer = ["-CA", self.authority, "-CAkey", self.path("authority.key"), "-CAcreateserial"] if signed \
            else ["-signkey", key]
        self.run("x509", "-req", "-in", request, "-extfile", extension, "-out", cert, *days, *signer)
        return kind, cert, key


class Server:
    def __init__(self, directory):
        self.certificates = Certificates(directory)
        self.documents = os.path.join(directory, "documents")
        os.mkdir(self.documents)
        leaves = [part for _, cert, key in self.certificates.leaves for part in ("--cert", cert, "--key", key)]
        self.process = subprocess.Popen([sys.executable, SERVER, "--documents", self.documents, *leaves], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        ports = self.process.stdout.readline().split()[1:]
        self.plain = f"http://127.0.0.1:{ports[0]}"
        self.tls = {leaf[0]: f"https://127.0.0.1:{port}" for leaf, port in zip(self.certificates.leaves, ports[2:])}

    def stop(self):
        self.process.stdin.close()
        self.process.wait(120)


class Case:
    def __init__(self, behaviour, mode, feed):
        self.behaviour, self.mode, self.feed = behaviour, mode, feed
        self.name = f"{behaviour['name']} {mode}-{feed}"
        self.size = SIZES[mode]
        self.seed = hashlib.sha256(self.name.encode()).hexdigest()[:12]
        expect = behaviour.get("expect", {})
        self.expected = expect.get(f"{mode}-{feed}", expect.get(mode, expect.get(feed, expect.get("*", "ok"))))
        self.seconds = behaviour.get("seconds", SECONDS)
        self.disk = behaviour.get("disk")

    def url(self, server):
        base = server.tls[self.behaviour["tls"]] if "tls" in self.behaviour else server.plain
        prefix = "resumed~" if self.mode == "resumed" else ""
        return f"{base}/{prefix}{self.behaviour['name']}/{self.seed}/{self.size}/file.bin"

    def whole_answers(self):
        """Digests of the bodies that the server means as a whole, as they are on the wire."""
        bodies = []
        for phase in [{}] + self.behaviour["phases"]:
            if phase.get("body") is not None:
                bodies.append(phase["body"].encode())
            version = phase.get("version", 1)
            body = stream(self.seed if version == 1 else f"{self.seed}.v{version}", self.size)
            bodies.append(body)
            if phase.get("length") == "shorter":
                bodies.append(body[:-10])
            if phase.get("length") == "none" and phase.get("cut"):
                bodies.append(body[:phase["cut"]])
        return {hashlib.sha256(body).hexdigest() for body in bodies}


class Run:
    """One case in a directory of its own."""

    def __init__(self, case, server, tarn, directory):
        self.case, self.server, self.tarn = case, server, tarn
        self.directory = tempfile.mkdtemp(dir=directory)
        self.folder = os.path.join(self.directory, "mirror")
        self.violations = []
        self.healthy = HEALTHY
        if case.disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={case.disk}", "tmpfs", self.directory], check=True)

    def write_feed(self):
        case, lines = self.case, []
        healthy = [(f"healthy-{number}.bin", f"{case.seed}h{number}", HEALTHY_SIZE,
                    f"{self.server.plain}/ok/{case.seed}h{number}/{HEALTHY_SIZE}/healthy-{number}.bin")
                   for number in range(HEALTHY)]
        entries = healthy + [("file.bin", case.seed, case.size, case.url(self.server))]
        if case.feed in KINDS:
            return self.write_kind(entries)
        if case.feed == "none":
            feed = os.path.join(self.directory, "urls.txt")
            lines = [entry[3] for entry in entries]
        else:
            feed = os.path.join(self.directory, "feed.ndjson")
            lines = [json.dumps({"header": {"format": "mirror-manifest/1", "complete": True}})]
            for path, seed, size, url in entries:
                digest = hashlib.sha256(stream(seed, size)).hexdigest()
                lines.append(json.dumps({"path": path, "size": size, "hashes": {"sha-256": digest}, "url": [{"url": url}]}))
            lines.append(json.dumps({"end": {"files": len(entries)}}))
        with open(feed, "w", encoding="utf-8") as stream_:
            stream_.write("".join(line + "\n" for line in lines))
        return feed

    def write_kind(self, entries):
        """A feed of another kind: of the sick file alone where it names files below itself, else of all."""
        case = self.case
        url, base = entries[-1][3], entries[-1][3].rsplit("/", 1)[0] + "/"
        digest = hashlib.sha256(stream(case.seed, case.size)).hexdigest()
        rounded = f"{case.size / 1024:.0f}K" if case.size < 1 << 20 else f"{case.size / (1 << 20):.1f}M"
        row = '<a href="file.bin">file.bin</a>'
        text = {
            "sums": f"{digest}  file.bin\n",
            "sfv": "; made by a test\nfile.bin 0A1B2C3D\n",
            "aria2": f"{url}\n  out=file.bin\n",
            "rss": '<rss version="2.0"><channel><title>t</title>' + "".join(
                f'<item><title>{path[:-4]}</title><guid>{path}</guid><enclosure url="{address}" length="{size - 7}" '
                'type="application/octet-stream"/></item>' for path, _, size, address in entries) + "</channel></rss>",
            "atom": '<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><id>t</id>' + "".join(
                f'<entry><title>{path[:-4]}</title><id>{path}</id><link rel="enclosure" length="{size + 5}" href="{address}"/>'
                "</entry>" for path, _, size, address in entries) + "</feed>",
            "jsonfeed": json.dumps({
                "version": "https://jsonfeed.org/version/1.1", "title": "t",
                "items": [{"id": path, "title": path[:-4], "attachments": [
                    {"url": address, "mime_type": "application/octet-stream", "size_in_bytes": size}]}
                    for path, _, size, address in entries]}),
            "metalink": '<metalink xmlns="urn:ietf:params:xml:ns:metalink">' + "".join(
                f'<file name="{path}"><url>{address}</url></file>' for path, _, size, address in entries) + "</metalink>",
            "apache": f'<html><head><title>Index of /d</title></head><body><h1>Index of /d</h1><pre>'
                      '<a href="?C=N;O=D">Name</a> <a href="?C=M;O=A">Last modified</a> <a href="?C=S;O=A">Size</a>  '
                      f'<hr><a href="/">Parent Directory</a>   -\n{row}  2026-01-01 00:00  {rounded}\n<hr></pre></body></html>',
            "nginx": f'<html><head><title>Index of /d/</title></head><body><h1>Index of /d/</h1><hr><pre>'
                     f'<a href="../">../</a>\n{row}   01-Jan-2026 00:00   {case.size}\n</pre><hr></body></html>',
        }[case.feed]
        if case.feed in ("sums", "sfv", "apache", "nginx", "aria2"):
            self.healthy = 0
        if case.feed in ("sums", "sfv", "apache", "nginx"):
            name = {"sums": "SHA256SUMS", "sfv": "list.sfv"}.get(case.feed, "")
            with open(os.path.join(self.server.documents, f"{case.seed}~{name}"), "w", encoding="utf-8") as stream_:
                stream_.write(text)
            return base + name
        feed = os.path.join(self.directory, "feed")
        with open(feed, "w", encoding="utf-8") as stream_:
            stream_.write(text)
        return feed

    def start(self, feed):
        arguments = [self.tarn, "sync", feed, self.folder, "--no-input", "--json", "--retries", "1", "--cacert",
                     self.server.certificates.authority, "--connections-per-host", "16", "--reserve", "0"]
        return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env={"PATH": "/usr/bin:/bin", "HOME": self.directory, "LC_ALL": "C.UTF-8"})

    def largest_partial(self):
        try:
            with os.scandir(os.path.join(self.folder, ".tarn", "partial")) as entries:
                return max((entry.stat().st_size for entry in entries), default=0)
        except OSError:
            return 0

    def prime(self, feed):
        """A pass that is killed with 3 MiB of the file at hand; True when it was."""
        process = self.start(feed)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            healthy = sum(os.path.exists(os.path.join(self.folder, f"healthy-{n}.bin")) for n in range(self.healthy))
            if self.largest_partial() >= PRIMED and healthy == self.healthy:
                break
            time.sleep(0.02)
        was_running = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return was_running and self.largest_partial() >= PRIMED

    def judge(self, status, output, errors, seconds):
        case = self.case
        try:
            summary = [json.loads(line) for line in output.splitlines() if line.startswith("{")][-1]
        except (IndexError, ValueError):
            return self.violations.append(f"no summary (status {status}): {errors.strip()[-300:]}")
        problems = {problem["path"]: problem for problem in summary.get("problems") or []}
        code = problems.get("file.bin", {}).get("code", "ok")
        if code != case.expected:
            message = problems.get("file.bin", {}).get("message", "")
            self.violations.append(f"ended as {code}, not {case.expected}: {message}")
        if status != (0 if code == "ok" else 3):
            self.violations.append(f"exit status {status} with {code}")
        if seconds > case.seconds + GRACE:
            self.violations.append(f"took {seconds:.1f} s, {case.seconds} stated")
        self.judge_files(code)

    def judge_files(self, code):
        case = self.case
        sick = [number for number in range(self.healthy) if self.digest(f"healthy-{number}.bin")
                != hashlib.sha256(stream(f"{case.seed}h{number}", HEALTHY_SIZE)).hexdigest()]
        if sick:
            self.violations.append(f"{len(sick)} of the {self.healthy} healthy files are not what they should be")
        found = self.digest("file.bin")
        wanted = {hashlib.sha256(stream(case.seed, case.size)).hexdigest()} if case.feed in ("digest", "sums") \
            else case.whole_answers()
        if found is not None and found not in wanted:
            size = os.path.getsize(os.path.join(self.folder, "file.bin"))
            self.violations.append(f"WRONG BYTES under the final name ({size} bytes)")
        if (found is not None) != (code == "ok"):
            self.violations.append(f"ended as {code}, and the file is {'there' if found else 'missing'}")

    def digest(self, name):
        try:
            with open(os.path.join(self.folder, name), "rb") as stream_:
                return hashlib.file_digest(stream_, "sha256").hexdigest()
        except OSError:
            return None

    def go(self):
        try:
            feed = self.write_feed()
            if self.case.mode == "resumed" and not self.prime(feed):
                return False, 0.0, ["not reached: the first pass could not be killed at 3 MiB"]
            begin = time.monotonic()
            process = self.start(feed)
            try:
                output, errors = process.communicate(timeout=self.case.seconds + 120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return True, time.monotonic() - begin, [f"still running after {self.case.seconds + 120} s"]
            seconds = time.monotonic() - begin
            self.judge(process.returncode, output, errors, seconds)
            return True, seconds, self.violations
        finally:
            if self.case.disk:
                subprocess.run(["umount", "-l", self.directory], check=False)
            shutil.rmtree(self.directory, ignore_errors=True)


def can_mount():
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            subprocess.run(["umount", "-l", place], check=False)
        return done.returncode == 0


def cases_of(arguments):
    with open(BEHAVIOURS, encoding="utf-8") as stream_:
        behaviours = json.load(stream_)
    names = set(arguments.only.split(",")) if arguments.only else None
    cases, mounts = [], can_mount()
    for behaviour in behaviours:
        if behaviour.get("disk") and not mounts:
            print(f"left out: {behaviour['name']}: needs root and tmpfs")
            continue
        if names is not None and behaviour["name"] not in names:
            continue
        for mode in ("fresh", "resumed"):
            # The beginning of a resumed file has to come from a server that can be spoken to.
            if mode == "resumed" and behaviour.get("tls", "good") != "good":
                continue
            for feed in ["digest", "none"] + (KINDS if behaviour.get("ladder") else []):
                case = Case(behaviour, mode, feed)
                if not arguments.quick or case.seconds <= SECONDS:
                    cases.append(case)
    if arguments.points and arguments.points < len(cases):
        cases = [cases[number * len(cases) // arguments.points] for number in range(arguments.points)]
    return len(behaviours), cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", required=True)
    parser.add_argument("--only", help="names of behaviours, separated by commas")
    parser.add_argument("--quick", action="store_true", help="leave out what has to wait for a time-out")
    parser.add_argument("--points", type=int, help="only so many runs, spread evenly over all")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    count, cases = cases_of(arguments)
    directory = tempfile.mkdtemp(prefix="server-grid-")
    server = Server(directory)
    time.sleep(1.1)  # The certificate that lives for zero days has to end.
    reached, violated, codes = 0, 0, collections.Counter()
    try:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            runs = pool.map(lambda case: (case, Run(case, server, arguments.tarn, directory).go()), cases)
            for case, (was_reached, seconds, violations) in runs:
                reached += was_reached
                violated += bool(violations)
                codes[case.expected] += 1
                for violation in violations:
                    print(f"{case.name}: {violation}", flush=True)
                if arguments.verbose and not violations:
                    print(f"{case.name}: {case.expected} in {seconds:.1f} s", flush=True)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
    print("outcomes: " + ", ".join(f"{code} {number}" for code, number in codes.most_common()))
    print(f"server grid: {count} behaviours, enumerated {len(cases)}, reached {reached}, violated {violated}")
    sys.exit(1 if violated or reached < len(cases) else 0)


if __name__ == "__main__":
    main()
