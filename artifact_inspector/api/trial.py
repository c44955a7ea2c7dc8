"""Compile a kernel before and after a change, and compare the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from artifact_inspector.api.pair_prices import find_pair_launch, predict_pair, unknown_price
from artifact_inspector.comparison.matching import Axis, match
from artifact_inspector.comparison.reach import find_reach
from artifact_inspector.compiling.ask.compile import KernelState, compile_states, older_kernel_state
from artifact_inspector.compiling.ask.manifest import read_launches
from artifact_inspector.compiling.ask.request import CompileResult, KernelRequest
from artifact_inspector.compiling.untrusted import UntrustedRecord
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.variations import recorded_compile
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.selection import select_kernels
from artifact_inspector.files.cache import Artifact, Cache, open_cache
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.index import index_opener
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.report.change_effect import EffectReport

OF_CACHE = "launch code is not read: options and constants are the cache's; change them with --with, or capture again"


def try_change(
    request: KernelRequest,
    targets: Iterable[str],
    against: str | None = None,
    *,
    changed: Mapping[str, str] | None = None,
    out: Path | None = None,
    launch: LaunchRequest | None = None,
    **settings: Any,
) -> list[EffectReport]:
    """Compile both states of a kernel at the same time, and find the stages that the change reached.

    Args:
        request: the kernel in its current state.
        targets: GPUs as `parse_target` accepts them; empty for those of the cache to compare with.
        against: a revision (`HEAD~1`), a file (`old.py`, `old.py:KERNEL`) or a cache (`CACHE`,
            `CACHE:HASH`) with the other state. Default: the same file if `changed` is given, else `HEAD`.
        changed: options, constants or argument types that differ in the new state only, as typed.
        out: the cache to fill; by default a cache of this package, where nothing is compiled twice.
        launch: the launch whose time is predicted; by default one that the cache has on record.
        settings: further arguments of `compile_kernels`.

    Returns:
        One answer per target and configuration.

    Raises:
        UsageError: there is no other state, or several kernels match.
        CompileError: one state did not compile; the message is the compiler's.
    """
    file = Path(request.kernel_path.rpartition(":")[0] or request.kernel_path)
    if against is None and file.suffix == ".py" and not file.expanduser().is_file():
        raise UsageError(f"{file} does not exist.", "Name a kernel as FILE.py:KERNEL.")
    cache_location = None if against is None else _parse_cache(against)
    target_names, record_hash = list(targets), None
    if cache_location is not None and len(target_names) > 1:  # the options on record differ between targets
        each = partial(try_change, request, against=against, changed=changed, out=out, launch=launch, **settings)
        return [report for name in target_names for report in each(targets=[name])]
    if cache_location is not None:
        request, target_names, record_hash = complete_request(
            request, target_names, open_cache(cache_location[0]), cache_location[1]
        )
    if not target_names:
        raise UsageError("No GPU to compile for.", "Give one: --target sm_80, --target gfx942 ...")
    new_state = KernelState(replace(request, overrides={**request.overrides, **(changed or {})}), "as it is")
    label = against or ("the same without" if changed else "HEAD")
    old_state: KernelState | Cache = KernelState(request, label)
    if against is not None or not changed:
        old_state = older_kernel_state(request, label) if cache_location is None else open_cache(cache_location[0])
    states = (old_state, new_state) if isinstance(old_state, KernelState) else (new_state,)
    with ThreadPoolExecutor(1) as executor:
        compiling = executor.submit(compile_states, states, target_names, out, **settings)
        import_module("artifact_inspector.comparison.reach")  # while the compilers run
        results_by_state = compiling.result()
    rows = results_by_state[-1]
    for row in rows:
        _raise_failure(row, cache=cache_location and cache_location[0])
    if isinstance(old_state, KernelState):
        old_rows = results_by_state[0]
        if len(old_rows) != len(rows):
            raise UsageError(
                f"{label} has {len(old_rows)} configurations, the new state has {len(rows)}.",
                "Give the constants of one with --const, or remove --configs.",
            )
        for row in old_rows:
            tree = "" if old_state.older_state is None else f"{old_state.older_state[1]}/"
            message = row.message if row.message is None else row.message.replace(tree, "")
            _raise_failure(replace(row, message=message), f"{label}: ")
        old_entries = [_open_entry(row) for row in old_rows]
    new_entries = [_open_entry(row) for row in rows]
    if isinstance(old_state, Cache):
        old_entries = [
            _find_counterpart(entry, old_state, record_hash or (cache_location[1] if cache_location else None))
            for entry in new_entries
        ]
    roots = [] if cache_location is None else [cache_location[0]]
    return [
        _compare_entries(label, *entries, roots, launch) for entries in zip(old_entries, new_entries, rows, strict=True)
    ]


def _parse_cache(text: str) -> tuple[Path, str | None] | None:
    """Directory and name of `CACHE` or `CACHE:NAME`; None if there is no such directory."""
    if Path(text).expanduser().is_dir():
        return Path(text).expanduser(), None
    directory, _, name = text.rpartition(":")
    return (Path(directory).expanduser(), name) if directory and Path(directory).expanduser().is_dir() else None


def complete_request(
    request: KernelRequest, targets: list[str], cache: Cache, name: str | None
) -> tuple[KernelRequest, list[str], str | None]:
    """The request with the types, constants and options on record, the GPUs to compile for, and whose record it is.

    What the request has itself takes precedence. Without a record the request stays as it is.

    Args:
        name: part of a kernel's name or hash; None for the name of the requested kernel.

    Raises:
        UsageError: several variants of the kernel are on record.
    """
    kernel_name = request.kernel_path.rpartition(":")[2]
    entries = select_kernels(cache, name or kernel_name, [parse_target(target) for target in targets])
    if name is None:
        entries = tuple(entry for entry in entries if entry.display_name == kernel_name) or entries
    records: dict[str, tuple[Artifact, UntrustedRecord]] = {}
    for entry in entries:
        with suppress(UsageError):
            record = recorded_compile(entry)
            key = f"{record.types} {record.constants} {record.options}" if request.signature is None else ""
            records.setdefault(key, (entry, record))
    if not targets:
        targets = list(dict.fromkeys(str(entry.target) for entry in entries if entry.target is not None))[:1]
    if not records or (request.signature is not None and request.constexprs):
        return request, targets, None
    if len(records) > 1:
        launched = {row.get("hash") for row in read_launches(cache.root) if not row.get("tuning")}
        chosen = {key: pair for key, pair in records.items() if pair[0].hash in launched}
        if len(chosen) != 1:
            listed = ", ".join(f"{cache.root}:{entry.hash[:12]}" for entry, _ in list(records.values())[:6])
            raise UsageError(
                f"{cache.root} has {len(records)} variants of {kernel_name} on record.",
                f"Give one: --against {listed}. Or give --signature and --const.",
            )
        records = chosen
    (entry, record), *_ = records.values()
    completed = replace(
        request,
        signature=record.types if request.signature is None else request.signature,
        constexprs={**record.constants, **request.constexprs},
        options={**record.options, **request.options},
        is_untrusted=True,
    )
    return completed, targets, entry.hash if targets == [str(entry.target)] else None


def _compare_entries(
    label: str,
    old_entry: Artifact,
    new_entry: Artifact,
    row: CompileResult,
    roots: Sequence[Path],
    launch: LaunchRequest | None,
) -> EffectReport:
    config = "" if row.config is None else f" {row.config}"
    name = f"{new_entry.display_name} for {row.target}{config}"
    entries = tuple(entry_directory(entry) for entry in (old_entry, new_entry))
    reach = find_reach(old_entry, new_entry, inspect_artifact)
    if roots and reach.reached is False:
        reach = replace(reach, notes=(*reach.notes, OF_CACHE))
    request, price = None, None
    try:
        request = (launch or find_pair_launch(old_entry, new_entry, roots)) if reach.reached else None
    except UsageError as error:
        price = unknown_price(error.message)
    tool = None if request is None else find_disassembler(None)
    disassemble = None if tool is None else binary_disassembler(tool)
    if request is not None:
        opener = index_opener(lambda _: None)
        price = predict_pair(
            old_entry, new_entry, request, disassemble, facts=reach.facts, open_index=opener, has_overlap=False
        )
        if reach.change is not None:
            reach = replace(reach, change=reach.change.with_price(price))
    return EffectReport(label, name, reach, entries[0], entries[1], price)


def _raise_failure(row: CompileResult, prefix: str = "", cache: Path | None = None) -> None:
    """Raise what a state failed with; for an argument that the record of a cache lacks, say what to add."""
    if row.message is not None:
        remedy = row.remedy or ""
        if row.is_usage_error and re.search("needs its argument|is a tl.constexpr, and", row.message):
            if cache is None:
                remedy = f"Take the signature from a cache with --against CACHE, or give it with -S. {remedy}".strip()
            else:
                launched = {x: y for one in read_launches(cache) for x, y in one.get("args", {}).items()}
                for name in re.findall(r"--const (\w+)=", remedy):  # an argument that became a constant
                    value = launched.get(name)
                    option = f"--const {name}={value}" if isinstance(value, int | float) else f"--const {name}=…"
                    remedy = re.sub(rf"--const {name}=\S+?(?=\.?( |$))", option, remedy)
                remedy = f"{remedy.rstrip('.')}. Or give it a default: `NAME: tl.constexpr = VALUE`."
        raise (UsageError if row.is_usage_error else CompileError)(f"{prefix}{row.message}", remedy)


def _open_entry(row: CompileResult) -> Artifact:
    assert row.directory is not None
    return open_cache(row.directory).entries[0]


def entry_directory(artifact: Artifact) -> str:
    """The directory that `diff` takes for one kernel."""
    file = next(iter(artifact.files.values()))
    return str(file.parent) if isinstance(file, Path) else artifact.directory


def _find_counterpart(kernel: Artifact, cache: Cache, name: str | None) -> Artifact:
    """The kernel of a cache to compare with: same name and target, then same variant.

    Raises:
        UsageError: none or several match.
    """
    targets = [] if kernel.target is None else [kernel.target]
    artifacts = select_kernels(cache, name or kernel.display_name, targets)
    if name is None:
        artifacts = tuple(artifact for artifact in artifacts if artifact.display_name == kernel.display_name)
    if not artifacts:
        raise UsageError(
            f"{cache.root} has no {kernel.display_name} for {kernel.target}.", "Give the entry: CACHE:HASH."
        )
    if len(artifacts) > 1:
        pairs = match(artifacts, [kernel], (Axis.VERSION,)).pairs
        if len(pairs) == 1:
            return pairs[0][0].artifact
        listed = ", ".join(artifact.hash[:12] for artifact in artifacts[:6])
        raise UsageError(
            f"{len(artifacts)} kernels of {cache.root} match {kernel.display_name} for {kernel.target}.",
            f"Give one as CACHE:HASH: {listed}{' …' if len(artifacts) > 6 else ''}.",
        )
    return artifacts[0]
