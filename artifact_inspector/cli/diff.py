"""`inspect-kernel diff`: compare two kernels, or two caches."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import DIFFERENT, exit_codes
from artifact_inspector.cli._launches import LaunchFile
from artifact_inspector.cli._loading import make_disassembler, make_inspector, open_cache_or_fail
from artifact_inspector.cli._options import (
    Html,
    Json,
    Nvdisasm,
    Output,
    ReadTargets,
    Sass,
    Where,
    read_selectors,
    require_format,
)
from artifact_inspector.cli._output import notice, output_to, print_json, print_report
from artifact_inspector.cli._pictures import PAIR_PICTURES, draw_pair, require_picture, write_svg
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.comparison.corpus import Corpus
    from artifact_inspector.comparison.matching import Axis
    from artifact_inspector.comparison.pair import Comparison
    from artifact_inspector.comparison.pair_price import PairPrice
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact, Problem

FORMATS = ("text", "json", "markdown", "junit")


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A cache directory; CACHE:NAME or CACHE:HASH for one kernel.")],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="The other side; omit it with --left and --right.")
    ] = None,
    left: Annotated[
        list[str] | None,
        typer.Option(
            "--left",
            metavar="WHICH",
            help="Select kernels of A: a GPU, version, w4, s3, tile, NAME=VALUE, name or hash.",
        ),
    ] = None,
    right: Annotated[
        list[str] | None,
        typer.Option("--right", metavar="WHICH", help="Select kernels of B (of A without B) the same way."),
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(
            "--across", metavar="AXIS", help="Pair kernels that differ in this: target, version, config, source."
        ),
    ] = None,
    target: ReadTargets = None,
    properties: Where = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="WHAT",
            help="Exit with 1 only if this changed: verdict, spills, waits, mma, shared, registers ... any.",
        ),
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", metavar="", help="Print only the facts that differ between two kernels.")
    ] = False,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="Print as text, json, markdown or junit.")
    ] = "text",
    passes: Annotated[
        bool,
        typer.Option(
            "--passes", metavar="", help="Compile both kernels again and name the compiler pass that made them differ."
        ),
    ] = False,
    show_causes: Annotated[
        bool,
        typer.Option(
            "--why",
            metavar="",
            help="Print what made Triton compile two entries separately: types, constants, options ...",
        ),
    ] = False,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="WHAT", help=f"Draw two kernels as SVG instead: {', '.join(PAIR_PICTURES)}."),
    ] = None,
    launch: LaunchFile = None,
    output: Output = None,
    html: Html = None,
    json: Json = False,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Compare two kernels or two caches, and name the compiler stage where they first differ.

    Exit codes: 0 same, 1 different, 2 usage, 3 nothing could be read.
    """
    format = "json" if json else format
    with exit_codes(json=format == "json"):
        require_format(format, FORMATS)
        if svg is not None:
            require_picture(svg, PAIR_PICTURES)
        if passes and format != "text":
            raise UsageError(
                f"--passes prints text only, not {format}.",
                "For one kernel as JSON: inspect-kernel passes CACHE NAME --json.",
            )
        sides, kernel_selectors = (a, b, left or [], right or []), read_selectors(target, properties)
        with output_to(None if svg else output):
            if show_causes:
                differ = _compare_causes(sides, kernel_selectors, format)
            else:
                differ = _compare(
                    sides, across or [], kernel_selectors, fail_on or [], format, nvdisasm,
                    changes=changes, sass=sass, passes=passes, html=html,
                    svg=None if svg is None else (svg, output), launch=launch,
                )  # fmt: skip
        if differ:
            raise typer.Exit(DIFFERENT)


def _compare_causes(
    sides: tuple[str, str | None, list[str], list[str]], kernel_selectors: list[str], format: str
) -> bool:
    """Print what separates two entries; return whether a cause was found."""
    from artifact_inspector.cli._causes import print_reasons

    if format not in ("text", "json"):
        raise UsageError(f"--why prints text or JSON, not {format}.", "Remove --format.")
    (left_entries, right_entries), _, _ = select_sides(sides, kernel_selectors)
    return print_reasons(left_entries, right_entries, json=format == "json")


def _compare(
    sides: tuple[str, str | None, list[str], list[str]],
    across: list[str],
    targets: list[str],
    gates: list[str],
    format: str,
    nvdisasm: Path | None,
    *,
    changes: bool,
    sass: bool,
    passes: bool,
    html: Path | None,
    svg: tuple[str, Path | None] | None,
    launch: Path | None,
) -> bool:
    """Write the comparison; return whether the exit code is 1."""
    from artifact_inspector.comparison.corpus import compare_corpora, parse_gates
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.comparison.sides import parse_cache_selector
    from artifact_inspector.report.console import write_lines
    from artifact_inspector.report.progress import progress_bar

    match_axes, fail_gates = parse_axes(across), parse_gates(gates)
    (left_artifacts, right_artifacts), problems, named = select_sides(sides, targets)
    disassemble = make_disassembler((*left_artifacts, *right_artifacts), nvdisasm, sass=sass)
    with progress_bar(max(len(left_artifacts), len(right_artifacts)), "comparing") as advance:
        corpus = compare_corpora(
            left_artifacts,
            right_artifacts,
            make_inspector(disassemble),
            across=match_axes,
            progress=advance,
            is_one_pair=len(left_artifacts) == len(right_artifacts) == 1,
            always=named and min(len(left_artifacts), len(right_artifacts)) == 1,
        )
    corpus = replace(corpus, problems=(*problems, *corpus.problems))
    require_pairs(corpus, match_axes, len(left_artifacts), len(right_artifacts), is_named=named)
    is_single_pair = len(corpus.changes) == 1 and named and min(len(left_artifacts), len(right_artifacts)) == 1
    if passes and not is_single_pair:
        raise UsageError("--passes compares two kernels.", "Give one kernel per side: CACHE:NAME.")
    pair = corpus.changes[0].pair if is_single_pair else None
    if svg is None:
        roots = [parse_cache_selector(side).directory for side in (sides[0], sides[1] or sides[0])]
        price = None if pair is None else _predict(pair, roots, launch, disassemble)
        _print_comparison(corpus, format, price, is_single_pair=is_single_pair, changes=changes, gates=fail_gates)
    pass_lines, responsible_pass = _attribute_passes(pair) if passes and pair is not None else ([], "")
    if svg is not None:
        write_svg(svg[1], draw_pair(pair, svg[0], responsible_pass))
    if pass_lines:
        # a picture on standard output must be the only thing there
        write_lines("\n" + "\n".join(pass_lines) + "\n", sys.stdout if svg is None or svg[1] else sys.stderr)
    if html is not None:
        from artifact_inspector.cli._pages import read_local_source, write_page
        from artifact_inspector.report.html import corpus_page

        write_page(
            html,
            corpus_page(
                corpus, fail_gates, read_local_source, disassemble, passes=pass_lines, is_single=is_single_pair
            ),
        )
    return bool(corpus.failures(fail_gates)) if fail_gates else not corpus.is_same


def _predict(
    pair: Comparison, roots: list[Path], launch: Path | None, disassemble: Disassemble | None
) -> PairPrice | None:
    """The predicted times of a launch of both; None if no launch is given or on record."""
    from artifact_inspector.api.pair_prices import find_pair_launch, predict_pair
    from artifact_inspector.cli._launches import read_launch_file

    left, right = pair.left.artifact, pair.right.artifact
    request = find_pair_launch(left, right, roots) if launch is None else read_launch_file(launch)[0]
    if request is None:
        return None
    return predict_pair(left, right, request, disassemble or make_disassembler((left, right), None, sass=True))


def _attribute_passes(pair: Comparison) -> tuple[list[str], str]:
    """The pass that set each differing fact, for each side; and the pass that a picture names."""
    from artifact_inspector.passes.attribution import find_passes, select_earliest
    from artifact_inspector.report.diff import side_labels
    from artifact_inspector.report.passes import describe_attribution, name_passes

    differing = [fact for fact in pair.facts if fact.differs]
    questions = select_earliest(
        (differing_fact.key, differing_fact.category, f"{differing_fact.region} {differing_fact.title}".strip())
        for differing_fact in differing
    )
    if not questions:
        return ["No fact differs that a compiler pass sets."], ""
    values = (
        {differing_fact.key: differing_fact.left for differing_fact in differing},
        {differing_fact.key: differing_fact.right for differing_fact in differing},
    )
    sides = [
        (label, find_passes(kernel.artifact, questions, side_values, notice=notice))
        for label, kernel, side_values in zip(side_labels(pair), (pair.left, pair.right), values, strict=True)
    ]
    return list(describe_attribution(questions, sides)), name_passes(pair, questions, sides)


def select_sides(
    sides: tuple[str, str | None, list[str], list[str]], targets: list[str]
) -> tuple[list[tuple[Artifact, ...]], list[tuple[str, Problem]], bool]:
    """The kernels of both sides, the problems of their caches, and whether each side names one kernel."""
    from artifact_inspector.comparison.sides import narrow_side, parse_cache_selector
    from artifact_inspector.facts.selection import parse_filters, select_kernels
    from artifact_inspector.model.text import split_option_values

    a, b, left_words, right_words = sides
    if b is None and not (left_words and right_words):
        raise UsageError(
            "diff needs two sides; one is given.",
            "Give a second cache, or two sides of one: --left sm_75 --right gfx90a.",
        )
    targets_filter = parse_filters(targets)
    locations = parse_cache_selector(a), parse_cache_selector(a if b is None else b)
    side_artifacts, problems = [], []
    for side, location, side_words in zip(("left", "right"), locations, (left_words, right_words), strict=True):
        cache = open_cache_or_fail(location.directory, can_be_empty=True)
        selectors = split_option_values(side_words)
        if cache.entries:
            side_artifacts.append(
                narrow_side(cache, location, selectors, lambda c, name: select_kernels(c, name, targets_filter))
            )
        elif location.name or selectors:
            raise UsageError(f"No kernels in {location.directory}.", "Give a Triton cache with kernels.")
        else:
            side_artifacts.append(())
        problems += [(side, problem) for problem in cache.problems]
    if not any(side_artifacts):
        raise CacheError("No kernels on either side.", "Give Triton caches with kernels.")
    is_named = any(location.name for location in locations) or all(len(side) == 1 for side in side_artifacts)
    return side_artifacts, problems, is_named


def require_pairs(corpus: Corpus, axes: tuple[Axis, ...], left_count: int, right_count: int, *, is_named: bool) -> None:
    """Raise a UsageError where there is no pair, or where a name fits several."""
    from artifact_inspector.report.corpus import describe_candidates, suggest_axes

    matching = corpus.matching
    if corpus.changes:
        return
    if matching.ambiguous:
        raise UsageError(
            "Several kernels match on both sides.",
            describe_candidates([x for group in matching.ambiguous for side in group for x in side]),
        )
    if is_named:
        raise UsageError(
            f"None of {left_count} kernels on the left matches any of {right_count} on the right.",
            suggest_axes(matching, axes),
        )


def _print_comparison(
    corpus: Corpus, format: str, price: PairPrice | None, *, is_single_pair: bool, changes: bool, gates: tuple[str, ...]
) -> None:
    from artifact_inspector.comparison.corpus import Degree
    from artifact_inspector.report.console import write
    from artifact_inspector.report.corpus import CorpusReport
    from artifact_inspector.report.diff import PairReport
    from artifact_inspector.report.exchange.junit import junit_text
    from artifact_inspector.report.exchange.markdown import corpus_markdown, pair_markdown
    from artifact_inspector.report.json.comparison import corpus_document, pair_document

    pair = corpus.changes[0].pair if is_single_pair else None
    if format == "json":
        document = (
            corpus_document(corpus, gates) if pair is None else pair_document(pair, corpus.changes[0].headline, price)
        )
        print_json(document)
    elif format == "markdown":
        write(corpus_markdown(corpus, gates) if pair is None else pair_markdown(pair), sys.stdout)
    elif format == "junit":
        write(junit_text(corpus, gates), sys.stdout)
    elif pair is None:
        print_report(CorpusReport(corpus, gates))
    else:
        is_identical = corpus.changes[0].degree is Degree.IDENTICAL
        print_report(
            PairReport(
                pair,
                only_changes=changes,
                is_identical=is_identical,
                headline=corpus.changes[0].headline,
                price="" if price is None else price.sentence,
            )
        )
