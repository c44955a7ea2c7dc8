"""Files that hold many of one thing, or one that is very long: names, constants, functions, figures, kernels."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator

from artifact_inspector.hardware.targets import EM_AMDGPU, EM_CUDA
from artifact_inspector.model import Stage
from tests.fuzz.generators import HEADS, TAILS, body_of, sass_line

__all__ = ["TABLES"]


def _many(head: str, unit: Callable[[int], str], tail: str = "") -> Callable[[int], str]:
    def made(size: int) -> str:
        return head + "".join(unit(n) for n in range(max(1, size // len(unit(9999))))) + tail

    return made


def _long(stage: Stage, text: str) -> Callable[[int], str]:
    """A file whose `NAME` is so long."""
    return lambda size: text.replace("NAME", "n" * (size // text.count("NAME")))


def _json(unit: Callable[[int], object], wrap: Callable[[list[object]], object]) -> Callable[[int], str]:
    def made(size: int) -> str:
        return json.dumps(wrap([unit(n) for n in range(max(1, size // (len(json.dumps(unit(9999))) + 2)))]))

    return made


def _elf(machine: int, sections: Iterator[tuple[str, int, int, bytes]]) -> bytes:
    """An ELF file of sections: name, kind, link, content."""
    rows, names, content = [struct.pack("<IIQQQQIIQQ", *[0] * 10)], b"\0", b""
    parts = [*sections, (".shstrtab", 3, 0, b"")]
    start, bodies = 64, []
    for name, kind, link, body in parts:
        at, names = len(names), names + name.encode() + b"\0"
        if name == ".shstrtab":
            body = names
        rows.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, start, len(body), link, 0, 4, 24 * (kind == 2)))
        bodies.append(body)
        start += len(body)
    content = b"".join(bodies)
    flags = 0x54C if machine == EM_AMDGPU else 0x500550
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, start, flags, 64, 0, 0, 64, len(rows), len(rows) - 1)
    return head + content + b"".join(rows)


def _packed(value: object) -> bytes:
    """MessagePack."""
    if isinstance(value, dict):
        pairs = b"".join(_packed(key) + _packed(one) for key, one in value.items())
        return struct.pack(">BI", 0xDF, len(value)) + pairs
    if isinstance(value, list):
        return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(_packed, value))
    if isinstance(value, str):
        return struct.pack(">BI", 0xDB, len(value)) + value.encode()
    return struct.pack(">Bi", 0xD2, value)


def _hsaco(size: int) -> bytes:
    """Notes of many kernels, of the AMD GPU's metadata."""
    kernels: list[object] = [{".name": f"k{n}", ".vgpr_count": n, ".args": [{".size": 8}]} for n in range(size // 60)]
    note = _packed({"amdhsa.kernels": kernels})
    content = struct.pack("<III", 7, len(note), 32) + b"AMDGPU\0\0" + note + b"\0" * (-len(note) % 4)
    return _elf(EM_AMDGPU, iter([(".note", 7, 0, content)]))


def _cubin(size: int) -> bytes:
    """One kernel of a long code with accesses to local memory."""
    info = struct.pack("<BBHI", 4, 0x0A, 4, 0)
    code = struct.pack("<QQ", 0x387 | 1 << 24 | 8 << 40, 4 << 9) * (size // 16)
    return _elf(EM_CUDA, iter([(".nv.info.k", 1, 0, info), (".text.k", 1, 0, code)]))


def _sections(size: int) -> bytes:
    """Many kernels, each with a section of its own; an ELF file has 65,280 at most."""
    info = struct.pack("<BBHI", 4, 0x0A, 4, 0)
    count = min(32_000, size // 160)
    pairs = ((f".nv.info.k{n}", f".text.k{n}") for n in range(count))
    each = ((name, 1, 0, content) for a, b in pairs for name, content in ((a, info), (b, b"\0" * 16)))
    return _elf(EM_CUDA, each)


_NUMBERS = "0x41, " * 16
_MEMDESC = "!ttg.memdesc<32x32xf16, #shared, #smem, mutable>"
_SHARED = "#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>\n#smem = #ttg.shared_memory\n"
_TTGIR = (
    f'{_SHARED}module attributes {{"ttg.num-warps" = 4 : i32}} {{\n  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {{\n'
)
_TT_END = TAILS[Stage.TTIR]
_BASELINE = "1"

TABLES: dict[str, tuple[str, Callable[[int], str | bytes]]] = {
    "ptx: functions": (
        "ptx",
        _many(
            ".version 8.0\n.target sm_80\n.address_size 64\n",
            lambda n: f".visible .entry k{n}(.param .u64 k_0)\n{{\n\tld.global.b32 \t%r1, [%rd1];\n\tret;\n}}\n",
        ),
    ),
    "ptx: labels": ("ptx", body_of(Stage.PTX, lambda n: f"$L__BB0_{n}:\n")),
    "ptx: registers, each used once": (
        "ptx",
        body_of(Stage.PTX, lambda n: f"\tadd.s32 \t%r{n + 1}, %r{n}, %r{n // 2};\n"),
    ),
    "ptx: declared registers": ("ptx", body_of(Stage.PTX, lambda n: f"\t.reg .b32 \t%r{n}<{n}>;\n")),
    "ptx: constants": ("ptx", lambda size: HEADS[Stage.PTX].replace(".visible", f".global .align 4 .b8 t[9] = {{{_NUMBERS * (size // 96)}}};\n.visible", 1) + TAILS[Stage.PTX]),
    "ptx: shared arrays": (
        "ptx",
        _many(
            ".version 8.0\n.target sm_80\n.address_size 64\n",
            lambda n: f".extern .shared .align 16 .b8 s{n}[4];\n",
            HEADS[Stage.PTX].partition("64\n")[2] + TAILS[Stage.PTX],
        ),
    ),
    "ptx: copies to many places of shared memory": (
        "ptx",
        body_of(
            Stage.PTX,
            lambda n: f"\tcp.async.cg.shared.global [ %r1 + {n} ], [ %rd1 + 0 ], 0x10, 0x10;\n\tcp.async.commit_group;\n"
            + ("\tcp.async.wait_group 3;\n" if n % 4 == 3 else ""),
        ),
    ),
    "ptx: a long name": ("ptx", _long(Stage.PTX, HEADS[Stage.PTX].replace("k(", "NAME(") + TAILS[Stage.PTX])),
    "ptx: a long operand": (
        "ptx",
        _long(Stage.PTX, f"{HEADS[Stage.PTX]}\tadd.s32 \tNAME, NAME, NAME;\n{TAILS[Stage.PTX]}"),
    ),
    "ptx: blanks in an operand": (
        "ptx",
        lambda size: f"{HEADS[Stage.PTX]}\tadd.s32 \t%r1,{' ' * size}%r2, %r3;\n{TAILS[Stage.PTX]}",
    ),
    "amdgcn: functions": (
        "amdgcn",
        _many(
            HEADS[Stage.AMDGCN].partition("\t.type")[0],
            lambda n: f"\t.type\tk{n},@function\nk{n}:\n\tglobal_load_dword v1, v[0:1], off\n\ts_endpgm\n.Lfunc_end{n}:\n",
        ),
    ),
    "amdgcn: labels": ("amdgcn", body_of(Stage.AMDGCN, lambda n: f".LBB0_{n}:\n")),
    "amdgcn: constants": (
        "amdgcn",
        lambda size: HEADS[Stage.AMDGCN] + TAILS[Stage.AMDGCN] + f"\t.long {_NUMBERS}1\n" * (size // 104),
    ),
    "amdgcn: symbols": (
        "amdgcn",
        _many(HEADS[Stage.AMDGCN] + TAILS[Stage.AMDGCN], lambda n: f"\t.set k{n}.num_vgpr, max({n}, k{n - 1}.num_vgpr)\n"),
    ),
    "amdgcn: metadata": (
        "amdgcn",
        _many(
            HEADS[Stage.AMDGCN] + TAILS[Stage.AMDGCN] + "\t.amdgpu_metadata\n---\namdhsa.kernels:\n",
            lambda n: f"  - .args:\n      - .offset: {n}\n    .name: k{n}\n    .vgpr_count: {n}\n",
            "\t.end_amdgpu_metadata\n",
        ),
    ),
    "amdgcn: a long operand": (
        "amdgcn",
        _long(Stage.AMDGCN, f"{HEADS[Stage.AMDGCN]}\tv_add_f32 NAME, NAME\n{TAILS[Stage.AMDGCN]}"),
    ),
    "llir: functions": (
        "llir",
        _many(
            'target triple = "nvptx64-nvidia-cuda"\n',
            lambda n: f"define void @k{n}(ptr %0) {{\n  %a = load float, ptr %0, align 4\n  call void @k{n + 1}(ptr %0)\n  ret void\n}}\n",
        ),
    ),
    "llir: labels": ("llir", body_of(Stage.LLIR, lambda n: f"  br label %l{n}\nl{n}:\n")),
    "llir: a table of constants": (
        "llir",
        lambda size: f"@t = constant [9 x i8] [{'i8 65, ' * (size // 7)}i8 1]\n{HEADS[Stage.LLIR]}{TAILS[Stage.LLIR]}",
    ),
    "llir: a string of constants": (
        "llir",
        lambda size: f'@t = constant [9 x i8] c"{chr(92)}{"00AB" * (size // 4)}"\n{HEADS[Stage.LLIR]}{TAILS[Stage.LLIR]}',
    ),
    "llir: a switch": (
        "llir",
        lambda size: f"{HEADS[Stage.LLIR]}  switch i32 %1, label %d [\n"
        + "".join(f"    i32 {n}, label %d\n" for n in range(size // 22))
        + f"  ]\nd:\n{TAILS[Stage.LLIR]}",
    ),
    "llir: phis of many ways": (
        "llir",
        lambda size: f"{HEADS[Stage.LLIR]}  br label %d\nd:\n  %x = phi i32 "
        + ", ".join(f"[ %a{n}, %d ]" for n in range(size // 16))
        + f"\n{TAILS[Stage.LLIR]}",
    ),
    "llir: attributes": (
        "llir",
        _many(HEADS[Stage.LLIR] + TAILS[Stage.LLIR], lambda n: f'attributes #{n} = {{ "nvvm.maxntid"="{n}" nounwind }}\n'),
    ),
    "llir: nodes that hold each other": (
        "llir",
        _many(HEADS[Stage.LLIR] + TAILS[Stage.LLIR], lambda n: f"!{n} = distinct !DILexicalBlock(scope: !{n + 1}, file: !{n}, line: {n})\n"),
    ),
    "llir: a long name": ("llir", _long(Stage.LLIR, HEADS[Stage.LLIR].replace("@k(", "@NAME(") + TAILS[Stage.LLIR])),
    "ttir: functions": (
        "ttir",
        _many(
            "module {\n",
            lambda n: f"  tt.func private @k{n}(%p: !tt.ptr<f32>) {{\n    %a = tt.load %p : !tt.ptr<f32>\n    tt.call @k{n + 1}(%p) : (!tt.ptr<f32>) -> ()\n    tt.return\n  }}\n",
            "}\n",
        ),
    ),
    "ttir: attributes in attributes": (
        "ttir",
        lambda size: HEADS[Stage.TTIR].replace("%n: i32", f"%n: i32 {'{a = ' * (size // 6)}1{'}' * (size // 6)}") + _TT_END,
    ),
    "ttir: attributes": (
        "ttir",
        lambda size: HEADS[Stage.TTIR].replace("module {", f"module attributes {{{'tt.a = 1 : i32, ' * (size // 16)}}} {{") + _TT_END,
    ),
    "ttir: a dense constant": (
        "ttir",
        lambda size: f'{HEADS[Stage.TTIR]}    %x = arith.constant dense<"0x{"41" * (size // 2)}"> : tensor<9xi8>\n{_TT_END}',
    ),
    "ttir: a list of constants": (
        "ttir",
        lambda size: f"{HEADS[Stage.TTIR]}    %x = arith.constant dense<[{'65, ' * (size // 4)}1]> : tensor<9xi8>\n{_TT_END}",
    ),
    "ttir: places of places": (
        "ttir",
        lambda size: HEADS[Stage.TTIR]
        + "".join(f"    %a{n} = arith.addi %n, %n : i32 loc(#loc{n})\n" for n in range(size // 80))
        + _TT_END
        + "".join(f'#loc{n} = loc("x"(#loc{n + 1}))\n' for n in range(size // 80))
        + f'#loc{size // 80} = loc("a.py":1:1)\n',
    ),
    "ttir: places fused": (
        "ttir",
        lambda size: HEADS[Stage.TTIR]
        + f"    %a = arith.addi %n, %n : i32 loc(fused[{'#loc1, ' * (size // 7)}#loc1])\n"
        + _TT_END
        + '#loc1 = loc("a.py":1:1)\n',
    ),
    "ttir: a place in places": (
        "ttir",
        lambda size: f'{HEADS[Stage.TTIR]}    %a = arith.addi %n, %n : i32 loc({"callsite(" * (size // 20)}"a.py":1:1{" at unknown)" * (size // 20)})\n{_TT_END}',
    ),
    "ttir: branches in branches": (
        "ttir",
        _many(
            HEADS[Stage.TTIR],
            lambda n: f"    scf.if %c {{\n      %a{n} = tt.load %p : !tt.ptr<f32>\n    }} else {{\n      %b{n} = tt.load %p : !tt.ptr<f32>\n    }}\n",
            _TT_END,
        ),
    ),
    "ttir: a long name": ("ttir", _long(Stage.TTIR, HEADS[Stage.TTIR].replace("@k(", "@NAME(") + _TT_END)),
    "ttir: arguments": (
        "ttir",
        lambda size: HEADS[Stage.TTIR].replace("%n: i32", ", ".join(f"%n{n}: i32 {{tt.divisibility = 16 : i32}}" for n in range(size // 42))) + _TT_END,
    ),
    "ttgir: buffers": (
        "ttgir",
        _many(_TTGIR, lambda n: f"    %b{n} = ttg.local_alloc : () -> {_MEMDESC}\n    %c{n} = ttg.local_load %b{n} : {_MEMDESC} -> tensor<32x32xf16>\n", _TT_END),
    ),
    "ttgir: buffers, all alive": (
        "ttgir",
        lambda size: _TTGIR
        + "".join(f"    %b{n} = ttg.local_alloc : () -> {_MEMDESC}\n" for n in range(size // 140))
        + "".join(f"    ttg.local_dealloc %b{n} : {_MEMDESC}\n" for n in range(size // 140))
        + _TT_END,
    ),
    "ttgir: layouts": (
        "ttgir",
        lambda size: "".join(
            f"#blocked{n} = #ttg.blocked<{{sizePerThread = [{n}], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}}>\n"
            for n in range(size // 160)
        )
        + _TTGIR
        + "".join(
            f"    %a{n} = ttg.convert_layout %p : tensor<32xf32, #blocked{n}> -> tensor<32xf32, #blocked{n // 2}>\n"
            for n in range(size // 160)
        )
        + _TT_END,
    ),
    "sass: functions": (
        "sass",
        _many("\tcode for sm_80\n", lambda n: f"\t\tFunction : k{n}\n{sass_line('LDG.E R2, [R2.64]', 0)}{sass_line('EXIT', 1)}"),
    ),
    "sass: labels": ("sass", body_of(Stage.SASS, lambda n: f".L_x_{n}:\n{sass_line('NOP', n)}")),
    "sass: branches to everywhere": (
        "sass",
        body_of(Stage.SASS, lambda n: sass_line(f"@P0 BRA `(0x{16 * (n * 7919 % (n + 1)):x})", n)),
    ),
    "hsaco: kernels in its notes": ("hsaco", _hsaco),
    "cubin: stores to local memory": ("cubin", _cubin),
    "cubin: kernels": ("cubin", _sections),
    "metadata: a long name": ("metadata", lambda size: json.dumps({"name": "k" * size, "num_warps": 4, "shared": 0})),
    "metadata: keys": ("metadata", lambda size: json.dumps({f"k{n}": n for n in range(size // 16)})),
    "metadata: constants": ("metadata", lambda size: json.dumps({"num_warps": 4, "shared": 0, "constants": {str(n): n for n in range(size // 16)}})),
    "metadata: lists in lists": ("metadata", lambda size: "[" * (size // 2) + "]" * (size // 2)),
    "metadata: a number": ("metadata", lambda size: '{"shared": ' + "9" * size + "}"),
    "remarks: alike": ("remarks", lambda size: "k.py:3:5: remark: Warning: a sentence\n" * (size // 38)),
    "remarks: each its own": ("remarks", _many("", lambda n: f"k.py:{n}:5: remark: sentence {n}\nk.py:{n}:5: note: called from\n")),
    "remarks: blanks": ("remarks", lambda size: " " * size + "bytes stack frame"),
    "remarks: colons": ("remarks", lambda size: "k.py:3" + ":5" * (size // 2)),
    "launch: launches": ("launch", _json(lambda n: {"grid": [n, 1], "args": {"x": "fp32[4]", "N": n}}, lambda rows: {"launches": rows})),
    "launch: arguments": ("launch", lambda size: json.dumps({"grid": [1], "args": {f"x{n}": n for n in range(size // 16)}})),
    "launch: a long expression": ("launch", lambda size: json.dumps({"grid": ["N" + "+1" * (size // 2)], "args": {"N": 1}})),
    "launch: parentheses": ("launch", lambda size: json.dumps({"grid": ["(" * (size // 2) + ")" * (size // 2)]})),
}  # fmt: skip
"""Name → what reads it (`tests.fuzz.guided.READERS`), and a file of about so many characters or bytes."""
