"""A memory budget is kept within a tenth, or refused with the least that would do.

    python3 tests/e2e/memory_test.py HEADRACE SOURCE_DIR [part of a name]
"""
import os
import re
import subprocess

from support import graph, headrace, main, photos, test

UNITS = {"B": 1, "kB": 1000, "MB": 10**6, "GB": 10**9}
FIXED = 40 * 10**6  # what a process takes that no budget below it can change

HEAD = ("params:\n  data: {type: path}\npipeline:\n  - source.files: {path: \"${data}\"}\n"
        "  - image.decode: {}\n")
FILTER = "  - record.filter: {expr: \"image.height > 0\"}\n"


def run_within(path, budget):
    """(exit code, stderr, peak resident bytes) of a run with this budget."""
    command = [headrace, "run", path, "-p", f"data={photos()}", "--epochs", "3", "--memory", str(budget), "-q"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, errors, usage.ru_maxrss * 1024


def least(errors):
    """The figure that a refusal names, in bytes."""
    found = re.search(r"at least ([0-9.]+) (B|kB|MB|GB)", errors)
    assert found, errors
    return int(float(found[1]) * UNITS[found[2]]) + 1


def check(name, text):
    path, budget = graph(name, text), 10**6
    for _ in range(16):
        code, errors, peak = run_within(path, budget)
        assert peak <= max(1.1 * budget, FIXED), f"{peak} bytes with a budget of {budget}"
        if code == 0:
            return
        assert "too small" in errors and least(errors) > budget, errors
        budget = least(errors)
    raise AssertionError(f"no figure that a refusal named was enough; the last was {budget}")


@test
def records_of_unknown_size_keep_a_budget():
    check("rebatch", HEAD + "  - image.resize_shortest: {size: 1000}\n  - batch.pad: {size: 4}\n"
                            "  - batch.unbatch: {}\n" + FILTER + "  - batch.pad: {size: 4}\n")


@test
def a_window_of_records_keeps_a_budget():
    check("window", HEAD + "  - image.resize_shortest: {size: 400}\n" + FILTER +
          "  - order.shuffle: {window: 20}\n  - batch.pad: {size: 4}\n")


@test
def batches_of_one_size_keep_a_budget():
    check("direct", HEAD + "  - image.random_resized_crop: {size: 224}\n  - batch.stack: {size: 8}\n")


main()
