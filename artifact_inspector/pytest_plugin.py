"""The pytest plugin: fixtures for compiled kernels, stored facts, and evidence for failures.

Every pytest run of an environment with this package loads it. It therefore imports only pytest and the
standard library until a test requests a kernel.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from artifact_inspector.api import Inspection
    from artifact_inspector.api.compiling import KernelCompiler
    from artifact_inspector.api.saved import SavedIR
    from artifact_inspector.api.snapshots import StoredFacts
    from artifact_inspector.memory_checks.problems import MemoryReport

__all__: list[str] = []

_PLUGIN_FIXTURES = frozenset({"compile_kernel", "inspect_kernel", "saved_ir", "triton_cache"})
_EVIDENCE = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options of the plugin."""
    group = parser.getgroup("artifact-inspector", "compiled Triton kernels")
    group.addoption(
        "--saved-ir",
        action="append",
        default=[],
        metavar="DIR",
        help="search this directory of saved compiler output in the fixture saved_ir; may be repeated (ini: saved_ir)",
    )
    group.addoption(
        "--update-facts",
        action="store_true",
        help="write the files of the fixture stored_facts instead of comparing with them",
    )
    parser.addini("saved_ir", "directories for --saved-ir", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `targets`."""
    config.addinivalue_line(
        "markers",
        'targets(*gpus): run the test once per GPU, passed as `target`: @pytest.mark.targets("sm_80", "gfx942")',
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once per GPU of its marker `targets`."""
    gpus = [gpu for mark in metafunc.definition.iter_markers("targets") for gpu in mark.args]
    if not gpus:
        return
    if "target" in metafunc.fixturenames:
        # a test that parametrizes `target` itself does not use the marker for it
        if not any("target" in _parametrized_names(mark) for mark in metafunc.definition.iter_markers("parametrize")):
            metafunc.parametrize("target", list(dict.fromkeys(gpus)))
    elif _PLUGIN_FIXTURES & set(metafunc.fixturenames):
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid} has the marker targets but no argument `target`. Add the argument."
        )


def _parametrized_names(parametrize: pytest.Mark) -> list[str]:
    """The arguments that a marker `parametrize` supplies."""
    names = parametrize.args[0] if parametrize.args else parametrize.kwargs.get("argnames", "")
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


@pytest.fixture(scope="session")
def saved_ir(pytestconfig: pytest.Config) -> SavedIR:
    """Saved compiler output: `saved_ir("matmul", target="sm_80", triton="3.6")`."""
    from artifact_inspector.api.saved import SavedIR

    named = [Path(pytestconfig.invocation_params.dir, path) for path in pytestconfig.getoption("--saved-ir")]
    return SavedIR([*named, *pytestconfig.getini("saved_ir")])


@pytest.fixture
def triton_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that Triton compiles into while the test runs."""
    directory = tmp_path / "triton-cache"
    directory.mkdir()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(directory))
    # a directory set by the program takes precedence over the environment
    knobs = sys.modules.get("triton.knobs")
    if knobs is not None:
        monkeypatch.delitem(vars(knobs.cache), "dir", raising=False)
    return directory


@pytest.fixture(scope="session")
def inspect_kernel() -> Callable[..., Inspection]:
    """Inspect a compiled kernel or a path: `inspect_kernel(kernel[grid](…))`."""
    from artifact_inspector.api import inspect

    return inspect


@pytest.fixture(scope="session")
def check_memory() -> Callable[..., list[MemoryReport]]:
    """The memory errors of a cache's recorded launches: `check_memory("triton-cache", "add")[0].status == "clean"`."""
    from artifact_inspector.api.memory_errors import check_memory

    return check_memory


@pytest.fixture(scope="session")
def compile_kernel(tmp_path_factory: pytest.TempPathFactory) -> KernelCompiler:
    """Compile without a GPU: `compile_kernel(kernel, target, signature="*fp32, i32")`."""
    from artifact_inspector.api.compiling import KernelCompiler

    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent  # Triton's cache supports several processes
    return KernelCompiler(directory / "compiled-kernels")


@pytest.fixture
def stored_facts(request: pytest.FixtureRequest) -> StoredFacts:
    """The stored facts of this test: `assert kernel.facts == stored_facts`."""
    from artifact_inspector.api.snapshots import StoredFacts

    update = request.config.getoption("--update-facts")
    name = request.node.name
    holder = request.node.parent
    if isinstance(holder, pytest.Class):
        name = f"{holder.name}.{name}"
    return StoredFacts(request.path, name, update=update)


def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> list[str] | None:
    """Explain a failed comparison; its evidence is kept for the report."""
    for operand, other in ((left, right), (right, left)):
        if type(operand).__module__.partition(".")[0] == __name__.partition(".")[0]:
            explain = getattr(operand, "explain_comparison", None)
            if explain is not None:
                sentences, evidence = explain(other)
                config.stash.setdefault(_EVIDENCE, []).append(evidence)
                return [f"{left!r} {op} {right!r}", *sentences]
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add the evidence of a failed comparison to the failure, in full: pytest would truncate it."""
    outcome: Any = yield
    evidence = item.config.stash.get(_EVIDENCE, [])
    if evidence and call.excinfo is not None:
        failure = outcome.get_result().longrepr
        if hasattr(failure, "addsection"):
            failure.addsection("what was compiled", evidence[-1])
    evidence.clear()
