"""Every figure says where it stands, or why it is not known; files that disagree are both named."""

import pytest

from artifact_inspector.analysis.resources.usage import find_resources
from artifact_inspector.files.binary import Cubin, Hsaco, StackAccess
from artifact_inspector.formats._resource_figures import amdgcn_figures, ptx_figures
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Module, Stage


def taken(target, metadata, *, ptx=None, amdgcn=None, **binary):
    """The resources, by attributes as the formats name them."""

    def module(attributes):
        return Module(Stage.PTX, "k", (), attributes)

    return find_resources(
        target,
        metadata,
        ptx=None if ptx is None else ptx_figures(module(ptx)),
        amdgcn=None if amdgcn is None else amdgcn_figures(module(amdgcn)),
        named_target=(amdgcn or {}).get("target"),
        **binary,
    )


A100, MI300X, MI100 = parse_target("A100"), parse_target("MI300X"), parse_target("MI100")
METADATA = {"num_warps": 4, "shared": 8192, "target": {"backend": "cuda", "arch": 80}}
# The directives of a real matmul for gfx942 (Triton 3.9), where 256 + 134 = 390.
AMDGCN = {
    "target": "gfx942",
    "vgpr_count": "390",
    "agpr_count": "134",
    "sgpr_count": "16",
    "vgpr_spill_count": "0",
    "sgpr_spill_count": "0",
    "wavefront_size": "64",
    "private_segment_fixed_size": "0",
    "group_segment_fixed_size": "0",
    "max_flat_workgroup_size": "256",
}


def cubin(*stack, calls=(), **fields):
    said = {"registers": 40, "frame_bytes": 72, "static_shared": 0, "threads": 128, "barriers": 1}
    said |= fields
    return Cubin("k", parse_target("sm_80"), **said, calls=calls, stack=stack)


def store(offset, size):
    return StackAccess(True, offset, size)


def load(offset, size):
    return StackAccess(False, offset, size)


def test_without_a_cubin_the_reason_is_given():
    found = taken(A100, METADATA, ptx={"reqntid": "128"})
    assert found.registers == (None, "no cubin in the cache, and ptxas decides it")
    assert found.spill_bytes.value is None
    assert (found.shared.value, found.warps_per_block.value) == (8192, 4)
    assert found.contradictions == ()


@pytest.mark.parametrize(
    ("target", "unreadable", "reason"),
    [
        (A100, True, "the binary in the cache could not be read"),
        (None, False, "no binary in the cache, and the GPU is unknown"),
        (MI300X, True, "no AMDGCN text in the cache, and the hsaco could not be read"),
    ],
)
def test_the_reason_is_true_of_the_cache(target, unreadable, reason):
    found = taken(target, {}, unreadable=unreadable)
    assert found.spill_bytes == (None, reason)


def test_a_cubin_gives_registers_stack_and_barriers_with_their_place():
    found = taken(A100, METADATA, binary=cubin())
    assert found.registers == (40, "cubin, EIATTR_REGCOUNT")
    assert found.scratch_bytes == (72, "cubin, EIATTR_FRAME_SIZE")
    assert (found.barriers.value, found.static_shared.value) == (1, 0)
    assert (found.spill_bytes.value, found.reload_bytes.value) == (0, 0)


def test_local_memory_is_spills_where_no_address_is_computed():
    found = taken(A100, METADATA, binary=cubin(store(0, 12), store(8, 8), load(0, 4)))
    assert (found.spill_bytes.value, found.reload_bytes.value) == (20, 4)


# The counts of a sine kernel for sm_75 with 32 registers, whose 28 bytes of PTX local memory stay an array:
# ptxas -v says 64 bytes spill stores, 40 bytes spill loads.
SINE = (store(None, 64), store(24, 64), store(32, 64), load(None, 192), load(40, 40))


def test_spills_lie_above_what_the_ptx_declares():
    found = taken(A100, METADATA, ptx={"local": "28"}, binary=cubin(*SINE))
    assert (found.spill_bytes.value, found.reload_bytes.value) == (64, 40)
    assert "28 bytes" in found.spill_bytes.source


@pytest.mark.parametrize(
    ("binary", "reason"),
    [
        (cubin(*SINE), "computes addresses of local memory"),
        (cubin(store(0, 24), calls=("vprintf",)), "calls a function"),
    ],
)
def test_spills_and_arrays_cannot_be_told_apart_without_ptx(binary, reason):
    found = taken(A100, METADATA, binary=binary)
    assert found.spill_bytes.value is None
    assert reason in found.spill_bytes.source


def test_spills_are_unknown_where_a_function_of_the_ptx_has_an_array_too():
    found = taken(A100, METADATA, ptx={}, binary=cubin(*SINE))
    reason = "functions of the PTX also have local arrays, which may be in the kernel's frame"
    assert found.spill_bytes == (None, reason)


def test_arguments_of_a_call_are_not_told_from_spills_where_nothing_is_declared():
    found = taken(A100, METADATA, ptx={"local": "0"}, binary=cubin(store(0, 24), calls=("vprintf",)))
    reason = "the code calls vprintf, whose arguments are in local memory like spills"
    assert found.spill_bytes == (None, reason)
    told = taken(A100, METADATA, ptx={"local": "8"}, binary=cubin(store(0, 24), store(8, 4), calls=("f",)))
    assert told.spill_bytes.value == 4


def test_a_kernel_that_prints_and_has_no_local_memory_spills_nothing():
    assert taken(A100, METADATA, binary=cubin(calls=("vprintf",))).spill_bytes.value == 0


def test_instructions_of_before_volta_are_not_read():
    old = Cubin("k", None, 32, 0, 0, 128, 1, (), None)
    found = taken(None, {}, binary=old)
    assert found.registers.value == 32
    assert found.spill_bytes == (None, "the cubin's instructions are not those of sm_70 and later")


def test_amdgcn_gives_both_kinds_of_vector_registers():
    found = taken(MI300X, {"num_warps": 4, "shared": 65536}, amdgcn=AMDGCN)
    assert found.registers == (390, "amdgcn, .vgpr_count")
    assert (found.vector_registers.value, found.accumulation_registers.value) == (256, 134)
    assert found.scalar_registers.value == 16
    assert found.warps_per_block == (4, "amdgcn, .max_flat_workgroup_size: 256 threads")
    assert found.contradictions == ()


def test_a_spilled_vector_register_is_four_bytes_of_a_thread():
    # LLVM's figures for a matmul on gfx950: 70 spilled, 284 bytes of scratch
    said = AMDGCN | {"vgpr_spill_count": "70", "private_segment_fixed_size": "284"}
    found = taken(MI300X, {}, amdgcn=said)
    assert (found.spill_bytes.value, found.scratch_bytes.value) == (280, 284)


@pytest.mark.parametrize(("vector", "accumulation", "proper"), [("214", "80", 214), ("32", "32", None)])
def test_separate_files_give_the_larger_number_only(vector, accumulation, proper):
    said = AMDGCN | {"target": "gfx908", "vgpr_count": vector, "agpr_count": accumulation}
    found = taken(MI100, {}, amdgcn=said)
    assert (found.registers.value, found.vector_registers.value) == (int(vector), proper)


def test_an_hsaco_stands_in_for_the_text():
    note = Hsaco("k", MI300X, {key: int(value) for key, value in AMDGCN.items() if value.isdigit()})
    found = taken(MI300X, {"num_warps": 4}, binary=note)
    assert found.registers == (390, "hsaco, .vgpr_count")
    assert taken(MI300X, {}).registers.value is None


def test_a_file_that_does_not_say_is_none_that_is_missing():
    fewer = {key: value for key, value in AMDGCN.items() if key != "vgpr_count"}
    found = taken(MI300X, {"num_warps": 4}, amdgcn=fewer).registers
    assert (found.value, found.source) == (None, "no .vgpr_count in the file")


def test_the_mode_of_a_workgroup_is_read_on_gfx10_to_gfx12():
    said = {"target": "gfx1100", "vgpr_count": "96", "workgroup_processor_mode": "1"}
    assert taken(parse_target("gfx1100"), {}, amdgcn=said).workgroup_processor is True
    assert taken(MI300X, {}, amdgcn=AMDGCN).workgroup_processor is None


@pytest.mark.parametrize(
    ("target", "metadata", "files", "sentence", "places"),
    [
        (
            A100,
            METADATA | {"num_warps": 8},
            {"ptx": {"reqntid": "128, 1, 1"}},
            "warps per block: 4 against 8",
            ("ptx, .reqntid 128, 1, 1: 128 threads", "metadata, num_warps"),
        ),
        (
            A100,
            METADATA | {"shared": 1024},
            {"binary": cubin(static_shared=2048)},
            "shared memory: 2048 static bytes in the file, but 1024 bytes in total",
            ("cubin, .nv.shared", "metadata, shared"),
        ),
        (
            parse_target("H100"),
            METADATA,
            {"binary": cubin()},
            "target: sm_90 against sm_80",
            ("target", "cubin, ELF flags"),
        ),
        (
            MI300X,
            {"num_warps": 8},
            {"amdgcn": AMDGCN},
            "warps per block: 4 against 8",
            ("amdgcn, .max_flat_workgroup_size: 256 threads", "metadata, num_warps"),
        ),
        (
            MI300X,
            {},
            {"amdgcn": AMDGCN, "binary": Hsaco("k", MI300X, {"vgpr_count": 128})},
            "vgpr count: 390 against 128",
            ("amdgcn, .vgpr_count", "hsaco, .vgpr_count"),
        ),
        (
            MI300X,
            {},
            {"amdgcn": AMDGCN | {"wavefront_size": "32", "max_flat_workgroup_size": "128"}},
            "lanes of a wave: 32 against 64",
            ("amdgcn, .wavefront_size", "target"),
        ),
    ],
)
def test_files_that_disagree_are_both_named(target, metadata, files, sentence, places):
    (found,) = taken(target, metadata, **files).contradictions
    assert (found.message, found.locations) == (sentence, places)


def test_ptx_for_an_older_architecture_than_its_cubins_is_no_contradiction():
    # Triton 2.0 writes sm_86 into the PTX of everything newer.
    found = taken(A100, METADATA, ptx={"target": "sm_75", "reqntid": "128"}, binary=cubin())
    assert found.contradictions == ()
