"""Random pipelines: the same bytes from any number of threads and from the command, and
through files and states.

Each run draws a fresh seed and prints it (conftest.py). HEADRACE_TEST_EXAMPLES is the number
of examples of each kind: 25, and 2,000 in `make nightly`.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
import userfns
from headrace import _headrace

SETTINGS = settings(
    max_examples=int(os.environ.get("HEADRACE_TEST_EXAMPLES", "25")),
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def digests(pipe: hr.Pipeline, **options: Any) -> list[str]:
    made = []
    for batch in pipe.loader(output="headrace", **options):
        one = _headrace.Digest()
        _headrace.digest_batch(one, batch._batch)
        made.append(one.hexdigest())
    return made


def whole_digest(pipe: hr.Pipeline, **options: Any) -> str:
    made = _headrace.Digest()
    for batch in pipe.loader(output="headrace", **options):
        _headrace.digest_batch(made, batch._batch)
    return made.hexdigest()


small = st.integers(1, 40)
order = st.one_of(
    st.builds(lambda n: lambda p: p.shuffle(seed=n), small),
    st.builds(lambda n, w: lambda p: p.shuffle(seed=n, window=w), small, small),
    st.builds(lambda n: lambda p: p.take(n), small),
    st.builds(lambda n: lambda p: p.skip(n), st.integers(0, 9)),
    st.builds(lambda n: lambda p: p.repeat(n), st.integers(1, 3)),
)
number_map = st.one_of(
    st.builds(lambda n: lambda p: p.where(f"value % {n} != 1"), st.integers(2, 5)),
    st.just(lambda p: p.op("debug.identity")),
    st.builds(lambda d: lambda p: p.cast(d, field="value"), st.sampled_from(["int64", "int32", "float64"])),
)
code_map = st.one_of(
    st.just(lambda p: p.map(userfns.double)),
    st.just(lambda p: p.map(lambda x: x + 1)),
    st.just(lambda p: p.filter(userfns.is_even)),
    st.just(lambda p: p.flat_map(userfns.twice)),
    st.just(lambda p: p.map(userfns.noise)),
)
interpolation = st.sampled_from(["nearest", "bilinear", "bicubic"])
picture_map = st.one_of(
    st.builds(lambda p: lambda x: x.flip(p=p), st.floats(0, 1)),
    st.builds(lambda s, i: lambda x: x.resize(s, interpolation=i), st.integers(4, 24), interpolation),
    st.builds(lambda s: lambda x: x.random_resized_crop(s), st.integers(4, 24)),
    st.builds(lambda s: lambda x: x.random_crop(s, pad_if_needed=True), st.integers(4, 24)),
    st.builds(lambda b: lambda x: x.color_jitter(brightness=b), st.floats(0, 0.9)),
    st.builds(lambda s: lambda x: x.gaussian_blur(3, sigma=s), st.floats(0.2, 2)),
    st.builds(lambda d: lambda x: x.rotate(d), st.integers(0, 90)),
    st.builds(lambda p: lambda x: x.pad(p), st.integers(0, 5)),
    st.just(lambda x: x.grayscale(channels=3)),
    st.just(lambda x: x.map(userfns.brighten, fields="image")),
)
batching = st.builds(lambda n, d: lambda p: p.batch(n, drop_last=d), st.integers(1, 9), st.booleans())
bucketing = st.one_of(
    st.builds(
        lambda b, n, d: lambda p: p.bucketed_batch(sorted(b), n, by="value", drop_last=d),
        st.sets(st.integers(1, 50), min_size=1, max_size=4),
        st.integers(1, 6),
        st.booleans(),
    ),
    st.builds(
        lambda b, n: lambda p: p.bucketed_batch(sorted(b), elements=n, by="value", too_long="drop"),
        st.sets(st.integers(1, 50), min_size=1, max_size=4),
        st.integers(1, 200),
    ),
)


@st.composite
def numbers(draw: st.DrawFn, code: bool = False) -> hr.Pipeline:
    pipe = hr.range(draw(st.integers(1, 60)), start=draw(st.integers(-9, 9)))
    for step in draw(st.lists(order, max_size=3)):
        pipe = step(pipe)
    for step in draw(st.lists(st.one_of(number_map, code_map) if code else number_map, max_size=3)):
        pipe = step(pipe)
    made: hr.Pipeline = draw(st.one_of(batching, bucketing))(pipe)
    return made


@st.composite
def photos(draw: st.DrawFn) -> Any:
    steps = draw(st.lists(picture_map, max_size=4))
    last = draw(st.integers(4, 16))
    stack = draw(batching)
    shuffled = draw(st.booleans())

    def make(folder: pathlib.Path) -> hr.Pipeline:
        pipe = hr.files(folder, labels="folder")
        pipe = (pipe.shuffle() if shuffled else pipe).decode()
        for step in steps:
            pipe = step(pipe)
        made: hr.Pipeline = stack(pipe.resize(last).normalize("imagenet"))
        return made

    return make


def run_or_refuse(pipe: hr.Pipeline) -> bool:
    """A random pipeline that is invalid is refused with a message before it runs."""
    try:
        _ = pipe.fields
    except hr.HeadraceError as error:
        assert str(error)
        return False
    return True


@SETTINGS
@given(numbers(), st.integers(0, 99))
def test_numbers_are_the_same_from_the_command(
    command: str, tmp_path: pathlib.Path, pipe: hr.Pipeline, seed: int
) -> None:
    if not run_or_refuse(pipe):
        return
    pipe.save(tmp_path / "p.yaml")
    args = [command, "run", str(tmp_path / "p.yaml"), "--digest", "--json", "--variant", "inline", "--seed", str(seed)]
    out = subprocess.run(args, check=True, capture_output=True, text=True)
    assert json.loads(out.stdout)["digest"] == whole_digest(pipe, seed=seed, threads=2)
    assert hr.load(tmp_path / "p.yaml") == pipe


@SETTINGS
@given(numbers(code=True), st.integers(1, 3), st.integers(0, 12))
def test_code_gives_the_same_in_any_thread_and_after_any_batch(pipe: hr.Pipeline, threads: int, at: int) -> None:
    if not run_or_refuse(pipe):
        return
    wanted = digests(pipe, threads=0)
    assert digests(pipe, threads=threads) == wanted
    loader = pipe.loader(output="headrace", threads=threads)
    got: list[str] = []
    for batch in loader:
        if len(got) >= at:
            break
        one = _headrace.Digest()
        _headrace.digest_batch(one, batch._batch)
        got.append(one.hexdigest())
        state = json.loads(json.dumps(loader.state_dict()))
    if got and len(got) == at:
        again = pipe.loader(output="headrace", threads=threads)
        again.load_state_dict(state)
        for batch in again:
            one = _headrace.Digest()
            _headrace.digest_batch(one, batch._batch)
            got.append(one.hexdigest())
        assert got == wanted


@SETTINGS
@given(photos(), st.integers(1, 3))
def test_photos_are_the_same_in_any_thread_and_through_files(pictures: pathlib.Path, make: Any, threads: int) -> None:
    pipe = make(pictures)
    if not run_or_refuse(pipe):
        return
    wanted = whole_digest(pipe, threads=0)
    assert whole_digest(pipe, threads=threads) == wanted
    again = hr.from_yaml(pipe.to_yaml(), trust=True)
    assert again == pipe and whole_digest(again, threads=1) == wanted


@settings(SETTINGS, max_examples=max(5, SETTINGS.max_examples // 4))
@given(st.one_of(photos(), numbers(code=True)), st.integers(0, 2))
def test_an_optimized_order_gives_the_same_bytes(pictures: pathlib.Path, made: Any, threads: int) -> None:
    pipe = made if isinstance(made, hr.Pipeline) else made(pictures)
    if not run_or_refuse(pipe):
        return
    try:
        fast = pipe.optimize(seconds=0.2, records=16, fresh=True)
    except (hr.StateError, hr.StuckError):  # no record, or none in time
        return
    assert whole_digest(fast, seed=3, threads=threads) == whole_digest(pipe, seed=3, threads=threads)
    loader = pipe.loader(seed=3, threads=threads, output="headrace", optimize=True)  # as measured and saved
    live = _headrace.Digest()
    for batch in loader:
        _headrace.digest_batch(live, batch._batch)
    assert live.hexdigest() == whole_digest(pipe, seed=3)
    loader.close()
