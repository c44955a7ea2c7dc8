"""cuobjdump, Triton's own reader of control codes and nvdisasm's life ranges as judges of the saved cubins."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from saved import FIXTURES, saved

from artifact_inspector.analysis.flow.control_flow import find_control_flow
from artifact_inspector.files.disassembly import disassemble, find_disassembler
from artifact_inspector.formats.sass.parser import FORMAT, parse
from artifact_inspector.model import Function, Module, Stage
from artifact_inspector.model.text import SourceText

disasm = pytest.importorskip("triton.tools.disasm")
TOOL = find_disassembler()
pytestmark = pytest.mark.skipif(TOOL is None, reason="no nvdisasm")
CUBINS = [
    pytest.param(
        path, id=str(path.relative_to(FIXTURES).parent.parent), marks=[pytest.mark.exhaustive] if number % 3 else []
    )
    for number, path in enumerate(sorted(FIXTURES.rglob("*.cubin")))
    if "broken" not in path.parts
]


@cache
def module(path: Path) -> Module:
    return parse(SourceText(path.name, disassemble(path.read_bytes(), TOOL)), Stage.SASS)


@cache
def cuobjdump(path: Path) -> str:
    assert TOOL is not None
    command = [str(TOOL.path.with_name("cuobjdump")), "-sass", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def life_ranges(path: Path) -> str:
    """The text with a table of registers beside it, empty where nvdisasm cannot follow the branches."""
    assert TOOL is not None
    command = [str(TOOL.path), "-c", "-plr", "-lrm", "narrow", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("path", CUBINS)
def test_as_many_instructions_as_cuobjdump_prints(path: Path) -> None:
    printed = re.findall(r"^\s*/\*[0-9a-f]{4,}\*/\s+\S", cuobjdump(path), re.M)
    assert sum(len(function.instructions) for function in module(path).functions) == len(printed) > 0


@pytest.mark.long
@pytest.mark.parametrize("path", CUBINS)
def test_json_reads_as_the_text_does(path: Path) -> None:
    assert TOOL is not None
    command = [str(TOOL.path), "-json", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "Unknown option" in printed.stderr:
        pytest.skip("an nvdisasm without -json")
    found = parse(SourceText("k", FORMAT.listing(printed.stdout)), Stage.SASS)
    for one, other in zip(module(path).functions, found.functions, strict=True):
        assert one.name == other.name
        for x, y in zip(one.instructions, other.instructions, strict=True):
            assert (x.opcode, x.kind, x.guard) == (y.opcode, y.kind, y.guard), x.text
            assert x.operands.results == y.operands.results, x.text
            # The text leaves out a descriptor (`desc[UR6]`) that says nothing, JSON does not.
            unsaid = set() if "desc[" in x.text else set(re.findall(r"desc\[(UR\d+)\]", y.text))
            unsaid |= {f"UR{int(name[2:]) + 1}" for name in unsaid}
            assert set(x.operands.reads) | unsaid == set(y.operands.reads) | unsaid, x.text


@pytest.mark.parametrize("path", CUBINS)
def test_the_text_of_cuobjdump_reads_as_that_of_nvdisasm(path: Path) -> None:
    (one,), (other,) = module(path).functions, parse(SourceText("k", cuobjdump(path)), Stage.SASS).functions
    assert one.control_codes == other.control_codes
    assert [(x.opcode, x.kind, x.guard) for x in one.instructions] == [
        (x.opcode, x.kind, x.guard) for x in other.instructions
    ]
    # nvdisasm marks the end of branches that cuobjdump has no label for: its blocks are a subset.
    starts = {block.start for block in other.blocks}
    ends = [max(s for s in starts if s <= b.start) for b in one.blocks]
    assert set(starts) <= {block.start for block in one.blocks}
    assert ends == sorted(ends)


@pytest.mark.parametrize("path", CUBINS)
def test_control_codes_are_those_that_triton_reads(path: Path) -> None:
    words = re.findall(r"^\s*/\* 0x[0-9a-f]{16} \*/\s*$", cuobjdump(path), re.M)
    ours = [
        ":".join(
            (
                f"{code.wait_mask:02d}" if code.wait_mask else "--",
                "-" if code.read_barrier is None else str(code.read_barrier),
                "-" if code.write_barrier is None else str(code.write_barrier),
                "Y" if code.yields else "-",
                f"{code.stall:x}",
            )
        )
        for function in module(path).functions
        for code in function.control_codes
    ]
    assert ours == [disasm.parseCtrl(word) for word in words]


def test_the_loop_of_a_matmul_multiplies_and_copies_as_the_ptx_says() -> None:
    # 64 × 64 × 32 with four warps: 4 · 8 · 2 products of m16n8k16, a quarter of them for each warp; what
    # four stages copy ahead is counted in the PTX of the same fixture.
    kernel = saved("3.6.0/sm_80/matmul_grouped")
    (path,) = (FIXTURES / kernel.path).rglob("*.cubin")
    counts = []
    for read in (module(path), kernel.module(Stage.PTX)):
        (function,) = read.functions
        opcodes = [function.instructions[at].opcode for at in loop(function)]
        counts.append(
            (
                sum(opcode.startswith(("HMMA.16816", "mma.sync")) for opcode in opcodes),
                sum(opcode.startswith(("LDGSTS", "cp.async.ca", "cp.async.cg")) for opcode in opcodes),
                sum(opcode.startswith(("LDGDEPBAR", "cp.async.commit_group")) for opcode in opcodes),
            )
        )
    assert counts[0] == counts[1]
    assert counts[0][:2] == (16, 5)
    (function,) = module(path).functions
    waits = [FORMAT.wait(function.instructions[at], module(path)) for at in loop(function)]
    assert [wait.depth for wait in waits if wait is not None] == [4]  # PTX: cp.async.wait_group 4


def loop(function: Function) -> list[int]:
    """The instructions of the loop with most of them."""
    flow = find_control_flow(function)
    blocks = max((found.blocks for found in flow.loops), key=lambda blocks: sum(size(function, b) for b in blocks))
    return sorted(chain.from_iterable(range(function.blocks[b].start, function.blocks[b].stop) for b in blocks))


def size(function: Function, block: int) -> int:
    return function.blocks[block].stop - function.blocks[block].start


# What nvdisasm has otherwise: R2P and P2R leave no mark in its columns of predicates; the predicate of an
# LDGSTS, which is only read, is shown as written too; a call shows what the function called uses; and before
# sm_90 an access to global memory has a descriptor in uniform registers that the text does not name.
NOT_COMPARED = re.compile(r"(?:@\S+ )?(?:R2P|P2R|LDGSTS|CALL)\b")
HIDDEN = re.compile(r"(?:@\S+ )?(?:LDG|STG|RED|ATOMG?|LD|ST)\.(?!.*desc)")


@pytest.mark.parametrize("path", CUBINS)
def test_registers_are_those_of_the_life_ranges(path: Path) -> None:
    text = life_ranges(path)
    rows = list(marked(text))
    if not rows:
        pytest.skip("this nvdisasm follows no branches in a file of this age")
    decode = {x.text: x.operands for function in module(path).functions for x in function.instructions}
    wrong = []
    for statement, writes, reads in rows:
        if NOT_COMPARED.match(statement):
            continue
        found = decode[statement]
        if HIDDEN.match(statement):
            reads = {name for name in reads if not name.startswith("UR")}
        if (set(found.results), set(found.reads)) != (writes, reads):
            wrong.append((statement, writes ^ set(found.results), reads ^ set(found.reads)))
    assert wrong == []
    assert len(rows) > 50


def marked(text: str) -> Iterator[tuple[str, set[str], set[str]]]:
    """Statements with the registers that the table marks: `^` written, `v` read, `x` both."""
    banks: dict[int, str] = {}
    heads: list[list[str]] = []
    for line in text.split("\n"):
        code, bar, table = line.partition("// |")
        cells = table.split("|")
        if not bar:
            continue
        if any(cell.strip() in BANKS for cell in cells):
            banks = {at: BANKS[cell.strip()] for at, cell in enumerate(cells) if cell.strip() in BANKS}
            heads = []
        elif not code.strip():
            heads.append(cells)
        elif "/*" in code:
            found: dict[str, set[str]] = {"^": set(), "v": set(), "x": set()}
            for at, bank in banks.items():
                head = [row[at] for row in heads if at < len(row) and re.search(r"\d", row[at])]
                first = head[-1].index("#") + 2
                for place, mark in enumerate(cells[at]):
                    if place >= first and mark in found:
                        digits = "".join(row[place] for row in head if row[place : place + 1].isdigit())
                        found[mark].add(f"{bank}{int(digits)}")
            statement = code.partition("*/")[2].partition(";")[0].strip()
            statement = re.sub(r"^(@\S+)\s+", r"\1 ", statement)
            yield statement, found["^"] | found["x"], found["v"] | found["x"]


BANKS = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
