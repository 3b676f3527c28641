"""The identity of a Python function in fingerprints, and its name in files.

The identity covers the function's bytecode and constants, the constants and functions of
its module that it refers to, its defaults and its closure. It does not cover code of other
packages, nor the content of files: use `version=` if those matter. With `version=` the identity
is only the function's name and that text.
"""

from __future__ import annotations

import functools
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, Protocol

from ._numpy import np
from .errors import CodeError

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


def name_of(fn: object) -> str:
    """ "module:qualname" of a function, class or instance."""
    if isinstance(fn, functools.partial):
        return name_of(fn.func)
    if not hasattr(fn, "__qualname__"):
        fn = type(fn)
    return f"{getattr(fn, '__module__', None) or 'builtins'}:{fn.__qualname__}"


def identity(fn: object, version: str | None, *more: object) -> str:
    """A text that differs if `fn` may produce different records; `more` is included."""
    name = name_of(fn)
    if version is not None:
        return f"{name} version {version} {' '.join(map(str, more))}".strip()
    import hashlib

    hasher = hashlib.blake2b(digest_size=16)
    _feed(hasher, fn, set())
    for item in more:
        hasher.update(repr(item).encode() + b"\0")
    return f"{name} {hasher.hexdigest()}"


def _feed(h: _Hash, value: object, seen: set[int]) -> None:
    if id(value) in seen:
        return
    if isinstance(value, _PLAIN):
        h.update(f"{type(value).__name__} {value!r}\0".encode("utf-8", "surrogatepass"))
        return
    seen.add(id(value))
    if isinstance(value, types.FunctionType):
        _feed_function(h, value, seen)
    elif isinstance(value, types.CodeType):
        _feed_code(h, value, seen)
    elif isinstance(value, functools.partial):
        for part in (value.func, value.args, value.keywords):
            _feed(h, part, seen)
    elif isinstance(value, types.MethodType):
        _feed(h, value.__func__, seen)
        _feed(h, value.__self__, seen)
    elif isinstance(value, (tuple, list)):
        h.update(f"{type(value).__name__} {len(value)}\0".encode())
        for item in value:
            _feed(h, item, seen)
    elif isinstance(value, dict):
        h.update(f"dict {len(value)}\0".encode())
        for key, item in value.items():
            _feed(h, key, seen)
            _feed(h, item, seen)
    elif isinstance(value, (set, frozenset)):
        h.update(f"set {sorted(map(repr, value))}\0".encode())
    elif isinstance(value, np.ndarray):
        h.update(f"array {value.dtype} {value.shape}\0".encode() + value.tobytes())
    else:
        _feed_object(h, value, seen)


def _feed_function(h: _Hash, fn: types.FunctionType, seen: set[int]) -> None:
    h.update(f"function {fn.__module__}:{fn.__qualname__}\0".encode())
    _feed(h, fn.__code__, seen)
    _feed(h, fn.__defaults__, seen)
    _feed(h, fn.__kwdefaults__, seen)
    for cell in fn.__closure__ or ():
        try:
            _feed(h, cell.cell_contents, seen)
        except ValueError:  # an empty cell
            h.update(b"empty\0")
    for name in sorted(_names(fn.__code__)):
        known = fn.__globals__.get(name)
        same = isinstance(known, types.FunctionType) and known.__module__ == fn.__module__
        if name in fn.__globals__ and (same or isinstance(known, _PLAIN)):
            h.update(f"global {name}\0".encode())
            _feed(h, known, seen)


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names


def _feed_code(h: _Hash, code: types.CodeType, seen: set[int]) -> None:
    h.update(f"code {code.co_argcount} {code.co_kwonlyargcount} {code.co_flags}\0".encode())
    h.update(code.co_code + b"\0" + " ".join(code.co_names).encode() + b"\0")
    for const in code.co_consts:
        _feed(h, const, seen)


def _feed_object(h: _Hash, value: object, seen: set[int]) -> None:
    h.update(f"object {name_of(value)}\0".encode())
    if isinstance(value, (type, types.BuiltinFunctionType, types.ModuleType)):
        return
    call = type(value).__dict__.get("__call__")
    if isinstance(call, types.FunctionType):
        _feed(h, call, seen)
    try:
        h.update(pickle.dumps(value, 4))
    except Exception:  # noqa: BLE001 - what cannot be pickled counts by its class and attributes only
        _feed(h, {k: v for k, v in getattr(value, "__dict__", {}).items() if isinstance(v, _PLAIN)}, seen)


def find(name: str) -> Any:
    """The object that "module:qualname" names, or None."""
    module, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def is_importable(fn: object) -> bool:
    """Whether another process finds the same object under its name."""
    name = name_of(fn)
    return not name.startswith("__main__:") and "<" not in name and find(name) is fn


def load(name: str) -> Callable[..., Any]:
    """Import "module:qualname"."""
    import importlib

    module, _, qualname = name.partition(":")
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise CodeError(f"cannot import {module}, which the pipeline's code {name} needs: {error}") from error
    found = find(name)
    if not callable(found):
        raise CodeError(f"{module} has no function {qualname}, which the pipeline's code needs")
    return found  # type: ignore[no-any-return]
