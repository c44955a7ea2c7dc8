"""Records whose facts are read from the index, or computed from the files, when a view first reads them.

A record (`KernelFacts`, `StageFacts`, `RegionWork`) declares each fact as a method under `@lazy`. The return
type is the type of the fact, and the body leads to the function that computes it. A value is kept in the
record once it was read. `FactSource` keeps the values that are written to the index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, fields
from functools import cached_property, partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_type_hints, overload

from artifact_inspector.facts.encoding import join, read_section, split, write_section
from artifact_inspector.facts.reading import TextCache, Unavailable, without_collection
from artifact_inspector.files.artifact import join_display_path
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.files.index import pack, unpack
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from typing_extensions import Self

    from artifact_inspector.facts.kernel_reading import KernelReading
    from artifact_inspector.facts.modules import Disassemble

Value = TypeVar("Value")

_NOT_DECODABLE = (TypeError, ValueError, LookupError, RecursionError)
"""Errors of a stored text that stands for no fact of its type."""


def none() -> None:
    """None, in place of a fact that is unavailable."""
    return


class FactSource:
    """Where the facts of one kernel come from: stored sections, and its files for all others."""

    def __init__(
        self,
        artifact: Artifact,
        stored: bytes = b"",
        disassemble: Disassemble | None = None,
        texts: TextCache | None = None,
    ) -> None:
        """`stored` is what `text` returned before; empty if nothing is stored."""
        self._artifact = artifact
        self._disassemble = disassemble
        self._texts = texts
        self._packed = b""
        self._packed_problems: tuple[Problem, ...] = ()
        self._split: dict[str, str] | None = split(stored)
        self._values: dict[str, Any] = {}
        self._computed: set[str] = set()
        """Sections whose values are not stored."""
        self._reading: KernelReading | None = None
        self.reported: list[Problem] = []
        """Problems that views reported; they are not stored."""

    @property
    def _sections(self) -> dict[str, str]:
        if self._split is None:
            self._split = split(unpack(self._packed) or b"")
        return self._split

    @property
    def is_changed(self) -> bool:
        """True where facts were computed that are not stored."""
        return bool(self._computed)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that can be read."""
        return self.value("stages", lambda: tuple[Stage, ...], lambda: self.reading.stages, tuple)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems so far: those that are stored, then those of reading the files."""
        if self._split is None:
            return self._packed_problems
        problems: list[Problem] = []
        if "problems" in self._sections:
            try:
                stored: tuple[Problem, ...] = read_section(tuple[Problem, ...], self._sections["problems"])
                problems += [Problem(self.locate(path), problem) for path, problem in stored]
            except _NOT_DECODABLE:
                del self._sections["problems"]
        if self._reading is not None:
            problems += self._reading.log.in_order
        return tuple(dict.fromkeys(problems))

    @property
    def reading(self) -> KernelReading:
        """The files of the kernel, with what was computed from them."""
        if self._reading is None:
            from artifact_inspector.facts.kernel_reading import KernelReading  # which imports every parser

            self._reading = KernelReading(self._artifact, self._disassemble, self._texts)
        return self._reading

    def value(
        self, section: str, type_of: Callable[[], Any], find: Callable[[], Value], missing: Callable[[], Any]
    ) -> Value:
        """A fact as it is stored, else computed from the files, else `missing()`."""
        if section in self._values:
            return self._values[section]  # type: ignore[no-any-return]
        if section in self._sections:
            try:
                self._values[section] = read_section(type_of(), self._sections[section])
                return self._values[section]  # type: ignore[no-any-return]
            except _NOT_DECODABLE:
                del self._sections[section]
        with without_collection():
            try:
                value = find()
            except Unavailable:
                value = missing()
        self._values[section] = value
        self._computed.add(section)
        return value

    def text(self) -> bytes:
        """All sections, stored before and computed since, as plain text."""
        computed = {section: write_section(self._values[section]) for section in sorted(self._computed)}
        found = tuple(Problem(self._without_directory(path), problem) for path, problem in self.problems)
        problems = {"problems": write_section(found)} if found else {}
        return join({**self._sections, **computed, **problems})

    def locate(self, path: str) -> str:
        """The display path of a path in the kernel's directory, as facts hold it: they are equal in every directory."""
        return join_display_path(self._artifact.directory, path) if path else self._artifact.directory

    def _without_directory(self, path: str) -> str:
        directory = self._artifact.directory
        return "" if path == directory else path.removeprefix(f"{directory}/")

    def report(self, problem: Problem) -> None:
        """Add a problem that a view met."""
        if problem not in self.reported:
            self.reported.append(problem)

    def pack(self, packed: bytes) -> None:
        """Keep the facts compressed until one is read again; `packed` are all of them compressed, or empty."""
        self._packed_problems = self.problems
        self._packed = packed or pack(self.text())
        self._split, self._reading = None, None
        self._values.clear()
        self._computed.clear()

    def let_go(self) -> None:
        """Forget the parsed files; a fact that is read later is computed from them again."""
        if self._reading is not None:
            self._texts = None
            self._reading.forget()


class lazy(Generic[Value]):  # noqa: N801 - used as a decorator, as `property` is
    """A fact of a record, kept in the index.

    Args:
        missing: makes the value of a fact that is unavailable.
        is_field: False for a fact that other members show.
    """

    def __init__(
        self, find: Callable[[Any], Value], missing: Callable[[], Any] = none, *, is_field: bool = True
    ) -> None:
        """`find` is the method that computes the fact."""
        self.find = find
        self.missing = missing
        self.is_field = is_field
        self.name = find.__name__
        self.__doc__ = find.__doc__
        self._type: Any = None

    @property
    def value_type(self) -> Any:
        """The type of the fact: what its method is annotated to return."""
        if self._type is None:
            self._type = get_type_hints(self.find)["return"]
        return self._type

    @overload
    def __get__(self, record: None, kind: type) -> lazy[Value]: ...
    @overload
    def __get__(self, record: Facts, kind: type) -> Value: ...
    def __get__(self, record: Facts | None, kind: type) -> lazy[Value] | Value:
        """The value, which the record keeps."""
        if record is None:
            return self
        value = self._compute(record)
        record.__dict__[self.name] = value
        return value

    def _compute(self, record: Facts) -> Value:
        return record.source_of(self.name).value(
            record.section(self.name), lambda: self.value_type, partial(self.find, record), self.missing
        )


class of_siblings(lazy[Value]):  # noqa: N801 - used as a decorator
    """A fact that the index keeps together with the same fact of all siblings of the record."""

    def _compute(self, record: Facts) -> Value:
        def find() -> dict[str, Value]:
            values = {}
            for name, sibling in record.siblings().items():
                try:
                    values[name] = self.find(sibling)
                except Unavailable:
                    values[name] = self.missing()
            return values

        values: dict[str, Value] = record.source_of(self.name).value(
            record.section(self.name), lambda: GenericAlias(dict, (str, self.value_type)), find, dict
        )
        return values[record.name] if record.name in values else self.missing()


class of_files(lazy[Value]):  # noqa: N801 - used as a decorator
    """A `hidden` fact that only the kernel's files have: `missing()` in a record of given values."""

    def __init__(self, find: Callable[[Any], Value], missing: Callable[[], Any] = none) -> None:
        """`find` is the method that computes the fact."""
        super().__init__(find, missing, is_field=False)

    def _compute(self, record: Facts) -> Value:
        return super()._compute(record) if record.is_on_demand else self.missing()


class derived(lazy[Value]):  # noqa: N801 - used as a decorator
    """A field of a record that follows from its other members, and is not kept in the index."""

    def _compute(self, record: Facts) -> Value:
        record.source_of(self.name)
        return self.find(record)


class growing(derived[Value]):  # noqa: N801 - used as a decorator
    """A field that grows while other members are read: the record does not keep it."""

    def __get__(self, record: Facts | None, kind: type) -> Any:
        """The value as it is now."""
        return self if record is None else self._compute(record)


def or_else(missing: Callable[[], Any]) -> Callable[[Callable[[Any], Value]], lazy[Value]]:
    """A `lazy` fact with the value that it has where it is unavailable."""
    return partial(lazy, missing=missing)


def of_group(missing: Callable[[], Any]) -> Callable[[Callable[[Any], Value]], of_siblings[Value]]:
    """A fact `of_siblings` with the value that it has where it is unavailable."""
    return partial(of_siblings, missing=missing)


def of_hidden_group(missing: Callable[[], Any]) -> Callable[[Callable[[Any], Value]], of_siblings[Value]]:
    """A fact `of_siblings` that is no field."""
    return partial(of_siblings, missing=missing, is_field=False)


def hidden(find: Callable[[Any], Value]) -> lazy[Value]:
    """A `lazy` fact that is no field: other members show its parts."""
    return lazy(find, is_field=False)


class Facts:
    """A record of facts: a frozen dataclass whose members are read on demand, or given."""

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _source: FactSource | None = None

    def __init_subclass__(cls) -> None:
        """Make the members the fields of a dataclass, in the order of the class body."""
        for name, member in list(vars(cls).items()):
            if isinstance(member, lazy) and member.is_field:
                cls.__annotations__[name] = member.find.__annotations__["return"]
        dataclass(init=False, frozen=True, eq=False, repr=False)(cls)

    def __init__(self, *values: object, **named: object) -> None:
        """A record of given values, in the order of the fields or by their names."""
        names = [field.name for field in fields(self)]
        values_by_name = {**dict(zip(names, values, strict=False)), **named}
        unknown = values_by_name.keys() - set(names)
        if unknown or len(values) > len(names):
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        self.__dict__.update(values_by_name)

    @classmethod
    def on_demand(cls, source: FactSource, /, **values: object) -> Self:
        """A record with some values, which reads the others from a source."""
        record = cls.__new__(cls)
        record.__dict__.update(values, _source=source)
        return record

    def section(self, name: str) -> str:
        """What the index calls a member."""
        return name

    @property
    def name(self) -> str:
        """What a record is called among its siblings."""
        return ""

    def siblings(self) -> Mapping[str, Facts]:
        """The records of its group by name, this one among them."""
        return {"": self}

    def source_of(self, name: str) -> FactSource:
        """The source that a member is read from.

        Raises:
            AttributeError: the record was made of values, without this one.
        """
        if self._source is None:
            raise AttributeError(f"{type(self).__name__}.{name} was not given")
        return self._source

    def derive(self, name: str, find: Callable[[], Value]) -> Value:
        """What a view makes of the facts, made once: `find` is called the first time."""
        derived_values: dict[str, Any] = self.__dict__.setdefault("_derived", {})
        if name not in derived_values:
            derived_values[name] = find()
        return derived_values[name]  # type: ignore[no-any-return]

    def pack(self, packed: bytes, keep: Collection[str] = ()) -> None:
        """Forget the members that can be read again, but some; what views made of them stays."""
        if self._source is not None:
            self._source.pack(packed)
            for name, member in vars(type(self)).items():
                if isinstance(member, lazy) and name not in keep:
                    self.__dict__.pop(name, None)

    @property
    def is_on_demand(self) -> bool:
        """False for a record that was made of given values."""
        return self._source is not None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in available(self).items())
        return f"{type(self).__name__}({values})"

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)


Record = TypeVar("Record", bound=Facts)


def available(record: Facts) -> dict[str, Any]:
    """The fields that have a value, without reading more."""
    return {field.name: record.__dict__[field.name] for field in fields(record) if field.name in record.__dict__}


def with_fields(record: Record, **changed: object) -> Record:
    """The record with other values; a field that was not read yet is still read on demand."""
    kind = type(record)
    copy = kind.__new__(kind)
    copy.__dict__.update(
        (name, value)
        for name, value in record.__dict__.items()
        if not isinstance(getattr(kind, name, None), cached_property)  # which follows from the fields
    )
    copy.__dict__.pop("_derived", None)
    copy.__dict__.update(changed)
    return copy


def read_all(record: Facts) -> None:
    """Read every field of a record."""
    for field in fields(record):
        getattr(record, field.name)
