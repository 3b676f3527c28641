"""A service with more workers than a run connects to."""
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(__file__))
from service_support import LONG, Service, ask, digest, killed_run, wait_until
from support import graph, main, run, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
rng = random.Random(seed)
WORKERS, TEAM, EPOCHS = 7, 2, 20
OPTIONS = ["--workers-per-run", TEAM, "--control", "127.0.0.1:0"]
numbers = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
  - batch.stack: {size: 10}
"""


def workers(service):
    return json.loads(ask(service, "/v1/workers")[1])["workers"]


def counter(service, name):
    return next(int(line.split()[1]) for line in ask(service, "/metrics")[1].splitlines() if line.startswith(name + " "))


def used(service):
    return sum(worker["positions_leased"] + worker["positions_finished"] > 0 for worker in workers(service))


@test
def a_run_uses_its_team_and_several_runs_use_all_workers():
    text = graph("numbers.yaml", numbers)
    seeds = range(WORKERS // TEAM + 1)
    wanted = [digest(text, "--epochs", EPOCHS, "--seed", seed) for seed in seeds]
    with Service(WORKERS, options=OPTIONS) as service:
        wait_until(lambda: len(workers(service)) == WORKERS)
        assert digest(text, "--epochs", EPOCHS, "--seed", 0, "--service", service.address) == wanted[0]
        assert used(service) == TEAM
        # They end when all are there, so that their teams are made beside each other.
        several = [start("run", text, "--epochs", 1000000, "-q", "--seed", seed, "--service", service.address)
                   for seed in seeds]
        try:
            wait_until(lambda: used(service) == WORKERS)
        finally:
            for process in several:
                process.kill()
                process.communicate()
        several = [start("run", text, "--epochs", EPOCHS, "--digest", "-q", "--seed", seed, "--service", service.address)
                   for seed in seeds]
        for process, right in zip(several, wanted):
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.strip() == right, err
        # A lease of a worker to which its run has no connection would wait for these.
        leases = counter(service, "headrace_leases_total")
        late = counter(service, "headrace_leases_hedged_total") + counter(service, "headrace_leases_expired_total")
        assert late * 100 <= leases, f"{late} of {leases} leases were given out again"


@test
def workers_may_join_and_leave_during_a_run():
    text, wanted = graph("numbers.yaml", numbers), temp / "wanted.txt"
    run("run", text, "--epochs", EPOCHS, "-q", "--batch-digests", wanted)
    total = 0
    for actions in (["worker"], ["worker", "dispatcher", "client", "all"]):
        with Service(5, options=["--workers-per-run", TEAM]) as service:
            got, kills = killed_run(rng, service, text, EPOCHS, actions)
            assert got == wanted.read_text(), "records were lost or repeated"
            total += kills
    print(f"# {total} kills", flush=True)


main()
