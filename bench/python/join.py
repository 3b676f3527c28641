"""Tables joined by an integer key by hr.join and by merge of pandas.

    bench/python/join.py [ROWS]

Two tables of ROWS rows, a million unless given, with the same keys in two random orders and a column each, as
Parquet and as CSV files. Each join runs in a process of its own, three times in turns. Prints medians of
CPU time: for pandas to read both files and to merge the frames, for hr.join to list the pairs, which reads
only the keys; and by how many MB the process was larger than before the files were read, at most and
afterwards. Checks that both give the same pairs.
"""

import hashlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def resident(field="VmRSS"):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def make(folder, rows):
    import numpy
    import pandas

    rng = numpy.random.default_rng(1)
    for name in "ab":
        table = pandas.DataFrame({"id": rng.permutation(rows) * 3, name: numpy.arange(rows)})
        table.to_parquet(folder / f"{name}.parquet")
        table.to_csv(folder / f"{name}.csv", index=False)


def by_pandas(folder, kind):
    import pandas

    before, start = resident(), time.process_time()
    left, right = (getattr(pandas, f"read_{kind}")(folder / f"{name}.{kind}") for name in "ab")
    read = time.process_time()
    both = left.merge(right, on="id")
    return before, start, read, lambda: both[["a", "b"]].to_numpy()


def by_headrace(folder, kind):
    import numpy

    import headrace as hr

    before, start = resident(), time.process_time()
    both = hr.join(*(getattr(hr, kind)(folder / f"{name}.{kind}") for name in "ab"), on="id")
    assert both.record_count is not None

    def pairs():
        batches = both.batch(1000).loader(output="numpy")
        return numpy.concatenate([numpy.stack([batch.a, batch.b], axis=1) for batch in batches])

    return before, start, start, pairs


def run_one(folder, kind, who):
    before, start, read, pairs = {"pandas": by_pandas, "hr.join": by_headrace}[who](folder, kind)
    end, peak = time.process_time(), resident("VmHWM")
    found = {"read": read - start, "join": end - read, "peak": peak - before, "after": resident() - before}
    print(json.dumps(found | {"digest": hashlib.sha256(pairs().tobytes()).hexdigest()}))


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        make(pathlib.Path(name), rows)
        for kind in "parquet", "csv":
            found = {"pandas": [], "hr.join": []}
            for _ in range(3):
                for who, runs in found.items():
                    command = [sys.executable, __file__, name, kind, who]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    runs.append(json.loads(done.stdout))
            assert len({run["digest"] for runs in found.values() for run in runs}) == 1, "other pairs"
            for who, runs in found.items():
                read, join, peak, after = (
                    statistics.median(run[name] for run in runs) for name in ("read", "join", "peak", "after")
                )
                print(
                    f"{kind:8} {who:8} reads {read:5.2f} s, joins {join:5.2f} s, "
                    f"+{peak:4.0f} MB at most, +{after:4.0f} MB after"
                )


if len(sys.argv) == 4:
    run_one(pathlib.Path(sys.argv[1]), *sys.argv[2:])
else:
    main()
