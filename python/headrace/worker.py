"""Worker processes; host.py starts them and is the other end of their socket.

One process, the nursery, imports once what the user's functions need, and forks a worker on
request. It has a single thread, so forking is safe; it takes a millisecond, and workers share
the pages of modules and data. If an import has started threads, the nursery reports that
instead, and the parent starts every worker as a separate nursery.

Messages on the socket are pickled dicts, with descriptors attached to those of the parent. All
processes end when the socket is closed or the parent dies; a nursery without workers ends
after some idle time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from . import _headrace, pickling, seeding

HEADER_BYTES = 1 << 16
_ERROR_CHARS, _DETAIL_CHARS = 4000, 8000  # of a message, so that it fits: a character may take 4 bytes
IDLE_SECONDS = 20.0  # after which a nursery without workers ends
_END_SECONDS = 1.0  # for a worker whose socket is closed to end
_CODES_KEPT = 64
_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 64 << 20  # freed memory that a worker keeps, at most

_IMPORT_OBJECTS = 50_000  # between collections: what imports make stays

importing = False  # the user's script or functions, in this process

Found = tuple[str, Callable[..., Any]]


def _receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """A message and its descriptors; None at end of file."""
    data, fds, _, _ = socket.recv_fds(sock, HEADER_BYTES, 2)
    return (pickle.loads(data), fds) if data else None


def _reply(sock: socket.socket, **message: Any) -> None:
    sock.sendall(pickle.dumps(message))


def _load(fds: list[int]) -> dict[str, Found]:
    """The functions from the parent's memory files, with what they need imported."""
    global importing
    importing = True
    threshold = gc.get_threshold()
    gc.set_threshold(_IMPORT_OBJECTS, *threshold[1:])
    try:
        return _import(fds)
    finally:
        importing = False
        if gc.get_threshold()[0] == _IMPORT_OBJECTS:  # the user's script has set none
            gc.set_threshold(*threshold)


def _import(fds: list[int]) -> dict[str, Found]:
    with os.fdopen(fds[0], "rb") as file:
        file.seek(0)
        main_data, codes = pickle.loads(file.read())
    memory = memoryview(b"")
    for fd in fds[1:]:
        memory = pickling.mapped(fd)
        os.close(fd)
    if main_data is not None:
        from multiprocessing import spawn

        spawn.prepare(main_data)
    return {
        name: (kind, pickle.loads(data, buffers=[memory[at : at + length] for at, length in spans]))
        for name, kind, data, spans in codes
    }


def _keep_freed_memory() -> None:
    """A worker has little beside the arrays of a record, so that glibc would return their memory after each, and every
    page would be faulted in again: three times the CPU time with arrays of 1 MB. What the environment says holds."""
    if any(name in os.environ for name in ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")):
        return
    with contextlib.suppress(AttributeError):  # another libc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that glibc takes
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)


def _die_with_parent(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _serve(fd: int, found: dict[str, Found]) -> int:
    try:
        _headrace.serve(fd, found.get, seeding.begin_epoch)
        return 0
    except BaseException:  # noqa: BLE001 - the engine sees the socket close; print the reason
        import traceback

        traceback.print_exc()
        return 1


def _fork(sock: socket.socket, fd: int, found: dict[str, Found]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        _die_with_parent(parent)
        _keep_freed_memory()
        sock.close()
        code = _serve(fd, found)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reap(children: set[int], codes: dict[int, int]) -> None:
    """Of the children that have ended keeps the exit codes, those of the last ones."""
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            children.discard(pid)
            codes[pid] = os.waitstatus_to_exitcode(status)
            if len(codes) > _CODES_KEPT:
                del codes[next(iter(codes))]


def _exit_code(pid: int, children: set[int], codes: dict[int, int]) -> int | None:
    """The exit code of a child that is about to end; None: it does not."""
    until = time.monotonic() + _END_SECONDS
    while pid in children and time.monotonic() < until:
        time.sleep(0.002)
        _reap(children, codes)
    return codes.pop(pid, None)


def _loop(sock: socket.socket, found: dict[str, Found]) -> None:
    """Forks and kills workers on request, until the parent ends."""
    children: set[int] = set()
    codes: dict[int, int] = {}
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        while True:
            ready = select.select([sock.fileno(), wake_read], [], [], None if children else IDLE_SECONDS)[0]
            if not ready:
                return
            if wake_read in ready:
                os.read(wake_read, 4096)
                _reap(children, codes)
            if sock.fileno() not in ready:
                continue
            got = _receive(sock)
            if got is None:
                return
            message, fds = got
            if message["do"] == "fork":
                pid = _fork(sock, fds[0], found)
                children.add(pid)
                _reply(sock, pid=pid)
            elif message["do"] == "serve":  # this process is the worker
                _reply(sock, pid=os.getpid())
                os._exit(_serve(fds[0], found))
            elif message["do"] == "kill" and message["pid"] in children:
                os.kill(message["pid"], signal.SIGKILL)
            elif message["do"] == "tell":
                _reply(sock, code=_exit_code(message["pid"], children, codes))
            for fd in fds:
                os.close(fd)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def main(fd: int) -> None:
    """Run a nursery on the socket `fd`."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # engine threads block all signals, and a process inherits that
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["HEADRACE_WORKER"] = "1"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), socket.socket(fileno=fd) as sock:
        sock.set_inheritable(False)
        _nursery(sock)  # the two errors mean that the parent has ended


def _nursery(sock: socket.socket) -> None:
    got = _receive(sock)
    if got is None:
        return
    try:
        found = _load(got[1])
    except BaseException as error:  # noqa: BLE001 - goes to the parent
        import traceback

        try:
            words = str(error)
        except Exception:  # noqa: BLE001 - of the user's class
            words = "it has no words"
        text, detail = f"{type(error).__name__}: {words}", traceback.format_exc()
        if len(text) > _ERROR_CHARS:
            text = text[: _ERROR_CHARS - 1] + "…"
        if len(detail) > _DETAIL_CHARS:
            detail = "…" + detail[1 - _DETAIL_CHARS :]
        _reply(sock, error=text, detail=detail)
        return
    gc.collect()
    gc.freeze()  # the collector never visits what was imported, so its pages stay shared
    threads = len(os.listdir("/proc/self/task"))
    _reply(sock, threads=threads)
    _loop(sock, found)
