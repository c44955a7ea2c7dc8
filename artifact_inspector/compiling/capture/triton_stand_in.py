"""Make Triton behave as with a GPU: a driver whose launches do nothing.

The program's wrappers choose arguments, grid and configuration. Triton itself specialises and compiles; only the launch
is omitted. Supports the interfaces of Triton 3.2 to 3.9.

Source: triton/backends/driver.py, `DriverBase`; triton/runtime/jit.py, `JITFunction.run`; triton/runtime/autotuner.py,
    `Autotuner`; triton/compiler/compiler.py, `CompiledKernel._init_handles`.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.arguments import describe_arguments, named_arguments
from artifact_inspector.compiling.capture.compile_input import describe_compile
from artifact_inspector.compiling.capture.driver import Launcher, RefusedKernel, make_driver_class, read_registers
from artifact_inspector.compiling.capture.interpretation import interpret_launch
from artifact_inspector.compiling.capture.known_tensors import KnownTensors
from artifact_inspector.compiling.capture.patches import Patches, replaced
from artifact_inspector.compiling.capture.recorder import Recorder, find_call_site
from artifact_inspector.compiling.child_processes import CompileJob, run_jobs
from artifact_inspector.compiling.compile_errors import to_compile_error
from artifact_inspector.compiling.gpu_target import from_gpu_target, to_gpu_target
from artifact_inspector.compiling.publishing import entry_metadata, read_cache_key
from artifact_inspector.compiling.stage_reuse import StageRecord, reused_stages
from artifact_inspector.errors import CompileError
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import TritonVersion

OLDEST_TRITON = (3, 2)
_MOST_INTERPRETING_SECONDS = 16.0
"""Time for launches that write indices, which later launches may need; one has a quarter of what is left."""
_VENDORS = {"cuda": "nvidia", "hip": "amd"}


class TritonStandIn:
    """Makes Triton behave as with some GPUs, from `install` to `remove`.

    Args:
        targets: the GPUs. Device queries are answered for the first; every launch is compiled for all.
        recorder: receives every compile, launch and resource shortage.
        configs: number of configurations to compile for an autotuned kernel, evenly spaced; None for all.
        tensors: the tensors that the program created without values, and those whose values are known.
        interprets: whether launches run in Triton's interpreter, and their results are recorded.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        recorder: Recorder,
        directory: Path,
        configs: int | None,
        time_limit: float,
        tensors: KnownTensors,
        *,
        interprets: bool = False,
    ) -> None:
        self.targets = tuple(targets)
        self.recorder, self.directory, self.configs, self.time_limit = recorder, directory, configs, time_limit
        self.index = 0
        """The device number of the current target, which Triton's in-memory caches have as key."""
        self._patches = Patches()
        self._patched_ids: set[int] = set()
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._refused_kernels = itertools.count(1)
        self._kernels: weakref.WeakSet[Any] = weakref.WeakSet()
        self._known_tensors, self._interprets = tensors, interprets
        self._interpreting_seconds = _MOST_INTERPRETING_SECONDS

    def install(self) -> None:
        """Replace Triton's driver.

        Raises:
            CompileError: this Triton is too old, or is set to interpret kernels instead of compiling them.
        """
        import triton
        from triton.compiler import compiler
        from triton.runtime import autotuner, jit
        from triton.runtime.driver import driver

        if TritonVersion(triton.__version__).since(OLDEST_TRITON) is False:
            remedy = "Use Triton 3.2 or newer; `inspect-kernel compile` supports older ones."
            raise CompileError(f"Triton {triton.__version__} is too old to be captured.", remedy)
        if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
            problem = "TRITON_INTERPRET is set: kernels are interpreted, and none would be compiled."
            raise CompileError(problem, "Unset it.")
        self._patches.remember(driver)
        stand_in = make_driver_class(self)
        backends = triton.backends.backends
        vendor = _VENDORS[self.targets[0].backend]
        # Inductor constructs its own driver from this class
        backend = type(backends[vendor])(compiler=backends[vendor].compiler, driver=stand_in)
        self._patches.set_item(backends, vendor, backend)
        driver.set_active(stand_in())
        self._patches.set_item(os.environ, "TRITON_CACHE_DIR", str(self.directory))
        compile_ = self._wrap_compile(compiler.compile)
        for module in (triton, triton.compiler, compiler):
            self._patches.set(module, "compile", compile_)
        self._patches.set(jit.JITFunction, "run", self._wrap_run(jit.JITFunction.run))
        tuner = autotuner.Autotuner
        self._patches.set(tuner, "run", self._wrap_autotuner_run(tuner.run))
        self._patches.set(tuner, "prune_configs", self._wrap_prune_configs(tuner.prune_configs))
        kernel = compiler.CompiledKernel
        self._patches.set(kernel, "_init_handles", self._wrap_init_handles(kernel._init_handles))
        for name in ("do_bench", "do_bench_cudagraph", "do_bench_cudagraph_proton"):
            if hasattr(triton.testing, name):
                self._patches.set(triton.testing, name, _run_untimed)
        cublas = getattr(getattr(triton._C.libtriton, "nvidia", None), "cublas", None)
        if hasattr(cublas, "CublasLt"):
            self._patches.set(cublas, "CublasLt", _Library)

    def remove(self) -> None:
        """Restore Triton."""
        for kernel in self._kernels:
            kernel.module = None  # otherwise the real driver would unload binaries that it never loaded
        self._patches.undo()
        self._patched_ids.clear()

    @property
    def target(self) -> Target:
        """The current target."""
        return self.targets[self.index]

    def count_launch(
        self, kernel: str, target: Target, grid: Sequence[int], function: Any, args: Sequence[Any]
    ) -> None:
        """Count a launch; one that does not come from a `JITFunction`, as Inductor's, with the launcher's arguments."""
        launch_arguments = getattr(self._thread, "arguments", None)
        if launch_arguments is None and len(args) == len(getattr(function, "arg_names", ())) > 0:
            with self._with_launch_arguments(function, args, {}):
                self.count_launch(kernel, target, grid, function, args)
            return
        if launch_arguments is None:
            self.recorder.count_launch(kernel, target, grid, benchmark=self._is_benchmarking)
            return
        is_last = self.index == len(self.targets) - 1 and not self._is_benchmarking
        arguments = named_arguments(*launch_arguments)
        origin = {
            "created": self._known_tensors.uninitialized.number_storages(arguments),
            "initialized": self._known_tensors.uninitialized.find_initialized(arguments, writes=is_last),
        }
        if self._interprets and not self._is_benchmarking and self.index == 0:
            self._interpret(kernel, target, grid, launch_arguments, origin)
        else:
            record = describe_arguments(*launch_arguments, values=self._known_tensors.is_known, addresses=False)
            self.recorder.record_arguments(kernel, target, grid, record, origin, tuning=self._is_benchmarking)
            if self.index == len(self.targets) - 1:
                tensors = (*launch_arguments[1], *launch_arguments[2].values())
                self._known_tensors.mark_written(
                    tensors,
                    lambda: next((x.read_text(errors="replace") for x in _entry(kernel).glob("*.ttir")), None),
                    [arguments[name] for name in origin["initialized"]] if is_last else tensors,
                    lambda: is_last and self._run_for_indices(launch_arguments, grid),
                )

        self.recorder.count_launch(kernel, target, grid, benchmark=self._is_benchmarking)

    def _run_for_indices(self, launch_arguments: Any, grid: Sequence[int]) -> bool:
        """Run a launch in the interpreter, as long as there is time; returns whether it ran to its end."""
        if self._interpreting_seconds <= 0:
            return False
        start, (function, args, options) = time.monotonic(), launch_arguments
        seconds = self._interpreting_seconds / 4
        is_complete = interpret_launch(function, args, options, grid, seconds).problem is None
        self._interpreting_seconds -= time.monotonic() - start
        return is_complete

    def _interpret(
        self, kernel: str, target: Target, grid: Sequence[int], launch_arguments: Any, origin: Mapping[str, Any]
    ) -> None:
        """Run a launch in the interpreter, and record its arguments with their values before and after."""
        record = describe_arguments(*launch_arguments, values=lambda _: True, addresses=False)
        function, args, options = launch_arguments
        done = interpret_launch(function, args, options, grid)
        for name, value in named_arguments(function, args, options).items():
            tensor = getattr(value, "base", value) if hasattr(value, "block_shape") else value
            if isinstance(record.get(name), dict) and hasattr(tensor, "untyped_storage"):
                contents = done.contents.get(int(tensor.untyped_storage().data_ptr()))
                if contents is not None:
                    record[name]["contents"] = self.recorder.store_contents(tensor, *contents)
        interpreted = {"ctas": done.ctas, "problem": done.problem}
        self.recorder.record_arguments(kernel, target, grid, record, origin, tuning=False, interpreted=interpreted)

    def benchmark(self, call: Callable[[], object], *args: object, **options: Any) -> Any:
        """Time a call for an autotuner: the kernel is compiled, and every call takes the same time."""
        with replaced(self._thread, "benchmarking", True):
            return _run_untimed(call, *args, **options)

    @property
    def _is_benchmarking(self) -> bool:
        return bool(getattr(self._thread, "benchmarking", False))

    def _patch_once(self, owner: Any) -> bool:
        """Whether an object is new; if so, its attributes are remembered to be restored."""
        if id(owner) in self._patched_ids:
            return False
        self._patched_ids.add(id(owner))
        self._patches.remember(owner)  # the reference also keeps the object alive, so that its id is not reused
        return True

    def _wrap_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`JITFunction.run` for every target, with a cache for each."""

        def run_for_all(function: Any, *args: Any, **options: Any) -> Any:
            with self._lock:
                if self._patch_once(function):
                    _clear_caches(function)
                results = []
                for index, target in enumerate(self.targets):
                    with replaced(self, "index", index), self._with_launch_arguments(function, args, options):
                        if "binder" in vars(function) and len(self.targets) > 1:
                            vars(function)["binder"] = None  # Triton 3.2 has one cache for all targets
                        try:
                            results.append(original(function, *args, **options))
                        except Exception as error:
                            if index == 0:
                                raise
                            # the vendors have different options
                            self._known_tensors.mark_written((*args, *options.values()), lambda: None)
                            self._refuse(function.__name__, target, f"{type(error).__name__}: {error}")
                return results[0]

        return run_for_all

    def _wrap_autotuner_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`Autotuner.run` without measurements, whose choice is not cached."""

        def run_untimed(tuner: Any, *args: Any, **options: Any) -> Any:
            with self._lock:
                if self._patch_once(tuner):
                    vars(tuner).update(cache={}, cache_results=False, do_bench=self.benchmark)
            with self._outermost_call():
                return original(tuner, *args, **options)

        return run_untimed

    @contextmanager
    def _outermost_call(self) -> Iterator[None]:
        """Run a call that the program itself makes; earlier launches may have written its arguments."""
        if getattr(self._thread, "calls", False):
            yield
            return
        self._thread.calls = True
        try:
            yield
        finally:
            self._thread.calls = False
            if self.recorder.has_launched:
                self._known_tensors.remember_tensors()

    @contextmanager
    def _with_launch_arguments(self, function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Iterator[None]:
        """Remember the arguments of a launch until it is counted."""
        with self._outermost_call(), replaced(self._thread, "arguments", (function, args, options)):
            yield

    def _wrap_prune_configs(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`Autotuner.prune_configs` that selects a few evenly spaced configurations."""

        def prune_to_few(tuner: Any, *args: Any, **options: Any) -> list[Any]:
            configs = list(original(tuner, *args, **options))
            if self.configs is None or len(configs) <= self.configs:
                return configs
            name = getattr(tuner.base_fn, "__name__", "a kernel")
            counts = {"compiled": self.configs, "configs": len(configs)}
            self.recorder.write_event("tuned", name=name, target=str(self.target), **counts)
            return pick_evenly(configs, self.configs)

        return prune_to_few

    def _wrap_init_handles(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`CompiledKernel._init_handles` that reports a kernel too large for the GPU and continues."""
        from triton.runtime.errors import OutOfResources

        def load_and_report(kernel: Any) -> None:
            try:
                original(kernel)
            except OutOfResources as error:
                target = str(from_gpu_target(kernel.metadata.target))
                unit = " B" if error.name == "shared memory" else ""
                shortage = f"needs {error.required}{unit} of {error.name}, and the GPU has {error.limit}"
                self.recorder.write_event("shortage", kernel=kernel.hash, target=target, message=shortage)
                if self._is_benchmarking:
                    raise  # the autotuner tries another configuration
                vars(kernel)["_run" if "_run" in vars(kernel) else "run"] = Launcher(self, kernel.metadata)
                kernel.module = kernel.function = 1
                kernel.n_regs, kernel.n_spills = read_registers(kernel.kernel)

        return load_and_report

    def _wrap_compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`triton.compile` that compiles in a child process first, and reports the result."""

        def compile(src: Any, target: Any = None, options: Any = None, **extra_arguments: Any) -> Any:
            compile_target = self.target if target is None else from_gpu_target(target)
            # the program may have set another directory
            os.environ["TRITON_CACHE_DIR"] = str(self.directory)

            record = StageRecord()

            def attempt(staging: Path) -> str:
                os.environ["TRITON_CACHE_DIR"] = str(staging)
                try:
                    with reused_stages(to_gpu_target(compile_target), record):
                        compiled_kernel = original(src, target=target, options=options, **extra_arguments)
                except Exception as error:
                    raise to_compile_error(error, getattr(src, "fn", None)) from error
                return _entry(compiled_kernel.hash).name

            seconds = 0.0
            described = describe_compile(src, to_gpu_target(compile_target), options)
            if not self._is_cached(lambda: original(src, target=target, options=options, **extra_arguments)):
                work = CompileJob({}, "", self.directory, attempt, record)
                (row,) = run_jobs([work], workers=1, time_limit=self.time_limit)
                seconds = row["seconds"]
                if row["message"] is not None:
                    message = "\n".join(filter(None, (row["message"], row["remedy"])))
                    return self._refuse(described.pop("name"), compile_target, message, seconds, **described)
            # loaded from the cache
            kernel = original(src, target=target, options=options, **extra_arguments)
            self._kernels.add(kernel)
            directory = str(_entry(kernel.hash))
            self._report(kernel.hash, compile_target, seconds=seconds, directory=directory, message=None, **described)
            return kernel

        return compile

    def _is_cached(self, compile: Callable[[], object]) -> bool:
        """Whether the cache has the entry of a compile; nothing is compiled."""
        with self._lock:
            try:
                key = read_cache_key(compile)
            except Exception:  # noqa: BLE001 - options that Triton refuses: the child will say so
                return False
            return key is not None and entry_metadata(_entry(key)) is not None

    def _refuse(self, name: str, target: Target, message: str, seconds: float = 0.0, **described: Any) -> RefusedKernel:
        """Report a refusal; returns a substitute for the kernel, so that the program continues.

        Raises:
            OutOfResources: an autotuner made the call, and tries another configuration.
        """
        from triton.runtime.errors import OutOfResources

        kernel = f"{os.getpid():08x}{next(self._refused_kernels):08x}"  # Triton reads a hash as hexadecimal
        described = {"signature": {}, "constexprs": {}, "options": {}, **described}
        self._report(kernel, target, name=name, seconds=seconds, directory=None, message=message, **described)
        if self._is_benchmarking:
            raise OutOfResources(0, 0, f"compiler: {message}")
        return RefusedKernel(self, kernel, name, target)

    def _report(self, kernel: str, target: Target, **described: Any) -> None:
        call_site = find_call_site()
        fields = {"kernel": kernel, "target": str(target), "place": call_site.line, "caller": call_site.caller}
        self.recorder.write_event("compiled", **fields, **described)


class _Library:
    """Replaces a handle of a vendor's library: no method does anything."""

    def __init__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_args, **_options: None


def pick_evenly(items: Sequence[Any], count: int) -> list[Any]:
    """A number of evenly spaced elements of a list, including the first and the last.

    Example:
        >>> pick_evenly(range(10), 4), pick_evenly(range(3), 1)
        ([0, 3, 6, 9], [0])
    """
    if count == 1:
        return [items[0]]
    return [items[round(position * (len(items) - 1) / (count - 1))] for position in range(count)]


def _run_untimed(call: Callable[[], object], *_: object, **options: Any) -> Any:
    """Replaces `triton.testing.do_bench`: makes the call once, and returns a millisecond."""
    call()
    quantiles = options.get("quantiles")
    if quantiles:
        return [1.0] * len(quantiles)
    return [1.0] if options.get("return_mode") == "all" else 1.0


def _clear_caches(function: Any) -> None:
    """Clear the caches of a JITFunction, which may hold kernels for a real GPU."""
    state = vars(function)
    if "device_caches" in state:  # 3.3 and later
        state["device_caches"] = defaultdict(function.create_binder)
    if "cache" in state:
        state["cache"] = defaultdict(dict)
    if "binder" in state:
        state["binder"] = None


def _entry(kernel: str) -> Path:
    from triton.runtime.cache import get_cache_manager

    return Path(get_cache_manager(kernel).cache_dir)
