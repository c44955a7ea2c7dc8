"""Stages written by hand, for tests of what is said about memory accesses."""

from __future__ import annotations

from textwrap import dedent

from artifact_inspector.analysis.access.accesses import StageAccesses, find_accesses
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.formats import format_of
from artifact_inspector.model import BasicBlock, EventKind, Frame, Function, Instruction, Module, Operands, Stage
from artifact_inspector.model.text import SourceText

HEAD = "%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %n: i32, %odd: i32"

OFFSETS = """
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %pid = tt.get_program_id x : i32
    %c = arith.constant 1024 : i32
    %o = arith.muli %pid, %c : i32
    %s = tt.splat %o : i32 -> tensor<1024xi32>
    %i = arith.addi %s, %r : tensor<1024xi32>
"""


def stage(which: Stage, text: str) -> StageAccesses:
    """The one function of a text at a stage."""
    language = format_of(which)
    module = language.parse(SourceText(f"k.{which.value}", text), which)
    function = module.functions[0]
    code = FunctionCode(function, module, language)
    return StageAccesses(code, find_accesses(code))


def tensors(which: Stage, body: str, header: str = "") -> StageAccesses:
    """A kernel of tensor-level IR with these operations; its first one stands in line 3."""
    text = f"module {header} {{\n  tt.func public @k({HEAD}) {{\n{dedent(body)}\n    tt.return\n  }}\n}}\n"
    return stage(which, text)


def ptx(*statements: str) -> StageAccesses:
    """A kernel of k.py with these statements; the first one stands in line 6."""
    body = "\n".join(f"\t{statement}" for statement in statements)
    head = '.version 8.7\n.target sm_80\n.file 1 "k.py"\n.visible .entry k()\n{\n'
    return stage(Stage.PTX, f"{head}{body}\n\tret;\n}}\n")


def ptx_load(opcode: str, line: int = 5) -> StageAccesses:
    """One load into a register, in line 7, that stands at a line of k.py."""
    return ptx(f".loc 1 {line} 1", f"{opcode} {{ %r1 }}, [ %rd1 + 0 ];")


def amdgcn(*statements: str) -> StageAccesses:
    """A kernel of these statements and labels; the first one stands in line 5."""
    body = "\n".join(text if text.endswith(":") else f"\t{text}" for text in statements)
    head = '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.text\n\t.type\tk,@function\nk:\n'
    return stage(Stage.AMDGCN, f"{head}{body}\n\ts_endpgm\n.Lfunc_end0:\n")


def llir(*statements: str) -> StageAccesses:
    """A kernel of these statements and labels, with a pointer %p and a condition %m."""
    body = "\n".join(text if text.endswith(":") else f"  {text}" for text in statements)
    return stage(Stage.LLIR, f"define void @k(ptr addrspace(1) %p, i1 %m) {{\n{body}\n}}\n")


def address(pointer: str, offsets: str = "%i", elements: int = 1024) -> str:
    """Operations that make %a, the addresses of `elements` f16 behind a pointer."""
    return f"""
    %b = tt.splat {pointer} : !tt.ptr<f16> -> tensor<{elements}x!tt.ptr<f16>>
    %a = tt.addptr %b, {offsets} : tensor<{elements}x!tt.ptr<f16>>, tensor<{elements}xi32>
    """


def code_of(which: Stage, text: str) -> FunctionCode:
    """The one function of a text at a stage, with its control flow."""
    language = format_of(which)
    module = language.parse(SourceText(f"k.{which.value}", text), which)
    (function,) = module.functions
    return FunctionCode(function, module, language)


def prepared(function: Function, which: Stage) -> FunctionCode:
    """A function, as the only one of a module at a stage."""
    return FunctionCode(function, Module(which, "k", (function,), {}), format_of(which))


def tensor_code(body: str, which: Stage = Stage.TTIR, head: str = "%p: !tt.ptr<f32>, %n: i32") -> FunctionCode:
    """A kernel of tensor-level IR with these operations; a digit of its own ends a line: its line in k.py.

    `%a = tt.load %x : f32 @7` stands at k.py:7.
    """
    lines = []
    for line in dedent(body).strip("\n").splitlines():
        operation, mark, number = line.rpartition(" @")
        lines.append(f'    {operation} loc("k.py":{number}:1)' if mark else f"    {line}")
    text = f"module {{\n  tt.func public @k({head}) {{\n{chr(10).join(lines)}\n    tt.return\n  }}\n}}\n"
    return code_of(which, text)


def indices_of(code: FunctionCode, opcode: str) -> list[int]:
    """The instructions whose opcode ends so, in text order."""
    found = enumerate(code.function.instructions)
    return [index for index, instruction in found if instruction.opcode.endswith(opcode)]


LETTERS = {kind.letter: kind for kind in EventKind if kind.letter} | {
    "I": EventKind.INTEGER, "m": EventKind.MOVE, "b": EventKind.BRANCH, ".": EventKind.OTHER,
}  # fmt: skip
"""As in a signature; integers, moves, branches and all else besides."""


def made(
    *blocks: str, to: dict[int, tuple[int, ...]] | None = None, home: int | None = None, column: int = 1
) -> FunctionCode:
    """A function made of letters, a block for each word group, which go on to the next one or to those in `to`.

    `L7` is a load that stands at k.py:7, `L` one without a place; `home` is the line of the function.
    Column 0 is that of machine code, which has none.
    """
    instructions: list[Instruction] = []
    found = []
    for number, block in enumerate(blocks):
        start = len(instructions)
        for word in block.split():
            location = (Frame("k.py", int(word[1:]), column),) if word[1:] else None
            instructions.append(
                Instruction(len(instructions) + 1, word, LETTERS[word[0]], location, None, word, _no_operands)
            )
        after = (to or {}).get(number, (number + 1,) if number + 1 < len(blocks) else ())
        found.append(BasicBlock(number, f"b{number}", start, len(instructions), after))
    location = None if home is None else (Frame("k.py", home, column),)
    return prepared(Function("k", 1, location, (), tuple(instructions), tuple(found)), Stage.PTX)


def _no_operands(text: str) -> Operands:
    return Operands((), ())
