"""The label of a form tells it from the other forms of its kernel, and stays the same in every view."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.model.tile import Tile
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_form, label_forms, tile_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
A_DOT = KernelProgram(
    ("*fp16:16", "*fp16:16", "i32:16"), (Tile("load 128×32"), Tile("dot 128×64×32"), Tile("store 128×64"))
)


def an_artifact(**fields: object) -> Artifact:
    (artifact,) = open_cache(FIXTURES / "3.6.0" / "sm_80" / "softmax").entries
    return replace(artifact, name="k", display_name="k", **fields)  # type: ignore[arg-type]


def labels(*forms: Compiled) -> list[str]:
    return label_forms(forms, find_varying(form.artifact for form in forms))


def test_tile_type_warps_and_stages_are_always_told() -> None:
    assert labels(Compiled(an_artifact(num_warps=8, num_stages=3), A_DOT)) == ["128×64×32 f16 w8 s3"]


def test_a_kernel_without_dots_is_known_by_its_first_access() -> None:
    assert tile_of(KernelProgram(("*fp32",), (Tile("load 1024"), Tile("store 1024")))) == "1024"
    assert tile_of(None) == ""


def test_a_constant_is_told_where_forms_differ_in_it() -> None:
    same = {"BLOCK_M": 128, "EVEN_K": True}
    forms = [Compiled(an_artifact(constants={**same, "GROUP_M": group}), A_DOT) for group in (4, 8)]
    assert labels(*forms) == ["128×64×32 f16 w4 s3 G4", "128×64×32 f16 w4 s3 G8"]


def test_a_block_that_the_tile_shows_is_not_told_again() -> None:
    wide = A_DOT._replace(tiles=(Tile("dot 64×64×32"),))
    for name in ("BLOCK_M", "BM"):
        forms = [Compiled(an_artifact(constants={name: 128}), A_DOT), Compiled(an_artifact(constants={name: 64}), wide)]
        assert labels(*forms) == ["128×64×32 f16 w4 s3", "64×64×32 f16 w4 s3"]


def test_constants_of_one_letter_are_told_by_name() -> None:
    values = ({"SPLIT": 2, "STEP": 1, "EVEN": True}, {"SPLIT": 4, "STEP": 2, "EVEN": False})
    first, second = labels(*(Compiled(an_artifact(constants=one), A_DOT) for one in values))
    assert first.endswith("SPLIT=2 STEP=1 EVEN=1")
    assert second.endswith("SPLIT=4 STEP=2 EVEN=0")


def test_forms_that_differ_in_a_later_tile_or_a_type_alone_are_told_apart() -> None:
    other = A_DOT._replace(tiles=(*A_DOT.tiles, Tile("dot 128×128×64")))
    odd = A_DOT._replace(signature=("*fp16:16", "*fp16:16", "i32"))
    assert labels(*(Compiled(an_artifact(hash=h), p) for h, p in (("a", A_DOT), ("b", other)))) == [
        "128×64×32 f16 w4 s3",
        "128×64×32 f16 w4 s3 dot 128×128×64",
    ]
    assert labels(*(Compiled(an_artifact(hash=h), p) for h, p in (("a", A_DOT), ("b", odd)))) == [
        "128×64×32 f16 w4 s3 arg2:i32:16",
        "128×64×32 f16 w4 s3 arg2:i32",
    ]
    named = [
        Compiled(an_artifact(hash=h), p._replace(arguments=("a", "b", "n"))) for h, p in (("a", A_DOT), ("b", odd))
    ]
    assert [label.rpartition(" ")[2] for label in labels(*named)] == ["n:i32:16", "n:i32"]


def test_a_label_does_not_depend_on_which_forms_are_shown() -> None:
    forms = [Compiled(an_artifact(constants={"GROUP_M": group}, hash=str(group)), A_DOT) for group in (4, 8)]
    among = find_varying(form.artifact for form in forms)
    assert label_forms(forms[:1], among) == [label_form(forms[0], among)] == label_forms(forms, among)[:1]


def test_an_option_of_another_version_tells_no_forms_apart() -> None:
    forms = [an_artifact(triton_version="3.2"), an_artifact(metadata={"maxnreg": 64})]
    assert find_varying(forms) == {"k": ()}


def test_constants_come_from_the_record_beside_the_entries(tmp_path: Path) -> None:
    source = FIXTURES / "3.6.0" / "sm_80" / "softmax"
    (entry,) = open_cache(source).entries
    (tmp_path / "ABC").mkdir()
    for suffix in ("json", "ttir"):
        (tmp_path / "ABC" / f"k.{suffix}").write_bytes(entry.files[suffix].read_bytes())
    record = {"entries": [{"directory": "ABC", "constants": {"BLOCK": 1024}}, 7, {"directory": None}]}
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({**record, "entries": record["entries"][::2]}))
    (found,) = open_cache(tmp_path).entries
    assert found.constants == {"BLOCK": 1024}
    (tmp_path / "inspect-kernel.json").write_text("[1")
    assert open_cache(tmp_path).entries[0].constants == {}


def test_every_saved_kernel_has_a_label_of_its_own() -> None:
    entries = open_cache(FIXTURES / "3.6.0").entries
    told = label_forms([Compiled(x, Candidate(x).program) for x in entries], find_varying(entries))
    keys = [(x.display_name, str(x.target), label) for x, label in zip(entries, told, strict=True)]
    assert len(set(keys)) >= len(keys) - 2
    assert all(len(label) < 40 for label in told)
