"""Reads Tile IR of cuTile: `tileirdisasm` prints it, and its operations are those of TTIR under other names.

Loads and stores of views become those of descriptors; tokens, which only order memory accesses, are dropped.

Source: CUDA Tile IR specification 13.3, syntax and operations; output of tileirdisasm 13.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.tools import find_on_path, package_directories, private_copy, run_tool

TILE_IR = b"\x7fTileIR\0"
"""First bytes of Tile IR."""
_NAME = "tileirdisasm"
_REMEDY = f"Install {_NAME} (pip install nvidia-cuda-tileiras, or CUDA 13.1), or give the cubin that tileiras makes."
MAX_BYTES = 64 << 20
"""Longest Tile IR that is read, and the longest text of it."""
_OPERATION = re.compile(r"(?:(%[\w$.-]+(?::\d+)?)((?:, %[\w$.-]+)*) = )?([a-z]\w*)(.*)")
_TILE = re.compile(r"tile<((?:\d{1,9}x){0,8})(?:ptr<(\w{1,32})>|([a-z]\w{0,31}))>")
_VIEW = re.compile(r"\b(?:partition|strided|gather_scatter)_view<(?:[^<>]|<[^<>]*>)*>")
_ALIAS = re.compile(r"#cuda_tile\.di_loc<(#loc\d*) in #\w+>")
_OPERATIONS = {
    tile_ir: f"{dialect}.{name.partition('=')[2] or tile_ir}"
    for dialect, names in {
        "tt": """
            load_ptr_tko=load store_ptr_tko=store load_view_tko=descriptor_load store_view_tko=descriptor_store
            atomic_rmw_tko=atomic_rmw atomic_red_tko=atomic_rmw atomic_red_view_tko=atomic_rmw
            atomic_cas_tko=atomic_cas mmaf=dot mmai=dot mmaf_scaled=dot iota=make_range offset=addptr
            get_tile_block_id=get_program_id get_num_tile_blocks=get_num_programs permute=trans broadcast reshape cat
            extract return
        """,
        "scf": "for loop=for if continue=yield yield",
        "arith": """
            addf subf mulf divf remf negf cmpf maxf=maximumf minf=minimumf addi subi muli divi remi negi cmpi andi ori
            xori shli shri mulhii maxi=maxsi mini=minsi constant select bitcast exti=extsi trunci ftof=truncf
            itof=sitofp ftoi=fptosi
        """,
        "math": """
            absf absi ceil cos cosh exp exp2 floor fma log log2 pow rsqrt sin sinh sqrt tan tanh atan2
        """,
    }.items()
    for name in names.split()
    for tile_ir in [name.partition("=")[0]]
}
"""Operations of Tile IR → those of TTIR. Others keep their name, in the dialect `cuda_tile`."""


def ttir_of(tile_ir: bytes) -> str:
    """The kernels of Tile IR as TTIR.

    Raises:
        CacheError: there is no `tileirdisasm`, or it rejects the content.
    """
    directories = [str(path / "cu13" / "bin" / _NAME) for path in package_directories("nvidia")]
    tool = next((path for path in map(Path, directories) if path.is_file()), None) or find_on_path([_NAME])
    if tool is None:
        raise CacheError(f"Tile IR of cuTile is not read: no {_NAME} was found.", _REMEDY)
    with private_copy(tile_ir, "kernel.tileirbc") as path:
        status, output = run_tool([str(tool), "-g", str(path)], MAX_BYTES)
    if status:
        raise CacheError(f"Tile IR of cuTile is not read: {tool} rejects it.", _REMEDY)
    return "\n".join(_ttir_lines(output.decode(errors="replace")))


def _ttir_lines(text: str) -> Iterator[str]:
    reductions: list[str] = []
    """Types of the reductions whose body is open."""
    for line in map(str.strip, text.split("\n")):
        body, separator, location = line.rpartition(" loc(") if line.endswith(")") else (line, "", "")
        if line.startswith("#"):
            yield _ALIAS.sub(r"loc(\1)", line)
        elif reductions and line.startswith("(%"):
            yield "^bb0" + _with_tensors(line).replace(" {", ":")
        elif reductions and line.startswith("}"):
            yield f"}}) : {reductions.pop()}{separator}{location}"
        elif (match := _OPERATION.fullmatch(body)) is None:
            yield line
        elif match[3] in ("reduce", "scan"):
            operands, _, types = match[4].partition(" : ")
            values, _, attributes = operands.partition(" dim=")
            reductions.append(_with_tensors(types.strip()))
            yield f'{match[1]} = "tt.{match[3]}"({values}) <{{axis = {attributes.split(" ")[0]} : i32}}> ({{'
        else:
            yield _ttir_operation(*match.groups()) + separator + location


def _ttir_operation(result: str | None, others: str, name: str, rest: str) -> str:
    if name == "entry":
        return f"tt.func public{_with_tensors(rest.partition(' optimization_hints=')[0]).rstrip(' {')} {{"
    opcode = _OPERATIONS.get(name, f"cuda_tile.{name}")
    if opcode == "scf.for":
        rest = rest.replace(" in (", " = ", 1).replace(", step ", " step ", 1).replace(") : ", " : ", 1)
        rest = rest.replace("iter_values(", "iter_args(", 1)
    elif opcode == "tt.dot":
        rest = rest.replace(">, tile<", "> * tile<", 1).replace(">, tile<", "> -> tile<", 1)
    results = "" if result is None else f"{result}{others if name == 'get_tile_block_id' else ''} = "
    return results + opcode + _with_tensors(_VIEW.sub("!tt.tensordesc", rest))


def _with_tensors(text: str) -> str:
    return _TILE.sub(lambda tile: _tensor(*tile.groups()), text).removesuffix(", token").replace("-> token", "")


def _tensor(shape: str, pointee: str | None, element: str) -> str:
    element = f"!tt.ptr<{pointee}>" if pointee else element
    return f"tensor<{shape}{element}>" if shape else element
