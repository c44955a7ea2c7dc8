"""Loads of inline asm, in machine code that has the lines of the asm's instructions for theirs."""

from __future__ import annotations

from pathlib import Path

from artifact_inspector.analysis.flow.asm_lines import AsmCalls, find_asm_calls, move_to_call_lines
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.files.cache import open_cache
from artifact_inspector.formats import format_of
from artifact_inspector.model import Frame, Module, Stage
from artifact_inspector.model.text import SourceText

PTX = """.version 8.8
.target sm_90a
.visible .entry k()
{
%s
}
\t.file\t1 "/home/user/k.py"
"""
LOAD = """\t.loc\t1 {line} 20
\t// begin inline asm
\t.loc\t1 {line} 20
\tmov.u32 %r1, 0x0;
\t.loc\t1 {second} 20
\tmov.u32 %r2, 0x0;
\t.loc\t1 {third} 20
\tld.global.v2.b32 {{ %r1, %r2 }}, [ %rd1 + 0 ];

\t// end inline asm"""
SASS = """\t.target\tsm_90
.section\t.text.k
k:
.text.k:
\t//## File "/home/user/k.py", line {line}
        /*0000*/                   {opcode} R2, desc[UR4][R2.64] ;
        /*0010*/                   EXIT ;
"""


def assembly(*lines: int) -> Module:
    """Loads of eight bytes a thread, each behind two moves in an asm that is called on a line."""
    body = "\n".join(LOAD.format(line=line, second=line + 1, third=line + 2) for line in lines)
    return format_of(Stage.PTX).parse(SourceText("k.ptx", PTX % body), Stage.PTX)


def calls(*lines: int) -> AsmCalls:
    return find_asm_calls(assembly(*lines), format_of(Stage.PTX))


def put_back(line: int, opcode: str, *lines: int) -> list[int]:
    """Lines of the place that a load of machine code has, once it is put back."""
    language = format_of(Stage.SASS)
    module = language.parse(SourceText("k.sass", SASS.format(line=line, opcode=opcode)), Stage.SASS)
    (function,) = module.functions
    found = move_to_call_lines(function, module, language, calls(*lines)).instructions[0].location
    return [frame.line for frame in found or ()]


def test_assembly_knows_where_a_load_belongs_and_where_its_own_table_has_it() -> None:
    (function,) = assembly(9).functions
    assert [x.location and x.location[0].line for x in function.instructions] == [9, 9, 9]
    assert dict(function.inline_asm_lines) == {2: 11}
    assert list(calls(9).values()) == [(Frame("/home/user/k.py", 9, 0),)]


def test_a_load_of_machine_code_goes_back_to_the_line_that_calls_its_asm() -> None:
    assert put_back(11, "LDG.E.64", 9) == [9]


def test_one_of_another_width_or_at_another_line_is_left() -> None:
    assert put_back(11, "LDG.E.128", 9) == [11]
    assert put_back(12, "LDG.E.64", 9) == [12]
    assert put_back(9, "LDG.E.64", 9) == [9]


def test_a_load_that_two_calls_may_have_put_there_stands_nowhere() -> None:
    plain = LOAD.format(line=11, second=11, third=11)  # its asm counts no lines
    moved = LOAD.format(line=9, second=10, third=11)
    text = PTX % f"{moved}\n{plain}"
    module = format_of(Stage.PTX).parse(SourceText("k.ptx", text), Stage.PTX)
    assert list(find_asm_calls(module, format_of(Stage.PTX)).values()) == [None]


def test_where_no_asm_counts_lines_nothing_is_moved() -> None:
    text = PTX % LOAD.format(line=9, second=9, third=9)
    module = format_of(Stage.PTX).parse(SourceText("k.ptx", text), Stage.PTX)
    assert find_asm_calls(module, format_of(Stage.PTX)) == {}


def test_a_launch_on_paper_tells_the_line_that_calls_the_asm(tmp_path: Path) -> None:
    (tmp_path / "k.ptx").write_text(PTX.replace("k()", "k()\n.reqntid 32") % LOAD.format(line=9, second=10, third=11))
    (tmp_path / "k.sass").write_text(SASS.format(line=11, opcode="LDG.E.64"))
    (entry,) = open_cache(tmp_path).entries
    assert load_kernel(entry, None).program.steps[0].source_place == "k.py:9"
