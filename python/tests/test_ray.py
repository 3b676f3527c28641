"""Workers as actors of a Ray cluster, and pipelines as sources of Ray Data, on a real Ray of several nodes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from conftest import ROOT

ray = pytest.importorskip("ray", reason="Ray is not installed (make check-adapters installs it)")
pytest.importorskip("ray.cluster_utils")
pytest.importorskip("hypothesis")  # pytest's plugin imports it at the end, when threads of Ray's may disturb parsing

MEMORY = 100 << 20  # of each node's object store
LOADER = {"loader": 0.5}  # a resource of two nodes, for two workers each


class Nodes:
    """The cluster: a head without workers, and nodes with them, which a test may kill."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": MEMORY}, shutdown_at_exit=False
        )
        for _ in range(2):
            self.add()
        ray.init(address=self.cluster.address, log_to_driver=False)

    def add(self) -> Any:
        node = self.cluster.add_node(num_cpus=1, resources={"loader": 1}, object_store_memory=MEMORY)
        self.cluster.wait_for_nodes()
        return node

    def kill(self, node_id: str) -> None:
        node = next(one for one in self.cluster.worker_nodes if one.node_id == node_id)
        self.cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        ray.shutdown()
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes(command: str) -> Iterator[Nodes]:
    before = dict(os.environ)
    folders = [str(pathlib.Path(hr.__file__).parents[1]), str(pathlib.Path(__file__).parent)]
    os.environ["HEADRACE_COMMAND"] = command  # the nodes' processes inherit these
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, *filter(None, [before.get("PYTHONPATH")])])
    made = Nodes()
    yield made
    made.close()
    os.environ.clear()
    os.environ.update(before)


def numbers(count: int = 2000) -> hr.Pipeline:
    return hr.range(count).shuffle().batch(8)


def values(loader: hr.Loader) -> list[list[int]]:
    return [np.asarray(batch["value"]).tolist() for batch in loader]


def until(holds: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to hold in time"
        time.sleep(0.1)


def fleet_of(workers: hr.RayWorkers) -> Any:
    """The handle of the fleet's actor; None without one."""
    from headrace import ray_workers

    try:
        return ray.get_actor(workers._name(ray), namespace=ray_workers._NAMESPACE)
    except ValueError:
        return None


def node_of(actor: Any) -> str:
    found: str = ray.get(actor.__ray_call__.remote(lambda _: __import__("ray").get_runtime_context().get_node_id()))
    return found


def workers_nodes(workers: hr.RayWorkers) -> list[str]:
    """The nodes of a fleet's workers."""
    actors = ray.get(fleet_of(workers).__ray_call__.remote(lambda self: self._provisioner._actors))
    return [node_of(actor) for actor in actors]


def test_batches_and_states_are_those_of_a_loader_without_workers(nodes: Nodes) -> None:
    workers = hr.RayWorkers(2, resources=LOADER)
    with numbers().loader(seed=3, ray=workers) as loader:
        again = numbers().loader(seed=3)
        assert values(loader) == values(again)
        assert len(workers.live()) >= 1
        steps = iter(loader)
        part = [np.asarray(next(steps)["value"]).tolist() for _ in range(5)]
        state = loader.state_dict()
    other = numbers().loader(seed=3)
    other.load_state_dict(state)
    assert part + values(other) == values(again)
    until(lambda: fleet_of(workers) is None)
    until(lambda: ray.available_resources().get("loader") == 2)  # its workers are gone as well


def test_pictures_are_the_same(nodes: Nodes, pictures: pathlib.Path) -> None:
    pipe = hr.files(pictures, labels="folder").shuffle().decode().random_resized_crop(16).flip().batch(8)
    with pipe.loader(seed=1, workers=hr.RayWorkers(1, resources=LOADER)) as loader:
        for ours, local in zip(loader, pipe.loader(seed=1), strict=True):
            assert np.array_equal(ours["image"], local["image"]) and np.array_equal(ours["label"], local["label"])


def test_relative_paths_are_those_of_the_loader(
    nodes: Nodes, pictures: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pictures.parent)
    pipe = hr.files(pictures.name).batch(8)
    with pipe.loader(ray=hr.RayWorkers(1, cpus=0.5, resources=LOADER)) as loader:
        assert [batch["data"] for batch in loader] == [batch["data"] for batch in pipe.loader()]


def test_a_killed_node_costs_no_record_and_its_worker_starts_again(nodes: Nodes) -> None:
    pipe = numbers(16000)
    workers = hr.RayWorkers(2, cpus=0.9, resources={"loader": 0.9})  # one on each node
    with pipe.loader(seed=3, ray=workers) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            if step == 0:
                until(lambda: len(workers.live()) == 2)
            if step == 500:
                held = node_of(fleet_of(workers))  # in a cluster this young Ray may start it anywhere
                nodes.kill(next(node for node in workers_nodes(workers) if node != held))
        assert got == values(pipe.loader(seed=3))
        nodes.add()
        until(lambda: len(workers.live()) == 2)


def test_a_loop_moves_from_a_fleet_that_was_lost_to_another(nodes: Nodes) -> None:
    pipe, workers = numbers(80_000), hr.RayWorkers(1, cpus=0.8, resources=LOADER)
    with pipe.loader(seed=3, ray=workers) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            if step == 500:
                ray.kill(fleet_of(workers))
        assert got == values(pipe.loader(seed=3))


def test_loaders_of_a_job_share_a_fleet_whichever_process_they_are_in(nodes: Nodes) -> None:
    workers = hr.RayWorkers(1, cpus=0.7, resources=LOADER)

    def train(rank: int, options: hr.RayWorkers) -> tuple[list[list[int]], bytes]:
        with numbers().loader(ray=options, shard=(rank, 2)) as loader:
            return values(loader), fleet_of(options)._actor_id.binary()

    trainers = [ray.remote(train).options(num_cpus=0.5).remote(rank, workers) for rank in range(2)]
    (one, fleet), (two, other) = ray.get(trainers)
    assert fleet == other
    assert [one, two] == [values(numbers().loader(shard=(rank, 2))) for rank in range(2)]


def test_shards_of_ray_train_take_the_option(nodes: Nodes) -> None:
    from headrace.adapters.ray import shard

    batches = shard(numbers(), ray=hr.RayWorkers(1, cpus=0.7, resources=LOADER), output="numpy")
    assert [batch["value"].tolist() for batch in batches.iter_batches()] == values(numbers().loader(seed=0))
    batches.loader.close()


def test_a_fleet_ends_with_a_user_that_is_killed(nodes: Nodes) -> None:
    workers = hr.RayWorkers(1, cpus=0.6, resources=LOADER)

    class Trainer:
        def begin(self, options: hr.RayWorkers) -> int:
            self.loader = numbers().loader(ray=options)
            self.steps = iter(self.loader)
            return next(self.steps)["value"].shape[0]

    trainer = ray.remote(Trainer).options(num_cpus=0.5).remote()
    assert ray.get(trainer.begin.remote(workers)) == 8
    assert fleet_of(workers) is not None
    ray.kill(trainer)
    until(lambda: fleet_of(workers) is None)


def test_workers_in_a_placement_group(nodes: Nodes) -> None:
    group = ray.util.placement_group([{"CPU": 0.5, "loader": 0.5}])
    ray.get(group.ready())
    workers = hr.RayWorkers(1, cpus=0.5, placement_group=group)
    with numbers().loader(ray=workers) as loader:
        assert values(loader) == values(numbers().loader())
        placed = ray.util.placement_group_table(group)["bundles_to_node_id"][0]
        assert workers_nodes(workers) == [placed]
    ray.util.remove_placement_group(group)


def test_workers_drain(nodes: Nodes) -> None:
    pipe, workers = numbers(8000), hr.RayWorkers(2, cpus=0.4, resources={"loader": 0.4})
    with pipe.loader(ray=workers) as loader:
        got = []
        for step, batch in enumerate(loader):
            got.append(np.asarray(batch["value"]).tolist())
            if step == 300:
                until(lambda: len(workers.live()) == 2)
                ray.get(fleet_of(workers).__ray_call__.remote(lambda self: self._provisioner.stop(1)))
                assert len(workers.live()) == 1
        assert got == values(pipe.loader())


def test_without_ray_initialised_it_says_what_to_do(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(hr.StateError, match=r"call ray.init\(\) first"):
        numbers().loader(ray=True)


def test_a_worker_that_cannot_start_says_why(nodes: Nodes) -> None:
    def train(options: hr.RayWorkers) -> str:
        os.environ["HEADRACE_COMMAND"] = "/nowhere/headrace"
        try:
            numbers().loader(ray=options).epoch(0)
        except hr.StateError as error:
            return str(error)
        return "it started"

    environment = {"env_vars": {"HEADRACE_COMMAND": "/nowhere/headrace"}}
    task = ray.remote(train).options(num_cpus=0.5, runtime_env=environment)
    said = ray.get(task.remote(hr.RayWorkers(1, cpus=0.3, resources=LOADER)))
    assert "cannot start on the Ray cluster" in said and "/nowhere/headrace" in said, said


def test_the_example_runs(nodes: Nodes, command: str, tmp_path: pathlib.Path) -> None:
    subprocess.run([command, "synth", "photos", str(tmp_path / "photos"), "--count", "50"], check=True)
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/ray_workers.py"), str(tmp_path / "photos")],
        env={**os.environ, "RAY_ADDRESS": nodes.cluster.address},
        capture_output=True,
        text=True,
        check=False,
    )
    said = "trainer 0: 25 records\ntrainer 1: 25 records\nthe dataset has the same pixels\n"
    assert done.returncode == 0 and done.stdout.endswith(said), done.stdout + done.stderr


def test_workers_that_find_no_room_are_named_and_seen_by_the_autoscaler(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headrace import ray_workers

    monkeypatch.setattr(ray_workers, "_FIRST_S", 1.0)
    workers = hr.RayWorkers(2, resources={"nowhere": 1})
    lease = workers.join()
    assert "no room for a worker for 1 s: each needs 1 CPUs and {'nowhere': 1}" in caplog.text
    assert workers.live() == []

    def demand() -> str:
        words = [sys.executable, "-m", "ray.scripts.scripts", "status", "--address", nodes.cluster.address]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    until(lambda: "'nowhere': 1.0" in demand())
    assert fleet_of(workers) is not None
    lease.close()
    until(lambda: fleet_of(workers) is None)


# ---- Ray Data ----


@pytest.fixture(autouse=True)
def ordered() -> None:
    """A dataset has the context of when it was made."""
    ray.data.DataContext.get_current().execution_options.preserve_order = True


def rows(dataset: Any) -> list[dict[str, Any]]:
    return list(dataset.iter_rows())


def test_a_dataset_has_the_records_of_an_epoch(nodes: Nodes, pictures: pathlib.Path) -> None:
    pipe = hr.files(pictures, labels="folder").shuffle().decode().random_resized_crop(16).flip().batch(8)
    loader = pipe.loader(seed=4, output="numpy")
    dataset = hr.to_ray_dataset(pipe, seed=4, epoch=1, blocks=3)
    assert dataset.schema().names == ["label", "image"]
    wanted = [pair for batch in loader.epoch(1) for pair in zip(batch["image"], batch["label"], strict=True)]
    got = rows(dataset)
    assert len(got) == len(wanted) == 30
    for row, (image, label) in zip(got, wanted, strict=True):
        assert row["label"] == label and np.array_equal(row["image"], image)
    assert dataset.count() == 30


def test_a_dataset_is_lazy_and_knows_its_size(nodes: Nodes) -> None:
    from headrace import ray_data

    pipe = hr.range(1000).map(lambda value: {"x": np.full((4, 4), value, "float32"), "at": value}).batch(10)
    source = ray_data._source_class()(pipe, lambda part: iter(()))
    assert source.estimate_inmemory_data_size() == 1000 * (4 * 4 * 4 + 8)
    tasks = source.get_read_tasks(7)
    assert sum(task.metadata.num_rows for task in tasks) == 1000 and len(tasks) == 7
    assert tasks[0].schema.names == ["x", "at"]
    missing = hr.files("/nowhere").batch(2)
    with pytest.raises(hr.HeadraceError, match="nowhere"):
        hr.to_ray_dataset(missing)


def test_texts_bytes_and_lists_become_rows(nodes: Nodes, tmp_path: pathlib.Path) -> None:
    lines = ["one", "two words", "", "drei Wörter hier"]
    (tmp_path / "a.txt").write_text("".join(line + "\n" for line in lines))
    texts = hr.lines(tmp_path / "a.txt")
    name = texts.fields[0].name
    assert [row[name] for row in rows(hr.to_ray_dataset(texts))] == [
        record[name][0] for record in texts.loader(output="numpy")
    ]
    lists = hr.from_dataset([np.arange(n, dtype="int32") for n in (3, 0, 5, 2)], names=["ids"])
    got = rows(hr.to_ray_dataset(lists.batch(2, ragged=True), blocks=2))
    assert [np.asarray(row["ids"]).tolist() for row in got] == [[0, 1, 2], [], [0, 1, 2, 3, 4], [0, 1]]


def test_a_filter_loses_and_repeats_nothing(nodes: Nodes) -> None:
    pipe = hr.range(100).shuffle().filter(lambda value: value % 3 == 0).batch(8)
    got = rows(hr.to_ray_dataset(pipe, blocks=3))
    assert sorted(row["value"] for row in got) == list(range(0, 100, 3))


def test_wrong_arguments_of_datasets_are_refused(nodes: Nodes) -> None:
    for options in ({"seed": -1}, {"epoch": 1.5}, {"threads": 0}, {"blocks": 0}):
        with pytest.raises(hr.ArgumentError, match=next(iter(options))):
            hr.to_ray_dataset(numbers(), **options)  # type: ignore[arg-type]
    with pytest.raises(hr.UnsupportedError, match=r"cast\('float32', field='value'\)"):
        hr.to_ray_dataset(hr.range(8).cast("bfloat16", field="value").batch(2))
