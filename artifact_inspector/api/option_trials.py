"""Changes of options and tiles, and a later release, with which a kernel compiles to something better."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version as installed
from pathlib import Path

from artifact_inspector.api.option_compiles import request_for
from artifact_inspector.api.remedies import find_release
from artifact_inspector.comparison.consequence import consequence_of, rank_of
from artifact_inspector.comparison.corpus import compare_candidates
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.headline import Headline
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.compiling import compile_kernels
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.changes import OPTIONS, Change, describe_change, propose_changes
from artifact_inspector.diagnosis.tile_axes import find_whole_extents
from artifact_inspector.execution.timing.variations import recorded_compile
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.model import Consequence, TritonVersion
from artifact_inspector.vocabulary.fact import Sign

MOST_CHANGES = 8
MOST_TRIALS = 3
_KINDS = {
    Consequence.SPILLS: CauseKind.SPILLS,
    Consequence.FIT: CauseKind.OCCUPANCY,
    Consequence.OCCUPANCY: CauseKind.OCCUPANCY,
    Consequence.DRAIN: CauseKind.DRAINED_PIPELINE,
    Consequence.ASYNCHRONY: CauseKind.SERIAL_LOOP,
}


def try_changes(artifact: Artifact, worse: FactPair, kernel: str | None, directory: Path) -> Iterator[str]:
    """Compiles a kernel again, from its source, with other options and tiles; those that reverse a fact come first.

    Of those that remove spills, the ones that load the fewest bytes for a FLOP come first.

    Args:
        kernel: `FILE.py:KERNEL`, for a kernel that is not part of this package.

    Raises:
        UsageError: it is not recorded how the kernel was compiled.
        CompileError: Triton is not usable.
    """
    record, target = recorded_compile(artifact), artifact.target
    kind = _KINDS.get(consequence_of(worse))
    options = {name: artifact.metadata.get(name) for name in OPTIONS}
    warp_size = 32 if target is None else target.warp_size
    path = record.resolve_kernel_path(artifact.display_name, kernel)
    file, _, name = path.rpartition(":")
    whole_extents = find_whole_extents(Path(file).read_text(encoding="utf-8"), name) if Path(file).is_file() else ()
    constants = {name: value for name, value in artifact.constants.items() if name not in whole_extents}
    changes = propose_changes([] if kind is None else [kind], options, constants, warp_size)[:MOST_CHANGES]
    requests = [request_for(path, record, change) for change in changes]
    version, interpreter = find_release(artifact.triton_version, installed("triton"))
    results = compile_kernels(requests, [record.target], directory, tritons=[] if interpreter is None else [version])
    entries = {entry.directory: entry for entry in open_cache(directory).entries}
    better: list[tuple[tuple[float, ...], Change, Headline]] = []
    for change, result in zip(changes, results, strict=True):
        entry = None if result.directory is None else entries.get(result.directory.name)
        if entry is None:
            continue
        compared = compare_candidates(Candidate(artifact), Candidate(entry), inspect_artifact)
        headline = compared.headline
        if headline is not None and headline.fact.direction is Sign.BETTER and compared.pair is not None:
            right = compared.pair.right
            intensity = None if right.principal is None else right.intensity(right.principal)
            reuse = 0.0 if intensity is None else intensity.flop_per_byte  # of the main loop
            rank = (
                headline.fact.key != worse.key,
                rank_of(headline.fact),
                *((right.resources.spill_bytes.value or 0, -reuse) if kind is CauseKind.SPILLS else ()),
            )
            better.append((rank, change, headline))
    ranked = sorted(better, key=lambda row: row[0], reverse=True)
    best = {tuple(change): (rank, change, headline) for rank, change, headline in ranked}  # of changes of one name
    for _, change, headline in sorted(best.values(), key=lambda row: row[0])[:MOST_TRIALS]:
        yield headline.as_remedy(describe_change(change))


def try_release(
    artifact: Artifact,
    worse: FactPair,
    kernel: str | None,
    directory: Path,
    predict: Callable[[Artifact], PairPrice | None],
) -> Iterator[str]:
    """Compiles a kernel again, from its source, with the installed release, if that is a later one and does better.

    Args:
        worse: the fact that got worse, which a release reverses if no time is predicted.
        kernel: `FILE.py:KERNEL`, for a kernel that is not part of this package.
        predict: the predicted times of a launch of the kernel and of the new entry; None without a launch.

    Raises:
        UsageError: it is not recorded how the kernel was compiled.
        CompileError: Triton is not usable.
    """
    release, version = TritonVersion(installed("triton")), artifact.triton_version
    if version is None or not version.is_exact or release.numbers <= version.numbers:
        return
    record = recorded_compile(artifact)
    path = record.resolve_kernel_path(artifact.display_name, kernel)
    (result,) = compile_kernels([request_for(path, record, {})], [record.target], directory)
    if result.directory is None:
        return
    (entry,) = (entry for entry in open_cache(directory).entries if entry.directory == result.directory.name)
    change = compare_candidates(Candidate(artifact), Candidate(entry), inspect_artifact).with_price(predict(entry))
    ratio = None if change.price is None else change.price.ratio
    reversed_facts = {fact.key for fact in change.facts if fact.direction is Sign.BETTER}
    if change.direction is Sign.BETTER and change.headline is not None and (ratio or worse.key in reversed_facts):
        yield change.headline.as_remedy(f"Triton {release}", ratio)
