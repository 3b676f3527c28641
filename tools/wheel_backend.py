"""meson-python, configured for CPythons without the limited API.

pyproject.toml requests one wheel for all CPythons. Free-threaded CPython has no stable ABI, and
meson-python fails there unless a Meson option is set. Everything else is delegated to it.
"""

from __future__ import annotations

import sysconfig
from typing import Any

import mesonpy
from mesonpy import (  # noqa: F401 - hooks that frontends look for here
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)


def _settings(given: dict[str, Any] | None) -> dict[str, Any]:
    made = dict(given or {})
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        own = made.get("setup-args", [])
        made["setup-args"] = ["-Dpython.allow_limited_api=false", *([own] if isinstance(own, str) else own)]
    return made


def build_wheel(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """The hook of PEP 517."""
    return str(mesonpy.build_wheel(directory, _settings(settings), metadata))


def build_editable(directory: str, settings: dict[str, Any] | None = None, metadata: str | None = None) -> str:
    """The hook of PEP 660."""
    return str(mesonpy.build_editable(directory, _settings(settings), metadata))
