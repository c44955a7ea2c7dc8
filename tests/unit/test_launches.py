"""Which launches a command is asked for: a file's, the command line's, or those on record beside a cache."""

import json
import shutil
from pathlib import Path

import pytest

from artifact_inspector.api.launches import pair_launches
from artifact_inspector.cli._groups import LaunchOptions
from artifact_inspector.cli._launches import read_launches
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.facts.selection import parse_filters
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.files.records import MANIFEST

RECORDED = {"kernel": "scale", "hash": None, "grid": [7, 1, 1], "args": {"M": 512, "N": 64}}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    entry = tmp_path / "ENTRY"
    entry.mkdir()
    (entry / "scale.ttir").write_text("module {\n}\n")
    (tmp_path / MANIFEST).write_text(json.dumps({"launches": [RECORDED]}))
    return open_cache(tmp_path)


def test_a_launch_on_record_is_taken_where_nothing_is_said(cache: Cache) -> None:
    (one,) = read_launches(LaunchOptions(), cache, "scale")
    assert (one.grid, one.arguments) == ((7, 1, 1), {"M": 512, "N": 64})


def test_an_argument_alone_is_another_one_for_the_launch_on_record(cache: Cache) -> None:
    (one,) = read_launches(LaunchOptions(["M=32"]), cache, "scale")
    assert (one.grid, one.arguments) == ((7, 1, 1), {"M": 32, "N": 64})


def test_a_grid_alone_is_another_one_for_the_launch_on_record(cache: Cache) -> None:
    (one,) = read_launches(LaunchOptions(grid="cdiv(M,BLOCK_M)"), cache, "scale")
    assert one.grid[0] == "cdiv(M,BLOCK_M)"
    assert one.arguments == {"M": 512, "N": 64}


def test_a_grid_and_arguments_are_a_launch_of_their_own(cache: Cache) -> None:
    (one,) = read_launches(LaunchOptions(["M=32"], "3"), cache, "scale")
    assert (one.grid, one.arguments) == ((3,), {"M": 32})


def test_a_grid_alone_is_enough_where_no_launch_is_on_record(cache: Cache) -> None:
    for grid in ("3", None):
        with pytest.raises(UsageError, match="No kernel here is called 'another'"):
            read_launches(LaunchOptions(grid=grid), cache, "another")
    (cache.root / MANIFEST).unlink()
    (one,) = read_launches(LaunchOptions(grid="3"), cache, "scale")
    assert (one.grid, one.arguments) == ((3,), {})
    with pytest.raises(UsageError, match="no grid was given"):
        read_launches(LaunchOptions(), cache, "scale")


def test_an_argument_that_no_launch_on_record_has_is_refused(cache: Cache) -> None:
    known = list(RECORDED["args"])
    with pytest.raises(UsageError, match="have no argument nowhere") as found:
        read_launches(LaunchOptions(["nowhere=4"]), cache, "scale")
    assert all(name in str(found.value.remedy) for name in known)
    with pytest.raises(UsageError) as found:
        read_launches(LaunchOptions([f"{known[0]}x=4"]), cache, "scale")
    assert found.value.remedy == f"Did you mean {known[0]}?"
    assert read_launches(LaunchOptions(["num_warps=8"]), cache, "scale")[0].arguments["num_warps"] == 8


@pytest.fixture
def tuned(tmp_path: Path) -> Cache:
    """Of an autotuned program: a form that was launched for each of two GPUs, and one that was only tried."""
    launches = []
    for letter, arch, launched in (("a", 80, True), ("b", 90, True), ("c", 80, False)):
        entry = tmp_path / letter
        entry.mkdir()
        (entry / "scale.ttir").write_text("module {\n}\n")
        target = {"backend": "cuda", "arch": arch, "warp_size": 32}
        warps = 4 if launched else 8
        document = {"hash": letter * 64, "target": target, "name": "scale", "num_warps": warps}
        (entry / "scale.json").write_text(json.dumps(document))
        if launched:
            launches.append({**RECORDED, "hash": letter * 64, "target": f"sm_{arch}"})
    (tmp_path / MANIFEST).write_text(json.dumps({"launches": launches}))
    return open_cache(tmp_path)


def test_only_launches_of_the_target_that_is_asked_for_are_taken(tuned: Cache) -> None:
    (one,) = read_launches(LaunchOptions(), tuned, "scale", parse_filters(["sm_90"]))
    assert one.kernel_hash == "b" * 64


def test_a_form_that_was_never_launched_needs_a_grid_and_takes_the_arguments_of_one_that_was(tuned: Cache) -> None:
    only = parse_filters(["sm_80", "w8"])
    with pytest.raises(UsageError, match="other variants of this kernel: scale aaaaaa for sm_80, grid 7,1,1") as caught:
        read_launches(LaunchOptions(), tuned, "scale", only)
    assert "--grid" in str(caught.value.remedy)
    (one,) = read_launches(LaunchOptions(grid="3"), tuned, "scale", only)
    assert (one.kernel_hash, one.grid, one.arguments) == (None, (3,), {"M": 512, "N": 64})
    assert one.inherited_names == {"M", "N"}


def test_with_a_grid_every_form_can_be_put_in_order(tuned: Cache) -> None:
    wanted = parse_filters(["sm_80"])
    (one,) = read_launches(LaunchOptions(grid="3"), tuned, "scale", wanted, all_variants=True)
    assert one.kernel_hash is None
    (own,) = read_launches(LaunchOptions(grid="3"), tuned, "scale", wanted)
    assert own.kernel_hash == "a" * 64


COPY = Path(__file__).parents[2] / "fixtures" / "3.6.0" / "gfx942" / "copy"


def tensors(n: int, **constants: int) -> dict[str, object]:
    shape = {"shape": [n], "stride": [1], "dtype": "float16", "alignment": 512}
    return {"x_ptr": shape, "y_ptr": shape, "n": n, **constants}


def copies(root: Path, constants: dict[str, dict[str, int] | None]) -> Cache:
    """The kernel `copy` under several hashes; constants that are not on record are None."""
    (source,) = COPY.iterdir()
    entries = []
    for letter, on_record in constants.items():
        shutil.copytree(source, root / letter)
        file = root / letter / "copy.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "hash": letter * 64}))
        if on_record is not None:
            entries.append({"directory": letter, "kernel": "copy", "place": "copy.py:copy", "constants": on_record})
    launches = [
        {"kernel": "copy", "hash": "a" * 64, "target": "gfx942", "grid": [469], "args": tensors(60_000, BLOCK=128)},
        {"kernel": "copy", "hash": "d" * 64, "target": "gfx942", "grid": [938], "args": tensors(60_000, BLOCK=64)},
    ]
    (root / MANIFEST).write_text(json.dumps({"entries": entries, "launches": launches}))
    return open_cache(root)


def grids(cache: Cache, name: str | None, grid: str, *arguments: str, all_variants: bool = False) -> list[int]:
    requests = read_launches(LaunchOptions([*arguments], grid), cache, name, all_variants=all_variants)
    pairs = pair_launches(cache, name, (), requests, all_variants=all_variants)
    loaded = [(load_kernel(entry, None), request, entry.constants) for entry, request in pairs]
    return [match_launch(kernel, request, known)[1].grid[0] for kernel, request, known in loaded]


def test_a_grid_uses_the_constants_of_the_variant_that_is_launched(tmp_path: Path) -> None:
    cache = copies(tmp_path, {"a": {"BLOCK": 128}, "b": {"BLOCK": 8}, "c": None})
    assert grids(cache, "a" * 64, "cdiv(n,BLOCK)") == [469]
    assert grids(cache, "b" * 64, "cdiv(n,BLOCK)") == [7500]


def test_a_grid_never_uses_the_constants_of_another_variant(tmp_path: Path) -> None:
    cache = copies(tmp_path, {"a": {"BLOCK": 128}, "c": None})
    with pytest.raises(UsageError, match="uses BLOCK, which is not a known number") as refused:
        grids(cache, "c" * 64, "cdiv(n,BLOCK)")
    assert "Write their values in the grid" in str(refused.value.remedy)
    assert grids(cache, "c" * 64, "cdiv(n,8)") == [7500]


def test_variants_that_inherit_a_launch_inherit_it_once(tmp_path: Path) -> None:
    """Two recorded launches that differ by constants only are one launch of each variant."""
    cache = copies(tmp_path, {"a": {"BLOCK": 128}, "b": {"BLOCK": 8}, "d": {"BLOCK": 64}})
    assert grids(cache, None, "cdiv(n,BLOCK)", all_variants=True) == [469, 7500, 938]


def test_a_launch_is_of_one_entry_though_the_cache_holds_its_binary_twice(tmp_path: Path) -> None:
    copies(tmp_path, {"a": {"BLOCK": 128}})
    shutil.copytree(tmp_path / "a", tmp_path / "again")
    cache = open_cache(tmp_path)
    (_, twice) = cache.entries
    assert twice.hash == cache.entries[0].hash
    assert grids(cache, None, "469") == [469]
    binary = tmp_path / "again" / "copy.hsaco"
    binary.write_bytes(binary.read_bytes()[:-1])
    with pytest.raises(UsageError, match="matches 2 kernels, not 1"):
        grids(open_cache(tmp_path), None, "469")


def test_a_launch_without_a_hash_is_of_a_kernel_for_each_target(tmp_path: Path) -> None:
    for target in ("gfx942", "sm_80"):
        shutil.copytree(COPY.parent.parent / target / "copy", tmp_path / target)
    request = read_launches(LaunchOptions(["n=64"], "1"), open_cache(tmp_path), None)
    pairs = pair_launches(open_cache(tmp_path), "copy", (), request)
    assert [str(entry.target) for entry, _ in pairs] == ["gfx942", "sm_80"]


def test_launches_of_caches_below_are_found_and_fit_the_same_kernel_in_another_cache(tmp_path: Path) -> None:
    """One of two caches recorded a launch; the hash alone names two entries."""
    for name in ("old", "new"):
        copies(tmp_path / name, {"a": {"BLOCK": 128}})
    binary = tmp_path / "new" / "a" / "copy.hsaco"
    binary.write_bytes(binary.read_bytes()[:-1])
    record = tmp_path / "new" / MANIFEST
    document = json.loads(record.read_text())
    document.pop("launches")
    record.write_text(json.dumps(document))
    cache = open_cache(tmp_path)
    requests = read_launches(LaunchOptions(), cache, None, all_variants=True)
    pairs = pair_launches(cache, None, (), requests, all_variants=True)
    assert sorted(entry.directory for entry, _ in pairs) == ["new/a", "old/a"]
    (launched,) = pair_launches(cache, None, (), read_launches(LaunchOptions(), cache, None))
    assert launched[0].directory == "old/a"
