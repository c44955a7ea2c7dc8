"""`check` on 40 deliberate breaks of reference kernels: the first line names the cause; no improvement fails a gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest
from breaks import BREAKS, Break
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.compiling import REFERENCE_KERNELS, KernelRequest, compile_kernels

TARGET = "sm_80"


def write_request(case: Break, directory: Path) -> KernelRequest:
    """The request of a broken kernel, whose source is a copy in the directory."""
    module = import_module(REFERENCE_KERNELS[case.kernel])
    reference = module.REFERENCE
    source = Path(module.__file__ or "").read_text(encoding="utf-8")
    signature, constants = dict(reference.signature), dict(reference.constexprs)
    options = {"num_warps": reference.num_warps, "num_stages": reference.num_stages}
    if " => " in case.change:
        old, new = case.change.split(" => ")
        assert old in source, case
        source = source.replace(old, new)
    else:
        for setting in case.change.split():
            if "=" in setting:
                name, value = setting.split("=")
                (constants if name in constants else options)[name] = int(value)
            elif setting:
                name, _, kind = setting.partition(":")
                assert name in signature, case
                signature[name] = kind
    directory.mkdir(parents=True)
    file = directory / f"{case.kernel}.py"
    file.write_text(source, encoding="utf-8")
    return KernelRequest(f"{file}:{reference.kernel.__name__}", signature, constants, options)


@pytest.fixture(
    scope="module",
    params=[pytest.param(1, marks=pytest.mark.exhaustive, id="40"), pytest.param(5, marks=pytest.mark.long, id="8")],
)
def directories(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Break, tuple[Path, Path]]:
    """Break → the compiled kernel before and after it, of all breaks or of each fifth."""
    breaks = BREAKS[:: request.param]
    directory = tmp_path_factory.mktemp("breaks")
    originals = {name: Break(name, "", "") for name in dict.fromkeys(case.kernel for case in breaks)}
    cases = [*originals.values(), *breaks]
    requests = [write_request(case, directory / f"source{number}") for number, case in enumerate(cases)]
    rows = compile_kernels(requests, [TARGET], directory / "cache")
    assert [row.message for row in rows if row.directory is None] == []
    entries = {case: row.directory for case, row in zip(cases, rows, strict=True)}
    return {case: (entries[originals[case.kernel]], entries[case]) for case in breaks}


def run_check(old: Path, new: Path, tmp_path: Path) -> tuple[int, str]:
    """Exit code, and the first line as one sentence."""
    baseline = tmp_path / f"{old.name}.json"
    CliRunner().invoke(cli.app, ["baseline", str(old), "-o", str(baseline)])
    result = CliRunner(env={"COLUMNS": "1000"}).invoke(cli.app, ["check", str(new), "--baseline", str(baseline)])
    return result.exit_code, result.stdout.splitlines()[0] if result.stdout else repr(result.exception)


def names_cause(case: Break, line: str, file: Path) -> bool:
    """Whether a first line has the words of the cause, and a line that is at fault."""
    if not re.search(case.words, line, re.IGNORECASE):
        return False
    if not case.lines:
        return True
    texts = file.read_text(encoding="utf-8").splitlines()
    numbers = re.findall(rf"{case.kernel}\.py:(\d+)", line)
    return any(part in texts[int(number) - 1] for number in numbers for part in case.lines.split("|"))


def test_the_first_line_names_the_cause_of_nine_in_ten_breaks(
    directories: Mapping[Break, tuple[Path, Path]], tmp_path: Path
) -> None:
    misses = []
    for number, (case, (old, new)) in enumerate(directories.items()):
        code, line = run_check(old, new, tmp_path)
        source = next(iter(new.parents[1].glob(f"source{number + len({case.kernel for case in directories})}/*.py")))
        if code != 1 or not names_cause(case, line, source):
            misses.append((case.kernel, case.change, code, line))
    assert len(BREAKS) == 40
    assert len(misses) <= -(-len(directories) // 10), "\n".join(map(str, misses))


def test_no_gate_fails_on_the_20_improvements(directories: Mapping[Break, tuple[Path, Path]], tmp_path: Path) -> None:
    """Half of the breaks, undone."""
    failing = []
    for case, (old, new) in list(directories.items())[::2]:
        code, line = run_check(new, old, tmp_path)
        if code != 0:
            failing.append((case.kernel, case.change, code, line))
    assert failing == []
