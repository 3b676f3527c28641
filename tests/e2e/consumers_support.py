"""Consumers of one run, as processes that are started again, for the tests of the service."""
import collections
import json
import os
import re
import subprocess

from service_support import LONG, wait_until
from support import graph, headrace, run, temp

NUMBERS = """pipeline:
  - source.range: {n: %d}
  - order.shuffle: {}
  - debug.sleep: {ms: %g}
  - batch.stack: {size: 5}
"""


def numbers(name, n=1500, ms=0.2):
    return graph(f"{name}.yaml", NUMBERS % (n, ms))


def expected(text, epochs=1):
    got = temp / "expected.txt"
    got.unlink(missing_ok=True)
    run("run", text, "--epochs", epochs, "-q", "--batch-digests", got)
    return got.read_text().splitlines()


class Consumer:
    """A consumer that is started again when it was killed, and the batches of its surviving history."""

    def __init__(self, address, text, name, job, epochs=1, every=0, env=None):
        self.name, self.folder = name, temp / f"{job}.{name}"
        self.folder.mkdir()
        self.state = self.folder / "state"
        self.words = ["run", text, "--epochs", epochs, "--service", address, "--job", job, "--consumer", name,
                      "--state", self.state, "--save-every", every]
        self.incarnations = 0
        self.begin(env=env)

    def begin(self, *more, env=None):
        self.incarnations += 1
        self.got = self.folder / f"got{self.incarnations}"
        self.log = open(self.folder / f"log{self.incarnations}", "w+")
        words = [headrace, *self.words, *more, "--batch-digests", self.got]
        self.process = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL, stderr=self.log, cwd=temp,
                                        env={**os.environ, **(env or {})})

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def end(self, code=0):
        self.process.communicate(timeout=LONG)
        assert self.process.returncode == code, f"{self.name}: {self.process.returncode}: {self.said()}"
        return self.said()

    def lines(self):
        """What each incarnation got after its own beginning replaces what an earlier one got there. What follows the last
        commit counts for nothing."""
        lines = []
        for number in range(1, self.incarnations + 1):
            said, got = (self.folder / f"log{number}").read_text(), self.folder / f"got{number}"
            after = re.search(r"resuming from \S+, after (\d+) batches", said)
            some = got.read_text().splitlines() if got.exists() else []
            if after or some:
                lines = lines[:int(after.group(1)) if after else 0] + some
        state = json.loads(self.state.read_text()) if self.state.exists() else {"batches": 0}
        return lines[:state["batches"]]


def got_some(consumer, count=1):
    wait_until(lambda: consumer.process.poll() is not None or (consumer.got.exists() and consumer.got.read_text().count("\n") >= count))


def check_union(consumers, wanted):
    got = collections.Counter(line for consumer in consumers for line in consumer.lines())
    wanted = collections.Counter(wanted)
    assert got == wanted, f"{sum((wanted - got).values())} batches are lost, {sum((got - wanted).values())} are repeated"
