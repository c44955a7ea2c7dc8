"""What every command promises of what it says and writes, whatever it is given.

A command runs in this process. It ends with one of the documented exit codes; what it prints has no traceback,
moves no cursor, turns no line round and gives no CI system an order; a document that it prints or writes is one
of its kind, in which no text of a cache is an element; and it writes nowhere but where it was told to.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from typer.main import get_command

from artifact_inspector.cli import app
from tests.fuzz.checks import EscapeError

CODES = (0, 1, 2, 3)
_FAULTS = ("inspector itself failed", "Traceback (most recent call last)", "There is not enough memory")
_ORDER = re.compile(r"^\s*::|##\w*\[", re.M)
_ANNOTATION = re.compile(r"::(?:error|warning|notice) [^\n]*?::[^\n]*")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OWN = ("inspect-kernel-", "artifact-inspector-")
"""What names of our own directories for temporary files begin with."""


class Said(NamedTuple):
    """What came of a command."""

    code: object
    out: str
    err: str


def check_command(words: Sequence[str], *named: Path) -> Said:
    """Run a command and hold it against what is promised.

    Args:
        words: the command.
        named: directories that it may write to.

    Raises:
        EscapeError: it broke a promise.
    """
    with _watched(named) as written:
        said = run(words)
    if written:
        raise EscapeError(f"{words[0]}: it wrote to {written[0]}")
    if said.code not in CODES:
        raise EscapeError(f"{words[0]}: exit code {said.code}")
    for fault in _FAULTS:
        for text in said[1:]:
            if fault in text:
                raise EscapeError(f"{words[0]}: {text[text.index(fault) :][:200]}")
    if said.code in (2, 3) and not (said.out + said.err).strip():
        raise EscapeError(f"{words[0]}: exit code {said.code} without a word")
    if "Usage: " not in said.err:  # which repeats the words of who typed them
        check_plain(said.err)
    check_printed(said, words)
    return said


def check_printed(said: Said, words: Sequence[str]) -> None:
    """Hold what a command printed against what it was asked to print."""
    kind = next((after for word, after in pairwise(words) if word in ("-f", "--format")), "text")
    if "--json" in words:
        kind = "json"
    elif "--svg" in words:
        kind = "svg"
    if kind == "github":
        for line in said.out.splitlines():
            if line.startswith("::") and not _ANNOTATION.fullmatch(line):
                raise EscapeError(f"{words[0]}: an order: {line[:100]}")
        check_plain(said.out, orders=True)
    else:
        for text in said.out.splitlines() if words[0] == "watch" and kind == "json" else (said.out,):
            check_document(text, kind)


def check_written(place: Path) -> None:
    """Hold the files of a directory against what their names say that they are."""
    kinds = {".html": "html", ".svg": "svg", ".xml": "junit", ".sarif": "json", ".json": "json", ".md": "markdown"}
    for file in place.iterdir():
        if file.suffix in kinds:
            check_document(file.read_text(encoding="utf-8"), kinds[file.suffix])


def check_document(text: str, kind: str) -> None:
    """Hold a document against its kind."""
    if not text.strip():
        return
    if kind in ("json", "sarif"):
        json.loads(text, parse_constant=_refuse)
    elif kind in ("svg", "junit", "graphml"):
        _check_xml(text)
    elif kind == "html":
        _check_html(text)
    elif kind == "markdown":
        _check_html(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    check_plain(text, tabs=kind != "text", orders=kind == "html")


def check_plain(text: str, *, tabs: bool = False, orders: bool = False) -> None:
    """Raise where a text has a character that shows nothing of its own, or a line that a CI system obeys."""
    allowed = "\n\t" if tabs else "\n"
    for character in set(text):
        if not character.isprintable() and character not in allowed:
            at = text.index(character)
            raise EscapeError(f"{character!a} in {text[max(0, at - 60) : at + 40]!a}")
    order = None if orders else _ORDER.search(text)
    if order is not None:
        raise EscapeError(f"an order: {text[order.start() : order.start() + 100]!a}")


def _refuse(word: str) -> None:
    raise EscapeError(f"{word} in a document of JSON")


def _check_xml(text: str) -> None:
    for element in ElementTree.fromstring(text).iter():
        _check_element(str(element.tag).rpartition("}")[2], dict(element.attrib))


def _check_element(tag: str, attributes: dict[str, str]) -> None:
    """Raise where an element is one of those that `tests.fuzz.poison` writes."""
    told = f"<{tag} {attributes}>"[:200]
    if any(name.startswith("on") and name.isalpha() for name in attributes):
        raise EscapeError(f"an element of a stranger: {told}")
    if tag in ("img", "iframe", "object", "embed") or (tag == "script" and "src" in attributes):
        raise EscapeError(f"an element of a stranger: {told}")
    links = [value for name, value in attributes.items() if name.rpartition("}")[2] in ("href", "src", "action")]
    if any(value.strip().lower().startswith(("javascript:", "data:text")) for value in links):
        raise EscapeError(f"a link of a stranger: {told}")


class _Elements(HTMLParser):
    """Looks at each element; the text of a script is none of a stranger's."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: dict[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        _check_element(tag, attributes)
        self.inside = attributes if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self.inside is None:
            return
        if "json" in self.inside.get("type", ""):
            json.loads(data)
        elif "pwn(" in data:
            raise EscapeError(f"a script of a stranger: {data[:100]!a}")
        self.inside = None


def _check_html(text: str) -> None:
    parser = _Elements()
    parser.feed(text)
    parser.close()


# -- running -----------------------------------------------------------------------------


@cache
def _command() -> Callable[..., object]:
    return get_command(app).main


def run(words: Sequence[str], index: str = "off", home: Path | None = None) -> Said:
    """The exit code of a command and all that it prints."""
    kept = [io.BytesIO(), io.BytesIO()]
    out, err = (io.TextIOWrapper(one, encoding="utf-8", write_through=True, newline="") for one in kept)
    environment = patch.dict(
        os.environ, {"ARTIFACT_INSPECTOR_INDEX": index, "XDG_CACHE_HOME": str(home or _home().name)}
    )
    code: object = 0
    try:
        with environment, redirect_stdout(out), redirect_stderr(err):
            _command()(list(words), prog_name="inspect-kernel")
    except SystemExit as end:
        code = end.code or 0
    return Said(code, *(one.getvalue().decode("utf-8") for one in kept))


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    """For what the product keeps for itself."""
    return tempfile.TemporaryDirectory(prefix=_OWN[0])


_written: list[str] | None = None
"""Where the command that runs writes; None while none runs."""


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    """Keep where something was written to, and no more: whatever this asked could be heard of in turn."""
    if _written is None:
        return
    place: object = None
    if event == "open":
        path, mode, flags = arguments
        for_writing = isinstance(mode, str) and set(mode) & set("wax+")
        place = path if for_writing or (isinstance(flags, int) and flags & _WRITES) else None
    elif event in ("os.rename", "os.link", "os.symlink"):
        place = arguments[1]
    elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod") and arguments[-1] == -1:
        place = arguments[0]  # of no directory that is open already, as those that are removed whole are
    if isinstance(place, str | bytes | os.PathLike):
        _written.append(os.fsdecode(place))


@cache
def _listen() -> None:
    tempfile.gettempdir()  # which tries first whether it can write there
    sys.addaudithook(_hear)


@contextmanager
def _watched(named: Sequence[Path]) -> Iterator[list[str]]:
    """Where a command writes beside the directories that it may write to; filled when it has ended."""
    global _written
    _listen()
    foreign: list[str] = []
    _written = []
    try:
        yield foreign
    finally:
        found, _written = dict.fromkeys(_written), None
        foreign.extend(path for path in found if not _may_be_written(path, named))


def _may_be_written(path: str, named: Sequence[Path]) -> bool:
    whole = Path(os.path.realpath(path))
    if whole in (Path(os.devnull), Path(tempfile.gettempdir()).resolve()) or "__pycache__" in whole.parts:
        return True
    if any(whole.is_relative_to(Path(one).resolve()) for one in named):
        return True
    own = Path(tempfile.gettempdir()).resolve()
    return any(whole.is_relative_to(own / part) for part in whole.parts if part.startswith(_OWN))
