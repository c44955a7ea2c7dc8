"""Lexers as Pygments tests its own: a snippet, and the tokens that it is cut into."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pygments.lexer import Lexer
from pygments.token import Error

from artifact_inspector.report.lexers.scanner import LEXERS

SNIPPETS = sorted((Path(__file__).parent / "lexers").glob("*/*.txt"))
INPUT, TOKENS = "---input---\n", "---tokens---\n"
ALIASES = ("ttir", "ttgir", "triton-llir", "triton-ptx", "nvidia-sass", "amdgcn")
BY_ALIAS = {alias: lexer for lexer in LEXERS.values() for alias in lexer.aliases}
ROOT = Path(__file__).parents[2]


def lexer_of(alias: str) -> Lexer:
    return BY_ALIAS[alias](stripnl=False, ensurenl=False)


def cut(alias: str, text: str) -> str:
    """Tokens as Pygments writes them into its snippets."""
    found = lexer_of(alias).get_tokens(text)
    return "".join(f"{value!r:<13} {str(kind)[6:]}\n" for kind, value in found)


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_snippet_is_cut_into_its_tokens(path: Path, request: pytest.FixtureRequest) -> None:
    _, _, rest = path.read_text(encoding="utf-8").partition(INPUT)
    text, _, expected = rest.partition(TOKENS)
    found = cut(path.parent.name, text)
    if request.config.getoption("--update-golden", default=False):
        path.write_text(INPUT + text + TOKENS + found, encoding="utf-8")
    else:
        assert found == expected


def test_every_lexer_has_its_snippets_and_is_a_plugin() -> None:
    assert {path.parent.name for path in SNIPPETS} == set(ALIASES)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for lexer in LEXERS.values():
        assert f'"{lexer.__module__}:{lexer.__name__}"' in settings


@pytest.mark.parametrize("alias", ALIASES)
def test_a_character_that_no_language_has_is_an_error(alias: str) -> None:
    tokens = lexer_of(alias).get_tokens("\u00a7")
    assert Error in {kind for kind, _ in tokens}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize(
    "piece",
    [
        *('"', "/*", "a.", "1x", "-"),
        *(
            pytest.param(piece, marks=pytest.mark.long)
            for piece in ('"\\', '\\"', "/*/", "(", "{", "%", "a::", ".", "1", "0f", "'", "a:", "@", "!", "P1")
        ),
    ],
)
def test_no_text_costs_more_than_its_length(alias: str, piece: str) -> None:
    lexer, text = lexer_of(alias), piece * (10_000 // len(piece))
    began = time.process_time()
    for _ in lexer.get_tokens_unprocessed(text):
        pass
    assert time.process_time() - began < 0.25
