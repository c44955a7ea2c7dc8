"""Tests of the documentation: commands print what the pages show, links resolve, words keep to the style.

`pytest tests/test_docs.py --update-docs` runs every command shown in a `console` block again and rewrites the block,
and rewrites the generated pages. A line `…` in a block stands for lines that the page leaves out; an update
keeps it.
"""

from __future__ import annotations

import ast
import difflib
import doctest
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main
from saved import ROOT, saved
from typer.core import TyperGroup
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.findings import RULES
from artifact_inspector.formats import FORMATS
from artifact_inspector.model import Stage
from artifact_inspector.model.limits import LIMITS

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "node_modules" not in page.parts),
]
COLUMNS = "100"

SHOWN = re.compile(
    r"(?P<head>(?:<!-- exits (?P<code>\d) -->\n)?```console\n\$ (?P<command>[^\n]+)\n)(?P<output>.*?)```", re.S
)
EXAMPLE = re.compile(r"^\| `([^`]+)` \| `([\d.]+/\w+/\w+)` \| `([^`]+)` \| (\w+) \| (?:`([^`]+)`|–) \|$", re.M)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def commands(page: Path) -> list[str]:
    """Lines of the `sh` blocks that are not set-up commands."""
    blocks = re.findall(r"(<!--[^>]*-->\n)?```sh\n(.*?)```", text_of(page), re.S)
    return [line for mark, block in blocks if not mark for line in block.splitlines()]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recalled: None) -> Path:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PROCESS_COMMANDS = ("bench", "capture")
"""Commands that would load torch into the process of the tests."""


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def run(command: str, directory: Path) -> CommandResult:
    program, *arguments = shlex.split(command, comments=True)
    if program == "grep":  # the judge that everybody has
        files = [str(path.relative_to(directory)) for path in sorted(directory.glob(arguments[-1]))]
        return run_process([program, *arguments[:-1], *files], directory, {**os.environ})
    assert program == "inspect-kernel"
    settings = {
        **os.environ,
        "COLUMNS": COLUMNS,
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": str(ROOT),
        "TRITON_CACHE_DIR": "fixtures/3.6.0/sm_80",
    }
    if not arguments or arguments[0] not in PROCESS_COMMANDS:
        result = CliRunner().invoke(cli.app, arguments, prog_name=program, env=settings)
        return CommandResult(result.exit_code, result.stdout, result.stderr)
    return run_process([sys.executable, "-m", "artifact_inspector", *arguments], directory, settings)


def run_process(command: list[str], directory: Path, settings: dict[str, str]) -> CommandResult:
    """What a program of its own says."""
    process = subprocess.run(command, cwd=directory, env=settings, capture_output=True, encoding="utf-8", check=False)
    return CommandResult(process.returncode, process.stdout, process.stderr)


ELISION = "…"
"""A line of a shown output that stands for lines which the page leaves out."""


def elide(page_output: str, printed: str) -> str:
    """The printed output, without the lines that the page leaves out.

    Each run of lines between two elisions is found again by its first and its last line, or the lines
    most like them. A run at the beginning or the end of the output stays there.
    """
    runs: list[list[str]] = [[]]
    for line in page_output.splitlines():
        if line.strip() == ELISION:
            runs.append([])
        else:
            runs[-1].append(line)
    if len(runs) == 1:
        return printed
    lines = printed.splitlines()
    chunks: list[list[str]] = []
    start = 0
    for index, run in enumerate(runs):
        if not run:
            chunks.append([])
            continue
        first = 0 if index == 0 else start + closest(run, lines[start:])
        end = len(lines) if index == len(runs) - 1 else last_line(run, lines, first) + 1
        chunks.append(lines[first:end])
        start = end
    return f"\n{ELISION}\n".join("\n".join(chunk) for chunk in chunks).strip("\n") + "\n"


def closest(run: list[str], lines: list[str]) -> int:
    """The index of the run's first line, or of the line in its place."""
    for offset, line in enumerate(run[:3]):  # the lines after it may be unchanged
        if line.strip() and line in lines[offset:]:
            return lines.index(line, offset) - offset
    ratios = [difflib.SequenceMatcher(None, run[0], other, autojunk=False).ratio() for other in lines]
    assert max(ratios, default=0) >= 0.4, f"no printed line resembles {run[0]!r}; edit the block by hand"
    return ratios.index(max(ratios))


def last_line(run: list[str], lines: list[str], first: int) -> int:
    """The index of the run's last line, or of the line in its place."""
    if run[-1] in lines[first:]:
        return lines.index(run[-1], first)
    window = lines[first : first + 2 * len(run) + 2]
    ratios = [difflib.SequenceMatcher(None, run[-1], other, autojunk=False).ratio() for other in window]
    likely = max(ratios, default=0) >= 0.5
    last = first + (ratios.index(max(ratios)) if likely else min(len(run), len(window)) - 1)
    # a sentence that is wrapped now goes on
    while last + 1 < len(lines) and is_wrapped(lines[last], lines[last + 1]):
        last += 1
    return last


def is_wrapped(line: str, following: str) -> bool:
    return following.strip() != "" and len(line) + 1 + len(following.split()[0]) > int(COLUMNS)


@pytest.mark.parametrize(
    ("page_output", "expected"),
    [
        ("a\nb\n", "one line\nline two\nthird\nlast 4\n"),
        ("one line\n…\n", "one line\n…\n"),
        ("…\nlast 3\n", "…\nlast 4\n"),
        ("one lines\n…\nthird line\n…\n", "one line\n…\nthird\n…\n"),
        ("one line\n…\nthird\nlast\n", "one line\n…\nthird\nlast 4\n"),
    ],
)
def test_an_update_keeps_what_a_page_leaves_out(page_output: str, expected: str) -> None:
    assert elide(page_output, "one line\nline two\nthird\nlast 4\n") == expected


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_console_blocks_are_current(page: Path, scratch: Path, request: pytest.FixtureRequest) -> None:
    def refresh(block: re.Match[str]) -> str:
        answer = run(block["command"], scratch)
        # two kernels that differ are no failure
        may_differ = re.search(r" (diff|check) ", block["command"]) is not None
        expected = (int(block["code"]),) if block["code"] else (0, 1) if may_differ else (0,)
        assert answer.returncode in expected, answer.stderr
        return f"{block['head']}{elide(block['output'], answer.stdout)}```"

    text = text_of(page)
    current = SHOWN.sub(refresh, text)
    if request.config.getoption("--update-docs", default=False):
        page.write_text(current, encoding="utf-8")
    else:
        assert current == text, "run pytest tests/test_docs.py --update-docs"


def is_short(command: str, page: Path) -> bool:
    """True for what ends at once, and for all that the README shows: other tests compile and export more."""
    compiles = re.search(r" (compile|capture|try|--try|export|--on) |AI007 --brief", command)
    return page.name == "README.md" or compiles is None


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[] if is_short(command, page) else [pytest.mark.exhaustive])
        for command, page in {command: page for page in reversed(PAGES) for command in commands(page)}.items()
    ],
)
def test_every_command_runs(command: str, scratch: Path) -> None:
    if re.search(r" (compile|capture|try|--try) ", command):
        pytest.importorskip("triton")
    if "torch" in command:
        pytest.importorskip("torch")
    answer = run(command, scratch)
    if " bench " in command and "no GPU here" in answer.stderr:
        pytest.skip("There is no GPU here.")
    may_differ = re.search(r" (diff|try) ", command) is not None
    assert answer.returncode in ((0, 1) if may_differ else (0,)), answer.stderr
    assert answer.stdout or answer.stderr.endswith(" MB\n")  # a page was written


RECIPES = [
    line
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", text_of(page), re.S)
    for line in re.findall(r"(?:run|entry): (inspect-kernel .*)", block)
]


def test_there_are_recipes_for_ci() -> None:
    assert len(RECIPES) >= 4


@pytest.mark.parametrize("recipe", [*RECIPES, "inspect-kernel check cache --baseline kernels/facts.json"])
def test_options_of_a_recipe_exist(recipe: str) -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    _, name, *arguments = shlex.split(recipe.partition(" -- ")[0])
    options = {spelt for parameter in group.commands[name].params for spelt in parameter.opts}
    assert {word for word in arguments if word.startswith("-")} <= options


def test_the_pre_commit_hook_runs_check() -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^  entry: (.*)$", hooks, re.M) == ["inspect-kernel check"]


def test_the_readme_has_output_and_commands() -> None:
    assert len(SHOWN.findall(text_of(ROOT / "README.md"))) >= 3
    assert len(commands(ROOT / "README.md")) >= 5


@pytest.mark.parametrize("name", ["demo", "test"])
def test_the_readme_opens_with_commands_that_do_their_own_set_up(name: str) -> None:
    block = re.search(
        rf"<!-- {name} command -->\n```sh\n([^\n]+)\n```", text_of(ROOT / "README.md").partition("\n## ")[0]
    )
    assert block is not None
    steps = block[1].split(" && ")
    assert steps[0] == "python3 -m venv .venv"
    assert all(step.startswith(".venv/bin/") for step in steps[1:])
    assert steps[1].startswith(".venv/bin/pip install")


@pytest.mark.long
def test_python_on_the_pages_runs(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(scratch)
    blocks = [block for page in PAGES for block in re.findall(r"```python\n(.*?)```", text_of(page), re.S)]
    assert blocks
    for block in blocks:
        if "import torch" in block and (find_spec("torch") is None or find_spec("triton") is None):
            continue
        exec(compile(block, "page", "exec"), {})
    assert "clustered" in capsys.readouterr().out


@pytest.mark.parametrize("page", [page for page in PAGES if "```pycon" in text_of(page)], ids=lambda page: page.name)
def test_sessions_in_python_print_what_the_page_shows(
    page: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scratch)
    sessions = "".join(re.findall(r"```pycon\n(.*?)```", text_of(page), re.S))
    examples = doctest.DocTestParser().get_doctest(sessions, {}, page.name, str(page), 0)
    failures: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(examples, out=failures.append).failed == 0, "".join(failures)


@pytest.mark.parametrize(
    "example", EXAMPLE.findall(text_of(ROOT / "docs" / "verdicts.md")), ids=lambda example: example[0]
)
def test_an_example_of_a_verdict_is_real(example: tuple[str, ...]) -> None:
    phrase, path, region, stage, events = example
    facts = saved(path).facts.stages[Stage(stage)].region(region)
    assert facts is not None
    assert (facts.phrase, facts.named_signature) == (phrase, events)


def test_every_verdict_has_its_definition_and_its_example() -> None:
    page = text_of(ROOT / "docs" / "verdicts.md")
    defined = set(re.findall(r"^\| `([\w -]+)(?:\([^`]*\))?` \| [a-z]", page, re.M))
    with_example = {re.match(r"[a-z -]+[a-z]", example[0])[0] for example in EXAMPLE.findall(page)}  # type: ignore[index]
    # no saved kernel is one of these; tests of the order and of schedules have handwritten ones
    assert with_example | {"mixed", "gone", "unknown", "staggered", "overlapped"} == defined


def test_the_mixed_example_is_mixed_as_the_page_says(tmp_path: Path) -> None:
    page = text_of(ROOT / "docs" / "verdicts.md")
    (block,) = re.findall(r"```mlir\n(.*?)```", page, re.S)
    (tmp_path / "k.ttir").write_text(block)
    (kernel,) = inspect_cache(open_cache(tmp_path))
    assert kernel.principal_region is not None
    assert f"this is `{kernel.principal_region.phrase}`" in page
    assert kernel.verdict == "mixed"


def test_the_page_on_formats_is_current(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "formats.md"
    head, mark, _ = text_of(page).partition("<!-- formats -->\n")
    sections = [head + mark]
    for language in FORMATS:
        stages = ", ".join(stage.value for stage in language.stages)
        sections.append(
            f"\n## {language.name} ({stages})\n\n" + "".join(f"- {line}\n" for line in language.cannot_read)
        )
    current = "".join(sections)
    if request.config.getoption("--update-docs", default=False):
        page.write_text(current, encoding="utf-8")
    else:
        assert text_of(page) == current, "run pytest tests/test_docs.py --update-docs"


def test_the_page_on_findings_is_current(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "findings.md"
    head, mark, _ = text_of(page).partition("<!-- findings -->\n")
    rules = [f"\n## {r.code} {r.name} ({r.severity.value})\n\n{r.explanation}\n" for r in RULES]
    current = "".join([head + mark, *rules])
    if request.config.getoption("--update-docs", default=False):
        page.write_text(current, encoding="utf-8")
    else:
        assert text_of(page) == current, "run pytest tests/test_docs.py --update-docs"


def test_the_bounds_on_the_page_are_current(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "untrusted-caches.md"
    head, _, tail = text_of(page).partition("<!-- bounds -->\n")
    table = "| variable | bound | unit |\n|---|---|---|\n"
    table += "".join(f"| `{limit.variable}` | {limit.default:,} | {limit.subject} |\n" for limit in LIMITS)
    end = "<!-- end of bounds -->\n"
    current = f"{head}<!-- bounds -->\n{table}{end}{tail.partition(end)[2]}"
    if request.config.getoption("--update-docs", default=False):
        page.write_text(current, encoding="utf-8")
    else:
        assert text_of(page) == current, "run pytest tests/test_docs.py --update-docs"


def prose_of(page: Path) -> str:
    """The text of a page without code blocks, indented code, code spans and comments."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", text_of(page), flags=re.S | re.M)
    text = re.sub(r"(?<=\n\n)(?: {4}[^\n]*\n)+", "", text)
    return re.sub(r"`[^`\n]*`", "", text)


GENERATED = {"cli.md", "findings.md", "formats.md", "json.md", "json-v1-v2.md"}
"""Pages that are mostly generated: their texts are written in the package."""


def test_the_documentation_keeps_its_word_budgets() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "lab"]
    word_counts = {page.name: len(text_of(page).split()) for page in pages if page.name not in GENERATED}
    assert sum(word_counts.values()) <= 45_000
    assert len(text_of(ROOT / "README.md").split()) <= 1_500


DIALECT = {
    r"covered": "overlap",
    r"forms|form (?:of|for) (?:a|the|each|every) kernel": "variant",
    r"at hand": "available",
    r"told|tells|said": "reported, printed; distinguished",
    r"held (?:against|to)": "compared with, validated",
    r"ask(?:s|ed)? (?:for|of)": "requests, requested from",
    r"stands?|standing|in front of": "is before, after, at",
    r"shut": "fails",
    r"on paper": "simulated",
    r"alone": "only",
    r"twins?": "identical binaries",
    r"contest(?:ant)?s?": "ranking problem, candidate",
    r"principal region": "main loop",
    r"shifted": "affine value",
    r"rehears\w+|guess\w*": "speculative run, hypothesis",
    r"lent": "hoisted into the enclosing loop",
    r"parting": "first divergence",
    r"recall(?:ed)?|commons": "lazy facts, cache",
    r"strangers?(?:'s)?": "pointers of unknown origin; untrusted",
    r"house|rooms?": "package",
    r"bears?|whence|nobody": "plain sentences",
}
"""Words that no reader knows → what to write. The glossary of the project's style names them."""
STANDARD_USES = (
    "stands for",  # an architecture stands for a product
    "stands out",  # a problem does, or nothing does
    "stand in for",
    "room for",
)


def dialect_in(text: str) -> list[str]:
    """The words of a text that are to be replaced, each with its line."""
    for phrase in STANDARD_USES:
        text = text.replace(phrase, "")
    pattern = re.compile(rf"\b(?:{'|'.join(DIALECT)})\b", re.I)
    return [f"{match[0]}: {line.strip()}" for line in text.splitlines() for match in pattern.finditer(line)]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_uses_plain_words(page: Path) -> None:
    text = BLOCK.sub(lambda block: block[2] if block[1] in ("console", "text") else "", text_of(page))
    assert dialect_in(re.sub(r"^\$ .*$|`[^`\n]*`|<!--[^>]*-->|\]\([^)]*\)", "", text, flags=re.M)) == []


def command_names() -> list[str]:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    return sorted(group.commands)


@pytest.mark.parametrize("name", ["", *command_names()])
def test_help_uses_plain_words(name: str) -> None:
    answer = CliRunner().invoke(cli.app, [*name.split(), "--help"], env={"COLUMNS": "400", "NO_COLOR": "1"})
    assert answer.exit_code == 0
    assert dialect_in(answer.stdout) == []


STANDARD_USES_IN_CODE = (
    "stand-in",
    "stand for",
    "stands out",
    "one of three forms",
    "printed forms",  # of MLIR
    "pretty forms",
    "intervals shifted",  # by an offset
    "pair shifted",  # by bits
    "left-shifted",
)


def sentences_of(path: Path) -> list[str]:
    """Docstrings and string constants with more than one word, without code spans."""
    constants = (node.value for node in ast.walk(ast.parse(text_of(path))) if isinstance(node, ast.Constant))
    return [re.sub(r"`[^`\n]*`", "", text) for text in constants if isinstance(text, str) and " " in text.strip()]


@pytest.mark.long
def test_output_and_docstrings_use_plain_words() -> None:
    modules = sorted((ROOT / "artifact_inspector").rglob("*.py"))
    texts = [(path, sentence) for path in modules for sentence in sentences_of(path)]
    wrong = []
    for path, sentence in texts:
        for phrase in STANDARD_USES_IN_CODE:
            sentence = sentence.replace(phrase, "")
        wrong += [f"{path.relative_to(ROOT)}: {use}" for use in dialect_in(sentence)]
    assert wrong == []


def mentioned_commands(page: Path) -> list[str]:
    """Each command line of ours that a page shows: in a block, in indented code or in a code span."""
    text = re.sub(r" \\\n\s+", " ", text_of(page))
    lines = re.findall(r"(?:^|run: |entry: )(?:\$ )?\s*(inspect-kernel [^\n]*)", text, re.M)
    return [*lines, *re.findall(r"`(inspect-kernel [^`\n]+)`", text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_options_on_the_pages_exist(page: Path) -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    general = {spelling for parameter in group.params for spelling in parameter.opts} | {"--help"}
    unknown = []
    for line in mentioned_commands(page):
        arguments = re.split(r"\s+--(?:\s|$)|\s+#\s|[`)]", line)[0].split()[1:]
        command = group.commands.get(arguments[0]) if arguments and not arguments[0].startswith("-") else None
        parameters = (command or group.commands["inspect"]).params
        spellings = general | {spelling for parameter in parameters for spelling in parameter.opts}
        options = [argument.partition("=")[0] for argument in arguments if re.match(r"--?[a-z]", argument)]
        unknown += [f"{option} in {line}" for option in options if option not in spellings]
    assert unknown == []


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", prose_of(page))
    targets = [((page.parent / path) if path else page, anchor) for path, anchor in links]
    assert [target for target, _ in targets if not target.exists()] == []
    assert [(target, anchor) for target, anchor in targets if anchor and anchor not in anchors_of(target)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_in_the_text_exist(page: Path) -> None:
    paths = re.findall(r"`((?:artifact_inspector|tests|docs|kernels|fixtures)/[\w./-]+)`", text_of(page))
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def test_every_decision_has_context_choice_cost_and_undo() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        assert re.findall(r"^\*\*(\w+)\.\*\*", text_of(record), re.M) == ["Context", "Choice", "Cost", "Undo"]


def test_the_page_on_the_command_line_is_current(request: pytest.FixtureRequest) -> None:
    page = ROOT / "docs" / "cli.md"
    head, mark, _ = text_of(page).partition("<!-- commands -->\n")
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    others = sorted((name, command) for name, command in group.commands.items() if name != "inspect")
    sections = [_command_section("inspect-kernel", group.commands["inspect"])]
    sections += [_command_section(f"inspect-kernel {name}", command) for name, command in others]
    current = "".join([head + mark, *sections])
    if request.config.getoption("--update-docs", default=False):
        page.write_text(current, encoding="utf-8")
    else:
        assert text_of(page) == current, "run pytest tests/test_docs.py --update-docs"


def _command_section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    names = [(p.metavar or p.name.upper()).strip("[]") for p in arguments]
    usage = " ".join(name if p.required else f"[{name}]" for p, name in zip(arguments, names, strict=True))
    lines = [f"\n## {name}\n", f"    {name} [OPTIONS] {usage}".rstrip() + "\n", f"{command.help}\n"]
    lines += ["| | |", "|---|---|"]
    for p in command.params:
        metavar = (p.metavar or "").strip("[]")
        spelt = metavar if p in arguments else f"{', '.join(p.opts)} {metavar}".strip()
        if p.name != "help":
            default = f" Default: `{p.default}`." if p.default not in (None, False, ()) else ""
            lines.append(f"| `{spelt}` | {p.help or ''}{default} |".replace("\n", " "))
    return "\n".join(lines) + "\n"


def test_the_chinese_readme_has_the_blocks_of_the_english_one(request: pytest.FixtureRequest) -> None:
    page = ROOT / "README.zh-CN.md"
    english, chinese = BLOCK.findall(text_of(ROOT / "README.md")), BLOCK.findall(text_of(page))
    assert [kind for kind, _ in chinese] == [kind for kind, _ in english]
    if request.config.getoption("--update-docs", default=False):
        # comments of commands are translated by a person, all else is the same
        bodies = iter(
            chinese_body if kind == "sh" else english_body
            for (kind, english_body), (_, chinese_body) in zip(english, chinese, strict=True)
        )
        page.write_text(BLOCK.sub(lambda block: f"```{block[1]}\n{next(bodies)}```", text_of(page)), encoding="utf-8")
        chinese = BLOCK.findall(text_of(page))
    assert [_commands_without_comments(*block) for block in chinese] == [
        _commands_without_comments(*block) for block in english
    ]


def _commands_without_comments(kind: str, block: str) -> list[str]:
    return [line.partition("  # ")[0].rstrip() if kind == "sh" else line for line in block.splitlines()]


def test_the_two_readmes_have_the_same_links() -> None:
    english, chinese = text_of(ROOT / "README.md"), text_of(ROOT / "README.zh-CN.md")
    assert "](README.zh-CN.md)" in english
    assert "](README.md)" in chinese
    links = [[link for link in LINK.findall(text) if not link.startswith("README")] for text in (english, chinese)]
    assert links[0] == links[1]
    assert [link for link in LINK.findall(chinese) if not (ROOT / link).exists()] == []
    headings = [re.findall(r"^(#+) ", BLOCK.sub("", text), re.M) for text in (english, chinese)]
    assert headings[0] == headings[1]
    rows = [
        [re.findall(r"`([^`]+)`", row) for row in re.findall(r"^\|(.*?)\|", text, re.M)] for text in (english, chinese)
    ]
    assert rows[0] == rows[1]
