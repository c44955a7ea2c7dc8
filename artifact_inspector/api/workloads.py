"""Record the launches of a reference kernel's workload, without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile, copytree
from typing import TYPE_CHECKING

from artifact_inspector.compiling.ask.manifest import read_launches
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_recorded
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.digests import index_key
from artifact_inspector.files.index import INDEX_VARIABLE
from artifact_inspector.files.records import MANIFEST
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.files.tensor_values import VALUES_DIRECTORY
from artifact_inspector.files.writer import is_disabled, user_cache
from artifact_inspector.model.text import parse_integer

if TYPE_CHECKING:
    from artifact_inspector.compiling.ask.capturing import CapturedKernel
    from artifact_inspector.execution.timing.variations import FailedConfiguration


_NAME_LENGTH = 32


def is_reference(entry: Artifact) -> bool:
    """Whether an entry is a reference kernel, which has a workload."""
    return entry.requested_kernel in REFERENCE_KERNELS


def kept_workload(entry: Artifact) -> tuple[LaunchRequest, ...]:
    """The launches of a reference kernel's workload, captured once: the user's cache directory keeps their record."""
    root = None if is_disabled(INDEX_VARIABLE) else user_cache()
    if root is not None:
        spec = find_spec(module := REFERENCE_KERNELS[str(entry.requested_kernel)])
        # a kernel may import others: the record depends on all of them, and on the code that captures it
        sources = () if spec is None or spec.origin is None else sorted(Path(spec.origin).parent.glob("*.py"))
        state = f"{module} {entry.target} {entry.triton_version} {sys.version}{_PROGRAM}".encode()
        key = index_key(state + b"".join(source.read_bytes() for source in sources), b"workload", part="compiling")
        directory = root / "workloads" / key.hex()[:_NAME_LENGTH]
        if rows := list(read_launches(directory)):
            return parse_recorded(rows, directory)
    with scratch_directory() as scratch:
        requests, _ = run_workload(entry, Path(scratch))
        if root is not None and requests:
            with suppress(OSError):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                if (Path(scratch) / VALUES_DIRECTORY).is_dir():
                    copytree(Path(scratch) / VALUES_DIRECTORY, directory / VALUES_DIRECTORY, dirs_exist_ok=True)
                copyfile(Path(scratch) / MANIFEST, directory / MANIFEST)  # last: a record without values is not read
    return requests


def run_workload(
    entry: Artifact, directory: Path, varied: Mapping[str, Sequence[str]] | None = None, configs: str | None = None
) -> tuple[tuple[LaunchRequest, ...], tuple[FailedConfiguration, ...]]:
    """The launches of a reference kernel's workload for the target of an entry, and failed compiles.

    Args:
        varied: constant or option → values; every combination is launched.
        configs: `all`, or how many of the workload's configurations; None for that of the kernel.
    """
    # few launches run a workload
    from artifact_inspector.compiling.ask.compile import count_processors
    from artifact_inspector.compiling.ask.running import capture_program

    assert entry.target is not None
    program = _PROGRAM.format(
        module=REFERENCE_KERNELS[str(entry.requested_kernel)],
        tries={
            name: [text if (number := parse_integer(text)) is None else number for text in texts]
            for name, texts in (varied or {}).items()
        },
        configs="[{}]" if configs is None else f"own.configs[:{'' if configs == 'all' else int(configs)}]",
        prepare="" if varied is None else _WITHOUT_VALUES,
        processes=count_processors(),
    )
    (run,) = capture_program(["python", "-c", program], [str(entry.target)], directory)
    rows = list(read_launches(directory))
    requests = parse_recorded(rows, directory) if rows else ()
    return requests, tuple(_failed_variant(kernel) for kernel in run.kernels if kernel.directory is None)


# Warnings of Triton are hidden; a failed launch is printed, and all output of the program goes to stderr.
# Each process compiles one launch at a time. It uses one thread of torch: after a fork, the others are missing.
_PROGRAM = """
import sys
sys.path[:] = [path for path in sys.path if path]  # the working directory may be a cache
import gc, itertools, warnings
gc.disable()  # each compile, in a process forked from this one, would visit all objects again
warnings.simplefilter("ignore")
from {module} import workload
from artifact_inspector.execution.timing.parallel_map import map_in_processes
import torch
{prepare}
own, tries = workload(), {tries!r}
combined = [dict(zip(tries, values)) for values in itertools.product(*tries.values())]
configs = [{{**config, **tried}} for config in {configs} for tried in combined]
torch.set_num_threads(1)
def launch(at):
    try:
        own.launch(**configs[at])
    except Exception as error:
        print(*(f"{{name}}={{value}}" for name, value in configs[at].items()), error)
for _ in map_in_processes(launch, range(len(configs)), {processes}):
    pass
"""

_WITHOUT_VALUES = """
for make in (torch.rand, torch.randn):
    def without_values(*size, make=make, generator=None, device=None, **options):
        return make(*size, device="meta", **options)
    setattr(torch, make.__name__, without_values)
"""
"""For a ranking, which reads only integers: to fill matrices, and to compute inputs from them, takes seconds."""


def _failed_variant(kernel: CapturedKernel) -> FailedConfiguration:
    # this import loads the compiler modules
    from artifact_inspector.execution.timing.variations import FailedConfiguration

    options = {name: kernel.options[name] for name in ("num_warps", "num_stages") if name in kernel.options}
    arguments = {**kernel.constexprs, **options}
    return FailedConfiguration(" ".join(f"{name}={value}" for name, value in arguments.items()), kernel.message or "")
