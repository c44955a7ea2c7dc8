"""Why a kernel was compiled again: the parts of Triton's key, each varied alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from saved import FIXTURES, saved

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.variant_causes import KeyPartKind, find_causes, find_reasons
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Frame, TritonVersion
from artifact_inspector.model.tile import Tile
from artifact_inspector.report.console import to_text
from artifact_inspector.report.variant_matrix import ReasonsReport
from artifact_inspector.vocabulary.variant_labels import Compiled

ARTIFACT = saved("3.6.0/sm_80/masked_add").facts.artifact
PROGRAM = KernelProgram(("*fp32:16", "i32:16"), (Tile("load 128"),), Frame("k.py", 3, 1), ("x", "n"))


def a_form(program: KernelProgram = PROGRAM, **changes: Any) -> Compiled:
    return Compiled(replace(ARTIFACT, **{"constants": {"BLOCK": 128}, **changes}), program)


def with_types(*types: str, names: tuple[str, ...] = ("x", "n")) -> Compiled:
    return a_form(PROGRAM._replace(signature=types, arguments=names))


@pytest.mark.parametrize(
    ("other", "cause", "name", "values"),
    [
        (with_types("*fp32:16", "i32"), KeyPartKind.SPECIALISATION, "n", ("÷16", "any value")),
        (with_types("*fp16:16", "i32:16"), KeyPartKind.DTYPE, "x", ("*fp32", "*fp16")),
        (with_types("*fp32:16", names=("x",)), KeyPartKind.SPECIALISATION, "n", ("÷16", "no argument")),
        (
            Compiled(
                replace(ARTIFACT, constants={"BLOCK": 128, "n": 1}),
                PROGRAM._replace(signature=("*fp32:16",), arguments=("x",)),
            ),
            KeyPartKind.SPECIALISATION,
            "n",
            ("÷16", "the constant 1"),
        ),
        (a_form(constants={"BLOCK": 256}), KeyPartKind.CONSTANT, "BLOCK", ("128", "256")),
        (a_form(metadata={**ARTIFACT.metadata, "num_warps": 8}), KeyPartKind.OPTION, "num_warps", ("4", "8")),
        (a_form(target=parse_target("sm_90")), KeyPartKind.TARGET, "", ("sm_80", "sm_90")),
        (a_form(triton_version=TritonVersion("3.9.0")), KeyPartKind.VERSION, "", ("3.6.0", "3.9.0")),
        (
            a_form(PROGRAM._replace(location=Frame("k.py", 5, 1))),
            KeyPartKind.SOURCE,
            "line of its definition",
            ("3", "5"),
        ),
        (
            a_form(metadata={**ARTIFACT.metadata, "sanitize_overflow": False}),
            KeyPartKind.ENVIRONMENT,
            "sanitize_overflow",
            ("True", "False"),
        ),
    ],
)
def test_each_part_of_the_key_is_told_alone(
    other: Compiled, cause: KeyPartKind, name: str, values: tuple[str, str]
) -> None:
    (found,) = find_reasons(a_form(), other)
    assert (found.key_part.cause, found.key_part.name) == (cause, name)
    assert (found.left, found.right) == values


def test_without_a_record_the_tiles_are_what_is_left_of_constants() -> None:
    ours, theirs = (
        Compiled(replace(ARTIFACT, constants={}), PROGRAM._replace(tiles=(Tile(f"load {n}"),))) for n in (128, 256)
    )
    (found,) = find_reasons(ours, theirs)
    assert (found.key_part.cause, found.left, found.right) == (KeyPartKind.CONSTANT, Tile("load 128"), Tile("load 256"))


def test_what_no_file_tells_is_said_to_be_untold() -> None:
    (found,) = find_reasons(a_form(), a_form())
    assert found.key_part.cause is KeyPartKind.UNKNOWN
    text = to_text(ReasonsReport(("a", "b"), [found]), 100)
    assert "The files of the two entries show no difference." in text


def test_each_cause_says_how_many_forms_it_makes() -> None:
    """Two block sizes × two hints, and one more type: 2·2 + 1 forms."""
    forms = [
        Compiled(replace(ARTIFACT, constants={"BLOCK": block}), PROGRAM._replace(signature=("*fp32:16", hint)))
        for block in (128, 256)
        for hint in ("i32", "i32:16")
    ]
    forms.append(with_types("*fp16:16", "i32:16"))
    found = find_causes(forms)
    assert (found.variant_count, found.indistinguishable) == (5, 0)
    told = {one.key_part.name: (one.variants_caused, dict(one.values)) for one in found.varying}
    assert told == {
        "BLOCK": (2, {"128": 3, "256": 2}),
        "n": (2, {"÷16": 3, "any value": 2}),
        "x": (1, {"*fp32": 4, "*fp16": 1}),
    }


def test_types_that_change_together_are_one_cause() -> None:
    ours, theirs = (with_types(f"*{kind}:16", f"*{kind}:16") for kind in ("fp16", "fp32"))
    (found,) = find_causes([ours, theirs]).varying
    assert (found.key_part.cause, found.key_part.name, found.variants_caused) == (KeyPartKind.DTYPE, "x, n", 1)


def test_saved_forms_of_a_matmul_differ_in_target_and_version() -> None:
    entries = [x for x in open_cache(FIXTURES).entries if x.display_name == "matmul_kernel"]
    assert len(entries) > 10
    found = find_causes([Compiled(entry, None) for entry in entries])
    assert [one.key_part.cause for one in found.varying] == [KeyPartKind.TARGET, KeyPartKind.VERSION]


def test_arguments_by_position_have_the_names_that_another_form_knows() -> None:
    numbered = a_form(PROGRAM._replace(signature=("*fp32:16", "i32"), arguments=("0", "1")))
    (found,) = find_reasons(numbered, a_form())
    assert (found.key_part.cause, found.key_part.name) == (KeyPartKind.SPECIALISATION, "n")
    assert (found.left, found.right) == ("any value", "÷16")
