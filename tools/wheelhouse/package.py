"""Builds the wheel of one architecture from the source distribution: package.py MADE ARCH

The codecs come from the stage that codecs.py filled. Their licences and a list of them in CycloneDX's format
(PEP 770) are added, and the wheel gets the tag of the oldest glibc that it runs with.
"""

from __future__ import annotations

import email
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
from typing import Any

from common import GLIBC, PINS, ROOT, Place, run

# zig has sin, exp, log and others of its own, which are not glibc's to the last bit: golden digests of
# sounds would differ. libgcc has what else clang needs of one.
CROSS = """\
[binaries]
c = '{bin}/cc'
ar = '{bin}/ar'
strip = 'true'
pkg-config = 'pkg-config'

[properties]
pkg_config_libdir = ['{stage}/lib/pkgconfig']
needs_exe_wrapper = true

[built-in options]
c_args = ['-fno-sanitize=undefined', '-isystem', '{stage}/include']
c_link_args = ['-Wl,-s', '-Wl,--gc-sections', '-rtlib=none', '{libgcc}']

[host_machine]
system = 'linux'
cpu_family = '{arch}'
cpu = '{arch}'
endian = 'little'
"""


def ask_gcc(place: Place, word: str) -> str:
    return subprocess.run([place.gcc, word], capture_output=True, text=True, check=True).stdout.strip()


def without_git(place: Place) -> str:
    """A PATH with what a build needs and without Git: links to every program except it."""
    folder = place.work / "path"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for part in reversed(os.environ["PATH"].split(":")):
        for program in pathlib.Path(part).glob("*") if part else ():
            if not program.name.startswith("git"):
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    return str(folder)


def build(place: Place) -> pathlib.Path:
    """The wheel as meson-python makes it."""
    source, out, log = place.work / "source", place.work / "wheel", place.work / "headrace.log"
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    (archive,) = (place.made / "sdist").glob("headrace-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(source, filter="data")
    (top,) = source.iterdir()
    cross = place.work / "cross.ini"
    libgcc = ask_gcc(place, "-print-libgcc-file-name")
    cross.write_text(CROSS.format(bin=place.work / "bin", stage=place.stage, arch=place.arch, libgcc=libgcc))
    log.write_text("")
    print(f"wheels: {place.arch}: building {top.name}", flush=True)
    run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--skip-dependency-check",
            "--outdir",
            out,
            f"-Cbuild-dir={place.work / 'built'}",
            f"-Csetup-args=--cross-file={cross}",
            "-Csetup-args=-Dbuildtype=release",
            "-Csetup-args=-Db_lto=false",
            top,
        ],
        log,
        PATH=without_git(place),
        _PYTHON_HOST_PLATFORM=f"linux-{place.arch}",
    )
    (wheel,) = out.glob("headrace-*.whl")
    return wheel


def component(codec: dict[str, Any]) -> dict[str, Any]:
    made = {
        "type": "library",
        "bom-ref": codec["name"],
        "name": codec["name"],
        "version": codec["version"],
        "licenses": [{"expression": codec["licence"]}],
        "purl": f"pkg:generic/{codec['name'].lower()}@{codec['version']}",
        "externalReferences": [
            {
                "type": "source-distribution",
                "url": "http://deb.debian.org/debian/" + codec["url"],
                "hashes": [{"alg": "SHA-256", "content": codec["sha256"]}],
            }
        ],
    }
    if "cpe" in codec:
        made["cpe"] = codec["cpe"]
    return made


def libgcc(place: Place) -> dict[str, Any]:
    """The part of this machine's compiler that is linked."""
    version = ask_gcc(place, "-dumpfullversion")
    return {
        "type": "library",
        "bom-ref": "libgcc",
        "name": "libgcc",
        "version": version,
        "licenses": [{"expression": "GPL-3.0-or-later WITH GCC-exception-3.1"}],
        "purl": f"pkg:generic/libgcc@{version}",
    }


def sbom(place: Place, version: str) -> dict[str, Any]:
    """What the wheel is made of. It has no time and no random number, so that a build can be repeated."""
    codecs = PINS["codecs"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "headrace",
                "name": "headrace",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
                "purl": f"pkg:pypi/headrace@{version}",
            },
            "properties": [
                {"name": "headrace:platform", "value": place.platform},
                {"name": "headrace:compiler", "value": PINS["zig"]},
            ],
        },
        "components": [*(component(codec) for codec in codecs), libgcc(place)],
        "dependencies": [
            {"ref": "headrace", "dependsOn": [*(codec["name"] for codec in codecs), "libgcc"]},
            {"ref": "libpng", "dependsOn": ["zlib"]},
        ],
    }


def add_licences(place: Place, info: pathlib.Path) -> None:
    for codec in PINS["codecs"]:
        (top,) = (path for path in (place.work / codec["name"]).iterdir() if path.is_dir())
        folder = info / "licenses/codecs" / codec["name"]
        folder.mkdir(parents=True)
        for name in codec["licence_files"]:
            shutil.copy(top / name, folder)


def finish(place: Place, wheel: pathlib.Path) -> None:
    """Adds licences and the list of parts, and the tag."""
    folder, log = place.work / "unpacked", place.work / "headrace.log"
    shutil.rmtree(folder, ignore_errors=True)
    run([sys.executable, "-m", "wheel", "unpack", "--dest", folder, wheel], log)
    (top,) = folder.iterdir()
    (info,) = top.glob("*.dist-info")
    add_licences(place, info)
    version = email.message_from_string((info / "METADATA").read_text())["Version"]
    (info / "sboms").mkdir()
    (info / "sboms/headrace.cdx.json").write_text(json.dumps(sbom(place, version), indent=1) + "\n")
    head = email.message_from_string((info / "WHEEL").read_text())
    python, abi, _ = head["Tag"].split("-")
    head.replace_header("Tag", f"{python}-{abi}-{place.platform}")
    (info / "WHEEL").write_text(head.as_string())
    for old in (ROOT / "dist").glob(f"headrace-*_{place.arch}.whl"):
        old.unlink()
    run([sys.executable, "-m", "wheel", "pack", "--dest-dir", ROOT / "dist", top], log)
    print(f"wheels: {place.wheel().name}: {place.wheel().stat().st_size / 1e6:.2f} MB, glibc {GLIBC}")


def main() -> None:
    place = Place(sys.argv[1], sys.argv[2])
    finish(place, build(place))


if __name__ == "__main__":
    main()
