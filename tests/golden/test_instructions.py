"""What each instruction computes of numbers at the edges, in whatever form its operands are.

`instructions/sass.txt` and `amdgcn.txt` have one statement of each form that compiled kernels use, and the opcodes of AMD
that they do not use, with what it leaves in the first lanes of each register, and a checksum of all lanes;
`--update-golden` writes the right side anew. Those that access memory or multiply matrices are in `*_memory.txt`: with a
tensor and shared memory of known content, what is counted of the access, and what stands in memory after it.
`*_forms.txt` have further forms: each was made of another by one more modifier, or another operand, and kept as it did
something else. What is read of each, its kind and its registers, is in `*_read.txt`. That the numbers are right is what the tests of
instructions and of counters say: the golden notices whatever moves. Two tests need no expectation: a register may hold
an array, or a number of each CTA plus one of each lane, and no bit is known that an unknown bit could change.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from artifact_inspector.execution.amdgcn.environment import AmdgcnEnvironment
from artifact_inspector.execution.amdgcn.semantics import read_program as read_amdgcn
from artifact_inspector.execution.interpreter.affine import AffineValue
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_partition import materialize
from artifact_inspector.execution.interpreter.launch_values import LaunchValues
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import InputNames, IntArray, UnknownValue, Value, as_plain_array
from artifact_inspector.execution.launch import FIRST_ADDRESS, KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.sass.environment import SassEnvironment
from artifact_inspector.execution.sass.semantics import read_program as read_sass
from artifact_inspector.execution.simulation import run_machines
from artifact_inspector.formats import format_of
from artifact_inspector.formats.amdgcn.kernel import InitialState
from artifact_inspector.model import Stage
from artifact_inspector.model.float_formats import NEAREST
from artifact_inspector.model.text import SourceText

FOLDER = Path(__file__).parent / "instructions"
CTAS, SHOWN = 3, 6
"""CTAs of a machine, and lanes of the first that are written out."""
EDGES = np.array(
    [
        *(0, 1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 63, 64, 100, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000),
        *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x55555555, 0xDEADBEEF, 0x01234567),
        *(0x3F800000, 0xC0200000, 0x40490FDB, 0x00000001, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000),
        *(0x3C003C00, 0xC100BC00, 0x7C00FC00, 0x00010400, 0x4F000000, 0xCF000000, 0x42FE0000, 0x3F000000, 0xBF000000),
    ],
    np.int64,
)
"""Integers, and the words of floats and of pairs of halves, where rules change."""
NOTHING = KernelLaunch((CTAS, 1, 1), {})
MEMORY = 1 << 14
"""Words of the tensor and of the shared memory that statements access."""
COUNTED = (
    *("warps_executed", "threads_executed", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal"),
    *("bytes_requested", "active_threads", "accessing_ctas"),
)
ACCESS = re.compile(r"(global|flat|scratch|buffer|ds|s_load|s_buffer)_|[^[]* \[|.*R\d+\.64")
FLOATS = re.compile(r"gdesc|(ATOM|RED).*F(16|32|64)|atomic.*_b?f(16|32|64)|ds_.*_f(16|32|64)")
Registers = Mapping[str, Value]


class Vendor:
    """Runs single statements of one instruction set."""

    stage = Stage.SASS
    shared = tuple(f"UR{n}" for n in range(64))
    """Registers of a whole warp."""
    own = tuple(f"R{n}" for n in range(255))
    """Registers of each lane."""
    predicates = tuple(f"{bank}{n}" for bank in ("P", "UP") for n in range(7))

    def source(self, statements: Iterable[str]) -> SourceText:
        lines = [
            f"        /*{at:04x}*/                   {one} ;\n" for at, one in zip(count(0, 16), (*statements, "EXIT"))
        ]
        return SourceText("k.sass", '\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n' + "".join(lines))

    def machine(self, statement: str, threads: int = 32, launch: KernelLaunch = NOTHING) -> Machine:
        program = read_sass(format_of(self.stage).parse(self.source([statement]), self.stage), "k")
        launch = place_tensors(launch)
        names = InputNames()
        environment = SassEnvironment(program, launch, (), threads, names)
        counts, memory = StepCounters(len(program.steps), 1000), GlobalMemory(launch)
        return Machine(program, np.arange(CTAS), threads, memory, counts, names, environment)


class Amd(Vendor):
    stage = Stage.AMDGCN
    shared = (*(f"s{n}" for n in range(100)), "vcc_lo", "vcc_hi", "m0")
    own = tuple(f"{bank}{n}" for bank in "va" for n in range(256))
    predicates = ("scc",)

    def source(self, statements: Iterable[str], target: str = "gfx942") -> SourceText:
        head = f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n\t.type\tk,@function\nk:\n'
        body = "".join(f"\t{one}\n" for one in (*statements, "s_endpgm"))
        return SourceText("k.amdgcn", f"{head}{body}.Lfunc_end0:\n")

    def machine(self, statement: str, threads: int = 64, launch: KernelLaunch = NOTHING) -> Machine:
        is_narrow = statement.startswith(("v_dual", "s_delay")) or "vcc_lo" in statement
        is_narrow |= re.match(r"[a-z]+_(load|store|atomic)_\w*(2addr|\b[bui]\d|_[bui]\d)", statement) is not None
        lanes, target = (32, "gfx1100") if is_narrow else (64, "gfx942")
        threads = max(lanes, threads) if threads != 64 else lanes
        module = format_of(self.stage).parse(self.source([statement], target), self.stage)
        beginning = InitialState((), lanes, None)
        program = read_amdgcn(module, "k", beginning, 128)
        launch, names = place_tensors(launch), InputNames()
        environment = AmdgcnEnvironment(program, beginning, launch, (), threads, names)
        counts, memory = StepCounters(len(program.steps), 1000), GlobalMemory(launch)
        return Machine(program, np.arange(CTAS), threads, memory, counts, names, environment)


VENDORS = {"sass": Vendor(), "amdgcn": Amd()}


def seeded(name: str, *more: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr((name, *more)).encode()))


@cache
def edges(vendor: str, lanes: int) -> Registers:
    """A number at an edge in each lane of each register."""
    kind = VENDORS[vendor]
    found: dict[str, Value] = {name: seeded(name).choice(EDGES, (CTAS, lanes)) for name in kind.own}
    found |= {name: int(seeded(name).choice(EDGES)) for name in kind.shared}
    found |= {
        name: seeded(name).random((CTAS, lanes)) < 0.5 for name in kind.predicates if not name.startswith(("U", "scc"))
    }
    return found | {
        name: bool(seeded(name).random() < 0.5) for name in kind.predicates if name.startswith(("U", "scc"))
    }


def after(machine: Machine, registers: Registers, *, affine: bool = False) -> dict[str, Value]:
    """The registers that a statement wrote."""
    machine.environment.initialize(machine)
    machine.registers.update(registers)
    machine.uses_affine = affine
    before = dict(machine.registers)
    with np.errstate(all="ignore"):
        ended = run_machines(machine)
    assert not ended, ended
    return {name: materialize(value) for name, value in machine.registers.items() if value is not before.get(name)}


def shown(value: Value) -> str:
    if isinstance(value, UnknownValue):
        bits = as_plain_array(value.unknown_bits)
        if np.all(np.asarray(bits) == (True if isinstance(bits, bool) else 0xFFFFFFFF)):
            return "unknown"
        return f"{shown(value.data)} but {shown(bits)}"
    plain = np.asarray(as_plain_array(value))
    width = 1 if plain.dtype == bool else 8
    numbers = [f"{int(number) & 0xFFFFFFFF:0{width}x}" for number in np.atleast_1d(plain).flat[:SHOWN]]
    return f"{' '.join(numbers)} {zlib.crc32(plain.astype(np.int64).tobytes()):08x}" if plain.ndim else numbers[0]


def statements(vendor: str) -> list[str]:
    lines = (FOLDER / f"{vendor}.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition(" → ")[0] for line in lines]


def without_memory(vendor: str) -> list[str]:
    """Statements that compute, also those that `*_memory.txt` has."""
    computed = [*statements(vendor), *statements(f"{vendor}_forms")]
    return computed + [one for one in statements(f"{vendor}_memory") if "gdesc" not in one and not ACCESS.match(one)]


def told(vendor: str, statement: str) -> str:
    machine = VENDORS[vendor].machine(statement)
    found = after(machine, edges(vendor, machine.threads))
    return f"{statement} → " + "; ".join(f"{name} {shown(value)}" for name, value in sorted(found.items()))


def words_of(name: str, *, is_float: bool) -> IntArray:
    """Words of memory: numbers at edges; of floats two halves of moderate size, as which NaN a sum leaves is no rule."""
    words = seeded(name).choice(EDGES, MEMORY)
    return words & 0x83BF83BF | 0x3C003C00 if is_float else words


@cache
def with_tensor(*, is_float: bool) -> KernelLaunch:
    words = words_of("tensor", is_float=is_float).astype(np.uint32).view(np.int32)
    return KernelLaunch((CTAS, 1, 1), {"x": Tensor((MEMORY,), "int32", values=tuple(words.tolist()))})


@cache
def places(vendor: str, threads: int) -> Registers:
    """In each even register a multiple of 16 below 4096, in each odd one the upper word of an address of the tensor."""
    found = dict(edges(vendor, threads))
    for name in VENDORS[vendor].own:
        if int(name.lstrip("Rva")) % 2:
            found[name] = np.full((CTAS, threads), FIRST_ADDRESS >> 32, np.int64)
        else:
            found[name] = np.stack([seeded(name, cta).permutation(256)[:threads] for cta in range(CTAS)]) * 16
    for name in VENDORS[vendor].shared:
        if name.lstrip("URs").isdigit():
            number = int(name.lstrip("URs"))
            found[name] = FIRST_ADDRESS >> 32 if number % 2 else 0x8000 if number % 4 == 2 else 0
    return found


@cache
def numbers(vendor: str, threads: int) -> Registers:
    """In each register two halves of moderate size, which are a float32 and small integers, too."""
    found = dict(edges(vendor, threads))
    for name in VENDORS[vendor].own:
        halves = seeded(name, "numbers").integers(-8, 9, (CTAS, threads, 2)).astype(np.float16) / np.float16(4)
        found[name] = np.ascontiguousarray(halves).view(np.uint32).astype(np.int64)[..., 0]
    for name in VENDORS[vendor].shared:
        digits = name.lstrip("URs")
        found[name] = 64 | (int(digits) // 4 % 4 << 30 if digits.isdigit() and int(digits) % 2 else 0)
    return found


def accessed(vendor: str, statement: str) -> str:
    """What a statement leaves in registers and in shared memory, and what is counted of its access."""
    threads, is_float = 128 if "GMMA" in statement else 64, FLOATS.search(statement) is not None
    machine = VENDORS[vendor].machine(statement, threads, with_tensor(is_float=is_float))
    shared = words_of("shared", is_float=is_float).reshape(1, -1)
    addresses = 4 * np.arange(MEMORY).reshape(1, -1)
    machine.shared_memory.store(addresses, 4, shared, np.ones(addresses.shape, bool))
    memory = machine.memory
    memory.values = LaunchValues(memory.regions, NEAREST)
    found = after(machine, (places if ACCESS.match(statement) else numbers)(vendor, machine.threads))
    told = [f"{name} {shown(value)}" for name, value in sorted(found.items())]
    told += [f"{name} {getattr(machine.counters, name)[0]}" for name in COUNTED if getattr(machine.counters, name)[0]]
    for tensor in memory.tensors:
        marks = {"read": tensor.read_marks, "written": tensor.written_marks, "updated": tensor.update_marks}
        told += [f"{word} {tensor.count_touched(of)}" for word, of in marks.items() if of is not None and of.any()]
        content, known, writers = memory.values.stored(tensor.start, 4 * MEMORY)
        if (writers >= 0).any():
            told.append(f"stored {zlib.crc32(np.where(known, content, 0).tobytes()):08x} {known.sum()}")
    words, stored = machine.shared_memory.load(addresses, 4, np.ones(addresses.shape, bool)) or (shared, shared)
    kept = np.where(stored, words, -1)
    if (kept != shared).any():
        told.append(f"shared {zlib.crc32(kept.tobytes()):08x}")
    told += [
        f"local {at}: {shown(materialize(value))}" for at, value in sorted(machine.local_memory.lane_words.items())
    ]
    return f"{statement} → " + "; ".join(told)


def by_number(machine: Machine, names: Iterable[str]) -> dict[str, tuple[list[int], list[int]]]:
    """What is known of each lane of some registers, and which bits are not."""
    found = {}
    for name in names:
        value = materialize(machine.registers[name])
        bits, data = (value.unknown_bits, value.data) if isinstance(value, UnknownValue) else (0, value)
        width = 1 if np.asarray(as_plain_array(data)).dtype == bool else 0xFFFFFFFF
        unknown, known = (
            np.broadcast_to(np.asarray(as_plain_array(one)).astype(np.int64) & width, machine.shape)
            for one in (bits, data)
        )
        found[name] = ((known & ~unknown).ravel().tolist(), unknown.ravel().tolist())
    return found


def differences(vendor: str, statement: str, registers: Registers, others: Registers, *, affine: bool) -> list[str]:
    """The registers in which a statement leaves something else of the same numbers in another form."""
    one, other = (VENDORS[vendor].machine(statement) for _ in range(2))
    names = {*after(one, registers), *after(other, others, affine=affine)}
    left, right = by_number(one, names), by_number(other, names)
    return [f"{statement}: {name}" for name in names if left[name] != right[name]]


@cache
def sums(vendor: str, lanes: int) -> tuple[Registers, Registers]:
    """A number of the CTA plus one of the lane in each register: as arrays, and as such sums."""
    plain, affine = dict(edges(vendor, lanes)), dict(edges(vendor, lanes))
    for name in VENDORS[vendor].own:
        chance = seeded(name, "sums")
        rows, steps = (
            chance.integers(0, 1 << 16, (CTAS, 1)) * 64,
            chance.integers(1, 9) * np.arange(lanes).reshape(1, -1),
        )
        affine[name], plain[name] = AffineValue(rows, steps), rows + steps
    return plain, affine


@cache
def alike(vendor: str, lanes: int) -> tuple[Registers, Registers]:
    """One number at an edge for all lanes of each register: as arrays, and as a number."""
    plain, one = dict(edges(vendor, lanes)), dict(edges(vendor, lanes))
    for name in VENDORS[vendor].own:
        one[name] = int(seeded(name, "alike").choice(EDGES))
        plain[name] = np.full((CTAS, lanes), one[name], np.int64)
    return plain, one


@cache
def partly(vendor: str, lanes: int) -> tuple[Registers, Registers, Registers]:
    """Numbers at edges, of which some bits are unknown; and twice with other numbers for these bits."""
    first, second, unknown = (dict(edges(vendor, lanes)) for _ in range(3))
    for name in VENDORS[vendor].own:
        chance = seeded(name, "partly")
        if chance.random() < 0.5:
            bits = chance.choice([0, 0, 0xFF, 0xFFFF0000, 0xFFFFFFFF, 1], (CTAS, lanes)).astype(np.int64)
            second[name] = first[name] ^ (chance.choice(EDGES, (CTAS, lanes)) & bits)  # type: ignore[operator]
            unknown[name] = UnknownValue(first[name], bits, 1)  # type: ignore[arg-type]
    for name in VENDORS[vendor].shared:
        chance = seeded(name, "partly")
        if chance.random() < 0.2:
            bit = int(chance.choice([0xFF, 0xFFFFFFFF]))
            second[name] = first[name] ^ (int(chance.choice(EDGES)) & bit)  # type: ignore[operator]
            unknown[name] = UnknownValue(first[name], bit, 1)  # type: ignore[arg-type]
    return first, second, unknown


def wrongly_known(vendor: str, statement: str) -> list[str]:
    """The registers of which a statement claims to know a bit that depends on an unknown one."""
    machine = VENDORS[vendor].machine(statement)
    first, second, unknown = partly(vendor, machine.threads)
    claimed = by_number(machine, after(machine, unknown))
    found = []
    for registers in (first, second):
        other = VENDORS[vendor].machine(statement)
        after(other, registers)
        for name, (real, more) in by_number(other, claimed).items():
            lanes = zip(*claimed[name], real, more, strict=True)
            if any((a ^ b) & ~unclaimed & ~unsure for a, unclaimed, b, unsure in lanes):
                found.append(f"{statement}: {name}")
    return found


def hold(file: Path, found: list[str], request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden", default=False):
        file.write_text("\n".join(found) + "\n", encoding="utf-8")
    before = file.read_text(encoding="utf-8").splitlines()
    changed = [f"{one} (was {old.partition(' → ')[2]})" for one, old in zip(found, before, strict=True) if one != old]
    assert not changed, "\n".join(changed)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_statement_computes_what_it_did(vendor: str, request: pytest.FixtureRequest) -> None:
    hold(FOLDER / f"{vendor}.txt", [told(vendor, statement) for statement in statements(vendor)], request)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_statement_accesses_what_it_did(vendor: str, request: pytest.FixtureRequest) -> None:
    found = [accessed(vendor, statement) for statement in statements(f"{vendor}_memory")]
    hold(FOLDER / f"{vendor}_memory.txt", found, request)


@pytest.mark.parametrize("vendor", VENDORS)
def test_other_forms_of_statements_compute_what_they_did(vendor: str, request: pytest.FixtureRequest) -> None:
    hold(FOLDER / f"{vendor}_forms.txt", [told(vendor, form) for form in statements(f"{vendor}_forms")], request)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_other_forms_of_statements_access_what_they_did(vendor: str, request: pytest.FixtureRequest) -> None:
    found = [accessed(vendor, statement) for statement in statements(f"{vendor}_forms_memory")]
    hold(FOLDER / f"{vendor}_forms_memory.txt", found, request)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_statement_is_read_as_it_was(vendor: str, request: pytest.FixtureRequest) -> None:
    lists = ("", "_memory", "_forms", "_forms_memory")
    asked = [statement for name in lists for statement in statements(f"{vendor}{name}")]
    module = format_of(VENDORS[vendor].stage).parse(VENDORS[vendor].source(asked), VENDORS[vendor].stage)
    instructions = module.functions[0].instructions
    found = []
    for one in instructions:
        results, reads = (" ".join(names) for names in one.operands)
        found.append(
            f"{one.guard or ''} {one.text} → {one.opcode} {one.kind.name.lower()}: {results} ← {reads}".strip()
        )
    assert len(found) >= len(asked)
    hold(FOLDER / f"{vendor}_read.txt", found, request)


@pytest.mark.parametrize("every", [16, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_form_of_an_operand_changes_no_result(vendor: str, every: int) -> None:
    found = []
    for statement in without_memory(vendor)[::every]:
        lanes = VENDORS[vendor].machine(statement).threads
        found += differences(vendor, statement, *sums(vendor, lanes), affine=True)
        found += differences(vendor, statement, *alike(vendor, lanes), affine=False)
    assert found == []


@pytest.mark.parametrize("every", [16, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.parametrize("vendor", VENDORS)
def test_no_bit_is_known_that_an_unknown_bit_could_change(vendor: str, every: int) -> None:
    assert [one for statement in without_memory(vendor)[::every] for one in wrongly_known(vendor, statement)] == []
