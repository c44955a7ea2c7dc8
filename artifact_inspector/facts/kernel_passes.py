"""What is found of a kernel as a whole, from its stages and its binary: the passes and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from artifact_inspector.analysis.access.accesses import StageAccesses
from artifact_inspector.analysis.access.cache_policies import Policy, find_policies
from artifact_inspector.analysis.access.load_widths import LoadWidth, explain_widths
from artifact_inspector.analysis.access.tile_ends import Unmasked
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.program import Program
from artifact_inspector.analysis.matrix.generation import Generation, describe_generation
from artifact_inspector.analysis.matrix.identity import Identity, check_identity
from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.analysis.overlap.buffers import LoopBuffers
from artifact_inspector.analysis.overlap.partitions import PartitionFacts, find_partitions
from artifact_inspector.analysis.overlap.pipeline import Pipeline, explain_pipeline
from artifact_inspector.analysis.resources.contradictions import find_contradictions
from artifact_inspector.analysis.resources.taken import Contradiction, Resources, find_resources
from artifact_inspector.analysis.shared.bill import Bill, find_bill
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.modules import BINARY_OF
from artifact_inspector.facts.stage_passes import Matrix, Measure, Ordered
from artifact_inspector.facts.table import Need, Pass, at, every, first, lowered
from artifact_inspector.files.binary import Binary
from artifact_inspector.files.cache import REMARKS, Artifact, Problem, read_binary, read_remarks
from artifact_inspector.files.compiler_remarks import CompilerRemark, parse_remarks
from artifact_inspector.formats import format_of
from artifact_inspector.model import LOADS, EventKind, Module, Stage

Functions = Mapping[str, StageAccesses]
"""The functions of a stage with their accesses, by name."""


# -- what the stages say in turn -------------------------------------------------------


def _program(found: Mapping[Stage, Program]) -> Program | None:
    return list(found.values())[-1] if found else None


def _principal(measures: Mapping[Stage, Measure], orders: Mapping[Stage, Ordered]) -> str | None:
    """The region that the kernel is known by, from the stage that the program was read from."""
    if not orders:
        return None
    exact = [stage for stage in orders if stage in measures and measures[stage].exact]
    regions = orders[exact[-1] if exact else next(iter(orders))].facts

    def weight(region: RegionFacts) -> tuple[bool, bool, int, int]:
        computes = bool(region.rounds)
        return (region.matrix > 0 and computes, computes, region.depth, len(region.rounds))

    return max(regions, key=weight).id if regions else None


def _changed(orders: Mapping[Stage, Ordered]) -> dict[str, Stage]:
    changed: dict[str, Stage] = {}
    for stage, order in orders.items():
        for region in order.facts:
            if region.changed:
                changed.setdefault(region.id, stage)
    return changed


def _pipelines(
    artifact: Artifact, orders: Mapping[Stage, Ordered], buffers: Mapping[Stage, Mapping[str, LoopBuffers]]
) -> dict[str, Pipeline]:
    by_loop: dict[str, dict[Stage, LoopBuffers]] = {}
    for stage, found in buffers.items():
        for name, one in found.items():
            by_loop.setdefault(name, {})[stage] = one
    regions = {stage: {region.id: region for region in order.facts} for stage, order in orders.items()}
    pipelines = {}
    for name, own in by_loop.items():
        pipeline = explain_pipeline(
            num_stages=artifact.num_stages,
            target=artifact.target,
            version=artifact.triton_version,
            facts={stage: found[name] for stage, found in regions.items() if name in found},
            buffers=own,
        )
        if pipeline is not None:
            pipelines[name] = pipeline
    return pipelines


# -- the last stage held against the first ---------------------------------------------


def _identities(
    ttir: Matrix | None, ttgir: Matrix | None, ordered: Ordered | None, done: Matrix | None
) -> dict[str, Identity]:
    if ordered is None or done is None:
        return {}
    asked = ttgir if ttgir is not None else ttir
    return check_identity(
        dict(asked or {}),
        dict(done),
        unrolled={region.id: region.unrolled_by for region in ordered.facts if region.unrolled_by > 1},
        left_over=set(ordered.left_over),
        parents={region.id: region.parent for region in ordered.facts},
    )


def _generations(
    artifact: Artifact,
    ttir: Matrix | None,
    ttgir: Matrix | None,
    ordered: Ordered | None,
    done: Matrix | None,
    packed: Mapping[str, int] | None,
) -> dict[str, Generation]:
    if artifact.target is None or ordered is None or done is None:
        return {}
    dots, asked = ttgir or {}, ttir or {}
    everywhere = tuple(work for works in asked.values() for work in works)
    return {
        region.id: describe_generation(
            artifact.target,
            done.get(region.id, ()),
            region.fused,
            dots=dots.get(region.id, ()),
            asked=asked.get(region.id) or everywhere,
            packed=(packed or {}).get(region.id, 0),
        )
        for region in ordered.facts
        if done.get(region.id) or dots.get(region.id)
    }


def _widths_of(
    kinds: frozenset[EventKind],
) -> Callable[[Functions | None, Functions | None, Functions | None], tuple[LoadWidth, ...]]:
    """The pass that tells how wide the statements of these kinds became."""

    def widths(
        ttir: Functions | None, ttgir: Functions | None, final: Functions | None
    ) -> tuple[LoadWidth, ...]:
        layouts = ttgir or {}
        return tuple(
            width
            for name, first, read in _first_and_last(ttir, ttgir, final)
            for width in explain_widths(
                first, read, layouts.get(name), first.code.function.divisibility, kinds
            )
        )

    return widths


def _policies(ttir: Functions | None, ttgir: Functions | None, final: Functions | None) -> tuple[Policy, ...]:
    return tuple(
        policy
        for _, first, read in _first_and_last(ttir, ttgir, final)
        for policy in find_policies(first, read)
    )


def _unmasked(found: tuple[Unmasked, ...] | None) -> tuple[Unmasked, ...]:
    return found or ()


def _first_and_last(
    ttir: Functions | None, ttgir: Functions | None, final: Functions | None
) -> Iterator[tuple[str, StageAccesses, StageAccesses]]:
    """The functions of the program at the first stage that tells loads, and at the last."""
    first = ttir if ttir is not None else ttgir
    for name, read in (first or {}).items():
        if name in (final or {}):
            yield name, read, (final or {})[name]


# -- what it takes ---------------------------------------------------------------------


def _bill(artifact: Artifact, module: Module | None, codes: Sequence[Code] | None) -> Bill | None:
    if module is None or not codes:
        return None
    return find_bill(
        list(codes), module, format_of(Stage.TTGIR), artifact.shared_bytes, artifact.triton_version
    )


def _partitions(
    module: Module | None, ttgir: Ordered | None, ptx: Ordered | None
) -> tuple[PartitionFacts, ...]:
    if module is None or ttgir is None:
        return ()
    final = {} if ptx is None else {function.name: function.code.function for function in ptx.functions}
    return tuple(
        partition
        for function in ttgir.functions
        for partition in find_partitions(
            function.code, module, format_of(Stage.TTGIR), final.get(function.name)
        )
    )


def _binary(artifact: Artifact, problems: list[Problem]) -> Binary | None:
    try:
        read = read_binary(artifact)
        if read is None:
            return None
        from artifact_inspector.files.binaries import read_cubin, read_hsaco

        suffix, content = read
        return (read_cubin if suffix == "cubin" else read_hsaco)(content, artifact.name)
    except CacheError as error:
        path = artifact.relative(_binary_suffix(artifact))
        problems.append(Problem(path, error.message.removeprefix(f"{path}: ")))
        return None


def _binary_suffix(artifact: Artifact) -> str:
    """`cubin` or `hsaco`, whichever is there; empty without either."""
    return next((suffix for suffix in BINARY_OF.values() if suffix in artifact.files), "")


def _resources(artifact: Artifact, modules: Mapping[Stage, Module], binary: Binary | None) -> Resources:
    ptx, amdgcn = modules.get(Stage.PTX), modules.get(Stage.AMDGCN)
    return find_resources(
        artifact.target,
        artifact.metadata,
        ptx=None if ptx is None else format_of(Stage.PTX).figures(ptx),
        amdgcn=None if amdgcn is None else format_of(Stage.AMDGCN).figures(amdgcn),
        written=None if amdgcn is None else amdgcn.attributes.get("target"),
        binary=binary,
        unreadable=binary is None and _binary_suffix(artifact) != "",
    )


def _contradictions(
    artifact: Artifact,
    modules: Mapping[Stage, Module],
    resources: Resources,
    binary: Binary | None,
    bill: Bill | None,
) -> tuple[Contradiction, ...]:
    name = artifact.metadata.get("name")
    between = find_contradictions(
        name if isinstance(name, str) else None,
        artifact.num_warps,
        {stage: module for stage, module in modules.items() if module.functions},
        None if Stage.TTGIR not in modules else format_of(Stage.TTGIR).launch(modules[Stage.TTGIR]),
        None if binary is None else (_binary_suffix(artifact), binary.kernel),
        bill,
    )
    return (*resources.contradictions, *between)


# -- what the compilers said -----------------------------------------------------------


def _remarks(artifact: Artifact, problems: list[Problem]) -> tuple[CompilerRemark, ...] | None:
    try:
        text = read_remarks(artifact)
    except CacheError as error:
        problems.append(Problem(artifact.relative(REMARKS), error.message))
        return None
    return None if text is None else parse_remarks(text)


def _placed_remarks(
    said: tuple[CompilerRemark, ...] | None, ptx: Module | None
) -> tuple[CompilerRemark, ...] | None:
    if said is None or ptx is None:
        return said
    return tuple(_in_the_program(remark, ptx) for remark in said)


def _in_the_program(remark: CompilerRemark, ptx: Module) -> CompilerRemark:
    """A remark on a line of PTX with the line of the program that it comes from."""
    if remark.ptx_line is None or remark.source is not None:
        return remark
    place = None
    for function in ptx.functions:
        for instruction in function.instructions:
            if instruction.line <= remark.ptx_line and instruction.location:
                place = instruction.location
    if place is None:
        return remark
    source, *callers = (f"{PurePath(frame.file).name}:{frame.line}" for frame in place)
    return replace(remark, source=source, called_from=tuple(callers))


def _none() -> None:
    return None


def _row(name: str, needs: tuple[str | Need, ...], find: object, missing: object) -> Pass:
    return Pass(name, needs, find, missing, of_stage=False)  # type: ignore[arg-type]


_TTIR, _TTGIR = Stage.TTIR, Stage.TTGIR
_ACCESSED = (at(_TTIR, "accessed"), at(_TTGIR, "accessed"), lowered("accessed"))
_DOTS = (at(_TTIR, "matrix"), at(_TTGIR, "matrix"))

KERNEL_PASSES = (
    _row("program", (every("signature"),), _program, _none),
    _row("principal", (every("measure"), every("order")), _principal, _none),
    _row("changed", (every("order"),), _changed, dict),
    _row("pipelines", ("artifact", every("order"), every("buffers")), _pipelines, dict),
    _row("identities", (*_DOTS, lowered("order"), lowered("matrix")), _identities, dict),
    _row(
        "generations",
        ("artifact", *_DOTS, lowered("order"), lowered("matrix"), lowered("packed_dots")),
        _generations,
        dict,
    ),
    _row("widths", _ACCESSED, _widths_of(LOADS), tuple),
    _row("store_widths", _ACCESSED, _widths_of(frozenset({EventKind.GLOBAL_STORE})), tuple),
    _row("policies", _ACCESSED, _policies, tuple),
    _row("unmasked", (first("past_the_end"),), _unmasked, tuple),
    _row("bill", ("artifact", at(_TTGIR, "module"), at(_TTGIR, "codes")), _bill, _none),
    _row(
        "partitions", (at(_TTGIR, "module"), at(_TTGIR, "order"), at(Stage.PTX, "order")), _partitions, tuple
    ),
    _row("binary", ("artifact", "problems"), _binary, _none),
    _row("resources", ("artifact", every("module"), "binary"), _resources, lambda: find_resources(None, {})),
    _row(
        "contradictions",
        ("artifact", every("module"), "resources", "binary", "bill"),
        _contradictions,
        tuple,
    ),
    _row("said", ("artifact", "problems"), _remarks, _none),
    _row("remarks", ("said", at(Stage.PTX, "module")), _placed_remarks, _none),
)
"""The passes over a kernel as a whole."""
