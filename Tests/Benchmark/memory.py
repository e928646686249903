"""Memory that a machine's host has taken back, and brings again page by page, at a high price: 1.6 s for each GiB were measured
where a virtual machine reports its free pages (virtio-balloon). Whoever runs first after a pause would pay for it."""
import mmap

POPULATE_WRITE = 23  # madvise(2), since Linux 5.14


def warm(size):
    """So many bytes of free memory are there when this returns, or half of what is free."""
    with open("/proc/meminfo", encoding="ascii") as stream:
        free = next(int(line.split()[1]) << 10 for line in stream if line.startswith("MemAvailable:"))
    size = min(size, free // 2) // mmap.PAGESIZE * mmap.PAGESIZE
    with mmap.mmap(-1, size) as pages:
        try:
            pages.madvise(POPULATE_WRITE)
        except OSError:
            for place in range(0, size, mmap.PAGESIZE):
                pages[place] = 1
    return size
