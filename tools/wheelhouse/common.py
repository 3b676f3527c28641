"""What the steps of tools/wheels share: the pins, and the folders of an architecture."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINS: dict[str, Any] = json.loads((ROOT / "packaging/wheels/codecs.json").read_text())
GLIBC: str = PINS["glibc"]
ARCHS = ("x86_64", "aarch64")


class Place:
    """Folders of one architecture below build-wheels/."""

    def __init__(self, made: str, arch: str) -> None:
        if arch not in ARCHS:
            sys.exit(f"wheels: expected one of {', '.join(ARCHS)}, found {arch!r}")
        self.made = pathlib.Path(made).resolve()
        self.arch = arch
        self.archives = self.made / "archives"
        self.work = self.made / arch
        self.stage = self.work / "stage"  # headers, static libraries and .pc files
        self.foreign = arch != platform.machine()
        self.gcc = f"{arch}-linux-gnu-gcc" if self.foreign else "gcc"
        self.platform = f"manylinux_{GLIBC.replace('.', '_')}_{arch}"

    def wheel(self) -> pathlib.Path:
        """The finished wheel."""
        found = sorted((ROOT / "dist").glob(f"headrace-*-{self.platform}.whl"))
        if len(found) != 1:
            sys.exit(f"wheels: expected one wheel for {self.platform} in dist/, found {len(found)}; run make wheels")
        return found[0]


def run(words: list[Any], log: pathlib.Path, cwd: pathlib.Path | None = None, **env: str) -> None:
    """Runs a command; its output goes to `log`, whose end is printed if it fails."""
    with log.open("a") as out:
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        print("\n".join(log.read_text().splitlines()[-40:]), file=sys.stderr)
        sys.exit(f"wheels: {words[0]} failed with {done.returncode}; all of its output is in {log}")
