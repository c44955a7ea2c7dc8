"""Arbitrary, mutated and truncated texts: only ParseError leaves a reader, and nothing leaves an inspection."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved import Saved, saved_kernels

from artifact_inspector.errors import ParseError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats import FORMATS, Format, format_of
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.text import SourceText

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SHORT = 60_000
KERNELS = saved_kernels()


def _some(kernels: list[Saved]) -> list[Saved]:
    return kernels[:: max(1, len(kernels) // 24)]


TEXTS = {
    stage: [
        text
        for kernel in _some([kernel for kernel in KERNELS if stage in kernel.stages])
        if len(text := kernel.text(stage)) < SHORT
    ]
    for stage in Stage
}
NOISE = st.sampled_from(
    [
        *[
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ",",
            ":",
            "::",
            ";",
            "@",
            "%",
            "%0",
            "!0",
            "#",
            "#loc",
            "loc(",
            "^bb1:",
            "})",
            "scf.yield",
            "scf.for",
            "s_branch",
            "999999999999999999999",
            "-1",
            "½",
            "//",
        ],
        *("", "\0", "\r", "\n", "\n\n", "\ud800", '"', "} else {", ".loc 1 99999999999 0", "define void @k("),
        *("br label %1", "bra $L1;", " asm sideeffect ", "; %bb.0:", "// %bb.0:", "}) : ("),
    ]
)


@st.composite
def broken(draw: st.DrawFn, stage: Stage) -> str:
    """A real file with a few places cut out, doubled or overwritten, cut off at the end or not."""
    text = draw(st.sampled_from(TEXTS[stage]))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(text)))
        stop = min(len(text), at + draw(st.sampled_from([0, 1, 8, 80, 800])))
        text = text[:at] + draw(st.one_of(NOISE, st.just(text[at:stop] * 2))) + text[stop:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def check(module: Module) -> None:
    for function in module.functions:
        edges = {successor for block in function.blocks for successor in block.successors}
        assert edges <= set(range(len(function.blocks)))
        assert sum(block.stop - block.start for block in function.blocks) == len(function.instructions)
        for instruction in function.instructions:
            assert isinstance(instruction.operands.reads, tuple)


@pytest.mark.parametrize("stage", Stage)
def test_the_fixtures_give_something_to_break(stage: Stage) -> None:
    assert len(TEXTS[stage]) >= (1 if stage is Stage.SASS else 3)


@pytest.mark.parametrize("language", FORMATS, ids=lambda language: language.name)
@FEW
@given(text=st.text(max_size=400))
def test_only_a_parse_error_leaves_a_reader_of_arbitrary_text(language: Format, text: str) -> None:
    for stage in language.stages:
        try:
            check(language.parse(SourceText("k", text), stage))
        except ParseError:
            continue
    assert language.sniff(text) in (True, False)


@pytest.mark.parametrize("stage", Stage)
@FEW
@given(data=st.data())
def test_only_a_parse_error_leaves_a_reader_of_broken_files(stage: Stage, data: st.DataObject) -> None:
    language = format_of(stage)
    try:
        module = language.parse(SourceText("k", data.draw(broken(stage))), stage)
    except ParseError as error:
        error.span.excerpt.index("^")
        return
    check(module)
    for function in module.functions:
        for instruction in function.instructions:
            for read in (language.wait, language.transfer, language.matrix, language.tensor_types):
                read(instruction, module)
            language.commit(instruction)


WRITTEN = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
"""An instruction of a listing: its guard, its opcode, its operands."""
ODD = st.recursive(
    st.sampled_from([None, True, -1, 10**18, 10**4000, 1.5, float("inf"), "", "a\nb", "\ud800", "/*0000*/", "R0, ["]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["SM", "version", "opcode"]), inside),
    max_leaves=5,
)  # fmt: skip


@st.composite
def disassembled(draw: st.DrawFn, *, whole: bool) -> tuple[str, int]:
    """A disassembly as JSON, with odd values here and there unless it is whole, and its instructions."""

    def odd(value: object) -> object:
        return value if whole or draw(st.integers(0, 9)) else draw(ODD)

    rows = WRITTEN.findall(draw(st.sampled_from(TEXTS[Stage.SASS])))
    at = draw(st.integers(0, len(rows) - 1))
    rows = rows[at : at + 20]
    keys = ("predicate", "opcode", "operands")
    code = [odd({key: odd(word) for key, word in zip(keys, row, strict=True) if word}) for row in rows]
    function = odd({"function-name": odd("k"), "start": odd(0), "sass-instructions": odd(code)})
    head = odd({"SM": odd({"version": odd({"major": odd(9), "minor": odd(0)})})})
    text = json.dumps([head, odd([function])])
    if not whole and draw(st.booleans()):
        text = text[: draw(st.integers(0, len(text)))] + draw(NOISE)
    return text, len(rows)


@FEW
@given(given=disassembled(whole=False))
def test_only_a_parse_error_leaves_a_reader_of_odd_disassemblies_in_json(given: tuple[str, int]) -> None:
    language = format_of(Stage.SASS)
    try:
        check(language.parse(SourceText("k", language.listing(given[0])), Stage.SASS))
    except ParseError as error:
        error.span.excerpt.index("^")


@FEW
@given(given=disassembled(whole=True))
def test_each_instruction_of_a_disassembly_in_json_is_one(given: tuple[str, int]) -> None:
    language = format_of(Stage.SASS)
    (function,) = language.parse(SourceText("k", language.listing(given[0])), Stage.SASS).functions
    assert len(function.instructions) == given[1]


@settings(FEW, max_examples=25)
@given(data=st.data())
def test_an_inspection_of_broken_files_reports_and_never_raises(data: st.DataObject) -> None:
    last = data.draw(st.sampled_from([Stage.PTX, Stage.AMDGCN]))
    with tempfile.TemporaryDirectory() as directory:
        for stage in (Stage.TTIR, Stage.TTGIR, Stage.LLIR, last):
            if data.draw(st.booleans()):
                text = data.draw(broken(stage)).encode("utf-8", "surrogatepass")
                Path(directory, f"k.{stage.value}").write_bytes(text)
        metadata = data.draw(
            st.sampled_from(["", "{", "[]", "null", json.dumps({"name": 3, "shared": "x", "target": 7})])
        )
        Path(directory, "k.json").write_text(metadata)
        for artifact in open_cache(Path(directory)).entries:
            facts = inspect_artifact(artifact)
            assert facts.problems is not None
            assert [problem for problem in facts.problems if "inspector itself failed" in problem.problem] == []
