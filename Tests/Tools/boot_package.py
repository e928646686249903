"""Checks of the boot test, by boot_checks.py: the Debian package, from its installation to its purge.

/src/deb/before.deb is the version before /src/deb/tarn.deb.
"""
import os
import pty
import select
import time

import boot_bench
from boot_bench import (
    BASE, FEEDS, GATE, HELD, LARGE, PATIENCE, check, goes_on, held_up, in_sync, journal, mirror, modes, pid, publish, read,
    requests, run, show, take_away, wait_until, write)

BEFORE, NOW = "/src/deb/before.deb", "/src/deb/tarn.deb"
QUESTION = b"[yes/no]"
# What is the machine's own, or stays by intent: what is installed leaves its marks there.
AROUND = ("/proc", "/sys", "/dev", "/run", "/tmp", "/src", "/home", "/var/log", "/var/cache", "/var/lib/apt", "/var/lib/dpkg",
          "/var/lib/systemd", "/srv/mirrors", "/srv/feeds", "/etc/.pwd.lock")
# Whoever saw them is known to the system for ever: no user is deleted.
USERS = {f"/etc/{name}{end}" for name in ("passwd", "group", "shadow", "gshadow") for end in ("", "-")}
EXAMPLE = "/etc/tarn/conf.d/example.toml"
OWN = "/etc/tarn/conf.d/own.toml"
SECRET = "/etc/tarn/credentials/name"
# A mirror that fails and recovers, and the hook that hears of it. What is in its address is a secret.
TOLD = "/etc/tarn/conf.d/told.toml"
HEARD = "/var/lib/tarn/heard"
TOKEN = boot_bench.SECRET
TOLD_TEXT = f"""[mirror.told]
feed = "{BASE}/told/SHA256SUMS?token={TOKEN}"
folder = "/srv/mirrors/told"
every = "1h"

[hook.heard]
command = ["/bin/sh", "-c", "echo $TARN_EVENT $TARN_MIRROR $TARN_CODE >>{HEARD}"]
mirrors = ["told"]
"""
# What bash offers for the last word of a line of three.
COMPLETE = """. /usr/share/bash-completion/completions/tarn
COMP_WORDS=(tarn {0} {1}) COMP_CWORD=2 COMP_LINE='tarn {0} {1}' COMP_POINT=${{#COMP_LINE}} COMP_TYPE=9
_tarn tarn '{1}' '{0}'
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
before_all = set()


def apt(*words):
    """As a script would: nobody at a terminal."""
    return run(["apt-get", "-y", *words], environment={"DEBIAN_FRONTEND": "noninteractive"})


def at_terminal(answer, *words, frontend="teletype"):
    """apt-get at a terminal, where somebody answers each question; gives the status and what was shown."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ["DEBIAN_FRONTEND"] = frontend
        os.execvp("apt-get", ["apt-get", "-y", *words])
    shown, answered, end = b"", 0, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: the other end is closed.
            break
        if not piece:
            break
        shown += piece
        if shown.count(QUESTION) > answered:
            answered += 1
            os.write(terminal, answer.encode() + b"\n")
    os.close(terminal)
    lines = [line for line in shown.decode(errors="replace").splitlines() if "Reading database" not in line]
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), "\n".join(lines)


def everything():
    """All paths of the machine but those around it, and but what systemd makes for services that begin by themselves."""
    found = set()
    for place, directories, files in os.walk("/"):
        directories[:] = [name for name in directories
                          if os.path.join(place, name) not in AROUND and not name.startswith("systemd-private-")]
        found.update(os.path.join(place, name) for name in directories + files)
    return found - USERS


def runs():
    """Whether any program of the package runs."""
    return any(read(f"/proc/{number}/comm") in ("tarn\n", "tarn-watch\n") for number in os.listdir("/proc") if number.isdigit())


def version():
    return run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}${Version}", "tarn"]).output


def is_back(name):
    """After a start: what was in sync is so, before any pass."""
    return wait_until(lambda: mirror(name).get("state") == "idle" and mirror(name)["entries"]["current"] == 2)


def example_is_whole():
    return run("cd /srv/mirrors/example && sha256sum --check --strict --quiet SHA256SUMS").status == 0


def install():
    before_all.update(everything())
    done = apt("install", BEFORE)
    check("package: it installs", done.status == 0, done)
    check("package: the service is on, now and at the next start",
          show("ActiveState") == "active" and show("UnitFileState") == "enabled", run(["systemctl", "status", "tarn"]))
    check("package: the service mirrors the example by itself", wait_until(example_is_whole), mirror("example"))
    check("package: no user has an agent of his own by it",
          run(["systemctl", "--global", "is-enabled", "tarn.service"]).output.strip() == "disabled")
    check("package: folders are watched", wait_until(lambda: mirror("example").get("watch", {}).get("mode") == "watching"),
          mirror("example"))
    for path, expected in (
        ("/usr/bin/tarn", "0755 root:root"), ("/usr/libexec/tarn/tarn-watch", "0755 root:root"),
        ("/srv/mirrors", "0755 tarn:tarn"), ("/etc/tarn/credentials", "0700 root:root"), ("/var/lib/tarn", "0750 tarn:tarn"),
        ("/usr/share/zsh/vendor-completions/_tarn", "0644 root:root"),
        ("/usr/share/fish/vendor_completions.d/tarn.fish", "0644 root:root"),
        ("/usr/share/man/man7/tarn-session.7.gz", "0644 root:root"),
    ):
        check(f"package: {path} is {expected}", modes(path) == expected, modes(path))
    done = run(". /usr/share/bash-completion/completions/tarn && complete -p tarn")
    check("package: bash completes tarn", done.status == 0 and done.output.startswith("complete "), done)


def settings():
    """What an administrator does, to be found again after everything that follows."""
    publish("edited", {"note.txt": b"as it came\n"})
    lines = [f'[mirror.{name}]\nfeed = "{BASE}/{name}/SHA256SUMS"\nfolder = "/srv/mirrors/{name}"\nevery = "1h"\n'
             for name in ("held", "edited")]
    write(OWN, "\n".join(lines))
    write(EXAMPLE, read(EXAMPLE).replace('"1d"', '"2d"'))
    write(SECRET, "a secret\n", 0o600)
    check("package: the settings of an administrator hold", run(["systemctl", "reload", "tarn"]).status == 0)
    check("package: an order to the agent is obeyed", run(["tarn", "pause", "example"]).status == 0)
    check("package: a mirror of them gets in sync", in_sync("edited"), mirror("edited"))
    write("/srv/mirrors/edited/note.txt", "what somebody wrote\n")
    check("package: what somebody wrote goes to the trash",
          wait_until(lambda: read("/srv/mirrors/edited/note.txt") == "as it came\n" and in_trash()), mirror("edited"))


def in_trash():
    return run("find /srv/mirrors/edited/.tarn/trash -type f").output


def settings_are_kept(name):
    kept = (read(OWN) or "").count("[mirror.") == 2 and '"2d"' in (read(EXAMPLE) or "") and read(SECRET) == "a secret\n"
    check(f"{name}: the settings are those of the administrator", kept, run("grep -r . /etc/tarn"))


def records_are_kept(name):
    kept = [os.path.exists(path) for path in (
        "/var/lib/tarn/mirrors", "/srv/mirrors/held/.tarn/ledger.sqlite", "/srv/mirrors/held/large.bin")]
    check(f"{name}: the records and the files stay", all(kept) and in_trash(), run("find /var/lib/tarn /srv/mirrors"))


def heard(*lines):
    """Whether the hook hears just these, in this order."""
    return wait_until(lambda: (read(HEARD) or "").splitlines() == list(lines))


def told():
    """An administrator is told that a mirror fails, and that it is well again."""
    publish("told", {"note.txt": b"as it came\n"})
    write(TOLD, TOLD_TEXT, 0o600)
    run(["chown", "tarn:", TOLD])
    done = run(["systemctl", "reload", "tarn"])
    check("told: a mirror and its hook", done.status == 0 and in_sync("told"), (done, mirror("told")))
    done = run(["tarn", "doctor"])
    check("doctor: of a machine that is well it finds no problem", done.status == 0 and "\nproblem" not in done.output, done)
    check("hook: it does not hear of what is well", not os.path.exists(HEARD), read(HEARD))
    with open(f"{FEEDS}/told/SHA256SUMS", "a") as file:
        file.write("0" * 64 + "  missing.txt\n")
    passes = [run(["tarn", "sync", "told"]).status for _ in range(2)]
    check("hook: it hears once that a mirror fails", passes == [3, 3] and heard("failing told partial"), (passes, read(HEARD)))
    done = run(["tarn", "doctor"])
    check("doctor: it ends with 3, and says which mirror fails, why, and what to type",
          done.status == 3 and "problem  state        told: failing (missing.txt: " in done.output
          and "\n         tarn status told\n" in done.output, done)
    found = journal("MIRROR=told", "PATH=missing.txt")
    check("journal: the native fields tell the mirror and the file",
          found and (found[-1].get("_TRANSPORT"), found[-1].get("_SYSTEMD_UNIT"), found[-1].get("PRIORITY"))
          == ("journal", "tarn.service", "4"), journal("MIRROR=told")[-2:])
    reports(done.output)
    publish("told", {"note.txt": b"as it came\n"})
    done = run(["tarn", "sync", "told"])
    check("hook: it hears that the mirror is well again",
          done.status == 0 and heard("failing told partial", "recovered told in-sync"), (done, read(HEARD)))
    found = journal("MIRROR=told", "CODE=in-sync")
    check("journal: a pass is found by its mirror and its code", found and found[-1].get("_TRANSPORT") == "journal", found[-1:])
    done = run(["tarn", "doctor"])
    check("doctor: it has no problem any more", done.status == 0, done)


def reports(problems):
    """The bundle for a bug report, while a mirror fails."""
    place = "/tmp/report.tar.gz"
    done = run(["tarn", "report", "--to", place])
    check("report: it is written, for root alone", done.status == 0 and modes(place) == "0600 root:root", (done, modes(place)))
    names = [name.split("/")[-1] for name in run(["tar", "-tzf", place]).output.splitlines()]
    wanted = ("settings.toml", "status.json", "doctor.txt", "events.jsonl", "journal.txt", "unit.txt")
    check("report: it has the settings, the status, the events and the log", set(wanted) <= set(names), names)
    line = next((line for line in problems.splitlines() if line.startswith("problem")), "no line")
    text = run(["tar", "-xzOf", place]).output
    check("report: it says what the doctor says", line in text, text[-800:])
    check("report: the secret of an address is not in it", f"{BASE}/told/SHA256SUMS" in text and TOKEN not in text,
          [line for line in text.splitlines() if TOKEN in line or "told/SHA256SUMS" in line])


def completion():
    """Users who may not read the settings of the mirror: its name comes from the agent."""
    run(["usermod", "-aG", "tarn", "alice"])
    for user, who in (("alice", "a member"), ("bob", "another user")):
        done = run(["cat", TOLD], user)
        check(f"completion: the settings tell {who} nothing", done.status != 0, done)
        done = run(COMPLETE.format("status", "to"), user)
        check(f"completion: bash offers {who} a mirror that only the agent can name", done.output.split() == ["told"], done)
    run(["systemctl", "stop", "tarn"])
    done = run(COMPLETE.format("status", "to"), "bob")
    check("completion: without an agent it offers nothing, and says nothing", done.output + done.errors == "\n", done)
    take_away(TOLD)
    take_away(HEARD)
    run(["systemctl", "start", "tarn"])
    done = run(["tarn", "forget", "/srv/mirrors/told"])
    check("told: forgotten once the settings name it no more", done.status == 0, done)


def upgrade():
    check("upgrade: a transfer is at work", held_up(), mirror("held"))
    before, count, old = pid(), len(requests(LARGE)), version()
    done = apt("install", NOW)
    check("upgrade: it ends with 0", done.status == 0 and version() != old, (done, version()))
    goes_on("upgrade", before, count)
    check("upgrade: the new program runs", os.readlink(f"/proc/{pid()}/exe") == "/usr/bin/tarn")
    settings_are_kept("upgrade")
    check("upgrade: a pause outlives it", mirror("example").get("state") == "paused", mirror("example"))
    write(GATE, "")
    check("upgrade: the mirror is in sync in the end",
          in_sync("held") and os.path.getsize("/srv/mirrors/held/large.bin") == len(HELD["large.bin"]), mirror("held"))


def switched_off():
    run(["systemctl", "disable", "--now", "tarn"])
    done = apt("install", "--reinstall", NOW)
    check("upgrade: a service that was switched off stays off",
          done.status == 0 and show("ActiveState") == "inactive" and show("UnitFileState") == "disabled", done)
    run(["systemctl", "enable", "--now", "tarn"])


def remove():
    write("/etc/tarn/timed.env", f"FEED={BASE}/edited/SHA256SUMS\nFOLDER=/srv/mirrors/timed\nTARN_OPTIONS=\n")
    run(["systemctl", "enable", "--now", "tarn@timed.timer"])
    done = apt("remove", "tarn")
    check("remove: it ends with 0", done.status == 0, done)
    check("remove: nothing of it runs",
          not runs() and show("ActiveState", "tarn@timed.timer") == "inactive"
          and not os.path.exists("/run/tarn/tarn.sock"), run("ls /run/tarn; systemctl status 'tarn*'"))
    settings_are_kept("remove")
    records_are_kept("remove")
    count = len(requests(LARGE))
    done = apt("install", NOW)
    check("remove: installed again, it goes on where it was",
          done.status == 0 and is_back("held") and len(requests(LARGE)) == count and mirror("example").get("state") == "paused",
          (done, mirror("held"), mirror("example")))


def mirrors():
    """What autopkgtest runs."""
    run(["tarn", "resume", "example"])
    done = run("/src/tarn/packaging/debian/tests/mirror")
    check("autopkgtest: mirror", done.status == 0 and done.output.count("ok: ") == 4, done)


def purge_unseen():
    done = apt("purge", "tarn")
    check("purge, nobody at a terminal: it ends with 0", done.status == 0 and not os.path.exists("/usr/bin/tarn"), done)
    records_are_kept("purge, nobody at a terminal")
    check("purge, nobody at a terminal: an administrator's settings stay", os.path.exists(OWN) and os.path.exists(SECRET))
    check("purge, nobody at a terminal: the package's own go", not os.path.exists(EXAMPLE))


def purge_asked():
    check("purge: it installs again", apt("install", NOW).status == 0 and is_back("held"), mirror("held"))
    status, shown = at_terminal("yes", "purge", "tarn", frontend="noninteractive")
    check("purge, a frontend that asks nobody: it says that all stays",
          status == 0 and QUESTION.decode() not in shown and "nobody could be asked" in shown, shown)
    records_are_kept("purge, a frontend that asks nobody")
    check("purge: it installs a third time", apt("install", NOW).status == 0 and is_back("held"), mirror("held"))
    status, shown = at_terminal("no", "purge", "tarn")
    check("purge, 'no': it asks, once, and ends with 0", status == 0 and shown.count(QUESTION.decode()) == 1, shown)
    records_are_kept("purge, 'no'")
    check("purge, 'no': an administrator's settings stay", os.path.exists(OWN))
    check("purge: it installs once more", apt("install", NOW).status == 0 and is_back("held"), mirror("held"))
    status, shown = at_terminal("yes", "purge", "tarn")
    check("purge, 'yes': it asks, once, and ends with 0", status == 0 and shown.count(QUESTION.decode()) == 1, shown)
    check("purge, 'yes': records and settings are gone",
          not any(os.path.lexists(path) for path in ("/var/lib/tarn", "/etc/tarn", "/srv/mirrors/held/.tarn")),
          run("find /var/lib/tarn /etc/tarn /srv/mirrors"))
    check("purge, 'yes': the files of mirrors stay", os.path.exists("/srv/mirrors/held/large.bin"))
    check("purge, 'yes': what somebody wrote stays in its trash", in_trash(), shown)
    check("purge, 'yes': it says so", "/srv/mirrors/edited/.tarn" in shown, shown)


def leftovers():
    run(["systemctl", "daemon-reload"])
    left = sorted(everything() - before_all)
    check("purge: nothing else is left", left == [], left)
    gone = sorted(before_all - everything())
    check("purge: nothing else is gone", gone == [], gone)
    failed = run(["systemctl", "--failed", "--no-legend", "--plain"]).output
    check("purge: no unit of Tarn's failed", "tarn" not in failed, failed)


SECTIONS = [install, settings, told, completion, upgrade, switched_off, remove, mirrors, purge_unseen, purge_asked, leftovers]
