"""Which kernels, stages and regions a report is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram, find_program
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.lazy import with_fields
from artifact_inspector.files.cache import Artifact, Cache, Problem
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import Stage
from artifact_inspector.model.text import split_option_values

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts, StageFacts

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:[.+]\w+|[^\W\d]\w*)?")
_NUMBERED = re.compile(r"(w|warps=|num_warps=|s|stages=|num_stages=)(\d{1,4})")
_CHOSEN = re.compile(r"([A-Za-z_]\w*)=(.+)")
_TILE = re.compile(r"\d+(?:[x×]\d+)+")

TARGET = "target"


class KernelFilter(NamedTuple):
    """One thing that a kernel must be to be meant: for a GPU, of a version, of so many warps, of a tile."""

    kind: str
    """Of one kind any is enough; `target`, `Triton`, `warps`, `stages`, `tile`, or a constant's name."""
    description: str
    """`is for sm_80`, `is of Triton 3.2`, `has 4 warps`."""
    values_of: Callable[[Artifact], Iterable[str]]
    """What a kernel is in this respect, to say what there is; nothing where that is not known."""
    matches: Callable[[Artifact], bool]

    @property
    def is_target(self) -> bool:
        """Whether it selects by GPU."""
        return self.kind == TARGET


def parse_targets(values: Iterable[str]) -> tuple[Target, ...]:
    """Targets of repeated or comma-separated options.

    Raises:
        UsageError: one names no GPU.
    """
    return tuple(parse_target(value) for value in split_option_values(values))


def parse_filters(values: Iterable[str], *, otherwise_target: bool = True) -> tuple[KernelFilter, ...]:
    """What repeated or comma-separated options choose kernels by.

    A GPU (`sm_80`, `T4`), a version of Triton (`3.2`), warps and stages (`w4`, `stages=3`), a tile
    (`128x64x32`, `tile=256`), or a constant or an option (`GROUP_SIZE_M=8`).

    Args:
        otherwise_target: False to leave out what is none of these.

    Raises:
        UsageError: a word is none of these.
    """
    filters = []
    for value in split_option_values(values):
        kernel_filter = _parse_filter(value)
        if kernel_filter is None:
            try:
                kernel_filter = _of_target(parse_target(value))
            except UsageError:
                if otherwise_target:
                    raise
                continue
        filters.append(kernel_filter)
    return tuple(filters)


def _parse_filter(text: str) -> KernelFilter | None:
    if _VERSION.fullmatch(text):
        return KernelFilter(
            "Triton",
            f"is of Triton {text}",
            lambda x: [] if x.triton_version is None else [str(x.triton_version)],
            lambda x: x.triton_version is not None and x.triton_version.may_match(text),
        )
    numbered = _NUMBERED.fullmatch(text)
    if numbered is not None:
        name = "stages" if numbered[1] == "s" or "stages" in numbered[1] else "warps"
        return _of_value(name, lambda x: x.num_stages if name == "stages" else x.num_warps, numbered[2])
    assignment = _CHOSEN.fullmatch(text)
    name, value = assignment.groups() if assignment is not None else ("", "")
    if name == "tile" or _TILE.fullmatch(text):
        tile = (value or text).replace("x", "×")
        return KernelFilter("tile", f"has a tile of {tile}", _tiles, lambda x: tile in _tiles(x))
    if assignment is None:
        return None
    return _of_value(name, lambda x: x.constants.get(name, x.metadata.get(name)), value)


def _of_value(name: str, find: Callable[[Artifact], object], value: str) -> KernelFilter:
    description = f"has {value} {name}" if name in ("warps", "stages") else f"has {name}={value}"

    def values_of(artifact: Artifact) -> list[str]:
        current = find(artifact)
        return [] if current is None else [str(current)]

    return KernelFilter(
        name, description, values_of, lambda x: value.lower() in (candidate.lower() for candidate in values_of(x))
    )


def _of_target(target: Target) -> KernelFilter:
    return KernelFilter(
        TARGET, f"is for {target}", lambda x: [] if x.target is None else [str(x.target.arch)],
        lambda x: x.target is not None and x.target.arch == target.arch,
    )  # fmt: skip


def _tiles(artifact: Artifact) -> list[str]:
    program = read_program(artifact, [])
    return [] if program is None else list(dict.fromkeys(tile.shape for tile in program.tiles))


def read_program(artifact: Artifact, problems: list[Problem]) -> KernelProgram | None:
    """Arguments and tiles by the first tensor-level stage; what is wrong with that goes to the problems."""
    # A run that parses nothing imports no parser.
    from artifact_inspector.facts.modules import read_module
    from artifact_inspector.formats import format_of

    for stage in (Stage.TTIR, Stage.TTGIR):
        module = read_module(artifact, stage, problems)
        if module is not None:
            return find_program(module, format_of(stage), artifact.name)
    return None


def filter_kernels(
    artifacts: Sequence[Artifact], filters: Sequence[KernelFilter], *, with_counts: bool
) -> tuple[Artifact, ...]:
    """The kernels that are all that is wanted, any of what is of one kind.

    Args:
        with_counts: to say how many there are of each where none is left.

    Raises:
        UsageError: none is left though there were some; the remedy says what there is.
    """
    remaining = tuple(artifacts)
    for kind in dict.fromkeys(kernel_filter.kind for kernel_filter in filters):
        same_category = [kernel_filter for kernel_filter in filters if kernel_filter.kind == kind]
        previous, remaining = (
            remaining,
            tuple(x for x in remaining if any(kernel_filter.matches(x) for kernel_filter in same_category)),
        )
        if previous and not remaining:
            raise UsageError(*_no_match(kind, same_category, previous, with_counts=with_counts))
    return remaining


def _no_match(
    kind: str, filters: Sequence[KernelFilter], artifacts: Iterable[Artifact], *, with_counts: bool
) -> tuple[str, str]:
    available = Counter(value for x in artifacts for value in (list(filters[0].values_of(x)) or ["unknown"]))
    lead = "is for " if kind == TARGET else ""
    condition = lead + " or ".join(sorted({kernel_filter.description.removeprefix(lead) for kernel_filter in filters}))
    if with_counts:
        listed = ", ".join(f"{value} ({count})" for value, count in sorted(available.items()))
    else:
        listed = ", ".join(sorted(set(available) - {"unknown"}))
    return f"No kernel here {condition}.", f"Choose from {listed}." if listed else "Omit this selector."


def parse_stages(values: Iterable[str]) -> tuple[Stage, ...]:
    """Stages of repeated or comma-separated options.

    Raises:
        UsageError: one names no stage.
    """
    stage_by_name = {stage.value: stage for stage in Stage}
    stages = []
    for value in split_option_values(values):
        if value.lower() not in stage_by_name:
            raise UsageError(f"{value!r} is no stage.", f"Expected one of {', '.join(stage_by_name)}.")
        stages.append(stage_by_name[value.lower()])
    return tuple(stages)


def select_kernels(
    cache: Cache, name: str | None, targets: Sequence[KernelFilter | Target], stages: Sequence[Stage] = ()
) -> tuple[Artifact, ...]:
    """The kernels of a cache that a name (a part of one, or of a hash), what is wanted and stages leave.

    A name that is somebody's whole name does not also mean the longer ones that contain it. What was asked to
    be compiled, a reference kernel or `FILE.py:KERNEL`, is a name too, where that is on record.

    Raises:
        UsageError: none is left though the cache has some; the remedy holds near matches.
    """
    filters = [_of_target(target) if isinstance(target, Target) else target for target in targets]
    remaining = filter_kernels(cache.entries, filters, with_counts=True)
    if name is not None and remaining:
        remaining = _named(remaining, name)
    if stages:
        stage_names = {stage.value for stage in stages}
        available = Counter(stage.value for stage in Stage for x in remaining if stage.value in x.files)
        remaining = tuple(x for x in remaining if not stage_names.isdisjoint(x.files))
        if not remaining and cache.entries:
            choices = ", ".join(f"{stage} ({count})" for stage, count in available.items())
            remedy = f"Choose from {choices}." if choices else "Omit --stage."
            if Stage.SASS in stages:
                remedy = "Add --sass, which disassembles binaries."
            raise UsageError(f"No kernel here has a file of stage {' or '.join(sorted(stage_names))}.", remedy)
    return remaining


def _named(artifacts: Sequence[Artifact], name: str) -> tuple[Artifact, ...]:
    sought = name.lower()
    exact = tuple(x for x in artifacts if sought in (x.display_name.lower(), x.name.lower(), x.hash.lower()))
    exact = exact or tuple(x for x in artifacts if sought and sought == (x.requested_kernel or "").lower())
    partly = exact or tuple(
        x for x in artifacts if any(sought in text.lower() for text in (x.display_name, x.name, x.hash, x.directory))
    )
    if not partly:
        raise UsageError(
            f"No kernel here is called {name!r}, in name or hash.", _describe_near_matches(sought, artifacts)
        )
    return partly


def narrow(kernel: KernelFacts, stages: Sequence[Stage], region: str | None) -> KernelFacts:
    """The same kernel with some of its stages and one of its regions; none named means all.

    Raises:
        UsageError: it has no such region.
    """
    if stages:
        last_stage = kernel.last
        kernel = with_fields(kernel, stages={s: facts for s, facts in kernel.stages.items() if s in stages})
        if kernel.last is not last_stage:  # these facts describe the last stage only
            kernel = with_fields(
                kernel, pipelines={}, identities={}, generations={}, widths=(), store_widths=(), policies=()
            )
    if region is None:
        return kernel
    ids = dict.fromkeys(region_facts.id for facts in kernel.stages.values() for region_facts in facts.regions)
    if region not in ids:
        raise UsageError(
            f"{kernel.artifact.display_name} has no region {region!r}.", f"It has {', '.join(ids)}." if ids else None
        )
    stages_with_region = {stage: _one_region(facts, region) for stage, facts in kernel.stages.items()}
    return with_fields(kernel, stages=stages_with_region, principal=region)


def pick_stage(kernel: KernelFacts) -> StageFacts:
    """The last stage that has the kernel's main loop, else its last.

    Raises:
        UsageError: no text stage remains.
    """
    for facts in reversed(kernel.stages.values()):
        if kernel.principal is None or facts.region(kernel.principal) is not None:
            return facts
    if kernel.last is None:
        raise UsageError(f"{kernel.artifact.display_name} has no such stage to print.")
    return kernel.last


def _one_region(facts: StageFacts, region: str) -> StageFacts:
    return with_fields(
        facts,
        regions=tuple(candidate for candidate in facts.regions if candidate.id == region),
        waits=facts.waits_in(region),
    )


def _describe_near_matches(sought: str, artifacts: Iterable[Artifact]) -> str:
    from difflib import get_close_matches

    names = sorted({x.display_name for x in artifacts})
    names_by_key: dict[str, list[str]] = {}  # a part of a name is as good as the name
    for name in names:
        lowered = name.lower()
        for key in dict.fromkeys((lowered, lowered[: len(sought)], *lowered.split("_"))):
            names_by_key.setdefault(key, []).append(name)
    close_keys = get_close_matches(sought, names_by_key, n=5, cutoff=0.5)
    near = list(dict.fromkeys(name for key in close_keys for name in names_by_key[key]))[:5]
    if near and len(near) < len(names):
        return f"Did you mean {' or '.join(near)}? The cache has {len(names)} kernels."
    remainder = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"Choose from {', '.join(names[:5])}{remainder}."
