from __future__ import annotations

import os

import pytest

# No test looks up, or leaves behind, what another found; those of the index itself use one of their own.
os.environ["ARTIFACT_INSPECTOR_INDEX"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-docs", action="store_true", help="write what the commands print now into the pages"
    )
