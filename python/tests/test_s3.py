"""s3:// from a real gateway, Ceph's radosgw; skipped where it is not installed."""

from __future__ import annotations

import contextlib
import io
import pathlib
import random
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr

SUPPORT = pathlib.Path(__file__).parents[2] / "tests/support"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("radosgw")
    command = [sys.executable, str(SUPPORT / "radosgw.py"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out = process.stdout
        assert out is not None
        line = out.readline()
        if not line:
            _, said = process.communicate()
            if process.returncode == 77:
                pytest.skip("radosgw is not installed (ceph-mon, ceph-osd, radosgw, ceph-common)")
            raise AssertionError(said.decode())
        yield int(line)
        process.communicate()


@pytest.fixture(scope="module")
def gateway(port: int) -> Any:
    sys.path.insert(0, str(SUPPORT))
    import radosgw

    radosgw.make_bucket(port, "bucket")
    return radosgw


@pytest.fixture(autouse=True)
def variables(port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    values = {
        "AWS_ACCESS_KEY_ID": "TESTKEY",
        "AWS_SECRET_ACCESS_KEY": "TESTSECRET",
        "AWS_REGION": "default",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "HOME": str(tmp_path),
        "no_proxy": "*",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "HEADRACE_S3_ANONYMOUS", "HEADRACE_S3_STYLE"):
        monkeypatch.delenv(name, raising=False)
    with contextlib.suppress(hr.NotFoundError):
        try:
            records(tar_of("s3://bucket/none.tar"))
        except hr.HeadraceError as error:
            if "no libcurl" in str(error):
                pytest.skip("built without libcurl")


def records(pipe: hr.Pipeline, **options: Any) -> list[Any]:
    return [tuple(map(repr, batch.values())) for batch in pipe.batch(5, ragged=True).loader(output="numpy", **options)]


def tar_of(where: Any) -> hr.Pipeline:
    return hr.tar(where, fields={"data": "bin", "label": "cls"}, keys=True).shuffle()


def archive(rng: random.Random, shard: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for i in range(rng.randrange(1, 20)):
            for end, data in (("bin", rng.randbytes(rng.choice([0, 10, 3000, 200_000]))), ("cls", b"%d" % i)):
                info = tarfile.TarInfo(f"{shard}-{i}.{end}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_shards_in_a_bucket_are_shards_of_files(
    port: int, gateway: Any, rng: random.Random, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shard in range(3):
        data = archive(rng, shard)
        (tmp_path / f"{shard:03d}.tar").write_bytes(data)
        for folder in ("train", "odd/a b+c%20&=~ü"):
            gateway.put(port, "bucket", f"{folder}/{shard:03d}.tar", data)
    local = records(tar_of(f"{tmp_path}/{{000..002}}.tar"), seed=3)
    for name in ("train/{000..002}.tar", "train/*.tar", "train", "odd/a b+c%20&=~ü/{000..002}.tar"):
        for threads in (1, 3):
            assert records(tar_of(f"s3://bucket/{name}"), seed=3, threads=threads) == local
    monkeypatch.setenv("HEADRACE_S3_STYLE", "virtual")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://localhost:{port}")
    assert records(tar_of("s3://bucket/train/{000..002}.tar"), seed=3) == local


def test_lists_of_many_pages_are_whole(port: int, gateway: Any, rng: random.Random, tmp_path: pathlib.Path) -> None:
    names = [f"{'ab'[i % 2]}/{i:04d} {rng.randrange(100)}+&.txt" for i in range(1050)]
    for name in names:
        gateway.put(port, "bucket", f"many/{name}", name.encode())
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    gateway.put(port, "bucket", "many-not/x.txt", b"")
    options: dict[str, Any] = {"suffixes": ["txt"], "labels": "folder"}
    local = records(hr.files(tmp_path, **options), seed=1)
    assert records(hr.files("s3://bucket/many", **options), seed=1) == local


def test_errors_name_the_code_and_no_secret(
    port: int, gateway: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    gateway.put(port, "bucket", "small.tar", b"")
    with pytest.raises(hr.HeadraceError, match="s3://none/x.tar: HTTP status 404, NoSuchBucket"):
        records(tar_of("s3://none/x.tar"))
    with pytest.raises(hr.HeadraceError, match="no objects in s3://bucket/none.tar"):
        records(tar_of("s3://bucket/none.tar"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    with pytest.raises(hr.HeadraceError, match="HTTP status 403, SignatureDoesNotMatch") as caught:
        records(tar_of("s3://bucket/small.tar"))
    assert "hunter2" not in str(caught.value) and "TESTKEY" not in str(caught.value)
    monkeypatch.setenv("HEADRACE_S3_ANONYMOUS", "1")
    with pytest.raises(hr.HeadraceError, match="HTTP status 403, AccessDenied"):
        records(tar_of("s3://bucket/small.tar"))
    monkeypatch.delenv("HEADRACE_S3_ANONYMOUS")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(hr.HeadraceError, match="no credentials for S3"):
        records(tar_of("s3://bucket/small.tar"))


def test_credentials_of_a_profile_and_inspect(
    port: int, gateway: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, command: str
) -> None:
    hr.range(40).save(tmp_path / "graph.yaml")
    subprocess.run([command, "pack", tmp_path / "graph.yaml", "-o", tmp_path / "packed", "-q"], check=True)
    (packed,) = (tmp_path / "packed").glob("*.records")
    gateway.put(port, "bucket", "packed/a.records", packed.read_bytes())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[work]\naws_access_key_id=TESTKEY\naws_secret_access_key = TESTSECRET\n"
    )
    (tmp_path / ".aws/config").write_text(f"[profile work]\nregion=default\nendpoint_url=http://127.0.0.1:{port}\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    line = [command, "inspect", "s3://bucket/packed/a.records"]
    shown = subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True)
    assert "40 whole records, 0 damaged" in shown.stdout
    assert len(records(hr.records("s3://bucket/packed"))) == 8
