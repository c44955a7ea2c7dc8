"""Plan the compiles of a request: each configuration for each target, with its cache key.

This module runs in the compiling process, which has Triton.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.child_processes import CompileJob
from artifact_inspector.compiling.compile_errors import describe_error, to_compile_error
from artifact_inspector.compiling.publishing import entry_metadata
from artifact_inspector.compiling.signature import (
    MISSING,
    BoundArguments,
    SignatureEntry,
    bind_arguments,
    entries_by_name,
    read_literal,
)
from artifact_inspector.compiling.stage_reuse import StageRecord
from artifact_inspector.compiling.worker.loading import (
    AutotunerConfig,
    ImportedKernel,
    evaluate_constant,
    load_kernel,
    split_kernel_path,
)
from artifact_inspector.compiling.worker.standin import stand_in_for_torch
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.files.process_limits import limit_compile
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import TritonVersion

try:
    _VERSION = version("triton")
except PackageNotFoundError:  # a fork, whose distribution has another name
    _VERSION = version(packages_distributions()["triton"][0])
if TritonVersion(_VERSION).since((3, 0)) is False:
    stand_in_for_torch()  # Triton 2.x imports torch to query the device
    from artifact_inspector.compiling.worker import triton2 as _triton
else:
    from artifact_inspector.compiling.worker import triton3 as _triton  # type: ignore[no-redef]

MAX_OUTPUT_BYTES = 1 << 20
"""Largest compiler output that is stored beside a kernel."""
SAVED_SUFFIXES = (".ttir", ".ttgir")
"""Suffixes of IR files that a compile can start from."""
_UNCOMPILED = {"seconds": 0.0, "cached": False, "directory": None, "details": None}


def plan_jobs(request: Mapping[str, Any]) -> Iterator[CompileJob | dict[str, Any]]:
    """The compiles of one ask, and rows for its cached entries and for an invalid request."""
    targets = [parse_target(target) for target in request["targets"]]
    _lookup_cache()
    Path(request["out"]).mkdir(parents=True, exist_ok=True)
    if request["place"].endswith(SAVED_SUFFIXES):
        yield from (_plan_saved_text(request, target) for target in targets)
        return
    if not request.get("untrusted") and "" not in sys.path:
        sys.path.insert(0, "")  # after Triton's import: a copy.py of the user hides no library
    try:
        kernel = load_kernel(request["place"])
        variants = list(_variants(kernel, request))
    except InspectorError as error:
        refusal = {**_UNCOMPILED, **describe_error(error)}
        for target in targets:
            yield {**_row_label(request["place"].rpartition(":")[2], target, None), **refusal}
        return
    for config, arguments, options in variants:
        for target in targets:
            yield _plan_job(kernel, config, arguments, options, target, request)


def _plan_saved_text(request: Mapping[str, Any], target: Target) -> CompileJob:
    text_path, out = request["place"], Path(request["out"])
    option_values = ((name, x) for name, x in request["options"].items() if name in _triton.known_options())
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in option_values}
    label = {**_row_label(Path(text_path).stem, target, None), "types": [], "constants": {}, "options": options}
    compile_into = partial(_compile_into, lambda: text_path, None, options, target, request, nullcontext)
    return CompileJob(label, f"{out}\n{text_path}\n{label}", out, compile_into)


def _variants(
    kernel: ImportedKernel, request: Mapping[str, Any]
) -> Iterator[tuple[AutotunerConfig | None, BoundArguments, dict[str, Any]]]:
    reference = kernel.reference
    constants_of_request = {
        name: evaluate_constant(tagged_value, kernel) for name, tagged_value in request["constexprs"].items()
    }
    if request["signature"] is not None or reference is None:
        items = [SignatureEntry(*item) for item in request["signature"] or ()]
    else:
        types = reference.signature.items()
        items = [SignatureEntry(name, type_) for name, type_ in types if name not in constants_of_request]
    reference_options: dict[str, Any] = {}
    reference_constants: dict[str, Any] = {}
    if reference is not None:
        reference_constants = dict(reference.constexprs)
        reference_options = {"num_warps": reference.num_warps, "num_stages": reference.num_stages, **reference.options}
    overrides: Mapping[str, str] = request.get("changed", {})
    parameter_names = {parameter.name for parameter in kernel.parameters}
    requested_options = dict(request["options"])
    for name, text in overrides.items():
        if name not in parameter_names:
            requested_options[name] = text if (value := read_literal(text)) is MISSING else value
    option_names = _triton.known_options()
    for name in requested_options:
        if name not in option_names:
            similar_names = get_close_matches(name, option_names, 1)
            raise UsageError(
                f"Triton {_VERSION} has no option {name!r}.",
                f"Did you mean {similar_names[0]}?" if similar_names else f"It has {', '.join(sorted(option_names))}.",
            )
    for config in _select_configs(kernel, request["configs"], {**reference_constants, **constants_of_request}):
        constants = {**reference_constants, **(config.constants if config is not None else {}), **constants_of_request}
        entries = _apply_overrides(kernel, items, constants, overrides)
        arguments = bind_arguments(kernel.name, kernel.parameters, entries, constants, kernel.derive)
        config_options = config.options if config is not None else {}
        yield config, arguments, {**reference_options, **config_options, **requested_options}


def _apply_overrides(
    kernel: ImportedKernel, items: Sequence[SignatureEntry], constants: dict[str, Any], overrides: Mapping[str, str]
) -> Sequence[SignatureEntry]:
    """The signature with changed parameters; changed constants are stored in `constants`."""
    if not overrides:
        return items
    types = entries_by_name(kernel.name, kernel.parameters, items, constants)
    for parameter in kernel.parameters:
        name = parameter.name
        if name in overrides and parameter.constexpr:
            constants[name] = evaluate_constant(("text", overrides[name]), kernel)
        elif name in overrides:
            constants.pop(name, None)
            types[name] = overrides[name]
    return [SignatureEntry(name, text) for name, text in types.items()]


def _select_configs(
    kernel: ImportedKernel, selection: int | str | None, constants: Mapping[str, Any]
) -> Sequence[AutotunerConfig | None]:
    """The configurations to compile; a single None if there are none, or if all tuned constants are given.

    Args:
        selection: `all`, a number of evenly spaced configurations, or None for the first.
    """
    tuner_configs = kernel.configs
    if not tuner_configs or (
        selection is None and all(config.constants.keys() <= constants.keys() for config in tuner_configs)
    ):
        return (None,)
    count = len(tuner_configs) if selection == "all" else min(int(selection or 1), len(tuner_configs))
    return [tuner_configs[at * len(tuner_configs) // count] for at in range(count)]


def _plan_job(
    kernel: ImportedKernel,
    config: AutotunerConfig | None,
    arguments: BoundArguments,
    options: dict[str, Any],
    target: Target,
    request: Mapping[str, Any],
) -> CompileJob | dict[str, Any]:
    out = Path(request["out"])
    label = {
        **_row_label(kernel.name, target, config),
        "types": list(arguments.format_entries(kernel.function.arg_names)),
        "constants": _constants_as_json(kernel, arguments),
        "options": options,
    }
    environment = dict(request["environment"])
    key = ""
    if not environment:
        # computed in this process, which is fast; environment variables of the request could change the key
        try:
            source = _triton.make_source(kernel.function, arguments, target)
            key = _triton.entry_name(source, target, options)
        except Exception as error:  # noqa: BLE001 - Triton raises many types, and each is a row
            return {**label, **_UNCOMPILED, **describe_error(error)}
        if entry_metadata(out / key) is not None:
            cached_row = {**_UNCOMPILED, "cached": True, "directory": str(out / key)}
            return {**label, **cached_row, "message": None, "remedy": None, "kind": None}
    if request.get("look"):
        return {**label, "pending": True}
    source_of = partial(_triton.make_source, kernel.function, arguments, target)
    record = StageRecord()
    # with variables of its own, a compile prints what its passes do
    reuse = nullcontext if environment else partial(_triton.reuse_stages, target, record)
    compile_into = partial(_compile_into, source_of, kernel.function, options, target, request, reuse)
    return CompileJob(label, f"{out}\n{key or (request['place'], label, environment)}", out, compile_into, record)


def _compile_into(
    source_of: Callable[[], Any],
    function: Any,
    options: Mapping[str, Any],
    target: Target,
    request: Mapping[str, Any],
    reuse: Callable[[], AbstractContextManager[None]],
    staging: Path,
) -> str:
    """Compile into `staging`; runs in a child process."""
    warnings.simplefilter("ignore")  # Python warnings only; the compiler's are on standard error
    os.environ.update(request["environment"])
    os.environ["TRITON_CACHE_DIR"] = str(staging)
    # Triton passes files to ptxas and its linker there; a later run removes those of a killed compile
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(dir=staging)
    if request.get("untrusted"):
        _limit_process(request, staging)
    if request.get("is_retargeted"):
        from artifact_inspector.compiling.worker.triton3 import repeat_tensor_passes  # Triton 3 only

        repeat_tensor_passes(target)
    log: list[str] = []
    _collect_ptxas_output(log)
    try:
        source = source_of()
        entry = _triton.entry_name(source, target, options)
        with reuse():
            _triton.build(source, target, options)
    except Exception as error:
        raise to_compile_error(error, function) from error
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if request.get("output"):
            _copy_output(Path(request["output"]))
    metadata = entry_metadata(staging / entry)
    if metadata is None:
        raise RuntimeError(f"Triton left no complete entry {entry}")
    metadata.with_suffix(".remarks").write_text(_read_output(MAX_OUTPUT_BYTES) + "".join(log))
    return entry


def _limit_process(request: Mapping[str, Any], staging: Path) -> None:
    """Limit this child, which compiles an entry of a cache: time, memory, and the files that it may open."""
    texts = (request.get("output"), request["environment"].get("MLIR_DUMP_PATH"))
    writable = {staging.parent, *(Path(file).parent for file in texts if file)}
    module_or_file = split_kernel_path(request["place"])[0]
    limit_compile([Path(module_or_file).parent] if "/" in module_or_file else [], writable)


def _read_output(max_bytes: int) -> str:
    """The compiler's output so far, from the file that standard error goes to; cut to `max_bytes` bytes."""
    size = os.lseek(2, 0, os.SEEK_END)
    os.lseek(2, 0, os.SEEK_SET)
    output_text = os.read(2, max_bytes).decode(errors="replace")
    os.lseek(2, 0, os.SEEK_END)
    dropped = f"\nremark: {size - max_bytes} more bytes of output were dropped\n" if size > max_bytes else ""
    return output_text + dropped


def _copy_output(file: Path) -> None:
    os.lseek(2, 0, os.SEEK_SET)
    with file.open("wb") as copy:
        while chunk := os.read(2, MAX_OUTPUT_BYTES):
            copy.write(chunk)
    os.lseek(2, 0, os.SEEK_END)


def _collect_ptxas_output(log: list[str]) -> None:
    """Collect the output of ptxas: Triton redirects it to a file that it deletes without reading."""
    run = subprocess.run

    def run_and_collect(command: Any, *args: Any, **kwargs: Any) -> Any:
        done = run(command, *args, **kwargs)
        log_path = getattr(kwargs.get("stderr"), "name", None)
        if isinstance(command, str) and "ptxas" in command and "2>" in command:
            log_path = command.rpartition("2>")[2].strip()
        elif not isinstance(command, str) and "ptxas" not in Path(str(command[0])).name:
            return done
        if isinstance(log_path, str):
            log.append(Path(log_path).read_text(errors="replace"))
        return done

    subprocess.run = run_and_collect  # type: ignore[assignment]


@cache
def _lookup_cache() -> tempfile.TemporaryDirectory[str]:
    """A temporary cache directory for key lookups, since Triton creates a directory for every key."""
    scratch = scratch_directory()
    os.environ["TRITON_CACHE_DIR"] = scratch.name
    return scratch


def _row_label(name: str, target: Target, config: AutotunerConfig | None) -> dict[str, Any]:
    config_text = None if config is None else str(config)
    return {"kernel": name, "target": str(target), "config": config_text, "triton": _VERSION}


def _constants_as_json(kernel: ImportedKernel, arguments: BoundArguments) -> dict[str, Any]:
    names = [parameter.name for parameter in kernel.parameters]

    def to_json_value(value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, tuple):
            return [to_json_value(member) for member in value]
        return getattr(value, "__name__", None) or str(value)

    return {
        ".".join([names[path[0]], *map(str, path[1:])]): to_json_value(value)
        for path, value in arguments.constants.items()
    }
