"""What transfers move and matrix operations compute, held against patterns over the raw text.

The patterns are written from the manuals and know nothing of the package: one word of an opcode
gives a width, one word a shape.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

import grep
import pytest
from saved import Saved, each_stage, saved_kernels

from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Instruction, MatrixOp, Queue, Stage

KERNELS = saved_kernels()
MOVING = (EventKind.GLOBAL_LOAD, EventKind.GLOBAL_STORE, EventKind.ATOMIC, EventKind.ASYNC_COPY)
BELOW_TENSORS = (Stage.LLIR, Stage.PTX, Stage.AMDGCN)
SIZE_IS_ELSEWHERE = ("cp.async.bulk.tensor.", "tensor_", "llvm.amdgcn.tensor.")
"""The tile's extents stand in the descriptor (PTX ISA, tensor maps; LLVM AMDGPUUsage, D#)."""


def instructions(kernel: Saved, stage: Stage, *kinds: EventKind) -> Iterator[Instruction]:
    for function in kernel.module(stage).functions:
        yield from (x for x in function.instructions if x.kind in kinds)


def matrix_operations(kernel: Saved, stage: Stage) -> list[MatrixOp]:
    module, read = kernel.module(stage), format_of(stage).matrix
    found = [read(x, module) for f in module.functions for x in f.instructions if x.kind is EventKind.MATRIX]
    assert None not in found
    return [x for x in found if x is not None]


# -- by grep -------------------------------------------------------------------------------------

PTX_MOVES = r"(?:ld|st|atom|red)(?:\.[\w:]+)*\.global\S*|cp\.async\.c[ag]\S*"
LLVM_TYPES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "i1": 1}
LLVM_TYPES |= {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
AMDGCN_WORDS = {"ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2}
AMDGCN_WORDS |= {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
AMDGCN_WORDS |= {f"{letter}{bits}": bits // 8 for letter in "biu" for bits in (8, 16, 32, 64, 96, 128)}


def ptx_width(opcode: str, line: str) -> int:
    if opcode.startswith("cp.async"):
        size = re.search(r"\], (0x[0-9a-f]+|\d+)", line[line.index(opcode) :])
        return int(size[1], 0)
    vector, bits, packed = re.search(r"(?:\.v(\d))?(?:\.noftz)?\.b?[bfsu](\d+)(x2)?$", opcode).groups()
    return int(vector or 1) * int(bits) * (2 if packed else 1) // 8


def ptx_widths(text: str) -> Iterator[int]:
    for line in text.partition("\n\t.section")[0].split(";"):
        found = re.search(rf"(?<![\w.])(?:{PTX_MOVES})", re.sub(r"//[^\n]*", "", line))
        if found is not None:
            yield ptx_width(found[0], line)


def llvm_widths(text: str) -> Iterator[int]:
    for line in text.splitlines():
        line = line.partition(", !dbg")[0]
        if ' asm sideeffect "' in line:
            template = re.sub(r"\\0[9AD]", " ", line.split('"')[1])
            yield from ptx_widths(template)
            continue
        name = re.search(r"call .*@llvm\.(amdgcn\.\S*?|masked\.(?:load|store)\.\w+)(?:\.p\d)?\(", line)
        plain = re.match(r"  (?:%\S+ = )?(?:load|store) (?:atomic )?(?:volatile )?(?:<(\d+) x )?(\w+)>?", line)
        atomic = re.match(r"  %\S+ = (?:atomicrmw|cmpxchg) [^,]*, (?:<(\d+) x )?(\w+)>?", line)
        spaces = re.findall(r"ptr(?: addrspace\((\d+)\))? [%@]", line)
        if (plain or atomic) and spaces[-1] in ("", "1"):
            count, element = (plain or atomic).groups()
            yield int(count or 1) * LLVM_TYPES[element]
        elif name is not None and re.search(r"buffer\.(load|store|atomic)|global\.load|masked", name[1]):
            if name[1].endswith(".lds"):
                yield int(re.search(r"addrspace\(3\) [^,]*, i32 (\d+)", line)[1])
            elif ".to.lds.b" in name[1]:
                yield int(name[1].rpartition(".b")[2]) // 8
            else:
                count, element = re.search(r"\.(?:v(\d+))?([a-z]+\d+)$", name[1]).groups()
                yield int(count or 1) * LLVM_TYPES[element]


def amdgcn_widths(text: str) -> Iterator[int]:
    for opcode in grep.amdgcn_opcodes(text):
        found = re.match(r"(?:global|flat|buffer)_(load|store|atomic)_(\w+)", opcode)
        if found is None:
            continue
        if found[1] == "atomic":
            words = found[2].split("_")
            # cmpswap and add without a type have four bytes, with x2 eight; a packed type is two halves.
            bits = re.fullmatch(r"[a-wyz]+(\d+)", words[-1])
            yield 8 if words[-1] == "x2" else 4 if bits is None or "pk" in words else int(bits[1]) // 8
        else:
            yield next(AMDGCN_WORDS[word] for word in reversed(found[2].split("_")) if word in AMDGCN_WORDS)


WIDTHS = {Stage.PTX: ptx_widths, Stage.LLIR: llvm_widths, Stage.AMDGCN: amdgcn_widths}


# -- tests ---------------------------------------------------------------------------------------


@each_stage(KERNELS, *BELOW_TENSORS)
def test_bytes_of_threads_are_those_of_grep(kernel: Saved, stage: Stage) -> None:
    module, read = kernel.module(stage), format_of(stage).transfer
    found: Counter[int] = Counter()
    for instruction in instructions(kernel, stage, *MOVING):
        moved = read(instruction, module)
        if instruction.opcode.startswith(SIZE_IS_ELSEWHERE):
            assert moved is not None
            assert moved.bytes is None
            assert moved.is_per_block
        elif not instruction.opcode.startswith(("ds_", "llvm.amdgcn.ds.")):
            assert moved is not None
            assert moved.bytes is not None, instruction.text
            found[moved.bytes] += 1
    assert found == Counter(WIDTHS[stage](kernel.text(stage)))


@each_stage(KERNELS, Stage.TTIR, Stage.TTGIR)
def test_a_tile_has_a_size(kernel: Saved, stage: Stage) -> None:
    module, read = kernel.module(stage), format_of(stage).transfer
    for instruction in instructions(kernel, stage, *MOVING):
        moved = read(instruction, module)
        assert moved is not None
        assert moved.is_per_block
        tiles = re.findall(r"(?:tensor|memdesc|-> )<((?:\d+x)+)(?:!tt\.ptr<)?([a-z]+)(\d+)", instruction.text)
        # Masks and the barrier of a bulk copy are no data; of the others the smallest is what moves: a buffer
        # (2.x) holds several slices, and offsets are wider than what they point at.
        sizes = [
            elements(shape) * int(bits) // 8
            for shape, kind, bits in tiles
            if (kind, bits) != ("i", "1") and (shape, kind, bits) != ("1x", "i", "64")
        ]
        scalar = re.search(r"!tt\.ptr<[a-z]+(\d+)>|: [a-z]+(\d+)$", instruction.text)
        assert moved.bytes == (min(sizes) if sizes else int(scalar[1] or scalar[2]) // 8)


def elements(shape: str) -> int:
    return math.prod(map(int, shape.rstrip("x").split("x")))


@each_stage(KERNELS, *BELOW_TENSORS)
def test_shapes_of_matrix_operations_are_those_of_grep(kernel: Saved, stage: Stage) -> None:
    found = Counter((op.m, op.n, op.k) for op in matrix_operations(kernel, stage) if op.family != "tcgen05")
    text = kernel.text(stage).partition("\n\t.section\t.debug")[0]
    text = "\n".join(line for line in text.splitlines() if not line.startswith("declare"))
    named = re.findall(r"mma\S*\.m(\d+)n(\d+)k(\d+)\.", text)
    named += re.findall(r"@llvm\.amdgcn\.(?:s?mfmac?|s?wm+ac?)\S*?\.(\d+)x(\d+)x(\d+)", text)
    named += re.findall(r"^\s+v_(?:s?mfmac?|s?wm+ac?)\w*?_(\d+)x(\d+)x(\d+)", text, re.M)
    assert found == Counter(tuple(map(int, shape)) for shape in named)


@pytest.mark.parametrize("kernel", [pytest.param(k, id=k.path) for k in KERNELS if k.target == "sm_100"])
def test_products_of_tcgen05_add_up_to_the_dots_of_the_block(kernel: Saved) -> None:
    dots = sum(op.flop for op in matrix_operations(kernel, Stage.TTGIR))
    for stage in (Stage.LLIR, Stage.PTX):
        products = [op for op in matrix_operations(kernel, stage) if op.family == "tcgen05"]
        # The middle end may copy a loop's body, never a part of a dot.
        assert sum(op.flop for op in products) % max(dots, 1) == 0
        assert not products or dots


@pytest.mark.long
def test_every_family_of_matrix_operations_is_among_the_fixtures() -> None:
    families = {op.family for k in KERNELS for stage in k.stages for op in matrix_operations(k, stage)}
    assert families == {"dot", "mma", "wgmma", "tcgen05", "mfma", "wmma"}


def test_barriers_of_bulk_copies_are_those_that_are_waited_for() -> None:
    for kernel in saved_kernels(kernel="tma_warp_specialized"):
        for stage in (Stage.TTGIR, Stage.LLIR, Stage.PTX):
            module, language = kernel.module(stage), format_of(stage)
            copies = [language.transfer(x, module) for x in instructions(kernel, stage, EventKind.ASYNC_COPY)]
            waits = [language.wait(x, module) for x in instructions(kernel, stage, EventKind.WAIT)]
            assert copies
            assert all(x is not None and x.barrier is not None and "$" not in x.barrier for x in copies)
            assert all(x.barrier is not None for x in waits if x is not None and x.queue is Queue.PHASE)
