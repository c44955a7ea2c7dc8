"""Facts of a kernel stored in a file next to the test that compares with them.

One JSON file per test, `facts/<test module>/<test>.json`, small enough to review: the rows of a summary that
describe code quality, under keys that do not depend on lines, addresses or hashes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifact_inspector.errors import UsageError
from artifact_inspector.files.reader import read_content
from artifact_inspector.files.writer import write_text
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.vocabulary.fact import Row, Value
from artifact_inspector.vocabulary.rows import Summary

STORED_CATEGORIES = ("verdict", "spills", "waits", "mma", "shared", "registers")
"""Stored categories of rows."""
VERSION = 1
DIRECTORY = "facts"
_UNSAFE = re.compile(r"[^\w.=+-]+")
_REVIEW = "Run pytest with --update-facts and review the file it writes."


@dataclass(eq=False)
class StoredFacts:
    """The stored facts of a test; equal to a kernel's facts if every stored row is unchanged."""

    module: Path
    """The file of the test."""
    name: str
    """The test and its parameters."""
    update: bool = False
    """Write the file instead of comparing."""
    _last_content: dict[str, Any] | None = field(default=None, repr=False)

    def __call__(self, name: str) -> StoredFacts:
        """Stored facts of a second kernel in the same test."""
        return StoredFacts(self.module, f"{self.name}-{name}", self.update)

    @property
    def path(self) -> Path:
        """The file."""
        file = f"{_UNSAFE.sub('-', self.name).strip('-')}.json"
        return self.module.parent / DIRECTORY / self.module.stem / file

    def __eq__(self, summary: object) -> bool:
        if not isinstance(summary, Summary):
            return NotImplemented
        if self.update:
            self._write_content(summary)
            return True
        stored = self._read_content()
        return stored is not None and not _describe_changes(stored, summary)

    __hash__ = None  # type: ignore[assignment] # equality depends on a file

    def __repr__(self) -> str:
        return f"<facts stored in {DIRECTORY}/{self.module.stem}/{self.path.name}>"

    def explain_comparison(self, summary: object) -> tuple[list[str], str]:
        """The message of a failed comparison: each changed row, then the evidence."""
        if not isinstance(summary, Summary):
            return [f"stored facts cannot be compared with {type(summary).__name__}: use kernel.facts"], ""
        inspection = getattr(summary, "inspection", None)
        evidence = "" if inspection is None else inspection.evidence()
        stored = self._read_content()
        if stored is None:
            return [f"no facts are stored for this test. {_REVIEW}"], evidence
        changes = _describe_changes(stored, summary)
        versions = stored.get("triton"), summary.triton
        version_note = "" if versions[0] == versions[1] else " (stored with Triton {}, now {})".format(*versions)
        head = f"{len(changes)} of {len(stored['facts'])} stored facts of {summary.name} changed{version_note}."
        lines = "\n".join(escape_unprintable(change) for change in changes)
        return [escape_unprintable(head), _REVIEW], f"{lines}\n\n{evidence}"

    def _read_content(self) -> dict[str, Any] | None:
        """The content of the file; None if there is none.

        Raises:
            UsageError: it is not a file of stored facts, or of another version.
        """
        try:
            content = json.loads(read_content(self.path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(f"{self.path} cannot be read: {error}.", _REVIEW) from None
        if not isinstance(content, dict) or not isinstance(content.get("facts"), dict):
            raise UsageError(f"{self.path} has no stored facts.", _REVIEW)
        if content.get("version") != VERSION:
            raise UsageError(f"{self.path} has version {content.get('version')}; expected {VERSION}.", _REVIEW)
        return content

    def _write_content(self, summary: Summary) -> None:
        content = {
            "version": VERSION, "kernel": summary.name, "target": summary.target, "triton": summary.triton,
            "facts": {row.key: row.value for row in _stored_rows(summary)}
        }  # fmt: skip
        if self._last_content not in (None, content):
            raise UsageError(
                f"One test stores two kernels in {self.path}.",
                'Name the second: assert kernel.facts == stored_facts("second").',
            )
        self._last_content = content
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        if not self.path.exists() or self.path.read_text(encoding="utf-8") != text:
            write_text(self.path, text)


def _stored_rows(summary: Summary) -> list[Row]:
    return [row for row in summary.rows if row.category in STORED_CATEGORIES]


def _describe_changes(stored: dict[str, Any], summary: Summary) -> list[str]:
    """One sentence per changed row; a single one if the kernel or target differs."""
    for key, current in (("kernel", summary.name), ("target", summary.target)):
        if stored.get(key) != current:
            return [f"{key} is {current}, stored was {stored.get(key)}"]
    stored_values: dict[str, Value] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in stored["facts"].items()
    }
    rows = {row.key: row for row in _stored_rows(summary)}
    changes = []
    for key in dict.fromkeys([*stored_values, *rows]):
        row = rows.get(key)
        if row is None:
            changes.append(f"{key} was {_format_value(stored_values[key])}, is gone")
        elif key not in stored_values:
            changes.append(f"{key} is new: {_format_value(row.value)} {row.unit}".rstrip())
        elif stored_values[key] != row.value:
            changes.append(
                f"{key} was {_format_value(stored_values[key])}, is {_format_value(row.value)} {row.unit}".rstrip()
            )
    return changes


def _format_value(value: Value) -> str:
    if value is None:
        return "unknown"
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
