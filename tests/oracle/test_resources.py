"""ptxas -v and cuobjdump -res-usage judge what is read of cubins; LLVM's text judges what is read of hsacos."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from saved import Saved, saved_kernels

from artifact_inspector.analysis.resources.usage import find_resources
from artifact_inspector.files.binaries import read_cubin, read_hsaco
from artifact_inspector.formats import format_of
from artifact_inspector.formats._resource_figures import amdgcn_figures, ptx_figures
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.text import SourceText

triton = pytest.importorskip("triton")
TOOLS = Path(triton.__file__).parent / "backends/nvidia/bin"
if not (TOOLS / "ptxas").is_file():
    pytest.skip("this Triton brings no ptxas", allow_module_level=True)

NVIDIA = [kernel for kernel in saved_kernels() if Stage.PTX in kernel.stages]
AMD = [kernel for kernel in saved_kernels() if "hsaco" in kernel.artifact.files]
SAID = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
TIGHT = 32
"""Registers per thread that make most kernels with matrix products spill."""


class Judged(NamedTuple):
    """A cubin and what ptxas said when it made it."""

    cubin: Path
    registers: int
    frame: int
    stores: int
    loads: int


def assembled(ptx: str, arch: str, folder: Path, *options: str) -> Judged:
    (folder / "kernel.ptx").write_text(ptx, encoding="utf-8")
    made = folder / "kernel.cubin"
    said = ""
    for tool in ("ptxas", "ptxas-blackwell"):  # the first may be too old for this PTX
        if not (TOOLS / tool).is_file():
            continue
        command = [TOOLS / tool, "-v", "--gpu-name", arch, *options, folder / "kernel.ptx", "-o", made]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        said = run.stdout + run.stderr
        if run.returncode == 0:
            break
    else:
        pytest.skip(f"no ptxas here takes it: {said.splitlines()[-1] if said else 'none'}")
    registers = re.search(r"Used (\d+) registers", said)
    sizes = SAID.search(said)
    assert registers is not None
    assert sizes is not None
    return Judged(made, int(registers[1]), *(int(size) for size in sizes.groups()))


def ptx_of(kernel: Saved) -> tuple[str, str]:
    text = kernel.text(Stage.PTX)
    return text, re.search(r"^\.target (\w+)", text, re.MULTILINE)[1]


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        *(
            pytest.param(kernel, (), id=f"{kernel.path}-free", marks=[pytest.mark.exhaustive] if number % 3 else [])
            for number, kernel in enumerate(NVIDIA)
        ),
        *(
            pytest.param(
                kernel,
                (f"-maxrregcount={TIGHT}",),
                id=f"{kernel.path}-tight",
                marks=[] if kernel.target == "sm_90" else [pytest.mark.long],
            )
            for kernel in NVIDIA
        ),
    ],
)
def test_registers_stack_and_spills_are_those_of_ptxas(kernel: Saved, options: tuple[str, ...], tmp_path: Path) -> None:
    ptx, arch = ptx_of(kernel)
    judged = assembled(ptx, arch, tmp_path, *options)
    target = parse_target(arch)
    found = find_resources(target, {}, binary=read_cubin(judged.cubin.read_bytes()))
    ours = (found.registers, found.scratch_bytes, found.spill_bytes, found.reload_bytes)
    assert tuple(figure.value for figure in ours) == judged[1:]
    usage = subprocess.run(
        [TOOLS / "cuobjdump", "-res-usage", judged.cubin], capture_output=True, text=True, check=True
    ).stdout
    printed = {key: int(size) for key, size in re.findall(r"\b(REG|STACK|SHARED):(\d+)", usage)}
    assert (printed["REG"], printed["STACK"]) == (judged.registers, judged.frame)
    # cuobjdump counts the 1 KiB of the system, which stands in files for sm_90 and later.
    system = 1024 if printed["SHARED"] and int(target.arch[3:]) >= 90 else 0
    assert found.static_shared.value == printed["SHARED"] - system
    assert found.contradictions == ()


def test_some_of_the_kernels_spill(tmp_path: Path) -> None:
    spilling = [kernel for kernel in NVIDIA if kernel.kernel == "register_spill"]
    assert spilling
    for kernel in spilling:
        judged = assembled(*ptx_of(kernel), tmp_path)
        assert judged.stores > 100
        assert judged.loads > 100


# An array that is indexed at run time, so that it stays in memory, with values alive across it.
ARRAY = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry k(.param .u64 x)
{
  .local .align 4 .b8 array[256];
  .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<LIVE>;
  ld.param.u64 %d1, [x];
  ld.global.b32 %r1, [%d1];
  ld.global.b32 %r2, [%d1+4];
LOADS
  mov.u64 %d2, array;
  and.b32 %r3, %r1, 63;
  mul.wide.u32 %d3, %r3, 4;
  add.u64 %d4, %d2, %d3;
  and.b32 %r6, %r2, 63;
  mul.wide.u32 %d5, %r6, 4;
  add.u64 %d6, %d2, %d5;
  st.local.b32 [array+24], %r1;
  st.local.b32 [%d4], %r2;
  ld.local.b32 %r4, [%d6];
  ld.local.b32 %r5, [array+24];
  add.s32 %r4, %r4, %r5;
  st.global.b32 [%d1], %r4;
STORES
  ret;
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("live", [4, 60])
def test_spills_are_told_from_an_array_in_local_memory(arch: str, live: int, tmp_path: Path) -> None:
    loads = "\n".join(f"  ld.volatile.global.f32 %f{n}, [%d1+{4 * n + 64}];" for n in range(live))
    stores = "\n".join(f"  st.volatile.global.f32 [%d1+{4 * n + 640}], %f{n};" for n in range(live))
    ptx = ARRAY.replace("LIVE", str(live)).replace("LOADS", loads).replace("STORES", stores)
    judged = assembled(ptx, arch, tmp_path, f"-maxrregcount={TIGHT}")
    assert judged.frame > 0
    assert (judged.stores > 0) == (live > TIGHT)
    cubin = read_cubin(judged.cubin.read_bytes())
    found = find_resources(
        parse_target(arch), {}, ptx=ptx_figures(Module(Stage.PTX, "k", (), {"local": "256"})), binary=cubin
    )
    assert (found.spill_bytes.value, found.reload_bytes.value) == (judged.stores, judged.loads)
    assert find_resources(parse_target(arch), {}, binary=cubin).spill_bytes.value is None


@pytest.mark.parametrize("kernel", AMD, ids=lambda kernel: kernel.path)
def test_the_note_of_a_saved_hsaco_says_what_its_text_says(kernel: Saved) -> None:
    same_figures(kernel.text(Stage.AMDGCN), Path(kernel.artifact.files["hsaco"]).read_bytes(), kernel.target)


@pytest.mark.long
@pytest.mark.parametrize(
    "arch",
    [
        "gfx90a",
        *(pytest.param(arch, marks=pytest.mark.exhaustive) for arch in ("gfx942", "gfx950", "gfx1100", "gfx1250")),
    ],
)
def test_the_note_of_a_compiled_hsaco_says_what_its_text_says(arch: str, tmp_path: Path) -> None:
    from artifact_inspector.compiling import compile_reference

    (result,) = compile_reference(["matmul_square"], [arch], tmp_path)
    (text,), (binary,) = result.directory.glob("*.amdgcn"), result.directory.glob("*.hsaco")
    same_figures(text.read_text(encoding="utf-8"), binary.read_bytes(), arch)


def same_figures(text: str, binary: bytes, arch: str) -> None:
    module = format_of(Stage.AMDGCN).parse(SourceText("kernel.amdgcn", text), Stage.AMDGCN)
    attributes, figures = module.attributes, amdgcn_figures(module)
    note = read_hsaco(binary)
    target = parse_target(arch)
    assert note.target is not None
    assert note.target.arch == target.arch
    said = {key: int(value) for key, value in attributes.items() if key in note.figures}
    assert {"vgpr_count", "sgpr_count", "vgpr_spill_count", "max_flat_workgroup_size"} <= said.keys()
    assert said == {key: note.figures[key] for key in said}
    by_text, by_note = find_resources(target, {}, amdgcn=figures), find_resources(target, {}, binary=note)
    assert by_text.registers.value == by_note.registers.value
    assert by_text.spill_bytes.value == by_note.spill_bytes.value
    assert find_resources(target, {}, amdgcn=figures, binary=note).contradictions == ()
