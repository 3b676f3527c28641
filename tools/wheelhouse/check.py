"""Checks the wheel of one architecture: check.py MADE ARCH

What it needs of the machine, what it carries besides code, and that it works, installed into an empty environment. Its
command must give the golden digests of the tree, which were made with Debian's libjpeg-turbo 2.1.5.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import foreign
from common import GLIBC, PINS, ROOT, Place, run
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

BYTES_MAX = 4_000_000
LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
TRAIN = """
import json, pathlib, sys
import headrace as hr, numpy as np
pins = json.loads(sys.argv[2])
assert all(hr.__codecs__[name].startswith(version) for name, version in pins.items()), (hr.__codecs__, pins)
train = (hr.files(sys.argv[1], labels="folder").shuffle(seed=7).decode().random_resized_crop(64).flip()
           .normalize("imagenet").to("float32", layout="chw").batch(8))
shapes = [np.asarray(batch.image).shape for batch in train.loader(epochs=2)]
assert shapes == [(8, 3, 64, 64)] * 6, shapes
print("trained with", hr.__codecs__)
"""


def fail(message: str) -> None:
    sys.exit(f"wheels: {message}")


def check_elf(place: Place, name: str, file: ELFFile) -> None:
    """Needs glibc only, none newer than the tag says, and carries no symbols for a debugger."""
    if file["e_machine"] != MACHINES[place.arch]:
        fail(f"{name}: expected {MACHINES[place.arch]}, found {file['e_machine']}")
    tags = [(tag.entry.d_tag, getattr(tag, "needed", "")) for tag in file.get_section_by_name(".dynamic").iter_tags()]
    needed = {library for kind, library in tags if kind == "DT_NEEDED"}
    others = needed - LIBRARIES - {LOADERS[place.arch]}
    if others:
        fail(f"{name} needs {', '.join(sorted(others))}; the wheel has to carry them")
    if any(kind in ("DT_RPATH", "DT_RUNPATH") for kind, _ in tags):
        fail(f"{name} has a search path for libraries")
    if file.get_section_by_name(".symtab") or file.get_section_by_name(".debug_info"):
        fail(f"{name} is not stripped")
    newest = tuple(map(int, GLIBC.split(".")))
    for section in file.iter_sections():
        for _, versions in section.iter_versions() if isinstance(section, GNUVerNeedSection) else ():
            for version in versions:
                found = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version.name)
                if found is None or tuple(map(int, found.groups())) > newest:
                    fail(f"{name} needs {version.name}; expected nothing newer than GLIBC_{GLIBC}")


def check_contents(place: Place, wheel: pathlib.Path) -> None:
    if wheel.stat().st_size >= BYTES_MAX:
        fail(f"{wheel.name} has {wheel.stat().st_size} bytes; expected less than {BYTES_MAX}")
    programs = 0
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            with packed.open(name) as file:
                if file.read(4) == b"\x7fELF":
                    file.seek(0)
                    check_elf(place, name, ELFFile(file))
                    programs += 1
        if programs != 2:
            fail(f"{wheel.name}: expected the extension and the command, found {programs} programs")
        (info,) = {name.split("/")[0] for name in packed.namelist() if ".dist-info/" in name}
        parts = json.loads(packed.read(f"{info}/sboms/headrace.cdx.json"))["components"]
        for codec in PINS["codecs"]:
            for licence in codec["licence_files"]:
                packed.getinfo(f"{info}/licenses/codecs/{codec['name']}/{licence}")
            if not any(p["name"] == codec["name"] and p["version"] == codec["version"] for p in parts):
                fail(f"{info}/sboms does not list {codec['name']} {codec['version']}")
    shown = subprocess.run(["auditwheel", "show", wheel], capture_output=True, text=True, check=True).stdout
    if f'"{place.platform}"' not in re.sub(r"\s+", " ", shown):
        fail(f"auditwheel: expected {place.platform}: {shown}")


def installed(place: Place, wheel: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """The Python of an empty environment with the wheel, and the wheel's command."""
    home, log = place.work / "installed", place.work / "installed.log"
    shutil.rmtree(home, ignore_errors=True)
    log.write_text("")
    if place.foreign:
        foreign.install(place, wheel, home, log)
    else:
        run([sys.executable, "-m", "venv", home], log)
        run([home / "bin/pip", "install", "--disable-pip-version-check", "numpy"], log)
        run([home / "bin/pip", "install", "--no-index", wheel], log)
    return home / "bin/python", home / "bin/headrace"


def check_golden(place: Place, command: pathlib.Path) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "tests/e2e/golden_test.py", command, ROOT],
        text=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "not ok "))]
    if done.returncode or not lines:
        print(done.stdout, done.stderr, file=sys.stderr)
        fail(f"the command of the {place.arch} wheel does not give the golden digests")
    return f"{len(lines)} golden cases"


def check_use(place: Place, wheel: pathlib.Path) -> str:
    python, command = installed(place, wheel)
    log, photos = place.work / "use.log", place.work / "photos"
    log.write_text("")
    shutil.rmtree(photos, ignore_errors=True)
    run([command, "synth", "photos", photos, "--count", "24", "-q"], log)
    program = place.work / "train.py"
    program.write_text(TRAIN)
    # liburing reports no version: io_uring is the kernel's.
    pins = {codec["name"]: codec["version"] for codec in PINS["codecs"] if codec["name"] != "liburing"}
    run([python, program, photos, json.dumps(pins)], log, place.work)
    return check_golden(place, command)


def main() -> None:
    place = Place(sys.argv[1], sys.argv[2])
    wheel = place.wheel()
    check_contents(place, wheel)
    golden = check_use(place, wheel)
    print(
        f"wheels: {wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, needs only glibc {GLIBC}, trains"
        f"{' under qemu' if place.foreign else ''}, {golden}"
    )


if __name__ == "__main__":
    main()
