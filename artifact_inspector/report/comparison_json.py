"""Comparisons as JSON: one document for two kernels, one for two caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.matching import Axis, Candidate, Difference
from artifact_inspector.comparison.matrix import Matrix
from artifact_inspector.comparison.pair import FactPair, Pair, Parting, RegionPair, Side, StagePair, Turn
from artifact_inspector.report.json import SCHEMA_VERSION
from artifact_inspector.summary import Value

__all__ = ["corpus_document", "matrix_document", "pair_document"]

Document = dict[str, Any]


def pair_document(pair: Pair) -> Document:
    """Two kernels: what they are, what differs, and who made them differ."""
    return {
        "schema_version": SCHEMA_VERSION,
        "left": _kernel(Candidate(pair.left.artifact)),
        "right": _kernel(Candidate(pair.right.artifact)),
        "same": pair.is_same,
        "differences": [_difference(found) for found in pair.differences],
        "parting": None if pair.parting is None else _parting(pair.parting),
        "options": [_fact(fact) for fact in pair.options],
        "facts": [_fact(fact) for fact in pair.facts],
        "regions": [_region(region) for region in pair.regions],
        "not_compared": list(pair.notes),
    }


def corpus_document(corpus: Corpus, gates: Sequence[str]) -> Document:
    """Two caches: the summary, then every kernel, worst first."""
    matching = corpus.matching
    return {
        "schema_version": SCHEMA_VERSION,
        "same": corpus.is_same,
        "across": [axis.value for axis in Axis if axis in matching.across],
        "counts": {degree.value: corpus.count(degree) for degree in Degree},
        "by_category": corpus.by_category,
        "gates": list(gates),
        "failures": list(corpus.failures(gates)),
        "kernels": [_change(change) for change in corpus.changes],
        "only_left": [_kernel(candidate) for candidate in matching.left],
        "only_right": [_kernel(candidate) for candidate in matching.right],
        "ambiguous": [
            {"left": [_kernel(x) for x in left], "right": [_kernel(x) for x in right]}
            for left, right in matching.ambiguous
        ],
        "problems": [
            {"side": side, "path": problem.path, "problem": problem.problem}
            for side, problem in corpus.problems
        ],
    }


def _kernel(candidate: Candidate) -> Document:
    artifact, program = candidate.artifact, candidate.program
    return {
        "name": artifact.display_name,
        "hash": artifact.hash,
        "directory": artifact.directory,
        "target": candidate.target,
        "triton_version": artifact.triton_version,
        "signature": None if program is None else list(program.signature),
        "tiles": None if program is None else list(program.tiles),
        "options": {key: _value(value) for key, value in candidate.options.items()},
    }


def _change(change: Change) -> Document:
    parting = None if change.pair is None else change.pair.parting
    return {
        "left": _kernel(change.left),
        "right": _kernel(change.right),
        "degree": change.degree.value,
        "categories": list(change.categories),
        "differences": [_difference(found) for found in change.differences],
        "parting": None if parting is None else _parting(parting),
        "facts": [_fact(fact) for fact in change.facts],
        "not_compared": [] if change.pair is None else list(change.pair.notes),
    }


def _difference(found: Difference) -> Document:
    return {
        "axis": found.axis.value,
        "what": found.what,
        "left": _value(found.left),
        "right": _value(found.right),
    }


def _fact(fact: FactPair) -> Document:
    return {
        "key": fact.key,
        "category": fact.category,
        "label": fact.label.strip(),
        "unit": fact.unit or None,
        "region": fact.region or None,
        "left": _value(fact.left),
        "right": _value(fact.right),
        "state": fact.state.value,
        "why": fact.why or None,
    }


def _region(region: RegionPair) -> Document:
    return {
        "name": region.name,
        "left": region.left,
        "right": region.right,
        "principal": region.is_principal,
        "stages": [_stage(stage) for stage in region.stages],
        "parting": None if region.parting is None else _parting(region.parting),
        "turns": [_turn(turn) for turn in region.turns],
    }


def _stage(stage: StagePair) -> Document:
    return {
        "step": stage.step,
        "agree": stage.agree,
        "left": None if stage.left is None else _side(stage.left),
        "right": None if stage.right is None else _side(stage.right),
    }


def _side(side: Side) -> Document:
    region = side.region
    return {
        "stage": side.stage.value,
        "verdict": region.verdict,
        "phrase": region.phrase,
        "signature": region.signature,
        "rounds": [
            {
                "loads": found.loads,
                "first_load": found.first_load,
                "last_load": found.last_load,
                "first_compute": found.first_compute,
                "last_compute": found.last_compute,
            }
            for found in region.rounds
        ],
    }


def _parting(parting: Parting) -> Document:
    return {
        "step": parting.step,
        "components": list(parting.components),
        "left": parting.left,
        "right": parting.right,
        "left_lines": [list(lines) for lines in parting.left_lines],
        "right_lines": [list(lines) for lines in parting.right_lines],
    }


def _turn(turn: Turn) -> Document:
    return {
        "side": turn.side,
        "step": turn.step,
        "components": list(turn.components),
        "before": turn.before,
        "after": turn.after,
        "lines": [list(lines) for lines in turn.lines],
    }


def _value(value: Value) -> Any:
    return list(value) if isinstance(value, tuple) else value


def matrix_document(matrix: Matrix) -> Document:
    """One kernel in all its forms."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": matrix.name,
        "forms": [
            {
                **_kernel(Candidate(form.kernel.artifact)),
                "verdicts": dict(form.verdicts),
                "figures": {name: _value(value) for name, value in form.figures.items()},
            }
            for form in matrix.forms
        ],
    }
