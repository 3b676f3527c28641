"""Argument checks: wrong names are answered with the nearest right one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from .errors import ArgumentError, HeadraceError

P = ParamSpec("P")
R = TypeVar("R")


def nearest(name: str, names: Iterable[str]) -> str:
    """The name that was probably meant, as "; did you mean 'x'?", or ""."""
    import difflib

    found = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"; did you mean '{found[0]}'?" if found else ""


def one_of(what: str, value: object, allowed: Iterable[object]) -> None:
    """Raise ArgumentError when `value` is none of `allowed`."""
    allowed = list(allowed)
    if value not in allowed:
        hint = nearest(value, [a for a in allowed if isinstance(a, str)]) if isinstance(value, str) else ""
        raise ArgumentError(f"{what} must be one of {', '.join(map(repr, allowed))}, not {value!r}{hint}", param=what)


def _explain(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentError | None:
    """Why these arguments do not fit `fn`, or None when they do."""
    import inspect

    signature = inspect.signature(fn)
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError as error:
        reason = str(error)
    names = [n for n, p in signature.parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    shown = [n for n in names if n not in ("self", "pipeline")]
    unknown = [k for k in kwargs if k not in names]
    if unknown:
        reason = f"there is no argument '{unknown[0]}'{nearest(unknown[0], shown)}"
    return ArgumentError(
        f"{fn.__name__}(): {reason}. Arguments are: {', '.join(shown)}",
        param=unknown[0] if unknown else "",
        op=fn.__name__,
    )


def checked(fn: Callable[P, R]) -> Callable[P, R]:
    """`fn`, whose calls with wrong arguments raise ArgumentError."""

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except TypeError as error:
            if isinstance(error, HeadraceError):
                raise
            made = _explain(fn, args, kwargs)
            if made is None:
                raise
        raise made

    return call
