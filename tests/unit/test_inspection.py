"""What an inspection says of files that can be read only in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.modules import MOST_PROBLEMS
from artifact_inspector.files.cache import open_cache

BROKEN = {
    "ttir": ("  tt.func public @k() {\n", "    ?!\n", "    tt.return\n  }\n"),
    "llir": ("define void @k() {\n", "  ?!\n", "  ret void\n}\n"),
    "ptx": (".version 8.0\n.target sm_80\n.visible .entry k()\n{\n", "\t+;\n", "\tret;\n}\n"),
    "amdgcn": (
        '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n\t.type k,@function\nk:\n',
        "\t!garbage\n",
        "\ts_endpgm\n.Lfunc_end0:\n",
    ),
}


@pytest.mark.parametrize("stage", BROKEN)
def test_a_file_full_of_faults_names_some_and_counts_the_rest(tmp_path: Path, stage: str) -> None:
    head, fault, tail = BROKEN[stage]
    (tmp_path / f"k.{stage}").write_text(head + fault * (MOST_PROBLEMS + 5) + tail)
    (kernel,) = inspect_cache(open_cache(tmp_path))
    said = [found.problem for found in kernel.problems]
    assert len(said) == MOST_PROBLEMS + 1
    assert said[-1] == "… and 5 more"
