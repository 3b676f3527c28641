"""Workers as actors of a Ray cluster: `pipe.loader(ray=True)`.

All that fleets need to know of Ray is in this file; Ray itself is imported when it is used. There are three
kinds of objects:

    _Fleet      an actor for each fleet: the dispatcher, and the provisioner of its workers. It has a name, by
                which all loaders of a Ray job find it
    _Worker     an actor for each worker, owned by the fleet's, so Ray ends it with that
    RayWorkers  the options, and the loader's side

The fleet's actor is detached, so that no trainer's end stops the workers of the others. It belongs to its users:
each holds a connection (attendance.py), and LINGER_S after the last one is closed, by close() or by a death,
it ends itself and its workers.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import secrets
import socket
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import attendance
from .errors import ArgumentError, HeadraceError, StateError, UnsupportedError
from .fleet import COUNT_MAX, Keeper, Lease, Service, check_count

LINGER_S = 5.0  # that a fleet outlives its last user, so that the next loop finds it
_NAMESPACE = "headrace"
_ATTEMPTS = 20  # at joining a fleet, whose name may just be that of one that ends
_RETRY_S = 0.5
_PLACE_S = 60.0  # that a fleet's actor may take to start
_FIRST_S = 20.0  # without a worker, after which the log says what is waited for
_CALLS = 64  # at a time, that a fleet's actor answers
_POLL_S = 1.0  # that live() waits for answers

_log = logging.getLogger("headrace")


def _ray(called: str) -> Any:
    """The module ray; UnsupportedError without it."""
    try:
        import ray
    except ImportError as error:
        raise UnsupportedError(
            f"{called} needs Ray, which cannot be imported ({error}): pip install 'ray[default]'"
        ) from error
    return ray


@dataclass(frozen=True)
class RayWorkers:
    """Workers as actors of a Ray cluster, for `pipe.loader(ray=)` or `workers=`; `ray=True` is RayWorkers().

        for batch in pipe.loader(ray=hr.RayWorkers(4, cpus=2)): ...

    All loaders of a Ray job with equal options share one fleet, which starts with the first loop and ends
    5 seconds after the last of these loaders was closed or its process ended. A worker whose node fails
    starts again on another one. The nodes need this package, and the data under the same paths.

    Args:
        count: of workers. Default: as many as the cluster has idle CPUs for when the fleet starts, at least one.
        cpus: of each worker, which Ray reserves; its threads are as many, rounded up.
        resources: other resources of Ray that each worker needs, such as {"loader": 1} to choose nodes.
        placement_group: workers run in its bundles; by default Ray spreads them over the nodes (SPREAD).
        address: of the cluster, as `ray.init` takes it, if Ray is not initialised. Default: it must be.
        name: a fleet of this name is shared by all jobs of the cluster that give the name. Default: one
            for each job.
    """

    count: int | None = None
    cpus: float = 1
    resources: Mapping[str, float] | None = None
    placement_group: Any = None
    address: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.count is not None:
            check_count(self.count, "RayWorkers()")
        cpus = self.cpus
        if isinstance(cpus, bool) or not isinstance(cpus, (int, float)) or not 0 < cpus <= 4096:
            raise ArgumentError(f"RayWorkers(): cpus is a number above 0, not {cpus!r:.60}", param="cpus")
        for option in ("address", "name"):
            if not isinstance(getattr(self, option), (str, type(None))):
                raise ArgumentError(
                    f"RayWorkers(): {option} is a text, not {getattr(self, option)!r:.60}", param=option
                )
        if not isinstance(self.resources, (Mapping, type(None))):
            raise ArgumentError(
                f"RayWorkers(): resources map names to numbers, not {self.resources!r:.60}", param="resources"
            )

    def __hash__(self) -> int:
        return hash((self.count, self.cpus, self.name))

    def check(self) -> None:
        """Raise UnsupportedError without Ray, StateError if it is not initialised."""
        ray = _ray("ray=")
        if ray.is_initialized():
            return
        if self.address is None:
            raise StateError(
                "ray= needs a Ray cluster, and Ray is not initialised in this process: call ray.init() first, or give "
                "hr.RayWorkers(address='auto')"
            )
        ray.init(address=self.address, log_to_driver=False)

    def join(self) -> Lease:
        """A lease of the job's fleet, which starts if it does not run."""
        self.check()
        ray = _ray("ray=")
        for attempt in range(_ATTEMPTS):
            time.sleep(_RETRY_S if attempt > 0 else 0)
            fleet = self._fleet(ray)
            try:
                place: _Place = ray.get(fleet.place.remote(), timeout=_PLACE_S)
            except ray.exceptions.RayActorError as error:
                _refuse_broken(error)
                continue  # it was just ending
            except ray.exceptions.GetTimeoutError as error:
                raise StateError(
                    f"the actor of the fleet did not start within {_PLACE_S:.0f} s; ray status says what the "
                    "cluster waits for"
                ) from error
            user = attendance.attend(place.host, place.port, place.service.token)
            if user is not None:
                _wait_for_worker(ray, fleet, self)
                return _RayLease(place.service, user)
        raise StateError(
            "the fleet of this Ray job cannot be joined: its actor answers, and no connection to its node does; can "
            "this process reach the nodes of the cluster by TCP?"
        )

    def live(self) -> Sequence[str]:
        """The addresses of the workers that run; none if there is no fleet."""
        ray = _ray("ray=")
        try:
            fleet = ray.get_actor(self._name(ray), namespace=_NAMESPACE)
            found: list[str] = ray.get(fleet.live.remote())
        except (ValueError, ray.exceptions.RayActorError):
            return []
        return found

    def _fleet(self, ray: Any) -> Any:
        """The handle of the fleet's actor, which is on this node if it starts now."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = ray.get_runtime_context().get_node_id()
        options = {
            "name": self._name(ray),
            "namespace": _NAMESPACE,
            "get_if_exists": True,
            "lifetime": "detached",
            "num_cpus": 0,
            "max_concurrency": _CALLS,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True),
        }
        return ray.remote(_Fleet).options(**options).remote(self, os.getcwd())

    def _name(self, ray: Any) -> str:
        if self.name is not None:
            return f"headrace-{self.name}"
        about = f"{self.count} {self.cpus} {sorted((self.resources or {}).items())} {self._group_id()}"
        digits = hashlib.blake2b(about.encode(), digest_size=4).hexdigest()
        return f"headrace-{ray.get_runtime_context().get_job_id()}-{digits}"

    def _group_id(self) -> str:
        return self.placement_group.id.hex() if self.placement_group is not None else ""


class _Place(NamedTuple):
    """Where a fleet is: its service, and where its users attend."""

    service: Service
    host: str
    port: int


class _RayLease:
    """A loader's use of a fleet of the cluster; ends with the object at the latest."""

    def __init__(self, service: Service, user: socket.socket) -> None:
        self.service = service
        self._user = user
        self._leave = weakref.finalize(self, _hang_up, user, os.getpid())

    def is_alive(self) -> bool:
        return attendance.is_attended(self._user)

    def descriptor(self) -> int:
        return os.dup(self._user.fileno())

    def close(self) -> None:
        self._leave()


def _hang_up(user: socket.socket, owner: int) -> None:
    if os.getpid() == owner:  # the connection of a forked child is its parent's
        with contextlib.suppress(OSError):
            user.shutdown(socket.SHUT_RDWR)
    user.close()


def _refuse_broken(error: Any) -> None:
    """Raises the reason if an actor could not start, which another attempt would not change."""
    cause = getattr(error, "cause", None) or error.__cause__
    if isinstance(cause, HeadraceError):
        raise StateError(f"the fleet cannot start on the Ray cluster: {cause}") from error
    text = str(error)
    if "creation" in text and "Error" in text:
        raise StateError(f"the fleet cannot start on the Ray cluster: {text}") from error


def _wait_for_worker(ray: Any, fleet: Any, workers: RayWorkers) -> None:
    """Until a worker runs, or for some time; the log says what is missing."""
    first = fleet.first.remote()
    ready, _ = ray.wait([first], timeout=_FIRST_S)
    if ready:
        try:
            ray.get(first)
        except ray.exceptions.RayError as error:
            raise StateError(f"no worker can start on the Ray cluster: {_reason(error)}") from error
        return
    _log.warning(
        "loader: the Ray cluster has had no room for a worker for %.0f s: each needs %g CPUs%s, and %g of %g are idle. "
        "The loop waits until there is room",
        _FIRST_S,
        workers.cpus,
        f" and {dict(workers.resources)}" if workers.resources else "",
        ray.available_resources().get("CPU", 0),
        ray.cluster_resources().get("CPU", 0),
    )


def _reason(error: BaseException) -> str:
    """What the last line of a remote error says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("headrace.")]
    return (said or lines or [type(error).__name__])[-1]


# ---- in the cluster ----


def _listen(host: str) -> str:
    return f"[{host}]:0" if ":" in host else f"{host}:0"


class _Worker:
    """An actor: a `headrace worker` on its node. Ray starts it again elsewhere if the node fails."""

    def __init__(self, service: Service, threads: int, folder: str) -> None:
        ray = _ray("a worker")
        self._keeper = Keeper(service.token, folder)
        host = ray.util.get_node_ip_address()
        words = ("worker", "--dispatcher", service.address, "--listen", _listen(host), "--threads", str(threads))
        self._id = self._keeper.start(*words)["id"]

    def address(self) -> str:
        """Where clients reach the worker; "" while it starts again."""
        return next((one["address"] for one in self._keeper.live()), "")

    def drain(self) -> None:
        """Returns when the worker has sent what it has begun."""
        self._keeper.stop(self._id, drain=True)
        self._keeper.wait_drained()


class RayProvisioner:
    """Workers as actors, owned by the process that starts them: a Provisioner."""

    def __init__(self, workers: RayWorkers, service: Service, folder: str) -> None:
        self._ray = _ray("a fleet")
        self._given = service, max(1, math.ceil(workers.cpus)), folder
        strategy: Any = "SPREAD"
        if workers.placement_group is not None:
            from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

            strategy = PlacementGroupSchedulingStrategy(workers.placement_group)
        self._options = {
            "num_cpus": workers.cpus,
            "resources": dict(workers.resources or {}),
            "scheduling_strategy": strategy,
            "max_restarts": -1,
        }
        self._actors: list[Any] = []

    def start(self, count: int) -> None:
        kind = self._ray.remote(_Worker).options(**self._options)
        self._actors += [kind.remote(*self._given) for _ in range(count)]

    def stop(self, count: int, *, drain: bool = True) -> None:
        leaving = [self._actors.pop() for _ in range(min(count, len(self._actors)))]
        if drain and leaving:
            self._ray.wait([one.drain.remote() for one in leaving], num_returns=len(leaving), timeout=60)
        for one in leaving:
            self._ray.kill(one, no_restart=True)

    def live(self) -> list[str]:
        asked = [one.address.remote() for one in self._actors]
        if not asked:
            return []
        ready, _ = self._ray.wait(asked, num_returns=len(asked), timeout=_POLL_S)
        found = []
        for one in ready:
            with contextlib.suppress(self._ray.exceptions.RayActorError):  # it starts again
                found.append(self._ray.get(one))
        return [address for address in found if address]

    def first(self) -> str:
        """The address of the worker that runs first; RayActorError if none can."""
        asked = [one.address.remote() for one in self._actors]
        while True:
            (ready, *_), asked = self._ray.wait(asked)
            try:
                address: str = self._ray.get(ready)
                return address
            except self._ray.exceptions.RayActorError:
                if not asked:
                    raise

    def close(self) -> None:
        self.stop(len(self._actors), drain=False)


class _Fleet:
    """An actor: the dispatcher of a fleet, and the owner of its workers."""

    def __init__(self, workers: RayWorkers, folder: str) -> None:
        ray = _ray("a fleet")
        token = secrets.token_hex(32)
        host = ray.util.get_node_ip_address()
        self._keeper = Keeper(token, folder)
        address = self._keeper.start("dispatcher", "--listen", _listen(host))["address"]
        service = Service(address, token)
        self._provisioner = RayProvisioner(workers, service, folder)
        self._provisioner.start(workers.count or _idle(ray, workers.cpus))
        self._self = ray.get_runtime_context().current_actor
        self._attendance = attendance.Attendance(host, token, LINGER_S, self._end)
        self._place = _Place(service, host, self._attendance.port)

    def place(self) -> _Place:
        """How to use the fleet."""
        return self._place

    def first(self) -> str:
        """Waits for the first worker."""
        return self._provisioner.first()

    def live(self) -> list[str]:
        """The addresses of the workers that run."""
        return self._provisioner.live()

    def _end(self) -> None:
        """The last user is gone."""
        try:
            self._provisioner.close()
            self._keeper.close()
        finally:  # the end of this process would end both as well
            _ray("a fleet").kill(self._self, no_restart=True)


def _idle(ray: Any, cpus: float) -> int:
    """How many workers the idle CPUs of the cluster suffice for; at least one."""
    return min(max(1, int(ray.available_resources().get("CPU", 0) // cpus)), COUNT_MAX)
