"""The house keeps its own rules: imports point down, and reading a cache needs and runs nothing it should not."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from artifact_inspector.formats import FORMATS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "artifact_inspector"
MODULES = sorted(PACKAGE.rglob("*.py"))
SETTINGS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

READERS = [
    module
    for module in MODULES
    if module.relative_to(PACKAGE).parts[0] in ("formats", "analysis", "facts")
    or (module.parent == PACKAGE / "files" and module.stem in ("artifact", "cache", "metadata", "reader", "walker"))
]


@cache
def layers() -> list[set[str]]:
    """The layers as the import contract in pyproject.toml has them, highest first."""
    listed, *_ = re.findall(r"^layers = \[\n(.*?)^\]", SETTINGS, re.M | re.S)
    return [{name.strip() for name in row.split("|")} for row in re.findall(r'"([^"]+)"', listed)]


GATHERING = {
    "ScheduleTrace", "_Barrier",  # an executed schedule writes them
    "LocatedRound", "LocatedStatement", "LoopPrefetch",  # filled in while rounds are located
    "RegionMeasurement", "StepCounters",  # a walk counts in them
    "OpenRegion",  # of formats/mlir: open until its last line is read
    "Block", "BlockRow",  # a drawing measures its boxes, then places them
    "_OpenFile",  # an editor types in it
    "_Search",  # it gathers its trials
    "StoredFacts",  # counts what it wrote
    "MachineState",  # a machine runs on it
    "Mbarrier",  # arrivals change it
}  # fmt: skip
"""Dataclasses that are filled in by the one pass that makes them; all others are values."""

ENUMERATED = {"what", "verdict", "kind", "basis", "backend", "severity", "purpose", "queue", "vendor"}
"""Fields whose values are members of enumerations."""


def is_text_literal(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class Seen(NamedTuple):
    """What a module is made of, as far as a rule asks for it."""

    text: str
    imports: frozenset[str]
    """Dotted names of everything it imports, inside functions and for type checking too."""
    functions: tuple[tuple[str, int], ...]
    """With their lines."""
    classes: tuple[tuple[str, frozenset[str]], ...]
    """With their fields."""
    copied: tuple[tuple[int, frozenset[str]], ...]
    """Dictionaries with keys that are named as the attribute that is their value: line, keys."""
    spelt: tuple[int, ...]
    """Lines that look into the text of an instruction."""
    worded: tuple[int, ...]
    """Lines that hold a verdict, kind, basis … against a text, not against a member of its enumeration."""
    unnamed: tuple[int, ...]
    """Lines of calls with more than eight arguments that only their place tells apart."""


@cache
def seen(module: Path) -> Seen:
    """A module, parsed once for all rules."""
    text = module.read_text(encoding="utf-8")
    tree = ast.parse(text)
    imports: set[str] = set()
    functions, classes, copied, unnamed, worded = [], [], [], [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
        elif isinstance(node, ast.ClassDef):
            fields = {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}  # type: ignore[union-attr]
            classes.append((node.name, frozenset(fields)))
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute):
            literals = [part for side in node.comparators for part in ast.walk(side) if is_text_literal(part)]
            worded += [node.lineno] if node.left.attr in ENUMERATED and literals else []
        elif isinstance(node, ast.Call) and len(node.args) > 8:
            unnamed.append(node.lineno)
        elif isinstance(node, ast.Dict):
            keys = {
                key.value
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(value, ast.Attribute) and value.attr == key.value
            }
            copied.append((node.lineno, frozenset(keys)))
    spelt = spells(tree) if module.is_relative_to(PACKAGE / "analysis") else []
    return Seen(
        text,
        frozenset(imports),
        tuple(functions),
        tuple(classes),
        tuple(copied),
        tuple(spelt),
        tuple(worded),
        tuple(unnamed),
    )


def imported(module: Path) -> frozenset[str]:
    return seen(module).imports


def layer_of(name: str) -> int:
    return next(place for place, names in enumerate(layers()) if name in names)


@pytest.mark.long
def test_imports_point_down() -> None:
    for module in MODULES:
        own = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imported(module) if own != "__init__" else ():
            parts = name.split(".")
            if parts[0] == "artifact_inspector" and parts[1] not in ("__version__", own):
                assert layer_of(own) < layer_of(parts[1]), f"{module} imports {name}"


def test_the_contract_names_every_module() -> None:
    found = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert set().union(*layers()) == found - {"__init__"}


def languages() -> list[str]:
    """The folders of `formats` that hold a language: what has a reader."""
    return sorted(reader.parent.name for reader in (PACKAGE / "formats").glob("*/parser.py"))


def test_a_format_imports_no_other_format() -> None:
    assert languages()
    for language in languages():
        for module in (PACKAGE / "formats" / language).glob("*.py"):
            for name in imported(module):
                room = name.removeprefix("artifact_inspector.formats.").split(".")[0]
                assert not name.startswith("artifact_inspector.formats.") or room.startswith("_") or room == language


def test_every_format_module_is_listed_and_under_the_contract() -> None:
    assert len(FORMATS) == len(languages())
    assert set(re.findall(r'"artifact_inspector\.formats\.(\w+)"', SETTINGS)) == set(languages())


def test_what_lies_in_a_cache_is_never_executed() -> None:
    for module in READERS:
        text = seen(module).text
        roots = {name.partition(".")[0] for name in imported(module)}
        assert roots.isdisjoint({"subprocess", "importlib", "pickle", "ctypes", "runpy", "marshal", "triton", "torch"})
        assert re.search(r"(?<![.\w])(?:eval|exec|__import__)\(", text) is None


def test_reading_a_cache_loads_neither_triton_nor_torch_nor_the_command_line() -> None:
    code = (
        "import sys, artifact_inspector.facts.inspection\n"
        "print(*sorted({'triton', 'torch', 'numpy', 'typer', 'rich', 'pygments'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert loaded.stdout.split() == []


def test_every_file_that_is_not_the_readers_own_is_opened_in_one_place() -> None:
    for module in MODULES:
        place = module.relative_to(PACKAGE).parts[0]
        if place in ("formats", "analysis", "facts", "report", "model", "hardware"):
            assert re.search(r"\bopen\(|\.read_text\(|\.read_bytes\(", seen(module).text) is None, module


def classes() -> dict[str, frozenset[str]]:
    """Dataclasses and named tuples of the package, by name → their fields."""
    return {
        f"{module.stem}.{name}": fields
        for module in MODULES
        for name, fields in seen(module).classes
        if len(fields) > 3
    }


def test_nothing_repeats_the_fields_of_a_dataclass() -> None:
    """A document encodes the dataclasses; a second list of their fields would have to be kept alike."""
    known = classes()
    for module in MODULES:
        text = seen(module).text
        assert "TypedDict" not in text, f"{module}: a document is a dataclass"
        for line, copied in seen(module).copied:
            repeated = [name for name, fields in known.items() if fields <= copied]
            assert not repeated, f"{module}:{line} repeats {repeated}; report/json/_encoding encodes it"


def test_numpy_is_for_running_on_paper_alone() -> None:
    users = {m.relative_to(PACKAGE).parts[0] for m in MODULES if any(n.startswith("numpy") for n in imported(m))}
    assert users == {"compiling", "execution", "memory_checks", "model"}


# -- one fact, one home ----------------------------------------------------------------


TEXT_OF_AN_INSTRUCTION = {"text", "opcode", "element"}
WORDS_OF_VIEWS = {"opcode", "op", "element", "types", "family", "issuer", "region", "id", "phrase", "layout"}
"""Of an instruction, a region or a verdict: a view prints them, and asks an enumeration or a fact instead."""
VIEWS = ("findings", "report", "comparison", "vocabulary", "pictures")
METHODS_OF_TEXT = {"startswith", "endswith", "find", "partition", "rpartition", "split", "removeprefix"}


def analyses() -> list[Path]:
    return [module for module in MODULES if module.is_relative_to(PACKAGE / "analysis")]


def looks_into(tree: ast.AST, words: Collection[str]) -> list[int]:
    """Lines that take a text of one of these names apart, or compare it with a literal."""

    def is_text(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr in words

    def is_literal(node: ast.AST) -> bool:
        if isinstance(node, ast.Tuple | ast.Set | ast.List):
            return any(is_literal(part) for part in node.elts)
        return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""

    lines = []
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if called and node.func.attr in METHODS_OF_TEXT and is_text(node.func.value):
            lines.append(node.lineno)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_text, sides)) and any(map(is_literal, sides)):
                lines.append(node.lineno)
    return lines


def spells(tree: ast.AST) -> list[int]:
    """Lines that look into the text of an instruction, compare a part of it with a literal, or match text."""
    return looks_into(tree, TEXT_OF_AN_INSTRUCTION) + [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "text")
        or (isinstance(node, ast.Import) and any(alias.name == "re" for alias in node.names))
    ]


@pytest.mark.parametrize("module", analyses(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_an_analysis_reads_no_text(module: Path) -> None:
    assert seen(module).spelt == ()


PATTERNS_OF_VIEWS = {
    "report/exchange/markdown.py": "letters that Markdown takes for marks",
    "report/json/schema.py": "docstrings, for descriptions; keys of facts, for patterns",
    "report/passes.py": "places in the text of a pass that is shown",
    "report/ci_escaping.py": "what a terminal or a CI system would obey",
    "vocabulary/value_reading.py": "words that facts are made of, for a comparison of their figures",
    "vocabulary/variant_labels.py": "types of a signature and numbers of tiles, for a label",
}
"""Views that match text, and what it is of; `report/lexers` colours the languages and spells them."""


def views() -> list[Path]:
    rooms = [PACKAGE / room for room in VIEWS]
    return [m for m in MODULES if any(m.is_relative_to(room) for room in rooms) and "lexers" not in m.parts]


@pytest.mark.parametrize("module", views(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_view_takes_no_text_apart(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert looks_into(ast.parse(text), WORDS_OF_VIEWS) == []
    assert ("re" in imported(module)) == (str(module.relative_to(PACKAGE)) in PATTERNS_OF_VIEWS)


@pytest.mark.parametrize("line", ["found.op in ('wgmma',)", "line.opcode.startswith('LDGSTS')"])
def test_text_in_a_view_would_be_seen(line: str) -> None:
    assert looks_into(ast.parse(line), WORDS_OF_VIEWS) == [1]


@pytest.mark.parametrize(
    "line",
    [
        "import re",
        "instruction.text",
        "instruction.opcode.startswith(PREFIX)",
        "instruction.opcode == 'tt.load'",
        "memory.element in ('f16', 'bf16')",
    ],
)
def test_text_in_an_analysis_would_be_seen(line: str) -> None:
    assert spells(ast.parse(line)) == [1] * len(spells(ast.parse(line))) != []


def test_no_two_modules_import_each_other() -> None:
    names = {".".join(m.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for m in MODULES}
    edges = {}
    for module in MODULES:
        own = ".".join(module.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        found = {name.removeprefix("artifact_inspector.") for name in imported(module)}
        found = {name if name in names else name.rpartition(".")[0] for name in found}
        edges[own] = (found & names) - {own, ""}
    reach = {name: closure(name, edges) for name in edges}
    assert [name for name, after in reach.items() if name in after] == []


def closure(start: str, edges: dict[str, set[str]]) -> set[str]:
    """Everything that can be reached from a module."""
    found: set[str] = set()
    pending = set(edges.get(start, ()))
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending |= edges.get(name, set())
    return found


def test_a_module_fits_in_a_head_and_a_function_on_a_page() -> None:
    lengths = {str(module.relative_to(PACKAGE)): seen(module).text.count("\n") for module in MODULES}
    assert {name for name, lines in lengths.items() if lines > 525} == set()
    # a command of the command line is as long as its options
    functions = [
        (module, name)
        for module in MODULES
        for name, lines in seen(module).functions
        if lines > (135 if module.parent.name == "cli" else 90)
    ]
    assert functions == []


def test_the_package_keeps_its_line_budget() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (budget,) = re.findall(r"Package budget: ([\d,]+) lines", page)
    shares = {
        name: int(lines.replace(",", "")) for name, lines in re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", page, re.M)
    }
    lines: Counter[str] = Counter()
    for module in MODULES:
        lines[module.relative_to(PACKAGE).parts[0]] += seen(module).text.count("\n")
    assert sum(lines.values()) <= int(budget.replace(",", ""))
    packages = {name: count for name, count in lines.items() if "." not in name}
    assert packages.keys() == shares.keys()
    assert {name: count for name, count in packages.items() if count > shares[name]} == {}


STARTED = ("cli", "serving", "facts", "files", "formats", "report")
"""Packages whose imports a start pays for; tests/unit/test_function_graph.py and tests/bench measure them."""


def test_an_import_inside_a_function_has_its_reason_beside_it() -> None:
    unexplained = []
    for module in MODULES:
        if module.parent == PACKAGE or module.relative_to(PACKAGE).parts[0] in STARTED:
            continue
        lines = seen(module).text.splitlines()
        for number, line in enumerate(lines, 1):
            is_import = re.match(r" +(from artifact_inspector\S* import|import artifact_inspector)", line)
            above = [text for text in lines[max(0, number - 3) : number] if "#" in text or "TYPE_CHECKING" in text]
            if is_import and not above and not is_for_type_checking(lines, number):
                unexplained.append(f"{module.relative_to(PACKAGE)}:{number}")
    assert unexplained == []


def is_for_type_checking(lines: list[str], number: int) -> bool:
    outer = next((text for text in reversed(lines[: number - 1]) if text.strip() and not text.startswith(" ")), "")
    return outer.startswith("if TYPE_CHECKING")


def test_a_dataclass_is_a_value_or_one_pass_fills_it_in() -> None:
    open_ = {
        name
        for module in MODULES
        for name in re.findall(r"^@dataclass(?!.*frozen=True).*\nclass (\w+)", seen(module).text, re.M)
    }
    assert open_ == GATHERING


def test_code_compares_members_of_enumerations_and_no_words() -> None:
    worded = [
        f"{module.relative_to(PACKAGE)}:{line}"
        for module in MODULES
        # targets of compiling are those of Triton, too; kinds of a step on paper are words of their own
        if module.relative_to(PACKAGE).parts[0] not in ("compiling", "execution", "diagnosis", "memory_checks")
        for line in seen(module).worded
    ]
    assert worded == []


def test_a_module_lists_its_names_only_where_it_hands_on_those_of_others() -> None:
    """What is public has no underscore: a list of it would say so twice."""
    for module in MODULES:
        listed = re.search(r"^__all__ = \[(.*?)\]", seen(module).text, re.M | re.S)
        if listed is not None and module.name != "__init__.py":
            names = set(re.findall(r'"(\w+)"', listed[1]))
            handed_on = {name.rpartition(".")[2] for name in imported(module)}
            handed_on |= set(re.findall(r"import \w+ as (\w+)", seen(module).text))
            assert names & handed_on, module


def test_who_gives_many_values_names_them() -> None:
    unnamed = [f"{module.relative_to(PACKAGE)}:{line}" for module in MODULES for line in seen(module).unnamed]
    assert unnamed == []


def test_each_analysis_and_comparison_has_tests_of_its_own() -> None:
    files = {path.name for path in (ROOT / "tests" / "unit").glob("test_*.py")}
    modules = [module.relative_to(PACKAGE).with_suffix("").parts for module in MODULES]
    lacking = {
        "/".join(parts)
        for parts in modules
        if parts[0] in ("analysis", "comparison") and parts[-1] != "__init__"
        if files.isdisjoint({f"test_{parts[-1]}.py", f"test_{parts[-2]}_{parts[-1]}.py"})
    }
    assert lacking == set()
