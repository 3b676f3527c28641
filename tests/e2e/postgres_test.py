"""Dispatchers that share a journal in PostgreSQL, with a real server: each batch once, whichever of them dies."""
import json
import os
import pathlib
import random
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from consumers_support import NUMBERS, Consumer, check_union, expected, got_some, numbers
from postgres import tap_server
from service_support import LONG, begin, free_port, wait_until
from support import graph, main, one_line, run, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
rng = random.Random(seed)


class Dispatchers:
    """Some that share a journal, and workers of them all."""

    def __init__(self, count=2, workers=2, journals=None):
        self.journals = journals or [server.address] * count
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in self.journals]
        self.all = ",".join(self.addresses)
        self.events = [temp / f"{rng.randrange(10**9)}.events" for _ in self.journals]
        self.processes = [self.begin(at) for at in range(len(self.journals))]
        self.workers = [begin("worker", "--dispatcher", self.all, "--threads", 1) for _ in range(workers)]

    def begin(self, at):
        return begin("dispatcher", "--listen", self.addresses[at], "--journal", self.journals[at], "--events", self.events[at],
                     "--evict-after", 5, "--control", "127.0.0.1:0")

    def kill(self, at):
        self.processes[at].kill()
        self.processes[at].communicate()

    def has_taken(self, at):
        return "journal_taken" in self.events[at].read_text()

    def holds(self, at):
        with urllib.request.urlopen(f"http://{self.processes[at].control}/metrics", timeout=LONG) as answer:
            return "\nheadrace_journal_held 1\n" in answer.read().decode()

    def status(self, at):
        return run("status", "--control", self.processes[at].control).stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.processes, *self.workers]:
            process.kill()
            process.communicate()


@test
def another_dispatcher_takes_the_journal_when_the_first_is_gone():
    text = numbers("taken", 3000, 0.5)
    wanted = expected(text, 2)
    with Dispatchers() as d:
        several = [Consumer(d.all, text, name, "taken", 2, every=7) for name in "ab"]
        for consumer in several:
            got_some(consumer, 20)
        assert d.holds(0) and not d.holds(1)
        assert "\nholds its journal\n" in d.status(0) and "\ndoes not hold its journal: " in d.status(1)
        d.kill(0)
        wait_until(lambda: d.holds(1))
        assert d.has_taken(1)
        for consumer in several:
            consumer.end()
        check_union(several, wanted)
        d.processes[0] = d.begin(0)  # it waits now
        d.kill(1)
        wait_until(lambda: d.has_taken(0))
        several[0].begin()  # all is done
        several[0].end()
        check_union(several, wanted)


@test
def any_of_them_may_be_killed_at_any_moment():
    text = numbers("kills", 3000, 0.5)
    wanted = expected(text, 2)
    with Dispatchers(3) as d:
        several = [Consumer(d.all, text, name, "kills", 2, every=3) for name in "ab"]
        for consumer in several:
            got_some(consumer)
        until, kills = time.monotonic() + LONG, 0
        while any(consumer.process.poll() is None for consumer in several) and kills < 12:
            assert time.monotonic() < until, f"the run hangs after {kills} kills"
            time.sleep(rng.uniform(0, 0.8))
            what, kills = rng.choice("dddcw"), kills + 1
            if what == "d":
                at = rng.randrange(3)
                d.kill(at)
                d.processes[at] = d.begin(at)
            elif what == "w":
                at = rng.randrange(len(d.workers))
                d.workers[at].kill()
                d.workers[at].communicate()
                d.workers[at] = begin("worker", "--dispatcher", d.all, "--threads", 1)
            else:
                consumer = rng.choice(several)
                consumer.kill()
                consumer.begin()
        for consumer in several:
            consumer.end()
        check_union(several, wanted)


@test
def a_server_that_crashes_holds_its_runs_up_and_no_others():
    text, other = numbers("crash", 3000, 0.5), graph("crash-other.yaml", NUMBERS % (2000, 0.5))
    wanted = expected(text)
    with Dispatchers(2) as d:
        consumer = Consumer(d.all, text, "a", "crash", every=5)
        got_some(consumer, 20)
        server.kill()
        plain = start("run", other, "-q", "--digest", "--service", d.all)
        wait_until(lambda: "cannot reach the journal in PostgreSQL" in consumer.said())
        out, err = plain.communicate(timeout=LONG)
        assert plain.returncode == 0 and out == run("run", other, "-q", "--digest").stdout, err
        assert consumer.process.poll() is None
        server.start()
        consumer.end()
        check_union([consumer], wanted)


@test
def a_server_that_does_not_answer_holds_its_runs_up_and_no_others():
    text, other = numbers("frozen", 3000, 0.5), graph("frozen-other.yaml", NUMBERS % (2000, 0.5))
    wanted = expected(text)
    with Dispatchers(2) as d:
        consumer = Consumer(d.all, text, "a", "frozen", every=5)
        got_some(consumer, 20)
        server.freeze(True)
        plain = start("run", other, "-q", "--digest", "--service", d.all)
        wait_until(lambda: "does not answer" in consumer.said())
        out, err = plain.communicate(timeout=LONG)
        server.freeze(False)
        assert plain.returncode == 0 and out == run("run", other, "-q", "--digest").stdout, err
        consumer.end()
        check_union([consumer], wanted)


@test
def dispatchers_with_journals_of_their_own_are_refused():
    text = numbers("own", 3000, 0.5)
    with Dispatchers(journals=[temp / "own0", temp / "own1"]) as d:
        consumer = Consumer(d.all, text, "a", "own", every=5)
        got_some(consumer, 20)
        d.kill(0)
        said = consumer.end(1)
        assert "it is known to another journal: give dispatchers that share one" in said, said
        number = json.loads(consumer.state.read_text())["checkpoint"]
        aside = consumer.state.with_name(f"state.{number + 1}")
        aside.write_text("a commit that may count there")
        first = consumer.state.with_name("state.1")
        first.write_text("another one")
        consumer.begin()  # from its state
        said = consumer.end(2)
        assert "knows no checkpoint of this consumer: name a dispatcher with the journal of its commits" in said, said
        assert aside.exists() and first.exists()


@test
def an_address_that_is_none_or_out_of_reach_is_refused():
    for address, code, part in ((f"postgresql://me:secret@127.0.0.1:{free_port()}/x", 1, "cannot reach the journal in PostgreSQL"),
                                ("postgresql://[::1", 2, "the journal's address is none")):
        failed = run("dispatcher", "--listen", "127.0.0.1:0", "--journal", address, code=code)
        one_line(failed, part)
        assert "secret" not in failed.stderr, failed.stderr


server = tap_server()
main()
