"""Who uses a fleet that runs elsewhere: one TCP connection for each user, which ends with it.

The kernel closes the connection of a process that is killed, and keepalive finds hosts that are gone, so
no thread of a training process has to report that it is alive. A user shows the fleet's token first.
"""

from __future__ import annotations

import contextlib
import hmac
import selectors
import socket
import threading
import time
from collections.abc import Callable

_WELCOME = b"welcome\n"
_STRANGERS_MAX = 64  # connections that have not shown the token; the oldest is closed for a new one
_TOKEN_MAX = 256
_FIRST_S = 60.0  # that the first user may take to come
_CONNECT_S = 10.0
_RETRY_S = 0.05  # after a connection that could not be accepted
_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # 25 s until a host counts as gone


class Attendance:
    """The fleet's side. `ended` is called once, in a thread, when the last user has been gone for
    `linger` seconds, or if none comes within a minute."""

    def __init__(self, host: str, token: str, linger: float, ended: Callable[[], None]) -> None:
        self._token = token.encode()
        self._linger, self._ended = linger, ended
        self._users: set[socket.socket] = set()
        self._strangers: dict[socket.socket, bytes] = {}
        self._until = time.monotonic() + _FIRST_S
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._select = selectors.DefaultSelector()
        self._select.register(self._listener, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="headrace-attendance", daemon=True).start()

    def _run(self) -> None:
        try:
            while self._users or time.monotonic() < self._until:
                wait = None if self._users else max(0.0, self._until - time.monotonic())
                for key, _ in self._select.select(wait):
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._receive(key.fileobj)  # type: ignore[arg-type]
        finally:  # a fleet without a count of its users must not live for ever
            self._select.close()
            for one in (self._listener, *self._strangers, *self._users):
                one.close()
            self._ended()

    def _accept(self) -> None:
        try:
            user, _ = self._listener.accept()
        except OSError:  # it is gone already, or there are no descriptors left
            time.sleep(_RETRY_S)
            return
        if len(self._strangers) >= _STRANGERS_MAX:
            self._close(next(iter(self._strangers)))
        user.setblocking(False)
        with contextlib.suppress(OSError):  # the peer has reset the connection: reading finds out
            _keep_alive(user)
        self._strangers[user] = b""
        self._select.register(user, selectors.EVENT_READ)

    def _receive(self, user: socket.socket) -> None:
        if user not in self._users and user not in self._strangers:  # closed by an earlier event
            return
        try:
            data = user.recv(_TOKEN_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(user)
            return
        if user in self._users:
            return
        said = self._strangers[user] + data
        self._strangers[user] = said
        if b"\n" not in said and len(said) < _TOKEN_MAX:
            return
        if not hmac.compare_digest(said.partition(b"\n")[0], self._token):
            self._close(user)
            return
        del self._strangers[user]
        self._users.add(user)
        with contextlib.suppress(OSError):
            user.send(_WELCOME)

    def _close(self, user: socket.socket) -> None:
        self._select.unregister(user)
        user.close()
        self._strangers.pop(user, None)
        if user in self._users:
            self._users.discard(user)
            self._until = time.monotonic() + self._linger


def _keep_alive(connection: socket.socket) -> None:
    """Let the kernel find out when the host of the other side is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def attend(host: str, port: int, token: str) -> socket.socket | None:
    """A connection that says that this process uses the fleet; None if the fleet is just ending."""
    try:
        user = socket.create_connection((host, port), _CONNECT_S)
    except OSError:
        return None
    try:
        _keep_alive(user)
        user.sendall(token.encode() + b"\n")
        if user.recv(len(_WELCOME)) == _WELCOME:
            user.setblocking(False)
            return user
    except OSError:
        pass
    user.close()
    return None


def is_attended(user: socket.socket) -> bool:
    """Whether the connection holds: False if the fleet has ended."""
    try:
        return user.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
