"""The parent's side of worker processes (see worker.py).

A host belongs to a frozen graph. Its nursery starts with the first run of a loader, and
ends with the last loader of the graph, or by itself when nobody needed it for a while.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from typing import Any

from .errors import CodeError
from .shipping import Memory, Shipped

# One thread per worker: the engine runs as many workers as it has threads.
_ENV = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")

_ATTEMPTS = 3  # at starting a worker, when the process that starts them is killed


def payload(codes: list[Shipped]) -> bytes:
    """What a worker needs: search path, how to import __main__, and the functions."""
    preparation: dict[str, Any] = {"sys_path": list(sys.path)}
    if any(b"__main__" in one.data for one in codes):
        from multiprocessing import spawn

        main = spawn.get_preparation_data("headrace")
        preparation["main"] = {k: v for k, v in main.items() if k.startswith("init_main") or k == "sys_argv"}
    return pickle.dumps((preparation, [tuple(one) for one in codes]), 5)


class Nursery:
    """A process of worker.py, and the socket to it."""

    def __init__(self, data: bytes, buffers: Memory) -> None:
        if os.environ.get("HEADRACE_WORKER") and "__mp_main__" in sys.modules:
            raise CodeError(
                "worker processes were asked for while a worker process imported your script; put what "
                "starts the training under `if __name__ == '__main__':`"
            )
        self.threads = 0  # known when it has imported the functions
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = os.memfd_create("headrace-code", os.MFD_CLOEXEC)
        try:
            with open(os.dup(memory), "wb") as file:
                file.write(data)
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, *_flags(), "-m", "headrace.worker", str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **_ENV, **_path()},
                    stdin=subprocess.DEVNULL,
                )
            with contextlib.suppress(CodeError):  # it was killed: ready() says so
                self.ask({"do": "load"}, [memory, *buffers.descriptors()], answer=False)
        except BaseException:
            self.sock.close()
            raise
        finally:
            os.close(memory)

    def ready(self) -> None:
        """Wait until the functions are imported; CodeError with the reason when not."""
        if self.threads == 0:
            self.threads = self._answer()["threads"]

    def ask(self, message: dict[str, Any], fds: list[int], answer: bool = True) -> dict[str, Any]:
        """Send a message with descriptors, and wait for what comes back."""
        try:
            socket.send_fds(self.sock, [json.dumps(message).encode()], fds)
        except OSError as error:
            raise CodeError(f"the process that starts workers ended (exit status {self.process.poll()})") from error
        return self._answer() if answer else {}

    def _answer(self) -> dict[str, Any]:
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            when = " while it imported your code" if self.threads == 0 else ""
            raise CodeError(f"the process that starts workers ended{when} (exit status {self.process.wait()})")
        message: dict[str, Any] = json.loads(data)
        if "error" in message:
            raise CodeError(
                f"a worker process cannot import your code: {message['error']}", detail=message.get("detail", "")
            )
        return message

    def close(self) -> None:
        """End the process and its workers."""
        self.sock.close()
        if self.threads == 0:  # it imports, and would look at the socket afterwards only
            self.process.kill()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _flags() -> list[str]:
    return [f for f in subprocess._args_from_interpreter_flags() if not f.startswith("-m")]  # type: ignore[attr-defined]


def _path() -> dict[str, str]:
    """So that the worker finds this very package before it has our search path."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    old = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": here + (os.pathsep + old if old else "")}


class Host:
    """Starts and ends workers for the engine; shared by the iterators of a graph.

    start and kill are called from threads of the engine.
    """

    def __init__(self, codes: list[Shipped], buffers: Memory) -> None:
        self._codes, self._buffers = codes, buffers
        self._lock = threading.RLock()
        self._nursery: Nursery | None = None
        self._single: dict[int, Nursery] = {}
        self._users = 0
        self._pid = os.getpid()

    def start(self, fd: int) -> int:
        """A worker that serves on its copy of `fd`; returns its process id."""
        with self._lock:
            for attempt in range(_ATTEMPTS):
                nursery = self.warm()
                try:
                    nursery.ready()
                    if nursery.threads > 1:
                        break
                    return int(nursery.ask({"do": "fork"}, [fd])["pid"])
                except CodeError:
                    status = nursery.process.wait()
                    # 0: it had just given up waiting; negative: somebody killed it.
                    if status > 0 or attempt == _ATTEMPTS - 1:
                        raise
            single = Nursery(payload(self._codes), self._buffers)
            single.ready()
            pid = int(single.ask({"do": "serve"}, [fd])["pid"])
            self._single[pid] = single
            return pid

    def kill(self, pid: int) -> None:
        """Make sure that worker `pid` ends soon."""
        with self._lock:
            single = self._single.pop(pid, None)
            if single is not None:
                single.process.kill()
                single.close()
            elif self._nursery is not None:
                with contextlib.suppress(CodeError):
                    self._nursery.ask({"do": "kill", "pid": pid}, [], answer=False)

    def warm(self) -> Nursery:
        """The nursery; started where it is not."""
        with self._lock:
            if self._pid != os.getpid():  # after a fork it is our parent's
                self._pid, self._nursery, self._single, self._users = os.getpid(), None, {}, 0
            if self._nursery is not None and self._nursery.process.poll() is not None:
                self._nursery.close()
                self._nursery = None
            if self._nursery is None:
                self._nursery = Nursery(payload(self._codes), self._buffers)
            return self._nursery

    def acquire(self) -> None:
        """A loader begins to need workers; CodeError when they cannot import their code."""
        with self._lock:
            try:
                self._imported()
            except BaseException:
                if self._users == 0:
                    self.close()
                raise
            self._users += 1

    def _imported(self) -> None:
        """Wait for a nursery that has imported the functions; another where somebody killed it."""
        for attempt in range(_ATTEMPTS):
            nursery = self.warm()
            try:
                nursery.ready()
                return
            except CodeError:
                if nursery.process.wait() >= 0 or attempt == _ATTEMPTS - 1:
                    raise

    def release(self) -> None:
        """A loader has ended; the last one ends the processes."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._pid == os.getpid():
                self.close()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            for nursery in [self._nursery, *self._single.values()]:
                if nursery is not None:
                    nursery.close()
            self._nursery, self._single = None, {}
