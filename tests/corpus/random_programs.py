"""Programs of tensor-level IR at random, and what a compiler may make of them: the same in another order."""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

from handwritten import tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode

T, P, N = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>", "tensor<8xi32>"
HEAD = f"%q: {P}, %k: {P}, %o: {P}, %w: tensor<8x!tt.ptr<i32>>, %n: i32, %b: i1, %z: {T}, %c: {N}"


class Statement(NamedTuple):
    """One operation, with what it takes; or a loop or branch with its body."""

    text: str
    gives: str
    takes: tuple[str, ...]
    body: tuple[Statement, ...] = ()
    end: str = ""


class Maker:
    """A program of a few loads, computes, stores, loops and branches."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._count = 0
        self._line = 2

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _at(self) -> str:
        self._line += self._chance.choice((0, 1, 1, 1, 2))
        return f" @{self._line}"

    def block(self, floats: list[str], pointers: list[str], integers: list[str], depth: int) -> list[Statement]:
        """Statements that use what is there; each adds to it."""
        made: list[Statement] = []
        for _ in range(self._chance.randint(3, 7)):
            kinds = [
                "load",
                "load",
                "load",
                "float",
                "float",
                "float",
                "sum",
                "sum",
                "sum",
                "store",
                "integers",
                "address",
                "count",
            ]
            kind = self._chance.choice(kinds + ["loop", "loop", "if"] * (depth < 2))
            made.append(self._one(kind, floats, pointers, integers, depth))
        return made

    def _one(self, kind: str, floats: list[str], pointers: list[str], integers: list[str], depth: int) -> Statement:
        pick = self._chance.choice
        name, one, two = self._name(), pick(floats[-4:]), pick(floats)
        if kind == "load":
            pointer = pick(pointers)
            floats.append(name)
            return Statement(f"{name} = tt.load {pointer} : {P}{self._at()}", name, (pointer,))
        if kind == "integers":
            integers.append(name)
            return Statement(f"{name} = tt.load %w : tensor<8x!tt.ptr<i32>>{self._at()}", name, ())
        if kind == "address":
            offset = pick(integers)
            pointers.append(name)
            return Statement(f"{name} = tt.addptr %q, {offset} : {P}, {N}{self._at()}", name, (offset,))
        if kind == "count":
            left, right = pick(integers), pick(integers)
            integers.append(name)
            return Statement(f"{name} = arith.addi {left}, {right} : {N}{self._at()}", name, (left, right))
        if kind == "float":
            floats.append(name)
            return Statement(
                f"{name} = arith.{pick(('mulf', 'addf', 'subf'))} {one}, {two} : {T}{self._at()}", name, (one, two)
            )
        if kind == "sum":
            body = f'"tt.reduce"({one}) <{{axis = 0 : i32}}> ({{\n^bb0(%x: f32, %y: f32):\n%s = arith.addf %x, %y : f32\ntt.reduce.return %s : f32\n}}) : ({T}) -> f32'
            return Statement(f"{name} = {body}{self._at()}", name, (one,))
        if kind == "store":
            return Statement(f"tt.store {pick(('%o', '%k'))}, {one} : {P}{self._at()}", "", (one,))
        if kind == "if":
            body = self.block(list(floats), list(pointers), list(integers), depth + 1)
            return Statement("scf.if %b {", "", (), tuple(body), f"}}{self._at()}")
        inner = [*floats, f"%acc{name[1:]}"]
        body = self.block(inner, list(pointers), list(integers), depth + 1)
        at, last = self._at(), inner[-1]
        floats.append(name)
        head = f"{name} = scf.for %j{name[1:]} = %n to %n step %n iter_args({inner[len(floats) - 1]} = {one}) -> ({T})  : i32 {{"
        body.append(Statement(f"scf.yield {last} : {T}", "", (last,), (), "last"))
        return Statement(head, name, (one,), tuple(body), f"}}{at}")


def program(seed: int) -> list[Statement]:
    return Maker(seed).block(["%z"], ["%q", "%k"], ["%c"], 0)


def written(statements: list[Statement] | tuple[Statement, ...], chance: Random | None) -> list[str]:
    """The text; with `chance`, in any order that defines before it uses and keeps stores where they are."""
    rest, lines = list(statements), []
    while rest:
        free = [0]
        if chance is not None and not rest[0].body:
            for at, one in enumerate(rest[:6]):
                before = rest[:at]
                if one.body or one.end or not one.gives or any(other.body for other in before):
                    break
                if not any(other.gives in one.takes for other in before if other.gives):
                    free.append(at)
        one = rest.pop(chance.choice(free) if chance is not None else 0)
        lines.append(one.text)
        if one.body:
            lines += [*written(one.body, chance), one.end]
    return lines


def stages(seed: int) -> list[FunctionCode]:
    """A program, the same reordered, and that without lines."""
    statements = program(seed)
    plain, other = written(statements, None), written(statements, Random(seed))
    bare = [re.sub(r" @\d+$", "", line) for line in other]
    return [tensor_code("\n".join(lines), head=HEAD) for lines in (plain, other, bare)]
