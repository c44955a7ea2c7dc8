"""The command: what it answers, where it writes, and its exit code."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer.main
from saved import FIXTURES
from typer.core import TyperGroup
from typer.testing import CliRunner, Result

from artifact_inspector import __version__, cli
from artifact_inspector.cli._commands import COMMAND_GROUPS
from artifact_inspector.compiling import CompileResult
from artifact_inspector.hardware.targets import parse_target

pytestmark = pytest.mark.usefixtures("recalled")

# Two rounds of load and compute in straight-line code, as Triton prints them.
TTIR = """\
#loc = loc("/src/twice.py":3:0)
#loc1 = loc("/src/twice.py":5:16)
#loc2 = loc("/src/twice.py":6:16)
#loc3 = loc("/src/twice.py":7:16)
#loc4 = loc("/src/twice.py":8:16)
#loc5 = loc("/src/twice.py":9:4)
#loc9 = loc("x"(#loc1))
module {
  tt.func public @twice(%p: tensor<64x!tt.ptr<f32>> loc("/src/twice.py":3:0), %q: tensor<64x!tt.ptr<f32>> loc("/src/twice.py":3:0)) attributes {noinline = false} {
    %x = tt.load %p : tensor<64x!tt.ptr<f32>> loc(#loc9)
    %0 = math.exp %x : tensor<64xf32> loc(#loc2)
    tt.store %q, %0 : tensor<64x!tt.ptr<f32>> loc(#loc5)
    %1 = tt.load %q : tensor<64x!tt.ptr<f32>> loc(#loc3)
    %2 = math.exp %1 : tensor<64xf32> loc(#loc4)
    tt.store %q, %2 : tensor<64x!tt.ptr<f32>> loc(#loc5)
    tt.return loc(#loc5)
  } loc(#loc)
} loc(#loc)
"""


def metadata(name: str, digest: str, arch: int = 80) -> str:
    return json.dumps(
        {
            "hash": digest,
            "target": {"backend": "cuda", "arch": arch, "warp_size": 32},
            "num_warps": 4,
            "num_stages": 3,
            "triton_version": "3.6.0",
            "shared": 0,
            "name": name,
        }
    )


def add_kernel(cache: Path, name: str = "twice", digest: str = "ab" * 32, arch: int = 80) -> Path:
    entry = cache / digest[:52].upper()
    entry.mkdir(parents=True)
    (entry / f"{name}.json").write_text(metadata(name, digest, arch))
    (entry / f"{name}.ttir").write_text(TTIR.replace("@twice", f"@{name}"))
    return entry


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.delenv("TRITON_HOME", raising=False)
    add_kernel(tmp_path / "cache")
    return tmp_path / "cache"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def spawn(*arguments: object, **keywords: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "artifact_inspector", *map(str, arguments)]
    return subprocess.Popen(command, text=True, encoding="utf-8", stdout=-1, stderr=-1, **keywords)  # type: ignore[call-overload]


def test_a_cache_is_one_row_per_kernel(cache: Path) -> None:
    add_kernel(cache, "thrice", "cd" * 32, 90)
    result = run(cache)
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines() if " sm_" in line]
    assert rows == [
        ["thrice", "sm_90", "3.6.0", "4", "3", "0", "0", "–", "interleaved"],
        ["twice", "sm_80", "3.6.0", "4", "3", "0", "0", "–", "interleaved"],
    ]


def test_kernels_of_one_name_are_told_apart_by_hash(cache: Path) -> None:
    add_kernel(cache, "twice", "abab" + "0" * 60)
    rows = [line for line in run(cache, "--limit", "0").output.splitlines() if line.startswith("twice")]
    assert [row.split()[1] for row in rows] == ["abab00", "ababab"]


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--timeline", "--timeline draws one kernel; 2 match."),
        ("--graph=dot", "--graph prints one kernel; 2 match."),
        ("--svg=timeline", "--svg draws one kernel; 2 match."),
    ],
)
def test_a_view_of_one_kernel_lists_several_matches(cache: Path, option: str, sentence: str) -> None:
    add_kernel(cache, digest="cd" * 32)
    result = run(cache, "twice", option)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "twice abababab sm_80, twice cdcdcdcd sm_80." in " ".join(result.stderr.split())


def test_views_do_not_combine(cache: Path) -> None:
    result = run(cache, "twice", "--ir", "--timeline")
    assert result.exit_code == 2
    assert "--ir and --timeline do not combine." in result.stderr


@pytest.mark.parametrize(
    ("word", "spelling"),
    [
        ("bandwidth", "inspect-kernel predict --product MxK@KxN"),
        ("graph", "inspect-kernel CACHE NAME --graph graphml"),
        ("index", "inspect-kernel --index-info, or inspect-kernel --clear-index"),
        ("list", "inspect-kernel CACHE"),
        ("pressure", "inspect-kernel CACHE NAME --registers"),
        ("schema", "inspect-kernel --json-schema DOCUMENT"),
        ("story", "inspect-kernel CACHE NAME"),
        ("skill", "inspect-kernel mcp --skill"),
        ("timeline", "inspect-kernel CACHE NAME --timeline"),
        ("why", "inspect-kernel diff CACHE:A CACHE:B --why, or inspect-kernel matrix CACHE NAME --why"),
    ],
)
@pytest.mark.parametrize("arguments", [(), ("cache", "twice", "--json"), ("--help",)])
def test_a_former_or_guessed_command_names_what_to_call(word: str, spelling: str, arguments: tuple[str, ...]) -> None:
    result = run(word, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"inspect-kernel: There is no command and no directory {word}.\nUse {spelling}.\n"


def test_a_directory_named_like_a_former_command_is_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_kernel(tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    assert "interleaved" in run("graph").stdout


@pytest.mark.parametrize(("old", "new"), [(["--out", "{file}"], "--output"), (["--out={file}"], "--output")])
def test_a_former_option_works_and_names_the_new_one(cache: Path, tmp_path: Path, old: list[str], new: str) -> None:
    file = tmp_path / "baseline.json"
    result = run("baseline", cache, *(word.format(file=file) for word in old))
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[0] + "\n" == f"inspect-kernel: --out of `baseline` is now {new}.\n"
    assert json.loads(file.read_text())["document"] == "baseline"


@pytest.mark.usefixtures("compiler")
def test_options_after_a_captured_program_belong_to_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def capture_program(command: list[str], *_: object, **__: object) -> list[object]:
        commands.append(command)
        return []

    monkeypatch.setattr("artifact_inspector.compiling.capture_program", capture_program)
    result = run("capture", "--out", tmp_path, "--", "python", "a.py", "--out", "b")
    assert commands == [["python", "a.py", "--out", "b"]]
    assert result.stderr == "inspect-kernel: --out of `capture` is now --output.\n"


@pytest.mark.parametrize("word", ["w4", "s3", "3.6", "num_warps=4"])
def test_a_property_given_as_a_target_works_and_names_the_new_option(cache: Path, word: str) -> None:
    result = run(cache, "--target", word)
    assert "twice" in result.stdout
    assert result.stderr.splitlines()[0] + "\n" == f"inspect-kernel: --target {word} is now --where {word}.\n"
    assert run(cache, "--where", word).stdout == result.stdout


@pytest.mark.parametrize("options", [[], ["--json"], ["--ir"], ["--timeline"], ["--graph", "json"]])
def test_output_goes_to_a_file(cache: Path, tmp_path: Path, options: list[str]) -> None:
    printed = run(cache, "twice", *options)
    written = run(cache, "twice", *options, "-o", tmp_path / "out.txt")
    assert printed.exit_code == written.exit_code == 0, written.output
    assert written.stdout == ""
    assert (tmp_path / "out.txt").read_text() == printed.stdout


def test_a_directory_without_kernels_says_what_it_has(tmp_path: Path) -> None:
    for name in ("-_0_0_0/inductor_output_code_abc_4.txt", "-_0_0_0/dynamo_guards_1.txt", "tile/k.cutile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("?")
    result = run(tmp_path)
    assert result.exit_code == 3
    assert "1 × Inductor's source: give it to `inspect-kernel compile`" in result.stderr
    assert "1 × Tile IR of cuTile: give the file to `inspect-kernel`" in result.stderr


def test_a_mistyped_gpu_is_an_error(cache: Path) -> None:
    result = run(cache, "-t", "A10O")
    assert result.exit_code == 2
    assert "'A10O'" in result.stderr
    assert "A100" in result.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("words", [["--help"], ["compile", "--help"], ["nowhére"]])
def test_help_and_errors_print_in_any_encoding(encoding: str, words: list[str]) -> None:
    command = [sys.executable, "-m", "artifact_inspector", *words]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode in (0, 2, 3)
    assert b"Traceback" not in done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps a working directory from being deleted.")
@pytest.mark.parametrize("words", [["--help"], ["."], []])
def test_a_deleted_working_directory_is_an_error(tmp_path: Path, words: list[str]) -> None:
    directory = tmp_path / "deleted"
    directory.mkdir()
    command = shlex.join([sys.executable, "-m", "artifact_inspector", *words])
    done = subprocess.run(
        ["sh", "-c", f"cd {shlex.quote(str(directory))} && rmdir {shlex.quote(str(directory))} && {command}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("inspect-kernel: The working directory no longer exists.\n")


@pytest.mark.parametrize("name", ["twice", "TWI", "ababab", "ABABAB"])
def test_part_of_a_name_or_hash_in_any_case_tells_the_whole_story(cache: Path, name: str) -> None:
    result = run(cache, name, "--full")
    assert result.exit_code == 0
    assert "L1 F1 S1 L1 F1 S1" in result.output
    assert "x twice.py:5" in result.output


def test_a_whole_name_does_not_mean_the_longer_ones(cache: Path) -> None:
    add_kernel(cache, "twice_more", "cd" * 32)
    assert "L1 F1 S1 L1 F1 S1" in run(cache, "twice", "--full").output
    several = run(cache, "twi").output
    assert "2 kernels match" in several
    assert "L1 F1" not in several


def test_a_name_with_a_typing_error_in_one_part_names_the_kernel(tmp_path: Path) -> None:
    for name in ("causal_conv1d", "embedding_bag", "group_norm", "persistent_sum", "rope", "w8a8_scaled_mm"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.ttir").write_text("module {\n}\n")
    result = run(tmp_path, "w8a9")
    assert "Did you mean w8a8_scaled_mm? The cache has 6 kernels" in result.stderr


def test_a_name_that_fits_nothing_names_what_is_near(cache: Path) -> None:
    result = run(cache, "twize")
    assert result.exit_code == 2
    assert "'twize'" in result.stderr
    assert "twice" in result.stderr
    assert result.stdout == ""


def test_the_default_cache_is_read_without_arguments(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    result = run()
    assert result.exit_code == 0
    assert "twice" in result.stdout


def test_a_missing_default_cache_says_where_it_looked_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "nowhere"))
    result = run()
    assert result.exit_code == 3
    assert str(tmp_path / "nowhere") in result.stderr
    assert "inspect-kernel demo" in result.stderr


@pytest.mark.parametrize("command", [[], ["findings"], ["matrix"], ["report"], ["baseline"], ["predict"], ["rank"]])
def test_an_empty_directory_is_unreadable_input(tmp_path: Path, command: list[str]) -> None:
    result = run(*command, tmp_path)
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr.startswith(
        f"inspect-kernel: No kernels in {tmp_path}. It is empty.\nA Triton cache has one directory"
    )
    assert json.loads(run("inspect", tmp_path, "--json").stdout)["document"] == "error"
    unknown_name = run("inspect", FIXTURES / "3.6.0" / "sm_80", "nosuch", "--json")
    assert (unknown_name.exit_code, json.loads(unknown_name.stdout)["document"]) == (2, "error")
    assert run("diff", tmp_path, FIXTURES / "3.6.0" / "sm_80" / "softmax").exit_code == 3


def test_a_file_that_is_no_kernels_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("?")
    result = run(tmp_path / "notes.txt")
    assert result.exit_code == 3
    assert "is not a file of a compiled kernel" in result.stderr


def test_one_unreadable_kernel_leaves_the_others(cache: Path) -> None:
    broken = add_kernel(cache, "broken", "ef" * 32)
    (broken / "broken.json").write_text("{")
    (broken / "broken.ttir").write_bytes(b"")
    result = run(cache)
    assert result.exit_code == 0
    assert "interleaved" in result.output
    assert f"{broken.name}/broken.json: unreadable JSON" in result.output
    assert f"{broken.name}/broken.ttir: the file is empty" in result.output
    assert "no readable stage" in result.output


def test_exit_code_3_when_nothing_could_be_read(tmp_path: Path) -> None:
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "k.ptx").write_bytes(b"")
    result = run(tmp_path)
    assert result.exit_code == 3
    assert "entry/k.ptx: the file is empty" in result.stdout


def test_json_holds_the_names_of_its_contract(cache: Path) -> None:
    document = json.loads(run("--json", cache).stdout)
    assert document["schema_version"] == 2
    assert document["problems"] == []
    (kernel,) = document["kernels"]
    assert kernel["target"] == {"backend": "cuda", "arch": "sm_80", "warp_size": 32}
    assert (kernel["name"], kernel["hash"], kernel["triton_version"]) == ("twice", "ab" * 32, "3.6.0")
    assert (kernel["num_warps"], kernel["num_stages"], kernel["shared_bytes"]) == (4, 3, 0)
    assert (kernel["verdict"], kernel["changed_at"]) == ("interleaved", None)
    assert list(kernel["stages"]) == ["ttir"]
    stage = kernel["stages"]["ttir"]
    assert stage["file"] == f"{('ab' * 32)[:52].upper()}/twice.ttir"
    assert stage["unknown"] == 0
    assert stage["counts"]["global_load"] == TTIR.count("tt.load")
    assert stage["counts"]["global_store"] == TTIR.count("tt.store")
    (region,) = stage["regions"]
    assert region["pairs"] == [{"issued_before": 0.0, "issued_after": 1.0}]
    assert region["distance"] is None
    assert [one["sources"] for one in region["rounds"]] == [["twice.py:5"], ["twice.py:7"]]
    lines = TTIR.splitlines()
    assert "tt.load %p" in lines[region["rounds"][0]["first_load"] - 1]
    assert "math.exp %1" in lines[region["rounds"][1]["last_compute"] - 1]


def test_json_is_all_that_standard_output_carries_even_without_a_cache(tmp_path: Path) -> None:
    result = run(tmp_path / "nowhere", "--json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["kernels"] == []
    assert "There is no directory" in document["problems"][0]["problem"]


@pytest.mark.parametrize(
    "order", [["--json", "CACHE", "twice"], ["CACHE", "--json", "twice"], ["CACHE", "twice", "--json"]]
)
def test_options_stand_anywhere(cache: Path, order: list[str]) -> None:
    result = run(*(cache if word == "CACHE" else word for word in order))
    assert json.loads(result.stdout)["kernels"][0]["name"] == "twice"


@pytest.mark.parametrize("target", ["sm_80", "80", "A100", "sm_90,sm_80"])
def test_target_narrows_in_any_spelling(cache: Path, target: str) -> None:
    add_kernel(cache, "other", "cd" * 32, 75)
    output = run(cache, "--target", target).stdout
    assert "twice" in output
    assert "other" not in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "sm_75"], "sm_80 (1)"),
        (["--target", "nonsense"], "'nonsense' is not a known GPU target"),
        (["--stage", "nvvm"], "ttir, ttgir, llir, ptx, amdgcn, sass"),
        (["twice", "--region", "loop@7"], "straight"),
        (["--no-such-option"], "No such option"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_the_alternatives(
    cache: Path, arguments: list[str], said: str
) -> None:
    result = run(cache, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_stage_narrows_to_the_kernels_that_have_it(cache: Path) -> None:
    entry = add_kernel(cache, "lowered", "cd" * 32)
    (entry / "lowered.ptx").write_text(".version 8.7\n.target sm_80\n")
    rows = run(cache, "--stage", "ptx").stdout
    assert "lowered" in rows
    assert "twice" not in rows
    result = run(cache, "--stage", "amdgcn")
    assert result.exit_code == 2
    assert "Choose from ttir (2), ptx (1)." in result.stderr


def test_a_region_of_the_only_kernel_is_a_story_without_a_name(cache: Path) -> None:
    result = run(cache, "--region", "straight")
    assert result.exit_code == 0
    assert "straight-line code" in result.stdout


def test_ir_prints_the_lines_of_the_region_with_events_in_the_margin(cache: Path) -> None:
    lines = run(cache, "twice", "--ir").stdout.splitlines()
    number = next(i for i, line in enumerate(TTIR.splitlines(), 1) if "tt.load %p" in line)
    assert f"1 L {number}     %x = tt.load %p : tensor<64x!tt.ptr<f32>> loc(#loc9)" in lines
    assert not any("tt.func" in line for line in lines)


def test_ir_wants_one_kernel(cache: Path) -> None:
    add_kernel(cache, "other", "cd" * 32)
    result = run(cache, "--ir")
    assert result.exit_code == 2
    assert "--ir prints one kernel; 2 match." in result.stderr


def test_a_directory_called_like_a_command_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_kernel(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    assert "interleaved" in run("./demo").stdout


def test_names_from_a_cache_are_text_and_nothing_else(cache: Path) -> None:
    odd = "[red]k\x1b[2J\u202ek"
    entry = add_kernel(cache, "odd", "cd" * 32)
    (entry / "odd.json").write_text(metadata(odd, "cd" * 32))
    output = run(cache, "--target", "sm_80").stdout
    assert "[red]k" in output
    assert "\x1b" not in output
    assert "\u202e" not in output


def test_places_written_in_a_file_move_no_cursor(cache: Path) -> None:
    file = next(cache.glob("*/twice.ttir"))
    file.write_text(TTIR.replace('"/src/twice.py":5', '"/src/t\x1b]0;x\x07.py":5'))
    for arguments in ((cache, "twice", "--full"), (cache, "twice", "--ir")):
        output = run(*arguments).stdout
        assert "tt.load" in output or "L1 F1" in output
        assert "\x1b" not in output
        assert "\x07" not in output


def test_version_and_help_read_nothing() -> None:
    assert run("--version").stdout == f"inspect-kernel {__version__}\n"
    helped = run("--help").stdout
    assert all(word in helped for word in ("CACHE", "NAME", "--json", "--ir", "compile", "demo"))


def test_a_switch_of_ours_asks_for_no_value_in_the_help() -> None:
    shown = [line for line in run("--help").output.splitlines() if line.startswith(("  --json ", "  --ir "))]
    assert len(shown) == 2
    assert not any("bool" in line for line in shown)


@pytest.mark.parametrize(
    ("words", "offered"),
    [("inspect-kernel de", ["demo"]), ("inspect-kernel {cache} tw", ["twice"]), ("inspect-kernel {cache}", [])],
)
def test_commands_and_names_are_completed_and_directories_left_to_the_shell(
    cache: Path, words: str, offered: list[str]
) -> None:
    words = words.format(cache=cache)
    asked = {
        "_INSPECT_KERNEL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    result = CliRunner().invoke(cli.app, [], prog_name="inspect-kernel", env=asked)
    assert result.stdout.split() == offered


def test_the_command_starts_without_what_only_some_answers_need() -> None:
    code = (
        "import sys; from artifact_inspector.cli import app;"
        "print([m for m in ('networkx', 'pygments', 'rich.table', 'triton', 'torch', 'artifact_inspector.formats')"
        " if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_a_reader_that_goes_away_is_no_error(cache: Path) -> None:
    for number in range(40):
        add_kernel(cache, "k" * 200, f"{number:02x}" * 32)
    process = spawn(cache, "--json")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert "incomplete" in process.stderr.readline()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 0


def test_an_interrupt_is_exit_code_130(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("artifact_inspector.cli._loading.open_location", interrupted)
    result = run(cache)
    assert result.exit_code == 130
    assert result.output == ""


@pytest.mark.parametrize(
    "arguments",
    [["twice"], *(pytest.param(other, marks=pytest.mark.long) for other in ([], ["--json"], ["twice", "--ir"]))],
)
def test_a_stream_without_unicode_gets_ascii(cache: Path, arguments: list[str]) -> None:
    add_kernel(cache, "größe", "cd" * 32)
    process = spawn(cache, *arguments, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.isascii()
    assert "twice" in out


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Stands in for the compiler; the requests that came to it."""
    asked: list[object] = []

    def compile_kernels(requests: list[Any], targets: list[str], out: Path, **_: object) -> list[CompileResult]:
        asked.extend(requests)
        rows = []
        for name in (request.kernel_path for request in requests):
            for number, target in enumerate(map(parse_target, targets)):
                refused = name == "broken"
                entry = None if refused else add_kernel(out, name, f"{len(rows):02x}" * 32, (75, 80)[number])
                message = "LLVM ERROR: [bold]no" if refused else None
                rows.append(CompileResult(name, target, 0.25, entry, message, is_usage_error=name == "misspelt"))
        return rows

    import artifact_inspector.compiling

    monkeypatch.setattr(artifact_inspector.compiling, "compile_kernels", compile_kernels)
    monkeypatch.setattr(artifact_inspector.compiling, "REFERENCE_KERNELS", {"softmax": ""})
    monkeypatch.setattr(artifact_inspector.compiling, "DEMO_KERNELS", ("softmax",))
    return asked


def test_the_options_of_compile_become_a_request(compiler: list[Any], tmp_path: Path) -> None:
    options = ["--signature", "*fp16:16,i32", "--const", "BLOCK=64,D=tl.float16", "-c", "E=1", "--num-warps", "8"]
    result = run("compile", "softmax", *options, "--option", "maxnreg=64", "--configs", "all", "-o", tmp_path)
    assert result.exit_code == 0, result.stderr
    (request,) = compiler
    assert request.signature == "*fp16:16,i32"
    assert {name: value.text for name, value in request.constexprs.items()} == {
        "BLOCK": "64",
        "D": "tl.float16",
        "E": "1",
    }
    assert request.options == {"num_warps": 8, "maxnreg": 64}
    assert request.configs == "all"


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("a.py:k", "BLOCK=64"), "Write --const BLOCK=64"),
        (("a.py:k", "b.py:k", "-S", "*fp16"), "describe one kernel; 2 are requested"),
        (("-c", "A=1"), "describe one kernel; all are requested"),
        (("a.py:k", "--configs", "some"), "takes `all` or a number from 1, not"),
        (("a.py:k", "--configs", "0"), "takes `all` or a number from 1, not"),
        (("a.py:k", "-c", "64"), "is not NAME=VALUE"),
        (("a.py:k", "-j", "0"), "--jobs is 0."),
    ],
)
def test_a_request_that_makes_no_sense_is_exit_code_2(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    result = run("compile", *words, "-o", tmp_path)
    assert result.exit_code == 2
    assert complaint in result.stderr


@pytest.mark.usefixtures("compiler")
def test_compile_fills_a_cache_that_can_be_inspected(tmp_path: Path) -> None:
    result = run("compile", "softmax", "--target", "T4,sm_80", "--output", tmp_path / "new")
    assert result.exit_code == 0, result.stderr
    assert "2 of 2 compiled" in result.stdout
    assert "sm_75" in result.stdout
    assert "2 kernels" in run(tmp_path / "new").stdout


@pytest.mark.usefixtures("compiler")
def test_a_refused_kernel_is_exit_code_1_with_the_words_of_the_compiler(tmp_path: Path) -> None:
    result = run("compile", "softmax", "broken", "-t", "T4", "-o", tmp_path, "--json")
    assert result.exit_code == 1
    assert [row["message"] for row in json.loads(result.stdout)["compiled"]] == [None, "LLVM ERROR: [bold]no"]
    assert "LLVM ERROR: [bold]no" in run("compile", "broken", "-t", "T4", "-o", tmp_path).stdout


@pytest.mark.usefixtures("compiler")
def test_the_demo_compiles_for_a_t4_and_an_mi250x_and_reports(tmp_path: Path) -> None:
    result = run("--json", "demo", "--output", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert [kernel["name"] for kernel in json.loads(result.stdout)["kernels"]] == ["softmax", "softmax"]


@pytest.mark.parametrize("width", [60, 80, 110])
def test_a_matrix_cuts_no_figure_in_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run("matrix", FIXTURES, "gemv_splitk")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert max(map(len, lines)) <= width
    assert any("gfx90a" in line for line in lines)


def test_a_single_file_of_a_kernel_is_inspected(tmp_path):
    ptx = next((FIXTURES / "3.6.0" / "sm_80" / "softmax").rglob("*.ptx"))
    shutil.copy(ptx, tmp_path / "mine.ptx")
    told = CliRunner().invoke(cli.app, [str(tmp_path / "mine.ptx")])
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("mine\nsm_80 (A100, A30)")
    assert "memory access" in told.stdout  # its whole story


@pytest.mark.parametrize(("word", "meant"), [("finding", "findings"), ("Diff", "diff"), ("captur", "capture")])
def test_a_mistyped_command_is_asked_back_for(word, meant):
    told = CliRunner().invoke(cli.app, [word, "cache"])
    assert told.exit_code == 2
    assert f"There is no command and no directory {word}." in told.stderr
    assert f"Did you mean {meant}?" in told.stderr


def test_the_short_option_for_help_is_the_help_of_the_whole_command():
    runner = CliRunner()
    assert runner.invoke(cli.app, ["-h"]).stdout == runner.invoke(cli.app, ["--help"]).stdout


def test_a_python_file_is_one_to_compile(tmp_path):
    told = CliRunner().invoke(cli.app, [str(tmp_path / "missing.py"), "-t", "sm_80", "--output", str(tmp_path / "out")])
    assert told.exit_code in (1, 2)
    assert "There is no file" in told.stderr or "Triton" in told.stderr


def test_the_names_of_the_commands_are_all_of_them() -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    assert set(group.commands) == cli.COMMANDS


def test_the_help_lists_the_first_sentence_of_each_command() -> None:
    group = typer.main.get_command(cli.app)
    assert isinstance(group, TyperGroup)
    sentences = {name: sentence for rows in COMMAND_GROUPS.values() for name, sentence in rows.items()}
    assert {name: (command.help or "").partition("\n\n")[0] for name, command in group.commands.items()} == sentences


def test_the_help_loads_the_default_command_only() -> None:
    printed, modules = loaded("--help")
    assert modules == ["inspect", "typer"]
    assert "check-memory" in printed


def loaded(*words: str) -> tuple[str, list[str]]:
    """What a command line prints, and which commands, typer and pydantic it loads for that."""
    code = (
        "import sys\nfrom artifact_inspector.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "own = 'artifact_inspector.cli.'\n"
        "print(*(n.removeprefix(own) for n in sys.modules if n.startswith(own) and n[len(own)] != '_'),"
        " *({'typer', 'pydantic', 'markdown_it', 'numpy'} & set(sys.modules)), file=sys.stderr)"
    )
    asked = [sys.executable, "-c", code, *words]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return done.stdout, sorted(done.stderr.splitlines()[-1].split())


@pytest.mark.long
def test_a_run_that_begins_with_a_directory_loads_its_own_command_alone() -> None:
    words = [str(FIXTURES / "3.6.0" / "sm_75" / "softmax"), "softmax", "-t", "T4", "--limit", "3"]
    plain, modules = loaded(*words[:4])
    limited, _ = loaded(*words)
    assert modules == ["inspect", "typer"]
    assert limited == plain
    assert plain.startswith("softmax_kernel\n")


@pytest.mark.long
def test_a_list_loads_no_typer_and_is_what_the_application_prints() -> None:
    cache = str(FIXTURES / "3.6.0" / "sm_75" / "softmax")
    plain, modules = loaded(cache)
    whole, with_typer = loaded(cache, "--limit", "0")
    assert (modules, with_typer) == ([], ["inspect", "pydantic", "typer"])
    assert plain == whole


@pytest.mark.parametrize(
    ("name", "homes"), [("bisect", {"passes"}), ("demo", {"compile"}), ("try", {"trial"}), ("rank", {"rank"})]
)
def test_a_command_loads_what_it_needs_and_few_others(name: str, homes: set[str]) -> None:
    printed, modules = loaded(name, "--help")
    assert set(modules) == {"inspect", "typer", *homes}
    assert f"Usage: inspect-kernel {name}" in printed


@pytest.mark.parametrize("words", [["findings"], ["report", "-o", "page.html"]])
def test_what_reads_kernels_loads_no_numpy_and_no_markdown(words: list[str], tmp_path: Path) -> None:
    command, *options = [str(tmp_path / word) if word.endswith(".html") else word for word in words]
    _, modules = loaded(command, str(FIXTURES / "3.6.0" / "sm_75" / "softmax"), *options)
    assert set(modules) == {"inspect", command, "typer"}


def test_the_module_of_each_command_is_known() -> None:
    homes = {command.callback.__module__.rpartition(".")[2]: command for command in cli.app.registered_commands}  # type: ignore[union-attr]
    assert {module for name in cli.COMMANDS for module in cli._required_modules([name])} == set(homes)


@pytest.mark.parametrize(
    ("words", "is_default"),
    [
        (["."], True),
        (["diff"], False),
        ([], False),
        (["nowhere"], False),
        ([".", "--help"], False),
        ([".", "-h"], False),
    ],
)
def test_the_default_command_is_told_by_a_directory_of_no_commands_name(
    words: list[str], is_default: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diff").mkdir()
    assert cli.is_default_command(words) is is_default


def test_a_directory_of_a_name_too_long_is_no_fault() -> None:
    assert not cli.is_default_command(["a" * 5000])
    assert CliRunner().invoke(cli.app, ["inspect", "a" * 5000]).exit_code == 3


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="There is no /dev/full.")
@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["--json-schema", "list"], ["findings", "--explain", "AI001"]]
)
def test_what_cannot_be_printed_is_said_and_a_closed_output_is_none(words: list[str]) -> None:
    command = shlex.join([sys.executable, "-m", "artifact_inspector", *words])
    full, closed, both = (
        subprocess.run(["sh", "-c", f"{command} {end}"], capture_output=True, text=True, check=False)
        for end in (">/dev/full", ">&-", ">&- 2>&-")
    )
    assert full.stderr == "inspect-kernel: The report could not be written: No space left on device.\n"
    assert (full.returncode, closed.returncode, both.returncode) == (3, 0, 0)
    assert closed.stderr == ""
