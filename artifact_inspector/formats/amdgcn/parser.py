"""AMDGCN assembly as LLVM's AMDGPU back end prints it (AMD ISA documents; LLVM AMDGPUUsage), gfx9 to gfx12.

A dual-issue line (`v_dual_x … :: v_dual_y …`) gives two instructions. Operands and comments show what a wait waits for,
what writes LDS and what reloads a spilled register, so the parser decides that.

Cannot read: see `FORMAT.cannot_read`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from artifact_inspector.formats import _amd
from artifact_inspector.formats._assembly import BlockExit, LineTableFiles, split_blocks
from artifact_inspector.formats._conditions import AMDGCN
from artifact_inspector.formats._format import DECODE_CACHE_SIZE, TRANSFER_KINDS, Format
from artifact_inspector.formats._problems import NOT_CLOSED, ProblemLog
from artifact_inspector.formats._resource_figures import amdgcn_figures
from artifact_inspector.formats.amdgcn.opcodes import OPCODES, kind_of
from artifact_inspector.model import EventKind, Instruction, Location, MatrixOp, Operands, Stage, Transfer
from artifact_inspector.model.module import Function, Module
from artifact_inspector.model.text import SourceText, parse_integer

__all__ = ["FORMAT", "OPCODES", "parse"]

_TARGET = re.compile(r'^[ \t]*\.amdgcn_target[ \t]+"[^"\n]*?(gfx[0-9a-f]+(?:-[\w-]*generic)?)', re.M)
# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_NUMBERS = re.compile(
    r"\n[ \t]+(?:- )?\.(vgpr_count|agpr_count|sgpr_count|vgpr_spill_count|sgpr_spill_count|wavefront_size"
    r"|private_segment_fixed_size|group_segment_fixed_size|max_flat_workgroup_size"
    r"|workgroup_processor_mode|amdhsa_workgroup_processor_mode"
    r"|amdhsa_next_free_vgpr|amdhsa_next_free_sgpr|amdhsa_accum_offset):?[ \t]+(\d+)"
)
_FILE = re.compile(r'\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"(?:[ \t]+"([^"\n]*)")?')
_FUNCTION = re.compile(r'\.type[ \t]+"?([\w$.@]+?|(?<=")[^"\n]*)"?,[ \t]*@function')
_LOC = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\b(?:\s+(\d{1,9})\b)?")
_OPCODE = re.compile(r"[a-z][a-z0-9_]*\Z")
_RENAMED = re.compile(r"(?<![^\s,])[^\s,]+ /\*([^*]*)\*/")
_REGISTER = re.compile(
    r"(?<![\w.$@])(?:(v|s|a|ttmp)(?:(\d{1,4})\b|\[(\d{1,4}):(\d{1,4})\])|(vcc|exec|flat_scratch)(_lo|_hi)?\b|(m0|scc)\b)"
)

_CODE_OBJECT, _END_OF_METADATA = ".amdhsa_code_object_version", ".end_amdgpu_metadata"
"""The compiler writes the first near the top of a file, and the second after all code."""
_SCRATCH = (EventKind.LOCAL_LOAD, EventKind.LOCAL_STORE)
_LINE_MARKS = (".Ltmp", ".Lfunc_begin", ".Lcu_", ".Lpcsec", ".Lpost_")
_EXITS = ("s_branch", "s_cbranch", "s_endpgm", "s_setpc", "s_set_pc", "s_add_pc")
_BY_OPERANDS = (*_EXITS, "s_clause", "buffer_load", "buffer_store", "tbuffer_load", "s_waitcnt", "v_dual_")
_CODE_SECTION = re.compile(r"\n\t\.(?:section\t\.)?text")
_DISTANCE = re.compile(r"(?<![\w.$])([\w.$]+)-\.Lpost_(?:getpc|addpc)\d*\b|\.Lpost_getpc\d*-([\w.$]+)")
_MAX_LONG_BRANCH = 6
"""Maximum instructions of a long branch before its `s_setpc`: LLVM keeps them together."""
_NO_RESULT = re.compile(
    r".*_store_|.*_to_lds|.*_from_lds|global_load_lds|buffer_load_lds|.*prefetch|ds_write|ds_store(?!xchg)"
    r"|s_(?:cmpk?_|bitcmp|wait|barrier|branch|cbranch|endpgm|setpc|setprio|setreg|set_|nop|sleep|trap|clause"
    r"|delay|sendmsg(?!_rtn)|sched|code_end|dcache|icache|inst_pre|sethalt|rfe|wakeup|alloc_vgpr|ttrace)"
    r"|v_nop|exp\b|exp_|ds_nop|ds_gws|buffer_(?:gl|inv|wb)|global_(?:inv|wb)"
)
_ATOMIC = re.compile(
    r"(?:global|flat|buffer|image)_atomic|ds_(?!.*_rtn|append|consume|bpermute|permute|swizzle|read|load)"
)
_RETURNS = re.compile(r"\b(?:glc|sc0)\b|ATOMIC_RETURN")
_TWO_RESULTS = re.compile(
    r"v_(?:add|addc|sub|subb|subbrev|subrev|subrevb|mad)_co_|v_mad_[iu]64_[iu]32|v_div_scale|v_swap|v_permlane\d+_swap"
)
_READS_RESULT = re.compile(
    r"v_(?:dual_)?(?:fmac|mac_|pk_fmac|dot\w*c_|dot\w*acc|smfmac|swmmac|writelane|swap|permlane\d+_swap)"
    r"|s_(?:fmac|addk|mulk|cmovk?_|bitset|cmov)|.*_d16(?:_hi)?(?:_|$)"
)
_COMPARE_MASK = re.compile(r"v_cmpx_")


def sniff(text: str) -> bool:
    """True if the text names an AMDGCN target, as LLVM does at the top of every module."""
    return ".amdgcn_target" in text[:20_000]


def parse(source: SourceText, stage: Stage) -> Module:
    """The module in an AMDGCN text; what cannot be read is skipped and reported in `problems`.

    Raises:
        ParseError: the text holds no function.
    """
    # A carriage return does not end a line here, so line numbers stay those of the file.
    text = source.text.replace("\r", "") if "\r" in source.text else source.text
    target_match = _TARGET.search(text)
    target = {} if target_match is None else {"target": target_match[1]}
    # Most of the file is data: remove it before looking at single lines.
    code = _strip_data_sections(text)
    log = ProblemLog(source)
    files = ((number, str(PurePosixPath(a, b))) for number, a, b in _FILE.findall(code))
    parser = _AmdgcnParser(LineTableFiles(files, log), set(_FUNCTION.findall(code)), target.get("target", ""), log)
    _parse_lines(code.split("\n"), parser)
    numbers: dict[str, str] = {}
    for key, value in _NUMBERS.findall(text):
        numbers.setdefault(key.removeprefix("amdhsa_"), value)
    if _CODE_OBJECT in text and _END_OF_METADATA not in text:
        log.report_truncation(text.count("\n") + 1, "the metadata after the code is missing or not closed")
    return log.build_module(
        stage, parser.functions, target | numbers, lacks="no AMDGCN function",
        remedy="Compile the kernel again: the file is empty, truncated, or not AMDGCN.",
    )  # fmt: skip


def _strip_data_sections(text: str) -> str:
    """The text with every section without code replaced by as many newlines."""
    pieces, start = [], 0
    while (at := text.find("\n\t.section\t", start)) >= 0:
        if text.startswith((".text", '".text'), at + 11):
            pieces.append(text[start : at + 2])
            start = at + 2
            continue
        code_section = _CODE_SECTION.search(text, at + 2)
        end = len(text) if code_section is None else code_section.start()
        pieces += (text[start:at], "\n" * text.count("\n", at, end))
        start = end
    return "".join([*pieces, text[start:]]).rstrip()


def _parse_lines(lines: list[str], parser: _AmdgcnParser) -> None:
    """Process all lines: repeated lines here, all others in the reader."""
    opcodes, locations, append = parser.opcodes, parser.locations, parser.append
    location: Location | None = None
    new, unset = tuple.__new__, ()
    for number, line in enumerate(lines, 1):
        entry = opcodes.get(line.partition(" ")[0])
        if entry is not None:
            text = line.partition(";")[0].strip() if ";" in line else line.strip()
            append(new(Instruction, (number, *entry, location, None, text, _decode)))
            continue
        new_location = locations.get(line, unset)
        if new_location is not unset:
            parser.location = location = new_location
            continue
        first_character = line[:1]
        if first_character == "\t" or first_character == " ":
            parser.parse_indented(number, line)
        elif first_character:
            parser.parse_unindented(number, line)
        append, location = parser.append, parser.location
    parser.finish()


class _AmdgcnParser:
    """Processes lines that differ from all earlier ones, and keeps the parser state."""

    def __init__(self, paths: LineTableFiles, function_names: set[str], target: str, log: ProblemLog) -> None:
        """`function_names`: the functions that the file declares."""
        self.functions: list[Function] = []
        self._log = log
        self.opcodes: dict[str, tuple[str, EventKind]] = {}
        """First word of a line, including its indent → its opcode and kind."""
        self.locations: dict[str, Location | None] = {}
        """Location by the whole `.loc` line."""
        self.location: Location | None = None
        self.append = list[Instruction]().append
        self._paths = paths
        self._function_names = function_names
        self._target = target
        self._in_asm = False
        self._body: _AmdgcnBody | None = None

    def parse_indented(self, number: int, line: str) -> None:
        """Process a statement, a directive or a comment."""
        code = line.strip()
        first = code[:1]
        if first == ";":
            self._track_inline_asm(code)
        elif first == ".":
            if code.startswith(".loc") and code[4:5].isspace():
                self._parse_loc(number, line)
        elif first and self._body is not None:
            self._parse_statement(number, line, code, self._body)

    def _track_inline_asm(self, code: str) -> None:
        if code.startswith((";#ASM", ";;#ASM")):
            self._in_asm = "START" in code

    def _parse_loc(self, number: int, line: str) -> None:
        """Process `.loc 1 3 5 ; a.py:3:5 @[ b.py:7:9 ]`; line 0 means no line."""
        match = _LOC.match(line)
        if match is None or int(match[2]) == 0:
            self.location = None
        else:
            inner = self._paths.frame(number, match[1], match[2], match[3])
            self.location = self._paths.chain(number, inner, self._paths.callers(line.partition(";")[2]))
        self.locations[line] = self.location
        if self._body is not None and self._body.location is None:
            self._body.location = self.location

    def _parse_statement(self, number: int, line: str, code: str, body: _AmdgcnBody) -> None:
        code, _, comment = code.partition(";")
        code = code.rstrip()
        opcode = code.split(None, 1)[0]
        if opcode.endswith(":"):
            return  # a label of inline asm
        if _OPCODE.match(opcode) is None:
            self._log.report(number, f"not an instruction: {code[:60]!r}")
        elif opcode.startswith(_BY_OPERANDS):
            body.add_by_operands(number, code, comment, self.location, self._target, is_outer=not self._in_asm)
        else:
            kind = kind_of(opcode)
            self.append(Instruction(number, opcode, kind, self.location, None, code, _decode))
            first_word = line.partition(" ")[0]
            if first_word.strip() == opcode:
                self.opcodes[first_word] = (opcode, kind)

    def parse_unindented(self, number: int, line: str) -> None:
        """Process a label, the start or end of a function, or a comment."""
        body = self._body
        if line[0] == ";":
            if line.startswith("; %bb.") and body is not None:
                body.add_label(line[2:].partition(":")[0])
            else:
                self._track_inline_asm(line)
        elif line[0] != ".":
            self._begin_function(number, line)
        elif body is not None:
            if line.startswith(".Lfunc_end"):
                self._end_function(body)
            elif not self._in_asm and not line.startswith(_LINE_MARKS):
                name, colon, _ = line.partition(":")
                if colon:
                    body.add_label(name)

    def _begin_function(self, number: int, line: str) -> None:
        # The symbol of a function that is not inlined contains its signature, in quotes.
        name, colon, _ = line[1:].partition('":') if line[0] == '"' else line.partition(":")
        if colon and (name in self._function_names or (self._body is None and not self._function_names)):
            if self._body is not None:
                self._end_function(self._body)
            self._body = _AmdgcnBody(name, number)
            self.append, self.location, self._in_asm = self._body.instructions.append, None, False
            self.opcodes.clear()

    def _end_function(self, body: _AmdgcnBody) -> None:
        self.functions.append(body.build(self._log))
        self._body = None
        self.opcodes.clear()

    def finish(self) -> None:
        """Close a function that has no end."""
        body = self._body
        if body is not None:
            self._log.report_truncation(body.line, f"function {body.name} {NOT_CLOSED}")
            self.functions.append(body.build(self._log))


class _AmdgcnBody:
    """A function under construction."""

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.location: Location | None = None
        self.instructions: list[Instruction] = []
        self.labels: list[tuple[int, str]] = []
        self.exits: dict[int, BlockExit] = {}
        self.clause_followers: set[int] = set()

    def add_label(self, name: str) -> None:
        self.labels.append((len(self.instructions), name))

    def add_by_operands(
        self, line: int, code: str, comment: str, location: Location | None, target: str, *, is_outer: bool
    ) -> None:
        """Add a statement whose kind or block exit depends on its operands."""
        for text in code.split(" :: "):
            opcode = text.split(None, 1)[0]
            if opcode.startswith(_EXITS) and is_outer:
                label = text.split()[-1] if "branch" in opcode else self._long_branch_target(text)
                targets = () if label is None else (label,)
                self.exits[len(self.instructions)] = BlockExit(targets, opcode.startswith("s_cbranch"))
            if opcode == "s_clause":
                # The operand is the length minus one; only the first load gets a `.loc`.
                first = len(self.instructions) + 2
                self.clause_followers.update(range(first, first + min(63, parse_integer(text.split()[-1]) or 0)))
            kind = _kind_by_operands(opcode, text, comment, target)
            self.instructions.append(Instruction(line, opcode, kind, location, None, text.strip(), _decode))

    def _long_branch_target(self, text: str) -> str | None:
        """The label of a branch beyond 16 bits of dwords, which adds a distance to the program counter.

        It consists of `s_getpc`, additions of the label's distance to both halves, and `s_setpc`; gfx1250 has
        `s_add_pc`.

        **Source**: SIInstrInfo::insertIndirectBranch in LLVM's lib/Target/AMDGPU.
        """
        if (match := _DISTANCE.search(text)) is not None:
            return match[1]
        low = _decode(text).reads[:1]  # of the pair of registers
        for earlier in reversed(self.instructions[-_MAX_LONG_BRANCH:]):
            match = _DISTANCE.search(earlier.text)
            if match is not None and low and earlier.operands.results[:1] == low:
                return match[1] or match[2]
            if earlier.opcode.startswith(("s_getpc", "s_get_pc")):
                break
        return None

    def build(self, log: ProblemLog) -> Function:
        # Branches name `.LBB0_3`; `%bb.3` only shows that a block starts.
        titles = dict(sorted(self.labels, key=lambda mark: mark[1].startswith(".")))
        blocks, missing = split_blocks(len(self.instructions), self.labels, self.exits, titles, log, self.line)
        for name in sorted({name for _, name in missing}):
            log.report_truncation(self.line, f"no label {name} in function {self.name}")
        return Function(
            self.name, self.line, self.location, (), tuple(self.instructions), blocks,
            clause_followers=frozenset(self.clause_followers),
        )  # fmt: skip


def _kind_by_operands(opcode: str, text: str, comment: str, target: str) -> EventKind:
    kind = kind_of(opcode)
    if opcode == "s_waitcnt":
        return EventKind.OTHER if _amd.wait_of(opcode, text, target) is None else EventKind.WAIT
    if kind is EventKind.GLOBAL_LOAD:
        if "Folded Reload" in comment:
            return EventKind.LOCAL_LOAD
        return EventKind.ASYNC_COPY if "lds" in text.split() else kind
    return EventKind.LOCAL_STORE if kind is EventKind.GLOBAL_STORE and "Folded Spill" in comment else kind


@lru_cache(maxsize=DECODE_CACHE_SIZE)
def _decode(text: str) -> Operands:
    """Operands: usually the first one is the result (LLVM AMDGPUInstructionSyntax)."""
    results: list[str] = []
    reads: list[str] = []
    for statement in text.split(" :: "):
        opcode, _, operand_text = _RENAMED.sub(r"\1", statement).strip().partition(" ")
        operands = [_registers(operand) for operand in operand_text.split(",")] if operand_text else []
        count = 1
        if _NO_RESULT.match(opcode) or (opcode.startswith("buffer_load") and "lds" in operand_text.split()):
            count = 0
        elif _ATOMIC.match(opcode):
            count = 1 if _RETURNS.search(operand_text) else 0
        elif _COMPARE_MASK.match(opcode):
            count = 1 if len(operands) > 2 else 0  # gfx10 and later write exec only
        elif _TWO_RESULTS.match(opcode):
            count = 2
        result_registers = [name for operand in operands[:count] for name in operand]
        results += result_registers
        reads += [name for operand in operands[count:] for name in operand]
        is_updated = _READS_RESULT.match(opcode) or (count and opcode.startswith("buffer_atomic"))
        if is_updated or "UNUSED_PRESERVE" in operand_text:
            reads += result_registers
    return Operands(tuple(results), tuple(reads))


def _registers(operand: str) -> list[str]:
    names: list[str] = []
    for bank, single_number, first, last, special, half_suffix, single in _REGISTER.findall(operand):
        if single_number:
            names.append(bank + single_number)
        elif first:
            names += [f"{bank}{number}" for number in range(int(first), min(int(last), int(first) + 1023) + 1)]
        elif single:
            names.append(single)
        else:
            names += [special + half_suffix] if half_suffix else [f"{special}_lo", f"{special}_hi"]
    return names


def _transfer(instruction: Instruction, module: Module) -> Transfer | None:
    # Scratch accesses use the same counters as global memory.
    if instruction.kind not in TRANSFER_KINDS and instruction.kind not in _SCRATCH:
        return None
    return _amd.transfer_of(instruction.opcode, instruction.text, module.attributes.get("target", ""))


def _matrix(instruction: Instruction, _module: Module) -> MatrixOp | None:
    text = instruction.text
    return _amd.matrix_of(instruction.opcode, _amd.result_registers(text), _amd.operand_formats(text))


FORMAT = Format(
    name="AMDGCN", stages=(Stage.AMDGCN,), parse=parse, sniff=sniff,
    wait_of=lambda x, module: _amd.wait_of(x.opcode, x.text, module.attributes.get("target", "")), transfer=_transfer,
    matrix_of=_matrix, bank_of=_amd.register_bank,
    accesses_shared=lambda instruction: instruction.opcode.startswith("ds_"), traits=_amd.TRAITS.lookup,
    conditions=AMDGCN, figures=amdgcn_figures,
    cannot_read=(
        "Implicit registers (scc, exec, and vcc where not written) are not operands.",
        "Spills on gfx9 and gfx10 are recognised only by LLVM's `Folded` comments.",
        "An `s_waitcnt` for stores, LDS or scalar loads does not count as a wait.",
        "Branches and labels inside inline asm do not create blocks or edges.",
    ),
)  # fmt: skip
