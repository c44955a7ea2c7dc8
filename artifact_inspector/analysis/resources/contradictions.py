"""Where the files of one kernel say different things of one fact, beyond what it takes of the hardware.

Which of two is right is not decided here: both are reported, each with its place.
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
    """What does not fit together.

    Args:
        name: the kernel's, by the metadata; None without.
        warps: of a block, by the metadata.
        launch: what the TTGIR says of it; None without.
        binary: what the binary is (`cubin`), and the kernel in it.
        bill: of the shared memory.
    """
    return (*_names(name, modules, binary), *_tensor_warps(warps, launch, modules), *_shared(bill))


def _names(
    name: str | None, modules: Mapping[Stage, Module], binary: tuple[str, str] | None
) -> Sequence[Contradiction]:
    """Files that hold another kernel than the metadata, or than the first file."""
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
    """A name as far as all languages can write it: NVPTX spells `_$_` for what PTX does not allow."""
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
        return ()  # the metadata counts those of the partitions, too
    return [
        Contradiction(
            f"warps per block: {warps} against {found}", ("metadata, num_warps", "ttgir, num-warps")
        )
    ]


def _shared(bill: Bill | None) -> Sequence[Contradiction]:
    """Less shared memory than the allocations need; more may be what no file shows."""
    if bill is None or bill.unexplained is None or bill.unexplained >= 0:
        return ()
    sentence = f"shared memory: {bill.declared} bytes against {bill.peak} that the allocations need"
    return [Contradiction(sentence, ("metadata, shared", "ttgir"))]
