"""An empty environment for another architecture, whose programs run under qemu: Debian's Python for it, unpacked."""

from __future__ import annotations

import pathlib
import shutil
import sys

from common import Place, run

DEBIAN = {"aarch64": "arm64"}
PACKAGES = ["python3", "libstdc++6"]  # the second is NumPy's


def unpack_python(place: Place, log: pathlib.Path) -> pathlib.Path:
    """The root of a system with Python, from Debian's archive: what apt would install where nothing is installed."""
    root, debs, lists, status = (place.work / name for name in ("root", "debs", "lists", "status"))
    for folder in (debs, lists):
        (folder / "partial").mkdir(parents=True, exist_ok=True)
    status.write_text("")
    settings = {
        "Dir::State::status": status,
        "Dir::State::lists": lists,
        "Dir::Cache::archives": debs,
        "APT::Architecture": DEBIAN[place.arch],
        "APT::Architectures::": DEBIAN[place.arch],
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    run(["apt-get", "-q", *words, "update"], log)
    run(["apt-get", "-q", "-y", *words, "--no-install-recommends", "--download-only", "install", *PACKAGES], log)
    shutil.rmtree(root, ignore_errors=True)
    for deb in sorted(debs.glob("*.deb")):
        run(["dpkg-deb", "-x", deb, root], log)
    return root


def make_program(place: Place, home: pathlib.Path, name: str, program: pathlib.Path) -> None:
    """home/bin/name runs the program under qemu."""
    path = home / "bin" / name
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH='{home / 'site'}' PYTHONNOUSERSITE=1\nexport PYTHONPATH PYTHONNOUSERSITE\n"
        f"exec qemu-{place.arch}-static -L '{place.work / 'root'}' '{program}' \"$@\"\n"
    )
    path.chmod(0o755)


def install(place: Place, wheel: pathlib.Path, home: pathlib.Path, log: pathlib.Path) -> None:
    """Programs `python` and `headrace` in home/bin, with the wheel and NumPy."""
    root = unpack_python(place, log)
    (found,) = (path for path in root.glob("usr/bin/python3.*") if path.name[len("python3.") :].isdigit())
    site = home / "site"
    pip = [
        *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--target", site, "--upgrade"),
        *("--only-binary", ":all:", "--implementation", "cp", "--python-version", found.name.removeprefix("python")),
        *(word for glibc in ("2_17", "2_27", "2_28") for word in ("--platform", f"manylinux_{glibc}_{place.arch}")),
    ]
    run([*pip, "numpy"], log)
    run([*pip, "--no-index", "--no-deps", wheel], log)
    (home / "bin").mkdir()
    make_program(place, home, "python", found)
    make_program(place, home, "headrace", site / "bin/headrace")
