"""What all tests share: which run side by side, and facts that are found once.

Two processes share the tests by `-n 2`. What reads one directory of fixtures runs in one of them, kernel by
kernel, so that a file is parsed once; every other file of tests is one piece of work, the longest first.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

# No test looks up, or leaves behind, what another found, unless it asks for `recalled`.
os.environ["ARTIFACT_INSPECTOR_INDEX"] = "off"

# Hundreds of processes are started; without bytecode each compiles the package again. Where none is to be
# written beside the source, it is kept apart.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir(), "artifact-inspector-pyc"))
sys.dont_write_bytecode = False

# Under nohup or in the background of a shell, tests of signals would inherit that they are ignored.
for _name, _handler in (("SIGHUP", signal.SIG_DFL), ("SIGINT", signal.default_int_handler)):
    if (_number := getattr(signal, _name, None)) is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

_OF_A_KERNEL = re.compile(r"\[.*?(\d+\.\d+\.\d+/(?:sm_|gfx)\w+)/(\w*)")
LONGEST = (
    "tests/unit/test_memory_checks.py",
    "tests/diagnosis/test_planted.py",
    "tests/fuzz/test_untrusted_table.py",
    "tests/unit/test_execution_trips.py",
    "tests/unit/test_untrusted.py",
    "tests/unit/test_reproducer.py",
    "tests/unit/test_serving_bounds.py",
    "tests/unit/test_containers.py",
    "tests/diagnosis/test_source_edits.py",
    "tests/unit/test_value_checks.py",
    "tests/oracle/test_time.py",
    "tests/corpus/test_breaks.py",
    "tests/unit/test_seeded_memory_errors.py",
    "tests/diagnosis/test_tile_axes.py",
    "tests/fuzz/test_surfaces.py",
    "tests/oracle/test_regret.py",
    "tests/libraries/test_capture_libraries.py",
    "tests/unit/test_capture.py",
    "tests/test_docs.py",
    "tests/unit/test_compiling.py",
    "tests/plugin/test_plugin.py",
    "tests/passes/test_trace.py",
    "tests/unit/test_measuring.py",
    "tests/unit/test_remote.py",
    "tests/unit/test_fact_index.py",
    "tests/oracle/test_versions.py",
    "tests/oracle/test_counters.py",
    "tests/corpus/test_reference_suite.py",
    "tests/corpus/test_inflight.py",
)
"""Files that take long without reading fixtures kernel by kernel: they begin, so that none of them is last."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-docs", action="store_true", help="write what the commands print now into the pages")


def piece_of(nodeid: str) -> str:
    """Which tests are one piece of work: those of a directory of fixtures, else those of a file."""
    found = _OF_A_KERNEL.search(nodeid)
    return nodeid.partition("::")[0] if found is None else found[1]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest first, then the tests on one kernel together."""

    def place(item: pytest.Item) -> tuple[int, str, str]:
        found = _OF_A_KERNEL.search(item.nodeid)
        if found is not None:
            return len(LONGEST), found[1], found[2]
        file = item.nodeid.partition("::")[0]
        return (LONGEST.index(file) if file in LONGEST else len(LONGEST) + 1), "", ""

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Spares the collector of garbage what stays: tens of thousands of tests, and the modules that hold them."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Shares pieces of work, in the order above, where nothing else was asked for."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByPiece(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return piece_of(nodeid)

    config.option.loadscopereorder = False
    return ByPiece(config, log)


@pytest.fixture(scope="session")
def home_of_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory of all processes of this run of the tests."""
    place = tmp_path_factory.getbasetemp()
    home = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "home"
    (home / "artifact-inspector").mkdir(parents=True, exist_ok=True)
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "artifact-inspector" / "triton"
    link = home / "artifact-inspector" / "triton"
    if own.is_dir() and not link.is_symlink():  # releases of Triton that were installed before
        with contextlib.suppress(FileExistsError):  # the other process was first
            link.symlink_to(own, target_is_directory=True)
    return home


@pytest.fixture
def recalled(monkeypatch: pytest.MonkeyPatch, home_of_index: Path) -> None:
    """Commands look up what this run of the tests found of a saved kernel before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home_of_index))
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "")
