"""headrace pack: the same records in every format, whole after kills, the same files for any number of threads."""
import gzip
import json
import os
import random
import shutil
import signal
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(__file__))
from support import graph, main, one_line, photos, run, run_json, start, temp, test

seed = int(os.environ.get("HEADRACE_TEST_SEED", random.randrange(1 << 32)))
print(f"# HEADRACE_TEST_SEED={seed}")
random.seed(seed)
STACK = "  - batch.stack: {size: 7}\n"


def files():
    return f"  - source.files: {{path: '{photos()}', labels: folder}}\n"


def pictures():
    return files() + "  - image.decode: {}\n  - image.random_resized_crop: {size: 24}\n  - image.normalize: {mean: half, std: half}\n"


def digest(name, text):
    return run_json("run", graph(name, "pipeline:\n" + text), "--digest")["digest"]


def shards(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def until(condition, running):
    """Waits for the condition while the process runs."""
    while not condition():
        assert running.poll() is None, running.communicate()
        time.sleep(0.005)


@test
def packed_records_give_the_digest_of_their_graph():
    sizes = files() + "  - image.decode: {}\n"  # each picture has its own size
    for name, text in ("crops", pictures()), ("files", files()), ("sizes", sizes):
        whole = graph(f"{name}.yaml", "pipeline:\n" + text + STACK.replace("stack", "pad" if name == "sizes" else "stack"))
        packed = run_json("pack", whole, "-o", f"packed {name}", "--shard-records", random.randrange(1, 50))
        assert packed["status"] == "complete" and packed["records"] == 40, packed
        back = f"  - source.records: {{path: 'packed {name}'}}\n" + whole.read_text().splitlines(True)[-1]
        assert run_json("run", whole, "--digest")["digest"] == digest("back.yaml", back), name


@test
def any_number_of_threads_writes_the_same_files():
    whole = graph("crops.yaml", "pipeline:\n" + pictures() + "  - order.shuffle: {}\n" + STACK)
    first = None
    for at, how in enumerate((["--threads", 1], ["--threads", 3], ["--variant", "inline"], ["--variant", "processes"])):
        run("pack", whole, "-o", f"same{at}", "--shard-bytes", "40k", *how)
        made = shards(temp / f"same{at}")
        assert len(made) > 5 and "part.json" in made and "part-000003.records" in made, made.keys()
        first = first or made
        assert made == first, how


@test
def a_killed_pack_continues_with_the_same_files():
    numbers = graph("slow.yaml", "pipeline:\n  - source.range: {n: 200}\n  - order.shuffle: {}\n  - debug.sleep: {ms: 1}\n")
    words = ["pack", numbers, "--shard-records", 11, "--limit", 150]
    run(*words, "-o", "whole")
    killed, folder = 0, temp / "killed"
    for attempt in range(1000):
        running = start(*words, "-o", folder, "--json")
        had = len(list(folder.glob("*.records"))) if folder.exists() else 0
        while running.poll() is None and not (killed < 8 and folder.exists() and len(list(folder.glob("*.records"))) > had):
            time.sleep(0.001)
        running.kill()
        out, err = running.communicate()
        if running.returncode == 0:
            break
        killed += 1
    assert running.returncode == 0, err
    assert json.loads(out)["records"] == 150 and json.loads(out)["resumed"] == (killed > 0), out
    made, wanted = shards(folder), shards(temp / "whole")
    assert made == wanted, [name for name in {**made, **wanted} if made.get(name) != wanted.get(name)]
    again = run(*words, "-o", folder)
    assert "complete already" in again.stdout, again
    assert not list(folder.glob("*.tmp-*"))


@test
def a_killed_append_leaves_what_is_there_and_continues():
    base = graph("base.yaml", "pipeline:\n  - source.range: {n: 30}\n")
    more = graph("more.yaml", "pipeline:\n  - source.range: {start: 1000, n: 120}\n  - order.shuffle: {}\n  - debug.sleep: {ms: 1}\n")
    words = ["--shard-records", random.choice([7, 11, 40]), "-o"]
    for folder in "quiet", "shot":
        run("pack", base, *words, folder)
    first = "  - order.take: {count: 30}\n" + STACK
    old = digest("read.yaml", "  - source.records: {path: quiet}\n" + first)
    run("pack", more, *words, "quiet", "--append")
    killed, folder, begun = 0, temp / "shot", False
    while True:
        # Once it has begun, it continues without --append, which adds nothing twice.
        running = start("pack", more, *words, folder, *([] if begun else ["--append"]), "--json")
        seen, wanted = set(os.listdir(folder)), random.randrange(1, 8)  # files that come up, temporary ones, too
        wanted += len(seen)
        while killed < 12 and running.poll() is None and len(seen) < wanted:
            seen.update(os.listdir(folder))
        if killed < 12:
            running.kill()
        out, err = running.communicate()
        begun = "earlier" in json.loads((folder / "part.json").read_text())
        assert digest("read.yaml", "  - source.records: {path: shot}\n" + first) == old, "older records are lost"
        if running.returncode == 0:
            break
        assert running.returncode == -signal.SIGKILL, err
        killed += 1
    assert json.loads(out)["records"] == 150 and json.loads(out)["records_earlier"] == 30, out
    made, wanted = shards(folder), shards(temp / "quiet")
    assert made == wanted, [name for name in {**made, **wanted} if made.get(name) != wanted.get(name)]
    again = run("pack", more, *words, folder)
    assert "complete already" in again.stdout, again


@test
def ctrl_c_stops_cleanly_and_the_same_command_continues():
    endless = graph("endless.yaml", "pipeline:\n  - source.range: {n: 50}\n  - debug.sleep: {ms: 1}\n")
    folder, done = temp / "endless", -1
    for _ in range(3):
        running = start("pack", endless, "-o", folder, "--epochs", 1 << 40, "--shard-records", 5, "--json")
        until(lambda: (folder / f"part-{done + 2:06d}.records").exists(), running)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
        assert running.returncode == 130 and "same command" in err, (running.returncode, err)
        result = json.loads(out)
        assert result["status"] == "interrupted" and result["shards"] > done + 1, result
        assert len(list(folder.glob("part-*"))) == result["shards"], "a shard is not whole"
        done = result["shards"]


@test
def archives_are_what_tar_and_webdataset_make_of_them():
    whole = graph("photos.yaml", "pipeline:\n" + files() + STACK)
    run("pack", whole, "-o", "tars", "--format", "tar", "--shard-records", 15, "--prefix", "train")
    with tarfile.open(temp / "tars/train-000002.tar") as archive:
        names = archive.getnames()
        label = archive.extractfile("00000030.label.cls").read()
    assert names[:2] == ["00000030.data.jpg", "00000030.label.cls"] and len(names) == 20 and label.isdigit(), names
    back = "  - source.tar: {path: 'tars', fields: {data: data.jpg, label: label.cls}}\n" + STACK
    assert run_json("run", whole, "--digest")["digest"] == digest("back.yaml", back)


@test
def tfrecord_files_hold_one_byte_string():
    one = graph("one.yaml", "pipeline:\n" + files() + "  - record.select: {fields: data}\n" + STACK)
    run("pack", one, "-o", "tfrecords", "--format", "tfrecord", "--shard-bytes", "30k")
    assert run_json("run", one, "--digest")["digest"] == digest("back.yaml", "  - source.tfrecord: {path: tfrecords}\n" + STACK)
    done = run("pack", graph("two.yaml", "pipeline:\n" + files()), "-o", "no", "--format", "tfrecord", code=None)
    assert done.returncode != 0
    one_line(done, "one byte string", "record.select")


@test
def what_cannot_be_packed_is_refused_with_what_works():
    whole = graph("crops.yaml", "pipeline:\n" + pictures() + STACK)
    for words, parts in (
            (["--at", "image.decod"], ["no node 'image.decod'", "image.decode"]),
            (["--at", "batch.stack"], ["batch.stack", "batches"]),
            (["--format", "tar"], ["image", "tar", "records"]),
            (["--prefix", "../up"], ["prefix"]),
            (["--prefix", ""], ["prefix"])):
        done = run("pack", whole, "-o", "refused", *words, code=None)
        assert done.returncode in (1, 2), done
        one_line(done, *parts)
    assert not list(temp.glob("up*")) and not list((temp / "refused").iterdir())
    run("pack", whole, "-o", "other", "-q")
    one_line(run("pack", whole, "-o", "other", "--seed", 1, code=None), "part.json", "other work", "seed 1")
    (temp / "other/part.json").unlink()
    one_line(run("pack", whole, "-o", "other", code=None), "part-000000.records", "exists")


@test
def a_node_in_the_middle_is_packed_with_the_same_draws():
    whole = graph("crops.yaml", "pipeline:\n" + pictures() + STACK)
    run("pack", whole, "-o", "middle", "--at", "image.random_resized_crop", "-q")
    back = "  - source.records: {path: middle}\n  - image.normalize: {mean: half, std: half}\n" + STACK
    assert run_json("run", whole, "--digest")["digest"] == digest("back.yaml", back)


@test
def damage_is_named_and_costs_one_record():
    run("pack", graph("photos.yaml", "pipeline:\n" + files()), "-o", "damaged", "-q")
    path = temp / "damaged/part-000000.records"
    assert "40 whole records, 0 damaged" in run("inspect", path).stdout
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 4
    path.write_bytes(whole)
    back = graph("back.yaml", "pipeline:\n  - source.records: {path: damaged}\n")
    found = run("inspect", path, code=1).stdout
    assert "39 whole records, 1 damaged" in found and "part-000000.records: byte" in found, found
    assert "part-000000.records: byte" in run("run", back, code=1).stderr
    assert run_json("run", back, "--errors", "skip")["records"] == 39
    whole[len(whole) // 2] ^= 4
    path.write_bytes(whole[:-30])
    assert run_json("run", back, "--errors", "skip")["records"] == 40


@test
def inspect_shows_archives_whole_damaged_and_compressed():
    run("pack", graph("photos.yaml", "pipeline:\n" + files()), "-o", "archives", "--format", "tar", "-q")
    path = temp / "archives/part-000000.tar"
    said = run("inspect", path).stdout
    assert "40 whole records, 0 damaged" in said and "data" in said and "label_cls" in said, said
    (temp / "a.tar.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    assert "40 whole records, 0 damaged" in run("inspect", temp / "a.tar.gz").stdout
    damaged = bytearray(path.read_bytes())
    at = damaged.index(b"00000007.")
    damaged[at] ^= 1
    path.write_bytes(damaged)
    said = run("inspect", path, code=1).stdout
    assert "39 whole records, 2 damaged" in said and f"part-000000.tar: byte {at}" in said, said


@test
def compressed_records_are_the_same_and_smaller():
    (temp / "texts.txt").write_text("".join(f"{i} {'the same words ' * (i % 40)}\n" for i in range(60)))
    source = graph("texts.yaml", "pipeline:\n  - source.lines: {path: texts.txt}\n")
    plain = run_json("pack", source, "-o", "plain")
    for way in (["--zstd", "3"], ["--lz4", "1"], ["--lz4", "12"]):
        compress_and_damage(source, plain, way)


def compress_and_damage(source, plain, way):
    for folder in ("small", "threads"):
        shutil.rmtree(temp / folder, ignore_errors=True)
    small = run_json("pack", source, "-o", "small", *way)
    run("pack", source, "-o", "threads", *way, "--threads", "3", "-q")
    first = "part-000000.records"
    assert (temp / "small" / first).read_bytes() == (temp / "threads" / first).read_bytes()
    assert small["bytes"] < 0.9 * plain["bytes"], (small["bytes"], plain["bytes"])
    back = "  - source.records: {path: %s}\n" + STACK
    assert digest("small.yaml", back % "small") == digest("plain.yaml", back % "plain")
    assert "60 whole records, 0 damaged" in run("inspect", temp / "small" / first).stdout
    limited = graph("limited.yaml", "pipeline:\n  - source.records: {path: small, unpacked_max: 400}\n")
    assert "more than unpacked_max (400)" in run("run", limited, code=1).stderr
    damaged = bytearray((temp / "small" / first).read_bytes())
    damaged[len(damaged) // 2] ^= 16
    (temp / "small" / first).write_bytes(damaged)
    said = run("inspect", temp / "small" / first, code=1).stdout
    assert "59 whole records, 1 damaged" in said, said


@test
def compression_is_of_the_container_and_of_a_level_that_exists():
    source = graph("range.yaml", "pipeline:\n  - source.range: {n: 3}\n")
    for more in (["--lz4", "13"], ["--lz4", "3", "--format", "tar"]):
        assert "lz4_level is 1 to 12" in run("pack", source, "-o", "refused", *more, code=2).stderr
    assert "not by both" in run("pack", source, "-o", "refused", "--lz4", "1", "--zstd", "1", code=2).stderr
    for more in (["--zstd", "20"], ["--zstd", "3", "--format", "tfrecord"]):
        assert "zstd_level is 1 to 19" in run("pack", source, "-o", "refused", *more, code=2).stderr
    run("pack", source, "-o", "level", "--zstd", "3", "-q")
    assert "other work" in run("pack", source, "-o", "level", "--zstd", "4", code=2).stderr


main()
