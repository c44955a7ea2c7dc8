"""Lines of the user's code: the innermost outside Triton's own library, and who called it."""

from __future__ import annotations

import copy
import pickle

import pytest
from saved import saved

from artifact_inspector.model import Frame, SourceLine
from artifact_inspector.report.json._encoding import encode

KERNEL, HELPER = Frame("/src/fa.py", 442, 8), Frame("/src/fa.py", 79, 12)
OTHER = Frame("/src/tiles.py", 5, 0)
LIBRARY = Frame("/lib/python3/site-packages/triton/language/standard.py", 290, 3)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ((KERNEL,), "fa.py:442"),
        ((HELPER, KERNEL), "fa.py:79 via :442"),
        ((OTHER, HELPER, KERNEL), "tiles.py:5 via fa.py:79 via :442"),
        ((LIBRARY, KERNEL), "fa.py:442"),
        ((LIBRARY, LIBRARY, HELPER, KERNEL), "fa.py:79 via :442"),
        ((LIBRARY,), "standard.py:290"),
        ((Frame("C:\\src\\fa.py", 7, 0),), "fa.py:7"),
    ],
)
def test_a_line_is_the_innermost_of_the_users_code(location: tuple[Frame, ...], words: str) -> None:
    assert SourceLine.from_location(location) == words


def test_a_line_knows_its_file_and_the_whole_chain() -> None:
    line = SourceLine.from_location((OTHER, HELPER, KERNEL))
    assert (line.file, line.number, line.innermost) == ("tiles.py", 5, "tiles.py:5")
    assert line.called_from == ("fa.py:79", "fa.py:442")
    assert encode([line, line.called_from]) == ["tiles.py:5", ["fa.py:79", "fa.py:442"]]


def test_a_copy_of_a_line_knows_as_much() -> None:
    line = SourceLine.from_location((HELPER, KERNEL))
    for other in (pickle.loads(pickle.dumps(line)), copy.deepcopy(line)):
        assert (other, other.chain) == (line, line.chain)


def test_loads_of_a_helper_are_told_by_their_own_lines() -> None:
    region = saved("3.6.0/sm_80/helper_twice").facts.principal_region
    assert region is not None
    sources = [source for found in region.rounds for source in found.sources]
    assert {source.number for source in sources} == {10, 11}
    assert {source.called_from for source in sources} == {("helper_twice.py:19",), ("helper_twice.py:20",)}
