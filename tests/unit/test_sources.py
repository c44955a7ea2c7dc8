"""Lines of the source are quoted only from the file that was compiled."""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path

import pytest
from saved import FIXTURES, ROOT, saved, saved_kernels
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.files.sources import find_source, is_unchanged, read_python_source, source_line_reader
from artifact_inspector.model import Frame

TEXT = "import triton\n\n@triton.jit\ndef add(x, y):\n    z = load(x)\n"
PLACE = Frame("/src/lib/add.py", 3, 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "add.py").write_text(TEXT)
    return tmp_path


def test_a_line_is_that_of_the_file_that_was_compiled(tree: Path) -> None:
    quote = source_line_reader(PLACE, "add", tree)
    assert quote("add.py:5") == "z = load(x)"
    assert quote("add.py:5 via :9") == "z = load(x)"
    assert find_source(PLACE.file, tree) == "lib/add.py"


def test_a_line_that_helion_generated_is_that_of_its_program(tree: Path) -> None:
    """As Helion prints it: one comment for each statement, before the lines made of it."""
    text = (
        "@triton.jit\ndef _helion_add(x, y, _BLOCK_SIZE_0: tl.constexpr):\n    pid_0 = tl.program_id(0)\n"
        "    # src[add.py:9]: for tile in hl.tile(x.size()):\n    # src[add.py:10]:     out[tile] = x[tile] + y[tile]\n"
        "    load = tl.load(x)\n    v_0 = load + 1\n    # src[add.py:12-13]: out[0] = torch.sum(\n    tl.store(y, v_0)\n"
    )
    (tree / "gen.py").write_text(text)
    quote = source_line_reader(Frame("/tmp/gen.py", 1, 1), "_helion_add", tree)
    assert quote("gen.py:3") == "pid_0 = tl.program_id(0)"
    assert quote("gen.py:6") == quote("gen.py:7") == "out[tile] = x[tile] + y[tile]  # add.py:10"
    assert quote("gen.py:9") == "out[0] = torch.sum(  # add.py:12-13"


@pytest.mark.parametrize("where", ["other.py:5", "add.py:2", "add.py:99", "add.py:0", "add.py", ""])
def test_of_other_files_and_lines_nothing_is_quoted(tree: Path, where: str) -> None:
    assert source_line_reader(PLACE, "add", tree)(where) is None


def test_a_file_whose_kernel_stands_elsewhere_now_is_not_quoted(tree: Path) -> None:
    (tree / "lib" / "add.py").write_text("\n" * 40 + TEXT)
    quote = source_line_reader(PLACE, "add", tree)
    assert quote("add.py:45") == "(add.py differs from the compiled source: not quoted)"
    assert quote("add.py:45") is None  # the warning is printed once
    assert source_line_reader(PLACE, "other", tree)("add.py:45") is None  # another file, perhaps
    assert source_line_reader(None, "add", tree)("add.py:5") is None


def test_a_library_is_quoted_from_its_recorded_path_if_it_fits(tmp_path: Path) -> None:
    artifact = saved("3.6.0/sm_80/masked_add").facts.artifact
    library = tmp_path / "site-packages" / "masked_add.py"
    library.parent.mkdir()
    text = (ROOT / "fixtures" / "sources" / "masked_add.py").read_text()
    (line,) = [n for n, x in enumerate(text.splitlines(), 1) if x.startswith("def masked_add")]
    place = Frame(str(library), line, 1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for content, quoted in (
        (text, "def masked_add"),
        ("\n" * 40 + text, None),
        (text.replace("def masked", "def other"), None),
    ):
        library.write_text(content)
        quote = source_line_reader(place, "masked_add", elsewhere, artifact)(f"masked_add.py:{line}")
        assert quote is None if quoted is None else quote is not None and quote.startswith(quoted)


def test_a_name_that_leaves_the_tree_is_not_followed(tree: Path) -> None:
    assert source_line_reader(Frame("../lib/add.py", 3, 1), "add", tree / "lib")("add.py:5") is None


def edited(text: str, edit: str) -> str:
    """A text with one replacement; `|` starts a line of a kernel's body."""
    old, new = edit.split(" -> ")
    assert text.count(old) == 1
    return text.replace(old, new.replace("|", "\n    "))


@pytest.mark.parametrize("version", ["3.2.0", "3.6.0", "3.9.0"])
@pytest.mark.parametrize(
    ("edit", "is_noticed"),
    [
        ("for k in range( -> x = 1|for k in range(", True),
        (" a = tl.load( ->  first = tl.load(", True),
        ("GROUP_SIZE_M * num_pid_n -> GROUP_SIZE_M + num_pid_n", False),
    ],
)
def test_an_edit_that_moves_a_token_is_noticed(version: str, edit: str, is_noticed: bool) -> None:
    kernel = saved(f"{version}/{'gfx942' if version == '3.9.0' else 'sm_80'}/matmul_grouped").facts
    assert kernel.program is not None
    assert kernel.program.location is not None
    text = (ROOT / "kernels" / "matmul_grouped.py").read_text(encoding="utf-8")
    arguments = kernel.program.location, "matmul_kernel", kernel.artifact
    assert is_unchanged(text, *arguments)
    assert is_unchanged(edited(text, edit), *arguments) is not is_noticed


@pytest.mark.exhaustive
def test_the_sources_of_all_saved_kernels_fit() -> None:
    checked = 0
    for kernel in saved_kernels():
        facts = kernel.facts
        location = None if facts.program is None else facts.program.location
        text = (
            None
            if location is None
            else read_python_source(location.file, ROOT / "fixtures") or read_python_source(location.file, ROOT)
        )
        if location is not None and text is not None:
            assert is_unchanged(text, location, facts.artifact.display_name, facts.artifact), facts.artifact.directory
            checked += 1
    assert checked > 100


LAUNCH = "--arg x_ptr=fp16[8,1008] --arg y_ptr=fp16[8,1008] --arg stride_x=1008 --arg stride_y=1008 --arg n_cols=992"


@pytest.mark.parametrize(
    "words",
    [
        "diff SM_80 SM_90 --html PAGE",
        "matrix SM_80 --html PAGE",
        pytest.param(f"predict SM_80 {LAUNCH} --grid 8 --html PAGE", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("is_given", [True, False])
def test_pages_quote_the_files_below_the_given_directory(
    words: str, is_given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of the kernel in the data of the page, which is compressed; without the directory, it is not found."""
    monkeypatch.chdir(tmp_path)
    names = {"SM_80": "3.6.0/sm_80/softmax", "SM_90": "3.6.0/sm_90/softmax"}
    paths = {**{word: str(FIXTURES / path) for word, path in names.items()}, "PAGE": "page.html"}
    arguments = [paths.get(word, word) for word in words.split()]
    done = CliRunner().invoke(app, [*arguments, *(["--sources", str(ROOT / "kernels")] if is_given else [])])
    assert done.exit_code in (0, 1), done.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    packed = re.findall(r"[A-Za-z0-9+/=]{300,}", page)
    data = page + "".join(zlib.decompress(base64.b64decode(one)).decode() for one in packed)
    assert ("numerator / tl.sum(numerator, axis=0)" in data) == is_given
