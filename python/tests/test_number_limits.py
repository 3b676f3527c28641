"""Numbers that a loader takes can be saved and resumed."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr

LARGEST = (1 << 63) - 1


@pytest.mark.parametrize("options", [{"seed": (1 << 60) + 1}, {"seed": LARGEST}, {"epochs": LARGEST}])
def test_the_largest_numbers_are_saved_and_resumed(options: dict[str, Any]) -> None:
    pipe = hr.range(12).shuffle().batch(3)
    whole = [batch.value.tolist() for batch in pipe.loader(**{**options, "epochs": 1}, output="numpy")]
    loader = pipe.loader(**options, output="numpy")
    batches = iter(loader)
    assert [next(batches).value.tolist() for _ in range(2)] == whole[:2]
    again = pipe.loader(**options, output="numpy")
    again.load_state_dict(hr.merge_states([loader.state_dict()]))
    rest = iter(again)
    assert [next(rest).value.tolist() for _ in range(2)] == whole[2:]


@pytest.mark.parametrize("name", ["seed", "epochs"])
def test_larger_numbers_are_refused_at_once(name: str) -> None:
    options: Any = {name: LARGEST + 1}
    with pytest.raises(hr.ArgumentError, match=f"{name} must be below 2 to the 63rd"):
        hr.range(12).loader(**options)
