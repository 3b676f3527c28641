"""Pipelines as values: making, comparing, saving, drawing, refusing."""

from __future__ import annotations

import ast
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import headrace as hr
import userfns
from conftest import run_script
from headrace import _headrace, other_names


def digest(pipe: hr.Pipeline, **options: object) -> str:
    made = _headrace.Digest()
    for batch in pipe.loader(output="headrace", **options):  # type: ignore[arg-type]
        _headrace.digest_batch(made, batch._batch)
    return made.hexdigest()


def command_digest(command: str, path: pathlib.Path, *args: str) -> str:
    out = subprocess.run(
        [command, "run", str(path), "--digest", "--json", *args], check=True, capture_output=True, text=True
    )
    return str(json.loads(out.stdout)["digest"])


# ---- making ----


def test_a_loader_brings_numpy_and_nothing_heavier(tmp_path: pathlib.Path) -> None:
    heavy = "torch jax rich tensorflow PIL multiprocessing matplotlib asyncio difflib"
    run = "import sys, headrace as hr\nlist(hr.range(3).batch(1).loader())"
    out = run_script(tmp_path, f"{run}\nprint([m for m in {heavy.split()!r} if m in sys.modules])")
    assert out.stdout.strip() == "[]", out.stderr


def test_public_names_are_imported_when_they_are_used(tmp_path: pathlib.Path) -> None:
    script = (
        "import sys, headrace as hr\n"
        "parts = lambda: sorted(n for n in sys.modules if n.startswith('headrace.'))\n"
        "assert parts() == ['headrace._headrace'], parts()\n"
        "import headrace.splits\n"
        "assert callable(hr.split) and callable(hr.list) and hr.ops.image_flip and hr.__version__\n"
        "assert all(hasattr(hr, name) for name in hr.__all__)\n"
        "import importlib.util\n"
        "torch = ['DataLoader'] if importlib.util.find_spec('torch') else []\n"
        "assert dir(hr) == sorted([*hr.__all__, *torch, '__codecs__', '__version__'])\n"
        "assert not hasattr(hr, 'batches')"
    )
    assert run_script(tmp_path, script).returncode == 0


def test_type_checkers_see_all_public_names() -> None:
    """`hr.interleave` was no attribute of the module to them."""
    body = ast.parse(pathlib.Path(str(hr.__file__)).read_text(encoding="utf-8")).body
    checked = next(part for part in body if isinstance(part, ast.If))
    seen = {
        name.asname or name.name for part in checked.body if isinstance(part, ast.ImportFrom) for name in part.names
    }
    assert set(hr.__all__) <= seen


def test_the_versions_of_codecs_are_named() -> None:
    assert hr.__codecs__.keys() >= {"libjpeg-turbo", "libpng", "libwebp", "zlib", "libyaml", "xxHash"}
    assert all(re.match(r"[0-9]+\.[0-9]+|libjpeg [0-9]+$", version) for version in hr.__codecs__.values()), (
        hr.__codecs__
    )
    assert _headrace.parts()[0]["kind"] == "library"


def test_a_chain_gives_its_records_in_batches() -> None:
    pipe = hr.range(10).batch(4)
    assert [b.value.tolist() for b in pipe.loader(output="numpy")] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_methods_do_not_change_what_they_are_called_on() -> None:
    base = hr.range(10)
    taken = base.take(3)
    assert base.record_count == 10 and taken.record_count == 3


def test_every_operator_of_the_library_is_a_function() -> None:
    for op in _headrace.op_list():
        name = op["name"].replace(".", "_")
        if not name.startswith("code_"):
            doc = getattr(hr.ops, name).__doc__
            assert op["name"] in doc
            for param in op["params"]:
                assert f"{param['name']}: " in doc, (name, param["name"])


def test_functions_and_methods_and_op_by_name_are_the_same() -> None:
    base = hr.range(100)
    assert base.shuffle(seed=3) == hr.ops.order_shuffle(base, seed=3) == base.op("order.shuffle", seed=3)


def test_to_casts_and_lays_out(pictures: pathlib.Path) -> None:
    pipe = hr.files(pictures).decode().resize(8).to("float32", layout="chw")
    assert [f.text() for f in pipe.fields] == ["float32[3, 8, 8]"]
    assert pipe == hr.files(pictures).decode().resize(8).cast("float32").layout("chw")


def test_fields_tell_types_before_data_is_read(vision: hr.Pipeline) -> None:
    assert {f.name: (f.dtype, f.shape[1:]) for f in vision.fields} == {
        "image": ("float32", (3, 16, 16)),
        "label": ("int64", ()),
    }


def test_zip_joins_by_position() -> None:
    pipe = hr.zip(hr.range(4), hr.range(4, start=10), prefix=["a_", "b_"]).batch(4)
    batch = next(iter(pipe.loader(output="numpy")))
    assert batch.a_value.tolist() == [0, 1, 2, 3] and batch.b_value.tolist() == [10, 11, 12, 13]


def test_two_branches_share_their_beginning(pictures: pathlib.Path) -> None:
    photo = hr.files(pictures).decode()
    views = hr.zip(photo.random_resized_crop(8), photo.random_resized_crop(8), prefix=["a_", "b_"])
    batch = next(iter(views.batch(30).loader(output="numpy")))
    assert batch.a_image.shape == (30, 8, 8, 3)
    assert not np.array_equal(batch.a_image, batch.b_image)


def test_numpy_values_and_paths_are_parameters(pictures: pathlib.Path) -> None:
    assert hr.range(np.int64(5)).take(np.int32(2)).record_count == 2
    assert hr.files(pictures).record_count == hr.files(str(pictures)).record_count == 30


# ---- equality ----


def test_equal_pipelines_are_equal_and_hash_alike() -> None:
    one, other = hr.range(10).shuffle(seed=1), hr.range(10).shuffle(seed=1, window=0)
    assert one == other and hash(one) == hash(other) and one is not other
    assert one != hr.range(10).shuffle(seed=2)
    assert len({one, other, hr.range(10)}) == 2
    assert one != "something else"


def test_hash_opens_no_data() -> None:
    hash(hr.files("/nowhere/at/all").decode())


def test_names_and_hints_do_not_count() -> None:
    assert hr.range(10, name="numbers").take(5, name="few", keep_position=True) == hr.range(10).take(5)


# ---- errors ----


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: hr.range(10).shuffle(sed=3), hr.ArgumentError, "did you mean 'seed'"),
        (lambda: hr.range(10).take(), hr.ArgumentError, "missing"),
        (lambda: hr.range(10).take(-1), hr.HeadraceError, "count"),
        (lambda: hr.range(10).take("many"), hr.HeadraceError, "many"),
        (lambda: hr.range(10).take({1}), hr.ArgumentError, "set"),
        (lambda: hr.range(10).op("order.shufle"), hr.ArgumentError, "order.shuffle"),
        (lambda: hr.zip(hr.range(3), 3), hr.ArgumentError, "int"),
        (lambda: hr.zip(), hr.ArgumentError, "at least one"),
        (lambda: hr.range(3).flip().fields, hr.GraphError, "image"),
        (lambda: hr.range(3).where("valu < 2").fields, hr.HeadraceError, "value"),
        (lambda: hr.files("/nowhere/at/all").fields, hr.MissingFileError, "/nowhere/at/all"),
        (lambda: hr.range(3).map("f"), hr.ArgumentError, "function"),
        (lambda: hr.range(3).map(abs, variant="thread"), hr.ArgumentError, "did you mean 'threads'"),
        (lambda: hr.range(3).map(abs, feilds="value"), hr.ArgumentError, "did you mean 'fields'"),
        (lambda: hr.range(3).map_batch(abs), hr.GraphError, "batch"),
        (lambda: hr.range(3).batch(2).map(abs), hr.GraphError, "map_batch"),
        (lambda: hr.from_yaml("headrace: 1\npipeline:\n  - source.rang: {n: 3}\n"), hr.HeadraceError, "source.range"),
        (lambda: hr.load("/nowhere.yaml"), hr.MissingFileError, "/nowhere.yaml"),
        (lambda: hr.range(3).loader(epoch=1), hr.ArgumentError, "did you mean 'epochs'"),
        (lambda: hr.range(3).loader(threads=-1), hr.ArgumentError, "negative"),
        (lambda: hr.range(3).loader(threads="2"), hr.ArgumentError, "whole number"),
        (lambda: hr.range(3).loader(output="tensorflow"), hr.ArgumentError, "numpy"),
        (lambda: hr.range(3).loader(epochs=0), hr.ArgumentError, "epochs"),
        (lambda: hr.range(3).loader(rank=1), hr.ArgumentError, "shard=(rank, world)"),
        (lambda: hr.range(3).loader(shard=(3, 2)), hr.ArgumentError, "0 to world - 1"),
        (lambda: hr.range(3).loader(shard="all"), hr.ArgumentError, "a pair"),
        (lambda: hr.range(3).loader(eval=True, even="drop"), hr.ArgumentError, "leave out even="),
    ],
)
def test_mistakes_are_answered_with_what_to_do(make: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=".*") as caught:
        make()  # type: ignore[operator]
    assert words in str(caught.value)


def test_errors_can_be_pickled() -> None:
    import pickle

    with pytest.raises(hr.HeadraceError) as caught:
        _ = hr.files("/nowhere").fields
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.code, again.file) == (
        type(caught.value),
        str(caught.value),
        caught.value.code,
        caught.value.file,
    )


def test_argument_errors_are_type_errors_too() -> None:
    with pytest.raises(TypeError):
        hr.range(10).shuffle(sed=3)  # type: ignore[call-arg]


# ---- files ----


def test_saved_pipelines_read_back_equal(vision: hr.Pipeline, tmp_path: pathlib.Path) -> None:
    vision.save(tmp_path / "v.yaml")
    assert hr.load(tmp_path / "v.yaml") == vision == hr.from_yaml(vision.to_yaml())


def test_the_command_runs_what_python_saved(vision: hr.Pipeline, tmp_path: pathlib.Path, command: str) -> None:
    vision.save(tmp_path / "v.yaml")
    assert command_digest(command, tmp_path / "v.yaml", "--seed", "3") == digest(vision, seed=3)


def test_python_runs_what_the_command_runs(pictures: pathlib.Path, tmp_path: pathlib.Path, command: str) -> None:
    text = """
headrace: 1
params: {data: {type: path}, size: 12}
pipeline:
  - {source.files: {path: "${data}"}, name: photos}
  - image.decode
  - {image.random_resized_crop: {size: "${size}"}, name: first, inputs: late}
  - {image.random_resized_crop: {size: "${size}"}, name: second, inputs: late}
  - {image.flip: {p: 0.4}, name: late, inputs: image.decode}
  - {flow.zip: {prefix: [a_, b_]}, inputs: [first, second]}
  - batch.stack: {size: 7}
"""
    (tmp_path / "g.yaml").write_text(text)
    pipe = hr.load(tmp_path / "g.yaml", data=pictures, size=14)
    wanted = command_digest(command, tmp_path / "g.yaml", "-p", f"data={pictures}", "-p", "size=14")
    assert digest(pipe) == wanted
    pipe.save(tmp_path / "again.yaml")
    assert command_digest(command, tmp_path / "again.yaml") == wanted


def test_loaded_pipelines_go_on(tmp_path: pathlib.Path) -> None:
    hr.range(10).take(5).save(tmp_path / "a.yaml")
    both = hr.zip(hr.load(tmp_path / "a.yaml"), hr.load(tmp_path / "a.yaml"), prefix=["a_", "b_"])
    assert both.take(2).record_count == 2


def test_parameters_of_files_are_checked(tmp_path: pathlib.Path) -> None:
    (tmp_path / "g.yaml").write_text("headrace: 1\nparams: {n: 5}\npipeline:\n  - source.range: {n: '${n}'}\n")
    assert hr.load(tmp_path / "g.yaml", n=7).record_count == 7
    with pytest.raises(hr.HeadraceError, match="there are: n"):
        hr.load(tmp_path / "g.yaml", m=7)


def test_code_in_files_wants_trust(tmp_path: pathlib.Path) -> None:
    pipe = hr.range(6).map(userfns.double).filter(userfns.is_even).batch(6)
    pipe.save(tmp_path / "c.yaml")
    with pytest.raises(hr.CodeError, match="trust=True"):
        hr.load(tmp_path / "c.yaml")
    again = hr.load(tmp_path / "c.yaml", trust=True)
    assert again == pipe
    assert next(iter(again.loader(output="numpy"))).value.tolist() == [0, 2, 4, 6, 8, 10]


def test_records_of_dicts_survive_files(pictures: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pipe = hr.files(pictures, labels="folder").decode().map(userfns.mean_of).batch(30)
    pipe.save(tmp_path / "c.yaml")
    again = hr.load(tmp_path / "c.yaml", trust=True)
    assert again == pipe and digest(again) == digest(pipe)


def test_lambdas_cannot_be_read_back() -> None:
    text = hr.range(3).map(lambda x: x + 1).to_yaml()
    assert "lambda-1" in text
    with pytest.raises(hr.CodeError, match="lambda-1"):
        hr.from_yaml(text, trust=True)


def test_a_function_that_is_gone_is_named(tmp_path: pathlib.Path) -> None:
    text = hr.range(3).map(userfns.double).to_yaml().replace("double", "dubble")
    with pytest.raises(hr.CodeError, match="dubble"):
        hr.from_yaml(text, trust=True)


# ---- for people ----


def test_repr_has_one_operator_a_line(vision: hr.Pipeline) -> None:
    lines = repr(vision).splitlines()
    assert lines[0] == "Pipeline of 8 nodes"
    assert lines[1].startswith("  source.files") and lines[-1].startswith("  batch.stack")
    _ = vision.fields
    assert repr(vision).splitlines()[-1] == "gives label: int64[batch], image: float32[batch, 3, 16, 16]"


def test_repr_names_inputs_of_branches() -> None:
    left = hr.range(3, name="left")
    text = repr(hr.zip(left, hr.range(3), prefix=["a_", "b_"]))
    assert "<- left, source.range2" in text or "<- left, source.range" in text


def test_html_is_escaped() -> None:
    text = hr.files("<script>alert(1)</script>").decode(name="<b>")._repr_html_()
    assert "<script>" not in text and "<b>" not in text and text.count("<rect") == 2


def test_explain_says_what_is_composed(vision: hr.Pipeline) -> None:
    assert "image.decode" in vision.explain(threads=2)


def test_a_plan_is_a_text_that_a_loader_runs(tmp_path: pathlib.Path) -> None:
    numbers = hr.range(50).shuffle().batch(8)
    plan = numbers.plan(threads=2)
    assert "threads: 2" in plan and "block_records: 8" in plan
    file = tmp_path / "plan.yaml"
    file.write_text(plan.replace("threads: 2", "threads: 3"))
    want = [batch.value.tolist() for batch in numbers.loader(output="numpy")]
    for given in (plan, file, file.read_text().replace("chunk_records: 4096", "chunk_records: 1")):
        assert [batch.value.tolist() for batch in numbers.loader(plan=given, output="numpy")] == want
    file.write_text(plan.replace("threads: 2", "threads: two"))
    with pytest.raises(hr.HeadraceError, match=r"plan\.yaml:3:10: .*whole number"):
        list(numbers.loader(plan=file))
    with pytest.raises(hr.ArgumentError, match=r"plan is the text of a plan.*plan\.yaml.*pathlib\.Path"):
        numbers.loader(plan="plan.yaml")
    with pytest.raises(hr.HeadraceError, match="another graph"):
        list(hr.range(51).shuffle().batch(8).loader(plan=plan))
    with pytest.raises(hr.ArgumentError, match="decided by the plan"):
        numbers.loader(plan=plan, threads=2)


def test_completion_offers_operators() -> None:
    assert {"random_resized_crop", "shuffle", "map", "batch"} <= set(dir(hr.range(3)))


def test_version_is_the_librarys() -> None:
    assert hr.__version__ == _headrace.version()


def test_python_is_new_enough() -> None:
    assert sys.version_info >= (3, 11)


# ---- functions of pipelines ----


def test_pipe_calls_functions_of_pipelines() -> None:
    def part(pipe: hr.Pipeline, count: int, *, skip: int = 0) -> hr.Pipeline:
        return pipe.skip(skip).take(count)

    piped = hr.range(10).pipe(part, 4, skip=2).batch(2)
    assert piped == part(hr.range(10), 4, skip=2).batch(2)
    assert [b.value.tolist() for b in piped.loader(output="numpy")] == [[2, 3], [4, 5]]


def test_pipe_refuses_what_gives_no_pipeline() -> None:
    def forgets(pipe: hr.Pipeline) -> Any:
        pipe.take(3)

    with pytest.raises(hr.ArgumentError, match=r"forgets\(\) gave None and not a pipeline; does it lack a return\?"):
        hr.range(10).pipe(forgets)
    with pytest.raises(hr.ArgumentError, match="gave 3 and not a pipeline$"):
        hr.range(10).pipe(lambda pipe: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(hr.ArgumentError, match="a function that takes and returns a pipeline"):
        hr.range(10).pipe(hr.range(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected"):
        hr.range(10).pipe(lambda pipe: pipe, zebra=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lower", "there is lower_text"),
        ("random_flip", "there is flip"),
        ("shufle", "did you mean 'shuffle'"),
        ("prefetch", "loaders read ahead by themselves"),
        ("collate_fn", "map_batch"),
        ("xyzzy", "has no 'xyzzy'$"),
        ("__array__", "has no '__array__'$"),
    ],
)
def test_a_name_that_is_not_there_leads_to_one_that_is(name: str, words: str) -> None:
    assert not hasattr(hr.range(3), name)
    with pytest.raises(AttributeError, match=words):
        getattr(hr.range(3), name)


def test_a_step_is_not_in_the_module() -> None:
    with pytest.raises(AttributeError, match=r"'decode': it is a step, as in hr.files\('photos'\).decode"):
        hr.decode  # noqa: B018


def test_a_module_is_imported_without_the_pipeline_unless_a_step_has_its_name() -> None:
    script = """
import pkgutil, sys
import headrace as hr
from headrace import pickling
assert "headrace.pickling" in sys.modules and "headrace.pipeline" not in sys.modules
try:
    hr.batch
except AttributeError as error:
    print(error)
print(sorted(m.name for m in pkgutil.iter_modules(hr.__path__) if hasattr(hr.Pipeline, m.name)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "hr.files('photos').batch(...)" in done.stdout
    assert done.stdout.endswith("['batch', 'loader']\n")


def test_what_is_said_of_other_names_is_there() -> None:
    for words, names in other_names._SAID.items():
        for name in names.split():
            assert not hasattr(hr.Pipeline, name), name
        for call in re.findall(r"(?<![\w.])(?:hr\.\w+|pipe\.\w+|\w+(?=\())", words):
            where, _, last = call.rpartition(".")
            assert hasattr(hr if where == "hr" else hr.Pipeline, last), words
