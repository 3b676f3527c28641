"""Pipeline: a chain of operators as an immutable value.

Every method returns a new pipeline; nothing is opened or run until records, a schema or a
fingerprint are needed. Most operators are in _ops.py, which is generated from the
library's tables; this file has the class itself and the operators that take Python functions.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack

from . import _headrace, build, fieldspec, user_code
from ._check import checked, checked_op, one_of, path_of
from ._ops import Methods
from ._types import Compress, Demand, DType, Even, OnError, Output, PathLike, Rule, Shard, Strictness, Variant
from .errors import ArgumentError, GraphError, ReadError, translated
from .node import Draw, Node, checked_params, distributed, numbered

if TYPE_CHECKING:
    from typing import Literal

    from .fleet import Workers
    from .loader import B, Loader
    from .loader_options import LoaderOptions
    from .optimizing import Optimization
    from .packing import Packed, PackFormat, PackOptions
    from .profiling import Profile
    from .ray_workers import RayWorkers

Fields = str | Sequence[str] | None
Outputs = Mapping[str, object] | Sequence[str] | None


class Pipeline(Methods):
    """Where records come from and what happens to them, up to batches.

    Pipelines are equal (`==`) if their fingerprints are, that is, if they output the same
    records. Comparing pipelines that are written differently opens their sources; hashing,
    which uses only the names of the operators, never does.
    """

    _node: Node

    def __init__(self, node: Node | None = None) -> None:
        if not isinstance(node, Node):
            raise ArgumentError("a Pipeline starts with a source: hr.files(), hr.list(), hr.range(), ...")
        self.__dict__["_node"] = node

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Pipeline never changes, so '{name}' cannot be set; its methods return new pipelines")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Pipeline never changes, so '{name}' cannot be deleted")

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipeline, (self._node,)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    # ---- used by the generated functions ----

    @classmethod
    def _source(cls, op: str, params: Mapping[str, Any], defaults: Mapping[str, Any], *, name: str | None) -> Pipeline:
        return cls(Node(op, checked_params(op, params, defaults, name), (), name))

    @classmethod
    def _join(
        cls,
        pipelines: Sequence[Pipeline],
        op: str,
        params: Mapping[str, Any],
        defaults: Mapping[str, Any],
        *,
        name: str | None,
        keep_position: bool = False,
        depends_on: Sequence[str] = (),
    ) -> Pipeline:
        for one in pipelines:
            if not isinstance(one, Pipeline):
                raise ArgumentError(f"{op} joins pipelines; got a {type(one).__name__}", node=op, op=op)
        if not pipelines:
            raise ArgumentError(f"{op} joins pipelines; give at least one", node=op, op=op)
        given = checked_params(op, {**params, **_hints(keep_position, depends_on)}, defaults, name)
        return cls(Node(op, given, tuple(p._node for p in pipelines), name))

    def _then(
        self,
        op: str,
        params: Mapping[str, Any],
        defaults: Mapping[str, Any],
        *,
        name: str | None,
        keep_position: bool = False,
        depends_on: Sequence[str] = (),
    ) -> Pipeline:
        return Pipeline._join(
            (self,), op, params, defaults, name=name, keep_position=keep_position, depends_on=depends_on
        )

    @checked
    def op(self, operator: str, /, *, name: str | None = None, **params: Any) -> Pipeline:
        """Append an operator by its full name: `pipe.op("image.resize", size=224)`."""
        kinds = [o for o in build.op_kinds() if not o.startswith("code.")]
        one_of("operator", operator, sorted(kinds))
        return self._then(operator, params, {}, name=name)

    @checked
    def to(
        self,
        dtype: DType | None = None,
        *,
        layout: Literal["hwc", "chw"] | None = None,
        field: str = "image",
        scale: bool = True,
    ) -> Pipeline:
        """Convert the element type and the order of an image's dimensions.

        Args:
            dtype: the new element type, or None to keep it.
            layout: "chw" (PyTorch's), "hwc", or None to keep it.
            field: the field to convert.
            scale: uint8 images 0..255 become floats 0..1, and back.
        """
        made = self
        if dtype is not None:
            made = made.cast(dtype, scale=scale, field=field)
        if layout is not None:
            made = made.layout(layout, field=field)
        return made

    @checked
    def pipe(self, function: Callable[..., Pipeline], /, *args: Any, **kwargs: Any) -> Pipeline:
        """What a function makes of this pipeline: `p.pipe(f, 224)` is `f(p, 224)`, in the order in which it is read.

            def augment(p, size):
                return p.random_resized_crop(size).flip().color_jitter(brightness=0.4)

            train = hr.files("photos").shuffle().decode().pipe(augment, size=224).batch(64)

        Args:
            function: takes a pipeline, then args and kwargs, and returns a pipeline.

        Raises:
            ArgumentError: it returns something else, or is not callable.
        """
        if not callable(function):
            raise ArgumentError(
                f"pipe(): a function that takes and returns a pipeline is needed, not {function!r:.60}",
                param="function",
            )
        made = function(self, *args, **kwargs)
        if not isinstance(made, Pipeline):
            called = getattr(function, "__qualname__", repr(function))
            hint = "; does it lack a return?" if made is None else ""
            raise ArgumentError(f"pipe(): {called}() gave {made!r:.60} and not a pipeline{hint}", param="function")
        return made

    # ---- groups ----

    @checked
    def apply(self, steps: Callable[[Pipeline], Pipeline], p: float = 0.5, *, name: str | None = None) -> Pipeline:
        """Run some steps with probability `p`: all of them for a record, or none.

            p.apply(lambda q: q.color_jitter(brightness=0.4, contrast=0.4), p=0.8)
            p.apply(lambda q: q.rotate(10).gaussian_blur(5))              # one draw for both

        Like torchvision's RandomApply. Steps are operators that change fields of a record and keep their
        dtype; sizes that a step changes are not known after it. Groups may be nested.

        Args:
            steps: takes a pipeline and returns it with the steps.
            p: the probability.
            name: of the draw. Without it: "apply", and from the second group on its place among
                them ("apply2").
        """
        if not 0 <= p <= 1:
            raise ArgumentError(f"apply(): p is a probability from 0 to 1, not {p!r:.60}", param="p")
        return self._group(steps, Draw("apply", name), float(p), "apply")

    @checked
    def one_of(
        self,
        choices: Sequence[Callable[[Pipeline], Pipeline]],
        weights: Sequence[float] | None = None,
        *,
        name: str | None = None,
    ) -> Pipeline:
        """Run one of several choices of steps for each record.

            p.one_of([lambda q: q.gaussian_blur(5), lambda q: q.solarize(128, p=1), lambda q: q])
            p.one_of([weak, strong], weights=[0.8, 0.2])

        Like torchvision's RandomChoice. What steps can be: see `apply`.

        Args:
            choices: each takes a pipeline and returns it with the steps of the choice, or unchanged.
            weights: how often each is chosen; all alike without them.
            name: of the draw. Without it: "one_of", and from the second group on its place among
                them ("one_of2").
        """
        if isinstance(choices, (str, bytes)) or not isinstance(choices, Sequence) or not choices:
            raise ArgumentError(f"one_of(): a list of functions is needed, not {choices!r:.60}", param="choices")
        if weights is not None and len(weights) != len(choices):
            raise ArgumentError(f"one_of(): {len(choices)} choices and {len(weights)} weights", param="weights")
        if weights is not None and not (all(w >= 0 for w in weights) and sum(weights) > 0):
            raise ArgumentError("one_of(): weights are at least 0, and one of them is above 0", param="weights")
        draw, made = Draw("one_of", name), self
        of = len(choices) if weights is None else [float(w) for w in weights]
        for at, choice in enumerate(choices):
            made = made._group(choice, draw, {"choice": at, "of": of}, "one_of")
        if made is self:
            raise ArgumentError("one_of(): no choice has a step", param="choices")
        return made

    def _group(self, steps: Callable[[Pipeline], Pipeline], draw: Draw, part: object, called: str) -> Pipeline:
        """This pipeline with the steps, which run when `draw` falls into `part`."""
        made, chain = self.pipe(steps), []
        node = made._node
        while node is not self._node:
            if len(node.inputs) != 1:
                raise GraphError(
                    f"{called}(): the steps of a group follow each other on the pipeline that the function is given",
                    op=node.op,
                )
            chain.append(node)
            node = node.inputs[0]
        for old in reversed(chain):
            when = {draw: part, **old.params.get("when", {})}
            node = Node(old.op, {**old.params, "when": when}, (node,), old.name, old.code)
            node.service = old.service
        if node is self._node and called == "apply":
            raise ArgumentError("apply(): the function adds no step", param="steps")
        return self if node is self._node else Pipeline(node)

    # ---- user code ----

    @checked_op("code.map")
    def map(
        self,
        fn: Callable[..., Any],
        *,
        fields: Fields = None,
        outputs: Outputs = None,
        variant: Variant = "threads",
        version: str | None = None,
        seed_globals: bool = False,
        name: str | None = None,
    ) -> Pipeline:
        """Apply your own function to each record.

            pipe.map(lambda x: x * 2)                                  # records of one field
            pipe.map(augment, fields="image", variant="processes")     # one field of several
            pipe.map(f, fields=["image", "label"], outputs={"mask": hr.spec("uint8", (224, 224))})
            pipe.map(lambda r: {"area": r["image"].shape[0] * r["image"].shape[1]})
            hr.from_dataset(pairs).map(lambda pair: (augment(pair[0]), pair[1]))

        Args:
            fn: with `fields`, it receives these as arguments and returns their new values, for
                several a tuple, or a dict by name. Without, it receives the value of the only field, or a
                dict of all, and returns a value or a dict; records of a data set are items as
                it gives them, and what is returned may have another structure. Scalars are
                int, float or bool, text is str, other byte strings are bytes, anything else
                NumPy arrays, which it may keep and write to. It may return the same types, torch
                tensors, or anything that numpy.asarray accepts.
            fields: names of the fields that it reads. Those it does not return are dropped;
                all others are kept.
            outputs: what it returns: {name: hr.spec(dtype, shape)}. By default the function is
                called once before the run, on the first good record, to find out.
            variant: "threads" (several calls at once, under the interpreter's lock if it has
                one), "inline" (one at a time), or "processes" (in worker processes; the function
                must be at the top level of a module). The records are the same.
            version: identifies the function in fingerprints, instead of its bytecode.
            seed_globals: seed random, numpy.random and torch's CPU generator before each call by
                the record (not with "threads"; "inline" restores them after it); not needed for
                hr.rng(). Worker processes seed them once per epoch in any case, each differently.

        Raises:
            CodeError: the function cannot be sent to a worker process, or it is not known what
                it returns. Exceptions that it raises in the run become CodeErrors that are of
                their own class, too, with the original as __cause__, or are handled by the
                loader's on_error.
        """
        return self._code("map", fn, fields, outputs, variant, version, seed_globals, name)

    @checked_op("code.filter")
    def filter(
        self,
        fn: Callable[..., Any],
        *,
        fields: Fields = None,
        variant: Variant = "threads",
        version: str | None = None,
        seed_globals: bool = False,
        name: str | None = None,
    ) -> Pipeline:
        """Keep the records for which your own function is true.

        Arguments as for `map`. An expression such as `where("label < 10")` is faster, and
        decodes no image.
        """
        return self._code("filter", fn, fields, None, variant, version, seed_globals, name)

    @checked_op("code.expand")
    def flat_map(
        self,
        fn: Callable[..., Iterable[Any]],
        *,
        fields: Fields = None,
        outputs: Outputs = None,
        variant: Variant = "threads",
        version: str | None = None,
        seed_globals: bool = False,
        name: str | None = None,
    ) -> Pipeline:
        """Turn each record into any number of records, those of the iterable that `fn` returns.

            pipe.flat_map(lambda line: line.split())

        Arguments as for `map`; each item of the iterable is what `map` would
        return. The new records have only the fields that were returned.
        """
        return self._code("expand", fn, fields, outputs, variant, version, seed_globals, name)

    @checked_op("code.map")
    def map_batch(
        self,
        fn: Callable[..., Any],
        *,
        fields: Fields = None,
        outputs: Outputs = None,
        variant: Variant = "threads",
        version: str | None = None,
        seed_globals: bool = False,
        name: str | None = None,
    ) -> Pipeline:
        """Apply your own function to each batch, after `batch()`.

        Like `map`, but values are arrays of a whole batch, lists of str or bytes, or for ragged
        fields tuples (values, offsets); the function can return the last two only unchanged, and
        must not change a list that it returns. Without `fields` it receives and returns a dict of
        them, or for a data set a batch with the structure of its items. What it returns need not
        have a value for each record, but then `unbatch` refuses the batch.
        """
        if not build.is_batched(self._node):
            raise GraphError("map_batch works on batches: call .batch(size) before it, or use .map", op="code.map")
        return self._code("map", fn, fields, outputs, variant, version, seed_globals, name, batch=True)

    def _code(
        self,
        kind: str,
        fn: Callable[..., Any],
        fields: Fields,
        outputs: Outputs,
        variant: Variant,
        version: str | None,
        seed_globals: bool,
        name: str | None,
        batch: bool = False,
    ) -> Pipeline:
        user_code.check_function(f"code.{kind}", fn)
        if kind == "map" and not batch and build.is_batched(self._node):
            raise GraphError(
                "map works on records, and these are batches: put it before .batch(), or use .map_batch",
                op="code.map",
            )
        user_code.check_options(f"code.{kind}", variant, version, seed_globals)
        flags = [flag for flag, on in (("seed", seed_globals), ("batch", batch)) if on]
        made = user_code.Code(
            kind,
            fn,
            None if fields is None else fieldspec.field_names(fields, "fields", f"code.{kind}"),
            None if outputs is None else fieldspec.declarations(outputs),
            variant,
            version,
            frozenset(flags),
        )
        if variant == "processes":
            user_code.pickled(made, fn, name or f"code.{kind}")
        return Pipeline(Node(f"code.{kind}", {}, (self._node,), name, made))

    # ---- properties ----

    @functools.cached_property
    def _built(self) -> build.Built:
        return build.build(self._node)

    @property
    def fields(self) -> build.Fields:
        """The fields of the records or batches, by place or by name: `pipe.fields["label"].classes` are
        the names of its classes. Checks the whole pipeline and opens its sources."""
        return self._built.fields

    @property
    def fingerprint(self) -> str:
        """128 bits as hex, equal for equal records. Opens the sources."""
        return self._built.fingerprint

    @property
    def record_count(self) -> int | None:
        """Records per epoch; None if that is known only at run time (a filter). Opens the sources."""
        return self._built.record_count

    @checked
    def explain(self, **options: Unpack[LoaderOptions]) -> str:
        """A description of how it would be run, and why; `options` are those of `loader`."""
        from .loader_options import engine_options

        with translated():
            text = self._built.graph.explain(engine_options(options), False)
        report = self.__dict__.get("_report")
        found = self._unmeasured(options)
        if report is not None and report.steps:
            found = ["your code, as predicted:" if report.ways else "your code:", *report.variants(), *found]
        return "\n".join([text.rstrip("\n"), *found, ""]) if found else text

    def _unmeasured(self, options: LoaderOptions) -> list[str]:
        """Lines about what such a loader leaves as written without having measured it."""
        if not options.get("optimize", False):
            return []
        from .optimizing import cores_of, unmeasured

        threads = options.get("threads")
        tries = options.get("on_error", "fail") == "fail" and options.get("ordered", True) and cores_of(threads) > 1
        return unmeasured(self._built, threads, tries)

    @checked
    def plan(self, **options: Unpack[LoaderOptions]) -> str:
        """The plan of such a loader as YAML: every decision of the engine, with its reason.

        `options` are those of `loader`. Pass the text, edited or not, to `loader(plan=...)`, or
        save it for `headrace run --plan`. With `optimize=`, comments say what would not be measured.
        """
        from .loader_options import engine_options

        with translated():
            text = self._built.graph.plan(engine_options(options), False)
        return "".join(f"# {line}\n" for line in self._unmeasured(options)) + text

    @checked
    def profile(
        self,
        *,
        seconds: float = 5.0,
        records: int | None = None,
        width: float = 0.05,
        threads: int | None = 0,
        fuse: bool = False,
        seed: int = 0,
    ) -> Profile:
        """What each node costs per record, measured by running the pipeline for some seconds.

            train.profile()["image.decode"].cpu_ns

        With `threads=0` your own functions are also measured with the interpreter's lock (`serial`) and in worker
        processes (`process_ns`), as far as they can be sent there.

        It stops once the costs are known, and runs a small data set repeatedly.

        Args:
            seconds: measure for about this time at most. Default 5. Starting, until memory is in use, comes before
                it, and in pipelines without code of yours a run on all cores after it: each as long at most.
            records: or after this many records of the sources.
            width: or once the 95 % confidence intervals are within this part: that of the sum of all costs, and
                of each node with a fifth of it; others may be off by a fifth of this part of the sum.
                Default 0.05.
            threads: as for `loader`; 0 (default): all work is done in the calling thread.
            fuse: compose nodes as a run would. Default: each makes its own result, so that each has its own cost.
            seed: of order and augmentation.
        """
        from .optimizing import measurable
        from .profiling import profile

        with measurable(self._built, self._node, threads == 0) as (built, _):
            return profile(built.graph, seconds, records, width, threads, fuse, seed)

    @checked
    def optimize(
        self,
        *,
        strictness: Strictness = "exact",
        rule: Rule = "headrace",
        profile: Profile | PathLike | None = None,
        records: int = 64,
        seconds: float = 5.0,
        fresh: bool = False,
        seed: int = 0,
        epochs: int = 0,
        cache_memory: int = 0,
        cache_folder: PathLike | None = None,
        cache_bytes: int = 0,
        cache_quality: int = 0,
        refresh: int = 0,
        variants: bool = True,
    ) -> Pipeline:
        """The pipeline with its operators in the order that is cheapest, with a cache where one pays, and with your
        own functions where they run fastest.

            fast = train.optimize()
            print(fast.report)

        Operators move only as they commute, and keep their random draws. `keep_position=True` pins one,
        `depends_on=` orders two; your own functions never move. Both orders are run over the same records
        and compared; an order whose records differ by more than `strictness` allows, or that is slower, is
        dropped, and the cheapest that changes less takes its place, or the written one. Values change only where that
        saves 2 % of the CPU time. `report` of the result says which.

        Functions with `variant="threads"` move to worker processes where that is predicted to gain at least 5 %:
        they hold the interpreter's lock for most of their time, and cost more than sending their records.
        Those that cannot be pickled stay, and so do all of a pipeline that reads an iterable; `report.steps` says why.

        Args:
            strictness: how far records may differ from those of the written order: "exact" (default): not at
                all; "close": by rounding, at most 1 % of a field's range; "relaxed": as other augmentations
                of the same record do.
            rule: how the order is found: "headrace" (default): the cheapest legal one by the profile; "pecan":
                Pecan's AutoOrder, for comparison; "written": as written.
            profile: what the operators cost, from `profile(fuse=True)`, or the path of a file with one.
                Default: as saved on this machine; else it is measured and saved (docs/formats/profile.md).
            records: that both orders are run over. Default 64.
            seconds: to measure costs for, at most about. Default 5.
            fresh: measure them again although they are saved.
            seed: of order and augmentation, while measuring and comparing.
            epochs: that the job will still make: puts a cache (`flow.cache`) where it gains most over them, at
                least 2 %; `report.caches` lists all places with their gain. 0 (default): none.
            cache_memory: bytes that a cache in memory may take. 0 (default): a quarter of the memory that this
                process may use; -1: none in memory.
            cache_folder: a folder in which a cache may also be kept.
            cache_bytes: that it may take there. 0 (default): all but a twentieth of the disk.
            cache_quality: images in a cache may be kept as JPEGs of this quality (`encode`), 1 to 100, which take less
                room, and whose levels differ a little. 0 (default): as they are.
            refresh: random draws before the cache may stay the same for this many epochs. 0 (default): no cache
                is put after operators that draw.
            variants: move functions to worker processes. False: they stay in their variant.

        Raises:
            StateError: the profile knows nothing of an operator that might move.
            HeadraceError: an argument is wrong, or the pipeline cannot be run.
        """
        from .optimizing import optimized

        return optimized(
            self,
            strictness,
            rule,
            profile,
            records,
            seconds,
            fresh,
            seed,
            epochs,
            cache_memory,
            cache_folder,
            cache_bytes,
            cache_quality,
            refresh,
            variants,
        )

    @property
    def report(self) -> Optimization | None:
        """What `optimize` found, if it returned this pipeline; else None."""
        return self.__dict__.get("_report")

    @checked
    def loader(
        self,
        *,
        epochs: int | None = 1,
        seed: int | None = None,
        threads: int | None = None,
        ordered: bool = True,
        memory: int | None = None,
        plan: str | os.PathLike[str] | None = None,
        optimize: bool | Strictness = False,
        on_error: OnError = "fail",
        errors_max: int | None = None,
        timeout: float | None = None,
        demand: Demand = None,
        ledger: PathLike | None = None,
        service: str | None = None,
        service_job: str | None = None,
        service_consumer: str | None = None,
        service_weight: int = 1,
        service_token_file: PathLike | None = None,
        service_tls_ca: PathLike | None = None,
        service_tls_name: str | None = None,
        service_tls_cert: PathLike | None = None,
        service_tls_key: PathLike | None = None,
        service_compress: Compress = "auto",
        workers: str | Workers | None = None,
        ray: bool | RayWorkers = False,
        shard: Shard = "auto",
        even: Even | None = None,
        eval: bool = False,
        output: Output | None = None,
        schema: type[B] | None = None,
        device: Any = None,
        pin_memory: bool = False,
        progress: bool = False,
    ) -> Loader[B]:
        """An iterable over batches: a Batch of named fields each, or for a data set what its items
        are, with arrays of the batch for values.

        Args:
            epochs: passes of one `for`; None: unlimited. Default 1.
            seed: of order and augmentation, below 2**63. Default: if torch is imported,
                `torch.initial_seed()` at the first loop, so that `torch.manual_seed` decides the order;
                else, and with several ranks, 0. States have it, and give it to a loader without one.
            threads: of the engine; None: one per CPU that this process may use; 0: all work is done
                in the thread that runs the loop.
            ordered: batches in the order of their records (default), else in completion order.
            memory: budget in bytes for batches, read-ahead and scratch; None: three batches, more if
                these hold fewer than two records per thread.
            plan: the text of a plan (see `plan`), or the path of a file that holds one as a
                `pathlib.Path`. It decides threads, ordered and memory. Default: a plan is made.
            optimize: put the operators in the order that is cheapest (see `optimize`): True or "exact" (the same
                bytes), "close" or "relaxed". The first batch comes in the written order; the run measures
                itself, and once the new order has been compared it continues in it: if exact, between two
                batches, else with the next epoch. What was measured is saved, so that the next start compares
                before its first batch, if that takes less than a second. `loader.optimization` says what was
                found, or what was not measured and why; states are those of the written order. Your own functions
                go to worker processes before the first batch where their costs, as `optimize` saved them, say that
                they are faster there. Default: False.
            on_error: how bad records are handled: "fail" (default), "skip", or "substitute" (by the
                next good record).
            errors_max: fail after this many bad records; None: 1 + 1 %, at least 100.
            timeout: seconds to wait for a batch. After that the loop gets a StuckError, which names the
                function and the record that a thread or worker process has been at for the longest; other
                waits, such as for files, name the threads only. It needs threads (not threads=0), and does
                not count the imports before worker processes start. Calls that find types, by `loader` itself, have
                as long, in a thread of their own. None (default): wait for ever.
            demand: records per second that the loader must make, with the fewest threads that can; or
                "consumer": as many as the loop takes while it does not wait. The other threads sleep;
                batches and their order stay the same. Worker processes follow the threads, and end after a while
                without work. `stats()` has threads_used, thread_changes, threads_reason, processes_used and
                processes_alive; assigning to `loader.demand` changes it. None (default): all threads work.
            ledger: a file to append bad records to, one JSON object a line.
            service: "host:port" of a dispatcher (`headrace dispatcher`) whose workers make the batches: the same
                batches, in order, and the same states as without it. Where the pipeline filters, expands, packs or
                calls Python functions, workers make the records up to there, or up to `distribute`, and this
                process does the rest. Several, as "a:7070,b:7070": the next one when one is gone. None (default):
                that of `distribute`, if any, else this process makes them.
            service_job: the name of the run there; another loader of the same name and options is refused meanwhile.
                None (default): a random one.
            service_consumer: the name of this loader among several that consume the run `service_job` between them,
                first come, first served: each batch goes to one of them, as far as they `commit`. It is the same
                after a restart. The dispatcher needs a journal (`headrace dispatcher --journal`). None (default): the
                run is for this loader alone.
            service_weight: the run's share of the workers relative to other runs that compete for them, 1 (default)
                to 100. What a run leaves unused goes to the others.
            service_token_file: a file with the service's token; None (default): HEADRACE_TOKEN_FILE or
                HEADRACE_TOKEN in the environment, if the service has one.
            service_tls_ca: talk TLS with the service: a PEM file with the CAs that signed its certificates; None
                (default): HEADRACE_TLS_CA in the environment.
            service_tls_name: the name that its certificates are for; None (default): HEADRACE_TLS_NAME in the
                environment, else the host of each address.
            service_tls_cert: a PEM file with this loader's certificate, for a service that asks for one; None
                (default): HEADRACE_TLS_CERT in the environment.
            service_tls_key: a PEM file with its private key; None (default): HEADRACE_TLS_KEY in the environment.
            service_compress: how the workers may compress what they send over TCP: "auto" (default): by zstd or LZ4
                where that is measured to deliver more; "none"; "lz4" or "zstd": always, unless they must not.
            workers: start a service of its own: "local:2": two processes on this host (`hr.LocalWorkers`); "ray" or
                "ray:4": actors of the Ray cluster (`hr.RayWorkers`); or an object of these classes, which several
                loaders may share. It starts with the first loop, and ends with `close()` or the loader. The same
                pipelines as for `service`. None (default): no workers.
            ray: True is workers="ray": a worker for each CPU of the cluster that is idle, shared by all trainers
                of the Ray job; or hr.RayWorkers(...). Default: False.
            shard: which share of the records: "auto" (default): that of this rank of
                torch.distributed if it is initialised, else of RANK and WORLD_SIZE, else all; None:
                all, whatever the ranks; or (rank, world). The logger "headrace" says which (INFO).
            even: how several ranks make the same number of steps: "repeat": records from the start of
                the epoch are repeated; "drop": the rest is dropped; "steps": the first rank
                without a batch ends the epoch for all, which works after filters and with
                skipped records (the ranks agree through torch.distributed, by a small
                all-reduce per step). Default: "repeat", or "steps" where the number of records is
                not known. "none": some ranks may make one step more.
            eval: for validation: all ranks together get each record once, in equally many steps;
                batches have a field `valid`, bool [records], False for records that only
                fill up the last batch of a rank, and are mappings whatever the items are.
            output: "torch", "numpy", "jax" or "headrace" (fields as they are). Default: "torch" if
                torch is imported, else "numpy".
            schema: a class made from `hr.Batch` that declares types of fields, for editors and type checkers;
                batches are objects of it. The fields that it declares must be there.
            device: a torch device to copy the fields to, such as "cuda"; a number is that GPU.
            pin_memory: copy fields to pinned memory, for your own copy to a device.
            progress: a progress bar.

        Raises:
            HeadraceError: an argument is wrong, or the pipeline cannot be run.
        """
        given = locals()  # the arguments
        from .loader import Loader
        from .loader_options import changed

        return Loader(self, **changed(given))

    @checked
    def distribute(self, service: str | None = None) -> Pipeline:
        """Everything up to here runs on the workers of a service, everything after it in this process.

            pipe = hr.files("photos/").shuffle().decode().random_resized_crop(224).distribute("gpu1:7070")
            pipe = pipe.map(my_function).batch(256)

        It changes no record, no state and no fingerprint. What is before it gives one record for each record of its
        sources: there are no filters, expansions, batches and Python functions. Loaders (`loader(service=)` has
        more) use it; everything else ignores it.

        Args:
            service: "host:port" of a dispatcher (`headrace dispatcher`). None: that of the loader, which may start
                workers itself.
        """
        if service is not None and (not isinstance(service, str) or not service):
            raise ArgumentError(
                f"distribute(): service is the 'host:port' of a dispatcher, not {service!r:.60}", param="service"
            )
        return Pipeline(distributed(self._node, service))

    @checked
    def pack(
        self,
        folder: PathLike,
        *,
        format: PackFormat = "records",
        prefix: str = "part",
        shard_bytes: int = 256 << 20,
        shard_records: int | None = None,
        zstd: int | None = None,
        lz4: int | None = None,
        append: bool = False,
        **options: Unpack[PackOptions],
    ) -> Packed:
        """Write the records, in order, into shards that `hr.records`, `hr.tar` and `hr.tfrecord` read.

            hr.files("photos/", labels="folder").pack("packed")

        The pipeline ends in records, not batches. Its files are the same for any number of
        threads, and those of `headrace pack`. A shard has its name once it is whole; if the
        call is stopped, by an exception, Ctrl-C or a kill, the same call continues after the last
        whole shard. The progress is kept in PREFIX.json in the folder.

        Args:
            folder: of the shards, created if missing.
            format: "records" (default): Headrace's container, which keeps all fields with their types;
                "tar": WebDataset's archives, of byte strings and whole numbers; "tfrecord": one byte
                string per record.
            prefix: shards are PREFIX-000000.records and so on.
            shard_bytes: a shard ends with the record that makes it as large. Default 256 MiB.
            shard_records: or with this many records.
            zstd: 1 to 19: compress the records of the container by zstd of this level, where that
                saves space. Default: they are not compressed.
            lz4: 1 to 12: the same by LZ4, which unpacks faster and saves less.
            append: add the records to those that are in the folder under this prefix, if any, which must have the
                same fields: in the last shard, if it is a container and has room, then in further ones. Records
                that are there can be read whatever happens to the call.
            options: epochs, seed (default 0), threads, memory, plan, on_error, errors_max, timeout, ledger
                and progress as for `loader`; shard=(rank, world): the records of a rank, which needs a
                prefix of its own. Default: all records, whatever the ranks.

        Returns:
            What is written: the path of the shards, as `hr.records` takes it, and the numbers of shards, records
            and bytes.

        Raises:
            HeadraceError: an argument is wrong, the format cannot hold the fields, or the folder holds
                something else under that prefix.
        """
        from .packing import pack

        return pack(self, folder, format, prefix, shard_bytes, shard_records, zstd, lz4, append, options)

    def to_yaml(self) -> str:
        """The pipeline as a graph file, which `hr.from_yaml` and the `headrace` command read.

        Functions of modules are saved by their names; others get names such as "lambda-1",
        which cannot be loaded. Labels have their classes in it, for which their sources are opened.
        """
        graph = self._built.graph if build.has_labels(self._node) else build.assemble(numbered(self._node))[0]
        with translated():
            return graph.print("yaml")

    def save(self, path: PathLike) -> None:
        """Write `to_yaml()` to a file, atomically."""
        name = os.fsdecode(path_of(path, "save"))
        text = self.to_yaml()
        temporary = f"{name}.{os.getpid()}.new"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, name)
        except OSError as error:
            raise ReadError(f"cannot write {name}: {error.strerror}", file=name) from error

    if not TYPE_CHECKING:  # to type checkers, only what is there is there

        def __getattr__(self, name: str) -> NoReturn:
            from .other_names import meant

            hint = "" if name.startswith("_") else meant(name, dir(Pipeline))
            raise AttributeError(f"a Pipeline has no '{name}'{hint}")

    def __iter__(self) -> NoReturn:
        raise ArgumentError("a Pipeline is run by a loader: for batch in pipe.loader(): ...")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        if self._node is other._node:
            return True
        return hash(self) == hash(other) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(tuple(_op_names(self._node)))

    def __repr__(self) -> str:
        from .draw import text

        return text(numbered(self._node), self.__dict__.get("_built"))

    def _repr_html_(self) -> str:
        from .draw import html

        return html(numbered(self._node), self.__dict__.get("_built"))


def _hints(keep_position: bool, depends_on: Sequence[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if keep_position is not False:
        made["keep_position"] = keep_position
    if not isinstance(depends_on, (list, tuple)) or depends_on:
        made["depends_on"] = depends_on
    return made


def _op_names(node: Node | None) -> list[str]:
    """Names of the operators from `node` back to the first source."""
    names = []
    while node is not None:
        names.append(node.op)
        node = node.inputs[0] if node.inputs else None
    return names


def version() -> str:
    """The version of the library that runs."""
    return _headrace.version()
