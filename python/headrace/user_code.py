"""User code as nodes of a pipeline: how it is called, what it returns, where it may run.

What a function receives depends on `fields`:

* `fields="image"` or `fields=["image", "label"]`: these fields as positional arguments.
  It returns new values for the same fields (for several a tuple, or a dict by name), or
  for those that `outputs` declares. Other fields are kept.
* no `fields`, records of one field: that value. It returns the new value, or a dict,
  which is then the new record.
* no `fields`, records of several fields: a dict of them. It returns a dict: the new record.
* no `fields`, records of a data set: the item in its own structure. It returns an item of any
  structure: the new record.

Values are int, float or bool for scalars, str for text, bytes for other byte strings, otherwise
arrays, which the function may write to.

What a function returns must be known before the run. `outputs` declares it; without that the
function is called once, on the first good record, and element types and numbers of dimensions
are taken from the result.
"""

from __future__ import annotations

import functools
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from . import _headrace, identity, pickling, seeding
from ._check import one_of
from ._numpy import np
from .errors import ArgumentError, CodeError
from .fieldspec import Spec
from .structure import Structure, join, split

_local = threading.local()

# Flags of code objects; `inspect`, which has them, takes long to import.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


class Code(NamedTuple):
    """A user's function and how it is to be called.

    kind: "source", "map", "filter" or "expand".
    fields: None if the user named none; once the schema is known, the flag `record` says
        whether the function is called with a dict.
    flags: "record" (a whole item in, a whole item out), "seed" (global generators seeded per record),
        "batch" (called with whole batches).
    """

    kind: str
    fn: Callable[..., Any]
    fields: tuple[str, ...] | None = None
    outputs: Mapping[str, Spec] | None = None
    variant: str = "threads"
    version: str | None = None
    flags: frozenset[str] = frozenset()
    file_name: str | None = None  # its name in the file that it was loaded from
    probed: bool = False  # `outputs` was taken from a first record, not declared
    structure: Structure | None = None  # of a source's items; None: fields by name
    settle: Callable[[Code], Code] | None = None  # of a source: the rest, for which it reads the first item


class ItemCall:
    """Calls a function with an item made of fields, and splits the item that it returns. Can be pickled.

    takes: the structure of its argument; None: the value of one field. gives: that of what it
    returns; None: the values of the outputs.
    """

    __slots__ = ("fn", "gives", "kind", "takes")

    def __init__(self, fn: Callable[..., Any], kind: str, takes: Structure | None, gives: Structure | None) -> None:
        self.fn, self.kind, self.takes, self.gives = fn, kind, takes, gives

    def __call__(self, *values: Any) -> Any:
        given = self.fn(values[0] if self.takes is None else join(self.takes, iter(values)))
        if self.kind == "expand":
            return map(self._split, given)
        return given if self.kind == "filter" else self._split(given)

    def _split(self, given: Any) -> Any:
        return given if self.gives is None else split(self.gives, given, exact=True)


class SeedCall:
    """Calls a function with the global generators seeded by the record's key. Can be pickled."""

    __slots__ = ("expands", "fn")

    def __init__(self, fn: Callable[..., Any], expands: bool) -> None:
        self.fn, self.expands = fn, expands

    def __call__(self, *values: Any) -> Any:
        if self.expands:
            return self._children(values)
        with seeding.seeded(seeding.record_key()):
            return self.fn(*values)

    def _children(self, values: tuple[Any, ...]) -> Iterator[Any]:
        with seeding.seeded(seeding.record_key()):
            yield from self.fn(*values)


def rng() -> np.random.Generator:
    """The random generator of the current record, for use in a function of a pipeline.

    Its numbers depend only on the run's seed, the epoch, the record and the node, not on the
    number of threads, processes or ranks, nor on restarts. Further calls for the same record
    continue the sequence.

    Returns:
        A NumPy Generator (Philox); valid until the function returns.

    Raises:
        CodeError: called outside of such a function.
    """
    record = _headrace.current_record()
    if record is None:
        raise CodeError(
            "hr.rng() works inside a function that a pipeline calls (map, filter, flat_map); "
            "elsewhere use numpy.random.default_rng(seed)",
            code="HR_ERR_STATE",
        )
    call = record[6]
    if getattr(_local, "call", None) == call:
        return _local.generator  # type: ignore[no-any-return]
    _local.call = call
    try:
        bits = _local.bits
    except AttributeError:
        bits = _local.bits = np.random.Philox(0)
        _local.state = bits.state
        _local.generator = np.random.Generator(bits)
    state = _local.state
    inner = state["state"]
    inner["key"][0], inner["key"][1] = record[3], record[4]
    inner["counter"][:] = 0
    state["buffer_pos"], state["has_uint32"] = 4, 0
    bits.state = state
    return _local.generator  # type: ignore[no-any-return]


def callable_of(code: Code, takes: Structure | None, gives: Structure | None) -> Callable[..., Any]:
    """What the engine calls: the function itself if possible."""
    call: Callable[..., Any] = code.fn
    if takes is not None or gives is not None:
        call = ItemCall(call, code.kind, takes, gives)
    return SeedCall(call, code.kind == "expand") if "seed" in code.flags else call


def file_name(code: Code) -> str | None:
    """The name of the code in graph files, "module:name#flags"; None if it cannot be imported."""
    if code.file_name is not None:
        return code.file_name
    if code.kind == "source" or not identity.is_importable(code.fn):
        return None
    name = identity.name_of(code.fn)
    if code.version is not None:
        name += f"@{code.version}"
    return name + (f"#{','.join(sorted(code.flags))}" if code.flags else "")


def pickled(
    code: Code, call: Callable[..., Any], node: str, memory: pickling.Memory | None = None
) -> tuple[bytes, list[pickling.Span], bool]:
    """`call` pickled for a worker process, its buffers in `memory`, and whether a worker has to import __main__ for it.

    What a worker cannot find by name is pickled by value if cloudpickle is installed. Without `memory` it is
    only tried out.

    Raises:
        CodeError: it cannot be pickled.
    """
    name = identity.name_of(code.fn.dataset if isinstance(code.fn, pickling.Holder) else code.fn)
    failed: Exception | None = None
    try:
        data, spans = pickling.dumps(call, memory) if memory is not None else (pickle.dumps(call, 5), [])
        main = b"__main__" in data
        if not main or _main_can_be_imported():
            return data, spans, main
        why = (
            "it was defined where worker processes cannot find it: in a notebook, an interactive session, a text, or "
            "the __main__.py of a package"
        )
    except Exception as error:  # noqa: BLE001 - pickling runs the user's code
        failed = error
        why = f"{'it is a lambda or a function inside a function' if '<' in name else 'pickle refuses it'} ({error})"
    try:
        return *pickling.dumps(call, memory or pickling.Memory(), by_value=True), False
    except ImportError:
        cure = "Install cloudpickle (pip install 'headrace[notebook]'), move it to a module"
    except Exception as error:  # noqa: BLE001
        failed = failed or error
        if str(error) not in why:
            why += f", and cloudpickle refuses it ({error})"
        cure = "Leave that out of what is sent, for example by opening it in the function"
    raise CodeError(
        f"node '{node}': {name} cannot be sent to a worker process: {why}. {cure}, or use variant='threads'",
        node=node,
        op=f"code.{code.kind}",
    ) from failed


def _main_can_be_imported() -> bool:
    """Whether __main__ is a script or a module run by `python -m`, as multiprocessing requires."""
    main = sys.modules.get("__main__")
    path = getattr(main, "__file__", None)
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return not f".{spec.name}".endswith(".__main__")
    return path is not None and not path.startswith("<")


@functools.cache
def _is_guarded(path: str) -> bool:
    """Whether a script starts its work under `if __name__ == "__main__":`, so that it may be imported again."""
    import ast

    try:
        with open(path, "rb") as file:
            statements = ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(one, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(one.test))
        for one in statements
    )


def main_is_guarded() -> bool:
    """Whether worker processes can import __main__ without starting its work again."""
    return _is_guarded(getattr(sys.modules.get("__main__"), "__file__", None) or "")


def check_options(op: str, variant: str, version: str | None, seed_globals: bool) -> None:
    """Check the options that all user code has."""
    one_of("variant", variant, ("inline", "threads", "processes"))
    if version is not None and not (
        isinstance(version, str) and re.fullmatch(r"[^#,\x00-\x1f\ud800-\udfff]+", version)
    ):
        raise ArgumentError(
            f"{op}: version is a text that identifies the code, such as '2', without '#' and ','; not {version!r:.60}",
            node=op,
            op=op,
            param="version",
        )
    if not isinstance(seed_globals, bool):
        raise ArgumentError(
            f"{op}: seed_globals is True or False, not {seed_globals!r:.60}", node=op, op=op, param="seed_globals"
        )
    if seed_globals and variant == "threads":
        raise CodeError(
            f"{op}: seed_globals=True needs variant='processes' or 'inline': threads share the global generators. "
            "hr.rng() works in all of them",
            node=op,
            op=op,
            param="seed_globals",
        )


def check_function(op: str, fn: object) -> None:
    """Refuse functions whose result is not a value: generators and coroutines."""
    plain: Any = fn
    while isinstance(plain, functools.partial):
        plain = plain.func
    if not hasattr(plain, "__code__"):
        plain = vars(type(plain)).get("__call__")
    flags = getattr(getattr(plain, "__code__", None), "co_flags", 0)
    if not callable(fn):
        why = f"a function is needed, not a {type(fn).__name__}"
    elif flags & (_COROUTINE | _ASYNC_GENERATOR):
        why = f"{identity.name_of(fn)} is async, and nothing here awaits it; use asyncio.run() in a plain function"
    elif flags & _GENERATOR and op != "code.expand":
        why = f"{identity.name_of(fn)} is a generator; return a value, or use .flat_map for several records"
    else:
        return
    raise ArgumentError(f"{op}: {why}", node=op, op=op, param="fn")
