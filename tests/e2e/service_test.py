"""The service with real processes: the same bytes as without it, also when processes are killed."""
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from service_support import LONG, Service, SlowLink, begin, digest, free_port, killed_run, token_file, wait_until
from support import Skip, at_place, example, graph, main, one_line, photos, run, run_json, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
EPOCHS = 25  # of runs that are killed


numbers = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
  - batch.stack: {size: 10}
"""


def texts():
    path = temp / "texts.txt"
    if not path.exists():
        path.write_text("".join(f"line {i} of some {'words ' * (i % 7)}\n" for i in range(500)))
    return graph("texts.yaml", f"""pipeline:
  - source.lines: {{path: {path}}}
  - order.shuffle: {{}}
  - text.split: {{to: words}}
  - batch.stack: {{size: 7}}
""")


def damaged_rows():
    path = temp / "rows.jsonl"
    path.write_text('{"label": 1}\n{"label": 2}\n{"label":\n{"label": 2}\n')
    return graph("rows.yaml", f"""pipeline:
  - source.jsonl: {{path: {path}}}
  - order.sample: {{balance: label}}
  - batch.stack: {{size: 2}}
""")


@test
def graphs_give_the_same_bytes_with_one_to_four_workers():
    runs = [[example("noop.yaml"), "-p", "n=20000"],
            [example("vision_rrc.yaml"), "-p", f"data={photos()}", "-p", "batch=6", "--epochs", 2, "--seed", 4],
            [example("vision_eval.yaml"), "-p", f"data={photos()}", "-p", "batch=16"],
            [texts(), "--epochs", 3, "--seed", 9],
            [damaged_rows(), "--errors", "skip"],
            [graph("numbers.yaml", numbers), "--epochs", 2, "--limit", 4321, "--rank", 1, "--world", 3, "--even", "repeat"],
            [graph("single.yaml", numbers.replace("  - batch.stack: {size: 10}\n", ""))]]
    wanted = [digest(*words) for words in runs]
    assert len(set(wanted)) == len(runs)
    for workers in range(1, 5):
        with Service(workers) as service:
            for words, right in zip(runs, wanted):
                assert digest(*words, "--service", service.address) == right, words


@test
def several_runs_share_the_workers():
    text = texts()
    wanted = digest(text, "--epochs", 20)
    with Service(2) as service:
        several = [start("run", text, "--epochs", 20, "--digest", "-q", "--service", service.address) for _ in range(4)]
        for process in several:
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.strip() == wanted, err


def count_shared(service):
    return sum(worker["positions_shared"] for worker in run_json("workers", "--control", service.dispatcher.control)["workers"])


@test
def equal_runs_share_what_workers_make():
    text = graph("shared.yaml", """pipeline:
  - source.range: {n: 1000}
  - order.shuffle: {}
  - debug.spin: {us: 500}
  - batch.stack: {size: 5}
""")
    for keep in (None, 0):
        options = [] if keep is None else ["--keep", keep]
        with Service(2, options=["--control", "127.0.0.1:0"], worker_options=options) as service:
            words = ["run", text, "-q", "--service", service.address]
            # Runs of several lengths; one of another seed has nothing in common with them.
            others = [start(*words, "--epochs", epochs) for epochs in (10**6, 10**7)] + [start(*words, "--epochs", 10**6, "--seed", 1)]
            if keep is None:
                wait_until(lambda: count_shared(service) > 500)
            else:
                assert digest(text, "--service", service.address) == digest(text)
                assert count_shared(service) == 0
            for process in others:
                assert process.poll() is None, process.stderr.read()
                process.kill()
                process.communicate()


@test
def a_run_that_takes_all_it_can_get_leaves_others_their_share():
    endless = graph("endless.yaml", numbers.replace("n: 3000", "n: 3001"))
    wanted = digest(graph("numbers.yaml", numbers), "--epochs", 20)
    with Service(1, options=["--control", "127.0.0.1:0"]) as service:
        words = ["run", endless, "--epochs", 10**8, "-q", "--service", service.address]
        others = [start(*words) for _ in range(2)]

        def cursors():
            return [job["cursor"] for job in run_json("jobs", "--control", service.dispatcher.control)["jobs"]]

        wait_until(lambda: len(cursors()) == 2 and min(cursors()) > 0)
        for _ in range(3):
            assert digest(graph("numbers.yaml", numbers), "--epochs", 20, "--service", service.address) == wanted
        for process in others:
            assert process.poll() is None, process.stderr.read()
            process.kill()
            process.communicate()


@test
def runs_share_a_worker_by_their_weights():
    """Each of them could use the whole worker, and gets a share of its core by its weight."""
    spin = "pipeline:\n  - source.range: {n: %d}\n  - debug.spin: {us: 500}\n  - batch.stack: {size: 8}\n"
    weights = {"heavy": 4, "light": 1}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # what the worker inherits: it has one core for both
    with Service(1, options=["--control", "127.0.0.1:0"]) as service:
        os.sched_setaffinity(0, cores)

        def jobs(what):
            return {job["name"]: job[what] for job in run_json("jobs", "--control", service.dispatcher.control)["jobs"]}

        def cursors():
            return jobs("cursor")

        runs = []
        for at, (name, weight) in enumerate(weights.items()):
            words = ["--epochs", 10**6, "-q", "--service", service.address, "--job", name, "--weight", weight]
            runs.append(start("run", graph(f"{name}.yaml", spin % (4000 + at)), *words))
        wait_until(lambda: len(cursors()) == 2 and min(cursors().values()) > 20)
        assert jobs("weight") == weights
        before, begun = cursors(), time.monotonic()

        def enough():
            # Other programs on this core count as runs of the heaviest weight: beside many, batches of the light run are rare.
            gained = cursors()["light"] - before["light"]
            return gained > 400 or (gained > 60 and time.monotonic() > begun + LONG / 2)

        wait_until(enough)
        after = cursors()
        ratio = (after["heavy"] - before["heavy"]) / (after["light"] - before["light"])
        print(f"# weights 4 and 1: {ratio:.2f} times as many batches")
        assert 1.3 < ratio < 12, (before, after)  # without weights: 1
        for process in runs:
            assert process.poll() is None, process.stderr.read()
            process.kill()
            process.communicate()
    run("run", graph("numbers.yaml", numbers), "-q", "--weight", 4, code=2)
    run("run", graph("numbers.yaml", numbers), "-q", "--service", "127.0.0.1:1", "--weight", 101, code=2)


@test
def a_run_of_slow_batches_does_not_hold_up_a_fast_one():
    """A connection takes a few batches at a time, so a worker that waits for each slow batch sends only those few in between."""
    slow = graph("slow.yaml", f"""pipeline:
  - source.files: {{path: {photos()}, labels: folder}}
  - image.decode: {{}}
  - image.resize: {{size: [1500, 1500]}}
  - image.gaussian_blur: {{size: 13}}
  - image.resize: {{size: [8, 8]}}
  - batch.stack: {{size: 40}}
""")
    rows = graph("rows.yaml", """pipeline:
  - source.range: {n: 4096, field: label}
  - tensor.one_hot: {classes: 5000}
  - batch.stack: {size: 128}
""")
    batches = 20 * 32
    wanted = digest(rows, "--epochs", 20)
    with Service(1, options=["--control", "127.0.0.1:0"]) as service:
        def made():
            jobs = run_json("jobs", "--control", service.dispatcher.control)["jobs"]
            return sum(job["cursor"] for job in jobs if job["name"] == "slow")

        process = start("run", slow, "--epochs", 10**7, "-q", "--service", service.address, "--job", "slow")
        wait_until(lambda: made() > 0)
        before = made()
        assert digest(rows, "--epochs", 20, "--service", service.address) == wanted
        assert (made() - before) * 20 < batches, (before, made())
        process.kill()
        process.communicate()


def http_server():
    """A server of the folder `temp`, and its address."""
    script = os.path.join(os.path.dirname(__file__), "../support/http_server.py")
    server = subprocess.Popen([sys.executable, script, temp], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return server, f"http://127.0.0.1:{server.stdout.readline().strip()}"


@test
def a_graph_that_takes_long_to_open_holds_up_nobody():
    """The worker reaches the data of some runs through a proxy that accepts connections and never answers."""
    server, url = http_server()
    (temp / "far.txt").write_text("a\nb\nc\n")
    texts = [graph(f"far {i}.yaml", f"pipeline:\n  - source.lines: {{path: {url}/far.txt}}\n  - batch.stack: {{size: {i}}}\n")
             for i in range(1, 4)]
    wanted = digest(graph("numbers.yaml", numbers))
    with server, socket.create_server(("127.0.0.1", 0)) as proxy:
        env = {**os.environ, "http_proxy": "http://127.0.0.1:%d" % proxy.getsockname()[1], "no_proxy": ""}
        with Service(1, worker_env=env) as service:
            runs = [start("run", text, "-q", "--service", service.address) for text in texts]
            proxy.settimeout(LONG)
            asked = [proxy.accept() for _ in runs]  # the worker is opening all of them
            assert digest(graph("numbers.yaml", numbers), "--service", service.address) == wanted
            assert [process.poll() for process in runs] == [None] * len(asked)
            for process in runs:
                process.kill()
                process.communicate()
        server.stdin.close()


@test
def clients_that_go_away_take_their_runs_along():
    """Though these wait for a server that accepts connections and never answers. A worker runs eight things at once."""
    server, url = http_server()
    (temp / "far.bin").write_bytes(bytes(1000))
    hung = [graph(f"hung {i}.yaml", f"pipeline:\n  - source.files: {{path: \"{url}\", labels: none, files: [far.bin]}}\n"
                  f"  - batch.stack: {{size: {i}, ragged: true}}\n") for i in range(1, 9)]
    wanted = digest(graph("numbers.yaml", numbers))
    with server, socket.create_server(("127.0.0.1", 0)) as proxy:
        env = {**os.environ, "http_proxy": "http://127.0.0.1:%d" % proxy.getsockname()[1], "no_proxy": ""}
        with Service(1, worker_env=env) as service:
            proxy.settimeout(LONG)
            runs, asked = [], []
            for text in hung:
                runs.append(start("run", text, "-q", "--service", service.address))
                asked.append(proxy.accept())  # it waits
            for gone in (runs[1:], runs[:1]):  # and go on to wait beside one that stays, first
                for process in gone:
                    process.kill()
                    process.communicate()
                assert digest(graph("numbers.yaml", numbers), "--service", service.address) == wanted
            assert len(asked) == len(runs)
        server.stdin.close()


@test
def a_worker_stops_while_it_opens_a_graph_and_while_a_read_hangs():
    """The server accepts connections and never answers."""
    server, url = http_server()
    (temp / "far.txt").write_text("a\nb\nc\n")
    for name, source in [("opens", f"source.lines: {{path: {url}/far.txt}}"),
                         ("reads", f"source.files: {{path: \"{url}\", labels: none, files: [far.txt]}}")]:
        text = graph(f"{name}.yaml", f"pipeline:\n  - {source}\n  - batch.stack: {{size: 1, ragged: true}}\n")
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            env = {**os.environ, "http_proxy": "http://127.0.0.1:%d" % proxy.getsockname()[1], "no_proxy": ""}
            with Service(1, worker_env=env) as service:
                process = start("run", text, "-q", "--service", service.address)
                proxy.settimeout(LONG)
                asked = proxy.accept()
                worker = service.workers[0]
                worker.send_signal(signal.SIGINT)
                _, errors = worker.communicate(timeout=LONG)
                assert worker.returncode == 0, (name, worker.returncode, errors)
                process.kill()
                process.communicate()
                asked[0].close()
    server.stdin.close()
    server.wait()


@test
def what_a_service_cannot_do_is_refused_at_once():
    one_line(run("run", graph("numbers.yaml", numbers), "--service", "somewhere", code=None), "HOST:PORT")
    one_line(run("run", graph("numbers.yaml", numbers), "--job", "a", code=2), "--service")
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", "--listen", "0.0.0.0:0", "--insecure", code=None), "which address clients reach it")


@test
def a_worker_without_the_data_says_so():
    path = temp / "moving.txt"
    path.write_text("a\nb\nc\n")
    text = graph("moving.yaml", f"pipeline:\n  - source.lines: {{path: {path}}}\n  - batch.stack: {{size: 2}}\n")
    with Service(1) as service:
        process = start("run", text, "-q", "--epochs", 1000000, "--service", service.address)
        time.sleep(1)
        service.workers[0].kill()
        service.workers[0].communicate()
        path.write_text("a\nb\nc\nd\n")  # the next worker sees other data
        service.workers[0] = service.begin_worker()
        _, err = process.communicate(timeout=LONG)
        assert process.returncode == 1 and "cannot run the graph" in err and "fingerprint" in err, err


one_hot = """pipeline:
  - source.range: {n: 4096, field: label}
  - tensor.one_hot: {classes: 5000}
  - batch.stack: {size: 128}
"""


# Records of 200 kB travel by themselves: the batches are made by the client.
middling = """pipeline:
  - source.range: {n: 900, field: label}
  - order.shuffle: {}
  - tensor.one_hot: {classes: 50000}
  - record.filter: {expr: "label.length > 0"}
  - batch.stack: {size: 9}
"""


def shared_files(process):
    """Segments of shared memory that a process has open or mapped."""
    folder, count = f"/proc/{process.pid}/fd", 0
    for name in os.listdir(folder):
        try:
            count += "headrace-batch" in os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            pass
    with open(f"/proc/{process.pid}/maps") as maps:
        return count + sum("headrace-batch" in line for line in maps)


@test
def shared_memory_and_tcp_give_the_same_bytes():
    texts = [graph("one_hot.yaml", one_hot), graph("middling.yaml", middling)]
    wanted = [digest(text, "--epochs", 4) for text in texts]
    with Service(2) as service:
        assert [digest(text, "--epochs", 4, "--service", service.address) for text in texts] == wanted
        service.workers[0].kill()
        service.workers[0].communicate()
        service.workers[0] = begin("worker", "--dispatcher", service.address, "--tcp-only")
        assert [digest(text, "--epochs", 4, "--service", service.address) for text in texts] == wanted


def need_codecs():
    found = run("doctor").stdout
    if not all(re.search(rf"^ *{name} +[0-9]", found, re.M) for name in ("libzstd", "liblz4")):
        raise Skip("libzstd or liblz4 is not here")


@test
def compressed_frames_give_the_same_bytes():
    need_codecs()
    runs = [[texts(), "--epochs", 3], [graph("one_hot.yaml", one_hot)], [graph("numbers.yaml", numbers)],
            [example("vision_rrc.yaml"), "-p", f"data={photos()}", "-p", "batch=6"]]
    wanted = [digest(*words) for words in runs]
    for how in ("zstd", "lz4", "none", "auto"):
        options = ["--tcp-only", "--compress", how]
        with Service(2, options=["--control", "127.0.0.1:0"], worker_options=options) as service:
            for words, right in zip(runs, wanted):
                assert digest(*words, "--service", service.address) == right, (how, words)
            if how != "auto":  # which depends on the load of the machine
                check_traffic(service, how != "none")


def check_traffic(service, compressed):
    """What the workers say that they have sent."""
    def sums():
        workers = run_json("workers", "--control", service.dispatcher.control)["workers"]
        return [sum(worker[name] for worker in workers) for name in ("bytes_made", "bytes_sent")]

    wait_until(lambda: sums()[0] > 0)
    made, sent = sums()
    assert sent < made / 2 if compressed else sent == made, (made, sent)


@test
def what_is_compressed_is_what_both_sides_allow():
    need_codecs()
    text = graph("one_hot.yaml", one_hot)
    events = temp / "compression.jsonl"
    for worker, client, what in (("auto", "zstd", "zstd"), ("auto", "lz4", "lz4"), ("lz4", "auto", "lz4"), ("zstd", "lz4", "none"),
                                 ("none", "zstd", "none"), ("zstd", "none", "none")):
        control = ["--control", "127.0.0.1:0", "--events", events]
        with Service(1, options=control, worker_options=["--tcp-only", "--compress", worker]) as service:
            process = start("run", text, "-q", "--epochs", 0, "--service", service.address, "--service-compress", client)
            where = ["--control", service.dispatcher.control]
            wait_until(lambda: any(w["bytes_made"] > 0 for w in run_json("workers", *where)["workers"]))
            assert run_json("workers", *where)["workers"][0]["compression"] == what, (worker, client)
            assert re.search(rf" {what}( \d+%)? *$", run("workers", *where).stdout, re.M)
            process.kill()
            process.communicate()
        seen = [json.loads(line) for line in events.read_text().splitlines()]
        assert [e["compression"] for e in seen if e["event"] == "worker_compression"][-1] == what, (worker, client)
    with Service(1, options=control) as service:  # shared memory is not compressed
        digest(text, "--service", service.address, "--service-compress", "zstd")
        assert run_json("workers", "--control", service.dispatcher.control)["workers"][0]["bytes_made"] == 0


@test
def a_slow_link_is_compressed_by_itself():
    need_codecs()
    text = graph("one_hot.yaml", one_hot)
    wanted, link = digest(text, "--epochs", 2), SlowLink(4e6)
    options, port = ["--control", "127.0.0.1:0"], free_port()
    link.to = f"127.0.0.1:{port}"
    with Service(1, options=options, worker_options=["--tcp-only", "--listen", link.to, "--address", link.address]) as service:
        assert digest(text, "--epochs", 2, "--service", service.address) == wanted
        def sums():
            worker = run_json("workers", "--control", service.dispatcher.control)["workers"][0]
            return worker["bytes_made"], worker["bytes_sent"]
        wait_until(lambda: sums()[0] > 2 * 32 * 128 * 5000 * 4)
        assert sums()[1] < 0.8 * sums()[0], sums()  # the first second or more is sent as it is


@test
def unknown_kinds_of_compression_are_refused():
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", "--compress", "gzip", code=None), "auto, none, lz4 or zstd, not 'gzip'")
    text = graph("numbers.yaml", numbers)
    one_line(run("run", text, "-q", "--service", "127.0.0.1:1", "--service-compress", "gzip", code=None), "auto, none, lz4 or zstd")
    one_line(run("run", text, "--service-compress", "zstd", code=2), "--service")


@test
def nothing_is_left_in_shared_memory_by_who_is_killed():
    for text in (graph("one_hot.yaml", one_hot), graph("middling.yaml", middling)):
        with Service(2) as service:
            process = start("run", text, "-q", "--epochs", 1000000, "--service", service.address)
            wait_until(lambda: shared_files(process) > 0 and any(map(shared_files, service.workers)))
            for _ in range(3):
                service.kill_worker(0)
            wait_until(lambda: shared_files(process) > 0)
            process.kill()
            process.communicate()
            wait_until(lambda: not any(map(shared_files, service.workers)))


@test
def a_bad_record_fails_at_its_place_with_its_message():
    folder = temp / "bad"
    if not folder.exists():
        run("synth", "photos", folder, "--count", 30, "--classes", 1, "--width", 64, "--height", 64, "-q")
        victim = sorted(folder.rglob("*.jpg"))[17]
        victim.write_bytes(victim.read_bytes()[:100])
    words = ["run", example("vision_rrc.yaml"), "-p", f"data={folder}", "-p", "batch=4", "-q"]
    here, there = temp / "here.txt", temp / "there.txt"
    local = run(*words, "--batch-digests", here, code=1)
    with Service(2) as service:
        remote = run(*words, "--batch-digests", there, "--service", service.address, code=1)
        assert remote.stderr == local.stderr, remote.stderr + local.stderr
        assert here.read_text() == there.read_text()
        substitute = [*words[1:-1], "--errors", "substitute"]
        assert digest(*substitute) == digest(*substitute, "--service", service.address)


singles = """pipeline:
  - source.range: {n: 20000}
  - order.shuffle: {}
"""


@test
def records_one_by_one_are_the_same_when_workers_make_many_at_once():
    rng = random.Random(seed)
    text = graph("singles.yaml", singles)
    words = [text, "--epochs", 10, "--seed", 6]
    wanted, got = temp / "singles.txt", temp / "got_singles.txt"
    run("run", *words, "-q", "--batch-digests", wanted)
    with Service(2) as service:
        # States lie anywhere in a pack.
        for part in range(6):
            limit = ["--limit", rng.randrange(1, 60000)] if part < 5 else []
            run("run", *words, "-q", "--state", temp / "singles.state", "--batch-digests", got, *limit, "--service", service.address)
        assert got.read_text() == wanted.read_text()
        # Two runs that share batches, and one more that goes on from elsewhere.
        others = [start("run", *words, "-q", "--digest", "--service", service.address) for _ in range(2)]
        for process in others:
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.strip() == digest(*words), err
    with Service(3) as service:
        for rank in range(3):
            share = [*words, "--rank", rank, "--world", 3, "--even", rng.choice(["repeat", "drop", "none"])]
            assert digest(*share) == digest(*share, "--service", service.address)


@test
def a_bad_record_among_many_made_at_once_fails_at_its_place():
    path = temp / "numbers.csv"
    bad = random.Random(seed).randrange(150_000, 200_000)
    path.write_text("a,b\n" + "".join(f"{i},{i if i != bad else 'x'}\n" for i in range(200_000)))
    text = graph("rows_singles.yaml", f"pipeline:\n  - source.csv: {{path: {path}, types: {{a: int64, b: int64}}}}\n")
    here, there = temp / "here_rows.txt", temp / "there_rows.txt"
    local = run("run", text, "-q", "--batch-digests", here, code=1)
    with Service(2) as service:
        remote = run("run", text, "-q", "--batch-digests", there, "--service", service.address, code=1)
    assert remote.stderr == local.stderr, remote.stderr + local.stderr
    assert here.read_text() == there.read_text() and len(here.read_text().splitlines()) == bad


@test
def a_state_is_the_same_with_and_without_a_service():
    text = graph("numbers.yaml", numbers)
    wanted = temp / "wanted.txt"
    run("run", text, "--epochs", 3, "-q", "--batch-digests", wanted)
    rng = random.Random(seed)
    with Service(2) as service:
        for trial in range(6):
            state, got = temp / f"state{trial}", temp / f"got{trial}"
            for part in range(4):
                here = [] if rng.random() < 0.5 else ["--service", service.address]
                limit = ["--limit", rng.randrange(1, 9000) // 10 * 10 + 10] if part < 3 else []
                run("run", text, "--epochs", 3, "-q", "--state", state, "--batch-digests", got, *limit, *here)
            assert got.read_text() == wanted.read_text(), f"trial {trial}"


@test
def a_second_run_of_the_same_name_is_refused_while_the_first_is_alive():
    text = graph("numbers.yaml", numbers)
    with Service(1) as service:
        first = start("run", text, "--epochs", 0, "-q", "--service", service.address, "--job", "mine")
        time.sleep(1)
        second = run("run", text, "--epochs", 0, "-q", "--service", service.address, "--job", "mine", code=1)
        assert "held by a client that is alive" in second.stderr, second.stderr
        assert first.poll() is None
        first.kill()
        first.communicate()


@test
def a_dispatcher_that_is_not_there_is_named():
    done = run("run", graph("numbers.yaml", numbers), "-q", "--service", f"127.0.0.1:{free_port()}", code=1)
    assert "cannot connect to 127.0.0.1:" in done.stderr and "refused" in done.stderr, done.stderr


def lines_until(process, part):
    """Reads its stderr until a line has `part`."""
    seen = []
    for line in process.stderr:
        seen.append(line)
        if part in line:
            return seen
    raise AssertionError(f"no '{part}' in {''.join(seen)}")


@test
def only_who_has_the_token_takes_part():
    right, wrong = token_file("right", "r" * 40), token_file("wrong", "w" * 40)
    text = graph("numbers.yaml", numbers)
    wanted = digest(text)
    with Service(2, options=["--token-file", right], worker_options=["--token-file", right]) as service:
        words = ["run", text, "-q", "--service", service.address]
        assert digest(text, "--service", service.address, "--token-file", right) == wanted
        for given, message in (([], "a token is needed"), (["--token-file", wrong], "the token is wrong")):
            one_line(run(*words, *given, code=1), "the dispatcher refuses this client", message)
            done = run("worker", "--dispatcher", service.address, *given, code=1)
            assert "the dispatcher at" in done.stderr and message in done.stderr, done.stderr
        for environment in ({"HEADRACE_TOKEN_FILE": str(right)}, {"HEADRACE_TOKEN": "r" * 40}):
            assert run(*words, "--digest", env=environment).stdout.strip() == wanted


@test
def tenants_have_runs_by_their_own_tokens():
    own, vision, speech, gone = (token_file(name, name[0] * 40) for name in ("own", "vision", "speech", "gone"))
    tenants = token_file("tenants", "# quotas\nvision " + "v" * 40 + " runs=1 weight=3\nspeech " + "s" * 40)
    text = graph("numbers.yaml", numbers)
    wanted = digest(text)
    files = ["--token-file", own, "--tenants", tenants]
    events = temp / "tenants.jsonl"
    options = [*files, "--control", "127.0.0.1:0", "--events", events, "--journal", temp / "tenants-journal"]
    with Service(2, options=options, worker_options=files) as service:
        words = ["run", text, "--service", service.address, "--token-file"]
        for token in (own, vision, speech):
            assert run(*words, token, "--digest", "-q").stdout.strip() == wanted
        one_line(run(*words, gone, "-q", code=1), "the token is wrong")
        assert run(*words, vision, "--weight", 3, "--digest", "-q").stdout.strip() == wanted
        one_line(run(*words, vision, "--weight", 4, "-q", code=1), "tenant vision may have a weight of 3, not 4")
        one_line(run(*words, speech, "--weight", 2, "-q", code=1), "tenant speech may have a weight of 1, not 2")
        assert run(*words, own, "--weight", 100, "--digest", "-q").stdout.strip() == wanted
        consumer = ["--job", "several", "--consumer", "a", "--state", temp / "tenant.state"]  # whom only workers refuse
        one_line(run(*words, vision, *consumer, "--weight", 4, "-q", code=1), "may have a weight of 3, not 4")
        done = run("worker", "--dispatcher", service.address, "--token-file", vision, code=1)
        assert "this is the token of tenant vision; workers need the service's own" in done.stderr, done.stderr
        one_line(run("status", "--control", service.dispatcher.control, "--token-file", vision, code=1), "token")
        got = temp / "tenant.txt"
        first = start(*words, vision, "--epochs", 0, "-q", "--batch-digests", got)
        wait_until(lambda: got.exists() and got.stat().st_size > 0)
        second = start(*words, vision, "--digest")
        lines_until(second, "tenant vision has as many runs as it may have at a time (1)")
        assert run(*words, speech, "--digest", "-q").stdout.strip() == wanted
        assert second.poll() is None
        first.terminate()
        first.communicate()
        out, err = second.communicate(timeout=LONG)
        assert second.returncode == 0 and wanted.split()[-1] in out, err
        # Another tenant's run is not to be had by its name.
        named = start(*words, speech, "--epochs", 0, "-q", "--job", "ours", "--batch-digests", temp / "ours.txt")
        wait_until(lambda: (temp / "ours.txt").exists() and (temp / "ours.txt").stat().st_size > 0)
        one_line(run(*words, vision, "--epochs", 0, "-q", "--job", "ours", code=1), "the run is another tenant's")
        named.terminate()
        named.communicate()
    assert {line.get("tenant") for line in map(json.loads, events.read_text().splitlines())
            if line["event"] == "job_added"} == {None, "vision", "speech"}
    one_line(run("dispatcher", "--listen", "127.0.0.1:0", "--tenants", tenants, code=2), "needs a token of its own")
    tenants.write_text("vision short")
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", *files, code=2), f"{tenants}:1: a token has 16 to 255")


@test
def a_worker_has_the_token_too():
    right, wrong = token_file("right", "r" * 40), token_file("wrong", "w" * 40)
    text = graph("numbers.yaml", numbers)
    with Service(1, worker_options=["--token-file", right]) as service:  # the dispatcher has none
        done = run("run", text, "-q", "--service", service.address, "--token-file", wrong, code=1)
        one_line(done, "the token is wrong")


@test
def without_a_token_nothing_listens_beyond_this_machine():
    one_line(run("dispatcher", "--listen", "0.0.0.0:0", code=2), "--token-file", "--insecure")
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", "--listen", "0.0.0.0:0", "--address", "127.0.0.1:1", code=2), "--insecure")
    one_line(run("dispatcher", "--token-file", temp / "nowhere", code=2), "nowhere")
    one_line(run("dispatcher", "--token-file", token_file("short", "short"), code=2), "16 to 255 characters")
    for more in (["--insecure"], ["--token-file", token_file("right", "r" * 40)]):
        process = start("dispatcher", "--listen", "0.0.0.0:0", *more)
        assert "listens at 0.0.0.0:" in process.stdout.readline()
        process.kill()
        process.communicate()


@test
def a_full_dispatcher_makes_a_run_wait_and_say_so():
    text = graph("numbers.yaml", numbers)
    wanted = digest(text)
    for limit, message in ((["--jobs", 1], "already has 1 jobs"), (["--peers", 2], "there are 2 connections already")):
        with Service(1, options=limit) as service:
            got = temp / f"holder{limit[0]}.txt"
            holder = start("run", text, "--epochs", 0, "-q", "--service", service.address, "--batch-digests", got)
            wait_until(lambda: got.exists() and got.stat().st_size > 0)
            waiter = start("run", text, "--digest", "--service", service.address)
            lines_until(waiter, message)
            time.sleep(11)  # longer than a client waits for a dispatcher that does not answer
            assert waiter.poll() is None
            holder.terminate()
            holder.communicate()
            out, err = waiter.communicate(timeout=LONG)
            assert waiter.returncode == 0 and out.strip().splitlines()[-1].endswith(wanted.split()[-1]), (out, err)


@test
def hundreds_of_idle_connections_disturb_nobody():
    text = texts()
    wanted = digest(text, "--epochs", 3)
    with Service(2, options=["--peers", 64]) as service:
        host, port = service.address.split(":")
        idle = [socket.create_connection((host, int(port)), timeout=LONG) for _ in range(700)]
        assert digest(text, "--epochs", 3, "--service", service.address) == wanted
        status = open(f"/proc/{service.dispatcher.pid}/status").read()
        peak = int(status.split("VmHWM:")[1].split()[0])
        assert peak < 100_000, f"{peak} kB"
        assert len(os.listdir(f"/proc/{service.dispatcher.pid}/fd")) < 64 + 64 + 30
        for connection in idle:
            connection.close()


@test
def a_connection_that_says_nothing_is_closed():
    with Service(1, options=["--hello-timeout", 1]) as service:
        host, port = service.address.split(":")
        with socket.create_connection((host, int(port)), timeout=LONG) as silent:
            got = b""
            while some := silent.recv(4096):
                got += some
            assert b"said no HELLO in time" in got, got


@test
def more_connections_than_files_are_refused():
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 65536:
        limit = (4096, 4096)
        done = run("dispatcher", "--peers", 65536, "--listen", "127.0.0.1:0", code=2,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
        one_line(done, "--peers 65536 needs", "4096")


slow = """pipeline:
  - source.files: {path: %s, labels: folder}
  - order.shuffle: {}
  - image.decode: {}
  - image.random_resized_crop: {size: 48}
  - image.gaussian_blur: {size: 9, sigma: [1.0, 2.0]}
  - batch.stack: {size: 4}
"""


def check_kills(actions, rounds=2, worker_options=(), equal=0):
    """With `equal` runs of the same batches beside it that nobody kills."""
    text = graph("slow.yaml", slow % photos())
    wanted = temp / "slow.txt"
    if not wanted.exists():
        run("run", text, "--epochs", EPOCHS, "-q", "--batch-digests", wanted)
    rng = random.Random(f"{seed} {actions}")
    total = 0
    for _ in range(rounds):
        with Service(rng.randrange(1, 4), worker_options=worker_options) as service:
            beside = [temp / f"beside{rng.randrange(10**9)}.txt" for _ in range(equal)]
            others = [start("run", text, "--epochs", EPOCHS, "-q", "--batch-digests", path, "--service", service.address)
                      for path in beside]
            got, kills = killed_run(rng, service, text, EPOCHS, actions)
            assert got == wanted.read_text(), "records were lost or repeated"
            for process, path in zip(others, beside):
                _, err = process.communicate(timeout=LONG)
                assert process.returncode == 0, err
                assert path.read_text() == wanted.read_text(), "an equal run got other batches"
            total += kills
    print(f"# {total} kills of {' or '.join(actions)}", flush=True)


@test
def killed_workers_cost_no_record():
    check_kills(["worker"])


@test
def killed_dispatchers_cost_no_record():
    check_kills(["dispatcher"])


def two_dispatchers(workers=2):
    """A service whose workers work for two dispatchers, and the other one's process."""
    service = Service(0)
    other = begin("dispatcher", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
    service.both = f"{service.address},{other.address}"
    service.workers = [begin("worker", "--dispatcher", service.both, "--threads", 1) for _ in range(workers)]
    return service, other


@test
def runs_go_on_with_another_dispatcher():
    text = graph("slow.yaml", slow % photos())
    wanted = digest(text, "--epochs", 3)
    service, other = two_dispatchers()
    with service:
        got = temp / "moved.txt"
        words = ["run", text, "--epochs", 3, "--digest", "-q", "--service"]
        moved = start(*words, service.both, "--batch-digests", got)
        beside = start(*words, other.address)  # of the same workers, by the other dispatcher
        wait_until(lambda: got.exists() and got.read_text().count("\n") > 2)
        service.dispatcher.kill()
        service.dispatcher.communicate()
        for process in (moved, beside, start(*words, service.both)):
            out, err = process.communicate(timeout=LONG)
            assert process.returncode == 0 and out.strip() == wanted, err
        service.dispatcher = service.begin_dispatcher()  # workers come back to it
        assert digest(text, "--epochs", 3, "--service", service.address) == wanted
        other.kill()
        other.communicate()
        assert digest(text, "--epochs", 3, "--service", f"{other.address},{service.address}") == wanted


@test
def a_worker_that_one_dispatcher_drains_leaves_the_other_one_too():
    service, other = two_dispatchers(1)
    with service:
        wait_until(lambda: run_json("workers", "--control", other.control)["workers"])
        run("drain", service.workers[0].address, "--control", other.control)
        assert service.workers[0].wait(timeout=LONG) == 0
        wait_until(lambda: not run_json("workers", "--control", other.control)["workers"])
        other.kill()
        other.communicate()


@test
def addresses_of_dispatchers_are_checked_at_once():
    service = "127.0.0.1:1"
    for wrong in ("", f"{service},", f"{service},gpu1", ",".join([service] * 9)):
        for words in (["run", graph("numbers.yaml", numbers), "--service", wrong], ["worker", "--dispatcher", wrong]):
            failed = run(*words, code=2)
            assert "HOST:PORT" in failed.stderr or "at most 8 dispatchers" in failed.stderr, failed.stderr


@test
def killed_clients_resume_without_loss_or_repetition():
    check_kills(["client"])


@test
def whoever_is_killed_no_record_is_lost_or_repeated():
    check_kills(["worker", "dispatcher", "client", "all"])


@test
def equal_runs_share_batches_through_kills():
    check_kills(["worker", "dispatcher", "client", "all"], 2, equal=2)
    check_kills(["worker", "client"], 1, ["--keep", "3MB"], equal=2)


@test
def compressed_frames_survive_kills_too():
    need_codecs()
    for how in ("zstd", "auto"):
        check_kills(["worker", "client", "all"], 2, ["--tcp-only", "--compress", how])



main()
