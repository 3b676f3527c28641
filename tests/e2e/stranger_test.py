"""A service among peers that send what they should not: every one is refused by name, and nobody else is disturbed."""
import http.server
import itertools
import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
from service_support import LONG, Service, ask, begin, digest, free_port, token_file, wait_until
from support import Skip, graph, headrace, main, run, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
rng = random.Random(seed)
ATTACKS = 400
IDLE = 10000
HEAD = 32  # bytes of a frame's header, docs/formats/frame.md
TAIL = 8  # after a body
WITH_BODY = (7, 14, 15, 16, 18, 20)
VERSION = 2  # where the header has it
numbers = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
  - batch.stack: {size: 10}
"""


class Tap:
    """A listener that passes connections on, and keeps what went to the server and what came back."""

    def __init__(self, to):
        self.to, self.sent, self.answered = to, [], []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.socket.accept()
            server = dial(self.to)
            sent, answered = bytearray(), bytearray()
            self.sent.append(sent)
            self.answered.append(answered)
            for pair in ((client, server, sent), (server, client, answered)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    @staticmethod
    def _pass_on(source, to, kept):
        try:
            while some := source.recv(65536):
                kept += some
                to.sendall(some)
        except OSError:
            pass
        for each in (source, to):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def dial(address):
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=LONG)


def frames(stream):
    """The whole frames of a stream."""
    found, at = [], 0
    while at + HEAD <= len(stream):
        size = HEAD + struct.unpack_from("<I", stream, at + 4)[0] + (TAIL if stream[at + 3] in WITH_BODY else 0)
        if at + size > len(stream):
            break
        found.append(bytes(stream[at:at + size]))
        at += size
    return found


def recorded():
    """(frames to a dispatcher, to a worker, to a client or worker) of a run."""
    with Service(0) as service:
        tap = Tap(service.address)
        port = free_port()
        to_worker = Tap(f"127.0.0.1:{port}")
        service.workers.append(begin("worker", "--dispatcher", tap.address, "--tcp-only", "--listen", f"127.0.0.1:{port}",
                                     "--address", to_worker.address))
        for _ in range(3):
            run("run", graph("numbers.yaml", numbers), "-q", "--epochs", 4, "--service", tap.address)
        return tuple([frame for stream in streams for frame in frames(stream)[:40]]
                     for streams in (tap.sent, to_worker.sent, tap.answered + to_worker.answered))


def garbage(known):
    """Some frames, in any order, some of them damaged, or anything else."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(rng.randrange(1, 3000))
    chosen = [bytearray(rng.choice(known)) for _ in range(rng.randrange(1, 30))]
    if kind == 1:  # one is damaged
        victim = rng.choice(chosen)
        victim[rng.randrange(len(victim))] ^= 1 << rng.randrange(8)
    if kind == 2:
        victim = rng.choice(chosen)
        del victim[rng.randrange(len(victim)):]
    if kind == 3:
        rng.choice(chosen)[VERSION] = rng.randrange(256)
    return b"".join(chosen)


def attack(address, bytes_):
    """Sends this and reads the answer for a moment. Returns it."""
    got = b""
    with dial(address) as stranger:
        try:
            stranger.sendall(bytes_)
            if rng.random() < 0.5:
                stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(rng.choice([0.001, 0.02]))
            while some := stranger.recv(65536):
                got += some
        except OSError:
            pass
    return got


SANITIZED = any(word in pathlib.Path(headrace).read_bytes() for word in (b"__asan_init", b"__tsan_init"))


def memory_is_below(process, kb):
    """That of a sanitized build says nothing."""
    peak = int(open(f"/proc/{process.pid}/status").read().split("VmHWM:")[1].split()[0])
    assert SANITIZED or peak < kb, peak


@test
def frames_that_should_not_come_disturb_nobody():
    to_dispatcher, to_worker, answers = recorded()
    assert min(map(len, (to_dispatcher, to_worker, answers))) >= 9
    everything = to_dispatcher + to_worker + answers
    text = graph("numbers.yaml", numbers)
    wanted = digest(text, "--epochs", 30)
    with Service(2) as service:
        targets = [(service.address, to_dispatcher)] + [(w.address, to_worker) for w in service.workers]
        runs, done = [], 0
        for number in range(ATTACKS):
            if number % (ATTACKS // 4) == 0:
                runs.append(start("run", text, "--epochs", 30, "--digest", "-q", "--service", service.address))
            address, known = rng.choice(targets)
            attack(address, garbage(rng.choice([known, everything])))
            done += 1
        for process in runs:
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.strip() == wanted, err
        for process in (service.dispatcher, *service.workers):
            assert process.poll() is None, process.stderr.read()
            memory_is_below(process, 150_000)
    print(f"# {done} attacks", flush=True)


class FalseServer:
    """Answers each connection with what `answer` returns, and closes it a moment later."""

    def __init__(self, answer):
        self.answer, self.count = answer, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            peer, _ = self.socket.accept()
            self.count += 1
            try:
                peer.sendall(self.answer())
            except OSError:
                pass
            threading.Timer(0.1, peer.close).start()


@test
def clients_and_workers_survive_a_false_dispatcher():
    to_dispatcher, _, answers = recorded()
    server = FalseServer(lambda: garbage(rng.choice([answers, answers + to_dispatcher])))
    text = graph("numbers.yaml", numbers)
    for _ in range(5):
        processes = [start("run", text, "-q", "--service", server.address), start("worker", "--dispatcher", server.address)]
        time.sleep(1)
        for process in processes:
            if process.poll() is None:
                process.terminate()
            out, err = process.communicate(timeout=LONG)
            assert process.returncode in (0, 1, 130, 143, -signal.SIGTERM), (process.returncode, err)
            assert process.returncode != 1 or "headrace: " in err, err
    assert server.count > 20, server.count


@test
def another_version_of_the_protocol_is_named():
    to_dispatcher, to_worker, answers = recorded()

    def newer(frame):
        frame = bytearray(frame)
        frame[VERSION] += 1
        return bytes(frame)

    with Service(1) as service:
        for address, frame in ((service.address, to_dispatcher[0]), (service.workers[0].address, to_worker[0])):
            with dial(address) as peer:
                peer.sendall(newer(frame))
                got = b""
                while some := peer.recv(4096):
                    got += some
            assert b"install the same release on both" in got, got
    server = FalseServer(lambda: newer(answers[0]))
    for words in (["run", graph("numbers.yaml", numbers), "-q", "--service", server.address], ["worker", "--dispatcher", server.address]):
        process = start(*words)
        try:
            _, err = process.communicate(timeout=LONG / 5)
        finally:
            process.kill()
        assert process.returncode == 1 and "install the same release on both" in err, err


def hellos(count):
    """What clients of as many runs say first to a dispatcher: JOB and HELLO."""
    with Service(1) as service:
        tap = Tap(service.address)
        for _ in range(count):
            run("run", graph("numbers.yaml", numbers), "-q", "--service", tap.address)
        return [b"".join(frames(stream)[:2]) for stream in tap.sent]


@test
def runs_that_are_gone_keep_nobody_out():
    job, hello = 14, 1  # types of frames
    text, events = graph("numbers.yaml", numbers), temp / "places.jsonl"
    wanted, said = digest(text), hellos(12)
    assert all((each[3], frames(each)[1][3]) == (job, hello) for each in said)
    def count(event):
        return sum(json.loads(line)["event"] == event for line in events.read_text().splitlines())
    with Service(1, options=["--jobs", 2, "--events", events]) as service:
        for _ in range(6):  # they say GOODBYE: their places are free at once
            assert digest(text, "--service", service.address) == wanted
        assert count("job_refused") == 0 and count("job_forgotten") >= 4
        for each in said:  # they are gone without a word, and have taken nothing
            with dial(service.address) as stranger:
                stranger.sendall(each)
                stranger.recv(HEAD)
        wait_until(lambda: count("client_left") == count("client_joined"))
        # Long before the minute for which the place of a run that has taken something is kept.
        process = start("run", text, "--digest", "-q", "--service", service.address)
        out, err = process.communicate(timeout=40)
        assert process.returncode == 0 and out.strip() == wanted, err
    assert count("job_refused") > 0, "the strangers did not fill the table"


@test
def ten_thousand_idle_connections_disturb_nobody():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit[1] < IDLE + 500:
        raise Skip(f"this needs {IDLE + 500} open files (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    text, token = graph("numbers.yaml", numbers), ["--token-file", token_file("token", "t" * 32)]
    wanted = digest(text, "--epochs", 20)
    with Service(2, options=[*token, "--peers", 2048], worker_options=token) as service:
        idle = []
        for number in range(IDLE):
            address = service.address if number % 2 == 0 else service.workers[0].address
            idle.append(dial(address))
            if number % 3 == 0:
                idle[-1].send(rng.randbytes(rng.randrange(1, 4)))  # a part of a header
        assert digest(text, "--epochs", 20, "--service", service.address, *token) == wanted
        for process in (service.dispatcher, *service.workers):
            assert process.poll() is None
            memory_is_below(process, 100_000)
        for connection in idle:
            connection.close()


def stands_still(service):
    return any(job["stands"] for job in json.loads(ask(service, "/v1/jobs")[1])["jobs"])


@test
def a_run_that_stands_still_stops_no_other():
    """It is stopped while its workers send to it, and goes on later."""
    rows = graph("rows.yaml", """pipeline:
  - source.range: {n: 4096, field: label}
  - tensor.one_hot: {classes: 5000}
  - batch.stack: {size: 128}
""")
    wanted = [digest(rows, "--epochs", n) for n in (8, 60)]
    for options in ([], ["--tcp-only"]):
        with Service(1, options=["--control", "127.0.0.1:0"], worker_options=options) as service:
            got = temp / f"stopped{len(options)}.txt"
            stopped = start("run", rows, "--epochs", 60, "--digest", "-q", "--service", service.address, "--batch-digests", got)
            wait_until(lambda: got.exists() and got.stat().st_size > 0)
            stopped.send_signal(signal.SIGSTOP)
            wait_until(lambda: stands_still(service))
            jobs = run("jobs", "--control", service.dispatcher.control).stdout
            # One that is silent for 10 s counts as gone.
            assert "stands still" in jobs or not stands_still(service), jobs
            for _ in range(2):
                assert digest(rows, "--epochs", 8, "--service", service.address) == wanted[0]
            if options:
                time.sleep(11)  # longer than the dispatcher waits for a word
                assert digest(rows, "--epochs", 8, "--service", service.address) == wanted[0]
            stopped.send_signal(signal.SIGCONT)
            out, err = stopped.communicate(timeout=LONG)
            assert out.strip() == wanted[1], err


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):  # a client may hang up
        pass


class Objects(http.server.BaseHTTPRequestHandler):
    """Serves objects of 1000 bytes. With `halts` it answers no request from the 500th on, until it goes on."""

    protocol_version = "HTTP/1.1"
    halts = False
    count = itertools.count()
    asked, goes_on = threading.Event(), threading.Event()

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()

    def do_GET(self):
        if self.halts and next(self.count) >= 500:
            self.asked.set()
            self.goes_on.wait()
        self.do_HEAD()
        self.wfile.write(self.path.encode().ljust(1000, b"."))

    def log_message(self, *_):
        pass


@test
def a_server_that_does_not_answer_stops_no_other_run():
    """A worker waits for it, and makes batches of another run meanwhile."""
    server = Server(("127.0.0.1", 0), Objects)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = ", ".join(f'"{n}"' for n in range(2000))
    objects = graph("objects.yaml", f"""pipeline:
  - source.files: {{path: "http://127.0.0.1:{server.server_port}/", files: [{names}], suffixes: []}}
  - batch.stack: {{size: 1}}
""")
    rows = graph("numbers.yaml", "pipeline:\n  - source.range: {n: 5000}\n  - batch.stack: {size: 10}\n")
    wanted = [digest(objects), digest(rows)]
    Objects.halts = True
    os.environ["HEADRACE_HTTP_STALL_MS"] = "3600000"
    try:
        with Service(1) as service:
            waits = start("run", objects, "--digest", "-q", "--service", service.address)
            assert Objects.asked.wait(LONG)
            for _ in range(2):
                assert digest(rows, "--service", service.address) == wanted[1]
            assert waits.poll() is None
            Objects.goes_on.set()
            out, err = waits.communicate(timeout=LONG)
            assert out.strip() == wanted[0], err
    finally:
        del os.environ["HEADRACE_HTTP_STALL_MS"]
        Objects.goes_on.set()
        server.shutdown()


main()
