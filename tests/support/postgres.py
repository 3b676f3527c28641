#!/usr/bin/env python3
"""A PostgreSQL server for tests.

    postgres.py    prints postgresql://...; ends with its standard input

Needs Debian's postgresql, and exits with status 77 where it is missing. The server refuses to be root: then it is the user
postgres.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from ports import free_port

OPTIONS = ("fsync=off", "full_page_writes=off", "max_connections=30", "shared_buffers=16MB", "listen_addresses=127.0.0.1")


def programs() -> pathlib.Path | None:
    """Debian's folder of the newest release, which is not in PATH."""
    found = [path.parent for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found += [pathlib.Path(path).parent for path in [shutil.which("initdb")] if path is not None]
    return max(found, key=lambda path: int((re.search(r"\d+", str(path)) or ["0"])[0]), default=None)


class Postgres:
    """A server. `kill`, `freeze` and `start` again are for tests of what lives without it."""

    def __init__(self) -> None:
        folder = programs()
        if folder is None:
            raise FileNotFoundError("needs Debian's postgresql")
        self.folder, self.port = folder, free_port()
        self.user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="hr-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self.home, "postgres", "postgres")
        self.run("initdb", "--pgdata", self.home / "data", "--auth", "trust", "--username", "postgres", "--no-sync")
        self.start()

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def words(self, program: str, *words: object) -> list[str]:
        made = [str(self.folder / program), *map(str, words)]
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", *made] if os.geteuid() == 0 else made

    def run(self, program: str, *words: object) -> str:
        done = subprocess.run(self.words(program, *words), capture_output=True, text=True, cwd="/", timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stderr.strip()}")
        return done.stdout.strip()

    def query(self, text: str) -> str:
        return self.run("psql", "--no-psqlrc", "-At", "-c", text, self.address)

    def start(self) -> None:
        """Returns once it answers; the caller has a limit."""
        options = [word for option in OPTIONS for word in ("-c", option)]
        words = self.words("postgres", "-D", self.home / "data", "-p", self.port, "-k", self.home, *options)
        self.process = subprocess.Popen(words, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        while True:
            assert self.process.poll() is None, "the server ended"
            with contextlib.suppress(RuntimeError):
                self.query("SELECT 1")
                return
            time.sleep(0.1)

    def tree(self) -> list[int]:
        """Its processes."""
        pid = self.process.pid
        return [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def freeze(self, stop: bool) -> None:
        for pid in self.tree():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP if stop else signal.SIGCONT)

    def kill(self) -> None:
        """As a crash."""
        for pid in self.tree():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


def tap_server() -> Postgres:
    """A server for the rest of a TAP program, which ends without a test where there is none."""
    try:
        server = Postgres()
    except FileNotFoundError as error:
        print(f"1..0 # SKIP {error}")
        sys.exit()
    atexit.register(server.close)
    return server


def main() -> None:
    try:
        server = Postgres()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        sys.exit(77)
    try:
        os.write(1, f"{server.address}\n".encode())  # at once, as the reader takes what comes first
        sys.stdin.read()
    finally:
        server.close()


if __name__ == "__main__":
    main()
