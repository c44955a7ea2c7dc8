"""Files that torch.compile wrote compile without a GPU, with the arguments of their decorator."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest
from saved import saved
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.inductor_output import find_origin, kernel_paths, kernel_sources
from artifact_inspector.files.sources import source_line_reader
from artifact_inspector.model import Frame

KERNEL = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime.hints import AutotuneHint, ReductionHint, TileHint, DeviceProperties
triton_helpers.set_driver_to_gpu()

@triton_heuristics.pointwise(
    size_hints={'x': 1048576},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32', 'ks0': 'i64', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}, 'device': DeviceProperties(type='cuda', index=0, multi_processor_count=68, cc=75, major=7, regs_per_multiprocessor=65536, max_threads_per_multi_processor=1024, warp_size=32), 'constants': {}, 'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]], (3,): [['tt.divisibility', 16]]}]},
    inductor_meta={'grid_type': 'Grid1D', 'autotune_hints': set(), 'kernel_name': 'triton_poi_fused_add_0', 'mutated_arg_names': [], 'optimize_mem': True, 'no_x_dim': False, 'num_load': 1, 'num_reduction': 0, 'assert_indirect_indexing': True, 'autotune_local_cache': True, 'autotune_pointwise': True, 'max_autotune': False, 'max_autotune_pointwise': False},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tmp0 + libdevice.exp(tmp0) + ks0
    tl.store(out_ptr0 + (x0), tmp1, xmask)
"""
OTHER = KERNEL.replace("fused_add_0", "fused_mul_1").replace("tmp0 + libdevice", "tmp0 * libdevice")
WRAPPER = f"""
import torch
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()
no_such_module.call()  # a wrapper is never run

triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', \'\'\'{KERNEL}\'\'\', device_str='cuda')
triton_poi_fused_mul_1 = async_compile.triton('triton_poi_fused_mul_1', \'\'\'{OTHER}\'\'\', device_str='cuda')
async_compile.wait(globals())
"""


def compile_file(kernel: object, out: Path, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["compile", str(kernel), "-t", "H100", "-o", str(out), *options])
    return done.exit_code, done.output


@pytest.mark.exhaustive
def test_a_kernel_file_needs_no_signature(tmp_path: Path) -> None:
    (tmp_path / "csqw.py").write_text(KERNEL)
    code, output = compile_file(tmp_path / "csqw.py", tmp_path / "cache")
    assert code == 0, output
    (entry,) = open_cache(tmp_path / "cache").entries
    assert (entry.display_name, str(entry.target)) == ("triton_poi_fused_add_0", "sm_90")
    # as Inductor compiles it; see triton_heuristics.py, `_precompile_config`
    assert (entry.metadata["debug"], entry.metadata["sanitize_overflow"]) == (True, False)
    (record,) = json.loads((tmp_path / "cache" / "inspect-kernel.json").read_text())["entries"]
    assert record["types"] == ["in_ptr0=*fp32:16", "out_ptr0=*fp32:16", "ks0=i64", "xnumel=i32:16"]
    assert record["constants"].keys() == {"XBLOCK"}
    assert "tt.divisibility = 16" in (tmp_path / "cache" / entry.directory / "triton_poi_fused_add_0.ttir").read_text()


@pytest.mark.exhaustive
def test_all_its_configurations_compile(tmp_path: Path) -> None:
    (tmp_path / "csqw.py").write_text(KERNEL)
    code, output = compile_file(tmp_path / "csqw.py", tmp_path / "cache", "--configs", "all")
    assert code == 0, output
    records = json.loads((tmp_path / "cache" / "inspect-kernel.json").read_text())["entries"]
    assert len({record["constants"]["XBLOCK"] for record in records}) == len(records) > 1


@pytest.mark.exhaustive
def test_a_wrapper_is_read_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "output_code.py").write_text(WRAPPER)
    code, output = compile_file(f"{tmp_path / 'output_code.py'}:triton_poi_fused_mul_1", tmp_path / "cache")
    assert code == 0, output
    (entry,) = open_cache(tmp_path / "cache").entries
    assert entry.display_name == "triton_poi_fused_mul_1"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["", ":triton_poi_fused_add_9"])
def test_a_wrapper_without_that_kernel_lists_its_kernels(tmp_path: Path, name: str) -> None:
    (tmp_path / "output_code.py").write_text(WRAPPER)
    code, output = compile_file(f"{tmp_path / 'output_code.py'}{name}", tmp_path / "cache")
    assert code == 2
    assert "triton_poi_fused_add_0, triton_poi_fused_mul_1" in " ".join(output.split())


def test_the_directory_of_tlparse_has_its_kernels(tmp_path: Path) -> None:
    (tmp_path / "-_0_0_0").mkdir()
    (tmp_path / "-_1_0_0").mkdir()
    (tmp_path / "-_0_0_0" / "inductor_output_code_cabc_13.txt").write_text(WRAPPER)
    colours = '</span><span style="color:#323232;">'.join(
        html.escape(line) for line in WRAPPER.splitlines(keepends=True)
    )
    page = tmp_path / "-_1_0_0" / "inductor_output_code_cdef_14.html"
    page.write_text(f'<pre style="background-color:#ffffff;">\n<span>{colours}</span></pre>')
    (tmp_path / "raw.jsonl").write_text('{"inductor_output_code": {}}')
    places = [place.rpartition(":") for place in kernel_paths(tmp_path)]
    assert [name for _, _, name in places] == ["triton_poi_fused_add_0", "triton_poi_fused_mul_1"] * 2
    for file, _, name in places:
        assert dict(kernel_sources(Path(file).read_text()))[name] == (KERNEL if "add" in name else OTHER)
    assert [place.rpartition(":")[2] for place in kernel_paths(page)] == [name for _, _, name in places[:2]]
    assert kernel_paths(tmp_path / "raw.jsonl") == []
    code, printed = compile_file(tmp_path / "-_2", tmp_path / "out")
    assert (code, "does not exist" in printed or "Unknown" in printed) == (2, True), printed
    listed = CliRunner().invoke(app, [str(tmp_path), "--no-index"])
    assert (listed.exit_code, "2 × Inductor's source: give it to" in listed.output) == (3, True)


ORIGIN = (
    "# kernel path: PATH\n"
    "# Topologically Sorted Source Nodes: [exp, add], Original ATen: [aten.exp, aten.add]\n"
    "# Source node to ATen node mapping:\n#   add => add_1\n"
)
COMMENTED = WRAPPER.replace("\ntriton_poi_fused_add_0 = async", f"\n{ORIGIN}triton_poi_fused_add_0 = async")


def test_the_comment_before_a_kernel_names_its_operations() -> None:
    assert find_origin(COMMENTED, "triton_poi_fused_add_0") == "aten.exp, aten.add"
    assert find_origin(COMMENTED, "triton_poi_fused_mul_1") is None
    assert find_origin(WRAPPER, "triton_poi_fused_add_0") is None


@pytest.mark.parametrize("is_wrapper", [True, False])
def test_lines_of_generated_files_are_quoted_with_their_origin(tmp_path: Path, is_wrapper: bool) -> None:
    """From the wrapper that was compiled, and from a kernel's own file beside the wrapper that names it."""
    name, source = next(iter(kernel_sources(WRAPPER)))
    at = next(number for number, line in enumerate(source.splitlines(), 1) if line.startswith("@triton.jit"))
    artifact = replace(saved("3.6.0/sm_80/softmax").artifact, files={})
    if is_wrapper:
        (tmp_path / "output_code.py").write_text(COMMENTED)
        file = "/tmp/gone/triton_poi_fused_add_0.py"
        artifact = replace(artifact, requested_kernel=f"output_code.py:{name}")
    else:
        path = tmp_path / "torchinductor_u" / "ab" / "cabc.py"
        path.parent.mkdir(parents=True)
        path.write_text(source)
        file = str(path)
        wrapper = tmp_path / "torchinductor_u" / "cd" / "ccde.py"
        wrapper.parent.mkdir()
        wrapper.write_text(COMMENTED.replace("PATH", file))
        (wrapper.parent / "cother.py").write_text(COMMENTED.replace("aten.exp", "aten.sin"))
    root = tmp_path if is_wrapper else tmp_path / "elsewhere"
    read_line = source_line_reader(Frame(file, at, 0), name, root, artifact)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "tl.load" in text)
    quoted = "tmp0 = tl.load(in_ptr0 + (x0), xmask)  # from aten.exp, aten.add"
    assert read_line(f"{Path(file).name}:{line}") == quoted
    assert read_line(f"other.py:{line}") is None
