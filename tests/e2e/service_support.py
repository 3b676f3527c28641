"""A dispatcher and workers as processes, for the tests of the service."""
import http.client
import json
import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from ports import free_port
from support import run, start, temp

LONG = 100  # seconds, for what takes a moment


def begin(*words, **more):
    """Starts a dispatcher or worker and waits until it listens."""
    process = start(*words, **more)
    line = process.stdout.readline()
    assert "listens at 127.0.0.1:" in line, line + process.stderr.read()
    process.address = line.split()[-1]
    process.control = process.stdout.readline().split("//")[1].strip() if "--control" in words else None
    return process


class Service:
    """A dispatcher and workers."""

    def __init__(self, workers=2, threads=1, options=(), worker_options=(), worker_env=None):
        self.options, self.worker_options, self.worker_env = options, worker_options, worker_env
        self.address = f"127.0.0.1:{free_port()}"
        self.threads = threads
        self.dispatcher = self.begin_dispatcher()
        self.workers = [self.begin_worker() for _ in range(workers)]

    def begin_dispatcher(self):
        return begin("dispatcher", "--listen", self.address, *self.options)

    def begin_worker(self):
        return begin("worker", "--dispatcher", self.address, "--threads", self.threads, *self.worker_options, env=self.worker_env)

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


class SlowLink:
    """A listener that passes connections on to a worker, and what it answers at `rate` bytes per second."""

    def __init__(self, rate):
        self.rate, self.to = rate, None
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.socket.accept()
            worker = socket.socket()
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            host, port = self.to.split(":")
            worker.connect((host, int(port)))
            for pair in ((client, worker, 0), (worker, client, self.rate)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    @staticmethod
    def _pass_on(source, to, rate):
        try:
            while some := source.recv(65536):
                to.sendall(some)
                if rate:
                    time.sleep(len(some) / rate)
        except OSError:
            pass
        for each in (source, to):
            each.close()


def digest(*words):
    return run("run", *words, "--digest", "-q").stdout.strip()


def ask(service, path, method="GET", body=None, headers={}):
    """(status, body) of an answer of the dispatcher's control port."""
    connection = http.client.HTTPConnection(service.dispatcher.control, timeout=LONG)
    connection.request(method, path, body=body, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def metrics(service):
    """Values of the service's /metrics by name."""
    status, text = ask(service, "/metrics")
    assert status == 200
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line[0] != "#"}


def wait_until(condition):
    until = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < until, "this takes too long"
        time.sleep(0.02)


def token_file(name, text):
    path = temp / name
    path.write_text(text + "\n")
    return path


def killed_run(rng, service, text, epochs, actions):
    """Runs with a saved state; kills what `actions` name at random moments. Returns the lines of batch digests."""
    trial = rng.randrange(10**9)
    state, got = temp / f"killed{trial}.state", temp / f"killed{trial}.txt"
    words = ["run", text, "--epochs", epochs, "-q", "--state", state, "--save-every", 1, "--batch-digests", got,
             "--service", service.address]
    process = start(*words)
    kills = 0
    until = time.monotonic() + LONG
    while process.poll() is None:
        assert time.monotonic() < until, f"the run hangs; {kills} kills; {got.read_text().count(chr(10))} batches"
        time.sleep(rng.random() * 0.4)
        what = rng.choice(actions)
        if kills >= 12:
            continue
        kills += 1
        if what == "worker":
            service.kill_worker(rng.randrange(len(service.workers)))
        elif what == "dispatcher":
            service.kill_dispatcher()
        elif what == "all":
            service.dispatcher.kill()
            for at in range(len(service.workers)):
                service.kill_worker(at)
            service.kill_dispatcher()
        elif what == "client" and process.poll() is None:
            process.kill()
            process.communicate()
            keep(state, got)
            process = start(*words)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return got.read_text(), kills


def keep(state, got):
    """What the killed client wrote after its last state is outside the surviving history."""
    text = json.loads(state.read_text()) if state.exists() else {"epoch": 0, "records": 0}
    records, lines = text["records"], []
    for line in got.read_text().splitlines() if got.exists() else []:
        if records <= 0 or len(line.split()) != 3:
            break
        records -= int(line.split()[1])
        lines.append(line + "\n")
    got.write_text("".join(lines))
