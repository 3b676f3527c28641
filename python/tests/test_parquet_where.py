"""source.parquet with `where`: row groups are skipped, and the records are those of record.filter."""

from __future__ import annotations

import http.server
import itertools
import math
import pathlib
import random
import re
import threading
from typing import Any

import pytest

import headrace as hr
from test_arrow import rows

WORDS = ["", "a", "ab", "b", "ba", "é", "z" * 100, "z" * 99 + "a"]
FILL = {"i": "3", "f": "0.5", "t": "=b", "b": "true", "u": "7", "y": "=q", "h": "1"}


def draw_condition(rng: random.Random, depth: int = 2) -> str:
    sign = rng.choice(["<", "<=", ">", ">=", "==", "!="])
    match rng.randrange(9 if depth else 6):
        case 0:
            return f"{rng.choice(['i', 'u', 's.n', 'l.length', 'h'])} {sign} {rng.randrange(-3, 12)}"
        case 1:
            return f"{rng.choice(['f', 'i'])} {sign} {rng.randrange(-3, 12)} / 2.0"
        case 2:
            return f"{rng.choice(['t', 'y'])} {sign} '{rng.choice(WORDS)}'"
        case 3:
            return rng.choice(["b", "not b"])
        case 4:
            return f"{rng.choice(['i', 'u'])} {rng.choice(['in', 'not in'])} [{rng.randrange(9)}, {rng.randrange(99)}]"
        case 5:
            return f"i {rng.choice('+-*/%')} {rng.choice(['u', '2', 'f'])} {sign} {rng.randrange(-9, 99)}"
        case 6:
            return f"not ({draw_condition(rng, depth - 1)})"
        case _:
            parts = draw_condition(rng, depth - 1), draw_condition(rng, depth - 1)
            return f"({parts[0]} {rng.choice(['and', 'or'])} {parts[1]})"


def draw_table(pa: Any, rng: random.Random, count: int) -> Any:
    """Values that differ between row groups, with nulls and NaN."""
    nulls = rng.choice([0, 0, 0.01, 0.3])
    base = 0

    def column(make: Any, kind: Any) -> Any:
        values = []
        for at in range(count):
            if at % 20 == 0 and rng.random() < 0.3:  # groups of nulls
                values += [None] * 20
            values.append(None if rng.random() < nulls else make(base + at // 10))
        return pa.array(values[:count] if nulls else [v if v is not None else make(0) for v in values[:count]], kind)

    columns = {
        "i": column(lambda k: k + rng.randrange(-2, 3), pa.int16()),
        "u": column(lambda k: rng.choice([k, k, k, 2**31 + k, 2**63 + k if rng.random() < 0.01 else k]), pa.uint64()),
        "f": column(lambda k: rng.choice([k / 2, k, math.nan if rng.random() < 0.1 else 0.0, -0.0]), pa.float32()),
        "t": column(lambda k: rng.choice(WORDS[k % 4 :]), pa.string()),
        "y": column(lambda k: rng.choice(WORDS[k % 5 :]).encode(), pa.binary()),
        "b": column(lambda k: k % 3 == 0, pa.bool_()),
        "h": column(lambda k: k % 7, pa.uint8()),
        "l": pa.array([[1] * rng.randrange(4) for _ in range(count)], pa.list_(pa.int32())),
        "s": pa.StructArray.from_arrays([pa.array([at // 10 for at in range(count)], pa.int32())], ["n"]),
    }
    return pa.table(columns)


def outcome(pipe: Any, **run: Any) -> Any:
    return [repr(row) for row in rows(pipe, on_error="skip", errors_max=10**6, **run)]


def skipped(pipe: Any) -> int:
    """Row groups that are not read."""
    found = re.search(r"(\d+) of \d+ row groups are skipped by where", pipe.explain())
    assert found is not None
    return int(found[1])


def test_records_are_those_of_a_filter(tmp_path: pathlib.Path, rng: random.Random) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    gone = some = 0
    for at in range(12):
        path = tmp_path / f"{at}.parquet"
        groups = at < 3  # of some tables there is something to leave out, whatever is drawn
        table = draw_table(pa, rng, 250 if groups else rng.choice([1, 90, 250]))
        pq.write_table(
            table,
            path,
            row_group_size=10 if groups else rng.choice([1, 10, 20, 1000]),
            data_page_size=rng.choice([50, 10**6]),
            write_statistics=groups or rng.choice([True, True, True, ["i", "t"], False]),
            data_page_version=rng.choice(["1.0", "2.0"]),
        )
        for _ in range(25):
            where = draw_condition(rng)
            options: dict[str, Any] = {"fill": FILL} if rng.random() < 0.6 else {}
            wanted = outcome(hr.parquet(path, **options).where(where))
            pipe = hr.parquet(path, where=where, **options)
            assert outcome(pipe, threads=rng.choice([0, 2])) == wanted, (where, options)
            gone += skipped(pipe.batch(1, ragged=True))
            some += bool(wanted)
    assert gone > 0
    assert some > 50


@pytest.fixture
def ordered(tmp_path: pathlib.Path) -> pathlib.Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(1000), "text": [f"{i:04d}" for i in range(1000)]}), path, row_group_size=100)
    return path


def test_order_shares_and_resume(ordered: pathlib.Path, rng: random.Random) -> None:
    where = "id >= 250 and id < 450 and id % 3 == 0"
    wanted = [i for i in range(250, 450) if i % 3 == 0]
    pipe = hr.parquet(ordered, where=where)
    assert skipped(pipe.batch(1)) == 7

    def ids(pipe: Any, **run: Any) -> list[int]:
        return [row["id"] for row in rows(pipe, **run)]

    assert ids(pipe) == wanted
    assert ids(pipe.take(5)) == wanted[:5]
    assert ids(pipe.skip(60).take(3)) == wanted[60:63]
    runs = [ids(pipe.shuffle(), seed=4, threads=threads) for threads in (0, 2)]
    assert runs[0] == runs[1] != wanted
    assert sorted(runs[0]) == wanted
    assert sorted(ids(pipe.shuffle().take(9), seed=4)) == sorted(runs[0][:9])
    assert sorted(ids(pipe.shuffle(window=16))) == wanted
    assert sorted(ids(pipe.repeat(2))) == sorted(wanted * 2)
    parts = [sorted(ids(part)) for part in hr.split(pipe, [0.5, 0.5], seed=1, by="id")]
    assert sorted(parts[0] + parts[1]) == wanted
    assert parts[0] and parts[1]
    for drop_last in (False, True):
        batches = [len(b["id"]) for b in pipe.batch(10, drop_last=drop_last).loader(output="numpy", threads=2)]
        assert batches == [10] * 6 + [6] * (not drop_last)
    shares = [ids(pipe.shuffle(), seed=2, shard=(rank, 3), even="none") for rank in range(3)]
    assert sorted(itertools.chain(*shares)) == wanted
    loader = pipe.shuffle().batch(4).loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = [x for _ in range(rng.randrange(1, 20)) for x in next(run)["id"]]
    again = pipe.shuffle().batch(4).loader(seed=3, epochs=2, output="numpy")
    again.load_state_dict(loader.state_dict())
    whole = [x for b in pipe.shuffle().batch(4).loader(seed=3, epochs=2, output="numpy") for x in b["id"]]
    assert head + [x for b in again for x in b["id"]] == whole
    assert ids(hr.parquet(ordered, where="id < 0")) == []
    assert ids(hr.parquet(ordered, where="id < 0").shuffle()) == []


def test_what_cannot_be_is_refused(ordered: pathlib.Path) -> None:
    def refused(where: str, words: str) -> None:
        with pytest.raises(hr.HeadraceError, match=words):
            rows(hr.parquet(ordered, where=where))

    refused("idd < 3", 'there is no field "idd"; did you mean "id"')
    refused("id +", "ends too early")
    refused("id + 1", "the condition must be true or false")
    refused("text < 3", "a string cannot be compared with an int")
    with pytest.raises(hr.HeadraceError, match="drops some of one: records would be mispaired"):
        hr.zip(hr.parquet(ordered, where="id < 3"), hr.parquet(ordered)).batch(1).loader()
    with pytest.raises(hr.HeadraceError, match=r"drops some of: put it directly after"):
        hr.parquet(ordered, where="id < 3").take(3).shuffle().batch(1).loader()


def test_skipped_row_groups_are_not_read(ordered: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Pages of other row groups may be damaged."""
    pq = pytest.importorskip("pyarrow.parquet")
    data = bytearray(ordered.read_bytes())
    meta = pq.ParquetFile(ordered).metadata
    for group in range(10):
        if group != 4:
            for column in range(2):
                chunk = meta.row_group(group).column(column)
                at = chunk.dictionary_page_offset or chunk.data_page_offset
                data[at : at + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path = tmp_path / "damaged.parquet"
    path.write_bytes(data)
    assert [row["id"] for row in rows(hr.parquet(path, where="id >= 410 and text < '0420'"))] == [*range(410, 420)]
    with pytest.raises(hr.HeadraceError, match="row group 0"):
        rows(hr.parquet(path).where("id >= 410 and text < '0420'"))


class Server(http.server.BaseHTTPRequestHandler):
    """Serves one object by ranges, and marks what it sends. A slow answer is asked for twice (a hedge)."""

    protocol_version = "HTTP/1.1"
    data = b""
    sent = bytearray()

    def do_HEAD(self) -> None:
        self.answer(200, b"", len(self.data))

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"] or "")
        if found is None:
            self.sent[:] = b"\1" * len(self.data)
            self.answer(200, self.data, len(self.data))
            return
        first, last = int(found[1]), min(int(found[2]), len(self.data) - 1)
        self.sent[first : last + 1] = b"\1" * (last + 1 - first)
        self.answer(206, self.data[first : last + 1], last + 1 - first, f"bytes {first}-{last}/{len(self.data)}")

    def answer(self, status: int, body: bytes, length: int, span: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"one"')
        if span is not None:
            self.send_header("Content-Range", span)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def test_skipped_row_groups_are_not_fetched(
    tmp_path: pathlib.Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setenv("no_proxy", "*")
    path = tmp_path / "a.parquet"
    table = pa.table({"id": range(1000), "data": [rng.randbytes(2000) for _ in range(1000)]})
    pq.write_table(table, path, row_group_size=100, compression="none", use_dictionary=False)
    Server.data = path.read_bytes()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}/a.parquet"
        sent = []
        for where in (False, True):
            Server.sent = bytearray(len(Server.data))
            try:
                pipe = hr.parquet(uri, where="id < 150") if where else hr.parquet(uri).where("id < 150")
                assert [row["id"] for row in rows(pipe)] == [*range(150)]
            except hr.HeadraceError as error:
                if "no libcurl" not in str(error):
                    raise
                pytest.skip("built without libcurl")
            sent.append(sum(Server.sent))
        server.shutdown()
    print(f"bytes sent: {sent[0]} with a filter, {sent[1]} with where")
    assert sent[0] > 10 * 200_000
    assert sent[1] < 4 * 200_000
