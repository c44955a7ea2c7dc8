"""What a cubin and an hsaco say of their kernel, and that a damaged file is refused in a sentence."""

import re
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from artifact_inspector.errors import CacheError, InspectorError
from artifact_inspector.files.binaries import read_cubin, read_hsaco
from artifact_inspector.files.binary import StackAccess

FIXTURES = Path(__file__).parents[2] / "fixtures"


def saved(pattern):
    (path,) = FIXTURES.glob(pattern)
    return path


CUBIN = saved("3.6.0/sm_80/copy/*/copy.cubin")
HSACO = saved("3.6.0/gfx942/copy/*/copy.hsaco")

# Encodings as nvdisasm -hex prints them, of sm_120.
STL_0X20 = (0x0000201901007387, 0x0001E80000100800)  # STL [R1+0x20], R25
STL_0X28 = (0x0000281B01007387, 0x0045E80000100800)  # STL [R1+0x28], R27
LDL_0X24 = (0x00002400011B7983, 0x000F680000300800)  # LDL.LU R27, [R1+0x24]
WIDTH = 73 - 64  # bits of the second word that hold the width: 4 is 32 bits, 5 is 64, 6 is 128


def with_code(*instructions):
    """The saved cubin with its first instructions replaced."""
    data = bytearray(CUBIN.read_bytes())
    with CUBIN.open("rb") as file:
        start = ELFFile(file).get_section_by_name(".text.copy")["sh_offset"]
    for number, words in enumerate(instructions):
        struct.pack_into("<QQ", data, start + 16 * number, *words)
    return bytes(data)


def test_a_cubin_says_registers_frame_threads_and_target():
    found = read_cubin(CUBIN.read_bytes())
    # cuobjdump -res-usage: REG:10 STACK:0 SHARED:0; the PTX beside it: .reqntid 128
    assert (found.kernel, found.registers, found.frame_bytes, found.threads) == ("copy", 10, 0, 128)
    assert (found.static_shared, found.barriers, found.calls, found.stack) == (0, 0, (), ())
    assert found.target.arch == "sm_80"


def test_loads_and_stores_of_local_memory_are_counted_by_width_and_offset():
    low, high = STL_0X28
    wide = (low, high + (1 << WIDTH))
    found = read_cubin(with_code(STL_0X20, STL_0X28, wide, LDL_0X24))
    assert set(found.stack) == {StackAccess(True, 0x20, 4), StackAccess(True, 0x28, 4 + 8), StackAccess(False, 0x24, 4)}


def test_an_address_in_another_register_has_no_offset():
    low, high = STL_0X20
    by_r2 = (low & ~(0xFF << 24) | 2 << 24, high)
    assert read_cubin(with_code(by_r2)).stack == (StackAccess(True, None, 4),)


def test_a_negative_offset_stays_negative():
    low, high = LDL_0X24
    below = (low & (1 << 40) - 1 | (-8 & 0xFFFFFF) << 40, high)
    assert read_cubin(with_code(below)).stack == (StackAccess(False, -8, 4),)


@pytest.mark.parametrize("kernel", ["copy", None, "renamed"])
def test_a_file_with_one_kernel_needs_no_name(kernel):
    assert read_cubin(CUBIN.read_bytes(), kernel).kernel == "copy"
    assert read_hsaco(HSACO.read_bytes(), kernel).kernel == "copy"


def test_an_hsaco_says_what_the_text_beside_it_says():
    found = read_hsaco(HSACO.read_bytes())
    text = HSACO.with_suffix(".amdgcn").read_text(encoding="utf-8")
    said = dict(re.findall(r"^ +(?:- )?\.(\w+(?:_count|_size)): +(\d+)", text, re.MULTILINE))
    assert {key: str(found.figures[key]) for key in said if key in found.figures} == {
        key: value for key, value in said.items() if key != "size"
    }
    assert {"vgpr_count", "sgpr_count", "vgpr_spill_count", "wavefront_size"} <= said.keys()
    assert found.target.arch == "gfx942"


@pytest.mark.parametrize("read", [read_cubin, read_hsaco])
@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"//\n.version 8.4\n", b"\x7fELF\x02\x01\x01" + bytes(200)])
def test_what_is_no_such_file_is_refused_with_a_remedy(read, data):
    with pytest.raises(CacheError) as caught:
        read(data)
    assert caught.value.remedy.startswith("Compile the kernel again")


def test_the_other_vendors_binary_is_refused():
    with pytest.raises(CacheError, match="another machine"):
        read_cubin(HSACO.read_bytes())
    with pytest.raises(CacheError, match="another machine"):
        read_hsaco(CUBIN.read_bytes())


@pytest.mark.parametrize(("read", "path"), [(read_cubin, CUBIN), (read_hsaco, HSACO)])
def test_a_file_cut_off_anywhere_is_refused(read, path):
    data = path.read_bytes()
    headers, count = int.from_bytes(data[0x28:0x30], "little"), int.from_bytes(data[0x3C:0x3E], "little")
    for size in range(0, headers + 64 * count, 61):  # nothing behind the table of sections is read
        with pytest.raises(CacheError):
            read(data[:size])


@pytest.mark.parametrize(("read", "path"), [(read_cubin, CUBIN), (read_hsaco, HSACO)])
@pytest.mark.parametrize("value", [0, 1, 0x7F, 0xFF])
def test_a_byte_damaged_anywhere_gives_no_other_error(read, path, value):
    data = bytearray(path.read_bytes())
    headers = int.from_bytes(data[0x28:0x30], "little")
    for at in (*range(64), *range(64, headers, 29), *range(headers, len(data), 5)):
        before, data[at] = data[at], value
        with suppress(InspectorError):
            read(bytes(data))
        data[at] = before


@pytest.mark.parametrize("size", [0, 1, 8, 0x7FFFFFFF])
def test_a_note_whose_name_has_another_length_is_refused(size):
    data = bytearray(HSACO.read_bytes())
    with HSACO.open("rb") as file:
        note = next(s for s in ELFFile(file).iter_sections() if s["sh_type"] == "SHT_NOTE")
    struct.pack_into("<I", data, note["sh_offset"], size)
    content = note["sh_offset"] + 12
    data[content : content + 8] = b"AMDGPUXX"
    with pytest.raises(CacheError):
        read_hsaco(bytes(data))


def test_metadata_nested_without_end_is_refused():
    data = HSACO.read_bytes()
    start = data.index(b"\x83\xaeamdhsa.kernels")
    nested = data[:start] + b"\x91" * 400 + data[start + 400 :]
    with pytest.raises(CacheError, match="damaged"):
        read_hsaco(nested)
