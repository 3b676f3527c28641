"""Ports for the servers of tests."""

from __future__ import annotations

import pathlib
import random
import socket

RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
taken: list[socket.socket] = []


def ports() -> range:
    """Ports that the kernel assigns to no outgoing connection, if its range leaves enough: a restarted server finds
    its port free."""
    first = int(RANGE.read_text().split()[0])
    return range(10000, first) if first > 12000 else range(10000, 60000)


def free_port() -> int:
    """A port of TCP that no other test gets as long as this process lives: the UDP port of that number is bound."""
    for port in random.SystemRandom().sample(ports(), 1000):
        with socket.socket() as server:
            datagrams = socket.socket(type=socket.SOCK_DGRAM)
            try:
                datagrams.bind(("127.0.0.1", port))
                server.bind(("127.0.0.1", port))
            except OSError:
                datagrams.close()
                continue
        taken.append(datagrams)
        return port
    raise OSError("no port is free")
