"""The keeper: a process that starts the processes of a fleet, restarts them, and ends with its owner.

fleet.py starts it and is the other end of its pipes. A process of its own, because a parent that is
killed by SIGKILL cannot end its children, and because the signal that Linux sends on a parent's death
comes when the *thread* that started the child ends. This one has a single thread. It runs as a script
without the package, so it needs the standard library only.

Requests are lines of JSON on stdin, each with one line as its answer:
    {"do": "start", "args": [...], "cpus": [...]}   -> {"id": 1, "pid": 123, "address": "127.0.0.1:4711"}
    {"do": "stop", "id": 1, "drain": true}          -> {}
    {"do": "live"}                                  -> {"live": [{"id": 1, ...}], "draining": 0}
An answer {"error": "..."} says why a request failed. At the end of stdin, or when the owner is gone,
it kills what it started and exits.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any

_PR_SET_PDEATHSIG = 1
_RESTART_S = 0.5  # before a process that ended is started again; doubled each time
_RESTART_MOST_S = 30.0
_STEADY_S = 60.0  # a process that ran this long starts again with the first delay
_SAID_MAX = 4096  # bytes of a failed start's output that are reported
_LISTENS = b" listens at "


class Child:
    """A process of the fleet, started again whenever it ends."""

    def __init__(self, number: int, args: list[str], cpus: list[int] | None) -> None:
        self.number, self.args, self.cpus = number, args, cpus
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""
        self.begun = 0.0
        self.delay = _RESTART_S
        self.due = 0.0  # when it is started again, if it does not run

    def start(self) -> None:
        """Starts the process and waits until it listens; RuntimeError with what it printed instead."""
        parent = os.getpid()

        def prepare() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
            if self.cpus is not None:
                os.sched_setaffinity(0, self.cpus)

        process = subprocess.Popen(
            self.args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=prepare,  # this process has one thread
        )
        assert process.stdout is not None
        said = b""
        for line in process.stdout:
            if _LISTENS in line:
                self.process, self.address = process, line.split()[-1].decode()
                self.begun = time.monotonic()
                return
            said = (said + line)[-_SAID_MAX:]
        process.stdout.close()
        raise RuntimeError(said.decode(errors="replace").strip() or f"it ended with status {process.wait()}")

    def ended(self) -> None:
        """The process is gone: plan the next start, with the address that others know."""
        assert self.process is not None and self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait()
        if time.monotonic() - self.begun >= _STEADY_S:
            self.delay = _RESTART_S
        self.process = None
        self.again()
        if "--listen" in self.args:
            self.args[self.args.index("--listen") + 1] = self.address

    def again(self) -> None:
        """Wait before the next start, longer than before this one."""
        self.due = time.monotonic() + self.delay
        self.delay = min(2 * self.delay, _RESTART_MOST_S)


class Keeper:
    """The loop over requests, output of children and the owner's life."""

    def __init__(self) -> None:
        self.children: dict[int, Child] = {}
        self.draining: list[subprocess.Popen[bytes]] = []
        self.count = 0
        self.pending = b""  # the beginning of a request
        self.select = selectors.DefaultSelector()
        self.select.register(0, selectors.EVENT_READ, self._requests)
        with contextlib.suppress(OSError, AttributeError):  # without pidfds the end of stdin must do
            self.select.register(os.pidfd_open(os.getppid()), selectors.EVENT_READ, self._owner_ended)

    def run(self) -> None:
        """Until the owner is gone."""
        try:
            while True:
                due = [child.due for child in self.children.values() if child.process is None]
                wait = max(0.0, min(due) - time.monotonic()) if due else None
                for key, _ in self.select.select(wait):
                    if key.fd in self.select.get_map():  # not closed by an earlier event
                        key.data()
                self._restart()
        except EOFError:
            pass
        finally:
            running = [c.process for c in self.children.values() if c.process is not None]
            for process in [*running, *self.draining]:
                process.kill()

    def _owner_ended(self) -> None:
        raise EOFError

    def _requests(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            raise EOFError
        *lines, self.pending = (self.pending + data).split(b"\n")
        for line in lines:
            try:
                answer = self._answer(json.loads(line))
            except (RuntimeError, OSError, ValueError, LookupError) as error:
                answer = {"error": str(error)}
            os.write(1, json.dumps(answer).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "start":
            child = Child(self.count + 1, request["args"], request.get("cpus"))
            child.start()
            self.count = child.number
            self.children[child.number] = child
            self._watch(child)
            return _about(child)
        if request["do"] == "stop":
            self._stop(self.children.pop(request["id"]), request["drain"])
            return {}
        self.draining = [one for one in self.draining if one.poll() is None]
        live = [_about(child) for child in self.children.values() if child.process is not None]
        return {"live": live, "draining": len(self.draining)}

    def _watch(self, child: Child) -> None:
        assert child.process is not None and child.process.stdout is not None
        self.select.register(child.process.stdout, selectors.EVENT_READ, lambda: self._output(child))

    def _output(self, child: Child) -> None:
        """Passes on what a child prints; the end of its output is the end of the process."""
        process = child.process
        assert process is not None and process.stdout is not None
        data = os.read(process.stdout.fileno(), 1 << 16)
        if data:
            with contextlib.suppress(OSError):
                os.write(2, data)
            return
        self.select.unregister(process.stdout)
        child.ended()

    def _stop(self, child: Child, drain: bool) -> None:
        process = child.process
        if process is None:
            return
        assert process.stdout is not None
        self.select.unregister(process.stdout)
        if drain:
            process.terminate()
            self.draining.append(process)  # with its pipe, so that it may still print
        else:
            process.kill()
            process.wait()
            process.stdout.close()

    def _restart(self) -> None:
        for child in self.children.values():
            if child.process is None and child.due <= time.monotonic():
                try:
                    child.start()
                    self._watch(child)
                except (RuntimeError, OSError):
                    child.again()


def _about(child: Child) -> dict[str, Any]:
    assert child.process is not None
    return {"id": child.number, "pid": child.process.pid, "address": child.address}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's
    sys.excepthook = lambda _kind, error, _trace: print(f"headrace: the keeper failed: {error}", file=sys.stderr)
    Keeper().run()
