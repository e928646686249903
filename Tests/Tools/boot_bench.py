"""What the checks of the boot test share: commands, waiting, the feeds, and the lines of the results. Runs in the booted root."""
import hashlib
import json
import os
import pwd
import re
import subprocess
import time
import traceback

PATIENCE = 120  # Seconds for what is to happen at all.
FEEDS = "/srv/feeds"
PORT = 8080
BASE = f"http://127.0.0.1:{PORT}"
LOG = "/run/feeds.log"
GATE = "/run/feeds.open"
# What the server holds up after 3 MiB, until the gate is open.
HELD = {"large.bin": bytes(range(256)) * (20 << 10)}
LARGE = "/held/large.bin"
SECRET = "c4nary-7f3a9e-hidden"


def check(name, good, detail=""):
    """One line of the results; the detail is shown when it failed."""
    line = ("ok " if good else "FAILED ") + name
    if not good and str(detail):
        line += ": " + " | ".join(str(detail).strip().splitlines())[-1500:]
    print(line, flush=True)
    return bool(good)


def section(function):
    """A section that breaks off is a failed check; the next ones go on."""
    try:
        function()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        check(f"{function.__name__} to its end", False, f"{error!r} at line {where.lineno}: {where.line}")


class Done:
    def __init__(self, status, output, errors):
        self.status, self.output, self.errors = status, output, errors

    def __str__(self):
        return f"status {self.status}\n{self.output}\n{self.errors}"


def run(command, user=None, limit=PATIENCE, cwd="/", environment=None):
    """A command of words, or a line for the shell; as another user with a login's environment."""
    words = ["bash", "-c", command] if isinstance(command, str) else list(command)
    variables = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"}
    if user:
        variables.update(HOME=pwd.getpwnam(user).pw_dir, USER=user, LOGNAME=user)
    variables.update(environment or {})
    if user:
        words = ["runuser", "-u", user, "--", "env", "-i"] + [f"{k}={v}" for k, v in variables.items()] + words
    try:
        done = subprocess.run(words, capture_output=True, timeout=limit, cwd=cwd, env=variables, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Done(-1, "", f"no end within {limit} s: {command}")
    return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def wait_until(condition, limit=PATIENCE):
    """Polls until the condition is true; gives its last value."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(0.1)


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return None


def publish(name, files):
    """A feed: the files, as bytes by name, and their SHA256SUMS."""
    for path, body in files.items():
        os.makedirs(f"{FEEDS}/{name}", exist_ok=True)
        with open(f"{FEEDS}/{name}/{path}", "wb") as file:
            file.write(body)
    lines = [f"{hashlib.sha256(body).hexdigest()}  {path}\n" for path, body in files.items()]
    write(f"{FEEDS}/{name}/SHA256SUMS", "".join(lines))
    return f"{BASE}/{name}/SHA256SUMS"


def requests(path):
    """(status, first byte) of the answers for a path so far."""
    lines = [line.split() for line in (read(LOG) or "").splitlines()]
    return [(int(status), int(first)) for status, found, first in lines if found == path]


def show(name, unit="tarn.service", *options):
    """One property of a unit."""
    return run(["systemctl", *options, "show", "--value", "-p", name, unit]).output.strip()


def pid():
    return int(show("MainPID") or 0)


def status(*words, user=None):
    """The document of `tarn status --json`; its mirrors by name."""
    done = run(["tarn", "status", "--json", *words], user)
    document = json.loads(done.output) if done.output.strip() else {}
    document["by_name"] = {mirror["name"]: mirror for mirror in document.get("mirrors", [])}
    return document


def mirror(name):
    return status()["by_name"].get(name, {})


def in_sync(name, limit=PATIENCE):
    return wait_until(lambda: (mirror(name).get("lastRun") or {}).get("code") == "in-sync", limit)


def held_up():
    """The large file has come up to where the server holds it."""
    return wait_until(lambda: any(
        t["received"] >= 2 << 20 for t in mirror("held").get("transfers", [])))


def goes_on(name, before, count):
    """Another process, which goes on with the transfer where the last one was."""
    check(f"{name}: another process runs", wait_until(lambda: pid() not in (0, before)), pid())
    check(f"{name}: it answers", wait_until(lambda: run(["tarn", "status"]).status == 0))
    again = wait_until(lambda: len(requests(LARGE)) > count)
    check(f"{name}: the transfer goes on by itself, at most 1 MiB before its end",
          again and requests(LARGE)[-1][0] == 206 and requests(LARGE)[-1][1] >= 2 << 20,
          (requests(LARGE), mirror("held")))


def journal(*match):
    """Entries of the journal as documents; one that is older than the first boot's begin is not there."""
    run(["journalctl", "--sync"])
    done = run(["journalctl", "-o", "json", "--no-pager", *match])
    return [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]


def modes(path):
    """`0660 root:tarn`, or None."""
    done = run(["stat", "-c", "%04a %U:%G", path])
    return done.output.strip() or None


def drop_in(name, text, unit="tarn.service"):
    write(f"/etc/systemd/system/{unit}.d/{name}.conf", text)
    run(["systemctl", "daemon-reload"])


def take_away(path):
    if os.path.exists(path):
        os.unlink(path)


def page_block(title):
    """The commands of the page's fenced block after the line that begins with the title."""
    text = read("/src/tarn/packaging/INSTALL.md").split("\n" + title, 1)[1]
    return re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1)
