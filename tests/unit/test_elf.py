"""What is read of an ELF file is what pyelftools reads of it."""

import io
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from artifact_inspector.files.elf import read_notes, read_sections, section_content, symbol_name
from artifact_inspector.hardware.targets import EM_AMDGPU, EM_CUDA

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted(path for path in FIXTURES.rglob("*") if path.suffix in (".cubin", ".hsaco"))


def test_sections_symbols_and_notes_are_those_of_pyelftools():
    symbols = notes = 0
    for path in FILES:
        data = path.read_bytes()
        judge = ELFFile(io.BytesIO(data))
        ours = read_sections(data, "file", EM_CUDA if path.suffix == ".cubin" else EM_AMDGPU)
        theirs = list(judge.iter_sections())
        assert [(s.name, s.flags, s.offset, s.size, s.link) for s in ours] == [
            (s.name, s["sh_flags"], s["sh_offset"], s["sh_size"], s["sh_link"]) for s in theirs
        ]
        for our, their in zip(ours, theirs, strict=True):
            if their["sh_type"] != "SHT_NOBITS":
                assert section_content(our, data) == their.data()
            if isinstance(their, SymbolTableSection):
                names = [symbol.name for symbol in their.iter_symbols()]
                assert [symbol_name(at, our, ours, data) for at in range(len(names))] == names
                symbols += len(names)
            if isinstance(their, NoteSection):
                said = [(note["n_name"], note["n_descdata"]) for note in their.iter_notes()]
                assert [(owner, content) for owner, _, content in read_notes(our, data)] == said
                notes += len(said)
    assert symbols > 100
    assert notes > 3
