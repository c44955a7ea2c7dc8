"""Counts of events by grep alone: line patterns written from the languages' manuals.

Nothing here knows the package. A line is reduced to its opcode (comment, result, guard and label
taken off, inline assembly split into its statements) and the opcode is held against one pattern a
kind; the first that fits counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

KINDS = (
    "global_load",
    "async_copy",
    "commit",
    "wait",
    "shared_load",
    "shared_store",
    "matrix",
    "float",
    "barrier",
    "layout_conversion",
    "global_store",
    "atomic",
)


def count(stage: str, text: str) -> dict[str, int]:
    """Events of each kind in a file of a stage."""
    opcodes, patterns = {
        "ttir": (mlir_opcodes, MLIR),
        "ttgir": (mlir_opcodes, MLIR),
        "llir": (llvm_opcodes, LLVM),
        "ptx": (ptx_opcodes, PTX),
        "amdgcn": (amdgcn_opcodes, AMDGCN),
        "sass": (sass_opcodes, SASS),
    }[stage]
    found: Counter[str] = Counter()
    further: Counter[str] = Counter()
    for opcode, times in Counter(opcodes(text)).items():
        kind = next((kind for kind, pattern in patterns.items() if re.match(pattern, opcode)), None)
        if kind is not None:
            found[kind] += times
        further.update({name: times for name, pattern in FURTHER.items() if re.match(pattern, opcode)})
    return {kind: found[kind] for kind in KINDS} | further


_MACHINE_SWAP = r"(global|flat|buffer)_atomic_cmpswap|ATOMG?\.\S*CAS"
FURTHER = {
    "ldmatrix": r"(asm )?ldmatrix\.|llvm\.nvvm\.ldmatrix|LDSM\b",
    "compare_and_swap": rf"tt\.atomic_cas|cmpxchg|(asm )?atom\.\S*\bcas\b|{_MACHINE_SWAP}",
    "expandable_atomic": r"atomicrmw|(asm )?(atom|red)\.\S*\bb?f16",
    "compare_and_swap_loop": _MACHINE_SWAP,
}
"""Counts of files that have any. No fixture has a lock, so all compare-and-swaps are in loops that compilers made."""


# -- TTIR, TTGIR: dialects of Triton -----------------------------------------------------------

MLIR = {
    "async_copy": r"\w+\.(insert_slice_async|async_copy_global_to_local|async_tma_copy_global_to_local"
    r"|async_tma_gather|buffer_load_to_local)\b",
    "global_load": r"(tt\.(descriptor_)?load|\w+\.buffer_load|tt\.descriptor_gather)\b",
    "commit": r"\w+\.(async_commit_group|barrier_expect|tc_gen5_commit)\b",
    "wait": r"\w+\.(async_wait|wait_barrier|\w+_dot_wait|dot_wait|async_tma_store_wait)\b",
    "shared_load": r"\w+\.local_load\b",
    "shared_store": r"\w+\.local_store\b",
    "matrix": r"(tt\.dot(_scaled)?|\w+\.(warp_group_dot|dot_async|tc_gen5_mma(_scaled)?))$",
    "float": r"(arith\.(add|sub|mul|div|rem|neg|cmp|max|min|maxnum|minnum|maximum|minimum)f"
    r"|math\.(exp2?|log2?|sqrt|rsqrt|sin|cos|tanh|erf|fma|absf|floor|ceil)|tt\.extern_elementwise"
    r"|tt\.(reduce|scan) over (?!1$)\d+|tt\.(precise_\w+|clampf)|tt\.elementwise_inline_asm of floats)$",
    "barrier": r"(gpu\.barrier|ttg\.(local_)?barrier|rocdl\.(s\.)?barrier)$",
    "layout_conversion": r"\w+\.convert_layout$",
    "global_store": r"(tt\.(descriptor_)?store|\w+\.buffer_store|\w+\.async_tma_copy_local_to_global)$",
    "atomic": r"(tt\.atomic_(rmw|cas)|\w+\.buffer_atomic_rmw|tt\.descriptor_reduce)$",
}


def mlir_opcodes(text: str) -> Iterator[str]:
    """Operations; the body of a reduction is part of it, and the length of its axis stands behind it."""
    reduction = axis = None
    for line in text.splitlines():
        line = line.strip()
        if reduction is not None:
            closing = re.match(r"\}\) .*?tensor<([\dx]+)x", line) if line.startswith("})") else None
            if closing is not None:
                yield f"{reduction} over {closing[1].split('x')[int(axis or 0)]}"
                reduction = None
            continue
        found = re.match(r'(?:%[^=]*=\s*)?"?([a-z_]\w*\.[\w.]+)"?', line)
        if found is None or line.startswith(("#", "//", "module")):
            continue
        if line.endswith("({"):
            reduction, axis = found[1], re.search(r"axis = (\d+)", line)[1]
        elif found[1] == "tt.elementwise_inline_asm":
            yield found[1] + (" of floats" if re.search(r"\b(fma|mul|add|ex2|rcp)\.\S*f\d", line) else "")
        else:
            yield found[1]


# -- LLVM IR -----------------------------------------------------------------------------------

LLVM = {
    "async_copy": r"(asm )?(cp\.async\.c[ag]\b|cp\.async\.bulk\.tensor\.\dd\.shared::\w+\.global"
    r"|llvm\.amdgcn\.(global\.load(\.async)?|raw\.ptr\.buffer\.load(\.async)?)\.(to\.)?lds)",
    "commit": r"(asm )?(llvm\.nvvm\.)?(cp\.async\.(bulk\.)?commit.group|wgmma\.commit.group|tcgen05\.commit"
    r"|mbarrier\.(arrive\.)?expect|cp\.async\.mbarrier\.arrive)|llvm\.amdgcn\.asyncmark",
    "wait": r"(asm )?(llvm\.nvvm\.)?(cp\.async\.(bulk\.)?wait.(group|all)|wgmma\.wait.group|tcgen05\.wait"
    r"|mbarrier\.(try|test).wait)|llvm\.amdgcn\.(s\.waitcnt vmcnt|wait\.asyncmark|s\.wait\.(load|async|tensor)cnt)",
    "global_load": r"load global|asm ld(\.[a-z]+)*\.global|llvm\.masked\.load\S* global"
    r"|llvm\.amdgcn\.raw\.ptr\.buffer\.load(?!\S*lds)",
    "shared_load": r"load shared|asm (ld(\.[a-z]+)*\.shared|ldmatrix)|llvm\.nvvm\.ldmatrix"
    r"|llvm\.amdgcn\.ds\.(read|load)|llvm\.masked\.load\S* shared",
    "shared_store": r"store shared|asm (st(\.[a-z]+)*\.shared|stmatrix)|llvm\.nvvm\.stmatrix"
    r"|llvm\.masked\.store\S* shared",
    "matrix": r"asm (mma\.sync|wgmma\.mma_async|tcgen05\.mma)|llvm\.amdgcn\.(s?mfmac?|s?wmmac?)",
    "global_store": r"store global|asm st(\.[a-z]+)*\.global|llvm\.masked\.store\S* global"
    r"|llvm\.amdgcn\.raw\.ptr\.buffer\.store|asm cp\.async\.bulk\.tensor\.\dd\.global",
    "atomic": r"atomicrmw|cmpxchg|asm (atom|red)\.|llvm\.amdgcn\.raw\.ptr\.buffer\.atomic",
    "barrier": r"llvm\.nvvm\.(barrier0|barrier\.cta\.sync|bar\.warp\.sync)|llvm\.amdgcn\.s\.barrier( |$)"
    r"|asm (bar|barrier)\.",
    "float": r"f(add|sub|mul|div|rem|neg|cmp)( |$)|llvm\.(fma|fmuladd|maxnum|minnum|maximum|minimum|exp2?|log2?"
    r"|sqrt|sin|cos|fabs|floor|ceil|copysign)\b|llvm\.vector\.reduce\.f|llvm\.nvvm\.(ex2|lg2|sqrt|rsqrt|rcp"
    r"|div|fma|fmax|fmin|redux\.sync\.f)|llvm\.amdgcn\.(exp2|log|sqrt|rsq|rcp|fdot|fmed3|fract|div)"
    r"|asm \w+(\.\w+)*\.(bf16|f16|f32|f64)(x2)?$",
}


def llvm_opcodes(text: str) -> Iterator[str]:
    """Instructions of function bodies; loads and stores with the space of their address."""
    inside = False
    for line in text.splitlines():
        inside = (inside or line.startswith("define ")) and not line.startswith("}")
        if not inside or not line.startswith("  "):
            continue
        line = re.sub(r"^\s*(%\S+ = )?((tail|musttail|notail) )?", "", line)
        assembly = re.search(r' asm (?:sideeffect )?(?:alignstack )?(?:inteldialect )?"([^"]*)"', line)
        word = line.partition(" ")[0]
        if assembly is not None:
            yield from (f"asm {opcode}" for opcode in _statements(re.sub(r"\\0[9AD]", "\n", assembly[1])))
        elif word in ("load", "store"):
            yield f"{word} {_space(line)}"
        elif word == "call":
            name = re.search(r"@([\w.]+)\(", line)
            called = name[1] if name is not None else "?"
            if called.startswith("llvm.masked"):
                called += f" {_space(line)}"
            elif called == "llvm.amdgcn.s.waitcnt":
                called += " vmcnt" if _counts_loads(int(re.search(r"i32 (-?\d+)", line)[1])) else ""
            yield called
        else:
            yield word


def _counts_loads(immediate: int) -> bool:
    """Whether gfx9's vmcnt (bits 3:0 and 15:14) is below its maximum, which waits for nothing."""
    return immediate & 0xC00F != 0xC00F


def _space(line: str) -> str:
    # A pointer may itself be what is loaded or stored; the address stands last.
    *_, number = re.findall(r"ptr(?: addrspace\((\d+)\))? ", line.partition("!")[0])
    return {"": "global", "1": "global", "3": "shared"}.get(number, "other")


def _statements(text: str) -> Iterator[str]:
    """First words of PTX statements, without guards and labels."""
    for statement in re.split(r"[;{}\n]", text):
        statement = re.sub(r"^\s*([\w$.]+:(?!:)\s*)*(@!?\s*[%$\w]+\s+)?", "", statement)
        word = statement.split()[0] if statement.split() else ""
        if re.match(r"[a-z]", word):
            yield word


# -- PTX ---------------------------------------------------------------------------------------

PTX = {
    "async_copy": r"cp\.async\.c[ag]\.|cp\.async\.bulk\.tensor\.\dd\.shared::\w+\.global",
    "commit": r"cp\.async\.(bulk\.)?commit_group|wgmma\.commit_group|tcgen05\.commit"
    r"|mbarrier\.arrive\.expect_tx|cp\.async\.mbarrier\.arrive",
    "wait": r"cp\.async\.(bulk\.)?wait_(group|all)|wgmma\.wait_group|tcgen05\.wait|mbarrier\.(try|test)_wait",
    "global_load": r"ld(\.[a-z]+)*\.global",
    "shared_load": r"ld(\.[a-z]+)*\.shared|ldmatrix\.",
    "shared_store": r"st(\.[a-z]+)*\.shared|stmatrix\.",
    "matrix": r"mma\.sync|wgmma\.mma_async|tcgen05\.mma",
    "global_store": r"st(\.[a-z]+)*\.global|cp\.async\.bulk\.tensor\.\dd\.global",
    "atomic": r"(atom|red)\.",
    "barrier": r"(bar|barrier)\.(sync|red|warp|cta)",
    "float": r"(add|sub|mul|mad|fma|div|min|max|neg|abs|set|setp|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh|redux)"
    r"(\.\w+)*\.(f16|bf16|f32|f64)(x2)?$",
}


def ptx_opcodes(text: str) -> Iterator[str]:
    """Statements of function bodies; debug sections and comments are cut off first."""
    text = re.sub(r"//[^\n]*", "", text.partition("\n\t.section")[0])
    yield from _statements(text)


# -- AMDGCN ------------------------------------------------------------------------------------

_ARITHMETIC = (
    "add|sub|subrev|mul|fmac?|fmaak|fmamk|mac|max3?|min3?|med3|maximum3?|minimum3?|rcp|rcp_iflag|rsq|sqrt|exp"
    "|log|sin|cos|ldexp|div_scale|div_fmas|div_fixup|trunc|floor|ceil|rndne|fract|fma_mix|fma_mixlo|fma_mixhi"
)
AMDGCN = {
    "async_copy": r"(global|buffer)_load_lds|(global|buffer)_load_\w+ .*\blds$|\w+_load_async_to_lds|tensor_load_to",
    "commit": r"(?!)",
    "wait": r"s_waitcnt .*\bvmcnt|s_wait_(load|async|tensor)cnt",
    "global_load": r"(global|flat|buffer)_load_",
    "shared_load": r"ds_(read|load)",
    "shared_store": r"ds_(write|store)",
    "matrix": r"v_s?(mfma|mfmac|wmma|wmmac)_",
    "global_store": r"(global|flat|buffer)_store_",
    "atomic": r"(global|flat|buffer)_atomic_|ds_(add|max|min|cmpst)",
    "barrier": r"s_barrier( |$)|s_barrier_wait",
    "float": rf"v_(dual_)?(pk_)?({_ARITHMETIC})(_legacy)?_b?f(16|32|64)|v_cmpx?_\w+_b?f(16|32|64)|v_dot\d",
}


def amdgcn_opcodes(text: str) -> Iterator[str]:
    """Instructions with their operands; a dual-issue line holds two."""
    is_code = True
    for line in text.splitlines():
        line = line.partition(";")[0].strip()
        if line.startswith((".text", ".section", ".rodata")):
            is_code = ".text" in line
        elif is_code and re.match(r"[a-z]+_\w+|exp |s_", line):
            yield from (part.strip() for part in line.split(" :: "))


# -- SASS ---------------------------------------------------------------------------------------

SASS = {
    "async_copy": r"LDGSTS|UTMALDG|UBLKCP",
    "global_load": r"LDG\b|LD\b",
    "commit": r"LDGDEPBAR",
    "wait": r"DEPBAR|SYNCS\.PHASECHK|WARPGROUP\.DEPBAR",
    "shared_load": r"LDSM?\b",
    "shared_store": r"STSM?\b",
    "matrix": r"[HIDQO]G?MMA|UTC\w*MMA",
    "barrier": r"BAR\.",
    "global_store": r"STG?\b",
    "atomic": r"RED|ATOM",
    # `HADD2.F32 R, -RZ, R.H0_H0` converts, `HFMA2.MMA R, -RZ, RZ, 1, 1` sets a constant
    "float": r"(?!(HADD2\.F32|HFMA2)\S* .*-RZ)"
    r"(F(ADD|MUL|FMA|MNMX3?|SETP?|CHK|SWZADD)2?\b|MUFU|D(ADD|MUL|FMA|SETP)|H(ADD|MUL|FMA|SETP?|MNMX)2)",
}


def sass_opcodes(text: str) -> Iterator[str]:
    """Instructions with their operands, without their predicate."""
    for line in text.splitlines():
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z].*?);", line)
        if found is not None:
            yield found[1].strip()
