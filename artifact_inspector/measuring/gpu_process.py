"""The process that uses the GPU: launches each configuration of a kernel, checks it and times it.

Only this module of the package imports torch and Triton. A launch that crashes ends this process only; the calling
process sees that the pipe is closed. A result is compared with the expected one, which is computed without the kernel.

Source: triton/testing.py, `do_bench`; triton/runtime/autotuner.py, `Autotuner.run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from artifact_inspector.compiling.reference import Workload
import gc
import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.compiling.arguments import describe_arguments
from artifact_inspector.compiling.reference import Workload
from artifact_inspector.errors import CompileError, DeviceError, InspectorError, UsageError
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.measuring.measurement import Job, MeasuredDevice, Measurement, MeasurementRow

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


QUANTILES = (0.5, 0.2, 0.8)
WARMUP_MILLISECONDS = 25
MAX_RECORDED_LAUNCHES = 32
"""Largest number of launches of a workload whose arguments are recorded; an autotuner's come first."""
SEED = 20_260_101
"""Seed of the random numbers of a workload."""

TimeFunction = Callable[[Callable[[], object], float], tuple[float, float, float]]
"""(launch, milliseconds to spend) → milliseconds per launch: median, 20th and 80th percentile."""


def run_job(job: Job, answers: Connection) -> None:
    """Run a job and send the device, then a row for each configuration, or an error, over a pipe."""
    try:
        answers.send(describe_device())
        for row in measure_rows(job, _time_launch):
            answers.send(row)
    except InspectorError as error:
        answers.send(error)
    finally:
        answers.close()


def describe_device() -> MeasuredDevice:
    """The GPU that torch launches on.

    Raises:
        DeviceError: there is no GPU, or torch or Triton is not installed.
    """
    remedy = "Run this on a machine with an NVIDIA or AMD GPU; `inspect-kernel compile` needs none."
    try:
        import torch
        import triton
    except ImportError as error:
        remedy = "Install torch and Triton for the GPU of this machine."
        raise DeviceError(f"Kernels cannot be launched here: {error}.", remedy) from None
    if not torch.cuda.is_available():
        build = "" if torch.version.cuda or torch.version.hip else " (a build for CPUs)"
        raise DeviceError(f"No GPU that torch {torch.__version__}{build} can use was found.", remedy)
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    cuda_arch = f"cuda:{properties.major}{properties.minor}"
    arch = f"hip:{properties.gcnArchName}" if torch.version.hip else cuda_arch
    return MeasuredDevice(
        date=datetime.now(timezone.utc).date().isoformat(),
        name=properties.name,
        target=parse_target(arch),
        multiprocessors=properties.multi_processor_count,
        cache_bytes=getattr(properties, "L2_cache_size", None),
        driver=_driver_version(),
        torch=str(torch.__version__),
        triton=triton.__version__,
    )


def measure_rows(job: Job, clock: TimeFunction) -> Iterator[MeasurementRow]:
    """Yield a row for each configuration, including those that fail.

    Raises:
        UsageError: there is no such kernel or workload.
    """
    module, kernel = _import_kernel(job)
    workload = find_workload(module, job.kernel, job.workload)
    tuned = _find_autotuner(kernel)
    configs = find_configs(workload, tuned, job.configs)
    expected = None if workload.expected is None or workload.result is None else workload.expected()
    for index, config in enumerate(configs):
        # a separate directory, which then has only the kernels of this configuration
        directory = Path(job.directory) / str(index) if len(configs) > 1 else Path(job.directory)
        os.environ["TRITON_CACHE_DIR"] = str(directory)
        _clear_caches(kernel)
        launches: list[dict[str, Any]] = []
        launch_record: dict[str, Any] = {}
        try:
            launch = _make_launcher(workload, tuned, config)
            fill_with_poison(workload)
            launches = _record_launches(launch)
            if expected is not None:
                launch_record["deviation"] = relative_error(workload, expected)
            median, low, high = clock(launch, job.milliseconds)
            launch_record |= {"milliseconds": median, "spread": (low, high)}
        except Exception as error:  # noqa: BLE001 - a kernel may raise anything, and each is a row
            launch_record["message"] = f"{type(error).__name__}: {error}".strip().partition("\n\n")[0][:500]
        measured = Measurement(
            kernel=job.kernel,
            size=workload.size,
            config=_config_as_json(config),
            tolerance=None if expected is None else workload.tolerance,
            flop=workload.flop,
            bytes=workload.bytes,
            unit=workload.unit,
            **launch_record,
        )
        yield MeasurementRow(len(configs), measured, _unwrap_kernel(kernel).__name__, str(directory), tuple(launches))
        gc.collect()


def _record_launches(launch: Callable[[], object]) -> list[dict[str, Any]]:
    """Launch once, and record the grid and arguments of each kernel launch."""
    from triton.runtime.jit import JITFunction

    launch_records: list[dict[str, Any]] = []
    run = JITFunction.run

    def record_launch(function: Any, *args: Any, **options: Any) -> Any:
        # before the launch, which may write its arguments
        record = describe_arguments(function, args, options, values=lambda _: True, addresses=True)
        kernel = run(function, *args, **options)
        grid = options.get("grid")
        if kernel is not None and grid is not None and not options.get("warmup"):
            if callable(grid):  # it gets argument → value
                defaults = {argument.name: argument.default for argument in function.params if argument.has_default}
                grid = grid({**defaults, **options, **dict(zip(function.arg_names, args, strict=False))})
            whole_grid = [*map(int, grid), *(1,) * (3 - len(grid))]
            launch = {"hash": kernel.hash, "kernel": function.__name__, "grid": whole_grid, "args": record}
            launch_records.append(launch)
        return kernel

    JITFunction.run = record_launch
    try:
        launch()
    finally:
        JITFunction.run = run
    return launch_records[-MAX_RECORDED_LAUNCHES:]


def find_workload(module: Any, kernel: str, function_name: str | None) -> Workload:
    """The workload of a kernel, from its module's function `KERNEL_workload` or `workload`.

    Raises:
        UsageError: there is no such function, or it does not return a workload.
    """
    names = [function_name] if function_name else [f"{kernel}_workload", "workload"]
    makers = [name for name in names if callable(getattr(module, name, None))]
    if not makers:
        problem = f"{module.__file__} has no function {' or '.join(f'{name}()' for name in names)}."
        remedy = "Write one that returns artifact_inspector.Workload(launch=…): how the kernel is launched."
        raise UsageError(problem, remedy)
    random.seed(SEED)  # a workload has the same data in every run
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(SEED)
    workload = getattr(module, makers[0])()
    if isinstance(workload, Mapping):
        try:
            workload = Workload(**workload)
        except TypeError as error:
            raise UsageError(f"{makers[0]}() returns a mapping that is not a Workload: {error}.") from None
    if callable(workload):
        workload = Workload(launch=workload)
    if not isinstance(workload, Workload):
        problem = f"{makers[0]}() returns a {type(workload).__name__}, not a Workload."
        raise UsageError(problem, "Let it return artifact_inspector.Workload(launch=…).")
    return workload


def find_configs(workload: Workload, tuned: Any, selection: str | None) -> list[Any]:
    """The configurations to measure: the kernel's own choice, all of them, or some evenly spaced ones.

    Args:
        workload: has the configurations of a kernel without an autotuner.
        selection: `all`, a number, or None.

    Raises:
        UsageError: configurations are requested and there are none.
    """
    if selection is None:
        return [None]
    available_configs = list(workload.configs) or list(getattr(tuned, "configs", ()))
    if not available_configs:
        remedy = "Add configs=[{…}, …] to its workload, add an autotuner, or remove --configs."
        raise UsageError("The kernel has no configurations to compare.", remedy)
    count = len(available_configs) if selection == "all" else min(int(selection), len(available_configs))
    return [available_configs[position * len(available_configs) // count] for position in range(count)]


def _make_launcher(workload: Workload, tuned: Any, config: Any) -> Callable[[], object]:
    if isinstance(config, Mapping):
        return lambda: workload.launch(**config)
    if config is not None:  # an autotuner with a single configuration launches it
        tuned.configs = [config]
        tuned.cache.clear()
    return workload.launch


def _config_as_json(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


def _import_kernel(job: Job) -> tuple[Any, Any]:
    """Import a kernel; returns its module and the kernel."""
    if job.file is None:
        module = import_module(job.module)
        return module, module.REFERENCE.kernel
    path = Path(job.file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file.", "Name a FILE.py:KERNEL.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - a file of somebody else's may raise anything
        problem = f"{path} cannot be imported: {type(error).__name__}: {error}."
        raise CompileError(problem, "It must import on its own.") from None
    kernel = getattr(module, job.kernel, None)
    if not hasattr(_unwrap_kernel(kernel), "arg_names"):
        raise UsageError(f"{path} has no kernel {job.kernel!r}.", "Name a function under @triton.jit.")
    return module, kernel


def _unwrap_kernel(kernel: Any) -> Any:
    while hasattr(kernel, "fn") and not hasattr(kernel, "device_caches") and hasattr(kernel.fn, "arg_names"):
        kernel = kernel.fn
    return kernel


def _find_autotuner(kernel: Any) -> Any:
    while kernel is not None:
        if hasattr(kernel, "configs") and hasattr(kernel, "fn"):
            return kernel
        kernel = getattr(kernel, "fn", None)
    return None


def _clear_caches(kernel: Any) -> None:
    """Clear the kernel's in-memory caches, so that Triton reads its cache directory again."""
    caches = getattr(_unwrap_kernel(kernel), "device_caches", None)
    if caches is not None:
        caches.clear()


def _time_launch(launch: Callable[[], object], milliseconds: float) -> tuple[float, float, float]:
    """Milliseconds per launch, with a flushed L2 cache: median, 20th and 80th percentile."""
    from triton.testing import do_bench

    median, low, high = do_bench(launch, warmup=WARMUP_MILLISECONDS, rep=milliseconds, quantiles=list(QUANTILES))
    return median, low, high


def _driver_version() -> str | None:
    """The version of the kernel driver; None if unknown."""
    for module in ("nvidia", "amdgpu"):
        version_file = Path("/sys/module") / module / "version"
        if version_file.is_file():
            return version_file.read_text().strip()
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        completed = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return completed.stdout.splitlines()[0].strip() if completed.stdout.strip() else None


def fill_with_poison(workload: Workload) -> None:
    """Fill the result with values that a launch must overwrite, or with zeros if the kernel adds to it."""
    for tensor in _as_tensors(workload.result):
        if workload.adds:
            tensor.zero_()
        elif tensor.is_floating_point():
            tensor.fill_(float("nan"))
        else:
            tensor.fill_(-1 if tensor.is_signed() else 1)


def relative_error(workload: Workload, expected: Any) -> float:
    """The relative error ‖result − expected‖ / ‖expected‖; the largest of several results.

    It is infinite if a result has NaNs or another shape.
    """
    import torch

    largest_error = 0.0
    actual, expected_tensors = _as_tensors(workload.result), _as_tensors(expected)
    if [tensor.shape for tensor in actual] != [tensor.shape for tensor in expected_tensors]:
        return float("inf")
    for ours, theirs in zip(actual, expected_tensors, strict=True):
        difference = torch.linalg.vector_norm(ours.double() - theirs.to(ours.device).double())
        size = torch.linalg.vector_norm(theirs.double())
        ratio = float(difference / size) if size else float(difference)
        # a comparison with NaN is false, and would pass
        largest_error = max(largest_error, ratio if ratio == ratio else float("inf"))
    return largest_error


def _as_tensors(value: torch.Tensor | Sequence[torch.Tensor] | None) -> list[torch.Tensor]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]  # type: ignore[list-item]
