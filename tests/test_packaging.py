"""What an install puts on a machine: one package, with the reference kernels inside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from artifact_inspector.compiling import REFERENCE_KERNELS

ROOT = Path(__file__).parents[1]
LISTING = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib.util import find_spec
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
print(*sorted(find_spec(module).origin for module in REFERENCE_KERNELS.values()), sep="\\n")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    subprocess.run(command, check=True, cwd=out)
    return next(out.glob("*.whl"))


@pytest.mark.long
def test_a_wheel_installs_one_package_and_nothing_beside_it(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"artifact_inspector"}


@pytest.mark.long
def test_the_reference_kernels_are_found_in_an_installed_package(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    found = subprocess.run(
        [sys.executable, "-c", LISTING, str(tmp_path)], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout.split()
    inside = tmp_path / "artifact_inspector" / "kernels"
    assert found == sorted(str(inside / f"{name}.py") for name in REFERENCE_KERNELS)


def test_a_checkout_finds_them_in_its_own_folder() -> None:
    from artifact_inspector import kernels

    assert [Path(place) for place in kernels.__path__] == [ROOT / "kernels"]


def test_no_page_installs_a_name_that_is_not_published() -> None:
    pages = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.md"))]
    asked = [
        words
        for page in pages
        for words in re.findall(r"pip install [^`\n]*artifact-inspector[^`\n]*", page.read_text(encoding="utf-8"))
    ]
    assert len(asked) >= 3
    assert [words for words in asked if " @ git+" not in words] == []


@pytest.mark.exhaustive
def test_the_form_with_git_installs(tmp_path: Path) -> None:
    """As the pages write it, with the address of this clone."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no clone")
    # older pips take no address without a host
    wanted = f"artifact-inspector @ git+file://localhost{ROOT.as_posix()}"
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(tmp_path), wanted]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert len(list(tmp_path.glob("artifact_inspector-*.whl"))) == 1
