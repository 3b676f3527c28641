"""Several consumers of one run, with real processes: each batch once, also when processes are killed.

HEADRACE_TEST_JOURNAL=postgres keeps all journals in a server of PostgreSQL.
"""
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from consumers_support import NUMBERS, Consumer, check_union, expected, got_some, numbers
from postgres import tap_server
from service_support import LONG, Service, ask, begin, free_port, metrics, wait_until
from support import graph, main, one_line, run, run_json, source, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
rng = random.Random(seed)

def service(workers=2, *options, journal=None, **more):
    journal = journal or (server.address if server else temp / f"journal{rng.randrange(10**9)}")
    return Service(workers, options=["--journal", journal, *options], **more)


def slow_down(consumer):
    """Stops it now and then, for less than what counts as silence."""
    if consumer.process.poll() is None:
        consumer.process.send_signal(signal.SIGSTOP)
        time.sleep(rng.uniform(0.05, 0.3))
        consumer.process.send_signal(signal.SIGCONT)


@test
def consumers_of_different_speeds_get_all_batches_once_between_them():
    text = numbers("union")
    wanted = expected(text, 2)
    for workers in (1, 2, 3):
        for count in range(1, 5):
            with service(workers) as s:
                several = [Consumer(s.address, text, f"c{i}", f"union{workers}{count}", 2, rng.choice([0, 1, 7])) for i in range(count)]
                for _ in range(3):
                    slow_down(several[0])
                for consumer in several:
                    consumer.end()
                check_union(several, wanted)
                again = run(*several[0].words)  # nothing is left
                assert "0 records" in again.stdout and "start over" not in again.stderr, again


@test
def whoever_is_killed_no_batch_is_lost_or_repeated():
    text = numbers("killed", 6000)
    wanted = expected(text, 2)
    for trial in range(3):
        with service(2, "--evict-after", 1) as s:
            several = [Consumer(s.address, text, f"c{i}", f"killed{trial}", 2, rng.choice([1, 3, 20])) for i in range(rng.randrange(2, 4))]
            until, kills = time.monotonic() + LONG, 0
            while any(consumer.process.poll() is None for consumer in several):
                assert time.monotonic() < until, f"the run hangs after {kills} kills"
                time.sleep(rng.uniform(0, 0.3))
                what = rng.choice(["dispatcher", "worker", "consumer", "consumer", "all"])
                if kills >= 15:
                    continue
                kills += 1
                if what in ("dispatcher", "all"):
                    s.kill_dispatcher()
                if what in ("worker", "all"):
                    s.kill_worker(rng.randrange(2))
                victim = rng.choice(several)
                if what in ("consumer", "all") and victim.process.poll() is None:
                    victim.kill()
                    time.sleep(rng.choice([0, 0, 0.1, 1.5]))
                    victim.begin()
            for consumer in several:
                consumer.end()
            check_union(several, wanted)


@test
def consumers_join_and_leave_during_an_epoch():
    text = numbers("leave", 4000)
    wanted = expected(text)
    with service(2) as s:
        first = Consumer(s.address, text, "first", "leave", every=10)
        got_some(first, 50)
        second = Consumer(s.address, text, "second", "leave")
        got_some(second, 30)
        first.process.send_signal(signal.SIGINT)  # commits, and leaves the rest to others at once
        first.end(130)
        second.end()
        check_union([first, second], wanted)
        assert 50 <= len(first.lines()) < 800


@test
def a_killed_consumer_continues_from_the_checkpoint_that_counts_wherever_it_lies():
    text = numbers("aside")
    wanted = expected(text)
    with service(1) as s:
        consumer = Consumer(s.address, text, "a", "aside", every=5)
        got_some(consumer, 60)
        consumer.kill()
        wait_until(lambda: consumer.state.exists())
        number = json.loads(consumer.state.read_text())["checkpoint"]
        aside = [path for path in consumer.folder.glob("state.*") if path.name == f"state.{number + 1}"]
        if not aside:  # as if it had died before the rename, and had begun the next one
            shutil.copy(consumer.state, f"{consumer.state}.{number + 1}")
            consumer.state.rename(f"{consumer.state}.{number}")
        consumer.begin()
        got_some(consumer)
        assert consumer.state.exists()
        consumer.end()
        assert not list(consumer.folder.glob("state.*"))
        check_union([consumer], wanted)


@test
def a_consumer_without_its_checkpoint_is_refused():
    text = numbers("lost")
    with service(1) as s:
        consumer = Consumer(s.address, text, "a", "lost", every=5)
        wait_until(consumer.state.exists)
        consumer.kill()
        kept = consumer.state.read_text()
        for path in consumer.folder.glob("state*"):
            path.unlink()
        one_line(run(*consumer.words, "-q", code=2), "of this consumer is committed, and there is neither")
        older = json.loads(kept)
        older["checkpoint"] += 7
        consumer.state.write_text(json.dumps(older))
        one_line(run(*consumer.words, "-q", code=1), "resume from that one, or take another name")
        older["consumer"] = "b"
        consumer.state.write_text(json.dumps(older))
        one_line(run(*consumer.words, "-q", code=2), "the state is of consumer 'b' of job 'lost', not of 'a'")
        words = [word if word != "a" else "new" for word in consumer.words]
        one_line(run(*words, "-q", code=2), "the dispatcher knows no checkpoint of this consumer")


@test
def what_a_dead_consumer_had_goes_to_others_when_it_is_evicted():
    text = numbers("evicted", 3000)
    wanted = expected(text)
    with service(2, "--evict-after", 1) as s:
        first = Consumer(s.address, text, "first", "evicted", every=10)
        got_some(first, 30)
        second = Consumer(s.address, text, "second", "evicted")
        got_some(second)
        first.kill()
        second.end()  # it has all the rest
        check_union([first, second], wanted)
        first.begin()
        first.end()
        check_union([first, second], wanted)


@test
def a_consumer_that_was_evicted_while_it_slept_is_refused():
    text = numbers("late", 20000)
    with service(2, "--evict-after", 1, "--events", temp / "late.events") as s:
        first = Consumer(s.address, text, "first", "late", every=10)
        got_some(first, 30)
        first.process.send_signal(signal.SIGSTOP)
        second = Consumer(s.address, text, "second", "late")
        wait_until(lambda: '"consumer_evicted"' in (temp / "late.events").read_text())
        first.process.send_signal(signal.SIGCONT)
        assert "consumer 'first' of job 'late': it was evicted or replaced; go back" in first.end(1)
        first.begin()  # which is what it does
        second.end()
        first.end()
        check_union([first, second], expected(text))


@test
def a_user_sees_consumers_and_may_evict_one():
    text = numbers("asked", 20000)
    with service(2, "--control", "127.0.0.1:0") as s:
        control = ["--control", s.dispatcher.control]
        first = Consumer(s.address, text, "first", "asked", every=10)
        got_some(first, 30)
        second = Consumer(s.address, text, "second", "asked", every=10)
        got_some(second, 30)
        status, body = ask(s, "/v1/consumers")
        known = {consumer["consumer"]: consumer for consumer in json.loads(body)["consumers"]}
        assert status == 200 and sorted(known) == ["first", "second"], body
        assert known["first"]["connected"] and known["first"]["checkpoint"] > 0 and known["first"]["job"] == "asked"
        properties = json.loads((source / "docs/control.json").read_text())["components"]["schemas"]["Consumer"]["properties"]
        assert all(set(consumer) == set(properties) for consumer in known.values()), body
        page = json.loads(ask(s, "/v1/consumers?limit=1")[1])
        assert [consumer["consumer"] for consumer in page["consumers"]] == ["first"] and page["next"] == 1
        page = json.loads(ask(s, "/v1/consumers?limit=1&after=1")[1])
        assert [consumer["consumer"] for consumer in page["consumers"]] == ["second"] and page["next"] == 0
        one_line(run("evict", "asked", "third", *control, code=1), "no job 'asked' with a consumer 'third' is in use here")
        assert ask(s, "/v1/evict", "POST", '{"job": "asked"}')[0] == 400 and ask(s, "/v1/evict")[0] == 405
        assert run("evict", "asked", "first", *control).stdout == "first is evicted from asked\n"
        assert "it was evicted or replaced" in first.end(1)
        first.begin()
        first.end()
        second.end()
        check_union([first, second], expected(text))


def gauges(s):
    """Of clients, consumers and jobs."""
    got = metrics(s)
    return [got[f"headrace_{name}"] for name in ("clients", "consumers", "jobs")]


@test
def commands_and_metrics_show_consumers_beside_other_runs():
    text, other = numbers("shown", 200000), graph("alone.yaml", NUMBERS % (200000, 0.2))
    with service(2, "--control", "127.0.0.1:0") as s:
        control = ["--control", s.dispatcher.control]
        assert gauges(s) == [0, 0, 0]
        assert run("consumers", *control).stdout.split() == ["JOB", "CONSUMER", "CLIENT", "CHECKPOINT", "SPLITS", "TAKEN"]
        assert "CONSUMER" not in run("status", *control).stdout + run("top", "-n", 1, "-i", 1, *control).stdout
        alone = start("run", other, "-q", "--service", s.address, "--job", "alone")
        first, second = (Consumer(s.address, text, name, "shown", every=every) for name, every in (("first", 10), ("second", 0)))
        got_some(first, 50)
        got_some(second)
        wait_until(lambda: gauges(s) == [3, 2, 2])
        status = run_json("status", *control)
        counts = [status[name] for name in ("clients", "job_count", "consumer_count")]
        assert counts == [3, 2, 2] and [job["name"] for job in status["jobs"]] == ["alone", "shown"], status
        job = status["jobs"][1]
        assert job["positions"] == 40000 and 0 < job["cursor"] < 40000 and job["connected"] and not job["done"], job
        assert (job["consumers"], job["consumers_connected"], status["jobs"][0]["consumers"]) == (2, 2, 0), status
        page = run_json("jobs", *control)
        assert [one["name"] for one in page["jobs"]] == ["alone", "shown"] and page["next"] == 0, page
        assert re.search(r"^shown +2 of 2 +1 +40,000 ", run("jobs", *control).stdout, re.M)
        assert {(consumer["job"], consumer["consumer"]) for consumer in status["consumers"]} == {("shown", "first"), ("shown", "second")}
        listed = run_json("consumers", *control)
        assert listed["next"] == 0 and len(listed["consumers"]) == 2
        assert len(run_json("top", "-n", 1, "-i", 1, *control)["consumers"]) == 2
        shown = run("status", *control).stdout
        assert "2 workers, 3 clients, 2 jobs, " in shown and re.search(r"^alone +connected .*\nshown +2 of 2 .*\n\nJOB +CONSUMER ", shown, re.M), shown
        for words in (["status"], ["consumers"], ["top", "-n", 1, "-i", 1]):
            shown = run(*words, *control).stdout
            assert re.search(r"^shown +first +connected +[1-9]\S* +\d+ +\d+$", shown, re.M), shown
            assert re.search(r"^shown +second +connected +\S+ +\d+ +\d+$", shown, re.M), shown
        first.kill()  # what it has is kept for it
        wait_until(lambda: gauges(s) == [2, 1, 2])
        assert re.search(r"^shown +first +away ", run("consumers", *control).stdout, re.M)
        assert re.search(r"^shown +1 of 2 ", run("jobs", *control).stdout, re.M)
        second.process.send_signal(signal.SIGINT)
        second.end(130)
        assert re.search(r"^shown +second +away .* 0 +0$", run("consumers", *control).stdout, re.M)
        run("evict", "shown", "first", *control)  # nobody has anything of the run now
        alone.terminate()
        alone.communicate()
        wait_until(lambda: gauges(s) == [0, 0, 1])  # the run alone is still listed
        status = run_json("status", *control)
        assert (status["consumers"], status["consumer_count"], status["job_count"], status["clients"]) == ([], 0, 1, 0), status
        sent, taken = (metrics(s)[f"headrace_positions_{name}_total"] for name in ("finished", "taken"))
        assert sum(worker["positions_finished"] for worker in status["workers"]) == status["positions_finished"] == sent, status
        # Clients may have taken a part of a lease that is not finished.
        assert sent > 0 and taken > status["jobs"][0]["cursor"] + job["cursor"] - 1, (sent, taken, status)


@test
def a_second_client_with_the_same_name_is_refused():
    text = numbers("twice", 200000)
    with service(1) as s:
        first = Consumer(s.address, text, "a", "twice")
        got_some(first)
        words = [word if word != first.state else temp / "other.state" for word in first.words]
        one_line(run(*words, "-q", code=1), "consumer 'a' of job 'twice': it is held by a client that is alive")
        assert first.process.poll() is None
        first.kill()


@test
def a_dispatcher_without_a_journal_says_what_to_do():
    text = numbers("none")
    with Service(1) as s:
        words = ["run", text, "-q", "--service", s.address, "--job", "none", "--consumer", "a", "--state", temp / "none.state"]
        one_line(run(*words, code=1), "start it with --journal FOLDER")
    one_line(run(*words[:-2], code=2), "--consumer needs --service, --job and --state FILE")
    one_line(run(*words, "--rank", 0, "--world", 2, code=2), "need no ranks")


@test
def graphs_whose_batches_depend_on_all_before_are_refused():
    filtered = graph("filtered.yaml", NUMBERS.replace("  - debug", '  - record.filter: {expr: "value < 9"}\n  - debug') % (100, 0))
    with service(1) as s:
        words = ["run", filtered, "-q", "--service", s.address, "--job", "f", "--consumer", "a", "--state", temp / "f.state"]
        done = run(*words, code=None)
        one_line(done, "need batches that any worker can make by itself")
        assert "record.filter" in done.stderr, done.stderr


@test
def a_dispatcher_that_starts_again_knows_all_commits():
    text = numbers("restart", 2000)
    wanted = expected(text)
    with service(2) as s:
        first = Consumer(s.address, text, "first", "restart", every=10)
        got_some(first, 100)
        first.process.send_signal(signal.SIGINT)
        first.end(130)
        s.kill_dispatcher()
        second = Consumer(s.address, text, "second", "restart")
        second.end()
        check_union([first, second], wanted)
        s.kill_dispatcher()
        first.begin()  # all is done
        first.end()
        check_union([first, second], wanted)


@test
def a_full_disk_stops_its_runs_and_no_others_and_they_go_on():
    text, other = numbers("full", 4000), graph("other.yaml", NUMBERS % (4000, 0.2))
    wanted = expected(text)
    with service(2, "--events", temp / "full.events", journal=temp / "full") as s:
        consumer = Consumer(s.address, text, "a", "full", every=5)
        got_some(consumer, 50)
        resource.prlimit(s.dispatcher.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        plain = start("run", other, "-q", "--digest", "--service", s.address)
        wait_until(lambda: "cannot read or write the journal" in consumer.said())
        out, err = plain.communicate(timeout=LONG)
        assert plain.returncode == 0 and out == run("run", other, "-q", "--digest").stdout, err
        assert consumer.process.poll() is None
        resource.prlimit(s.dispatcher.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        consumer.end()
        check_union([consumer], wanted)


@test
def a_damaged_or_foreign_journal_is_refused():
    journal = temp / "damaged"
    text = numbers("damaged")
    with service(1, journal=journal) as s:
        Consumer(s.address, text, "a", "damaged").end()
        second = run("dispatcher", "--listen", f"127.0.0.1:{free_port()}", "--journal", journal, code=None)
        one_line(second, "another dispatcher uses the journal")
        s.dispatcher.terminate()
        s.dispatcher.communicate()
    file = journal / "journal.sqlite"
    whole = file.read_bytes()
    words = ["dispatcher", "--listen", f"127.0.0.1:{free_port()}", "--journal", journal]
    file.write_bytes(whole[:4096] + b"Z" * 64 + whole[4160:])
    one_line(run(*words, code=None), "is damaged")
    file.write_bytes(b"a letter, and no journal at all. " * 200)
    one_line(run(*words, code=None), "is damaged")
    file.write_bytes(whole[:68] + b"ABCD" + whole[72:])
    one_line(run(*words, code=None), "is no journal of a dispatcher")
    file.write_bytes(whole)
    process = begin(*words)
    process.kill()
    process.communicate()


server = tap_server() if os.environ.get("HEADRACE_TEST_JOURNAL") == "postgres" else None
main()
