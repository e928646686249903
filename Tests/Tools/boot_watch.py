"""Checks of the boot test: the watched folder under the unit, and the program tarn-watch in its sandbox."""
import os
import signal
import time

from boot_bench import check, journal, mirror, pid, read, run, show, wait_until

FOLDER = "/srv/mirrors/iso"
FILE = FOLDER + "/one.iso"
# Of the user's own doing, each undone at once: how soon is told, and judged by no time.
EDITS = {
    "deleted": "rm one.iso",
    "edited": "echo mine >one.iso",
    "renamed": "mv one.iso mine.iso",
    "chmodded": "chmod 600 one.iso",
    "a link in its place": "ln -sf two.iso one.iso",
    "a directory in its place": "rm one.iso && mkdir one.iso && echo mine >one.iso/inner",
}
DELETIONS = 10


def facts(number):
    """The lines of /proc/PID/status by name; {} for one that is gone."""
    return dict(line.split(":\t", 1) for line in (read(f"/proc/{number}/status") or "").splitlines() if ":\t" in line)


def children(number):
    found = [facts(name) for name in os.listdir("/proc") if name.isdigit()]
    return [one for one in found if one.get("PPid") == str(number)]


def watcher():
    """The agent's tarn-watch that runs; None without one."""
    numbers = [int(one["Pid"]) for one in children(pid()) if one["Name"] == "tarn-watch" and one["State"][0] != "Z"]
    return numbers[0] if len(numbers) == 1 else None


def is_seen(name="iso"):
    return wait_until(lambda: mirror(name).get("watch", {}).get("mode") == "watching")


def is_right():
    """As the feed wants it: a file with those bytes and that mode."""
    try:
        return os.lstat(FILE).st_mode == 0o100644 and read(FILE) == "one\n" * 1000
    except OSError:
        return False


def edit(command):
    """Seconds until an edit of the user tarn is undone; None when it never was."""
    done = run(command, "tarn", cwd=FOLDER)
    since = time.monotonic()
    if done.status != 0:
        return check(f"watch: {command}", False, done) or None
    return time.monotonic() - since if wait_until(is_right) else None


def told(*seconds):
    return ", ".join("never" if one is None else f"{one:.1f} s" for one in seconds)


def watched():
    check("watch: the folders are watched", is_seen() and is_seen("more"), mirror("iso").get("watch"))
    number = watcher()
    check("watch: by one tarn-watch, from libexec",
          number and os.readlink(f"/proc/{number}/exe") == "/usr/libexec/tarn/tarn-watch", children(pid()))
    # Its own word and the kernel's: the agent's sandbox, and no way out of it.
    mine, agents = facts(number), facts(pid())
    check("watch: as tarn, without capabilities, under the agent's filter",
          all(mine.get(name) == agents.get(name) for name in ("Uid", "Gid", "Groups", "CapBnd", "Seccomp"))
          and mine.get("CapEff") == "0" * 16 and mine.get("Seccomp") == "2" and mine.get("NoNewPrivs") == "1", mine)
    check("watch: in the agent's mounts and control group", all(
        look(f"/proc/{number}/{name}") == look(f"/proc/{pid()}/{name}")
        for look, name in ((os.readlink, "ns/mnt"), (read, "cgroup"))), read(f"/proc/{number}/cgroup"))
    for name, command in EDITS.items():
        seconds = edit(command)
        check(f"watch: {name}: it is back, {told(seconds)}", seconds is not None)
    times = [edit("rm one.iso") for _ in range(DELETIONS)]
    check(f"watch: deleted {DELETIONS} times, back each time, {told(*times)}",
          all(seconds is not None for seconds in times))
    done = run(["tarn", "events", "iso"])
    check("watch: the events tell it", "restored" in done.output and "one.iso" in done.output, done)
    done = run(["tarn", "explain", "iso", "one.iso"])
    check("watch: explain answers", done.status == 0 and "one.iso" in done.output, done)
    done = run(["tarn", "trash", "list", "iso"])
    check("watch: what the user wrote is in the trash", done.output.count("one.iso") >= 3, done)
    check("watch: what is not the mirror's stays", read(FOLDER + "/mine.iso") == "one\n" * 1000)
    os.unlink(FOLDER + "/mine.iso")


def watcher_killed():
    """kill -9 of tarn-watch: healed, told, and nothing is left of it."""
    agent, before = pid(), watcher()
    os.kill(before, signal.SIGKILL)
    check("watcher killed: another one runs", wait_until(lambda: watcher() not in (None, before)), children(agent))
    check("watcher killed: the folders are watched again", is_seen() and is_seen("more"), mirror("iso").get("watch"))
    is_told = wait_until(lambda: "watch-restored" in run(["tarn", "events", "iso"]).output)
    done = run(["tarn", "events", "iso"])
    check("watcher killed: the events tell it, with the reason",
          is_told and f"watch-lost: watcher-died: tarn-watch (process {before}) was killed by signal 9" in done.output, done)
    found = journal("-u", "tarn", "MIRROR=iso", "CODE=watch-lost")
    check("watcher killed: the journal has it as a warning", found and found[-1].get("PRIORITY") == "4", found[-1:])
    seconds = edit("rm one.iso")
    check(f"watcher killed: a deleted file is back, {told(seconds)}", seconds is not None)
    check("watcher killed: no zombie is left", not [one for one in children(agent) if one["State"][0] == "Z"],
          children(agent))
    check("watcher killed: the agent is the same", pid() == agent and show("NRestarts") == "0")


def watcher_ends():
    """With the agent, however that ends."""
    agent, number = pid(), watcher()
    lost = len(journal("-u", "tarn", "CODE=watch-lost"))
    done = run(["systemctl", "stop", "tarn"])
    check("watcher ends: with a stop", done.status == 0 and not facts(agent) and not facts(number), facts(number))
    check("watcher ends: in order, not as one that died", len(journal("-u", "tarn", "CODE=watch-lost")) == lost,
          journal("-u", "tarn")[-3:])
    check("watcher ends: a stop is a success", show("Result") == "success", show("Result"))
    os.unlink(FILE)
    run(["systemctl", "start", "tarn"])
    check("watcher ends: what was deleted meanwhile is back after a start", wait_until(is_right), mirror("iso"))
    check("watcher ends: the folder is watched again", is_seen(), mirror("iso").get("watch"))
    agent, number = pid(), watcher()
    os.kill(agent, signal.SIGKILL)
    check("watcher ends: with a kill -9 of the agent", wait_until(lambda: not facts(number)), facts(number))
    check("watcher ends: both are there again", wait_until(lambda: pid() not in (0, agent) and watcher()))
    check("watcher ends: and watch", is_seen(), mirror("iso").get("watch"))
    run(["systemctl", "reset-failed", "tarn"])


def without_watcher():
    """A tarn whose tarn-watch was not installed says so, and polls."""
    place = "/usr/libexec/tarn/tarn-watch"
    os.rename(place, place + ".away")
    run(["systemctl", "restart", "tarn"])
    is_told = wait_until(lambda: mirror("iso").get("watch", {}).get("reason", "").startswith("watcher-missing"))
    check("watcher missing: the status says polling, and why", is_told and mirror("iso")["watch"]["mode"] == "polling"
          and place in mirror("iso")["watch"]["reason"].replace("bin/../", ""), mirror("iso").get("watch"))
    done = run(["tarn", "sync", "iso"])
    check("watcher missing: passes go on", done.status == 0, done)
    os.rename(place + ".away", place)
    check("watcher missing: once it is there it watches, without a restart", is_seen(), mirror("iso").get("watch"))


SECTIONS = [watched, watcher_killed, watcher_ends, without_watcher]
