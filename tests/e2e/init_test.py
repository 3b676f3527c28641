"""headrace init, and run of data that has no graph: each layout of a folder, and what is refused."""
import gzip
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import wave

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support import at_place, headrace, main, one_line, photos, run, run_json, temp, test


def jpegs(count):
    """Some photos as bytes."""
    files = sorted(photos().rglob("*.jpg"))
    return [files[i % len(files)].read_bytes() for i in range(count)]


def fill(folder, names):
    """Writes a photo for each name below the folder."""
    for name, data in zip(names, jpegs(len(names))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def sound(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1), out.setsampwidth(2), out.setframerate(16000)
        out.writeframes(bytes(3200))


def npy(path, shape):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    bytes_ = 4
    for side in shape:
        bytes_ *= side
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(bytes_))


def proposed(data, records, *parts, absent=()):
    """Checks that init writes a graph for the data that has the parts, that the graph runs, and that run does the same."""
    target = temp / "proposed.yaml"
    target.unlink(missing_ok=True)
    said = run("init", data, "-o", target).stdout
    text = target.read_text()
    for part in parts:
        assert part in text, f"no '{part}' in:\n{text}"
    for part in absent:
        assert part not in text, f"'{part}' in:\n{text}"
    assert said.startswith(f"{target}: {text.splitlines()[0][2:]}\n"), said
    assert run("init", data).stdout == text
    small = [word for name, value in [("size", 32), ("batch", 4)] if f"\n  {name}: " in text for word in ("-p", f"{name}={value}")]
    by_graph = run_json("run", target, *small, "--digest", "-q")
    assert by_graph["status"] == "complete" and by_graph["records"] == records, by_graph
    done = run("run", data, *small, "--digest", "--json")
    by_data = json.loads(done.stdout)
    assert by_data["digest"] == by_graph["digest"] and by_data["fingerprint"] == by_graph["fingerprint"]
    assert text in done.stderr and f"headrace init {data} -o FILE" in done.stderr, done.stderr
    return text


@test
def photos_in_class_folders_have_labels():
    text = proposed(photos(), 40, "# 40 photos in 4 folders, one for each class", "labels: folder", "image.random_resized_crop")
    assert not run("run", photos(), "-p", "size=16", "-q").stderr  # quiet: the graph is not shown
    assert "size (int)" in run("run", photos(), "--help-params").stdout
    assert "image.decode" in run("explain", photos()).stdout and "image float32" in run("inspect", photos()).stdout
    assert "stages" in run("plan", photos()).stdout
    assert text.count("#") > 8


@test
def photos_without_classes_have_no_labels():
    flat = fill(temp / "flat", ["a.jpg", "b.JPG", "sub/c.jpg"])
    (flat / "README.txt").write_text("about\n")
    proposed(flat, 3, "# 3 photos without labels", absent=["labels: folder}"])
    one = fill(temp / "one folder", ["only/a.jpg", "only/b.jpg"])
    proposed(one, 2, "without labels")


@test
def the_training_set_is_taken_of_parts():
    parts = fill(temp / "parts", ["train/a/1.jpg", "train/b/1.jpg", "train/b/2.jpg", "val/a/1.jpg", "test/x.jpg"])
    proposed(parts, 3, f'default: "{parts}/train"', "labels: folder", "Only the training set")
    named = fill(temp / "named", ["train/1.jpg", "ship/1.jpg"])  # "train" is a class here
    proposed(named, 2, f'default: "{named}"', "labels: folder")


@test
def a_table_beside_photos_gives_labels():
    cats = fill(temp / "cats", ["img/1.jpg", "img/2.jpg", "img/3.jpg"])
    (cats / "train.csv").write_text('file,species,weight\n"1.jpg",cat,0.5\n2.jpg,dog,2\n3.jpg,cat,1\n')
    text = proposed(cats, 3, f'default: "{cats}/img"', f'default: "{cats}/train.csv"', 'path_column: "file"', 'label_column: ""')
    (cats / "train.csv").write_text("file,species\n1.jpg,cat\n2.jpg,dog\n")
    text = proposed(cats, 2, 'label_column: "species"', "skip: both", "do not match are left out")
    (cats / "train.csv").write_text("img/1.jpg,cat\nimg/2.jpg,dog\nimg/3.jpg,dog\n")  # no header, paths from the folder
    text = proposed(cats, 3, f'default: "{cats}"', absent=["path_column", "label_column", "skip"])
    (cats / "train.csv").unlink()
    (cats / "labels.jsonl").write_text("".join(json.dumps({"n": i, "file_name": f"{i}.jpg", "class": i}) + "\n" for i in (1, 2, 3)))
    text = proposed(cats, 3, "labels.jsonl", 'path_column: "file_name"', 'label_column: "class"')
    (cats / "labels.jsonl").write_text('{"file": "gone.jpg"}\n{"file": \n[[[\n')  # names no photo: it is not for them
    text = proposed(cats, 3, "without labels")
    assert "jsonl" not in text


@test
def boxes_come_from_coco_and_voc():
    coco = fill(temp / "coco", ["val2017/1.jpg", "train2017/2.jpg", "train2017/3.jpg"])
    (coco / "annotations").mkdir()
    for name, ids in (("train", [2, 3]), ("val", [1])):
        (coco / f"annotations/instances_{name}2017.json").write_text(json.dumps({
            "images": [{"id": i, "file_name": f"{i}.jpg"} for i in ids], "categories": [{"id": 5, "name": "dog"}],
            "annotations": [{"id": i, "image_id": i, "category_id": 5, "bbox": [1, 2, 30, 40]} for i in ids]}))
    (coco / "annotations/captions_train2017.json").write_text('{"images": [{"file_name": "2.jpg"}], "annotations": []}')
    proposed(coco, 2, "instances_train2017.json", f'default: "{coco}/train2017"', "boxes.sanitize", "ragged: true")
    voc = fill(temp / "voc", ["JPEGImages/a.jpg", "JPEGImages/b.jpg"])
    for folder in ("ImageSets/Main", "Annotations"):
        (voc / folder).mkdir(parents=True)
    one_line(run("init", voc, code=2), "no list train")
    (voc / "ImageSets/Main/trainval.txt").write_text("a\nb\n")
    for name in "ab":
        (voc / f"Annotations/{name}.xml").write_text(
            "<annotation><object><name>dog</name><bndbox><xmin>3</xmin><ymin>4</ymin><xmax>40</xmax><ymax>50</ymax></bndbox>"
            "</object></annotation>")
    proposed(voc, 2, "Pascal VOC: photos with boxes", "split: trainval", "image.iou_crop")


@test
def sounds_become_spectra():
    for name in ("yes/1.wav", "yes/2.WAV", "no/1.wav"):
        sound(temp / "words" / name)
    proposed(temp / "words", 3, "3 sounds in 2 folders", "suffixes: [wav]", "labels: folder", "audio.mel", "batch.pad",
             absent=["image."])


@test
def files_of_records_are_read_as_such():
    for kind, op in [("tar", "source.tar"), ("tfrecord", "source.tfrecord"), ("records", "source.records")]:
        graph = temp / "files.yaml"
        graph.write_text(f'headrace: 1\npipeline: [{{source.files: {{path: "{photos()}"}}}}]\n')
        words = ["--format", kind] if kind != "records" else []
        run("pack", graph, "-o", temp / f"packed-{kind}", *words, "-q")
        files = sorted((temp / f"packed-{kind}").glob(f"*.{kind}"))
        assert files, list((temp / f"packed-{kind}").iterdir())
        # photos are found by their bytes, in a folder and in a file
        proposed(temp / f"packed-{kind}", 40, op, "image.decode")
        proposed(files[0], 40, op, "image.decode")
    numbered = temp / "numbered"
    numbered.mkdir()
    shard = next((temp / "packed-tfrecord").glob("*.tfrecord"))
    for i in range(2):
        (numbered / f"train.tfrecord-0000{i}-of-00002").write_bytes(shard.read_bytes())
    proposed(numbered, 80, f'default: "{numbered}/*.tfrecord-*"', "image.decode")
    proposed(numbered / "train.tfrecord-00001-of-00002", 40, "source.tfrecord")


@test
def rows_and_lines_are_read_as_such():
    rows = temp / "rows"
    rows.mkdir()
    (rows / "a.jsonl").write_text('{"x": 1, "t": "one"}\n{"x": 2, "t": "two"}\n')
    proposed(rows, 2, "source.jsonl", "batch.stack")
    with gzip.open(rows / "a.jsonl.gz", "wt") as out:
        out.write('{"x": 3, "t": "three"}\n')
    proposed(rows / "a.jsonl.gz", 1, "source.jsonl")
    proposed(rows, 3, "source.jsonl", "2 JSON lines")
    (temp / "table.csv").write_text("a,b\n1,x\n2,y\n")
    proposed(temp / "table.csv", 2, "source.csv", "The records of table.csv")
    texts = temp / "texts"
    texts.mkdir()
    (texts / "a.txt").write_text("one\ntwo\n")
    (texts / "LICENSE.txt").write_text("free\n")
    proposed(texts / "a.txt", 2, "source.lines")
    (temp / "a b").mkdir()
    (temp / "a b/c.txt").write_text("x\n")
    proposed(temp / "a b/c.txt", 1, "source.lines", f'default: "{temp}/a b/c.txt"')


@test
def arrays_are_read_as_such():
    arrays = temp / "arrays"
    arrays.mkdir()
    npy(arrays / "x.npy", (5, 3, 2))
    proposed(arrays, 5, "source.npy", "# Fields: array float32", "batch.stack")
    digits = temp / "digits"
    digits.mkdir()
    for name, count in (("train", 6), ("t10k", 2)):
        with gzip.open(digits / f"{name}-images-idx3-ubyte.gz", "wb") as out:
            out.write(struct.pack(">IIII", 0x803, count, 4, 4) + bytes(16 * count))
        (digits / f"{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">II", 0x801, count) + bytes(count)))
    proposed(digits, 6, "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "with labels", "tensor.layout")
    dotted = temp / "dotted"
    dotted.mkdir()
    for name, old in (("images.idx3", "images-idx3"), ("labels.idx1", "labels-idx1")):
        (dotted / f"train-{name}-ubyte").write_bytes(gzip.decompress((digits / f"train-{old}-ubyte.gz").read_bytes()))
    proposed(dotted, 6, "train-images.idx3-ubyte", "train-labels.idx1-ubyte", "with labels")
    fill(temp / "named like", ["a-idx1.jpg", "b-idx2.jpg"])
    proposed(temp / "named like", 2, "2 photos")


@test
def what_is_not_known_is_refused():
    one_line(run("init", temp / "absent", code=2), "there is no")
    (temp / "empty").mkdir()
    one_line(run("init", temp / "empty", code=2), "there are no files")
    one_line(run("run", temp / "empty", code=2), "there are no files")
    (temp / "odd").mkdir()
    (temp / "odd/a.xyz").write_text("?")
    (temp / "odd/b").write_text("?")
    one_line(run("init", temp / "odd", code=2), "only", ".xyz", "no ending")
    one_line(run("init", temp / "odd/a.xyz", code=2), "no source reads files with its ending")
    for name, kind in ("odd/a.JPG", "photo"), ("odd/a.wav", "sound"):
        (temp / name).write_bytes(b"\xff\xd8")
        for command in ("init", "run", "inspect", "explain"):
            one_line(run(command, temp / name, code=2), f"is a single {kind}: give the folder")
    (temp / "far/a").mkdir(parents=True), (temp / "far/b").mkdir()
    (temp / "far/a/x.csv").write_text("a\n1\n"), (temp / "far/b/x.csv").write_text("a\n1\n")
    one_line(run("init", temp / "far", code=2), "several folders", "far/a")
    one_line(run("init", code=2), "FOLDER|FILE")
    (temp / "rows.csv").write_text("a\n1\n")
    for command in ("pack", "profile", "optimize"):  # these want a graph that somebody has looked at
        more = ["-o", temp / "out"] if command == "pack" else []
        one_line(run(command, photos(), *more, code=2), "is data, not a graph", f"headrace init {photos()} -o FILE")
        one_line(run(command, temp / "rows.csv", *more, code=2), "rows.csv is data, not a graph")
    (temp / "cut.tar").write_bytes(b"no archive at all" * 100)
    assert "cut.tar" in run("init", temp / "cut.tar", code=None).stderr


@test
def a_graph_is_never_replaced_unasked():
    target = temp / "mine.yaml"
    target.write_text("mine\n")
    one_line(run("init", photos(), "-o", target, code=2), "mine.yaml exists", "--force")
    assert target.read_text() == "mine\n"
    run("init", photos(), "-o", target, "--force")
    assert "source.files" in target.read_text()
    one_line(run("init", photos(), "-o", temp / "no/such/x.yaml", code=1), "no/such/x.yaml")


@test
def paths_are_quoted():
    odd = fill(temp / "it's \"odd\" ${x}: {y}\\z", ["a.jpg", "b.jpg"])
    proposed(odd, 2, "without labels")
    (odd / "labels.csv").write_text('"the ${file}, or: path",c\na.jpg,x\nb.jpg,y\n')
    proposed(odd, 2, 'path_column: "the $${file}, or: path"', 'label_column: "c"')
    name = bytes(temp) + b"/\xff"
    os.mkdir(name)
    done = subprocess.run([headrace, "init", name], capture_output=True)
    assert done.returncode == 2 and b"not UTF-8" in done.stderr, done


@test
def tables_of_any_bytes_are_survived():
    seed = int.from_bytes(os.urandom(4), "little")
    print(f"# seed {seed}")
    draw = random.Random(seed)
    folder = fill(temp / "drawn", ["1.jpg", "img/2.jpg"])
    words = [b"path", b"label", b"1.jpg", b"img/2.jpg", b",", b"\n", b'"', b'""', b"{", b"}", b"[", b":", b" ", b"\xff", b"\0",
             b'{"file": "1.jpg"', b'"file_name": "1.jpg"', b'"images"', b'"annotations"', b'"bbox"', b"a" * 200]
    for _ in range(60):
        name = draw.choice(["t.csv", "t.jsonl", "t.json"])
        for old in folder.glob("t.*"):
            old.unlink()
        (folder / name).write_bytes(b"".join(draw.choice(words) for _ in range(draw.randrange(40))))
        done = run("init", folder, code=None)
        # a table that names no photo is left alone; one that does is proposed, whatever its source will say of it
        assert done.returncode == 0 and done.stdout.startswith("# "), (seed, name, (folder / name).read_bytes(), done)


@test
def a_graph_is_read_from_standard_input():
    def piped(text, *words):
        return subprocess.run([headrace, *words], input=text, text=True, capture_output=True, timeout=60, cwd=temp)

    text = "headrace: 1\nparams: {n: 10}\npipeline:\n  - source.range: {n: \"${n}\"}\n  - batch.stack: {size: 4}\n"
    (temp / "range.yaml").write_text(text)
    digest = run_json("run", "range.yaml", "--digest", "-p", "n=7")["digest"]
    done = piped(text, "run", "-", "--digest", "--json", "-p", "n=7")
    assert json.loads(done.stdout)["digest"] == digest and not done.stderr, done
    as_json = json.dumps({"headrace": 1, "pipeline": [{"source.range": {"n": 7}}, {"batch.stack": {"size": 4}}]})
    assert json.loads(piped(as_json, "run", "-", "--digest", "--json").stdout)["digest"] == digest
    for command in ["inspect", "explain", "plan"]:
        assert piped(text, command, "-").returncode == 0
    assert "n (int)" in piped(text, "run", "-", "--help-params").stdout
    at_place(piped(text.replace("source.range", "source.rnge"), "run", "-"), '  - source.rnge: {n: "${n}"}', "source.rnge",
             "<stdin>:4:5", "source.range")
    one_line(piped("", "run", "-"), "<stdin>")
    one_line(piped("a\n\0b", "run", "-"), "<stdin>:2:1: a NUL byte: this is not a graph")


main()
