"""The parent's side of worker processes; worker.py is theirs.

A host belongs to a frozen graph. Its nursery, the process that starts workers, starts with
the first run of a loader and ends with the last loader of the graph, or by itself after
some idle time.

A worker imports from where this process does: `sys.path` is handed over, and nothing is
added to it, neither the working directory nor the folder of this package.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from .errors import CodeError
from .pickling import Memory, PickledCode

# One thread per worker: the engine runs as many workers as it has threads.
_ENV = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")

_ATTEMPTS = 3  # at starting a worker, when the process that starts them is killed
_END_SECONDS = 1.0  # for a worker whose socket is closed to end
_POLL_MS = 100  # between looks whether a worker is still wanted

# What a worker process runs first. `python -m` would put the working directory on the
# path, and PYTHONPATH would reach the processes that user code starts. This package is
# loaded from its own file where the path does not lead to it.
_BOOTSTRAP = """
import sys
sys.path[:] = {path}
import importlib.util
spec = importlib.util.find_spec("headrace")
if spec is None or spec.origin != {origin}:
    spec = importlib.util.spec_from_file_location("headrace", {origin})
    package = sys.modules["headrace"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
from headrace.worker import main
main({fd})
"""


def payload(codes: list[PickledCode]) -> bytes:
    """What a worker needs: how to import __main__, or None, and the functions."""
    main: dict[str, Any] | None = None
    if any(one.main for one in codes):
        from multiprocessing import spawn

        data = spawn.get_preparation_data("headrace")
        main = {k: v for k, v in data.items() if k.startswith("init_main") or k == "sys_argv"}
    return pickle.dumps((main, [(one.name, one.kind, one.data, one.spans) for one in codes]), 5)


def _command(fd: int) -> list[str]:
    """The command line of a nursery on socket `fd`. `-P`: without the working directory."""
    if not sys.executable:
        raise CodeError("worker processes need an interpreter, and sys.executable names none; use variant='threads'")
    origin = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__init__.py")
    path = [entry for entry in sys.path if isinstance(entry, str)]
    flags = [f for f in subprocess._args_from_interpreter_flags() if not f.startswith("-m")]  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-P", "-c", _BOOTSTRAP.format(path=ascii(path), origin=ascii(origin), fd=fd)]


def is_importing() -> bool:
    """Whether this process is a worker that is just importing the user's script."""
    worker = sys.modules.get("headrace.worker")
    return worker is not None and worker.importing


class Nursery:
    """A process of worker.py, and the socket to it."""

    def __init__(self, data: bytes, buffers: Memory, wanted: Callable[[], bool]) -> None:
        if is_importing():
            raise CodeError(
                "worker processes were asked for while a worker process imported your script; put what "
                "starts the training under `if __name__ == '__main__':`"
            )
        self.threads = 0  # known when it has imported the functions
        self._wanted = wanted
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = os.memfd_create("headrace-code", os.MFD_CLOEXEC)
        try:
            with open(os.dup(memory), "wb") as file:
                file.write(data)
            with theirs:
                self.process = subprocess.Popen(
                    _command(theirs.fileno()),
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, **_ENV},
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
            socket.send_fds(self.sock, [pickle.dumps(message)], fds)
        except OSError as error:
            raise CodeError(f"the process that starts workers ended (exit status {self.process.poll()})") from error
        return self._answer() if answer else {}

    def _answer(self) -> dict[str, Any]:
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        while not poller.poll(_POLL_MS):
            if not self._wanted():  # an import may take for ever
                self.process.kill()
                raise CodeError("no loader needs the worker process any more")
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            when = " while it imported your code" if self.threads == 0 else ""
            raise CodeError(f"the process that starts workers ended{when} (exit status {self.process.wait()})")
        message: dict[str, Any] = pickle.loads(data)
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


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal
        name = f"signal {-code}"
    return f"was killed by {name}" + (", perhaps because the machine ran out of memory" if name == "SIGKILL" else "")


class Host:
    """Starts and ends workers for the engine; shared by the iterators of a graph.

    start and kill are called from threads of the engine. A thread that starts a worker holds
    the lock while user code is imported, so `release`, which ends that, and `kill` do not
    need it.
    """

    def __init__(self, codes: list[PickledCode], buffers: Memory) -> None:
        self._codes, self._buffers = codes, buffers
        self._lock, self._counting = threading.RLock(), threading.RLock()
        self._nursery: Nursery | None = None
        self._single: dict[int, Nursery] = {}
        self._users = 0  # loaders; by `_counting`
        self._pid = os.getpid()

    def _wanted(self) -> bool:
        return self._users > 0

    def _here(self) -> None:
        """After a fork: processes and locks are the parent's."""
        if self._pid != os.getpid():
            self._lock, self._counting = threading.RLock(), threading.RLock()
            self._pid, self._nursery, self._single, self._users = os.getpid(), None, {}, 0

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
                    # 0: it was idle for too long just now; negative: it was killed.
                    if status > 0 or attempt == _ATTEMPTS - 1 or not self._wanted():
                        raise
            for pid, ended in list(self._single.items()):  # those of threads that were not needed any more
                if ended.process.poll() is not None:
                    self._single.pop(pid).close()
            single = Nursery(payload(self._codes), self._buffers, self._wanted)
            single.ready()
            pid = int(single.ask({"do": "serve"}, [fd])["pid"])
            self._single[pid] = single
            return pid

    def kill(self, pid: int) -> None:
        """Make sure that worker `pid` ends soon."""
        single, nursery = self._single.pop(pid, None), self._nursery
        if single is not None:
            single.process.kill()
            single.close()
        elif nursery is not None:
            with contextlib.suppress(CodeError):
                nursery.ask({"do": "kill", "pid": pid}, [], answer=False)

    def ended(self, pid: int) -> str:
        """How worker `pid`, which has closed its end, has ended: "was killed by SIGSEGV"; "" if that is unknown."""
        code: int | None = None
        with self._lock, contextlib.suppress(CodeError, subprocess.TimeoutExpired):
            if pid in self._single:
                code = self._single[pid].process.wait(_END_SECONDS)
            elif self._nursery is not None:
                code = self._nursery.ask({"do": "tell", "pid": pid}, [])["code"]
        return "" if code is None else _ending(code)

    def warm(self) -> Nursery:
        """The nursery; started if there is none."""
        with self._lock:
            if self._nursery is not None and self._nursery.process.poll() is not None:
                self._nursery.close()
                self._nursery = None
            if self._nursery is None:
                self._nursery = Nursery(payload(self._codes), self._buffers, self._wanted)
            return self._nursery

    def acquire(self) -> None:
        """A loader begins to need workers; returns at once."""
        self._here()
        with self._counting:
            self._users += 1

    def wait_imported(self) -> None:
        """Wait until workers have imported their code; CodeError when they cannot, or when the
        last loader is released meanwhile."""
        with self._lock:
            for attempt in range(_ATTEMPTS):
                nursery = self.warm()
                try:
                    nursery.ready()
                    return
                except CodeError:  # negative: it was killed
                    if nursery.process.wait() >= 0 or attempt == _ATTEMPTS - 1 or not self._wanted():
                        raise

    def release(self) -> None:
        """A loader has ended; the last one ends the processes."""
        if self._pid != os.getpid():
            return
        with self._counting:
            self._users -= 1
            if self._users > 0:
                return
        self.close()

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            if self._wanted():  # by a loader that began meanwhile
                return
            for single in self._single.values():
                single.process.kill()
            for nursery in [self._nursery, *self._single.values()]:
                if nursery is not None:
                    nursery.close()
            self._nursery, self._single = None, {}
