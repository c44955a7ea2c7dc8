"""The two sides of `diff` and `regress`, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from artifact_inspector.cli._loading import cached_lookup, inspect_kernels, make_inspector, open_cache_or_fail
from artifact_inspector.comparison.corpus import Corpus, compare_corpora
from artifact_inspector.comparison.fact_pair import SIDES, PairSide
from artifact_inspector.comparison.matching import Axis
from artifact_inspector.comparison.pair_store import PairStore
from artifact_inspector.comparison.sides import narrow_side, parse_cache_selector
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.kernel import read_nothing
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.selection import KernelFilter, read_program, select_kernels
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.hardware.products import modelled_product
from artifact_inspector.model.text import split_option_values
from artifact_inspector.report.corpus import describe_candidates, suggest_axes
from artifact_inspector.report.progress import progress_bar


class SelectedSides(NamedTuple):
    """The kernels of both sides."""

    left: tuple[Artifact, ...]
    right: tuple[Artifact, ...]
    problems: Sequence[tuple[PairSide, Problem]] = ()
    """Of their caches."""
    is_named: bool = False
    """Whether each side names one kernel."""
    products: tuple[str | None, str | None] = (None, None)
    """The GPUs of the sides, where a product is named."""

    @property
    def is_pair(self) -> bool:
        """Whether each side has one kernel."""
        return len(self.left) == len(self.right) == 1


def select_sides(
    a: str, b: str | None, left: Sequence[str], right: Sequence[str], filters: Sequence[KernelFilter]
) -> SelectedSides:
    """The kernels of both sides.

    Args:
        a: `CACHE` or `CACHE:NAME`.
        b: the same for the right side; None for the cache of the left.
        left: further selectors of kernels of the left side.
        right: further selectors of kernels of the right side.
    """
    if b is None and not (left and right):
        raise UsageError(
            "diff needs two sides; one is given.",
            "Give a second cache, or two sides of one: --left sm_75 --right gfx90a.",
        )
    locations = parse_cache_selector(a), parse_cache_selector(a if b is None else b)
    artifacts: list[tuple[Artifact, ...]] = []
    problems: list[tuple[PairSide, Problem]] = []
    for side, location, words in zip(SIDES, locations, (left, right), strict=True):
        cache = open_cache_or_fail(location.directory)
        selectors = split_option_values(words)
        if cache.entries:
            artifacts.append(narrow_side(cache, location, selectors, lambda c, name: select_kernels(c, name, filters)))
        elif location.name or selectors:
            raise UsageError(f"No kernels in {location.directory}.", "Give a Triton cache with kernels.")
        else:
            artifacts.append(())
        problems += [(side, problem) for problem in cache.problems]
    if not any(artifacts):
        raise CacheError("No kernels on either side.", "Give Triton caches with kernels.")
    is_named = any(location.name for location in locations) or all(len(side) == 1 for side in artifacts)
    products = modelled_product(None, left), modelled_product(None, right)
    return SelectedSides(artifacts[0], artifacts[1], problems, is_named, products)


def compare_sides(
    sides: SelectedSides,
    axes: tuple[Axis, ...],
    disassemble: Disassemble | None,
    *,
    always: bool,
    scheduler: str | None = None,
    stores: bool = False,
    by_name: bool = False,
) -> Corpus:
    """The comparison of all pairs of kernels.

    Args:
        axes: what may differ between two kernels of a pair.
        scheduler: of Dask, whose workers read the kernels into the result cache first.
        always: also read the facts of kernels whose texts are the same.
        stores: keep what is compared in the result cache; changes then have no `pair`.
        by_name: also pair kernels that only share name and target; always so for named kernels.

    Raises:
        UsageError: kernels are named, but there is no pair, or a name fits several.
    """
    if scheduler is not None:
        for _ in inspect_kernels((*sides.left, *sides.right), disassemble, scheduler=scheduler):
            pass
    open_index = cached_lookup(None).index if stores else None
    with ExitStack() as stack:
        advance = stack.enter_context(progress_bar(max(len(sides.left), len(sides.right)), "comparing"))
        store = stack.enter_context(PairStore((*sides.left, *sides.right), open_index)) if open_index else None
        corpus = compare_corpora(
            sides.left,
            sides.right,
            make_inspector(disassemble, None if store is None else read_nothing),
            across=axes,
            progress=advance,
            is_one_pair=sides.is_pair,
            pairs_by_name=by_name or sides.is_named,
            always=always,
            find_program=read_program if store is None else store.find_program,
            compare=None if store is None else store.compare,
        )
    matching = corpus.matching
    if not corpus.changes and matching.ambiguous:
        raise UsageError(
            "Several kernels match on both sides.",
            describe_candidates([x for group in matching.ambiguous for side in group for x in side]),
        )
    if not corpus.changes and sides.is_named:
        raise UsageError(
            f"None of {len(sides.left)} kernels on the left matches any of {len(sides.right)} on the right.",
            suggest_axes(matching, axes),
        )
    return replace(corpus, problems=(*sides.problems, *corpus.problems))
