"""Operands of dots that the program converts to a wider type after it has loaded them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from saved import saved

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.findings import Severity, find_findings
from artifact_inspector.model.version import TritonVersion

WIDENED = "%w{0} = arith.extf {1} : tensor<{2}xf16> to tensor<{2}xf32>\n"


@pytest.mark.parametrize(
    ("widened", "severity"), [((True, True), Severity.WARNING), ((True, False), None), ((False, False), None)]
)
@pytest.mark.parametrize("target", ["sm_80", "gfx942"])
def test_a_dot_of_converted_operands_is_told_where_both_are_loaded_narrower(
    target: str, widened: tuple[bool, bool], severity: Severity | None, tmp_path: Path
) -> None:
    """`tl.dot(a.to(tl.float32), b.to(tl.float32))` put into the IR of a product of f16."""
    artifact = saved(f"3.6.0/{target}/matmul_grouped").artifact
    ttir = write_widened(artifact, widened, tmp_path)
    facts = inspect_artifact(dataclasses.replace(artifact, files={"ttir": ttir}))
    found = [finding for finding in find_findings(facts) if finding.code == "AI026"]
    compiled = inspect_artifact(dataclasses.replace(artifact, files={**artifact.files, "ttir": ttir}))
    assert "AI026" not in [finding.code for finding in find_findings(compiled)]  # its machine code multiplies f16
    assert [finding.severity for finding in found] == ([] if severity is None else [severity])
    if found:
        assert found[0].remark.message.startswith("the dot multiplies f32, but its operands are loaded as f16")
        assert found[0].remark.sources == ("matmul_grouped.py:85",)


@pytest.mark.parametrize(("release", "count"), [("3.2.0", 1), ("3.6.0", 0)])
def test_a_type_that_decides_nothing_is_no_finding(release: str, count: int, tmp_path: Path) -> None:
    """Triton 3.4 and later make multiply-adds of all dots for a T4; 3.2 had mma.sync for f16."""
    artifact = saved("3.6.0/sm_75/matmul_grouped").artifact
    files = {"ttir": write_widened(artifact, (True, True), tmp_path)}
    version = TritonVersion(release)
    facts = inspect_artifact(dataclasses.replace(artifact, files=files, triton_version=version))
    assert [finding.code for finding in find_findings(facts)].count("AI026") == count


def write_widened(artifact: Artifact, widened: tuple[bool, bool], directory: Path) -> Path:
    text = artifact.files["ttir"].read_bytes().decode()
    dot = next(line for line in text.splitlines() if "tt.dot" in line)
    changed, conversions = dot, ""
    shapes = ("128x32", "32x32")
    names = [name.rstrip(",") for name in dot.split("tt.dot ")[1].split()[:2]]
    for number, (name, shape, is_widened) in enumerate(zip(names, shapes, widened, strict=True)):
        if any(widened) and not is_widened:  # an operand of f32 in memory
            load = next(line for line in text.splitlines() if f"{name} = tt.load" in line)
            text = text.replace(load, load.replace("<f16>", "<f32>"))
        if is_widened:
            conversions += WIDENED.format(number, name, shape)
            changed = changed.replace(f"{name},", f"%w{number},", 1)
    for shape in shapes if any(widened) else ():
        changed = changed.replace(f"tensor<{shape}xf16>", f"tensor<{shape}xf32>", 1)
    ttir = directory / "matmul_kernel.ttir"
    ttir.write_text(text.replace(dot, conversions + changed))
    return ttir


@pytest.mark.parametrize(
    "name", ["3.6.0/sm_80/flash_attention", "3.6.0/gfx942/flash_attention", "3.6.0/sm_90/matmul_square"]
)
def test_dots_of_what_is_loaded_are_not_widened(name: str) -> None:
    """The second product of an attention is of f16: its probabilities are rounded first."""
    assert saved(name).facts.widened_dots == ()
