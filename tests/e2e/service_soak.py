"""Kills a service's processes at random and compares what its run got: `make soak-service KILLS=1000 SEED=`.

    python3 tests/e2e/service_soak.py HEADRACE SOURCE [--kills N] [--seed S]

A trial is one run of a random graph by 2 to 8 workers, on a network of namespaces that loses and delays packets. Meanwhile
the dispatcher, workers and the client are killed, some or all at a time, stopped for a while, and cut off from each other.
A second run of the same graph, whose client is left alone, shares the workers.
Batches after the last state of a killed client are outside the surviving history. All other ones must be those of an
undisturbed run, each once, in order unless the run is unordered, and so must be the lines of its ledger.

A trial depends on the seed, its number and the clock: the same seed draws the same trials, the moments of the kills differ.
"""
import argparse
import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(__file__))
from lossy_network import Network, is_possible
from service_support import free_port, keep, token_file, wait_until
from support import graph, headrace, holder, photos, run, temp
from tls_support import own, trusted

SILENT = 90  # seconds without a batch, after all is well again: the run hangs
KILLS_OF_TRIAL = 60
DISPATCHER, CLIENT = 0, 1  # hosts; workers follow
DAMAGED = 3  # photos


class Failure(Exception):
    """A trial whose batches are not those of an undisturbed run."""


# ---- graphs ----


def images(folder):
    return f"""pipeline:
  - source.files: {{path: {folder}, labels: folder}}
  - order.shuffle: {{}}
  - image.decode: {{}}
  - image.random_resized_crop: {{size: 48}}
  - image.gaussian_blur: {{size: 9, sigma: [1.0, 2.0]}}
"""


def damaged():
    folder = temp / "damaged"
    if not folder.exists():
        shutil.copytree(photos(), folder)
        for victim in sorted(folder.rglob("*.jpg"))[4:4 + 9 * DAMAGED:9]:
            victim.write_bytes(victim.read_bytes()[:100])
    return folder


NUMBERS = """pipeline:
  - source.range: {n: 4000}
  - order.shuffle: {}
"""
LARGE = """pipeline:
  - source.range: {n: 2048, field: label}
  - tensor.one_hot: {classes: 2100}
  - batch.stack: {size: 128}
"""
STACK = "  - batch.stack: {size: 4}\n"
FEWER = '  - record.filter: {expr: "label < 3"}\n'
LEDGER = ["--errors", "skip", "--errors-max", 100000]


def shapes():
    """Name, text of the graph, epochs, more options of the run."""
    return [("batches", images(photos()) + STACK, 80, []),
            ("small batches", NUMBERS + "  - batch.stack: {size: 10}\n", 8, []),
            ("large batches", LARGE, 40, []),
            ("filtered", images(photos()) + FEWER + STACK, 80, []),
            ("ledger", images(damaged()) + FEWER + STACK, 80, LEDGER)]


def expected(text, epochs, more):
    """The lines of digests and of the ledger of a run without a service."""
    got, ledger = (temp / f"{text.stem}{epochs}.{end}" for end in ("wanted", "ledger"))
    if not got.exists():
        run("run", text, "--epochs", epochs, "-q", "--batch-digests", got, *more, "--bad-records", ledger)
    return got.read_text().splitlines(), ledger.read_text().splitlines()


# ---- processes ----


class Role:
    """A process that is started again whenever it was killed."""

    def __init__(self, name, host, words, trial):
        self.name, self.host, self.words, self.trial = name, host, words, trial
        self.process, self.due, self.stopped = None, 0.0, False
        self.log = trial.folder / f"{name}.log"
        self.begin()

    def begin(self):
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([*self.trial.command(self.host), headrace, *map(str, self.words)], stdout=log,
                                            stderr=log, stdin=subprocess.DEVNULL, cwd=temp)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self, pause):
        """False if there is nothing to kill."""
        if not self.is_alive():
            return False
        self.process.kill()
        self.process.wait()
        self.process, self.due, self.stopped = None, time.monotonic() + pause, False
        return True

    def stop(self, seconds):
        if self.is_alive():
            self.process.send_signal(signal.SIGSTOP)
            self.stopped, self.due = True, time.monotonic() + seconds

    def revive(self, now=None):
        if now is not None and now < self.due:
            return
        if self.stopped and self.is_alive():
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False
        if self.process is None:
            self.begin()


class Trial:
    def __init__(self, seed, number, network_is_possible):
        self.rng = rng = random.Random(f"{seed} {number}")
        self.folder = temp / f"trial{number}"
        self.folder.mkdir()
        self.counts = collections.Counter()
        self.shape, text, self.epochs, self.more = rng.choice(shapes())
        self.text = graph(f"{self.shape.replace(' ', '_')}.yaml", text)
        self.ordered = bool(self.more) or rng.random() < 0.8
        self.epochs *= 1 if self.ordered else 6  # without states they are fast
        self.workers = rng.randrange(2, 9)
        self.every = rng.choice([0.02, 0.1, 0.3])  # seconds between what happens
        self.team = rng.choice([64, self.workers - 1])  # workers of a run
        self.tls = rng.random() < 0.3 and shutil.which("openssl") is not None
        self.compress = rng.choice(["auto", "zstd", "none"])
        self.near = rng.choice([0, 0, 1, self.workers])  # workers on the client's host, for shared memory
        self.network = Network(2 + self.workers, f"{seed} {number}") if network_is_possible else None
        if self.network:
            self.network.loss = rng.choice([0, 0.001, 0.01, 0.03])
            self.network.delay = rng.choice([0, 0.001, 0.01, 0.04])
            self.network.jitter = rng.choice([0, self.network.delay])
        self.state, self.got, self.ledger, self.others = (self.folder / name for name in ("state", "got", "ledger", "others"))
        self.roles, self.bystander, self.heal_at = [], None, 0.0
        self.seen, self.seen_at = 0, time.monotonic()

    def __str__(self):
        n = self.network
        net = f"loss {n.loss:.1%}, delay {n.delay * 1e3:.0f}+{n.jitter * 1e3:.0f} ms" if n else "loopback"
        how = [self.shape, "ordered" if self.ordered else "unordered", "TLS" if self.tls else "no TLS", self.compress]
        return (f"{', '.join(how)}, {self.workers} workers ({self.near} near, {self.team} for a run), {net}, "
                f"something each {self.every} s")

    def command(self, host):
        return self.network.command(host) if self.network else []

    def address(self, host):
        return self.network.address(host) if self.network else "127.0.0.1"

    def begin(self):
        token = ["--token-file", token_file("token", "t" * 32)]
        listens = own("soak", names="DNS:soak") if self.tls else []
        trusts = [*trusted(), "--tls-name", "soak"] if self.tls else []
        at = f"{self.address(DISPATCHER)}:{7070 if self.network else free_port()}"
        self.roles.append(Role("dispatcher", DISPATCHER, ["dispatcher", "--listen", at, "--workers-per-run", self.team, *token, *listens], self))
        for i in range(self.workers):
            host = CLIENT if i < self.near else 2 + i
            self.roles.append(Role(f"worker{i}", host, ["worker", "--dispatcher", at, "--threads", 1, "--listen",
                                                        f"{self.address(host)}:0", "--compress", self.compress, *token,
                                                        *listens, *trusts], self))
        same = ["run", self.text, "--epochs", self.epochs, "-q", "--service", at, *token, *trusts, *self.more]
        self.bystander = Role("bystander", CLIENT, [*same, "--batch-digests", self.others], self)
        words = [*same, "--batch-digests", self.got, "--bad-records", self.ledger]
        words += ["--state", self.state, "--save-every", self.rng.choice([1, 1, 3, 10])] if self.ordered else ["--ordered", "false"]
        self.client = Role("client", CLIENT, words, self)
        self.roles.append(self.client)

    # ---- what happens ----

    def kill(self, role):
        if role is self.client and not self.ordered:  # it has no state to resume from
            return
        if not role.kill(self.rng.choice([0, 0, 0.05, 0.3])):
            return
        self.counts["kills"] += 1
        self.counts[f"kills of {role.name.rstrip('0123456789')}s"] += 1
        if role is self.client:
            keep(self.state, self.got)

    def disturb(self):
        what = self.rng.choice(["worker"] * 4 + ["client"] * 2 + ["dispatcher"] * 2 + ["some", "all", "stop", "stop all", "cut", "cut off"])
        if what == "all":
            self.counts["kills of all at once"] += 1
        if what in ("some", "all"):
            for role in self.rng.sample(self.roles, len(self.roles) if what == "all" else self.rng.randrange(2, len(self.roles))):
                self.kill(role)
        elif what == "stop":
            self.counts["stops"] += 1
            self.rng.choice(self.roles).stop(self.rng.random() * 3)
        elif what == "stop all":  # as a machine that sleeps: time jumps
            self.counts["stops of all at once"] += 1
            seconds = self.rng.random() * 3
            for role in self.roles:
                role.stop(seconds)
        elif what.startswith("cut") and self.network:
            self.counts["partitions"] += 1
            hosts = self.rng.sample(range(2 + self.workers), 2)
            self.network.cut(*hosts) if what == "cut" else self.network.cut_off(hosts[0])
            self.heal_at = time.monotonic() + self.rng.choice([0.1, 1, 1, 4, 4, 12])  # connections last 10 s
        elif not what.startswith("cut"):
            self.kill(self.rng.choice([role for role in self.roles if role.name.startswith(what)]))

    def settle(self):
        """Restarts and heals what is due."""
        now = time.monotonic()
        if self.network and now >= self.heal_at:
            self.network.heal()
        for role in self.roles:
            role.revive(now)

    def check_progress(self):
        lines = self.got.read_text().count("\n") if self.got.exists() else 0
        if lines != self.seen:
            self.seen, self.seen_at = lines, time.monotonic()
        if time.monotonic() - self.seen_at > SILENT:
            raise Failure(f"the run hangs after {lines} batches")

    def is_over(self):
        process = self.client.process
        if process is None or process.poll() is None:
            return False
        if process.returncode == 0:
            return True
        why = self.client.log.read_text().splitlines()[-1:]
        # What a run that begins while the dispatcher is away or does not answer may say after 10 s; and
        # one whose predecessor's connection is not known to be lost.
        if why and any(part in why[0] for part in ("cannot connect", "does not answer", "held by a client")):
            self.counts["starts that found no dispatcher"] += 1
            keep(self.state, self.got)
            self.client.process = None
            return False
        raise Failure(f"the client ends with {process.returncode}: {why}")

    def check_others(self):
        if self.bystander.process.poll():
            raise Failure(f"the other run ends with {self.bystander.process.returncode}: {self.bystander.log.read_text()}")
        for role in self.roles[:-1]:
            if role.process is not None and role.process.poll() is not None:
                raise Failure(f"{role.name} ends with {role.process.returncode}: {role.log.read_text()[-500:]}")

    def play(self, kills):
        self.begin()
        wait_until(lambda: self.others.exists() and self.others.stat().st_size > 0)  # a run must be accepted within 10 s
        next_at = time.monotonic()
        while not self.is_over():
            self.settle()
            self.check_others()
            if self.counts["kills"] < kills and time.monotonic() >= next_at:
                self.disturb()
                next_at = time.monotonic() + self.rng.expovariate(1 / self.every)
                self.seen_at = time.monotonic()
            self.check_progress()
            time.sleep(0.005)
        self.finish_other()
        self.compare()

    def finish_other(self):
        """Without further trouble."""
        for role in self.roles:
            role.revive()
        if self.network:
            self.network.heal()
        try:
            self.bystander.process.wait(SILENT)
        except subprocess.TimeoutExpired:
            raise Failure(f"the other run hangs after {len(self.others.read_text().splitlines())} batches") from None
        self.check_others()

    def compare(self):
        wanted, ledger = expected(self.text, self.epochs, self.more)
        if self.others.read_text().splitlines() != wanted:
            raise Failure("the other run got other batches, or in another order")
        got = self.got.read_text().splitlines()
        differ = collections.Counter(wanted)
        differ.subtract(got)
        lost, more = (sum(n for n in (sign * n for n in differ.values()) if n > 0) for sign in (1, -1))
        if lost or more or (self.ordered and got != wanted):
            raise Failure(f"of {len(wanted)} batches {lost} are lost, {more} are repeated or others; "
                          f"{'in order' if got == wanted else 'not in order'}")
        lines = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        if set(lines) != set(ledger):
            raise Failure(f"the ledger lists {len(set(lines))} records, not {len(ledger)}")

    def close(self):
        for role in (*self.roles, self.bystander):
            if role is not None:
                role.kill(0)
        if self.network:
            self.network.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headrace")
    parser.add_argument("source")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--trial", type=int, help="only this trial of the seed")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"# seed {options.seed}", flush=True)
    why = is_possible()
    if why:
        print(f"# on loopback, without loss, delay and partitions: {why}", flush=True)
    total, failed, number = collections.Counter(), 0, options.trial or 0
    while total["kills"] < options.kills:
        trial = Trial(options.seed, number, not why)
        begin = time.monotonic()
        try:
            trial.play(min(KILLS_OF_TRIAL, options.kills - total["kills"]))
            verdict = "ok"
        except (Failure, AssertionError) as error:
            failed += 1
            verdict = f"not ok: {error}" if isinstance(error, Failure) else traceback.format_exc()
        finally:
            trial.close()
        total += trial.counts
        print(f"trial {number}: {verdict}; {trial}; {trial.counts['kills']} kills, {trial.seen} batches, "
              f"{time.monotonic() - begin:.0f} s", flush=True)
        if verdict == "ok":
            shutil.rmtree(trial.folder)
        else:
            kept = f"/tmp/headrace-soak-{options.seed}-{number}"
            shutil.copytree(trial.folder, kept, dirs_exist_ok=True)
            print(f"# its logs are in {kept}; --seed {options.seed} --trial {number} draws it again", flush=True)
        number += 1
        if options.trial is not None:
            break
    print(f"# {', '.join(f'{n} {what}' for what, n in sorted(total.items()))}", flush=True)
    done = number - (options.trial or 0)
    print(f"{done - failed} passed, {failed} failed", flush=True)
    holder.cleanup()
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
