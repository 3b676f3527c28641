"""A memory budget is kept within a tenth, or refused with a figure that then works.

    python3 tests/e2e/memory_test.py HEADRACE SOURCE_DIR [part of a name]

Random graphs over photos of 0.1 to 5 megapixels, lines of up to 2 MB, shards and tables of texts, sounds, and tokens of
texts run with random budgets, each in a process of its own. HEADRACE_TEST_GRAPHS is their number, HEADRACE_TEST_SEED the first seed; a graph that fails can be run alone
with its own seed. `make nightly` runs hundreds, and each op that makes pixels and each batcher with the least budget
that works. What counts is the peak resident size of the process that the user
starts. It contains what it shares with worker processes; their own heaps are not part of the budget, nor is a text
file, whose pages the kernel takes back at any time.
"""
import gzip
import itertools
import json
import os
import random
import re
import struct
import subprocess
import sys
import wave
import zlib

from support import Skip, graph, headrace, main, photos, run, temp, test

UNITS = {"B": 1, "kB": 1000, "MB": 10**6, "GB": 10**9}
NIGHTLY = "HEADRACE_TEST_GRAPHS" in os.environ
GRAPHS = int(os.environ.get("HEADRACE_TEST_GRAPHS", 4))
SEED = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(10**9)))

MOST = 10**9  # graphs that need more are drawn again

HEAD = ("params:\n  data: {type: path}\npipeline:\n  - source.files: {path: \"${data}\", labels: none}\n"
        "  - image.decode: {}\n")
FILTER = "  - record.filter: {expr: \"image.height > 0\"}\n"


# Starts a command and prints its exit status and its peak. The peak of a process begins with that of the process that
# started it, so this one has to be small.
START = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", 1, 0)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def run_within(path, data, budget, words=()):
    """(exit code, stderr, peak resident bytes) of a run with this budget."""
    command = [headrace, "run", path, "-p", f"data={data}", "--memory", str(budget), "-q", *words]
    done = subprocess.run([sys.executable, "-I", "-S", "-c", START, *map(str, command)], capture_output=True, text=True, check=True)
    code, peak = map(int, done.stdout.split())
    return code, done.stderr, peak


def least(errors):
    """The figure that a refusal names, in bytes."""
    found = re.search(r"at least ([0-9.]+) (B|kB|MB|GB)", errors)
    assert found, errors
    return round(float(found[1]) * UNITS[found[2]])


def check(path, data, budget, words=()):
    """Returns whether the budget was enough, and the peak as a part of the budget that was."""
    mapped = data.stat().st_size if data.is_file() else 0
    code, errors, peak = run_within(path, data, budget, words)
    enough = code == 0
    if not enough:
        assert "too small" in errors and least(errors) > budget, f"exit code {code}: {errors}"
        budget = least(errors)
        assert peak <= 1.1 * budget + mapped, f"{peak} bytes, more than the {budget} that the refusal names"
        code, errors, peak = run_within(path, data, budget, words)
        assert code == 0, f"{budget}, the figure of the refusal, was not enough: {errors}"
    assert peak <= 1.1 * budget + mapped, f"{peak} bytes with a budget of {budget}"
    return enough, peak / budget


@test
def records_of_unknown_size_keep_a_budget():
    check(graph("rebatch", HEAD + "  - image.resize_shortest: {size: 1000}\n  - batch.pad: {size: 4}\n"
                "  - batch.unbatch: {}\n" + FILTER + "  - batch.pad: {size: 4}\n"), photos(), 10**6)


@test
def a_window_of_records_keeps_a_budget():
    check(graph("window", HEAD + "  - image.resize_shortest: {size: 400}\n" + FILTER +
                "  - order.shuffle: {window: 20}\n  - batch.pad: {size: 4}\n"), photos(), 10**6)


@test
def buckets_keep_a_budget():
    for size in ["size: [4, 2]", "elements: 1500"]:
        check(graph("buckets", HEAD + "  - batch.bucket: {by: image, dim: 0, boundaries: [600], " + size + "}\n"), photos(), 10**6)


@test
def batches_of_one_size_keep_a_budget():
    check(graph("direct", HEAD + "  - image.random_resized_crop: {size: 224}\n  - batch.stack: {size: 8}\n"),
          photos(), 10**6)


def png(width, height):
    """A black image: few bytes, many pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = zlib.compress(bytes(1 + 3 * width) * height)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", rows) + chunk(b"IEND", b""))


@test
def a_format_that_is_never_decoded_at_a_reduced_scale_keeps_a_budget():
    folder = temp / "pngs"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(png(3000, 2000))
    check(graph("pngs.yaml", HEAD + "  - image.resize: {size: 224}\n  - batch.stack: {size: 1}\n"), folder, 10**6,
          ["--variant", "inline"])


@test
def a_record_that_is_larger_than_all_that_were_looked_at_is_named():
    folder = temp / "surprise"
    folder.mkdir()
    run("synth", "photos", temp / "of300", "--count", 20, "--classes", 1, "--width", 300, "--height", 225, "-q")
    files = sorted((temp / "of300").rglob("*.jpg"))
    for number in range(600):
        os.link(files[number % len(files)], folder / f"{number:03}.jpg")
    # The seventh of 601 is not among 512 that are evenly spread, nor is the file one of the largest.
    (folder / "005x.png").write_bytes(png(1500, 1500))
    assert (folder / "005x.png").stat().st_size < files[0].stat().st_size
    path = graph("surprise.yaml", HEAD + FILTER + "  - batch.pad: {size: 1}\n")
    words = ["--variant", "inline"]
    budget = least(run_within(path, folder, 10**6, words)[1])
    code, errors, _ = run_within(path, folder, budget, words)
    assert code == 1 and "005x.png" in errors and "larger than expected" in errors, f"exit code {code}: {errors}"
    check(path, folder, budget, words)


@test
def records_that_only_a_later_epoch_takes_keep_a_budget():
    folder = temp / "later"
    folder.mkdir()
    for number, size in enumerate([300, 300, 300, 300, 300, 3000]):
        (folder / f"{number}.png").write_bytes(png(size, size))
    path = graph("later.yaml", HEAD.replace("  - image.decode", "  - order.shuffle: {}\n  - order.take: {count: 2}\n  - image.decode") +
                 FILTER + "  - batch.pad: {size: 1}\n")
    # The first epoch has the large image for one seed in three.
    for seed in range(3):
        check(path, folder, 10**6, ["--variant", "inline", "--epochs", "20", "--seed", str(seed)])


# ---- what nodes keep between records ----

@test
def a_cache_in_memory_gets_what_is_left():
    """The figure that a refusal names works at once: it counts a small cache, not half of what was given."""
    check(graph("cached", HEAD + "  - image.resize: {size: 1000}\n  - flow.cache: {}\n  - batch.pad: {size: 4}\n"),
          photos(), 10**6)


def some_text(count, seed=1):
    """Texts of about 9 kB that compress well, but not to nothing."""
    draw = random.Random(seed)
    words = [f"{draw.getrandbits(40):x}" for _ in range(500)]
    return [" ".join(draw.choices(words, k=draw.randrange(10, 2000))) for _ in range(count)]


@test
def unpacked_shards_keep_a_budget():
    """60 MB in gzip, more than `unpack_cache` keeps without a budget would leave of 40 MB."""
    path = temp / "packed.txt.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.writelines(line + "\n" for line in some_text(6000))
    check(graph("packed", "params:\n  data: {type: path}\npipeline:\n  - source.lines: {path: \"${data}\"}\n"
                "  - order.shuffle: {seed: 1}\n  - order.take: {count: 400}\n  - batch.pad: {size: 4}\n"), path, 40 * 10**6,
          ["--threads", "2"])


def arrow_like(kind, path, texts):
    """A compressed table of texts; False: pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        return False
    table = pyarrow.table({"text": texts, "number": list(range(len(texts)))})
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=400, compression="zstd", use_dictionary=False)
    else:
        with pyarrow.ipc.new_file(path, table.schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd")) as file:
            file.write_table(table, 200)
    return True


def hdf5(path, texts):
    """Chunks of rows of bytes in gzip; False: h5py is not installed."""
    try:
        import h5py
        import numpy
    except ImportError:
        return False
    rows = numpy.frombuffer("".join(texts).encode()[:len(texts) * 4000], numpy.uint8).reshape(-1, 4000)
    with h5py.File(path, "w") as file:
        file.create_dataset("text", data=rows, chunks=(100, 4000), compression="gzip", compression_opts=1)
        file.create_dataset("number", data=numpy.arange(len(rows)))
    return True


def write_table(kind, path, texts):
    if path.exists():
        return True
    return hdf5(path, texts) if kind == "hdf5" else arrow_like(kind, path, texts)


@test
def decoded_pages_keep_a_budget():
    done = 0
    for kind in ("parquet", "arrow", "hdf5"):
        path = temp / f"pages.{kind}"
        if not write_table(kind, path, some_text(4000)):
            continue
        done += 1
        text = (f"params:\n  data: {{type: path}}\npipeline:\n  - source.{kind}: {{path: \"${{data}}\"}}\n"
                "  - order.shuffle: {seed: 1}\n  - order.take: {count: 400}\n  - batch.pad: {size: 4}\n")
        for budget in (10**6, 60 * 10**6):
            part = check(graph(kind, text), path, budget, ["--threads", "2"])[1]
            print(f"# {part:.2f} {kind}", flush=True)
    if done == 0:
        raise Skip("neither pyarrow nor h5py is installed")


# ---- sounds, tokens, lists ----

def some_sounds(data_seed, count=24, long=20):
    """WAV files of about a second, and one of `long` seconds, which is not the largest file: its rate is lower."""
    folder = temp / f"sounds-{data_seed}"
    if not folder.exists():
        folder.mkdir()
        draw = random.Random(data_seed)
        for number in range(count):
            seconds, rate = (long, 4000) if number == 7 else (draw.uniform(0.5, 1.5), 48000)
            with wave.open(str(folder / f"{number:02}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                file.writeframes(draw.randbytes(2 * int(seconds * rate)))
    return folder


def tokenizer():
    """A byte-level BPE that merges pairs of hexadecimal digits."""
    path = temp / "tokenizer.json"
    if not path.exists():
        plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
        letters = [chr(byte) for byte in plain] + [chr(256 + i) for i in range(256 - len(plain))]
        pairs = [(a, b) for a in "0123456789abcdef" for b in "0123456789abcdef"]
        vocab = {word: i for i, word in enumerate(letters + ["".join(pair) for pair in pairs])}
        path.write_text(json.dumps({
            "version": "1.0", "model": {"type": "BPE", "vocab": vocab, "merges": [" ".join(pair) for pair in pairs]},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "decoder": {"type": "ByteLevel"}}))
    return path


def texts_of_two_sizes():
    """1500 texts, the last 100 of which are much longer."""
    path = temp / "two-sizes.txt"
    if not path.exists():
        long = some_text(100, 2)
        short = [text[:100] for text in some_text(1400)]
        path.write_text("".join(text + "\n" for text in short + [4 * text for text in long]))
    return path


def steps_of(*steps):
    return "params:\n  data: {type: path}\npipeline:\n" + "".join(f"  - {step}\n" for step in steps)


TEXTS = "source.lines: {path: \"${data}\"}"


@test
def what_no_schema_knows_is_measured_before_the_run():
    """The figure that the first refusal names works, though sounds and tokens come late in the data."""
    sounds = ["source.files: {path: \"${data}\", suffixes: [wav]}", "audio.decode: {}", "audio.resample: {rate: 16000}",
              "audio.mono: {}"]
    tokens = [TEXTS, f"text.tokenize_bpe: {{json: {tokenizer()}}}"]
    for data, steps in [(some_sounds(1), [*sounds, "audio.pitch: {steps: [-2, 2]}", "batch.pad: {size: 4}"]),
                        (some_sounds(1), [*sounds, "audio.mel: {n_mels: 128, hop: 40}", "batch.pad: {size: 2}"]),
                        (texts_of_two_sizes(), [*tokens, "batch.pad: {size: 4}"]),
                        (texts_of_two_sizes(), [*tokens, "tokens.pack: {length: 2048}", "batch.stack: {size: 4}"]),
                        (texts_of_two_sizes(), [TEXTS, "text.split: {}", "record.flat: {fields: [words]}",
                                                "order.shuffle: {window: 30000}", "batch.stack: {size: 100}"])]:
        enough, part = check(graph("late.yaml", steps_of(*steps)), data, 10**6, ["--threads", "2"])
        assert not enough
        print(f"# {part:.2f} {steps[-2]}", flush=True)


@test
def sizes_that_are_drawn_are_measured_at_their_most():
    """The figure that the first refusal names works for as many epochs as draw other sizes."""
    sounds = ["source.files: {path: \"${data}\", suffixes: [wav]}", "audio.decode: {}", "audio.resample: {rate: 16000}",
              "audio.mono: {}"]
    photo = ["source.files: {path: \"${data}\"}", "image.decode: {}", "image.pad: {padding: 3}"]
    some = "when: {augment: {choice: 0, of: [1, 2]}}"
    folder = temp / "drawn-png"
    folder.mkdir()
    (folder / "0.png").write_bytes(png(800, 400))
    for data, before, step, after in [
            *((some_sounds(2, count=8, long=60), sounds, step, []) for step in (
                "audio.time_stretch: {rate: [0.5, 2]}", "audio.speed: {factors: [2, 0.5, 1]}",
                "audio.pitch: {steps: [-24, 24]}", "audio.reverb: {rt60: [0.1, 30], p: 0.3}",
                f"audio.time_stretch: {{rate: 0.5, {some}}}", f"audio.crop: {{frames: 100, {some}}}")),
            *((folder, photo, step, ["image.resize_shortest: {size: 1000}"]) for step in (
                "image.scale_jitter: {size: 600}", "image.random_shortest_size: {sizes: [100, 1000, 300]}",
                "image.zoom_out: {side_range: [1, 3], p: 0.3}"))]:
        enough, part = check(graph("drawn.yaml", steps_of(*before, step, *after, "batch.pad: {size: 1}")), data, 10**6,
                             ["--variant", "inline", "--epochs", "12"])
        assert not enough
        print(f"# {part:.2f} {step}", flush=True)


@test
def records_of_one_input_of_two_are_looked_at():
    """The large lines are those of the second input, few of many."""
    small = temp / "small.txt"
    small.write_text("a line\n" * 20000)
    large = temp / "large.txt"
    large.write_text("".join("b" * (900000 if number == 1111 else 5) + "\n" for number in range(2000)))
    text = (steps_of(TEXTS) + f"    name: a\n  - source.lines: {{path: {large}}}\n    name: b\n    inputs: []\n"
            "  - flow.concat: {}\n    inputs: [a, b]\n  - order.shuffle: {}\n  - batch.pad: {size: 1}\n")
    check(graph("two.yaml", text), small, 10**6)


def rare_table(kind, path, lines):
    """False: its writer is not installed."""
    try:
        if kind == "arrow":
            import pyarrow.ipc
            table = pyarrow.table({"text": lines})
            with pyarrow.ipc.new_file(path, table.schema) as file:
                file.write_table(table, 1000)
        else:
            import lmdb
            with lmdb.open(str(path), map_size=10**9, subdir=False) as env, env.begin(write=True) as entries:
                for number, line in enumerate(lines):
                    entries.put(b"%08d" % number, line.encode())
    except ImportError:
        return False
    return True


def rare_lines(kind, path, lines):
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.writelines((line if kind == "lines" else json.dumps({"text": line})) + "\n" for line in lines)
    return True


@test
def large_records_are_looked_at_where_the_source_knows_their_size():
    """Two of 3000 are not among 512 that are evenly spread, in the order of the file or shuffled."""
    lines = ["x" * (4000000 if number in (1003, 2001) else 50) for number in range(3000)]
    for kind, order in [("lines", []), ("lines", ["order.shuffle: {}"]), ("jsonl", []), ("arrow", []), ("lmdb", [])]:
        path = temp / f"rare-{kind}"
        write = rare_lines if kind in ("lines", "jsonl") else rare_table
        if not write(kind, path, lines):
            continue
        steps = steps_of(f"source.{kind}: {{path: \"${{data}}\"}}", *order, "batch.pad: {size: 2}")
        enough, part = check(graph("rare.yaml", steps), path, 10**6, ["--threads", "2"])
        assert not enough
        print(f"# {part:.2f} {kind} {order}", flush=True)


@test
def deflated_arrays_are_part_of_the_budget():
    try:
        import numpy
    except ImportError:
        raise Skip("NumPy is not installed") from None
    path = temp / "deflated.npz"
    numpy.savez_compressed(path, array=numpy.zeros((20, 1000, 1000), numpy.uint8))
    text = steps_of("source.npy: {path: \"${data}\"}", "batch.stack: {size: 1}")
    budget = least(run_within(graph("npz.yaml", text), path, 10**6)[1])
    assert budget > 20 * 10**6 + 13 * 10**6, budget


@test
def what_is_only_decoded_is_no_part_of_a_batch():
    """The encoded bytes of photos do not count once for each record of a batch of crops."""
    folder = temp / "detailed"
    run("synth", "photos", folder, "--count", 1, "--classes", 1, "--width", 2400, "--height", 1800, "--quality", 98, "-q")
    largest = max(file.stat().st_size for file in folder.rglob("*.jpg"))
    path = graph("crops.yaml", HEAD + "  - image.random_resized_crop: {size: 64}\n  - batch.stack: {size: 64}\n")
    budget = least(run_within(path, folder, 10**6, ["--variant", "inline"])[1])
    assert budget < 16 * largest + 20 * 10**6, f"{budget} with files of {largest} bytes"
    check(path, folder, budget, ["--variant", "inline"])


@test
def batches_and_windows_have_no_more_records_than_the_epoch():
    path = temp / "few.txt"
    path.write_text(("x" * 1000000 + "\n") * 20)
    keep = "record.filter: {expr: \"text.length != 3\"}"
    for steps in [[], [keep], [keep, "order.shuffle: {window: 100}"]]:
        budget = least(run_within(graph("few.yaml", steps_of(TEXTS, *steps, "batch.pad: {size: 64}")), path, 10**6, ["--threads", "2"])[1])
        assert budget < 6 * 20 * 10**6 + 30 * 10**6, f"{budget} for 20 lines of 1 MB: {steps}"
        part = check(temp / "few.yaml", path, budget, ["--threads", "2"])[1]
        print(f"# {budget} {part:.2f} {steps}", flush=True)


# ---- every op, every batcher ----

MADE = "image.color_jitter: {brightness: 0.3}"  # makes the pixels
OPS = [
    [], [MADE], ["image.flip: {}"], ["image.flip: {p: 1}"], ["image.pad: {padding: 200}"],
    ["image.pad: {padding: 200}", "image.flip: {p: 1}"], ["image.rotate: {degrees: 30, expand: true}"],
    ["image.rotate: {degrees: 30, expand: true}", "image.rotate: {degrees: 30}"], ["image.affine: {degrees: 20}"],
    ["image.gaussian_blur: {size: 9}"], ["image.grayscale: {}"], ["image.clip: {min: 10, max: 200}"],
    ["image.gaussian_blur: {size: 9}", MADE, "image.gaussian_blur: {size: 5}"],
    ["image.resize: {size: [2500, 3000]}"], ["image.resize: {size: 1000}"], ["image.resize_shortest: {size: 2500}"],
    ["image.resize: {size: 2000, antialias: false}"], ["image.resize_shortest: {size: 900}", MADE],
    ["image.resize_shortest: {size: 1800}", "image.resize_shortest: {size: 1500}"],
    [MADE, "image.resize: {size: 2000}"], [MADE, "image.center_crop: {size: 1500}"],
    ["image.center_crop: {size: 1500}", MADE], ["image.random_resized_crop: {size: 1500}"],
    ["image.random_resized_crop: {size: 1500}", MADE],
    ["image.random_crop: {size: 1500, padding: 300, pad_if_needed: true}"],
    [MADE, "image.random_crop: {size: 1500, padding: 300, pad_if_needed: true}"],
    ["image.random_crop: {size: 2500, pad_if_needed: true}"],
    ["image.resize_shortest: {size: 2000}", "image.center_crop: {size: 1900}"],
    ["image.flip: {p: 1}", "image.resize: {size: 1500}"],
    ["image.zoom_out: {p: 1}"], ["image.zoom_out: {p: 1, side_range: [1, 2]}", "image.resize: {size: 300}"],
    ["image.scale_jitter: {size: 1200}"], ["image.scale_jitter: {size: 900, scale: [3, 3]}"],
    ["image.scale_jitter: {size: 1200}", "image.fixed_size_crop: {size: 1000}"], ["image.photometric_distort: {}"],
    ["image.random_area_crop: {}", MADE], ["image.standardize: {}"],
    ["tensor.cast: {dtype: float32}"], ["tensor.cast: {dtype: float16}"], [MADE, "tensor.cast: {dtype: float16}"],
    ["tensor.cast: {dtype: float16}", "image.flip: {p: 1}", "image.resize: {size: 1500}"],
    ["image.normalize: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}"],
    ["image.normalize: {mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}", "image.resize: {size: 1500}"],
    ["tensor.layout: {order: chw}"], [MADE, "tensor.layout: {order: chw}"], ["tensor.cast: {dtype: float32}", MADE],
]
KEEP = 'record.filter: {expr: "image.height > 0"}'
BATCHERS = [
    [], ["batch.pad: {size: 1}"], ["batch.pad: {size: 3}"], [KEEP], [KEEP, "batch.pad: {size: 1}"],
    [KEEP, "batch.pad: {size: 3}"], ["batch.pad: {size: 3}", "batch.unbatch: {}", "batch.pad: {size: 2}"],
    ["batch.bucket: {by: image, dim: 0, boundaries: [800, 1600], size: [4, 2, 1]}"],
    ["batch.bucket: {by: image, dim: 0, boundaries: [800, 1600], elements: 3200}"],
    [KEEP, "batch.bucket: {by: image, dim: 1, boundaries: [900, 2001], elements: 4000, pad_to: boundary, too_long: drop}"],
    ["batch.pad: {size: 1}", "batch.unbatch: {}", KEEP], [KEEP, "order.shuffle: {window: 4}", "batch.pad: {size: 2}"],
    ["batch.pad: {size: 3}", "batch.unbatch: {}", "order.shuffle: {window: 4}", "batch.pad: {size: 3}"],
    ["image.resize: {size: 1500}", "batch.stack: {size: 3}"],
    ["image.resize: {size: 1500}", KEEP, "batch.stack: {size: 3}"],
]
VARIANTS = [["--variant", "inline"], ["--threads", "1"], ["--threads", "2"], ["--threads", "1", "--variant", "processes"]]


def growing_photos():
    """Each is larger than those before."""
    folder = temp / "growing"
    for number, (width, height) in enumerate([(400, 300), (1200, 900), (2000, 1500), (2400, 1800), (3200, 2400)]):
        if not (folder / str(number)).exists():
            run("synth", "photos", folder / str(number), "--count", 2, "--classes", 1, "--width", width, "--height",
                height, "--seed", number, "-q")
    return folder


def check_steps(steps, mode, words):
    """Runs the steps with the least budget; prints which part of it the peak is."""
    text = HEAD.replace("decode: {}", f"decode: {{mode: {mode}}}")
    path = graph("steps.yaml", text + "".join(f"  - {step}\n" for step in steps))
    part = check(path, growing_photos(), 10**6, words)[1]
    print(f"# {part:.2f} {steps} {mode} {' '.join(words)}", flush=True)


@test
def every_op_and_batcher_keeps_the_least_budget():
    if not NIGHTLY:
        raise Skip("make nightly runs them, or HEADRACE_TEST_GRAPHS=n")
    failures = []
    ops = itertools.product(([*op, "batch.pad: {size: 1}"] for op in OPS), ["exact", "close"], VARIANTS[:1])
    batchers = itertools.product(BATCHERS, ["close"], VARIANTS)
    for steps, mode, words in itertools.chain(ops, batchers):
        try:
            check_steps(steps, mode, words)
        except AssertionError as failure:
            failures.append(f"{steps}, mode {mode}, {' '.join(words)}: {failure}")
            print("# " + failures[-1].strip(), flush=True)
    assert not failures, f"{len(failures)} failed:\n" + "\n".join(failures)


# ---- random graphs ----

def some_photos(draw, data_seed):
    """A folder that mixes photos of different sizes."""
    kind = draw.randrange(3)
    folder = temp / f"mix{kind}-{data_seed}"
    if not folder.exists():
        for count, width, height in [[(80, 400, 300)], [(60, 400, 300), (12, 1600, 1200)],
                                     [(40, 400, 300), (8, 1600, 1200), (4, 2600, 2000)]][kind]:
            run("synth", "photos", folder / f"of{width}", "--count", count, "--classes", 2, "--width", width,
                "--height", height, "--seed", data_seed, "-q")
    return folder


def some_lines(data_seed):
    """A text file, most of whose lines are short."""
    path = temp / f"lines-{data_seed}"
    if not path.exists():
        draw = random.Random(data_seed)
        path.write_text("".join("x" * int(2 * 10**6 ** draw.random()) + "\n" for _ in range(200)))
    return path


def some_shards(draw, data_seed):
    """(the source, data): texts of many sizes in files of records, compressed or not. Tables if their writer is there."""
    lines = some_lines(data_seed)
    kind = draw.choice(["tar", "tfrecord", "records", "gzip", "parquet", "arrow", "hdf5"])
    path = temp / f"{kind}-{data_seed}"
    texts = some_text(1500, data_seed)
    if kind == "gzip":
        if not path.exists():
            with gzip.open(path, "wt", compresslevel=1) as file:
                file.writelines(text + "\n" for text in texts)
        return "source.lines: {path: \"${data}\"}", path
    if kind in ("parquet", "arrow", "hdf5") and write_table(kind, path, texts):
        return f"source.{kind}: {{path: \"${{data}}\"}}", path
    kind = kind if kind in ("tar", "tfrecord") else "records"
    path = temp / f"{kind}-{data_seed}"
    if not path.exists():
        source = graph("lines", "params:\n  data: {type: path}\npipeline:\n  - source.list: {path: \"${data}\"}\n")
        run("pack", source, "-p", f"data={lines}", "-o", path, "--format", kind, "--shard-bytes", 10**7, "-q")
    return {"tar": "source.tar: {path: \"${data}\"}",
            "tfrecord": "source.tfrecord: {path: \"${data}\", field: text}",
            "records": "source.records: {path: \"${data}\"}"}[kind], path


def sound_steps(draw):
    """Steps that make samples, and perhaps spectra, of some_sounds()."""
    steps = ["source.files: {path: \"${data}\", suffixes: [wav]}", "audio.decode: {}",
             f"audio.resample: {{rate: {draw.choice([8000, 16000])}}}", "audio.mono: {}"]
    steps += draw.choice([[], ["audio.speed: {}"], ["audio.pitch: {steps: [-1, 1]}"],
                          ["audio.time_stretch: {rate: [0.8, 1.2]}"]])
    return steps + draw.choice([[], ["audio.mel: {hop: 100}"], ["audio.spectrogram: {n_fft: 1024, hop: 100}"]])


def token_steps(draw):
    """Whole graphs of tokens or words of texts."""
    steps = [TEXTS, *draw.choice([[], ["order.shuffle: {}"], ["order.shuffle: {window: 100}"]])]
    if draw.random() < 0.3:
        return [*steps, "text.split: {}", "record.flat: {fields: [words]}", "batch.stack: {size: 1000}"]
    steps.append(f"text.tokenize_bpe: {{json: {tokenizer()}}}")
    return steps + draw.choice([
        ["tokens.pack: {length: 4096}", "batch.stack: {size: 4}"], ["flow.window: {size: 4, ragged: true}"],
        ["batch.bucket: {by: tokens, boundaries: [100, 9000], elements: 80000, too_long: drop}"],
        ["batch.stack: {size: 8, ragged: true}"],
    ])


def image_step(draw):
    size = draw.choice([100, 224, 500, 1000, 2000])
    return draw.choice([
        f"image.resize: {{size: {size}}}", f"image.resize_shortest: {{size: {size}}}",
        f"image.resize_shortest: {{size: {size}, max_size: {size * 2}}}",
        f"image.pad: {{padding: {draw.choice([3, 200])}}}", f"image.random_resized_crop: {{size: {size}}}",
        "image.flip: {}", "image.color_jitter: {brightness: 0.3}", "image.gaussian_blur: {size: 5}",
        "image.rotate: {degrees: 30, expand: true}", "tensor.cast: {dtype: float32}",
        f"image.scale_jitter: {{size: {size}}}", "image.zoom_out: {side_range: [1, 2]}",
    ])


def chain_step(draw, condition):
    """Steps that keep records apart, gather them or hold them back."""
    size = draw.choice([1, 2, 4, 8])
    keep = f"record.filter: {{expr: \"{condition}\"}}"
    return draw.choice([
        [keep], [f"batch.pad: {{size: {size}}}", "batch.unbatch: {}"],
        [keep, f"order.shuffle: {{window: {draw.choice([2, 8, 30])}}}"],
    ])


def random_graph(draw, data_seed):
    """(steps, data)"""
    kind = draw.random()
    if kind < 0.1:
        return token_steps(draw), texts_of_two_sizes()
    if kind < 0.2:
        data, steps, condition = some_sounds(data_seed), sound_steps(draw), "rate > 3"
    elif kind < 0.3:
        data, steps, condition = some_lines(data_seed), ["source.list: {path: \"${data}\"}"], "text.length != 3"
    elif kind < 0.6:
        source, data = some_shards(draw, data_seed)
        condition = "number != 3" if "hdf5" in source else "text.length != 3"
        steps = [source, *draw.choice([[], ["order.take: {count: 100}", f"order.shuffle: {{seed: {draw.randrange(9)}}}"]])]
    else:
        data, condition = some_photos(draw, data_seed), "image.height != 3"
        steps = ["source.files: {path: \"${data}\", labels: none}", "image.decode: {}"]
        steps += [image_step(draw) for _ in range(draw.randrange(4))]
    for _ in range(draw.randrange(4)):
        steps += chain_step(draw, condition)
        if "image" in condition and draw.random() < 0.3:
            steps.append(image_step(draw))
    if "image" in condition and draw.random() < 0.2:
        size = draw.choice(["size: 4", "size: [8, 4, 2]", "elements: 6000"])
        steps.append(f"batch.bucket: {{by: image, dim: 0, boundaries: [400, 900], {size}, too_long: drop}}")
    elif draw.random() < 0.9:
        steps.append(f"batch.pad: {{size: {draw.choice([1, 3, 8, 16])}}}")
    return steps, data


def random_words(draw):
    threads = draw.choice([0, 1, 2, 8])
    words = ["--variant", "inline"] if threads == 0 else ["--threads", str(threads)]
    if threads > 0 and draw.random() < 0.2:
        words += ["--variant", "processes"]
    return [*words, "--epochs", str(draw.choice([1, 2])), "--seed", str(draw.randrange(100))]


def fits(path, data, words):
    """Whether the steps of the graph fit each other and this machine."""
    done = run("plan", path, "-p", f"data={data}", "--memory", MOST, *words, code=None)
    return done.returncode == 0


def check_random(seed):
    """Returns whether the drawn budget was enough."""
    draw = random.Random(seed)
    budget = int(30 * 10**6 * 60 ** draw.random())
    words, path = random_words(draw), None
    while path is None or not fits(path, data, words[:2]):
        steps, data = random_graph(draw, seed // 100)
        text = "params:\n  data: {type: path}\npipeline:\n" + "".join(f"  - {step}\n" for step in steps)
        path = graph("random.yaml", text)
    try:
        return check(path, data, budget, words)[0]
    except AssertionError as failure:
        raise AssertionError(f"HEADRACE_TEST_SEED={seed}, {data.name} --memory {budget} {' '.join(words)}\n"
                             f"{failure}\n{text}") from None


@test
def random_graphs_keep_a_budget():
    enough, failures = 0, []
    print(f"# HEADRACE_TEST_SEED={SEED}", flush=True)
    for seed in range(SEED, SEED + GRAPHS):
        try:
            enough += check_random(seed)
        except AssertionError as failure:
            failures.append(str(failure))
            print("".join(f"# {line}\n" for line in failures[-1].splitlines()), end="", flush=True)
    print(f"# {enough} of {GRAPHS} budgets were enough")
    assert not failures, f"{len(failures)} of {GRAPHS} failed:\n" + "\n".join(failures)


main()
