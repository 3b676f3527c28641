"""The control port of a dispatcher, the commands that ask it, draining, and the log of events."""
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(__file__))
from service_support import LONG, Service, ask, begin, digest, free_port, metrics, token_file, wait_until
from support import graph, headrace, main, one_line, photos, run, run_json, source, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
BATCHES = 300
EPOCHS = 60  # of the run whose workers are drained
numbers = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
  - batch.stack: {size: 10}
"""
WITH_CONTROL = ["--control", "127.0.0.1:0"]


def jobs(service):
    return {job["name"]: job for job in json.loads(ask(service, "/v1/jobs")[1])["jobs"]}


def workers(service):
    return {worker["address"]: worker for worker in json.loads(ask(service, "/v1/workers")[1])["workers"]}


@test
def metrics_and_jobs_are_those_of_what_ran():
    text = graph("numbers.yaml", numbers)
    with Service(2, options=WITH_CONTROL) as service:
        wait_until(lambda: len(workers(service)) == 2)
        zero = metrics(service)
        assert zero["headrace_workers"] == 2 and zero["headrace_jobs"] == 0 and zero["headrace_positions_taken_total"] == 0
        run("run", text, "-q", "--service", service.address, "--job", "first")
        run("run", text, "-q", "--epochs", 2, "--service", service.address, "--job", "second")
        wait_until(lambda: metrics(service)["headrace_clients"] == 0)
        got, known = metrics(service), jobs(service)
        assert list(known) == ["first", "second"]
        assert [known[name]["positions"] for name in known] == [BATCHES, 2 * BATCHES]
        assert [known[name]["cursor"] for name in known] == [BATCHES, 2 * BATCHES]
        assert all(job["done"] and not job["connected"] and job["generation"] == 1 for job in known.values())
        assert got["headrace_positions_taken_total"] == 3 * BATCHES, got
        again = got["headrace_leases_expired_total"] + got["headrace_leases_hedged_total"]  # on a slow machine
        assert again or got["headrace_positions_leased_total"] == got["headrace_positions_finished_total"] == 3 * BATCHES, got
        assert sum(worker["positions_finished"] for worker in workers(service).values()) == got["headrace_positions_finished_total"]
        assert got["headrace_jobs"] == 2 and got["headrace_connections"] == 2 and got["headrace_uptime_seconds"] > 0
        assert got["headrace_process_cpu_seconds_total"] > 0 and got["headrace_process_resident_memory_bytes"] > 1e6


@test
def metrics_have_help_types_and_units():
    with Service(0, options=WITH_CONTROL) as service:
        text = ask(service, "/metrics")[1]
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
        names = re.findall(r"^(headrace_[a-z_]+)", text, re.M)
        assert names and set(names) == set(types) == set(re.findall(r"^# HELP (\S+) .+\.$", text, re.M))
        assert all((types[name] == "counter") == name.endswith("_total") for name in names)


@test
def people_and_programs_see_the_same():
    text = graph("numbers.yaml", numbers)
    with Service(1, options=WITH_CONTROL) as service:
        where = ["--control", service.dispatcher.control]
        run("run", text, "-q", "--service", service.address, "--job", "mine")
        wait_until(lambda: jobs(service)["mine"]["done"])
        worker = service.workers[0].address
        status = run("status", *where).stdout
        assert f"dispatcher at {service.address}" in status and "1 workers, " in status and worker in status, status
        assert re.search(r"^mine +done +1 +300 +300 +100.0 ", status, re.M), status
        assert re.search(rf"^{worker} +serving ", run("workers", *where).stdout, re.M)
        assert re.search(r"^mine +done ", run("jobs", *where).stdout, re.M)
        assert run_json("status", *where)["jobs"][0]["cursor"] == BATCHES
        assert run_json("workers", *where)["workers"][0]["address"] == worker
        assert run_json("jobs", *where)["jobs"][0]["name"] == "mine"
        assert "BATCHES/s" in run("top", "-n", 1, "-i", 1, *where).stdout
        assert len([json.loads(line) for line in run("top", "-n", 2, "-i", 1, "--json", *where).stdout.splitlines()]) == 2


@test
def answers_are_as_the_description_says():
    described = json.loads((source / "docs/control.json").read_text())
    with Service(1, options=WITH_CONTROL) as service:
        run("run", graph("numbers.yaml", numbers), "-q", "--service", service.address)
        wait_until(lambda: workers(service))
        schemas = described["components"]["schemas"]
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if method != "get":
                    continue
                status, text = ask(service, path)
                assert status == 200, path
                content = operation["responses"]["200"]["content"]
                if "application/json" in content:
                    check_schema(json.loads(text), content["application/json"]["schema"], schemas, path)


def check_schema(value, schema, schemas, where):
    if "$ref" in schema:
        schema = schemas[schema["$ref"].split("/")[-1]]
    kind = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}[schema["type"]]
    assert isinstance(value, kind), (where, value)
    if schema["type"] == "array":
        for item in value:
            check_schema(item, schema["items"], schemas, where)
    if schema["type"] == "object":
        assert set(value) == set(schema["properties"]), (where, set(value) ^ set(schema["properties"]))
        for key, item in value.items():
            check_schema(item, schema["properties"][key], schemas, f"{where} {key}")


@test
def long_lists_come_in_pages():
    with Service(5, options=WITH_CONTROL) as service:
        wait_until(lambda: len(workers(service)) == 5)
        for i in range(3):
            run("run", graph("numbers.yaml", numbers), "-q", "--service", service.address, "--job", f"job{i}")
        for name, key, whole in (("workers", "address", workers(service)), ("jobs", "name", jobs(service))):
            for limit in (1, 2, 5, 100):
                after, seen = 0, []
                while True:
                    status, text = ask(service, f"/v1/{name}?limit={limit}&after={after}")
                    page = json.loads(text)
                    assert status == 200 and len(page[name]) <= limit, page
                    seen += [entry[key] for entry in page[name]]
                    after = page["next"]
                    if after == 0:
                        break
                assert seen == list(whole), (limit, seen)
        status = json.loads(ask(service, "/v1/status?limit=0")[1])
        assert (status["workers"], status["jobs"], status["worker_count"], status["job_count"], status["consumers"]) == ([], [], 5, 3, []), status
        assert [len(json.loads(ask(service, "/v1/status?limit=2")[1])[name]) for name in ("workers", "jobs")] == [2, 2]
        for path in ("workers?limit=100&after=4000000000", "jobs?after=999999999999999999", "consumers", "consumers?limit=0&after=7"):
            assert '[],"next":0' in ask(service, f"/v1/{path}")[1], path
        for query in ("limit", "limit=", "limit=-1", "limit=x", "limit=1x", "limit=9999999999999999999", "size=1", "limit=1;after=2",
                      "&limit=1", "=", "%6cimit=1", "a" * 5000):
            for name in ("status", "workers", "jobs", "consumers"):
                status, text = ask(service, f"/v1/{name}?{query}")
                assert status == 400 and json.loads(text)["error"], (query, text)
        assert ask(service, "/v1/status?after=1")[0] == 400


@test
def wrong_requests_are_refused_by_name():
    with Service(0, options=WITH_CONTROL) as service:
        assert ask(service, "/healthz") == (200, '{"healthy":true}\n')
        assert ask(service, "/nowhere")[0] == 404
        assert ask(service, "/v1/status", "POST", "{}")[0] == 405
        assert ask(service, "/v1/drain")[0] == 405
        for body in ("", "{", "[]", '{"worker": 1}', '{"worker": "%s"}' % ("a" * 300)):
            status, text = ask(service, "/v1/drain", "POST", body)
            assert status == 400 and json.loads(text)["error"], (body, text)
        status, text = ask(service, "/v1/drain", "POST", '{"worker": "127.0.0.1:1"}')
        assert status == 404 and "no worker listens at 127.0.0.1:1" in text
        host, port = service.dispatcher.control.split(":")
        for bytes_ in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nA: " + b"a" * 20000, b"POST /v1/drain HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=LONG) as rude:
                rude.sendall(bytes_)
                try:
                    while rude.recv(4096):  # an error, or nothing; then the end
                        pass
                except ConnectionResetError:
                    pass
        assert ask(service, "/healthz")[0] == 200
    one_line(run("status", "--control", f"127.0.0.1:{free_port()}", code=1), "cannot connect to 127.0.0.1:", "--control")
    one_line(run("drain", code=2), "--all")


@test
def idle_connections_to_the_control_port_are_bounded():
    with Service(1, options=WITH_CONTROL) as service:
        host, port = service.dispatcher.control.split(":")
        idle = [socket.create_connection((host, int(port)), timeout=LONG) for _ in range(150)]
        text = graph("numbers.yaml", numbers)
        assert digest(text, "--service", service.address) == digest(text)
        assert len(os.listdir(f"/proc/{service.dispatcher.pid}/fd")) < 64 + 40
        run("status", "--control", service.dispatcher.control, "--timeout", 90)  # when idle ones were closed
        for connection in idle:
            connection.close()


@test
def slow_connections_do_not_keep_others_from_the_control_port():
    """They send a byte each second, so none of them is silent."""
    with Service(0, options=WITH_CONTROL) as service:
        host, port = service.dispatcher.control.split(":")
        slow = [socket.create_connection((host, int(port)), timeout=LONG) for _ in range(100)]
        ended = threading.Event()

        def drip():
            for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"x" * LONG:
                for connection in slow:
                    try:
                        connection.send(bytes([byte]))
                    except OSError:
                        pass
                if ended.wait(1):
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            time.sleep(2)
            assert ask(service, "/healthz")[0] == 200
            assert thread.is_alive()  # still sending
        finally:
            ended.set()
            thread.join()
            for connection in slow:
                connection.close()


@test
def the_control_port_wants_the_token():
    right = token_file("right", "r" * 40)
    with Service(0, options=[*WITH_CONTROL, "--token-file", right]) as service:
        assert ask(service, "/healthz")[0] == ask(service, "/readyz")[0] == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "r" * 40}):
            assert ask(service, "/v1/status", headers=headers)[0] == ask(service, "/metrics", headers=headers)[0] == 401
        assert ask(service, "/metrics", headers={"Authorization": "Bearer " + "r" * 40})[0] == 200
        one_line(run("status", "--control", service.dispatcher.control, code=1), "401", "a token is needed")
        run("status", "--control", service.dispatcher.control, "--token-file", right)
    one_line(run("dispatcher", "--listen", "127.0.0.1:0", "--control", "0.0.0.0:0", code=2), "--insecure")


@test
def a_full_dispatcher_is_not_ready():
    with Service(1, options=[*WITH_CONTROL, "--jobs", 1]) as service:
        assert ask(service, "/readyz")[0] == 200
        process = start("run", graph("numbers.yaml", numbers), "-q", "--epochs", 0, "--service", service.address)
        wait_until(lambda: ask(service, "/readyz")[0] == 503)
        process.terminate()  # it says GOODBYE
        process.communicate()
        wait_until(lambda: ask(service, "/readyz")[0] == 200)
        assert len(json.loads(ask(service, "/v1/jobs")[1])["jobs"]) == 1  # it is still listed


# ---- draining


@test
def an_idle_worker_drains_at_once():
    with Service(2, options=WITH_CONTROL) as service:
        run("run", graph("numbers.yaml", numbers), "-q", "--service", service.address)
        wait_until(lambda: len(workers(service)) == 2)
        begun = time.monotonic()
        service.workers[0].send_signal(signal.SIGTERM)
        assert service.workers[0].wait(LONG) == 0
        print(f"# SIGTERM: {1000 * (time.monotonic() - begun):.0f} ms")
        begun = time.monotonic()
        done = run("drain", "--control", service.dispatcher.control, service.workers[1].address)
        print(f"# headrace drain: {1000 * (time.monotonic() - begun):.0f} ms")
        assert done.stdout == service.workers[1].address + " has left\n"
        assert service.workers[1].wait(LONG) == 0
        assert not workers(service)


slow = """pipeline:
  - source.files: {path: %s, labels: folder}
  - order.shuffle: {}
  - image.decode: {}
  - image.random_resized_crop: {size: 48}
  - image.gaussian_blur: {size: 9, sigma: [1.0, 2.0]}
  - batch.stack: {size: 4}
"""


@test
def draining_workers_lose_and_repeat_nothing():
    text, rng = graph("slow.yaml", slow % photos()), random.Random(seed)
    wanted = digest(text, "--epochs", EPOCHS)
    with Service(2, options=WITH_CONTROL) as service:
        process = start("run", text, "--epochs", EPOCHS, "--digest", "-q", "--service", service.address, "--job", "drained")
        drained = 0
        while process.poll() is None and drained < 8:
            time.sleep(rng.random() * 0.1)
            at = rng.randrange(2)
            service.workers.append(service.begin_worker())
            leaving = service.workers.pop(at)
            if rng.random() < 0.5:
                leaving.send_signal(signal.SIGTERM)
            elif leaving.address in workers(service):
                run("drain", "--control", service.dispatcher.control, leaving.address)
            else:
                leaving.send_signal(signal.SIGTERM)
            out, err = leaving.communicate(timeout=LONG)
            assert leaving.returncode == 0, err
            drained += 1
        out, err = process.communicate(timeout=LONG)
        assert process.returncode == 0 and out.strip() == wanted, err
        wait_until(lambda: metrics(service)["headrace_clients"] == 0)
        got = metrics(service)
        print(f"# {drained} workers drained; {got['headrace_positions_leased_total']:.0f} batches leased")
        assert got["headrace_positions_taken_total"] == EPOCHS * 10, got


@test
def a_worker_whose_client_takes_nothing_leaves_at_its_deadline():
    text = graph("numbers.yaml", numbers)
    with Service(1, options=WITH_CONTROL, worker_options=["--drain-timeout", 1]) as service:
        process = start("run", text, "--epochs", 0, "-q", "--service", service.address)
        wait_until(lambda: jobs(service) and next(iter(jobs(service).values()))["cursor"] > 0)
        process.send_signal(signal.SIGSTOP)
        service.workers[0].send_signal(signal.SIGTERM)
        assert service.workers[0].wait(LONG) == 0
        process.kill()
        process.communicate()


# ---- events


@test
def the_log_says_what_happened():
    log, text = temp / "events.jsonl", graph("numbers.yaml", numbers)
    with Service(1, options=[*WITH_CONTROL, "--events", log]) as service:
        wait_until(lambda: workers(service))
        run("run", text, "-q", "--service", service.address, "--job", "logged")
        wait_until(lambda: jobs(service)["logged"]["done"] and not jobs(service)["logged"]["connected"])
        worker = service.workers[0].address
        run("drain", "--control", service.dispatcher.control, worker)
        wait_until(lambda: not workers(service))
        service.dispatcher.send_signal(signal.SIGTERM)
        assert service.dispatcher.wait(LONG) == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"]) for line in lines)
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    names = [line["event"] for line in lines]
    wanted = {"dispatcher_started", "worker_joined", "job_added", "client_joined", "job_done", "client_left", "worker_draining", "worker_left", "dispatcher_stopped"}
    assert set(names) == wanted and len(names) == len(wanted), names
    assert names[0] == "dispatcher_started" and names[-1] == "dispatcher_stopped"
    assert all(line["job"] == "logged" for line in lines if "job" in line)
    left = next(line for line in lines if line["event"] == "worker_left")
    assert left["worker"] == worker and left["why"] == "it said goodbye"
    one_line(run("dispatcher", "--listen", "127.0.0.1:0", "--events", temp / "no" / "where", code=1), "cannot write")


# ---- settings


@test
def a_full_disk_under_the_log_stops_nothing():
    text, path = graph("numbers.yaml", numbers), temp / "full.jsonl"
    wanted = digest(text)
    with Service(1, options=[*WITH_CONTROL, "--events", path]) as service:
        wait_until(lambda: len(workers(service)) == 1)
        room = path.stat().st_size + 40  # less than a line
        resource.prlimit(service.dispatcher.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        assert digest(text, "--service", service.address) == wanted
        assert path.stat().st_size == room
        lost = metrics(service)["headrace_events_lost_total"]
        assert lost >= 3, lost  # a job and its client
        resource.prlimit(service.dispatcher.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert digest(text, "--service", service.address, "--job", "later") == wanted
        assert metrics(service)["headrace_events_lost_total"] == lost
        service.dispatcher.kill()
        service.dispatcher.communicate()
        whole = path.read_text()
        path.write_text(whole[:-20])
        service.dispatcher = service.begin_dispatcher()
        wait_until(lambda: "worker_joined" in path.read_text()[len(whole):])
    damaged, seen = 0, []
    for line in path.read_text().splitlines():
        try:
            seen.append(json.loads(line))
        except json.JSONDecodeError:
            damaged += 1
    assert damaged == 2 and any(e["event"] == "job_added" and e["job"] == "later" for e in seen), (damaged, seen)
    assert sum(e["event"] == "dispatcher_started" for e in seen) == 2, seen


@test
def strangers_do_not_fill_the_log():
    path = temp / "strangers.jsonl"
    with Service(0, options=["--events", path]) as service:
        host, port = service.address.split(":")
        for _ in range(500):
            with socket.create_connection((host, int(port)), timeout=LONG) as stranger:
                stranger.sendall(b"x" * 100)
        wait_until(lambda: " others within 10 s" in path.read_text())
    refused = [e["why"] for line in path.read_text().splitlines() if (e := json.loads(line))["event"] == "connection_refused"]
    assert len(refused) < 50, len(refused)
    assert len(refused) - 1 + int(refused[-1].split()[0]) == 500, refused[-1]


@test
def settings_come_from_the_file_then_the_environment_then_the_command_line():
    file = temp / "dispatcher.conf"
    file.write_text("# a comment\n\nlisten: 127.0.0.1:0\n  peers:  77  \njobs: 5\ninsecure: yes\nevents: /some where:else\n")
    words = ["dispatcher", "--config", file, "--show-config"]
    environment = {"HEADRACE_DISPATCHER_PEERS": "88", "HEADRACE_DISPATCHER_HELLO_TIMEOUT": "3"}
    shown = run(*words, env=environment, code=0).stdout.splitlines()
    for line in ("listen: 127.0.0.1:0", "peers: 88", "jobs: 5", "insecure: true", "events: /some where:else", "hello-timeout: 3", "# control:"):
        assert line in shown, (line, shown)
    assert "peers: 99" in run(*words, "--peers", 99, env=environment).stdout
    assert "peers: 77" in run("dispatcher", "--show-config", env={"HEADRACE_DISPATCHER_CONFIG": str(file)}).stdout
    again = temp / "again.conf"
    again.write_text(run(*words).stdout)
    assert run("dispatcher", "--config", again, "--show-config").stdout == again.read_text()


@test
def wrong_settings_are_named_with_their_line():
    file = temp / "wrong.conf"
    for text, *parts in (("peers: many\n", ":1: peers expects a whole number from 1 to 65536, not 'many'"), ("\npers: 1\n", ":2: ", "no setting 'pers'"),
                         ("peers: 1\npeers: 2\n", ":2: 'peers' is there twice"), ("listen\n", ":1: expected a line"), ("config: x\n", "no setting 'config'"),
                         ("insecure: maybe\n", "true or false"), ("a" * 70000, "too large")):
        file.write_text(text)
        one_line(run("dispatcher", "--config", file, code=2), str(file), *parts)
    one_line(run("worker", "--config", temp / "none.conf", code=1), "none.conf", "cannot read")
    one_line(run("worker", "--config", temp, code=1), "Is a directory")
    for words in (("dispatcher", "--listen", "127.0.0.1:65536"), ("worker", "--dispatcher", "127.0.0.1:99999"),
                  ("worker", "--dispatcher", "127.0.0.1:1", "--address", "here")):
        one_line(run(*words, code=2), f"'{words[-1]}' is not an address")
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", "--keep", "64KX", code=2), "--keep expects a number of bytes")
    assert run("worker", "--dispatcher", "127.0.0.1:1", "--keep", "64KiB", "--show-config").returncode == 0
    one_line(run("worker", "--dispatcher", "127.0.0.1:1", env={"HEADRACE_WORKER_PEERS": "0"}, code=2), "HEADRACE_WORKER_PEERS: peers expects")


@test
def a_worker_says_why_it_waits_and_that_it_waits_no_longer():
    address = f"127.0.0.1:{free_port()}"
    worker = begin("worker", "--dispatcher", address)
    assert worker.stderr.readline() == \
        f"headrace: waits for the dispatcher at {address}: cannot connect to {address}: Connection refused\n"
    dispatcher = begin("dispatcher", "--listen", address)
    assert worker.stderr.readline() == f"headrace: is connected to the dispatcher at {address}\n"
    for process in (dispatcher, worker):
        process.kill()
        process.communicate()


@test
def a_service_runs_from_files_and_workers_of_runs_are_not_confused_by_them():
    text = graph("numbers.yaml", numbers)
    dispatcher, worker = temp / "d.conf", temp / "w.conf"
    dispatcher.write_text("listen: 127.0.0.1:0\n")
    serving = begin("dispatcher", "--config", dispatcher)
    worker.write_text(f"dispatcher: {serving.address}\nthreads: 1\n")
    other = begin("worker", "--config", worker)
    assert digest(text, "--service", serving.address) == digest(text)
    local = run("run", text, "--variant", "processes", "--digest", "-q", env={"HEADRACE_WORKER_CONFIG": str(worker)})
    assert local.stdout.strip() == digest(text)
    for process in (serving, other):
        process.kill()
        process.communicate()


@test
def the_units_and_their_settings_are_sound():
    for role in ("dispatcher", "worker"):
        run(role, "--config", source / "packaging/systemd" / f"{role}.conf", "--show-config")
    verify = shutil.which("systemd-analyze")
    if verify:
        for role in ("dispatcher", "worker"):
            text = (source / "packaging/systemd" / f"headrace-{role}.service.in").read_text()
            unit = temp / f"headrace-{role}.service"
            unit.write_text(text.replace("@bindir@/headrace", str(headrace)).replace("@sysconfdir@", "/etc"))
            done = subprocess.run([verify, "verify", "--man=no", unit], text=True, capture_output=True)
            assert unit.name not in done.stderr, done.stderr


main()
