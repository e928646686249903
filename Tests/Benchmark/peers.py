"""The tools that are run side by side: Tarn, the floor, and what Debian has that could do the work, each with the flags with
which it was fastest here, and each with what it does not do."""
import dataclasses
import os
import shutil
import subprocess


@dataclasses.dataclass(frozen=True)
class Job:
    """What is to be done: `files` (a data.FileSet) is to lie in `out`, from `base` (the server's URL, http or https);
    `port` is the server's for plain HTTP, `authority` a PEM file or None, `lists` the directory of what `write_lists` writes."""
    files: object
    out: str
    base: str
    port: int
    authority: str | None
    lists: str
    manifest: str = "manifest.ndjson"

    @property
    def feed(self):
        return f"{self.base}/{self.files.name}/{self.manifest}"

    @property
    def root(self):
        return f"{self.base}/{self.files.name}/files/"

    def list(self, kind):
        return os.path.join(self.lists, f"{self.files.name}.{kind}.{'tls' if self.authority else 'plain'}")

    def is_one(self):
        return len(self.files.paths) == 1


def write_lists(job):
    """The input files of curl, wget2 and aria2; `out` of the job is where curl's second visit looks for times."""
    with open(job.list("curl-again"), "w", encoding="ascii") as again:
        # A time condition holds for one operation: `next` begins another.
        again.write("next\n".join(f'url = "{job.root}{path}"\noutput = "{job.out}/{path}"\ntime-cond = "{job.out}/{path}"\n'
                                  for path in job.files.paths))
    with open(job.list("curl"), "w", encoding="ascii") as curl, open(job.list("wget2"), "w", encoding="ascii") as wget2, \
            open(job.list("aria2"), "w", encoding="ascii") as aria2:
        for path, digest in zip(job.files.paths, job.files.digests):
            curl.write(f'url = "{job.root}{path}"\noutput = "{path}"\n')
            wget2.write(f"{job.root}{path}\n")
            aria2.write(f"{job.root}{path}\n  out={path}\n  checksum=sha-256={digest}\n")


class Tool:
    """name: as it is called; program: what has to be installed; verifies, syncs, atomic: what it does of what Tarn promises;
    http2: whether it speaks HTTP/2; rounds: at most so many, for its runs are long; again_rounds: the same where nothing is to
    do; keeps: its result outlives a power cut, so that no syncfs has to follow."""
    name = program = ""
    verifies = syncs = atomic = "no"
    http2 = False
    keeps = False
    rounds = again_rounds = None

    def find(self):
        return shutil.which(self.program)

    def version(self):
        lines = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()
        return lines[0].split(" (")[0] if lines else "unknown"

    def fetch(self, job):
        """The command that fills an empty folder."""
        raise NotImplementedError

    def again(self, job):
        """The command that finds nothing to do."""
        raise NotImplementedError


class Tarn(Tool):
    name = "tarn"
    verifies, syncs, atomic, http2, keeps = "SHA-256", "files, names and ledger", "yes", True, True

    def __init__(self, program, name="tarn"):
        self.program, self.name = program, name

    def fetch(self, job):
        authority = ["--cacert", job.authority] if job.authority else []
        # Peers do not keep the list either.
        return [self.program, "sync", "--quiet", "--no-input", "--no-keep-list", *authority, job.feed, job.out]

    def again(self, job):
        return [self.program, "sync", "--quiet", "--no-input", job.out]


class Floor(Tool):
    name = "floor"
    verifies, syncs, atomic, keeps = "SHA-256", "files and names", "yes", True

    def __init__(self, program):
        self.program = program

    def version(self):
        return "Tests/Benchmark/floor.c"

    def fetch(self, job):
        name = job.files.name
        return [self.program, "fetch", str(job.port), f"{name}/manifest.ndjson", f"{name}/files/", job.out]

    def check(self, job, ledger):
        """The command that finds nothing to do, with a ledger that Tarn wrote."""
        return [self.program, "check", str(job.port), f"{job.files.name}/manifest.ndjson", ledger, job.out]


class Curl(Tool):
    name = program = "curl"
    http2 = True

    def fetch(self, job):
        # Over HTTP/2 transfers wait for a connection that they can share; over HTTP/1.1 8 connections were the fastest.
        how = ["--cacert", job.authority, "--http2", "--parallel-max", "100"] if job.authority else \
            ["--parallel-max", "8", "--parallel-immediate"]
        return ["curl", "--disable", "--silent", "--show-error", "--fail", "--parallel", *how, "--create-dirs", "--output-dir",
                job.out, "--config", job.list("curl")]

    def again(self, job):
        return ["curl", "--disable", "--silent", "--show-error", "--fail", "--parallel", "--parallel-max", "8",
                "--parallel-immediate", "--config", job.list("curl-again")]


class Aria2(Tool):
    name, program = "aria2", "aria2c"
    verifies, syncs, atomic = "SHA-256", "files (fsync), not names", "no"
    rounds = 3

    def fetch(self, job):
        streams = "4" if job.is_one() else "1"
        return ["aria2c", "--no-conf", "--quiet", "--file-allocation=none", "--auto-save-interval=0", "-j16", f"-x{streams}",
                f"-s{streams}", *([f"--ca-certificate={job.authority}"] if job.authority else []), "-d", job.out, "-i",
                job.list("aria2")]

    def again(self, job):
        return ["aria2c", "--no-conf", "--quiet", "-j16", "-x1", "-s1", "--conditional-get=true", "--allow-overwrite=true",
                "--auto-file-renaming=false", "-d", job.out, "-i", job.list("aria2")]


class HashingAria2(Aria2):
    """Goes by the digests of what lies there, and not by dates."""
    again_rounds = 1

    def again(self, job):
        return ["aria2c", "--no-conf", "--quiet", "-j16", "-x1", "-s1", "--check-integrity=true", "--hash-check-only=true",
                "--use-head=true", "--auto-file-renaming=false", "-d", job.out, "-i", job.list("aria2")]


class Wget2(Tool):
    name = program = "wget2"
    http2 = True

    def fetch(self, job):
        authority = [f"--ca-certificate={job.authority}", "--http2-request-window=100"] if job.authority else []
        return ["wget2", "--quiet", "--no-robots", "--max-threads=8", *authority, "--force-directories", "--no-host-directories",
                "--cut-dirs=2", "--directory-prefix", job.out, "--input-file", job.list("wget2")]

    def again(self, job):
        fetch = self.fetch(job)
        return [*fetch[:1], "--timestamping", *fetch[1:]]


class Rclone(Tool):
    name = program = "rclone"
    http2 = True

    def fetch(self, job):
        authority = ["--ca-cert", job.authority] if job.authority else []
        # Knowing the size of a large file it fetches it in parts at once; asking for those of many small ones costs more.
        head = [] if job.is_one() else ["--http-no-head"]
        return ["rclone", "copy", "--config", "", *authority, "--transfers", "64", "--checkers", "64", *head,
                "--no-traverse", "--http-url", job.root, ":http:", job.out]

    def again(self, job):
        return ["rclone", "copy", "--config", "", "--checkers", "16", "--http-no-head", "--ignore-existing", "--http-url",
                job.root, ":http:", job.out]


class Lftp(Tool):
    name = program = "lftp"

    def fetch(self, job):
        if job.is_one():
            path = job.files.paths[0]
            return ["lftp", "-c", f"set cmd:fail-exit yes; get {job.root}{path} -o {job.out}/{os.path.basename(path)}"]
        return ["lftp", "-c", f"set net:connection-limit 0; mirror --parallel=16 {job.root} {job.out}"]

    def again(self, job):
        return self.fetch(job)


PEERS = [Curl(), Aria2(), Wget2(), Rclone(), Lftp()]
