"""A place of the source is compared by the name of its file, its line and its column."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.flow.source_locations import Chain, chain_of, source_of, without_column
from artifact_inspector.model import Frame

INLINED = (Frame("/a/b/helper.py", 3, 7), Frame("C:\\x\\kernel.py", 40, 1))


def test_a_chain_has_files_without_directories_on_any_system() -> None:
    assert chain_of(INLINED) == (("helper.py", 3, 7), ("kernel.py", 40, 1))


def test_no_location_has_no_place() -> None:
    assert chain_of(None) is None
    assert source_of(None) is None
    assert source_of(()) is None


def test_the_line_of_the_user_comes_first_and_then_where_it_was_called() -> None:
    found = source_of(INLINED)
    assert found is not None
    assert (found.innermost, found.called_from) == ("helper.py:3", ("kernel.py:40",))


def test_a_frame_of_the_library_is_passed_over() -> None:
    library = Frame("/site/triton/language/standard.py", 9, 1)
    found = source_of((library, *INLINED))
    assert found is not None
    assert found.innermost == "helper.py:3"


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((), ()),
        ((("a.py", 3, 5),), (("a.py", 3, 0),)),
        ((("a.py", 3, 5), ("k.py", 9, 2)), (("a.py", 3, 0), ("k.py", 9, 2))),
    ],
)
def test_a_place_without_its_column_keeps_its_callers(chain: Chain, expected: Chain) -> None:
    assert without_column(chain) == expected
