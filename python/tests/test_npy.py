"""source.npy: .npy and .npz files as NumPy writes them, and damaged ones."""

from __future__ import annotations

import io
import pathlib
import random
import struct
import zipfile
from typing import Any

import numpy as np
import pytest

import headrace as hr

DTYPES = [
    "?",
    "u1",
    "i1",
    *(order + kind for order in "<>" for kind in ("u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")),
]
WIDENED = {"u4", "u8"}


def draw(rng: random.Random, dtype: str, shape: tuple[int, ...]) -> Any:
    made = np.frombuffer(rng.randbytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype.replace("?", "u1"))
    if dtype == "?":
        made = made % 2 == 1
    if dtype[1:] == "u8":
        made = (made >> 1).astype(dtype)
    return made.reshape(shape)


def read(path: Any, options: dict[str, Any] | None = None, **run: Any) -> dict[str, Any]:
    batches = list(hr.npy(path, **options or {}).batch(5).loader(output="numpy", **run))
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def same(made: Any, wanted: Any) -> None:
    dtype = np.dtype("i8") if wanted.dtype.newbyteorder("=").str[1:] in WIDENED else wanted.dtype.newbyteorder("=")
    assert made.dtype == dtype
    assert made.shape == wanted.shape
    assert made.tobytes() == np.ascontiguousarray(wanted.astype(dtype)).tobytes()


@pytest.mark.parametrize("threads", [0, 3])
def test_arrays_of_all_dtypes(tmp_path: pathlib.Path, rng: random.Random, threads: int) -> None:
    for dtype in DTYPES:
        shape = (rng.randrange(1, 20), *(rng.choice([1, 2, 7, 100]) for _ in range(rng.randrange(4))))
        wanted = draw(rng, dtype, shape)
        path = tmp_path / f"an array {rng.random()}.npy"
        np.save(path, wanted)
        same(read(path, {"field": "x"}, threads=threads)["x"], wanted)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_header(tmp_path: pathlib.Path, rng: random.Random, version: tuple[int, int]) -> None:
    wanted = draw(rng, "<i4", (9, 2))
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, wanted, version)
    same(read(tmp_path / "a.npy")["array"], wanted)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_side_by_side(tmp_path: pathlib.Path, rng: random.Random, save: Any) -> None:
    for _ in range(5):
        arrays = {
            f"x{i}": draw(rng, rng.choice(DTYPES), (31, *rng.choice([(), (3,), (200, 200), (0,)]))) for i in range(4)
        }
        save(tmp_path / "a.npz", **arrays)
        made = read(tmp_path / "a.npz", threads=rng.randrange(4))
        assert list(made) == list(arrays)
        for name, wanted in arrays.items():
            same(made[name], wanted)
        name = rng.choice([*arrays])
        assert list(read(tmp_path / "a.npz", {"arrays": [name]})) == [name]


def test_several_files(tmp_path: pathlib.Path, rng: random.Random) -> None:
    parts = [draw(rng, dtype, (count, 3)) for dtype, count in (("<u4", 7), (">i8", 0), ("<i8", 1), (">u8", 30))]
    for at, part in enumerate(parts):
        np.save(tmp_path / f"part {at:02d}.npy", part)
        np.savez(tmp_path / f"part {at:02d}.npz", x=part)
    wanted = np.concatenate([part.astype("i8") for part in parts])
    for path in ("part {00..03}.npy", "*.npy", "", "*.npz"):
        made = read(tmp_path / path)
        assert np.array_equal(made["x" if path == "*.npz" else "array"], wanted)
    np.save(tmp_path / "part 02.npy", draw(rng, "<i4", (4, 3)))
    with pytest.raises(hr.ShapeError, match=r"part 02\.npy: items of \"array\" differ in dtype or shape"):
        read(tmp_path)
    with pytest.raises(hr.FormatError, match="read them by two sources"):
        read(tmp_path / "part 00.*")


def test_shuffle_resume_and_ranks(tmp_path: pathlib.Path, rng: random.Random) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(101), y=np.arange(101.0) * 2)
    pipe = hr.npy(tmp_path / "a.npz").shuffle().batch(4)
    runs = [
        [x for batch in pipe.loader(seed=3, epochs=2, output="numpy", threads=threads) for x in batch["x"]]
        for threads in (0, 2)
    ]
    assert runs[0] == runs[1]
    assert sorted(runs[0][:101]) == sorted(runs[0][101:]) == list(range(101))
    loader = pipe.loader(seed=3, epochs=2, threads=2, output="numpy")
    run = iter(loader)
    head = [x for _ in range(rng.randrange(1, 50)) for x in next(run)["x"]]
    again = pipe.loader(seed=3, epochs=2, threads=0, output="numpy")
    again.load_state_dict(loader.state_dict())
    assert head + [x for batch in again for x in batch["x"]] == runs[0]
    shares = [
        {x for batch in pipe.loader(seed=3, output="numpy", shard=(rank, 2), eval=True) for x in batch["x"]}
        for rank in (0, 1)
    ]
    assert set.union(*shares) == set(range(101))


def test_processes_give_the_same(tmp_path: pathlib.Path, rng: random.Random) -> None:
    wanted = draw(rng, ">f8", (50, 4))
    np.save(tmp_path / "a.npy", wanted)
    pipe = hr.npy(tmp_path / "a.npy").map(double, fields="array", variant="processes").batch(8)
    with pipe.loader(output="numpy") as loader:
        made = np.concatenate([batch["array"] for batch in loader])
    assert made.tobytes() == (wanted.astype("<f8") * 2).tobytes()


def double(array: Any) -> Any:
    return array * 2


def test_splits_by_an_integer(tmp_path: pathlib.Path) -> None:
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", x=np.arange(300.0), y=np.arange(300, dtype=">i2") % 7 - 3)
        parts = hr.split(hr.npy(tmp_path / "a.npz"), [0.5, 0.5], seed=1, by="y")
        groups = [{int(y) for batch in part.batch(10).loader(output="numpy") for y in batch["y"]} for part in parts]
        assert not groups[0] & groups[1]
        assert groups[0] | groups[1] == set(range(-3, 4))


def test_a_number_that_is_too_large_is_a_bad_record(tmp_path: pathlib.Path) -> None:
    wanted = np.arange(10, dtype="u8")
    wanted[4] = 2**63
    np.save(tmp_path / "a.npy", wanted)
    with pytest.raises(hr.HeadraceError, match=r"a\.npy: byte 160: .*larger than an int64"):
        read(tmp_path / "a.npy")
    made = read(tmp_path / "a.npy", on_error="skip")["array"]
    assert made.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def refused(path: pathlib.Path, words: str, **options: Any) -> None:
    with pytest.raises(hr.HeadraceError, match=words):
        read(path, options)


def test_what_is_refused(tmp_path: pathlib.Path, rng: random.Random) -> None:
    path = tmp_path / "a.npy"
    for array, words in (
        (np.float64(3), "has no first axis"),
        (np.asfortranarray(draw(rng, "<f4", (5, 3))), "numpy.ascontiguousarray"),
        (np.array(["a", "bc"]), "<U2.* are not supported"),
        (np.zeros(3, "c8"), "<c8.* are not supported"),
        (np.zeros(3, "i4,f4"), "several fields"),
        (np.zeros(3, "M8[s]"), "are not supported"),
        (np.array([{}, 1], dtype=object), "are not supported"),
    ):
        np.save(path, array)
        refused(path, words)
    np.save(path, np.zeros((0, 3)))
    assert list(hr.npy(path).batch(2).loader()) == []
    refused(path, "leave out arrays", arrays=["x"])
    path.write_bytes(b"")
    refused(path, "it is no .npy file")
    refused(tmp_path / "none.npy", "none.npy")
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((3, 2)), scale=np.float32(2), labels=np.zeros(4))
    refused(path, "scale.*has no first axis")
    refused(path, '"images" and "labels" have 3 and 4 items', arrays=["images", "labels"])
    refused(path, 'did you mean "labels"', arrays=["label"])
    np.savez_compressed(path, x=np.zeros(1 << 20))
    refused(path, "unpacked_max", unpacked_max="1MB")
    np.savez(path)
    refused(path, "holds no arrays")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("x.npy", b"")
    refused(path, "compressed by another method")
    with pytest.raises(hr.HeadraceError, match="arrays"):
        hr.npy(path, array=["x"])  # type: ignore[call-arg]


def test_headers_that_lie(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.npy"
    for shape in (
        "(4611686018427387904, 8)",
        "(1000000000,)",
        "(0, 9223372036854775807, 9)",
        "(-1,)",
        "(2" + ", 2" * 8 + ")",
    ):
        head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(80))
        with pytest.raises(hr.HeadraceError, match=r"a\.npy"):
            read(path)


def test_damage_to_a_npz_file_is_found(tmp_path: pathlib.Path, rng: random.Random) -> None:
    """Any byte changed: refused with the name of the file, or the same items."""
    path = tmp_path / "a.npz"
    for save in (np.savez, np.savez_compressed):
        wanted = {"x": draw(rng, "<i4", (5, 9)), "y": draw(rng, "u1", (5,))}
        save(path, **wanted)
        whole = path.read_bytes()
        found = 0
        for _ in range(60):
            damaged = bytearray(whole)
            damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            try:
                made = read(path)
            except hr.HeadraceError as error:
                assert "a.npz" in str(error)
                found += 1
                continue
            for name in made:  # a name may have changed, and what no reader looks at
                same(made[name], wanted.get(name, wanted["x" if made[name].ndim > 1 else "y"]))
        assert found > 20
        path.write_bytes(whole[: rng.randrange(len(whole))])
        with pytest.raises(hr.HeadraceError, match=r"a\.npz"):
            read(path)


def test_an_array_that_is_in_a_file_twice_is_refused(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    np.savez(tmp_path / "b.npz", x=np.ones(3))
    with zipfile.ZipFile(tmp_path / "b.npz") as other:
        data = other.read("x.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("x.npy", data)
    refused(tmp_path / "a.npz", 'two arrays are called "x"')


@pytest.mark.parametrize("which", [0, 1])
def test_a_bit_that_renames_an_array_is_found(tmp_path: pathlib.Path, which: int) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    at = [i for i in range(len(data)) if data[i : i + 5] == b"x.npy"]
    assert len(at) == 2  # before the member, and in the directory
    data[at[which]] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    refused(tmp_path / "a.npz", "a member has two names")


def test_a_name_that_is_not_utf8_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, image=np.arange(3))
    path.write_bytes(path.read_bytes().replace(b"image", b"im\xaege"))
    with pytest.raises(hr.HeadraceError, match=r"a\.npz: the name of a field has 1 to 63 bytes of UTF-8"):
        read(path)


def test_damage_to_the_header_of_a_npy_file(tmp_path: pathlib.Path, rng: random.Random) -> None:
    file = io.BytesIO()
    np.save(file, draw(rng, "<i4", (7, 3)))
    whole = file.getvalue()
    path = tmp_path / "a.npy"
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.randrange(128)] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            wanted = np.load(path)
        except Exception:  # noqa: BLE001  # whatever NumPy raises
            continue
        try:
            made = read(path)["array"]
        except hr.HeadraceError as error:
            assert "a.npy" in str(error)
        else:
            same(made, wanted)
    path.write_bytes(whole[: rng.randrange(len(whole))])
    with pytest.raises(hr.HeadraceError, match=r"a\.npy"):
        read(path)


def test_a_state_of_other_data_is_refused(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((100, 10)))
    loader = hr.npy(tmp_path / "a.npy").batch(1).loader()
    next(iter(loader))
    np.save(tmp_path / "a.npy", np.ones((100, 10)))
    other = hr.npy(tmp_path / "a.npy").batch(1).loader()
    with pytest.raises(hr.StateMismatchError, match="the data are others"):
        other.load_state_dict(loader.state_dict())


def test_a_file_that_changes_is_found(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((100, 100_000)))
    run = iter(hr.npy(tmp_path / "a.npy").batch(1).loader(threads=0))
    next(run)
    with (tmp_path / "a.npy").open("r+b") as file:
        file.truncate(1_000_000)
    with pytest.raises(hr.HeadraceError, match=r"a\.npy"):
        list(run)
