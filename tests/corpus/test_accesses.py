"""Widths, masks and policies of every saved kernel, held against patterns over the raw text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from saved import Saved, each_stage, saved, saved_kernels

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses, count_accesses, find_accesses
from artifact_inspector.analysis.access.axis_analysis import AxisAnalysis
from artifact_inspector.analysis.access.bounds_checks import CheckKind, find_bounds_checks
from artifact_inspector.analysis.access.cache_policies import find_policies
from artifact_inspector.analysis.access.load_widths import LoadWidth, NarrowReason, explain_widths
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.rounds import LOADS
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage

KERNELS = saved_kernels()
LOWERED = (Stage.LLIR, Stage.PTX, Stage.AMDGCN)

# -- by pattern alone ----------------------------------------------------------------------------

# `ld` of global or of no state space (PTX ISA 9.7.9.8); a vector of n words of b bits is n·b/8 bytes.
PTX_LOAD = re.compile(
    r"(?:^|[;\s])ld(?!\.param|\.shared|\.local|\.const|matrix)[\w.:]*?(?:\.v(\d))?\.[busf](\d+)\s*[{%]", re.M
)
PTX_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global[^;]*?\], *(?:\[[^\]]*\], *)?(0x[0-9a-f]+|\d+)")
ASM_LOAD = re.compile(r"(?:^|[;\s])ld\.[\w.:]*?(?:\.v(\d))?\.b(\d+) [{$]")
AMD_LOAD = re.compile(r"^\t(?:global|flat|buffer)_load_((?:lds_)?\w+) (.*)$", re.M)
AMD_BYTES = {
    **dict.fromkeys(("ubyte", "sbyte", "u8", "i8", "ubyte_d16", "ubyte_d16_hi", "d16_u8", "d16_hi_u8"), 1),
    **dict.fromkeys(("sbyte_d16", "sbyte_d16_hi", "d16_i8", "d16_hi_i8"), 1),
    **dict.fromkeys(("ushort", "sshort", "u16", "i16", "short_d16", "short_d16_hi", "d16_b16", "d16_hi_b16"), 2),
    **dict.fromkeys(("dword", "b32"), 4),
    **dict.fromkeys(("dwordx2", "b64"), 8),
    **dict.fromkeys(("dwordx3", "b96"), 12),
    **dict.fromkeys(("dwordx4", "b128"), 16),
}
LLVM_LOAD = re.compile(
    r"= (?:tail call )?(?:load (?:volatile )?(?:<(\d+) x )?(half|bfloat|float|double|i\d+)>?, ptr(?: addrspace\(1\))? %"
    r"|[^=@]*@llvm\.(?:masked\.load|amdgcn\.raw\.ptr\.buffer\.load)\.(?:v(\d+))?(bf|[fi])(\d+))"
)
LLVM_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def widths(stage: Stage, text: str) -> Iterator[int]:
    """Bytes per thread of every load and copy."""
    if stage is Stage.PTX:
        text = re.sub(r"//[^\n]*", "", text)
        for words, bits in PTX_LOAD.findall(text):
            yield int(words or 1) * int(bits) // 8
        for size in PTX_COPY.findall(text):
            yield int(size, 0)
    elif stage is Stage.AMDGCN:
        for name, operands in AMD_LOAD.findall(text):
            if "Folded Reload" not in operands:
                yield AMD_BYTES[name.removeprefix("lds_")]
    else:
        for line in text.split("\n"):
            yield from assembly_widths(line) if "asm sideeffect" in line else llvm_widths(line)


def assembly_widths(line: str) -> Iterator[int]:
    """Of PTX in a line of LLVM IR."""
    template = line[line.index('"') : line.index('", "')].replace("\\0A\\09", "\n").replace('"', "\n")
    for words, bits in ASM_LOAD.findall(template):
        if ".shared" not in template or "ld.global" in template:
            yield int(words or 1) * int(bits) // 8
    for size in PTX_COPY.findall(template):
        yield int(size, 0)


def llvm_widths(line: str) -> Iterator[int]:
    for count, name, vector, _, bits in LLVM_LOAD.findall(line):
        size = int(bits) if bits else LLVM_BITS.get(name) or int(name[1:])
        yield int(count or vector or 1) * size // 8
    if "amdgcn" in line and ".lds(" in line and "call" in line and "declare" not in line:
        yield int(re.findall(r"i32 (\d+)", line)[0])


def own_loads(stage: Stage, text: str) -> Counter[int]:
    """Of compare-and-swap loops: each loads the old value once, before its first try. They belong to the atomic."""
    swaps = re.findall(r"^\s+(?:global|flat|buffer)_atomic_cmpswap(_x2|_b64)?(?:_b32)?\b", text, re.M)
    return Counter(8 if wide else 4 for wide in swaps) if stage is Stage.AMDGCN else Counter()


# -- by the package ------------------------------------------------------------------------------


def stages(kernel: Saved, stage: Stage) -> list[StageAccesses]:
    language, module = format_of(stage), kernel.module(stage)
    found = []
    for function in module.functions:
        code = FunctionCode(function, module, language)
        found.append(StageAccesses(code, find_accesses(code)))
    return found


def explained(kernel: Saved) -> tuple[LoadWidth, ...]:
    first, last = stages(kernel, kernel.stages[0])[0], stages(kernel, kernel.stages[-1])[0]
    layouts = stages(kernel, Stage.TTGIR)[0]
    return explain_widths(first, last, layouts, first.code.function.divisibility)


def proven(first: StageAccesses, access: MemoryAccess) -> int | None:
    """Bytes that may be loaded at once by what is proven of address and mask; None for scalars and tiles."""
    instruction = first.code.function.instructions[access.index]
    assert first.code.language.access_operands is not None
    roles, types = (
        first.code.language.access_operands(instruction),
        first.code.language.tensor_types(instruction, first.code.module),
    )
    if len(roles.address) != 1 or not types:
        return None
    flow = AxisAnalysis(first.code, first.code.function.divisibility)
    size = types[0].bits // 8
    address, mask = (
        None if value is None else flow.axes(value)
        for value in (flow.value_read(access.index, name) for name in (*roles.address, *roles.mask, "")[:2])
    )
    assert address is not None
    axis = max(range(address.rank), key=lambda d: (address.contiguity[d], types[0].shape[d] > 1, d))
    limit = min(address.contiguity[axis] * size, address.divisibility[axis])
    return max(size, limit if mask is None else min(limit, mask.constancy[axis] * size))


@each_stage(KERNELS, *LOWERED)
def test_widths_are_those_in_the_text(kernel: Saved, stage: Stage) -> None:
    found = count_accesses([access for part in stages(kernel, stage) for access in part.accesses])
    assert None not in found.loads | found.copies
    text = kernel.text(stage)
    assert Counter(found.load_widths) == Counter(widths(stage, text)) - own_loads(stage, text)


@each_stage(KERNELS, *LOWERED)
def test_what_decides_an_access_is_an_instruction_before_it_or_a_branch(kernel: Saved, stage: Stage) -> None:
    for part in stages(kernel, stage):
        for access in part.accesses:
            assert access.guard_index is None or access.is_predicated
            assert access.guard_index != access.index


@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if k.target.startswith("sm_") and k.kernel != "noinline_helper"], ids=lambda k: k.path
)
def test_no_load_is_wider_than_what_is_proven(kernel: Saved) -> None:
    # Triton's own analysis decides the width on NVIDIA, and no later pass joins loads there: one that is
    # wider than what is proven here means that a rule is missing. (A helper that is not inlined gets what
    # is known of its arguments from its callers.)
    first, last = stages(kernel, kernel.stages[0])[0], stages(kernel, kernel.stages[-1])[0]
    for access in first.accesses:
        limit = proven(first, access) if access.kind in LOADS else None
        if limit is not None:
            found = (there.width for there in last.accesses_at(access) if there.kind in LOADS)
            assert all(width is None or width <= limit for width in found)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.path)
def test_every_narrow_load_that_is_found_is_explained(kernel: Saved) -> None:
    assert all(load.causes for load in explained(kernel) if load.width is not None and load.width < 16)


@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_columns_of_unknown_alignment_are_loaded_one_by_one(target: str) -> None:
    # fixtures/sources/unaligned_columns.py: the address holds row · stride, the mask compares with cols,
    # and nothing is known of x_ptr, stride or cols: each alone allows one element of 2 bytes.
    (found,) = explained(saved(f"3.6.0/{target}/unaligned_columns"))
    assert found.width == 2
    assert {(cause.reason, cause.name) for cause in found.causes} == {
        (NarrowReason.UNALIGNED, "x_ptr"),
        (NarrowReason.UNALIGNED, "stride"),
        (NarrowReason.MASK, "cols"),
    }


@pytest.mark.parametrize(
    ("target", "lost"),
    [
        # NVIDIA has a word for each; AMD's has a bit for `cg` and none for the eviction policies.
        ("sm_80", {}),
        ("gfx942", {"a": "evict_first", "b": "evict_last"}),
    ],
)
def test_policies_of_the_program_are_found_again_or_lost(target: str, lost: dict[str, str]) -> None:
    kernel = saved(f"3.6.0/{target}/cache_policy")
    first, last = stages(kernel, Stage.TTIR)[0], stages(kernel, kernel.stages[-1])[0]
    found = find_policies(first, last)
    assert [policy.requested for policy in found] == [("evict_first",), ("evict_last",), ("cg",), ("cs",)]
    assert [word for policy in found for word in policy.lost] == list(lost.values())


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.kernel == "masked_add"], ids=lambda k: k.path)
def test_a_masked_kernel_compares_once_at_tensor_level_and_guards_everything(kernel: Saved) -> None:
    # fixtures/sources/masked_add.py: one compare makes the mask of every access.
    (first,) = stages(kernel, Stage.TTIR)
    checks = find_bounds_checks(first.code, first.accesses)
    assert [item.kind for item in checks] == [CheckKind.COMPARE]
    (last,) = stages(kernel, kernel.stages[-1])
    assert all(access.is_predicated or access.is_mask_folded for access in last.accesses)
    assert find_bounds_checks(last.code, last.accesses)
