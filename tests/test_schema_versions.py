"""Documents of schema version 1 are read as version 2, and a table lists every path of both."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from saved import ROOT
from typer.testing import CliRunner
from version1_keys import RENAMED_KEYS, path_in_version_2, upgrade_keys

from artifact_inspector import UsageError, cli, from_json, inspect, to_json
from artifact_inspector.model import EventKind
from artifact_inspector.report.json.schema import DOCUMENTS, schema_of

PAGE = ROOT / "docs" / "json-v1-v2.md"
TABLE = ROOT / "docs" / "json-v1-v2.tsv"
VERSION_1 = ROOT / "docs" / "schema" / "v1"
CASES = ROOT / "tests" / "cases" / "version1"
"""Documents and objects as the last release of version 1 wrote them."""


def paths_of(schema: dict[str, Any]) -> dict[str, None]:
    """Every path of a document, in the order of its schema."""
    return dict.fromkeys(_paths(schema, schema.get("$defs", {}), "", frozenset()))


def _paths(node: dict[str, Any], types: dict[str, Any], path: str, open_types: frozenset[str]) -> Iterator[str]:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name not in open_types:
            yield from _paths(types[name], types, path, open_types | {name})
    for alternative in node.get("anyOf", ()):
        yield from _paths(alternative, types, path, open_types)
    for key, member in node.get("properties", {}).items():
        member_path = f"{path}.{key}" if path else key
        yield member_path
        yield from _paths(member, types, member_path, open_types)
    if isinstance(node.get("additionalProperties"), dict):
        yield from _paths(node["additionalProperties"], types, f"{path}.*", open_types)
    for element in [node["items"]] if "items" in node else node.get("prefixItems", ()):
        yield from _paths(element, types, f"{path}[]", open_types)


def last_key(path: str) -> str:
    return path.rpartition(".")[2]


@cache
def version_1(name: str) -> dict[str, None]:
    return paths_of(json.loads((VERSION_1 / f"{name}.schema.json").read_text(encoding="utf-8")))


def documents_of_version_1() -> list[str]:
    return sorted(path.name.partition(".")[0] for path in VERSION_1.iterdir())


def test_the_table_lists_every_path(request: pytest.FixtureRequest) -> None:
    rows = ["document\tversion 1\tversion 2"]
    for name in documents_of_version_1():
        rows += [f"{name}\t{path}\t{path_in_version_2(name, path)}" for path in version_1(name)]
    current = "\n".join(rows) + "\n"
    if request.config.getoption("--update-docs", default=False):
        TABLE.write_text(current, encoding="utf-8")
    else:
        assert TABLE.read_text(encoding="utf-8") == current, "run pytest tests/test_schema_versions.py --update-docs"


def test_the_page_lists_the_renamed_keys(request: pytest.FixtureRequest) -> None:
    head, mark, _ = PAGE.read_text(encoding="utf-8").partition("<!-- renamed -->\n")
    current = head + mark
    for name, renamed in sorted(RENAMED_KEYS.items()):
        rows = [f"| `{path}` | `{path_in_version_2(name, path)}` |" for path in version_1(name) if path in renamed]
        current += f"\n## {name}\n\n| version 1 | version 2 |\n|---|---|\n" + "\n".join(rows) + "\n"
    if request.config.getoption("--update-docs", default=False):
        PAGE.write_text(current, encoding="utf-8")
    else:
        assert mark
        assert PAGE.read_text(encoding="utf-8") == current, "run pytest tests/test_schema_versions.py --update-docs"


@pytest.mark.parametrize("name", documents_of_version_1())
def test_every_path_of_version_1_is_in_version_2(name: str) -> None:
    current = paths_of(schema_of(name))
    renamed = {path_in_version_2(name, path) for path in version_1(name)}
    assert renamed <= set(current)
    assert len(renamed) == len(version_1(name)), "two paths of version 1 have one name"


def test_every_renamed_key_is_one_of_version_1() -> None:
    for name, renamed in RENAMED_KEYS.items():
        assert name in DOCUMENTS
        assert set(renamed) <= set(version_1(name))


@pytest.mark.parametrize(
    "key",
    [
        "kernels",
        "name",
        "hash",
        "target",
        "verdict",
        "regions",
        "rounds",
        "findings",
        "counters",
        "rank",
        "score",
        "launch",
        "cta_order",
        "signature",
    ],
)
def test_a_standard_key_keeps_its_name(key: str) -> None:
    paths = [(name, path) for name in documents_of_version_1() for path in version_1(name)]
    kept = [row for row in paths if row[1].rpartition(".")[2] == key]
    assert kept
    assert all(path_in_version_2(*row).rpartition(".")[2] == key for row in kept)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_a_document_of_version_1_becomes_one_of_version_2(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["schema_version"] == 1
    upgraded = upgrade_keys(document)
    name = upgraded["document"]
    of_version_1 = {path_in_version_2(name, path) for path in version_1(name)}
    added = {last_key(path) for path in paths_of(schema_of(name)) if path not in of_version_1}
    validator = Draft202012Validator(_closed(schema_of(name), added))
    assert [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(upgraded)] == []
    assert upgrade_keys(upgraded) == upgraded


def _closed(schema: Any, added: Collection[str]) -> Any:
    """The schema without fields that it does not name; keys that version 2 added are optional."""
    if isinstance(schema, list):
        return [_closed(member, added) for member in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(member, added) for key, member in schema.items()}
    if "properties" not in closed:
        return closed
    required = [key for key in closed.get("required", ()) if key not in added]
    return closed | {"additionalProperties": False, "required": required}


CHANGED_MEANING = {"reduction across warps"}
"""Shared memory of a purpose: today the most that is live at once, then the sum of all buffers."""


@pytest.mark.usefixtures("recalled")
def test_check_reads_a_baseline_of_version_1(tmp_path: Path) -> None:
    document = json.loads((CASES / "baseline.json").read_text(encoding="utf-8"))
    path = tmp_path / "baseline.json"
    cache = str(ROOT / "fixtures" / "3.9.0" / "sm_80")
    for kernel in document["kernels"]:
        kernel["digests"] = {}  # so that every fact is compared
    path.write_text(json.dumps(document), encoding="utf-8")
    result = CliRunner().invoke(cli.app, ["check", cache, "--baseline", str(path), "--json"])
    checked = json.loads(result.stdout)
    assert (result.exit_code, checked["passed"]) == (0, True)
    facts = [fact for kernel in checked["kernels"] for fact in kernel["change"]["facts"]]
    # facts that are new have no left side
    assert {fact["key"].partition(".")[2] for fact in facts if fact["left"] is not None} == CHANGED_MEANING


def test_a_changed_fact_of_a_baseline_of_version_1_fails(tmp_path: Path) -> None:
    document = json.loads((CASES / "baseline.json").read_text(encoding="utf-8"))
    for kernel in document["kernels"]:
        kernel["digests"] = {}
        for row in kernel["facts"]:
            if row["key"].endswith("in_flight.covered"):
                row["value"] = 200  # now half
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    cache = str(ROOT / "fixtures" / "3.9.0" / "sm_80")
    command = ["check", cache, "--baseline", str(path), "--json", "--fail-on", "in-flight", "--strict"]
    result = CliRunner().invoke(cli.app, command, catch_exceptions=False)
    checked = json.loads(result.stdout)
    facts = [fact for kernel in checked["kernels"] for fact in kernel["change"]["facts"]]
    keys = {fact["key"].partition(".")[2] for fact in facts if fact["left"] is not None}
    assert result.exit_code == 1
    assert keys == {"in_flight.overlap"} | CHANGED_MEANING


def objects() -> list[str]:
    return (CASES / "objects.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("text", objects(), ids=lambda text: json.loads(text)["type"])
def test_from_json_reads_objects_of_version_1(text: str) -> None:
    value = from_json(text)
    assert to_json(from_json(to_json(value))) == to_json(value)


def test_an_object_of_version_1_has_the_facts_of_its_files() -> None:
    (text,) = [text for text in objects() if json.loads(text)["type"] == "Inspection"]
    old, new = from_json(text).details, inspect(ROOT / "fixtures" / "3.6.0" / "gfx942" / "flash_attention").details
    assert (old.verdict, old.principal, old.resources.registers) == (
        new.verdict,
        new.principal,
        new.resources.registers,
    )
    for stage, facts in new.stages.items():
        for region in facts.regions:
            before = old.stages[stage].region(region.id)
            assert before.phrase == region.phrase
            assert before.rounds == region.rounds
            letters = {kind.count_name for kind in EventKind if kind.letter}
            counts = {name: number for name, number in region.counts.items() if name in letters}
            assert before.counts == counts


def test_an_unknown_object_is_refused() -> None:
    text = json.dumps({"form": "artifact-inspector object 1", "type": "Wait", "value": [1, 2]})
    with pytest.raises(UsageError, match="not written by to_json"):
        from_json(text)
