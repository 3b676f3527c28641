"""Builds the pinned codecs as static libraries: codecs.py MADE ARCH

Archives come from Debian's mirror by their checksums, into MADE/archives; one that lies there already is used, so
that a copy can stand in for the network. Each codec is built by its own build system, or by one compiler call where
that says the same. Headers of libraries that are loaded when they are needed (libcurl, expat, libevent,
libsndfile, libzstd) are those of this machine; nothing of them gets into the wheel.
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from typing import Any

import ziglang
from common import GLIBC, PINS, Place, run

MIRROR = "http://deb.debian.org/debian/"
CFLAGS = "-O3 -fPIC -fvisibility=hidden -fno-sanitize=undefined -ffp-contract=off"
# Of libraries that are loaded: name of the .pc file, headers, and the package that has them.
LOADED = {
    "libcurl": ("curl", "libcurl4-openssl-dev"),
    "expat": ("expat.h expat_external.h", "libexpat1-dev"),
    "libevent_core": ("event.h event2 evutil.h evhttp.h evdns.h evrpc.h", "libevent-dev"),
    "sndfile": ("sndfile.h", "libsndfile1-dev"),
    "libzstd": ("zstd.h zstd_errors.h zdict.h", "libzstd-dev"),
}


def fetch(place: Place, codec: dict[str, Any]) -> pathlib.Path:
    """The archive, checked."""
    file = place.archives / pathlib.PurePosixPath(codec["url"]).name
    place.archives.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        done = subprocess.run(
            [
                "/usr/lib/apt/apt-helper",
                "-o",
                "APT::Sandbox::User=root",
                "download-file",
                MIRROR + codec["url"],
                file,
                "SHA256:" + codec["sha256"],
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(
                f"wheels: {codec['name']} {codec['version']} cannot be fetched: {done.stderr.strip()}\n"
                f"If Debian has a newer one by now, raise the pin in packaging/wheels/codecs.json; or put "
                f"the archive into {place.archives}."
            )
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != codec["sha256"]:
        sys.exit(f"wheels: {file}: expected SHA-256 {codec['sha256']}, found {found}; remove the file")
    return file


def unpack(place: Place, codec: dict[str, Any]) -> pathlib.Path:
    folder = place.work / codec["name"]
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fetch(place, codec)) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    return top


def make_tools(place: Place) -> None:
    """cc, ar and ranlib for the architecture: zig's, with the glibc that the wheel may need at most."""
    folder = place.work / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    zig = pathlib.Path(ziglang.__file__).parent / "zig"
    for name, words in {"cc": f"cc -target {place.arch}-linux-gnu.{GLIBC}", "ar": "ar", "ranlib": "ranlib"}.items():
        file = folder / name
        file.write_text(
            f"#!/bin/sh\nZIG_GLOBAL_CACHE_DIR='{place.made / 'zig-cache'}'\nexport ZIG_GLOBAL_CACHE_DIR\n"
            f"exec '{zig}' {words} \"$@\"\n"
        )
        file.chmod(0o755)


class Builder:
    """Builds one codec and puts it into the stage."""

    def __init__(self, place: Place, codec: dict[str, Any]) -> None:
        self.place = place
        self.codec = codec
        self.source = unpack(place, codec)
        self.log = place.work / f"{codec['name']}.log"
        self.log.write_text("")
        self.cc, self.ar, self.ranlib = (place.work / "bin" / name for name in ("cc", "ar", "ranlib"))

    def cmake(self, target: str, *settings: str) -> pathlib.Path:
        built = self.source / "built"
        stage = self.place.stage
        run(
            [
                "cmake",
                "-G",
                "Ninja",
                "-S",
                self.source,
                "-B",
                built,
                f"-DCMAKE_C_COMPILER={self.cc}",
                f"-DCMAKE_AR={self.ar}",
                f"-DCMAKE_RANLIB={self.ranlib}",
                "-DCMAKE_SYSTEM_NAME=Linux",
                f"-DCMAKE_SYSTEM_PROCESSOR={self.place.arch}",
                "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_C_FLAGS={CFLAGS}",
                "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
                f"-DCMAKE_FIND_ROOT_PATH={stage}",
                f"-DCMAKE_PREFIX_PATH={stage}",
                "-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER",
                "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY",
                "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
                "-DBUILD_SHARED_LIBS=OFF",
                *(f"-D{setting}" for setting in settings),
            ],
            self.log,
        )
        run(["ninja", "-C", built, target], self.log)
        return built

    def compile(self, library: str, sources: str, *words: str) -> None:
        """A library of files that need no configuring."""
        objects = []
        for source in sorted(self.source.glob(sources)):
            objects.append(source.with_suffix(".o"))
            run([self.cc, *CFLAGS.split(), *words, "-c", source, "-o", objects[-1]], self.log)
        run([self.ar, "rcs", self.source / library, *objects], self.log)

    def add(
        self,
        name: str,
        version: str,
        libraries: dict[str, pathlib.Path],
        headers: list[pathlib.Path],
        requires: str = "",
    ) -> None:
        """Puts libraries, headers and a .pc file into the stage."""
        for folder in ("lib/pkgconfig", "include"):
            (self.place.stage / folder).mkdir(parents=True, exist_ok=True)
        for library, path in libraries.items():
            shutil.copy(path, self.place.stage / f"lib/lib{library}.a")
        for header in headers:
            target = self.place.stage / "include" / header.name
            shutil.copytree(header, target, dirs_exist_ok=True) if header.is_dir() else shutil.copy(header, target)
        write_pc(self.place, name, version, " ".join(f"-l{library}" for library in libraries), requires)


def write_pc(place: Place, name: str, version: str, libs: str, requires: str = "") -> None:
    (place.stage / f"lib/pkgconfig/{name}.pc").write_text(
        f"prefix={place.stage}\nName: {name}\nDescription: {name}\nVersion: {version}\nRequires: {requires}\n"
        f"Libs: -L${{prefix}}/lib {libs}\nCflags: -I${{prefix}}/include\n"
    )


def build_zlib(b: Builder) -> None:
    run(["./configure", "--static"], b.log, b.source, CC=str(b.cc), AR=str(b.ar), RANLIB=str(b.ranlib), CFLAGS=CFLAGS)
    run(["make", "libz.a"], b.log, b.source)
    b.add("zlib", b.codec["version"], {"z": b.source / "libz.a"}, [b.source / "zlib.h", b.source / "zconf.h"])


def build_libjpeg_turbo(b: Builder) -> None:
    # REQUIRE_SIMD: without an assembler it would be built slow, and say so only in its log.
    built = b.cmake("jpeg-static", "ENABLE_SHARED=OFF", "WITH_TURBOJPEG=OFF", "WITH_TOOLS=OFF", "REQUIRE_SIMD=ON")
    headers = [b.source / f"src/{name}" for name in ("jpeglib.h", "jmorecfg.h", "jerror.h")]
    b.add("libjpeg", b.codec["version"], {"jpeg": built / "libjpeg.a"}, [*headers, built / "jconfig.h"])


def build_libpng(b: Builder) -> None:
    built = b.cmake("png_static", "PNG_SHARED=OFF", "PNG_TESTS=OFF", "PNG_TOOLS=OFF")
    b.add(
        "libpng",
        b.codec["version"],
        {"png": built / "libpng16.a"},
        [b.source / "png.h", b.source / "pngconf.h", built / "pnglibconf.h"],
        "zlib",
    )


def build_libwebp(b: Builder) -> None:
    tools = (
        "ANIM_UTILS",
        "CWEBP",
        "DWEBP",
        "GIF2WEBP",
        "IMG2WEBP",
        "VWEBP",
        "WEBPINFO",
        "WEBPMUX",
        "LIBWEBPMUX",
        "EXTRAS",
    )
    built = b.cmake("webp", *(f"WEBP_BUILD_{tool}=OFF" for tool in tools))
    b.add(
        "libwebp",
        b.codec["version"],
        {"webp": built / "libwebp.a", "sharpyuv": built / "libsharpyuv.a"},
        [b.source / "src/webp"],
    )


def build_libyaml(b: Builder) -> None:
    major, minor, patch = b.codec["version"].split(".")
    b.compile(
        "libyaml.a",
        "src/*.c",
        f"-I{b.source / 'include'}",
        f'-DYAML_VERSION_STRING="{b.codec["version"]}"',
        f"-DYAML_VERSION_MAJOR={major}",
        f"-DYAML_VERSION_MINOR={minor}",
        f"-DYAML_VERSION_PATCH={patch}",
    )
    b.add("yaml-0.1", b.codec["version"], {"yaml": b.source / "libyaml.a"}, [b.source / "include/yaml.h"])


def build_xxhash(b: Builder) -> None:
    b.compile("libxxhash.a", "xxhash.c")
    b.add("libxxhash", b.codec["version"], {"xxhash": b.source / "libxxhash.a"}, [b.source / "xxhash.h"])


def build_liburing(b: Builder) -> None:
    run(["./configure", f"--cc={b.cc}", "--use-libc"], b.log, b.source)  # zig has no headers with -nostdlib
    run(
        [
            "make",
            "-C",
            "src",
            "liburing.a",
            "ENABLE_SHARED=0",
            f"AR={b.ar}",
            f"RANLIB={b.ranlib}",
            f"CFLAGS={CFLAGS} -fno-stack-protector",
        ],
        b.log,
        b.source,
    )
    b.add(
        "liburing",
        b.codec["version"],
        {"uring": b.source / "src/liburing.a"},
        [b.source / "src/include/liburing.h", b.source / "src/include/liburing"],
    )


BUILDERS: dict[str, Callable[[Builder], None]] = {
    "zlib": build_zlib,
    "libjpeg-turbo": build_libjpeg_turbo,
    "libpng": build_libpng,
    "libwebp": build_libwebp,
    "libyaml": build_libyaml,
    "xxHash": build_xxhash,
    "liburing": build_liburing,
}


def add_loaded(place: Place) -> None:
    """Headers of libraries that are loaded when they are needed."""
    machine = subprocess.run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"], capture_output=True, text=True, check=False)
    folders = [pathlib.Path("/usr/include"), pathlib.Path("/usr/include", machine.stdout.strip() or "x86_64-linux-gnu")]
    for name, (headers, package) in LOADED.items():
        version = subprocess.run(
            ["pkg-config", "--modversion", name], capture_output=True, text=True, check=False
        ).stdout
        if not version:
            sys.exit(f"wheels: {package} is not installed; apt-get install {package}")
        for header in headers.split():
            for path in (folder / header for folder in folders if (folder / header).exists()):
                to = place.stage / "include" / header
                shutil.copytree(path, to, dirs_exist_ok=True) if path.is_dir() else shutil.copy(path, to)
        write_pc(place, name, version.strip(), "")


def main() -> None:
    place = Place(sys.argv[1], sys.argv[2])
    # What was built from the same pins by the same rules is kept.
    mine = hashlib.sha256(pathlib.Path(__file__).read_bytes() + repr(PINS).encode()).hexdigest()
    stamp = place.work / "codecs.done"
    if stamp.exists() and stamp.read_text() == mine:
        return
    if place.arch == "x86_64" and shutil.which("nasm") is None:
        sys.exit("wheels: libjpeg-turbo needs nasm for x86-64; apt-get install nasm")
    make_tools(place)
    for codec in PINS["codecs"]:
        done = place.work / f"{codec['name']}.done"
        if done.exists() and done.read_text() == mine:
            continue
        print(f"wheels: {place.arch}: building {codec['name']} {codec['version']}", flush=True)
        BUILDERS[codec["name"]](Builder(place, codec))
        done.write_text(mine)
    add_loaded(place)
    stamp.write_text(mine)


if __name__ == "__main__":
    main()
