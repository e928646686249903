#!/usr/bin/env python3
"""Cuts the power at many system calls of a pass, one image for each, and checks what every cut leaves on the disk.

At a point of the kill grid the pass, which runs on a loop-mounted image, is held still right before the call. The image
is copied: what was in the page cache only is not in the copy. The pass is killed, the copy mounted and judged:

  I1   every file under a final name is whole, and what the user synced is still there (I2)
  I4   what the pass had printed as done by then is true, and what an earlier pass that ended with 0 had placed is there
  I11  the ledger is sound, and was not set aside

Then passes run on the copy under another boot id, as after a restart, until one ends with 0, at most three; the tree
has to be exactly as wanted, and no body of a file that had been called done may be fetched again (I3). One image more
for each scenario is copied right after the pass ended with 0: it has to be complete.

For each file system, with the points spread over the scenarios fresh, update, resume and delete:
`power grid: FS enumerated X, reached Y, violations Z`. Ends with 1 on a violation, or when fewer than nine in ten were
reached; with 0 and a reason when it cannot run here (root, loop mounts and mkfs are needed). The method neither tears
nor reorders blocks that were issued already.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid

import bench
import check_tree
import point_runs

SCENARIOS = ["fresh", "update", "resume", "delete"]
# File system -> (what mkfs takes, MiB, options of mount). xfs makes no smaller one, btrfs none for its two copies.
DISKS = {
    "ext4": (["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], 128, ""),
    "ext4-writeback": (["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], 128,
                       "data=writeback,noauto_da_alloc"),
    "xfs": (["mkfs.xfs", "-q", "-f"], 300, ""),
    "btrfs": (["mkfs.btrfs", "-q", "-f"], 256, ""),
}
LIMIT = 120  # Seconds until a disk has to be free.
END = ("exit", 0)  # Not a call: the image is copied right after the pass.
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Disk:
    """An image of one file system, and the one place where it or a copy of it is mounted."""

    def __init__(self, kind, directory):
        make, size, self.options = DISKS[kind]
        self.place = os.path.join(directory, "disk")
        self.blank, self.image, self.copy = (os.path.join(directory, name) for name in ("blank", "image", "copy"))
        os.mkdir(self.place)
        with open(self.blank, "wb") as stream:
            stream.truncate(size << 20)
        run(*make, self.blank)
        self.is_mounted, self.device = False, ""

    def mount(self, image):
        self.unmount()
        command = ["mount", "-o", ",".join(filter(None, ["loop", self.options])), image, self.place]
        result = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        if result.returncode != 0:
            raise SystemExit(f"{os.path.basename(image)} cannot be mounted: {result.stderr.decode().strip()}")
        self.is_mounted = True
        with open("/proc/self/mountinfo", encoding="utf-8") as stream:
            source = next(line.split(" - ")[1].split()[1] for line in stream if line.split()[4] == self.place)
        self.device = os.path.join("/sys/block", os.path.basename(source))

    def unmount(self):
        """Until the device is free: a pass of another worker may hold a copy of the mount for a moment, and two disks
        with one identity cannot be mounted at once."""
        deadline = time.monotonic() + LIMIT
        while self.is_mounted or self.has_device():
            result = subprocess.run(["umount", self.place], stderr=subprocess.PIPE, check=False) if self.is_mounted else None
            self.is_mounted = bool(result and result.returncode)
            if time.monotonic() > deadline:
                raise SystemExit(f"the disk stays in use: {result.stderr.decode().strip() if result else ''}")
            time.sleep(0.005)

    def has_device(self):
        try:
            with open(os.path.join(self.device, "loop", "backing_file"), encoding="utf-8") as stream:
                return stream.read().strip() in (self.image, self.copy)
        except OSError:
            return False

    def renew(self):
        """A blank one, mounted."""
        self.unmount()
        run("cp", "--sparse=always", self.blank, self.image)
        self.mount(self.image)

    def cut(self):
        """Copies the image as it is now. Repeated when the disk was written meanwhile: a copy that saw a later block
        without an earlier one would be no state that a disk ever had."""
        def writes():
            with open(os.path.join(self.device, "stat"), encoding="ascii") as stream:
                fields = stream.read().split()
            return fields[4], fields[6], fields[8]
        for _ in range(50):
            before = writes()
            if before[2] == "0":
                run("cp", "--sparse=always", self.image, self.copy)
                if writes() == before:
                    return
            time.sleep(0.02)
        raise SystemExit(f"the disk {self.device} does not come to rest")


class PowerWorker(bench.Worker):
    def __init__(self, tarn, scenario, scratch, kind):
        super().__init__(tarn, scenario, scratch)
        self.disk, self.label = Disk(kind, self.directory), f"{kind}, {scenario.name}"
        self.said = os.path.join(self.directory, "said")
        self.boot = os.path.join(self.directory, "boot")

    def new_folder(self):
        """On a blank disk, which no list of the user's mirrors knows."""
        self.disk.renew()
        shutil.rmtree(self.environment["XDG_STATE_HOME"], ignore_errors=True)
        folder = os.path.join(self.disk.place, "mirror")
        os.mkdir(folder)
        return folder

    def examine(self, point):
        """One cut: (reached, violations)."""
        folder, scenario = self.prepare(), self.scenario
        canary = {self.home: check_tree.canary_of(self.home)}
        before = check_tree.inventory(folder) if scenario.has_first_pass else {}
        reached = self.cut(folder, point)
        promises = self.promises()
        self.disk.mount(self.disk.copy)
        found = []
        _, violations = check_tree.check(folder, scenario.versions, scenario.users, canary)
        violations += check_tree.check_promises(folder, promises + self.earlier(before))
        violations += check_tree.check_removals(folder, before, scenario.most_removed)
        if point == END:
            violations += check_tree.check(folder, scenario.final, scenario.users, final=True)[1]
        found += [f"after the cut: {text}" for text in violations]
        with open(self.boot, "w", encoding="ascii") as stream:
            stream.write(f"{uuid.uuid4()}\n")
        restarted = ["unshare", "-m", "sh", "-c", f'mount --bind "$0" {BOOT_ID} && exec "$@"', self.boot]
        marker = self.server.marker()
        found += self.converge(folder, 3, restarted)[1]
        _, violations = check_tree.check(folder, scenario.final, scenario.users, canary, final=True)
        found += [f"after convergence: {text}" for text in violations]
        done = {bytes.fromhex(name).decode() for name, wanted in promises if wanted}
        found += [f"I3 {path} had been called done and was fetched again"
                  for path, _ in self.server.bodies_between(marker, self.server.marker()) if path in done]
        self.disk.unmount()
        return reached, [f"{point[0]} #{point[1]}: {text}" for text in found]

    def cut(self, folder, point):
        """Runs the pass up to the point and copies the image; whatever it printed by then is in `said`."""
        with open(self.said, "wb") as output:
            if point == END:
                result = self.run(folder)
                output.write(result.stdout)
                self.expect(result, 0, "the pass under test")
                self.disk.cut()
                self.disk.unmount()
                return True
            frozen = bench.Frozen(self, folder, point, output)
            try:
                reached = frozen.wait()
                self.disk.cut()
            finally:
                frozen.kill()
        self.disk.unmount()
        return reached

    def promises(self):
        """What the pass printed as done, for check_promises."""
        found = []
        with open(self.said, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                event = json.loads(line) if line.endswith("\n") else {}
                if event.get("type") == "done":
                    name = event["path"].encode().hex()
                    found.append((name, [] if event["code"] == "deleted" else self.scenario.final[name]))
        return found

    def earlier(self, before):
        """What the pass before had placed and the feed still names: there in one of its versions."""
        return [(name, self.scenario.versions[name] + [before[name]]) for name in before if self.scenario.final[name]]

    def stop(self):
        super().stop()
        self.disk.unmount()


def grid(arguments, kind, name, points, scratch):
    """One scenario on one file system: (enumerated, chosen, reached, violations, said)."""
    inner = tempfile.mkdtemp(dir=scratch)
    scenario = bench.Scenario(name, arguments.seed, inner)
    workers = []
    try:
        for _ in range(arguments.jobs):
            workers.append(PowerWorker(arguments.tarn, scenario, inner, kind))
        every = workers[0].points()
        chosen = bench.spread(every, points - 1, whole=False) + [END]
        for worker in workers[1:]:
            worker.middle = workers[0].middle
        results = point_runs.examine_all(workers, chosen, PowerWorker.examine)
        point_runs.tell_unreached(results, f"{kind}: {name}", workers[0].points)
    finally:
        for worker in workers:
            worker.stop()
        shutil.rmtree(inner, ignore_errors=True)
    for _, _, violations in results:
        for text in violations:
            arguments.rules |= set(re.findall(r": (I\d+) ", text))
    return len(every), len(chosen), sum(hit for _, hit, _ in results), sum(len(texts) for _, _, texts in results)


def grids(arguments, scratch):
    good = True
    for kind in arguments.file_system or list(DISKS):
        sums = [0, 0, 0, 0]
        names = arguments.scenario or SCENARIOS
        for index, name in enumerate(names):
            share = arguments.points * (index + 1) // len(names) - arguments.points * index // len(names)
            sums = [a + b for a, b in zip(sums, grid(arguments, kind, name, max(2, share), scratch))]
        enumerated, chosen, reached, violations = sums
        print(f"power grid: {kind} enumerated {enumerated}, images {chosen}, reached {reached}, violations {violations}",
              flush=True)
        good = good and violations == 0 and reached * 10 >= chosen * 9
    return good


def obstacle(arguments):
    """Why no image can be mounted here; None when one can."""
    if os.geteuid() != 0:
        return "root is needed to mount images"
    if not os.path.isdir("/sys/block"):
        return "sysfs is not mounted, so nobody can tell when a disk is at rest"
    for kind in arguments.file_system or list(DISKS):
        if not shutil.which(DISKS[kind][0][0]):
            return f"{DISKS[kind][0][0]} is not there"
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-power-grid."))
    try:
        for kind in arguments.file_system or list(DISKS):
            inner = tempfile.mkdtemp(dir=scratch)
            disk = Disk(kind, inner)
            disk.renew()
            disk.unmount()
        run("unshare", "-m", "true")
    except subprocess.CalledProcessError as error:
        return f"{error.cmd[0]}: {error.stderr.decode(errors='replace').strip()}"
    except SystemExit as error:
        return str(error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return None


def self_test(arguments, scratch):
    """The toy of toy_mirror.py passes when it behaves, and each of its sins is found on ext4 with writeback."""
    toy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "toy_mirror.py")
    arguments.file_system, arguments.points, verdicts = ["ext4-writeback"], 12, {}
    for sin, scenario, rule in (("", "update", None), ("unsynced", "fresh", "I1"), ("boastful", "fresh", "I4")):
        arguments.tarn, arguments.scenario, arguments.rules = os.path.join(scratch, f"toy-{sin}"), [scenario], set()
        with open(arguments.tarn, "w", encoding="utf-8") as stream:
            stream.write(f'#!/bin/sh\nTOY_SIN={sin} exec {sys.executable} -S -E {toy} "$@"\n')
        os.chmod(arguments.tarn, 0o755)
        verdicts[f"{scenario} {sin or 'sound'}"] = \
            grids(arguments, scratch) == (rule is None) and (rule is None or rule in arguments.rules)
    print(f"power_grid.py: {sum(verdicts.values())} of {len(verdicts)} toys judged rightly {verdicts}")
    return all(verdicts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tarn", default=os.environ.get("TARN_BINARY", "tarn"))
    parser.add_argument("--file-system", action="append", choices=list(DISKS), help="repeatable; all without it")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="repeatable; all without it")
    parser.add_argument("--points", type=int, default=200, help="images for each file system")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--can-run", action="store_true", help="end with 1 and the reason if no image can be mounted here")
    arguments = parser.parse_args()
    arguments.rules = set()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    reason = obstacle(arguments)
    if reason or arguments.can_run:
        print(f"power grid: skipped: {reason}" if reason else "power grid: images can be mounted here")
        sys.exit(1 if reason and arguments.can_run else 0)
    arguments.tarn = bench.find_tarn(arguments.tarn)
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="tarn-power-grid."))
    try:
        good = self_test(arguments, scratch) if arguments.self_test else grids(arguments, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
