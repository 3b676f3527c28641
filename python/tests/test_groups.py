"""Groups of steps: Pipeline.apply and Pipeline.one_of, alone, nested, and beside all else."""

from __future__ import annotations

import pathlib
import random

import numpy as np
import pytest

import headrace as hr

SEED = random.randrange(2**31)
N = 2000


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Small images of a level each, so that a record's pixels say which steps ran."""
    print(f"seed {SEED}")
    made = np.zeros((N, 2, 2, 3), np.uint8)
    made += (np.arange(N) % 100).astype(np.uint8)[:, None, None, None]
    return made


@pytest.fixture
def source(images: np.ndarray, tmp_path: pathlib.Path) -> hr.Pipeline:
    np.savez(tmp_path / "images.npz", image=images, at=np.arange(N))
    return hr.npy(tmp_path / "images.npz").kind("image", "image")


def run(pipe: hr.Pipeline, **options: object) -> np.ndarray:
    """The first pixel of each record in the order of the source."""
    made = np.zeros(N, np.uint8)
    for batch in pipe.batch(64).loader(seed=SEED, output="numpy", **options):  # type: ignore[arg-type]
        made[batch["at"]] = batch["image"][:, 0, 0, 0]
    return made


def near(count: int, p: float) -> bool:
    return abs(count - N * p) <= 5 * (N * p * (1 - p)) ** 0.5


def test_a_step_runs_for_a_share_of_the_records(source: hr.Pipeline, images: np.ndarray) -> None:
    got = run(source.apply(lambda p: p.invert(p=1), p=0.8))
    level = images[:, 0, 0, 0]
    inverted = got == 255 - level
    assert np.all(inverted | (got == level))
    assert near(int(inverted.sum()), 0.8)
    assert np.array_equal(run(source.apply(lambda p: p.invert(p=1), p=0)), level)
    assert np.array_equal(run(source.apply(lambda p: p.invert(p=1), p=1)), 255 - level)


def test_the_steps_of_a_group_run_together(source: hr.Pipeline, images: np.ndarray) -> None:
    both = source.apply(lambda p: p.invert(p=1).solarize(200, p=1), p=0.5)
    level = images[:, 0, 0, 0].astype(int)
    done = 255 - level
    done = np.where(done >= 200, 255 - done, done)
    got = run(both)
    assert np.all((got == level) | (got == done))


def test_one_choice_runs_for_each_record(source: hr.Pipeline, images: np.ndarray) -> None:
    level = images[:, 0, 0, 0]
    made = source.one_of([lambda p: p.invert(p=1), lambda p: p.posterize(2, p=1), lambda p: p], weights=[1, 2, 1])
    got = run(made)
    inverted, coarse, same = got == 255 - level, got == (level & 0xC0), got == level
    assert np.all(inverted | coarse | same)
    clear = (level & 0xC0) != level  # these show which choice was made
    share = clear.mean()
    assert abs((inverted & clear).sum() - N * share * 0.25) <= 5 * (N * share * 0.25 * 0.75) ** 0.5
    assert abs((coarse & clear).sum() - N * share * 0.5) <= 5 * (N * share * 0.25) ** 0.5
    assert abs((same & clear).sum() - N * share * 0.25) <= 5 * (N * share * 0.25 * 0.75) ** 0.5


def test_groups_within_groups(source: hr.Pipeline, images: np.ndarray) -> None:
    level = images[:, 0, 0, 0]
    made = source.apply(lambda p: p.invert(p=1).apply(lambda q: q.posterize(1, p=1), p=0.5), p=0.5)
    got = run(made)
    outer, inner = got == 255 - level, got == ((255 - level) & 0x80)
    assert np.all(outer | inner | (got == level))
    assert near(int((got == level).sum()), 0.5) and near(int((inner & ~outer).sum()), 0.25)


def test_views_draw_each_for_itself(source: hr.Pipeline) -> None:
    def view(p: hr.Pipeline) -> hr.Pipeline:
        return p.apply(lambda q: q.invert(p=1), p=0.5)

    made = hr.zip(view(source), view(source), prefix=["a_", "b_"]).batch(N)
    (batch,) = made.loader(seed=SEED, output="numpy")
    same = int((batch["a_image"] == batch["b_image"]).all(axis=(1, 2, 3)).sum())
    assert near(same, 0.5)
    assert "apply2" in made.to_yaml()


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_records_are_the_same_for_any_number_of_threads(source: hr.Pipeline, threads: int) -> None:
    choices = [lambda q: q.flip().gaussian_blur(3), lambda q: q.color_jitter(brightness=0.4)]
    made = source.apply(lambda p: p.one_of(choices, weights=[1, 3]), p=0.7)
    assert np.array_equal(run(made), run(made, threads=threads))
    assert "one_of" in repr(made)


def test_a_run_resumes_in_a_group(source: hr.Pipeline) -> None:
    made = source.shuffle().apply(lambda p: p.color_jitter(brightness=0.4), p=0.5).batch(32)
    whole = [b["image"].copy() for b in made.loader(seed=SEED, output="numpy")]
    loader = made.loader(seed=SEED, output="numpy")
    it = iter(loader)
    for _ in range(7):
        next(it)
    state = loader.state_dict()
    again = made.loader(seed=SEED, output="numpy")
    again.load_state_dict(state)
    rest = [b["image"].copy() for b in again]
    assert len(rest) == len(whole) - 7
    assert all(np.array_equal(a, b) for a, b in zip(rest, whole[7:], strict=True))


def test_a_file_and_python_mean_the_same(source: hr.Pipeline, tmp_path: pathlib.Path) -> None:
    made = (
        source.apply(lambda p: p.invert(p=1).flip(), p=0.8)
        .one_of([lambda p: p.solarize(128), lambda p: p.apply(lambda q: q.equalize())], weights=[1, 2])
        .apply(lambda p: p.autocontrast(), name="last")
    )
    text = source.to_yaml() + (
        "  - apply: {p: 0.8, steps: [image.invert: {p: 1}, image.flip]}\n"
        "  - one_of:\n"
        "      weights: [1, 2]\n"
        "      choices:\n"
        "        - image.solarize: {threshold: 128}\n"
        "        - apply: {steps: [image.equalize]}\n"
        "  - apply: {steps: [image.autocontrast]}\n"
        "    name: last\n"
    )
    assert hr.from_yaml(text).fingerprint == made.fingerprint
    made.save(tmp_path / "p.yaml")
    assert hr.load(tmp_path / "p.yaml") == made
    assert hr.from_yaml(text).flip().apply(lambda p: p.invert()).fingerprint == (
        made.flip().apply(lambda p: p.invert()).fingerprint
    )


def test_views_of_one_file_draw_each_for_itself(source: hr.Pipeline) -> None:
    text = source.to_yaml() + "  - apply: {steps: [image.invert: {p: 1}]}\n"
    made = hr.zip(hr.from_yaml(text), hr.from_yaml(text), prefix=["a_", "b_"]).batch(N)
    (batch,) = made.loader(seed=SEED, output="numpy")
    assert near(int((batch["a_image"] == batch["b_image"]).all(axis=(1, 2, 3)).sum()), 0.5)


def test_masks_move_with_the_image(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(SEED)
    mask = rng.integers(0, 256, (200, 8, 8, 1), np.uint8)
    np.savez(tmp_path / "both.npz", image=np.repeat(mask, 3, 3), mask=mask)
    both = ["image", "mask"]
    made = (
        hr.npy(tmp_path / "both.npz")
        .kind("image", "image")
        .kind("mask", "mask")
        .one_of([lambda p: p.flip(p=1, field=both), lambda p: p.pad(1, field=both).random_crop(8, field=both)])
        .apply(lambda p: p.flip(p=1, direction="vertical", field=both), p=0.5)
    )
    assert made.fields["image"].shape == ("height", "width", 3)
    seen = set()
    for batch in made.batch(1).loader(seed=SEED, output="numpy"):
        assert np.array_equal(batch["image"][..., :1], batch["mask"])
        seen.add(batch["mask"].tobytes())
    assert len(seen) == 200


def test_an_order_that_was_found_keeps_the_draws(source: hr.Pipeline) -> None:
    made = source.apply(lambda p: p.color_jitter(brightness=0.4), p=0.5).apply(lambda p: p.flip(p=1), p=0.5).batch(64)
    assert [b["image"].tobytes() for b in made.optimize().loader(seed=SEED, output="numpy")] == [
        b["image"].tobytes() for b in made.loader(seed=SEED, output="numpy")
    ]


def test_a_cache_refuses_a_group_before_it(source: hr.Pipeline) -> None:
    made = source.apply(lambda p: p.posterize(2, p=1)).cache()
    with pytest.raises(hr.GraphError, match="random"):
        made.batch(4).fingerprint  # noqa: B018


def test_what_is_no_group_is_refused(source: hr.Pipeline) -> None:
    with pytest.raises(hr.ArgumentError, match="p is a probability"):
        source.apply(lambda p: p.flip(), p=2)
    with pytest.raises(hr.ArgumentError, match="adds no step"):
        source.apply(lambda p: p)
    with pytest.raises(hr.ArgumentError, match="no choice has a step"):
        source.one_of([lambda p: p])
    with pytest.raises(hr.ArgumentError, match="2 choices and 1 weights"):
        source.one_of([lambda p: p.flip(), lambda p: p], weights=[1])
    with pytest.raises(hr.ArgumentError, match="at least 0"):
        source.one_of([lambda p: p.flip()], weights=[0])
    with pytest.raises(hr.ArgumentError, match="a list of functions"):
        source.one_of([])
    with pytest.raises(hr.GraphError, match="follow each other"):
        source.apply(lambda p: hr.zip(p, p, prefix=["a_", "b_"]))
    with pytest.raises(hr.GraphError, match="for some records only"):
        source.apply(lambda p: p.map(lambda r: r)).fingerprint  # noqa: B018
    with pytest.raises(hr.GraphError, match="two groups have the name"):
        source.apply(lambda p: p.flip(), name="a").apply(lambda p: p.flip(), name="a").fingerprint  # noqa: B018
    with pytest.raises(hr.HeadraceError, match="so it cannot run for some records only"):
        source.apply(lambda p: p.cast("float32")).fingerprint  # noqa: B018
