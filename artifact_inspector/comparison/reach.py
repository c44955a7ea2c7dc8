"""Whether a change reached the code: which files of two states of a kernel are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from artifact_inspector.comparison.corpus import Change, compare_candidates
from artifact_inspector.comparison.fact_pair import FactPair, PairSide
from artifact_inspector.comparison.likeness import BINARY, Likeness, kinds_of, lacking_kinds, likeness_of
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact

OF_THE_LAUNCH = (
    "num_warps", "num_ctas", "cluster_dims", "shared", "tmem_size", "global_scratch_size", "profile_scratch_size",
    "launch_pdl", "launch_cooperative_grid",
)  # fmt: skip
"""What a launch takes from the metadata, whatever the code is."""


class ComparedFile(NamedTuple):
    """A file that both states have."""

    kind: str
    """`ttir` … `assembly`, `sass`, `binary`."""
    suffix: str
    """`ptx`, `cubin` …, of the new state."""
    likeness: Likeness


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a change went."""

    files: tuple[ComparedFile, ...]
    """In the order of compilation."""
    launch: tuple[str, ...]
    """Keys of the metadata that a launch takes, and that differ."""
    change: Change | None
    """What that changed; None where the code is the same."""
    notes: tuple[str, ...] = ()
    """What could not be compared."""

    @property
    def reached(self) -> bool | None:
        """Whether the code that runs differs; None where nothing could be compared."""
        if self.launch:
            return True
        if not self.files or self.files[-1].likeness is Likeness.UNREADABLE:
            return None
        return self.files[-1].likeness is Likeness.DIFFERENT

    @property
    def categories(self) -> tuple[str, ...]:
        """What the differing facts are about, the most important first."""
        return () if self.change is None else self.change.categories

    @property
    def facts(self) -> tuple[FactPair, ...]:
        """Those that differ, the most important first."""
        return () if self.change is None else self.change.facts

    @property
    def first_difference(self) -> ComparedFile | None:
        """The first file that differs."""
        return next((compared for compared in self.files if compared.likeness is Likeness.DIFFERENT), None)

    @property
    def same_from(self) -> ComparedFile | None:
        """The first file of which it and all later ones are the same; None if the last one differs."""
        first_same = None
        for compared in reversed(self.files):
            if compared.likeness not in (Likeness.IDENTICAL, Likeness.ALIKE):
                break
            first_same = compared
        return first_same


def find_reach(before: Artifact, after: Artifact, inspect: Callable[[Artifact], KernelFacts]) -> Reach:
    """How far the change from one state of a kernel to another went.

    Identical means: equal but for locations, the names of files and values, and debug sections. Binaries are
    compared where the kernel has one name in both.

    Args:
        inspect: computes the facts of a kernel; called if the code differs.
    """
    ours, theirs = kinds_of(before.files), kinds_of(after.files)
    both = [kind for kind in ours if kind in theirs]
    names = {PairSide.LEFT: "old", PairSide.RIGHT: "new"}
    notes = [f"the {names[side]} kernel has no {kinds}: not compared" for side, kinds in lacking_kinds(ours, theirs)]
    if before.name != after.name and BINARY in both:
        both.remove(BINARY)
        notes.append(f"the kernels are {before.name} and {after.name}: their binaries were not compared")
    files = tuple(ComparedFile(kind, theirs[kind], likeness_of(before, after, kind)) for kind in both)
    keys = tuple(
        key
        for key in OF_THE_LAUNCH
        if key in before.metadata and key in after.metadata and before.metadata[key] != after.metadata[key]
    )
    reach = Reach(files, keys, None, tuple(notes))
    if reach.reached is False:
        return reach
    change = compare_candidates(Candidate(before), Candidate(after), inspect, always=True)
    return replace(reach, change=change)
