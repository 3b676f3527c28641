"""Sources over HTTP give what they give from files, from servers with and without faults."""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import run_script
from voc import Voc

SERVER = pathlib.Path(__file__).parents[2] / "tests/support/http_server.py"
CORPUS = pathlib.Path(__file__).parents[2] / "fuzz/corpus/parquet"


@contextlib.contextmanager
def serve(folder: pathlib.Path) -> Iterator[str]:
    """The address of a server of the folder, which ends, and writes its statistics, with the block."""
    command = [sys.executable, str(SERVER), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.communicate()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(folder: pathlib.Path) -> Iterator[str]:
    with serve(folder) as address:
        yield address


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def need_http(uri: str) -> None:
    try:
        hr.tar(uri, fields={"data": "bin"}).batch(1).loader()
    except hr.HeadraceError as error:
        if "no libcurl" in str(error):
            pytest.skip("built without libcurl")


def records(pipe: hr.Pipeline, **options: Any) -> list[Any]:
    return [tuple(map(repr, batch.values())) for batch in pipe.batch(5, ragged=True).loader(output="numpy", **options)]


def write_tars(folder: pathlib.Path, rng: random.Random) -> None:
    for shard in range(3):
        with tarfile.open(folder / f"part {shard:03d}.tar", "w") as archive:
            for i in range(rng.randrange(1, 30)):
                for end, data in (("bin", rng.randbytes(rng.choice([0, 10, 3000, 200_000]))), ("cls", b"%d" % i)):
                    info = tarfile.TarInfo(f"{shard}-{i}.{end}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))


def masked_crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def pack_record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def tar_of(where: Any) -> hr.Pipeline:
    return hr.tar(where, fields={"data": "bin", "label": "cls"}, keys=True).shuffle()


@pytest.mark.parametrize("task", ["detection", "segmentation"])
def test_pictures_of_voc_over_http(folder: pathlib.Path, server: str, task: str) -> None:
    need_http(f"{server}/none.tar")
    where = f"VOC {task}"
    voc = Voc(folder / where)
    local = records(hr.voc(voc.folder, task=task).shuffle(), seed=3)  # type: ignore[arg-type]
    for faults in ("", "f/noranges=1/", "f/each=7,status=503/", "f/each=5,cut=400/"):
        for threads in (1, 3):
            served = hr.voc(f"{server}/{faults}{where}", task=task).shuffle()  # type: ignore[arg-type]
            assert records(served, seed=3, threads=threads) == local
    voc.path("JPEGImages", voc.names[2], ".jpg").unlink()
    with pytest.raises(hr.MissingFileError, match=rf"{voc.names[2]}\.jpg"):
        records(hr.voc(f"{server}/{where}", task=task))  # type: ignore[arg-type]


@pytest.mark.parametrize("faults", ["", "f/noranges=1/", "f/each=7,status=503/", "f/each=5,cut=4000/", "f/piece=100/"])
def test_shards_over_http_are_shards_of_files(
    folder: pathlib.Path, server: str, rng: random.Random, faults: str
) -> None:
    write_tars(folder, rng)
    need_http(f"{server}/part 000.tar")
    local = records(tar_of(f"{folder}/part {{000..002}}.tar"), seed=3)
    for threads in (1, 3):
        assert records(tar_of(f"{server}/{faults}part {{000..002}}.tar"), seed=3, threads=threads) == local


def test_each_object_is_asked_for_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without hedges, which ask for slow answers again: a process reads that once."""
    voc = Voc(tmp_path / "VOC")
    monkeypatch.setenv("HEADRACE_HTTP_HEDGE", "0")
    with serve(tmp_path) as address:
        need_http(f"{address}/none.tar")
        pipe = f"hr.voc('{address}/VOC').shuffle().batch(5, ragged=True)"
        done = run_script(tmp_path, f"import headrace as hr\nfor batch in {pipe}.loader(seed=3):\n    pass\n")
        assert done.returncode == 0, done.stderr
    lines = (tmp_path / "log").read_text().splitlines()
    photos = [line for line in lines if "/JPEGImages/" in line]
    assert sorted(photos) == [f"/VOC/JPEGImages/{name}.jpg - 200" for name in sorted(voc.names)]


@pytest.mark.parametrize("join", ["concat", "mix", "zip"])
def test_all_inputs_of_a_join_are_read_ahead(tmp_path: pathlib.Path, rng: random.Random, join: str) -> None:
    for name in ("a", "b"):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            for i in range(20):
                info = tarfile.TarInfo(f"{i}.bin")
                info.size = 100_000
                archive.addfile(info, io.BytesIO(rng.randbytes(info.size)))
    with serve(tmp_path) as address:
        server = f"{address}/f/wait=30"
        need_http(f"{server}/a.tar")
        inputs = [hr.tar(f"{server}/{name}.tar", fields={"data": "bin"}) for name in "ab"]
        if join == "concat":
            pipe = hr.concat(*inputs)
        elif join == "mix":
            pipe = hr.mix(inputs, until="first")
        else:
            pipe = hr.zip(*inputs, prefix=["a_", "b_"])
        records(pipe, threads=1)
    assert int((tmp_path / "busy").read_text()) > 4


def test_other_sources_over_http(folder: pathlib.Path, server: str, rng: random.Random, command: str) -> None:
    write_tars(folder, rng)
    need_http(f"{server}/part 000.tar")
    images = bytes(rng.randrange(256) for _ in range(5 * 4))
    (folder / "images").write_bytes(struct.pack(">IIII", 0x803, 5, 2, 2) + images)
    (folder / "labels").write_bytes(struct.pack(">II", 0x801, 5) + bytes(range(5)))
    (folder / "lines.txt").write_text("one\ntwo\n\nthree")
    local, remote = (records(hr.idx(f"{at}/images", labels=f"{at}/labels")) for at in (str(folder), server))
    assert local == remote and len(local) == 1
    local, remote = (records(hr.list(f"{at}/lines.txt")) for at in (str(folder), server))
    assert local == remote
    (folder / "few.tfrecord").write_bytes(b"".join(pack_record(b"%d" % i * i) for i in range(20)))
    local, remote = (records(hr.tfrecord(f"{at}/few.tfrecord").shuffle()) for at in (str(folder), server))
    assert local == remote
    graph = folder / "graph.yaml"
    hr.range(40).save(graph)
    subprocess.run([command, "pack", graph, "-o", folder / "packed", "-q"], check=True)
    name = next((folder / "packed").glob("*.records")).name
    local, remote = (records(hr.records(f"{at}/packed/{name}").shuffle()) for at in (str(folder), server))
    assert local == remote
    shown = subprocess.run(
        [command, "inspect", f"{server}/packed/{name}"], check=True, stdout=subprocess.PIPE, text=True
    )
    assert "40 whole records, 0 damaged" in shown.stdout


@pytest.mark.parametrize("faults", ["", "f/noranges=1/", "f/each=7,status=503/", "f/each=5,cut=400/", "f/piece=100/"])
def test_row_groups_over_http_are_those_of_files(
    folder: pathlib.Path, server: str, rng: random.Random, faults: str
) -> None:
    write_tars(folder, rng)
    need_http(f"{server}/part 000.tar")
    for name in ("plain", "snappy"):
        (folder / f"{name} 1.parquet").write_bytes((CORPUS / name).read_bytes())
    for pipe in (lambda where: hr.parquet(where, page_cache=rng.choice([0, 1 << 20])), hr.parquet):
        for order in (lambda pipe: pipe, lambda pipe: pipe.shuffle()):
            local = records(order(pipe(f"{folder}/{{plain,snappy}} 1.parquet")), seed=3)
            for threads in (0, 3):
                remote = order(pipe(f"{server}/{faults}{{plain,snappy}} 1.parquet"))
                assert records(remote, seed=3, threads=threads) == local


@pytest.mark.parametrize("name", ["chunked", "grown", "structs_new"])
def test_chunks_over_http_are_those_of_files(folder: pathlib.Path, server: str, rng: random.Random, name: str) -> None:
    write_tars(folder, rng)
    need_http(f"{server}/part 000.tar")
    (folder / f"{name}.h5").write_bytes((CORPUS.parent / "hdf5" / name).read_bytes())
    for order in (lambda pipe: pipe, lambda pipe: pipe.shuffle()):
        local = records(order(hr.hdf5(f"{folder}/{name}.h5")), seed=3)
        for threads, faults in ((0, ""), (3, "f/each=5,cut=400/")):
            assert records(order(hr.hdf5(f"{server}/{faults}{name}.h5")), seed=3, threads=threads) == local


@pytest.mark.parametrize("options", [{"chunks": (1, 100_000), "compression": "gzip"}, {"chunks": (1, 100_000)}, {}])
def test_chunks_are_fetched_ahead(tmp_path: pathlib.Path, rng: random.Random, options: dict[str, Any]) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = np.frombuffer(rng.randbytes(4_000_000), "u1").reshape(40, 100_000)
        file.create_dataset("x", data=data, **options)
    local = records(hr.hdf5(tmp_path / "a.h5"))
    with serve(tmp_path) as address:
        server = f"{address}/f/wait=30"
        need_http(f"{server}/a.h5")
        assert records(hr.hdf5(f"{server}/a.h5"), threads=1) == local
    assert int((tmp_path / "busy").read_text()) > 4


def test_errors_name_the_object_and_what_the_server_said(server: str) -> None:
    need_http(server)
    with pytest.raises(hr.HeadraceError, match=r"none.tar: HTTP status 404"):
        hr.tar(f"{server}/none.tar", fields={"data": "bin"}).batch(1).loader()
    with pytest.raises(hr.HeadraceError, match=r"HTTP status 403"):
        hr.tar(f"{server}/f/status=403/x.tar", fields={"data": "bin"}).batch(1).loader()
    with pytest.raises(hr.HeadraceError, match=r"no lists of files"):
        hr.files(f"{server}/photos").batch(1).loader()
    with pytest.raises(hr.HeadraceError, match=r"must not contain a user name") as caught:
        hr.tar("http://me:hunter2@127.0.0.1:1/x.tar", fields={"data": "bin"}).batch(1).loader()
    assert "hunter2" not in str(caught.value)
