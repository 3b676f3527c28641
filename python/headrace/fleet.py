"""Fleets: a dispatcher of the service with workers that this package starts itself.

Two small interfaces, between which everything is that differs from place to place:

    Workers       what `loader(workers=)` takes: says where workers come from, and joins a fleet of them
    Provisioner   what a fleet needs of a place: start workers, stop them, tell which live

Here are both for processes on this host; ray_workers.py has them for a Ray cluster. A fleet makes a
token of its own and gives it to all that belong to it, in their environment or in memory: no file, no
command line. docs/decisions/0072 has the reasons.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import secrets
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ._check import nearest
from .errors import ArgumentError, StateError, UnsupportedError

_ANSWER_S = 60.0  # that the keeper may take to start a process
_END_S = 5.0  # that the keeper may take to end
_POLL_S = 0.05  # between looks whether workers have drained

COUNT_MAX = 64  # workers: a client connects to no more


class Service(NamedTuple):
    """What a worker or client needs to know of a fleet. address: "host:port" of its dispatcher."""

    address: str
    token: str


class Provisioner(Protocol):
    """Starts and stops the workers of one fleet at some place. Not thread-safe."""

    def start(self, count: int) -> None:
        """Start `count` more workers. They may come later, when the place has room for them."""

    def stop(self, count: int, *, drain: bool = True) -> None:
        """Stop `count` workers: after what they have begun, or at once. Nothing is lost either way."""

    def live(self) -> Sequence[str]:
        """The addresses of the workers that run."""

    def close(self) -> None:
        """Stop all workers at once; harmless when repeated."""


class Lease(Protocol):
    """A loader's use of a fleet."""

    @property
    def service(self) -> Service: ...

    def is_alive(self) -> bool:
        """Whether the fleet's dispatcher can still be there; False if what keeps it has ended."""

    def descriptor(self) -> int:
        """A new file descriptor that is readable when the fleet has ended, or the lease; -1 if there can be none."""

    def close(self) -> None:
        """The loader no longer needs the fleet. The last one to leave ends it."""


@runtime_checkable
class Workers(Protocol):
    """Where the workers of a loader come from."""

    def check(self) -> None:
        """Raise a HeadraceError if there can be no workers here; starts nothing."""

    def join(self) -> Lease:
        """A lease of the fleet, which starts if it does not run."""


def workers_of(workers: object, ray: object) -> Workers | None:
    """The Workers that the loader's arguments `workers` and `ray` stand for; None for none."""
    if ray is not None and ray is not False:
        if workers is not None:
            raise ArgumentError(
                "loader(): ray= and workers= both say where workers run; leave out one of them", param="ray"
            )
        if ray is not True and (isinstance(ray, (str, LocalWorkers)) or not isinstance(ray, Workers)):
            raise ArgumentError(f"loader(): ray is True or hr.RayWorkers(...), not {ray!r:.60}", param="ray")
        workers = "ray" if ray is True else ray
    if workers is None:
        return None
    made = _named(workers) if isinstance(workers, str) else workers
    if not isinstance(made, Workers):
        raise ArgumentError(
            "loader(): workers is 'local:2' (processes on this host), 'ray' or 'ray:4' (actors of a Ray cluster), "
            f"hr.LocalWorkers(...) or hr.RayWorkers(...), not {workers!r:.60}"
            + ("; 'local:N' starts N" if isinstance(workers, int) else ""),
            param="workers",
        )
    made.check()
    return made


def _named(text: str) -> Workers:
    """The workers of a short form: "local:2", "ray", "ray:4"."""
    place, colon, number = text.partition(":")
    if place not in ("local", "ray"):
        raise ArgumentError(
            f"loader(): workers={text!r}: no workers are called '{place}'{nearest(place, ('local', 'ray'))}. "
            "It is 'local:2', 'ray' or 'ray:4'; service='host:port' is for workers that run already",
            param="workers",
        )
    if (colon or place == "local") and not (number.isascii() and number.isdigit()):
        raise ArgumentError(
            f"loader(): workers={text!r} needs the number of workers, as in '{place}:2'", param="workers"
        )
    if place == "local":
        return LocalWorkers(int(number))
    from .ray_workers import RayWorkers

    return RayWorkers(int(number) if colon else None)


def check_count(count: object, called: str) -> None:
    """ArgumentError unless `count` is a number of workers."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= COUNT_MAX:
        raise ArgumentError(
            f"{called}: count is a number of workers, 1 to {COUNT_MAX}, not {count!r:.60}", param="count"
        )


class Keeper:
    """A process of keeper.py, which ends with this one. Thread-safe."""

    def __init__(self, service_token: str, folder: str | None = None) -> None:
        from .__main__ import command

        found = command()
        if found is None:
            raise UnsupportedError(
                "workers are processes of the headrace command, which this package came without: install both "
                "(pip install headrace), or set HEADRACE_COMMAND to its path"
            )
        self._command = os.path.abspath(found)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        foreign = ("HEADRACE_WORKER_", "HEADRACE_DISPATCHER_", "HEADRACE_TLS_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        environment.pop("HEADRACE_TOKEN_FILE", None)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder if folder is not None and os.path.isdir(folder) else None,
            env={**environment, "HEADRACE_TOKEN": service_token},
            start_new_session=True,  # Ctrl-C in a terminal is for the owner
        )

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer; StateError if it failed."""
        with self._lock:
            process = self._process
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                ready = select.select([process.stdout], [], [], _ANSWER_S)[0]
                line = process.stdout.readline() if ready else b""
            except (OSError, ValueError):  # ValueError: closed
                line = b""
            except BaseException:  # Ctrl-C: the answer would be taken for that of the next request
                self._end()
                raise
            if not line:
                self._end()
                raise StateError("the process that keeps this fleet has ended, and its workers with it")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise StateError(f"a process of the service cannot start: {answer['error']}")
        return answer

    def start(self, *words: str, cpus: Sequence[int] | None = None) -> dict[str, Any]:
        """Start `headrace WORDS...`; returns its id, pid and address."""
        request = {"do": "start", "args": [self._command, *words], "cpus": list(cpus) if cpus else None}
        return self.ask(request)

    def stop(self, number: int, *, drain: bool) -> None:
        """Stop the process with this id."""
        self.ask({"do": "stop", "id": number, "drain": drain})

    def live(self) -> list[dict[str, Any]]:
        """Id, pid and address of each process that runs."""
        found: list[dict[str, Any]] = self.ask({"do": "live"})["live"]
        return found

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def descriptor(self) -> int:
        """A file descriptor that is readable when the process has ended; -1 where the kernel has none."""
        try:
            return os.pidfd_open(self._process.pid)
        except (OSError, AttributeError):
            return -1

    def wait_drained(self) -> None:
        """Until all that was stopped with drain=True has ended; `headrace worker` limits how long that takes."""
        while self.ask({"do": "live"})["draining"] > 0:
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Kill all that was started; harmless when repeated."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process = self._process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if os.getpid() != self._pid:  # a child that was forked with this object
            return
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class LocalProvisioner:
    """Workers as processes of this host, which one keeper keeps: a Provisioner."""

    def __init__(self, keeper: Keeper, dispatcher: str, threads: int, shares: Sequence[Sequence[int] | None]) -> None:
        self._keeper, self._shares = keeper, shares
        self._words = ("worker", "--dispatcher", dispatcher, "--threads", str(threads))
        self._numbers: list[int] = []

    def start(self, count: int) -> None:
        for _ in range(count):
            share = self._shares[len(self._numbers) % len(self._shares)]
            self._numbers.append(self._keeper.start(*self._words, cpus=share)["id"])

    def stop(self, count: int, *, drain: bool = True) -> None:
        for _ in range(min(count, len(self._numbers))):
            self._keeper.stop(self._numbers.pop(), drain=drain)

    def live(self) -> list[str]:
        return [one["address"] for one in self._keeper.live() if one["id"] in self._numbers]

    def close(self) -> None:
        self.stop(len(self._numbers), drain=False)


class _LocalFleet:
    """A dispatcher and workers on this host, for the loaders that share a LocalWorkers."""

    def __init__(self, workers: LocalWorkers) -> None:
        self.users = 0
        token = secrets.token_hex(32)
        self._keeper = Keeper(token)
        try:
            dispatcher = self._keeper.start("dispatcher", "--listen", "127.0.0.1:0")["address"]
            self.service = Service(dispatcher, token)
            self.provisioner = LocalProvisioner(self._keeper, dispatcher, *_shares(workers))
            self.provisioner.start(workers.count)
        except BaseException:
            self.close()
            raise

    def is_alive(self) -> bool:
        return self._keeper.is_alive()

    def descriptor(self) -> int:
        return self._keeper.descriptor()

    def close(self) -> None:
        self._keeper.close()


def _shares(workers: LocalWorkers) -> tuple[int, list[Sequence[int] | None]]:
    """(threads, CPUs) of each worker: theirs divided, or all if there are fewer CPUs than workers."""
    cpus, count = workers.cpus, workers.count
    if cpus is None:
        return workers.threads or max(1, len(os.sched_getaffinity(0)) // count), [None]
    if len(cpus) < count:
        return workers.threads or 1, [cpus]
    return workers.threads or max(1, len(cpus) // count), [cpus[at::count] for at in range(count)]


@dataclass(frozen=True)
class LocalWorkers:
    """Workers as processes of this host, for `pipe.loader(workers=)`; "local:2" is short for LocalWorkers(2).

        workers = hr.LocalWorkers(2, cpus=range(8, 16))
        for batch in pipe.loader(workers=workers): ...

    They start with the first loop and end with the last loader that was given the object, or with this
    process, however it ends. One that dies is started again.

    Args:
        count: of processes.
        cpus: numbers of the CPUs that they are confined to, divided among them: the training loop keeps
            the others. None (default): any.
        threads: of each. Default: an equal part of the CPUs.
    """

    count: int
    cpus: Sequence[int] | None = None
    threads: int | None = None
    _shared: _Shared = field(default_factory=lambda: _Shared(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count(self.count, "LocalWorkers()")
        threads = self.threads
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ArgumentError(f"LocalWorkers(): threads is a number from 1, not {threads!r:.60}", param="threads")
        if self.cpus is None:
            return
        usable = os.sched_getaffinity(0)
        object.__setattr__(self, "cpus", tuple(map(operator.index, self.cpus)))
        wrong = [cpu for cpu in self.cpus if cpu not in usable]
        if wrong or not self.cpus:
            found = f"{wrong[0]!r:.60} is none" if wrong else "the list is empty"
            raise ArgumentError(
                f"LocalWorkers(): cpus are numbers of CPUs that this process may use ({sorted(usable)}); {found}",
                param="cpus",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalWorkers, (self.count, self.cpus, self.threads)

    def check(self) -> None:
        """Processes can be started anywhere."""

    def join(self) -> Lease:
        """A lease of the processes, which start if they do not run."""
        return self._shared.join(self)

    def live(self) -> Sequence[str]:
        """The addresses of the workers that run."""
        fleet = self._shared.fleet
        return fleet.provisioner.live() if fleet is not None else []


class _Shared:
    """The fleet of a LocalWorkers while loaders use it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # re-entrant: a lease may be collected as garbage at any allocation
        self.fleet: _LocalFleet | None = None

    def join(self, workers: LocalWorkers) -> Lease:
        with self.lock:
            fleet = self.fleet
            if fleet is None or not fleet.is_alive():
                fleet = _LocalFleet(workers)
            fleet.users += 1
            self.fleet = fleet
            return _LocalLease(self, fleet)

    def leave(self, fleet: _LocalFleet) -> None:
        with self.lock:
            fleet.users -= 1
            if fleet.users > 0:
                return
            if self.fleet is fleet:
                self.fleet = None
        fleet.close()


class _LocalLease:
    """One loader's use of a local fleet; ends with the object at the latest."""

    def __init__(self, shared: _Shared, fleet: _LocalFleet) -> None:
        self.service = fleet.service
        self._fleet = fleet
        self._leave = weakref.finalize(self, shared.leave, fleet)

    def is_alive(self) -> bool:
        return self._fleet.is_alive()

    def descriptor(self) -> int:
        return self._fleet.descriptor()

    def close(self) -> None:
        self._leave()


class Member:
    """What a loader has of a fleet: a lease, and the engine's options that lead there."""

    def __init__(self, workers: Workers, lost: Callable[[], None]) -> None:
        """`lost`: a method, called in a thread when the fleet ends while there is a lease."""
        self._workers = workers
        self._lost = weakref.WeakMethod(lost)
        self._lease: Lease | None = None
        self._token = -1  # a file in memory with the token

    def join(self) -> dict[str, Any]:
        """Options of the engine for a run on the fleet; on another one if that was lost."""
        if self._lease is None or not self._lease.is_alive():
            self.leave()
            lease = self._workers.join()
            if self._token < 0:
                self._token = os.memfd_create("headrace-token", os.MFD_CLOEXEC)
                weakref.finalize(self, os.close, self._token)
            os.truncate(self._token, 0)
            os.pwrite(self._token, lease.service.token.encode(), 0)
            self._lease = lease
            threading.Thread(
                target=_watch, args=(lease.descriptor(), weakref.ref(self)), name="headrace-fleet", daemon=True
            ).start()
        plain = dict.fromkeys(("service_tls_ca", "service_tls_name", "service_tls_cert", "service_tls_key"), "")
        token_file = f"/proc/self/fd/{self._token}"
        return {"service": self._lease.service.address, "service_token_file": token_file, **plain}

    def is_lost(self) -> bool:
        """Whether the fleet ended while the loader has a lease."""
        lease = self._lease
        return lease is not None and not lease.is_alive()

    def tell(self) -> None:
        """Call `lost` if the fleet is."""
        lost = self._lost()
        if lost is not None and self.is_lost():
            lost()

    def leave(self) -> None:
        """The loader is closed."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.close()


def _watch(descriptor: int, member: weakref.ref[Member]) -> None:
    """The thread of a lease: waits for its end, which costs nothing."""
    if descriptor < 0:
        return
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.poll()
    os.close(descriptor)
    found = member()
    if found is not None:
        found.tell()
