"""Files that grow in one respect: what `tests.fuzz.growth` measures."""

from __future__ import annotations

from collections.abc import Callable

from artifact_inspector.model import Stage

__all__ = ["GENERATORS", "HEADS", "TAILS", "body_of", "sass_line"]

_PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_0)\n{\n"
_AMD = '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.text\n\t.type\tk,@function\nk:\n'
_LLVM = 'target triple = "nvptx64-nvidia-cuda"\ndefine ptx_kernel void @k(ptr addrspace(1) %0, i32 %1) {\n'
_MLIR = "module {\n  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {\n    %c = arith.constant 0 : i32\n"
_SASS = "\tcode for sm_80\n\t\tFunction : k\n"
TAILS = {
    Stage.PTX: "\tret;\n}\n",
    Stage.AMDGCN: "\ts_endpgm\n.Lfunc_end0:\n",
    Stage.LLIR: "  ret void\n}\n",
    Stage.TTIR: "    tt.return\n  }\n}\n",
    Stage.SASS: "        /*fff0*/                   EXIT ;\n",
}
HEADS = {Stage.PTX: _PTX, Stage.AMDGCN: _AMD, Stage.LLIR: _LLVM, Stage.TTIR: _MLIR, Stage.SASS: _SASS}


def body_of(stage: Stage, unit: Callable[[int], str]) -> Callable[[int], str]:
    """A file with so many characters of units in the body of its function."""

    def made(size: int) -> str:
        parts, length, number = [], 0, 0
        while length < size:
            parts.append(unit(number))
            length += len(parts[-1])
            number += 1
        return HEADS[stage] + "".join(parts) + TAILS[stage]

    return made


def _nested(stage: Stage, opening: Callable[[int], str], closing: Callable[[int], str]) -> Callable[[int], str]:
    def made(size: int) -> str:
        depth = max(1, min(900, size // (len(opening(99)) + len(closing(99)))))
        inside = "".join(opening(n) for n in range(depth)) + "".join(closing(n) for n in reversed(range(depth)))
        times = max(1, size // len(inside))
        return HEADS[stage] + inside * times + TAILS[stage]

    return made


def _behind(stage: Stage, first: str, unit: Callable[[int], str]) -> Callable[[int], str]:
    """A file with units behind its function, of whose first a statement speaks."""
    plain = body_of(stage, unit)

    def made(size: int) -> str:
        units = plain(size).removeprefix(HEADS[stage]).removesuffix(TAILS[stage])
        return f"{HEADS[stage]}{first}{TAILS[stage]}{units}"

    return made


def _on_one_line(name: str) -> tuple[Stage, Callable[[int], str]]:
    """A file of a kind whose function is one line."""
    stage, made = GENERATORS[name]
    head, tail = HEADS[stage], TAILS[stage]
    return stage, lambda size: head + made(size)[len(head) : -len(tail)].replace("\n", " ") + "\n" + tail


def sass_line(text: str, number: int) -> str:
    return f"        /*{number * 16:04x}*/                   {text} ;\n"


GENERATORS: dict[str, tuple[Stage, Callable[[int], str]]] = {
    "ptx: loads and sums": (
        Stage.PTX,
        body_of(Stage.PTX, lambda n: f"\tld.global.b32 \t%r{n}, [%rd1];\n\tadd.f32 \t%f{n}, %f0, %r{n};\n"),
    ),
    "ptx: one line": (Stage.PTX, body_of(Stage.PTX, lambda n: f"add.s32 %r{n},%r1,%r2;ld.global.b32 %r{n},[%rd1];")),
    "ptx: a statement without an end": (Stage.PTX, body_of(Stage.PTX, lambda n: f"add.s32 %r{n},\n{{\n}}\n")),
    "ptx: loops in sequence": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: (
                f"$L__BB0_{n}:\n\tld.global.b32 \t%r{n}, [%rd1];\n\tadd.f32 \t%f1, %f1, %r{n};\n"
                f"\t@%p1 bra \t$L__BB0_{n};\n"
            ),
        ),
    ),
    "ptx: loops inside each other": (
        Stage.PTX,
        _nested(
            Stage.PTX,
            lambda n: f"$L__BB0_{n}:\n\tld.global.b32 \t%r{n}, [%rd1];\n",
            lambda n: f"\tadd.f32 \t%f1, %f1, %r{n};\n\t@%p1 bra \t$L__BB0_{n};\n",
        ),
    ),
    "ptx: back edges to one block": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: ("$L__BB0_0:\n" if n == 0 else "") + f"\tadd.f32 \t%f{n}, %f0, %f1;\n\t@%p1 bra \t$L__BB0_0;\n",
        ),
    ),
    "ptx: guarded blocks": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: (
                f"\tsetp.ne.s32 \t%p1, %r{n}, 0;\n\t@%p1 bra \t$L__BB0_{n};\n\tld.global.b32 \t%r{n}, [%rd1];\n"
                f"$L__BB0_{n}:\n"
            ),
        ),
    ),
    "ptx: loads never waited for, in diamonds": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: (
                f"\t@%p1 bra \t$L__BB0_{n};\n\tld.global.b32 \t%r{n}, [%rd1];\n\tbra \t$M__BB0_{n};\n"
                f"$L__BB0_{n}:\n\tld.global.b32 \t%q{n}, [%rd1];\n$M__BB0_{n}:\n"
            ),
        ),
    ),
    "ptx: copies never waited for, in diamonds": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: (
                f"\t@%p1 bra \t$L__BB0_{n};\n\tcp.async.cg.shared.global [ %r1 + {n} ], [ %rd1 + 0 ], 0x10, 0x10;\n"
                f"\tbra \t$M__BB0_{n};\n$L__BB0_{n}:\n\tcp.async.cg.shared.global [ %r2 + {n} ], [ %rd1 + 0 ], 0x10, 0x10;\n"
                f"\tcp.async.commit_group;\n$M__BB0_{n}:\n"
            ),
        ),
    ),
    "ptx: places": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: (
                f'\t.file\t{n + 1} "a{n}.py"\n\t.loc\t{n + 1} {n + 1} 3 // a{n}.py:{n + 1}:3 @[ a0.py:1:2 ]\n\tadd.s32 \t%r1, %r2, %r3;\n'
            ),
        ),
    ),
    "ptx: callers inlined into callers": (
        Stage.PTX,
        body_of(
            Stage.PTX,
            lambda n: (
                ('\t.file\t1 "a.py"\n' if n == 0 else "")
                + f"\t.loc\t1 {n + 2} 3, function_name $L, inlined_at 1 {n + 1} 3\n\tadd.s32 \t%r1, %r2, %r3;\n"
            ),
        ),
    ),
    "ptx: arrays in local memory": (
        Stage.PTX,
        body_of(Stage.PTX, lambda n: f"\t.local .align 4 .b8 \t__local_depot{n}[16];\n"),
    ),
    "ptx: sections": (Stage.PTX, _behind(Stage.PTX, "", lambda _: "\t.section\t.debug_x\n\t{\n.b8 1\n\t}\n")),
    "ptx: sections without an end": (Stage.PTX, _behind(Stage.PTX, "", lambda _: "\t.section\t.debug_x\n")),
    "ptx: empty lines": (Stage.PTX, lambda size: "\n" * size + _PTX + TAILS[Stage.PTX]),
    "ptx: spaces": (Stage.PTX, lambda size: _PTX + " " * size + TAILS[Stage.PTX]),
    "ptx: a header over many lines": (
        Stage.PTX,
        lambda size: _PTX.replace("k_0)", "k_0" + ",\n.param .u64 k_1" * (size // 18) + ")") + TAILS[Stage.PTX],
    ),
    "ptx: rubbish": (Stage.PTX, body_of(Stage.PTX, lambda n: f"\t+{n}+;\n")),
    "amdgcn: loads and sums": (
        Stage.AMDGCN,
        body_of(
            Stage.AMDGCN, lambda n: f"\tglobal_load_dword v{n % 99}, v[0:1], off\n\tv_add_f32_e32 v1, v{n % 99}, v1\n"
        ),
    ),
    "amdgcn: loops in sequence": (
        Stage.AMDGCN,
        body_of(
            Stage.AMDGCN,
            lambda n: (
                f".LBB0_{n}:\n\tglobal_load_dword v1, v[0:1], off\n\ts_waitcnt vmcnt(0)\n"
                f"\tv_add_f32_e32 v2, v1, v2\n\ts_cbranch_scc1 .LBB0_{n}\n"
            ),
        ),
    ),
    "amdgcn: loops inside each other": (
        Stage.AMDGCN,
        _nested(
            Stage.AMDGCN,
            lambda n: f".LBB0_{n}:\n\tglobal_load_dword v1, v[0:1], off\n",
            lambda n: f"\tv_add_f32_e32 v2, v1, v2\n\ts_cbranch_scc1 .LBB0_{n}\n",
        ),
    ),
    "amdgcn: loads never waited for, in diamonds": (
        Stage.AMDGCN,
        body_of(
            Stage.AMDGCN,
            lambda n: (
                f"\ts_cbranch_scc1 .LBB0_{n}\n\tglobal_load_dword v{n % 256}, v[0:1], off\n\ts_branch .LBB1_{n}\n"
                f".LBB0_{n}:\n\tglobal_load_dword v{(n + 7) % 256}, v[0:1], off\n.LBB1_{n}:\n"
            ),
        ),
    ),
    "amdgcn: sections": (
        Stage.AMDGCN,
        _behind(Stage.AMDGCN, "", lambda _: '\t.section\t.x,"",@progbits\n\t.byte 1\n\t.text\n'),
    ),
    "amdgcn: two instructions a line": (
        Stage.AMDGCN,
        body_of(Stage.AMDGCN, lambda n: "\tv_dual_mul_f32 v1, v2, v3 :: v_dual_add_f32 v4, v5, v6\n"),
    ),
    "amdgcn: rubbish": (Stage.AMDGCN, body_of(Stage.AMDGCN, lambda n: f"\t+{n}\n")),
    "llir: loads and sums": (
        Stage.LLIR,
        body_of(
            Stage.LLIR,
            lambda n: f"  %a{n} = load float, ptr addrspace(1) %0, align 4\n  %b{n} = fadd float %a{n}, %a{n}\n",
        ),
    ),
    "llir: loops in sequence": (
        Stage.LLIR,
        body_of(
            Stage.LLIR,
            lambda n: (
                f"  br label %l{n}\nl{n}:\n  %a{n} = load float, ptr addrspace(1) %0, align 4\n"
                f"  %b{n} = fadd float %a{n}, %a{n}\n  br i1 true, label %l{n}, label %m{n}\nm{n}:\n"
            ),
        ),
    ),
    "llir: callers inlined into callers": (
        Stage.LLIR,
        _behind(
            Stage.LLIR,
            "  %2 = add i32 %1, 1, !dbg !0\n",
            lambda n: f"!{n} = !DILocation(line: {n + 1}, column: 1, scope: !{n + 1}, inlinedAt: !{n + 1})\n",
        ),
    ),
    "llir: places": (
        Stage.LLIR,
        lambda size: (
            _LLVM
            + "".join(f"  %a{n} = add i32 %1, {n}, !dbg !{n + 2}\n" for n in range(size // 95))
            + TAILS[Stage.LLIR]
            + '!0 = !DIFile(filename: "a.py", directory: "/")\n!1 = distinct !DISubprogram(name: "k", file: !0, line: 1)\n'
            + "".join(f"!{n + 2} = !DILocation(line: {n + 1}, column: 1, scope: !1)\n" for n in range(size // 95))
        ),
    ),
    "llir: loads never used, in diamonds": (
        Stage.LLIR,
        body_of(
            Stage.LLIR,
            lambda n: (
                f"  br i1 true, label %l{n}, label %m{n}\nl{n}:\n  %a{n} = load float, ptr addrspace(1) %0, align 4\n"
                f"  br label %n{n}\nm{n}:\n  %b{n} = load float, ptr addrspace(1) %0, align 4\n  br label %n{n}\nn{n}:\n"
            ),
        ),
    ),
    "llir: inline assembly": (
        Stage.LLIR,
        body_of(
            Stage.LLIR,
            lambda n: (
                f'  %a{n} = tail call i32 asm sideeffect "mov.u32 $0, {n}; ld.global.b32 $0, [ $1 ];", "=r,l"(ptr addrspace(1) %0)\n'
            ),
        ),
    ),
    "llir: rubbish": (Stage.LLIR, body_of(Stage.LLIR, lambda n: f"  +{n}\n")),
    "ttir: loads and sums": (
        Stage.TTIR,
        body_of(
            Stage.TTIR, lambda n: f"    %a{n} = tt.load %p : !tt.ptr<f32>\n    %b{n} = arith.addf %a{n}, %a{n} : f32\n"
        ),
    ),
    "ttir: loops in sequence": (
        Stage.TTIR,
        body_of(
            Stage.TTIR,
            lambda n: (
                f"    scf.for %i{n} = %c to %n step %c  : i32 {{\n      %a{n} = tt.load %p : !tt.ptr<f32>\n"
                f"      %b{n} = arith.addf %a{n}, %a{n} : f32\n    }}\n"
            ),
        ),
    ),
    "ttir: one long loop": (
        Stage.TTIR,
        lambda size: (
            _MLIR
            + "    %r = scf.for %i = %c to %n step %c iter_args(%s0 = %c) -> (i32) : i32 {\n"
            + "".join(
                f"      %a{n} = tt.load %p : !tt.ptr<f32>\n      %s{n + 1} = arith.addf %s{n}, %a{n} : f32\n"
                for n in range(size // 90)
            )
            + f"      scf.yield %s{size // 90} : f32\n    }}\n"
            + TAILS[Stage.TTIR]
        ),
    ),
    "ttir: loops inside each other": (
        Stage.TTIR,
        _nested(
            Stage.TTIR,
            lambda n: f"    scf.for %i{n} = %c to %n step %c  : i32 {{\n      %a{n} = tt.load %p : !tt.ptr<f32>\n",
            lambda n: f"      %b{n} = arith.addf %a{n}, %a{n} : f32\n    }}\n",
        ),
    ),
    "ttir: places": (
        Stage.TTIR,
        lambda size: (
            _MLIR
            + "".join(f"    %a{n} = arith.addi %n, %n : i32 loc(#loc{n})\n" for n in range(size // 80))
            + TAILS[Stage.TTIR]
            + "".join(f'#loc{n} = loc("a.py":{n + 1}:1)\n' for n in range(size // 80))
        ),
    ),
    "ttir: callers of callers": (
        Stage.TTIR,
        lambda size: (
            _MLIR
            + "".join(f"    %a{n} = arith.addi %n, %n : i32 loc(#loc{n})\n" for n in range(size // 90))
            + TAILS[Stage.TTIR]
            + "".join(f"#loc{n} = loc(callsite(#locx at #loc{n + 1}))\n" for n in range(size // 90))
            + '#locx = loc("a.py":1:1)\n'
        ),
    ),
    "ttir: layouts of layouts": (
        Stage.TTIR,
        lambda size: (
            "".join(f"#a{n + 1} = #ttg.slice<{{dim = 1, parent = #a{n}, other = #a{n}}}>\n" for n in range(size // 60))
            + _MLIR
            + TAILS[Stage.TTIR]
        ),
    ),
    "ttir: types in types on one line": (
        Stage.TTIR,
        lambda size: _MLIR + "    %a = tt.load %p : " + "tensor<1x" * (size // 9) + "\n" + TAILS[Stage.TTIR],
    ),
    "ttir: quotes on one line": (
        Stage.TTIR,
        lambda size: _MLIR + '    %a = tt.load %p : tensor<1x"' + '\\"' * (size // 2) + "\n" + TAILS[Stage.TTIR],
    ),
    "ttir: partitions": (
        Stage.TTIR,
        lambda size: (
            _MLIR
            + "    ttg.warp_specialize(%p)\n"
            + "".join(
                f"    partition{n}(%x{n}: i32) num_warps(4) {{\n      ttg.warp_return\n    }}\n"
                for n in range(size // 75)
            )
            + TAILS[Stage.TTIR]
        ),
    ),
    "ttir: rubbish": (Stage.TTIR, body_of(Stage.TTIR, lambda n: f"    +{n}\n")),
    "ttir: percent signs": (Stage.TTIR, lambda size: _MLIR + "    " + "%" * size + "\n" + TAILS[Stage.TTIR]),
    "sass: loads and sums": (
        Stage.SASS,
        body_of(Stage.SASS, lambda n: sass_line("LDG.E R2, [R2.64]", 2 * n) + sass_line("FADD R4, R2, R4", 2 * n + 1)),
    ),
    "sass: loops in sequence": (
        Stage.SASS,
        body_of(
            Stage.SASS,
            lambda n: (
                sass_line("LDG.E R2, [R2.64]", 3 * n)
                + sass_line("FADD R4, R2, R4", 3 * n + 1)
                + sass_line(f"@P0 BRA `(0x{48 * n:x})", 3 * n + 2)
            ),
        ),
    ),
    "sass: loads that nothing waits for, in diamonds": (
        Stage.SASS,
        body_of(
            Stage.SASS,
            lambda n: (
                sass_line(f"@P0 BRA `(0x{64 * n + 48:x})", 4 * n)
                + sass_line(f"LDG.E R{n % 200 + 8}, [R2.64]", 4 * n + 1)
                + sass_line(f"BRA `(0x{64 * n + 48:x})", 4 * n + 2)
                + sass_line("FADD R4, R5, R4", 4 * n + 3)
            ),
        ),
    ),
    "sass: rubbish": (Stage.SASS, body_of(Stage.SASS, lambda n: f"  /*{n}\n")),
}
GENERATORS |= {
    f"{language}: {kind} on one line": _on_one_line(f"{language}: {kind}")
    for language in ("amdgcn", "llir", "ttir", "sass")
    for kind in ("loads and sums", "loops in sequence")
}
"""Name → the stage, and the file of about so many characters; more are in `tests.fuzz.tables`."""
