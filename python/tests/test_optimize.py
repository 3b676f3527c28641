"""Pipeline.optimize: orders that are taken, those that are dropped, and what stays as it was."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from headrace import _headrace


def digest(pipe: hr.Pipeline, **options: Any) -> str:
    made = _headrace.Digest()
    run: Any = iter(pipe.loader(seed=5, **options))
    with contextlib.suppress(StopIteration):
        while True:
            _headrace.digest_batch(made, run.take())
    return made.hexdigest()


def names(pipe: hr.Pipeline) -> list[str]:
    return [node["name"] for node in pipe._built.graph.nodes()]


def wasteful(records: int = 400, keep: int = 100) -> hr.Pipeline:
    """A filter after what is dear."""
    pipe = hr.range(records).shuffle(seed=3).op("debug.spin", us=20, name="spin")
    return pipe.where(f"value < {keep}", name="filter").batch(10)


def test_a_filter_goes_before_what_is_dear():
    written = wasteful()
    fast = written.optimize(seconds=0.5)
    report = fast.report
    assert written.report is None and report is not None
    assert names(fast) == ["source.range", "order.shuffle", "filter", "spin", "batch.stack"] == list(report.nodes)
    assert report.moved == (("filter", 4, 3), ("spin", 3, 4))
    assert report.records == 64 and report.difference == 0 and report.best and report.dropped == ""
    assert report.needs == "exact" and report.order == ("headrace", "exact")
    assert report.predicted > 2 and report.measured > 1.4
    assert "spin  (was 3)" in str(report) and "same bytes" in str(report)
    assert digest(fast) == digest(written)
    assert fast != written and hash(fast) != hash(written)


def test_a_pipeline_in_its_best_order_is_as_written():
    written = hr.range(100).where("value < 50").op("debug.spin", us=20).batch(10)
    fast = hr.optimize(written, seconds=0.5)
    assert fast == written and fast.report is not None and fast.report.moved == ()
    assert fast.report.predicted == fast.report.measured == 1 and "no order is cheaper" in str(fast.report)


def test_a_profile_is_used_again(tmp_path):
    written = wasteful()
    profile = written.profile(fuse=True, seconds=0.5)
    profile.save(tmp_path / "p.json")
    began = time.monotonic()
    fast = [written.optimize(profile=one) for one in (profile, tmp_path / "p.json", str(tmp_path / "p.json"))]
    assert time.monotonic() - began < 60
    assert [one.report.profile.text for one in fast if one.report] == [profile.text] * 3
    assert len({names(one)[2] for one in fast}) == 1 and names(fast[0])[2] == "filter"
    with pytest.raises(hr.StateError, match=r"node 'filter' \(record.filter\).*profile it again"):
        wasteful(keep=90).optimize(profile=profile)
    with pytest.raises(hr.ReadError, match="cannot read"):
        written.optimize(profile=tmp_path / "none.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", r"bad.json:1:2: "),
        (b"", r"bad.json:1:1: unexpected end of text"),
        (b'{"seconds": 1, "nodes": [1]}', r"bad.json:1:1: this is no profile"),
        (b"[" * 100_000, r"bad.json:1:65: nested deeper than"),
        (b"\xff\xfe\x00{", r"bad.json:1:1: "),
    ],
)
def test_a_damaged_profile_is_refused_with_its_place(tmp_path, text, message):
    (tmp_path / "bad.json").write_bytes(text)
    with pytest.raises(hr.HeadraceError, match=message):
        wasteful().optimize(profile=tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("param", "value"),
    [("seconds", 0), ("seconds", float("nan")), ("seconds", 1e9), ("cache_memory", "1GB"), ("cache_memory", -2)],
)
def test_numbers_are_checked_whether_costs_are_saved_or_not(param, value):
    options: Any = {param: value}
    with pytest.raises(hr.ArgumentError, match=f"{param} is") as error:
        wasteful().optimize(epochs=2, **options)
    assert error.value.param == param


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache_memory": -1}, "cache_memory needs epochs=: how many"),
        ({"cache_folder": "kept"}, "cache_folder needs epochs="),
        ({"refresh": 2}, "refresh needs epochs="),
        ({"cache_quality": 90, "cache_bytes": 1}, "cache_bytes, cache_quality need epochs="),
        ({"epochs": 2, "cache_bytes": 1}, "cache_bytes needs cache_folder="),
    ],
)
def test_options_of_a_cache_need_epochs(options, words):
    for optimize in (wasteful().optimize, lambda **given: hr.optimize(wasteful(), **given)):
        with pytest.raises(hr.ArgumentError, match=rf"^optimize\(\): {words}") as error:
            optimize(**options)
        assert error.value.param == words.split(",")[0].split()[0]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("headrace", "too many nodes may move to try all orders: there may be a better one"),
        ("pecan", "another order may be cheaper: see rule headrace"),
    ],
)
def test_the_report_says_why_another_order_may_be_cheaper(rule, line):
    report = wasteful().optimize(seconds=0.3).report
    assert report is not None
    shown = str(report._replace(rule=rule, best=False)).splitlines()
    assert [one for one in shown if "may be" in one] == [f"  {line}"]
    assert not any("may be" in one for one in str(report._replace(rule=rule)).splitlines())


def test_what_was_measured_is_saved(cache, monkeypatch, caplog):
    first = wasteful().optimize(seconds=0.3).report
    assert first is not None and len(list(cache.iterdir())) == 5
    again = wasteful().optimize().report
    assert again is not None and again.profile["spin"] == first.profile["spin"] and again.nodes == first.nodes
    fresh = wasteful().optimize(fresh=True, seconds=0.3).report
    assert fresh is not None and fresh.profile["spin"] != first.profile["spin"]
    for file in cache.iterdir():
        file.write_text("damaged")
    assert wasteful().optimize(seconds=0.3).report is not None
    assert "cannot be used, and will be replaced" in caplog.text
    caplog.clear()
    monkeypatch.setenv("HEADRACE_CACHE", "/dev/null/no")
    assert wasteful().optimize(seconds=0.3).report is not None
    assert "HEADRACE_CACHE" in caplog.text
    caplog.clear()
    monkeypatch.setenv("HEADRACE_CACHE", "")
    assert wasteful().optimize(seconds=0.3).report is not None and not caplog.text


def test_user_code_stays_and_keeps_working():
    written = (
        hr.from_dataset(list(range(300)))
        .map(lambda x: x + 1, name="mine")
        .op("debug.spin", us=20, name="spin")
        .where("value % 4 == 0", name="filter")
        .map(userfns.double, name="yours")
        .batch(7)
    )
    fast = written.optimize(seconds=0.5)
    assert names(fast)[1:] == ["mine", "filter", "spin", "yours", "batch.stack"]
    assert digest(fast) == digest(written) == digest(fast, threads=0)
    assert fast.loader().dataset is written.loader().dataset


def test_code_in_worker_processes():
    written = (
        hr.range(200)
        .map(userfns.double, variant="processes", name="mine")
        .op("debug.spin", us=20, name="spin")
        .where("value % 8 == 0", name="filter")
        .batch(5)
    )
    fast = written.optimize(seconds=0.5)
    assert names(fast)[2] == "filter" and digest(fast) == digest(written)


def test_an_iterable_is_read_separately():
    written = hr.from_iterable(list(range(200))).op("debug.spin", us=20).where("value < 30").batch(5)
    fast = written.optimize(seconds=0.3)
    assert names(fast)[1] == "record.filter" and digest(fast) == digest(written)
    once = hr.from_iterable(iter(range(200))).op("debug.spin", us=20).where("value < 30").batch(5)
    with pytest.raises(hr.ArgumentError, match="read once only"):
        once.optimize()
    assert digest(once) == digest(written)


def test_random_draws_go_with_unnamed_nodes():
    images = np.random.default_rng().integers(0, 256, (24, 32, 32, 3), dtype=np.uint8)
    written = hr.from_dataset([{"image": one} for one in images])
    written = (
        written.kind("image", "image").flip(p=0.5).color_jitter(brightness=0.5).flip(p=0.5).center_crop(8).batch(4)
    )
    profile = written.profile(fuse=True, seconds=0.5)
    fast = written.optimize(profile=profile, strictness="exact")
    assert digest(fast) == digest(written)
    assert sorted(names(fast)) == sorted(names(written))


def test_results_are_pipelines():
    fast = wasteful().optimize(seconds=0.3)
    assert pickle.loads(pickle.dumps(fast)) == fast
    again = hr.from_yaml(fast.to_yaml())
    assert again == fast and names(again) == names(fast)
    assert digest(fast.unbatch().batch(3)) == digest(wasteful().unbatch().batch(3))


def test_a_pipeline_from_a_file_with_nodes_in_any_order():
    text = """
headrace: 1
pipeline:
  - {batch.stack: {size: 5}, name: last, inputs: [filter]}
  - {source.range: {n: 100}, name: first}
  - {record.filter: {expr: "value < 20"}, name: filter, inputs: [spin]}
  - {debug.spin: {us: 20}, name: spin, inputs: [first]}
"""
    written = hr.from_yaml(text)
    fast = written.optimize(seconds=0.3)
    assert fast.report is not None and {move.node for move in fast.report.moved} == {"filter", "spin"}
    assert digest(fast) == digest(written)


def test_rules():
    written = wasteful()
    profile = written.profile(fuse=True, seconds=0.3)
    kept = written.optimize(profile=profile, rule="written")
    assert kept == written and kept.report is not None and kept.report.rule == "written"
    assert written.optimize(profile=profile, rule="pecan").report is not None


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"strictness": "exactly"}, "did you mean 'exact'"),
        ({"rule": "cedar"}, "rule"),
        ({"records": -1}, "optimize.*records"),
        ({"records": 1.5}, "records"),
        ({"seed": -1}, "seed"),
        ({"seconds": "1"}, "seconds"),
        ({"seconds": 0}, "seconds"),
        ({"profile": 3}, "profile"),
        ({"fresh": 1}, "fresh"),
        ({"speed": 3}, "no argument 'speed'"),
    ],
)
def test_wrong_options_are_named(options, part):
    with pytest.raises(hr.ArgumentError, match=part):
        hr.range(10).batch(2).optimize(**options)
    with pytest.raises(hr.ArgumentError, match="takes a Pipeline"):
        hr.optimize([1, 2])  # type: ignore[arg-type]


def test_nothing_to_measure_says_where():
    with pytest.raises(hr.StateError, match="let none"):
        hr.range(1000).where("value < 0").batch(5).optimize(seconds=0.1)
    with pytest.raises(hr.StateError, match="gave no record"):
        hr.range(0).batch(5).optimize(seconds=0.1)


def test_ctrl_c_stops_it():
    written = hr.range(1 << 40).op("debug.spin", us=20).where("value % 4 == 0").batch(10)
    costs = written.profile(fuse=True, seconds=0.3)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        written.optimize(profile=costs, records=1 << 40)
    assert time.monotonic() - began < 60
    timer.join()


# ---- caches ----


def dear() -> hr.Pipeline:
    return hr.range(300).shuffle(seed=3).op("debug.spin", us=300, name="dear").batch(10)


def test_a_cache_is_put_where_it_pays():
    written = dear()
    fast = written.optimize(seconds=0.5, epochs=10)
    report = fast.report
    assert report is not None and not report.moved
    best = report.caches[0]
    assert best.chosen and best.after == "dear" and best.where == "memory" and best.part == 1
    assert 4 < best.gain <= 10.01 and best.total_bytes == 2400
    assert names(fast) == ["source.range", "order.shuffle", "dear", "flow.cache", "batch.stack"]
    assert digest(fast, epochs=2) == digest(written, epochs=2)
    assert "cache after dear in memory (chosen)" in str(report)
    assert next(place for place in report.caches if place.after is None).gain == 1
    with pytest.raises(hr.ArgumentError, match="cache_memory is -1 to"):
        written.optimize(seconds=0.5, epochs=10, cache_memory=-2)


def test_a_cache_beside_another_order(tmp_path):
    fast = wasteful().optimize(seconds=0.5, epochs=20, cache_memory=-1, cache_folder=tmp_path / "kept")
    assert fast.report is not None and fast.report.moved
    assert names(fast)[:5] == ["source.range", "order.shuffle", "filter", "spin", "flow.cache"]
    assert fast.report.caches[0].where == "folder"
    assert digest(fast, epochs=2) == digest(wasteful(), epochs=2)


def test_a_cache_keeps_images_as_files_where_that_pays(pictures):
    written = hr.files(pictures).decode(mode="exact").resize(96).op("debug.spin", us=3000, name="dear").batch(5)
    asked: dict[str, Any] = {"seconds": 0.5, "epochs": 10, "cache_memory": 300_000}
    fast = written.optimize(**asked, cache_quality=90)
    assert fast.report is not None
    best = fast.report.caches[0]
    assert best.chosen and best.after == "dear" and best.image == "image" and best.part == 1
    raw = next(place for place in fast.report.caches if place.after == "dear" and place.image is None)
    assert raw.entry_bytes > 3 * best.entry_bytes and raw.part < 0.5 and raw.gain < best.gain
    assert names(fast)[-5:] == ["dear", "image.encode", "flow.cache", "image.decode2", "batch.stack"]
    assert "cache after dear in memory, as JPEGs (chosen)" in str(fast.report)
    with fast.loader(epochs=2, output="numpy") as loader, written.loader(output="numpy") as other:
        made = [batch.image.astype(int) for batch in loader]
        true = [batch.image.astype(int) for batch in other]
    assert all((a == b).all() for a, b in zip(made[:6], made[6:], strict=True))
    assert 0 < max(abs(a - b).mean() for a, b in zip(made, true, strict=False)) < 12
    plain = written.optimize(**asked).report
    assert plain is not None and all(place.image is None for place in plain.caches)
    with pytest.raises(hr.ArgumentError, match="cache_quality is 0 to 100"):
        written.optimize(**asked, cache_quality=101)


def test_no_cache_without_epochs_or_gain():
    assert dear().optimize(seconds=0.5).report.caches == ()  # type: ignore[union-attr]
    cheap = hr.range(300).op("debug.identity").batch(10)
    fast = cheap.optimize(seconds=0.5, epochs=10)
    assert fast == cheap and fast.report is not None and fast.report.caches[0].after is None


def test_what_makes_boxes_plain_numbers_stays_beside_a_crop_of_the_image_alone():
    columns = {
        "image": np.arange(60 * 20 * 30 * 3).reshape(60, 20, 30, 3).astype(np.uint8),
        "boxes": np.tile(np.array([[1, 2, 9, 8], [3, 4, 20, 10]], np.float32), (60, 1, 1)),
        "id": np.arange(60),
    }
    written = hr.from_columns(columns).op("record.kind", field="image", kind="image")
    written = written.op("record.kind", field="boxes", kind="boxes").op("boxes.convert", to="xywh", name="convert")
    written = written.op("image.random_area_crop", name="crop").op("debug.spin", us=200, name="spin")
    written = written.where("id < 20", name="filter").batch(1)
    fast = written.optimize(seconds=0.5)
    assert fast.report is not None and fast.report.dropped == ""
    order = names(fast)
    assert order.index("convert") < order.index("crop") and order.index("filter") < order.index("spin"), order
    assert digest(fast) == digest(written)
