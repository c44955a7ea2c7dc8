"""The plugin as its users see it: options, fixtures, marks, failures, and nothing where nobody asks for it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from user_project import PLUGIN, ROOT

pytest_plugins = ["pytester"]

FIXTURES = ROOT / "fixtures"
# not importorskip: pytester takes modules out again that a test imported, and Triton's cannot come back
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
MATMUL = 'saved_ir("matmul_grouped", target="sm_80", triton="3.6.0")'


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Write a test file and run it, without the settings of a directory above it."""
    pytester.makeini("[pytest]\n")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("CI", raising=False)

    def run_test(text: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_kernels=text)
        # the directory in which most of them look, so that not all fixtures are listed each time
        saved = f"--saved-ir={FIXTURES / '3.6.0' / 'sm_80'}"
        return pytester.runpytest(*PLUGIN, "-p", "no:cacheprovider", *arguments, saved)

    return run_test


def said(result: pytest.RunResult) -> str:
    return "\n".join([*result.outlines, *result.errlines])


# -- what everybody has it for ------------------------------------------------------------------


def test_help_names_the_options_and_the_setting(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest(*PLUGIN, "--help")
    assert result.ret == 0
    text = said(result)
    assert "compiled Triton kernels:" in text
    assert "--saved-ir=DIR" in text or "--saved-ir DIR" in text
    assert "--update-facts" in text
    assert "saved_ir (paths):" in text


def test_the_mark_and_the_fixtures_are_listed_with_what_they_do(pytester: pytest.Pytester) -> None:
    marks = said(pytester.runpytest(*PLUGIN, "--markers"))
    assert "@pytest.mark.targets(*gpus): run the test once per GPU" in marks
    fixtures = said(pytester.runpytest(*PLUGIN, "--fixtures"))
    own = fixtures.partition("fixtures defined from artifact_inspector.pytest_plugin")[2].partition("\n---")[0]
    assert len(own.split("\n\n")) >= 5
    for name in ("saved_ir", "inspect_kernel", "compile_kernel", "triton_cache", "stored_facts"):
        assert f"{name} " in own
    assert "no docstring available" not in own


@pytest.mark.long
def test_who_asks_for_no_kernel_gets_nothing_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            ours = {name for name in sys.modules if name.startswith("artifact_inspector")}
            package = {"artifact_inspector", "artifact_inspector.version"}
            assert ours - package == {"artifact_inspector.pytest_plugin"}
            assert not {"rich", "networkx", "typer", "triton"} & set(sys.modules)
        """
    )
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *PLUGIN, "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "" if not PLUGIN else "1"},
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_mark_and_a_fixture_of_the_same_names_stay_their_owners(run) -> None:
    run(
        """
        import pytest

        @pytest.fixture
        def target():
            return "mine"

        @pytest.mark.targets("linux")
        def test_mark_of_another_kind():
            pass

        @pytest.mark.targets("linux")
        @pytest.mark.parametrize(("target", "n"), [("a", 1)])
        def test_own_parameters(target, n):
            assert target == "a"

        def test_own_fixture(target):
            assert target == "mine"
        """
    ).assert_outcomes(passed=3)


@pytest.mark.long
def test_it_runs_under_xdist_with_failures_in_full(run) -> None:
    pytest.importorskip("xdist")
    text = said(run(f"def test_order(saved_ir):\n    assert {MATMUL}.verdict == 'interleaved'\n", "-n", "1"))
    assert "what was compiled" in text
    assert "cp.async.wait_group 4 (line 347)" in text


# -- marks --------------------------------------------------------------------------------------


def test_targets_makes_a_test_for_each_gpu(run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.targets("sm_80", "gfx942", "sm_80")
        def test_gpus(saved_ir, target):
            assert saved_ir("matmul_grouped", target=target, triton="3.6.0").target.arch == target
        """,
        "-v",
        "--strict-markers",
        f"--saved-ir={FIXTURES / '3.6.0'}",
    )
    result.assert_outcomes(passed=2)
    assert "test_gpus[sm_80]" in said(result)
    assert "test_gpus[gfx942]" in said(result)


def test_a_test_marked_with_targets_that_takes_none_is_told(run) -> None:
    result = run("import pytest\n@pytest.mark.targets('sm_80')\ndef test_gpus(saved_ir): pass\n")
    assert result.ret != 0
    assert "has the marker targets but no argument `target`" in said(result)


# -- fixtures -----------------------------------------------------------------------------------


def test_saved_ir_finds_kernels_of_a_directory_by_option_and_by_setting(run, pytester) -> None:
    own = pytester.path / "ir"
    own.symlink_to(FIXTURES / "3.2.0" / "gfx942", target_is_directory=True)
    text = """
        def test_found(saved_ir):
            kernel = saved_ir("gemv_splitk")
            assert (str(kernel.target), kernel.triton_version) == ("gfx942", "3.2")
            assert len(saved_ir.all()) == 2
        """
    run(text, "--saved-ir=ir").assert_outcomes(passed=1)
    pytester.makeini("[pytest]\nsaved_ir = ir\n")
    pytester.runpytest(*PLUGIN, "-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ('"nothing"', "No kernel here is called 'nothing'"),
        ('"gemv_splitk"', "saved kernels match: gemv_splitk for"),
        ('"gemv_splitk", target="sm_1"', "sm_1"),
        (
            '"gemv_splitk", target="gfx942", triton="1.0"',
            "No matching saved kernel is from Triton 1.0. Available versions:",
        ),
    ],
)
def test_saved_ir_says_what_there_is_where_not_one_kernel_fits(run, asked: str, answer: str) -> None:
    result = run(f"def test_asked(saved_ir):\n    saved_ir({asked})\n", f"--saved-ir={FIXTURES / '3.2.0'}")
    result.assert_outcomes(failed=1)
    assert answer in said(result)
    assert "UsageError" in said(result)
    assert "api/saved.py" not in said(result)  # the line at fault is the test's


def test_a_directory_of_saved_ir_that_is_not_there_is_named(run) -> None:
    result = run("def test_asked(saved_ir):\n    saved_ir('gemv')\n", "--saved-ir=nowhere")
    assert "There is no directory" in said(result)
    assert "nowhere" in said(result)


def test_triton_cache_is_fresh_empty_and_tritons_own(run) -> None:
    run(
        """
        import os
        import sys
        import types

        seen = set()

        class Cache:
            pass

        def check(triton_cache):
            assert os.environ["TRITON_CACHE_DIR"] == str(triton_cache)
            assert list(triton_cache.iterdir()) == []
            assert triton_cache not in seen
            seen.add(triton_cache)

        def test_one(triton_cache):
            check(triton_cache)

        def test_another(triton_cache):
            check(triton_cache)

        def test_before_a_directory_set_by_a_program(request, monkeypatch):
            knobs = types.ModuleType("triton.knobs")
            knobs.cache = Cache()
            knobs.cache.dir = "elsewhere"
            monkeypatch.setitem(sys.modules, "triton.knobs", knobs)
            check(request.getfixturevalue("triton_cache"))
            assert not hasattr(knobs.cache, "dir")

        def test_put_back():
            assert "TRITON_CACHE_DIR" not in os.environ or os.environ["TRITON_CACHE_DIR"] not in map(str, seen)
        """
    ).assert_outcomes(passed=4)


def test_inspect_kernel_takes_a_path(run) -> None:
    path = FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped"
    run(
        f"def test_path(inspect_kernel):\n    assert inspect_kernel({str(path)!r}).loop().phrase == 'pipelined(3)'\n"
    ).assert_outcomes(passed=1)


@pytest.mark.long
@needs_triton
def test_compile_kernel_compiles_each_kernel_once(run) -> None:
    run(
        """
        kept = []

        def test_first(compile_kernel):
            kept.append(compile_kernel("softmax", "sm_90"))
            assert kept[0].title == "softmax_kernel for sm_90"

        def test_again(compile_kernel):
            assert compile_kernel("softmax", "sm_90") is kept[0]
            assert [path.name for path in compile_kernel.directory.iterdir()].count("inspect-kernel.json") == 1
        """
    ).assert_outcomes(passed=2)


@needs_triton
@pytest.mark.parametrize(
    ("asked", "answer"),
    [('"no_such_kernel", "sm_90"', "Unknown reference kernel 'no_such_kernel'"), ('"softmax", "sm_1"', "sm_1")],
)
def test_compile_kernel_says_what_is_wrong_in_the_line_of_the_test(run, asked: str, answer: str) -> None:
    text = said(run(f"def test_asked(compile_kernel):\n    compile_kernel({asked})\n"))
    assert answer in text
    assert "1 failed" in text
    assert "artifact_inspector/compiling/" not in text


# -- failures -----------------------------------------------------------------------------------


def test_a_wrong_verdict_fails_with_every_stage_and_what_explains_it(run) -> None:
    text = said(run(f"def test_order(saved_ir):\n    assert {MATMUL}.loop().verdict == 'serial'\n"))
    assert "assert 'pipelined' == 'serial'" in text
    assert "loop@81 of matmul_kernel for sm_80 is pipelined(3) at ptx: the loop loads d iterations ahead" in text
    section = text.partition("what was compiled")[2]
    for signature in ("L2 M1", "W1 s2 M1 A1 K1 A1 K1", "W1 B1 s8 M16 B1 A4 K1 A1 K1"):
        assert signature in section
    assert "342–467" in section
    assert "truncated" not in text


def test_evidence_of_a_failure_that_was_caught_is_not_shown_with_another(run) -> None:
    text = said(
        run(
            f"""
            import pytest

            def test_caught(saved_ir):
                with pytest.raises(AssertionError):
                    assert {MATMUL}.verdict == "serial"

            def test_of_something_else():
                assert 1 == 2
            """
        )
    )
    assert "1 failed, 1 passed" in text
    assert "what was compiled" not in text


def test_an_unpipelined_loop_fails_with_the_page_of_the_finding(run) -> None:
    kernel = 'saved_ir("nested_loops", target="sm_80", triton="3.6.0")'
    text = said(run(f"def test_order(saved_ir):\n    {kernel}.loop(28).assert_pipelined()\n"))
    assert "E       AssertionError: loop@28 of nested_loops for sm_80 is serial at ptx, not pipelined" in text
    assert "AI003 not-pipelined" in text
    assert "AI003 loop@28: not pipelined" in text
    assert "AI002 loop@30" not in text  # of the other loop
    assert "When it is reported." in text


# -- stored facts -------------------------------------------------------------------------------

REVIEWED = f"def test_reviewed(saved_ir, stored_facts):\n    assert {MATMUL}.facts == stored_facts\n"


@pytest.fixture
def stored(run, pytester: pytest.Pytester) -> Path:
    """The file that a first run with --update-facts wrote."""
    run(REVIEWED, "--update-facts").assert_outcomes(passed=1)
    return pytester.path / "facts" / "test_kernels" / "test_reviewed.json"


def test_nothing_stored_fails_and_says_how_to_store(run) -> None:
    result = run(REVIEWED)
    result.assert_outcomes(failed=1)
    assert "no facts are stored for this test. Run pytest with --update-facts" in said(result)


def test_facts_stay_equal_to_what_was_stored(run, stored: Path) -> None:
    before = stored.read_bytes()
    run(REVIEWED).assert_outcomes(passed=1)
    run(REVIEWED, "--update-facts").assert_outcomes(passed=1)
    assert stored.read_bytes() == before


def test_each_changed_fact_is_named_with_both_values(run, stored: Path) -> None:
    content = json.loads(stored.read_text(encoding="utf-8"))
    content["facts"]["shared"] = 999
    content["facts"]["loop1.verdict.assembly"] = "serial"
    content["facts"]["loop7.mma"] = ["1 × wgmma"]
    content["triton"] = "3.5.0"
    del content["facts"]["registers"]
    stored.write_text(json.dumps(content), encoding="utf-8")
    result = run(REVIEWED)
    result.assert_outcomes(failed=1)
    text = said(result)
    assert "stored facts of matmul_kernel changed (stored with Triton 3.5.0, now 3.6.0)." in text
    assert text.count("shared was 999, is 30720 B per CTA") == 1, "the change is printed once"
    assert "loop1.verdict.assembly was serial, is pipelined(3)" in text
    assert "loop7.mma was 1 × wgmma, is gone" in text
    assert "registers is new: 95 per thread" in text
    assert "W1 B1 s8 M16 B1 A4 K1 A1 K1" in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "cannot be read"),
        ("[]", "has no stored facts"),
        ('{"version": 9, "facts": {}}', "has version 9; expected 1"),
        (
            '{"version": 1, "kernel": "matmul_kernel", "target": "sm_90", "facts": {}}',
            "target is sm_80, stored was sm_90",
        ),
    ],
)
def test_a_file_that_cannot_be_compared_with_is_named(run, stored: Path, content: str, complaint: str) -> None:
    stored.write_text(content, encoding="utf-8")
    result = run(REVIEWED)
    result.assert_outcomes(failed=1)
    assert complaint in said(result)


def test_two_kernels_of_one_test_need_names(run, pytester: pytest.Pytester) -> None:
    other = 'saved_ir("two_loops", target="sm_80", triton="3.6.0")'
    result = run(f"{REVIEWED}    assert {other}.facts == stored_facts\n", "--update-facts")
    assert "One test stores two kernels" in said(result)
    named = f'{REVIEWED}    assert {other}.facts == stored_facts("second")\n'
    run(named, "--update-facts").assert_outcomes(passed=1)
    run(named).assert_outcomes(passed=1)
    assert (pytester.path / "facts" / "test_kernels" / "test_reviewed-second.json").exists()


def test_parameters_and_classes_have_files_of_their_own(run, pytester: pytest.Pytester) -> None:
    run(
        """
        import pytest

        class TestMatmul:
            @pytest.mark.targets("sm_80", "gfx942")
            def test_it(self, saved_ir, stored_facts, target):
                assert saved_ir("matmul_grouped", target=target, triton="3.6.0").facts == stored_facts
        """,
        "--update-facts",
    ).assert_outcomes(passed=2)
    names = sorted(path.name for path in (pytester.path / "facts" / "test_kernels").iterdir())
    assert names == ["TestMatmul.test_it-gfx942.json", "TestMatmul.test_it-sm_80.json"]


def test_something_else_than_facts_is_told_apart(run) -> None:
    result = run(f"def test_wrong(saved_ir, stored_facts):\n    assert {MATMUL} == stored_facts\n")
    result.assert_outcomes(failed=1)
    assert "use kernel.facts" in said(result)


def test_the_memory_of_a_launch_is_checked(run):
    run(
        f"""
        ROW = {{"shape": [4096], "dtype": "fp32"}}
        ARGUMENTS = {{"x_ptr": ROW, "y_ptr": ROW, "out_ptr": ROW, "n": 4096}}

        def test_memory(check_memory):
            cache = {str(FIXTURES / "3.6.0" / "sm_80" / "masked_add")!r}
            (whole,) = check_memory(cache, launch={{"grid": [8, 1, 1], "args": ARGUMENTS}})
            assert whole.status == "clean"
            (half,) = check_memory(cache, launch={{"grid": [4, 1, 1], "args": ARGUMENTS}})
            assert [problem.check.value for problem in half.problems] == ["coverage"]
        """
    ).assert_outcomes(passed=1)
