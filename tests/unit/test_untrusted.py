"""What a cache says chooses no code, no file and no option of a tool; its compiles run with limits."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.compiling.ask.compile import compile_kernel
from artifact_inspector.compiling.untrusted import UntrustedRecord, allowed_options
from artifact_inspector.errors import CacheError, CompileError, UsageError
from artifact_inspector.files.assembler_directives import refuse_directives, refuse_inline_directives
from artifact_inspector.files.assembly import assemble
from artifact_inspector.files.cache import open_cache

needs_triton = pytest.mark.skipif(sys.platform != "linux", reason="Triton compiles on Linux only")
_KERNEL = """
import triton, triton.language as tl

@triton.jit
def moved(x, y, N: tl.constexpr):
    o = tl.arange(0, N)
    v = tl.load(x + o)
    v = tl.inline_asm_elementwise("v_mov_b32 $0, $1", "=v,v", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + o, v)
"""
_SLOT = '"v_mov_b32 $0, $1"'


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with one AMD kernel that has inline assembly, and the record of its compile."""
    pytest.importorskip("triton")
    home = tmp_path_factory.mktemp("home")
    (home / "moved.py").write_text(_KERNEL)
    out = home / "cache"
    compile_kernel(
        f"{home / 'moved.py'}:moved", "gfx942", signature="*fp32:16, *fp32:16", constexprs={"N": 64}, out_dir=out
    )
    return out


@pytest.fixture
def cache(entry: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    copy = tmp_path / "cache"
    subprocess.run(["cp", "-r", str(entry), str(copy)], check=True)
    return copy


def command(directory: Path, *words: str, limit: float = 60) -> subprocess.CompletedProcess[str]:
    """`inspect-kernel` run with a cache as the working directory."""
    package = str(Path(__file__).parents[2])
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.pop(0); from artifact_inspector.__main__ import main; main()",
            *words,
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        check=False,
        timeout=limit,
    )


def rewrite_record(cache: Path, **changes: Any) -> None:
    file = cache / "inspect-kernel.json"
    document = json.loads(file.read_text())
    document["entries"] = [{**row, **changes} for row in document["entries"]]
    document["launches"] = [
        {
            "hash": "", "kernel": "moved", "target": "gfx942", "grid": [1, 1, 1],
            "args": {name: {"shape": [64], "stride": [1], "dtype": "float32", "alignment": 16} for name in "xy"},
        }
    ]  # fmt: skip
    file.write_text(json.dumps(document))


def rewrite_assembly(cache: Path, assembly: str) -> None:
    (file,) = cache.glob("*/moved.ttir")
    text = file.read_text()
    assert _SLOT in text
    file.write_text(text.replace(_SLOT, f'"{assembly}"'))


RANK = ("rank", ".", "moved", "--try", "num_warps=2", "--grid", "1", "--arg", "x=fp32[64]", "--arg", "y=fp32[64]")


@pytest.mark.long
@needs_triton
@pytest.mark.parametrize("place", ["evilmod:moved", "evilmod.py:moved", "{cache}/evilmod.py:moved", "json:moved"])
def test_a_place_on_record_is_never_imported(cache: Path, place: str) -> None:
    mark = cache / "imported"
    for name in ("evilmod.py", "secrets.py", "copy.py"):
        (cache / name).write_text(f"open({str(mark)!r}, 'w').close()\n{_KERNEL}")
    rewrite_record(cache, place=place.format(cache=cache))
    done = command(cache, *RANK)
    assert done.returncode == 2, done.stderr
    assert "only in a record is not imported" in done.stderr
    assert "--kernel FILE.py:KERNEL" in done.stderr
    assert not mark.exists()


@pytest.mark.long
@needs_triton
def test_a_file_named_on_the_command_line_is_imported_and_the_working_directory_is_not(
    cache: Path, tmp_path: Path
) -> None:
    mark = cache / "imported"
    (cache / "colorsys.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    (tmp_path / "own.py").write_text(f"import colorsys\n{_KERNEL}")
    rewrite_record(cache, place="evilmod:moved", options={"num_warps": 4, "ptx_options": "-o /tmp/x"})
    done = command(cache, *RANK, "--kernel", f"{tmp_path / 'own.py'}:moved", "--json")
    assert done.returncode == 0, done.stderr
    assert not mark.exists()
    assert "ptx_options" in json.loads(done.stdout)["notes"][0]


@pytest.mark.long
@needs_triton
def test_options_on_record_do_not_reach_a_tool(cache: Path, tmp_path: Path) -> None:
    """`ir_override` would swap the code, `ptx_options` would read and write files."""
    (tmp_path / "own.py").write_text(_KERNEL)
    other = tmp_path / "other.ttir"
    other.write_text("module {}")
    named = ("--kernel", f"{tmp_path / 'own.py'}:moved", "--json")
    options = {"num_warps": 4, "num_stages": 2, "num_ctas": 1}
    rewrite_record(cache, options=options)
    clean = json.loads(command(cache, *RANK, *named).stdout)
    rewrite_record(
        cache, options={**options, "ir_override": str(other), "extern_libs": {"evil": str(other)}, "ptx_options": "-G"}
    )
    hostile = json.loads(command(cache, *RANK, *named).stdout)
    assert hostile["rank"] == clean["rank"]
    assert clean["notes"] == []
    (note,) = hostile["notes"]
    assert "extern_libs, ir_override, ptx_options" in note


def test_options_pass_by_name_and_type() -> None:
    allowed, dropped = allowed_options(
        {
            "num_warps": 8, "num_stages": "2; rm", "enable_fp_fusion": False, "schedule_hint": "../../x",
            "cluster_dims": [1, 1, 1], "ptx_options": "--options-file /etc/passwd", "ir_override": "a.ttir",
            "extern_libs": {"a": "b"}, "instrumentation_mode": "x", "maxnreg": None, "unknown": 1, "debug": 1,
        }
    )  # fmt: skip
    assert allowed == {"num_warps": 8, "enable_fp_fusion": False, "cluster_dims": [1, 1, 1], "maxnreg": None}
    assert dropped == (
        *("debug", "extern_libs", "instrumentation_mode", "ir_override", "num_stages", "ptx_options"),
        *("schedule_hint", "unknown"),
    )


def test_a_constant_on_record_looks_nothing_up() -> None:
    record = UntrustedRecord.of_row(
        {"place": "m:k", "constants": {"N": "os.environ", "M": 4, "D": "bf16", "P": "ieee"}}
    )
    texts = {name: value.text for name, value in record.constants.items()}
    # types are recorded by Triton's names: liger's `X_dtype: tl.constexpr`
    assert texts == {"N": "'os.environ'", "M": "4", "D": "tl.bfloat16", "P": "'ieee'"}


def test_a_kernel_of_the_package_needs_no_file() -> None:
    assert UntrustedRecord.of_row({"place": "softmax"}).resolve_kernel_path("softmax", None) == "softmax"
    with pytest.raises(UsageError, match="names no file to import"):
        UntrustedRecord.of_row({"place": "captured at a.py:3"}).resolve_kernel_path("k", None)


HOSTILE = [
    r".rept 300000000\0Av_mov_b32 $0, $1\0A.endr",
    r".RePt 300000000\nv_nop\n.endr",
    r".include \22/etc/passwd\22",
    r".in\63lude \22/etc/passwd\22",
    r".incbin \22/etc/passwd\22",
    r".macro x\nx\n.endm\nx",
    r".rept N\nv_nop\n.endr",
    r"/* */.include \22/etc/passwd\22 // .",
    r".inc$(lude|x$) \22/etc/passwd\22",
    r".inc$1 \22/etc/passwd\22",
    r".fill 2000000000, 8, 0",
]


@pytest.mark.parametrize("assembly", HOSTILE)
def test_directives_that_open_files_or_repeat_are_refused(assembly: str) -> None:
    text = f'%0 = tt.elementwise_inline_asm "{assembly}" {{pure = true}} %1 loc("a.include/b.py":1:1)'
    with pytest.raises(CacheError, match="is not passed to a compiler"):
        refuse_inline_directives(text, "The TTIR of k")


@pytest.mark.parametrize(
    "assembly",
    ["v_mov_b32 $0, $1", r"// .include \22a\22\nv_nop", r".rept 4\nv_nop\n.endr", "cvt.rn.f16x2.f32 $0, $1, $2;",
     "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p ld.global.b32 $0, [$2]; }", "/* .incbin */ s_nop 0"],
)  # fmt: skip
def test_other_assembly_passes(assembly: str) -> None:
    refuse_inline_directives(f'tt.elementwise_inline_asm "{assembly}" loc("x.include/a.py":1:1)', "k")


def test_no_text_of_a_compiler_is_refused() -> None:
    for file in (Path(__file__).parents[2] / "fixtures").rglob("*"):
        if file.suffix == ".ptx":
            refuse_directives(file.read_text(), file.name)
        elif file.suffix == ".ttir":
            refuse_inline_directives(file.read_text(), file.name)


def test_ptx_with_such_a_directive_reaches_no_ptxas() -> None:
    pytest.importorskip("triton")
    ptx = '.version 8.4\n.target sm_80\n.address_size 64\n.Include "/etc/passwd"\n'
    with pytest.raises(CacheError, match=r"directive \.include"):
        assemble(ptx)


@pytest.mark.long
@needs_triton
def test_hostile_inline_assembly_costs_neither_time_nor_memory(cache: Path) -> None:
    rewrite_assembly(cache, HOSTILE[0])
    began = time.monotonic()
    done = command(cache, "passes", ".", "moved", "--json")
    assert done.returncode == 3
    assert "directive .rept" in json.loads(done.stdout)["message"]
    assert time.monotonic() - began < 30


@needs_triton
@pytest.mark.parametrize(
    "assembly",
    [HOSTILE[0], *(pytest.param(assembly, marks=pytest.mark.exhaustive) for assembly in (HOSTILE[2], HOSTILE[4]))],
)
@pytest.mark.long
def test_limits_hold_where_no_directive_is_recognised(
    cache: Path, assembly: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The compiling process itself is limited: memory, time, and the files that it opens."""
    from artifact_inspector.errors import CompileError
    from artifact_inspector.files.cache import open_cache
    from artifact_inspector.passes import subject

    monkeypatch.setattr(subject, "refuse_inline_directives", lambda text, name: None)
    monkeypatch.setenv("ARTIFACT_INSPECTOR_MOST_COMPILE_MIB", "512")
    rewrite_assembly(cache, assembly)
    (artifact,) = open_cache(cache).entries
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of earlier tests, too
    began = time.monotonic()
    with pytest.raises(CompileError, match=r"out of memory|SIG|Could not find|Cannot allocate|exited"):
        subject.trace_passes(subject.subject_of_entry(artifact), [])
    assert time.monotonic() - began < 60
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(largest_child, 2 << 20)


@pytest.mark.long
@needs_triton
def test_a_cache_does_not_choose_what_is_installed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`passes` downloaded the release that metadata named."""
    from artifact_inspector.compiling.ask import environments
    from artifact_inspector.passes import subject

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(environments, "_create_environment", lambda *_: pytest.fail("it was created"))
    (metadata,) = cache.glob("*/moved.json")
    metadata.write_text(json.dumps({**json.loads(metadata.read_text()), "triton_version": "3.1.0"}))
    (artifact,) = open_cache(cache).entries
    with pytest.raises(CompileError, match=r"Triton 3\.1\.0, which the cache names, is not installed"):
        subject.trace_passes(subject.subject_of_entry(artifact), [])


def test_a_linker_is_not_taken_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton before 3.5 runs `ld.lld`; a PATH with `.` ran that of a cache."""
    from artifact_inspector.compiling.ask import environments

    monkeypatch.chdir(tmp_path)
    (tmp_path / "ld.lld").write_text("#!/bin/sh\n")
    (tmp_path / "ld.lld").chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    linker = environments._find_linker("3.2.0")
    assert linker is None or (linker.is_absolute() and linker.resolve() != tmp_path / "ld.lld")


@pytest.mark.long
def test_an_entry_without_such_directives_is_compiled_again(cache: Path) -> None:
    done = command(cache, "passes", ".", "moved", "--json")
    assert done.returncode == 0, done.stderr
