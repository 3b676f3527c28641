"""headrace run: the report, the digest, stopping, resuming, and unwritable outputs."""

import gzip
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from support import at_place, example, graph, main, one_line, photos, run, run_json, start, temp, test

keys = {
    "records": int,
    "batches": int,
    "bytes": int,
    "seconds": float,
    "records_per_second": float,
    "first_batch_seconds": float,
    "cpu_seconds": float,
    "peak_rss_bytes": int,
    "errors": int,
}


def vision(*more):
    return [
        "run",
        example("vision_rrc.yaml"),
        "-p",
        f"data={photos()}",
        "-p",
        "labels=folder",
        "-p",
        "size=32",
        "-p",
        "batch=7",
        *more,
    ]


def slow(n=400, ms=2):
    """Numbers with a delay, in batches of 5."""
    return graph(
        f"slow{n}.yaml",
        f"pipeline:\n  - source.range: {{n: {n}}}\n  - order.shuffle: {{}}\n"
        f"  - debug.sleep: {{ms: {ms}}}\n  - batch.stack: {{size: 5}}\n",
    )


@test
def json_is_one_object_with_its_keys():
    done = run(*vision("--json", "--digest"))
    result = json.loads(done.stdout)
    for key, kind in keys.items():
        assert isinstance(result[key], (int, float) if kind is float else kind), key
    assert done.stdout.count("\n") == 1 and result["status"] == "complete"
    assert result["records"] == 40 and result["batches"] == 6 and len(result["digest"]) == 32
    assert result["bytes"] == 40 * (8 + 3 * 32 * 32 * 4)
    assert result["steady"]["records"] == 40 - 3 * 7 and result["steady"]["seconds"] > 0, result["steady"]
    names = [node["node"] for node in result["nodes"]]
    assert names[0] == "source.files" and names[-1] == "batch.stack"
    assert all({"op", "records", "seconds", "fused_into"} <= set(node) for node in result["nodes"])
    for node in result["nodes"]:
        assert 0 <= node["worker_seconds"] <= node["seconds"] and node["wait_seconds"] >= 0, node
        assert node["record_ns"] >= 0 and node["record_ns_variance"] >= 0, node
        assert sum(node["bytes"].values()) >= node["bytes_out"], node
    assert sum(node["seconds"] for node in result["nodes"]) <= 1.02 * result["cpu_seconds"], result


@test
def a_demand_is_met_with_fewer_threads_and_the_same_bytes():
    many = slow(4800, 10)  # 6 s with all threads: a change is due within 5, however noisy the machine
    whole = run_json("run", many, "--threads", "8", "--digest")
    # Of what this machine makes: beside much work a record takes more than its 10 ms.
    demand = int(whole["steady"]["records"] / whole["steady"]["seconds"] / 3)
    result = run_json("run", many, "--threads", "8", "--digest", "--demand", demand)
    assert result["digest"] == whole["digest"]
    assert whole["demand"] == 0 and whole["threads_used"] == 8 and whole["threads_reason"] is None, whole
    assert result["demand"] == demand and result["threads_used"] < 8 and result["thread_changes"] >= 1, result
    assert "records/s are wanted" in result["threads_reason"]
    done = run("run", slow(100, 10), "--threads", "8", "--demand", "100")
    assert "demand of 100 records/s: " in done.stdout and " used, " in done.stdout, done.stdout
    assert run("run", slow(), "--demand", "0", code=2).stderr


@test
def the_text_report_names_every_node():
    text = run(*vision()).stdout
    assert "40 records" in text and "image.random_resized_crop" in text and "records/s" in text, text
    assert run(*vision("--quiet")).stdout == ""


@test
def the_digest_covers_the_bytes_in_order():
    graph("three.yaml", "pipeline:\n  - source.range: {n: 3}\n  - batch.stack: {size: 2}\n")
    whole = run("run", "three.yaml", "-q", "--digest").stdout.strip()
    again = run("run", "three.yaml", "-q", "--digest", "--variant", "inline").stdout.strip()
    assert whole == again and len(whole) == 32


@test
def class_numbers_are_no_pixels():
    """An image whose levels are class numbers is cast as numbers, with a cache after it or not."""
    steps = ["record.classes: {field: image, classes: [sky, road]}", "tensor.cast: {dtype: float32}"]
    digests = set()
    for more in ([], ["flow.cache: {}"]):
        graph("classes.yaml", f"pipeline:\n  - source.files: {{path: {photos()}}}\n  - image.decode: {{}}\n" +
              "".join(f"  - {step}\n" for step in [*steps, *more, "batch.pad: {size: 4}"]))
        digests.add(run("run", "classes.yaml", "-q", "--digest").stdout.strip())
    graph("numbers.yaml", f"pipeline:\n  - source.files: {{path: {photos()}}}\n  - image.decode: {{}}\n"
          "  - tensor.cast: {dtype: float32, scale: false}\n  - batch.pad: {size: 4}\n")
    digests.add(run("run", "numbers.yaml", "-q", "--digest").stdout.strip())
    assert len(digests) == 1, digests


@test
def one_digest_for_any_threads_and_variant():
    digests = {
        run_json(*vision("--digest", "--epochs", 2, *more))["digest"]
        for more in (
            ["--threads", 1],
            ["--threads", 2],
            ["--threads", 3],
            ["--threads", 8],
            ["--variant", "inline"],
            ["--variant", "processes", "--threads", 2],
        )
    }
    assert len(digests) == 1, digests


@test
def a_plan_is_written_and_runs_as_written_or_edited():
    whole = run_json(*vision("--digest"))["digest"]
    words = vision()[1:]
    for name in ("plan.yaml", "plan.json"):
        run("plan", *words, "-o", name)
        assert run_json(*vision("--digest", "--plan", name))["digest"] == whole
        assert run("plan", *words, "--plan", name, *(["--json"] if name.endswith("json") else [])).stdout == (
            temp / name
        ).read_text() + ("\n" if name.endswith("json") else "")
    text = (temp / "plan.yaml").read_text()
    for edit in (
        ("chunk_records: 4096", "chunk_records: 1"),
        ("parallelism: ", "parallelism: 1 #"),
        ("threads: ", "threads: 7 #"),
        ("threads: ", "threads: 0 #"),
    ):
        (temp / "edited.yaml").write_text(text.replace(*edit, 1))
        assert run_json(*vision("--digest", "--plan", "edited.yaml"))["digest"] == whole, edit
    assert "0 stages" not in run("explain", *words, "--plan", "plan.yaml").stdout


@test
def explain_prints_the_plan_that_runs():
    words = vision()[1:]
    options = ["--threads", 3, "--memory", "90MB", "--ahead", "2MB", "--ordered", "false"]
    shown = json.loads(run("explain", *words, "--json", *options).stdout)
    assert shown == json.loads(run("plan", *words, "--json", *options).stdout)
    assert shown["threads"] == 3 and shown["memory"]["budget"] == 90000000 and not shown["ordered"]
    assert shown["memory"]["read_ahead"] == 2000000 and shown["memory"]["total"] <= 90000000


@test
def a_wrong_plan_names_its_place_and_is_bad_usage():
    words = vision()[1:]
    run("plan", *words, "-o", "plan.yaml")
    text = (temp / "plan.yaml").read_text()
    for number, line in enumerate(text.splitlines(), 1):
        if "chunk_ns" in line:
            break
    (temp / "wrong.yaml").write_text(text.replace("chunk_ns: ", "chunk_ns: minus "))
    at_place(
        run("run", *words, "--plan", "wrong.yaml", code=2),
        line.replace("chunk_ns: ", "chunk_ns: minus "),
        "minus",
        f"wrong.yaml:{number}:{len('    chunk_ns: ') + 1}: ",
        "whole number",
    )
    (temp / "wrong.yaml").write_text(text.replace("node: image.flip", "node: image.flop"))
    wrong = next(line for line in text.splitlines() if "node: image.flip" in line).replace("flip", "flop")
    at_place(run("explain", *words, "--plan", "wrong.yaml", code=2), wrong, "image.flop", "wrong.yaml:", "image.flip")
    (temp / "wrong.yaml").write_text("stages: [")
    one_line(run("plan", *words, "--plan", "wrong.yaml", code=2), "wrong.yaml:")
    one_line(run("run", *words, "--plan", "none.yaml", code=2), "none.yaml")
    one_line(run("run", *words, "--plan", "plan.yaml", "--threads", 2, code=2), "--plan excludes")
    made_for = text.splitlines()[1]
    at_place(
        run("run", *words[:1], *words[1:3], "--plan", "plan.yaml", code=2),
        made_for,
        made_for.split()[1],
        "another graph",
    )


@test
def two_views_of_a_photo_are_the_same_with_any_threads():
    views = ["run", example("simclr_views.yaml"), "-p", f"data={photos()}", "-p", "size=40", "-p", "batch=7"]
    digests = {
        run_json(*views, "--digest", "--epochs", 2, *more)["digest"]
        for more in (["--threads", 1], ["--threads", 3], ["--variant", "inline"])
    }
    assert len(digests) == 1, digests
    assert "other views have not decoded" in run("explain", *views[1:]).stdout


@test
def fusion_changes_no_byte_in_any_mode():
    for mode in ("exact", "close", "fast"):
        digests = {run_json(*vision("-p", f"mode={mode}", "--digest", *more))["digest"] for more in ([], ["--no-fuse"])}
        assert len(digests) == 1, (mode, digests)


@test
def explain_says_which_steps_cannot_run_alone():
    exact, close = (
        run("explain", "--no-fuse", *vision("-p", f"mode={mode}")[1:]).stdout for mode in ("exact", "close")
    )
    assert "runs alone, as asked" in exact and "stays with" not in exact, exact
    assert "stays with 'image.decode'" in close, close


@test
def instruction_sets_change_no_byte():
    digests = {
        run_json(*vision("--digest"), env={"HEADRACE_ISA": isa})["digest"] for isa in ("c", "avx2", "avx512", "neon")
    }
    assert len(digests) == 1, digests


@test
def other_seeds_and_epochs_give_other_bytes():
    digests = [run_json(*vision("--digest", *more))["digest"] for more in ([], ["--seed", 1], ["--epoch", 1])]
    assert len(set(digests)) == 3, digests


@test
def limit_stops_after_that_many_records():
    result = run_json("run", example("noop.yaml"), "-p", "n=100000", "--limit", 1000)
    assert result["records"] == 1000, result["records"]


@test
def a_limit_costs_as_many_records_as_it_says():
    for limit in (1, 10):
        for more in (["--threads", 4], ["--variant", "inline"], ["--variant", "processes"], ["--errors", "substitute"]):
            result = run_json(*vision("--limit", limit, *more))
            counts = {node["node"]: node["records"] for node in result["nodes"]}
            assert result["records"] == limit, (limit, more, result["records"])
            assert counts["source.files"] == counts["image.decode"] == limit, (limit, more, counts)


@test
def every_example_runs():
    for name in ("vision_rrc.yaml", "vision_eval.yaml", "simclr.yaml", "simclr_views.yaml"):
        result = run_json("run", example(name), "-p", f"data={photos()}", "-p", "batch=8", "-p", "size=40")
        assert result["records"] == 40, name
    for name, more in (("recipe_simclr.yaml", "blur=5"), ("recipe_dino.yaml", "small=24")):
        result = run_json("run", example(name), "-p", f"data={photos()}", "-p", "batch=8", "-p", "size=40", "-p", more)
        assert result["records"] == 40, name
    assert run_json("run", example("noop.yaml"), "-p", "n=1000")["batches"] == 4


@test
def a_killed_run_keeps_the_seek_points_of_its_epochs():
    folder, index = temp / "large photos", temp / "learnt.index"
    run("synth", "photos", folder, "--count", 20, "--width", 400, "--height", 300, "-q")
    crops = graph(
        "crops.yaml",
        f"pipeline:\n  - source.files: {{path: '{folder}', index: '{index}'}}\n"
        "  - image.decode: {}\n  - image.random_resized_crop: {size: 32, scale: [0.3, 0.6]}\n"
        "  - debug.sleep: {ms: 5}\n  - batch.stack: {size: 5}\n",
    )
    running = start("run", crops, "--epochs", 0, "-q")
    knows = "has seek points in 20 JPEGs"
    end = time.monotonic() + 60
    while knows not in run("explain", crops).stdout and time.monotonic() < end:
        time.sleep(0.05)
    assert running.poll() is None, running.stderr.read()
    running.kill()
    running.wait()
    assert knows in run("explain", crops).stdout
    kept = [node["kept"] for node in run_json("run", crops, "-q")["nodes"] if "kept" in node]
    assert len(kept) == 1 and kept[0]["hits"] >= 15 and kept[0]["entries"] == 20, kept
    assert kept[0]["hits"] + kept[0]["misses"] == 20 and kept[0]["bytes"] > 0, kept
    text = run("explain", crops).stdout
    assert "windows decoded" in text and "% of a photo instead of" in text, text


@test
def digits_come_from_idx_files_plain_or_gzipped():
    pictures = bytes([0, 0, 8, 3]) + struct.pack(">3I", 100, 28, 28) + random.Random(1).randbytes(100 * 28 * 28)
    labels = bytes([0, 0, 8, 1]) + struct.pack(">I", 100) + bytes(i % 10 for i in range(100))
    digests = set()
    for name, write in ("idx", bytes), ("idx.gz", gzip.compress):
        (temp / ("pictures." + name)).write_bytes(write(pictures))
        (temp / ("labels." + name)).write_bytes(write(labels))
        result = run_json(
            "run",
            example("mnist.yaml"),
            "-p",
            f"images={temp}/pictures.{name}",
            "-p",
            f"labels={temp}/labels.{name}",
            "--digest",
        )
        assert result["records"] == 100 and result["batches"] == 2, result
        digests.add(result["digest"])
    assert len(digests) == 1, digests


@test
def the_minimal_c_program_runs():
    text = graph("tiny.yaml", "pipeline:\n  - source.range: {n: 5}\n  - batch.stack: {size: 2}\n")
    tinyrace = os.path.join(os.path.dirname(sys.argv[1]), "tinyrace")
    done = subprocess.run([tinyrace, text], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("records") == 3, done


@test
def unwritable_outputs_are_reported_before_the_run():
    for option in ("--state", "--trace", "--batch-digests"):
        one_line(run(*vision(option, temp / "absent/file"), code=1), "absent/file", "No such file")
    one_line(run(*vision("--trace", temp), code=1), "folder")
    assert run(*vision("--bad-records", temp / "absent/bad.jsonl"), code=None).returncode in (1, 2)


@test
def memory_below_one_batch_is_refused():
    done = run(*vision("--memory", "1k"), code=2)
    one_line(done, "memory")


@test
def the_trace_says_which_op_ran_for_which_record_and_batch_and_when_the_consumer_waited():
    for threads in (1, 3):
        run(*vision("--trace", temp / "trace.json", "-q", "--threads", threads))
        events = json.loads((temp / "trace.json").read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        records = [e for e in spans if e["name"] == "record"]
        assert sorted(e["args"]["position"] for e in records) == list(range(40))
        for e in records:
            assert e["args"]["batch"] == e["args"]["position"] // 7 and e["args"]["thread"] == e["tid"], e
        ops = [e for e in spans if "op" in e["args"]]
        assert {e["args"]["op"] for e in ops} >= {"source.files", "image.decode", "batch.stack"}
        for e in ops:
            whole = next(r for r in records if r["args"]["position"] == e["args"]["position"])
            assert e["tid"] == whole["tid"] and whole["ts"] - 0.01 <= e["ts"], (e, whole)
            assert e["ts"] + e["dur"] <= whole["ts"] + whole["dur"] + 0.01, (e, whole)


@test
def the_trace_has_the_waits_of_the_consumer():
    for threads in (1, 2):
        result = run_json("run", slow(40), "--trace", temp / "waits.json", "--threads", threads)
        events = json.loads((temp / "waits.json").read_text())["traceEvents"]
        waits = [e for e in events if e.get("cat") == "consumer"]
        assert all(e["name"] == "wait" and e["args"]["batch"] <= 8 and e["tid"] == threads for e in waits), waits
        assert bool(waits) == (result["wait_seconds"] > 0), result["wait_seconds"]


@test
def ctrl_c_stops_cleanly_and_keeps_the_state():
    state = temp / "stop.state"
    run_ = start("run", slow(), "--state", state, "--json")
    time.sleep(0.4)
    run_.send_signal(signal.SIGINT)
    out, err = run_.communicate(timeout=30)
    assert run_.returncode == 130, (run_.returncode, err)
    first = json.loads(out)
    assert first["status"] == "interrupted" and 0 < first["records"] < 400 and "state" in err, first
    second = run_json("run", slow(), "--state", state)
    assert second["resumed"] and first["records"] + second["records"] == 400, (first, second)
    third = run("run", slow(), "--state", state, "--json")
    assert json.loads(third.stdout)["records"] == 0 and "already complete" in third.stderr, third


@test
def a_second_ctrl_c_kills_the_process():
    run_ = start("run", slow(40, 1500), "--threads", 1)
    time.sleep(0.3)
    run_.send_signal(signal.SIGINT)
    time.sleep(0.1)
    run_.send_signal(signal.SIGINT)
    run_.communicate(timeout=30)
    assert run_.returncode in (-signal.SIGINT, 130), run_.returncode


@test
def killed_runs_resume_with_the_same_bytes():
    """Batches after the last saved state are delivered again; otherwise the lists must match."""
    run("run", slow(), "--batch-digests", temp / "whole", "-q")
    whole = (temp / "whole").read_text().splitlines()
    seen, state = [], temp / "kill.state"
    for attempt in range(40):
        log = temp / f"part{attempt}"
        run_ = start(
            "run",
            slow(),
            "--state",
            state,
            "--save-every",
            1,
            "--batch-digests",
            log,
            "-q",
            "--threads",
            random.choice("123"),
        )
        try:
            run_.communicate(timeout=random.uniform(0.05, 0.3) if attempt < 12 else 60)
        except subprocess.TimeoutExpired:
            run_.kill()
            run_.communicate()
        seen += log.read_text().splitlines() if log.exists() else []
        if run_.returncode == 0:
            break
    assert set(seen) == set(whole), "batches differ from those of an uninterrupted run"
    order = [whole.index(line) for line in seen]
    assert all(b <= a + 1 for a, b in zip(order, order[1:])), "a batch was skipped"
    assert all(a - b <= 1 for a, b in zip(order, order[1:])), "more than one batch was repeated"
    left = [one.name for one in temp.iterdir() if "kill.state" in one.name]
    assert left == ["kill.state"], f"killed runs left {left}"


@test
def a_killed_run_leaves_no_file_beside_its_state():
    """Killed while it writes the state, which it does most of the time."""
    fast = graph("fast.yaml", "pipeline:\n  - source.range: {n: 10000000}\n  - batch.stack: {size: 5}\n")
    folder = temp / "killed"
    folder.mkdir()
    for _ in range(20):
        run_ = start("run", fast, "--state", folder / "state", "--save-every", 1, "-q")
        try:
            run_.communicate(timeout=random.uniform(0.05, 0.15))
        except subprocess.TimeoutExpired:
            run_.kill()
            run_.communicate()
        left = {one.name for one in folder.iterdir()} - {"state"}
        assert left <= {".state.headrace"}, left  # whole, and replaced by the next run


@test
def a_wrong_state_is_refused_and_kept():
    state = temp / "wrong.state"
    state.write_text("no state at all")
    done = run("run", slow(), "--state", state, code=2)
    assert state.read_text() == "no state at all" and "state" in done.stderr, done.stderr


@test
def a_state_of_another_graph_is_refused():
    state = temp / "other.state"
    run("run", example("noop.yaml"), "-p", "n=1000", "--state", state, "-q")
    before = state.read_text()
    run("run", slow(), "--state", state, code=2)
    assert state.read_text() == before


@test
def bad_records_follow_the_policy():
    folder = temp / "damaged"
    if not folder.exists():
        run("synth", "photos", folder, "--count", 20, "--classes", 1, "--width", 80, "--height", 60, "-q")
        for number in (3, 11):
            photo = folder / f"balloon/photo_{number:08}.jpg"
            photo.write_bytes(photo.read_bytes()[:200])
    args = [
        "run",
        example("vision_eval.yaml"),
        "-p",
        f"data={folder}",
        "-p",
        "batch=4",
        "-p",
        "size=32",
        "-p",
        "resize=32",
    ]
    failed = run(*args, code=1)
    assert "photo_00000003" in failed.stderr, failed.stderr
    ledger = temp / "bad.jsonl"
    skipped = run_json(*args, "--errors", "skip", "--bad-records", ledger)
    assert skipped["records"] == 18 and skipped["errors"] == 2, skipped
    assert "photo_00000011" in ledger.read_text() and len(ledger.read_text().splitlines()) == 2
    assert all(json.loads(line)["node"] for line in ledger.read_text().splitlines())
    replaced = run_json(*args, "--errors", "substitute")
    assert replaced["records"] == 20 and replaced["errors"] == 2, replaced
    for policy in ("skip", "substitute"):
        digests = {run_json(*args, "--errors", policy, "--digest", "--threads", t)["digest"] for t in (1, 2, 3)}
        assert len(digests) == 1, (policy, digests)


def cached(cache):
    return graph(
        "cached.yaml",
        f"pipeline:\n  - source.files: {{path: '{photos()}'}}\n  - order.shuffle: {{}}\n"
        "  - image.decode: {}\n  - image.resize: {size: 32}\n"
        f"  - flow.cache: {{{cache}}}\n  - image.flip: {{p: 0.5}}\n  - batch.stack: {{size: 8}}\n",
    )


@test
def a_cache_spares_work_and_changes_no_byte():
    args = ["run", cached(f"folder: '{temp / 'kept'}'"), "--epochs", "2", "--digest"]
    plain = run_json(*args, "--no-cache")
    assert [n["records"] for n in plain["nodes"] if n["op"] == "image.decode"] == [80]
    assert not any("kept" in n for n in plain["nodes"] if n["op"] == "flow.cache"), plain
    for again in (False, True):
        result = run_json(*args)
        assert result["digest"] == plain["digest"], (again, result)
        (decoded,) = [n["records"] for n in result["nodes"] if n["op"] == "image.decode"]
        assert decoded == 0 if again else 40 <= decoded < 60, decoded
    assert "keeps" not in run(*args).stdout


@test
def a_full_cache_is_reported_with_the_reason():
    args = ["run", cached(f"folder: '{temp / 'small'}', budget: 30kB"), "--epochs", "2"]
    done = run(*args)
    assert "records and no more, because its budget of 30 kB is used up" in done.stdout, done.stdout
    (note,) = [n["note"] for n in run_json(*args)["nodes"] if "note" in n]
    assert note.startswith("it keeps ") and "30 kB" in note, note


@test
def a_failure_with_json_still_gives_one_object():
    wrong = graph(
        "fails.yaml", "pipeline:\n  - source.range: {n: 9}\n  - debug.fail: {at: [4]}\n  - batch.stack: {size: 3}\n"
    )
    done = run("run", wrong, "--json", code=1)
    result = json.loads(done.stdout)
    assert result["status"] == "failed" and result["error"] in done.stderr, done


main()
