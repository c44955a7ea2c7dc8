"""A program's own wrappers run with no GPU, and what they would launch is compiled for any."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

from artifact_inspector.api.launches import recorded_launches
from artifact_inspector.compiling import capture_program
from artifact_inspector.compiling.ask import running
from artifact_inspector.compiling.ask.capturing import (
    CapturedKernel,
    Launch,
    capture,
    find_kernels,
    find_launches,
    find_notes,
)
from artifact_inspector.compiling.ask.manifest import add_to_manifest, read_launches, read_manifest
from artifact_inspector.compiling.ask.process import Interpreter
from artifact_inspector.compiling.ask.running import ProgramRun, _describe_failure
from artifact_inspector.compiling.capture.devices import device_of
from artifact_inspector.compiling.capture.recorder import CallSite, Recorder
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.execution.launch_requests import parse_document
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import KNOWN_TARGETS, parse_target
from artifact_inspector.report.compilation import captured_table

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Capturing needs Triton (Linux).")
needs_torch = pytest.mark.skipif(
    find_spec("triton") is None or find_spec("torch") is None, reason="Tensors need torch."
)

SCALE = """
    import triton
    import triton.language as tl

    class Pointer:
        dtype = "fp32"
        def data_ptr(self):
            return 4096

    @triton.jit
    def scale(x, n, factor, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, at < n) * factor, at < n)

    def wrapper(n):
        scale[(triton.cdiv(n, 128),)](Pointer(), n, 1, BLOCK=128)
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A function that writes a script and gives the command that runs it."""
    monkeypatch.chdir(tmp_path)

    def write(*parts: str, name: str = "script.py") -> list[str]:
        (tmp_path / name).write_text("".join(textwrap.dedent(part) for part in parts))
        return ["python", name]

    return write


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that imports a module of this text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def write(*parts: str, name: str):
        (tmp_path / f"{name}.py").write_text("".join(textwrap.dedent(part) for part in parts))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return write


def line_of(text: str, file: str = "script.py") -> int:
    return next(n for n, line in enumerate(Path(file).read_text().splitlines(), 1) if text in line)


@pytest.mark.long
@needs_triton
def test_a_script_runs_untouched_once_for_each_target(program, tmp_path):
    command = program(SCALE, "\nfor _ in range(3):\n    wrapper(1000)\nwrapper(4096)\n")
    runs = capture_program(command, ["sm_80", "gfx942"], tmp_path / "out")
    assert [(run.target.arch, run.status, run.problem) for run in runs] == [("sm_80", 0, None), ("gfx942", 0, None)]
    for run in runs:
        odd, even = run.kernels
        assert odd.signature == {"x": "*fp32:16", "n": "i32", "factor": "i32:1"}
        assert even.signature["n"] == "i32:16"
        assert odd.constexprs == {"BLOCK": "128"}
        assert odd.options["num_warps"] == 4
        (launch,) = odd.launches
        assert (launch.grid, launch.count) == ((8, 1, 1), 3)
        assert launch.location == launch.caller == f"script.py:{line_of('scale[(')}"
    rows = read_manifest(tmp_path / "out")
    # as `compile` records what it is asked for, so that other configurations can be tried of it
    assert rows[0]["place"] == f"{Path('script.py').absolute()}:scale"
    assert rows[0]["types"] == ["x=*fp32:16", "n=i32", "factor=i32:1"]
    assert rows[0]["constants"] == {"BLOCK": 128}
    assert [(row["kernel"], row["target"]) for row in rows] == [("scale", "sm_80")] * 2 + [("scale", "gfx942")] * 2
    assert {row["directory"] for row in rows} == {k.directory.name for run in runs for k in run.kernels}
    assert [one["target"] for one in read_launches(tmp_path / "out")] == ["sm_80"] * 2 + ["gfx942"] * 2
    cache = open_cache(tmp_path / "out")
    assert not cache.problems
    assert {entry.hash for entry in cache.entries} == {kernel.hash for run in runs for kernel in run.kernels}
    amd = next(iter(runs[1].kernels)).directory
    # as on a real GPU: only so do buffer loads appear
    assert re.search(r"\.amdgcn_target .*gfx942", (amd / "scale.amdgcn").read_text())


def _captured(digit: str, block: int, *launches: Launch, tuned: int = 0) -> CapturedKernel:
    constants = {"BLOCK": str(block), "UNUSED": "None"}
    options = {"num_warps": 4, "num_stages": 3}
    site = CallSite("lib/cache.py:378", "script.py:9")
    hash_ = digit * 64
    return CapturedKernel(
        "scale", hash_, parse_target("sm_90"), {}, constants, options, launches, tuned, site, 0.1, Path(hash_), None, None
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_has_one_row_per_launched_variant_with_what_varies_and_the_callers_line(width):
    launch = Launch((8, 1, 1), "lib/cache.py:378", "script.py:7", 3)
    kernels = (
        _captured("a", 128, launch, tuned=2),
        *(_captured(digit, block, tuned=2) for digit, block in (("b", 256), ("c", 512))),
        _captured("d", 64, Launch((2, 2, 1), "lib/cache.py:378", "script.py:8", 1)),
    )
    console = Console(width=width)
    with console.capture() as printed:
        console.print(captured_table([ProgramRun(parse_target("sm_90"), 0, "", kernels, (), None)], Path("out")))
    title, _, heading, *rows = printed.get().splitlines()
    assert title == "4 of 4 kernels captured for sm_90 into out"
    assert heading.split() == ["kernel", "hash", "variant", "launches", "tuned", "grid", "launched", "at"]
    assert sorted(" ".join(rows).split()) == sorted(
        [
            "scale",
            "aaaaaa",
            "w4",
            "s3",
            "BLOCK=128",
            "3",
            "+2",
            "8",
            "script.py:7",
            "scale",
            "dddddd",
            "w4",
            "s3",
            "BLOCK=64",
            "1",
            "2×2",
            "script.py:8",
        ]
    )


def test_the_note_on_configurations_names_three_kernels():
    tuned = [{"event": "tuned", "name": f"k{n}", "target": "sm_90", "compiled": 3, "configs": 9} for n in range(5)]
    (note,) = find_notes(tuned)
    assert note.text.endswith(": 3 of 9 of k0, 3 of 9 of k1, 3 of 9 of k2 and 2 more kernels.")


@pytest.mark.long
@needs_triton
def test_what_was_captured_is_what_a_compile_of_the_same_signature_makes(program, module, tmp_path, monkeypatch):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    (run,) = capture_program(program(SCALE, "\nwrapper(1000)\n"), ["sm_80"], tmp_path / "out")
    (kernel,) = run.kernels
    script = module(SCALE, name="script")
    source = ASTSource(
        script.scale,
        {"x": "*fp32", "n": "i32", "factor": "constexpr", "BLOCK": "constexpr"},
        {(2,): 1, (3,): 128},
        {(0,): [["tt.divisibility", 16]]},
    )
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "other"))
    asked = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 4, "num_stages": 3})
    assert asked.asm["ptx"] == (kernel.directory / "scale.ptx").read_text()


@pytest.mark.long
@needs_triton
def test_an_autotuned_kernel_is_compiled_in_some_configurations_spread_out_or_in_all(program, tmp_path):
    command = program(
        """
        import triton
        import triton.language as tl
        """,
        SCALE,
        """
        @triton.autotune([triton.Config({"BLOCK": 32 << n}, num_warps=1) for n in range(5)], key=["n"])
        @triton.jit
        def tuned(x, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(x + at, tl.load(x + at, at < n) * 2, at < n)

        tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](Pointer(), 1000)
        """,
    )
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    assert [kernel.constexprs["BLOCK"] for kernel in run.kernels] == ["32", "128", "512"]
    assert [kernel.benchmark_launches for kernel in run.kernels] == [1, 1, 1]
    assert [sum(one.count for one in kernel.launches) for kernel in run.kernels] == [1, 0, 0]
    assert [note.text for note in run.notes] == [
        "Some autotuner configurations were not compiled (--configs all compiles them): 3 of 5 of tuned."
    ]
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out", configs=None)
    assert len(run.kernels) == 5
    assert not run.notes
    cache = open_cache(tmp_path / "out")
    (chosen,) = recorded_launches(cache, "tuned")  # what the program launched
    assert chosen.kernel_hash == run.kernels[0].hash
    assert chosen.grid == (32, 1, 1)
    (measured,) = recorded_launches(cache, run.kernels[3].hash)
    assert measured.grid == (4, 1, 1)
    tuned = {one.kernel_hash: one.grid[0] for one in recorded_launches(cache, "tuned", all_variants=True)}
    assert tuned == {one.hash: -(-1000 // int(one.constexprs["BLOCK"])) for one in run.kernels}


@pytest.mark.long
@needs_triton
def test_nothing_is_on_record_of_a_launch_of_what_does_not_compile(program, tmp_path):
    command = program(
        """
        import triton
        import triton.language as tl
        """,
        SCALE,
        """
        @triton.jit
        def uneven(x, BLOCK: tl.constexpr):
            tl.store(x + tl.arange(0, BLOCK), 0.0)

        for block in (3, 4):
            uneven[1,](Pointer(), BLOCK=block)
        """,
    )
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    assert [kernel.directory is None for kernel in run.kernels] == [True, False]
    assert [row["hash"] for row in read_launches(tmp_path / "out")] == [run.kernels[1].hash]


@needs_torch
@pytest.mark.exhaustive
def test_heuristics_and_tensors_made_on_cuda_are_the_programs_own(program, tmp_path):
    command = program(
        """
        import torch
        import triton
        import triton.language as tl

        @triton.heuristics({"EVEN": lambda args: args["n"] % 128 == 0})
        @triton.jit
        def double(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            value = tl.load(x + at) if EVEN else tl.load(x + at, at < n)
            tl.store(out + at, value * 2, at < n)

        def wrapper(x):
            assert x.is_cuda
            out = torch.empty_like(x)
            double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
            return out

        wrapper(torch.randn(256, device="cuda", dtype=torch.float16))
        wrapper(torch.ones(100).to("cuda:0"))
        wrapper(torch.empty(1 << 40, device="meta", dtype=torch.bfloat16))
        layer = torch.nn.Linear(16, 16, device="cuda").cuda()
        with torch.autocast("cuda"):
            wrapper(layer(torch.randn(8, 16, device=0)))
        print(torch.cuda.get_device_capability(), torch.cuda.get_device_properties(0).multi_processor_count)
        """
    )
    first, second = capture_program(command, ["sm_75", "sm_90"], tmp_path / "out")
    assert (first.status, second.status) == (0, 0), second.output
    assert [(k.signature["x"], k.constexprs["EVEN"]) for k in second.kernels] == [
        ("*fp16:16", "True"),
        ("*fp32:16", "False"),
        ("*bf16:16", "True"),
    ]
    half = second.kernels[0]
    assert [sum(one.count for one in half.launches)] == [2]  # the last one under autocast
    assert second.output.endswith("(9, 0) 132\n")


@needs_torch
@pytest.mark.exhaustive
def test_what_torch_compile_makes_is_captured(program, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    command = program(
        """
        import torch

        @torch.compile
        def half(x):
            return (torch.nn.functional.gelu(x) * 2).sum(-1)

        half(torch.randn(64, 512, device="cuda", dtype=torch.float16))
        """
    )
    nvidia, amd = capture_program(command, ["sm_80", "gfx942"], tmp_path / "out")
    for run in (nvidia, amd):
        assert run.status == 0, run.output
        (kernel,) = run.kernels
        assert kernel.name.startswith("triton_per_fused_gelu_mul_sum")
        assert kernel.directory.parent == tmp_path / "out"
        assert [launch.count for launch in kernel.launches] == [1]
        assert kernel.launches[0].caller.startswith("script.py:")


@needs_torch
@pytest.mark.exhaustive
def test_kernels_of_an_aotinductor_export_are_captured(program, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    command = program(
        """
        import torch
        class Half(torch.nn.Module):
            def forward(self, x):
                return (torch.nn.functional.gelu(x) * 2).sum(-1)
        with torch.no_grad():
            x = torch.randn(64, 512, device="cuda", dtype=torch.float16)
            exported = torch.export.export(Half(), (x,))
            try:
                torch._inductor.aoti_compile_and_package(exported, package_path="model.pt2")
            except Exception as error:
                assert "cuda.h" in str(error), error  # its C++ needs CUDA
        """
    )
    (run,) = capture_program(command, ["sm_90"], tmp_path / "out")
    assert run.status == 0, run.output
    assert {kernel.name for kernel in run.kernels} == {"triton_per_fused_gelu_mul_sum_0"}


@pytest.mark.long
@needs_torch
def test_what_cannot_be_faked_is_said_with_its_place(program, tmp_path):
    command = program(
        """
        import torch
        """,
        SCALE,
        """
        counts = torch.ones(4, device="cuda", dtype=torch.int32)
        before = int(counts[0])
        scale[(before,)](counts, 4, 1, BLOCK=128)
        found = torch.empty(1, device="cuda", dtype=torch.int32)
        rows = found.item()
        scale[(rows,)](counts, 4, 1, BLOCK=128)
        """,
    )
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    assert [(note.text.partition(":")[0], note.location) for note in run.notes] == [
        ("Values are read back after a launch (item)", f"script.py:{line_of('found.item()')}"),
        ("A grid dimension is zero", f"script.py:{line_of('scale[(rows,)]')}"),
    ]
    assert [launch.grid for launch in run.kernels[0].launches] == [(1, 1, 1), (0, 1, 1)]


@pytest.mark.long
@needs_triton
def test_a_failing_program_keeps_its_status_its_traceback_and_its_kernels(program, tmp_path):
    command = program(SCALE, "\nwrapper(1000)\nraise OSError('no data')\n")
    first, second = capture_program(command, ["sm_75", "sm_80"], tmp_path / "out")
    assert (first.status, second.status) == (1, 1)
    assert "Traceback" in second.output
    assert second.output.endswith("OSError: no data\n")
    assert [len(run.kernels) for run in (first, second)] == [1, 1]
    assert first.problem is None  # the traceback says it


@pytest.mark.long
@needs_triton
def test_a_killed_program_keeps_what_was_captured_until_then(program, tmp_path):
    command = program(
        SCALE, "\nfor _ in range(5):\n    wrapper(1000)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    assert run.status == 128 + signal.SIGKILL
    (launch,) = run.kernels[0].launches
    assert 4 <= launch.count <= 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("print('nothing')\n", "The program never imported Triton, so it launched no kernel."),
        ("import triton\n", "The program imported Triton and launched no kernel."),
    ],
)
@needs_triton
def test_a_program_that_launches_nothing_is_told_of(text, problem, program, tmp_path):
    (run,) = capture_program(program(text), ["sm_80"], tmp_path / "out")
    assert run.problem == (problem, None)
    assert not run.kernels


def test_a_python_that_keeps_the_stand_in_out_is_told_of(program, tmp_path):
    command = program("import this\n")
    (run,) = capture_program([sys.executable, "-S", command[1]], ["sm_80"], tmp_path / "out")
    assert run.status == 0
    assert "started no Python that could be captured" in run.problem[0]
    assert "without -I, -E or -S" in run.problem[1]


@pytest.mark.parametrize("name", ["triton", "torch"])
def test_an_interpreter_without_triton_or_torch_is_named(name, program, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    command = program(f"import {name}\n")
    (run,) = capture_program([str(bare / "bin" / "python"), command[1]], ["sm_80"], tmp_path / "out")
    assert run.status == 1
    assert run.problem[0].endswith(f"/bare/bin/python has no {name}, which the program imports.")
    assert run.problem[1].endswith("-- /path/to/python script.py")


@pytest.mark.long
@needs_triton
def test_a_refused_kernel_is_a_row_and_the_program_goes_on(program, tmp_path):
    command = program(
        SCALE,
        """
        @triton.jit
        def wrong(x, BLOCK: tl.constexpr):
            tl.store(x + tl.arange(0, BLOCK), no_such_name)

        from triton._C.libtriton import nvidia
        from triton.runtime.cache import get_cache_manager

        nvidia.cublas.CublasLt(None).matmul(Pointer(), Pointer(), Pointer())
        get_cache_manager(wrong[(1,)](Pointer(), BLOCK=32).hash)
        wrapper(1000)
        """,
    )
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    wrong, scale = run.kernels
    assert wrong.directory is wrong.hash is None
    assert "no_such_name is not defined" in wrong.message
    assert [launch.count for launch in wrong.launches] == [1]
    assert scale.directory.is_dir()
    assert run.status == 0


@pytest.mark.long
@needs_triton
def test_a_compile_that_takes_too_long_costs_its_own_row(program, tmp_path):
    (run,) = capture_program(program(SCALE, "\nwrapper(1000)\n"), ["sm_80"], tmp_path / "out", time_limit=0.01)
    assert [kernel.message for kernel in run.kernels] == ["took longer than 0.01 s"]
    assert run.status == 0


@pytest.mark.exhaustive
@needs_triton
def test_a_kernel_too_big_for_the_gpu_is_compiled_and_said_to_be(program, tmp_path):
    command = program(
        SCALE,
        """
        class Half(Pointer):
            dtype = "fp16"

        @triton.jit
        def matmul(a, b, c, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
            rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
            total = tl.zeros((M, N), tl.float32)
            for k in range(0, K, STEP):
                left = tl.load(a + rows[:, None] * K + k + inner[None, :])
                right = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
                total = tl.dot(left, right, total)
            tl.store(c + rows[:, None] * N + columns[None, :], total)

        matmul[(1,)](Half(), Half(), Pointer(), 4096, 128, 128, 64, num_warps=8, num_stages=6)
        """,
    )
    (run,) = capture_program(command, ["sm_89"], tmp_path / "out")
    (kernel,) = run.kernels
    assert re.fullmatch(r"needs \d{6} B of shared memory, and the GPU has 101376", kernel.shortage)
    assert kernel.directory.is_dir()
    assert [launch.count for launch in kernel.launches] == [1]


@pytest.mark.long
@needs_triton
def test_another_triton_brings_what_it_links_with_and_runs_the_program(program, tmp_path, monkeypatch):
    lent = {"TRITON_HIP_LLD_PATH": "/some/ld.lld", "PYTHONPATH": "/its/own"}
    monkeypatch.delenv("TRITON_HIP_LLD_PATH", raising=False)
    asked = []

    def find(version, python=None, *, notice):
        asked.append(version)
        return Interpreter([sys.executable], lent, version)

    monkeypatch.setattr(running, "find_interpreter", find)
    tell = "\nimport os\nwrapper(1000)\nprint(os.environ['TRITON_HIP_LLD_PATH'], os.environ['PYTHONPATH'])\n"
    _, second = capture_program(program(SCALE, tell), ["sm_75", "sm_80"], tmp_path / "out", triton="3.2")
    assert asked == ["3.2.0"]
    assert "/some/ld.lld " in second.output
    assert "/its/own" not in second.output
    assert [kernel.name for kernel in second.kernels] == ["scale"]


@needs_triton
def test_another_triton_takes_the_place_of_python_and_of_nothing_else(tmp_path: Path) -> None:
    here, own = ["--version"], f"{version('triton')}={sys.executable}"
    with pytest.raises(UsageError, match=r"replaces `python`, and /bin/sh is another program"):
        capture_program(["/bin/sh", *here], ["sm_80"], tmp_path, triton=own)


@pytest.mark.long
def test_a_run_that_is_stopped_leaves_no_half_of_a_compile_and_none_that_goes_on(program, tmp_path):
    endless = "\nfor stages in range(1, 10**6):\n    scale[(1,)](Pointer(), 1000, 1, BLOCK=128, num_stages=stages)\n"
    out = tmp_path / "out"
    (run,) = capture_program(program(SCALE, endless), ["sm_80"], out, seconds=6)
    left = sorted(path.name for path in out.iterdir())
    assert run.kernels
    assert not [name for name in left if name.startswith(".compiling-")]
    time.sleep(1)  # a compile takes less
    assert sorted(path.name for path in out.iterdir()) == left


@pytest.mark.long
@needs_torch
def test_a_block_is_captured_and_everything_is_as_before(module, tmp_path):
    import torch
    import triton
    from triton.compiler import compiler
    from triton.runtime import autotuner, jit
    from triton.runtime.driver import driver

    places = [driver, triton, triton.testing, compiler, compiler.CompiledKernel, jit.JITFunction,
              autotuner.Autotuner, torch, torch.cuda, torch.Tensor, torch.version, torch.nn.Module,
              torch.library, torch.library.Library, torch.backends.cuda]  # fmt: skip
    script = module(SCALE, name="restored_script")
    before = [dict(vars(place)) for place in places]
    state = dict(vars(script.scale))
    with capture(["sm_90", "gfx942"], tmp_path / "out") as kernels:
        assert not kernels
        assert torch.cuda.is_available()
        script.wrapper(1000)
        assert torch.ones(3, device="cuda").device == torch.device("cuda", 0)
    assert [(kernel.name, kernel.target.arch) for kernel in kernels] == [("scale", "sm_90"), ("scale", "gfx942")]
    assert [kernel.launches[0].grid for kernel in kernels] == [(8, 1, 1)] * 2
    for place, old in zip(places, before, strict=True):
        # what was imported meanwhile stays
        now = {name: value for name, value in vars(place).items() if not isinstance(value, ModuleType)}
        assert now == {name: value for name, value in old.items() if not isinstance(value, ModuleType)}, place
    assert dict(vars(script.scale)) == state
    assert not torch.cuda.is_available()
    assert torch.ones(3).device.type == "cpu"
    facts = list(inspect_cache(open_cache(kernels[0].directory)))
    assert [found.artifact.hash for found in facts] == [kernels[0].hash]
    assert not facts[0].problems
    assert len(open_cache(kernels.directory).entries) == 2


@needs_triton
def test_an_exception_leaves_the_block_with_the_kernels_kept_and_everything_restored(module, tmp_path):
    from triton.runtime.driver import driver

    script = module(SCALE, name="raising_script")
    before = dict(vars(driver))
    with pytest.raises(ZeroDivisionError), capture(["sm_80"], tmp_path) as kernels:
        script.wrapper(1000 // len(script.wrapper(1000) or ()))
    assert [kernel.name for kernel in kernels] == ["scale"]
    assert dict(vars(driver)) == before
    with capture(["sm_80"], tmp_path) as again:
        script.wrapper(1000)
    assert [kernel.hash for kernel in again] == [kernel.hash for kernel in kernels]


@needs_triton
def test_a_block_in_a_block_is_refused_and_the_outer_one_goes_on(module, tmp_path):
    script = module(SCALE, name="nested_script")
    with capture(["sm_80"], tmp_path) as kernels:
        with pytest.raises(UsageError, match="A capture is already active"), capture(["sm_90"], tmp_path):
            pass
        script.wrapper(1000)
    assert len(kernels) == 1


@needs_triton
def test_threads_may_launch_at_the_same_time(module, tmp_path):
    script = module(SCALE, name="threaded_script")
    with capture(["sm_80"], tmp_path) as kernels:
        threads = [threading.Thread(target=script.wrapper, args=(size,)) for size in (1000, 1001, 4096, 1000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(sum(one.count for one in kernel.launches) for kernel in kernels) == [1, 3]


@needs_triton
def test_what_a_vendor_does_not_know_is_refused_for_its_target_alone(module, tmp_path):
    script = module(SCALE, name="vendor_script")
    with capture(["gfx942", "sm_80"], tmp_path) as kernels:
        script.scale[(1,)](script.Pointer(), 5, 1, BLOCK=128, waves_per_eu=2)
    amd, nvidia = kernels
    assert amd.options["waves_per_eu"] == 2
    assert amd.directory.is_dir()
    assert "waves_per_eu" in nvidia.message


@pytest.mark.parametrize(
    ("targets", "configs", "said"),
    [([], 3, "No target"), (["sm_8O"], 3, "Did you mean sm_8"), (["sm_80"], 0, "Cannot capture 0 configurations")],
)
def test_a_request_that_makes_no_sense_is_refused(targets, configs, said, tmp_path):
    with pytest.raises(UsageError, match=said), capture(targets, tmp_path, configs=configs):
        pass
    with pytest.raises(UsageError, match=said):
        capture_program(["python", "x.py"], targets, tmp_path, configs=configs)


def test_a_program_that_cannot_be_started_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no_such_program cannot be run.*python their_script\.py"):
        capture_program(["./no_such_program"], ["sm_80"], tmp_path)
    with pytest.raises(UsageError, match="no program to run"):
        capture_program([], ["sm_80"], tmp_path)


def test_without_triton_a_block_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("artifact_inspector.compiling.ask.process.find_spec", lambda name: None)
    with pytest.raises(CompileError, match=r"pip install 'triton"), capture(["sm_80"], tmp_path):
        pass


@needs_triton
def test_a_block_under_the_interpreter_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(CompileError, match="kernels are interpreted"), capture(["sm_80"], tmp_path):
        pass
    assert os.environ.get("TRITON_CACHE_DIR") != str(tmp_path)


def test_counts_of_several_processes_add_up_and_a_later_count_replaces_an_earlier():
    described = {"name": "k", "signature": {}, "constexprs": {}, "options": {}, "seconds": 0.1,
                 "directory": "/c/K", "message": None, "place": "a.py:1", "caller": "a.py:1"}  # fmt: skip
    launch = {"event": "launched", "kernel": "h", "target": "sm_80", "grid": [4, 1, 1], "place": "a.py:1",
              "caller": "a.py:1", "benchmark": False}  # fmt: skip
    events = [
        {"event": "started", "process": 1},
        *({"event": "compiled", "kernel": "h", "target": "sm_80", **described} for _ in range(2)),
        *({**launch, "process": 1, "times": times} for times in (1, 2, 3)),
        {**launch, "process": 2, "times": 4},
    ]
    (kernel,) = find_kernels(events)
    assert [(one.grid, one.count) for one in kernel.launches] == [((4, 1, 1), 7)]


def test_a_note_is_written_once():
    events = []
    recorder = Recorder(events.append)
    for _ in range(3):
        recorder.write_note("It is so.", parse_target("sm_80"), "a.py:3")
    assert [(note.text, note.location, note.targets) for note in find_notes(events)] == [
        ("It is so.", "a.py:3", (parse_target("sm_80"),))
    ]


def test_every_known_target_is_answered_for():
    for target in KNOWN_TARGETS:
        device = device_of(target)
        assert device.multiprocessors > 0
        assert device.warp_size == target.warp_size
        assert device.shared_bytes == (target.limits.shared_per_block or 65536)


@pytest.mark.long
@needs_torch
def test_launches_are_recorded_with_what_their_arguments_are(program, tmp_path):
    command = program(
        """
        import torch
        import triton
        import triton.language as tl

        @triton.jit
        def pick(x, rows, out, n, scale, BLOCK: tl.constexpr):
            row = tl.load(rows + tl.program_id(0))
            at = tl.arange(0, BLOCK)
            tl.store(out + at, tl.load(x + row * n + at, at < n) * scale, at < n)

        x = torch.randn(8, 100, device="cuda", dtype=torch.float16)
        rows = torch.tensor([3, 1, -2], device="cuda", dtype=torch.int32)
        out = torch.empty(200, device="cuda", dtype=torch.float16)[4:]
        for _ in range(2):
            pick[(3,)](x.t(), rows, out, 100, 0.5, BLOCK=128)
        later = torch.tensor([3, 2, -2], device="cuda", dtype=torch.int32)
        kernel = pick[(3,)](x.t(), later, out, 100, 0.5, BLOCK=128)
        kernel[(5, 1, 1)](x.t(), later, out, 100, 0.5, 128)  # as Inductor does
        """
    )
    capture_program(command, ["sm_90"], tmp_path / "out")
    first, second, direct = read_launches(tmp_path / "out")
    assert direct == {**second, "grid": [5, 1, 1]}
    (own,) = open_cache(tmp_path / "out").entries
    assert (first["hash"], first["kernel"], first["target"]) == (own.hash, "pick", "sm_90")
    assert first["grid"] == [3, 1, 1]
    assert first["args"] == {
        "x": {"shape": [100, 8], "stride": [1, 100], "dtype": "float16", "alignment": 512},
        "rows": {"shape": [3], "stride": [1], "dtype": "int32", "alignment": 512, "values": [3, 1, -2]},
        "out": {"shape": [196], "stride": [1], "dtype": "float16", "alignment": 8, "storage": 2, "offset": 8},
        "n": 100,
        "scale": 0.5,
        "BLOCK": 128,
    }
    assert first["initialized"] == ["x", "rows"]
    assert first["created"] == second["created"] == {"out": 0}
    assert second["initialized"] == ["x", "rows", "out"]  # the first launch may have written it
    # no kernel may have written what torch makes of constants, before a launch or behind it
    assert second["args"]["rows"]["values"] == [3, 2, -2]
    # such a launch can be run on paper
    document = (tmp_path / "out" / "inspect-kernel.json").read_text()
    request, *_ = parse_document(document, "inspect-kernel.json")
    assert request.grid == (3, 1, 1)
    assert request.arguments["x"].shape == (100, 8)
    assert (request.arguments["n"], request.arguments["BLOCK"]) == (100, 128)


def test_outputs_that_the_program_fills_itself_are_recorded() -> None:
    given = {"event": "given", "kernel": "k", "target": "sm_90", "grid": [1], "args": {"n": 1}, "tuning": False}
    compiled = {"event": "compiled", "kernel": "k", "target": "sm_90", "directory": "d", "name": "kernel"}
    events = [compiled, {**given, "created": {"a": 0, "b": 2}}, {"event": "filled", "storage": 2}]
    (launch,) = find_launches(events)
    assert launch["filled"] == ["b"]


def test_launches_of_earlier_programs_stay_in_the_manifest_and_none_stands_twice(tmp_path):
    launch = {"hash": "a", "kernel": "k", "target": "sm_90", "grid": [1, 1, 1], "args": {"n": 1}}
    add_to_manifest(tmp_path, [], [launch])
    add_to_manifest(tmp_path, [], [launch, {**launch, "grid": [2, 1, 1]}])
    assert [one["grid"] for one in read_launches(tmp_path)] == [[1, 1, 1], [2, 1, 1]]


@needs_torch
def test_a_measured_launch_is_recorded_with_addresses_and_values(module, tmp_path):
    import torch

    from artifact_inspector.measuring.gpu_process import _record_launches

    scale = module(SCALE, name="measured").scale
    rows = torch.arange(4, dtype=torch.int32)
    with capture(targets=["sm_90"], out=tmp_path / "out") as kernels:
        told = _record_launches(lambda: scale[lambda given: (given["n"] // given["BLOCK"],)](rows, 512, 1, BLOCK=128))
    (launch,) = told
    assert (launch["hash"], launch["grid"]) == (kernels[0].hash, [4, 1, 1])
    assert launch["args"]["x"]["values"] == [0, 1, 2, 3]
    assert launch["args"]["x"]["ptr"] == rows.data_ptr()
    assert launch["args"]["x"]["ptr"] % launch["args"]["x"]["alignment"] == 0


@needs_torch
@pytest.mark.exhaustive
def test_a_run_is_stopped_behind_so_many_launches_with_a_table_for_every_target(program, tmp_path):
    command = program(
        "import torch\n",
        SCALE,
        "\nx = torch.empty(1000, device='cuda')\nfor n in range(1, 10**6):\n    scale[(n,)](x, 1000, 1, BLOCK=128)\n",
    )
    runs = capture_program(command, ["sm_80", "sm_90", "gfx942"], tmp_path / "out", launches=5)
    for run in runs:
        assert (run.status, run.problem) == (0, None)
        assert sum(launch.count for launch in run.kernels[0].launches) == 5
        assert run.notes[0].text == "The program was stopped after 5 launches."


@pytest.mark.long
@needs_torch
def test_a_run_is_stopped_after_so_many_seconds(program, tmp_path):
    command = program(SCALE, "\nimport time\nwrapper(1000)\ntime.sleep(600)\n")
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out", seconds=3)
    assert run.status == 0
    assert run.notes[0].text == "The program was stopped after 3 s."
    with pytest.raises(UsageError, match="must be positive"):
        capture_program(command, ["sm_80"], tmp_path / "out", seconds=0)


@needs_torch
@pytest.mark.exhaustive
def test_what_inductor_tunes_is_captured_and_can_be_reset(program, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    command = program(
        """
        import torch
        torch._dynamo.reset()
        f = torch.compile(lambda x: torch.softmax(x.float(), -1), dynamic=False)
        with torch.no_grad():
            f(torch.randn(64, 3000, device="cuda"))
        torch._dynamo.reset()
        """
    )
    (run,) = capture_program(command, ["sm_90"], tmp_path / "out")
    assert run.status == 0
    assert [bool(kernel.launches) for kernel in run.kernels] == [True, False]
    assert all(kernel.message is None for kernel in run.kernels)


@needs_triton
def test_a_program_that_failed_by_itself_is_not_told_to_install_what_it_can_do_without(program, tmp_path):
    command = program("import sys\ntry:\n    import nothing_of_the_kind\nexcept ImportError:\n    pass\nsys.exit(3)\n")
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    assert (run.status, run.problem) == (3, None)
    events = [{"event": "started"}, {"event": "missing", "module": "torch", "python": "python"}]
    assert _describe_failure(events, ["python"], captured=False, failed=True) is None
    wanted = [*events, {"event": "uncaught", "module": "torch"}]
    assert "has no torch" in _describe_failure(wanted, ["python"], captured=False, failed=True)[0]


@pytest.mark.long
@needs_triton
def test_a_captured_refusal_begins_with_its_reason(program, tmp_path):
    body = "".join(f"    a{n} = tl.program_id(0) + {n}\n" for n in range(40))
    command = program(
        SCALE,
        "\n@triton.jit\ndef wrong(x, B: tl.constexpr):\n"
        f"{body}    tl.static_assert(B == 3, 'B must be three')\n\nwrong[(1,)](Pointer(), B=2)\n",
    )
    (run,) = capture_program(command, ["sm_80"], tmp_path / "out")
    (kernel,) = run.kernels
    first = kernel.message.splitlines()[0]
    assert "B must be three" in first
    assert re.search(r"script\.py:\d+:", first)
