"""`python -m headrace ...`: the `headrace` command of this installation.

For environments whose scripts are not in PATH. The command takes this process's place, so signals and exit codes are
its own.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator


def _candidates() -> Iterator[str]:
    """Where the command may be, those that belong to this package first."""
    import importlib.metadata

    try:
        files = importlib.metadata.files("headrace") or []
    except importlib.metadata.PackageNotFoundError:  # run from the source tree
        files = []
    for file in files:
        if file.name == "headrace" and file.parent.name == "bin":
            yield str(file.locate())
    for scheme in ("posix_user", sysconfig.get_default_scheme()):
        yield os.path.join(sysconfig.get_path("scripts", scheme), "headrace")
    yield shutil.which("headrace") or ""


def command() -> str | None:
    """The path of the command; HEADRACE_COMMAND before all others. None if there is none."""
    given = os.environ.get("HEADRACE_COMMAND")
    if given:
        return given
    return next((path for path in _candidates() if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def main() -> None:
    path = command()
    if path is None:
        sys.exit(
            "headrace: this package came without the headrace command: install both (pip install headrace), or set "
            "HEADRACE_COMMAND to its path"
        )
    try:
        os.execv(path, ["headrace", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"headrace: cannot run {path}: {error.strerror}")


if __name__ == "__main__":
    main()
