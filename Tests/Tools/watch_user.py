"""A user who does to a mirror's folder whatever users do, and keeps count of every byte string that he made.

Each one is unique, so that where it is found says that it is not lost. One that the user overwrites or deletes himself is
his own loss: what stands there is read right before, by the same descriptor where it is written in place. Tarn moves files
and never writes into one, so nothing else can come between.
"""
import collections
import os
import shutil
import stat

LEAST = 16  # Shorter remains of a truncated file are nobody's in particular.


class User:
    def __init__(self, folder, chooser):
        self.folder, self.random = folder, chooser
        self.alive, self.destroyed, self.number = set(), set(), 0
        self.counts = collections.Counter()
        # Paths that were seen in place once: whatever the user does there is an edit, not a conflict.
        self.placed = set()
        self.moved = []
        self.kept = {}

    # --- what is counted --------------------------------------------------------------------------------------

    def new(self, size=None):
        self.number += 1
        text = f"of the user, number {self.number}, {self.random.getrandbits(64):016x}\n".encode()
        return text + self.random.randbytes(self.random.choice([0, 0, 100, 5000]) if size is None else size)

    def made(self, data):
        if len(data) >= LEAST:
            self.alive.add(data)

    def loses(self, data):
        if data in self.alive:
            self.alive.remove(data)
            self.destroyed.add(data)

    def loses_path(self, full):
        """What stands there is about to be removed by the user."""
        try:
            status = os.lstat(full)
            if stat.S_ISLNK(status.st_mode):
                self.loses(b"link to " + os.fsencode(os.readlink(full)))
            elif stat.S_ISREG(status.st_mode):
                with open(full, "rb") as stream:
                    self.loses(stream.read())
        except OSError:
            pass

    def full(self, path):
        return os.path.join(self.folder, path)

    def fresh(self, directory):
        self.number += 1
        return os.path.join(directory, f"user-{self.number}")

    # --- what is done -----------------------------------------------------------------------------------------

    def act(self, wanted):
        """One thing of the user's; most are to files that the feed names."""
        self.look(wanted)
        known = [path for path in wanted if path in self.placed]
        if not known:
            return
        kinds = [self.edit] * 3 + [self.append, self.truncate, self.replace, self.replace, self.delete, self.delete,
                 self.rename, self.rename, self.rename_over, self.chmod, self.link, self.fifo, self.directory,
                 self.hard_link, self.create, self.move_directory, self.move_back, self.remove_directory, self.keep]
        kind = self.random.choice(kinds)
        path = self.random.choice(known)
        for _ in range(5):
            if not os.path.lexists(self.full(path)):
                path = self.random.choice(known)
        try:
            kind(path, known)
            self.counts[kind.__name__] += 1
        except OSError:
            # The agent was quicker.
            self.counts["overtaken"] += 1

    def look(self, wanted):
        for path in wanted:
            if path not in self.placed and os.path.isfile(self.full(path)):
                self.placed.add(path)

    def edit(self, path, _):
        descriptor = os.open(self.full(path), os.O_RDWR)
        with os.fdopen(descriptor, "r+b") as stream:
            self.loses(stream.read())
            data = self.new()
            stream.seek(0)
            stream.truncate()
            stream.write(data)
        self.made(data)

    def append(self, path, _):
        with os.fdopen(os.open(self.full(path), os.O_RDWR), "r+b") as stream:
            before = stream.read()
            self.loses(before)
            data = self.new(0)
            stream.write(data)
        self.made(before + data)

    def truncate(self, path, _):
        with os.fdopen(os.open(self.full(path), os.O_RDWR), "r+b") as stream:
            before = stream.read()
            self.loses(before)
            rest = before[:self.random.randrange(len(before) + 1)]
            stream.truncate(len(rest))
        if before != rest:
            self.made(rest)

    def replace(self, path, _):
        """As editors do."""
        self.put(self.full(path), self.new())

    def put(self, full, data):
        temporary = self.fresh(os.path.dirname(full))
        with open(temporary, "wb") as stream:
            stream.write(data)
        self.made(data)
        self.loses_path(full)
        try:
            os.rename(temporary, full)
        except OSError:
            self.loses(data)
            os.unlink(temporary)
            raise

    def delete(self, path, _):
        self.loses_path(self.full(path))
        os.unlink(self.full(path))

    def rename(self, path, known):
        directory = self.random.choice(["", "mine", os.path.dirname(path), os.path.dirname(self.random.choice(known))])
        os.makedirs(self.full("mine"), exist_ok=True)
        os.rename(self.full(path), self.fresh(self.full(directory)))

    def rename_over(self, path, known):
        other = self.full(self.random.choice(known))
        if other == self.full(path):
            return
        self.loses_path(other)
        os.rename(self.full(path), other)

    def chmod(self, path, _):
        os.chmod(self.full(path), self.random.choice([0o600, 0o444, 0o755, 0o666]))

    def link(self, path, _):
        """In its place, whole: no moment without anything."""
        target = f"nowhere/{self.new(0).decode().strip()}"
        temporary = self.fresh(os.path.dirname(self.full(path)))
        os.symlink(target, temporary)
        self.loses_path(self.full(path))
        try:
            os.rename(temporary, self.full(path))
        except OSError:
            os.unlink(temporary)
            raise
        self.made(b"link to " + target.encode())

    def fifo(self, path, _):
        self.loses_path(self.full(path))
        os.unlink(self.full(path))
        os.mkfifo(self.full(path))

    def directory(self, path, _):
        full = self.full(path)
        self.loses_path(full)
        os.unlink(full)
        os.mkdir(full)
        for name in ("inner", "more/deeper"):
            os.makedirs(os.path.dirname(os.path.join(full, name)), exist_ok=True)
            data = self.new()
            with open(os.path.join(full, name), "wb") as stream:
                stream.write(data)
            self.made(data)

    def hard_link(self, path, _):
        os.makedirs(self.full("mine"), exist_ok=True)
        os.link(self.full(path), self.fresh(self.full("mine")), follow_symlinks=False)

    def create(self, path, _):
        data = self.new()
        full = self.fresh(os.path.dirname(self.full(path)))
        os.makedirs(full)
        with open(os.path.join(full, "file"), "wb") as stream:
            stream.write(data)
        self.made(data)

    def keep(self, *_):
        """Beside the mirror's files, and never touched again: it stays where it is."""
        os.makedirs(self.full("kept"), exist_ok=True)
        data = self.new()
        path = self.fresh("kept")
        with open(self.full(path), "wb") as stream:
            stream.write(data)
        self.made(data)
        self.kept[path] = data

    def move_directory(self, path, _):
        directory = os.path.dirname(path)
        if not directory:
            return
        place = self.fresh(self.folder if self.random.random() < 0.5 else os.path.dirname(self.folder))
        os.rename(self.full(directory), place)
        self.moved.append((place, directory))

    def move_back(self, *_):
        if self.moved:
            place, directory = self.moved.pop(self.random.randrange(len(self.moved)))
            try:
                os.rename(place, self.full(directory))
            except OSError:
                self.moved.append((place, directory))
                raise

    def remove_directory(self, *_):
        if len(self.moved) < 3:
            return
        place, _ = self.moved.pop(self.random.randrange(len(self.moved)))
        for parent, _, files in os.walk(place):
            for name in files:
                self.loses_path(os.path.join(parent, name))
        shutil.rmtree(place)

    # --- the account ------------------------------------------------------------------------------------------

    def lost(self, places):
        """Byte strings that are nowhere, and nobody's own loss."""
        found = set()
        for top in places:
            for parent, directories, files in os.walk(top):
                for name in files + directories:
                    full = os.path.join(parent, name)
                    status = os.lstat(full)
                    if stat.S_ISLNK(status.st_mode):
                        found.add(b"link to " + os.fsencode(os.readlink(full)))
                    elif stat.S_ISREG(status.st_mode):
                        with open(full, "rb") as stream:
                            found.add(stream.read())
        return self.alive - found
