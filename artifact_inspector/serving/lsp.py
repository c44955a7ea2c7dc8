"""The language server: diagnostics, hovers and inlay hints for the kernels of a file.

Source: the Language Server Protocol 3.17. Opening a file runs no code. Saving a file compiles its kernels
only with `--compile-on-save`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import from_fs_path, to_fs_path

from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.files.reader import read_user_text
from artifact_inspector.files.writer import write_text
from artifact_inspector.findings import RULES, Severity
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.serving.compiled_lines import CompiledVariant
from artifact_inspector.serving.kernel_variants import (
    KernelVariants,
    SourceKernel,
    find_kernels,
    newest_launch,
    with_launch,
)
from artifact_inspector.serving.standard_input import interruptible_input
from artifact_inspector.version import __version__

SOURCE = "inspect-kernel"
_SEVERITIES = {Severity.WARNING: types.DiagnosticSeverity.Warning, Severity.NOTE: types.DiagnosticSeverity.Information}
MAX_LINE = 10_000
ADVISE = "inspect-kernel.advise"
REMEDY = "inspect-kernel.remedy"
"""Commands of the code actions on a kernel: arguments are the file's URI, the kernel's name and the target."""


@dataclass(slots=True)
class _OpenFile:
    """A file in the editor, with the compiled variants of its kernels."""

    path: Path
    lines: Sequence[str] = ()
    kernels: tuple[SourceKernel, ...] = ()
    """Kernels of the last text that was valid Python."""
    variants: dict[str, list[CompiledVariant]] = field(default_factory=dict)
    """Kernel → its compiled variants."""
    digests: dict[str, str] = field(default_factory=dict)
    """Kernel → digest of the text that its variants were looked up with."""
    notes: dict[str, str] = field(default_factory=dict)
    """Kernel → why it was not compiled, or which options were ignored."""

    def set_text(self, text: str) -> None:
        """Set a new text; its kernels stay unchanged while it is not valid Python."""
        self.lines = text.splitlines()
        kernels = find_kernels(text)
        if kernels is not None:
            self.kernels = kernels

    def current_variants(self) -> Iterator[tuple[SourceKernel, CompiledVariant]]:
        """Each variant with its kernel, at the lines of the current text."""
        for kernel in self.kernels:
            for variant in self.variants.get(kernel.name, ()):
                is_edited = self.digests.get(kernel.name) != kernel.digest
                yield kernel, variant.moved_to(kernel.def_line, is_edited=is_edited)


class _AnsweringProtocol(LanguageServerProtocol):
    """The protocol of pygls, which logs an invalid request but does not answer it; this one answers."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            number = data.get("id")
            if "method" in data and number is not None:
                request_id = number if isinstance(number, int | str) else None
                self._send_data({"jsonrpc": self.VERSION, "id": request_id, "error": error.to_response_error()})
            raise


def make_server(variants: KernelVariants, *, compiles: bool, pages: Path) -> LanguageServer:
    """A language server.

    Args:
        variants: finds and compiles kernels.
        compiles: whether to compile the kernels of a file when it is saved, which imports it.
        pages: directory of the pages that diagnostics link to.
    """
    server = LanguageServer(
        "inspect-kernel",
        __version__,
        text_document_sync_kind=types.TextDocumentSyncKind.Full,
        protocol_cls=_AnsweringProtocol,
    )
    documents: dict[str, _OpenFile] = {}

    async def refresh(uri: str, *, compile_first: bool = False) -> None:
        document = documents.get(uri)
        for updates in () if document is None else (_look_up(variants, document, compile_first), _simulate(document)):
            async for _ in updates:
                publish(uri)
                _refresh_views(server)

    def publish(uri: str) -> None:
        _publish(server, uri, documents.get(uri), pages)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        uri, path = params.text_document.uri, to_fs_path(params.text_document.uri)
        if path is not None:
            documents[uri] = _OpenFile(Path(path))
            documents[uri].set_text(params.text_document.text)
            await refresh(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in documents:
            documents[uri].set_text(server.workspace.get_text_document(uri).source)
            publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await refresh(params.text_document.uri, compile_first=compiles)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.pop(params.text_document.uri, None)

    _offer_views(server, documents, compiles=compiles)
    return server


def _offer_views(server: LanguageServer, documents: dict[str, _OpenFile], *, compiles: bool) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = documents.get(params.text_document.uri)
        return None if document is None else _make_hover(document, params.position.line + 1)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = documents.get(params.text_document.uri)
        return [] if document is None else list(_make_hints(document, params.range))

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def actions(params: types.CodeActionParams) -> list[types.Command]:
        document = documents.get(params.text_document.uri)
        return [] if document is None else list(_make_actions(document, params, compiles=compiles))

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        return [
            types.CodeLens(
                _line_range(kernel.def_line),
                types.Command(escape_unprintable(variant.lens), ADVISE, arguments=[uri, kernel.name, variant.target]),
            )
            for kernel, variant in (documents[uri].current_variants() if uri in documents else ())
        ]

    @server.command(ADVISE)
    async def advise(uri: str, kernel: str, target: str) -> str:
        sentence = await asyncio.to_thread(_advise, documents.get(uri), kernel, target)
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, sentence))
        return sentence

    @server.command(REMEDY)
    async def remedy(uri: str, kernel: str, target: str) -> str:
        if not compiles:
            return "Start the server with --compile-on-save: changes are tried by compiling the file."
        document = server.workspace.get_text_document(uri)
        edits, sentence = await asyncio.to_thread(_find_remedy, documents.get(uri), document.source, kernel, target)
        if edits:
            versioned = types.OptionalVersionedTextDocumentIdentifier(uri, document.version)
            edit = types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(versioned, edits)])
            await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit, sentence))
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, sentence))
        return sentence


def serve(variants: KernelVariants, *, compiles: bool, pages: Path) -> None:
    """Serve on standard input and output until they are closed.

    Raises:
        UsageError: the length of an incoming message is invalid.
    """
    logging.disable(logging.CRITICAL)
    try:
        with interruptible_input():
            make_server(variants, compiles=compiles, pages=pages).start_io()
    except (ValueError, OverflowError, MemoryError):
        raise UsageError(
            "The Content-Length of an incoming message is invalid.", "Check the client: expected the LSP base protocol."
        ) from None


def _publish(server: LanguageServer, uri: str, document: _OpenFile | None, pages: Path) -> None:
    """Send the diagnostics of a file, unless it was closed in the meantime."""
    if document is not None:
        version = server.workspace.get_text_document(uri).version
        diagnostics = list(_make_diagnostics(document, pages))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))


async def _look_up(variants: KernelVariants, document: _OpenFile, compile_first: bool) -> AsyncIterator[None]:
    await asyncio.to_thread(_update_variants, variants, document, compile_first)
    yield


async def _simulate(document: _OpenFile) -> AsyncIterator[None]:
    """Add the recorded launches, whose simulation takes seconds, one kernel after the other."""
    for name, compiled in [*document.variants.items()]:
        launched = [await asyncio.to_thread(with_launch, variant) for variant in compiled]
        if document.variants.get(name) is compiled and any(variant.launch for variant in launched):
            document.variants[name] = launched
            yield


def _refresh_views(server: LanguageServer) -> None:
    """Make the editor request lenses and hints again: it did so before they were computed."""
    workspace = server.client_capabilities.workspace
    if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
        server.workspace_code_lens_refresh(None)
    if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
        server.workspace_inlay_hint_refresh(None)


def _update_variants(variants: KernelVariants, document: _OpenFile, compile_first: bool) -> None:
    on_disk = {saved_kernel.name: saved_kernel.digest for saved_kernel in _saved_kernels(document.path)}
    for kernel in document.kernels:
        if compile_first:
            message = variants.compile(document.path, kernel)
            document.notes.pop(kernel.name, None)
            if message is not None:
                document.notes[kernel.name] = message
    variants.clear_cache()
    for kernel in document.kernels:
        is_saved = on_disk.get(kernel.name) == kernel.digest
        document.variants[kernel.name] = variants.newest_variants(document.path, kernel, is_saved=is_saved)
        document.digests[kernel.name] = kernel.digest


def _make_actions(document: _OpenFile, params: types.CodeActionParams, *, compiles: bool) -> Iterator[types.Command]:
    """The actions for each target that the kernel at the cursor is compiled for."""
    for kernel, variant in document.current_variants():
        if kernel.first_line <= params.range.start.line + 1 <= kernel.last_line:
            arguments = [params.text_document.uri, kernel.name, variant.target]
            title = f"Name what takes the time of {kernel.name} on {variant.target}"
            yield types.Command(title, ADVISE, arguments=arguments)
            if compiles and not variant.is_stale:
                title = f"Make {kernel.name} faster on {variant.target} (runs the file, up to a minute)"
                yield types.Command(title, REMEDY, arguments=arguments)


def _find_variant(document: _OpenFile | None, name: str, target: str) -> CompiledVariant:
    for kernel, variant in () if document is None else document.current_variants():
        if (kernel.name, variant.target) == (name, target):
            return variant
    raise UsageError(f"{name} is not compiled for {target}.")


def _advise(document: _OpenFile | None, name: str, target: str) -> str:
    """The first sentence about a kernel, for its newest recorded launch or an assumed one."""
    from artifact_inspector.api.advice import headline
    from artifact_inspector.files.objdump import binary_disassembler

    try:
        artifact = _find_variant(document, name, target).kernel.artifact
        sentence = headline(artifact, binary_disassembler(), newest_launch(artifact))
    except UsageError as error:
        sentence = error.message
    return escape_unprintable(sentence or f"{name} cannot be simulated: its arguments or its code are unknown.")


def _find_remedy(document: _OpenFile | None, text: str, name: str, target: str) -> tuple[list[Any], str]:
    """Edits that make a kernel faster, empty if none is known, and a sentence about them."""
    from artifact_inspector.serving.remedy_edit import find_remedy

    try:
        variant = _find_variant(document, name, target)
        assert document is not None
        if variant.is_stale or read_user_text(document.path) != text:
            raise UsageError(f"{name} was edited after it was compiled: save the file first.")
        artifact = variant.kernel.artifact
        edits, sentence = find_remedy(artifact, newest_launch(artifact), document.path, text)
    except (InspectorError, OSError, ValueError) as error:  # ValueError: the name is invalid for a file
        return [], escape_unprintable(str(error))
    return [*edits], escape_unprintable(sentence)


def _saved_kernels(path: Path) -> Sequence[SourceKernel]:
    try:
        return find_kernels(read_user_text(path)) or ()
    except (OSError, ValueError):  # ValueError: the name is invalid for a file
        return ()


def _make_diagnostics(document: _OpenFile, pages: Path) -> Iterator[types.Diagnostic]:
    """One diagnostic per finding and line; equal ones of several targets are merged."""
    targets_by_message: dict[tuple[int, str, str], tuple[Any, list[str]]] = {}
    for kernel, variant in document.current_variants():
        for line, finding in variant.findings:
            diagnostic_line = (
                line if line is not None and kernel.first_line <= line <= kernel.last_line else kernel.def_line
            )
            stale = "stale: " if variant.is_stale else ""
            key = (diagnostic_line, finding.code, f"{stale}{finding.remark.message}")
            targets_by_message.setdefault(key, (finding, []))[1].append(variant.target)
    for (line, code, message), (finding, targets) in targets_by_message.items():
        is_stale = message.startswith("stale: ")
        yield types.Diagnostic(
            range=_line_range(line),
            message=escape_unprintable(f"{message} [{', '.join(dict.fromkeys(targets))}]"),
            severity=types.DiagnosticSeverity.Hint if is_stale else _SEVERITIES[finding.severity],
            code=code,
            code_description=types.CodeDescription(_page_uri(pages, code)),
            source=SOURCE,
        )
    for kernel in document.kernels:
        if kernel.name in document.notes:
            yield types.Diagnostic(
                range=_line_range(kernel.def_line),
                message=escape_unprintable(document.notes[kernel.name]),
                severity=types.DiagnosticSeverity.Information,
                source=SOURCE,
            )


def _make_hover(document: _OpenFile, line: int) -> types.Hover | None:
    hover_lines = []
    for kernel, variant in document.current_variants():
        if kernel.first_line <= line <= kernel.last_line:
            stale = ", stale: edited after it was compiled" if variant.is_stale else ""
            sentences = variant.describe_line(line, kernel.def_line)
            if sentences:
                hover_lines.append(escape_unprintable(f"{variant.target} ({variant.kernel.artifact.hash[:8]}{stale})"))
                hover_lines += [f"  {escape_unprintable(sentence)}" for sentence in sentences]
    return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, "\n".join(hover_lines))) if hover_lines else None


def _make_hints(document: _OpenFile, visible_range: types.Range) -> Iterator[types.InlayHint]:
    """One hint per line; targets are named only if their hints differ."""
    targets_by_hint: dict[int, dict[str, list[str]]] = {}
    for kernel, variant in document.current_variants():
        for line, hint in variant.hints.items():
            if kernel.first_line <= line <= kernel.last_line:
                hint_text = f"{hint} (stale)" if variant.is_stale else hint
                targets_by_hint.setdefault(line, {}).setdefault(hint_text, []).append(variant.target)
    for line, targets_by_text in sorted(targets_by_hint.items()):
        if visible_range.start.line <= line - 1 <= visible_range.end.line and line <= len(document.lines):
            label = next(iter(targets_by_text)) if len(targets_by_text) == 1 else " | ".join(
                f"{', '.join(targets)} {hint_text}" for hint_text, targets in targets_by_text.items()
            )  # fmt: skip
            end = types.Position(line - 1, len(document.lines[line - 1]))
            yield types.InlayHint(end, escape_unprintable(label), padding_left=True)


def _line_range(number: int) -> types.Range:
    return types.Range(types.Position(number - 1, 0), types.Position(number - 1, MAX_LINE))


def _page_uri(pages: Path, code: str) -> str:
    """The URI of the page that explains a finding; writes the page if it is missing."""
    file = pages / f"{code}.md"
    if not file.is_file():
        (rule,) = (rule for rule in RULES if rule.code == code)
        pages.mkdir(parents=True, exist_ok=True)
        write_text(file, f"# {rule.code} {rule.name} ({rule.severity.value})\n\n{rule.explanation}\n")
    return str(from_fs_path(str(file)))
