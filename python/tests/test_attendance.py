"""Who uses a fleet: connections that end with their processes."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest

from headrace import attendance

TOKEN = "t" * 32


class Fleet:
    """The fleet's side, which notes its end."""

    def __init__(self, linger: float) -> None:
        self.ended = threading.Event()
        self.port = attendance.Attendance("127.0.0.1", TOKEN, linger, self.ended.set).port

    def attend(self, token: str = TOKEN) -> socket.socket | None:
        return attendance.attend("127.0.0.1", self.port, token)


def is_closed(connection: socket.socket) -> bool:
    """Waits for the other side to close it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:  # it left unread bytes
        return True


def test_the_last_user_ends_a_fleet() -> None:
    fleet = Fleet(0)
    one, two = fleet.attend(), fleet.attend()
    assert one is not None and two is not None
    one.close()
    assert not fleet.ended.wait(0.2)
    assert attendance.is_attended(two)
    two.close()
    assert fleet.ended.wait(30)
    assert fleet.attend() is None


def test_a_user_in_time_keeps_a_fleet() -> None:
    fleet = Fleet(1)
    one = fleet.attend()
    assert one is not None
    one.close()
    two = fleet.attend()
    assert two is not None
    assert not fleet.ended.wait(1.5)
    two.close()
    assert fleet.ended.wait(30)


@pytest.mark.fork
def test_the_end_of_a_killed_user_is_seen() -> None:
    fleet = Fleet(0)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        kept = fleet.attend()
        os.write(write, b"1" if kept is not None else b"0")
        time.sleep(60)
        os._exit(0)
    assert os.read(read, 1) == b"1"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert fleet.ended.wait(30)
    os.close(read)
    os.close(write)


def test_strangers_neither_keep_a_fleet_nor_keep_users_out() -> None:
    fleet = Fleet(0)
    assert fleet.attend("u" * 32) is None
    silent = [socket.create_connection(("127.0.0.1", fleet.port)) for _ in range(80)]
    one = fleet.attend()
    assert one is not None
    silent[-1].sendall(b"x" * 1000)  # no token is as long
    assert is_closed(silent[-1])
    one.close()
    assert fleet.ended.wait(30)
    assert all(map(is_closed, silent))
    for other in silent:
        other.close()
