"""Compiling with no GPU makes an ordinary Triton cache, and a refusal is a row."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest

from artifact_inspector import kernels
from artifact_inspector.compiling import (
    REFERENCE_KERNELS,
    ConstantText,
    KernelRequest,
    compile_kernel,
    compile_kernels,
    compile_reference,
)
from artifact_inspector.compiling.ask.manifest import read_manifest
from artifact_inspector.compiling.ask.process import keep_workers, kept_processor_seconds
from artifact_inspector.compiling.child_processes import CompileJob, run_jobs
from artifact_inspector.compiling.worker.loading import _read_config
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.cache import open_cache, open_file

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")


@pytest.mark.long
@needs_triton
def test_one_kernel_for_both_vendors_lands_in_one_cache(tmp_path):
    seen = []
    results = compile_reference(["softmax"], ["sm_80", "hip:gfx90a"], tmp_path, progress=seen.append)
    assert [(result.kernel, result.target.arch) for result in results] == [("softmax", "sm_80"), ("softmax", "gfx90a")]
    assert sorted(seen, key=id) == sorted(results, key=id)
    nvidia, amd = (result.directory for result in results)
    assert {nvidia.parent, amd.parent} == {tmp_path}
    assert re.search(r"^\.target sm_80$", (nvidia / "softmax_kernel.ptx").read_text(), re.M)
    # Triton 3.9 writes a triple of another form
    assert re.search(r"^\s*\.amdgcn_target .*gfx90a", (amd / "softmax_kernel.amdgcn").read_text(), re.M)


@pytest.mark.long
@needs_triton
def test_a_file_that_is_called_like_a_library_hides_none(tmp_path, monkeypatch):
    shutil.copy(Path(__file__).parents[2] / "fixtures" / "sources" / "copy.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    made = compile_kernel(
        "copy.py:copy", "sm_80", signature="*fp16,*fp16,i32", constexprs={"BLOCK": 64}, out_dir=tmp_path
    )
    assert made.directory.is_dir()


@pytest.mark.long
@needs_triton
def test_pointers_of_amd_kernels_reach_less_than_2_gib_as_in_a_launch(tmp_path):
    (result,) = compile_reference(["softmax"], ["gfx942"], tmp_path)
    pointers = re.search(
        r"tt\.func public @softmax_kernel\((.*)\)", (result.directory / "softmax_kernel.ttir").read_text()
    )
    assert pointers[1].count("tt.pointer_range = 32 : i32") == 2


@pytest.mark.long
@needs_triton
def test_a_refused_compile_is_a_row_with_the_compilers_message_and_costs_no_other(tmp_path):
    # no Triton knows an AMD processor of this name
    refused, made = compile_reference(["softmax"], ["gfx999", "sm_80"], tmp_path)
    assert refused.directory is None
    assert "gfx999" in refused.message
    assert "Traceback" not in refused.message
    assert made.directory.is_dir()
    assert made.message is None


@pytest.mark.long
@needs_triton
def test_no_compile_takes_longer_than_it_may(tmp_path):
    (result,) = compile_reference(["flash_attention"], ["sm_75"], tmp_path, time_limit=0.02)
    assert result.directory is None
    assert result.message == "took longer than 0.02 s"


def _work(tmp_path, compile_one, key="one"):
    return CompileJob({"kernel": key}, key, tmp_path, compile_one)


def _die(staging):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_compiler_that_dies_costs_its_own_row(tmp_path):
    rows = run_jobs([_work(tmp_path, _die), _work(tmp_path, _entry, "other")], workers=1, time_limit=60)
    died, made = rows
    assert died["directory"] is None
    assert died["message"] == "the compiler was ended by SIGKILL"
    assert made["message"] is None


def _two_errors(staging):
    # as a compiler does it: past Python
    os.write(2, b"kernel.py:3:1: error: no such layout\nsome warning\nmodule {\n}\n")
    raise RuntimeError("PassManager::run failed")


def test_a_refusal_names_what_the_compiler_printed_first_and_keeps_the_rest_for_who_asks(tmp_path):
    (row,) = run_jobs([_work(tmp_path, _two_errors)], workers=1, time_limit=60)
    assert row["message"] == "kernel.py:3:1: error: no such layout\nRuntimeError: PassManager::run failed"
    assert "module {" in row["details"]


def _entry(staging):
    (staging / "abc").mkdir()
    (staging / "abc" / "k.json").write_text("{}")
    paths = {"k.json": str(staging / "abc" / "k.json")}
    (staging / "abc" / "__grp__k.json").write_text(json.dumps({"child_paths": paths}))
    return "abc"


def test_an_entry_is_moved_into_the_cache_whole_and_its_group_file_with_it(tmp_path):
    (row,) = run_jobs([_work(tmp_path, _entry)], workers=1, time_limit=60)
    group = json.loads((tmp_path / "abc" / "__grp__k.json").read_text())
    assert row["directory"] == str(tmp_path / "abc")
    assert group["child_paths"] == {"k.json": str(tmp_path / "abc" / "k.json")}
    assert [path.name for path in tmp_path.iterdir()] == ["abc"]


def _entry_once(staging):
    # a second compile would find the mark of the first
    (staging.parent / "mark").mkdir()
    return _entry(staging)


def test_work_of_one_key_is_done_once_and_answered_twice(tmp_path):
    rows = list(run_jobs([_work(tmp_path, _entry_once), _work(tmp_path, _entry_once)], workers=2, time_limit=60))
    assert [row["message"] for row in rows] == [None, None]
    assert [row["cached"] for row in rows] == [False, True]


def test_an_unknown_kernel_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match=r"Unknown reference kernel 'gemm'.*gemv_splitk"):
        compile_reference(["gemm"], ["sm_80"], tmp_path)


def test_without_triton_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("artifact_inspector.compiling.ask.process.find_spec", lambda name: None)
    with pytest.raises(CompileError, match=r"pip install 'triton>=3\.4'"):
        compile_reference(["softmax"], ["sm_80"], tmp_path)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_where_triton_cannot_be_installed_the_error_says_where_it_can(platform, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(CompileError, match="Compile on Linux"):
        compile_reference(["softmax"], ["sm_80"], tmp_path)


def test_every_reference_kernel_is_listed():
    slow_on_purpose = {"gemm_int4"}  # what `advise` is shown with
    modules = {module.name for module in iter_modules(kernels.__path__)}
    assert sorted(REFERENCE_KERNELS) == sorted(modules - slow_on_purpose)


KERNELS = """
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=n) for n in (1, 2, 4, 8)], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["LENGTH"] % args["BLOCK"] == 0, "HAS_Y": lambda args: args["y_ptr"] is not None})
@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr, LENGTH: tl.constexpr, EVEN: tl.constexpr, HAS_Y: tl.constexpr, DTYPE: tl.constexpr = tl.float32):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + offsets)
    else:
        x = tl.load(x_ptr + offsets, mask=offsets < n)
    if HAS_Y:
        x += tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x.to(DTYPE), mask=offsets < n)

@triton.jit
def wrong(x_ptr):
    tl.store(x_ptr + 1, tl.no_such_thing(2))

NOT_A_KERNEL = 3
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "some_kernels.py"
    path.write_text(KERNELS)
    return path


def ask(source, **given):
    given.setdefault("signature", "*fp32:16,None,i32")
    given.setdefault("constexprs", {"LENGTH": 1024})
    return KernelRequest(f"{source}:scale", **given)


@pytest.mark.long
@needs_triton
def test_a_kernel_of_any_file_is_compiled_by_its_signature_with_the_first_configuration(source, tmp_path):
    (result,) = compile_kernels([ask(source)], ["sm_80"], tmp_path / "c")
    assert result.message is None
    assert result.kernel == "scale"
    assert (result.config, result.options["num_warps"]) == ("BLOCK=128 num_warps=1 num_stages=3", 1)
    # the heuristics were evaluated: one from a constant, one from a pointer that is not there
    assert result.constants == {
        "y_ptr": None,
        "BLOCK": 128,
        "LENGTH": 1024,
        "EVEN": True,
        "HAS_Y": False,
        "DTYPE": "fp32",
    }
    assert result.types == ("x_ptr=*fp32:16", "n=i32")
    (artifact,) = open_cache(tmp_path / "c").entries
    assert (artifact.num_warps, artifact.target.arch) == (1, "sm_80")


@needs_triton
def test_a_configuration_is_told_by_what_it_asks_for(monkeypatch):
    # as triton.Config of 3.2 and 3.3 holds it
    partitioned = {"num_buffers_warp_spec": 0, "num_consumer_groups": 2, "reg_dec_producer": 0}
    chosen = SimpleNamespace(kwargs={"BLOCK": 128}, num_warps=4, num_stages=0, num_ctas=1, **partitioned)
    assert str(_read_config(chosen)) == "BLOCK=128 num_warps=4 num_stages=0 num_consumer_groups=2"


@pytest.mark.long
@needs_triton
def test_configurations_are_compiled_as_many_as_are_asked_for(source, tmp_path):
    requests = [ask(source, configs=configs) for configs in ("all", 2, 9)]
    results = compile_kernels(requests, ["sm_80"], tmp_path / "c")
    warps = [result.options["num_warps"] for result in results]
    assert (warps[:4], warps[4:6], warps[6:]) == ([1, 2, 4, 8], [1, 4], [1, 2, 4, 8])


@pytest.mark.long
@needs_triton
def test_constants_that_replace_all_that_is_tuned_need_no_configuration(source, tmp_path):
    constants = {"LENGTH": 100, "BLOCK": 64, "DTYPE": ConstantText("tl.float16")}
    (result,) = compile_kernels([ask(source, constexprs=constants)], ["sm_80"], tmp_path / "c")
    assert result.config is None
    assert result.options == {}
    assert (result.constants["BLOCK"], result.constants["EVEN"], result.constants["DTYPE"]) == (64, False, "fp16")


@pytest.mark.long
@needs_triton
def test_a_heuristic_that_needs_a_value_of_the_launch_leaves_its_argument_missing(source, tmp_path):
    request = ask(source, signature="*fp32:16,*fp32:16,i32,LENGTH=128", constexprs={})
    made, refused = compile_kernels([request, ask(source, constexprs={})], ["sm_80"], tmp_path / "c")
    assert made.constants["HAS_Y"] is True
    assert refused.is_usage_error
    assert refused.message == "scale needs its arguments LENGTH, EVEN."
    assert "--const LENGTH=… --const EVEN=…" in refused.remedy


@pytest.mark.long
@needs_triton
def test_the_second_time_everything_is_cached_and_the_manifest_has_each_job_once(source, tmp_path):
    requests = [ask(source, configs="all"), KernelRequest("softmax")]
    first = compile_kernels(requests, ["sm_80", "gfx942"], tmp_path / "c")
    second = compile_kernels(requests, ["sm_80", "gfx942"], tmp_path / "c")
    assert {row.is_cached for row in first} == {False}
    assert {row.is_cached for row in second} == {True}
    assert [row.directory for row in first] == [row.directory for row in second]
    entries = read_manifest(tmp_path / "c")
    assert len(entries) == 10
    assert {entry["seconds"] > 0 for entry in entries} == {True}
    assert {(tmp_path / "c" / entry["directory"]).resolve() for entry in entries} == {row.directory for row in first}
    cache = open_cache(tmp_path / "c")
    assert len(cache.entries) == 10
    assert not cache.problems
    assert [other.kind for other in cache.others] == ["manifest of compiled kernels"]


@pytest.mark.long
@needs_triton
def test_a_compile_error_is_its_sentence_and_its_line_without_a_dump(source, tmp_path):
    with pytest.raises(CompileError) as refused:
        compile_kernel(f"{source}:wrong", "sm_80", signature="*fp32", out_dir=tmp_path / "c")
    line = KERNELS.splitlines().index("    tl.store(x_ptr + 1, tl.no_such_thing(2))") + 1
    assert refused.value.message == (
        f"{source}:{line}:25: AttributeError: module 'triton.language' has no attribute 'no_such_thing'\n"
        "  tl.store(x_ptr + 1, tl.no_such_thing(2))"
    )


NO_KERNELS = [
    ("some_kernels.py:scal", "has no scal", "Did you mean scale?"),
    ("some_kernels.py:NOT_A_KERNEL", "is a int, not a Triton kernel", "It has scale, wrong."),
    ("some_kernels.py", "names no kernel", "It has scale, wrong."),
    ("no_such.py:scale", "There is no file", "FILE.py:KERNEL"),
    ("broken.py:scale", "does not import: SyntaxError", "See the full error"),
    ("needs.py:scale", "does not import: No module named 'no_such_library'", "Install no_such_library"),
    ("asks.py:scale", "does not import: RuntimeError: 0 active drivers", "inspect-kernel capture"),
    ("exits.py:scale", "does not import: SystemExit: 3", "See the full error"),
    ("dies.py:scale", "ended the process that imported it", "Check that"),
    ("leaves.py:scale", "ended the process that imported it (exit status 0)", "Check that"),
]
"""Place, what is said of it, and what to do."""


@pytest.mark.long
@needs_triton
def test_a_place_that_is_no_kernel_is_a_named_problem_and_costs_no_other(source, tmp_path):
    (tmp_path / "broken.py").write_text("def (")
    (tmp_path / "needs.py").write_text("import no_such_library")
    (tmp_path / "asks.py").write_text("raise RuntimeError('0 active drivers ([]).')")
    (tmp_path / "exits.py").write_text("print('chatter'); raise SystemExit(3)")
    (tmp_path / "dies.py").write_text("import os; os.abort()")
    (tmp_path / "leaves.py").write_text("import os; os._exit(0)")
    requests = [KernelRequest(str(tmp_path / place)) for place, _, _ in NO_KERNELS]
    *refused, made = compile_kernels([*requests, KernelRequest("softmax")], ["sm_80"], tmp_path / "c")
    for (_, message, remedy), row in zip(NO_KERNELS, refused, strict=True):
        assert message in row.message
        assert remedy in row.remedy
    assert made.message is None


@pytest.mark.long
@needs_triton
def test_a_script_that_needs_a_gpu_below_its_kernels_compiles(tmp_path):
    """What stands behind the first line that needs one is not executed, but its definitions are."""
    script = (
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef scale(x_ptr, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n    tl.store(x_ptr + i, tl.load(x_ptr + i) * FACTOR)\n\n"
        "raise AssertionError('Torch not compiled with CUDA enabled')\nFACTOR = tl.constexpr(3)\nleft = 1 / 0\n"
    )
    (tmp_path / "script.py").write_text(script)
    (tmp_path / "late.py").write_text(script.replace("raise", "raise_here = 1\nraise").replace("FACTOR = ", "OTHER = "))
    requests = [
        KernelRequest(f"{tmp_path / name}:scale", "*fp32:16", {"BLOCK": 128}) for name in ("script.py", "late.py")
    ]
    made, refused = compile_kernels(requests, ["sm_80"], tmp_path / "c")
    assert made.message is None
    assert "FACTOR" in (refused.message or "")


@pytest.mark.long
@needs_triton
def test_a_file_that_never_imports_is_ended_and_costs_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr("artifact_inspector.compiling.ask.process.IMPORT_SECONDS", 4.0)
    (tmp_path / "sleeps.py").write_text("import time; time.sleep(600)")
    requests = [KernelRequest(f"{tmp_path}/sleeps.py:k"), KernelRequest("softmax")]
    refused, made = compile_kernels(requests, ["sm_80"], tmp_path / "c")
    assert "was not imported in 4 s" in refused.message
    assert made.message is None


@pytest.mark.long
@needs_triton
def test_a_kept_process_imports_a_file_once_and_is_replaced_if_one_ends_it(source, tmp_path):
    counted = source.with_name("counted.py")
    counted.write_text(f"open({str(tmp_path / 'imports')!r}, 'a').write('.')\n{source.read_text()}")
    (tmp_path / "dies.py").write_text("import os; os._exit(3)")
    requests = [ask(counted, constexprs={"LENGTH": length}) for length in (1024, 1000, 2048)]
    assert kept_processor_seconds() == 0
    with keep_workers():
        for number, request in enumerate(requests[:2], 1):
            assert compile_kernels([request], ["sm_80"], tmp_path / "c")[0].message is None
            assert (tmp_path / "imports").read_text() == "."
            assert kept_processor_seconds() > 0, number
        dead, made = compile_kernels([KernelRequest(f"{tmp_path}/dies.py:k"), requests[2]], ["sm_80"], tmp_path / "c")
        assert "ended the process that imported it" in dead.message
        assert made.message is None
        untrusted = replace(requests[0], is_untrusted=True)
        assert compile_kernels([untrusted], ["sm_80"], tmp_path / "d")[0].message is None
        # the process that was ended, and the one whose path has no working directory, import it again
        assert (tmp_path / "imports").read_text() == "..."
    assert kept_processor_seconds() == 0


@needs_triton
def test_an_unknown_option_is_refused_with_the_nearest_that_there_is(tmp_path):
    with pytest.raises(UsageError, match=r"no option 'waves_per_e'.*waves_per_eu"):
        compile_kernel("softmax", "gfx942", out_dir=tmp_path, waves_per_e=2)


@pytest.mark.long
@needs_triton
def test_an_architecture_that_nobody_knows_is_refused_with_near_ones(tmp_path):
    with pytest.raises(CompileError, match=r"gfx943 is not a known GPU; similar names are gfx942"):
        compile_kernel("softmax", "gfx943", out_dir=tmp_path)


@needs_triton
@pytest.mark.exhaustive
def test_an_interrupted_sweep_leaves_whole_entries_and_no_compiler(tmp_path):
    code = (
        "import sys; from pathlib import Path; from artifact_inspector.compiling import compile_reference\n"
        "compile_reference(['softmax', 'layer_norm', 'matmul_square'], ['sm_80', 'sm_90', 'gfx942'], Path(sys.argv[1]), progress=lambda row: print(row.kernel, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode != 0
    cache = open_cache(tmp_path)
    assert cache.entries
    assert {entry.state for entry in cache.entries} == {"complete"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert read_manifest(tmp_path)
    for _ in range(50):
        running = [line for line in _command_lines() if str(tmp_path) in line]
        if not running:
            break
        time.sleep(0.1)
    assert not running


def _command_lines():
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (process / "environ").read_text(errors="replace")


TUNED = """
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 128}, num_warps=n) for n in (1, 2)], key=["n"])
@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, at < n) * 2, at < n)
"""
HERE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "artifact-inspector" / "triton"


@pytest.mark.long
@needs_triton
@pytest.mark.parametrize("version", ["3.2.0", "3.3.1"])
def test_an_autotuner_that_asks_the_driver_when_it_is_made_is_compiled(tmp_path, version):
    if not (HERE / version).is_dir():
        pytest.skip(f"There is no environment with Triton {version} here.")
    (tmp_path / "tuned.py").write_text(TUNED)
    request = KernelRequest(f"{tmp_path / 'tuned.py'}:scale", "*fp32:16,i32", configs="all")
    results = compile_kernels([request], ["sm_80"], tmp_path / "out", tritons=[version])
    assert [result.message for result in results] == [None, None]
    assert {entry.num_warps for entry in open_cache(tmp_path / "out").entries} == {1, 2}


@pytest.mark.exhaustive
@needs_triton
def test_a_reference_kernel_has_the_configurations_that_its_page_tells_of(tmp_path):
    request = KernelRequest("matmul_grouped", configs=2)
    results = compile_kernels([request], ["sm_80"], tmp_path)
    assert [result.config is not None for result in results] == [True, True]
    assert len({result.constants["BLOCK_SIZE_K"] for result in results}) == 2


def test_the_last_line_of_a_long_refusal_is_kept():
    from artifact_inspector.compiling.child_processes import MESSAGE_LINES, _shorten

    lines = [f"line {n}" for n in range(100)]
    assert _shorten(lines)[-1] == "line 99"
    assert "…" in _shorten(lines)
    assert _shorten(lines[:MESSAGE_LINES]) == lines[:MESSAGE_LINES]


def test_a_kernel_is_called_by_the_version_that_its_manifest_knows(tmp_path):
    fixture = Path(__file__).parents[2] / "fixtures" / "3.0.0"
    entry = next(path for path in sorted(fixture.rglob("*.json"))).parent
    shutil.copytree(entry, tmp_path / "cache" / "entry")
    (before,) = open_cache(tmp_path / "cache").entries
    assert before.triton_version == "3.0/3.1"
    for said, told in (("3.1.0", "3.1.0"), ("3.9.0", "3.0/3.1")):
        rows = {"entries": [{"directory": "entry", "triton": said}]}
        (tmp_path / "cache" / "inspect-kernel.json").write_text(json.dumps(rows))
        for place in (tmp_path / "cache", tmp_path / "cache" / "entry"):
            (found,) = open_cache(place).entries
            assert found.triton_version == told
    (file,) = (tmp_path / "cache" / "entry").glob("*.ttir")
    (tmp_path / "cache" / "inspect-kernel.json").write_text(
        json.dumps({"entries": [{"directory": "entry", "triton": "3.1.0"}]})
    )
    assert open_file(file).entries[0].triton_version == "3.1.0"
