"""A record that its file no longer compiles to is not compared with changes of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.api.advice import replace_stale_entry
from artifact_inspector.cli.advise import apply_first_patch
from artifact_inspector.compiling.ask.compile import compile_kernels
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.errors import CompileError
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.files.cache import open_cache

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n):
    offs = tl.arange(0, 64)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * 2.0)
"""


@pytest.mark.exhaustive
def test_the_file_s_current_code_is_the_baseline(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(SOURCE, encoding="utf-8")
    kernel = f"{file}:scale"
    (row,) = compile_kernels([KernelRequest(kernel, {"x_ptr": "*fp32", "n": "i32"})], ["sm_90"], tmp_path / "record")
    assert row.directory is not None
    (entry,) = open_cache(tmp_path / "record").entries
    pair = entry, LaunchRequest((1, 1, 1), {"n": 64})
    assert replace_stale_entry(pair, kernel, tmp_path / "same") == pair
    assert not (tmp_path / "same").exists()  # nothing changed since: it is not compiled again
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    assert replace_stale_entry(pair, kernel, tmp_path / "beside") == pair
    assert (tmp_path / "beside").exists()
    assert replace_stale_entry(pair, f"{file}:other", tmp_path / "other") == pair
    # a shifted file has the same code at other lines
    file.write_text("\n" + SOURCE, encoding="utf-8")
    assert not replace_stale_entry(pair, kernel, tmp_path / "shifted")[1].notes
    file.write_text(SOURCE.replace("* 2.0", "* 3.0 + 1.0"), encoding="utf-8")
    current, request = replace_stale_entry(pair, kernel, tmp_path / "edited")
    assert current.hash != entry.hash
    assert [note.split(":")[0] for note in request.notes] == [f"the recorded {entry.hash[:12]} is stale"]
    file.write_text(SOURCE.replace("64)", "63)"), encoding="utf-8")
    with pytest.raises(CompileError, match="does not compile with the recorded types"):
        replace_stale_entry(pair, kernel, tmp_path / "broken")


@pytest.mark.parametrize("words", [("k.py:nosuch",), ("k.py:scale", "-S", "bogus"), ("k.py:scale", "-S", "*fp16")])
def test_a_wrong_request_is_a_usage_error(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(SOURCE, encoding="utf-8")
    file, *more = words
    result = CliRunner().invoke(cli.app, ["advise", str(tmp_path / file), *more])
    assert result.exit_code == 2


def test_without_a_patch_the_launch_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.py"
    file.write_text(f"{SOURCE}\n\ndef run(x):\n    scale[(1,)](x, 64, num_stages=2)\n", encoding="utf-8")
    remedy = Remedy("num_stages=3", None, 1.5, (), "serial-loop", True)
    apply_first_patch([RemedySearch((remedy,), 1, "")], f"{file}:scale")
    assert f"num_stages=3 is no edit of the kernel. Set it where scale is launched at {file}:13." in _words(capsys)
    apply_first_patch([RemedySearch((), 1, "No change tried helps (1 tried).")], f"{file}:scale")
    assert "No patch to apply: No change tried helps (1 tried)." in _words(capsys)
    apply_first_patch([None], None)
    assert "Give --kernel FILE.py:KERNEL." in _words(capsys)


def _words(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())
