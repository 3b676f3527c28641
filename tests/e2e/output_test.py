"""headrace run --output: records as NumPy arrays, read back without NumPy."""
import pathlib
import signal
import struct
import sys
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from support import graph, main, one_line, photos, run, run_json, start, temp, test

FORMATS = {"|u1": "B", "|i1": "b", "|b1": "?", "<i2": "h", "<u2": "H", "<i4": "i", "<i8": "q", "<f4": "f", "<f8": "d", "<f2": "e"}


def read_npy(data):
    """The shape and the numbers of a .npy file, by its documentation."""
    assert data[:8] == b"\x93NUMPY\1\0"
    size = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + size].decode())
    assert (10 + size) % 64 == 0 and data[9 + size:10 + size] == b"\n" and not head["fortran_order"]
    numbers = [value for value, in struct.iter_unpack("<" + FORMATS[head["descr"]], data[10 + size:])]
    count = 1
    for side in head["shape"]:
        count *= side
    assert len(numbers) == count, head
    return head["shape"], numbers, head["descr"]


def read_npz(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name.removesuffix(".npy"): read_npy(archive.read(name)) for name in archive.namelist()}


def read_folder(path):
    return {file.stem: read_npy(file.read_bytes()) for file in path.iterdir()}


def both(name, text, *words):
    """What a graph gives as .npz, after the check that a folder holds the same."""
    file = graph(name + ".yaml", text)
    run("run", file, *words, "-o", temp / f"{name}.npz", "-q")
    done = run("run", file, *words, "--output", temp / name)
    arrays = read_npz(temp / f"{name}.npz")
    assert arrays == read_folder(temp / name)
    for array in arrays:
        assert f"  {array} " in done.stdout, done.stdout
    assert not list(temp.glob(f"{name}*.??????")), "temporary files are left"
    return arrays


@test
def records_of_one_size_are_one_array():
    arrays = both("range", "pipeline:\n  - source.range: {n: 10}\n  - batch.stack: {size: 4}\n")
    assert arrays == {"value": ((10,), list(range(10)), "<i8")}, arrays
    text = f'pipeline:\n  - source.files: {{path: "{photos()}", labels: folder}}\n  - image.decode\n  - image.resize: {{size: [6, 8]}}\n' \
        "  - batch.stack: {size: 16}\n"
    arrays = both("photos-u8", text)
    assert arrays["image"][0] == (40, 6, 8, 3) and arrays["image"][2] == "|u1" and arrays["label"][1] == sorted(arrays["label"][1])
    half = both("photos-half", text.replace("  - batch", "  - tensor.cast: {dtype: bfloat16}\n  - batch"))
    assert half["image"][2] == "<f4" and 0 < max(half["image"][1]) <= 1
    # the arrays are read as a source, and give the same records
    again = graph("again.yaml", f'pipeline:\n  - source.npy: {{path: "{temp}/photos-u8.npz"}}\n  - batch.stack: {{size: 40}}\n')
    run("run", again, "-o", temp / "again.npz", "-q")
    assert read_npz(temp / "again.npz") == arrays


@test
def texts_and_lists_have_splits():
    (temp / "rows.jsonl").write_text('{"t": "a", "n": 1}\n{"t": "", "n": 2}\n{"t": "größe", "n": 3}\n')
    arrays = both("rows", f'pipeline:\n  - source.jsonl: {{path: "{temp}/rows.jsonl"}}\n  - batch.stack: {{size: 2}}\n')
    splits = arrays["t_splits"]
    assert splits[0] == (4,) and splits[2] == "<i8" and arrays["n"][1] == [1, 2, 3], arrays
    texts = [bytes(arrays["t"][1][a:b]).decode() for a, b in zip(splits[1], splits[1][1:])]
    assert texts == ["a", "", "größe"] and "t_shapes" not in arrays


@test
def records_that_differ_in_size_have_shapes():
    source = f'pipeline:\n  - source.files: {{path: "{photos()}"}}\n  - image.decode\n  - image.resize_shortest: {{size: 5}}\n'
    arrays = both("ragged", source + "  - batch.stack: {size: 16, ragged: true}\n")
    shapes = [arrays["image_shapes"][1][i:i + 3] for i in range(0, 120, 3)]
    splits = arrays["image_splits"][1]
    assert arrays["image_shapes"][0] == (40, 3) and all(min(s[:2]) == 5 and s[2] == 3 for s in shapes) and len(set(map(tuple, shapes))) > 1
    assert [b - a for a, b in zip(splits, splits[1:])] == [h * w * c for h, w, c in shapes] and splits[-1] == len(arrays["image"][1])
    # batches that are padded to sizes of their own are kept as they are
    padded = both("padded", source + "  - batch.pad: {size: 2}\n")
    sizes = [tuple(padded["image_shapes"][1][i:i + 3]) for i in range(0, 120, 3)]
    assert sizes[0::2] == sizes[1::2] and len(set(sizes)) > 1, sizes
    first = bytes(arrays["image"][1][:shapes[0][1] * 3])  # the first row of the first photo
    assert bytes(padded["image"][1][:len(first)]) == first


@test
def outputs_are_not_replaced():
    file = graph("small.yaml", "pipeline:\n  - source.range: {n: 3}\n  - batch.stack: {size: 2}\n")
    (temp / "old.npz").write_text("old")
    (temp / "old").mkdir()
    for path in ("old.npz", "old", "old/"):
        one_line(run("run", file, "-o", temp / path, code=2), "exists", "another path")
    assert (temp / "old.npz").read_text() == "old" and not list((temp / "old").iterdir())
    one_line(run("run", file, "-o", temp / "no/such/x.npz", code=1), "no/such/x.npz")
    one_line(run("run", file, "-o", temp / "x.npz", "--state", "s", code=2), "--output and --state")
    assert run_json("run", file, "-o", temp / "new.npz")["output"] == str(temp / "new.npz")
    assert run_json("run", file)["output"] is None


@test
def failures_leave_nothing():
    bad = graph("bad.yaml", "pipeline:\n  - source.range: {n: 100}\n  - debug.fail: {every: 50}\n  - batch.stack: {size: 5}\n")
    done = run("run", bad, "-o", temp / "bad.npz", "-q", code=1)
    assert done.stderr and not list(temp.glob("bad.npz*")), done
    nothing = graph("nothing.yaml", "pipeline:\n  - source.range: {n: 0}\n  - batch.stack: {size: 5}\n")
    done = run("run", nothing, "-o", temp / "nothing", "-q", code=1)
    assert "no records" in done.stderr and not list(temp.glob("nothing.??????")) and not (temp / "nothing").exists(), done
    named = graph("named.yaml", "pipeline:\n  - source.range: {n: 3}\n    name: a\n  - record.rename: {fields: {value: x}}\n    name: b\n"
                  "  - source.range: {n: 3}\n    name: c\n  - record.rename: {fields: {value: x_splits}}\n    name: d\n"
                  "  - flow.zip: {}\n    inputs: [b, d]\n  - batch.stack: {size: 2}\n")
    done = run("run", named, "-o", temp / "named.npz", "-q", code=2)
    assert "'x_splits'" in done.stderr and "record.rename" in done.stderr and not list(temp.glob("named.npz*")), done
    twice = graph("twice.yaml", "pipeline:\n  - source.range: {n: 8}\n  - batch.stack: {size: 2}\n  - batch.stack: {size: 2}\n")
    run("run", twice, "-o", temp / "twice.npz", "-q")  # of one size: a dimension more
    assert read_npz(temp / "twice.npz")["value"][0] == (4, 2)


@test
def an_interrupted_run_writes_nothing():
    slow = graph("slow.yaml", "pipeline:\n  - source.range: {n: 1000000}\n  - debug.sleep: {ms: 2}\n  - batch.stack: {size: 2}\n")
    process = start("run", slow, "-o", temp / "slow.npz")
    deadline = time.monotonic() + 60
    while not list(temp.glob("slow.npz.*/*.npy")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)
    assert process.returncode == 130 and not list(temp.glob("slow.npz*")), said
    assert "nothing is written to" in said[1], said


main()
