#!/usr/bin/env python3
"""The checks of boot_test.py, run inside the booted root, as root: boot_checks.py start|again|broken|package

Each prints lines `ok NAME` or `FAILED NAME: what was seen`; the last line is `end of PHASE`.
"""
import os
import re
import signal
import sys
import time

import boot_package
import boot_users
import boot_watch
from boot_bench import (
    BASE, FEEDS, GATE, HELD, LARGE, LOG, PORT, check, drop_in, goes_on, held_up, in_sync, journal, mirror, modes, pid, publish,
    read, page_block, requests, run, section, show, status, take_away, wait_until, write)

FILES = {"one.iso": b"one\n" * 1000, "two.iso": b"two\n" * 1000}
FEEDS_UNIT = f"""[Unit]
Description=Feeds of the boot test
[Service]
ExecStart=/usr/bin/python3 /src/boot_server.py {FEEDS} {PORT} {LOG} {GATE}
Restart=always
"""


def prepare():
    """The server, and the people: an administrator, a member of tarn (later), and others."""
    write("/etc/systemd/system/feeds.service", FEEDS_UNIT)
    publish("iso", FILES)
    publish("held", HELD)
    publish("secret", {"hidden.txt": b"for those who know\n"})
    run(["systemctl", "daemon-reload"])
    run(["systemctl", "start", "feeds.service"])
    for name in ("admin", "alice", "bob", "carol"):
        run(["useradd", "-m", "-s", "/bin/bash", name])
    write("/etc/sudoers.d/admin", "admin ALL=(ALL) NOPASSWD: ALL\n", 0o440)
    run(["chown", "-R", "admin:", "/src/tarn"])
    check("the machine is up, with systemd as process 1",
          read("/proc/1/comm") == "systemd\n" and "252" in run(["systemctl", "--version"]).output)


def by_hand():
    """An ordinary user with sudo types what packaging/INSTALL.md says; only the feed's address is another."""
    block = page_block("## As a service").replace("https://example.org", BASE)
    done = run("set -e\n" + block, "admin", 120, "/src/tarn")
    check("the commands of the page end with 0", done.status == 0, done)
    check("the service is on, now and at the next start",
          show("ActiveState") == "active" and show("UnitFileState") == "enabled",
          run(["systemctl", "status", "--no-pager", "tarn"]))
    toml = re.search(r"<<'END'\n(.*?)END\n", block, re.DOTALL)
    check("the settings of the page are six lines", toml and len(toml.group(1).splitlines()) == 6)
    check("the mirror of the page is in sync", pid() and in_sync("iso"), mirror("iso"))
    check("its files are there",
          all(read(f"/srv/mirrors/iso/{name}") == body.decode() for name, body in FILES.items()))


def notify():
    check("type notify: the unit is one", show("Type") == "notify" and show("NotifyAccess") == "main")
    ready = []
    for _ in range(4):
        run(["systemctl", "stop", "tarn"])
        done = run(["systemctl", "start", "tarn"])
        answer = run(["tarn", "status", "--json"])
        ready.append(done.status == 0 and '"agent"' in answer.output and os.path.exists("/run/tarn/tarn.sock"))
    check("type notify: start returns when it answers, four times", all(ready), ready)
    # The pass that a start begins changes the line: what two commands say of it is compared once it is over.
    wait_until(lambda: not pid() or mirror("iso").get("state") == "idle")
    text = show("StatusText")
    check("type notify: the status line", text.startswith("1 mirror"), text)
    shown = pid() and wait_until(lambda: f'Status: "{show("StatusText")}"' in run(["systemctl", "status", "tarn"]).output)
    check("type notify: systemctl status shows it", shown, run(["systemctl", "status", "--no-pager", "tarn"]).output)


def files():
    """Who may enter what. The sockets decide by their own modes."""
    for path, expected in (
        ("/run/tarn", "0755 tarn:tarn"), ("/run/tarn/tarn.sock", "0660 tarn:tarn"),
        ("/run/tarn/status.sock", "0666 tarn:tarn"), ("/var/lib/tarn", "0750 tarn:tarn"),
        ("/srv/mirrors", "0755 tarn:tarn"), ("/srv/mirrors/iso", "0755 tarn:tarn"),
        ("/srv/mirrors/iso/one.iso", "0644 tarn:tarn"), ("/srv/mirrors/iso/.tarn", "0700 tarn:tarn"),
        ("/etc/tarn", "0755 root:root"), ("/etc/tarn/conf.d", "0755 root:root"),
        ("/etc/tarn/credentials", "0700 root:root"),
    ):
        check(f"modes: {path} is {expected}", modes(path) == expected, modes(path))


def exposure(unit, most):
    """Of a unit that is loaded, by the running systemd."""
    done = run(["systemd-analyze", "security", "--no-pager", unit])
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.output)
    check(f"exposure of {unit} is at most {most}", found and float(found.group(1)) <= most, done.output[-300:])


def security():
    exposure("tarn.service", 1.5)
    line = next((line for line in read(f"/proc/{pid()}/status").splitlines() if line.startswith("CapEff")), "")
    check("the agent runs as tarn, without capabilities",
          line.split()[1:] == ["0" * 16] and os.stat(f"/proc/{pid()}").st_uid != 0, line)


def reload():
    before, more = pid(), "/etc/tarn/conf.d/more.toml"
    publish("more", {"three.iso": b"three\n"})
    write(more, f'[mirror.more]\nfeed = "{BASE}/more/SHA256SUMS"\nfolder = "/srv/mirrors/more"\nevery = "1h"\n')
    done = run(["systemctl", "reload", "tarn"])
    check("reload: a good file ends with 0", done.status == 0, done)
    check("reload: it holds when that returns", "more" in status()["by_name"])
    done = run(["tarn", "sync", "more"])
    check("reload: the new mirror gets in sync", done.status == 0 and read("/srv/mirrors/more/three.iso") == "three\n", done)
    good = read(more)
    write(more, good.replace("every", "evry"))
    done = run(["systemctl", "reload", "tarn"])
    check("reload: a bad file fails", done.status != 0, done)
    process = show("ExecReload")
    check("reload: with the status of a configuration error", "status=78" in process, process)
    messages = [entry["MESSAGE"] for entry in journal("-u", "tarn")]
    check("reload: the journal says where and how to mend it",
          any("more.toml:4:1" in text and "write 'every'" in text for text in messages), messages[-5:])
    check("reload: the old settings go on, in the same process",
          show("ActiveState") == "active" and pid() == before and "more" in status()["by_name"])
    check("reload: the status line says it", "rejected" in show("StatusText"), show("StatusText"))
    done = run(["tarn", "sync", "more"])
    check("reload: the mirror of the bad file still syncs", done.status == 0, done)
    write(more, good)
    check("reload: mended", run(["systemctl", "reload", "tarn"]).status == 0 and "rejected" not in show("StatusText"))
    write("/etc/tarn/conf.d/held.toml",
          f'[mirror.held]\nfeed = "{BASE}/held/SHA256SUMS"\nfolder = "/srv/mirrors/held"\nevery = "1h"\n')


def elsewhere():
    """A folder that the unit does not name is told from a broken disk, with what to add; and that works."""
    os.mkdir("/srv/podcasts")
    run(["chown", "tarn:", "/srv/podcasts"])
    write("/etc/tarn/conf.d/podcasts.toml", f'[mirror.podcasts]\nfeed = "{BASE}/iso/SHA256SUMS"\nfolder = "/srv/podcasts"\n')
    run(["systemctl", "reload", "tarn"])
    done = run(["tarn", "sync", "podcasts"])
    line = "ReadWritePaths=/srv/podcasts"
    check("elsewhere: refused, with the line that the unit needs", done.status == 73 and line in done.errors, done)
    drop_in("podcasts", f"[Service]\n{line}\n")
    run(["systemctl", "restart", "tarn"])
    done = run(["tarn", "sync", "podcasts"])
    check("elsewhere: with that line it is in sync", done.status == 0 and os.path.exists("/srv/podcasts/one.iso"), done)
    done = run(["tarn", "config", "check"], "bob")
    check("elsewhere: config check tells another user of the system's settings", "sudo tarn config check" in done.output, done)


def interruptions():
    """SIGSTOP and the watchdog, kill -9, a stop: none of them loses what was fetched."""
    drop_in("short", "[Service]\nWatchdogSec=5s\nRestartSec=1s\n")
    run(["systemctl", "restart", "tarn"])
    run(["timeout", "1", "tarn", "sync", "held"])
    check("a transfer is at work", held_up(), mirror("held"))
    before = pid()
    time.sleep(12)
    check("watchdog: fed by a living agent", pid() == before and show("NRestarts") == "0")
    count, since = len(requests(LARGE)), time.monotonic()
    os.kill(before, signal.SIGSTOP)
    # The time is the one that was given above, not the unit's own; how long it takes then is up to the machine.
    gone, seconds = wait_until(lambda: pid() != before), time.monotonic() - since
    check(f"watchdog: an agent that stands still is ended, {seconds:.1f} s", gone and show("WatchdogUSec") == "5s",
          show("WatchdogUSec"))
    goes_on("watchdog", before, count)
    messages = [entry["MESSAGE"] for entry in journal("_PID=1", "UNIT=tarn.service")]
    check("watchdog: the journal says so", any("watchdog" in text.lower() for text in messages), messages[-8:])
    check("watchdog: the transfer is held again", held_up())
    before, count = pid(), len(requests(LARGE))
    os.kill(before, signal.SIGKILL)
    goes_on("kill -9", before, count)
    check("kill -9: both restarts are counted", show("NRestarts") == "2", show("NRestarts"))
    check("stop: a transfer is at work", held_up())
    since, count = time.monotonic(), len(requests(LARGE))
    done, seconds = run(["systemctl", "stop", "tarn"]), time.monotonic() - since
    check(f"stop: ends by itself, well in its two minutes, {seconds:.1f} s", done.status == 0 and seconds < 60, done)
    check("stop: counts as success", (show("Result"), show("ExecMainStatus")) == ("success", "0"),
          (show("Result"), show("ExecMainStatus")))
    partial = run("find /srv/mirrors/held/.tarn/partial -type f -size +2000k").output
    check("stop: the partial file is kept", partial, run(["find", "/srv/mirrors/held"]))
    check("stop: no socket is left", run(["ls", "-A", "/run/tarn"]).output == "", run(["ls", "-A", "/run/tarn"]))
    done = run(["tarn", "status", "held"])
    check("stop: the ledger answers without it", done.status == 0 and "held" in done.output, done)
    done = run(["tarn", "pause", "iso"])
    check("stop: commands end with 69", done.status == 69 and "no agent answers" in done.errors, done)
    run(["systemctl", "start", "tarn"])
    goes_on("start", 0, count)
    write(GATE, "")
    check("the mirror is in sync in the end", in_sync("held") and
          os.path.getsize("/srv/mirrors/held/large.bin") == len(HELD["large.bin"]), mirror("held"))
    take_away("/etc/systemd/system/tarn.service.d/short.conf")
    run(["systemctl", "daemon-reload"])
    run(["systemctl", "restart", "tarn"])


def fields():
    """The journal's own fields, by the native protocol."""
    found = journal("-u", "tarn", "MIRROR=iso", "CODE=in-sync")
    check("journal: a pass is found by its mirror and its code", found, journal("-u", "tarn")[-2:])
    entry = found[-1] if found else {}
    check("journal: by the native protocol, as tarn's own",
          (entry.get("_TRANSPORT"), entry.get("SYSLOG_IDENTIFIER"), entry.get("_SYSTEMD_UNIT"))
          == ("journal", "tarn", "tarn.service"), entry)
    check("journal: its priority", entry.get("PRIORITY") in ("5", "6"), entry)
    errors = journal("-u", "tarn", "-p", "err")
    check("journal: errors are found by their priority",
          any(e.get("CODE") == "reload-rejected" for e in errors), errors)


def timer():
    """One pass on a timer, by packaging/INSTALL.md, without an agent."""
    block = page_block("## On a timer")
    url = publish("nightly", FILES)
    # What one would type into the editor.
    edit = f"sudo sed -i -e 's|^FEED=.*|FEED={url}|' -e 's|^FOLDER=.*|FOLDER=/srv/mirrors/nightly|' /etc/tarn/nightly.env"
    block, edits = re.subn(r"^sudoedit .*$", edit, block.replace("iso", "nightly"), flags=re.MULTILINE)
    check("timer: the page has one file edited", edits == 1, block)
    done = run("set -e\n" + block, "admin", 120, "/src/tarn")
    check("timer: the commands of the page end with 0", done.status == 0, done)
    check("timer: the first pass made the mirror", read("/srv/mirrors/nightly/one.iso") == FILES["one.iso"].decode())
    exposure("tarn@nightly.service", 2.0)
    done = run(["systemctl", "list-timers", "--all", "--no-pager"])
    check("timer: the next run is planned", "tarn@nightly.timer" in done.output, done)
    publish("nightly", {**FILES, "four.iso": b"four\n"})
    drop_in("now", "[Timer]\nOnCalendar=\nOnCalendar=*:*:0/2\nRandomizedDelaySec=0\nAccuracySec=100ms\n",
            "tarn@nightly.timer")
    run(["systemctl", "restart", "tarn@nightly.timer"])
    check("timer: it runs the service", wait_until(lambda: read("/srv/mirrors/nightly/four.iso") == "four\n"))
    run(["systemctl", "stop", "tarn@nightly.timer"])
    wait_until(lambda: show("ActiveState", "tarn@nightly.service") == "inactive")
    check("timer: the run counts as success", show("Result", "tarn@nightly.service") == "success")
    messages = [entry["MESSAGE"] for entry in journal("_SYSTEMD_UNIT=tarn@nightly.service")]
    check("timer: the journal has what the pass said", any("in sync" in text for text in messages), messages[-5:])


def oneshot_stop():
    """SIGTERM in the middle of a pass of the template."""
    take_away(GATE)
    write("/etc/tarn/large.env", f"FEED={BASE}/held/SHA256SUMS\nFOLDER=/srv/mirrors/large\nTARN_OPTIONS=\n", 0o640)
    run(["chgrp", "tarn", "/etc/tarn/large.env"])
    count = len(requests(LARGE))
    run(["systemctl", "start", "--no-block", "tarn@large.service"])
    wait_until(lambda: run("find /srv/mirrors/large/.tarn/partial -type f -size +2000k").output)
    since = time.monotonic()
    done, seconds = run(["systemctl", "stop", "tarn@large.service"]), time.monotonic() - since
    check(f"template: a stop ends well in its two minutes, as success, {seconds:.1f} s",
          done.status == 0 and seconds < 60 and show("Result", "tarn@large.service") == "success",
          (done, show("Result", "tarn@large.service"), show("ExecMainStatus", "tarn@large.service")))
    write(GATE, "")
    done = run(["systemctl", "start", "tarn@large.service"])
    check("template: the next pass goes on there",
          done.status == 0 and requests(LARGE)[-1][1] >= 2 << 20, (done, requests(LARGE)[count:]))


def again():
    """After a reboot: nobody typed anything."""
    check("reboot: the service came up by itself", wait_until(lambda: show("ActiveState") == "active"),
          run(["systemctl", "status", "tarn"]))
    check("reboot: its mirrors are there, in sync",
          wait_until(lambda: all(mirror(n).get("state") == "idle" for n in ("iso", "more", "held"))), status())
    check("reboot: its folders are watched", boot_watch.is_seen(), mirror("iso").get("watch"))
    check("reboot: a pause outlived it", mirror("secret").get("state") == "paused", mirror("secret"))
    check("reboot: the sockets have their modes again",
          (modes("/run/tarn/tarn.sock"), modes("/run/tarn/status.sock")) == ("0660 tarn:tarn", "0666 tarn:tarn"))
    run(["systemctl", "start", "feeds.service"])
    done = run(["tarn", "sync", "iso"])
    check("reboot: it syncs", done.status == 0, done)
    failed = run(["systemctl", "--failed", "--no-legend", "--plain"]).output
    check("reboot: no unit of Tarn's failed", "tarn" not in failed, failed)


def main(phase):
    sections = {
        "start": [prepare, by_hand, notify, files, security, reload, elsewhere, interruptions, fields, *boot_watch.SECTIONS,
                  *boot_users.SECTIONS, timer, oneshot_stop, boot_users.pause_for_reboot],
        "again": [again],
        "broken": [prepare, by_hand, notify],
        "package": [prepare, *boot_package.SECTIONS],
    }[phase]
    for function in sections:
        if function == files and not pid():
            check("there is an agent to look at", False, run("journalctl --no-pager -u tarn"))
            break
        since = time.monotonic()
        section(function)
        print(f"  {function.__name__}: {time.monotonic() - since:.1f} s", flush=True)
    print(f"end of {phase}", flush=True)


main(sys.argv[1])
