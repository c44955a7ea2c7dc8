"""Facts on which the files of one kernel disagree, other than its resources.

Which of the two is right is not decided here. Both are reported, each with its location.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifact_inspector.analysis.resources.taken import Contradiction
from artifact_inspector.analysis.shared.bill import Bill
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.shared import Launch


def find_contradictions(
    name: str | None,
    warps: int | None,
    modules: Mapping[Stage, Module],
    launch: Launch | None,
    binary: tuple[str, str] | None,
    bill: Bill | None,
) -> tuple[Contradiction, ...]:
    """The contradictions between the files.

    Args:
        name: of the kernel, from the metadata; None without.
        warps: of a block, from the metadata.
        launch: launch parameters in the TTGIR; None without.
        binary: kind of the binary (`cubin`), and the kernel in it.
        bill: of the shared memory.
    """
    return (*_names(name, modules, binary), *_tensor_warps(warps, launch, modules), *_shared(bill))


def _names(
    name: str | None, modules: Mapping[Stage, Module], binary: tuple[str, str] | None
) -> Sequence[Contradiction]:
    """Files that hold a different kernel than the metadata, or than the first file."""
    held = [
        (stage.value, [function.name for function in module.functions]) for stage, module in modules.items()
    ]
    held += [] if binary is None else [(binary[0], [binary[1]])]
    place = "metadata, name"
    if name is None:
        if not held:
            return ()
        place, (name, *_) = held[0]
    known = _bare(name)
    return [
        Contradiction(f"kernel: {name} against {names[0]}", (place, where))
        for where, names in held
        if names and known not in {_bare(other) for other in names}
    ]


def _bare(name: str) -> str:
    """The characters of a name that all languages can spell. NVPTX writes `_$_` for other characters."""
    return "".join(char for char in name.replace("_$_", "") if char.isalnum())


def _tensor_warps(
    warps: int | None, launch: Launch | None, modules: Mapping[Stage, Module]
) -> Sequence[Contradiction]:
    if launch is None or warps is None:
        return ()
    found = launch.warps if launch.total_warps is None else launch.total_warps
    if found is None or found == warps:
        return ()
    specialised = any(function.partitions for function in modules[Stage.TTGIR].functions)
    if launch.total_warps is None and specialised:
        return ()  # the metadata also counts the warps of the partitions
    return [
        Contradiction(
            f"warps per block: {warps} against {found}", ("metadata, num_warps", "ttgir, num-warps")
        )
    ]


def _shared(bill: Bill | None) -> Sequence[Contradiction]:
    """Less shared memory than the allocations need. More is possible: not every use is visible in a file."""
    if bill is None or bill.unexplained is None or bill.unexplained >= 0:
        return ()
    sentence = f"shared memory: {bill.declared} bytes against {bill.peak} that the allocations need"
    return [Contradiction(sentence, ("metadata, shared", "ttgir"))]
