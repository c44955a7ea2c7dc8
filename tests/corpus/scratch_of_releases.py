"""What releases of Triton take of shared memory for single operations: their own allocator asked, and written down.

    PYTHON_OF_A_RELEASE tests/corpus/scratch_of_releases.py

Each operation is a module of its own, given to the allocation pass; what the pass writes as `ttg.shared` is what
the operation takes. Operations are drawn at random, with a seed, from the layouts of a target. `scratch_of_releases.json`
lists them, and under the name of each release that was asked what each of them takes; `null` where it refuses the
module, or reads a layout in it otherwise. Needs nothing but Triton; no GPU.
"""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

BLOCKED = "#ttg.blocked<{{sizePerThread = {}, threadsPerWarp = {}, warpsPerCTA = {}, order = {}}}>"
MMA = "#ttg.nvidia_mma<{{versionMajor = {}, versionMinor = 0, warpsPerCTA = {}, instrShape = {}}}>"


HERE = Path(__file__).parent


class Target(NamedTuple):
    """A GPU, its lanes, and the layouts that it has: of two axes, and of one."""

    name: str
    lanes: int
    planes: tuple[str, ...]
    lines: tuple[str, ...]


def operands(parents: tuple[str, ...], *widths: int) -> tuple[str, ...]:
    return tuple(
        f"#ttg.dot_op<{{opIdx = {side}, parent = {parent}, kWidth = {width}}}>"
        for parent in parents
        for side in (0, 1)
        for width in widths
    )


def target(
    name: str, lanes: int, blocked: tuple[str, ...], results: tuple[str, ...], others: tuple[str, ...]
) -> Target:
    planes = (*blocked, *results, *others)
    return Target(
        name,
        lanes,
        planes,
        (
            f"#ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [{lanes}], warpsPerCTA = [4], order = [0]}}>",
            f"#ttg.blocked<{{sizePerThread = [4], threadsPerWarp = [{lanes}], warpsPerCTA = [4], order = [0]}}>",
            *(f"#ttg.slice<{{dim = {dim}, parent = {parent}}}>" for parent in planes for dim in (0, 1)),
        ),
    )


OF_32 = (
    BLOCKED.format([1, 8], [8, 4], [4, 1], [1, 0]),
    BLOCKED.format([1, 1], [1, 32], [4, 1], [1, 0]),
    BLOCKED.format([1, 4], [4, 8], [2, 2], [1, 0]),
    BLOCKED.format([8, 1], [4, 8], [1, 4], [0, 1]),
    BLOCKED.format([4, 4], [8, 4], [4, 1], [0, 1]),
    BLOCKED.format([2, 2], [2, 16], [1, 4], [1, 0]),
)
OF_64 = (
    BLOCKED.format([1, 8], [16, 4], [4, 1], [1, 0]),
    BLOCKED.format([4, 4], [8, 8], [2, 2], [1, 0]),
    BLOCKED.format([1, 1], [1, 64], [4, 1], [1, 0]),
    BLOCKED.format([4, 1], [8, 8], [1, 4], [0, 1]),
)
AMPERE = tuple(MMA.format(2, warps, [16, 8]) for warps in ([2, 2], [4, 1], [1, 4]))
HOPPER = (MMA.format(3, [4, 1], [16, 32, 16]), MMA.format(3, [4, 1], [16, 64, 16]))
LINEAR = {
    (64, 32): "#ttg.linear<{register = [[0, 1], [0, 2], [32, 0], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0],"
    " [4, 0]], warp = [[8, 0], [16, 0]], block = []}>",
    (32, 32): "#ttg.linear<{register = [[1, 0], [0, 16], [16, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 1], [0, 2]],"
    " warp = [[0, 4], [0, 8]], block = []}>",
    (16, 16): "#ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4]],"
    " warp = [[0, 0], [0, 8]], block = []}>",
}
"""Such a layout is that of one shape."""
MFMA = tuple(
    f"#ttg.amd_mfma<{{version = 3, warpsPerCTA = {warps}, instrShape = {shape}, isTransposed = {turned}}}>"
    for shape in ("[32, 32, 8]", "[16, 16, 16]")
    for warps, turned in (([2, 2], "true"), ([4, 1], "false"), ([1, 4], "true"))
)
WMMA = tuple(
    f"#ttg.amd_wmma<{{version = {{}}, isTranspose = {turned}, warpsPerCTA = {warps}}}>"
    for turned in ("false", "true")
    for warps in ([2, 2], [4, 1])
)
OLD_WMMA, NEW_WMMA = (tuple(layout.replace("{}", version) for layout in WMMA) for version in "12")
TARGETS = (
    target("cuda:80", 32, OF_32, AMPERE, operands(AMPERE[:2], 1, 2, 4)),
    target("cuda:90", 32, OF_32, (*HOPPER, AMPERE[0]), operands(HOPPER[:1], 2)),
    target("hip:gfx942", 64, OF_64, MFMA, operands(MFMA, 4, 8)),
    target("hip:gfx1100", 32, OF_32[:4], OLD_WMMA, operands(OLD_WMMA, 16)),
    target("hip:gfx1200", 32, OF_32[:4], NEW_WMMA, operands(NEW_WMMA, 8)),
)
SHAPES = ((128, 64), (64, 32), (32, 32), (16, 16), (8, 128), (64, 1))
ELEMENTS = ("f16", "f32", "i8", "i1", "f64", "!tt.ptr<f16>")


class Operation(NamedTuple):
    """One operation, as a row of the table without what it takes."""

    target: str
    lanes: int
    kind: str
    shape: tuple[int, ...]
    elements: tuple[str, ...]
    layouts: tuple[str, ...]
    axis: int

    def text(self) -> str:
        """The module."""
        types = [f"tensor<{'x'.join(map(str, (*self.shape, e)))}, {self.layouts[0]}>" for e in self.elements]
        names = [f"%x{number}" for number in range(len(types))]
        arguments = ", ".join(map("{}: {}".format, names, types))
        body = getattr(self, f"_{self.kind}")(types, names)
        header = f'"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "{self.target}"'
        header += f', "ttg.threads-per-warp" = {self.lanes} : i32'
        return f"module attributes {{{header}}} {{\ntt.func public @k({arguments}) {{\n{body}\ntt.return\n}}\n}}\n"

    def _convert(self, types: list[str], _: list[str]) -> str:
        return f"%y = ttg.convert_layout %x0 : {types[0]} -> {types[0].replace(*self.layouts)}"

    def _reduce(self, types: list[str], names: list[str]) -> str:
        left = [str(extent) for axis, extent in enumerate(self.shape) if axis != self.axis]
        cut = f"#ttg.slice<{{dim = {self.axis}, parent = {self.layouts[0]}}}>"
        results = [f"tensor<{'x'.join([*left, e])}, {cut}>" if left else e for e in self.elements]
        return self._region("reduce", f"axis = {self.axis} : i32", types, names, results)

    def _scan(self, types: list[str], names: list[str]) -> str:
        return self._region("scan", f"axis = {self.axis} : i32, reverse = false", types, names, types)

    def _region(self, name: str, attributes: str, types: list[str], names: list[str], results: list[str]) -> str:
        inner = [f"%{side}{number}: {e}" for side in "ab" for number, e in enumerate(self.elements)]
        back = ", ".join(f"%a{number}" for number in range(len(types)))
        many = f"%y:{len(types)}" if len(types) > 1 else "%y"
        result = f"({', '.join(results)})" if len(types) > 1 else results[0]
        return (
            f'{many} = "tt.{name}"({", ".join(names)}) <{{{attributes}}}> ({{\n^bb0({", ".join(inner)}):\n'
            f"tt.{name}.return {back} : {', '.join(self.elements)}\n}}) : ({', '.join(types)}) -> {result}"
        )


def drawn(seed: int, count: int) -> list[Operation]:
    """Operations at random, as many of each target."""
    chance = random.Random(seed)
    found = []
    for gpu in TARGETS:
        for _ in range(count):
            kind = chance.choice(("convert", "convert", "convert", "reduce", "reduce", "scan"))
            plane = chance.random() < 0.75
            shape = chance.choice(SHAPES) if plane else (chance.choice((512, 64, 16)),)
            known = [layout for layout in (gpu.planes if plane else gpu.lines) if is_filled(layout, shape)]
            if gpu.lanes == 32 and shape in LINEAR:
                known.append(LINEAR[shape])
            layouts = chance.sample(known, 2 if kind == "convert" else 1)
            several = 2 if kind != "convert" and chance.random() < 0.25 else 1
            elements = tuple(chance.choices(ELEMENTS if kind == "convert" else ELEMENTS[:5], k=several))
            axis = chance.randrange(len(shape))
            found.append(Operation(gpu.name, gpu.lanes, kind, shape, elements, tuple(layouts), axis))
    return found


def is_filled(layout: str, shape: tuple[int, ...]) -> bool:
    """Whether a matrix instruction of this layout has no more than the tensor, as compilers choose them."""
    if "blocked" in layout:
        return True
    return min(shape) >= (64 if "versionMajor = 3" in layout else 32)


def spelled(text: str, release: tuple[int, ...]) -> str:
    """A module as a release spells it."""
    if release < (3, 3):
        text = re.sub(r"(?<=[#\"])ttg\.|\bttg\.(?=convert_layout|target)", "triton_gpu.", text)
    if release < (3, 4):
        text = re.sub(r"(?<=amd_mfma<{)version = 3", "versionMajor = 3, versionMinor = 0", text)
    if release < (3, 5):
        text = re.sub(r"(?<=instrShape = )\[(32|16), \1, \d+\]", r"[\1, \1]", text)
    if release >= (3, 7):
        text = re.sub(r"(isTranspose = \w+), warpsPerCTA = \[2, 2\]", rf"\1, ctaLayout = {SQUARE}", text)
        text = re.sub(r"(isTranspose = \w+), warpsPerCTA = \[4, 1\]", rf"\1, ctaLayout = {COLUMN}", text)
    return text


SQUARE, COLUMN = "{warp = [[0, 1], [1, 0]]}", "{warp = [[1, 0], [2, 0]]}"


def taken(library: Any, operation: Operation, release: tuple[int, ...]) -> int | None:
    """What the allocation pass of this release gives an operation."""
    context = library.ir.context()
    library.ir.load_dialects(context)
    library.nvidia.load_dialects(context)
    library.amd.load_dialects(context)
    with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
        file.write(spelled(operation.text(), release))
        file.flush()
        module = library.ir.parse_mlir_module(file.name, context)
    module.context = context
    layouts = re.findall(r"<({[^<>]*})>", spelled(" ".join(operation.layouts), release))
    if any(layout not in str(module) for layout in layouts):
        return None  # what a release does not know of a layout, it leaves out
    manager = library.ir.pass_manager(context)
    library.passes.convert.add_scf_to_cf(manager)
    vendor, _, name = operation.target.partition(":")
    if release < (3, 5):
        library.passes.ttgpuir.add_allocate_shared_memory(manager)
    elif vendor == "cuda":
        library.nvidia.passes.ttgpuir.add_allocate_shared_memory_nv(manager, int(name), 87)
    elif release < (3, 8):
        library.amd.passes.ttgpuir.add_allocate_shared_memory(manager)
    else:
        library.amd.passes.ttgpuir.add_allocate_shared_memory(manager, name)
    manager.run(module, "judge") if release >= (3, 6) else manager.run(module)
    found = re.search(r"\.shared = (\d+)", str(module))
    return None if found is None else int(found[1])


def ask(library: Any, operation: Operation, release: tuple[int, ...]) -> int | None:
    """The same in a process of its own: what a release cannot do, it may end the process for."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(writer, str(taken(library, operation, release)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return int(told) if told.isdigit() else None


def main() -> None:
    import triton
    from triton._C import libtriton

    release = tuple(map(int, triton.__version__.split("+")[0].split(".")))
    table = HERE / "scratch_of_releases.json"
    rows = json.loads(table.read_text(encoding="utf-8")) if table.exists() else {"operations": drawn(1, 80)}
    rows[triton.__version__] = [ask(libtriton, Operation(*map(whole, row)), release) for row in rows["operations"]]
    listed = ",\n".join(json.dumps(row) for row in rows["operations"])
    taken = ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in rows.items() if name != "operations")
    table.write_text(f'{{"operations": [\n{listed}\n],\n{taken}\n}}\n', encoding="utf-8")


def whole(value: Any) -> Any:
    """A list of a JSON file as a tuple."""
    return tuple(value) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
