"""The end of a program whose loaders still run."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """\
    import builtins, sys
    import {module}
    import headrace as hr

    def same(x):
        return x

    if __name__ == "__main__":
        pipe = hr.range(1000).map(same, outputs=["value: int64"], fields="value", variant="processes").batch(2)
        loader = pipe.loader(threads=2)
        batches = iter(loader)
        next(batches)
        {keep}
        del loader, batches
    """


@pytest.mark.parametrize(
    "keep",
    [
        "sys.modules['{module}'].kept = loader",
        "sys.modules['{module}'].kept = loader; sys.kept = batches",
        "builtins.kept = [loader, batches]",
        "hr.kept = loader",
    ],
)
@pytest.mark.parametrize("module", ["torch", "decimal"])
def test_a_loader_that_outlives_the_modules_ends_quietly(
    tmp_path: pathlib.Path, children: object, module: str, keep: str
) -> None:
    if module == "torch":
        pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT).format(module=module, keep=keep.format(module=module)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
