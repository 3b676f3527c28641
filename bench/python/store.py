"""Objects of 4 MB from a local S3 gateway (Ceph's radosgw), beside `curl --parallel`: python store.py BUILD

Both read the same objects with as many connections, each in a process of its own, in turns; the wall times of whole
processes are compared, and the median of the ratios is printed: for one epoch, and for each further one. In the first,
Headrace touches the memory of the objects in flight for the first time, which may take longer than receiving them does.
curl throws the bytes away, Headrace delivers them in batches. The gateway shares the machine with both.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

root = pathlib.Path(__file__).resolve().parents[2]
support = root / "tests/support"
sys.path.insert(0, str(support))
OBJECTS, BYTES, ROUNDS, CONNECTIONS, EPOCHS = 96, 4 << 20, 7, 32, 4
AHEAD = (CONNECTIONS + 8) * BYTES


@contextlib.contextmanager
def server(script: str, folder: pathlib.Path) -> Iterator[int]:
    command = [sys.executable, str(support / script), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            sys.exit("store: skipped, radosgw is not installed (ceph-mon, ceph-osd, radosgw, ceph-common)")
        yield int(line)
        process.communicate()


def seconds(*command: object) -> float:
    begin = time.perf_counter()
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def write_graph(path: pathlib.Path, source: str) -> pathlib.Path:
    path.write_text(f"headrace: 1\npipeline:\n  - {source}\n  - batch.stack: {{size: 4}}\n")
    return path


def report(name: str, here: list[float], there: list[float], against: str) -> None:
    ratio = statistics.median(b / a for a, b in zip(here, there, strict=True))
    rate = OBJECTS * BYTES / 1e6 / max(statistics.median(here), 1e-9)
    print(f"{name:44} {rate:7.0f} MB/s   {ratio:5.2f} x {against}   ({min(here):.2f} .. {max(here):.2f} s)")


def race(run: list[object], graph: pathlib.Path, urls: pathlib.Path) -> None:
    many = urls.with_suffix(".many")
    many.write_text(urls.read_text() * EPOCHS)
    curl = ["curl", "-s", "--parallel", "--parallel-immediate", "--parallel-max", CONNECTIONS, "-K"]
    first: list[tuple[float, float]] = []
    further: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        one = seconds(*run, graph), seconds(*curl, urls)
        all_ = seconds(*run, "--epochs", EPOCHS, graph), seconds(*curl, many)
        first.append(one)
        further.append(((all_[0] - one[0]) / (EPOCHS - 1), (all_[1] - one[1]) / (EPOCHS - 1)))
    for name, pairs in (("first epoch", first), ("each further epoch", further)):
        report(f"{OBJECTS} objects of 4 MB, {name}", *map(list, zip(*pairs, strict=True)), "curl --parallel")


def main() -> None:
    import radosgw

    build = pathlib.Path(sys.argv[1]).resolve()
    variables = {"AWS_ACCESS_KEY_ID": radosgw.KEY, "AWS_SECRET_ACCESS_KEY": radosgw.SECRET}
    os.environ.update(variables, AWS_REGION=radosgw.REGION, no_proxy="*", HEADRACE_HTTP_CONNECTIONS=str(CONNECTIONS))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run = [build / "headrace", "run", "--ahead", AHEAD, "--quiet"]
        with server("radosgw.py", folder / "ceph") as port:
            os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
            radosgw.make_bucket(port, "bench")
            urls = []
            for i in range(OBJECTS):
                radosgw.put(port, "bench", f"{i:03d}.bin", os.urandom(BYTES), "public-read")
                urls.append(f'url = "http://127.0.0.1:{port}/bench/{i:03d}.bin"\noutput = "/dev/null"\n')
            (folder / "urls").write_text("".join(urls))
            graph = write_graph(folder / "s3.yaml", "source.files: {path: s3://bench, suffixes: [bin]}")
            race(run, graph, folder / "urls")


main()
