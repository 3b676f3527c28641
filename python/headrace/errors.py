"""Everything that Headrace raises: one class per kind of failure.

The library's errors arrive as `_headrace.Error`; `translate` converts them to the
public classes. The parts that `struct hr_error` has (node, op, param, file, line, record) are
attributes, and the message is a complete sentence that says what to do.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _headrace

_PARTS = (
    "code",
    "node",
    "op",
    "param",
    "file",
    "line",
    "column",
    "record",
    "epoch",
    "position",
    "children",
    "detail",
)


class HeadraceError(Exception):
    """Base of all errors.

    Attributes:
        code: name of the library's code, such as "HR_ERR_SHAPE".
        node, op, param: where in the graph; "" where that does not apply.
        file, line, column: the graph or data file at fault; "" and 0 if there is none.
        record: index of the record at fault in its source, -1 if there is none.
        epoch, position: its epoch and its place in the epoch's order over all ranks.
        children: after expansions, its number among the children of each.
        detail: a long text about it, such as a traceback from a worker process.
    """

    default_code = "HR_ERR_INTERNAL"

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        node: str = "",
        op: str = "",
        param: str = "",
        file: str = "",
        line: int = 0,
        column: int = 0,
        record: int = -1,
        epoch: int = 0,
        position: int = 0,
        children: tuple[int, ...] = (),
        detail: str = "",
    ) -> None:
        Exception.__init__(self, message)  # not super(): a base may be the user's own class
        self.message = message
        self.code = code or self.default_code
        self.node, self.op, self.param = node, op, param
        self.file, self.line, self.column = file, line, column
        self.record, self.epoch, self.position, self.children = record, epoch, position, children
        self.detail = detail

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, {p: getattr(self, p) for p in _PARTS})


def _rebuild(kind: type[HeadraceError], message: str, parts: dict[str, Any], raised: Any = None) -> HeadraceError:
    return (kind if raised is None else _code_error(raised))(message, **parts)


class ArgumentError(HeadraceError, TypeError):
    """An argument that does not exist, is missing, or is of the wrong type."""

    default_code = "HR_ERR_ARGUMENT"


class RangeError(HeadraceError, ValueError):
    """A value outside of what is permitted."""

    default_code = "HR_ERR_RANGE"


class GraphError(HeadraceError, ValueError):
    """A pipeline that cannot be run: an order, a field or a wiring that makes no sense."""

    default_code = "HR_ERR_GRAPH"


class ShapeError(HeadraceError, ValueError):
    """An array of the wrong shape."""

    default_code = "HR_ERR_SHAPE"


class DtypeError(HeadraceError, TypeError):
    """An array or a field of the wrong element type."""

    default_code = "HR_ERR_TYPE"


class FormatError(HeadraceError, ValueError):
    """Malformed data: a damaged photo, a graph file that does not parse."""

    default_code = "HR_ERR_FORMAT"


class NotFoundError(HeadraceError, KeyError):
    """A name that does not exist; a KeyError, so that `batch.get` and `in` work as in a dict."""

    default_code = "HR_ERR_NOT_FOUND"


class MissingFileError(NotFoundError, FileNotFoundError):
    """A file or folder that does not exist."""


class ReadError(HeadraceError, OSError):
    """Input or output failed."""

    default_code = "HR_ERR_IO"


class LimitError(HeadraceError):
    """A limit was reached: memory budget, bad records, size of a file."""

    default_code = "HR_ERR_LIMIT"


class OutOfMemoryError(HeadraceError, MemoryError):
    """The system gave no memory."""

    default_code = "HR_ERR_MEMORY"


class UnsupportedError(HeadraceError):
    """Something that exists, but not in this combination."""

    default_code = "HR_ERR_UNSUPPORTED"


class StateError(HeadraceError):
    """Not possible now, because of what was done before."""

    default_code = "HR_ERR_STATE"


class ClosedError(StateError):
    """The loader was closed."""


class StateMismatchError(StateError, ValueError):
    """A state that belongs to another pipeline, data set or seed."""


class CancelledError(HeadraceError):
    """The run was stopped from outside."""

    default_code = "HR_ERR_CANCELLED"


class StuckError(HeadraceError, TimeoutError):
    """No batch came within the loader's `timeout`; node and record are those of the user code that a
    thread or worker process has been in for the longest."""

    default_code = "HR_ERR_TIMEOUT"


class AccessError(HeadraceError, PermissionError):
    """A service refuses this client: it has no token, or a wrong one."""

    default_code = "HR_ERR_DENIED"


class InternalError(HeadraceError):
    """A defect of Headrace."""


class CodeError(HeadraceError):
    """The user's own code failed, or cannot be run.

    If it raised an exception, the error is of that exception's class as well, so that `except
    ValueError` catches it: of the first class among it and its bases that this process has
    imported and that can be combined with this one.

    `__cause__` is the exception that it raised; from a worker process it is a
    `WorkerTraceback` with the text of the traceback there.
    """

    default_code = "HR_ERR_ARGUMENT"
    _raised: type[Exception] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        from .identity import is_importable

        raised = self._raised if is_importable(self._raised) else None
        return _rebuild, (CodeError, self.message, {p: getattr(self, p) for p in _PARTS}, raised)


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker process, as text."""

    def __str__(self) -> str:
        return f"in a worker process:\n\n{self.args[0]}"


@functools.lru_cache(64)
def _code_error(raised: Any) -> type[CodeError]:
    """CodeError as a subclass of `raised` as well; TypeError if the two cannot be combined."""
    about = {"__module__": __name__, "__doc__": CodeError.__doc__, "_raised": raised}
    return type("CodeError", (CodeError, raised), about)


def _raised_classes(error: _headrace.Error, cause: BaseException | None) -> Iterator[Any]:
    """The class of the exception that user code raised, and its bases, as far as they are known here."""
    from .identity import find

    names = error.raised.replace("__mp_main__:", "__main__:").split()
    for kind in map(find, names) if cause is None else type(cause).__mro__:
        known = isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(CodeError, kind)
        if known and not issubclass(kind, (StopIteration, StopAsyncIteration)):  # these would end the loop
            yield kind


def _made(kind: type[HeadraceError], error: _headrace.Error, cause: BaseException | None) -> HeadraceError:
    parts = {part: getattr(error, part) for part in _PARTS}
    if not error.file:  # a position in the generated JSON does not help the user
        parts["line"] = parts["column"] = 0
    if kind is CodeError:
        for raised in _raised_classes(error, cause):
            with contextlib.suppress(Exception):  # it has a layout or a constructor of its own
                return _code_error(raised)(error.message, **parts)
    return kind(error.message, **parts)


_CLASSES: dict[str, type[HeadraceError]] = {
    kind.default_code: kind
    for kind in (
        ArgumentError,
        RangeError,
        GraphError,
        ShapeError,
        DtypeError,
        FormatError,
        NotFoundError,
        ReadError,
        LimitError,
        OutOfMemoryError,
        UnsupportedError,
        StateError,
        CancelledError,
        StuckError,
        AccessError,
        InternalError,
    )
}


def translate(error: _headrace.Error) -> HeadraceError:
    """The public error of a library error, with its cause."""
    kind = _CLASSES.get(error.code, HeadraceError)
    cause = error.__cause__
    raised = (cause is not None or error.detail != "") and not isinstance(cause, _headrace.Error)
    if raised or (kind in (ArgumentError, ReadError) and error.op.startswith("code.") and error.record >= 0):
        kind = CodeError
    elif kind is NotFoundError and (error.file or "No such file" in error.message):
        kind = MissingFileError
    made = _made(kind, error, cause)
    made.__cause__ = WorkerTraceback(error.detail) if cause is None and error.detail else cause
    return made


@contextmanager
def translated() -> Iterator[None]:
    """Raise library errors of the block as public ones."""
    try:
        yield
    except _headrace.Error as error:
        made = translate(error)
        try:
            raise made from made.__cause__
        finally:
            del made  # or it would hold the frame, which holds it, and with it the caller's, until the collector runs
