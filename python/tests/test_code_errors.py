"""Errors of user code are of the class that it raised, wherever it runs."""

from __future__ import annotations

import contextlib
import copy
import gc
import pathlib
import pickle
import subprocess
import sys
import textwrap
import weakref
from typing import Any

import pytest

import headrace as hr
import raisefns
import userfns

VARIANTS = ["threads", "inline", "processes"]


def caught(fn: Any, variant: Any) -> hr.CodeError:
    pipe = hr.range(3).map(fn, fields="value", outputs={"value": hr.spec("int64")}, variant=variant, name="n").batch(3)
    with pytest.raises(hr.CodeError) as error:
        list(pipe.loader(threads=1))
    assert error.value.node == "n" and error.value.record == 0
    return error.value


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("fn", "kind", "words"),
    [
        (raisefns.value_error, ValueError, "no value"),
        (raisefns.mine, raisefns.Mine, "mine 0"),
        (raisefns.local, LookupError, "local"),
        (raisefns.decode_error, UnicodeDecodeError, "can't decode"),
        (raisefns.os_error, FileNotFoundError, "no such thing"),
        (raisefns.stop, hr.CodeError, "StopIteration"),
        (raisefns.group, hr.CodeError, "several"),
        (raisefns.plain, hr.CodeError, "just so"),
    ],
)
def test_the_class_of_an_exception_is_kept(fn: Any, kind: type[Exception], words: str, variant: Any) -> None:
    error = caught(fn, variant)
    assert isinstance(error, kind) and not isinstance(error, StopIteration)
    assert words in str(error) and words in str(error.__cause__) + type(error.__cause__).__name__
    assert type(error).__name__ == "CodeError"
    if variant == "processes":
        assert isinstance(error.__cause__, hr.WorkerTraceback)
        assert "Traceback" in str(error.__cause__) and f"in {fn.__name__}" in str(error.__cause__)
    else:
        assert type(error.__cause__).__name__ in str(error)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_index_error_of_a_data_set_is_an_error_and_not_the_end(variant: Any) -> None:
    with pytest.raises(LookupError, match="no item 2, although len") as error:
        list(hr.from_dataset(raisefns.Short(), variant=variant).batch(3).loader(threads=1))
    assert isinstance(error.value, hr.CodeError) and error.value.record == 2


def test_what_is_no_error_is_a_code_error_in_a_worker() -> None:
    error = caught(raisefns.leave, "processes")
    assert "leaving" in str(error) and not isinstance(error, SystemExit)


@pytest.mark.parametrize("fn", [raisefns.mine, raisefns.local, raisefns.decode_error])
@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_such_errors_can_be_copied_and_pickled(fn: Any, variant: Any) -> None:
    error = caught(fn, variant)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert isinstance(again, hr.CodeError) and str(again) == str(error) and again.record == 0
        assert isinstance(again, type(error).__bases__[1]) == (fn is not raisefns.local or variant == "processes")


def test_a_class_of_main_is_kept(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""\
            import headrace as hr

            class Odd(Exception):
                pass

            def check(x):
                if x % 2:
                    raise Odd(x)
                return x

            if __name__ == "__main__":
                pipe = hr.range(4).map(check, outputs={"value": hr.spec("int64")}, variant="processes").batch(2)
                try:
                    list(pipe.loader())
                except Odd as error:
                    print("caught", error.record)
            """)
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "caught 1", done.stderr


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_outputs_are_returned_by_name_too(variant: Any) -> None:
    """With outputs= a function that returned a dict was told to return a tuple."""
    declared = {"same": hr.spec("int64"), "half": hr.spec("float64")}
    for fields in (None, "value"):
        pipe = hr.range(4).map(userfns.named_pair, fields=fields, outputs=declared, variant=variant)
        (batch,) = pipe.batch(4).loader(output="numpy")
        assert batch.same.tolist() == [0, 1, 2, 3] and batch.half.tolist() == [0, 0.5, 1, 1.5]
    for wrong in ({"same": hr.spec("int64")}, {**declared, "more": hr.spec("int64")}):
        with pytest.raises(KeyError, match="its keys must be those of outputs"):
            list(hr.range(4).map(userfns.named_pair, outputs=wrong, variant=variant).batch(4).loader())
    pairs = hr.range(4).map(userfns.named_pair)
    turned = pairs.map(lambda same, half: {"half": half, "same": -same}, fields=["same", "half"])
    (batch,) = turned.batch(4).loader(output="numpy")
    assert batch.same.tolist() == [0, -1, -2, -3] and batch.half.tolist() == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_a_filter_that_returns_nothing_is_an_error(variant: Any) -> None:
    """It dropped all records without a word."""
    with pytest.raises(TypeError, match="the filter returned None: return True to keep the record"):
        list(hr.range(4).filter(userfns.forgets_to_return, variant=variant).batch(2).loader())


def test_an_error_that_was_handled_keeps_no_caller_alive() -> None:
    class Kept:
        pass

    def fails() -> weakref.ref[Kept]:
        kept = Kept()
        with contextlib.suppress(hr.HeadraceError):
            hr.load("nowhere.yaml")
        return weakref.ref(kept)

    gc.collect()
    gc.disable()
    try:
        assert fails()() is None
    finally:
        gc.enable()
