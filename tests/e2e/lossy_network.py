"""A network of namespaces that loses, delays and cuts off packets, for the soak of the service.

Each host is a network namespace with a TUN device. A thread of this process reads the packets of all devices and passes each
on to the device of its destination. So it needs root and /dev/net/tun, but not netem, which many kernels lack.
"""
import fcntl
import heapq
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
MTU = 9000
READS = 64  # packets of one host at a time
QUEUE_MAX = 4096  # packets on their way; more are lost, as in a router


def is_possible():
    """Why there can be no such network, or None."""
    if os.geteuid() != 0:
        return "not root"
    if not os.path.exists("/dev/net/tun") or shutil.which("ip") is None:
        return "no /dev/net/tun or no ip (iproute2)"
    name = f"hr{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode != 0:
        return "no network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None


class Network:
    """Hosts 10.77.0.1, 10.77.0.2, ... `loss` is a probability, `delay` and `jitter` are seconds one way."""

    def __init__(self, hosts, seed):
        self.loss = self.delay = self.jitter = 0.0
        self.cuts = set()  # pairs (from, to) of hosts whose packets are lost
        self.passed = self.lost = 0
        self.rng = random.Random(seed)
        self.names = [f"hr{os.getpid()}-{i}" for i in range(hosts)]
        self.devices = []
        self.ended = False
        try:
            for at, name in enumerate(self.names):
                self._add_host(at, name)
        except BaseException:
            self.close()
            raise
        self.thread = threading.Thread(target=self._pass_on, daemon=True)
        self.thread.start()

    def _add_host(self, at, name):
        def ip(*words):
            subprocess.run(["ip", *words], check=True)

        device = f"hrt{os.getpid() % 100000}x{at}"
        ip("netns", "add", name)
        fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.devices.append(fd)
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
        ip("link", "set", device, "netns", name)
        ip("-n", name, "addr", "add", f"{self.address(at)}/24", "dev", device)
        ip("-n", name, "link", "set", device, "mtu", str(MTU), "up")
        ip("-n", name, "link", "set", "lo", "up")

    @staticmethod
    def address(host):
        return f"10.77.0.{host + 1}"

    def command(self, host):
        """The words before a command that runs on this host."""
        return ["ip", "netns", "exec", self.names[host]]

    def cut(self, a, b):
        self.cuts |= {(a, b), (b, a)}

    def cut_off(self, host):
        for other in range(len(self.names)):
            self.cut(host, other)

    def heal(self):
        self.cuts = set()

    def _pass_on(self):
        poll, queue, number = select.epoll(), [], 0
        for fd in self.devices:
            poll.register(fd, select.EPOLLIN)
        while not self.ended:
            wait = 0.05 if not queue else min(0.05, max(0.0, queue[0][0] - time.monotonic()))
            for fd, _ in poll.poll(wait):
                number = self._read(fd, queue, number)
            now = time.monotonic()
            while queue and queue[0][0] <= now:
                _, _, to, packet = heapq.heappop(queue)
                try:
                    os.write(self.devices[to], packet)
                except OSError:  # its queue is full
                    self.lost += 1
        poll.close()

    def _read(self, fd, queue, number):
        source = self.devices.index(fd)
        for _ in range(READS):
            try:
                packet = os.read(fd, MTU)
            except OSError:
                break
            to = packet[19] - 1 if len(packet) >= 20 and packet[0] >> 4 == 4 else -1
            if not 0 <= to < len(self.devices):
                continue  # IPv6 looks for routers
            if (source, to) in self.cuts or self.rng.random() < self.loss or len(queue) >= QUEUE_MAX:
                self.lost += 1
                continue
            self.passed += 1
            number += 1
            heapq.heappush(queue, (time.monotonic() + self.delay + self.rng.random() * self.jitter, number, to, packet))
        return number

    def close(self):
        self.ended = True
        if hasattr(self, "thread"):
            self.thread.join()
        for fd in self.devices:
            os.close(fd)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
