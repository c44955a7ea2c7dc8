"""A comparison of two caches as JUnit XML: one test case per kernel.

Source: the schema that Jenkins' xUnit plugin publishes (jenkins-junit.xsd), which CI systems read;
XML 1.0, 2.2, for the characters that it allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from artifact_inspector.comparison.corpus import GATES, Corpus, Degree
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.ci_escaping import replace_commands
from artifact_inspector.report.corpus import describe_change


def junit_text(
    corpus: Corpus, gates: Sequence[str], suite_name: str = "inspect-kernel diff", *, is_strict: bool = True
) -> str:
    """The JUnit document.

    A kernel fails if one of its gates fails; without gates, if more than names differ.
    """
    effective_gates = gates or GATES
    suite = ElementTree.Element("testsuite", name=suite_name)
    for change in corpus.changes:
        case = _case(suite, change.left)
        failures = change.failures(effective_gates, is_strict=is_strict)
        if failures:
            message = change.describe_failure(failures, is_strict=is_strict) or "The code differs, but no fact does."
            failure = ElementTree.SubElement(case, "failure", type=failures[0], message=_plain(message))
            failure.text = _plain("\n".join(describe_change(change)))
        elif change.degree is Degree.CHANGED:
            ElementTree.SubElement(case, "system-out").text = _plain("\n".join(describe_change(change)))
    _add_unmatched(suite, corpus, effective_gates)
    for name in ("failure", "skipped"):
        suite.set({"failure": "failures"}.get(name, name), str(len(suite.findall(f"testcase/{name}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    suite.set("errors", "0")
    if corpus.problems:
        lines = [f"{side} {problem.path}: {problem.problem}" for side, problem in corpus.problems]
        ElementTree.SubElement(suite, "system-err").text = _plain("\n".join(lines))
    return suite_text(suite)


def suite_text(suite: ElementTree.Element) -> str:
    """The document of a test suite."""
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text = replace_commands(ElementTree.tostring(root, encoding="unicode"), "&#58;", "&#35;")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add_unmatched(suite: ElementTree.Element, corpus: Corpus, gates: Sequence[str]) -> None:
    matching = corpus.matching
    left_name, right_name, _ = corpus.sides
    for gate, side_name, side in (("gone", left_name, matching.left), ("new", right_name, matching.right)):
        for candidate in side:
            kind = "failure" if gate in gates or "any" in gates else "skipped"
            ElementTree.SubElement(_case(suite, candidate), kind, message=f"{gate}: only {side_name}")
    for group in matching.ambiguous:
        for candidate in group[0]:
            kind = "failure" if "gone" in gates or "any" in gates else "skipped"
            message = f"ambiguous: {corpus.sides.describe_ambiguity(*group)}"
            ElementTree.SubElement(_case(suite, candidate), kind, message=message)


def _case(suite: ElementTree.Element, candidate: Candidate) -> ElementTree.Element:
    artifact = candidate.artifact
    options = [f"{name}={value}" for name, value in candidate.options.items() if name in ("num_warps", "num_stages")]
    name = f"{artifact.display_name}[{','.join([*options, artifact.hash[:8]])}]"
    return ElementTree.SubElement(suite, "testcase", classname=_plain(candidate.target or "unknown"), name=_plain(name))


def _plain(text: str) -> str:
    """Text without the characters that XML cannot hold: controls, surrogates and two noncharacters."""
    return escape_unprintable(text)
