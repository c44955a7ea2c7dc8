"""The lines of source files that can be found, and findings with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.sources import is_unchanged, read_recorded_source
from artifact_inspector.findings import Finding, Remark, Severity
from artifact_inspector.findings.limit import Limit, LimitedBy
from artifact_inspector.model import Frame, SourceLine
from artifact_inspector.model.location import base_name
from artifact_inspector.model.text import SourceText
from artifact_inspector.report.findings import describe_evidence

ReadSource = Callable[[str], str | None]
"""A file as the cache names it → its text; None if it was not found."""


def NO_SOURCES(_file: str) -> str | None:  # noqa: N802 - a constant that is called
    """A reader that finds no file."""
    return None


class Sources:
    """Source files by name without directories, as source lines name them."""

    def __init__(self, read_source: ReadSource) -> None:
        self._read_source = cache(read_source)
        self._paths: dict[str, str] = {}
        self._recorded: dict[str, str] = {}
        self.changed: set[str] = set()
        """Files that changed since the kernel was compiled."""

    def add_kernel(self, location: Frame, artifact: Artifact) -> str:
        """Register the source file of a kernel and check whether it changed; returns its name.

        A file that is not below the directory of sources is read at its recorded path, if it fits.
        """
        self.add_paths([location.file])
        name = base_name(location.file)
        source = self.text(name)
        if source is not None and not is_unchanged(source.text, location, artifact.display_name, artifact):
            self.changed.add(name)
        if source is None or name in self.changed:
            text = read_recorded_source(location.file)
            if text is not None and is_unchanged(text, location, artifact.display_name, artifact):
                self._recorded[name] = text
                self.changed.discard(name)
        return name

    def add_paths(self, paths: Iterable[str]) -> None:
        """Register paths as the compiler wrote them; the first path of a name is read."""
        for path in paths:
            self._paths.setdefault(base_name(path), path)

    def text(self, file: str) -> SourceText | None:
        """The text of a file; None if it was not found or has changed."""
        text = None if file in self.changed else self._recorded.get(file)
        if text is None and file not in self.changed:
            text = self._read_source(self._paths.get(file, file))
        return None if text is None else SourceText(file, text)

    def line(self, source: str) -> str | None:
        """The text of a line without indentation; None if its file was not found or is shorter."""
        location = source.innermost if isinstance(source, SourceLine) else source
        file, _, number = location.rpartition(":")
        source_text = self.text(file) if number.isdecimal() else None
        return None if source_text is None else source_text.line_text(int(number)).strip() or None


MAX_QUOTES = 3
"""Most source lines shown with a finding."""


def view_finding(finding: Finding, sources: Sources) -> dict[str, object]:
    """The content of a finding."""
    level = "warning" if finding.severity is Severity.WARNING else "note"
    return _make_view(finding.code, finding.name, level, finding.remark.message, finding.remark, sources)


def view_limit(limit: Limit, first: Finding | None, sources: Sources) -> dict[str, object]:
    """The content of the limit of a kernel. `first`: the finding that states the limit; None if there is none."""
    if first is not None:
        return view_finding(first, sources)
    level = "note" if limit.by is LimitedBy.WORK else "none"
    return _make_view(limit.code, "", level, limit.description, limit, sources)


def _make_view(
    code: str, name: str, level: str, message: str, remark: Remark | Limit, sources: Sources
) -> dict[str, object]:
    """Name → value in the template; the text of a quote is None if its file was not found."""
    quotes = [{"name": str(x), "text": sources.line(x)} for x in dict.fromkeys(remark.sources[:MAX_QUOTES])]
    code_location = ""
    if remark.stage is not None and remark.lines:
        code_location = f"{remark.stage.value}:{remark.lines[0]}"
    elif remark.sources:
        first = remark.sources[0]
        code_location = first.innermost if isinstance(first, SourceLine) else first
    named = {"code": code, "name": name, "level": level, "message": message, "quotes": quotes}
    return {**named, "evidence": describe_evidence(remark), "code_location": code_location}
