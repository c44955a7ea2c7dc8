"""`cache verify|du|prune`: damage that was made is found, nothing else is, and nothing in use goes."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from saved import FIXTURES, ROOT
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.doctor import DamageKind, PruneReason, PruneRules, examine, prune

MONTH = 30 * 24 * 3600
SASS = ROOT / "tests" / "oracle" / "counters"


def age(path: Path, seconds: float = MONTH) -> None:
    moment = time.time() - seconds
    for file in (*path.rglob("*"), path):
        os.utime(file, (moment, moment), follow_symlinks=False)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Three whole entries, a month old, whose group files list what there is."""
    root = tmp_path / "cache"
    for kernel in ("softmax", "layer_norm", "matmul_grouped"):
        shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / kernel, root, dirs_exist_ok=True)
    for group in root.rglob("__grp__*.json"):
        paths = {file.name: f"/elsewhere/{file.name}" for file in group.parent.iterdir() if file != group}
        group.write_text(json.dumps({"child_paths": paths}))
    age(root)
    return root


def entry_of(root: Path, stem: str) -> Path:
    return next(root.rglob(f"{stem}.json")).parent


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["cache", *map(str, arguments)])
    return done.exit_code, done.output


def test_a_whole_cache_is_whole_and_exits_with_0(cache: Path) -> None:
    assert examine(cache).damage == ()
    code, output = run("verify", cache)
    assert (code, output.startswith("No damage found in 3 entries")) == (0, True)


def test_no_saved_kernel_is_damaged_beside_the_binaries_that_are_not_kept() -> None:
    damage = [d for root in (FIXTURES, SASS) for d in examine(root).damage]
    assert {d.kind for d in damage} <= {DamageKind.MISSING}
    assert {d.file.rpartition(".")[2] for d in damage} <= {"cubin", "hsaco", "source"}


@pytest.mark.parametrize("suffix", ["ttir", "ttgir", "llir", "ptx", "json"])
def test_a_truncated_or_missing_file_is_named_and_exits_with_1(cache: Path, suffix: str) -> None:
    file = entry_of(cache, "softmax_kernel") / f"softmax_kernel.{suffix}"
    content = file.read_bytes()
    for cut in (0, len(content) // 2, len(content) - 2):
        file.write_bytes(content[:cut])
        assert [(d.file, d.kind) for d in examine(cache).damage] == [(file.name, DamageKind.TRUNCATED)], cut
    file.unlink()
    assert [(d.file, d.kind) for d in examine(cache).damage] == [(file.name, DamageKind.MISSING)]
    code, output = run("verify", cache)
    assert code == 1
    assert file.name in output


def test_a_truncated_binary_is_named(tmp_path: Path) -> None:
    binary = next(FIXTURES.rglob("*.cubin"))
    (tmp_path / "e").mkdir()
    for cut, expected in ((None, []), (100, [DamageKind.TRUNCATED]), (-100, [DamageKind.TRUNCATED])):
        (tmp_path / "e" / "k.cubin").write_bytes(binary.read_bytes()[:cut])
        assert [d.kind for d in examine(tmp_path).damage] == expected


def test_a_group_file_that_is_no_json_or_of_nothing_is_damage(cache: Path) -> None:
    group = next(cache.rglob("__grp__softmax*.json"))
    for text in ("", "[]", "{}", '{"child_paths": 3}', "\xff"):
        group.write_text(text)
        assert [(d.file, d.kind) for d in examine(cache).damage] == [(group.name, DamageKind.UNREADABLE)], text
    (cache / "only").mkdir()
    shutil.copy(next(cache.rglob("__grp__layer*.json")), cache / "only")
    assert {d.kind for d in examine(cache).damage if d.directory == "only"} == {DamageKind.MISSING}


def test_a_stage_of_another_gpu_is_damage(cache: Path) -> None:
    ptx = entry_of(cache, "softmax_kernel") / "softmax_kernel.ptx"
    ptx.write_text(ptx.read_text().replace(".target sm_80", ".target sm_90a"))
    (damage,) = examine(cache).damage
    assert (damage.file, damage.kind, damage.problem) == (
        ptx.name, DamageKind.MIXED_TARGETS, "is for sm_90, but the metadata says sm_80",
    )  # fmt: skip


def test_sizes_and_duplicates_add_up(cache: Path) -> None:
    shutil.copytree(entry_of(cache, "softmax_kernel"), cache / "rank1" / "COPY")
    health = examine(cache)
    assert [e.directory for e in health.entries if e.duplicate_of] == ["rank1/COPY"]
    assert sum(e.bytes for e in health.entries) == sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())
    assert sum(e.files for e in health.entries) == sum(f.is_file() for f in cache.rglob("*"))
    code, output = run("du", cache)
    assert code == 0
    assert "1 entries repeat another one" in output
    assert f"in {sum(e.files for e in health.entries)} files" in output


def damage_one(cache: Path) -> Path:
    entry = entry_of(cache, "softmax_kernel")
    (entry / "softmax_kernel.ptx").write_bytes(b"")
    age(cache)
    return entry


def test_prune_is_a_dry_run_unless_yes(cache: Path) -> None:
    entry = damage_one(cache)
    before = sorted(cache.rglob("*"))
    code, output = run("prune", cache)
    assert (code, sorted(cache.rglob("*"))) == (0, before)
    assert "Would remove 1 directory" in output
    code, output = run("prune", cache, "--yes")
    assert code == 0
    assert sorted(cache.rglob("*")) == [path for path in before if not path.is_relative_to(entry)]
    assert examine(cache).damage == ()


def test_each_rule_removes_its_entries_only(cache: Path) -> None:
    other = next((FIXTURES / "3.6.0" / "gfx942" / "softmax").iterdir())
    shutil.copytree(other, cache / other.name)
    for group in (cache / other.name).glob("__grp__*"):
        group.unlink()
    shutil.copytree(entry_of(cache, "layer_norm_kernel"), cache / "zz-copy")
    age(cache)
    health = examine(cache)

    def pruned(**rules: object) -> dict[str, PruneReason]:
        return {item.directory: item.reason for item in prune(health, PruneRules(**rules))}

    assert pruned() == {}
    assert pruned(targets=frozenset({"sm_80"})) == {other.name: PruneReason.TARGET}
    assert pruned(duplicates=True) == {"zz-copy": PruneReason.DUPLICATE}
    assert len(pruned(tritons=("3.5",))) == 5
    assert pruned(tritons=("3.6", "3.9")) == {}
    assert len(pruned(older_than_days=29)) == 5
    assert pruned(older_than_days=31) == {}


def test_what_a_program_may_be_using_stays(cache: Path) -> None:
    entry = damage_one(cache)
    os.utime(entry / "softmax_kernel.ttir")  # written just now
    used = entry_of(cache, "matmul_kernel")
    month = time.time() - MONTH
    os.utime(used / "matmul_kernel.json", (time.time() - 7200, month))  # read two hours ago
    (cache / f"tmp.pid_{os.getpid()}_x").mkdir()
    os.utime(cache / f"tmp.pid_{os.getpid()}_x", (month, month))
    results = prune(examine(cache), PruneRules(targets=frozenset({"sm_90"})), is_dry_run=False)
    kept = {item.directory: item.kept_because for item in results if not item.is_removed}
    assert kept == {
        entry.name: "it was written within the last hour",
        used.name: "it was read or written within the last day",
    }
    assert (cache / f"tmp.pid_{os.getpid()}_x").exists()
    assert {a.display_name for a in open_cache(cache).entries} == {"softmax_kernel", "matmul_kernel"}


def test_looking_is_no_use(cache: Path) -> None:
    entry = damage_one(cache)
    times = {file: file.stat().st_atime for file in cache.rglob("*") if file.is_file()}
    run("verify", cache)
    CliRunner().invoke(app, [str(cache), "--no-index"])
    assert {file: file.stat().st_atime for file in times} == times
    run("prune", cache)
    run("prune", cache, "--yes", "--keep-target", "sm_90")
    assert not entry.exists()
    assert open_cache(cache).entries == ()


def test_what_changes_between_the_look_and_the_removal_stays(cache: Path) -> None:
    entry = damage_one(cache)
    health = examine(cache)
    os.utime(entry / "softmax_kernel.ptx")
    (result,) = prune(health, PruneRules(), is_dry_run=False)
    assert (result.is_removed, result.kept_because) == (False, "it changed just now")
    assert entry.exists()


def test_leftovers_of_killed_compiles_go_and_links_are_not_followed(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.ptx").write_text("x")
    (cache / "tmp.pid_999999999_a").mkdir()
    (cache / "tmp.pid_999999999_a" / "k.ptx").write_text("x" * 100)
    (cache / "linked").symlink_to(outside)
    entry = damage_one(cache)
    (entry / "softmax_kernel.cubin").symlink_to(outside / "precious.ptx")
    age(cache)
    results = prune(examine(cache), PruneRules(), is_dry_run=False)
    assert {(item.directory, item.reason, item.is_removed) for item in results} == {
        (entry.name, PruneReason.DAMAGED, True),
        ("tmp.pid_999999999_a", PruneReason.LEFTOVER, True),
    }
    assert (outside / "precious.ptx").read_text() == "x"
    assert (cache / "linked").is_symlink()
    assert not [path for path in cache.iterdir() if path.name.startswith(".pruned")]


def test_the_directory_itself_and_what_has_subdirectories_stay(cache: Path) -> None:
    entry = damage_one(cache)
    (result,) = prune(examine(entry), PruneRules(), is_dry_run=False)
    assert result.kept_because == "it is the directory itself"
    (entry / "sub").mkdir()
    age(cache)
    (result,) = prune(examine(cache), PruneRules(), is_dry_run=False)
    assert result.kept_because == "it has subdirectories"
    assert entry.exists()


def test_wrong_usage_is_an_error(cache: Path, tmp_path: Path) -> None:
    assert run("mend", cache)[0] == 2
    assert run("verify", cache, "--yes")[0] == 2
    assert run("prune", cache, "--older-than", "0")[0] == 2
    assert run("verify", tmp_path / "none")[0] == 3
