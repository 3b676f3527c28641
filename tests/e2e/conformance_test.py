"""The list of behaviours of tf.data service (docs/service-tests.md) that no other test shows, with real processes."""
import ast
import bisect
import collections
import os
import random
import shutil
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from service_support import LONG, Service, keep, wait_until
from support import graph, main, one_line, run, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
rng = random.Random(seed)

TEN = "pipeline:\n  - source.range: {n: 10}\n"
NUMBERS = """pipeline:
  - source.range: {n: 1000}
  - order.shuffle: {}
  - batch.stack: {size: 5}
"""


def numbers(folder):
    """The int64 that a run wrote with --output."""
    data = next(folder.glob("*.npy")).read_bytes()
    end = 10 + struct.unpack_from("<H", data, 8)[0]
    assert ast.literal_eval(data[10:end].decode())["descr"] == "<i8"
    return [value for value, in struct.iter_unpack("<q", data[end:])]


def delivered(name, *words):
    folder = temp / name
    shutil.rmtree(folder, ignore_errors=True)
    run("run", *words, "-q", "--output", folder)
    return numbers(folder)


@test
def each_number_comes_once_from_any_number_of_workers():
    text = graph("ten.yaml", TEN)
    for workers in (1, 2, 4):
        with Service(workers) as service:
            assert delivered("ten", text, "--service", service.address) == list(range(10))
            got = delivered("ten", text, "--service", service.address, "--ordered", "false")
            assert sorted(got) == list(range(10)), got


@test
def epochs_are_passes_over_all_of_it():
    text = graph("ten.yaml", TEN)
    with Service(2) as service:
        assert delivered("passes", text, "--epochs", 3, "--service", service.address) == 3 * list(range(10))


@test
def clients_that_divide_an_epoch_get_it_once_between_them():
    text, world = graph("divided.yaml", NUMBERS), rng.randrange(2, 5)
    with Service(rng.randrange(1, 4)) as service:
        folders = [temp / f"rank{rank}" for rank in range(world)]
        several = [start("run", text, "-q", "--rank", rank, "--world", world, "--output", folders[rank], "--service", service.address)
                   for rank in range(world)]
        for process in several:
            _, err = process.communicate(timeout=LONG)
            assert process.returncode == 0, err
        shares = [numbers(folder) for folder in folders]
        assert sorted(sum(shares, [])) == list(range(1000))
        service.kill_worker(0)  # a share does not depend on who makes it
        again = delivered("again", text, "--rank", 1, "--world", world, "--service", service.address)
        assert again == shares[1]


BOUNDARIES, SIZE = [300, 500, 900], 4
ROUNDS = f"""pipeline:
  - source.range: {{n: 1000}}
  - order.shuffle: {{}}
  - debug.sleep: {{ms: 2}}
  - batch.bucket: {{by: value, boundaries: {BOUNDARIES}, size: {SIZE}, drop_last: true, coordinated: true}}
"""


@test
def coordinated_clients_get_the_same_bucket_in_each_step():
    """So they do when workers come and go."""
    text, world = graph("rounds.yaml", ROUNDS), rng.randrange(2, 5)
    with Service(2) as service:
        folders = [temp / f"round{rank}" for rank in range(world)]
        several = [start("run", text, "-q", "--rank", rank, "--world", world, "--epochs", 2, "--output", folders[rank], "--job", "one",
                         "--service", service.address) for rank in range(world)]
        for _ in range(4):
            time.sleep(rng.uniform(0.1, 1))
            if rng.random() < 0.5:
                service.workers.append(service.begin_worker())
            else:
                service.kill_worker(rng.randrange(2))
        for process in several:
            _, err = process.communicate(timeout=LONG)
            assert process.returncode == 0, err
    steps = [list(zip(*[iter(numbers(folder))] * SIZE)) for folder in folders]
    assert len({len(batches) for batches in steps}) == 1 and steps[0]
    for step in zip(*steps):
        assert len({bisect.bisect_right(BOUNDARIES, value) for batch in step for value in batch}) == 1, step
    for rank, batches in enumerate(steps):
        alone = delivered("alone", text, "--rank", rank, "--world", world, "--epochs", 2)
        assert alone == [value for batch in batches for value in batch], "records were lost or repeated"
    given = collections.Counter(value for batches in steps for batch in batches for value in batch)
    assert max(given.values()) == 2, "a record came twice in an epoch"


@test
def a_name_names_one_run_and_other_options_make_another_run():
    text = graph("divided.yaml", NUMBERS)
    one_line(run("run", text, "-q", "--service", "127.0.0.1:1", "--job", "", code=None), "1 to 128 bytes")
    with Service(1) as service:
        words = ["run", text, "-q", "--service", service.address, "--job", "mine"]
        got = temp / "mine.txt"
        first = start(*words, "--epochs", 0, "--batch-digests", got)
        wait_until(lambda: got.exists() and got.stat().st_size > 0)
        assert "held by a client" in run(*words, "--epochs", 0, code=1).stderr
        assert run(*words, "--seed", 5, "--digest").stdout == run("run", text, "-q", "--seed", 5, "--digest").stdout
        assert first.poll() is None
        first.kill()
        first.communicate()


@test
def a_run_that_goes_back_to_an_older_state_gets_from_there_on():
    """The dispatcher, the workers and the name stay; they have seen later positions."""
    text, state, older, got = graph("divided.yaml", NUMBERS), *(temp / name for name in ("back.state", "older.state", "back.txt"))
    words = ["run", text, "-q", "--epochs", 4, "--state", state, "--batch-digests", got]
    wanted = temp / "back.wanted"
    run("run", text, "-q", "--epochs", 4, "--batch-digests", wanted)
    with Service(2) as service:
        remote = [*words, "--service", service.address, "--job", "back"]
        run(*remote, "--limit", rng.randrange(1, 300) * 5)
        shutil.copy(state, older)
        for _ in range(3):
            run(*remote, "--limit", rng.randrange(400, 700) * 5)
            shutil.copy(older, state)
            keep(state, got)
        run(*remote)
        assert got.read_text() == wanted.read_text()


@test
def a_run_that_loses_its_service_says_what_it_waits_for_and_can_be_stopped():
    text, state, got = graph("divided.yaml", NUMBERS), temp / "lost.state", temp / "lost.txt"
    with Service(1) as service:
        process = start("run", text, "--epochs", 0, "--state", state, "--batch-digests", got, "--service", service.address)
        wait_until(lambda: got.exists() and got.stat().st_size > 0)
        for each in (service.dispatcher, *service.workers):
            each.kill()
            each.communicate()
        said = ""
        while f"the dispatcher at {service.address}" not in said:
            said = process.stderr.readline()
            assert said, "it ends"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONG)
        assert process.returncode != 0 and state.exists()
    wanted, limit = temp / "lost.wanted", 5 * (got.read_text().count("\n") + 50)
    run("run", text, "-q", "--epochs", 0, "--limit", limit, "--state", state, "--batch-digests", got)  # it goes on without
    run("run", text, "-q", "--epochs", 0, "--limit", limit, "--batch-digests", wanted)
    assert got.read_text() == wanted.read_text()


main()
