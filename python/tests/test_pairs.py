"""Zips join the records that belong together, or are refused."""

from __future__ import annotations

import pathlib
import secrets
from collections.abc import Callable

import pytest

import headrace as hr


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """40 images and 40 masks, all pixels of number i being i."""
    both = tmp_path_factory.mktemp("pairs")
    for kind in ("images", "masks"):
        (both / kind).mkdir()
        for i in range(40):
            (both / kind / f"{i:03}.ppm").write_bytes(b"P6 8 8 255\n" + bytes([i] * 192))
    return both / "images", both / "masks"


SHUFFLES: dict[str, Callable[[hr.Pipeline, hr.Pipeline, int], hr.Pipeline]] = {
    "behind the zip": lambda a, b, n: hr.zip(a.decode(), b.decode(to="mask")).shuffle(),
    "of one seed on both": lambda a, b, n: hr.zip(a.shuffle(seed=n).decode(), b.shuffle(seed=n).decode(to="mask")),
    "after other work": lambda a, b, n: hr.zip(a.decode().shuffle(seed=n), b.shuffle(seed=n).decode(to="mask")),
    "of windows": lambda a, b, n: hr.zip(
        a.shuffle(window=8, seed=n).decode(), b.shuffle(window=8, seed=n).decode(to="mask")
    ),
    "before and behind": lambda a, b, n: hr.zip(
        a.shuffle(seed=n).decode(), b.shuffle(seed=n).decode(to="mask")
    ).shuffle(seed=n),
}


@pytest.mark.parametrize("shuffles", SHUFFLES)
def test_images_and_masks_stay_paired(folders: tuple[pathlib.Path, pathlib.Path], shuffles: str) -> None:
    """Of 40 pairs none was right when each side was shuffled, with one seed."""
    seed = secrets.randbits(40)
    pipe = SHUFFLES[shuffles](*map(hr.files, folders), seed).batch(16)
    orders = []
    for rank in range(2):
        for batch in pipe.loader(epochs=3, seed=seed, shard=(rank, 2), output="numpy"):
            assert (batch.image == batch.mask).all(), (shuffles, seed)
            orders += batch.image[:, 0, 0, 0].tolist()
    assert len(orders) == 120 and set(orders) == set(range(40))
    assert orders[:20] != sorted(orders[:20]) and orders[:20] != orders[20:40], (shuffles, seed)


def pair(a: hr.Pipeline, b: hr.Pipeline, **options: bool) -> hr.Pipeline:
    return hr.zip(a, b, prefix=["a_", "b_"], **options)  # type: ignore[arg-type]


def halves(block: int) -> hr.Pipeline:
    return hr.interleave(hr.range(20), hr.range(20), block=block)


def share(rank: int) -> hr.Pipeline:
    return hr.range(40).shard(rank=rank, world=2)


@pytest.mark.parametrize(
    ("pipe", "words"),
    [
        (pair(hr.range(40).shuffle(seed=1), hr.range(40).shuffle(seed=2)), r"zip\(\.\.\.\)\.shuffle\(\)"),
        (pair(hr.range(40).shuffle(), hr.range(40).shuffle()), r"- order\.shuffle: \{seed: 1\}"),
        (pair(hr.range(40).shuffle(), hr.range(40)), "would be mispaired"),
        (pair(hr.range(40).shuffle(seed=1), hr.range(40).shuffle(window=4, seed=1)), "would be mispaired"),
        (pair(hr.range(40).take(9).shuffle(seed=1), hr.range(40).shuffle(seed=1).take(9)), "would be mispaired"),
        (pair(hr.range(40).where("value % 2 == 0"), hr.range(40)), "Put 'record.filter' after 'flow.zip'"),
        (pair(hr.range(40), hr.range(39)), "'source.range' has 40, 'source.range2' has 39"),
        (pair(halves(1), halves(2)), "'flow.interleave2' does not give .* of the same parameters over inputs"),
        (pair(halves(1), hr.concat(hr.range(20), hr.range(20))), "'flow.interleave' does not give its inputs"),
        (pair(hr.interleave(hr.range(10), hr.range(30)), halves(1)), "does not give its inputs the same order"),
        (pair(share(0), share(1)), r"chooses other records .* hr\.zip\(\.\.\.\)\.shard\(\.\.\.\)"),
        (pair(share(0), hr.range(20)), "'order.shard' chooses other records"),
        (pair(hr.range(40).sample(count=9), hr.range(40).sample(count=9)), r"hr\.zip\(\.\.\.\)\.sample\(\.\.\.\)"),
        (
            pair(hr.range(9).repeat(2).shuffle(seed=1), hr.range(9).shuffle(seed=1).repeat(2)),
            r"hr\.zip\(\.\.\.\)\.repeat\(\.\.\.\)",
        ),
    ],
)
def test_what_may_not_stay_paired_is_refused_with_what_works(pipe: hr.Pipeline, words: str) -> None:
    with pytest.raises(hr.GraphError, match=words):
        pipe.fields  # noqa: B018


def test_random_pairs_and_neighbours_are_paired_when_asked_for() -> None:
    random = pair(hr.range(40), hr.range(40).shuffle(), paired=False).batch(40)
    (batch,) = random.loader(output="numpy")
    assert (batch.a_value != batch.b_value).any() and set(batch.b_value) == set(range(40))
    neighbours = pair(hr.range(40).take(39), hr.range(40).skip(1)).shuffle().batch(39)
    (batch,) = neighbours.loader(output="numpy")
    assert (batch.a_value + 1 == batch.b_value).all()


def test_equal_shares_and_merges_stay_paired() -> None:
    for pipe in (
        pair(share(1), share(1)),
        pair(halves(3), halves(3)),
        pair(halves(1).shuffle(seed=2), halves(1).shuffle(seed=2)),
    ):
        for batch in pipe.batch(7).loader(output="numpy"):
            assert (batch.a_value == batch.b_value).all()


def test_orders_of_one_seed_are_equal_and_orders_without_differ() -> None:
    def order(pipe: hr.Pipeline) -> list[int]:
        return [x for batch in pipe.batch(10).loader(output="numpy") for x in batch.value.tolist()]

    assert order(hr.range(50).shuffle(seed=0, name="a")) == order(hr.range(50).shuffle(seed=0, name="b"))
    assert hr.range(50).shuffle(seed=0, name="a") == hr.range(50).shuffle(seed=0, name="b")
    assert order(hr.range(50).shuffle(name="a")) != order(hr.range(50).shuffle(name="b"))


def names_in(folder: pathlib.Path, names: list[str]) -> hr.Pipeline:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"P6 1 1 255\n" + bytes(3))
    return hr.files(folder)


NUMBERS = range(1, 13)


@pytest.mark.parametrize(
    ("image", "mask", "first"),
    [
        ("img{}.ppm", "img{}_mask.ppm", "'img1' of 'source.files' would be with 'img10_mask'"),
        ("{}.ppm", "{}-gt.ppm", None),  # '-' and '.' are before digits
        ("{}.ppm", "{}.pgm", None),
        ("a{}.ppm", "b{}.ppm", None),
        ("{:03}.ppm", "{:03}_mask.ppm", None),
        ("day/{}.ppm", "day/{}_mask.ppm", "'day/1' of 'source.files' would be with 'day/10_mask'"),
    ],
)
def test_names_that_sort_differently_are_not_paired(
    tmp_path: pathlib.Path, image: str, mask: str, first: str | None
) -> None:
    """Pairs of img1.jpg and img10_mask.png were made without a word."""
    images = names_in(tmp_path / "images", [image.format(i) for i in NUMBERS])
    masks = names_in(tmp_path / "masks", [mask.format(i) for i in NUMBERS])
    for a, b in ((images, masks), (images.shuffle(seed=1), masks.shuffle(seed=1))):
        if first is None:
            assert hr.zip(a, b, prefix=["a_", "b_"]).record_count == 12
            continue
        with pytest.raises(hr.GraphError, match=first):
            hr.zip(a, b, prefix=["a_", "b_"]).fields  # noqa: B018
        assert hr.zip(a, b, prefix=["a_", "b_"], paired=False).record_count == 12


def test_a_missing_mask_does_not_move_the_others(tmp_path: pathlib.Path) -> None:
    images = names_in(tmp_path / "images", [f"{i:02}.ppm" for i in NUMBERS])
    masks = names_in(tmp_path / "masks", [f"{i:02}.ppm" for i in (1, 2, 3, 4, *range(6, 13), 99)])
    with pytest.raises(hr.GraphError, match=r"'05' of 'source.files' would be with '06' .* Is a file missing"):
        hr.zip(images, masks, prefix=["a_", "b_"]).fields  # noqa: B018


def test_orders_that_the_user_gave_are_paired(tmp_path: pathlib.Path) -> None:
    names = [f"{i:02}.ppm" for i in NUMBERS]
    images = names_in(tmp_path / "images", names)
    turned = hr.files(tmp_path / "images", files=names[::-1])
    assert hr.zip(images, turned, prefix=["a_", "b_"]).record_count == 12
    next_ones = hr.zip(images.take(11), images.skip(1), prefix=["a_", "b_"])
    assert next_ones.record_count == 11
    other = names_in(tmp_path / "other", [f"photo-{i}.ppm" for i in "abcdefghijkl"])
    assert hr.zip(images, other, prefix=["a_", "b_"]).record_count == 12
