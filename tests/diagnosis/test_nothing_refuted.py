"""Nothing is advised that its own check refutes: for any trials of a search, and for every saved kernel."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifact_inspector.api import remedy_search
from artifact_inspector.api.advice import diagnose_launches
from artifact_inspector.api.option_compiles import can_recompile, recompile_options
from artifact_inspector.api.remedy_search import MOST_REMEDIES, search_remedies
from artifact_inspector.api.remedy_trial import LEAST_GAIN, LEAST_SAVING, Trial
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.diagnosis.assumed_launch import assume_indices, assume_launch
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.diagnose import diagnose
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.files.cache import Artifact, open_cache

FIXTURES = Path(__file__).parents[2] / "fixtures"
KINDS = (CauseKind.SERIAL_LOOP, CauseKind.OCCUPANCY, CauseKind.SPILLS, CauseKind.BOUND)
TIMES = st.floats(0.5, 200.0, allow_nan=False)


def _diagnosis(microseconds: float | None, shares: dict[CauseKind, float]) -> Diagnosis:
    causes = tuple(Cause(kind, "k.py:3", share, kind.value) for kind, share in shares.items())
    return Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), microseconds, 1.0, causes, "")


CAUSES = st.dictionaries(st.sampled_from(KINDS), st.floats(0.01, 0.9), min_size=1)


@given(
    before=st.tuples(TIMES, CAUSES),
    trials=st.lists(st.tuples(TIMES, st.none() | TIMES, CAUSES, st.booleans(), st.booleans()), max_size=8),
)
def test_every_remedy_passes_each_check(before: tuple[float, Any], trials: list[Any]) -> None:
    """The time of a search may be wrong, its check may find another or none, and results may differ."""
    original = _diagnosis(*before)
    entry = SimpleNamespace(is_gluon=False, metadata={}, constants={}, target=None)
    search = remedy_search._Search(
        *(entry, SimpleNamespace(), original, None, "k.py:k", lambda _: None, Path(), None, 1, 0.0)  # type: ignore[arg-type]
    )
    checked = {}
    for number, (searched, found, causes, is_equal, is_option) in enumerate(trials):
        change = {"num_stages": number} if is_option else {"BLOCK": number}
        candidate: Any = SimpleNamespace(artifact=SimpleNamespace(shared_bytes=0, target=None, files={}))
        trial = Trial(change, None, candidate, searched)
        search.trials.append(trial)
        checked[trial.label] = (_diagnosis(found, causes), is_equal)
    with (
        patch.object(search, "_diagnose", lambda trial: checked[trial.label][0]),
        patch.object(search, "_is_equal", lambda trial, budget: checked[trial.label][1]),
        patch.object(remedy_search, "describe_costs", lambda *_: ()),
    ):
        remedies = search.verified(1e9).remedies
    assert len(remedies) <= MOST_REMEDIES
    assert [one.gain for one in remedies] == sorted((one.gain for one in remedies), reverse=True)
    for remedy in remedies:
        after, is_equal = checked[remedy.change]
        assert is_equal
        assert remedy.verified
        assert after.microseconds is not None
        assert before[0] >= max(LEAST_GAIN * after.microseconds, after.microseconds + LEAST_SAVING)
        assert remedy.gain == round(before[0] / after.microseconds, 2)
        assert remedy.cause in {cause.kind.value for cause in original.causes}


ALWAYS = ("3.9.0/gfx942/gemv_splitk", "3.9.0/sm_80/helper_twice")
"""Of each vendor one kernel of the installed release, whose options can be compiled; the others are run by hand."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in ALWAYS else pytest.mark.exhaustive)
        for name in sorted(str(folder.relative_to(FIXTURES)) for folder in FIXTURES.glob("[0-9]*/*/*"))
    ],
)
def test_no_option_of_a_saved_kernel_is_refuted(name: str, tmp_path: Path) -> None:
    """Each is compiled once more, and diagnosed outside of the search."""
    entries = [one for one in open_cache(FIXTURES / name).entries if one.files.get("ttir")]
    for number, entry in enumerate(entries):
        _check_options(entry, tmp_path / str(number))


def _check_options(entry: Artifact, directory: Path) -> None:
    def disassembler(entries: Any) -> Any:
        return make_disassembler(entries, None, sass=True)

    try:
        request = assume_launch(entry)
    except UsageError:
        return  # its arguments are unknown
    directory.mkdir()
    (before,) = diagnose_launches([(entry, request)], disassembler([entry]))
    search = search_remedies((entry, request), before, disassembler, directory / "tried", budget=30.0)
    if not can_recompile(entry):
        assert search.remedies == ()
    for number, remedy in enumerate(search.remedies):
        assert remedy.patch is None
        change = {name: int(text) for name, _, text in (word.partition("=") for word in remedy.change.split())}
        (artifact,) = recompile_options(entry, [change], directory / f"again{number}")
        assert artifact is not None
        assert artifact.hash != entry.hash
        candidate = RankingCandidate(artifact, assume_indices(entry, request), entry.constants)
        after = diagnose(candidate, disassembler([artifact]))
        assert before.microseconds
        assert after.microseconds
        assert before.microseconds / after.microseconds == pytest.approx(remedy.gain, abs=0.011)
        assert remedy.gain >= LEAST_GAIN
        left = sum(one.share or 0.0 for one in after.causes if one.kind.value == remedy.cause)
        (cause,) = [one for one in before.causes if one.kind.value == remedy.cause]
        assert cause.kind in (CauseKind.BOUND, CauseKind.FEW_BYTES) or (
            left * after.microseconds < (cause.share or 0.0) * before.microseconds
        )
