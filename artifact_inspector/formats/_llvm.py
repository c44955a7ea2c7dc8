"""What single LLVM operations move: the sizes of types, and the operands of intrinsics and inline assembly.

Source: LLVM Language Reference Manual; AMDGPUUsage and IntrinsicsAMDGPU.td for the intrinsics of AMD.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.model import Queue, Transfer

__all__ = [
    "arguments_of",
    "asm_operand",
    "instruction_transfer",
    "intrinsic_transfer",
    "split",
    "type_bits",
    "value_of",
]

_BRACKET = re.compile(r'"[^"]*"|[(){}\[\]<>,]')
_TYPE = r"(<\d+ x [^>]+>|\w+(?: addrspace\(\d+\))?\**)"
_LOADED = re.compile(rf"\bload (?:atomic )?(?:volatile )?{_TYPE}, ")
_STORED = re.compile(rf"\bstore (?:atomic )?(?:volatile )?{_TYPE} ")
_EXCHANGED = re.compile(rf"\b(?:atomicrmw|cmpxchg) ([^,]*), {_TYPE} ")
_VECTOR = re.compile(r"<(\d+) x (.*)>")
_FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
_CACHE = re.compile(r"(?:(?<= )|(?<=!))(volatile|nontemporal)\b")
_MANGLED = re.compile(r"\.(?:v(\d+))?(?:i|bf|f)(\d+)(?=\.|$|v\d|p\d)")
_BITS = re.compile(r"\.b(\d+)(?=\.|$)")
_COPIED = re.compile(r"\.c[ag]\.shared\.global\.(\d+)")
_VALUE = re.compile(r'[%@](?:"[^"]*"|[-\w.$]+)$|\b(?:getelementptr|inttoptr|addrspacecast|bitcast)\b.*$|\S+$')
_GENERATION = re.compile(r"gfx(\d+)(?=[0-9a-f]{2}$|-)")
_HINTS = ("", "NT", "HT", "", "NT_RT", "RT_NT", "NT_HT", "NT_WB")
_SCOPES = ("CU", "SE", "DEV", "SYS")
_SIZED_BY_OPERAND = re.compile(r"load(?:\.async)?(?:\.to)?\.lds(?:\.p\d+)?$")


def split(text: str, at: int = 0) -> list[str]:
    """The parts between the commas that stand in no bracket, up to the bracket that closes around them."""
    parts: list[str] = []
    depth = 0
    for mark in _BRACKET.finditer(text, at):
        if mark[0] == "," and depth == 0:
            parts.append(text[at : mark.start()])
            at = mark.end()
        elif mark[0] in "([{<":
            depth += 1
        elif mark[0] in ")]}>":
            depth -= 1
            if depth < 0:
                return [*parts, text[at : mark.start()]]
    return [*parts, text[at:]]


def arguments_of(text: str, callee: str) -> list[str]:
    """The arguments of a call, each with its type."""
    at = text.find(f"@{callee}(")
    return [] if at < 0 else [part.strip() for part in split(text, at + len(callee) + 2)]


def value_of(argument: str) -> str:
    """The name, number or constant expression of an argument, without its type."""
    found = _VALUE.search(argument)
    return argument if found is None else found[0]


def asm_operand(reference: str, text: str) -> str:
    """The value that `$5` stands for in a call of inline assembly; anything else as it is.

    Outputs are counted first, and tied inputs have numbers of their own.
    """
    if reference[:1] != "$" or not reference[1:].isdecimal():
        return reference
    parts = text.split('"')
    if len(parts) < 5:
        return reference
    outputs = sum(constraint.startswith("=") for constraint in parts[3].split(","))
    place = int(reference[1:]) - outputs
    arguments = split('"'.join(parts[4:]).partition("(")[2])
    return value_of(arguments[place].strip()) if 0 <= place < len(arguments) else reference


@lru_cache(maxsize=1024)
def type_bits(written: str) -> int | None:
    """Bits of a scalar or vector type, None for structures, arrays and pointers of unknown size."""
    vector = _VECTOR.fullmatch(written)
    if vector is not None:
        bits = type_bits(vector[2])
        return None if bits is None else int(vector[1]) * bits
    if written.endswith("*") or written.startswith("ptr"):
        # Pointers to shared and private memory differ in size from target to target.
        return 64 if re.search(r"addrspace\([35]\)\*?$", written) is None else None
    if written[:1] == "i" and written[1:].isdecimal():
        return int(written[1:])
    return _FLOATS.get(written)


def _bytes(bits: int | None) -> int | None:
    return None if bits is None else (bits + 7) // 8


def instruction_transfer(opcode: str, text: str) -> Transfer | None:
    """What `load`, `store`, `atomicrmw` or `cmpxchg` moves; None for an atomic on shared memory."""
    cache = tuple(_CACHE.findall(text))
    if opcode == "load":
        found = _LOADED.search(text)
        return Transfer(None if found is None else _bytes(type_bits(found[1])), Queue.USE, cache)
    if opcode == "store":
        found = _STORED.search(text)
        return Transfer(None if found is None else _bytes(type_bits(found[1])), None, cache)
    found = _EXCHANGED.search(text)
    if found is None:
        return Transfer(None, Queue.USE, cache)
    return None if "addrspace(3)" in found[1] else Transfer(_bytes(type_bits(found[2])), Queue.USE, cache)


def intrinsic_transfer(name: str, text: str, target: str) -> Transfer | None:
    """What a call of a memory intrinsic moves; None for an atomic on shared memory."""
    if name.startswith("llvm.nvvm.cp."):
        return _bulk(name, text)
    if not name.startswith("llvm.amdgcn."):
        is_load = ".load" in name or ".ld" in name or ".atomic" in name or "gather" in name
        return Transfer(_width(name), Queue.USE if is_load else None)
    if name.startswith("llvm.amdgcn.ds."):
        return None
    cache = _cache_policy(name, text, target)
    if name.startswith("llvm.amdgcn.tensor."):
        return Transfer(None, Queue.TENSORS, cache, of_block=True)
    if _SIZED_BY_OPERAND.search(name) is not None:
        arguments = arguments_of(text, name)
        size = value_of(arguments[2]) if len(arguments) > 2 else ""
        queue = Queue.GROUP if ".async" in name else Queue.LOADS
        return Transfer(int(size) if size.isdecimal() else None, queue, cache)
    if ".async." in name:
        return Transfer(_width(name), Queue.COPIES, cache)
    return Transfer(_width(name), None if ".store" in name else Queue.USE, cache)


def _bulk(name: str, text: str) -> Transfer:
    """NVIDIA's copies: the barrier of a bulk load is its second operand."""
    copied = _COPIED.search(name)
    if copied is not None:
        return Transfer(int(copied[1]), Queue.GROUP, (name[len("llvm.nvvm.cp.async.") :][:2],))
    if ".g2s." not in name and ".global.to." not in name:
        return Transfer(None, Queue.STORES, of_block=True)
    arguments = arguments_of(text, name)
    size = value_of(arguments[3]) if ".global.to." in name and len(arguments) > 3 else ""
    barrier = value_of(arguments[1]) if len(arguments) > 1 else None
    return Transfer(int(size) if size.isdecimal() else None, Queue.PHASE, of_block=True, barrier=barrier)


@lru_cache(maxsize=1024)
def _width(name: str) -> int | None:
    """Bytes of the type that an intrinsic's name ends in (`….v4i32`), else of its width (`….b128`)."""
    typed = _MANGLED.search(name)
    if typed is not None:
        return _bytes(int(typed[1] or 1) * int(typed[2]))
    sized = _BITS.search(name)
    return None if sized is None else _bytes(int(sized[1]))


def _cache_policy(name: str, text: str, target: str) -> tuple[str, ...]:
    """The words of assembly for the last operand; the bare number where the target is not known.

    Source: IntrinsicsAMDGPU.td, "auxiliary/cachepolicy".
    """
    arguments = arguments_of(text, name)
    written = arguments[-1].removeprefix("i32 ") if arguments else ""
    # These two have no such operand.
    if not written.isdecimal() or name.startswith(("llvm.amdgcn.global.atomic", "llvm.amdgcn.flat.atomic")):
        return ()
    policy = int(written)
    found = _GENERATION.search(target)
    if found is None:
        return (f"cachepolicy={policy}",) if policy else ()
    if int(found[1]) >= 12:
        return _temporal_words(name, policy & 7, _SCOPES[policy >> 3 & 3])
    is_cdna3 = target.startswith(("gfx94", "gfx95"))
    words = ("sc0", "nt", "", "", "sc1") if is_cdna3 else ("glc", "slc", "dlc", "", "scc")
    return tuple(word for bit, word in enumerate(words) if word and policy >> bit & 1)


def _temporal_words(name: str, hint: int, scope: str) -> tuple[str, ...]:
    """A temporal hint and a scope as `AMDGPUInstPrinter::printTH` and `printScope` spell them."""
    words = []
    if ".atomic." in name:
        words += ["th:TH_ATOMIC_NT"] if hint & 2 else []
    elif hint:
        is_store = ".store" in name
        last = "BYPASS" if scope == "SYS" else "RT_WB" if is_store else "LU"
        words.append(f"th:TH_{'STORE' if is_store else 'LOAD'}_{_HINTS[hint] or last}")
    return tuple(words if scope == "CU" else [*words, f"scope:SCOPE_{scope}"])
