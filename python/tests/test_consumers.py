"""Loaders that consume one run between them."""

import collections
import json
import pathlib
import re
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import headrace as hr
from test_service import begin


@pytest.fixture
def service(command: str, tmp_path: pathlib.Path) -> Iterator[str]:
    dispatcher, address = begin(
        command, "dispatcher", "--listen", "127.0.0.1:0", "--journal", str(tmp_path / "journal")
    )
    workers = [begin(command, "worker", "--dispatcher", address, "--threads", "1")[0] for _ in range(2)]
    yield address
    for process in (dispatcher, *workers):
        process.kill()
        process.communicate()


def numbers(n: int = 300) -> hr.Pipeline:
    return hr.range(n).shuffle().batch(5)


def loader_of(service: str, name: str, **options: object) -> hr.Loader:
    return numbers().loader(epochs=2, seed=3, service=service, service_job="train", service_consumer=name, **options)  # type: ignore[arg-type]


class Trainer:
    """What it has seen is its model."""

    def __init__(self, service: str, name: str, folder: pathlib.Path) -> None:
        self.path = folder / f"{name}.json"
        self.loader = loader_of(service, name)
        self.seen: list[int] = []
        found = self.loader.checkpoint(self.path)
        if found is not None:
            saved = json.loads(pathlib.Path(found).read_text())
            self.seen = saved["seen"]
            self.loader.load_state_dict(saved["loader"])

    def commit(self) -> None:
        with self.loader.commit(self.path) as aside:
            pathlib.Path(aside).write_text(json.dumps({"seen": self.seen, "loader": self.loader.state_dict()}))

    def train(self, most: int | None = None, every: int = 7) -> None:
        for step, batch in enumerate(self.loader):
            self.seen += np.asarray(batch["value"]).tolist()
            if step % every == every - 1 or self.loader.commit_due:
                self.commit()
            if step + 1 == most:
                return


def check_once(folder: pathlib.Path, n: int = 300) -> None:
    files = list(folder.glob("*.json*"))
    assert all(path.suffix == ".json" for path in files)
    counts = collections.Counter(value for path in files for value in json.loads(path.read_text())["seen"])
    assert set(counts.values()) == {2} and len(counts) == n


def test_consumers_get_all_batches_once_between_them(service: str, tmp_path: pathlib.Path) -> None:
    trainers = [Trainer(service, name, tmp_path) for name in "abc"]
    threads = [threading.Thread(target=trainer.train, kwargs={"every": 3 + at}) for at, trainer in enumerate(trainers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    check_once(tmp_path)
    assert sum(trainer.loader.stats()["batches"] for trainer in trainers) == 120


def test_what_was_not_committed_comes_again(service: str, tmp_path: pathlib.Path) -> None:
    first = Trainer(service, "a", tmp_path)
    first.train(most=17, every=5)  # two batches are not committed
    assert len(first.seen) == 85
    with pytest.raises(hr.StateError, match="2 batches that it did not commit"):
        next(iter(first.loader))
    first.loader.close()
    second = Trainer(service, "a", tmp_path)
    assert len(second.seen) == 75
    second.train()
    check_once(tmp_path)


def test_the_checkpoint_that_counts_is_found_aside_and_in_place(service: str, tmp_path: pathlib.Path) -> None:
    first = Trainer(service, "a", tmp_path)
    first.train(most=10, every=5)
    first.loader.close()
    number = json.loads(json.loads(first.path.read_text())["loader"]["engine"])["checkpoint"]
    assert number == 2
    first.path.rename(f"{first.path}.2")  # as if it had died before that
    pathlib.Path(f"{first.path}.3").write_text("a commit that was never asked for")
    second = Trainer(service, "a", tmp_path)
    assert len(second.seen) == 50 and not pathlib.Path(f"{first.path}.3").exists()
    second.loader.close()
    first.path.unlink()
    with pytest.raises(hr.StateError, match="checkpoint 2 of this consumer is committed, and there is neither"):
        loader_of(service, "a").checkpoint(first.path)
    with pytest.raises(hr.StateError, match="resume from it, or take another name"):
        next(iter(loader_of(service, "a")))


def test_a_loop_that_does_not_commit_is_stopped(service: str, tmp_path: pathlib.Path) -> None:
    loader = loader_of(service, "a")
    with pytest.raises(hr.StateError, match="taken and not committed, and no more come before"):
        for _ in loader:
            pass
    with pytest.raises(hr.StateError, match="commits within its loop"), loader.commit(tmp_path / "x"):
        pass


def test_an_empty_commit_changes_nothing(service: str, tmp_path: pathlib.Path) -> None:
    loader = loader_of(service, "a")
    for _ in loader:
        with pytest.raises(hr.StateError, match="no file was written"), loader.commit(tmp_path / "a.json"):
            pass
        break
    assert not list(tmp_path.glob("a.json*"))


def test_what_a_consumer_cannot_have_is_refused(service: str, tmp_path: pathlib.Path) -> None:
    pipe = numbers()
    with pytest.raises(hr.ArgumentError, match="service_job needs service="):
        pipe.loader(service_job="j", service_consumer="a")
    with pytest.raises(hr.ArgumentError, match="needs service_job"):
        pipe.loader(service=service, service_consumer="a")
    with pytest.raises(hr.ArgumentError, match="leave out shard="):
        pipe.loader(service=service, service_job="j", service_consumer="a", shard=(0, 2))
    loader = loader_of(service, "a")
    with pytest.raises(hr.UnsupportedError, match="epoch()"):
        loader.epoch(1)
    with pytest.raises(hr.StateError, match="how many batches a consumer gets"):
        len(loader)
    with pytest.raises(hr.StateMismatchError, match="not of one of several"):
        loader.load_state_dict(numbers().loader(seed=3).state_dict())
    plain = pipe.loader(seed=3)
    with pytest.raises(hr.StateError, match="only a loader with service_consumer= commits"):
        plain.commit(tmp_path / "x")
    trainer = Trainer(service, "b", tmp_path)
    trainer.train(most=7)
    saved = json.loads(trainer.path.read_text())["loader"]
    with pytest.raises(hr.StateMismatchError, match="one of several consumers"):
        numbers().loader(epochs=2, seed=3).load_state_dict(saved)
    filtered = hr.range(300).filter(lambda record: record["value"] < 9).batch(5)
    with pytest.raises(hr.UnsupportedError, match="batches that any worker can make by itself"):
        iter(filtered.loader(service=service, service_job="f", service_consumer="a"))


def test_the_example_of_the_documentation_runs(
    service: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    page = pathlib.Path(__file__).parents[2] / "docs" / "service.md"
    code = next(
        block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if "service_consumer" in block
    )
    monkeypatch.chdir(tmp_path)
    model, seen = torch.nn.Linear(1, 1), []
    names = {
        "pipe": numbers(),
        "torch": torch,
        "model": model,
        "train": lambda _, batch: seen.extend(batch["value"].tolist()),
    }
    exec(code.replace("127.0.0.1:7070", service), names)
    assert sorted(seen) == sorted(10 * list(range(300)))
    assert (tmp_path / "a.pt").exists()
    seen.clear()
    exec(code.replace("127.0.0.1:7070", service), names)  # all is done
    assert not seen
