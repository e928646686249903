"""Checks of the boot test: who may ask and steer, credentials, and the agent of one user."""
import json
import os
import pwd
import re
import socket

from boot_bench import (
    BASE, FEEDS, SECRET, check, drop_in, journal, mirror, modes, pid, publish, read, run, show, status,
    wait_until, write)

# What the redacted status must not have: where the folders are, and what of the server is asked for.
PRIVATE = ("/srv", "127.0.0.1:8080", "SHA256SUMS", "/iso", "/etc/tarn")


def ask(path, request):
    """A raw request as the calling user: the answer's bytes."""
    script = (
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        "s.sendall(sys.argv[2].encode().decode('unicode_escape').encode())\ns.settimeout(60)\n"
        "d=b''\nwhile True:\n  c=s.recv(65536)\n  if not c: break\n  d+=c\nsys.stdout.buffer.write(d)\n")
    return run(["python3", "-c", script, path, request + r" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"], "bob")


def members():
    """A member of the group tarn steers without being root."""
    run(["usermod", "-aG", "tarn", "alice"])
    done = run(["tarn", "pause", "iso"], "alice")
    check("member: may pause", done.status == 0 and mirror("iso").get("state") == "paused", done)
    check("member: the status line tells of the pause", wait_until(lambda: "1 paused" in show("StatusText")),
          show("StatusText"))
    done = run(["tarn", "resume", "iso"], "alice")
    check("member: may resume", done.status == 0 and mirror("iso").get("state") != "paused", done)
    done = run(["tarn", "sync", "iso"], "alice")
    check("member: may sync, by the agent", done.status == 0 and "in sync" in done.output, done)
    done = run(["tarn", "status", "iso"], "alice")
    check("member: sees folder and feed", "/srv/mirrors/iso" in done.output and "SHA256SUMS" in done.output, done)
    done = run(["tarn", "events", "iso"], "alice")
    check("member: reads the events", done.status == 0 and "one.iso" in done.output, done)
    done = run(["tarn", "reload"], "alice")
    check("member: may reload", done.status == 0, done)
    done = run(["tarn", "limit", "9MiB/s"], "alice")
    check("member: may limit", done.status == 0 and run(["tarn", "limit", "settings"], "alice").status == 0, done)


def others():
    """Another user is told how things stand, and nothing else."""
    run(["chmod", "640", "/etc/tarn/tarn.toml"])
    run(["chgrp", "tarn", "/etc/tarn/tarn.toml"])
    done = run(["tarn", "status"], "bob")
    check("other: is told the status", done.status == 0 and "iso" in done.output and not done.errors, done)
    done = run(["tarn", "status", "iso"], "bob")
    check("other: is told of one mirror", done.status == 0 and "iso" in done.output, done)
    for words in (["status"], ["status", "iso"], ["status", "--json"], ["status", "-v", "--json"],
                  ["status", "--check", "iso"]):
        done = run(["tarn", *words], "bob")
        found = [word for word in PRIVATE if word in done.output + done.errors]
        check(f"other: no path and no address in tarn {' '.join(words)}", done.status == 0 and not found, (found, done))
    check("other: the document says that it is redacted", status(user="bob")["by_name"]["iso"]["feed"] == "http://127.0.0.1",
          status(user="bob"))
    for words in (["pause", "iso"], ["resume", "iso"], ["cancel", "iso"], ["retry", "iso"], ["reload"],
                  ["limit", "1MiB/s"], ["prioritize", "iso"]):
        done = run(["tarn", *words], "bob")
        check(f"other: tarn {words[0]} is refused with 77, and says why",
              done.status == 77 and "/run/tarn/tarn.sock" in done.errors and "group" in done.errors, done)
    done = run(["tarn", "events", "iso"], "bob")
    check("other: tarn events is refused with 77", done.status == 77, done)
    done = run(["tarn", "sync", "iso"], "bob")
    check("other: tarn sync is refused with 77", done.status == 77, done)
    check("other: the mirror was not touched by any of it", mirror("iso").get("state") == "idle", mirror("iso"))
    done = ask("/run/tarn/tarn.sock", "GET /v1/status")
    check("other: the kernel refuses the socket itself", "PermissionError" in done.errors, done)
    for request in ("GET /v1/events", "GET /v1/stream", "POST /v1/command", "POST /v1/reload", "PUT /v1/limit",
                    "GET /v1/status?mirror=/srv/mirrors/iso"):
        answer = ask("/run/tarn/status.sock", request).output
        head = re.match(r"HTTP/1\.1 (\d+)", answer)
        check(f"other: {request.split('?')[0]} at the open socket tells nothing more",
              head and (head.group(1)[0] == "4" or "?" in request) and not any(word in answer.split("\r\n\r\n", 1)[-1]
              for word in PRIVATE if word not in request), answer)
    for path in ("/etc/tarn/tarn.toml", "/var/lib/tarn/agent", f"/proc/{pid()}/environ", "/srv/mirrors/iso/.tarn/id",
                 "/etc/tarn/credentials/token"):
        check(f"other: cannot read {re.sub(r'[0-9]+', 'N', path)}", run(["cat", path], "bob").status != 0)
    line = read(f"/proc/{pid()}/cmdline").replace("\0", " ")
    check("other: the agent's command line says nothing", line == "/usr/bin/tarn agent ", line)


def credentials():
    """LoadCredential= brings a secret to the agent; nobody else gets to see it."""
    write(FEEDS + "/../secret", f"X-Token: {SECRET}\n", 0o600)
    write("/etc/tarn/conf.d/secret.toml", f"""[mirror.secret]
feed = "{BASE}/secret/SHA256SUMS"
folder = "/srv/mirrors/secret"
every = "1h"
header-file = {{ credential = "token" }}
""")
    done = run(["systemctl", "reload", "tarn"])
    messages = [e["MESSAGE"] for e in journal("-u", "tarn")][-12:]
    check("credential: without LoadCredential= the settings are refused", done.status != 0 and
          "LoadCredential=" in "".join(messages) and "'header-file'" in "".join(messages), messages)
    write("/etc/tarn/credentials/token", f"X-Token: {SECRET}\n", 0o600)
    drop_in("token", "[Service]\nLoadCredential=token:/etc/tarn/credentials/token\n")
    done = run(["systemctl", "restart", "tarn"])
    check("credential: with it the service starts", done.status == 0, run(["systemctl", "status", "tarn"]))
    done = run(["tarn", "sync", "secret"])
    check("credential: the mirror is in sync",
          done.status == 0 and read("/srv/mirrors/secret/hidden.txt") == "for those who know\n", done)
    done = run(["tarn", "config", "check"])
    check("credential: config check outside of the service is content", done.status == 0, done)
    raw = open(f"/proc/{pid()}/environ", "rb").read() + open(f"/proc/{pid()}/cmdline", "rb").read()
    run(["tarn", "reload"])
    places = {
        "systemctl show": run(["systemctl", "show", "tarn"]).output, "systemctl status": run("systemctl status tarn -l").output,
        "the journal": run("journalctl -o export --no-pager -a").output, "config show": str(run(["tarn", "config", "show"])),
        "config show --json": str(run(["tarn", "config", "show", "--json"])),
        "config check": str(run(["tarn", "config", "check", "--json"])),
        "status": str(run(["tarn", "status", "-v", "secret"])), "status --json": str(run(["tarn", "status", "--json", "-v"])),
        "events": str(run(["tarn", "events", "--json"])), "environment and command line": raw.decode(errors="replace"),
        "the ledger and the state": run("cat /srv/mirrors/secret/.tarn/ledger.sqlite* /var/lib/tarn/*").output,
    }
    for place, text in places.items():
        check(f"credential: not in {place}", SECRET not in text and "c4nary" not in text and text)
    check("credential: config show names where it is", "token" in places["config show"], places["config show"])
    write("/etc/tarn/credentials/token", "X-Token: wrong\n", 0o600)
    run(["systemctl", "restart", "tarn"])
    done = run(["tarn", "sync", "secret"])
    check("credential: one that the server refuses is an honest failure", done.status == 66 and "403" in done.errors
          and "wrong" not in done.errors, done)
    write("/etc/tarn/credentials/token", f"X-Token: {SECRET}\n", 0o600)
    run(["systemctl", "restart", "tarn"])
    check("credential: and mended by a restart", run(["tarn", "sync", "secret"]).status == 0)


def user_unit():
    """The agent of one user, below that user's own systemd."""
    place = pwd.getpwnam("carol").pw_dir
    done = run(["loginctl", "enable-linger", "carol"])
    number = pwd.getpwnam("carol").pw_uid
    runtime = f"/run/user/{number}"
    there = wait_until(lambda: os.path.exists(f"{runtime}/systemd/private"))
    if not check("user: a manager of her own runs", done.status == 0 and there,
                 (done, run(["systemctl", "status", f"user@{number}.service"]))):
        return
    own = {"XDG_RUNTIME_DIR": runtime}

    def carol(*words):
        return run(words, "carol", environment=own)

    url = publish("hers", {"five.iso": b"five\n"})
    carol("install", "-D", "-m", "644", "/src/tarn/packaging/systemd/user/tarn.service",
          f"{place}/.config/systemd/user/tarn.service")
    carol("mkdir", "-p", f"{place}/.config/tarn")
    write(f"{place}/.config/tarn/tarn.toml", f'[mirror.hers]\nfeed = "{url}"\nfolder = "{place}/hers"\nevery = "1h"\n')
    carol("systemctl", "--user", "daemon-reload")
    done = carol("systemctl", "--user", "enable", "--now", "tarn")
    check("user: her service starts", done.status == 0, (done, carol("systemctl", "--user", "status", "tarn")))
    done = carol("tarn", "sync", "hers")
    check("user: her mirror is in sync", done.status == 0 and read(f"{place}/hers/five.iso") == "five\n", done)
    document = json.loads(carol("tarn", "status", "--json").output or "{}")
    mirrors = [m["name"] for m in document.get("mirrors", [])]
    check("user: her status is that of her agent", "hers" in mirrors and "iso" not in mirrors, mirrors)
    check("user: her socket is hers", modes(f"{runtime}/tarn/tarn.sock") in ("0660 carol:carol", "0600 carol:carol")
          and modes(runtime) == "0700 carol:carol", (modes(f"{runtime}/tarn/tarn.sock"), modes(runtime)))
    seen = wait_until(lambda: '"watching"' in carol("tarn", "status", "--json").output)
    os.unlink(f"{place}/hers/five.iso")
    check("user: her folder is watched, and a deleted file comes back",
          seen and wait_until(lambda: read(f"{place}/hers/five.iso") == "five\n"), carol("tarn", "status", "--json"))
    done = carol("systemctl", "--user", "reload", "tarn")
    check("user: reload", done.status == 0, done)
    done = carol("tarn", "pause", "hers")
    check("user: she steers it", done.status == 0 and carol("tarn", "resume", "hers").status == 0, done)
    text = carol("systemctl", "--user", "show", "--value", "-p", "StatusText", "tarn").output
    check("user: the status line", text.startswith("1 mirror"), text)
    done = carol("systemctl", "--user", "stop", "tarn")
    result = carol("systemctl", "--user", "show", "--value", "-p", "Result", "tarn").output.strip()
    check("user: stop", done.status == 0 and result == "success", (done, result))


def pause_for_reboot():
    """What the second boot looks for."""
    done = run(["tarn", "pause", "secret"])
    check("a pause before the reboot", done.status == 0, done)


SECTIONS = [members, credentials, others, user_unit]
