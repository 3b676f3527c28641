"""Processes of a service that die at named points of the code (src/core/kill_points.def), and come back.

A case is one process that dies once or twice at the n-th passing of a point, during a run of a dispatcher, two workers and
a client. The command under test is `headrace_killable`. What the run delivers must be what an undisturbed one does: each
batch once in the surviving history, in order if the run is ordered, with the same list of bad records.

`make check` draws some cases of each process; HEADRACE_TEST_KILLS=1000 plays all of them in turn until so many died.
"""
import atexit
import collections
import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from consumers_support import Consumer, check_union, expected
from postgres import Postgres
from service_support import LONG, free_port, keep
from support import graph, headrace, main, photos, run, source, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
KILLS = int(os.environ.get("HEADRACE_TEST_KILLS", 0))
ONLY = os.environ.get("HEADRACE_TEST_POINT", "")  # a part of "role point"
FEW = 4  # cases of each process, without HEADRACE_TEST_KILLS
SILENT = 30  # seconds without a batch: the run hangs. Leases last 60 s
PASSINGS = [1, 1, 2, 3, 5, 9, 30]

IMAGES = """pipeline:
  - source.files: {path: %s, labels: folder}
  - order.shuffle: {}
  - image.decode: {}
  - image.random_resized_crop: {size: 48}
"""
STACK = "  - batch.stack: {size: 4}\n"
FEWER = '  - record.filter: {expr: "label < 3"}\n'
LARGE = """pipeline:
  - source.range: {n: 2048, field: label}
  - tensor.one_hot: {classes: 5000}
  - batch.stack: {size: 128}
"""
NUMBERS = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
  - batch.stack: {size: 10}
"""
SINGLES = """pipeline:
  - source.range: {n: 5000}
  - order.shuffle: {}
"""
CACHED = """pipeline:
  - source.files: {path: %s, labels: folder}
  - order.shuffle: {}
  - image.decode: {}
  - flow.cache: {folder: %s}
  - image.random_resized_crop: {size: 48}
  - batch.stack: {size: 4}
"""
TEXTS = """pipeline:
  - source.lines: {path: %s}
  - order.shuffle: {}
  - text.split: {to: words}
  - batch.stack: {size: 100}
"""


# ---- the list ----


class Point:
    def __init__(self, name, roles, runs, when):
        self.name, self.roles, self.runs, self.when = name, roles.split(), runs, when


def listed():
    text = (source / "src/core/kill_points.def").read_text()
    return [Point(*found) for found in re.findall(r'^POINT\("(.*?)", "(.*?)", "(.*?)", "(.*?)"\)$', text, re.M)]


def places():
    """The points in the sources, as (name, file)."""
    files = [path for path in (source / "src").rglob("*.c")]
    return [(name, path) for path in files for name in re.findall(r'\bHR_KILL_POINT\("(.*?)"\)', path.read_text())]


@test
def the_list_the_sources_and_the_documentation_agree():
    found, names = places(), [point.name for point in listed()]
    assert len(names) > 40 and len(set(names)) == len(names)
    assert sorted(name for name, _ in found) == sorted(names), set(names) ^ {name for name, _ in found}
    compiled = (source / "tests/e2e/meson.build").read_text()
    for _, path in found:
        assert f"'../../{path.relative_to(source)}'" in compiled, f"{path} must be compiled with HR_KILL_POINTS"
    rows = [f"| `{point.name}` | {', '.join(point.roles)} | {point.when} |" for point in listed()]
    table = re.search(r"^\| point \|.*?\n\n", (source / "docs/service.md").read_text() + "\n\n", re.M | re.S)
    assert table and table.group().strip().splitlines()[2:] == rows, "docs/service.md must have:\n" + "\n".join(rows)


@test
def the_command_and_the_library_have_no_points():
    for path in (headrace.parents[2] / "headrace", *headrace.parents[2].glob("libheadrace.so*")):
        if path.is_file():
            assert b"HEADRACE_KILL_AT" not in path.read_bytes(), path
    assert b"HEADRACE_KILL_AT" in headrace.read_bytes()


@test
def a_point_that_does_not_exist_is_refused():
    done = run("ops", env={"HEADRACE_KILL_AT": "nowhere:1"}, code=None)
    assert done.returncode != 0 and "no kill point 'nowhere'" in done.stderr, done.stderr


# ---- runs ----


class Kind:
    """A graph, how it is run, and what an undisturbed run gives."""

    def __init__(self, name, text, epochs, options=(), own_folders=False, cache=None):
        self.name, self.text, self.epochs, self.options = name, graph(f"kill_{name}.yaml", text), epochs, list(options)
        self.own_folders, self.cache = own_folders, cache
        self.save_every = [1, 5, 20] if name != "singles" else [100, 1000]
        self.known = None

    def expected(self):
        """Lines of digests, and of the list of bad records."""
        if self.known is None:
            ledger = temp / f"{self.name}.ledger"
            lines = self.alone("--bad-records", ledger, *self.options)
            self.known = lines, set(ledger.read_text().splitlines() if ledger.exists() else [])
        return self.known

    def alone(self, *options):
        """The lines of digests of a run without a service."""
        got = temp / f"{self.name}.alone"
        got.unlink(missing_ok=True)
        run("run", self.text, "--epochs", self.epochs, "-q", "--batch-digests", got, *options)
        return got.read_text().splitlines()


def damaged():
    folder = temp / "damaged"
    if not folder.exists():
        shutil.copytree(photos(), folder)
        for victim in sorted(folder.rglob("*.jpg"))[4:24:9]:
            victim.write_bytes(victim.read_bytes()[:100])
    return folder


def texts():
    """Large and old enough that what a scan of it finds is kept in the cache folder."""
    path = temp / "texts.txt"
    if not path.exists():
        path.write_text("".join(f"{i} {chr(97 + i % 26) * 850}\n" for i in range(20000)))
        os.utime(path, (time.time() - 3600,) * 2)
    return path


def kinds():
    ledger = ["--errors", "skip", "--errors-max", 100000]
    images = IMAGES % photos()
    return {"images": Kind("images", images + STACK, 20),
            "numbers": Kind("numbers", NUMBERS, 4),
            "singles": Kind("singles", SINGLES, 10),
            "shared": Kind("shared", LARGE, 12),
            "cut": Kind("cut", images + FEWER + STACK, 20),
            "ledger": Kind("ledger", IMAGES % damaged() + FEWER + STACK, 10, ledger),
            "cache": Kind("cache", CACHED % (photos(), temp / "values"), 10, cache=temp / "values"),
            "index": Kind("index", TEXTS % texts(), 1, own_folders=True)}


FOR_ANY = ["images", "numbers", "singles", "shared", "cut"]


class Process:
    """One that is started again when it dies, and that dies at a point `left` times."""

    def __init__(self, case, role, words):
        self.case, self.role, self.words = case, role, words
        self.log = case.folder / f"{role}.log"
        self.cache = (case.folder if case.kind.own_folders else temp) / f"cache_{role}"
        self.left, self.process, self.drains = 0, None, False

    def begin(self):
        self.drains = False
        environment = {**os.environ, "HEADRACE_CACHE": str(self.cache)}
        if self.left > 0:
            environment["HEADRACE_KILL_AT"] = f"{self.case.point}:{self.case.passing}"
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([headrace, *map(str, self.words)], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=temp, env=environment)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def drain(self):
        self.process.terminate()
        self.drains = True

    def died(self):
        """Whether it died at its point. Anything else that ends it is a failure, except a client that is done and a worker
        that has drained, which comes back."""
        code = self.process.poll()
        if code is None or (code == 0 and self.role == "client"):
            return False
        if code == 0 and self.drains:
            self.begin()
            return False
        assert code == -9 and self.left > 0, f"{self.case}: {self.role} ends with {code}: {self.log.read_text()[-400:]}"
        self.left -= 1
        self.case.kills += 1
        return True


class Case:
    def __init__(self, role, point, ordered, times, rng):
        self.role, self.point, self.ordered, self.times = role, point.name, ordered, times
        self.kills, self.rng, self.silence = 0, rng, 0.0
        self.passing = 1 if point.runs in ("drained", "index") else rng.choice(PASSINGS)
        every = kinds_known()
        self.kind = every[rng.choice(FOR_ANY) if point.runs in ("any", "killed", "lost", "drained", "ordered") else point.runs]
        self.disturbs = {"killed": "worker0", "lost": "client", "drained": "worker0"}.get(point.runs)
        self.drains = point.runs == "drained"
        self.named = rng.random() < 0.5
        self.more = rng.choice([[], ["--tcp-only"], ["--tcp-only", "--compress", "zstd"]]) if point.runs != "shared" else []
        self.company = rng.random() < 0.25  # another process is killed at the same time
        self.folder = temp / f"case{rng.randrange(10**9)}"
        self.folder.mkdir()
        self.all = []

    def __str__(self):
        return (f"{self.role} {self.point}:{self.passing}, {self.times} times, {self.kind.name}, "
                f"{'ordered' if self.ordered else 'unordered'}{', named' if self.named else ''}{', not alone' if self.company else ''} {' '.join(self.more)}")

    # ---- processes ----

    def add(self, role, words):
        process = Process(self, role, words)
        self.all.append(process)
        return process

    def victim(self):
        return next(process for process in self.all if process.role.rstrip("0123456789") == self.role)

    def set_up(self):
        at = f"127.0.0.1:{free_port()}"
        self.add("dispatcher", ["dispatcher", "--listen", at, "--events", self.folder / "events"])
        for i in range(2):
            self.add(f"worker{i}", ["worker", "--dispatcher", at, "--threads", 1, *self.more])
        self.words = ["run", self.kind.text, "--epochs", self.kind.epochs, "-q", "--service", at, *self.kind.options]
        self.words += ["--job", self.folder.name] if self.named else []
        self.client = self.add("client", [])
        self.victim().left = self.times
        for process in self.all[:-1]:
            process.begin()

    def begin_round(self, number):
        self.state, self.got, self.ledger = (self.folder / f"{name}{number}" for name in ("state", "got", "ledger"))
        for process in self.all:
            if self.kind.own_folders:  # else nothing is written again
                shutil.rmtree(process.cache, ignore_errors=True)
        if self.kind.cache:
            shutil.rmtree(self.kind.cache, ignore_errors=True)
        self.client.words = [*self.words, "--batch-digests", self.got]
        self.client.words += ["--bad-records", self.ledger] if self.kind.options else []  # which cuts the graph
        self.client.words += ["--state", self.state, "--save-every", self.rng.choice(self.kind.save_every)] if self.ordered else ["--ordered", "false"]
        self.client.begin()

    def follow_into_death(self, victim):
        other = self.rng.choice([process for process in self.all if process is not victim])
        if other.process.poll() is None:
            other.kill()
            self.kills += 1
            self.come_back(other)

    def come_back(self, process):
        if process is self.client and self.ordered:
            keep(self.state, self.got)
        elif process is self.client:  # it has no state: it begins again
            self.got.unlink(missing_ok=True)
        process.begin()

    def disturb(self):
        """Kills the process whose end the victim is to see, or lets the victim leave."""
        process = next(process for process in self.all if process.role == self.disturbs)
        if self.drains:
            process.drain()
            return
        process.kill()
        self.come_back(process)

    # ---- a round: a run from its beginning to its end ----

    def lines(self):
        return self.got.read_text().count("\n") if self.got.exists() else 0

    def follow(self):
        seen, seen_at, disturbed = -1, time.monotonic(), self.disturbs is None
        while self.client.process.poll() != 0:
            for process in self.all:
                if process.died():
                    if self.company:
                        self.follow_into_death(process)
                    self.come_back(process)
                    seen_at = time.monotonic()
            lines = self.lines()
            if lines != seen:
                seen, seen_at = lines, time.monotonic()
            self.silence = max(self.silence, time.monotonic() - seen_at)
            if not disturbed and lines > 0 and self.client.process.poll() is None:
                disturbed = True
                self.disturb()
            assert time.monotonic() - seen_at < SILENT, f"{self}: the run hangs after {lines} batches"
            time.sleep(0.004)

    def compare(self):
        wanted, ledger = self.kind.expected()
        got = self.got.read_text().splitlines()
        differ = collections.Counter(wanted)
        differ.subtract(got)
        lost, more = (sum(n for n in (sign * n for n in differ.values()) if n > 0) for sign in (1, -1))
        assert not lost and not more, f"{self}: of {len(wanted)} batches {lost} are lost, {more} are repeated or others"
        assert not self.ordered or got == wanted, f"{self}: not in order"
        assert not self.kind.cache or self.kind.alone() == wanted, f"{self}: the cache has other records"
        lines = set(self.ledger.read_text().splitlines()) if self.ledger.exists() else set()
        assert lines == ledger, f"{self}: {len(lines)} bad records are listed, not {len(ledger)}"

    def check_events(self):
        """Each line of the log is whole, whenever the dispatcher died."""
        for line in (self.folder / "events").read_text().splitlines():
            assert "event" in json.loads(line), line

    def settle(self):
        """The last messages of a run are taken after its end."""
        victim, until = self.victim(), time.monotonic() + 0.3
        while victim is not self.client and victim.left > 0 and time.monotonic() < until:
            if victim.died():
                victim.begin()
                return
            time.sleep(0.004)

    def play(self):
        self.set_up()
        number = 0
        while self.victim().left > 0 or number == 0:
            assert number < 6 + 2 * self.times, f"{self}: it is not passed"
            if number >= 2 and self.passing > 1:  # it is not passed so often
                self.passing = 1
                if self.victim() is not self.client:
                    self.victim().kill()
                    self.victim().begin()
            if number == 4 and self.role == "worker":  # it has to do all
                other = self.all[2]
                other.kill()
                self.all.remove(other)
            self.begin_round(number)
            self.follow()
            self.compare()
            self.settle()
            number += 1
        self.check_events()

    def close(self):
        for process in self.all:
            process.kill()
        shutil.rmtree(self.folder)


known = {}


def kinds_known():
    if not known:
        known.update(kinds())
    return known


# ---- cases ----


def cases():
    """All of them, as (role, point, ordered, times)."""
    return [(role, point, ordered, times) for point in listed() for role in point.roles for ordered in (True, False) for times in (1, 2)
            if point.runs != "consumer" and (ordered or point.runs not in ("ordered", "ledger")) and ONLY in f"{role} {point.name}"]


def drawn(rng):
    """The cases in random order; a few of each role, or all again and again."""
    every = cases()
    if not KILLS and not ONLY:
        for role in ("dispatcher", "worker", "client"):
            yield from rng.sample([case for case in every if case[0] == role], FEW)
        return
    while True:
        yield from rng.sample(every, len(every))
        if not KILLS:
            return


@test
def whoever_dies_at_a_point_no_record_is_lost_or_repeated():
    rng, kills, count, silence = random.Random(seed), 0, 0, (0.0, "")
    begin = time.monotonic()
    for what in drawn(rng):
        case = Case(*what, rng)
        try:
            case.play()
        finally:
            case.close()
        kills, count, silence = kills + case.kills, count + 1, max(silence, (case.silence, str(case)))
        if ONLY or KILLS:
            print(f"# {time.monotonic() - begin:.1f} s, {kills} kills, silent for {case.silence:.1f} s: {case}", flush=True)
        if KILLS and kills >= KILLS:
            break
    print(f"# {kills} kills in {count} cases; silent for {silence[0]:.1f} s at most: {silence[1]}", flush=True)


# ---- several consumers of one run ----


@functools.cache
def postgres():
    """The address of a server, or else a folder."""
    try:
        server = Postgres()
    except FileNotFoundError:
        return temp / "journal"
    atexit.register(server.close)
    return server.address


class Shared:
    """Two consumers of a run, a dispatcher with a journal, and workers. One of them dies at a point."""

    def __init__(self, role, point, times, rng):
        self.role, self.point, self.left, self.rng = role, point, times, rng
        self.kills, self.passing = 0, 1 if point in ("consumer.left", "job.found") else rng.choice([1, 1, 2, 5])
        self.job = f"shared{rng.randrange(10**9)}"
        self.journal = rng.choice([temp / self.job, postgres()])
        self.at = f"127.0.0.1:{free_port()}"
        self.dispatcher = self.begin("dispatcher", "--listen", self.at, "--journal", self.journal, "--evict-after", 1)
        self.workers = [self.begin("worker", "--dispatcher", self.at, "--threads", 1) for _ in range(2)]

    def __str__(self):
        return f"{self.role} {self.point}:{self.passing}, two consumers, journal {self.journal}"

    def env(self, role):
        """That lets a process of this role die at the point."""
        return {"HEADRACE_KILL_AT": f"{self.point}:{self.passing}"} if role == self.role and self.left > 0 else {}

    def begin(self, role, *words):
        return subprocess.Popen([headrace, role, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                stdin=subprocess.DEVNULL, cwd=temp, env={**os.environ, **self.env(role)})

    def died(self, process):
        if process.poll() != -9:
            return False
        self.left -= 1
        self.kills += 1
        return True

    def revive(self, consumer):
        if self.died(self.dispatcher):
            self.dispatcher = self.begin("dispatcher", "--listen", self.at, "--journal", self.journal, "--evict-after", 1)
        if self.died(consumer.process):
            consumer.begin(env=self.env("client"))

    def play(self):
        text = graph("shared_numbers.yaml", NUMBERS)
        several = [Consumer(self.at, text, name, self.job, 2, self.rng.choice([1, 5, 40]), self.env("client") if name == "a" else None)
                   for name in "ab"]
        until = time.monotonic() + LONG
        while any(consumer.process.poll() != 0 for consumer in several):
            self.revive(several[0])
            codes = [consumer.process.poll() for consumer in several]
            assert set(codes) <= {None, 0, -9}, f"{self}: {codes}: {several[0].said()} {several[1].said()}"
            assert time.monotonic() < until, f"{self}: the run hangs after {self.kills} kills"
            time.sleep(0.004)
        time.sleep(0.1)
        self.revive(several[0])  # it may have died at the very end
        check_union(several, expected(text, 2))

    def close(self):
        for process in [self.dispatcher, *self.workers]:
            process.kill()
            process.wait()


@test
def whoever_dies_at_a_point_consumers_get_each_batch_once():
    rng, kills, every = random.Random(seed + 1), 0, [(role, point.name) for point in listed() if point.runs == "consumer" for role in point.roles]
    every = [(role, name) for role, name in every if ONLY in f"{role} {name}"]
    for role, name in every if KILLS or ONLY else rng.sample(every, FEW):
        for times in (1, 2):
            case = Shared(role, name, times, rng)
            try:
                case.play()
            finally:
                case.close()
            assert case.kills > 0 or case.passing > 1, f"{case}: it is not passed"
            kills += case.kills
            if ONLY or KILLS:
                print(f"# {case.kills} kills: {case}", flush=True)
    print(f"# {kills} kills", flush=True)


main()
