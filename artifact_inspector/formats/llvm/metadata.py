"""Source locations in LLVM's metadata, and LLVM's string escapes.

Source: LLVM Language Reference Manual, "Specialized Metadata Nodes".
"""

from __future__ import annotations

import re

from artifact_inspector.formats._problems import ProblemLog
from artifact_inspector.model import Frame, Location
from artifact_inspector.model.limits import FRAMES
from artifact_inspector.model.text import parse_integer

# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_METADATA = re.compile(r"\n!(\d+) = (?:distinct )?!(?:DILocation|DILexicalBlock(?:File)?|DISubprogram|DIFile)\((.*)\)")
_FIELD = re.compile(r'\b(\w+): (?:!(\d+)|"([^"]*)"|(\w+))')
_PLAIN_LOCATION = re.compile(
    r"line: (\d{1,9}), column: (\d{1,9}), scope: !(\d+)(?:, inlinedAt: (?:distinct )?!(\d+))?$", re.ASCII
)
"""The format of nearly all locations."""
_NONTEMPORAL = ", !nontemporal"
_ESCAPE = re.compile(r"\\(\\|[0-9A-Fa-f]{2})")


class DebugLocations(dict[str, tuple[Location | None, str]]):
    """`46` or `46, !tbaa !3` → the inline chain of `!46`, resolved once, on first use.

    The second value is the rest of the key that belongs to the statement: the non-temporal mark.

    Source: LLVM Language Reference Manual, "Specialized Metadata Nodes".
    """

    def __init__(self, text: str, log: ProblemLog) -> None:
        super().__init__()
        self._nodes = {match[1]: match[2] for match in _METADATA.finditer(text, max(0, text.find("\n!")))}
        self._log = log
        self.line = 0
        """Line of the function that is being parsed, for problems: tracking each statement's line would be slow."""
        self._max_callers = FRAMES.value
        self._files: dict[str, str] = {}
        """File path by scope or file node."""

    def __missing__(self, key: str) -> tuple[Location | None, str]:
        node = key.partition(",")[0].strip()
        frames: dict[str, Frame] = {}
        while node and node not in frames and len(frames) <= self._max_callers:
            plain = _PLAIN_LOCATION.match(self._nodes.get(node, ""))
            if plain is not None and plain[3] in self._files:
                frames[node] = Frame(self._files[plain[3]], int(plain[1]), int(plain[2]))
                node = plain[4] or ""
                continue
            fields = self._fields(node)
            frames[node] = Frame(self._file(fields), _number_field(fields, "line"), _number_field(fields, "column"))
            node = fields.get("inlinedAt", "")
        location = tuple(frames.values())
        if len(location) > self._max_callers:
            message = f"source location with more than {self._max_callers} callers; treated as unknown"
            self._log.report(self.line, message)
        # Line 0 is LLVM's mark for compiler-generated code.
        is_known = 0 < len(location) <= self._max_callers and location[0].line > 0
        mark = _NONTEMPORAL if _NONTEMPORAL in f", {key}" else ""
        resolved = self[key] = (location if is_known else None, mark)
        return resolved

    def subprogram(self, node: str) -> Location | None:
        """Source location of the subprogram `!node`."""
        fields = self._fields(node)
        line = _number_field(fields, "line")
        return (Frame(self._file(fields), line, 0),) if line > 0 else None

    def _fields(self, node: str) -> dict[str, str]:
        body = self._nodes.get(node)
        if body is None and node:
            self._log.report_missing(self.line, f"!{node}")
        return {name: number or string or identifier for name, number, string, identifier in _FIELD.findall(body or "")}

    def _file(self, fields: dict[str, str]) -> str:
        """The path of the innermost scope around a node that names a file."""
        visited: dict[str, None] = {}
        while (key := fields.get("file") or fields.get("scope", "")) not in self._files:
            if key in visited or "file" in fields:
                self._files[key] = "" if key in visited else self._path(self._fields(key))
                break
            visited[key] = None
            fields = self._fields(key)
        path = self._files[key]
        self._files.update(dict.fromkeys(visited, path))
        return path

    @staticmethod
    def _path(file: dict[str, str]) -> str:
        name, directory = unescape(file.get("filename", "")), unescape(file.get("directory", ""))
        return name if not directory or name.startswith("/") else f"{directory}/{name}"


def _number_field(fields: dict[str, str], name: str) -> int:
    return parse_integer(fields.get(name, "")) or 0


def unquote(name: str) -> str:
    """A name without surrounding quotes."""
    return unescape(name[1:-1]) if name.startswith('"') else name


def unescape(text: str) -> str:
    r"""Decode LLVM's string escapes: `\0A` for a newline, `\C3\A9` for the UTF-8 bytes of é."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda code: "\\" if code[1] == "\\" else chr(int(code[1], 16)), text)
    try:
        return plain.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return plain
