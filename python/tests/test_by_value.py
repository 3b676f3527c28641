"""Code that worker processes cannot import: sent by value with cloudpickle, refused with words without."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import headrace as hr
from headrace import pickling

NOTEBOOK = """
import sys
import numpy as np
import headrace as hr

scale = 3

class Squares:
    def __len__(self):
        return 2000
    def __getitem__(self, at):
        return at * at

def scaled(value):
    return int(np.int64(value)) * scale

pipe = hr.from_dataset(Squares(), variant="processes").map(scaled, variant="processes").batch(100)
assert pipe == hr.from_dataset(Squares()).map(scaled).batch(100)
got = np.concatenate(list(pipe.loader(output="numpy", threads=2)))
assert (got == 3 * np.arange(2000) ** 2).all()
texts = hr.from_dataset([f"{i}" for i in range(2000)], variant="processes").map(lambda t: t + "!", variant="processes")
assert [t for b in texts.batch(100).loader() for t in b] == [f"{i}!" for i in range(2000)]
print("right")
"""


@pytest.mark.parametrize("how", ["-c", "-"])
def test_functions_and_classes_of_a_session_run_in_processes(how: str) -> None:
    pytest.importorskip("cloudpickle")
    args, given = (["-c", NOTEBOOK], None) if how == "-c" else (["-"], NOTEBOOK)
    done = subprocess.run(
        [sys.executable, *args], input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and done.stdout == "right\n", done.stderr


def test_a_lambda_of_a_script_needs_no_import_of_the_script(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import headrace as hr\n"
        "by = 7\n"
        "print([v for b in hr.range(4).map(lambda x: x * by, variant='processes').batch(4).loader(output='numpy') "
        "for v in b['value'].tolist()])\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "[0, 7, 14, 21]\n", done.stderr


def test_closures_go_with_their_arrays() -> None:
    pytest.importorskip("cloudpickle")
    table = np.arange(1 << 16)
    pipe = hr.range(100).map(lambda x: int(table[x]) + 1, variant="processes").batch(100)
    batch = next(iter(pipe.loader(output="numpy")))
    assert batch["value"].tolist() == list(range(1, 101))
    memory = pickling.Memory()
    data, spans = pickling.dumps(lambda: table, memory, by_value=True)
    assert len(data) < 10_000 and [length for _, length in spans] == [table.nbytes]


class Locked:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __len__(self) -> int:
        return 3

    def __getitem__(self, at: int) -> int:
        return at


def test_an_error_names_the_users_class(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        hr.CodeError, match=r"test_by_value:Locked cannot be sent to a worker process: pickle refuses it"
    ):
        hr.from_dataset(Locked(), variant="processes")
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    pickling._by_value.cache_clear()

    class Local(Locked):
        def __init__(self) -> None:
            pass

    with pytest.raises(hr.CodeError, match=r"Local cannot be sent.*pip install 'headrace\[notebook\]'"):
        hr.from_dataset(Local(), variant="processes")
    pickling._by_value.cache_clear()


def test_without_cloudpickle_a_session_is_told_what_to_install() -> None:
    text = "import sys; sys.modules['cloudpickle'] = None\n" + NOTEBOOK
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and "__main__:Squares cannot be sent to a worker process" in done.stderr
    assert "pip install 'headrace[notebook]'" in done.stderr
