"""A service runs the first part of a graph, the client the rest: the same bytes, order, states and bad records."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(__file__))
from service_support import Service, digest, killed_run, token_file
from support import at_place, graph, main, one_line, photos, run, run_json, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(2**32)))
print(f"# HEADRACE_TEST_SEED={seed}", flush=True)
EPOCHS = 16

numbers = """pipeline:
  - source.range: {n: 3000}
  - order.shuffle: {}
"""
keep_some = "  - record.filter: {expr: \"value % 3 != 1\"}\n"
batches = "  - batch.stack: {size: 10}\n"


def images(folder):
    return f"""pipeline:
  - source.files: {{path: {folder}, labels: folder}}
  - order.shuffle: {{}}
  - image.decode: {{}}
"""


augment = """  - image.random_resized_crop: {size: 32}
  - image.flip: {p: 0.5}
  - image.normalize: {mean: imagenet, std: imagenet}
"""
one_label_less = "  - record.filter: {expr: \"label != 1\"}\n"


def texts():
    path = temp / "texts.txt"
    path.write_text("".join(f"line {i} of some {'words ' * (i % 7)}\n" for i in range(500)))
    return f"""pipeline:
  - source.lines: {{path: {path}}}
  - order.shuffle: {{}}
  - text.split: {{to: words}}
"""


def listed():
    """Token ids in lists of 1 to 30."""
    words, lines = temp / "vocab.txt", temp / "lists.txt"
    words.write_text("[UNK]\na\nb\nc\n")
    lines.write_text("".join("abc"[i % 3] + " c" * (i * 7 % 30) + "\n" for i in range(800)))
    return f"""pipeline:
  - source.lines: {{path: {lines}}}
  - order.shuffle: {{}}
  - text.tokenize_wordpiece: {{vocab: {words}}}
"""


def graphs():
    return {"filter": numbers + keep_some + batches,
            "window": numbers + keep_some + "  - order.shuffle: {window: 100}\n" + batches,
            "take": numbers + keep_some + "  - order.take: {count: 100}\n" + batches,
            "expansion": numbers + batches + "  - batch.unbatch: {}\n" + batches.replace("10", "7"),
            "crops": images(photos()) + "  - image.resize: {size: [40, 50]}\n  - image.five_crop: {size: 20}\n" + batches,
            "packer": listed() + "  - tokens.pack: {length: 64}\n" + batches,
            "buckets": listed() + "  - batch.bucket: {boundaries: [8, 20], size: 7}\n",
            "text": texts() + "  - batch.stack: {size: 7}\n  - batch.unbatch: {}\n" + batches,
            "augmented": images(photos()) + augment + one_label_less + batches,
            "inside a group": images(photos()) + one_label_less + augment + batches,
            "single records": images(photos()) + augment + one_label_less}


@test
def whatever_follows_the_first_part_gives_the_same_bytes():
    files = {name: graph(f"{name}.yaml".replace(" ", "_"), text) for name, text in graphs().items()}
    ways = [["--epochs", 2, "--seed", 5], ["--limit", 33], ["--rank", 1, "--world", 3, "--even", "drop"]]
    ranks = 2  # of which no service can divide what `take` keeps
    wanted = {(name, at): digest(file, *words) for name, file in files.items() for at, words in enumerate(ways)
              if at != ranks or name != "take"}
    for workers in (1, 2):
        with Service(workers) as service:
            for (name, at), right in wanted.items():
                assert digest(files[name], *ways[at], "--service", service.address) == right, (name, ways[at])
            at_place(run("run", files["take"], "--rank", 1, "--world", 3, "--service", service.address, code=None),
                     "  - order.take: {count: 100}", "order.take", "ranks divide what it makes")


@test
def a_cut_may_be_named():
    text = graph("named.yaml", images(photos()) + augment + one_label_less + batches)
    wanted = digest(text)
    with Service(1) as service:
        for node in ["order.shuffle", "image.normalize"]:
            assert digest(text, "--service", service.address, "--service-after", node) == wanted, node
        whole = graph("whole.yaml", numbers + batches)
        for node in ["order.shuffle", "batch.stack"]:
            assert digest(whole, "--service", service.address, "--service-after", node) == digest(whole), node


@test
def a_run_says_where_it_was_cut_and_why():
    inside = images(photos()) + "  - image.random_resized_crop: {size: 32}\n" + one_label_less
    cases = [(numbers + batches, [], None),
             (images(photos()) + augment + one_label_less + batches, [], "'image.normalize', not 'record.filter': how many"),
             (images(photos()) + augment + one_label_less + batches, ["--service-after", "order.shuffle"], "'order.shuffle', as asked"),
             (inside + augment.split("\n", 1)[1] + batches, [],
              "'order.shuffle', not 'image.decode', which would need 'record.filter' there, too: how many records")]
    with Service(1) as service:
        for number, (text, more, said) in enumerate(cases):
            words = [graph(f"said{number}.yaml", text), "--service", service.address, *more]
            cut = run_json("run", *words)["cut"]
            assert cut is None if said is None else said in cut, (cut, said)
            assert said is None or cut in run("run", *words).stdout


@test
def where_a_graph_cannot_be_cut_says_why():
    text = graph("refused.yaml", images(photos()) + augment + one_label_less + batches)
    at = ["--service", "127.0.0.1:1", "--service-after"]
    at_place(run("run", text, *at, "image.decode", code=None), "  - image.random_resized_crop: {size: 32}",
             "image.random_resized_crop", "in one piece", "image.decode")
    at_place(run("run", text, *at, "record.filter", code=None), "  - record.filter: {expr: \"label != 1\"}",
             "record.filter", "depends on the data")
    shuffled = graph("orders.yaml", numbers + "  - order.take: {count: 100}\n" + keep_some + batches)
    at_place(run("run", shuffled, *at, "source.range", code=None), "  - order.shuffle: {}", "order.shuffle", "by number")
    one_line(run("run", text, *at, "nothing", code=None), "'nothing'")
    one_line(run("run", text, "--service-after", "image.decode", code=2), "--service")


def spoil(folder, victims, bytes=100):
    if not folder.exists():
        run("synth", "photos", folder, "--count", 60, "--classes", 2, "--width", 64, "--height", 64, "-q")
        for victim in sorted(folder.rglob("*.jpg"))[5:5 + 11 * victims:11]:
            victim.write_bytes(victim.read_bytes()[:bytes])
    return folder


@test
def bad_records_keep_their_identity_and_place():
    text = graph("bad.yaml", images(spoil(temp / "bad", 4)) + augment + "  - record.filter: {expr: \"label < 5\"}\n" + batches)
    with Service(2) as service:
        for policy in ["fail", "skip", "substitute"]:
            here, there = temp / f"{policy}.here", temp / f"{policy}.there"
            words = ["run", text, "-q", "--errors", policy, "--epochs", 2, "--digest"]
            local = run(*words, "--bad-records", here, code=None)
            remote = run(*words, "--bad-records", there, "--service", service.address, code=None)
            assert (local.returncode, local.stdout, local.stderr) == (remote.returncode, remote.stdout, remote.stderr)
            assert (local.returncode == 0) == (policy != "fail")
            assert here.read_text() == there.read_text(), policy
            assert here.read_text().count("\n") == (1 if policy == "fail" else 8)


@test
def a_bad_record_that_is_dropped_after_the_cut_is_not_bad():
    """Pixels that cannot be made are not needed where a filter drops their record."""
    folder = spoil(temp / "cut_short", 4, bytes=1200)
    blur = "  - image.gaussian_blur: {size: 3}\n  - image.resize: {size: [32, 32]}\n"
    text = graph("dropped.yaml", images(folder) + one_label_less + blur + batches)
    kept = graph("kept.yaml", images(folder) + blur + one_label_less + batches)
    lines = []
    with Service(1) as service:
        for file in [text, kept]:
            here, there = temp / f"{file.stem}.here", temp / f"{file.stem}.there"
            words = ["run", file, "-q", "--errors", "skip", "--digest", "--bad-records"]
            assert run(*words, here).stdout == run(*words, there, "--service", service.address, "--service-after",
                                                   "image.decode").stdout
            assert here.read_text() == there.read_text(), file
            lines.append(here.read_text().count("\n"))
    assert 0 < lines[0] < lines[1], lines


@test
def no_record_is_blamed_for_the_service():
    text = graph("outside.yaml", images(spoil(temp / "bad", 4)) + augment + "  - record.filter: {expr: \"label < 5\"}\n" + batches)
    token = ["--token-file", token_file("token", "t" * 32)]
    with Service(1, options=token, worker_options=token) as service:
        for policy in ["fail", "skip"]:
            ledger = temp / f"outside-{policy}.jsonl"
            done = run("run", text, "-q", "--errors", policy, "--bad-records", ledger, "--service", service.address, code=1)
            one_line(done, "headrace: the dispatcher refuses this client: a token is needed")
            assert "node" not in done.stderr and "record" not in done.stderr, done.stderr
            assert ledger.read_text() == "", ledger.read_text()


@test
def a_service_resumes_at_the_end_of_a_share():
    text = graph("odd.yaml", """pipeline:
  - source.range: {n: 45}
  - batch.stack: {size: 7}
""")
    state = temp / "odd.state"
    words = ["run", text, "--rank", 0, "--world", 2, "--even", "repeat", "-q", "--state", state,
             "--bad-records", temp / "odd.jsonl"]
    run(*words)
    saved = state.read_text()
    wanted = run(*words, "--epochs", 3, "--digest").stdout
    with Service(2) as service:
        state.write_text(saved)
        assert run(*words, "--epochs", 3, "--digest", "--service", service.address).stdout == wanted


@test
def states_resume_with_and_without_a_service():
    text = graph("resumed.yaml", numbers + keep_some + "  - order.shuffle: {window: 50}\n" + batches)
    wanted = temp / "resumed.txt"
    run("run", text, "--epochs", 3, "-q", "--batch-digests", wanted)
    with Service(2) as service:
        state, got = temp / "resumed.state", temp / "resumed.got"
        for turn in range(6):
            words = ["--service", service.address] if turn % 2 == 0 else []
            run("run", text, "--epochs", 3, "-q", "--state", state, "--batch-digests", got, "--limit", 1110 * (turn + 1), *words)
        assert got.read_text() == wanted.read_text()


slow = images("%s") + """  - image.random_resized_crop: {size: 48}
  - image.gaussian_blur: {size: 9, sigma: [1.0, 2.0]}
""" + one_label_less + "  - batch.stack: {size: 4}\n"


@test
def whoever_is_killed_no_record_is_lost_or_repeated():
    text = graph("slow.yaml", slow % photos())
    wanted = temp / "slow.txt"
    run("run", text, "--epochs", EPOCHS, "-q", "--batch-digests", wanted)
    rng = random.Random(f"{seed}")
    with Service(2) as service:
        got, kills = killed_run(rng, service, text, EPOCHS, ["worker", "client", "dispatcher"])
        assert got == wanted.read_text(), "records were lost or repeated"
    print(f"# {kills} kills", flush=True)


main()
