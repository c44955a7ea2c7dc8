"""The language server: diagnostics, hovers and inlay hints for the kernels of a file.

Source: the Language Server Protocol 3.17. Opening a file runs no code. Saving a file compiles its kernels
only with `--compile-on-save`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import from_fs_path, to_fs_path

from artifact_inspector.errors import UsageError
from artifact_inspector.files.reading import read_named
from artifact_inspector.files.writing import write_text
from artifact_inspector.findings import RULES, Severity
from artifact_inspector.model.printable import escaped
from artifact_inspector.serving.known import Knowledge
from artifact_inspector.serving.lines import Form
from artifact_inspector.serving.source import WrittenKernel, find_kernels
from artifact_inspector.version import __version__

SOURCE = "inspect-kernel"
_SEVERITIES = {
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}
LONGEST_LINE = 10_000


@dataclass(slots=True)
class _Document:
    """A file in the editor, with the compiled variants of its kernels."""

    path: Path
    lines: Sequence[str] = ()
    kernels: tuple[WrittenKernel, ...] = ()
    """Kernels of the last text that was valid Python."""
    forms: dict[str, list[Form]] = field(default_factory=dict)
    """Kernel → its compiled variants."""
    digests: dict[str, str] = field(default_factory=dict)
    """Kernel → digest of the text that its variants were looked up with."""
    notes: dict[str, str] = field(default_factory=dict)
    """Kernel → why it was not compiled, or which options were ignored."""

    def seen(self, text: str) -> None:
        """Set a new text; its kernels stay unchanged while it is not valid Python."""
        self.lines = text.splitlines()
        found = find_kernels(text)
        if found is not None:
            self.kernels = found

    def told(self) -> Iterator[tuple[WrittenKernel, Form]]:
        """Each variant with its kernel, at the lines of the current text."""
        for kernel in self.kernels:
            for form in self.forms.get(kernel.name, ()):
                is_edited = self.digests.get(kernel.name) != kernel.digest
                yield kernel, form.seen_now(kernel.first, is_edited=is_edited)


class _Protocol(LanguageServerProtocol):
    """The protocol of pygls, which logs an invalid request but does not answer it; this one answers."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            number = data.get("id")
            if "method" in data and number is not None:
                known = number if isinstance(number, int | str) else None
                answer = {"jsonrpc": self.VERSION, "id": known, "error": error.to_response_error()}
                self._send_data(answer)
            raise


def make_server(knowledge: Knowledge, *, compiles: bool, pages: Path) -> LanguageServer:
    """A language server.

    Args:
        knowledge: finds and compiles kernels.
        compiles: whether to compile the kernels of a file when it is saved, which imports it.
        pages: directory of the pages that diagnostics link to.
    """
    server = LanguageServer(
        "inspect-kernel",
        __version__,
        text_document_sync_kind=types.TextDocumentSyncKind.Full,
        protocol_cls=_Protocol,
    )
    documents: dict[str, _Document] = {}

    async def refresh(uri: str, *, compile_first: bool = False) -> None:
        if uri in documents:
            await asyncio.to_thread(_look_up, knowledge, documents[uri], compile_first)
            publish(uri)

    def publish(uri: str) -> None:
        _publish(server, uri, documents.get(uri), pages)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        uri, path = params.text_document.uri, to_fs_path(params.text_document.uri)
        if path is not None:
            documents[uri] = _Document(Path(path))
            documents[uri].seen(params.text_document.text)
            await refresh(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in documents:
            documents[uri].seen(server.workspace.get_text_document(uri).source)
            publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await refresh(params.text_document.uri, compile_first=compiles)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.pop(params.text_document.uri, None)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = documents.get(params.text_document.uri)
        return None if document is None else _hover(document, params.position.line + 1)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = documents.get(params.text_document.uri)
        return [] if document is None else list(_hints(document, params.range))

    return server


def serve(knowledge: Knowledge, *, compiles: bool, pages: Path) -> None:
    """Serve on standard input and output until they are closed.

    Raises:
        UsageError: the length of an incoming message is invalid.
    """
    logging.disable(logging.CRITICAL)
    try:
        make_server(knowledge, compiles=compiles, pages=pages).start_io()
    except (ValueError, OverflowError, MemoryError):
        raise UsageError(
            "The Content-Length of an incoming message is invalid.",
            "Check the client: expected the LSP base protocol.",
        ) from None


def _publish(server: LanguageServer, uri: str, document: _Document | None, pages: Path) -> None:
    """Send the diagnostics of a file, unless it was closed in the meantime."""
    if document is not None:
        version = server.workspace.get_text_document(uri).version
        found = list(_diagnostics(document, pages))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))


def _look_up(knowledge: Knowledge, document: _Document, compile_first: bool) -> None:
    """Look up the variants of every kernel of a file again."""
    on_disk = {one.name: one.digest for one in _on_disk(document.path)}
    for kernel in document.kernels:
        if compile_first:
            why = knowledge.compile(document.path, kernel)
            document.notes.pop(kernel.name, None)
            if why is not None:
                document.notes[kernel.name] = why
    knowledge.look_again()
    for kernel in document.kernels:
        is_saved = on_disk.get(kernel.name) == kernel.digest
        document.forms[kernel.name] = knowledge.forms(document.path, kernel, is_saved=is_saved)
        document.digests[kernel.name] = kernel.digest


def _on_disk(path: Path) -> Sequence[WrittenKernel]:
    try:
        return find_kernels(read_named(path)) or ()
    except (OSError, ValueError):  # ValueError: the name is invalid for a file
        return ()


def _diagnostics(document: _Document, pages: Path) -> Iterator[types.Diagnostic]:
    """One diagnostic per finding and line; equal ones of several targets are merged."""
    found: dict[tuple[int, str, str], tuple[Any, list[str]]] = {}
    for kernel, form in document.told():
        for line, finding in form.findings:
            place = line if line is not None and kernel.top <= line <= kernel.last else kernel.first
            stale = "stale: " if form.is_stale else ""
            key = (place, finding.code, f"{stale}{finding.remark.message}")
            found.setdefault(key, (finding, []))[1].append(form.target)
    for (line, code, message), (finding, targets) in found.items():
        is_stale = message.startswith("stale: ")
        yield types.Diagnostic(
            range=_line(line),
            message=escaped(f"{message} [{', '.join(dict.fromkeys(targets))}]"),
            severity=types.DiagnosticSeverity.Hint if is_stale else _SEVERITIES[finding.severity],
            code=code,
            code_description=types.CodeDescription(_page(pages, code)),
            source=SOURCE,
        )
    for kernel in document.kernels:
        if kernel.name in document.notes:
            yield types.Diagnostic(
                range=_line(kernel.first),
                message=escaped(document.notes[kernel.name]),
                severity=types.DiagnosticSeverity.Information,
                source=SOURCE,
            )


def _hover(document: _Document, line: int) -> types.Hover | None:
    said = []
    for kernel, form in document.told():
        if kernel.top <= line <= kernel.last:
            stale = ", stale: edited after it was compiled" if form.is_stale else ""
            told = form.told(line, kernel.first)
            if told:
                said.append(escaped(f"{form.target} ({form.kernel.artifact.hash[:8]}{stale})"))
                said += [f"  {escaped(one)}" for one in told]
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, "\n".join(said))) if said else None


def _hints(document: _Document, wanted: types.Range) -> Iterator[types.InlayHint]:
    """One hint per line; targets are named only if their hints differ."""
    told: dict[int, dict[str, list[str]]] = {}
    for kernel, form in document.told():
        for line, hint in form.hints.items():
            if kernel.top <= line <= kernel.last:
                word = f"{hint} (stale)" if form.is_stale else hint
                told.setdefault(line, {}).setdefault(word, []).append(form.target)
    for line, words in sorted(told.items()):
        if wanted.start.line <= line - 1 <= wanted.end.line and line <= len(document.lines):
            label = next(iter(words)) if len(words) == 1 else " | ".join(
                f"{', '.join(targets)} {word}" for word, targets in words.items()
            )  # fmt: skip
            end = types.Position(line - 1, len(document.lines[line - 1]))
            yield types.InlayHint(end, escaped(label), padding_left=True)


def _line(number: int) -> types.Range:
    return types.Range(types.Position(number - 1, 0), types.Position(number - 1, LONGEST_LINE))


def _page(pages: Path, code: str) -> str:
    """The URI of the page that explains a finding; writes the page if it is missing."""
    file = pages / f"{code}.md"
    if not file.is_file():
        (rule,) = (rule for rule in RULES if rule.code == code)
        pages.mkdir(parents=True, exist_ok=True)
        write_text(file, f"# {rule.code} {rule.name} ({rule.severity.value})\n\n{rule.explanation}\n")
    return str(from_fs_path(str(file)))
