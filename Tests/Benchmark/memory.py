"""Memory that a machine's host has taken back comes again page by page, at a high price: 1.6 s for each GiB were measured where a
virtual machine reports its free pages (virtio-balloon), and what a run frees is reported a moment later. So whoever needs memory would
pay for who had it before: who writes 1.4 GB a third of the time, in one run and not in the next."""
import mmap
import threading

HUGE_PAGES, POPULATE_WRITE = 14, 23  # madvise(2), the second since Linux 5.14
STEP, AHEAD = 64 << 20, 512 << 20


def of(name):
    """Bytes, by their name in /proc/meminfo."""
    with open("/proc/meminfo", encoding="ascii") as stream:
        return next(int(line.split()[1]) << 10 for line in stream if line.startswith(name + ":"))


class Reserve:
    """Holds memory that is there, so that nobody takes it back, and lets go of it as others use free memory: at any time half a GiB of
    it is free. In large pages, which cost nothing to let go."""

    def __init__(self, size):
        self.pieces = [self.piece() for _ in range(min(size, of("MemAvailable") // 2) // STEP)]
        self.most = of("MemFree") + AHEAD
        self.is_over = threading.Event()
        self.keeper = threading.Thread(target=self.keep, daemon=True)

    @staticmethod
    def piece():
        piece = mmap.mmap(-1, STEP, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        try:
            piece.madvise(HUGE_PAGES)
            piece.madvise(POPULATE_WRITE)
        except OSError:
            for place in range(0, STEP, mmap.PAGESIZE):
                piece[place] = 1
        return piece

    def give(self):
        while self.pieces and of("MemFree") < self.most:
            self.pieces.pop().close()

    def keep(self):
        while self.pieces and not self.is_over.wait(0.005):
            self.give()

    def __enter__(self):
        self.give()
        self.keeper.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.keeper.join()
        while self.pieces:
            self.pieces.pop().close()
