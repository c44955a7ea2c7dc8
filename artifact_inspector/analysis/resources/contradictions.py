"""Facts on which the files of one kernel disagree, other than its resources.

Which of the two is right is not decided here. Both are reported, each with its location.
"""

from __future__ import annotations

from collections.abc import Mapping

from artifact_inspector.analysis.resources.usage import Contradiction
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.shared import LaunchParameters


def find_contradictions(
    name: str | None,
    warps: int | None,
    modules: Mapping[Stage, Module],
    launch: LaunchParameters | None,
    binary: tuple[str, str] | None,
    shared_usage: SharedMemoryUsage | None,
) -> tuple[Contradiction, ...]:
    """The contradictions between the files.

    Args:
        name: of the kernel, from the metadata; None without.
        warps: of a block, from the metadata.
        launch: launch parameters in the TTGIR; None without.
        binary: kind of the binary (`cubin`), and the kernel in it.
        shared_usage: of the shared memory.
    """
    return (*_names(name, modules, binary), *_tensor_warps(warps, launch, modules), *_shared(shared_usage))


def _names(name: str | None, modules: Mapping[Stage, Module], binary: tuple[str, str] | None) -> list[Contradiction]:
    """Files that hold a different kernel than the metadata, or than the first file."""
    names_by_file = [(stage.value, [f.name for f in module.functions]) for stage, module in modules.items()]
    names_by_file += [] if binary is None else [(binary[0], [binary[1]])]
    location = "metadata, name"
    if name is None:
        if not names_by_file:
            return []
        location, (name, *_) = names_by_file[0]
    kernel_name = _bare(name)
    return [
        Contradiction(f"kernel: {name} against {names[0]}", (location, file_name))
        for file_name, names in names_by_file
        if names and kernel_name not in {_bare(other_name) for other_name in names}
    ]


def _bare(name: str) -> str:
    """The characters of a name that all languages can spell. NVPTX writes `_$_` for other characters."""
    return "".join(char for char in name.replace("_$_", "") if char.isalnum())


def _tensor_warps(
    warps: int | None, launch: LaunchParameters | None, modules: Mapping[Stage, Module]
) -> list[Contradiction]:
    if launch is None or warps is None:
        return []
    declared = launch.warps if launch.total_warps is None else launch.total_warps
    specialised = any(function.partitions for function in modules[Stage.TTGIR].functions)
    if declared in (None, warps) or (launch.total_warps is None and specialised):
        return []  # the metadata also counts the warps of the partitions
    locations = ("metadata, num_warps", "ttgir, num-warps")
    return [Contradiction(f"warps per block: {warps} against {declared}", locations)]


def _shared(shared_usage: SharedMemoryUsage | None) -> list[Contradiction]:
    """Less shared memory than the allocations need. More is possible: not every use is visible in a file."""
    if shared_usage is None or shared_usage.unexplained_bytes is None or shared_usage.unexplained_bytes >= 0:
        return []
    message = f"shared memory: {shared_usage.declared} bytes against {shared_usage.peak} that the allocations need"
    return [Contradiction(message, ("metadata, shared", "ttgir"))]
