#!/usr/bin/env python3
"""A GlusterFS server for tests: glusterd and one brick.

    gluster.py FOLDER     keeps its files in FOLDER; prints gluster://HOST/VOLUME; ends with its standard input

Needs root, Debian's glusterfs-server and a file system with trusted extended attributes, and exits with status 77 where
they are missing, or where port 24007 is taken: bricks know no other port of glusterd.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

PORT, VOLUME = 24007, "test"

CONFIG = """
volume management
    type mgmt/glusterd
    option working-directory {folder}/work
    option run-directory {folder}/run
    option glusterd-sockfile {folder}/socket
    option transport-type socket
    option transport.socket.listen-port {port}
    option transport.address-family inet
    option rpc-auth-allow-insecure on
end-volume
"""
# So that a test sees at once what another client has changed.
UNCACHED = ("performance.stat-prefetch", "performance.quick-read", "performance.io-cache", "performance.open-behind")


def skip(why: str) -> None:
    print(why, file=sys.stderr)
    sys.exit(77)


def check() -> socket.socket:
    """Skips where it cannot run. While what is returned is open, no other one starts on this machine."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("glusterd", "glusterfsd", "gluster"))):
        skip("needs root and glusterfs-server")
    alone = socket.socket(socket.AF_UNIX)
    try:
        alone.bind("\0headrace-test-gluster")
    except OSError:
        skip("another test runs GlusterFS")
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("", PORT))
        except OSError:
            skip(f"port {PORT} is taken")
    return alone


def start(folder: pathlib.Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    for name in ("work", "run", "brick"):
        (folder / name).mkdir(parents=True)
    try:
        os.setxattr(folder / "brick", "trusted.test", b"1")
    except OSError:
        skip(f"{folder} has no trusted extended attributes")
    config = folder / "glusterd.vol"
    config.write_text(CONFIG.format(folder=folder, port=PORT))
    command = ["glusterd", "-N", "-f", str(config), "-p", str(folder / "pid"), "-l", str(folder / "log")]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)


def main() -> None:
    alone = check()
    folder = pathlib.Path(sys.argv[1]).resolve()
    # tools/sanitize-python preloads a sanitizer, which would report races of GlusterFS.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    tool = ["gluster", f"--glusterd-sock={folder}/socket", "--mode=script"]

    def run(*words: str) -> bool:
        return subprocess.run([*tool, *words], stdout=sys.stderr, timeout=120, env=environment).returncode == 0

    daemon, host = start(folder, environment), socket.gethostname()
    bricks: list[int] = []
    try:
        while not run("volume", "list"):  # the caller has a limit
            time.sleep(0.2)
        assert run("volume", "create", VOLUME, f"{host}:{folder}/brick/data", "force")
        for option in UNCACHED:
            assert run("volume", "set", VOLUME, option, "off")
        assert run("volume", "start", VOLUME)
        bricks = [int(file.read_text()) for file in folder.glob("run/**/*.pid")]
        assert bricks
        os.write(1, f"gluster://{host}/{VOLUME}\n".encode())  # at once, as the reader takes what comes first
        sys.stdin.read()
    finally:  # the folder may be gone
        daemon.kill()
        daemon.wait()
        for brick in bricks:
            with contextlib.suppress(OSError):
                os.kill(brick, signal.SIGKILL)
        alone.close()


if __name__ == "__main__":
    main()
