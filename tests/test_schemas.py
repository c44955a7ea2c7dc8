"""What `--json` prints is what the shipped schemas say, and the schemas are those of the types."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from jsonschema import Draft202012Validator
from measured import a_bench, a_measurement
from saved import ROOT, Saved, every_third, saved_kernels
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.api import trial
from artifact_inspector.cli import capture as capture_command
from artifact_inspector.cli import compile as compile_command
from artifact_inspector.compiling import CapturedKernel, Launch, Note, ProgramRun
from artifact_inspector.compiling.ask.request import CompileResult
from artifact_inspector.compiling.capture.recorder import CallSite
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.measuring import measure as measuring
from artifact_inspector.passes import bisection, subject
from artifact_inspector.passes.bisection import Bisection, ReleaseDifference, ReleaseResult
from artifact_inspector.passes.dump_facts import DumpFact, Topic
from artifact_inspector.passes.trace import FactChange, PassLevel, PassRun, PassTrace
from artifact_inspector.report.json import SCHEMA_VERSION, as_text
from artifact_inspector.report.json.cache import cache_document, findings_document
from artifact_inspector.report.json.schema import DOCUMENTS, describe_document, schema_of

SHIPPED = ROOT / "docs" / "schema" / f"v{SCHEMA_VERSION}"
PAGE = ROOT / "docs" / "json.md"
A_CACHE = str(ROOT / "fixtures" / "3.9.0")

COMMANDS = {
    "inspect": ("cache", [A_CACHE]),
    "findings": ("findings", ["findings", A_CACHE]),
    "diff": ("corpus", ["diff", A_CACHE, str(ROOT / "fixtures" / "3.3.1")]),
    "regress": ("regress", ["regress", A_CACHE, str(ROOT / "fixtures" / "3.3.1")]),
    "predict --product": ("bandwidth", ["predict", "--product", "1x4096@4096x7168", "--time", "0.0003"]),
    "matrix": ("matrix", ["matrix", str(ROOT / "fixtures" / "3.6.0"), "gemv_splitk"]),
    "check": ("check", ["check", str(ROOT / "fixtures" / "3.9.0" / "sm_80"), "--baseline", "baseline.json"]),
    "compile": ("compiled", ["compile", "softmax", "-t", "T4"]),
    "capture": ("captured", ["capture", "--json", "-t", "T4", "python", "script.py"]),
    "demo": ("cache", ["demo", "-t", "T4"]),
    "predict": (
        "prediction",
        ["predict", str(ROOT / "tests" / "oracle" / "counters" / "softmax"), "softmax", "--grid", "8"]
        + [f"--arg={name}=fp16[8,1000]" for name in ("x_ptr", "y_ptr")]
        + [f"--arg={name}=1000" for name in ("stride_x", "stride_y", "n_cols")],
    ),
    "check-memory": (
        "memory_check",
        ["check-memory", str(ROOT / "tests" / "oracle" / "counters" / "softmax"), "softmax", "--grid", "8"]
        + [f"--arg={name}=fp16[8,1000]" for name in ("x_ptr", "y_ptr")]
        + [f"--arg={name}=1000" for name in ("stride_x", "stride_y", "n_cols")],
    ),
    "rank": (
        "ranking",
        ["rank", str(ROOT / "tests" / "oracle" / "counters" / "softmax"), "softmax", "--grid", "8"]
        + [f"--arg={name}=fp16[8,1000]" for name in ("x_ptr", "y_ptr")]
        + [f"--arg={name}=1000" for name in ("stride_x", "stride_y", "n_cols")],
    ),
    "advise": (
        "advice",
        ["advise", str(ROOT / "tests" / "oracle" / "counters" / "softmax"), "softmax", "--grid", "8"]
        + [f"--arg={name}=fp16[8,1000]" for name in ("x_ptr", "y_ptr")]
        + [f"--arg={name}=1000" for name in ("stride_x", "stride_y", "n_cols")],
    ),
    "inspect --timeline": ("timeline", [str(ROOT / "fixtures" / "3.6.0" / "gfx942" / "softmax"), "--timeline"]),
    "inspect --registers": ("pressure", [str(ROOT / "fixtures" / "3.6.0" / "gfx942" / "softmax"), "--registers"]),
    "bench": ("bench", ["bench", "softmax"]),
    "passes": ("passes", ["passes", "gemv_splitk", "-t", "gfx942"]),
    "matrix --why": ("causes", ["matrix", str(ROOT / "fixtures"), "matmul_kernel", "--why"]),
    "bisect": ("bisection", ["bisect", "gemv_splitk", "-t", "gfx942"]),
    "cache": ("health", ["cache", "verify", str(ROOT / "fixtures" / "3.6.0" / "sm_86")]),
    "inspect --index-info": ("index", ["--index-info"]),
    "watch": ("watched", ["watch", str(ROOT / "fixtures" / "3.6.0" / "sm_86"), "--all", "--idle", "0"]),
    "try": ("reach", ["try", "gemv_splitk", "-t", "T4", "--with", "num_warps=8"]),
}
"""Command with `--json` → the document that it prints, and arguments that make it print one."""

OTHERS = {"listing", "pair", "baseline", "reasons", "remedies", "error"}
"""Documents that a command prints beside its own."""


def closed(schema: Any) -> Any:
    """The schema of exactly this release: no fields that it does not name, no words beside its examples."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(part) for key, part in schema.items()}
    if "properties" in found or "patternProperties" in found:
        found["additionalProperties"] = False
    if "examples" in found:
        found["enum"] = found["examples"]
    return found


@cache
def validator_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(closed(schema_of(name)))


def check(document: Any) -> None:
    """Hold a document, as it is printed, against the closed schema of the document that it says it is."""
    errors = list(validator_of(document["document"]).iter_errors(document))
    assert not errors, [f"{error.json_path}: {error.message[:200]}" for error in errors]


def printed(document: Any) -> Any:
    return json.loads(as_text(document, "utf-8"))


def answer(*arguments: str) -> tuple[int, Any]:
    result = CliRunner().invoke(cli.app, [*arguments, "--json"])
    return result.exit_code, json.loads(result.stdout)


def a_trace() -> PassTrace:
    change = FactChange(Topic.ORDER, "straight.verdict", "straight verdict", "", "interleaved", "clustered")
    steps = (
        PassRun(1, "Canonicalizer", "canonicalize", PassLevel.TTIR, 1, False, None, ()),
        PassRun(2, "SROAPass", None, PassLevel.LLVM, 90, True, 0.001, (change,)),
    )
    widths = DumpFact(Topic.WIDTHS, "loads.widths", "loads", "B per thread × count", ("16 ×4",))
    return PassTrace("gemv_splitk", "gfx942", "3.2.0", steps, (widths,), ("a note",))


def a_bisection() -> Bisection:
    found = a_trace()
    tried = (
        ReleaseResult("3.2.0", {"llir straight.verdict": "clustered"}, None),
        ReleaseResult("3.3.1", {}, "refused"),
    )
    difference = ReleaseDifference(
        "llir", "straight.verdict", "clustered", None, found.last_change({"straight.verdict"}), None
    )
    return Bisection("gemv_splitk", "gfx942", (Topic.ORDER,), tried, ("3.2.0", "3.3.1"), (difference,))


@pytest.fixture(scope="module")
def baseline() -> str:
    return CliRunner().invoke(cli.app, ["baseline", str(ROOT / "fixtures" / "3.6.0" / "sm_80")]).stdout


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, baseline: str, recalled: None) -> None:
    """A compile that succeeds at once, into a cache that is there already, and a measurement with no GPU."""
    rows = [
        CompileResult("softmax", parse_target("T4"), 0.1234, tmp_path / "AB", None),
        CompileResult("softmax", parse_target("MI300X"), 2.0, None, "refused"),
    ]
    monkeypatch.setattr(compile_command, "_compile_requests", lambda *_: rows)
    t4, launch = parse_target("T4"), Launch((8, 1, 1), "lib/a.py:3", "script.py:9", 2)
    made = CapturedKernel(
        "scale", "ab12", t4, {"x": "*fp32:16"}, {"BLOCK": "128"}, {"num_warps": 4, "maxnreg": None}, (launch,),
        0, CallSite("lib/a.py:3", "script.py:9"), 0.5, tmp_path / "AB", None, "needs more",
    )  # fmt: skip
    refused = dataclasses.replace(made, hash=None, directory=None, message="refused", launches=())
    runs = [
        ProgramRun(t4, 0, "", (made, refused), (Note("A grid has a zero.", "script.py:9", (t4,)),), None),
        ProgramRun(t4, 1, "Traceback", (), (), ("Nothing.", "Do something.")),
    ]
    monkeypatch.setattr(capture_command, "_run_program", lambda *_: runs)
    failed = a_measurement(milliseconds=None, spread=None, deviation=None, message="no", facts=None)
    monkeypatch.setattr(measuring, "measure", lambda *_, **__: a_bench(a_measurement(), failed))
    states = [ROOT / "fixtures" / release / "sm_75" / "gemv_splitk" for release in ("3.6.0", "3.9.0")]
    tried = [[CompileResult("gemv_splitk", t4, 0.1, state, None)] for state in states]
    monkeypatch.setattr(trial, "compile_states", lambda *_, **__: tried)
    monkeypatch.setattr(subject, "trace_passes", lambda *_, **__: a_trace())
    monkeypatch.setattr(bisection, "bisect", lambda *_, **__: a_bisection())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "baseline.json").write_text(baseline, encoding="utf-8")
    (tmp_path / "triton-cache").symlink_to(ROOT / "fixtures" / "3.9.0" / "sm_75", target_is_directory=True)


@pytest.mark.parametrize("kernel", every_third(saved_kernels()), ids=lambda kernel: kernel.path)
def test_every_saved_kernel_prints_documents_of_their_schema(kernel: Saved) -> None:
    check(printed(cache_document(None, [kernel.facts], others=[parse_target("sm_89")])))
    check(printed(findings_document([kernel.facts])))


def test_every_command_with_json_is_checked_here() -> None:
    group = typer.main.get_command(cli.app)
    with_json = {
        name
        for name, command in group.commands.items()  # type: ignore[attr-defined]
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert with_json == {name.split()[0] for name in COMMANDS}, (
        "a document is a dataclass, listed in report/json/schema.py"
    )
    assert {document for document, _ in COMMANDS.values()} | OTHERS == set(DOCUMENTS)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[] if n % 2 else pytest.mark.long) for n, name in enumerate(COMMANDS)]
)
def test_a_command_prints_the_document_of_its_schema(command: str) -> None:
    name, arguments = COMMANDS[command]
    code, document = answer(*arguments)
    assert code in (0, 1)
    assert document["document"] == name
    check(document)


def test_a_listing_is_a_document_too() -> None:
    code, document = answer(str(ROOT / "fixtures" / "3.6.0" / "sm_80"), "flash", "--ir")
    assert (code, document["document"]) == (0, "listing")
    check(document)


def test_what_separates_two_entries_is_a_document_too() -> None:
    sides = [f"{ROOT / 'fixtures'}:{digest}" for digest in ("9578fe4c", "7db5a6")]
    code, document = answer("diff", *sides, "--why")
    assert (code, document["document"]) == (1, "reasons")
    check(document)


@pytest.mark.long
def test_a_baseline_is_a_document_too() -> None:
    result = CliRunner().invoke(cli.app, ["baseline", A_CACHE])
    document = json.loads(result.stdout)
    assert (result.exit_code, document["document"]) == (0, "baseline")
    check(document)


@pytest.mark.long
def test_two_kernels_are_a_document_of_their_own() -> None:
    for left, right in (("sm_75", "gfx942"), ("sm_80", "sm_75"), ("gfx942", "sm_80")):
        sides = ["--left", left, "--right", right]
        code, document = answer("diff", str(ROOT / "fixtures" / "3.6.0") + ":matmul_kernel", *sides)
        assert (code, document["document"]) == (1, "pair")
        check(document)


def test_where_there_is_no_cache_the_document_says_so(tmp_path: Path) -> None:
    for command in ([], ["findings"]):
        code, document = answer(*command, str(tmp_path / "nowhere"))
        assert (code, document["document"]) == (3, "error")
        check(document)


def test_broken_files_are_problems_of_a_document_of_its_schema(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "k.ptx").write_bytes(b"\x00\xff")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "k.json").write_text("{")
    (tmp_path / "b" / "k.ttir").write_text("module {\n  tt.func @k() {\n")
    assert open_cache(tmp_path).entries
    for command in ([], ["findings"]):
        _, document = answer(*command, str(tmp_path))
        assert document["problems"]
        check(document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_shipped_schema_is_that_of_the_types(name: str, request: pytest.FixtureRequest) -> None:
    shipped = SHIPPED / f"{name}.schema.json"
    current = as_text(schema_of(name), "utf-8")
    if request.config.getoption("--update-docs", default=False):
        shipped.parent.mkdir(parents=True, exist_ok=True)
        shipped.write_text(current, encoding="utf-8")
    else:
        assert shipped.read_text(encoding="utf-8") == current, "run pytest tests/test_schemas.py --update-docs"


def test_nothing_else_is_shipped() -> None:
    assert {path.name for path in SHIPPED.iterdir()} == {f"{name}.schema.json" for name in DOCUMENTS}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if n % 3 else []) for n, name in enumerate(DOCUMENTS)]
)
def test_a_schema_is_one_and_the_command_prints_it(name: str) -> None:
    result = CliRunner().invoke(cli.app, ["--json-schema", name])
    schema = json.loads(result.stdout)
    Draft202012Validator.check_schema(schema)
    assert schema == schema_of(name)
    assert schema["properties"]["document"] == {"const": name}


def test_a_document_of_a_later_release_still_fits_the_open_schema() -> None:
    document = printed(findings_document([]))
    document["more"] = 1
    document["kernels"] = [{"name": "k", "hash": "h", "directory": ".", "target": None, "findings": []}]
    assert Draft202012Validator(schema_of("findings")).is_valid(document)
    assert not Draft202012Validator(closed(schema_of("findings"))).is_valid(document)
    del document["kernels"][0]["hash"]
    assert not Draft202012Validator(schema_of("findings")).is_valid(document)


def test_the_command_lists_the_documents() -> None:
    listed = CliRunner().invoke(cli.app, ["--json-schema", "list"]).stdout
    assert [line.split()[0] for line in listed.splitlines() if line[:1] != " "] == list(DOCUMENTS)


def test_an_unknown_document_is_a_usage_error() -> None:
    result = CliRunner().invoke(cli.app, ["--json-schema", "nothing"])
    assert result.exit_code == 2
    assert "Expected one of cache, " in result.stderr


def test_the_page_on_json_is_current(request: pytest.FixtureRequest) -> None:
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition("<!-- documents -->\n")
    assert mark
    current = head + mark + "".join(section(name) for name in DOCUMENTS)
    if request.config.getoption("--update-docs", default=False):
        PAGE.write_text(current, encoding="utf-8")
    else:
        assert PAGE.read_text(encoding="utf-8") == current, "run pytest tests/test_schemas.py --update-docs"


def section(name: str) -> str:
    """A document's part of the page: its types, each a table of fields."""
    schema = schema_of(name)
    lines = [f"\n## {name}\n", f"{describe_document(name)} [Schema](schema/v{SCHEMA_VERSION}/{name}.schema.json)\n"]
    lines += table(schema)
    for title, kind in schema["$defs"].items():
        lines += [f"\n### {title}\n", f"{kind['description']}\n", *table(kind)]
    return "\n".join(lines) + "\n"


def table(kind: dict[str, Any]) -> list[str]:
    rows = ["| field | type | |", "|---|---|---|"]
    for name, field in kind["properties"].items():
        said = field.get("description", "")
        words = examples(field)
        if words:
            said = f"{said} One of {', '.join(f'`{word}`' for word in words)}.".strip()
        rows.append(f"| `{name}` | {type_name(field)} | {said.replace('|', chr(92) + '|')} |")
    return rows


def examples(field: dict[str, Any]) -> list[str]:
    parts = [field, *field.get("anyOf", ()), field.get("propertyNames", {})]
    return next((part["examples"] for part in parts if "examples" in part), [])


def type_name(field: dict[str, Any]) -> str:
    """`list of Kernel`, `integer or null`, `text → integer`: what a person would say."""
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "anyOf" in field:
        return " or ".join(type_name(part) for part in field["anyOf"])
    kinds = field.get("type")
    if isinstance(kinds, list):
        return " or ".join("text" if kind == "string" else kind for kind in kinds)
    if kinds == "array":
        if "prefixItems" in field:
            return f"({', '.join(type_name(part) for part in field['prefixItems'])})"
        return f"list of {type_name(field['items'])}"
    if "patternProperties" in field:
        return "key of a fact → its value"
    if kinds == "object":
        return f"text → {type_name(field['additionalProperties'])}"
    return {"string": "text", None: "anything"}.get(kinds, str(kinds))
