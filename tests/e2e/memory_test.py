"""A memory budget is kept within a tenth, or refused with a figure that then works.

    python3 tests/e2e/memory_test.py HEADRACE SOURCE_DIR [part of a name]

Random graphs over photos of 0.1 to 12 megapixels and over lines of up to 2 MB run with random budgets, each in a
process of its own, in `make nightly`. HEADRACE_TEST_GRAPHS is their number, HEADRACE_TEST_SEED the first seed; a graph
that fails can be run alone with its own seed. What counts is the peak resident size of the process that the user
starts. It contains what it shares with worker processes; their own heaps are not part of the budget, nor is a text
file, whose pages the kernel takes back at any time.
"""
import os
import random
import re
import subprocess
import sys

from support import Skip, graph, headrace, main, photos, run, temp, test

UNITS = {"B": 1, "kB": 1000, "MB": 10**6, "GB": 10**9}
GRAPHS = int(os.environ.get("HEADRACE_TEST_GRAPHS", 0))
SEED = int(os.environ.get("HEADRACE_TEST_SEED", random.SystemRandom().randrange(10**9)))

MOST = 10**9  # graphs that need more are drawn again

HEAD = ("params:\n  data: {type: path}\npipeline:\n  - source.files: {path: \"${data}\"}\n"
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
    """Returns whether the budget was enough."""
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
    return enough


@test
def records_of_unknown_size_keep_a_budget():
    check(graph("rebatch", HEAD + "  - image.resize_shortest: {size: 1000}\n  - batch.pad: {size: 4}\n"
                "  - batch.unbatch: {}\n" + FILTER + "  - batch.pad: {size: 4}\n"), photos(), 10**6)


@test
def a_window_of_records_keeps_a_budget():
    check(graph("window", HEAD + "  - image.resize_shortest: {size: 400}\n" + FILTER +
                "  - order.shuffle: {window: 20}\n  - batch.pad: {size: 4}\n"), photos(), 10**6)


@test
def batches_of_one_size_keep_a_budget():
    check(graph("direct", HEAD + "  - image.random_resized_crop: {size: 224}\n  - batch.stack: {size: 8}\n"),
          photos(), 10**6)


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


def image_step(draw):
    size = draw.choice([100, 224, 500, 1000, 2000])
    return draw.choice([
        f"image.resize: {{size: {size}}}", f"image.resize_shortest: {{size: {size}}}",
        f"image.resize_shortest: {{size: {size}, max_size: {size * 2}}}",
        f"image.pad: {{padding: {draw.choice([3, 200])}}}", f"image.random_resized_crop: {{size: {size}}}",
        "image.flip: {}", "image.color_jitter: {brightness: 0.3}", "image.gaussian_blur: {size: 5}",
        "image.rotate: {degrees: 30, expand: true}", "tensor.cast: {dtype: float32}",
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
    if draw.random() < 0.2:
        data, steps, condition = some_lines(data_seed), ["source.list: {path: \"${data}\"}"], "text.length != 3"
    else:
        data, condition = some_photos(draw, data_seed), "image.height != 3"
        steps = ["source.files: {path: \"${data}\", labels: none}", "image.decode: {}"]
        steps += [image_step(draw) for _ in range(draw.randrange(4))]
    for _ in range(draw.randrange(4)):
        steps += chain_step(draw, condition)
        if "image" in condition and draw.random() < 0.3:
            steps.append(image_step(draw))
    if draw.random() < 0.9:
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
        return check(path, data, budget, words)
    except AssertionError as failure:
        raise AssertionError(f"HEADRACE_TEST_SEED={seed}, {data.name} --memory {budget} {' '.join(words)}\n"
                             f"{failure}\n{text}") from None


@test
def random_graphs_keep_a_budget():
    if GRAPHS == 0:
        raise Skip("make nightly runs them, or HEADRACE_TEST_GRAPHS=n")
    enough, failures = 0, []
    print(f"# HEADRACE_TEST_SEED={SEED}", flush=True)
    for seed in range(SEED, SEED + GRAPHS):
        try:
            enough += check_random(seed)
        except AssertionError as failure:
            failures.append(str(failure))
    print(f"# {enough} of {GRAPHS} budgets were enough")
    assert not failures, f"{len(failures)} of {GRAPHS} failed:\n" + "\n".join(failures)


main()
