"""What Triton compiles meanwhile is collected by the hooks that its version has, and they are put back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import defaultdict
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from saved import ROOT, saved

from artifact_inspector import CompileError, watch

MATMUL = "3.6.0/sm_80/matmul_grouped"
GEMV = "3.2.0/gfx942/gemv_splitk"


def compiled(path: str) -> SimpleNamespace:
    artifact = saved(path).artifact
    asm = {suffix: file.read_bytes() for suffix, file in artifact.files.items() if suffix != "json"}
    texts = {s: content if s in ("cubin", "hsaco") else content.decode() for s, content in asm.items()}
    return SimpleNamespace(asm=texts, metadata=dict(artifact.metadata), src=SimpleNamespace(name=artifact.stem))


def group(path: str) -> dict[str, str]:
    return {Path(file.name).name: str(file) for file in saved(path).artifact.files.values()}


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A Triton without hooks; a test gives it those of a version."""
    package, runtime, jit = (ModuleType(name) for name in ("triton", "triton.runtime", "triton.runtime.jit"))
    package.__spec__ = ModuleSpec("triton", None)
    package.__version__ = "3.6.0"  # type: ignore[attr-defined]
    package.compile = lambda: None  # type: ignore[attr-defined]
    jit.JITFunction = type("JITFunction", (), {})  # type: ignore[attr-defined]
    for module in (package, runtime, jit):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    package.jit = jit  # type: ignore[attr-defined] # for the tests alone
    return package


def test_a_listener_hears_of_every_compile_and_hands_on_to_the_one_before(triton: ModuleType) -> None:
    told: list[object] = []
    triton.knobs = SimpleNamespace(compilation=SimpleNamespace(listener=lambda **said: told.append(said["cache_hit"])))
    before = triton.knobs.compilation.listener
    with watch() as kernels:
        for hit in (False, True):
            triton.knobs.compilation.listener(
                src=None, metadata={}, metadata_group=group(MATMUL), times=None, cache_hit=hit
            )
        triton.knobs.compilation.listener(src=None, metadata={}, metadata_group=group(GEMV), times=None, cache_hit=True)
        assert len(kernels) == 2  # one of them twice
    assert triton.knobs.compilation.listener is before
    assert told == [False, True, True]
    assert [kernel.title for kernel in kernels] == ["matmul_kernel for sm_80", "gemv_splitk for gfx942"]
    assert kernels[0].facts == kernels[0:1][0].facts
    assert kernels.note == ""


def test_kernels_are_held_when_the_cache_is_gone(triton: ModuleType, tmp_path: Path) -> None:
    triton.knobs = SimpleNamespace(compilation=SimpleNamespace(listener=None))
    entry = shutil.copytree(Path(saved(MATMUL).artifact.files["ptx"]).parent, tmp_path / "entry")  # type: ignore[arg-type]
    with watch() as kernels:
        triton.knobs.compilation.listener(metadata_group={p.name: str(p) for p in entry.iterdir()})
        shutil.rmtree(entry)
        triton.knobs.compilation.listener(metadata_group={"gone.json": str(entry / "gone.json")})
    assert triton.knobs.compilation.listener is None
    (kernel,) = kernels
    kernel.assert_pipelined(3)


def test_hooks_are_back_after_an_error(triton: ModuleType) -> None:
    triton.knobs = SimpleNamespace(compilation=SimpleNamespace(listener=None))
    with pytest.raises(ZeroDivisionError), watch():
        1 / 0  # noqa: B018
    assert triton.knobs.compilation.listener is None


class Function:
    """What a hook of a launch is told of, as 3.0 to 3.2 keep their kernels, and as 3.3 does."""

    def __init__(self, *, tuples: bool) -> None:
        self.kept: dict[int, dict[str, object]] = defaultdict(dict)
        if tuples:
            self.device_caches = {0: (self.kept[0], "target", "backend", "binder")}
        else:
            self.cache = self.kept


@pytest.mark.parametrize("tuples", [False, True])
def test_a_compiled_hook_hears_of_launches(triton: ModuleType, tuples: bool) -> None:
    called: list[str] = []
    function = triton.jit.JITFunction
    function.compiled_hook = lambda **told: called.append(told["key"])
    before = function.compiled_hook
    jitted = Function(tuples=tuples)
    with watch() as kernels:
        for key, path in (("one", MATMUL), ("two", GEMV)):
            jitted.kept[0][key] = compiled(path)
            function.compiled_hook(key=key, fn=SimpleNamespace(jit_function=jitted), compile={})
        assert len(kernels) == 2
    assert function.compiled_hook is before
    assert called == ["one", "two"]
    assert kernels.named("gemv_splitk").verdict == "clustered"
    assert kernels.note == "this Triton reports launches only, not triton.compile"


def test_a_cache_hook_hears_before_the_compile_so_kernels_come_at_the_end(triton: ModuleType) -> None:
    function = triton.jit.JITFunction
    function.cache_hook = None
    triton.__version__ = "3.0.0"  # type: ignore[attr-defined]
    jitted = Function(tuples=False)
    with watch() as kernels:
        for key in ("one", "never compiled"):
            assert not function.cache_hook(key=key, fn=SimpleNamespace(jit_function=jitted))
        jitted.kept[0]["one"] = compiled(MATMUL)
        assert len(kernels) == 0
    assert function.cache_hook is None
    assert [kernel.name for kernel in kernels] == ["matmul_kernel"]
    assert kernels.note.endswith("when the block ends")


def test_a_version_whose_hooks_tell_nothing_says_what_to_do_instead(triton: ModuleType) -> None:
    triton.__version__ = "2.1.0"  # type: ignore[attr-defined]
    triton.jit.JITFunction.cache_hook = None
    with pytest.raises(CompileError, match=r"Triton 2\.1\.0 does not report .* inspect\(kernel\[grid\]"), watch():
        pass


def test_without_triton_watching_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("artifact_inspector.compiling.ask.hooks.find_spec", lambda name: None)
    with pytest.raises(CompileError, match="Triton is not installed, so no compile can be reported"), watch():
        pass


def test_nothing_compiled_is_an_empty_list_that_says_why(triton: ModuleType) -> None:
    triton.knobs = SimpleNamespace(compilation=SimpleNamespace(listener=None))
    with watch() as kernels:
        pass
    assert (list(kernels), kernels.to_records()) == ([], [])
    assert "Triton compiled nothing here." in kernels.note
    assert repr(kernels) == f"<no kernels: {kernels.note}>"
    assert "Triton compiled nothing here." in kernels._repr_html_()
    with pytest.raises(LookupError, match=r"No kernel 'add' was compiled\. Compiled kernels: none"):
        kernels.named("add")


def test_watched_kernels_show_themselves_as_a_table(triton: ModuleType) -> None:
    triton.knobs = SimpleNamespace(compilation=SimpleNamespace(listener=None))
    with watch() as kernels:
        for path in (MATMUL, GEMV):
            triton.knobs.compilation.listener(metadata_group=group(path))
    html = kernels._repr_html_()
    assert "2 kernels" in html
    assert "pipelined(3)" in html
    assert "clustered" in html
    assert len(kernels.to_records()) == sum(len(kernel.to_records()) for kernel in kernels)


REAL = """
import json, os, sys
os.environ["TRITON_CACHE_DIR"] = sys.argv[1]
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from artifact_inspector import inspect, watch
from artifact_inspector.kernels.softmax import REFERENCE, softmax_kernel

def compile_it(target, **options):
    names = softmax_kernel.arg_names
    types = {n: REFERENCE.types.get(n, "constexpr") if n not in REFERENCE.constexprs else "constexpr" for n in names}
    source = ASTSource(fn=softmax_kernel, signature=types,
        constexprs={(names.index(n),): v for n, v in REFERENCE.constexprs.items()})
    return triton.compile(source, target=target, options=options)

ampere, cdna = GPUTarget("cuda", 80, 32), GPUTarget("hip", "gfx942", 64)
with watch() as kernels:
    first = compile_it(ampere)
    again = compile_it(ampere)
    other = compile_it(cdna)
outside = compile_it(ampere, num_warps=8)
with watch() as second:
    compile_it(ampere)
import shutil
shutil.rmtree(sys.argv[1])
print(json.dumps({
    "kernels": [k.title for k in kernels],
    "same": [inspect(first).facts == kernels[0].facts, inspect(other).facts == kernels[1].facts],
    "hash": [first.hash == kernels[0].details.artifact.hash],
    "from the cache": [k.title for k in second],
    "registers": inspect(outside).registers,
    "verdict": kernels[0].verdict,
}))
"""


@pytest.mark.long
def test_what_triton_itself_compiles_is_collected(tmp_path: Path) -> None:
    pytest.importorskip("triton", minversion="3.4")
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REAL, str(tmp_path / "cache")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    said = json.loads(answer.stdout)
    assert said["kernels"] == ["softmax_kernel for sm_80", "softmax_kernel for gfx942"]
    assert said["same"] == [True, True]
    assert said["hash"] == [True]
    assert said["from the cache"] == ["softmax_kernel for sm_80"]
    assert said["registers"] > 0
    assert said["verdict"] == "single"
