"""A compile with equal TTGIR takes the later stages of a finished one, unless they read an option that differs."""

import json
import sys
from dataclasses import dataclass
from functools import cache
from types import ModuleType, SimpleNamespace

import pytest

from artifact_inspector.compiling import stage_reuse
from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.compiling.stage_reuse import StageRecord, remember, reused_stages
from tests.unit.test_compiling import needs_triton

_TARGETS = ("sm_90", "gfx942")


@dataclass(frozen=True)
class _Options:
    num_stages: int = 3
    maxnreg: int = 0
    fusion: bool = True


@cache
def _feature(options):
    """As Triton's `get_features`: the first call reads the options, the next does not."""
    return options.fusion


class _Backend:
    """A compiler whose stages count how often they run."""

    runs: list

    def add_stages(self, stages, options):
        def lower(module, metadata):
            self.runs.append("llir")
            metadata["shared"] = len(module)
            return f"{module} fma {_feature(options)} {metadata.get('depth', '')}"

        stages["ttgir"] = lambda module, metadata: f"{module} {min(options.num_stages, 2)} {_feature(options)}"
        stages["llir"] = lower
        stages["cubin"] = lambda module, metadata: f"{module} {options.maxnreg}".encode()


@pytest.fixture
def compile_kernel(monkeypatch, tmp_path):
    """Compiles as Triton does, and remembers the compile."""
    backend = type("Backend", (_Backend,), {"runs": []})
    compiler = ModuleType("triton.compiler.compiler")
    compiler.make_backend = lambda target: backend()
    for name in ("triton", "triton.compiler"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "triton.compiler.compiler", compiler)
    monkeypatch.setattr(stage_reuse, "_finished", {})

    def compile_one(name, options, more=None):
        record, stages, entry = StageRecord(), {}, tmp_path / name
        metadata = {"hash": name, **vars(options), **(more or {})}
        with reused_stages(None, record):
            backend().add_stages(stages, options)
            module = "kernel"
            entry.mkdir()
            for stage, run in stages.items():
                module = run(module, metadata)
                file = entry / f"k.{stage}"
                file.write_bytes(module) if isinstance(module, bytes) else file.write_text(module)
        (entry / "k.json").write_text(json.dumps(metadata))
        (entry / "__grp__k.json").write_text("{}")
        remember(json.loads(json.dumps(record.as_json())), entry)
        return module, metadata

    return SimpleNamespace(one=compile_one, runs=backend.runs, root=tmp_path)


def test_an_option_that_no_later_stage_reads_may_differ(compile_kernel):
    first, metadata = compile_kernel.one("a", _Options(num_stages=3))
    second, reused = compile_kernel.one("b", _Options(num_stages=4))
    assert (first, compile_kernel.runs) == (second, ["llir"])
    assert reused == {**metadata, "hash": "b", "num_stages": 4}


@pytest.mark.parametrize("options", [_Options(maxnreg=64), _Options(fusion=False), _Options(num_stages=1)])
def test_a_changed_option_of_a_later_stage_or_another_ttgir_compiles_again(compile_kernel, options):
    compile_kernel.one("a", _Options())
    changed, _ = compile_kernel.one("b", options)
    stage_reuse._finished.clear()
    assert changed == compile_kernel.one("c", options)[0]
    assert compile_kernel.runs == ["llir"] * 3


def test_metadata_that_a_later_stage_reads_must_be_equal(compile_kernel):
    compile_kernel.one("a", _Options(), {"depth": 1})
    assert b" 2 " in compile_kernel.one("b", _Options(), {"depth": 2})[0]


def test_an_entry_that_is_gone_is_not_reused(compile_kernel):
    compile_kernel.one("a", _Options())
    (compile_kernel.root / "a" / "k.llir").unlink()
    compile_kernel.one("b", _Options(num_stages=4))
    assert compile_kernel.runs == ["llir"] * 2


@pytest.mark.long
@needs_triton
def test_reused_stages_leave_the_files_that_compiling_leaves(tmp_path):
    """Triton's own compile, each in a process that has finished no other, is the judge."""
    requests = [KernelRequest("softmax", options={"num_stages": stages, "num_warps": 8}) for stages in (2, 5)]
    together = compile_kernels(requests, _TARGETS, tmp_path / "together", workers=1)
    apart = [x for one in requests for x in compile_kernels([one], _TARGETS, tmp_path / "apart")]
    assert len({x.directory.name for x in together}) == 4
    assert len(apart) == 4
    for x in together:
        for file in (f for f in x.directory.iterdir() if not f.name.startswith("__grp__")):
            other = tmp_path / "apart" / x.directory.name / file.name
            assert _lines(file, "together") == _lines(other, "apart"), file


def _lines(file, directory):
    """The content without the directory, and without the time that ptxas took."""
    lines = file.read_bytes().replace(directory.encode(), b"").splitlines()
    return [line for line in lines if b"Compile time" not in line]
