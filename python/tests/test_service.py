"""Batches made by the workers of a service, as processes of their own."""

import ctypes
import json
import pathlib
import random
import shutil
import subprocess
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest

import headrace as hr


def begin(command: str, *words: str) -> tuple[subprocess.Popen[str], str]:
    """Starts a process of the service; returns it and its address."""
    process = subprocess.Popen([command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    if not line:
        said = process.stderr.read()
        assert "libevent" in said or "OpenSSL" in said, said
        pytest.skip(said)
    return process, line.split()[-1]


@pytest.fixture
def service(command: str) -> Iterator[str]:
    dispatcher, address = begin(command, "dispatcher", "--listen", "127.0.0.1:0")
    workers = [begin(command, "worker", "--dispatcher", address, "--threads", "1")[0] for _ in range(2)]
    yield address
    for process in (dispatcher, *workers):
        process.kill()
        process.communicate()


def values(loader: hr.Loader) -> list[list[int]]:
    return [np.asarray(batch["value"]).tolist() for batch in loader]


def numbers() -> hr.Pipeline:
    return hr.range(100).shuffle().batch(8)


def test_batches_are_those_of_a_loader_without_a_service(service: str) -> None:
    pipe = numbers()
    loader = pipe.loader(seed=3, service=service)
    again = pipe.loader(seed=3)
    assert values(loader) == values(again)
    assert values(loader) == values(again)  # the next epoch


@pytest.mark.parametrize("how", ["none", "zstd", "lz4"])
def test_batches_are_the_same_however_they_are_compressed(command: str, how: Literal["none", "zstd", "lz4"]) -> None:
    dispatcher, address = begin(command, "dispatcher", "--listen", "127.0.0.1:0")
    worker, _ = begin(command, "worker", "--dispatcher", address, "--tcp-only")
    try:
        assert values(numbers().loader(seed=3, service=address, service_compress=how)) == values(
            numbers().loader(seed=3)
        )
    finally:
        for process in (dispatcher, worker):
            process.kill()
            process.communicate()


def test_unknown_compression_is_refused() -> None:
    with pytest.raises(hr.ArgumentError, match="'auto', 'none', 'lz4' or 'zstd', not 'gzip'"):
        numbers().loader(service="127.0.0.1:1", service_compress="gzip")  # type: ignore[arg-type]


def test_a_state_goes_from_one_to_the_other(service: str) -> None:
    pipe = numbers()
    wanted = values(pipe.loader(seed=3))
    loader = pipe.loader(seed=3, service=service)
    got = []
    for batch in loader:
        got.append(np.asarray(batch["value"]).tolist())
        if len(got) == 5:
            break
    other = pipe.loader(seed=3)
    other.load_state_dict(loader.state_dict())
    assert got + values(other) == wanted


def test_runs_have_weights(service: str) -> None:
    assert values(numbers().loader(seed=3, service=service, service_weight=100)) == values(numbers().loader(seed=3))
    for weight in (0, 101, True, 1.5, "2"):
        with pytest.raises(hr.ArgumentError, match="service_weight is 1 to 100"):
            numbers().loader(service=service, service_weight=weight)  # type: ignore[arg-type]


def test_bucketed_batches_resume_on_either_side(service: str, tmp_path: pathlib.Path, rng: random.Random) -> None:
    lines = [json.dumps({"i": i, "text": "w " * rng.randrange(1, 40)}) for i in range(300)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    pipe = hr.jsonl(tmp_path / "texts.jsonl").shuffle().lower_text()
    pipe = pipe.bucketed_batch([10, 20, 40, 60], [6, 5, 4, 3, 2], by="text")

    def numbers(loader: hr.Loader) -> list[list[int]]:
        return [np.asarray(batch["i"]).tolist() for batch in loader]

    wanted = numbers(pipe.loader(seed=5, epochs=2))
    loader, states = pipe.loader(seed=5, epochs=2, service=service), []
    for batch in loader:
        states.append(loader.state_dict())
        assert np.asarray(batch["i"]).tolist() == wanted[len(states) - 1]
    assert len(states) == len(wanted)
    for at in rng.sample(range(len(states)), 4):
        for again in (pipe.loader(seed=5, epochs=2, service=service), pipe.loader(seed=5, epochs=2)):
            again.load_state_dict(states[at])
            assert numbers(again) == wanted[at + 1 :]


def test_what_only_this_process_has_runs_here(service: str) -> None:
    seen = []

    def note(value: int) -> dict[str, int]:
        seen.append(value)
        return {"value": 2 * value}

    pipe = hr.range(100).shuffle().map(note).filter(lambda value: value % 3 != 0).batch(8)
    assert values(pipe.loader(seed=3, service=service)) == values(pipe.loader(seed=3))
    assert all(seen.count(value) >= 2 for value in range(100))  # in this process, by both loops


def test_distribute_says_up_to_where(service: str) -> None:
    plain = hr.range(100).shuffle().one_hot(100, field="value").map(lambda value: {"value": value.argmax()}).batch(8)
    here = hr.range(100).shuffle().distribute(service).one_hot(100, field="value")
    pipe = here.map(lambda value: {"value": value.argmax()}).batch(8)
    assert pipe.fingerprint == plain.fingerprint
    assert values(pipe.loader(seed=3)) == values(plain.loader(seed=3))
    assert "distribute: true" in hr.range(3).distribute(service).batch(2).to_yaml()
    assert values(hr.range(9).distribute().batch(2).loader()) == values(hr.range(9).batch(2).loader())
    with pytest.raises(hr.HeadraceError, match="its code is only in this process"):
        values(hr.range(9).map(lambda value: {"value": value}).distribute(service).batch(2).loader())
    with pytest.raises(hr.HeadraceError, match="a graph is cut once"):
        values(hr.range(9).distribute(service).shuffle().distribute(service).batch(2).loader())
    with pytest.raises(hr.ArgumentError, match="one service at a time"):
        hr.range(9).distribute(service).shuffle().distribute("other:1").batch(2).loader()


def test_a_file_keeps_its_draws_when_it_is_distributed(service: str) -> None:
    pipe = hr.from_yaml(hr.range(100).shuffle().one_hot(100, field="value").to_yaml())
    part = pipe.distribute(service)
    pipe, part = (one.filter(lambda value: value.argmax() % 3 > 0).batch(8) for one in (pipe, part))
    assert part.fingerprint == pipe.fingerprint
    assert values(part.loader(seed=1)) == values(pipe.loader(seed=1))


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(hr.ArgumentError, match="host:port"):
        numbers().loader(service=7070)  # type: ignore[arg-type]
    with pytest.raises(hr.ArgumentError, match="order of a service's graph"):
        numbers().loader(service="127.0.0.1:1", optimize=True)


def test_a_service_with_a_token_needs_it(command: str, tmp_path: pathlib.Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text("r" * 40)
    wrong.write_text("w" * 40)
    dispatcher, address = begin(command, "dispatcher", "--listen", "127.0.0.1:0", "--token-file", str(right))
    worker, _ = begin(command, "worker", "--dispatcher", address, "--threads", "1", "--token-file", str(right))
    pipe = numbers()
    assert values(pipe.loader(service=address, service_token_file=right)) == values(pipe.loader())
    with pytest.raises(hr.AccessError, match="the token is wrong"):
        values(pipe.loader(service=address, service_token_file=wrong))
    with pytest.raises(hr.AccessError, match="a token is needed"):
        values(pipe.loader(service=address))
    with pytest.raises(hr.ArgumentError, match="service_token_file"):
        pipe.loader(service=address, service_token_file=3)  # type: ignore[arg-type]
    for process in (dispatcher, worker):
        process.kill()
        process.communicate()


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the command openssl makes the certificates")
def test_a_service_with_tls(command: str, tmp_path: pathlib.Path) -> None:
    cert, key, other = tmp_path / "cert", tmp_path / "key", tmp_path / "other"
    for name, to in (("fleet", cert), ("other", other)):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key if to == cert else tmp_path / "k",
                "-out", to, "-subj", f"/CN={name}", "-days", 2, "-addext", f"subjectAltName=DNS:{name}")  # fmt: skip
    own = ["--tls-cert", str(cert), "--tls-key", str(key)]
    trust = ["--tls-ca", str(cert), "--tls-name", "fleet", "--tcp-only"]
    dispatcher, address = begin(command, "dispatcher", "--listen", "127.0.0.1:0", *own)
    worker, _ = begin(command, "worker", "--dispatcher", address, "--threads", "1", *own, *trust)
    pipe = numbers()
    try:
        secure = pipe.loader(service=address, service_tls_ca=cert, service_tls_name="fleet")
        assert values(secure) == values(pipe.loader())
        with pytest.raises(hr.AccessError, match="was not signed by a CA"):
            values(pipe.loader(service=address, service_tls_ca=other, service_tls_name="fleet"))
        with pytest.raises(hr.AccessError, match="speaks TLS only"):
            values(pipe.loader(service=address))
        with pytest.raises(hr.ArgumentError, match="service_tls_ca"):
            pipe.loader(service=address, service_tls_ca=3)  # type: ignore[arg-type]
        with pytest.raises(hr.ArgumentError, match="service_tls_name"):
            pipe.loader(service=address, service_tls_name=cert)  # type: ignore[arg-type]
    finally:
        for process in (dispatcher, worker):
            process.kill()
            process.communicate()


def test_loaders_of_equal_batches_do_not_see_what_others_write(service: str) -> None:
    pipe = hr.range(1000, field="label").shuffle().one_hot(1000).batch(100)  # shared memory holds a batch
    wanted = [np.asarray(batch["label"]).copy() for batch in pipe.loader(seed=3)]
    loaders = [iter(pipe.loader(seed=3, service=service)) for _ in range(3)]
    for index, expected in enumerate(wanted):
        batches = [next(loader) for loader in loaders]
        for batch in batches:
            values = np.asarray(batch["label"])
            assert np.array_equal(values, expected), index
            ctypes.memset(values.ctypes.data, 1, values.nbytes)  # as a framework may that takes DLPack
