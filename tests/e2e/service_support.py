"""A dispatcher and workers as processes, for the tests of the service."""
import socket
import time

from support import run, start, temp

LONG = 100  # seconds, for what takes a moment


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def begin(*words):
    """Starts a dispatcher or worker and waits until it listens."""
    process = start(*words)
    line = process.stdout.readline()
    assert "listens at 127.0.0.1:" in line, line + process.stderr.read()
    process.address = line.split()[-1]
    process.control = process.stdout.readline().split("//")[1].strip() if "--control" in words else None
    return process


class Service:
    """A dispatcher and workers."""

    def __init__(self, workers=2, threads=1, options=(), worker_options=()):
        self.options, self.worker_options = options, worker_options
        self.address = f"127.0.0.1:{free_port()}"
        self.threads = threads
        self.dispatcher = self.begin_dispatcher()
        self.workers = [self.begin_worker() for _ in range(workers)]

    def begin_dispatcher(self):
        return begin("dispatcher", "--listen", self.address, *self.options)

    def begin_worker(self):
        return begin("worker", "--dispatcher", self.address, "--threads", self.threads, *self.worker_options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [self.dispatcher, *self.workers]:
            process.kill()
            process.communicate()

    def kill_worker(self, at):
        self.workers[at].kill()
        self.workers[at].communicate()
        self.workers[at] = self.begin_worker()

    def kill_dispatcher(self):
        self.dispatcher.kill()
        self.dispatcher.communicate()
        self.dispatcher = self.begin_dispatcher()


def digest(*words):
    return run("run", *words, "--digest", "-q").stdout.strip()


def wait_until(condition):
    until = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < until, "this takes too long"
        time.sleep(0.02)


def token_file(name, text):
    path = temp / name
    path.write_text(text + "\n")
    return path
