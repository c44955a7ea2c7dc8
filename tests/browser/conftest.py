from __future__ import annotations

from collections.abc import Iterator

import pytest
from browsing import Browser, browser, lacking


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One window for all tests; its pictures stay where pytest keeps the directories of its last runs."""
    why = lacking()
    if why is not None:
        pytest.skip(why)
    with browser(tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("pictures")) as opened:
        yield opened
