"""The memory errors of launches, as text, as remarks on source lines, and as JUnit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.memory_checks.coverage import describe_coverage, describe_work
from artifact_inspector.memory_checks.problems import SUMMARIES, Check, MemoryProblem, MemoryReport, SizeSearch
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.exchange.junit import suite_text
from artifact_inspector.report.phrases import plural
from artifact_inspector.report.remarks import FindSource, RemarkLocation, RemarkRule, SourceRemark

_ORDER = ("error", "undecided", "clean")
_MOST_UNDECIDED = 6


@dataclass(frozen=True, slots=True)
class MemoryCheckReport:
    """The memory errors of some launches: errors first, then what is undecided, then clean launches."""

    launches: Sequence[MemoryReport]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(summarize(self.launches), style="bold")
        for launch in sorted(self.launches, key=lambda launch: _ORDER.index(launch.status)):
            yield Text()
            grid = f"  grid {'×'.join(map(str, launch.grid))}" if all(launch.grid) else ""
            yield Text.assemble((f"{launch.status}: {launch.kernel}", "bold"), f"  {launch.target}{grid}")
            for line, indent in _lines(launch):
                yield Padding(Text(line), (0, 0, 0, indent))


def summarize(launches: Sequence[MemoryReport]) -> str:
    """The outcome of all launches in one sentence."""
    count = sum(len(launch.problems) for launch in launches)
    affected = sum(launch.status == "error" for launch in launches)
    undecided = sum(bool(launch.undecided) for launch in launches)
    total = f"{len(launches)} {'launch' if len(launches) == 1 else 'launches'}"
    errors = f"{count} {plural('memory error', count)} in {affected} of {total}"
    text = errors if count else f"No memory error in {total}"
    return f"{text}; {undecided} not fully decided." if undecided else f"{text}."


def describe_problem(problem: MemoryProblem) -> tuple[str, str]:
    """What and where an error is, and the details."""
    place = [str(problem.site)]
    place += [f"CTA {problem.cta}"] if problem.cta is not None else []
    place += [f"thread {problem.thread}"] if problem.thread is not None else []
    place += [f"{problem.lanes:,} {plural('lane', problem.lanes)}"] if problem.lanes is not None else []
    details = problem.message
    if problem.other_site is not None and problem.other_site != problem.site:
        details += f"; the other access: {problem.other_site}"
    return f"{problem.check.value}: {', '.join(place)}", details


def _lines(launch: MemoryReport) -> Iterator[tuple[str, int]]:
    for problem in launch.problems:
        heading, details = describe_problem(problem)
        yield heading, 2
        yield details, 4
        if problem.suggestion is not None:
            yield problem.suggestion, 4
    for sentence in launch.undecided[:_MOST_UNDECIDED]:
        yield f"undecided: {sentence}", 2
    if len(launch.undecided) > _MOST_UNDECIDED:
        yield f"undecided: {len(launch.undecided) - _MOST_UNDECIDED} more, see --json", 2
    partial = {problem.tensor for problem in launch.problems if problem.check is Check.COVERAGE}
    for row in launch.coverage:
        if row.tensor not in partial:
            yield describe_coverage(row), 2
    if launch.sizes is not None:
        yield from ((text, 2) for text in _describe_sizes(launch.sizes))
    if launch.work is not None:
        yield describe_work(launch.work), 2
    for values in launch.values:
        unknown = f", {values.unknown:,} unknown" if values.unknown else ""
        wrong = f"{values.wrong:,} wrong" if values.wrong else "none wrong"
        yield f"values of {values.tensor}: {values.compared:,} elements compared, {wrong}{unknown}", 2
    for note in launch.notes:
        yield note, 2
    if launch.patch is not None:
        yield f"patch that adds the missing masks:\n{launch.patch}", 2


def _describe_sizes(search: SizeSearch) -> Iterator[str]:
    if search.proof is not None:
        yield f"all sizes: proven: {search.proof}"
    if search.smallest_failing is not None:
        yield f"all sizes: the smallest of {search.launches} tried launches that fails has {search.smallest_failing}"
    elif search.proof is None:
        yield f"all sizes: none of {search.launches} tried launches leaves a tensor; not proven"
    if search.undecided is not None:
        yield f"all sizes: undecided: {search.undecided}"
    if search.assumptions:
        yield f"assumed: {'; '.join(search.assumptions)}"


def memory_rules() -> list[RemarkRule]:
    """The checks as rules, for SARIF."""
    return [RemarkRule(_code(check), check.value, text, text) for check, text in SUMMARIES.items()]


def memory_remarks(launches: Iterable[MemoryReport], find_source: FindSource) -> list[SourceRemark]:
    """Each error as a remark on its source line; what is undecided as a warning."""
    remarks = []
    for launch in launches:
        for x in launch.problems:
            heading, details = describe_problem(x)
            text = f"{heading}: {details}" + (f". {x.suggestion}" if x.suggestion else "")
            identity = f"{launch.kernel} {launch.target} {x.check.value} {x.tensor} {x.site.opcode}"
            location = _location(x.site.source, find_source)
            code, name = _code(x.check), x.check.value
            remark = SourceRemark(code, "error", name, text, launch.kernel, location, identity, launch.target)
            remarks.append(remark)
    return remarks


def _code(check: Check) -> str:
    return f"memory/{check.value.replace(' ', '-')}"


def _location(source: str | None, find_source: FindSource) -> RemarkLocation | None:
    if source is None:
        return None
    file, _, line = source.rpartition(":")
    path = find_source(file)
    return RemarkLocation(path or file, int(line), path is not None)


def memory_junit(launches: Sequence[MemoryReport]) -> str:
    """One test case for each launch: an error fails it, and what is undecided skips it."""
    statuses = [launch.status for launch in launches]
    suite = ElementTree.Element(
        "testsuite", name="inspect-kernel check-memory", tests=str(len(launches)), errors="0",
        failures=str(statuses.count("error")), skipped=str(statuses.count("undecided")),
    )  # fmt: skip
    for launch in launches:
        name = f"{launch.kernel}[{launch.hash[:8]},grid={'x'.join(map(str, launch.grid))}]"
        case = ElementTree.SubElement(
            suite, "testcase", classname=escape_unprintable(launch.target), name=escape_unprintable(name)
        )
        if launch.problems:
            headings = [": ".join(describe_problem(problem)) for problem in launch.problems]
            failure = ElementTree.SubElement(
                case, "failure", type=launch.problems[0].check.value, message=escape_unprintable(headings[0])
            )
            failure.text = escape_unprintable("\n".join(headings))
        elif launch.undecided:
            ElementTree.SubElement(case, "skipped", message=escape_unprintable("; ".join(launch.undecided)))
    return suite_text(suite)
