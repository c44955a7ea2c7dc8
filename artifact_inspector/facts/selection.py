"""Which kernels, stages and regions a report is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.records import with_fields
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.hardware.targets import Target, parse_target
from artifact_inspector.model import Stage
from artifact_inspector.model.text import split_words

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts, StageFacts

__all__ = ["choose", "narrow", "parse_stages", "parse_targets", "pick_stage"]


def parse_targets(words: Iterable[str]) -> tuple[Target, ...]:
    """Targets of repeated or comma-separated options.

    Raises:
        UsageError: one names no GPU.
    """
    return tuple(parse_target(word) for word in split_words(words))


def parse_stages(words: Iterable[str]) -> tuple[Stage, ...]:
    """Stages of repeated or comma-separated options.

    Raises:
        UsageError: one names no stage.
    """
    known = {stage.value: stage for stage in Stage}
    found = []
    for word in split_words(words):
        if word.lower() not in known:
            raise UsageError(f"{word!r} is no stage.", f"The stages are {', '.join(known)}.")
        found.append(known[word.lower()])
    return tuple(found)


def choose(
    cache: Cache, name: str | None, targets: Sequence[Target], stages: Sequence[Stage] = ()
) -> tuple[Artifact, ...]:
    """The kernels of a cache that a name (a part of one, or of a hash), targets and stages leave.

    A name that is somebody's whole name does not also mean the longer ones that contain it.

    Raises:
        UsageError: none is left though the cache has some; the remedy holds near matches.
    """
    left = cache.entries
    if targets:
        wanted = {str(target.arch) for target in targets}
        left = tuple(x for x in left if x.target is not None and x.target.arch in wanted)
        if not left and cache.entries:
            here = Counter("unknown" if x.target is None else x.target.arch for x in cache.entries)
            raise UsageError(
                f"No kernel here is for {' or '.join(sorted(wanted))}.",
                f"There are {', '.join(f'{arch} ({count})' for arch, count in sorted(here.items()))}.",
            )
    if stages:
        wanted = {stage.value for stage in stages}
        here = Counter(stage.value for stage in Stage for x in left if stage.value in x.files)
        left = tuple(x for x in left if not wanted.isdisjoint(x.files))
        if not left and cache.entries:
            raise UsageError(
                f"No kernel here has a file of stage {' or '.join(sorted(wanted))}.",
                f"There are {', '.join(f'{stage} ({count})' for stage, count in here.items()) or 'none'}.",
            )
    if name is None:
        return left
    sought = name.lower()
    exact = tuple(x for x in left if sought in (x.display_name.lower(), x.name.lower(), x.hash.lower()))
    partly = tuple(x for x in left if any(sought in text.lower() for text in _names(x)))
    if not partly and left:
        raise UsageError(f"No kernel here is called {name!r}, in name or hash.", _near(sought, left))
    return exact or partly


def narrow(kernel: KernelFacts, stages: Sequence[Stage], region: str | None) -> KernelFacts:
    """The same kernel with some of its stages and one of its regions; none named means all.

    Raises:
        UsageError: it has no such region.
    """
    if stages:
        whole = kernel.last
        kernel = with_fields(kernel, stages={s: facts for s, facts in kernel.stages.items() if s in stages})
        if kernel.last is not whole:  # what is said of the last stage is said of no other
            kernel = with_fields(
                kernel,
                pipelines={},
                identities={},
                generations={},
                widths=(),
                store_widths=(),
                policies=(),
            )
    if region is None:
        return kernel
    ids = dict.fromkeys(found.id for facts in kernel.stages.values() for found in facts.regions)
    if region not in ids:
        raise UsageError(
            f"{kernel.artifact.display_name} has no region {region!r}.",
            f"It has {', '.join(ids)}." if ids else None,
        )
    kept = {stage: _one_region(facts, region) for stage, facts in kernel.stages.items()}
    return with_fields(kernel, stages=kept, principal=region)


def pick_stage(kernel: KernelFacts) -> StageFacts:
    """The last stage that has the kernel's principal region, else its last.

    Raises:
        UsageError: it has no text stage left.
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
        regions=tuple(found for found in facts.regions if found.id == region),
        waits=tuple(wait for wait in facts.waits if wait.region == region),
    )


def _names(artifact: Artifact) -> tuple[str, ...]:
    return (artifact.display_name, artifact.name, artifact.hash, artifact.directory)


def _near(sought: str, artifacts: Iterable[Artifact]) -> str:
    from difflib import get_close_matches

    names = sorted({x.display_name for x in artifacts})
    lowered = {name.lower(): name for name in names}
    near = [lowered[word] for word in get_close_matches(sought, lowered, n=5, cutoff=0.4)] or names[:5]
    more = f" and {len(names) - len(near)} more" if len(names) > len(near) else ""
    return f"There are {', '.join(near)}{more}."
