"""File systems of their own: ext4 on a sparse image, fresh for each run, so that nobody pays for another's pages."""
import ctypes
import os
import shutil
import subprocess
import time

import command

LIBC = ctypes.CDLL(None, use_errno=True)


def sync(path):
    """syncfs of the file system of a path; the seconds that it took."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        begin = time.perf_counter()
        if LIBC.syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), f"syncfs {path}")
        return time.perf_counter() - begin
    finally:
        os.close(descriptor)


class Disks:
    """Makes file systems below a directory. Where nothing can be mounted they are plain directories, and `note` says so."""

    def __init__(self, directory):
        self.directory, self.count, self.note, self.open = directory, 0, "", []
        self.direct = True
        try:
            self.take(64 << 20).drop()
        except (OSError, SystemExit) as error:
            self.note = (f"no file system can be mounted here ({str(error).strip()[-200:]}): the runs write into directories "
                         "of one file system, and pay for each other's pages")

    def take(self, size, files=0, inline=False):
        """An empty file system of so many bytes, with inodes for so many files. inline: files of a few bytes lie in them."""
        self.count += 1
        options = ["-O", "inline_data"] if inline else []
        if files:
            options += ["-N", str(files * 5 // 4 + 10_000)]
        return Disk(self, os.path.join(self.directory, f"disk{self.count}"), size, options)

    def drop_all(self):
        for disk in list(self.open):
            disk.drop()


class Disk:
    def __init__(self, disks, path, size, options):
        self.disks, self.path, self.image, self.device = disks, path, path + ".img", None
        os.mkdir(path)
        disks.open.append(self)
        if disks.note:
            return
        try:
            self.mount(size, options)
        except BaseException:
            self.drop()
            raise

    def mount(self, size, options):
        with open(self.image, "wb") as stream:
            stream.truncate(size)
        # All at once or not at all: nothing of the making goes on while a run is measured.
        lazy = ["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]
        command.expect(["mkfs.ext4", "-q", "-F", *options, *lazy, self.image])
        # Direct: the pages of the file system are not cached once more as pages of its image.
        direct = ["--direct-io=on"] if self.disks.direct else []
        try:
            self.device = command.expect(["losetup", *direct, "--find", "--show", self.image]).decode().strip()
        except SystemExit:
            if not self.disks.direct:
                raise
            self.disks.direct = False
            self.device = command.expect(["losetup", "--find", "--show", self.image]).decode().strip()
        command.expect(["mount", "-t", "ext4", "-o", "noinit_itable", self.device, self.path])
        os.rmdir(os.path.join(self.path, "lost+found"))

    def drop(self):
        """The file system is gone, with all that it holds."""
        if self in self.disks.open:
            self.disks.open.remove(self)
        if self.device:
            for _ in range(50):
                if subprocess.run(["umount", self.path], stderr=subprocess.DEVNULL).returncode == 0:
                    break
                if not os.path.ismount(self.path):
                    break
                time.sleep(0.1)
            subprocess.run(["losetup", "--detach", self.device], stderr=subprocess.DEVNULL)
        if os.path.exists(self.image):
            os.unlink(self.image)
        if not os.path.ismount(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
