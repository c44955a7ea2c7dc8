"""Remarks as SARIF 2.1.0 for code-scanning services, and as workflow commands of GitHub Actions.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0; GitHub, "SARIF support for code
scanning" for the properties that show a result at a line, and "Workflow commands for GitHub Actions", with the escapes
of its toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.remarks import RemarkRule, SourceRemark
from artifact_inspector.version import __version__

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_IN_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_TEXT, ":": "%3A", ",": "%2C"}


def workflow_commands(remarks: Iterable[SourceRemark]) -> str:
    """One line for each remark: `::error file=kernels/matmul.py,line=81,title=…::message`."""
    return "".join(_command(remark) for remark in remarks)


def _command(remark: SourceRemark) -> str:
    properties = {"title": escape_unprintable(remark.title)}
    if remark.location is not None and remark.location.is_found:
        properties = {"file": escape_unprintable(remark.location.path), "line": str(remark.location.line), **properties}
    property_text = ",".join(f"{name}={_quoted(value, _IN_PROPERTY)}" for name, value in properties.items())
    return f"::{_COMMANDS[remark.level]} {property_text}::{_quoted(escape_unprintable(remark.message), _IN_TEXT)}\n"


def _quoted(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
"""The base id of the root of the working tree."""


def sarif_document(kinds: Sequence[RemarkRule], remarks: Iterable[SourceRemark]) -> dict[str, Any]:
    """A SARIF document with one run. `kinds`: every rule that a remark may refer to."""
    index = {kind.code: rule_index for rule_index, kind in enumerate(kinds)}
    versions = {"name": "inspect-kernel", "version": __version__, "semanticVersion": __version__}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {**versions, "rules": [_rule(kind) for kind in kinds]}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(remark, index[remark.code]) for remark in remarks],
            }
        ],
    }


def _rule(kind: RemarkRule) -> dict[str, Any]:
    return {
        "id": kind.code,
        "name": kind.name,
        "shortDescription": {"text": kind.summary},
        "fullDescription": {"text": kind.summary},
        "help": {"text": kind.explanation, "markdown": kind.explanation},
    }


def _result(remark: SourceRemark, rule: int) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"name": escape_unprintable(remark.kernel), "kind": "function"}]}
    if remark.location is not None:
        artifact = {"uri": quote(remark.location.path)}
        location["physicalLocation"] = {
            "artifactLocation": {**artifact, "uriBaseId": ROOT} if remark.location.is_found else artifact,
            "region": {"startLine": remark.location.line},
        }
    digest = blake2b(remark.identity.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return {
        "ruleId": remark.code,
        "ruleIndex": rule,
        "level": remark.level,
        "message": {"text": _without_links(escape_unprintable(remark.message))},
        "locations": [location],
        "partialFingerprints": {"kernelFact/v1": digest},
    }


def _without_links(text: str) -> str:
    """Text in which no bracket starts a link: SARIF 2.1.0, 3.11.6."""
    segments = text.split("]")
    escaped_texts = [a.replace("[", r"\[") if b.startswith("(") else a for a, b in pairwise(segments)]
    return "]".join([*escaped_texts, segments[-1]])
