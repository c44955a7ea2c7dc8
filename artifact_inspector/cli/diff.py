"""`inspect-kernel diff`: compare two kernels, or two caches."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import MachineCode
from artifact_inspector.cli._output import notice, output_to, print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artifact_inspector.cli._sides import SelectedSides
    from artifact_inspector.comparison.corpus import Corpus
    from artifact_inspector.comparison.fact_pair import FactPair
    from artifact_inspector.comparison.matching import Axis
    from artifact_inspector.comparison.pair import Comparison
    from artifact_inspector.comparison.pair_price import PairPrice
    from artifact_inspector.facts.modules import Disassemble

FORMATS = ("text", "json", "markdown", "junit")


@command()
def diff(
    code: MachineCode,
    a: Annotated[str, options.argument("A", "A cache directory; CACHE:NAME or CACHE:HASH for one kernel.")],
    b: str | None = options.argument("B", "The other side; omit it with --left and --right.", None),
    left: options.LeftSide = None,
    right: options.RightSide = None,
    across: options.Across = None,
    target: options.ReadTargets = None,
    properties: options.Where = None,
    fail_on: list[str] | None = options.option(
        "--fail-on WHAT",
        "Exit with 1 only if this changed: verdict, spills, waits, mma, shared, registers ... any.",
        None,
    ),
    changes: bool = options.option("--changes", "Print only the facts that differ between two kernels.", False),
    format: str = options.option("--format -f FORMAT", "Print as text, json, markdown or junit.", "text"),
    passes: bool = options.option(
        "--passes", "Compile both kernels again and name the compiler pass that made them differ.", False
    ),
    show_causes: bool = options.option(
        "--why", "Print what made Triton compile two entries separately: types, constants, options ...", False
    ),
    svg: str | None = options.option(
        "--svg WHAT", f"Draw two kernels as SVG instead: {', '.join(options.PAIR_PICTURES)}.", None
    ),
    launch: options.LaunchFile = None,
    output: options.Output = None,
    html: options.Html = None,
    sources: options.SourceDirectory = None,
    scheduler: options.Scheduler = None,
    json: options.Json = False,
) -> None:
    """Compare two kernels or two caches, and name the compiler stage where they first differ.

    Exit codes: 0 same, 1 different, 2 usage, 3 nothing could be read.
    """
    format = "json" if json else format
    options.require_format(format, FORMATS)
    if svg is not None:
        options.require_picture(svg, options.PAIR_PICTURES)
    if passes and format != "text":
        raise UsageError(
            f"--passes prints text only, not {format}.",
            "For one kernel as JSON: inspect-kernel passes CACHE NAME --json.",
        )
    if show_causes and format not in ("text", "json"):
        raise UsageError(f"--why prints text or JSON, not {format}.", "Remove --format.")
    from artifact_inspector.cli._loading import read_filters
    from artifact_inspector.cli._sides import select_sides
    from artifact_inspector.comparison.corpus import parse_gates
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.comparison.sides import parse_cache_selector

    with output_to(None if svg else output):
        axes, gates = parse_axes(across or []), parse_gates(fail_on or [])
        sides = select_sides(a, b, left or [], right or [], read_filters(target, properties))
        if show_causes:
            from artifact_inspector.cli._causes import print_reasons

            differ = print_reasons(sides.left, sides.right, json=format == "json")
        else:
            roots = [parse_cache_selector(side).directory for side in (a, b or a)]
            differ = _compare(
                sides, axes, gates, format, code, roots,
                changes=changes, passes=passes, html=html, sources=sources,
                svg=None if svg is None else (svg, output), launch=launch, scheduler=scheduler,
            )  # fmt: skip
    if differ:
        raise typer.Exit(DIFFERENT)


def _compare(
    sides: SelectedSides,
    axes: tuple[Axis, ...],
    gates: tuple[str, ...],
    format: str,
    code: MachineCode,
    roots: list[Path],
    *,
    changes: bool,
    passes: bool,
    html: Path | None,
    sources: Path | None,
    svg: tuple[str, Path | None] | None,
    launch: Path | None,
    scheduler: str | None,
) -> bool:
    """Write the comparison; return whether the exit code is 1."""
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.cli._sides import compare_sides
    from artifact_inspector.report.console import write_lines
    from artifact_inspector.report.line_limit import is_brief

    disassemble = make_disassembler((*sides.left, *sides.right), code.nvdisasm, sass=code.sass)
    has_single_side = sides.is_named and min(len(sides.left), len(sides.right)) == 1
    corpus = compare_sides(sides, axes, disassemble, always=has_single_side, scheduler=scheduler)
    is_single_pair = len(corpus.changes) == 1 and has_single_side
    if passes and not is_single_pair:
        raise UsageError("--passes compares two kernels.", "Give one kernel per side: CACHE:NAME.")
    if "time" in gates and not is_single_pair:
        raise UsageError("--fail-on time compares two kernels.", "Use regress --prices for times of two caches.")
    pair = corpus.changes[0].pair if is_single_pair else None
    pass_text, responsible_pass = attribute_passes(pair, pair.facts) if passes and pair is not None else ([], "")
    if svg is None:
        if pair is not None:
            price = _predict(pair, roots, launch, disassemble, sides.products)
            corpus = replace(corpus, changes=(corpus.changes[0].with_price(price),))
        _print_comparison(corpus, format, is_single_pair=is_single_pair, changes=changes, gates=gates, passes=pass_text)
    if svg is not None:
        from artifact_inspector.cli._pictures import draw_pair, write_svg

        write_svg(svg[1], draw_pair(pair, responsible_pass))
    if pass_text and not (svg is None and is_brief()):
        # a picture on standard output must be the only thing there
        write_lines("\n" + "\n".join(pass_text) + "\n", sys.stdout if svg is None or svg[1] else sys.stderr)
    if html is not None:
        from artifact_inspector.cli._pages import local_sources, write_page
        from artifact_inspector.report.html import corpus_page

        page = corpus_page(
            corpus, gates, local_sources(sources), disassemble, passes=pass_text, is_single=is_single_pair
        )
        write_page(html, page)
    return bool(corpus.failures(gates)) if gates else not corpus.is_same


def _predict(
    pair: Comparison,
    roots: list[Path],
    launch: Path | None,
    disassemble: Disassemble | None,
    gpus: tuple[str | None, str | None],
) -> PairPrice | None:
    """The predicted times of a launch of both; None if no launch is given or on record."""
    from artifact_inspector.api.pair_prices import find_pair_launch, predict_pair, unknown_price
    from artifact_inspector.cli._launches import read_launch_file
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.comparison.consequence import differing_facts
    from artifact_inspector.execution.interpreter.budget import limit_simulation

    left, right = pair.left.artifact, pair.right.artifact
    try:
        request = find_pair_launch(left, right, roots) if launch is None else read_launch_file(launch)[0]
    except UsageError as error:
        if launch is not None:
            raise
        return unknown_price(error.message)
    if request is None:
        return None
    disassemble = disassemble or make_disassembler((left, right), None, sass=True)
    with limit_simulation():
        facts = differing_facts(pair.facts)
        return predict_pair(left, right, request, disassemble, gpus, facts=facts)


def attribute_passes(pair: Comparison, facts: Sequence[FactPair]) -> tuple[list[str], str]:
    """The pass that set each of some differing facts, for each side; and the pass that a picture names."""
    from artifact_inspector.passes.attribution import find_passes, select_earliest
    from artifact_inspector.report.diff import side_labels
    from artifact_inspector.report.passes import describe_attribution, name_passes

    differing = [fact for fact in facts if fact.differs]
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


def _print_comparison(
    corpus: Corpus, format: str, *, is_single_pair: bool, changes: bool, gates: tuple[str, ...], passes: Sequence[str]
) -> None:
    from artifact_inspector.comparison.corpus import Degree
    from artifact_inspector.report.console import write
    from artifact_inspector.report.corpus import CorpusReport
    from artifact_inspector.report.diff import PairReport
    from artifact_inspector.report.exchange.junit import junit_text
    from artifact_inspector.report.exchange.markdown import corpus_markdown, pair_markdown
    from artifact_inspector.report.json.comparison import corpus_document, pair_document

    change = corpus.changes[0] if is_single_pair else None
    pair = None if change is None else change.pair
    if format == "json" and change is not None and pair is not None:
        print_json(pair_document(pair, change.headline, change.price))
    elif format == "json":
        print_json(corpus_document(corpus, gates))
    elif format == "markdown":
        write(corpus_markdown(corpus, gates) if pair is None else pair_markdown(pair), sys.stdout)
    elif format == "junit":
        write(junit_text(corpus, gates), sys.stdout)
    elif pair is None:
        print_report(CorpusReport(corpus, gates))
    else:
        is_identical = corpus.changes[0].degree is Degree.IDENTICAL
        print_report(PairReport(pair, only_changes=changes, is_identical=is_identical, change=change, passes=passes))
