"""A long line between two network interfaces: carries what goes into one TUN device out of the other after a while.

    relay.py NAME NAME DELAY RATE

Makes the devices and writes a line to its output; whoever reads it moves them into network namespaces and gives them addresses. Each
packet is on its way for DELAY seconds, and for as long as it takes at RATE bytes per second behind those before it; what would have
to wait for more than 0.2 s is lost, as in the queue of a router. Runs until it is killed.
"""
import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
QUEUE = 0.2


def device(name):
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


class Way:
    """One direction."""

    def __init__(self, source, target, delay, rate):
        self.source, self.target, self.delay, self.rate = source, target, delay, rate
        self.packets, self.free = collections.deque(), 0.0

    def take(self, now):
        for _ in range(64):
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return
            self.free = max(self.free, now) + len(packet) / self.rate
            if self.free - now <= QUEUE:
                self.packets.append((self.free + self.delay, packet))

    def give(self, now):
        while self.packets and self.packets[0][0] <= now:
            try:
                os.write(self.target, self.packets.popleft()[1])
            except OSError:
                pass  # The other end is not up, or its queue is full: lost.


def main():
    one, other = device(sys.argv[1]), device(sys.argv[2])
    ways = [Way(source, target, float(sys.argv[3]), float(sys.argv[4])) for source, target in ((one, other), (other, one))]
    print("ready", flush=True)
    while True:
        due = min((way.packets[0][0] for way in ways if way.packets), default=None)
        wait = 1.0 if due is None else max(0.0, due - time.monotonic())
        readable, _, _ = select.select([one, other], [], [], wait)
        now = time.monotonic()
        for way in ways:
            if way.source in readable:
                way.take(now)
            way.give(now)


if __name__ == "__main__":
    main()
