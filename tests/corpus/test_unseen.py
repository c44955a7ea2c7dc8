"""`check` and `diff` on kernels that the program was not developed with, compared with tables that were written before.

The tables are frozen. What they got wrong stays in them: three of the 40 breaks do not change the machine code
(`NO_BREAKS`), and the first fact of some pairs is another than the one expected.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from fourth_pairs import FOURTH_KERNELS, FOURTH_PAIRS
from test_breaks import run_check
from test_decisive import describe
from unseen_changes import BREAKS, IMPROVEMENTS, SECOND_BREAKS, SECOND_IMPROVEMENTS, Change
from unseen_comparisons import PAIRS, SECOND_PAIRS, THIRD_PAIRS, Pair
from unseen_requests import KERNELS, Kernel

from artifact_inspector.comparison.corpus import compare_candidates
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.compiling import compile_kernels
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache

State = tuple[str, str, str]
"""Kernel, change and GPU, with the release before it if it is an older one."""
NO_BREAKS = {("int8_gemm", 9), ("online_loss", 17), ("paged_decode", 21)}
"""A volatile load, a second barrier in one place, and a limit of registers that the kernel keeps: the same PTX or SASS."""


def unpack_wheels(names: Iterable[str], out: Path) -> None:
    """Downloads wheels and unpacks them into one directory."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", out, *names)
    subprocess.run(list(map(str, pip)), check=True)
    for wheel in out.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(out / "packages")


def compile_states(states: Iterable[State], out: Path, kernels: Mapping[str, Kernel] = KERNELS) -> Mapping[State, Path]:
    """State → its cache entry."""
    entries: dict[State, Path] = {}
    numbered = dict.fromkeys(states)
    for target in {state[2] for state in numbered}:
        own = [state for state in numbered if state[2] == target]
        requests = [
            kernels[state[0]].request(state[0], state[1], out / f"{target}{number}".replace(" ", "-"))
            for number, state in enumerate(own)
        ]
        *release, arch = target.split()
        rows = compile_kernels(requests, [arch], out / f"cache-{target}".replace(" ", "-"), tritons=release)
        assert [row.message for row in rows if row.directory is None] == []
        entries |= {state: row.directory for state, row in zip(own, rows, strict=True) if row.directory is not None}
    return entries


def states_of(change: Change) -> tuple[State, State]:
    return (change.kernel, change.before, change.target), (change.kernel, change.after, change.target)


def names_cause(change: Change, line: str, source: str) -> bool:
    """Whether a first line has the words of the cause, and a line that is at fault."""
    texts = source.splitlines()
    numbers = re.findall(rf"{change.kernel}\.py:(\d+)", line)
    is_line = any(part in texts[int(number) - 1] for number in numbers for part in change.lines.split("|"))
    return bool(re.search(change.words, line, re.IGNORECASE)) and (is_line or not change.lines)


def find_misses(changes: Sequence[Change], out: Path) -> tuple[list[object], set[tuple[str, int]]]:
    """The changes whose first line or exit code is not the expected one, and those that change nothing."""
    entries = compile_states((state for change in changes for state in states_of(change)), out)
    misses: list[object] = []
    silent = set()
    for number, change in enumerate(changes):
        old, new = (entries[state] for state in states_of(change))
        code, line = run_check(old, new, out)
        if code == 0 and change.words:
            silent.add((change.kernel, number))
        request = KERNELS[change.kernel].request(change.kernel, change.after, out / f"again{number}")
        text = Path(request.kernel_path.rpartition(":")[0]).read_text(encoding="utf-8")
        is_right = (code == 1 and names_cause(change, line, text)) if change.words else code == 0
        if not is_right:
            misses.append((number, change.kernel, change.after, code, line))
    return misses, silent


@pytest.mark.exhaustive
def test_the_first_line_names_36_of_40_unseen_breaks_and_no_gate_fails_on_20_improvements(tmp_path: Path) -> None:
    misses, silent = find_misses([*BREAKS, *IMPROVEMENTS], tmp_path)
    assert (len(BREAKS), len(IMPROVEMENTS)) == (40, 20)
    assert silent == NO_BREAKS
    assert len(misses) <= 3, "\n".join(map(str, misses))


@pytest.mark.exhaustive
def test_the_first_line_names_unseen_breaks_of_further_kernels(tmp_path: Path) -> None:
    misses = find_misses([*SECOND_BREAKS, *SECOND_IMPROVEMENTS], tmp_path)[0]
    assert (len(SECOND_BREAKS), len(SECOND_IMPROVEMENTS)) == (20, 5)
    assert misses == []


@pytest.mark.exhaustive  # installs two releases
@pytest.mark.parametrize(
    ("pairs", "first", "accepted"),
    [(PAIRS, 26, 30), (SECOND_PAIRS, 30, 35), (THIRD_PAIRS, 21, 27), (FOURTH_PAIRS, 10, 10)],
    ids=["old", "new", "third", "public"],
)
def test_the_decisive_fact_of_unseen_pairs(pairs: Sequence[Pair], first: int, accepted: int, tmp_path: Path) -> None:
    kernels = KERNELS
    if pairs is FOURTH_PAIRS:
        unpack_wheels(dict.fromkeys(kernel.wheel for kernel in FOURTH_KERNELS.values()), tmp_path)
        kernels = {name: kernel.unpacked(tmp_path / "packages") for name, kernel in FOURTH_KERNELS.items()}
    states = ((pair.kernel, pair.change, side) for pair in pairs for side in pair[1:3])
    entries = compile_states(states, tmp_path, kernels)
    results = []
    for pair in pairs:
        sides = [open_cache(entries[pair.kernel, pair.change, side]).entries[0] for side in (pair.left, pair.right)]
        left, right = map(Candidate, sides)
        words = describe(compare_candidates(left, right, inspect_artifact, always=True).headline)
        results.append((words == pair.decisive, words in (pair.decisive, *pair.accepted.split(",")), pair, words))
    assert len(results) == {id(THIRD_PAIRS): 30, id(FOURTH_PAIRS): 12}.get(id(pairs), 36)
    others = "\n".join(f"{pair}: {words}" for _, is_accepted, pair, words in results if not is_accepted)
    assert sum(is_first for is_first, *_ in results) >= first, others
    assert sum(is_accepted for _, is_accepted, *_ in results) >= accepted, others
