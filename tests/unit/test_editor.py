"""An editor opens, hovers, edits and saves a file with a kernel, through pygls' own client."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from saved import FIXTURES

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from artifact_inspector.api.advice import headline
from artifact_inspector.api.advice_cluster import Advice
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.serving import remedy_edit
from artifact_inspector.serving.kernel_variants import KernelVariants, find_kernels, parse_comment, with_launch
from artifact_inspector.serving.lsp import _AnsweringProtocol, _find_remedy, _OpenFile

KERNEL = "3.6.0/sm_80/masked_add"
SOURCE = FIXTURES / "sources" / "masked_add.py"


class Editor:
    """A client, and the last diagnostics of each file."""

    def __init__(self, server: LanguageClient, file: Path) -> None:
        self.server, self.uri, self.text, self.version = server, file.as_uri(), file.read_text(), 1
        self.news: asyncio.Queue[list[types.Diagnostic]] = asyncio.Queue()

    async def open(self) -> list[types.Diagnostic]:
        document = types.TextDocumentItem(self.uri, "python", 1, self.text)
        self.server.text_document_did_open(types.DidOpenTextDocumentParams(document))
        return await asyncio.wait_for(self.news.get(), 60)

    async def edit(self, text: str) -> list[types.Diagnostic]:
        self.text, self.version = text, self.version + 1
        change = types.TextDocumentContentChangeWholeDocument(text)
        document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.server.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
        return await asyncio.wait_for(self.news.get(), 60)

    async def save(self) -> list[types.Diagnostic]:
        document = types.TextDocumentIdentifier(self.uri)
        self.server.text_document_did_save(types.DidSaveTextDocumentParams(document))
        return await asyncio.wait_for(self.news.get(), 120)

    async def hover(self, line: int) -> str:
        place = types.HoverParams(types.TextDocumentIdentifier(self.uri), types.Position(line - 1, 4))
        found = await self.server.text_document_hover_async(place)
        return "" if found is None else found.contents.value

    async def advise(self, line: int) -> tuple[list[str], Any]:
        """The titles of the actions on a line, and the answer to the first."""
        at = types.Position(line - 1, 0)
        document = types.TextDocumentIdentifier(self.uri)
        params = types.CodeActionParams(document, types.Range(at, at), types.CodeActionContext([]))
        actions = await self.server.text_document_code_action_async(params) or []
        request = types.ExecuteCommandParams(actions[0].command, actions[0].arguments)
        return [one.title for one in actions], await self.server.workspace_execute_command_async(request)

    async def lenses(self) -> list[tuple[int, str]]:
        params = types.CodeLensParams(types.TextDocumentIdentifier(self.uri))
        found = await self.server.text_document_code_lens_async(params) or []
        return [(lens.range.start.line + 1, lens.command.title) for lens in found]

    async def hints(self) -> dict[int, str]:
        whole = types.Range(types.Position(0, 0), types.Position(10_000, 0))
        asked = types.InlayHintParams(types.TextDocumentIdentifier(self.uri), whole)
        found = await self.server.text_document_inlay_hint_async(asked) or []
        return {hint.position.line + 1: str(hint.label) for hint in found}


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


async def _session(directory: Path) -> dict[str, Any]:
    """One sitting: open, look, edit elsewhere, edit the kernel, break the file, mend it."""
    told: dict[str, Any] = {}
    server = LanguageClient("test", "1")
    arguments = ["-m", "artifact_inspector", "lsp", "--cache", str(directory / "cache")]
    editor = Editor(server, directory / "masked_add.py")

    @server.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(params: types.PublishDiagnosticsParams) -> None:
        editor.news.put_nowait(params.diagnostics)

    await server.start_io(sys.executable, *arguments)
    try:
        settings = types.InitializeParams(types.ClientCapabilities())
        told["capabilities"] = (await server.initialize_async(settings)).capabilities
        server.initialized(types.InitializedParams())
        text = told["text"] = editor.text
        told["open"] = await editor.open()
        first, load = line_of(text, "def masked_add"), line_of(text, "tl.load(x_ptr")
        told["hover def"], told["hover load"] = await editor.hover(first), await editor.hover(load)
        told["hover elsewhere"] = await editor.hover(1)
        told["hints"] = await editor.hints()
        told["lenses"] = await editor.lenses()
        told["action"], told["headline"] = await editor.advise(first)
        told["moved"] = await editor.edit(f"# one\n# two\n{text}")
        told["moved hints"] = await editor.hints()
        told["stale"] = await editor.edit(text.replace("tl.load(x_ptr", "2 * tl.load(x_ptr"))
        told["stale hover"], told["stale hints"] = await editor.hover(first), await editor.hints()
        told["broken"] = await editor.edit(text.replace("def masked_add(", "def masked_add(("))
        told["mended"] = await editor.edit(text)
        await server.shutdown_async(None)
        server.exit(None)
    finally:
        await asyncio.wait_for(server.stop(), 30)
    return told


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("editor")
    shutil.copy(SOURCE, directory)
    shutil.copytree(FIXTURES / KERNEL, directory / "cache", copy_function=shutil.copyfile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(directory / "own"))
        yield asyncio.run(_session(directory))


def codes(diagnostics: list[types.Diagnostic]) -> list[tuple[Any, int]]:
    return sorted((one.code, one.range.start.line + 1) for one in diagnostics)


@pytest.mark.long
def test_the_server_offers_hovers_and_hints(told: dict[str, Any]) -> None:
    assert told["capabilities"].hover_provider
    assert told["capabilities"].inlay_hint_provider


@pytest.mark.long
def test_the_action_on_a_kernel_answers_with_its_headline(told: dict[str, Any]) -> None:
    assert told["action"] == ["Name what takes the time of masked_add on sm_80"]
    (entry,) = open_cache(FIXTURES / KERNEL).entries
    assert told["headline"] == headline(entry, binary_disassembler())


def test_a_lens_over_the_kernel_names_its_variant_and_worst_finding(told: dict[str, Any]) -> None:
    worst = next(one for one in told["open"] if one.code == "AI006").message.removesuffix(" [sm_80]")
    ((line, title),) = told["lenses"]
    assert line == line_of(told["text"], "def masked_add")
    assert title == f"sm_80 w4 s3 · {worst}"
    assert title in told["hover def"]


def test_findings_stand_on_their_lines_with_severity_code_and_page(told: dict[str, Any]) -> None:
    load = line_of(told["text"], "tl.load(x_ptr")
    assert ("AI006", load) in codes(told["open"])
    one = next(one for one in told["open"] if one.code == "AI006")
    assert one.severity == types.DiagnosticSeverity.Warning
    assert one.source == "inspect-kernel"
    assert "loads of 4 B per thread each. Cause: " in one.message
    assert one.message.endswith("[sm_80]")
    page = Path(one.code_description.href.removeprefix("file://"))
    assert page.read_text().startswith("# AI006 narrow-loads (warning)")


def test_a_hover_tells_what_became_of_the_line_and_of_the_kernel(told: dict[str, Any]) -> None:
    assert told["hover load"].startswith("sm_80 (")
    assert "load" in told["hover load"]
    assert "4 B per thread" in told["hover load"]
    assert "straight: single" in told["hover def"]
    assert "loads 4 ×8" in told["hover def"]
    assert told["hover elsewhere"] == ""


def test_hints_stand_at_the_end_of_loads_and_stores(told: dict[str, Any]) -> None:
    assert told["hints"][line_of(told["text"], "tl.load(x_ptr")] == "4 B"
    assert told["hints"][line_of(told["text"], "tl.store(")] == "4 B"


def test_facts_move_with_a_function_that_is_not_edited(told: dict[str, Any]) -> None:
    assert codes(told["moved"]) == [(code, line + 2) for code, line in codes(told["open"])]
    assert told["moved hints"] == {line + 2: hint for line, hint in told["hints"].items()}
    assert not any(one.message.startswith("stale") for one in told["moved"])


def test_facts_of_another_text_are_marked(told: dict[str, Any]) -> None:
    assert told["stale"]
    assert all(one.message.startswith("stale: ") for one in told["stale"])
    assert {one.severity for one in told["stale"]} == {types.DiagnosticSeverity.Hint}
    assert "stale: edited after it was compiled" in told["stale hover"]
    assert all(hint.endswith("(stale)") for hint in told["stale hints"].values())


def test_a_file_that_is_no_python_at_the_moment_keeps_what_is_known(told: dict[str, Any]) -> None:
    assert len(told["broken"]) == len(told["stale"])
    assert codes(told["mended"]) == codes(told["open"])
    assert not any(one.message.startswith("stale") for one in told["mended"])


@pytest.mark.parametrize(("number", "answered"), [(7, 7), ("a", "a"), (0, 0), ([1], None), (None, "nothing")])
def test_a_request_that_is_not_valid_is_answered_with_its_number(number: object, answered: object) -> None:
    """Without an answer an editor waits for ever; a notification has no number, and is not answered."""
    sent: list[dict[str, Any]] = []
    protocol = LanguageClient("test", "1").protocol
    answering = _AnsweringProtocol(protocol._server, protocol._converter)
    answering._send_data = sent.append  # type: ignore[method-assign]
    request = {"jsonrpc": "2.0", "id": number, "method": "textDocument/hover", "params": {"position": "here"}}
    with pytest.raises(JsonRpcException) as raised:
        answering.structure_message({key: value for key, value in request.items() if value is not None})
    error = raised.value.to_response_error()
    assert sent == ([] if answered == "nothing" else [{"jsonrpc": "2.0", "id": answered, "error": error}])
    valid = {
        **request,
        "id": 8,
        "params": {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}},
    }
    assert answering.structure_message(valid).id == 8
    assert len(sent) == (answered != "nothing")


def test_kernels_are_found_without_an_import() -> None:
    text = "raise SystemExit\n@triton.autotune([])\n@triton.jit\ndef a(x): pass\n@jit()\ndef b(): pass\ndef c(): pass\n"
    found = find_kernels(text)
    assert found is not None
    assert [(kernel.name, kernel.first_line, kernel.def_line) for kernel in found] == [("a", 2, 4), ("b", 5, 6)]
    assert find_kernels("def (") is None
    assert find_kernels("\0") is None


def test_an_entry_that_is_older_than_the_file_is_not_known_to_be_of_its_text(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / KERNEL, tmp_path / "cache")
    file = tmp_path / "masked_add.py"
    file.write_text(SOURCE.read_text())
    (kernel,) = find_kernels(file.read_text()) or ()
    (form,) = KernelVariants([tmp_path / "cache", tmp_path / "gone"], out_directory=tmp_path / "out").newest_variants(
        file, kernel, is_saved=True
    )
    assert form.is_stale


def test_a_launch_on_record_tells_what_a_line_will_execute(tmp_path: Path) -> None:
    file = Path(shutil.copy(FIXTURES / "sources" / "copy.py", tmp_path))
    shutil.copytree(FIXTURES / "3.6.0/sm_80/copy", tmp_path / "cache", copy_function=shutil.copyfile)
    (metadata,) = (tmp_path / "cache").glob("*/copy.json")
    tensor = {"shape": [4096], "stride": [1], "dtype": "torch.float16"}
    arguments = {"x_ptr": tensor, "y_ptr": tensor, "n": 4096, "BLOCK": 512}
    launch = {"hash": json.loads(metadata.read_text())["hash"], "grid": [8, 1, 1], "args": arguments}
    (tmp_path / "cache" / "inspect-kernel.json").write_text(json.dumps({"launches": [launch]}))
    (kernel,) = find_kernels(file.read_text()) or ()
    (form,) = KernelVariants([tmp_path / "cache"], out_directory=tmp_path / "out").newest_variants(
        file, kernel, is_saved=True
    )
    assert form.launch is None, "findings do not wait for a simulation"
    form = with_launch(form)
    assert form.launch is not None
    assert form.launch.time is None or form.launch.time.bound in form.lens
    newer = tmp_path / "cache" / "newer"
    shutil.copytree(metadata.parent, newer)
    told = json.loads((newer / "copy.json").read_text())
    (newer / "copy.json").write_text(json.dumps({**told, "hash": "f" * 64}))
    os.utime(newer / "copy.json", (2**32, 2**32))
    (launched,) = KernelVariants([tmp_path / "cache"], out_directory=tmp_path / "out").newest_variants(
        file, kernel, is_saved=True
    )
    assert launched.kernel.artifact.hash == form.kernel.artifact.hash, "the launched one, not the newest"
    load = line_of(file.read_text(), "tl.load(")
    said = next(one for one in form.describe_line(load, kernel.def_line) if one.startswith("a launch of 8×1×1 CTAs: "))
    # 4096 elements of two bytes in sectors of 32, loaded and stored
    assert "512 sectors" in said
    assert "instructions executed" in said


@pytest.mark.parametrize(("target", "instruction"), [("sm_80", "mma.sync"), ("gfx942", "v_mfma")])
def test_a_hover_on_a_dot_names_its_instructions(target: str, instruction: str, tmp_path: Path) -> None:
    source = FIXTURES / "sources" / "bias_after_loop.py"
    (kernel,) = find_kernels(source.read_text()) or ()
    cache = FIXTURES / "3.6.0" / target / "bias_after_loop"
    (form,) = KernelVariants([cache], out_directory=tmp_path).newest_variants(source, kernel, is_saved=False)
    said = form.describe_line(line_of(source.read_text(), "tl.dot("), kernel.def_line)
    (last,) = (file for name in ("*.ptx", "*.amdgcn") for file in cache.rglob(name))
    count = sum(line.split()[:1] != [] and instruction in line.split()[0] for line in last.read_text().splitlines())
    counts = [int(one.split()[3]) for one in said if one.startswith("dot in ") and f" × {instruction}" in one]
    assert sum(counts) == count > 0


def test_the_remedy_is_an_edit_of_the_text_that_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(shutil.copy(SOURCE, tmp_path))
    shutil.copytree(FIXTURES / KERNEL, tmp_path / "cache", copy_function=shutil.copyfile)
    text = file.read_text()
    changed = text.replace("    x = tl.load", "    # first\n    x = tl.load").replace("import triton\n", "", 1)
    document = _OpenFile(file)
    document.set_text(text)
    (kernel,) = document.kernels
    variants = KernelVariants([tmp_path / "cache"], out_directory=tmp_path / "out")
    document.variants = {kernel.name: variants.newest_variants(file, kernel, is_saved=True)}
    document.digests = {kernel.name: kernel.digest}
    option = Remedy("num_warps=8", None, 2.0, (), "spills", True)
    edit = Remedy("line 12: other", "patch", 1.5, ("precision",), "spills", True)
    search = RemedySearch((option, edit), 9, "", {"patch": changed})
    asked = []
    monkeypatch.setattr(remedy_edit, "advise_launch", lambda *job: asked.append(job) or Advice(None, search))
    edits, sentence = _find_remedy(document, text, kernel.name, "sm_80")
    lines = text.splitlines(True)
    for one in reversed(edits):
        lines[one.range.start.line : one.range.end.line] = [one.new_text]
    assert "".join(lines) == changed
    assert len(edits) == 2, "lines between the changes stay"
    assert sentence == "line 12: other: predicted 1.50× as fast; it costs precision."
    assert asked[0][2].kernel == f"{file}:{kernel.name}"
    assert _find_remedy(document, f"{text}#", kernel.name, "sm_80")[0] == [], "the text is not the one on disk"
    assert len(asked) == 1
    search = RemedySearch((option,), 9, "")
    assert _find_remedy(document, text, kernel.name, "sm_80") == (
        [], f"No edit of {kernel.name} helps: num_warps=8 is no edit of the kernel. Set it where {kernel.name} is launched."
    )  # fmt: skip
    assert _find_remedy(document, text, kernel.name, "sm_90") == ([], f"{kernel.name} is not compiled for sm_90.")


@pytest.mark.long
def test_a_comment_says_how_a_kernel_is_compiled_on_save(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    file = tmp_path / "scale.py"
    file.write_text(
        "import triton\nimport triton.language as tl\n\n\n"
        "# inspect-kernel: -t sm_80 -S '*fp32:16, *fp32:16, i32' -c BLOCK=256 --num-warps 1\n"
        "@triton.jit\ndef scale(x_ptr, o_ptr, n, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)\n"
    )
    (kernel,) = find_kernels(file.read_text()) or ()
    knowledge = KernelVariants([], out_directory=tmp_path / "out")
    assert knowledge.newest_variants(file, kernel, is_saved=True) == [], "nothing runs before it is asked for"
    assert knowledge.compile(file, kernel) is None
    knowledge.clear_cache()
    (form,) = knowledge.newest_variants(file, kernel, is_saved=True)
    assert (form.target, form.is_stale, form.kernel.artifact.num_warps) == ("sm_80", False, 1)
    assert form.hints[9] == "4 B"


def test_a_kernel_that_nothing_says_how_to_compile_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "scale.py"
    file.write_text("@triton.jit\ndef scale(x): pass\n")
    (kernel,) = find_kernels(file.read_text()) or ()
    said = KernelVariants([], out_directory=tmp_path / "out").compile(file, kernel)
    assert said is not None
    assert "# inspect-kernel: -t" in said


@pytest.mark.parametrize("comment", ["--exec rm", "-c", "--num-warps x", "'"])
def test_a_comment_takes_no_other_options(comment: str) -> None:
    with pytest.raises(UsageError):
        parse_comment(comment)


def _say(*messages: bytes) -> subprocess.CompletedProcess[bytes]:
    """What a server answers to messages, each in its frame."""
    framed = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(one), one) for one in messages)
    return _send(framed)


def _send(content: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "artifact_inspector", "lsp"]
    return subprocess.run(command, input=content, capture_output=True, timeout=60, check=False)


BEGIN = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'


@pytest.mark.long
def test_what_makes_no_sense_is_answered_and_the_next_request_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    opened = {"uri": (tmp_path / "pipe.py").as_uri(), "languageId": "python", "version": 1, "text": ""}
    messages = [
        b"{nope",
        b"[]",
        b'{"jsonrpc":"2.0","id":2,"method":"textDocument/hover","params":7}',
        b'{"jsonrpc":"2.0","id":[1],"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":3,"method":"textDocument/inlayHint","params":{"textDocument":{"uri":"x"},'
        b'"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":0}}}}',
        BEGIN,
        json.dumps({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": opened}}).encode(),
        b'{"jsonrpc":"2.0","id":4,"method":"no/such","params":{}}',
        b'{"jsonrpc":"2.0","id":5,"method":"shutdown"}',
        b'{"jsonrpc":"2.0","method":"exit"}',
    ]
    result = _say(*messages)
    answers = {}
    for part in result.stdout.split(b"\r\n\r\n")[1:]:
        found = json.loads(part.partition(b"Content-Length")[0])
        if "id" in found:
            answers[found["id"]] = found.get("error", {}).get("code")
    assert answers == {2: -32602, None: -32603, 3: None, 1: None, 4: -32601, 5: None}
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.long
def test_a_length_that_is_none_ends_the_server_in_words() -> None:
    result = _send(b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n")
    assert result.returncode == 2
    assert result.stderr.decode().startswith("inspect-kernel: The Content-Length of an incoming message is invalid")
